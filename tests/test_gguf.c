/* GGUF reader: values, errors, and that no damaged header does more than fail. */
#include "base/math.h"
#include "base/mem.h"
#include "import/gguf/gguf.h"
#include "test.h"

/* ---- headers built by hand ---- */

static void put32(buf *b, uint32_t v) { buf_put(b, &v, 4); }
static void put64(buf *b, uint64_t v) { buf_put(b, &v, 8); }
static void put_text(buf *b, const char *s) {
  put64(b, strlen(s));
  buf_puts(b, s);
}
static void put_head(buf *b, uint32_t version, uint64_t tensors, uint64_t keys) {
  buf_puts(b, "GGUF");
  put32(b, version);
  put64(b, tensors);
  put64(b, keys);
}
static void put_tensor(buf *b, const char *name, uint32_t type, uint64_t ne0, uint64_t ne1,
                       uint64_t off) {
  put_text(b, name);
  put32(b, 2);
  put64(b, ne0);
  put64(b, ne1);
  put32(b, type);
  put64(b, off);
}
static void put_u32_key(buf *b, const char *key, uint32_t v) {
  put_text(b, key);
  put32(b, GGUF_U32);
  put32(b, v);
}
static void pad(buf *b, size_t n) {
  while (b->n < n) buf_putc(b, 0);
}

static err parse(const buf *b, gguf **out) {
  return gguf_parse("x.gguf", (const uint8_t *)b->p, b->n, b->n, out);
}

/* The bytes in `b` must be refused; frees it. */
#define REFUSED(b, code, part)                                                                     \
  do {                                                                                             \
    gguf *g_ = NULL;                                                                               \
    CHECK_ERR(parse(&(b), &g_), code, part);                                                       \
    CHECK(g_ == NULL);                                                                             \
    buf_free(&(b));                                                                                \
  } while (0)

static void refuses_other_files(void) {
  buf b = {0};
  REFUSED(b, ERR_TRUNCATED, "ends at 0");
  buf_puts(&b, "PK\3\4 something");
  REFUSED(b, ERR_UNSUPPORTED, "not a GGUF file: it begins with bytes 50 4b 03 04");
  put_head(&b, 1, 0, 0);
  REFUSED(b, ERR_UNSUPPORTED, "GGUF version 1");
  put_head(&b, 4, 0, 0);
  REFUSED(b, ERR_UNSUPPORTED, "GGUF version 4");
  put_head(&b, 3u << 24, 0, 0);
  REFUSED(b, ERR_UNSUPPORTED, "big-endian");
  put_head(&b, 3, 70000, 0);
  REFUSED(b, ERR_LIMIT, "70000 tensors, the limit is 65536");
  put_head(&b, 3, 0, UINT64_MAX);
  REFUSED(b, ERR_LIMIT, "keys, the limit is 65536");
}

static void refuses_bad_keys(void) {
  buf b = {0};
  put_head(&b, 3, 0, 2);
  put_u32_key(&b, "a.b", 1);
  put_u32_key(&b, "a.b", 2);
  REFUSED(b, ERR_FORMAT, "key 'a.b' is there twice");
  put_head(&b, 3, 0, 1);
  put_u32_key(&b, "a\nb", 1);
  REFUSED(b, ERR_FORMAT, "control character 0x0a");
  put_head(&b, 3, 0, 1);
  put_u32_key(&b, "", 1);
  REFUSED(b, ERR_FORMAT, "is empty");
  put_head(&b, 3, 0, 1);
  put_text(&b, "k");
  put32(&b, 13);
  REFUSED(b, ERR_FORMAT, "key 'k' has type 13");
  put_head(&b, 3, 0, 1);
  put_text(&b, "k");
  put32(&b, GGUF_BOOL);
  buf_putc(&b, 2);
  REFUSED(b, ERR_FORMAT, "key 'k': a bool has the value 2");
  put_head(&b, 3, 0, 1);
  put_text(&b, "k");
  put32(&b, GGUF_STR);
  put64(&b, UINT64_MAX);
  REFUSED(b, ERR_TRUNCATED, "key 'k': its string needs 18446744073709551615 bytes");
  put_head(&b, 3, 0, 1);
  put_text(&b, "k");
  put32(&b, GGUF_ARR);
  put32(&b, GGUF_U64);
  put64(&b, UINT64_MAX / 4);
  REFUSED(b, ERR_FORMAT, "array of 4611686018427387903 elements");
  put_head(&b, 3, 0, 1);
  put_text(&b, "k");
  put32(&b, GGUF_ARR);
  for (int i = 0; i < 6; i++) {
    put32(&b, GGUF_ARR);
    put64(&b, 1);
  }
  put32(&b, GGUF_U8);
  put64(&b, 0);
  REFUSED(b, ERR_LIMIT, "arrays nested more than 4 deep");
  for (uint32_t align = 0; align <= 48; align += 12) {
    put_head(&b, 3, 0, 1);
    put_u32_key(&b, "general.alignment", align);
    REFUSED(b, ERR_FORMAT, "general.alignment' is ");
  }
}

