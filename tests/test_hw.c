/* Devices: the same cases on the cpu and on a GPU back end. */
#include <stdlib.h>

#include "base/file.h"
#include "base/math.h"
#include "base/mem.h"
#include "hw/hw.h"
#include "test.h"
#include "util_hw.h"

/* y = 2 x + add, for i < n; x and y: [n]. */
typedef struct axpy_params {
  uint32_t n;
  float add;
  uint32_t pad[2];
} axpy_params;

static const char axpy_wgsl[] = "struct Params { n: u32, add: f32, pad0: u32, pad1: u32 }\n"
                                "@group(0) @binding(0) var<storage, read> x: array<f32>;\n"
                                "@group(0) @binding(1) var<storage, read_write> y: array<f32>;\n"
                                "@group(0) @binding(2) var<uniform> p: Params;\n"
                                "@compute @workgroup_size(64)\n"
                                "fn main(@builtin(global_invocation_id) id: vec3u) {\n"
                                "  if (id.x < p.n) { y[id.x] = 2.0 * x[id.x] + p.add; }\n"
                                "}\n";

static void axpy_cpu(const hw_cpu_call *c) {
  const float *x = c->buf[0];
  float *y = c->buf[1];
  const axpy_params *p = c->buf[2];
  uint32_t n = min_u32(p->n, c->groups[0] * 64);
  for (uint32_t i = c->thread; i < n; i += c->n_threads) y[i] = 2 * x[i] + p->add;
}

static hw_kernel_desc axpy_desc(void) {
  return (hw_kernel_desc){.label = "axpy(T=f32)",
                          .wgsl = axpy_wgsl,
                          .n_bind = 3,
                          .bind = {HW_BIND_READ, HW_BIND_WRITE, HW_BIND_UNIFORM},
                          .workgroup = {64, 1, 1},
                          .cpu = axpy_cpu};
}

enum { N = 1000 };

/* Two buffers, a parameter block, the kernel, and programs x -> y and y -> x. */
typedef struct rig {
  hw *h;
  hw_buf x, y, params;
  hw_kernel kernel;
  hw_program forth, back;
} rig;

static hw_step axpy_step(const rig *r, const char *label, hw_buf from, hw_buf to) {
  return (hw_step){.label = label,
                   .kernel = r->kernel,
                   .n_bind = 3,
                   .groups = {div_up32(N, 64), 1, 1},
                   .bind = {{.buf = from}, {.buf = to}, {.buf = r->params}}};
}

static void rig_free(rig *r) {
  hw_program_free(r->h, r->back);
  hw_program_free(r->h, r->forth);
  hw_kernel_free(r->h, r->kernel);
  hw_buf_free(r->h, r->params);
  hw_buf_free(r->h, r->y);
  hw_buf_free(r->h, r->x);
}

static err rig_new(hw *h, rig *r) {
  *r = (rig){.h = h};
  err e = ERR_NONE;
  hw_kernel_desc k = axpy_desc();
  TRY(hw_buf_new(h, &(hw_buf_desc){.label = "x", .size = N * 4}, &r->x));
  TRY(hw_buf_new(h, &(hw_buf_desc){.label = "y", .size = N * 4}, &r->y));
  TRY(hw_buf_new(h,
                 &(hw_buf_desc){.label = "params", .size = sizeof(axpy_params), .use = HW_UNIFORM},
                 &r->params));
  TRY(hw_kernel_new(h, &k, &r->kernel));
  TRY(test_kernel_wait(h, r->kernel));
  hw_step s[2] = {axpy_step(r, "x to y", r->x, r->y), axpy_step(r, "y to x", r->y, r->x)};
  TRY(hw_program_new(h, "forth", &s[0], 1, &r->forth));
  TRY(hw_program_new(h, "back", &s[1], 1, &r->back));
done:
  if (e) rig_free(r);
  return e;
}

/* ---- cases ---- */

