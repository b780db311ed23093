/* GGUF reader: values, split files, and the sentence for each thing that can be wrong. */
#include "base/file.h"
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
  put_head(&b, 3, 60000, 10);
  REFUSED(b, ERR_TRUNCATED, "the list of keys and tensors needs 1500140 bytes at offset 24");
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
  buf_putc(&b, 0);
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
  pad(&b, 64);
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

/* ---- fixtures made by the gguf package: tools/vectors/gguf_fixtures.py ---- */

static void scalars(const gguf *g) {
  uint32_t u32 = 0;
  uint64_t u64 = 0;
  int32_t i32 = 0;
  float f = 0;
  bool b = false;
  const char *s = NULL;
  size_t n = 0;
  CHECK_OK(gguf_u32(g, "t.u8", &u32));
  CHECK_EQ(u32, 200);
  CHECK_OK(gguf_u32(g, "t.u16", &u32));
  CHECK_EQ(u32, 60000);
  CHECK_OK(gguf_u32(g, "t.u32", &u32));
  CHECK_EQ(u32, 4000000000u);
  CHECK_OK(gguf_i32(g, "t.i8", &i32));
  CHECK_EQ(i32, -100);
  CHECK_OK(gguf_i32(g, "t.i16", &i32));
  CHECK_EQ(i32, -30000);
  CHECK_OK(gguf_i32(g, "t.i32", &i32));
  CHECK_EQ(i32, -2000000000);
  CHECK_OK(gguf_i32(g, "t.u16", &i32));
  CHECK_EQ(i32, 60000);
  CHECK_OK(gguf_u64(g, "t.u64", &u64));
  CHECK_EQ(u64, 1ull << 60);
  CHECK_OK(gguf_f32(g, "t.f32", &f));
  CHECK(f == 0.15625f);
  CHECK_OK(gguf_f32(g, "t.f64", &f));
  CHECK(f == 0.1f);
  CHECK_OK(gguf_bool(g, "t.bool", &b));
  CHECK(b);
  CHECK_OK(gguf_str(g, "t.str", &s, &n));
  CHECK_STR(s, "gr\303\274\303\237e \360\237\221\213");
  CHECK_EQ(n, 12);
  CHECK_OK(gguf_str(g, "t.empty", &s, &n));
  CHECK(n == 0 && s[0] == 0);
  CHECK_EQ(gguf_find(g, "t.i64")->v.i, -(1ll << 60));
}

static void refused_values(const gguf *g) {
  uint32_t u32 = 5;
  int32_t i32;
  float f;
  bool b;
  const char *s;
  gguf_array a;
  CHECK_ERR(gguf_u32(g, "nope", &u32), ERR_FORMAT, "key 'nope' is missing");
  CHECK_ERR(gguf_u32(g, "t.u64", &u32), ERR_FORMAT,
            "key 't.u64' is 1152921504606846976, the limit is 4294967295");
  CHECK_ERR(gguf_u32(g, "t.i8", &u32), ERR_FORMAT, "key 't.i8' is -100, less than 0");
  CHECK_ERR(gguf_u32(g, "t.str", &u32), ERR_FORMAT, "key 't.str' has type str, not an integer");
  CHECK_ERR(gguf_i32(g, "t.u32", &i32), ERR_FORMAT, "the limit is 2147483647");
  CHECK_ERR(gguf_i32(g, "t.i64", &i32), ERR_FORMAT, "the limit is -2147483648");
  CHECK_ERR(gguf_f32(g, "t.u8", &f), ERR_FORMAT, "key 't.u8' has type u8, not f32");
  CHECK_ERR(gguf_bool(g, "t.u8", &b), ERR_FORMAT, "not bool");
  CHECK_ERR(gguf_str(g, "t.u8", &s, NULL), ERR_FORMAT, "not str");
  CHECK_ERR(gguf_arr(g, "t.u8", &a), ERR_FORMAT, "not an array");
  CHECK_ERR(gguf_arr_strs(g, "a.i32", &a), ERR_FORMAT, "array of i32, not of str");
  CHECK_ERR(gguf_arr_nums(g, "a.str", &a), ERR_FORMAT, "array of str, not of numbers");
  CHECK_EQ(u32, 5);
  CHECK_OK(gguf_u32_or(g, "nope", 7, &u32));
  CHECK_EQ(u32, 7);
  CHECK_ERR(gguf_u32_or(g, "t.str", 7, &u32), ERR_FORMAT, "t.str");
  CHECK_OK(gguf_str_or(g, "nope", "def", &s, NULL));
  CHECK_STR(s, "def");
}

