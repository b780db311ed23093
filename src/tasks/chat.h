/* A conversation with a model: messages, the model's own template, streamed answers.
 *
 * Each answer renders all messages anew and keeps what the session's timeline has in common with
 * them, so that a turn costs its own tokens only. A file without a template is talked to in ChatML.
 * Nothing blocks. */
#ifndef FRIT_TASKS_CHAT_H
#define FRIT_TASKS_CHAT_H

#include "tasks/stream.h"

typedef struct chat chat;

typedef struct chat_opts { /* zero: greedy, to the end of the context */
  sample_opts sample;
  uint32_t max; /* tokens of the answer; 0: what the context holds */
  int64_t now;  /* seconds since 1970 in the user's zone, for templates that show a date; 0:
                   the clock's UTC time */
} chat_opts;

/* The engine must be ready and without a session; it outlives the chat. ERR_FORMAT,
 * ERR_UNSUPPORTED: the file's template cannot be read. Returns ownership. */
err chat_new(engine *e, chat **out);
void chat_free(chat *c);
session *chat_session(chat *c);
/* False: the file has no template and ChatML stands in. */
bool chat_own_template(const chat *c);

/* Adds a message; role is "system", "user" or "assistant". The text is copied. */
err chat_add(chat *c, const char *role, const char *text, size_t n);
/* Forgets the last message, or all of them. Not while an answer is being made. */
void chat_drop(chat *c);
void chat_clear(chat *c);
uint32_t chat_count(const chat *c);

/* Begins the answer to the messages. ERR_LIMIT, naming both numbers, when they are longer than the
 * context; the template's own objections (no system role, say) are ERR_ARG. The messages stay as
 * they were. */
err chat_begin(chat *c, const chat_opts *o);
/* Begins the continuation of text[n] as it stands, after the tokens that the file's rules add; the
 * messages are left alone. ERR_LIMIT as above, ERR_ARG when there is no token to continue. */
err chat_complete(chat *c, const char *text, size_t n, bool special, const chat_opts *o);
/* As stream_step; *text is valid until the next call. With STREAM_DONE the answer
 * (not a continuation) has become a message of role "assistant". */
err chat_step(chat *c, stream_event *ev, const char **text, size_t *n);
void chat_stop(chat *c);
stream_end chat_end(const chat *c);
/* Tokens of the rendered prompt, those reused from the turns before included. */
uint32_t chat_prompt_tokens(const chat *c);

#endif