static void refuses_bad_tensors(void) {
  buf b = {0};
  put_head(&b, 3, 1, 0);
  put_tensor(&b, "w", 2, 48, 2, 0);
  REFUSED(b, ERR_FORMAT,
          "tensor 'w' has rows of 48 elements, not a multiple of the 32 of a block of "
          "type q4_0");
  put_head(&b, 3, 1, 0);
  put_tensor(&b, "w", 0, 1ull << 40, 1ull << 40, 0);
  REFUSED(b, ERR_FORMAT, "tensor 'w' has 1099511627776 x 1099511627776 x 1 x 1 elements");
  put_head(&b, 3, 1, 0);
  put_tensor(&b, "w", 0, 1ull << 62, 1, 0);
  REFUSED(b, ERR_FORMAT, "over 2^64 bytes");
  put_head(&b, 3, 1, 0);
  put_tensor(&b, "w", 0, 4, 0, 0);
  REFUSED(b, ERR_FORMAT, "dimension 1 of 0 elements");
  put_head(&b, 3, 1, 0);
  put_tensor(&b, "w", 0, 4, 1, 8);
  REFUSED(b, ERR_FORMAT, "offset 8, not a multiple of the alignment 32");
  put_head(&b, 3, 1, 0);
  put_tensor(&b, "w", 0, 4, 1, UINT64_MAX - 31);
  REFUSED(b, ERR_TRUNCATED, "tensor 'w' needs 16 bytes at offset");
  put_head(&b, 3, 1, 0);
  put_tensor(&b, "w", 0, 4, 1, 0);
  pad(&b, 96 + 15);
  REFUSED(b, ERR_TRUNCATED, "tensor 'w' needs 16 bytes at offset 96, but the file ends at 111");
  put_head(&b, 3, 2, 0);
  put_tensor(&b, "w", 0, 4, 1, 0);
  put_tensor(&b, "w", 0, 4, 1, 0);
  pad(&b, 256);
  REFUSED(b, ERR_FORMAT, "tensor 'w' is there twice");
  put_head(&b, 3, 2, 0);
  put_tensor(&b, "v", 0, 4, 4, 0);
  put_tensor(&b, "w", 0, 4, 4, 0);
  pad(&b, 160 + 64);
  REFUSED(b, ERR_FORMAT, "tensor 'w' overlaps others");
  put_head(&b, 3, 1, 0);
  put_text(&b, "w");
  put32(&b, 5);
  REFUSED(b, ERR_FORMAT, "tensor 'w' has 5 dimensions");
}

static void foreign_types_are_listed(void) {
  buf b = {0};
  put_head(&b, 3, 2, 0);
  put_tensor(&b, "iq", 16, 256, 2, 0);
  put_tensor(&b, "new", 77, 3, 3, 160);
  pad(&b, 512);
  gguf *g = NULL;
  CHECK_OK(parse(&b, &g));
  REQUIRE(g);
  const gguf_tensor *t = NULL;
  CHECK_EQ(gguf_tensor_count(g), 2);
  CHECK_EQ(gguf_tensor_at(g, 0)->size, 132);
  CHECK_EQ(gguf_tensor_at(g, 1)->size, 0);
  CHECK_ERR(gguf_tensor_get(g, "iq", &t), ERR_UNSUPPORTED, "tensor 'iq' has type iq2_xxs (16)");
  CHECK_ERR(gguf_tensor_get(g, "new", &t), ERR_UNSUPPORTED, "type unknown (77)");
  CHECK_ERR(gguf_tensor_get(g, "w", &t), ERR_FORMAT, "x.gguf: tensor 'w' is missing");
  CHECK(!gguf_tensor_find(g, "w"));
  gguf_free(g);
  buf_free(&b);
}

static void model_file(void) {
  const char *path = test_model();
  if (!path) SKIP("no demo model");
  gguf *g = NULL;
  CHECK_OK(gguf_open(path, &g));
  REQUIRE(g);
  uint32_t layers = 0;
  const char *arch = NULL;
  gguf_array tokens;
  CHECK_OK(gguf_u32(g, "llama.block_count", &layers));
  CHECK_EQ(layers, 30);
  CHECK_OK(gguf_str(g, "general.architecture", &arch, NULL));
  CHECK_STR(arch, "llama");
  CHECK_OK(gguf_arr_strs(g, "tokenizer.ggml.tokens", &tokens));
  CHECK_EQ(tokens.n, 49152);
  gguf_text t = gguf_arr_text(&tokens, 1);
  CHECK(t.n == 12 && memcmp(t.p, "<|im_start|>", 12) == 0);
  const gguf_tensor *w = NULL;
  CHECK_OK(gguf_tensor_get(g, "blk.29.ffn_down.weight", &w));
  CHECK(w && w->ne[0] == 1536 && w->ne[1] == 576 && w->data);
  gguf_free(g);
}

void suite_gguf(void) {
  RUN(refuses_other_files);
  RUN(refuses_bad_keys);
  RUN(refuses_bad_tensors);
  RUN(foreign_types_are_listed);
  RUN(model_file);
}
