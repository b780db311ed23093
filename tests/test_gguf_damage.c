/* Damaged GGUF files: each truncation of each fixture and thousands of random changes to header and
 * keys give a typed error or a file that can be walked whole. Run under the sanitizers: the bytes
 * are in blocks of exactly their size, so that one byte too far is seen. */
#include <stdlib.h>

#include "base/file.h"
#include "base/math.h"
#include "base/mem.h"
#include "gguf_walk.h"
#include "import/gguf/gguf_write.h"
#include "import/gguf/synth.h"
#include "test.h"

typedef struct fixture {
  uint8_t *p;
  size_t n;
  size_t head; /* bytes before the data */
} fixture;

/* `path` as exactly n bytes from malloc. */
static bool load(const char *path, fixture *f) {
  char *p;
  gguf *g = NULL;
  *f = (fixture){0};
  if (file_read(path, 8 << 20, &p, &f->n)) return false;
  f->p = malloc(f->n);
  if (f->p) memcpy(f->p, p, f->n);
  mem_free(p);
  if (!f->p || gguf_parse(path, f->p, f->n, f->n, &g)) {
    free(f->p);
    return false;
  }
  f->head = f->n;
  for (uint64_t i = 0; i < gguf_tensor_count(g); i++)
    f->head = min_u64(f->head, gguf_tensor_at(g, i)->file_off);
  gguf_free(g);
  return true;
}

static bool typed(err e) {
  return e == ERR_FORMAT || e == ERR_TRUNCATED || e == ERR_UNSUPPORTED || e == ERR_LIMIT ||
         e == ERR_ARG;
}

/* Parses and walks; what the file may be is known to nobody, only that nothing else happens. */
static err try_bytes(const uint8_t *p, uint64_t n, uint64_t file_size) {
  gguf *g = NULL;
  uint64_t sum;
  err e = gguf_parse("damaged.gguf", p, n, file_size, &g);
  if (e && (!typed(e) || !strstr(err_text(), "damaged.gguf: ")))
    FAIL("%s: \"%s\"", err_name(e), err_text());
  if (!e && !walk(g, &sum)) FAIL("a parsed file cannot be walked");
  gguf_free(g);
  return e;
}

static void truncations(const fixture *f) {
  /* Beyond the header every byte is alike: the last ones and a few between are enough. */
  for (size_t n = 0; n < f->n; n += n < f->head + 64 || n + 64 > f->n ? 1 : 61) {
    uint8_t *cut = malloc(n ? n : 1);
    if (!cut) return;
    memcpy(cut, f->p, n);
    err e = try_bytes(cut, n, n);
    if (e != ERR_TRUNCATED && n + 64 < f->n) FAIL("%zu of %zu bytes: %s", n, f->n, err_name(e));
    e = try_bytes(cut, n, f->n);
    if (e != ERR_TRUNCATED && n + 64 < f->head) FAIL("first %zu bytes: %s", n, err_name(e));
    free(cut);
  }
}

static const uint64_t nasty[] = {0,          1,          0x7F,       0x80,           0xFF,
                                 0xFFFF,     0x7FFFFFFF, 0x80000000, 0xFFFFFFFF,     1ull << 32,
                                 1ull << 62, 1ull << 63, INT64_MAX,  UINT64_MAX - 7, UINT64_MAX};
enum { N_NASTY = sizeof nasty / sizeof nasty[0] };

/* One change to p[0..head): a byte, a bit, a number, a few random bytes, or a moved stretch. */
static void mutate(uint8_t *p, size_t head, uint32_t seed) {
  uint32_t at = rng_u32(seed, 1) % (uint32_t)head, r = rng_u32(seed, 2);
  size_t room = head - at;
  switch (rng_u32(seed, 0) % 5) {
  case 0: p[at] = (uint8_t)r; break;
  case 1: p[at] = (uint8_t)(p[at] ^ 1u << (r & 7)); break;
  case 2: memcpy(p + at, &nasty[r % N_NASTY], min_u64(room, r & 1024 ? 8 : 4)); break;
  case 3:
    for (uint32_t i = 0; i < 2 + r % 7 && i < room; i++) p[at + i] = (uint8_t)rng_u32(seed, 9 + i);
    break;
  default: {
    uint32_t from = rng_u32(seed, 3) % (uint32_t)head;
    memmove(p + at, p + from, min_u64(min_u64(room, head - from), 1 + r % 40));
  }
  }
}

