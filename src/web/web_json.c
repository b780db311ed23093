/* What is told to JavaScript as JSON: the model and the device. */
#include <string.h>

#include "web/web_impl.h"

#define EXPORT(name) __attribute__((export_name("frit_" #name)))

static void put_string(buf *b, const char *key, const char *s, size_t n) {
  buf_printf(b, "%s\"%s\":\"", b->n > 1 ? "," : "", key);
  for (size_t i = 0; i < n; i++) {
    unsigned char c = (unsigned char)s[i];
    if (c == '"' || c == '\\') buf_printf(b, "\\%c", c);
    else if (c < 32 || c == 127) buf_printf(b, "\\u%04x", c);
    else buf_putc(b, (char)c);
  }
  buf_putc(b, '"');
}

static void put_cstr(buf *b, const char *key, const char *s) { put_string(b, key, s, strlen(s)); }

static void put_number(buf *b, const char *key, uint64_t n) {
  buf_printf(b, "%s\"%s\":%llu", b->n > 1 ? "," : "", key, (unsigned long long)n);
}

static void put_bool(buf *b, const char *key, bool v) {
  buf_printf(b, "%s\"%s\":%s", b->n > 1 ? "," : "", key, v ? "true" : "false");
}

static const char *finish(buf *b) {
  buf_putc(b, '}');
  return b->failed ? "{}" : b->p;
}

EXPORT(info) const char *web_info(web_model *m) {
  buf *b = &m->text;
  const gguf *g = engine_file(m->en);
  const model_params *p = &engine_model(m->en)->p;
  const char *name;
  size_t n;
  uint64_t size = 0;
  for (uint32_t i = 0; i < gguf_part_count(g); i++) size += gguf_part_size(g, i);
  buf_clear(b);
  buf_putc(b, '{');
  put_cstr(b, "architecture", p->arch);
  if (!gguf_str_or(g, "general.name", "", &name, &n)) put_string(b, "name", name, n);
  put_number(b, "fileBytes", size);
  put_number(b, "parts", gguf_part_count(g));
  put_number(b, "context", engine_ctx(m->en));
  put_number(b, "trainedContext", p->n_ctx);
  put_number(b, "vocabulary", p->n_vocab);
  put_number(b, "layers", p->n_layer);
  put_number(b, "width", p->n_embd);
  put_number(b, "heads", p->n_head);
  put_number(b, "kvHeads", p->n_kv);
  put_cstr(b, "ropeScaling", p->rope_scaling);
  put_bool(b, "chatTemplate", gguf_has(g, "tokenizer.chat_template"));
  return finish(b);
}

EXPORT(device) const char *web_device(web_model *m) {
  static const hw_caps none;
  buf *b = &m->text;
  const hw *h = engine_hw(m->en);
  const hw_caps *c = h ? hw_get_caps(h) : &none;
  buf_clear(b);
  buf_putc(b, '{');
  put_cstr(b, "kind", c->kind == HW_CPU ? "cpu" : "gpu");
  put_cstr(b, "name", c->name);
  put_cstr(b, "vendor", c->vendor);
  put_cstr(b, "architecture", c->arch);
  put_cstr(b, "browser", c->library);
  put_bool(b, "software", c->software);
  put_bool(b, "f16", c->f16);
  put_bool(b, "subgroups", c->subgroups);
  put_bool(b, "dot4i8", c->dot4i8);
  put_bool(b, "timestamps", c->timestamps);
  put_number(b, "subgroupMin", c->subgroup_min);
  put_number(b, "subgroupMax", c->subgroup_max);
  put_number(b, "maxBinding", c->max_binding);
  put_number(b, "maxBuffer", c->max_buffer);
  put_number(b, "maxWorkgroupMemory", c->max_workgroup_mem);
  put_number(b, "maxInvocations", c->max_invocations);
  return finish(b);
}
