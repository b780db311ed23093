/* Owns the filters on sequences. Those that are lazy in jinja2 give a generator here too (true even
 * when empty, walked once), but its items are computed at once. */
#include <string.h>

#include "infer/jinja_impl.h"

#define UNUSED (void)a, (void)av, (void)c

static jval *f_length(jctx *c, jval *v, const jargs *a, jval **av) {
  UNUSED;
  if (v->type == JV_UNDEF) return jx_int(c, 0);
  if (v->type == JV_STR && !jx_work(c, v->s.n / 16)) return NULL;
  if (v->type == JV_STR) return jx_int(c, (int64_t)jt_count(v->s.p, v->s.n));
  if (v->type == JV_DICT) return jx_int(c, (int64_t)v->d.n);
  if (v->type == JV_SEQ && v->flavor != JS_GEN) return jx_int(c, (int64_t)v->seq.n);
  return jx_fail(c, ERR_FORMAT, "%s has no length", jv_type_name(v));
}

static jval *f_list(jctx *c, jval *v, const jargs *a, jval **av) {
  UNUSED;
  jval *items = jx_iter(c, v), *out = items ? jx_seq(c, JS_LIST) : NULL;
  if (!out || (v->type == JV_SEQ && v->flavor == JS_LIST)) return out ? v : NULL;
  for (size_t i = 0; i < items->seq.n; i++)
    if (!jx_push(c, out, items->seq.v[i])) return NULL;
  return out;
}

static jval *end_item(jctx *c, jval *v, bool last) {
  jval *items = jx_iter(c, v);
  if (!items) return NULL;
  if (!items->seq.n) return jx_undef(c, "there is no %s item", last ? "last" : "first");
  return items->seq.v[last ? items->seq.n - 1 : 0];
}
static jval *f_first(jctx *c, jval *v, const jargs *a, jval **av) {
  UNUSED;
  return end_item(c, v, false);
}
static jval *f_last(jctx *c, jval *v, const jargs *a, jval **av) {
  UNUSED;
  return end_item(c, v, true);
}

static jval *f_reverse(jctx *c, jval *v, const jargs *a, jval **av) {
  UNUSED;
  jval *items = jx_iter(c, v), *out = items ? jx_seq(c, JS_GEN) : NULL;
  if (!out) return NULL;
  for (size_t i = items->seq.n; i-- > 0;)
    if (!jx_push(c, out, items->seq.v[i])) return NULL;
  return v->type == JV_STR ? jx_concat(c, out->seq.v, out->seq.n) : out;
}

static jval *f_items(jctx *c, jval *v, const jargs *a, jval **av) {
  UNUSED;
  if (v->type != JV_UNDEF && v->type != JV_DICT)
    return jx_fail(c, ERR_FORMAT, "items takes a dict, not %s", jv_type_name(v));
  const jbuiltin *m = v->type == JV_DICT ? jinja_method(v, "items", 5) : NULL;
  jval *out = m ? m->fn(c, v, a, av) : jx_seq(c, JS_GEN);
  if (out) out->flavor = JS_GEN;
  return out;
}

/* ---- keys: an attribute of the item, letters folded ---- */

static jval *fold(jctx *c, jval *v) {
  const jargs none = {0};
  return v->type == JV_STR ? jinja_filter("lower", 5)->fn(c, v, &none, NULL) : v;
}

/* The items' keys, in a new list. */
static jval *keys_of(jctx *c, const jval *items, const jval *attribute, bool cased) {
  jval *out = jx_seq(c, JS_LIST);
  for (size_t i = 0; out && i < items->seq.n; i++) {
    jval *k = items->seq.v[i];
    if (attribute && attribute->type != JV_NONE) k = jx_path(c, k, attribute);
    if (k && !cased) k = fold(c, k);
    if (!jx_push(c, out, k)) return NULL;
  }
  return out;
}

static bool flag(const jval *v) { return v && jv_truth(v); }

static jval *f_sort(jctx *c, jval *v, const jargs *a, jval **av) {
  (void)a;
  jval *items = jx_iter(c, v), *keys = items ? keys_of(c, items, av[2], flag(av[1])) : NULL;
  return keys ? jx_sort(c, items, keys, flag(av[0])) : NULL;
}

