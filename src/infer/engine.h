/* An engine: a model file opened and loaded on a device, with its tokenizer. A session: one
 * timeline of tokens with its KV cache. Everything is stepped; nothing waits. */
#ifndef FRIT_INFER_ENGINE_H
#define FRIT_INFER_ENGINE_H

#include "import/gguf/model.h"
#include "infer/token.h"
#include "run/run.h"

typedef struct engine engine;

typedef struct engine_opts { /* zero is the default of everything */
  hw_kind device;            /* HW_CPU or HW_WEBGPU */
  hw_open_desc hw; /* index, library, threads, pretended limits; kind is set from `device` */
  uint32_t ctx;    /* rows of KV cache; 0: the model's own, at most ENGINE_CTX */
  uint32_t batch;  /* prefill chunk; 0: 512 */
  bool f32;        /* --precision f32: no rounding of activations, f32 cache */
  bool level_set;  /* else: role on GPUs, none on the cpu */
  plan_level level;
  bool nll;        /* will be asked for perplexity */
  uint32_t depth;  /* tokens in flight; 0: 1 on the cpu, ENGINE_DEPTH on GPUs; at most that */
  uint32_t splits; /* of decode attention; 0: default */
  const char *off; /* fusions switched off */
  /* For weights whose bytes are not in memory; see run_opts. NULL: all are. */
  err (*fetch)(void *user, uint32_t part, uint64_t off, uint64_t size, hw_buf dst,
               uint64_t dst_off);
  bool (*fetched)(void *user, err *e);
  void *user;
} engine_opts;
enum {
  ENGINE_CTX = 8192,
  ENGINE_DEPTH = 8 /* waiting for each token costs 50 us natively, 2 ms in Chromium */
};

typedef enum engine_phase {
  ENGINE_OPEN,
  ENGINE_COMPILE,
  ENGINE_UPLOAD,
  ENGINE_WARMUP,
  ENGINE_READY
} engine_phase;
typedef struct engine_progress {
  engine_phase phase;
  uint64_t done, total;
} engine_progress;

/* What the engine plans for a model trained for `trained` tokens on a device of o->device's kind:
 * level, context, batch and precision, the hooks left NULL. ERR_ARG: a context beyond `trained`. */
err engine_run_opts(const engine_opts *o, uint32_t trained, run_opts *out);

/* Opens and checks the file, reads the tokenizer. Errors: ERR_IO, ERR_FORMAT, ERR_UNSUPPORTED,
 * ERR_ARG (context beyond the model's). Returns ownership. */
err engine_open(const char *path, const engine_opts *o, engine **out);
/* The same from a file that was read already, taken over also on failure. Where only its headers
 * are there (gguf_parse), weights come through opts.fetch. */
err engine_new(gguf *file, const engine_opts *o, engine **out);
/* Bytes needed on a device that is said to be like `caps`, before anything is opened. */
err engine_estimate(engine *e, const hw_caps *caps, run_memory *out);
/* Loads a little; call until *done. Checks before uploading that the model fits (ERR_LIMIT with
 * both sizes). */
err engine_load(engine *e, engine_progress *p, bool *done);
void engine_close(engine *e);

const gguf *engine_file(const engine *e);
const model *engine_model(const engine *e);
const tokenizer *engine_tokenizer(const engine *e);
hw *engine_hw(const engine *e);   /* NULL before it is open */
run *engine_run(const engine *e); /* NULL before the plan is made */
uint32_t engine_ctx(const engine *e);

/* ---- sessions: one at a time an engine ---- */

typedef struct session session;

typedef struct sample_opts { /* zero: greedy */
  float temp;                /* <= 0: greedy */
  uint32_t top_k;            /* 0: off (then 256 candidates are kept) */
  float top_p, min_p;        /* 0 or >= 1 / 0: off */
  float penalty;             /* repetition penalty over the last PLAN_RING tokens; 0 or 1: off */
  uint32_t seed;
} sample_opts;

err session_new(engine *e, session **out);
void session_free(session *s);

/* Appends tokens to the timeline, to be run before the next token. ERR_LIMIT, naming both numbers,
 * when the context has no room for them. */
err session_feed(session *s, const uint32_t *ids, uint32_t n);
/* Begins generating at most `max` tokens (0: to the end of the context) after what was fed. */
err session_generate(session *s, const sample_opts *o, uint32_t max);

typedef enum session_event {
  SESSION_BUSY,  /* nothing yet: poll again */
  SESSION_TOKEN, /* *id is the next token, already part of the timeline */
  SESSION_DONE   /* max reached, context full, or stopped; idle */
} session_event;
/* Advances; never waits. An end-of-generation token is delivered like any other and ends nothing by
 * itself: the caller calls session_stop. Logits that are NaN or +infinity are no token but an error
 * that names the cause: ERR_FORMAT (a damaged weight), ERR_LIMIT (a sum overflowed); so too below.
 */
err session_poll(session *s, session_event *ev, uint32_t *id);
/* Ends generation: tokens in flight are dropped from the timeline (poll until SESSION_DONE). */
void session_stop(session *s);
/* Keeps the first n tokens of the timeline. ERR_ARG while generating. */
err session_rewind(session *s, uint32_t n);
uint32_t session_length(const session *s);        /* tokens in the timeline, fed ones included */
const uint32_t *session_tokens(const session *s); /* [session_length]; valid until the next call */

/* Runs what was fed and leaves the logits of the last token; poll until *done, then
 * session_logits_get copies [n_vocab] floats. */
err session_logits(session *s, float *out, bool *done);
/* Sum over i >= 1 of -log p(ids[i] | ids[0..i)), one window n <= ctx; resets the timeline. Poll
 * until *done. The engine must have been opened with `nll`. */
err session_nll(session *s, const uint32_t *ids, uint32_t n, double *sum, bool *done);

typedef struct session_stats {
  uint32_t prompt_tokens, tokens; /* since the last generate (prompt: run, not reused) */
  double prompt_seconds, seconds; /* wall: to the end of prefill, of decode */
  uint64_t submits, dispatches;
} session_stats;
session_stats session_get_stats(const session *s);

#endif
