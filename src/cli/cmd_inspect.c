/* frit inspect: what a model file holds and what it needs, without loading it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/need.h"

typedef struct options {
  cli_device device;
  bool json, tensors;
} options;

enum { SHOWN_ITEMS = 8, SHOWN_TEXT = 200, MAX_NEEDS = 17 };

typedef struct report {
  gguf *g;
  model *m;      /* NULL: of an architecture that frit does not run */
  char why[320]; /* then: why */
  need needs[MAX_NEEDS];
  uint32_t n_needs;
} report;

/* ---- values ---- */

static void put_text(buf *b, const char *p, size_t n) {
  size_t shown = n > SHOWN_TEXT ? SHOWN_TEXT : n;
  for (size_t i = 0; i < shown; i++) {
    unsigned char c = (unsigned char)p[i];
    if (c == '\n') buf_puts(b, "\\n");
    else if (c < 0x20 || c == 0x7F) buf_printf(b, "\\x%02x", c);
    else buf_putc(b, (char)c);
  }
  if (n > shown) buf_printf(b, "... (%llu bytes)", (unsigned long long)n);
}

static void put_array(buf *b, const gguf_array *a) {
  buf_printf(b, "%s[%llu]", gguf_type_name(a->type), (unsigned long long)a->n);
  if (a->type == GGUF_ARR) return;
  for (uint64_t i = 0; i < a->n && i < SHOWN_ITEMS; i++) {
    buf_puts(b, i ? ", " : " ");
    if (a->type == GGUF_STR) {
      gguf_text s = gguf_arr_text(a, i);
      buf_putc(b, '\'');
      put_text(b, s.p, s.n);
      buf_putc(b, '\'');
    } else buf_printf(b, "%g", gguf_arr_f64(a, i));
  }
  if (a->n > SHOWN_ITEMS) buf_puts(b, ", ...");
}

static void put_value(buf *b, const gguf_kv *kv) {
  switch (kv->type) {
  case GGUF_STR: put_text(b, kv->v.s.p, kv->v.s.n); break;
  case GGUF_ARR: put_array(b, &kv->v.a); break;
  case GGUF_BOOL: buf_puts(b, kv->v.b ? "true" : "false"); break;
  case GGUF_F32:
  case GGUF_F64: buf_printf(b, "%g", kv->v.f); break;
  case GGUF_I8:
  case GGUF_I16:
  case GGUF_I32:
  case GGUF_I64: buf_printf(b, "%lld", (long long)kv->v.i); break;
  default: buf_printf(b, "%llu", (unsigned long long)kv->v.u); break;
  }
}

/* Text as UTF-8: what is none becomes U+FFFD. */
static cJSON *json_text(const char *p, size_t n) {
  buf b = {0};
  utf8_stream u = {0};
  utf8_stream_put(&u, p, n, &b);
  utf8_stream_flush(&u, &b);
  cJSON *j = cJSON_CreateString(b.p ? b.p : "");
  buf_free(&b);
  return j;
}

static cJSON *json_array(const gguf_array *a) {
  cJSON *j = cJSON_CreateObject(), *first;
  cJSON_AddStringToObject(j, "type", gguf_type_name(a->type));
  cJSON_AddNumberToObject(j, "length", (double)a->n);
  first = cJSON_AddArrayToObject(j, "first");
  for (uint64_t i = 0; a->type != GGUF_ARR && i < a->n && i < SHOWN_ITEMS; i++) {
    gguf_text s = {0};
    if (a->type == GGUF_STR) s = gguf_arr_text(a, i);
    cJSON_AddItemToArray(first, a->type == GGUF_STR ? json_text(s.p, s.n)
                                                    : cJSON_CreateNumber(gguf_arr_f64(a, i)));
  }
  return j;
}