static jval *f_dictsort(jctx *c, jval *v, const jargs *a, jval **av) {
  (void)a;
  if (v->type != JV_DICT) return jx_fail(c, ERR_FORMAT, "dictsort takes a dict");
  bool by_value = jv_is_str(av[1], "value");
  if (av[1] && !by_value && !jv_is_str(av[1], "key"))
    return jx_fail(c, ERR_FORMAT, "dictsort sorts by 'key' or 'value'");
  jval at = {.type = JV_INT, .i = by_value};
  jval *items = f_items(c, v, a, av), *keys = items ? keys_of(c, items, &at, flag(av[0])) : NULL;
  return keys ? jx_sort(c, items, keys, flag(av[2])) : NULL;
}

static jval *f_unique(jctx *c, jval *v, const jargs *a, jval **av) {
  (void)a;
  jval *items = jx_iter(c, v), *keys = items ? keys_of(c, items, av[1], flag(av[0])) : NULL;
  jval *out = jx_seq(c, JS_GEN);
  for (size_t i = 0; keys && out && i < keys->seq.n; i++) {
    size_t k = 0;
    while (k < i && !jx_equal(c, keys->seq.v[k], keys->seq.v[i])) k++;
    if (c->e || (k == i && !jx_push(c, out, items->seq.v[i]))) return NULL;
  }
  return keys ? out : NULL;
}

static jval *extreme(jctx *c, jval *v, jval **av, bool max) {
  jval *items = jx_iter(c, v), *keys = items ? keys_of(c, items, av[1], flag(av[0])) : NULL;
  if (!keys) return NULL;
  if (!keys->seq.n) return jx_undef(c, "there is no item");
  size_t best = 0;
  for (size_t i = 1; i < keys->seq.n && !c->e; i++) {
    const jval *x = keys->seq.v[i], *y = keys->seq.v[best];
    if (max ? jx_less(c, y, x) : jx_less(c, x, y)) best = i;
  }
  return c->e ? NULL : items->seq.v[best];
}
static jval *f_min(jctx *c, jval *v, const jargs *a, jval **av) {
  (void)a;
  return extreme(c, v, av, false);
}
static jval *f_max(jctx *c, jval *v, const jargs *a, jval **av) {
  (void)a;
  return extreme(c, v, av, true);
}

static jval *f_sum(jctx *c, jval *v, const jargs *a, jval **av) {
  (void)a;
  jval *items = jx_iter(c, v), *keys = items ? keys_of(c, items, av[0], true) : NULL;
  jval *sum = av[1] ? av[1] : jx_int(c, 0);
  for (size_t i = 0; keys && sum && i < keys->seq.n; i++)
    sum = jx_arith(c, '+', sum, keys->seq.v[i]);
  return keys ? sum : NULL;
}

static jval *f_join(jctx *c, jval *v, const jargs *a, jval **av) {
  (void)a;
  jval *items = jx_iter(c, v), *keys = items ? keys_of(c, items, av[1], true) : NULL;
  jval *out = keys ? jx_seq(c, JS_LIST) : NULL;
  for (size_t i = 0; out && i < keys->seq.n; i++) {
    if (i && av[0] && !jx_push(c, out, av[0])) return NULL;
    if (!jx_push(c, out, keys->seq.v[i])) return NULL;
  }
  return out ? jx_concat(c, out->seq.v, out->seq.n) : NULL;
}

/* ---- map, select and their kin ---- */

static jargs rest(const jargs *a, size_t skip) {
  jargs r = *a;
  if (skip > r.npos) skip = r.npos;
  r.pos = r.pos ? r.pos + skip : NULL;
  r.npos -= skip;
  return r;
}

static jval *keyword(const jargs *a, const char *name) {
  for (size_t i = 0; i < a->nkw; i++)
    if (a->kw[i].n == strlen(name) && memcmp(a->kw[i].s, name, a->kw[i].n) == 0) return a->kw[i].v;
  return NULL;
}

/* What map and select walk: in jinja2 they take none, 0 and the like as nothing. */
static jval *walk(jctx *c, jval *v) { return jv_truth(v) ? jx_iter(c, v) : jx_seq(c, JS_LIST); }

