/* Owns one timeline of tokens and the state machine that runs it: prefill in chunks, then decode
 * with several tokens in flight (the sampled id stays on the device, the next step reads it there).
 *
 * Always: rows [0, n_kv) of the KV cache hold the keys and values of tokens [0, n_kv); n_kv <= n.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/math.h"
#include "base/mem.h"
#include "infer/engine_impl.h"

typedef enum mode { IDLE, GENERATE, LOGITS, NLL } mode;

struct session {
  engine *en;
  run *r;
  uint32_t *tokens; /* [ctx + 1] */
  uint32_t n, n_kv;
  mode mode;
  sample_opts o;
  uint32_t max, delivered, submitted; /* tokens */
  bool stopping;
  hw_ticket flight[ENGINE_DEPTH]; /* ring: oldest at `head` */
  uint32_t head, in_flight, depth;
  hw_ticket wait;         /* of logits and nll */
  uint32_t wait_rows, at; /* nll: rows in flight; next row */
  double sum;
  float *nll; /* [batch] */
  double t_begin, t_first, t_last;
  hw_counts counts0;
  session_stats stats;
};

err session_new(engine *en, session **out) {
  *out = NULL;
  if (!en->run) return err_set(ERR_ARG, "%s: not loaded yet", gguf_name(en->file));
  session *s = mem_zalloc(1, sizeof *s);
  if (!s) return mem_err("session", sizeof *s);
  s->en = en;
  s->r = en->run;
  uint32_t usual = hw_get_caps(en->h)->kind == HW_CPU ? 1 : ENGINE_DEPTH;
  s->depth = en->o.depth ? min_u32(en->o.depth, ENGINE_DEPTH) : usual;
  s->tokens = mem_zalloc((size_t)en->ctx + 1, sizeof *s->tokens);
  s->nll = mem_zalloc(run_get_opts(en->run)->batch, sizeof *s->nll);
  if (!s->tokens || !s->nll) {
    session_free(s);
    return mem_err("session", ((uint64_t)en->ctx + 1) * sizeof *s->tokens);
  }
  *out = s;
  return ERR_NONE;
}

/* Forgets the tokens in flight; rows that they wrote beyond the timeline do not count. */
static void drop_flight(session *s) {
  for (; s->in_flight; s->in_flight--) {
    s->en->stale = s->flight[s->head];
    hw_read(s->en->h, s->en->stale, NULL, 0);
    s->head = (s->head + 1) % ENGINE_DEPTH;
  }
  if (s->wait.n) {
    s->en->stale = s->wait;
    hw_read(s->en->h, s->wait, NULL, 0);
  }
  s->wait = (hw_ticket){0};
  s->n_kv = min_u32(s->n_kv, s->n);
}

/* Read-backs that were given up are over: until then they count as in flight. */
static bool settled(session *s) {
  if (!hw_done(s->en->h, s->en->stale)) return false;
  s->en->stale = (hw_ticket){0};
  return true;
}

/* Idle after an error, which is returned with its sentence. The timeline holds what was delivered.
 */
static err fail(session *s, err e) {
  char text[512];
  snprintf(text, sizeof text, "%s", err_text());
  drop_flight(s);
  s->mode = IDLE;
  return err_set(e, "%s", text);
}

/* No row of the cache is trusted any more: a fast form of attention multiplies the values of later
 * tokens of a chunk by 0, so that a NaN there reaches the rows before it. */
static err not_numbers(session *s) {
  s->n_kv = 0;
  return engine_not_numbers(s->en);
}

void session_free(session *s) {
  if (!s) return;
  drop_flight(s);
  mem_free(s->tokens);
  mem_free(s->nll);
  mem_free(s);
}

uint32_t session_length(const session *s) { return s->n; }
const uint32_t *session_tokens(const session *s) { return s->tokens; }

static err must_idle(const session *s, const char *what) {
  return s->mode == IDLE ? ERR_NONE : err_set(ERR_ARG, "%s while the session is busy", what);
}

err session_feed(session *s, const uint32_t *ids, uint32_t n) {
  err e = must_idle(s, "feed");
  if (e) return e;
  if (n > s->en->ctx - min_u32(s->n, s->en->ctx))
    return err_set(ERR_LIMIT,
                   "a prompt of %llu tokens is longer than the context of %u (see --context)",
                   (unsigned long long)s->n + n, s->en->ctx);
  uint32_t vocab = run_vocab(s->r);
  for (uint32_t i = 0; i < n; i++) {
    if (ids[i] >= vocab)
      return err_set(ERR_ARG, "token %u is beyond the vocabulary of %u", ids[i], vocab);
  }
  if (n) memcpy(s->tokens + s->n, ids, n * sizeof *ids);
  s->n += n;
  return ERR_NONE;
}

