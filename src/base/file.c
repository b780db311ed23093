/* Files by path: POSIX. Apart from file_host.c, so that a module for browsers, which has no files,
 * links none of it. */
#define _GNU_SOURCE
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#ifndef __wasm__
#include <sys/mman.h>
#endif

#include "base/mem.h"

#ifndef __wasm__
err file_map_open(const char *path, file_map *out) {
  *out = (file_map){0};
  err e = ERR_NONE;
  int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a pipe would wait for its writer */
  if (fd < 0) return err_set(ERR_IO, "%s: %s", path, strerror(errno));
  struct stat st;
  if (fstat(fd, &st) != 0) {
    e = err_set(ERR_IO, "%s: %s", path, strerror(errno));
  } else if (!S_ISREG(st.st_mode)) {
    e = err_set(ERR_IO, "%s: %s", path,
                S_ISDIR(st.st_mode) ? "is a directory" : "not a regular file");
  } else if (st.st_size > 0) {
    void *p = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED, fd, 0);
    if (p == MAP_FAILED) e = err_set(ERR_IO, "%s: cannot map: %s", path, strerror(errno));
    else *out = (file_map){.data = p, .size = (uint64_t)st.st_size};
  }
  close(fd);
  return e;
}
#else
/* No mapping there (the tests' files are small): a copy in memory. */
err file_map_open(const char *path, file_map *out) {
  *out = (file_map){0};
  char *p;
  size_t n;
  err e = file_read(path, UINT32_MAX, &p, &n);
  if (!e) *out = (file_map){.data = (uint8_t *)p, .size = n};
  return e;
}
#endif

err file_read(const char *path, uint64_t limit, char **out, size_t *size) {
  *out = NULL;
  *size = 0;
  err e = ERR_NONE;
  buf b = {0};
  FILE *f = fopen(path, "rb");
  if (!f) return err_set(ERR_IO, "%s: %s", path, strerror(errno));
  char chunk[16384];
  size_t n;
  do {
    n = fread(chunk, 1, sizeof chunk, f);
    buf_put(&b, chunk, n);
    if (b.n > limit) {
      e = err_set(ERR_LIMIT, "%s: larger than %llu bytes", path, (unsigned long long)limit);
      goto done;
    }
  } while (n == sizeof chunk);
  if (ferror(f)) e = err_set(ERR_IO, "%s: %s", path, strerror(errno));
  buf_put(&b, "", 0);
  if (!e && b.failed) e = mem_err(path, b.n);
done:
  fclose(f);
  if (e) {
    buf_free(&b);
    return e;
  }
  *out = b.p;
  *size = b.n;
  return ERR_NONE;
}

bool file_special(const char *path) {
  struct stat st;
  return stat(path, &st) == 0 && !S_ISREG(st.st_mode);
}

static err write_all(const char *name, const char *path, const void *bytes, size_t size) {
  FILE *f = fopen(name, "wb");
  if (!f) return err_set(ERR_IO, "%s: %s", path, strerror(errno));
  bool whole = fwrite(bytes, 1, size, f) == size && fflush(f) == 0;
  int why = errno;
  if (fclose(f) != 0 && whole) {
    whole = false;
    why = errno;
  }
  return whole ? ERR_NONE : err_set(ERR_IO, "%s: cannot write: %s", path, strerror(why));
}

err file_write(const char *path, const void *bytes, size_t size) {
  if (file_special(path)) return write_all(path, path, bytes, size);
  err e = ERR_NONE;
  buf tmp = {0};
  buf_printf(&tmp, "%s.part", path);
  if (tmp.failed) {
    e = mem_err(path, strlen(path));
    goto done;
  }
  e = write_all(tmp.p, path, bytes, size);
  if (!e && rename(tmp.p, path) != 0)
    e = err_set(ERR_IO, "%s: cannot write: %s", path, strerror(errno));
  if (e) remove(tmp.p);
done:
  buf_free(&tmp);
  return e;
}
