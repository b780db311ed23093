/* frit: machine-learning models and population simulations on any GPU.
 *
 * The only public header; C11 and C++17.
 *
 * An engine is a model file loaded on a device; a session is one conversation or text with it.
 * Nothing here waits: loading and generating advance a little at each call of frit_load and
 * frit_step, and the caller decides what to do in between (sleep a few microseconds, draw a frame).
 * An engine and its session are used by one thread at a time.
 *
 * Every function that can fail returns a frit_result; frit_error then has one sentence that names
 * what was wrong. Options and sampling: zero means default. Strings are UTF-8 unless said
 * otherwise. */
#ifndef FRIT_H
#define FRIT_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The library's version, "MAJOR.MINOR.PATCH". Static, never NULL. */
const char *frit_version(void);

/* ---- errors ---- */

typedef enum frit_result {
  FRIT_OK,
  FRIT_NOMEM,        /* out of memory */
  FRIT_IO,           /* a file cannot be read */
  FRIT_FORMAT,       /* a malformed file */
  FRIT_TRUNCATED,    /* a file that ends too early */
  FRIT_UNSUPPORTED,  /* well-formed, but nothing that frit runs */
  FRIT_LIMIT,        /* too large: a prompt for its context, a model for its device */
  FRIT_ARG,          /* a bad argument */
  FRIT_NO_DEVICE,    /* no such device, or no WebGPU library */
  FRIT_DEVICE,       /* the device failed */
  FRIT_DEVICE_LOST,  /* the device went away: close the engine, open another */
  FRIT_DEVICE_NOMEM, /* out of device memory */
  FRIT_CANCELLED
} frit_result;

/* The sentence of this thread's last error, "" when none. Valid until the thread's next call. */
const char *frit_error(void);
/* The result's own words, "out of memory". Static, never NULL. */
const char *frit_result_name(frit_result r);

/* ---- engines ---- */

typedef struct frit_engine frit_engine;

typedef struct frit_options {
  const char *device; /* "auto" (the default: a real GPU if there is one, else the CPU), "cpu",
                         "gpu", "gpu:N" */
  const char *webgpu; /* path of the WebGPU library; NULL: $FRIT_WEBGPU, then the usual places */
  uint32_t threads;   /* of the CPU; 0: one a core */
  uint32_t context;   /* tokens that a session holds; 0: the model's own, at most 8192 */
  uint32_t batch;     /* prompt tokens run at once; 0: 512 */
  int f32;            /* not 0: nothing is rounded to fewer bits on the way */
} frit_options;

/* Begins opening the GGUF file at `path`. `o` may be NULL; what it points to is copied. FRIT_IO
 * when the file cannot be read, FRIT_ARG for a bad option. On success *out is the caller's, to
 * frit_close. */
frit_result frit_open(const char *path, const frit_options *o, frit_engine **out);

typedef struct frit_progress {
  const char *phase;    /* "open", "compile", "upload", "warmup", "ready"; static */
  uint64_t done, total; /* of the phase, total 0 when not known */
} frit_progress;

/* Loads a little: to be called until *ready is not 0. `p` may be NULL. After an error only
 * frit_close is of use. */
frit_result frit_load(frit_engine *e, frit_progress *p, int *ready);
/* Frees the engine; its session must be freed before. NULL is fine. */
void frit_close(frit_engine *e);

/* Once ready: where the model runs, "cpu: NAME, 8 threads". Valid until frit_close; "" before. */
const char *frit_device(const frit_engine *e);
/* Tokens that a session holds, prompt and answer together; 0 before the engine is ready. */
uint32_t frit_context(const frit_engine *e);

/* The ids of text[n], after the tokens that the file's own rules add. `special` not 0: texts of
 * special tokens ("<|im_start|>") stand for those tokens. At most `room` ids are written; *count is
 * how many there are. The engine must be ready. */
frit_result frit_tokenize(const frit_engine *e, const char *text, size_t n, int special,
                          uint32_t *ids, size_t room, size_t *count);
/* The bytes of one token, perhaps part of a character; valid until frit_close. FRIT_ARG: no such
 * id. */
frit_result frit_piece(const frit_engine *e, uint32_t id, const char **bytes, size_t *n);

/* ---- sessions ---- */

typedef struct frit_session frit_session;

/* One at a time an engine, which must be ready. On success *out is the caller's. */
frit_result frit_session_new(frit_engine *e, frit_session **out);
void frit_session_free(frit_session *s); /* NULL is fine */

typedef struct frit_sampling { /* all zero: greedy, as long as the context holds */
  float temperature;           /* 0: always the likeliest token */
  uint32_t top_k;              /* draws among so many; 0: 256, which is the most */
  float top_p, min_p;          /* 0: off */
  float penalty;               /* of repetition over the last 64 tokens; 0 or 1: off */
  uint32_t seed;
  uint32_t max_tokens; /* 0: what the context holds */
} frit_sampling;

/* Adds a message of `role` "system", "user" or "assistant" to the conversation. */
frit_result frit_chat_add(frit_session *s, const char *role, const char *text, size_t n);
/* Forgets the last message; all messages. */
void frit_chat_drop(frit_session *s);
void frit_chat_clear(frit_session *s);
/* Begins the answer to the conversation, put into the form of the model's own chat template (ChatML
 * when the file has none). What the session's context has in common with it is not run again. The
 * whole answer becomes a message. FRIT_LIMIT, naming both numbers, when it is longer than the
 * context. `o` may be NULL. */
frit_result frit_chat(frit_session *s, const frit_sampling *o);
/* Begins the continuation of text[n] as it stands; special tokens as in frit_tokenize. */
frit_result frit_complete(frit_session *s, const char *text, size_t n, int special,
                          const frit_sampling *o);

typedef enum frit_event {
  FRIT_BUSY, /* nothing yet: call again, perhaps after a short sleep */
  FRIT_TEXT, /* whole characters of the answer, maybe none */
  FRIT_DONE  /* the last characters, usually none; frit_end says why */
} frit_event;

/* Advances the answer. *text has *n bytes, ends with a NUL that does not count, and is valid until
 * the next call. */
frit_result frit_step(frit_session *s, frit_event *ev, const char **text, size_t *n);
/* Ends the answer early: step on until FRIT_DONE. */
void frit_stop(frit_session *s);
/* Why the last answer ended: "stop" (the model ended it), "length", "context" (it is full) or
 * "cancelled"; "running" before. Static. */
const char *frit_end(const frit_session *s);

typedef struct frit_stats { /* of the last answer */
  uint32_t prompt_tokens;   /* run for it: those of turns before are not run again */
  uint32_t tokens;          /* of the answer */
  double prompt_seconds;    /* to the first token of the answer */
  double seconds;           /* from the first to the last */
} frit_stats;
frit_stats frit_get_stats(const frit_session *s);

#ifdef __cplusplus
}
#endif

#endif
