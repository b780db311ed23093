/* Plans: golden texts, an independent symbolic check of every plan of many models, fusions switched
 * off by name, reasons of refusals. FRIT_UPDATE_GOLDEN=1 rewrites tests/data/plan. */
#include <stdlib.h>

#include "base/file.h"
#include "base/mem.h"
#include "import/gguf/model.h"
#include "test.h"
#include "util_engine.h"
#include "util_plan.h"

/* A GPU that is nobody's. */
static hw_caps gpu_of(uint64_t max_binding) {
  return (hw_caps){.kind = HW_WEBGPU,
                   .max_binding = max_binding,
                   .max_buffer = 1ull << 32,
                   .max_storage_buffers = 10,
                   .max_groups = 65535,
                   .max_invocations = 1024,
                   .max_workgroup_mem = 32 << 10,
                   .offset_align = 256,
                   .f16 = true,
                   .subgroups = true,
                   .subgroup_min = 32,
                   .subgroup_max = 32};
}

typedef struct fixture {
  gguf *file;
  model *m;
  hw_caps caps;
  plan_weights *w;
} fixture;

static void close_fixture(fixture *f) {
  plan_weights_free(f->w);
  model_free(f->m);
  gguf_free(f->file);
}

static bool open_fixture(const synth_desc *d, const hw_caps *caps, fixture *f) {
  *f = (fixture){.caps = *caps};
  const char *path = te_model(d);
  err e = path ? gguf_open(path, &f->file) : ERR_IO;
  if (!e) e = model_import(f->file, &f->m);
  if (!e) e = plan_weights_new(&f->m->graph, caps, &f->w);
  if (!e) return true;
  FAIL("%s", err_text());
  close_fixture(f);
  return false;
}

static plan *make(const fixture *f, const plan_opts *o) {
  plan *p = NULL;
  CHECK_OK(plan_new(&f->m->graph, f->w, &f->caps, o, &p));
  return p;
}

static const char *const part_names[] = {"body", "head", "head of all", "greedy", "sample", "nll"};

/* ---- golden texts ---- */

static void compare(const char *name, const buf *text) {
  char path[600], file[64];
  snprintf(file, sizeof file, "plan/%s.txt", name);
  snprintf(path, sizeof path, "%s", test_data(file));
  const char *update = getenv("FRIT_UPDATE_GOLDEN");
  if (update && update[0] == '1') {
    CHECK_OK(file_write(path, text->p, text->n));
    return;
  }
  char *want = NULL;
  size_t n;
  CHECK_OK(file_read(path, 1 << 20, &want, &n));
  if (!want) return;
  uint32_t line = 1;
  const char *a = text->p, *b = want;
  for (; *a && *a == *b; a++, b++) line += *a == '\n';
  if (*a != *b) {
    while (a > text->p && a[-1] != '\n') a--, b--;
    FAIL("%s line %u is\n  %.*s\nnot\n  %.*s\n(FRIT_UPDATE_GOLDEN=1 rewrites it)", path, line,
         (int)strcspn(a, "\n"), a, (int)strcspn(b, "\n"), b);
  }
  mem_free(want);
}

static void golden(const char *name, const synth_desc *d, uint64_t max_binding, plan_level level) {
  static const struct {
    plan_part_kind part;
    uint32_t m;
  } parts[] = {{PLAN_BODY, 1},   {PLAN_BODY, 64},  {PLAN_HEAD, 1}, {PLAN_HEAD, 64},
               {PLAN_GREEDY, 1}, {PLAN_SAMPLE, 1}, {PLAN_NLL, 16}};
  fixture f;
  hw_caps caps = gpu_of(max_binding);
  if (!open_fixture(d, &caps, &f)) return;
  buf text = {0};
  for (uint32_t i = 0; i < f.w->n_stacks; i++)
    buf_printf(&text, "w%u %s [%u, %u] %s\n", i, f.w->stacks[i].label, f.w->stacks[i].rows,
               f.w->stacks[i].cols, dtype_get(f.w->stacks[i].type)->name);
  for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
    plan_opts o = {
        .part = parts[i].part, .level = level, .m = parts[i].m, .ctx = 256, .kv = DT_F16};
    plan *p = make(&f, &o);
    buf_printf(&text, "\n%s of %u\n", part_names[o.part], o.m);
    if (p) plan_print(p, &text);
    plan_free(p);
  }
  REQUIRE(!text.failed);
  compare(name, &text);
  buf_free(&text);
  close_fixture(&f);
}

