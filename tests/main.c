/* frit-tests [--quick] [--device cpu|gpu] [--list] [FILTER ...]: runs every case whose
 * "suite.case" contains one of the filters; ends with the line "N passed, N failed, N skipped". */
#include <dirent.h>
#include <stdarg.h>
#include <stdlib.h>

#include "base/err.h"
#include "test.h"
#include "test_suites.h" /* generated: SUITES(X) over tests/test_*.c */

#define X(name) void suite_##name(void);
SUITES(X)
#undef X

static const char *suite, *device = "cpu", *filters[32];
static int n_filters, passed, failed, skipped, failures_here;
static bool quick, quiet, list, skipped_here;

void test_run(const char *name, void (*fn)(void)) {
  char full[200];
  snprintf(full, sizeof full, "%s.%s", suite, name);
  bool wanted = n_filters == 0;
  for (int i = 0; i < n_filters; i++) wanted = wanted || strstr(full, filters[i]);
  if (!wanted) return;
  if (list) {
    puts(full);
    return;
  }
  failures_here = 0;
  skipped_here = false;
  fn();
  if (failures_here) failed++;
  else if (skipped_here) skipped++;
  else passed++;
  if (!skipped_here || failures_here) printf("%s %s\n", failures_here ? "FAIL" : "ok  ", full);
  fflush(stdout);
}

void test_fail(const char *file, int line, const char *fmt, ...) {
  failures_here++;
  if (failures_here > 10) return;
  va_list ap;
  va_start(ap, fmt);
  printf("%s:%d: ", file, line);
  vprintf(fmt, ap);
  printf("\n");
  va_end(ap);
}

void test_skip(const char *fmt, ...) {
  skipped_here = true;
  const char *must = getenv("REQUIRE_GPU");
  va_list ap;
  va_start(ap, fmt);
  printf("SKIP %s: ", suite);
  vprintf(fmt, ap);
  printf("\n");
  va_end(ap);
  if (must && must[0] == '1') failures_here++;
}

bool test_quick(void) { return quick; }
const char *test_device(void) { return device; }

const char *test_data(const char *rel) {
  static char path[512];
  const char *dir = getenv("FRIT_TEST_DATA");
  snprintf(path, sizeof path, "%s/%s", dir ? dir : "tests/data", rel);
  return path;
}

/* The folder of this process's own for its files, unless FRIT_TEST_TMP names one; it goes at the
 * end with all that is in it. The wasm build is always given one. */
static char own_tmp[] = "/tmp/frit-tests.XXXXXX";

#ifdef __wasm__
static bool make_own_tmp(void) { return false; }
#else
static void remove_own_tmp(void) {
  char path[512];
  DIR *dir = opendir(own_tmp);
  for (struct dirent *f; dir && (f = readdir(dir));) {
    snprintf(path, sizeof path, "%s/%s", own_tmp, f->d_name);
    if (f->d_name[0] != '.') remove(path);
  }
  if (dir) closedir(dir);
  remove(own_tmp);
}

static bool make_own_tmp(void) { return mkdtemp(own_tmp) && atexit(remove_own_tmp) == 0; }
#endif

const char *test_tmp(const char *rel) {
  static char path[512];
  static const char *dir;
  if (!dir) dir = getenv("FRIT_TEST_TMP");
  if (!dir) dir = make_own_tmp() ? own_tmp : "/tmp";
  snprintf(path, sizeof path, "%s/%s", dir, rel);
  return path;
}

const char *test_model(void) {
  const char *path = getenv("FRIT_MODEL");
  if (!path) path = ".cache/models/SmolLM2-135M-Instruct.Q4_1.gguf";
  FILE *f = fopen(path, "rb");
  if (!f) return NULL;
  fclose(f);
  return path;
}

void test_quiet(bool on) { quiet = on; }

static void print_log(void *user, log_level level, const char *text) {
  (void)user;
  if (!quiet && level >= LOG_WARN) fprintf(stderr, "  log: %s\n", text);
}

int main(int argc, char **argv) {
  log_set(print_log, NULL);
  for (int i = 1; i < argc; i++) {
    if (strcmp(argv[i], "--quick") == 0) quick = true;
    else if (strcmp(argv[i], "--list") == 0) list = true;
    else if (strcmp(argv[i], "--device") == 0 && i + 1 < argc) device = argv[++i];
    else if (n_filters < 32) filters[n_filters++] = argv[i];
  }
#define X(name)                                                                                    \
  suite = #name;                                                                                   \
  suite_##name();
  SUITES(X)
#undef X
  if (list) return 0;
  printf("%d passed, %d failed, %d skipped\n", passed, failed, skipped);
  return failed || passed + skipped == 0;
}
