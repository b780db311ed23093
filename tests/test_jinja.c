/* The template engine against jinja2: small cases, the templates of public models, damage, limits.
 * Vectors and their scripts: tests/data/jinja/README.md. */
#include "base/file.h"
#include "infer/jinja.h"
#include "test.h"

static const int64_t NOW = 1721984703; /* 2024-07-26 09:05:03, as jinja_env.py has it */

typedef struct doc {
  arena a;
  char *text;
  jval *root;
} doc;

static bool doc_open(doc *d, const char *rel) {
  size_t n;
  *d = (doc){0};
  err e = file_read(test_data(rel), 1 << 20, &d->text, &n);
  if (!e) e = jval_from_json(&d->a, d->text, n, &d->root);
  if (e) FAIL("%s: %s", rel, err_text());
  return !e;
}

static void doc_close(doc *d) {
  arena_free(&d->a);
  mem_free(d->text);
}

static err render_with(const char *t, size_t n, const jval *v, const jinja_opts *o, buf *out) {
  jinja *j;
  err e = jinja_new(t, n, &j);
  if (!e) e = jinja_render(j, v, o, out);
  jinja_free(j);
  return e;
}

static err render(const char *t, size_t n, const jval *v, buf *out) {
  return render_with(t, n, v, &(jinja_opts){.now = NOW}, out);
}

/* The template gives `want`, or when that is NULL the error named `code`. */
static void check(const char *t, size_t n, const jval *v, const char *want, const char *code) {
  buf out = {0};
  err e = render(t, n, v, &out);
  const char *got = out.p ? out.p : "";
  if (want && e) FAIL("%.80s: %s", t, err_text());
  if (want && !e && strcmp(got, want) != 0) FAIL("%.200s gave \"%s\", not \"%s\"", t, got, want);
  if (!want && !e) FAIL("%.80s gave \"%s\", not %s", t, got, code);
  if (!want && e && strcmp(err_name(e), code) != 0)
    FAIL("%.80s: %s: %s, not %s", t, err_name(e), err_text(), code);
  if (e && strncmp(err_text(), "chat template line ", 19) != 0) FAIL("%s: no line", err_text());
  if (e) CHECK_EQ(out.n, 0);
  buf_free(&out);
}

static void cases(void) {
  doc d;
  if (doc_open(&d, "jinja/cases.json")) {
    const jval *values = jval_get(d.root, "values"), *rows = jval_get(d.root, "cases");
    CHECK(jval_len(rows) > 400);
    for (size_t i = 0; i < jval_len(rows); i++) {
      size_t n;
      const jval *row = jval_at(rows, i);
      const char *t = jval_text(jval_at(row, 0), &n);
      check(t, n, values, jval_text(jval_at(row, 1), NULL), jval_text(jval_at(row, 2), NULL));
    }
  }
  doc_close(&d);
}

static const char *const models[] = {
    "chatml",       "command-r",    "deepseek-r1-distill",
    "gemma-2",      "gemma-3",      "llama-3",
    "llama-3.1",    "llama-3.2",    "mistral-nemo",
    "mistral-v0.1", "mistral-v0.3", "phi-3",
    "phi-4",        "qwen-2.5",     "qwen-3",
    "smollm2",      "zephyr",
};
enum { N_MODELS = sizeof models / sizeof *models };

static char *model_text(const char *name, size_t *n) {
  char rel[64], *text = NULL;
  snprintf(rel, sizeof rel, "jinja/%s.jinja", name);
  if (file_read(test_data(rel), 1 << 20, &text, n)) FAIL("%s", err_text());
  return text;
}

static void model_templates(void) {
  doc d;
  if (doc_open(&d, "jinja/chats.json")) {
    const jval *chats = jval_get(d.root, "chats");
    CHECK_EQ(jval_len(chats), 9);
    for (int m = 0; m < N_MODELS; m++) {
      size_t n;
      char *t = model_text(models[m], &n);
      const jval *rows = jval_get(jval_get(d.root, "expected"), models[m]);
      CHECK_EQ(jval_len(rows), jval_len(chats));
      for (size_t i = 0; t && i < jval_len(rows); i++) {
        const jval *want = jval_at(rows, i);
        check(t, n, jval_at(chats, i), jval_text(want, NULL),
              jval_text(jval_get(want, "error"), NULL));
      }
      mem_free(t);
    }
  }
  doc_close(&d);
}

/* Every truncation parses and renders, or gives an error that names the line. */
static void truncations(void) {
  doc d;
  size_t step = test_quick() ? 37 : 1;
  if (doc_open(&d, "jinja/chats.json")) {
    const jval *chat = jval_at(jval_get(d.root, "chats"), 8);
    for (int m = 0; m < N_MODELS; m++) {
      size_t n, failed = 0;
      char *t = model_text(models[m], &n);
      for (size_t k = 0; t && k < n; k += step) {
        buf out = {0};
        char *part = mem_alloc(k + 1); /* exact, so that a sanitizer sees a read beyond it */
        memcpy(part, t, k);
        err e = render(part, k, chat, &out);
        failed += e != ERR_NONE;
        if (e && !strstr(err_text(), "chat template line ")) FAIL("%zu: %s", k, err_text());
        mem_free(part);
        buf_free(&out);
      }
      CHECK(failed > 0 && failed < n);
      mem_free(t);
    }
  }
  doc_close(&d);
}