static void caps_sane(void) {
  hw *h = test_open();
  if (!h) return;
  const hw_caps *c = hw_get_caps(h);
  CHECK_EQ(c->kind, test_kind());
  CHECK(c->name[0] && c->api[0]);
  CHECK(c->kind == HW_CPU || c->library[0]);
  CHECK(c->max_buffer >= 256u << 20 && c->max_binding >= 128u << 20);
  CHECK(c->max_storage_buffers >= 8);
  CHECK(c->max_groups >= 65535);
  CHECK(c->max_invocations >= 128 && c->max_workgroup_mem >= 16384);
  CHECK(c->offset_align && c->offset_align <= 256 && !(c->offset_align & (c->offset_align - 1)));
  if (c->subgroups) CHECK(c->subgroup_min >= 4 && c->subgroup_min <= c->subgroup_max);
  printf("  %s | %s | %s | %s | f16 %d subgroups %d (%u-%u) dot4i8 %d timestamps %d software %d\n",
         c->name, c->driver, c->api, c->library, c->f16, c->subgroups, c->subgroup_min,
         c->subgroup_max, c->dot4i8, c->timestamps, c->software);
}

static void list(void) {
  hw_list_state *s = NULL;
  err e = hw_list_begin(test_kind(), NULL, &s);
  if (e == ERR_NO_DEVICE) SKIP("%s", err_text());
  REQUIRE(!e);
  hw_caps caps[8];
  uint32_t n = 0;
  double start = time_now();
  bool done = false;
  while (!(done = hw_list_poll(s, caps, 8, &n)) && time_now() - start < 60) continue;
  CHECK(done);
  hw_list_end(s);
  for (uint32_t i = 0; i < n; i++) {
    CHECK_EQ(caps[i].kind, test_kind());
    CHECK(caps[i].name[0] && caps[i].max_buffer);
  }
  hw *h = test_open();
  if (!h) return;
  REQUIRE(n > 0);
  CHECK_STR(caps[0].name, hw_get_caps(h)->name);
  CHECK_EQ(caps[0].f16, hw_get_caps(h)->f16);
}

static void no_such_device(void) {
  hw *h = NULL;
  if (test_kind() != HW_WEBGPU) {
    CHECK_ERR(hw_open(&(hw_open_desc){.kind = HW_WEBGPU, .library = "/nowhere/libnone.so"}, &h),
              ERR_NO_DEVICE, "");
    CHECK(!h);
    if (test_kind() == HW_CPU) return;
  }
  if (!test_open()) return;
  if (test_kind() == HW_WEBGPU) {
    CHECK_ERR(hw_open(&(hw_open_desc){.kind = HW_WEBGPU, .library = "/nowhere/libnone.so"}, &h),
              ERR_NO_DEVICE, "/nowhere/libnone.so");
    CHECK_ERR(hw_open(&(hw_open_desc){.kind = HW_WEBGPU, .library = "libm.so.6"}, &h),
              ERR_NO_DEVICE, "not a WebGPU library");
  }
  REQUIRE(!hw_open(&(hw_open_desc){.kind = test_kind(), .index = 99}, &h));
  double start = time_now();
  while (hw_poll(h) == HW_OPENING && time_now() - start < 60) continue;
  CHECK_EQ(hw_poll(h), HW_FAILED);
  CHECK_ERR(hw_error(h), ERR_NO_DEVICE, "gpu:99");
  hw_close(h);
}

static void not_open_yet(void) {
  hw *h = NULL;
  err e = hw_open(&(hw_open_desc){.kind = test_kind()}, &h);
  if (e == ERR_NO_DEVICE) SKIP("%s", err_text());
  REQUIRE(!e);
  hw_buf b;
  CHECK_ERR(hw_buf_new(h, &(hw_buf_desc){.label = "b", .size = 4}, &b), ERR_DEVICE, "not open yet");
  hw_close(h); /* while opening */
}

