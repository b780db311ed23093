/* Base: half floats against the definition, random numbers, memory hooks. */
#include "base/math.h"
#include "base/mem.h"
#include "test.h"

static void half_round_trip(void) {
  for (uint32_t h = 0; h < 0x10000; h++) {
    float f = f16_to_f32((uint16_t)h);
    if (f != f) continue;
    if (f32_to_f16(f) != h) FAIL("f16 %04x -> %g -> %04x", h, (double)f, f32_to_f16(f));
  }
  CHECK_NEAR(f16_to_f32(0x3C00), 1, 0);
  CHECK_NEAR(f16_to_f32(0x0001), 0x1p-24, 0);
  CHECK_NEAR(f16_to_f32(0x7BFF), 65504, 0);
  CHECK_EQ(f32_to_f16(65520.0f), 0x7C00);
  CHECK_EQ(f32_to_f16(65519.0f), 0x7BFF);
  CHECK_EQ(f32_to_f16(1.0f + 0x1p-11f), 0x3C00);     /* tie to even */
  CHECK_EQ(f32_to_f16(1.0f + 3 * 0x1p-11f), 0x3C02); /* tie to even, up */
  CHECK_EQ(f32_to_bf16(1.0f + 0x1p-8f), 0x3F80);
  CHECK_EQ(f32_to_bf16(1.0f + 3 * 0x1p-8f), 0x3F82);
}

static void pcg_known(void) {
  /* From an independent Python evaluation of the formula. */
  CHECK_EQ(pcg_hash(0), 129708002u);
  CHECK_EQ(pcg_hash(1), 2831084092u);
}

static void alloc_failure(void) {
  uint64_t before = mem_live();
  mem_fail_at(2, false);
  void *a = mem_alloc(10), *b = mem_alloc(10), *c = mem_alloc(10);
  CHECK(a && !b && c);
  CHECK(((uintptr_t)a & 63) == 0);
  mem_free(a);
  mem_free(c);
  CHECK_EQ(mem_live(), before);
  CHECK(mem_zalloc(SIZE_MAX / 2, 3) == NULL);
}

static void arena_and_buf(void) {
  uint64_t before = mem_live();
  arena a = {0};
  char *s = arena_printf(&a, "%s-%d", "x", 7);
  CHECK_STR(s, "x-7");
  CHECK(arena_alloc(&a, 1 << 20, 1) != NULL);
  arena_free(&a);
  buf b = {0};
  for (int i = 0; i < 1000; i++) buf_printf(&b, "%d,", i % 10);
  CHECK_EQ(b.n, 2000);
  buf_free(&b);
  CHECK_EQ(mem_live(), before);
}

void suite_base(void) {
  RUN(half_round_trip);
  RUN(pcg_known);
  RUN(alloc_failure);
  RUN(arena_and_buf);
}