static void expect(const char *t, const jinja_opts *o, err code, const char *part) {
  buf out = {0};
  buf_puts(&out, "kept");
  CHECK_ERR(render_with(t, strlen(t), NULL, o, &out), code, part);
  CHECK_STR(out.p, "kept");
  buf_free(&out);
}

static void messages_name_line_and_construct(void) {
  expect("a\n\n{{ 1 | foo }}", NULL, ERR_UNSUPPORTED,
         "chat template line 3: filter 'foo' is not supported");
  expect("\n{{ 1 is foo }}", NULL, ERR_UNSUPPORTED, "line 2: test 'foo' is not supported");
  expect("{% include 'x' %}", NULL, ERR_UNSUPPORTED, "line 1: tag 'include' is not supported");
  expect("{% for x in [1] recursive %}{% endfor %}", NULL, ERR_UNSUPPORTED, "recursive for");
  expect("{{ '%d' % 1 }}", NULL, ERR_UNSUPPORTED, "formatting with %");
  expect("x\n{{ raise_exception('roles must alternate') }}", NULL, ERR_ARG,
         "chat template line 2: roles must alternate");
  expect("{% macro m() %}\n{{ a.b }}{% endmacro %}\n{{ m() }}", NULL, ERR_FORMAT,
         "line 2: 'a' is undefined");
  expect("{{ messages[0].role }}", NULL, ERR_FORMAT, "'messages' is undefined");
  expect("{% if x %}\n\n", NULL, ERR_FORMAT, "the text ends before 'endif'");
  expect("{{ 99999999999999999999 }}", NULL, ERR_LIMIT, "over 64 bits");
  expect("{{ none.x.y }}", NULL, ERR_FORMAT, "line 1: none has no 'x'");
  expect("{{ 1 + 'a' }}", NULL, ERR_FORMAT, "operator + does not take an int and a str");
  expect("{{ 9223372036854775807 + 1 }}", NULL, ERR_LIMIT, "over 64 bits");
}

static void limits(void) {
  const char *slow =
      "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}";
  expect(slow, &(jinja_opts){.max_steps = 1000000}, ERR_LIMIT, "more than 1000000 steps");
  expect(slow, NULL, ERR_LIMIT, "more than");
  expect("{% set n = namespace(x='a') %}{% for i in range(90) %}{% set n.x = n.x + n.x %}"
         "{% endfor %}",
         NULL, ERR_LIMIT, "bytes");
  expect("{{ 'abc' * 1000000000000 }}", NULL, ERR_LIMIT, "bytes");
  expect("{{ [1] * 1000000000000 }}", NULL, ERR_LIMIT, "");
  expect("{% for i in range(99) %}{{ 'abc' * 1000 }}{% endfor %}",
         &(jinja_opts){.max_output = 10000}, ERR_LIMIT, "the text is over 10000 bytes");
  expect("{{ range(1000) | list }}", &(jinja_opts){.max_memory = 10000}, ERR_LIMIT, "10000 bytes");
  expect("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}", NULL, ERR_LIMIT, "400 levels");
  expect("{% set n = namespace(x=[]) %}{% for i in range(999) %}{% set n.x = [n.x] %}{% endfor %}"
         "{{ n.x }}",
         NULL, ERR_LIMIT, "400 levels");
  expect("{% set n = namespace(x=[]) %}{% for i in range(99) %}{% set n.x = [n.x, n.x] %}"
         "{% endfor %}{{ n.x | tojson }}",
         NULL, ERR_LIMIT, "");
  buf deep = {0};
  buf_puts(&deep, "{{ ");
  for (int i = 0; i < 1000; i++) buf_putc(&deep, '-');
  buf_puts(&deep, "1 }}");
  expect(deep.p, NULL, ERR_LIMIT, "nesting is over");
  buf_clear(&deep);
  for (int i = 0; i < 300; i++) buf_puts(&deep, i ? "[" : "{{ [");
  expect(deep.p, NULL, ERR_LIMIT, "256 brackets");
  buf_clear(&deep);
  buf_puts(&deep, "{{ 1");
  for (int i = 0; i < 1000; i++) buf_puts(&deep, " + 1");
  buf_puts(&deep, " }}");
  expect(deep.p, NULL, ERR_LIMIT, "400 levels");
  buf_free(&deep);
}

