/* Owns the per-thread error text and the log hook. */
#include "base/err.h"

#include <stdio.h>

#if defined(__wasm__) && !defined(_REENTRANT)
#define THREAD_LOCAL
#else
#define THREAD_LOCAL _Thread_local
#endif

static THREAD_LOCAL char text[1024];
static log_fn log_hook;
static void *log_user;

err(err_set)(err code, const char *fmt, ...) {
  va_list ap;
  va_start(ap, fmt);
  char tmp[sizeof text]; /* the arguments may point into `text` */
  vsnprintf(tmp, sizeof tmp, fmt, ap);
  va_end(ap);
  snprintf(text, sizeof text, "%s", tmp);
  return code;
}

const char *err_text(void) { return text; }

const char *err_name(err code) {
  static const char *const names[] = {
#define X(code, text) text,
      ERR_CODES(X)
#undef X
  };
  return (unsigned)code < ERR_COUNT_ ? names[code] : "unknown error";
}

void log_set(log_fn fn, void *user) {
  log_hook = fn;
  log_user = user;
}

void log_msg(log_level level, const char *fmt, ...) {
  if (!log_hook) return;
  char line[1024];
  va_list ap;
  va_start(ap, fmt);
  vsnprintf(line, sizeof line, fmt, ap);
  va_end(ap);
  log_hook(log_user, level, line);
}