/* The filter or test whose name is argument i. */
static const jbuiltin *named(jctx *c, const jargs *a, size_t i, bool filter) {
  const char *sort = filter ? "filter" : "test";
  if (i >= a->npos || a->pos[i]->type != JV_STR)
    return jx_fail(c, ERR_FORMAT, "expected the name of a %s", sort), NULL;
  const jval *s = a->pos[i];
  const jbuiltin *b = filter ? jinja_filter(s->s.p, s->s.n) : jinja_test(s->s.p, s->s.n);
  if (!b)
    jx_fail(c, ERR_UNSUPPORTED, "%s '%.*s' is not supported", sort, s->s.n < 60 ? (int)s->s.n : 60,
            s->s.p);
  return b;
}

static jval *f_map(jctx *c, jval *v, const jargs *a, jval **av) {
  (void)av;
  jval *path = a->npos ? NULL : keyword(a, "attribute"), *other = keyword(a, "default");
  const jbuiltin *f = path ? NULL : named(c, a, 0, true);
  jval *items = path || f ? walk(c, v) : NULL, *out = items ? jx_seq(c, JS_GEN) : NULL;
  jargs args = rest(a, 1);
  for (size_t i = 0; out && i < items->seq.n; i++) {
    jval *x = items->seq.v[i];
    x = path ? jx_path(c, x, path) : jx_builtin(c, f, "filter", x, &args);
    if (path && x && other && x->type == JV_UNDEF) x = other;
    if (!jx_push(c, out, x)) return NULL;
  }
  return out;
}

/* Items for which a test (or their own truth) is `want`; of an attribute when `attr`. */
static jval *pick(jctx *c, jval *v, const jargs *a, bool attr, bool want) {
  if (attr && !a->npos) return jx_fail(c, ERR_FORMAT, "expected the name of an attribute");
  const jbuiltin *test = a->npos > attr ? named(c, a, attr ? 1 : 0, false) : NULL;
  jval *items = c->e ? NULL : walk(c, v), *out = items ? jx_seq(c, JS_GEN) : NULL;
  jargs args = rest(a, 1u + attr);
  for (size_t i = 0; out && i < items->seq.n; i++) {
    jval *x = attr ? jx_path(c, items->seq.v[i], a->pos[0]) : items->seq.v[i];
    if (x && test) x = jx_builtin(c, test, "test", x, &args);
    if (!x) return NULL;
    if (jv_truth(x) == want && !jx_push(c, out, items->seq.v[i])) return NULL;
  }
  return out;
}
static jval *f_select(jctx *c, jval *v, const jargs *a, jval **av) {
  (void)av;
  return pick(c, v, a, false, true);
}
static jval *f_reject(jctx *c, jval *v, const jargs *a, jval **av) {
  (void)av;
  return pick(c, v, a, false, false);
}
static jval *f_selectattr(jctx *c, jval *v, const jargs *a, jval **av) {
  (void)av;
  return pick(c, v, a, true, true);
}
static jval *f_rejectattr(jctx *c, jval *v, const jargs *a, jval **av) {
  (void)av;
  return pick(c, v, a, true, false);
}

const jbuiltin *jinja_seq_filter(const char *s, size_t n) {
  static const jbuiltin rows[] = {
      {"length", "", 0, 0, f_length},
      {"count", "", 0, 0, f_length},
      {"list", "", 0, 0, f_list},
      {"first", "", 0, 0, f_first},
      {"last", "", 0, 0, f_last},
      {"reverse", "", 0, 0, f_reverse},
      {"items", "", 0, 0, f_items},
      {"sort", "reverse case_sensitive attribute", 0, 0, f_sort},
      {"dictsort", "case_sensitive by reverse", 0, 0, f_dictsort},
      {"unique", "case_sensitive attribute", 0, 0, f_unique},
      {"min", "case_sensitive attribute", 0, 0, f_min},
      {"max", "case_sensitive attribute", 0, 0, f_max},
      {"sum", "attribute start", 0, 0, f_sum},
      {"join", "d attribute", 0, 0, f_join},
      {"map", "*", 0, 0, f_map},
      {"select", "*", 0, 0, f_select},
      {"reject", "*", 0, 0, f_reject},
      {"selectattr", "*", 0, 0, f_selectattr},
      {"rejectattr", "*", 0, 0, f_rejectattr},
  };
  return jinja_row(rows, sizeof rows / sizeof *rows, s, n);
}
