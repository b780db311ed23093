/* frit explain: the plan of a model on a device. */
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/need.h"
#include "kernels/kernel.h"

typedef struct options {
  cli_device device;
  uint32_t rows;
  bool json, sampled;
} options;

static const char *const part_names[] = {
    [PLAN_BODY] = "body", [PLAN_HEAD] = "head", [PLAN_GREEDY] = "greedy", [PLAN_SAMPLE] = "sample"};

static cJSON *json_step(const plan_step *s) {
  char label[2 * HW_LABEL];
  kernel_shape k;
  kernel_label(&s->spec, label, sizeof label);
  kernel_get(s->spec.op)->shape(&s->spec, &k);
  cJSON *j = cJSON_CreateObject(), *groups = cJSON_AddArrayToObject(j, "groups");
  for (int i = 0; i < 3; i++) cJSON_AddItemToArray(groups, cJSON_CreateNumber(k.groups[i]));
  cJSON_AddStringToObject(j, "label", s->label);
  cJSON_AddStringToObject(j, "kernel", label);
  cJSON_AddNumberToObject(j, "bytes", (double)k.bytes);
  cJSON_AddNumberToObject(j, "flops", (double)k.flops);
  if (s->fusion) cJSON_AddStringToObject(j, "fusion", s->fusion);
  return j;
}

static cJSON *json_plan(const plan *p) {
  cJSON *j = cJSON_CreateObject(), *a;
  cJSON_AddStringToObject(j, "part", part_names[p->opts.part]);
  cJSON_AddNumberToObject(j, "rows", p->opts.m);
  a = cJSON_AddArrayToObject(j, "steps");
  for (uint32_t i = 0; i < p->n_steps; i++) cJSON_AddItemToArray(a, json_step(&p->steps[i]));
  a = cJSON_AddArrayToObject(j, "slots");
  for (uint32_t i = 0; i < p->n_slots; i++)
    cJSON_AddItemToArray(a, cJSON_CreateNumber((double)p->slots[i]));
  a = cJSON_AddArrayToObject(j, "not_fused");
  for (uint32_t i = 0; i < p->n_notes; i++) {
    cJSON *n = cJSON_CreateObject();
    cJSON_AddStringToObject(n, "fusion", p->notes[i].fusion);
    cJSON_AddStringToObject(n, "where", p->notes[i].where);
    cJSON_AddStringToObject(n, "reason", p->notes[i].reason);
    cJSON_AddItemToArray(a, n);
  }
  return j;
}

static err explain_part(const model *m, const plan_weights *w, const hw_caps *c, plan_opts o,
                        cJSON *plans) {
  plan *p;
  err e = plan_new(&m->graph, w, c, &o, &p);
  if (e) return e;
  if (plans) {
    cJSON_AddItemToArray(plans, json_plan(p));
  } else {
    buf b = {0};
    plan_print(p, &b);
    printf("\n-- %s, %u row%s\n%s", part_names[o.part], o.m, o.m == 1 ? "" : "s", b.p ? b.p : "");
    buf_free(&b);
  }
  plan_free(p);
  return ERR_NONE;
}

static err explain_plans(const model *m, const options *o, const hw_caps *c, const run_opts *r,
                         cJSON *plans) {
  plan_opts po = {.level = r->level,
                  .m = o->rows,
                  .ctx = r->ctx,
                  .kv = r->kv,
                  .rounds = r->rounds,
                  .off = r->off};
  plan_part_kind parts[] = {PLAN_BODY, PLAN_HEAD, o->sampled ? PLAN_SAMPLE : PLAN_GREEDY};
  plan_weights *w = NULL;
  err e = plan_weights_new(&m->graph, c, &w);
  for (int i = 0; !e && i < 3; i++) {
    po.part = parts[i];
    if (i == 2) po.m = 1;
    e = explain_part(m, w, c, po, plans);
  }
  plan_weights_free(w);
  return e;
}

static int explain(const char *path, const options *o) {
  gguf *g = NULL;
  model *m = NULL;
  cli_picked p;
  hw_caps caps;
  char device[320];
  cJSON *j = o->json ? cJSON_CreateObject() : NULL;
  int status = CLI_OK;
  err e;
  TRY(gguf_open(path, &g));
  TRY(model_import(g, &m));
  TRY(cli_pick(&o->device, &p));
  TRY(need_caps(p.desc.kind, p.desc.index, o->device.webgpu, &caps));
  need_pretend(&o->device, &caps);
  cli_describe(&caps, device, sizeof device);
  run_opts r;
  TRY(need_opts(m, &o->device, &caps, &r));
  const char *level = r.level == PLAN_ROLE ? "role" : "none";
  if (j) {
    cJSON_AddStringToObject(j, "device", device);
    cJSON_AddStringToObject(j, "level", level);
    cJSON_AddNumberToObject(j, "context", r.ctx);
    TRY(explain_plans(m, o, &caps, &r, cJSON_AddArrayToObject(j, "plans")));
    status = cli_print_json(j);
    j = NULL;
  } else {
    printf("%s, level %s, context %u, KV cache %s\n", device, level, r.ctx, dtype_get(r.kv)->name);
    TRY(explain_plans(m, o, &caps, &r, NULL));
    status = cli_flush();
  }
done:
  if (e) status = cli_fail();
  cJSON_Delete(j);
  model_free(m);
  gguf_free(g);
  return status;
}

static int run_explain(int argc, const char **argv) {
  options o = {.rows = 1};
  cli_table t = {0};
  cli_args args;
  cli_add(&t, (cli_option[]){
                  {.name = "rows",
                   .type = CLI_U32,
                   .to = &o.rows,
                   .arg = "N",
                   .min = 1,
                   .max = 65536,
                   .help = "tokens run at once: 1 is decode, more is a prompt (default 1)"},
                  {.name = "sampled",
                   .type = CLI_FLAG,
                   .to = &o.sampled,
                   .help = "with the steps of drawing a token in place of the likeliest one"},
                  {.name = "json", .type = CLI_FLAG, .to = &o.json, .help = "prints one object"},
                  {0}});
  cli_add_device(&t, &o.device);
  int status = cli_parse(&cli_explain, &t, "MODEL", argc, argv, &args);
  if (status != CLI_GO) return status;
  status = cli_check_device(&cli_explain, &o.device);
  if (status == CLI_GO) status = explain(args.arg[0], &o);
  cli_args_free(&args);
  return status;
}

const cli_command cli_explain = {
    .name = "explain",
    .summary = "prints the plan of a model on a device",
    .synopsis = "MODEL [--rows=N] [--level=L] [--json] [OPTION...]",
    .text =
        "Prints every dispatch that runs the model on the device, in order: label, kernel, what it "
        "binds,\nworkgroups, bytes moved, operations; which fusion made it; the working buffers; "
        "and "
        "the fusions\nthat did not apply, with the reason. Nothing is loaded.",
    .examples =
        "frit explain model.gguf\nfrit explain model.gguf --device=gpu --level=role --rows=512",
    .run = run_explain,
};