static void round_trip(void) {
  hw *h = test_open();
  if (!h) return;
  rig r;
  err e = rig_new(h, &r);
  if (e) FAIL("%s", err_text());
  REQUIRE(!e);
  float x[N], y[N];
  memset(y, 0x55, sizeof y);
  CHECK_OK(test_read(h, r.y, 0, y, sizeof y));
  for (int i = 0; i < N; i++) CHECK(y[i] == 0); /* buffers start cleared */
  for (int i = 0; i < N; i++) x[i] = (float)i * 0.5f;
  CHECK_OK(hw_buf_write(h, r.x, 0, x, sizeof x));
  axpy_params p = {.n = N - 3, .add = 7};
  hw_ticket t;
  CHECK_OK(hw_submit(h,
                     &(hw_submit_desc){.program = {r.forth},
                                       .params = r.params,
                                       .params_data = &p,
                                       .params_size = sizeof p,
                                       .read = r.y,
                                       .read_off = 8,
                                       .read_size = sizeof y - 8},
                     &t));
  if (test_wait(h, t)) CHECK_OK(hw_read(h, t, y, sizeof y - 8));
  for (int i = 0; i < N - 5; i++) CHECK(y[i] == 2 * x[i + 2] + 7);
  for (int i = N - 5; i < N - 2; i++) CHECK(y[i] == 0); /* beyond n: untouched */
  CHECK_ERR(hw_read(h, t, y, 4), ERR_ARG, "no read-back");
  rig_free(&r);
}

/* Read-backs that nobody wants any more, given up while they are under way. */
static void dropped(void) {
  hw *h = test_open();
  if (!h) return;
  rig r;
  REQUIRE(!rig_new(h, &r));
  for (int round = 0; round < 3; round++) {
    hw_ticket t[HW_IN_FLIGHT];
    for (int i = 0; i < HW_IN_FLIGHT; i++) {
      CHECK_OK(hw_submit(h, &(hw_submit_desc){.read = r.y, .read_size = 4}, &t[i]));
      CHECK_OK(hw_read(h, t[i], NULL, 0));
    }
    hw_ticket last;
    CHECK_OK(hw_submit(h, &(hw_submit_desc){.program = {r.forth}}, &last));
    CHECK(test_wait(h, last));
    CHECK_ERR(hw_read(h, t[0], NULL, 0), ERR_ARG, "read");
  }
  CHECK_OK(hw_error(h));
  rig_free(&r);
}

static void in_flight(void) {
  hw *h = test_open();
  if (!h) return;
  rig r;
  REQUIRE(!rig_new(h, &r));
  float one[N];
  for (int i = 0; i < N; i++) one[i] = 1;
  CHECK_OK(hw_buf_write(h, r.x, 0, one, sizeof one));
  hw_counts before = hw_get_counts(h);
  uint64_t allocs = mem_calls();
  hw_ticket t[HW_IN_FLIGHT];
  for (int i = 0; i < HW_IN_FLIGHT; i++) {
    axpy_params p = {.n = N, .add = (float)i};
    CHECK_OK(hw_submit(h,
                       &(hw_submit_desc){.program = {r.forth, r.back},
                                         .params = r.params,
                                         .params_data = &p,
                                         .params_size = sizeof p,
                                         .read = r.y,
                                         .read_size = 8},
                       &t[i]));
  }
  hw_ticket over;
  CHECK_ERR(hw_submit(h, &(hw_submit_desc){.read = r.y, .read_size = 4}, &over), ERR_LIMIT,
            "in flight");
  CHECK(!over.n && !hw_error(h));
  /* x' = 2 (2 x + i) + i, in the order of the submits; taken last first. */
  double want[HW_IN_FLIGHT], x = 1;
  for (int i = 0; i < HW_IN_FLIGHT; i++) {
    want[i] = (float)(2 * x + i);
    x = (float)(2 * want[i] + i);
  }
  for (int i = HW_IN_FLIGHT - 1; i >= 0; i--) {
    float y[2] = {0};
    if (!test_wait(h, t[i])) break;
    CHECK_OK(hw_read(h, t[i], i == 5 ? NULL : y, 8));
    if (i != 5) CHECK_NEAR(y[1], want[i], want[i] * 1e-6);
  }
  hw_counts after = hw_get_counts(h);
  CHECK_EQ(after.made_bindgroups, before.made_bindgroups);
  CHECK_EQ(after.made_buffers, before.made_buffers);
  CHECK_EQ(after.submits - before.submits, HW_IN_FLIGHT);
  CHECK_EQ(after.dispatches - before.dispatches, HW_IN_FLIGHT * 2);
  if (h && test_kind() != HW_CPU) CHECK_EQ(mem_calls(), allocs); /* a replay allocates nothing */
  rig_free(&r);
}

