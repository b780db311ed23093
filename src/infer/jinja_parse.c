/* Owns the grammar of statements, and jinja_new. */
#include <string.h>

#include "infer/jinja_impl.h"

enum { MAX_DEPTH = 100 };

jnode *jp_fail(jparser *p, err code, const char *what) {
  if (!p->e) p->e = err_set(code, "chat template line %u: %s", p->t->line, what);
  return NULL;
}

jnode *jp_node(jparser *p, jkind kind) {
  if (p->e) return NULL;
  jnode *n = arena_alloc(p->a, 1, sizeof *n);
  if (!n) {
    p->e = mem_err("chat template node", sizeof *n);
    return NULL;
  }
  n->kind = (uint8_t)kind;
  n->line = p->t->line;
  return n;
}

bool jp_is_op(const jparser *p, char op) { return p->t->kind == JT_OP && p->t->op == (uint8_t)op; }

static bool is_word(const jtok *t, const char *name) {
  return t->kind == JT_NAME && t->n == strlen(name) && memcmp(t->s, name, t->n) == 0;
}
bool jp_is_name(const jparser *p, const char *name) { return is_word(p->t, name); }

bool jp_skip_op(jparser *p, char op) {
  if (!jp_is_op(p, op)) return false;
  p->t++;
  return true;
}

bool jp_expect_op(jparser *p, char op) {
  if (jp_skip_op(p, op)) return true;
  if (!p->e)
    p->e = err_set(ERR_FORMAT, "chat template line %u: expected '%c'", p->t->line,
                   op == 'a' ? '=' : op);
  return false;
}

bool jp_enter(jparser *p) {
  if (p->depth >= MAX_DEPTH) {
    jp_fail(p, ERR_LIMIT, "nesting is over 100 levels");
    return false;
  }
  p->depth++;
  return true;
}
void jp_leave(jparser *p) { p->depth--; }

static jnode *statements(jparser *p, const char *const *ends);

/* The statements up to `{% end`; skips that tag's name. */
static jnode *body_until(jparser *p, const char *end) {
  const char *ends[] = {end, NULL};
  jnode *n = statements(p, ends);
  if (!p->e) p->t++;
  return n;
}

static bool block_end(jparser *p) {
  if (p->e) return false;
  if (p->t->kind != JT_BLOCK_END) {
    jp_fail(p, ERR_FORMAT, p->t->kind == JT_EOF ? "a tag has no end" : "expected the tag's end");
    return false;
  }
  p->t++;
  return true;
}

/* ---- targets ---- */

static bool reserved(const jtok *t) {
  static const char *const words[] = {"true", "false", "none", "True", "False", "None"};
  for (size_t i = 0; i < sizeof words / sizeof *words; i++)
    if (is_word(t, words[i])) return true;
  return false;
}

static jnode *name_target(jparser *p) {
  if (p->t->kind != JT_NAME) return jp_fail(p, ERR_FORMAT, "expected a name");
  if (reserved(p->t)) return jp_fail(p, ERR_FORMAT, "true, false and none cannot be assigned to");
  jnode *n = jp_node(p, JN_NAME);
  if (!n) return NULL;
  n->s = p->t->s;
  n->n = p->t->n;
  p->t++;
  return n;
}

static jnode *target_list(jparser *p);

static jnode *target_item(jparser *p) {
  if (!jp_skip_op(p, '(')) return name_target(p);
  if (!jp_enter(p)) return NULL;
  jnode *n = target_list(p);
  jp_leave(p);
  return n && jp_expect_op(p, ')') ? n : NULL;
}

/* a, or a, (b, c) as a tuple. */
static jnode *target_list(jparser *p) {
  jnode *first = NULL, **tail = &first;
  bool tuple = false;
  do {
    if (first && p->t->kind != JT_NAME && !jp_is_op(p, '(')) break; /* a trailing comma */
    if (first && jp_is_name(p, "in")) break;
    if (!(*tail = target_item(p))) return NULL;
    tail = &(*tail)->next;
    tuple = tuple || jp_is_op(p, ',');
  } while (jp_skip_op(p, ','));
  if (!tuple) return first;
  jnode *n = jp_node(p, JN_TUPLE);
  if (n) n->a = first;
  return n;
}

static jnode *ns_target(jparser *p) {
  jnode *n = jp_node(p, JN_NSREF);
  if (!n) return NULL;
  n->s = p->t->s;
  n->n = p->t->n;
  p->t += 2;
  if (p->t->kind != JT_NAME) return jp_fail(p, ERR_FORMAT, "expected a name after '.'");
  n->val = jval_str(p->a, p->t->s, p->t->n);
  if (!n->val) p->e = mem_err("chat template name", p->t->n);
  p->t++;
  return n;
}

/* ---- statements ---- */