static void values_from_c(void) {
  arena a = {0};
  jval *g = jval_dict(&a), *list = jval_list(&a), *msg = jval_dict(&a);
  CHECK_OK(jval_set(msg, "role", jval_cstr(&a, "user")));
  CHECK_OK(jval_set(msg, "content", jval_str(&a, "Hi\0!", 4)));
  CHECK_OK(jval_push(list, msg));
  CHECK_OK(jval_set(g, "messages", list));
  CHECK_OK(jval_set(g, "yes", jval_bool(&a, true)));
  CHECK_OK(jval_set(g, "n", jval_int(&a, -3)));
  CHECK_OK(jval_set(g, "f", jval_f64(&a, 0.5)));
  CHECK_OK(jval_set(g, "f", jval_f64(&a, 1.5)));
  CHECK_OK(jval_set(g, "tools", jval_none(&a)));
  const char *t = "{{ messages[0].role }} {{ yes }} {{ n }} {{ f }} {{ tools is none }} {{ "
                  "messages[0].content | length }}";
  check(t, strlen(t), g, "user True -3 1.5 True 4", NULL);
  CHECK_EQ(jval_len(g), 5);
  CHECK_ERR(jval_push(g, list), ERR_ARG, "not a list");
  CHECK_ERR(jval_set(list, "x", g), ERR_ARG, "not a dict");
  CHECK_ERR(jval_set(g, "x", NULL), ERR_NOMEM, "");
  buf out = {0};
  CHECK_ERR(render("x", 1, list, &out), ERR_ARG, "not a dict");
  buf_free(&out);
  arena_free(&a);
}

static void many_keys(void) {
  arena a = {0};
  jval *d = jval_dict(&a);
  for (int round = 0; round < 2; round++)
    for (int i = 0; i < 1000; i++) {
      char key[16];
      snprintf(key, sizeof key, "k%d", i);
      CHECK_OK(jval_set(d, key, jval_int(&a, i * (round + 1))));
    }
  CHECK_EQ(jval_len(d), 1000);
  check("{{ k0 }} {{ k17 }} {{ k999 }} {{ k1000 }}", 42, d, "0 34 1998 ", NULL);
  arena_free(&a);
}

static void json_errors(void) {
  static const char *const bad[] = {
      "",    "{",     "[1,]",       "{\"a\"}", "{\"a\":}",  "{a:1}", "\"abc",  "\"\\x\"",
      "01",  "1.",    "-",          "1e",      "tru",       "[1] 2", "\"\n\"", "\"\\ud800\"",
      "nul", "[1 2]", "{\"a\":1,}", "'a'",     "\"\\u12\"", "NaN",
  };
  arena a = {0};
  jval *v;
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
    CHECK_ERR(jval_from_json(&a, bad[i], strlen(bad[i]), &v), ERR_FORMAT, "JSON at byte ");
  CHECK_ERR(jval_from_json(&a, "9223372036854775808", 19, &v), ERR_LIMIT, "64 bits");
  char deep[200];
  memset(deep, '[', sizeof deep);
  CHECK_ERR(jval_from_json(&a, deep, sizeof deep, &v), ERR_LIMIT, "nesting over 128");
  const char *ok = " {\"a\": [1, -2.5e3, \"\\u00e9\\ud83c\\udf89\\n\", true, null]} ";
  CHECK_OK(jval_from_json(&a, ok, strlen(ok), &v));
  size_t n;
  CHECK_STR(jval_text(jval_at(jval_get(v, "a"), 2), &n), "é🎉\n");
  CHECK_EQ(n, 7);
  arena_free(&a);
}

/* The n-th allocation fails, for every n: an error each time, and nothing leaks. */
static void allocation_failures(void) {
  const char *t = "{% macro m(a, b='x' 'y') %}{{ a ~ b }}{% endmacro %}{% for k, v in d.items() %}"
                  "{% set z %}{{ m(k) | upper }}{% endset %}{{ z }}{{ v | tojson }}{% endfor %}";
  const char *json = "{\"d\": {\"a\": [1, \"x\"], \"b\": null}}";
  uint64_t live = mem_live();
  for (uint64_t n = 1;; n++) {
    arena a = {0};
    buf out = {0};
    jval *v;
    mem_fail_at(n, false);
    err e = jval_from_json(&a, json, strlen(json), &v);
    if (!e) e = render(t, strlen(t), v, &out);
    mem_fail_at(0, false);
    if (!e) CHECK_STR(out.p, "AXY[1, \"x\"]BXYnull");
    else CHECK_EQ(e, ERR_NOMEM);
    buf_free(&out);
    arena_free(&a);
    CHECK_EQ(mem_live(), live);
    if (!e) {
      CHECK(n > 5);
      break;
    }
  }
}

void suite_jinja(void) {
  RUN(cases);
  RUN(model_templates);
  RUN(truncations);
  RUN(messages_name_line_and_construct);
  RUN(limits);
  RUN(values_from_c);
  RUN(many_keys);
  RUN(json_errors);
  RUN(allocation_failures);
}