err session_rewind(session *s, uint32_t n) {
  err e = must_idle(s, "rewind");
  if (e) return e;
  if (n > s->n) return err_set(ERR_ARG, "rewind to %u tokens of %u", n, s->n);
  s->n = n;
  s->n_kv = min_u32(s->n_kv, n);
  return ERR_NONE;
}

/* ---- one submit ---- */

static step_params params(const session *s, uint32_t pos, uint32_t n_tok) {
  const sample_opts *o = &s->o;
  bool greedy = o->temp <= 0;
  uint32_t next = pos + n_tok; /* index of the token that this step samples */
  return (step_params){
      .pos = pos,
      .n_tok = n_tok,
      .seed = o->seed,
      .draw = next,
      .top_k = greedy     ? 1
               : o->top_k ? min_u32(o->top_k, 256)
                          : 256,
      .n_recent = min_u32(next, PLAN_RING),
      .temp = greedy ? 1 : o->temp,
      .top_p = o->top_p > 0 && o->top_p < 1 ? o->top_p : 1,
      .min_p = o->min_p,
      .penalty = o->penalty > 0 ? o->penalty : 1,
  };
}

static uint32_t sampler(const session *s) {
  bool plain = s->o.temp <= 0 && (s->o.penalty <= 0 || s->o.penalty == 1);
  return plain ? RUN_GREEDY : RUN_SAMPLE;
}

/* The next chunk of fed tokens; `last` bits and the read are added when it reaches the end. */
static err submit_chunk(session *s, uint32_t last, run_read read, hw_ticket *t) {
  uint32_t n = min_u32(s->n - s->n_kv, run_get_opts(s->r)->batch);
  bool end = s->n_kv + n == s->n;
  err e = run_write_ids(s->r, s->tokens + s->n_kv, n);
  if (e) return e;
  step_params p = params(s, s->n_kv, n);
  uint32_t what = (n == 1 ? RUN_BODY_ONE : RUN_BODY_BATCH) | (end ? last : 0);
  e = run_submit(s->r, what, &p, end ? read : RUN_READ_NONE, false, t);
  if (!e) s->n_kv += n;
  return e;
}

/* Where the last token's logits are wanted but its row is there already, it is run again. */
static err make_room_to_run(session *s) {
  if (s->n == 0) return err_set(ERR_ARG, "nothing to continue: feed at least one token");
  if (s->n_kv == s->n) s->n_kv--;
  return ERR_NONE;
}

/* ---- generation ---- */

err session_generate(session *s, const sample_opts *o, uint32_t max) {
  err e = must_idle(s, "generate");
  if (!e) e = make_room_to_run(s);
  if (e) return e;
  uint32_t room = s->en->ctx - s->n + 1;
  s->o = *o;
  s->max = max ? min_u32(max, room) : room;
  s->delivered = s->submitted = 0;
  s->stopping = false;
  s->head = s->in_flight = 0;
  uint32_t ring[PLAN_RING] = {0};
  for (uint32_t i = s->n > PLAN_RING ? s->n - PLAN_RING : 0; i < s->n; i++)
    ring[i % PLAN_RING] = s->tokens[i];
  e = run_write_recent(s->r, ring);
  if (e) return e;
  s->counts0 = hw_get_counts(s->en->h);
  s->stats = (session_stats){.prompt_tokens = s->n - s->n_kv};
  s->t_begin = time_now();
  s->t_first = s->t_last = s->t_begin;
  s->mode = GENERATE;
  return ERR_NONE;
}

void session_stop(session *s) {
  if (s->mode == GENERATE) s->stopping = true;
}

static err take_token(session *s, session_event *ev, uint32_t *id) {
  hw_ticket t = s->flight[s->head];
  uint32_t token = 0;
  err e = hw_read(s->en->h, t, &token, sizeof token);
  s->head = (s->head + 1) % ENGINE_DEPTH;
  s->in_flight--;
  if (e || s->stopping) return e;
  if (token >= run_vocab(s->r)) return not_numbers(s);
  s->tokens[s->n++] = token;
  s->t_last = time_now();
  if (!s->delivered++) s->t_first = s->t_last;
  *id = token;
  *ev = SESSION_TOKEN;
  return ERR_NONE;
}

static err finish(session *s, session_event *ev) {
  s->mode = IDLE;
  /* Steps that were in flight may have written rows beyond the timeline. */
  s->n_kv = min_u32(s->n_kv, s->n);
  hw_counts c = hw_get_counts(s->en->h);
  s->stats.tokens = s->delivered;
  s->stats.prompt_seconds = s->t_first - s->t_begin;
  s->stats.seconds = s->t_last - s->t_first;
  s->stats.submits = c.submits - s->counts0.submits;
  s->stats.dispatches = c.dispatches - s->counts0.dispatches;
  *ev = SESSION_DONE;
  return ERR_NONE;
}