static jnode *parse_if(jparser *p) {
  static const char *const ends[] = {"elif", "else", "endif", NULL};
  static const char *const end[] = {"endif", NULL};
  jnode *n = jp_node(p, JN_IF);
  if (!n) return NULL;
  jnode **tail = &n->a;
  for (;;) {
    jnode *b = jp_node(p, JN_BRANCH);
    if (!b) return NULL;
    *tail = b;
    tail = &b->next;
    b->a = jp_tuple(p, false, NULL, false);
    if (!block_end(p)) return NULL;
    b->b = statements(p, ends);
    if (p->e) return NULL;
    bool again = jp_is_name(p, "elif"), last = jp_is_name(p, "else");
    p->t++;
    if (again) continue;
    if (last) {
      if (!block_end(p)) return NULL;
      b = jp_node(p, JN_BRANCH);
      if (!b) return NULL;
      *tail = b;
      b->b = statements(p, end);
      if (p->e) return NULL;
      p->t++;
    }
    return n;
  }
}

static jnode *parse_for(jparser *p) {
  static const char *const ends[] = {"else", "endfor", NULL};
  jnode *n = jp_node(p, JN_FOR);
  if (!n) return NULL;
  n->a = target_list(p);
  if (p->e) return NULL;
  if (!jp_is_name(p, "in")) return jp_fail(p, ERR_FORMAT, "expected 'in'");
  p->t++;
  n->b = jp_tuple(p, false, "recursive", false);
  if (!p->e && jp_is_name(p, "if")) {
    p->t++;
    n->c = jp_expr(p);
  }
  if (!p->e && jp_is_name(p, "recursive"))
    return jp_fail(p, ERR_UNSUPPORTED, "a recursive for is not supported");
  if (!block_end(p)) return NULL;
  p->loops++;
  n->d = statements(p, ends);
  p->loops--;
  if (p->e) return NULL;
  bool other = jp_is_name(p, "else");
  p->t++;
  if (other && block_end(p)) n->e = body_until(p, "endfor");
  return p->e ? NULL : n;
}

static jnode *parse_set(jparser *p) {
  jnode *n = jp_node(p, JN_SET);
  if (!n) return NULL;
  bool ns = p->t->kind == JT_NAME && p->t[1].kind == JT_OP && p->t[1].op == '.';
  n->a = ns ? ns_target(p) : target_list(p);
  if (p->e) return NULL;
  if (jp_skip_op(p, 'a')) {
    n->b = jp_tuple(p, true, NULL, false);
    return p->e ? NULL : n;
  }
  n->kind = JN_SETBLOCK;
  n->b = jp_filters(p, NULL, false);
  if (block_end(p)) n->d = body_until(p, "endset");
  return p->e ? NULL : n;
}

/* (a, b=1): a chain of JN_PARAM. */
static jnode *signature(jparser *p) {
  jnode *first = NULL, **tail = &first;
  bool defaults = false;
  if (!jp_expect_op(p, '(')) return NULL;
  while (!p->e && !jp_is_op(p, ')')) {
    if (first && !jp_expect_op(p, ',')) return NULL;
    jnode *n = name_target(p);
    if (!n) return NULL;
    n->kind = JN_PARAM;
    *tail = n;
    tail = &n->next;
    if (jp_skip_op(p, 'a')) {
      n->a = jp_expr(p);
      defaults = true;
    } else if (defaults) {
      return jp_fail(p, ERR_FORMAT, "a parameter without default follows one with a default");
    }
  }
  jp_expect_op(p, ')');
  return first;
}

/* The rest of a macro whose parameters are next (or not, in a call block). */
static void macro_rest(jparser *p, jnode *m, const char *end) {
  uint8_t outer = p->uses;
  uint32_t loops = p->loops;
  p->uses = 0;
  p->loops = 0;
  if (block_end(p)) m->d = body_until(p, end);
  m->op = p->uses;
  p->uses |= outer;
  p->loops = loops;
}

static jnode *parse_macro(jparser *p) {
  jnode *n = name_target(p);
  if (!n) return NULL;
  n->kind = JN_MACRO;
  n->b = signature(p);
  if (!p->e) macro_rest(p, n, "endmacro");
  return p->e ? NULL : n;
}

static jnode *parse_call(jparser *p) {
  jnode *n = jp_node(p, JN_CALLBLOCK), *m = jp_node(p, JN_MACRO);
  if (!n || !m) return NULL;
  m->s = "caller";
  m->n = 6;
  if (jp_is_op(p, '(')) m->b = signature(p);
  n->b = m;
  n->a = p->e ? NULL : jp_expr(p);
  if (p->e) return NULL;
  if (n->a->kind != JN_CALL) return jp_fail(p, ERR_FORMAT, "a call block needs a call");
  macro_rest(p, m, "endcall");
  return p->e ? NULL : n;
}

static jnode *parse_filter(jparser *p) {
  jnode *n = jp_node(p, JN_FILTERBLOCK);
  if (!n) return NULL;
  n->b = jp_filters(p, NULL, true);
  if (block_end(p)) n->d = body_until(p, "endfilter");
  return p->e ? NULL : n;
}