static void mutations(const fixture *f, uint32_t seed, int times) {
  uint8_t *p = malloc(f->n);
  if (!p) return;
  int refused = 0;
  for (int i = 0; i < times; i++) {
    memcpy(p, f->p, f->n);
    uint32_t s = rng_u32(seed, (uint32_t)i);
    for (uint32_t k = 0; k <= s % 3; k++) mutate(p, f->head, s + k);
    refused += try_bytes(p, f->n, f->n) != ERR_NONE;
  }
  CHECK(refused > times / 5);
  free(p);
}

static int times(void) { return test_quick() ? 500 : 10000; }

static void damage(const char *path, uint32_t seed, int n) {
  fixture f;
  uint64_t before = mem_live();
  REQUIRE(load(path, &f));
  CHECK_OK(try_bytes(f.p, f.n, f.n));
  truncations(&f);
  mutations(&f, seed, n);
  free(f.p);
  CHECK_EQ(mem_live(), before);
}

static void python_v3(void) { damage(test_data("gguf/types-v3.gguf"), 1, times()); }
static void python_v2(void) { damage(test_data("gguf/types-v2.gguf"), 2, times()); }

/* From the writer: nested arrays, a bool, alignment 8, two tensors. */
static void written(void) {
  char path[512];
  snprintf(path, sizeof path, "%s", test_tmp("frit-damage.gguf"));
  gguf_writer *w = NULL;
  uint64_t ne[3] = {3, 2, 1};
  float x[6] = {0};
  uint16_t half[5] = {0};
  CHECK_OK(gguf_writer_new(&(gguf_writer_desc){.path = path, .alignment = 8, .version = 2}, &w));
  REQUIRE(w);
  gguf_write_bool(w, "b", true);
  gguf_write_arr_begin(w, "nested", GGUF_ARR, 2);
  gguf_write_inner(w, GGUF_F32, x, 3);
  gguf_write_inner(w, GGUF_U16, half, 5);
  gguf_write_arr_begin(w, "words", GGUF_STR, 2);
  gguf_write_text(w, "one", 3);
  gguf_write_text(w, "", 0);
  gguf_write_tensor(w, "x", DT_F32, 3, ne);
  gguf_write_tensor(w, "y", DT_F16, 1, &(uint64_t){5});
  CHECK_OK(gguf_write_data(w, x, sizeof x));
  CHECK_OK(gguf_write_data(w, half, sizeof half));
  CHECK_OK(gguf_writer_finish(w));
  gguf_writer_free(w);
  damage(path, 3, times());
  remove(path);
}

static void synthetic(void) {
  char path[512];
  snprintf(path, sizeof path, "%s", test_tmp("frit-damage.gguf"));
  CHECK_OK(synth_write(&(synth_desc){.preset = "tiny", .quant = "q4_0"}, path));
  damage(path, 4, times() / 5);
  remove(path);
}

/* Three parts, one of them changed: the sum must be refused or whole, and a refused part must leave
 * those before it as they were. */
static void parts(void) {
  fixture f[3] = {{0}};
  uint64_t sum, before = mem_live();
  for (uint32_t i = 0; i < 3; i++) {
    char *p, name[64];
    snprintf(name, sizeof name, "gguf/split-%05u-of-00003.gguf", i + 1);
    CHECK_OK(file_read(test_data(name), 1 << 20, &p, &f[i].n));
    f[i].p = malloc(f[i].n);
    REQUIRE(f[i].p);
    memcpy(f[i].p, p, f[i].n);
    mem_free(p);
  }
  for (int k = 0; k < times(); k++) {
    uint32_t s = rng_u32(77, (uint32_t)k), hurt = s % 3;
    size_t n = f[hurt].n;
    uint8_t *good = f[hurt].p, *bad = malloc(n);
    REQUIRE(bad);
    memcpy(bad, good, n);
    mutate(bad, n, s);
    f[hurt].p = bad;
    gguf *g = NULL;
    err e = gguf_parse("1", f[0].p, f[0].n, f[0].n, &g);
    for (uint32_t i = 1; !e && i < 3 && i < gguf_part_count(g); i++) {
      uint64_t had = gguf_tensor_count(g);
      e = gguf_add_part(g, "n", f[i].p, f[i].n, f[i].n);
      if (e) CHECK_EQ(gguf_tensor_count(g), had);
    }
    if (e && !typed(e)) FAIL("%s: %s", err_name(e), err_text());
    if (g) CHECK(walk(g, &sum));
    gguf_free(g);
    f[hurt].p = good;
    free(bad);
  }
  for (int i = 0; i < 3; i++) free(f[i].p);
  CHECK_EQ(mem_live(), before);
}

void suite_gguf_damage(void) {
  RUN(python_v3);
  RUN(python_v2);
  RUN(written);
  RUN(synthetic);
  RUN(parts);
}
