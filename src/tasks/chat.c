#include "tasks/chat.h"

#include <string.h>

#include "infer/jinja.h"

static const char chatml[] = "{% for message in messages %}<|im_start|>{{ message['role'] }}\n"
                             "{{ message['content'] }}<|im_end|>\n{% endfor %}"
                             "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}";

typedef struct message {
  char *role, *text;
  size_t n;
} message;

struct chat {
  engine *e;
  session *s;
  jinja *template;
  bool own;
  bool raw; /* a continuation is being made, not an answer */
  message *messages;
  uint32_t n, cap;
  stream out;
  buf answer, prompt;
  token_ids ids;
};

static err read_template(chat *c) {
  const char *text = chatml;
  size_t n = sizeof chatml - 1;
  const gguf *g = engine_file(c->e);
  c->own = gguf_has(g, "tokenizer.chat_template");
  if (c->own) {
    err e = gguf_str(g, "tokenizer.chat_template", &text, &n);
    if (e) return e;
  }
  return jinja_new(text, n, &c->template);
}

err chat_new(engine *e, chat **out) {
  *out = NULL;
  chat *c = mem_zalloc(1, sizeof *c);
  if (!c) return mem_err("chat", sizeof *c);
  c->e = e;
  err r = read_template(c);
  if (!r) r = session_new(e, &c->s);
  if (r) chat_free(c);
  else *out = c;
  return r;
}

void chat_free(chat *c) {
  if (!c) return;
  chat_clear(c);
  mem_free(c->messages);
  session_free(c->s);
  jinja_free(c->template);
  stream_free(&c->out);
  buf_free(&c->answer);
  buf_free(&c->prompt);
  token_ids_free(&c->ids);
  mem_free(c);
}

session *chat_session(chat *c) { return c->s; }
bool chat_own_template(const chat *c) { return c->own; }
uint32_t chat_count(const chat *c) { return c->n; }
stream_end chat_end(const chat *c) { return c->out.end; }
uint32_t chat_prompt_tokens(const chat *c) { return (uint32_t)c->ids.n; }

/* ---- messages ---- */

static err grow(chat *c) {
  if (c->n < c->cap) return ERR_NONE;
  uint32_t cap = c->cap ? c->cap * 2 : 8;
  message *m = mem_realloc(c->messages, c->cap * sizeof *m, cap * sizeof *m);
  if (!m) return mem_err("messages", cap * sizeof *m);
  c->messages = m;
  c->cap = cap;
  return ERR_NONE;
}

err chat_add(chat *c, const char *role, const char *text, size_t n) {
  err e = grow(c);
  if (e) return e;
  message m = {mem_strdup(role), mem_alloc(n + 1), n};
  if (!m.role || !m.text) {
    mem_free(m.role);
    mem_free(m.text);
    return mem_err("message", n);
  }
  if (n) memcpy(m.text, text, n);
  m.text[n] = 0;
  c->messages[c->n++] = m;
  return ERR_NONE;
}

void chat_drop(chat *c) {
  if (!c->n) return;
  message *m = &c->messages[--c->n];
  mem_free(m->role);
  mem_free(m->text);
}

void chat_clear(chat *c) {
  while (c->n) chat_drop(c);
}

/* ---- the prompt ---- */

/* The text of a token, "" when there is none. */
static err token_value(const chat *c, int32_t id, arena *a, jval *globals, const char *key) {
  const char *p = "";
  size_t n = 0;
  if (id >= 0) {
    err e = token_piece(engine_tokenizer(c->e), (uint32_t)id, true, &p, &n);
    if (e) return e;
  }
  return jval_set(globals, key, jval_str(a, p, n));
}

static err add_messages(const chat *c, arena *a, jval *list) {
  err e = ERR_NONE;
  for (uint32_t i = 0; i < c->n && !e; i++) {
    const message *m = &c->messages[i];
    jval *d = jval_dict(a);
    if (!d) return mem_err("messages", 0);
    TRY(jval_set(d, "role", jval_cstr(a, m->role)));
    TRY(jval_set(d, "content", jval_str(a, m->text, m->n)));
    TRY(jval_push(list, d));
  }
done:
  return e;
}