static void golden_texts(void) {
  synth_shape one; /* a layer: the second would say the same */
  REQUIRE(synth_preset("tiny", &one));
  one.layers = 1;
  golden("none", &(synth_desc){.shape = &one}, 128 << 20, PLAN_NONE);
  golden("role", &(synth_desc){.shape = &one}, 128 << 20, PLAN_ROLE);
  golden("role-split", &(synth_desc){.shape = &one, .quant = "f32"}, 50000, PLAN_ROLE);
  golden("role-mixed",
         &(synth_desc){
             .shape = &one, .mix = "attn_v=q8_0,ffn_up=q5_1,output.weight=f16", .untied = true},
         128 << 20, PLAN_ROLE);
}

/* ---- every plan ---- */

static void verify_all(const char *name, const synth_desc *d, const hw_caps *caps) {
  static const uint32_t rows[] = {1, 2, 64};
  fixture f;
  if (!open_fixture(d, caps, &f)) return;
  tp_verify_weights(&f.m->graph, f.w, caps);
  for (int level = PLAN_NONE; level <= PLAN_ROLE; level++) {
    for (int part = PLAN_BODY; part <= PLAN_HEAD_ALL; part++) {
      for (int i = 0; i < 3; i++) {
        for (int off = -1; off < 0 || plan_fusions[off]; off++) {
          plan_opts o = {.part = (plan_part_kind)part,
                         .level = (plan_level)level,
                         .m = rows[i],
                         .ctx = 256,
                         .kv = i ? DT_F16 : DT_F32,
                         .off = off < 0 ? NULL : plan_fusions[off]};
          char what[160];
          snprintf(what, sizeof what, "%s, level %d, %s of %u without %s", name, level,
                   part_names[part], rows[i], o.off ? o.off : "nothing");
          plan *p = make(&f, &o);
          const char *wrong = p ? tp_verify(&f.m->graph, f.w, p) : NULL;
          if (wrong) FAIL("%s: %s", what, wrong);
          for (uint32_t s = 0; p && o.off && s < p->n_steps; s++)
            CHECK(!p->steps[s].fusion || strcmp(p->steps[s].fusion, o.off) != 0);
          plan_free(p);
          if (level == PLAN_NONE) break;
        }
      }
    }
  }
  close_fixture(&f);
}

static void every_plan_computes_the_graph(void) {
  hw_caps large = gpu_of(128 << 20), small = gpu_of(50000), cpu = gpu_of(1ull << 40);
  cpu.kind = HW_CPU;
  cpu.native_weights = true;
  verify_all("tiny", &(synth_desc){.preset = "tiny"}, &large);
  verify_all("on the cpu", &(synth_desc){.preset = "tiny"}, &cpu);
  verify_all("split", &(synth_desc){.preset = "tiny", .quant = "f32", .untied = true}, &small);
  verify_all("v of its own", &(synth_desc){.preset = "tiny", .mix = "attn_v=q8_0"}, &large);
  verify_all("q of its own", &(synth_desc){.preset = "tiny", .mix = "attn_q=q8_0"}, &large);
  verify_all("k of its own", &(synth_desc){.preset = "tiny", .mix = "attn_k=q8_0,ffn_up=f16"},
             &large);
  verify_all("biases", &(synth_desc){.preset = "tiny", .bias = true}, &large);
  verify_all("K types", &(synth_desc){.preset = "tiny-k", .quant = "q4_k", .mix = "attn_v=q6_k"},
             &large);
}

