/* SHA-256 (FIPS 180-4) of bytes that come in pieces: a page has no incremental digest, and a model
 * is too large to be held whole. The words of the state are kept in native byte order. */
#include <string.h>

#include "base/mem.h"
#include "web/web.h"

#define EXPORT(name) __attribute__((export_name("frit_" #name)))

enum { BLOCK = 64 };

struct web_sha256 {
  uint32_t h[8];
  uint64_t n; /* bytes so far */
  uint8_t rest[BLOCK];
};

/* The first 32 bits of the fractions of the cube roots of the first 64 primes (section 4.2.2). */
static const uint32_t K[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

static uint32_t rotr(uint32_t x, uint32_t n) { return x >> n | x << (32 - n); }

static void block(uint32_t h[8], const uint8_t *p) {
  uint32_t w[64];
  for (int t = 0; t < 16; t++) {
    memcpy(&w[t], p + 4 * t, 4);
    w[t] = __builtin_bswap32(w[t]);
  }
  for (int t = 16; t < 64; t++) {
    uint32_t s0 = rotr(w[t - 15], 7) ^ rotr(w[t - 15], 18) ^ w[t - 15] >> 3;
    uint32_t s1 = rotr(w[t - 2], 17) ^ rotr(w[t - 2], 19) ^ w[t - 2] >> 10;
    w[t] = w[t - 16] + s0 + w[t - 7] + s1;
  }
  uint32_t a = h[0], b = h[1], c = h[2], d = h[3], e = h[4], f = h[5], g = h[6], i = h[7];
  for (int t = 0; t < 64; t++) {
    uint32_t s1 = rotr(e, 6) ^ rotr(e, 11) ^ rotr(e, 25);
    uint32_t t1 = i + s1 + ((e & f) ^ (~e & g)) + K[t] + w[t];
    uint32_t s0 = rotr(a, 2) ^ rotr(a, 13) ^ rotr(a, 22);
    uint32_t t2 = s0 + ((a & b) ^ (a & c) ^ (b & c));
    i = g, g = f, f = e, e = d + t1;
    d = c, c = b, b = a, a = t1 + t2;
  }
  h[0] += a, h[1] += b, h[2] += c, h[3] += d, h[4] += e, h[5] += f, h[6] += g, h[7] += i;
}

EXPORT(sha256_new) web_sha256 *web_sha256_new(void) {
  static const uint32_t first[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                    0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  web_sha256 *s = mem_zalloc(1, sizeof *s);
  if (s) memcpy(s->h, first, sizeof first);
  return s;
}

EXPORT(sha256_add) void web_sha256_add(web_sha256 *s, const uint8_t *p, uint32_t n) {
  uint32_t have = s->n % BLOCK;
  s->n += n;
  if (have) {
    uint32_t more = n < BLOCK - have ? n : BLOCK - have;
    memcpy(s->rest + have, p, more);
    if (have + more < BLOCK) return;
    block(s->h, s->rest);
    p += more;
    n -= more;
  }
  for (; n >= BLOCK; p += BLOCK, n -= BLOCK) block(s->h, p);
  memcpy(s->rest, p, n);
}

EXPORT(sha256_end) void web_sha256_end(web_sha256 *s, uint8_t out[32]) {
  uint64_t bits = __builtin_bswap64(8 * s->n);
  uint8_t pad[BLOCK + 8] = {0x80};
  uint32_t n = BLOCK - (uint32_t)((s->n + 8) % BLOCK); /* 1 to 64 */
  memcpy(pad + n, &bits, 8);
  web_sha256_add(s, pad, n + 8);
  for (int i = 0; i < 8; i++) {
    uint32_t word = __builtin_bswap32(s->h[i]);
    memcpy(out + 4 * i, &word, 4);
  }
}