static void many_submits(void) {
  hw *h = test_open();
  if (!h) return;
  rig r;
  REQUIRE(!rig_new(h, &r));
  axpy_params p = {.n = N};
  hw_ticket t[100] = {{0}};
  for (int i = 0; i < 100; i++)
    CHECK_OK(hw_submit(
        h,
        &(hw_submit_desc){
            .program = {r.forth}, .params = r.params, .params_data = &p, .params_size = sizeof p},
        &t[i]));
  CHECK(test_wait(h, t[99])); /* no read-back: nothing to take */
  CHECK(hw_done(h, t[0]) && hw_done(h, t[50]));
  for (int i = 1; i < 100; i++) CHECK(t[i].n == t[i - 1].n + 1);
  rig_free(&r);
}

static void large_read(void) {
  hw *h = test_open();
  if (!h) return;
  uint64_t size = HW_READ_MAX + 4096;
  hw_buf b;
  CHECK_OK(hw_buf_new(h, &(hw_buf_desc){.label = "large", .size = size}, &b));
  uint32_t *p = mem_alloc((size_t)size), *q = mem_zalloc(1, (size_t)size);
  REQUIRE(p && q);
  for (uint64_t i = 0; i < size / 4; i++) p[i] = (uint32_t)i * 2654435761u;
  CHECK_OK(hw_buf_write(h, b, 0, p, size));
  CHECK_OK(test_read(h, b, 0, q, size));
  CHECK(memcmp(p, q, (size_t)size) == 0);
  hw_ticket t;
  CHECK_ERR(hw_submit(h, &(hw_submit_desc){.read = b, .read_size = HW_READ_MAX + 4}, &t), ERR_ARG,
            "read-back");
  mem_free(q);
  mem_free(p);
  hw_buf_free(h, b);
}

static void refused_buffers(void) {
  hw *h = test_open();
  if (!h) return;
  hw_buf b;
  CHECK_ERR(hw_buf_new(h, &(hw_buf_desc){.size = 4}, &b), ERR_ARG, "label");
  CHECK_ERR(hw_buf_new(h, &(hw_buf_desc){.label = "empty"}, &b), ERR_ARG, "'empty' has size 0");
  CHECK_ERR(hw_buf_new(h, &(hw_buf_desc){.label = "vast", .size = (uint64_t)1 << 60}, &b),
            ERR_LIMIT, "'vast'");
  CHECK_OK(hw_buf_new(h, &(hw_buf_desc){.label = "b", .size = 6}, &b)); /* rounded up to 8 */
  uint32_t w[4] = {0};
  CHECK_OK(hw_buf_write(h, b, 4, w, 4));
  CHECK_ERR(hw_buf_write(h, b, 2, w, 4), ERR_ARG, "'b'");
  CHECK_ERR(hw_buf_write(h, b, 0, w, 3), ERR_ARG, "'b'");
  CHECK_ERR(hw_buf_write(h, b, 8, w, 4), ERR_ARG, "'b'");
  hw_buf_free(h, b);
  CHECK_ERR(hw_buf_write(h, b, 0, w, 4), ERR_ARG, "not alive");
  hw_buf_free(h, b);
  CHECK(!hw_error(h)); /* none of these is sticky */
}

static void refused_kernels(void) {
  hw *h = test_open();
  if (!h) return;
  const hw_caps *c = hw_get_caps(h);
  hw_kernel k;
  hw_kernel_desc d = axpy_desc();
  d.label = "";
  CHECK_ERR(hw_kernel_new(h, &d, &k), ERR_ARG, "label");
  d = axpy_desc();
  d.workgroup[0] = c->max_invocations + 1;
  CHECK_ERR(hw_kernel_new(h, &d, &k), ERR_LIMIT, "axpy");
  d = axpy_desc();
  d.workgroup_mem = c->max_workgroup_mem + 1;
  CHECK_ERR(hw_kernel_new(h, &d, &k), ERR_LIMIT, "workgroup memory");
  d = axpy_desc();
  d.n_bind = HW_MAX_BINDINGS + 1;
  CHECK_ERR(hw_kernel_new(h, &d, &k), ERR_LIMIT, "bindings");
  d = axpy_desc();
  d.cpu = NULL;
  d.wgsl = NULL;
  CHECK_ERR(hw_kernel_new(h, &d, &k), ERR_ARG, "no form");
  err e;
  CHECK(hw_kernel_ready(h, (hw_kernel){12345}, &e) && e == ERR_ARG);
  CHECK(!hw_error(h));
}

