/* Owns a render: its limits, scopes, statements and macros. */
#include <stdio.h>
#include <string.h>

#include "infer/jinja_impl.h"

/* ---- errors, limits, memory ---- */

jval *jx_fail(jctx *c, err code, const char *fmt, ...) {
  if (c->e) return NULL;
  char text[768];
  va_list ap;
  va_start(ap, fmt);
  vsnprintf(text, sizeof text, fmt, ap);
  va_end(ap);
  c->e = err_set(code, "chat template line %u: %s", c->line, text);
  return NULL;
}

bool jx_work(jctx *c, uint64_t units) {
  if (c->e) return false;
  c->steps += units;
  if (c->steps > c->o.max_steps) {
    jx_fail(c, ERR_LIMIT, "the template runs for more than %llu steps",
            (unsigned long long)c->o.max_steps);
    return false;
  }
  if (c->mem.used > c->o.max_memory) {
    jx_fail(c, ERR_LIMIT, "the template needs more than %zu bytes", c->o.max_memory);
    return false;
  }
  return true;
}

bool jx_enter(jctx *c) {
  if (c->depth >= c->o.max_depth) {
    jx_fail(c, ERR_LIMIT, "nesting is over %u levels", c->o.max_depth);
    return false;
  }
  c->depth++;
  return true;
}

void *jx_alloc(jctx *c, size_t n, size_t size) {
  if (c->e) return NULL;
  if (n > c->o.max_memory / size || c->mem.used > c->o.max_memory - n * size)
    return jx_fail(c, ERR_LIMIT, "the template needs more than %zu bytes", c->o.max_memory);
  void *p = arena_alloc(&c->mem, n, size);
  if (!p) jx_fail(c, ERR_NOMEM, "out of memory: %zu bytes", n * size);
  return p;
}

bool jx_put(jctx *c, buf *b, const char *p, size_t n) {
  if (!jx_work(c, 1 + n / 16)) return false;
  bool out = b == c->out;
  size_t limit = out && c->o.max_output < c->o.max_memory ? c->o.max_output : c->o.max_memory;
  size_t have = b->n - (out ? c->out_base : 0);
  if (n > limit || have > limit - n) {
    jx_fail(c, ERR_LIMIT, "the text is over %zu bytes", limit);
    return false;
  }
  buf_put(b, p, n);
  if (b->failed) jx_fail(c, ERR_NOMEM, "out of memory: %zu bytes of text", b->n + n);
  return !b->failed;
}

/* ---- scopes ---- */

static jscope *scope_new(jctx *c, jscope *parent) {
  jscope *s = jx_alloc(c, 1, sizeof *s);
  if (s) s->parent = parent;
  return s;
}

bool jx_assign(jctx *c, const char *s, size_t n, jval *v) {
  jscope *sc = c->scope;
  if (!v) return false;
  for (size_t i = 0; i < sc->n; i++) {
    if (sc->v[i].n != n || memcmp(sc->v[i].s, s, n) != 0) continue;
    sc->v[i].v = v;
    return true;
  }
  if (sc->n == sc->cap) {
    size_t cap = sc->cap ? sc->cap * 2 : 4;
    jvar *more = jx_alloc(c, cap, sizeof *more);
    if (!more) return false;
    if (sc->n) memcpy(more, sc->v, sc->n * sizeof *more);
    sc->v = more;
    sc->cap = cap;
  }
  sc->v[sc->n++] = (jvar){s, n, v};
  return true;
}

static jval *lookup_var(jctx *c, const char *s, size_t n) {
  for (const jscope *sc = c->scope; sc; sc = sc->parent) {
    if (!jx_work(c, sc->n / 16)) return NULL;
    for (size_t i = 0; i < sc->n; i++)
      if (sc->v[i].n == n && memcmp(sc->v[i].s, s, n) == 0) return sc->v[i].v;
  }
  return NULL;
}

jval *jx_lookup(jctx *c, const char *s, size_t n) {
  jval *v = lookup_var(c, s, n);
  if (!v && !c->e && c->globals) v = jd_gets(&c->globals->d, s, n);
  if (v || c->e) return c->e ? NULL : v;
  const jbuiltin *b = jinja_global(s, n);
  if (!b) return jx_undef(c, "'%.*s' is undefined", n < 99 ? (int)n : 99, s);
  v = jx_new(c, JV_FUNC);
  if (v) v->fn.fn = b;
  return v;
}

