/* Template text from the fuzzer, run on a fixed conversation with small limits. Texts that begin
 * with a NUL byte go to the JSON reader. */
#include "infer/jinja.h"

static const char values[] =
    "{\"messages\": [{\"role\": \"system\", \"content\": \"Be brief\"}, {\"role\": \"user\", "
    "\"content\": \"Gr\\u00fc\\u00dfe \\ud83c\\udf89\\n\"}, {\"role\": \"assistant\", "
    "\"content\": null, \"tool_calls\": [{\"id\": \"a\", \"function\": {\"name\": \"f\", "
    "\"arguments\": {\"x\": [1, 2.5, true, null, \"y\"]}}}]}], \"tools\": [{\"type\": "
    "\"function\", \"function\": {\"name\": \"f\", \"parameters\": {}}}], "
    "\"add_generation_prompt\": true, \"bos_token\": \"<s>\", \"s\": \"a b\", \"n\": 3, "
    "\"l\": [3, 1, 2], \"d\": {\"b\": 1, \"a\": [1]}}";

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  arena a = {0};
  jval *v;
  if (size && !data[0]) {
    (void)jval_from_json(&a, (const char *)data + 1, size - 1, &v);
    arena_free(&a);
    return 0;
  }
  jinja *t;
  if (!jinja_new((const char *)data, size, &t) &&
      !jval_from_json(&a, values, sizeof values - 1, &v)) {
    const jinja_opts o = {
        .max_steps = 50000, .max_memory = 4 << 20, .max_output = 1 << 20, .now = 1};
    buf out = {0};
    (void)jinja_render(t, v, &o, &out);
    buf_free(&out);
  }
  jinja_free(t);
  arena_free(&a);
  return 0;
}