static void arrays(const gguf *g) {
  gguf_array a, in;
  CHECK_OK(gguf_arr_strs(g, "a.str", &a));
  CHECK_EQ(a.n, 4);
  gguf_text t = gguf_arr_text(&a, 2);
  CHECK(t.n == 3 && memcmp(t.p, "b\303\251", 3) == 0);
  CHECK_EQ(gguf_arr_text(&a, 0).n, 0);
  CHECK_EQ(gguf_arr_text(&a, 3).n, 7);
  CHECK_OK(gguf_arr_nums(g, "a.f32", &a));
  CHECK(gguf_arr_f64(&a, 1) == -2 && gguf_arr_i64(&a, 2) == INT64_MAX && gguf_arr_i64(&a, 0) == 0);
  CHECK_OK(gguf_arr_nums(g, "a.i32", &a));
  CHECK(gguf_arr_i64(&a, 1) == -2 && gguf_arr_f64(&a, 2) == 3);
  CHECK_OK(gguf_arr_nums(g, "a.u8", &a));
  CHECK_EQ(gguf_arr_i64(&a, 1), 255);
  CHECK_OK(gguf_arr_nums(g, "a.i64", &a));
  CHECK_EQ(gguf_arr_i64(&a, 0), -(1ll << 62));
  CHECK_OK(gguf_arr_nums(g, "a.bool", &a));
  CHECK(a.n == 3 && gguf_arr_i64(&a, 0) == 1 && gguf_arr_i64(&a, 1) == 0);
  CHECK_OK(gguf_arr(g, "a.arr", &a));
  CHECK(a.type == GGUF_ARR && a.n == 2);
  in = gguf_arr_arr(&a, 1);
  CHECK(in.n == 1 && gguf_arr_i64(&in, 0) == -3);
  CHECK_OK(gguf_arr(g, "a.deep", &a));
  in = gguf_arr_arr(&a, 0);
  CHECK(in.n == 2 && in.type == GGUF_ARR);
  in = gguf_arr_arr(&in, 0);
  CHECK(in.n == 2 && in.type == GGUF_STR);
  t = gguf_arr_text(&in, 1);
  CHECK(t.n == 2 && memcmp(t.p, "yz", 2) == 0);
}

static void tensors(const gguf *g) {
  const gguf_tensor *t = NULL;
  CHECK_EQ(gguf_tensor_count(g), 5);
  CHECK_OK(gguf_tensor_get(g, "f32", &t));
  CHECK(t->type == DT_F32 && t->n_dims == 2 && t->ne[0] == 32 && t->ne[1] == 3 && t->ne[2] == 1);
  CHECK(load_f32(t->data + 4 * 95) == 95 / 16.0f);
  CHECK_OK(gguf_tensor_get(g, "odd", &t));
  CHECK(t->size == 20 && t->file_off % 64 == 0 && load_f32(t->data + 16) == 4);
  CHECK_OK(gguf_tensor_get(g, "q8", &t));
  CHECK(t->type == DT_Q8_0 && t->size == 102);
  CHECK_OK(gguf_tensor_get(g, "i32", &t));
  CHECK(t->n_dims == 4 && t->ne[0] == 4 && t->ne[3] == 2 && load_u32(t->data + 4 * 23) == 23);
}

static void every_type(void) {
  for (uint32_t version = 2; version <= 3; version++) {
    gguf *g = NULL;
    CHECK_OK(gguf_open(test_data(version == 2 ? "gguf/types-v2.gguf" : "gguf/types-v3.gguf"), &g));
    REQUIRE(g);
    CHECK_EQ(gguf_version(g), version);
    CHECK_EQ(gguf_alignment(g), 64);
    scalars(g);
    refused_values(g);
    arrays(g);
    tensors(g);
    gguf_tensor_drop(g, gguf_tensor_at(g, 0));
    CHECK(load_f32(gguf_tensor_find(g, "f32")->data + 4) == 1 / 16.0f);
    gguf_free(g);
  }
}

static void header_only(void) {
  char *p;
  size_t size;
  CHECK_OK(file_read(test_data("gguf/types-v3.gguf"), 1 << 20, &p, &size));
  gguf *g = NULL;
  CHECK_ERR(gguf_parse("web", (uint8_t *)p, 100, 9000, &g), ERR_TRUNCATED, "are here");
  uint64_t n = 100;
  while (gguf_parse("web", (uint8_t *)p, n, size, &g) == ERR_TRUNCATED && n < size) n++;
  REQUIRE(g);
  const gguf_tensor *t = gguf_tensor_find(g, "f32");
  CHECK(n < size && t && !t->data && t->file_off >= n && t->file_off < n + 64);
  gguf_free(g);
  mem_free(p);
}

/* ---- parts ---- */