static cJSON *json_value(const gguf_kv *kv) {
  switch (kv->type) {
  case GGUF_STR: return json_text(kv->v.s.p, kv->v.s.n);
  case GGUF_ARR: return json_array(&kv->v.a);
  case GGUF_BOOL: return cJSON_CreateBool(kv->v.b);
  case GGUF_F32:
  case GGUF_F64: return cJSON_CreateNumber(kv->v.f);
  case GGUF_I8:
  case GGUF_I16:
  case GGUF_I32:
  case GGUF_I64: return cJSON_CreateNumber((double)kv->v.i);
  default: return cJSON_CreateNumber((double)kv->v.u);
  }
}

/* ---- tensors ---- */

typedef struct total {
  uint32_t raw_type;
  uint64_t n, bytes, elements;
} total;
enum { MAX_TOTALS = 64 };

static uint64_t elements(const gguf_tensor *t) { return t->ne[0] * t->ne[1] * t->ne[2] * t->ne[3]; }

static uint32_t count_types(const gguf *g, total *out) {
  uint32_t n = 0;
  for (uint64_t i = 0; i < gguf_tensor_count(g); i++) {
    const gguf_tensor *t = gguf_tensor_at(g, i);
    uint32_t j = 0;
    while (j < n && out[j].raw_type != t->raw_type) j++;
    if (j == n && n == MAX_TOTALS) continue;
    if (j == n) out[n++] = (total){.raw_type = t->raw_type};
    out[j].n++;
    out[j].bytes += t->size;
    out[j].elements += elements(t);
  }
  return n;
}

static void put_shape(const gguf_tensor *t, char *out, size_t size) {
  size_t n = 0;
  out[0] = 0;
  for (uint32_t i = 0; i < t->n_dims && n < size; i++)
    n +=
        (size_t)snprintf(out + n, size - n, "%s%llu", i ? " x " : "", (unsigned long long)t->ne[i]);
  if (!t->n_dims) snprintf(out, size, "1");
}

static cJSON *json_tensor(const gguf_tensor *t) {
  cJSON *j = cJSON_CreateObject(), *shape;
  cJSON_AddStringToObject(j, "name", t->name);
  cJSON_AddStringToObject(j, "type", gguf_tensor_type_name(t->raw_type));
  shape = cJSON_AddArrayToObject(j, "shape");
  for (uint32_t i = 0; i < t->n_dims; i++)
    cJSON_AddItemToArray(shape, cJSON_CreateNumber((double)t->ne[i]));
  cJSON_AddNumberToObject(j, "bytes", (double)t->size);
  cJSON_AddNumberToObject(j, "part", t->part);
  cJSON_AddNumberToObject(j, "offset", (double)t->file_off);
  return j;
}

/* ---- plain ---- */

static void print_params(const model_params *p) {
  printf("\nmodel\n  architecture %s, %u layers, width %u, feed-forward %u, vocabulary %u\n",
         p->arch, p->n_layer, p->n_embd, p->n_ff, p->n_vocab);
  printf("  attention: %u heads, %u for keys and values, of %u; context %u\n", p->n_head, p->n_kv,
         p->head_dim, p->n_ctx);
  printf("  rope: base %g, scaling %s, %u of %u rotated\n", (double)p->rope_base,
         p->rope_scaling ? p->rope_scaling : "none", p->rot, p->head_dim);
}

static void print_needs(const report *r) {
  if (!r->n_needs) return;
  printf("\nmemory at context %u: weights + KV cache + work, on\n", r->needs[0].ctx);
  for (uint32_t i = 0; i < r->n_needs; i++) {
    const need *n = &r->needs[i];
    printf("  %-6s %s: ", n->device, n->name);
    if (n->why[0]) printf("%s\n", n->why);
    else {
      printf("%s + %s + %s = %s", cli_bytes(n->weights), cli_bytes(n->kv), cli_bytes(n->work),
             cli_bytes(n->weights + n->kv + n->work));
      if (n->room)
        printf("; %s the %s available", n->fits ? "fits in" : "too large for", cli_bytes(n->room));
      puts("");
    }
  }
}

