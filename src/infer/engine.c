/* Owns the opened file, the graph, the tokenizer, the device and the run; loads them in steps. */
#include "infer/engine.h"

#include <math.h>
#include <string.h>

#include "base/math.h"
#include "base/mem.h"
#include "infer/engine_impl.h"
#include "infer/token_gguf.h"
#include "kernels/quant.h"

err engine_new(gguf *file, const engine_opts *o, engine **out) {
  *out = NULL;
  err e = ERR_NONE;
  const char *name = gguf_name(file);
  engine *en = mem_zalloc(1, sizeof *en);
  if (!en) {
    gguf_free(file);
    return mem_err("engine", sizeof *en);
  }
  en->o = *o;
  en->file = file;
  TRY(model_import(en->file, &en->model));
  TRY(token_from_gguf(en->file, &en->tokens));
  run_opts r;
  e = engine_run_opts(o, en->model->p.n_ctx, &r);
  if (e) {
    err_set(e, "%s: %s", name, err_text());
    goto done;
  }
  en->ctx = r.ctx;
  if (token_count(en->tokens) > en->model->p.n_vocab)
    e = err_set(ERR_FORMAT, "%s: %u tokens but only %u rows in 'token_embd.weight'", name,
                token_count(en->tokens), en->model->p.n_vocab);
done:
  if (e) engine_close(en);
  else *out = en;
  return e;
}

void engine_close(engine *en) {
  if (!en) return;
  run_free(en->run);
  hw_close(en->h);
  token_free(en->tokens);
  model_free(en->model);
  gguf_free(en->file);
  mem_free(en);
}

static void uploaded(void *user, const ir_tensor *t) {
  const engine *en = user;
  const gguf_tensor *f = gguf_tensor_find(en->file, t->name);
  if (f) gguf_tensor_drop(en->file, f);
}

static err fetch(void *user, uint32_t part, uint64_t off, uint64_t size, hw_buf dst,
                 uint64_t dst_off) {
  const engine *en = user;
  return en->o.fetch(en->o.user, part, off, size, dst, dst_off);
}

static bool fetched(void *user, err *e) {
  const engine *en = user;
  return en->o.fetched(en->o.user, e);
}

/* Only the host's memory can be asked: WebGPU does not tell a GPU's. */
static err check_fits(const engine *en, run_memory need) {
  bool cpu = en->o.device == HW_CPU;
  if (!cpu && !hw_get_caps(en->h)->software) return ERR_NONE;
  if (cpu && !en->o.fetch) need.weights = 0; /* they stay in the mapped file */
  uint64_t sum = need.weights + need.kv + need.work, free = file_memory_free();
  if (!free || sum <= free) return ERR_NONE;
  return err_set(
      ERR_LIMIT,
      "%s: needs %llu MiB (weights %llu, KV cache %llu at a context of %u, work %llu) but %llu MiB "
      "of memory are free",
      gguf_name(en->file), (unsigned long long)(sum >> 20),
      (unsigned long long)(need.weights >> 20), (unsigned long long)(need.kv >> 20), en->ctx,
      (unsigned long long)(need.work >> 20), (unsigned long long)(free >> 20));
}

/* The plan that suits the device, unless told: roles on GPUs, an op a kernel on the cpu, whose fast
 * forms are there for the plain ops. */
err engine_run_opts(const engine_opts *o, uint32_t trained, run_opts *out) {
  bool cpu = o->device == HW_CPU;
  *out = (run_opts){.level = o->level_set ? o->level
                             : cpu        ? PLAN_NONE
                                          : PLAN_ROLE,
                    .ctx = o->ctx ? o->ctx : min_u32(trained, ENGINE_CTX),
                    .kv = o->f32 ? DT_F32 : DT_F16,
                    .rounds = !o->f32,
                    .nll = o->nll,
                    .splits = o->splits,
                    .off = o->off};
  out->batch = max_u32(2, min_u32(o->batch ? o->batch : 512, out->ctx));
  if (out->ctx <= trained) return ERR_NONE;
  return err_set(ERR_ARG, "a context of %u is more than the model's own %u", out->ctx, trained);
}

