/* Each base op against its twin, on the device that --device names. */
#include "base/math.h"
#include "test.h"
#include "util_hw.h"
#include "util_kernels.h"

static const char *const summed = "f32 sums in another order";

static void matvec_case(dtype t, uint32_t n, uint32_t k, uint32_t row0, uint32_t above) {
  const uint32_t rows = row0 + n + above, yn = n + 5, y0 = 3;
  kt_run(&(kt_case){
      .spec = {.op = KERNEL_MATVEC, .dim = {n, k, row0, rows, yn, y0}, .type = {t}},
      .step = {.n_tok = 1},
      .bind = {{KT_WEIGHTS, rows, k, .type = t}, {KT_FLOATS, 1, k}, {KT_POISON, 1, yn}, {KT_STEP}},
      .tol = 1e-5,
      .why = summed,
      .seed = n + k});
}

static void matvec_types(void) {
  if (!test_open()) return;
  for (uint32_t i = 0; i < kt_n_types; i++) {
    matvec_case(kt_types[i], 33, 256, 0, 0);
    matvec_case(kt_types[i], 70, 768, 5, 2);
  }
}

void suite_kernels(void) { RUN(matvec_types); }