/* ---- statements ---- */

static bool assign_target(jctx *c, const jnode *t, jval *v);

static bool unpack(jctx *c, const jnode *t, jval *v) {
  jval *items = jx_iter(c, v);
  if (!items) return false;
  size_t n = 0;
  for (const jnode *x = t->a; x; x = x->next) n++;
  if (n != items->seq.n) {
    jx_fail(c, ERR_FORMAT, "%zu names take a value of %zu items", n, items->seq.n);
    return false;
  }
  size_t i = 0;
  for (const jnode *x = t->a; x; x = x->next)
    if (!assign_target(c, x, items->seq.v[i++])) return false;
  return true;
}

static bool assign_target(jctx *c, const jnode *t, jval *v) {
  if (!v) return false;
  c->line = t->line;
  if (t->kind == JN_TUPLE) return unpack(c, t, v);
  if (t->kind == JN_NAME) return jx_assign(c, t->s, t->n, v);
  jval *ns = jx_lookup(c, t->s, t->n);
  if (!ns) return false;
  if (ns->type != JV_NS) {
    jx_fail(c, ERR_FORMAT, "'%s' of %s cannot be set: only a namespace's can", t->val->s.p,
            jv_type_name(ns));
    return false;
  }
  return jx_dset(c, ns, t->val, v);
}

/* Runs a body in a scope of its own; its output goes to *text when given, else on. */
static bool run_inner(jctx *c, const jnode *body, jval **text) {
  jscope *outer = c->scope;
  buf b = {0}, *out = c->out;
  if (text) c->out = &b;
  c->scope = scope_new(c, outer);
  bool ok = c->scope && jx_exec(c, body);
  c->scope = outer;
  c->out = out;
  if (!text) return ok;
  *text = ok ? jx_buf(c, &b) : NULL;
  if (!ok) buf_free(&b);
  return *text != NULL;
}

static bool exec_if(jctx *c, const jnode *n) {
  for (const jnode *b = n->a; b; b = b->next) {
    jval *v = b->a ? jx_eval(c, b->a) : NULL;
    if (b->a && !v) return false;
    if (!v || jv_truth(v)) return jx_exec(c, b->b);
  }
  return true;
}

/* A fresh scope for the next turn of a loop: the last one's, unless a macro keeps it. */
static bool turn_scope(jctx *c, jscope *outer) {
  if (c->scope != outer && !c->scope->captured) {
    c->scope->n = 0;
    return true;
  }
  c->scope = scope_new(c, outer);
  return c->scope != NULL;
}

/* The items for which `n->c` holds. */
static jval *loop_filter(jctx *c, const jnode *n, jval *items, jscope *outer) {
  jval *out = jx_seq(c, JS_LIST);
  for (size_t i = 0; out && i < items->seq.n; i++) {
    if (!turn_scope(c, outer) || !assign_target(c, n->a, items->seq.v[i])) return NULL;
    jval *v = jx_eval(c, n->c);
    if (!v || (jv_truth(v) && !jx_push(c, out, items->seq.v[i]))) return NULL;
  }
  return out;
}

static bool run_loop(jctx *c, const jnode *n, jval *items, jscope *outer) {
  jloop *loop = jx_alloc(c, 1, sizeof *loop);
  jval *lv = jx_new(c, JV_LOOP);
  if (!loop || !lv) return false;
  *loop = (jloop){.v = items->seq.v, .n = items->seq.n};
  lv->loop = loop;
  bool ok = true;
  for (; ok && loop->i < loop->n; loop->i++) {
    ok = turn_scope(c, outer) && jx_assign(c, "loop", 4, lv) &&
         assign_target(c, n->a, loop->v[loop->i]) && jx_exec(c, n->d);
    uint8_t flow = c->flow;
    c->flow = 0;
    if (flow == JN_BREAK) break;
  }
  return ok;
}

