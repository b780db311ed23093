/* Errors: a code to branch on and one sentence to print.
 *
 * A function that can fail returns `err`. Whoever detects the failure calls err_set once, with a
 * message that names file, tensor, value and limit; callers pass the code up unchanged. The text
 * is kept per thread, valid until the next err_set of that thread. */
#ifndef FRIT_BASE_ERR_H
#define FRIT_BASE_ERR_H

#include <stdarg.h>

/* X(code, name for people and for JSON) */
#define ERR_CODES(X)                                                                               \
  X(ERR_NONE, "ok")                                                                                \
  X(ERR_NOMEM, "out of memory")                                                                    \
  X(ERR_IO, "input/output error")                                                                  \
  X(ERR_FORMAT, "malformed file")                                                                  \
  X(ERR_TRUNCATED, "truncated file")                                                               \
  X(ERR_UNSUPPORTED, "not supported")                                                              \
  X(ERR_LIMIT, "over a limit")                                                                     \
  X(ERR_ARG, "bad argument")                                                                       \
  X(ERR_NO_DEVICE, "no such device")                                                               \
  X(ERR_DEVICE, "device error")                                                                    \
  X(ERR_DEVICE_LOST, "device lost")                                                                \
  X(ERR_DEVICE_NOMEM, "out of device memory")                                                      \
  X(ERR_CANCELLED, "cancelled")

typedef enum err {
#define X(code, text) code,
  ERR_CODES(X)
#undef X
      ERR_COUNT_
} err;

/* Keeps the sentence (printf form) and returns `code`, so that it can end a function:
 * return err_set(ERR_FORMAT, "%s: tensor '%s': ...", path, name); */
#if defined(__GNUC__)
__attribute__((format(printf, 2, 3)))
#endif
err err_set(err code, const char *fmt, ...);

#ifdef __clang_analyzer__ /* it does not see into err.c: what is returned is the code */
static inline err err_known(err set, err code) { return (void)set, code; }
#define err_set(code, ...) err_known((err_set)(code, __VA_ARGS__), code)
#endif

/* The last sentence set on this thread; "" when none. Valid until the next err_set. */
const char *err_text(void);

/* The code's own words, e.g. "malformed file". Never NULL. */
const char *err_name(err code);

/* Log hook: src/ prints nothing by itself. NULL (the default) drops messages. */
typedef enum log_level { LOG_DEBUG, LOG_INFO, LOG_WARN } log_level;
typedef void (*log_fn)(void *user, log_level level, const char *text);
void log_set(log_fn fn, void *user);
#if defined(__GNUC__)
__attribute__((format(printf, 2, 3)))
#endif
void log_msg(log_level level, const char *fmt, ...);

/* Goes to `done` when `call` fails; the function has `err e` and a label `done`. */
#define TRY(call)                                                                                  \
  do {                                                                                             \
    e = (call);                                                                                    \
    if (e) goto done;                                                                              \
  } while (0)

#endif