static err submit_next(session *s) {
  hw_ticket t = {0};
  err e;
  if (s->submitted == 0) {
    bool end = s->n - s->n_kv <= run_get_opts(s->r)->batch;
    e = submit_chunk(s, RUN_HEAD | sampler(s), RUN_READ_ID, &t);
    if (e || !end) return e;
  } else {
    step_params p = params(s, s->n_kv, 1); /* ids[0] is on the device */
    e = run_submit(s->r, RUN_BODY_ONE | RUN_HEAD | sampler(s), &p, RUN_READ_ID, false, &t);
    if (e) return e;
    s->n_kv++;
  }
  s->flight[(s->head + s->in_flight) % ENGINE_DEPTH] = t;
  s->in_flight++;
  s->submitted++;
  return ERR_NONE;
}

err session_poll(session *s, session_event *ev, uint32_t *id) {
  *ev = SESSION_BUSY;
  if (s->mode != GENERATE) {
    *ev = SESSION_DONE;
    return must_idle(s, "poll");
  }
  err e = hw_error(s->en->h);
  if (!e && s->in_flight && hw_done(s->en->h, s->flight[s->head])) {
    e = take_token(s, ev, id);
  } else if (!e && !s->stopping && s->submitted < s->max && s->in_flight < s->depth) {
    if (s->submitted || settled(s)) e = submit_next(s);
  } else if (!e && !s->in_flight) {
    e = finish(s, ev);
  }
  return e ? fail(s, e) : ERR_NONE;
}

session_stats session_get_stats(const session *s) { return s->stats; }

/* ---- logits and perplexity ---- */

err session_logits(session *s, float *out, bool *done) {
  *done = false;
  err e = ERR_NONE;
  if (s->mode == IDLE) {
    e = make_room_to_run(s);
    if (e) return e;
    s->mode = LOGITS;
    s->wait = (hw_ticket){0};
    s->at = 0;
  }
  if (s->mode != LOGITS) return err_set(ERR_ARG, "logits while the session is busy");
  if (!settled(s)) return ERR_NONE;
  uint32_t vocab = run_vocab(s->r), most = HW_READ_MAX / 4;
  if (s->n_kv < s->n) e = submit_chunk(s, RUN_HEAD, RUN_READ_NONE, &(hw_ticket){0});
  else if (!s->wait.n) e = run_read_logits(s->r, s->at, min_u32(vocab - s->at, most), &s->wait);
  else if (hw_done(s->en->h, s->wait)) {
    uint32_t n = min_u32(vocab - s->at, most);
    e = hw_read(s->en->h, s->wait, out + s->at, 4 * n);
    s->wait = (hw_ticket){0};
    for (uint32_t i = 0; !e && i < n; i++) {
      if (!(out[s->at + i] < INFINITY)) e = not_numbers(s);
    }
    s->at += n;
    *done = !e && s->at == vocab;
  }
  if (*done) s->mode = IDLE;
  return e ? fail(s, e) : ERR_NONE;
}

/* Rows whose next token is known, one submit each `run_nll_rows`. */
static err nll_submit(session *s) {
  uint32_t n = min_u32(s->n - 1 - s->at, run_nll_rows(s->r));
  err e = run_write_ids(s->r, s->tokens + s->at, n);
  if (!e) e = run_write_next(s->r, s->tokens + s->at + 1, n);
  if (e) return e;
  step_params p = params(s, s->at, n);
  s->wait_rows = n;
  return run_submit(s->r, RUN_BODY_BATCH | RUN_HEAD_ALL, &p, RUN_READ_NLL, false, &s->wait);
}

err session_nll(session *s, const uint32_t *ids, uint32_t n, double *sum, bool *done) {
  *done = false;
  err e = ERR_NONE;
  if (s->mode == IDLE) {
    if (n < 2) return err_set(ERR_ARG, "perplexity needs at least 2 tokens");
    s->n = s->n_kv = 0;
    e = session_feed(s, ids, n);
    if (e) return e;
    s->mode = NLL;
    s->wait = (hw_ticket){0};
    s->at = 0;
    s->sum = 0;
  }
  if (s->mode != NLL) return err_set(ERR_ARG, "perplexity while the session is busy");
  if (!settled(s)) return ERR_NONE;
  if (!s->wait.n) e = nll_submit(s);
  else if (hw_done(s->en->h, s->wait)) {
    e = hw_read(s->en->h, s->wait, s->nll, 4 * s->wait_rows);
    for (uint32_t i = 0; !e && i < s->wait_rows; i++) {
      s->sum += (double)s->nll[i];
      if (!isfinite(s->nll[i])) e = not_numbers(s);
    }
    s->at += s->wait_rows;
    s->wait = (hw_ticket){0};
    *done = !e && s->at + 1 >= s->n;
  }
  if (*done) {
    *sum = s->sum;
    s->n = s->n_kv = 0;
    s->mode = IDLE;
  }
  return e ? fail(s, e) : ERR_NONE;
}
