/* The fast forms with what the compiler may assume of any machine of its target. */
#define CPU_LEVEL 0
#include "kernels/cpu_forms.h"

const cpu_forms cpu_forms_base = CPU_FORMS_TABLE("base");