static void split_model(void) {
  gguf *g = NULL;
  CHECK_OK(gguf_open(test_data("gguf/split-00001-of-00003.gguf"), &g));
  REQUIRE(g);
  CHECK(gguf_part_count(g) == 3 && gguf_tensor_count(g) == 5);
  for (uint32_t i = 0; i < 5; i++) {
    const gguf_tensor *t = gguf_tensor_at(g, i);
    CHECK_EQ(t->part, i / 2);
    CHECK(load_f32(t->data + 60) == (float)i);
    CHECK(gguf_tensor_find(g, t->name) == t);
  }
  CHECK(strstr(gguf_part_name(g, 2), "split-00003-of-00003.gguf"));
  gguf_free(g);
  CHECK_ERR(gguf_open(test_data("gguf/split-00002-of-00003.gguf"), &g), ERR_ARG,
            "this is part 2 of 3; open the first one");
}

/* Copies a part under another name, with one byte changed (at < 0: none). */
static void copy_part(uint32_t from, const char *to, size_t at, char byte) {
  char *p, name[64], path[512];
  size_t size;
  snprintf(name, sizeof name, "gguf/split-%05u-of-00003.gguf", from);
  snprintf(path, sizeof path, "%s", test_tmp(to));
  CHECK_OK(file_read(test_data(name), 1 << 20, &p, &size));
  if (at < size) p[at] = byte;
  CHECK_OK(file_write(path, p, size));
  mem_free(p);
}

/* Offset of the value of key `key` in part `part`. */
static size_t value_at(uint32_t part, const char *key) {
  char *p, name[64];
  size_t size, at = 0;
  snprintf(name, sizeof name, "gguf/split-%05u-of-00003.gguf", part);
  CHECK_OK(file_read(test_data(name), 1 << 20, &p, &size));
  for (size_t i = 0; i + strlen(key) + 4 < size && !at; i++)
    if (memcmp(p + i, key, strlen(key)) == 0) at = i + strlen(key) + 4;
  mem_free(p);
  CHECK(at != 0);
  return at;
}

static void split_errors(void) {
  const char *one = "frit-x-00001-of-00003.gguf", *two = "frit-x-00002-of-00003.gguf",
             *three = "frit-x-00003-of-00003.gguf";
  const size_t none = SIZE_MAX;
  char path[512];
  gguf *g = NULL;
  snprintf(path, sizeof path, "%s", test_tmp(one));
  remove(test_tmp(two));
  remove(test_tmp(three));
  copy_part(1, one, none, 0);
  CHECK_ERR(gguf_open(path, &g), ERR_IO, "part 2 of 3 cannot be read");
  copy_part(3, two, none, 0);
  CHECK_ERR(gguf_open(path, &g), ERR_FORMAT, "holds part 3, where part 2 belongs");
  copy_part(2, two, value_at(2, "split.count"), 4);
  CHECK_ERR(gguf_open(path, &g), ERR_FORMAT, "key 'split.count' is 4, the first part says 3");
  copy_part(2, two, none, 0);
  CHECK_ERR(gguf_open(path, &g), ERR_IO, "part 3 of 3 cannot be read");
  copy_part(3, three, value_at(3, "blk.") - 4, '0');
  CHECK_ERR(gguf_open(path, &g), ERR_FORMAT, "tensor 'blk.0.w' is there twice");
  copy_part(3, three, none, 0);
  copy_part(1, one, value_at(1, "split.tensors.count"), 9);
  CHECK_ERR(gguf_open(path, &g), ERR_FORMAT, "'split.tensors.count' is 9, the parts have 5");
  copy_part(1, one, none, 0);
  CHECK_OK(gguf_open(path, &g));
  gguf_free(g);
  g = NULL;
  copy_part(1, "frit-x.gguf", none, 0);
  snprintf(path, sizeof path, "%s", test_tmp("frit-x.gguf"));
  CHECK_ERR(gguf_open(path, &g), ERR_FORMAT, "name does not end in '-00001-of-00003.gguf'");
  CHECK(g == NULL);
  remove(path);
  remove(test_tmp(one));
  remove(test_tmp(two));
  remove(test_tmp(three));
}

static void allocation_failures(void) {
  char path[512];
  snprintf(path, sizeof path, "%s", test_data("gguf/split-00001-of-00003.gguf"));
  uint64_t before = mem_live();
  err e = ERR_NOMEM;
  int n = 0;
  while (e && n < 1000) {
    gguf *g = NULL;
    mem_fail_at(++n, false);
    e = gguf_open(path, &g);
    mem_fail_at(0, false);
    if (e) CHECK(e == ERR_NOMEM && !g);
    gguf_free(g);
    CHECK_EQ(mem_live(), before);
  }
  CHECK(n > 10 && n < 1000);
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
  RUN(every_type);
  RUN(header_only);
  RUN(split_model);
  RUN(split_errors);
  RUN(allocation_failures);
  RUN(model_file);
}