/* The check itself: a plan with one operand in another slot is found wrong. */
static void the_check_sees_damage(void) {
  fixture f;
  hw_caps caps = gpu_of(128 << 20);
  if (!open_fixture(&(synth_desc){.preset = "tiny"}, &caps, &f)) return;
  for (int level = PLAN_NONE; level <= PLAN_ROLE; level++) {
    for (uint32_t m = 1; m <= 64; m += 63) {
      plan *p = make(&f, &(plan_opts){.level = (plan_level)level, .m = m, .ctx = 64});
      REQUIRE(p && p->n_slots > 1);
      for (uint32_t i = 0; i < p->n_steps; i++) {
        for (uint32_t j = 0; j < p->steps[i].n_bind; j++) {
          plan_ref *r = &p->steps[i].bind[j], was = *r;
          if (was.kind != PLAN_REF_SLOT) continue;
          r->index = (was.index + 1) % p->n_slots;
          if (!tp_verify(&f.m->graph, f.w, p)) FAIL("step %u, operand %u", i, j);
          *r = was;
        }
        p->steps[i].spec.dim[0] += 32;
        if (!tp_verify(&f.m->graph, f.w, p)) FAIL("step %u with other sizes", i);
        p->steps[i].spec.dim[0] -= 32;
      }
      CHECK(!tp_verify(&f.m->graph, f.w, p));
      plan_free(p);
    }
  }
  close_fixture(&f);
}

/* Only the named ones go; all at once leaves level none. */
static void fusions_by_name(void) {
  fixture f;
  hw_caps caps = gpu_of(128 << 20);
  if (!open_fixture(&(synth_desc){.preset = "tiny"}, &caps, &f)) return;
  buf all = {0};
  for (int i = 0; plan_fusions[i]; i++) {
    uint32_t used = 0;
    buf_printf(&all, "%s%s", i ? "," : "", plan_fusions[i]);
    for (int part = PLAN_BODY; part <= PLAN_GREEDY; part++) {
      for (uint32_t m = 1; m <= 64; m += 63) {
        plan *p = make(
            &f, &(plan_opts){.part = (plan_part_kind)part, .level = PLAN_ROLE, .m = m, .ctx = 64});
        for (uint32_t s = 0; p && s < p->n_steps; s++)
          used += p->steps[s].fusion && strcmp(p->steps[s].fusion, plan_fusions[i]) == 0;
        plan_free(p);
      }
    }
    if (!used) FAIL("fusion %s never applies", plan_fusions[i]);
  }
  for (int part = PLAN_BODY; part <= PLAN_GREEDY; part++) {
    for (uint32_t m = 1; m <= 64; m += 63) {
      plan_opts o = {
          .part = (plan_part_kind)part, .level = PLAN_ROLE, .m = m, .ctx = 64, .off = all.p};
      plan *p = make(&f, &o);
      o.level = PLAN_NONE;
      plan *q = make(&f, &o);
      REQUIRE(p && q);
      CHECK_EQ(p->n_steps, q->n_steps);
      for (uint32_t s = 0; s < p->n_steps && s < q->n_steps; s++)
        CHECK(kernel_spec_equal(&p->steps[s].spec, &q->steps[s].spec) && !p->steps[s].fusion);
      plan_free(p);
      plan_free(q);
    }
  }
  buf_free(&all);
  close_fixture(&f);
}

static void has_note(const synth_desc *d, const hw_caps *caps, uint32_t m, const char *fusion,
                     const char *reason) {
  fixture f;
  if (!open_fixture(d, caps, &f)) return;
  plan *p = make(&f, &(plan_opts){.part = PLAN_BODY, .level = PLAN_ROLE, .m = m, .ctx = 64});
  bool found = false;
  for (uint32_t i = 0; p && i < p->n_notes; i++)
    found =
        found || (strcmp(p->notes[i].fusion, fusion) == 0 && strstr(p->notes[i].reason, reason) &&
                  strncmp(p->notes[i].where, "blk.", 4) == 0);
  if (!found) FAIL("no note of %s with '%s'", fusion, reason);
  plan_free(p);
  close_fixture(&f);
}