static bool exec_for(jctx *c, const jnode *n) {
  jval *v = jx_eval(c, n->b), *items = v ? jx_iter(c, v) : NULL;
  if (!items) return false;
  jscope *outer = c->scope;
  if (n->c) items = loop_filter(c, n, items, outer);
  bool ok = items && run_loop(c, n, items, outer);
  c->scope = outer;
  if (ok && items->seq.n == 0 && n->e) ok = run_inner(c, n->e, NULL);
  return ok;
}

static bool exec_set_block(jctx *c, const jnode *n) {
  jval *v;
  if (!run_inner(c, n->d, &v)) return false;
  return assign_target(c, n->a, n->b ? jx_apply(c, n->b, v) : v);
}

static bool exec_filter(jctx *c, const jnode *n) {
  jval *v;
  if (!run_inner(c, n->d, &v)) return false;
  v = jx_apply(c, n->b, v);
  return v && jx_print(c, c->out, v, false);
}

static bool exec_with(jctx *c, const jnode *n) {
  jscope *outer = c->scope, *inner = scope_new(c, outer);
  bool ok = inner != NULL;
  for (const jnode *s = n->b; ok && s; s = s->next) {
    jval *v = jx_eval(c, s->b);
    c->scope = inner;
    ok = assign_target(c, s->a, v);
    c->scope = outer;
  }
  c->scope = inner;
  ok = ok && jx_exec(c, n->d);
  c->scope = outer;
  return ok;
}

static jval *macro_value(jctx *c, const jnode *m) {
  jval *v = jx_new(c, JV_FUNC);
  if (!v) return NULL;
  v->fn.macro = m;
  v->fn.env = c->scope;
  for (jscope *s = c->scope; s; s = s->parent) s->captured = true;
  return v;
}

static bool exec_call(jctx *c, const jnode *n) {
  jargs a;
  jval *f = jx_eval(c, n->a->a), *caller = macro_value(c, n->b);
  if (!f || !caller || !jx_args(c, n->a->b, &a)) return false;
  jkw *kw = jx_alloc(c, a.nkw + 1, sizeof *kw);
  if (!kw) return false;
  if (a.nkw) memcpy(kw, a.kw, a.nkw * sizeof *kw);
  kw[a.nkw++] = (jkw){"caller", 6, caller};
  a.kw = kw;
  c->line = n->line;
  jval *v = jx_call(c, f, &a);
  return v && jx_print(c, c->out, v, false);
}

static bool exec_one(jctx *c, const jnode *n) {
  jval *v;
  switch (n->kind) {
  case JN_TEXT: return jx_put(c, c->out, n->s, n->n);
  case JN_OUTPUT: return (v = jx_eval(c, n->a)) && jx_print(c, c->out, v, false);
  case JN_IF: return exec_if(c, n);
  case JN_FOR: return exec_for(c, n);
  case JN_SET: return assign_target(c, n->a, jx_eval(c, n->b));
  case JN_SETBLOCK: return exec_set_block(c, n);
  case JN_MACRO: return jx_assign(c, n->s, n->n, macro_value(c, n));
  case JN_CALLBLOCK: return exec_call(c, n);
  case JN_FILTERBLOCK: return exec_filter(c, n);
  case JN_WITH: return exec_with(c, n);
  case JN_SCOPE: return run_inner(c, n->d, NULL);
  default: c->flow = n->kind; return true; /* break, continue */
  }
}

bool jx_exec(jctx *c, const jnode *body) {
  if (!jx_enter(c)) return false;
  bool ok = true;
  for (const jnode *n = body; ok && n && !c->flow; n = n->next) {
    c->line = n->line;
    ok = jx_work(c, 1) && exec_one(c, n);
  }
  c->depth--;
  return ok && !c->e;
}

/* ---- macros ---- */

static jval *take_kw(jargs *a, bool *used, const char *s, size_t n) {
  for (size_t i = 0; i < a->nkw; i++) {
    if (a->kw[i].n != n || memcmp(a->kw[i].s, s, n) != 0) continue;
    used[i] = true;
    return a->kw[i].v;
  }
  return NULL;
}

