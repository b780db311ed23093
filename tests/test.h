/* The test harness: small, plain C, compiles to wasm too.
 *
 * A file tests/test_NAME.c defines `void suite_NAME(void)` whose body is RUN(case) lines; CMake
 * finds it by its name. CHECK keeps going after a failure; REQUIRE leaves the case. SKIP(reason) is
 * loud and counted, and fails where REQUIRE_GPU=1. */
#ifndef FRIT_TEST_H
#define FRIT_TEST_H

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

void test_run(const char *name, void (*fn)(void));
void test_fail(const char *file, int line, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
void test_skip(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void test_quiet(bool on);               /* no log lines: for errors provoked by the hundred */
bool test_quick(void);                  /* `make check`: leave the long cases out */
const char *test_device(void);          /* "cpu" or "gpu": what device-dependent cases open */
const char *test_data(const char *rel); /* path under tests/data; valid until the next call */
const char *test_model(void);           /* path of the demo model, or NULL when not there */
const char *test_tmp(const char *rel);  /* path in a scratch folder; valid until the next call */

#define RUN(fn) test_run(#fn, fn)
#define FAIL(...) test_fail(__FILE__, __LINE__, __VA_ARGS__)
#define CHECK(cond)                                                                                \
  do {                                                                                             \
    if (!(cond)) FAIL("%s", #cond);                                                                \
  } while (0)
#define REQUIRE(cond)                                                                              \
  do {                                                                                             \
    if (!(cond)) {                                                                                 \
      FAIL("%s", #cond);                                                                           \
      return;                                                                                      \
    }                                                                                              \
  } while (0)
#define CHECK_EQ(a, b)                                                                             \
  do {                                                                                             \
    long long a_ = (long long)(a), b_ = (long long)(b);                                            \
    if (a_ != b_) FAIL("%s is %lld, not %lld (%s)", #a, a_, b_, #b);                               \
  } while (0)
#define CHECK_STR(a, b)                                                                            \
  do {                                                                                             \
    const char *a_ = (a), *b_ = (b);                                                               \
    if (!a_ || !b_ || strcmp(a_, b_) != 0) FAIL("%s is \"%s\", not \"%s\"", #a, a_, b_);           \
  } while (0)
#define CHECK_NEAR(a, b, tol)                                                                      \
  do {                                                                                             \
    double a_ = (double)(a), b_ = (double)(b);                                                     \
    if (!(fabs(a_ - b_) <= (double)(tol)))                                                         \
      FAIL("%s is %g, not %g within %g", #a, a_, b_, (double)(tol));                               \
  } while (0)
/* The call must fail with this code and a sentence that contains `part`. */
#define CHECK_ERR(call, code, part)                                                                \
  do {                                                                                             \
    err e_ = (call);                                                                               \
    if (e_ != (code) || !strstr(err_text(), (part)))                                               \
      FAIL("%s gave %s: \"%s\", wanted %s with \"%s\"", #call, err_name(e_), err_text(),           \
           err_name(code), (part));                                                                \
  } while (0)
#define CHECK_OK(call)                                                                             \
  do {                                                                                             \
    err e_ = (call);                                                                               \
    if (e_) FAIL("%s: %s: %s", #call, err_name(e_), err_text());                                   \
  } while (0)
#define SKIP(...)                                                                                  \
  do {                                                                                             \
    test_skip(__VA_ARGS__);                                                                        \
    return;                                                                                        \
  } while (0)

#endif
