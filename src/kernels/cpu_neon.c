/* The fast forms for 64-bit ARM with what each of them has. */
#if defined(__aarch64__)
#define CPU_LEVEL 5
#include "kernels/cpu_forms.h"

const cpu_forms cpu_forms_neon = CPU_FORMS_TABLE("neon");
#else
typedef int cpu_neon_is_empty;
#endif
