/* Owns the worker threads. Between kernels of one program workers spin (a token has hundreds of
 * kernels, each some 10 us long); when idle for about 50 us they sleep on a condition variable. */
#define _GNU_SOURCE
#include "hw/cpu.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "hw/hw.h"

#ifdef __wasm__

struct hw_cpu_pool {
  int unused;
};

err hw_cpu_pool_new(uint32_t threads, hw_cpu_pool **out) {
  (void)threads;
  *out = mem_zalloc(1, sizeof **out);
  return *out ? ERR_NONE : mem_err("pool", sizeof **out);
}
void hw_cpu_pool_free(hw_cpu_pool *p) { mem_free(p); }
uint32_t hw_cpu_pool_threads(const hw_cpu_pool *p) {
  (void)p;
  return 1;
}
void hw_cpu_pool_run(hw_cpu_pool *p, void (*fn)(void *ctx, uint32_t thread), void *ctx) {
  (void)p;
  fn(ctx, 0);
}
void hw_cpu_pool_barrier(hw_cpu_pool *p) { (void)p; }
uint32_t hw_cpu_cores(void) { return 1; }
void hw_cpu_name(char *out, uint32_t size) { snprintf(out, size, "WebAssembly"); }

#else

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <unistd.h>

enum { SPINS = 20000 };

typedef struct worker {
  struct hw_cpu_pool *pool;
  uint32_t thread;
  pthread_t id;
} worker;

struct hw_cpu_pool { // NOLINT(clang-analyzer-optin.performance.Padding): lines of their own
  uint32_t n;
  worker *workers; /* [n - 1] */
  uint32_t started;
  void (*fn)(void *ctx, uint32_t thread);
  void *ctx;
  _Alignas(64) atomic_uint generation; /* a new value: there is work */
  _Alignas(64) atomic_uint arrived;    /* barrier */
  _Alignas(64) atomic_uint phase;
  _Alignas(64) atomic_uint sleepers;
  atomic_bool quit;
  pthread_mutex_t mutex;
  pthread_cond_t wake;
};

static inline void relax(void) {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("yield");
#endif
}

/* Sense-reversing barrier; yields now and then so that an oversubscribed machine makes progress. */
void hw_cpu_pool_barrier(hw_cpu_pool *p) {
  if (p->n == 1) return;
  unsigned phase = atomic_load_explicit(&p->phase, memory_order_acquire);
  if (atomic_fetch_add_explicit(&p->arrived, 1, memory_order_acq_rel) == p->n - 1) {
    atomic_store_explicit(&p->arrived, 0, memory_order_relaxed);
    atomic_store_explicit(&p->phase, phase + 1, memory_order_release);
    return;
  }
  for (unsigned i = 1; atomic_load_explicit(&p->phase, memory_order_acquire) == phase; i++) {
    relax();
    if (i > 500) sched_yield();
  }
}

static unsigned wait_for_work(hw_cpu_pool *p, unsigned seen) {
  for (int i = 0; i < SPINS; i++) {
    unsigned g = atomic_load_explicit(&p->generation, memory_order_acquire);
    if (g != seen) return g;
    relax();
  }
  pthread_mutex_lock(&p->mutex);
  atomic_fetch_add(&p->sleepers, 1);
  while (atomic_load(&p->generation) == seen) pthread_cond_wait(&p->wake, &p->mutex);
  atomic_fetch_sub(&p->sleepers, 1);
  pthread_mutex_unlock(&p->mutex);
  return atomic_load(&p->generation);
}

static void announce(hw_cpu_pool *p) {
  atomic_fetch_add(&p->generation, 1);
  if (atomic_load(&p->sleepers)) {
    pthread_mutex_lock(&p->mutex);
    pthread_cond_broadcast(&p->wake);
    pthread_mutex_unlock(&p->mutex);
  }
}

static void *work(void *arg) {
  worker *w = arg;
  hw_cpu_pool *p = w->pool;
  unsigned seen = 0;
  for (;;) {
    seen = wait_for_work(p, seen);
    if (atomic_load(&p->quit)) return NULL;
    p->fn(p->ctx, w->thread);
    hw_cpu_pool_barrier(p);
  }
}

void hw_cpu_pool_run(hw_cpu_pool *p, void (*fn)(void *ctx, uint32_t thread), void *ctx) {
  if (p->n == 1) {
    fn(ctx, 0);
    return;
  }
  p->fn = fn;
  p->ctx = ctx;
  announce(p);
  fn(ctx, 0);
  hw_cpu_pool_barrier(p);
}

err hw_cpu_pool_new(uint32_t threads, hw_cpu_pool **out) {
  *out = NULL;
  hw_cpu_pool *p = mem_zalloc(1, sizeof *p);
  if (!p) return mem_err("thread pool", sizeof *p);
  p->n = threads < 1 ? 1 : threads > HW_MAX_THREADS ? HW_MAX_THREADS : threads;
  p->workers = mem_zalloc(p->n, sizeof *p->workers);
  if (!p->workers) {
    mem_free(p);
    return mem_err("thread pool", threads * sizeof(worker));
  }
  pthread_mutex_init(&p->mutex, NULL);
  pthread_cond_init(&p->wake, NULL);
  for (uint32_t i = 0; i + 1 < p->n; i++) {
    p->workers[i] = (worker){.pool = p, .thread = i + 1};
    if (pthread_create(&p->workers[i].id, NULL, work, &p->workers[i]) != 0) {
      hw_cpu_pool_free(p);
      return err_set(ERR_NOMEM, "cannot start thread %u of %u", i + 1, threads);
    }
    p->started++;
  }
  *out = p;
  return ERR_NONE;
}

void hw_cpu_pool_free(hw_cpu_pool *p) {
  if (!p) return;
  atomic_store(&p->quit, true);
  announce(p);
  for (uint32_t i = 0; i < p->started; i++) pthread_join(p->workers[i].id, NULL);
  pthread_cond_destroy(&p->wake);
  pthread_mutex_destroy(&p->mutex);
  mem_free(p->workers);
  mem_free(p);
}

uint32_t hw_cpu_pool_threads(const hw_cpu_pool *p) { return p->n; }

uint32_t hw_cpu_cores(void) {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0) return (uint32_t)CPU_COUNT(&set);
  long n = sysconf(_SC_NPROCESSORS_ONLN);
  return n > 0 ? (uint32_t)n : 1;
}

void hw_cpu_name(char *out, uint32_t size) {
  snprintf(out, size, "CPU");
  FILE *f = fopen("/proc/cpuinfo", "r");
  if (!f) return;
  char line[256];
  while (fgets(line, sizeof line, f)) {
    char *colon = strchr(line, ':');
    if (strncmp(line, "model name", 10) != 0 || !colon) continue;
    line[strcspn(line, "\n")] = 0;
    snprintf(out, size, "%s", colon + 1 + (colon[1] == ' '));
    break;
  }
  fclose(f);
}

#endif

void hw_cpu_barrier(const hw_cpu_call *c) {
  if (c->n_threads > 1) hw_cpu_pool_barrier(c->pool);
}
