/* What outlives the opening of a file, and what the host tells: memory, clock. */
#define _GNU_SOURCE
#include <stdio.h>
#include <time.h>
#ifndef __wasm__
#include <sys/mman.h>
#include <unistd.h>
#endif

#include "base/file.h"
#include "base/mem.h"

#ifdef __wasm__
void file_map_close(file_map *m) {
  mem_free((void *)(uintptr_t)m->data);
  *m = (file_map){0};
}

void file_map_drop(const file_map *m, uint64_t off, uint64_t size) {
  (void)m, (void)off, (void)size;
}

/* What a 32-bit memory can still grow by. */
uint64_t file_memory_free(void) {
  return ((uint64_t)65536 - __builtin_wasm_memory_size(0)) * 65536;
}
#else
void file_map_close(file_map *m) {
  if (m->data) munmap((void *)(uintptr_t)m->data, (size_t)m->size);
  *m = (file_map){0};
}

void file_map_drop(const file_map *m, uint64_t off, uint64_t size) {
  uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
  uint64_t first = (off + page - 1) / page * page, last = (off + size) / page * page;
  if (last > first)
    madvise((void *)(uintptr_t)(m->data + first), (size_t)(last - first), MADV_DONTNEED);
}

uint64_t file_memory_free(void) {
  FILE *f = fopen("/proc/meminfo", "r");
  if (!f) return 0;
  char line[128];
  unsigned long long kb = 0;
  while (!kb && fgets(line, sizeof line, f)) (void)sscanf(line, "MemAvailable: %llu kB", &kb);
  fclose(f);
  return (uint64_t)kb * 1024;
}
#endif

double time_now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}
