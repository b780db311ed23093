/* The device options, picking a device, loading a model. */
#include "cli/cli.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "kernels/cpu_isa.h"
#include "tasks/pick.h"

void cli_add_adapter(cli_table *t, cli_device *d) {
  cli_add(t,
          (cli_option[]){
              {.name = "device",
               .type = CLI_TEXT,
               .to = &d->device,
               .arg = "WHERE",
               .help = "auto, cpu, gpu or gpu:N (default auto: the first real GPU, else the CPU; "
                       "'frit devices' numbers them)"},
              {.name = "threads",
               .type = CLI_U32,
               .to = &d->threads,
               .arg = "N",
               .max = 1024,
               .help = "threads of the cpu device (default: one a core)"},
              {.name = "isa",
               .type = CLI_TEXT,
               .to = &d->isa,
               .arg = "NAME",
               .help = "instruction set of the cpu device: base, avx2, avx2-vnni, avx512 or "
                       "avx512-vnni (default: the widest there is)"},
              {.name = "webgpu",
               .type = CLI_TEXT,
               .to = &d->webgpu,
               .arg = "PATH",
               .help = "the WebGPU library (default: $FRIT_WEBGPU, then the usual places)"},
              {.name = "no-f16",
               .type = CLI_FLAG,
               .to = &d->no_f16,
               .help = "does as if the GPU had no 16-bit floats"},
              {.name = "no-subgroups",
               .type = CLI_FLAG,
               .to = &d->no_subgroups,
               .help = "does as if the GPU had no subgroups"},
              {.name = "limit-binding",
               .type = CLI_BYTES,
               .to = &d->limit_binding,
               .arg = "BYTES",
               .max = 1e15,
               .help = "does as if no binding could be larger (K, M, G)"},
              {0}});
}

void cli_add_device(cli_table *t, cli_device *d) {
  cli_add_adapter(t, d);
  cli_add(t, (cli_option[]){
                 {.name = "context",
                  .type = CLI_U32,
                  .to = &d->context,
                  .arg = "N",
                  .min = 0,
                  .max = 1 << 24,
                  .help = "tokens that the context holds (default: the model's own, at "
                          "most 8192)"},
                 {.name = "batch",
                  .type = CLI_U32,
                  .to = &d->batch,
                  .arg = "N",
                  .min = 0,
                  .max = 65536,
                  .help = "prompt tokens run at once (default 512)"},
                 {.name = "precision",
                  .type = CLI_TEXT,
                  .to = &d->precision,
                  .arg = "P",
                  .help = "f32: nothing is rounded on the way; auto: what the device does fastest "
                          "within the stated tolerance (default auto)"},
                 {.name = "level",
                  .type = CLI_TEXT,
                  .to = &d->level,
                  .arg = "L",
                  .help = "how far kernels are fused: none or role (default: role on GPUs, none on "
                          "the cpu)"},
                 {.name = "fusions-off",
                  .type = CLI_TEXT,
                  .to = &d->off,
                  .arg = "LIST",
                  .help = "names of fusions not to use, separated by commas"},
                 {0}});
}

static bool is_fusion(const char *name, size_t n) {
  for (const char *const *f = plan_fusions; *f; f++)
    if (strlen(*f) == n && strncmp(*f, name, n) == 0) return true;
  return false;
}

static int check_fusions(const cli_command *c, const char *list) {
  while (list && *list) {
    size_t n = strcspn(list, ",");
    if (!is_fusion(list, n)) {
      buf names = {0};
      for (const char *const *f = plan_fusions; *f; f++) buf_printf(&names, " %s", *f);
      int status = cli_usage(c, "--fusions-off: there is no fusion '%.*s'; there are:%s", (int)n,
                             list, names.p ? names.p : "");
      buf_free(&names);
      return status;
    }
    list += n + (list[n] == ',');
  }
  return CLI_GO;
}

int cli_check_device(const cli_command *c, const cli_device *d) {
  if (!pick_valid(d->device))
    return cli_usage(c, "--device takes auto, cpu, gpu or gpu:N, not '%s'", d->device);
  if (d->precision && strcmp(d->precision, "f32") != 0 && strcmp(d->precision, "auto") != 0)
    return cli_usage(c, "--precision takes f32 or auto, not '%s'", d->precision);
  if (d->level && strcmp(d->level, "none") != 0 && strcmp(d->level, "role") != 0)
    return cli_usage(c, "--level takes none or role, not '%s'", d->level);
  if (d->isa && kernel_cpu_limit_isa(d->isa)) return cli_usage(c, "--isa: %s", err_text());
  return check_fusions(c, d->off);
}