static int print_plain(const report *r, bool tensors) {
  const gguf *g = r->g;
  printf("%s: GGUF version %u\n", gguf_name(g), gguf_version(g));
  for (uint32_t i = 0; i < gguf_part_count(g); i++)
    printf("  part %u: %s, %s\n", i, gguf_part_name(g, i), cli_bytes(gguf_part_size(g, i)));
  printf("\nmetadata (%llu keys)\n", (unsigned long long)gguf_kv_count(g));
  buf b = {0};
  for (uint64_t i = 0; i < gguf_kv_count(g); i++) {
    const gguf_kv *kv = gguf_kv_at(g, i);
    buf_clear(&b);
    put_value(&b, kv);
    printf("  %s = %s\n", kv->key, b.p ? b.p : "");
  }
  buf_free(&b);
  if (r->m) print_params(&r->m->p);
  else printf("\nmodel\n  not run by frit: %s\n", r->why);
  total t[MAX_TOTALS];
  uint32_t n = count_types(g, t);
  printf("\ntensors (%llu)\n", (unsigned long long)gguf_tensor_count(g));
  for (uint32_t i = 0; i < n; i++)
    printf("  %-8s %5llu tensors %14llu values %12s\n", gguf_tensor_type_name(t[i].raw_type),
           (unsigned long long)t[i].n, (unsigned long long)t[i].elements, cli_bytes(t[i].bytes));
  for (uint64_t i = 0; tensors && i < gguf_tensor_count(g); i++) {
    const gguf_tensor *x = gguf_tensor_at(g, i);
    char shape[96];
    put_shape(x, shape, sizeof shape);
    printf("  %-32s %-8s %-20s %10s\n", x->name, gguf_tensor_type_name(x->raw_type), shape,
           cli_bytes(x->size));
  }
  print_needs(r);
  return cli_flush();
}

/* ---- JSON ---- */

static cJSON *json_params(const model_params *p) {
  cJSON *j = cJSON_CreateObject();
  cJSON_AddStringToObject(j, "architecture", p->arch);
  cJSON_AddNumberToObject(j, "layers", p->n_layer);
  cJSON_AddNumberToObject(j, "embedding", p->n_embd);
  cJSON_AddNumberToObject(j, "feed_forward", p->n_ff);
  cJSON_AddNumberToObject(j, "vocabulary", p->n_vocab);
  cJSON_AddNumberToObject(j, "heads", p->n_head);
  cJSON_AddNumberToObject(j, "kv_heads", p->n_kv);
  cJSON_AddNumberToObject(j, "head_dim", p->head_dim);
  cJSON_AddNumberToObject(j, "context", p->n_ctx);
  cJSON_AddNumberToObject(j, "rope_base", (double)p->rope_base);
  cJSON_AddNumberToObject(j, "rope_dims", p->rot);
  cJSON_AddStringToObject(j, "rope_scaling", p->rope_scaling ? p->rope_scaling : "none");
  return j;
}

static cJSON *json_need(const need *n) {
  cJSON *j = cJSON_CreateObject();
  cJSON_AddStringToObject(j, "device", n->device);
  cJSON_AddStringToObject(j, "name", n->name);
  if (n->why[0]) {
    cJSON_AddStringToObject(j, "error", n->why);
    return j;
  }
  cJSON_AddNumberToObject(j, "context", n->ctx);
  cJSON_AddNumberToObject(j, "weights", (double)n->weights);
  cJSON_AddNumberToObject(j, "kv", (double)n->kv);
  cJSON_AddNumberToObject(j, "work", (double)n->work);
  cJSON_AddNumberToObject(j, "total", (double)(n->weights + n->kv + n->work));
  if (n->room) {
    cJSON_AddNumberToObject(j, "available", (double)n->room);
    cJSON_AddBoolToObject(j, "fits", n->fits);
  }
  return j;
}