static void refused_steps(void) {
  hw *h = test_open();
  if (!h) return;
  rig r;
  REQUIRE(!rig_new(h, &r));
  hw_program p;
  hw_step good = axpy_step(&r, "step", r.x, r.y), s = good;
  CHECK_ERR(hw_program_new(h, "", &s, 1, &p), ERR_ARG, "label");
  s.label = NULL;
  CHECK_ERR(hw_program_new(h, "p", &s, 1, &p), ERR_ARG, "label");
  s = axpy_step(&r, "alias", r.x, r.x);
  CHECK_ERR(hw_program_new(h, "p", &s, 1, &p), ERR_ARG, "'x' is bound twice");
  s = good;
  s.n_bind = 2;
  CHECK_ERR(hw_program_new(h, "p", &s, 1, &p), ERR_ARG, "2 bindings");
  s = good;
  s.bind[0].off = 4;
  CHECK_ERR(hw_program_new(h, "p", &s, 1, &p), ERR_ARG, "multiple of");
  s = good;
  s.bind[0].off = N * 4;
  CHECK_ERR(hw_program_new(h, "p", &s, 1, &p), ERR_ARG, "(x)");
  s = good;
  s.bind[0].size = N * 4 + 4;
  CHECK_ERR(hw_program_new(h, "p", &s, 1, &p), ERR_ARG, "(x)");
  s = good;
  s.bind[0].size = 6;
  CHECK_ERR(hw_program_new(h, "p", &s, 1, &p), ERR_ARG, "multiple of 4");
  s = good;
  s.bind[0].buf = r.params;
  CHECK_ERR(hw_program_new(h, "p", &s, 1, &p), ERR_ARG, "uniform");
  s = good;
  s.groups[1] = 0;
  CHECK_ERR(hw_program_new(h, "p", &s, 1, &p), ERR_LIMIT, "workgroups");
  s.groups[1] = hw_get_caps(h)->max_groups + 1;
  CHECK_ERR(hw_program_new(h, "p", &s, 1, &p), ERR_LIMIT, "workgroups");
  s = good;
  s.bind[1].buf = (hw_buf){0};
  CHECK_ERR(hw_program_new(h, "p", &s, 1, &p), ERR_ARG, "not a live buffer");
  s = good;
  hw_ticket t;
  hw_buf other;
  CHECK_OK(hw_buf_new(h, &(hw_buf_desc){.label = "other", .size = 4}, &other));
  hw_buf_free(h, other);
  CHECK_OK(hw_submit(h, &(hw_submit_desc){.program = {r.forth}}, &t)); /* not one of its own */
  CHECK(test_wait(h, t));
  hw_kernel_free(h, r.kernel);
  CHECK_ERR(hw_program_new(h, "p", &s, 1, &p), ERR_ARG, "kernel is not alive");
  CHECK_ERR(hw_submit(h, &(hw_submit_desc){.program = {r.forth}}, &t), ERR_ARG,
            "'forth' was freed");
  hw_program gone = r.back;
  hw_program_free(h, r.back);
  CHECK_ERR(hw_submit(h, &(hw_submit_desc){.program = {gone}}, &t), ERR_ARG, "not alive");
  CHECK(!hw_error(h));
  rig_free(&r);
}