static jnode *parse_with(jparser *p) {
  jnode *n = jp_node(p, JN_WITH), **tail = n ? &n->b : NULL;
  while (!p->e && p->t->kind != JT_BLOCK_END) {
    if (n->b && !jp_expect_op(p, ',')) return NULL;
    jnode *s = jp_node(p, JN_SET);
    if (!s) return NULL;
    s->a = name_target(p);
    if (p->e || !jp_expect_op(p, 'a')) return NULL;
    s->b = jp_expr(p);
    *tail = s;
    tail = &s->next;
  }
  if (block_end(p)) n->d = body_until(p, "endwith");
  return p->e ? NULL : n;
}

static jnode *parse_generation(jparser *p) {
  jnode *n = jp_node(p, JN_SCOPE);
  if (n && block_end(p)) n->d = body_until(p, "endgeneration");
  return p->e ? NULL : n;
}

static jnode *parse_flow(jparser *p, jkind kind) {
  if (!p->loops) return jp_fail(p, ERR_FORMAT, "break or continue outside a loop");
  return jp_node(p, kind);
}
static jnode *parse_break(jparser *p) { return parse_flow(p, JN_BREAK); }
static jnode *parse_continue(jparser *p) { return parse_flow(p, JN_CONTINUE); }

static jnode *unknown_tag(jparser *p, const jtok *t) {
  bool end = t->n > 3 && memcmp(t->s, "end", 3) == 0;
  int n = t->n < 60 ? (int)t->n : 60;
  if (end || is_word(t, "else") || is_word(t, "elif"))
    p->e = err_set(ERR_FORMAT, "chat template line %u: tag '%.*s' has no opening tag", t->line, n,
                   t->s);
  else
    p->e = err_set(ERR_UNSUPPORTED, "chat template line %u: tag '%.*s' is not supported", t->line,
                   n, t->s);
  return NULL;
}

static jnode *statement(jparser *p) {
  static const struct {
    const char *name;
    jnode *(*fn)(jparser *);
  } tags[] = {
      {"if", parse_if},       {"for", parse_for},
      {"set", parse_set},     {"macro", parse_macro},
      {"call", parse_call},   {"filter", parse_filter},
      {"with", parse_with},   {"generation", parse_generation},
      {"break", parse_break}, {"continue", parse_continue},
  };
  const jtok *t = p->t;
  if (t->kind != JT_NAME) return jp_fail(p, ERR_FORMAT, "a tag has no name");
  for (size_t i = 0; i < sizeof tags / sizeof *tags; i++) {
    if (!is_word(t, tags[i].name)) continue;
    p->t++;
    if (!jp_enter(p)) return NULL;
    jnode *n = tags[i].fn(p);
    jp_leave(p);
    if (n) n->line = t->line;
    return p->e || !block_end(p) ? NULL : n;
  }
  return unknown_tag(p, t);
}

static jnode *text_or_output(jparser *p) {
  jnode *n = jp_node(p, p->t->kind == JT_TEXT ? JN_TEXT : JN_OUTPUT);
  if (!n) return NULL;
  const jtok *t = p->t++;
  if (t->kind == JT_TEXT) {
    n->s = t->s;
    n->n = t->n;
    return n;
  }
  n->a = jp_tuple(p, true, NULL, false);
  if (p->e) return NULL;
  if (p->t->kind != JT_VAR_END)
    return jp_fail(p, ERR_FORMAT, p->t->kind == JT_EOF ? "{{ has no end" : "expected '}}'");
  p->t++;
  return n;
}

static bool is_end(const jparser *p, const char *const *ends) {
  for (; *ends; ends++)
    if (jp_is_name(p, *ends)) return true;
  return false;
}

/* A chain of statements; stops on the name of a tag of `ends`, or without `ends` at the end. */
static jnode *statements(jparser *p, const char *const *ends) {
  jnode *first = NULL, **tail = &first;
  while (!p->e && p->t->kind != JT_EOF) {
    jnode *n;
    if (p->t->kind == JT_BLOCK_BEGIN) {
      p->t++;
      if (ends && is_end(p, ends)) return first;
      n = statement(p);
    } else {
      n = text_or_output(p);
    }
    if (!n) return NULL;
    *tail = n;
    tail = &n->next;
  }
  while (ends && ends[1]) ends++; /* the tag that must come */
  if (!p->e && ends)
    p->e =
        err_set(ERR_FORMAT, "chat template line %u: the text ends before '%s'", p->t->line, *ends);
  return first;
}

jnode *jp_body(jparser *p) { return statements(p, NULL); }

err jinja_new(const char *text, size_t n, jinja **out) {
  *out = NULL;
  jinja *t = mem_zalloc(1, sizeof *t);
  if (!t) return mem_err("chat template", sizeof *t);
  jtok *toks = NULL;
  size_t count;
  err e = jinja_lex(&t->mem, text, n, &toks, &count);
  if (!e) {
    jparser p = {.a = &t->mem, .t = toks};
    t->body = jp_body(&p);
    e = p.e;
  }
  mem_free(toks);
  if (e) {
    jinja_free(t);
    return e;
  }
  *out = t;
  return ERR_NONE;
}

void jinja_free(jinja *t) {
  if (!t) return;
  arena_free(&t->mem);
  mem_free(t);
}