/* What the parameters leave: caller, kwargs and varargs, for a macro that uses them. */
static bool bind_rest(jctx *c, const jnode *m, jargs *a, bool *used, size_t n) {
  jval *caller = take_kw(a, used, "caller", 6);
  if (m->op & JU_CALLER) {
    if (!caller) caller = jx_undef(c, "no caller defined");
    if (!jx_assign(c, "caller", 6, caller)) return false;
  }
  jval *kwargs = jx_dict(c), *varargs = jx_seq(c, JS_TUPLE);
  if (!kwargs || !varargs) return false;
  for (size_t i = 0; i < a->nkw; i++) {
    if (used[i]) continue;
    if (!(m->op & JU_KWARGS))
      return jx_fail(c, ERR_FORMAT, "macro '%.*s' takes no argument '%.*s'", (int)m->n, m->s,
                     (int)a->kw[i].n, a->kw[i].s),
             false;
    if (!jx_dset(c, kwargs, jx_str(c, a->kw[i].s, a->kw[i].n), a->kw[i].v)) return false;
  }
  if (n < a->npos && !(m->op & JU_VARARGS))
    return jx_fail(c, ERR_FORMAT, "macro '%.*s' takes at most %zu arguments", (int)m->n, m->s, n),
           false;
  for (size_t i = n; i < a->npos; i++)
    if (!jx_push(c, varargs, a->pos[i])) return false;
  if ((m->op & JU_KWARGS) && !jx_assign(c, "kwargs", 6, kwargs)) return false;
  return !(m->op & JU_VARARGS) || jx_assign(c, "varargs", 7, varargs);
}

static bool bind(jctx *c, const jnode *m, const jargs *given) {
  jargs a = *given;
  bool *used = jx_alloc(c, a.nkw + 1, sizeof *used);
  if (!used) return false;
  size_t n = 0;
  for (const jnode *p = m->b; p; p = p->next, n++) {
    jval *named = take_kw(&a, used, p->s, p->n), *v = n < a.npos ? a.pos[n] : named;
    if (n < a.npos && named)
      return jx_fail(c, ERR_FORMAT, "macro '%.*s' got '%.*s' twice", (int)m->n, m->s, (int)p->n,
                     p->s),
             false;
    if (!v && p->a) v = jx_eval(c, p->a);
    if (!v && !p->a) v = jx_undef(c, "parameter '%.*s' was not provided", (int)p->n, p->s);
    if (!jx_assign(c, p->s, p->n, v)) return false;
  }
  return bind_rest(c, m, &a, used, n);
}

jval *jx_macro(jctx *c, const jval *f, const jargs *a) {
  const jnode *m = f->fn.macro;
  jscope *outer = c->scope;
  uint32_t line = c->line;
  uint8_t flow = c->flow;
  jval *text = NULL;
  if (!jx_enter(c)) return NULL;
  c->flow = 0;
  c->scope = scope_new(c, f->fn.env);
  if (c->scope && bind(c, m, a) && !run_inner(c, m->d, &text)) text = NULL;
  c->scope = outer;
  c->flow = flow;
  if (!c->e) c->line = line;
  c->depth--;
  return c->e ? NULL : text;
}

/* ---- entry ---- */

static jinja_opts with_defaults(const jinja_opts *o) {
  jinja_opts r = o ? *o : (jinja_opts){0};
  if (!r.max_steps) r.max_steps = 20000000;
  if (!r.max_memory) r.max_memory = (size_t)256 << 20;
  if (!r.max_output) r.max_output = (size_t)16 << 20;
  if (!r.max_depth) r.max_depth = 400;
  return r;
}

err jinja_render(const jinja *t, const jval *globals, const jinja_opts *o, buf *out) {
  if (globals && globals->type != JV_DICT)
    return err_set(ERR_ARG, "chat template: the globals are %s, not a dict", jv_type_name(globals));
  if (out->failed) return mem_err("chat template text", out->n);
  size_t base = out->n;
  jctx c = {.globals = globals, .o = with_defaults(o), .out = out, .out_base = base, .line = 1};
  c.scope = scope_new(&c, NULL);
  if (c.scope) jx_exec(&c, t->body);
  arena_free(&c.mem);
  if (!c.e) return ERR_NONE;
  out->n = base;
  out->failed = false;
  if (out->p) out->p[base] = 0;
  return c.e;
}
