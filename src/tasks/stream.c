#include "tasks/stream.h"

err stream_begin(stream *st, engine *e, session *s, const sample_opts *o, uint32_t max,
                 bool ignore_eos) {
  buf keep = st->text;
  bool special = st->special;
  *st = (stream){.s = s,
                 .t = engine_tokenizer(e),
                 .ctx = engine_ctx(e),
                 .max = max,
                 .ignore_eos = ignore_eos,
                 .special = special,
                 .text = keep};
  buf_clear(&st->text);
  return session_generate(s, o, max);
}

static err take(stream *st, uint32_t id, stream_event *ev) {
  if (st->end) return ERR_NONE; /* in flight when it was stopped */
  if (!st->ignore_eos && token_is_eog(st->t, id)) {
    st->end = STREAM_STOP;
    session_stop(st->s);
    return ERR_NONE;
  }
  const char *bytes;
  size_t n;
  err e = token_piece(st->t, id, st->special, &bytes, &n);
  if (e) return e;
  utf8_stream_put(&st->utf8, bytes, n, &st->text);
  if (st->text.failed) return mem_err("text", st->text.n);
  st->id = id;
  st->n++;
  *ev = STREAM_TOKEN;
  return ERR_NONE;
}

err stream_step(stream *st, stream_event *ev) {
  *ev = STREAM_BUSY;
  buf_clear(&st->text);
  session_event sev;
  uint32_t id = 0;
  err e = session_poll(st->s, &sev, &id);
  if (e) return e;
  if (sev == SESSION_TOKEN) return take(st, id, ev);
  if (sev == SESSION_BUSY) return ERR_NONE;
  if (!st->end) st->end = st->max && st->n >= st->max ? STREAM_LENGTH : STREAM_CONTEXT;
  utf8_stream_flush(&st->utf8, &st->text);
  if (st->text.failed) return mem_err("text", st->text.n);
  *ev = STREAM_DONE;
  return ERR_NONE;
}

void stream_stop(stream *st) {
  if (st->end) return;
  st->end = STREAM_CANCELLED;
  session_stop(st->s);
}

void stream_free(stream *st) { buf_free(&st->text); }

const char *stream_end_name(stream_end e) {
  static const char *const names[] = {"running", "stop", "length", "context", "cancelled"};
  return names[e];
}