static err render(chat *c, int64_t now) {
  arena a = {0};
  err e = ERR_NONE;
  jval *globals = jval_dict(&a), *list = jval_list(&a);
  const tokenizer *t = engine_tokenizer(c->e);
  buf_clear(&c->prompt);
  if (!globals || !list) {
    e = mem_err("messages", 0);
    goto done;
  }
  TRY(add_messages(c, &a, list));
  TRY(jval_set(globals, "messages", list));
  TRY(jval_set(globals, "add_generation_prompt", jval_bool(&a, true)));
  TRY(jval_set(globals, "tools", jval_none(&a)));
  TRY(token_value(c, token_bos(t), &a, globals, "bos_token"));
  TRY(token_value(c, token_eos(t), &a, globals, "eos_token"));
  TRY(jinja_render(c->template, globals, &(jinja_opts){.now = now}, &c->prompt));
done:
  arena_free(&a);
  return e;
}

/* Tokens of the prompt. Templates write the BOS themselves or leave it to the file's rules: there
 * is one in the end where the rules want one, and never two. */
static err encode(chat *c) {
  const tokenizer *t = engine_tokenizer(c->e);
  int32_t bos = token_bos(t);
  token_ids rule = {0};
  c->ids.n = 0;
  err e = token_encode(t, "", 0, true, true, &rule);
  if (!e && rule.n && bos >= 0 && rule.p[0] == (uint32_t)bos) e = token_ids_put(&c->ids, rule.p[0]);
  size_t before = c->ids.n;
  if (!e) e = token_encode(t, c->prompt.p ? c->prompt.p : "", c->prompt.n, true, false, &c->ids);
  if (!e && before && c->ids.n > 1 && c->ids.p[1] == (uint32_t)bos) {
    memmove(c->ids.p, c->ids.p + 1, (c->ids.n - 1) * sizeof *c->ids.p);
    c->ids.n--;
  }
  token_ids_free(&rule);
  return e;
}

/* Feeds c->ids but for what the timeline has already, and begins. */
static err begin(chat *c, const chat_opts *o) {
  uint32_t ctx = engine_ctx(c->e), n = (uint32_t)c->ids.n;
  if (c->ids.n >= ctx)
    return err_set(ERR_LIMIT,
                   "the prompt is %llu tokens long and the context holds %u, the answer included",
                   (unsigned long long)c->ids.n, ctx);
  if (!n) return err_set(ERR_ARG, "nothing to continue: the prompt has no token");
  const uint32_t *had = session_tokens(c->s);
  uint32_t same = 0, length = session_length(c->s);
  while (same < n - 1 && same < length && had[same] == c->ids.p[same]) same++;
  err e = session_rewind(c->s, same);
  if (!e) e = session_feed(c->s, c->ids.p + same, n - same);
  buf_clear(&c->answer);
  if (!e) e = stream_begin(&c->out, c->e, c->s, &o->sample, o->max, false);
  return e;
}

err chat_begin(chat *c, const chat_opts *o) {
  c->raw = false;
  err e = render(c, o->now);
  if (!e) e = encode(c);
  return e ? e : begin(c, o);
}

err chat_complete(chat *c, const char *text, size_t n, bool special, const chat_opts *o) {
  c->raw = true;
  c->ids.n = 0;
  err e = token_encode(engine_tokenizer(c->e), text, n, special, true, &c->ids);
  return e ? e : begin(c, o);
}

err chat_step(chat *c, stream_event *ev, const char **text, size_t *n) {
  *text = "";
  *n = 0;
  err e = stream_step(&c->out, ev);
  if (e) return e;
  if (*ev != STREAM_BUSY && c->out.text.n) {
    *text = c->out.text.p;
    *n = c->out.text.n;
    buf_put(&c->answer, *text, *n);
    if (c->answer.failed) return mem_err("answer", c->answer.n);
  }
  if (*ev == STREAM_DONE && !c->raw)
    e = chat_add(c, "assistant", c->answer.p ? c->answer.p : "", c->answer.n);
  return e;
}

void chat_stop(chat *c) { stream_stop(&c->out); }