static int print_json(const report *r, bool tensors) {
  const gguf *g = r->g;
  cJSON *j = cJSON_CreateObject(), *a;
  cJSON_AddStringToObject(j, "file", gguf_name(g));
  cJSON_AddNumberToObject(j, "version", gguf_version(g));
  a = cJSON_AddArrayToObject(j, "parts");
  for (uint32_t i = 0; i < gguf_part_count(g); i++) {
    cJSON *part = cJSON_CreateObject();
    cJSON_AddStringToObject(part, "file", gguf_part_name(g, i));
    cJSON_AddNumberToObject(part, "bytes", (double)gguf_part_size(g, i));
    cJSON_AddItemToArray(a, part);
  }
  a = cJSON_AddObjectToObject(j, "metadata");
  for (uint64_t i = 0; i < gguf_kv_count(g); i++)
    cJSON_AddItemToObject(a, gguf_kv_at(g, i)->key, json_value(gguf_kv_at(g, i)));
  if (r->m) cJSON_AddItemToObject(j, "model", json_params(&r->m->p));
  else cJSON_AddStringToObject(j, "model_error", r->why);
  total t[MAX_TOTALS];
  uint32_t n = count_types(g, t);
  a = cJSON_AddArrayToObject(j, "types");
  for (uint32_t i = 0; i < n; i++) {
    cJSON *row = cJSON_CreateObject();
    cJSON_AddStringToObject(row, "type", gguf_tensor_type_name(t[i].raw_type));
    cJSON_AddNumberToObject(row, "tensors", (double)t[i].n);
    cJSON_AddNumberToObject(row, "values", (double)t[i].elements);
    cJSON_AddNumberToObject(row, "bytes", (double)t[i].bytes);
    cJSON_AddItemToArray(a, row);
  }
  a = tensors ? cJSON_AddArrayToObject(j, "tensors") : NULL;
  for (uint64_t i = 0; tensors && i < gguf_tensor_count(g); i++)
    cJSON_AddItemToArray(a, json_tensor(gguf_tensor_at(g, i)));
  a = cJSON_AddArrayToObject(j, "memory");
  for (uint32_t i = 0; i < r->n_needs; i++) cJSON_AddItemToArray(a, json_need(&r->needs[i]));
  return cli_print_json(j);
}

/* ---- the command ---- */

static int inspect(const char *path, const options *o) {
  report *r = mem_zalloc(1, sizeof *r);
  if (!r) {
    mem_err("report", sizeof *r);
    return cli_fail();
  }
  int status;
  err e;
  TRY(gguf_open(path, &r->g));
  e = model_import(r->g, &r->m);
  if (e == ERR_NOMEM) goto done;
  if (e) snprintf(r->why, sizeof r->why, "%s", err_text());
  e = ERR_NONE;
  if (r->m) TRY(need_all(r->m, &o->device, r->needs, MAX_NEEDS, &r->n_needs));
done:
  if (e) status = cli_fail();
  else status = o->json ? print_json(r, o->tensors) : print_plain(r, o->tensors);
  model_free(r->m);
  gguf_free(r->g);
  mem_free(r);
  return status;
}

static int run_inspect(int argc, const char **argv) {
  options o = {0};
  cli_table t = {0};
  cli_args args;
  cli_add(&t, (cli_option[]){
                  {.name = "tensors",
                   .type = CLI_FLAG,
                   .to = &o.tensors,
                   .help = "lists every tensor with type, shape and size"},
                  {.name = "json", .type = CLI_FLAG, .to = &o.json, .help = "prints one object"},
                  {0}});
  cli_add_device(&t, &o.device);
  int status = cli_parse(&cli_inspect, &t, "MODEL", argc, argv, &args);
  if (status != CLI_GO) return status;
  status = cli_check_device(&cli_inspect, &o.device);
  if (status == CLI_GO) status = inspect(args.arg[0], &o);
  cli_args_free(&args);
  return status;
}

const cli_command cli_inspect = {
    .name = "inspect",
    .summary = "shows what a model file holds and what it needs",
    .synopsis = "MODEL [--tensors] [--json] [OPTION...]",
    .text =
        "Prints the file's parts, metadata (long values shortened), hyper-parameters and tensors "
        "by type,\nthen the memory that the model needs at --context on the CPU and on each GPU: "
        "weights, KV\ncache and working buffers, computed by planning, with nothing loaded. On the "
        "CPU it also says\nwhether that fits in the memory available now; a GPU does not tell how "
        "much it has.",
    .examples = "frit inspect model.gguf\nfrit inspect model.gguf --context=2048 --json",
    .run = run_inspect,
};
