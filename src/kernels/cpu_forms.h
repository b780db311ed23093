/* All fast forms at the level CPU_LEVEL; each file that includes this defines one table. */
#ifndef FRIT_KERNELS_CPU_FORMS_H
#define FRIT_KERNELS_CPU_FORMS_H

#include "kernels/cpu_attention.h"
#include "kernels/cpu_isa_impl.h"
#include "kernels/cpu_matmul_q.h"
#include "kernels/cpu_matvec_q.h"
#include "kernels/cpu_rows.h"

_Static_assert((int)PANEL <= (int)CPU_PANEL_MAX && (int)STRIP <= (int)CPU_STRIP_MAX &&
                   (int)KEYS <= (int)CPU_KEYS_MAX,
               "scratch");

#define CPU_FORMS_TABLE(text)                                                                      \
  {.name = (text),                                                                                 \
   .matvec = matvec_exact,                                                                         \
   .matvec_rounding = matvec_rounding,                                                             \
   .matmul = matmul_exact,                                                                         \
   .matmul_rounding = matmul_rounding,                                                             \
   .attention = attention_form,                                                                    \
   .rmsnorm = rmsnorm_form,                                                                        \
   .silu_mul = silu_mul_form,                                                                      \
   .add = add_form,                                                                                \
   .embed = embed_form,                                                                            \
   .kv_append = kv_append_form,                                                                    \
   .rope = rope_form}

#endif
