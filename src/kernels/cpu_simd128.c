/* The fast forms for WebAssembly with vectors of 128 bits, which the whole module assumes. */
#if defined(__wasm_simd128__)
#define CPU_LEVEL 7
#include "kernels/cpu_forms.h"

const cpu_forms cpu_forms_simd128 = CPU_FORMS_TABLE("simd128");
#else
typedef int cpu_simd128_is_empty;
#endif