err cli_pick(const cli_device *d, cli_picked *out) {
  *out = (cli_picked){.desc = {.library = d->webgpu,
                               .threads = d->threads,
                               .no_f16 = d->no_f16,
                               .no_subgroups = d->no_subgroups,
                               .limit_binding = d->limit_binding}};
  pick *p;
  cli_hush(true);
  err e = pick_begin(d->device, d->webgpu, &p);
  bool done = false;
  cli_wait w = {0};
  while (!e && !done) {
    e = pick_poll(p, &out->desc.kind, &out->desc.index, &done);
    cli_wait_step(&w, done);
  }
  if (!e) snprintf(out->note, sizeof out->note, "%s", pick_note(p));
  pick_end(p);
  cli_hush(false);
  return e;
}

err cli_list(hw_kind kind, const char *library, hw_caps *out, uint32_t max, uint32_t *n) {
  hw_list_state *s;
  *n = 0;
  cli_hush(true);
  err e = hw_list_begin(kind, library, &s);
  cli_wait w = {0};
  while (!e && !hw_list_poll(s, out, max, n)) cli_wait_step(&w, false);
  if (!e) hw_list_end(s);
  cli_hush(false);
  return e;
}

void cli_describe(const hw_caps *c, char *out, size_t size) {
  if (c->kind == HW_CPU) snprintf(out, size, "cpu: %s, %u threads", c->name, c->threads);
  else snprintf(out, size, "gpu: %s, %s, %s", c->name, c->api, c->library);
}

engine_opts cli_engine_opts(const cli_device *d, const cli_picked *p) {
  return (engine_opts){.device = p->desc.kind,
                       .hw = p->desc,
                       .ctx = d->context,
                       .batch = d->batch,
                       .f32 = d->precision && strcmp(d->precision, "f32") == 0,
                       .level_set = d->level != NULL,
                       .level = d->level && strcmp(d->level, "role") == 0 ? PLAN_ROLE : PLAN_NONE,
                       .off = d->off};
}

/* What does not exist is said before a GPU library is looked for. */
static err check_there(const char *path) {
  file_map m;
  err e = file_map_open(path, &m);
  if (!e) file_map_close(&m);
  return e;
}

static err load(engine *e, const char *path, bool quiet) {
  static const char *const phases[] = {"opening the device", "compiling kernels",
                                       "uploading weights", "warming up", "ready"};
  const char *slash = strrchr(path, '/');
  cli_bar bar = {.name = slash ? slash + 1 : path, .on = !quiet && isatty(STDERR_FILENO)};
  cli_wait w = {0};
  bool done = false;
  engine_progress p = {0}, last = {0};
  err r = ERR_NONE;
  while (!r && !done) {
    cli_hush(p.phase == ENGINE_OPEN);
    r = engine_load(e, &p, &done);
    cli_hush(false);
    cli_bar_draw(&bar, phases[p.phase], p.done, p.total);
    cli_wait_step(&w, done || p.phase != last.phase || p.done != last.done);
    last = p;
  }
  cli_bar_clear(&bar);
  return r;
}

err cli_load(const cli_device *d, const char *path, const engine_opts *more, cli_model *out) {
  *out = (cli_model){0};
  double t0 = time_now();
  cli_picked p;
  err e = check_there(path);
  if (!e) e = cli_pick(d, &p);
  if (e) return e;
  engine_opts o = cli_engine_opts(d, &p);
  if (more) {
    o.nll = more->nll;
    if (more->ctx && !o.ctx) o.ctx = more->ctx;
  }
  e = engine_open(path, &o, &out->e);
  if (!e) e = load(out->e, path, d->quiet);
  if (e) {
    cli_unload(out);
    return e;
  }
  out->load_s = time_now() - t0;
  memcpy(out->note, p.note, sizeof out->note);
  cli_describe(hw_get_caps(engine_hw(out->e)), out->device, sizeof out->device);
  return ERR_NONE;
}

err cli_encode(const cli_model *m, const char *text, size_t n, bool special, token_ids *out) {
  err e = token_encode(engine_tokenizer(m->e), text, n, special, true, out);
  if (e || out->n) return e;
  return err_set(ERR_ARG, "the text is empty, and the file's rules add no token before it");
}

void cli_unload(cli_model *m) {
  engine_close(m->e);
  m->e = NULL;
}
