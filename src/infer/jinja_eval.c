/* Owns the evaluation of expressions, and calls of built-ins. */
#include <math.h>
#include <string.h>

#include "infer/jinja_impl.h"

/* ---- calls ---- */

/* Splices *args and **kwargs; counts first. */
static bool spread(jctx *c, const jnode *n, jval *v, jval **items, size_t *pos, size_t *kw) {
  *items = v;
  if (n->op == '*') {
    *items = jx_iter(c, v);
    if (!*items) return false;
    *pos += (*items)->seq.n;
  } else if (n->op == '^') {
    if (v->type != JV_DICT) return jx_fail(c, ERR_FORMAT, "** takes a dict"), false;
    *kw += v->d.n;
  } else {
    *(n->s ? kw : pos) += 1;
  }
  return true;
}

bool jx_args(jctx *c, const jnode *list, jargs *out) {
  *out = (jargs){0};
  size_t n = 0, pos = 0, kw = 0;
  for (const jnode *x = list; x; x = x->next) n++;
  if (!n) return true;
  jval **v = jx_alloc(c, n, sizeof *v);
  if (!v) return false;
  n = 0;
  for (const jnode *x = list; x; x = x->next, n++) {
    jval *value = jx_eval(c, x->a);
    if (!value || !spread(c, x, value, &v[n], &pos, &kw)) return false;
  }
  out->pos = jx_alloc(c, pos + 1, sizeof *out->pos);
  out->kw = jx_alloc(c, kw + 1, sizeof *out->kw);
  if (!out->pos || !out->kw) return false;
  n = 0;
  for (const jnode *x = list; x; x = x->next, n++) {
    if (x->op == '*') {
      for (size_t i = 0; i < v[n]->seq.n; i++) out->pos[out->npos++] = v[n]->seq.v[i];
    } else if (x->op == '^') {
      for (size_t i = 0; i < v[n]->d.n; i++) {
        const jpair *p = &v[n]->d.v[i];
        if (p->key->type != JV_STR) return jx_fail(c, ERR_FORMAT, "** keys must be strings"), false;
        out->kw[out->nkw++] = (jkw){p->key->s.p, p->key->s.n, p->val};
      }
    } else if (x->s) {
      out->kw[out->nkw++] = (jkw){x->s, x->n, v[n]};
    } else {
      out->pos[out->npos++] = v[n];
    }
  }
  return true;
}

/* Index of a declared parameter, or -1. */
static int param(const char *list, const char *s, size_t n) {
  for (int i = 0; *list; i++) {
    size_t k = strcspn(list, " ");
    if (k == n && memcmp(list, s, n) == 0) return i;
    list += k + (list[k] == ' ');
  }
  return -1;
}

jval *jx_builtin(jctx *c, const jbuiltin *b, const char *sort, jval *self, const jargs *a) {
  jval *av[6] = {0};
  if (!jx_work(c, 1)) return NULL;
  if (b->params[0] == '*') return b->fn(c, self, a, av);
  size_t count = b->params[0] != 0;
  for (const char *p = b->params; *p; p++) count += *p == ' ';
  if (a->npos > count)
    return jx_fail(c, ERR_FORMAT, "%s '%s' takes at most %zu arguments", sort, b->name, count);
  for (size_t i = 0; i < a->npos; i++) av[i] = a->pos[i];
  for (size_t i = 0; i < a->nkw; i++) {
    int k = param(b->params, a->kw[i].s, a->kw[i].n);
    if (k < 0 || av[k])
      return jx_fail(c, ERR_FORMAT, "%s '%s' %s argument '%.*s'%s", sort, b->name,
                     k < 0 ? "has no" : "got", (int)a->kw[i].n, a->kw[i].s, k < 0 ? "" : " twice");
    av[k] = a->kw[i].v;
  }
  for (size_t i = 0; i < b->need; i++)
    if (!av[i]) return jx_fail(c, ERR_FORMAT, "%s '%s' needs %d arguments", sort, b->name, b->need);
  return b->fn(c, self, a, av);
}

jval *jx_call(jctx *c, jval *f, const jargs *a) {
  if (f->type == JV_UNDEF) return jx_fail(c, ERR_FORMAT, "%s", f->s.p);
  if (f->type == JV_LOOP) return jx_fail(c, ERR_UNSUPPORTED, "a recursive loop is not supported");
  if (f->type != JV_FUNC) return jx_fail(c, ERR_FORMAT, "%s cannot be called", jv_type_name(f));
  if (!f->fn.fn) return jx_macro(c, f, a);
  return jx_builtin(c, f->fn.fn, f->fn.self ? "method" : "function", f->fn.self, a);
}

static jval *filter_or_test(jctx *c, const jnode *n, jval *subject) {
  jargs a;
  const char *sort = n->kind == JN_FILTER ? "filter" : "test";
  if (!n->fn)
    return jx_fail(c, ERR_UNSUPPORTED, "%s '%.*s' is not supported", sort,
                   n->n < 60 ? (int)n->n : 60, n->s);
  if (!jx_args(c, n->b, &a)) return NULL;
  c->line = n->line;
  return jx_builtin(c, n->fn, sort, subject, &a);
}

jval *jx_apply(jctx *c, const jnode *n, jval *subject) {
  if (n->a) subject = jx_apply(c, n->a, subject);
  return subject ? filter_or_test(c, n, subject) : NULL;
}

/* ---- operators ---- */

