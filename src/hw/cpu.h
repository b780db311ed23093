/* The worker pool of the cpu back end; internal to src/hw. Without threads (wasm) it has one. */
#ifndef FRIT_HW_CPU_H
#define FRIT_HW_CPU_H

#include <stdint.h>

#include "base/err.h"

typedef struct hw_cpu_pool hw_cpu_pool;
err hw_cpu_pool_new(uint32_t threads, hw_cpu_pool **out);
void hw_cpu_pool_free(hw_cpu_pool *p);
uint32_t hw_cpu_pool_threads(const hw_cpu_pool *p);
/* Runs fn(ctx, thread) on every thread of the pool, the caller being thread 0; returns when all are
 * done. */
void hw_cpu_pool_run(hw_cpu_pool *p, void (*fn)(void *ctx, uint32_t thread), void *ctx);
void hw_cpu_pool_barrier(hw_cpu_pool *p);
uint32_t hw_cpu_cores(void);
void hw_cpu_name(char *out, uint32_t size); /* the processor's name */

#endif