static void bad_shader(void) {
  hw *h = test_open();
  if (!h) return;
  if (test_kind() == HW_CPU) return; /* the cpu back end reads no text */
  hw_kernel_desc d = axpy_desc();
  d.label = "broken(T=f32)";
  d.wgsl = "@compute @workgroup_size(64)\nfn main() { let a: u32 = nonsense; }\n";
  hw_kernel k;
  CHECK_OK(hw_kernel_new(h, &d, &k));
  CHECK_ERR(test_kernel_wait(h, k), ERR_DEVICE, "broken(T=f32)");
  CHECK(strstr(err_text(), "nonsense"));
  hw_kernel_free(h, k);
  d.label = "wrong bindings";
  d.wgsl = axpy_wgsl;
  d.bind[0] = HW_BIND_UNIFORM;
  CHECK_OK(hw_kernel_new(h, &d, &k));
  CHECK_ERR(test_kernel_wait(h, k), ERR_DEVICE, "wrong bindings");
  hw_kernel_free(h, k);
  CHECK_OK(hw_kernel_new(h, &d, &k));
  hw_kernel_free(h, k); /* while it compiles */
  for (int i = 0; i < 100; i++) hw_poll(h);
  CHECK(!hw_error(h)); /* a kernel's own error is not the device's */
}

static void timestamps(void) {
  hw *h = test_open();
  if (!h) return;
  if (!hw_get_caps(h)->timestamps) SKIP("no timestamps on this device");
  rig r;
  REQUIRE(!rig_new(h, &r));
  enum { STEPS = 2100 }; /* more than one query set holds */
  hw_step *s = mem_zalloc(STEPS, sizeof *s);
  uint64_t *ns = mem_zalloc(STEPS + 1, sizeof *ns);
  REQUIRE(s && ns);
  for (int i = 0; i < STEPS; i++)
    s[i] = axpy_step(&r, "timed", i % 2 ? r.y : r.x, i % 2 ? r.x : r.y);
  hw_program p;
  CHECK_OK(hw_program_new(h, "timed", s, STEPS, &p));
  hw_ticket t;
  double start = time_now();
  CHECK_OK(hw_submit(
      h,
      &(hw_submit_desc){.program = {p, r.forth}, .timestamps = true, .read = r.x, .read_size = 4},
      &t));
  test_wait(h, t);
  double wall = (time_now() - start) * 1e9, sum = 0;
  uint32_t n = STEPS + 1;
  CHECK_OK(hw_times(h, t, ns, &n));
  CHECK_EQ(n, STEPS + 1);
  for (uint32_t i = 0; i < n; i++) sum += (double)ns[i];
  CHECK(sum > 0 && sum <= wall * 1.05);
  CHECK_OK(hw_read(h, t, NULL, 0));
  n = 1;
  CHECK_ERR(hw_times(h, (hw_ticket){t.n + 1}, ns, &n), ERR_ARG, "not timed");
  for (int i = 0; i < 10; i++) { /* again and again, one after the other */
    CHECK_OK(hw_submit(h, &(hw_submit_desc){.program = {r.forth}, .timestamps = true}, &t));
    test_wait(h, t);
    n = STEPS;
    CHECK_OK(hw_times(h, t, ns, &n));
    CHECK_EQ(n, 1);
  }
  hw_ticket many[5] = {{0}};
  int sent = 0;
  err e = ERR_NONE;
  while (!e && sent < 5) {
    e = hw_submit(h, &(hw_submit_desc){.program = {r.forth}, .timestamps = true}, &many[sent]);
    sent += !e;
  }
  if (e) CHECK_ERR(e, ERR_LIMIT, "timed submits in flight");
  CHECK(sent >= 4);
  test_wait(h, many[sent - 1]);
  n = STEPS;
  CHECK_OK(hw_times(h, many[sent - 1], ns, &n));
  hw_program_free(h, p);
  mem_free(ns);
  mem_free(s);
  rig_free(&r);
}

static void pretend_limits(void) {
  hw *h = test_open_desc((hw_open_desc){.no_f16 = true,
                                        .no_subgroups = true,
                                        .no_dot4i8 = true,
                                        .limit_binding = 4096,
                                        .no_robustness = true});
  if (!h) return;
  const hw_caps *c = hw_get_caps(h);
  CHECK(!c->f16 && !c->subgroups && !c->dot4i8);
  if (test_kind() != HW_CPU) CHECK_EQ(c->max_binding, 4096);
  rig r;
  REQUIRE(!rig_new(h, &r));
  hw_buf big;
  CHECK_OK(hw_buf_new(h, &(hw_buf_desc){.label = "big", .size = 8192}, &big));
  hw_step s = axpy_step(&r, "step", big, r.y);
  hw_program p = {0};
  if (c->max_binding == 4096) CHECK_ERR(hw_program_new(h, "p", &s, 1, &p), ERR_LIMIT, "(big)");
  s.bind[0].size = 4096;
  CHECK_OK(hw_program_new(h, "p", &s, 1, &p));
  if (test_kind() != HW_CPU) { /* the device itself refuses too */
    hw_kernel_desc d = axpy_desc();
    d.wgsl = "enable f16; @compute @workgroup_size(1) fn main() { let a = 1h; }";
    d.n_bind = 0;
    hw_kernel k;
    CHECK_OK(hw_kernel_new(h, &d, &k));
    CHECK_ERR(test_kernel_wait(h, k), ERR_DEVICE, "f16");
  }
  hw_close(h); /* frees all that is alive */
}