static bool compare(jctx *c, char op, jval *a, jval *b) {
  switch (op) {
  case '=': return jx_equal(c, a, b);
  case '!': return !jx_equal(c, a, b);
  case '<': return jx_less(c, a, b);
  case '>': return jx_less(c, b, a);
  case 'i': return jx_in(c, a, b);
  case 'n': return !jx_in(c, a, b);
  default: break;
  }
  double x, y; /* <= and >=: not by negation, for NaN */
  if (jv_num(a, &x) && jv_num(b, &y) && (isnan(x) || isnan(y))) return false;
  return op == 'l' ? !jx_less(c, b, a) : !jx_less(c, a, b);
}

static jval *eval_compare(jctx *c, const jnode *n) {
  jval *a = jx_eval(c, n->a);
  bool ok = true;
  for (const jnode *x = n->b; a && ok && x; x = x->next) {
    jval *b = jx_eval(c, x->a);
    if (!b) return NULL;
    c->line = n->line;
    ok = compare(c, (char)x->op, a, b);
    a = b;
  }
  return a && !c->e ? jx_bool(ok) : NULL;
}

static jval *eval_sign(jctx *c, const jnode *n) {
  jval *v = jx_eval(c, n->a);
  int64_t i;
  if (!v) return NULL;
  if (v->type == JV_UNDEF) return jx_fail(c, ERR_FORMAT, "%s", v->s.p);
  if (v->type == JV_FLOAT) return jx_f64(c, n->kind == JN_NEG ? -v->f : v->f);
  if (!jv_whole(v, &i)) return jx_fail(c, ERR_FORMAT, "%s has no sign", jv_type_name(v));
  if (i == INT64_MIN) return jx_fail(c, ERR_LIMIT, "an integer is over 64 bits");
  return jx_int(c, n->kind == JN_NEG ? -i : i);
}

static jval *eval_chain(jctx *c, const jnode *n) {
  jval *seq = jx_seq(c, n->kind == JN_TUPLE ? JS_TUPLE : JS_LIST);
  for (const jnode *x = n->a; seq && x; x = x->next)
    if (!jx_push(c, seq, jx_eval(c, x))) return NULL;
  return seq;
}

static jval *eval_dict(jctx *c, const jnode *n) {
  jval *d = jx_dict(c);
  for (const jnode *x = n->a; d && x; x = x->next) {
    jval *key = jx_eval(c, x->a), *val = key ? jx_eval(c, x->b) : NULL;
    if (!val || !jx_dset(c, d, key, val)) return NULL;
  }
  return d;
}

static jval *eval_slice(jctx *c, const jnode *n) {
  jval *v = jx_eval(c, n->a), *part[3] = {0};
  const jnode *x[3] = {n->b, n->c, n->d};
  for (int i = 0; v && i < 3; i++)
    if (x[i] && !(part[i] = jx_eval(c, x[i]))) return NULL;
  return v ? jx_slice(c, v, part[0], part[1], part[2]) : NULL;
}

static jval *eval_call(jctx *c, const jnode *n) {
  jargs a;
  jval *f = jx_eval(c, n->a);
  if (!f || !jx_args(c, n->b, &a)) return NULL;
  c->line = n->line;
  return jx_call(c, f, &a);
}

static jval *eval_cond(jctx *c, const jnode *n) {
  jval *test = jx_eval(c, n->b);
  if (!test) return NULL;
  if (jv_truth(test)) return jx_eval(c, n->a);
  if (n->c) return jx_eval(c, n->c);
  return jx_undef(c, "the inline if evaluated to false and has no else");
}

/* Two operands, both evaluated. */
static jval *eval_two(jctx *c, const jnode *n) {
  jval *a = jx_eval(c, n->a), *b = a ? jx_eval(c, n->b) : NULL;
  if (!b) return NULL;
  c->line = n->line;
  return n->kind == JN_ITEM ? jx_item(c, a, b) : jx_arith(c, (char)n->op, a, b);
}

static jval *eval_concat(jctx *c, const jnode *n) {
  jval *parts = eval_chain(c, n);
  return parts ? jx_concat(c, parts->seq.v, parts->seq.n) : NULL;
}

static jval *eval(jctx *c, const jnode *n) {
  jval *v;
  switch (n->kind) {
  case JN_CONST: return n->val;
  case JN_NAME: return jx_lookup(c, n->s, n->n);
  case JN_LIST:
  case JN_TUPLE: return eval_chain(c, n);
  case JN_DICT: return eval_dict(c, n);
  case JN_ATTR: return (v = jx_eval(c, n->a)) ? jx_attr(c, v, n->s, n->n) : NULL;
  case JN_SLICE: return eval_slice(c, n);
  case JN_CALL: return eval_call(c, n);
  case JN_FILTER:
  case JN_TEST: return (v = jx_eval(c, n->a)) ? filter_or_test(c, n, v) : NULL;
  case JN_NEG:
  case JN_POS: return eval_sign(c, n);
  case JN_NOT: return (v = jx_eval(c, n->a)) ? jx_bool(!jv_truth(v)) : NULL;
  case JN_CMP: return eval_compare(c, n);
  case JN_AND: return (v = jx_eval(c, n->a)) && jv_truth(v) ? jx_eval(c, n->b) : v;
  case JN_OR: return !(v = jx_eval(c, n->a)) || jv_truth(v) ? v : jx_eval(c, n->b);
  case JN_CONCAT: return eval_concat(c, n);
  case JN_COND: return eval_cond(c, n);
  default: return eval_two(c, n); /* JN_ITEM, JN_BIN */
  }
}

jval *jx_eval(jctx *c, const jnode *n) {
  c->line = n->line;
  if (!jx_work(c, 1) || !jx_enter(c)) return NULL;
  jval *v = eval(c, n);
  c->depth--;
  return c->e ? NULL : v;
}