static void refusals_leave_notes(void) {
  hw_caps large = gpu_of(128 << 20), small = gpu_of(41000);
  synth_desc f32 = {.preset = "tiny", .quant = "f32"};
  has_note(&(synth_desc){.preset = "tiny", .mix = "ffn_up=q8_0"}, &large, 1, "norm_ffn",
           "differ in type");
  has_note(&f32, &small, 1, "norm_ffn", "split over bindings");
  synth_shape wide = {.layers = 1,
                      .embd = 128,
                      .heads = 2,
                      .heads_kv = 1,
                      .head_dim = 64,
                      .ffn = 64,
                      .vocab = 288,
                      .context = 64,
                      .rope_base = 1e4f,
                      .pre = "smollm"};
  has_note(&(synth_desc){.shape = &wide, .quant = "f32"}, &small, 1, "norm_qkv",
           "split over bindings");
  has_note(&(synth_desc){.shape = &wide, .quant = "f32"}, &small, 1, "matmul_residual",
           "split over bindings");
}

static void limits(void) {
  fixture f = {0};
  const char *path = te_model(&(synth_desc){.preset = "tiny", .quant = "f32"});
  REQUIRE(path);
  CHECK_OK(gguf_open(path, &f.file));
  CHECK_OK(model_import(f.file, &f.m));
  hw_caps caps = gpu_of(20000);
  CHECK_ERR(
      plan_weights_new(&f.m->graph, &caps, &f.w), ERR_LIMIT,
      "64 rows of tensor 'blk.0.ffn_down.weight' are over this device's binding limit of 20000");
  /* Every limit from what is refused up to what needs no split: parts fit, and cover. */
  for (caps.max_binding = 40960; caps.max_binding < 90000; caps.max_binding += 777) {
    CHECK_OK(plan_weights_new(&f.m->graph, &caps, &f.w));
    if (f.w) tp_verify_weights(&f.m->graph, f.w, &caps);
    plan_weights_free(f.w);
  }
  f.w = NULL;
  close_fixture(&f);
  synth_shape odd = {.layers = 1,
                     .embd = 72,
                     .heads = 2,
                     .heads_kv = 1,
                     .head_dim = 32,
                     .ffn = 64,
                     .vocab = 288,
                     .context = 64,
                     .rope_base = 1e4f,
                     .pre = "smollm"};
  path = te_model(&(synth_desc){.shape = &odd, .quant = "f32"});
  CHECK_OK(gguf_open(path, &f.file));
  CHECK_OK(model_import(f.file, &f.m));
  CHECK_ERR(plan_weights_new(&f.m->graph, &caps, &f.w), ERR_UNSUPPORTED, "has 72 columns");
  close_fixture(&f);
}

static void allocation_failures(void) {
  fixture f;
  hw_caps caps = gpu_of(50000);
  if (!open_fixture(&(synth_desc){.preset = "tiny", .quant = "f32"}, &caps, &f)) return;
  uint64_t before = mem_live();
  err e = ERR_NOMEM;
  int n = 0;
  while (e && n < 1000) {
    plan_weights *w = NULL;
    plan *p = NULL;
    mem_fail_at(++n, false);
    e = plan_weights_new(&f.m->graph, &caps, &w);
    if (!e)
      e = plan_new(&f.m->graph, w, &caps, &(plan_opts){.level = PLAN_ROLE, .m = 1, .ctx = 64}, &p);
    mem_fail_at(0, false);
    if (e) CHECK_EQ(e, ERR_NOMEM);
    plan_free(p);
    plan_weights_free(w);
    CHECK_EQ(mem_live(), before);
  }
  CHECK(n > 6 && n < 1000);
  close_fixture(&f);
}

void suite_plan(void) {
  RUN(golden_texts);
  RUN(every_plan_computes_the_graph);
  RUN(the_check_sees_damage);
  RUN(fusions_by_name);
  RUN(refusals_leave_notes);
  RUN(limits);
  RUN(allocation_failures);
}
