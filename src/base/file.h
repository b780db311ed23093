/* Files: read-only mapping with 64-bit sizes, and whole-file reads and writes. */
#ifndef FRIT_BASE_FILE_H
#define FRIT_BASE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

typedef struct file_map {
  const uint8_t *data; /* valid until file_unmap; NULL for an empty file */
  uint64_t size;
} file_map;

/* Maps the file at `path` (a regular file). Errors: ERR_IO, naming the path and the reason. */
err file_map_open(const char *path, file_map *out);
void file_map_close(file_map *m);
/* Tells the system that [off, off+size) will not be needed soon (page cache may be dropped from
 * this process's resident set). A hint only. */
void file_map_drop(const file_map *m, uint64_t off, uint64_t size);

/* Reads a file of at most `limit` bytes (mem_free the result); NUL-terminated beyond *size. */
err file_read(const char *path, uint64_t limit, char **out, size_t *size);
/* Is there something at `path` that is no regular file (a device, a pipe, a folder)? Renaming a
 * file to that name would take its place. */
bool file_special(const char *path);
/* Writes to `path` through a temporary name, so that a failure leaves no half-written file;
 * straight into a device or a pipe. */
err file_write(const char *path, const void *bytes, size_t size);

/* Bytes of memory that the system could still give out, 0 when unknown. */
uint64_t file_memory_free(void);

/* Seconds on a monotonic clock. */
double time_now(void);

#endif