static void forced_failures(void) {
  hw *h = test_open_desc((hw_open_desc){0});
  if (!h) return;
  hw_buf b;
  hw_fail_at(h, 2, ERR_DEVICE_NOMEM);
  CHECK_OK(hw_buf_new(h, &(hw_buf_desc){.label = "first", .size = 4}, &b));
  CHECK_ERR(hw_buf_new(h, &(hw_buf_desc){.label = "second", .size = 4}, &b), ERR_DEVICE_NOMEM,
            "second");
  CHECK_OK(hw_buf_new(h, &(hw_buf_desc){.label = "third", .size = 4}, &b)); /* not sticky */
  hw_fail_at(h, 1, ERR_DEVICE);
  uint32_t w = 0;
  CHECK_ERR(hw_buf_write(h, b, 0, &w, 4), ERR_DEVICE, "forced");
  CHECK_ERR(hw_buf_write(h, b, 0, &w, 4), ERR_DEVICE, "forced"); /* sticky */
  CHECK_EQ(hw_poll(h), HW_FAILED);
  hw_close(h);
}

static void lost(void) {
  hw *h = test_open_desc((hw_open_desc){0});
  if (!h) return;
  rig r;
  REQUIRE(!rig_new(h, &r));
  hw_ticket t;
  CHECK_OK(hw_submit(h, &(hw_submit_desc){.program = {r.forth}, .read = r.y, .read_size = 4}, &t));
  log_set(NULL, NULL);
  hw_lose(h);
  double start = time_now();
  while (hw_poll(h) != HW_FAILED && time_now() - start < 20) continue;
  CHECK_ERR(hw_error(h), ERR_DEVICE_LOST, "lost");
  CHECK(hw_done(h, t)); /* a waiting loop ends */
  float y;
  CHECK_ERR(hw_read(h, t, &y, 4), ERR_DEVICE_LOST, "lost");
  CHECK_ERR(hw_submit(h, &(hw_submit_desc){.program = {r.forth}}, &t), ERR_DEVICE_LOST, "lost");
  hw_close(h);                           /* with everything alive */
  h = test_open_desc((hw_open_desc){0}); /* and a new one can be had */
  CHECK(h);
  hw_close(h);
}

static void no_memory(void) {
  hw *h = test_open();
  if (!h) return;
  /* Every allocation of ours fails once; nothing leaks, nothing sticks. */
  uint64_t live = mem_live();
  err e = ERR_NOMEM;
  for (uint64_t n = 1; e && n < 200; n++) {
    rig r;
    mem_fail_at(n, false);
    e = rig_new(h, &r);
    mem_fail_at(0, false);
    if (!e) rig_free(&r);
    else CHECK_EQ(e, ERR_NOMEM);
    for (int i = 0; i < 50; i++) hw_poll(h);
  }
  CHECK(!e && !hw_error(h));
  if (test_kind() == HW_CPU) CHECK_EQ(mem_live(), live);
}

void suite_hw(void) {
  RUN(caps_sane);
  RUN(list);
  RUN(no_such_device);
  RUN(not_open_yet);
  RUN(round_trip);
  RUN(dropped);
  RUN(in_flight);
  RUN(many_submits);
  RUN(large_read);
  RUN(refused_buffers);
  RUN(refused_kernels);
  RUN(refused_steps);
  RUN(bad_shader);
  RUN(timestamps);
  RUN(pretend_limits);
  RUN(forced_failures);
  RUN(lost);
  RUN(no_memory);
}