static run_opts opts_of(engine *en) {
  run_opts r = {0};
  engine_run_opts(&en->o, en->model->p.n_ctx, &r); /* went well in engine_new */
  r.uploaded = uploaded;
  r.fetch = en->o.fetch ? fetch : NULL;
  r.fetched = en->o.fetched ? fetched : NULL;
  r.user = en;
  return r;
}

err engine_estimate(engine *en, const hw_caps *caps, run_memory *out) {
  run_opts r = opts_of(en);
  return run_estimate(caps, &en->model->graph, &r, out);
}

static err make_run(engine *en) {
  run_opts r = opts_of(en);
  run *made;
  err e = run_new(en->h, &en->model->graph, &r, &made);
  if (!e) e = check_fits(en, run_need(made));
  if (e) run_free(made);
  else en->run = made;
  return e;
}

err engine_load(engine *en, engine_progress *p, bool *done) {
  *done = false;
  *p = (engine_progress){.phase = ENGINE_OPEN};
  if (!en->h) {
    hw_open_desc d = en->o.hw;
    d.kind = en->o.device;
    return hw_open(&d, &en->h);
  }
  if (!en->run) {
    hw_state s = hw_poll(en->h);
    if (s == HW_FAILED) return hw_error(en->h);
    return s == HW_READY ? make_run(en) : ERR_NONE;
  }
  run_progress r;
  err e = run_load(en->run, &r, done);
  static const engine_phase phases[] = {[RUN_COMPILE] = ENGINE_COMPILE,
                                        [RUN_UPLOAD] = ENGINE_UPLOAD,
                                        [RUN_WARMUP] = ENGINE_WARMUP,
                                        [RUN_READY] = ENGINE_READY};
  *p = (engine_progress){phases[r.phase], r.done, r.total};
  return e;
}

/* The first element that is NaN or infinite; false when there is none, or nothing to look at. */
static bool find_not_finite(const gguf_tensor *t, uint64_t *at) {
  if (!t->data || !quant_has(t->type)) return false;
  const uint64_t n = t->ne[0] * t->ne[1] * t->ne[2] * t->ne[3];
  float v[256];
  for (uint64_t i = 0; i < n; i += 256) {
    const uint64_t count = min_u64(256, n - i);
    quant_dequant_row(t->type, t->data + dtype_row_bytes(t->type, i), v, count);
    for (uint64_t j = 0; j < count; j++) {
      if (isfinite(v[j])) continue;
      *at = i + j;
      return true;
    }
  }
  return false;
}

err engine_not_numbers(const engine *en) {
  const char *name = gguf_name(en->file);
  bool seen = true;
  for (uint64_t i = 0; i < gguf_tensor_count(en->file); i++) {
    const gguf_tensor *t = gguf_tensor_at(en->file, i);
    uint64_t at;
    seen = seen && t->data;
    if (find_not_finite(t, &at))
      return err_set(ERR_FORMAT,
                     "%s: the logits are not numbers: element %llu of '%s' is NaN or infinite, the "
                     "file is damaged",
                     name, (unsigned long long)at, t->name);
  }
  if (!seen)
    return err_set(ERR_FORMAT,
                   "%s: the logits are not numbers: the file is damaged, or a sum overflowed",
                   name);
  return err_set(ERR_LIMIT,
                 "%s: the logits are not numbers, though all weights are: a sum overflowed%s", name,
                 en->o.f32 ? "" : " (--precision f32 has more room)");
}

const gguf *engine_file(const engine *en) { return en->file; }
const model *engine_model(const engine *en) { return en->model; }
const tokenizer *engine_tokenizer(const engine *en) { return en->tokens; }
hw *engine_hw(const engine *en) { return en->h; }
run *engine_run(const engine *en) { return en->run; }
uint32_t engine_ctx(const engine *en) { return en->ctx; }
