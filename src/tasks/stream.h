/* A generation as text: tokens of a session become whole characters; ends at an end-of-generation
 * token. Nothing blocks and, once the text buffer has grown, nothing is allocated. */
#ifndef FRIT_TASKS_STREAM_H
#define FRIT_TASKS_STREAM_H

#include "infer/engine.h"
#include "infer/unicode.h"

typedef enum stream_event {
  STREAM_BUSY,  /* nothing yet: step again */
  STREAM_TOKEN, /* a token came; `text` may be empty when it ended no character */
  STREAM_DONE   /* `text` holds what an incomplete character left, usually nothing */
} stream_event;

typedef enum stream_end {
  STREAM_RUNNING,
  STREAM_STOP,     /* the model ended it */
  STREAM_LENGTH,   /* the most tokens asked for */
  STREAM_CONTEXT,  /* the context is full */
  STREAM_CANCELLED /* stream_stop */
} stream_end;

typedef struct stream {
  session *s;
  const tokenizer *t;
  uint32_t ctx, max;
  bool ignore_eos; /* goes on after an end-of-generation token */
  bool special;    /* control tokens appear in the text */
  utf8_stream utf8;
  buf text;    /* of the last event; valid until the next step */
  uint32_t id; /* of STREAM_TOKEN */
  uint32_t n;  /* tokens so far, the ending one left out */
  stream_end end;
} stream;

/* Begins generating after what was fed. `st` keeps its buffer from one generation to the next; zero
 * it before the first. max 0: to the end of the context. */
err stream_begin(stream *st, engine *e, session *s, const sample_opts *o, uint32_t max,
                 bool ignore_eos);
err stream_step(stream *st, stream_event *ev);
/* Ends it; step until STREAM_DONE. */
void stream_stop(stream *st);
void stream_free(stream *st);
const char *stream_end_name(stream_end e); /* "stop", "length", "context", "cancelled" */

#endif
