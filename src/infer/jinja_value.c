/* Owns the values: construction by callers, dicts, and what needs no render (truth, names of
 * types). Everything is in the arena that it was made with. */
#include <string.h>

#include "infer/jinja_impl.h"

const jval jv_none = {.type = JV_NONE};
const jval jv_true = {.type = JV_BOOL, .b = true};
const jval jv_false = {.type = JV_BOOL, .b = false};
const jval jv_empty = {.type = JV_STR, .s = {"", 0}};

static jval *make(arena *a, jtype t) {
  jval *v = arena_alloc(a, 1, sizeof *v);
  if (v) v->type = (uint8_t)t;
  return v;
}

jval *jval_none(arena *a) { return make(a, JV_NONE); }

jval *jval_bool(arena *a, bool b) {
  jval *v = make(a, JV_BOOL);
  if (v) v->b = b;
  return v;
}

jval *jval_int(arena *a, int64_t i) {
  jval *v = make(a, JV_INT);
  if (v) v->i = i;
  return v;
}

jval *jval_f64(arena *a, double f) {
  jval *v = make(a, JV_FLOAT);
  if (v) v->f = f;
  return v;
}

jval *jval_str(arena *a, const char *s, size_t n) {
  jval *v = make(a, JV_STR);
  if (!v) return NULL;
  v->s.p = arena_strndup(a, s, n);
  v->s.n = n;
  return v->s.p ? v : NULL;
}

jval *jval_cstr(arena *a, const char *s) { return jval_str(a, s, strlen(s)); }

jval *jval_list(arena *a) {
  jval *v = make(a, JV_SEQ);
  if (v) v->seq.a = a;
  return v;
}

jval *jval_dict(arena *a) {
  jval *v = make(a, JV_DICT);
  if (v) v->d.a = a;
  return v;
}

err jval_push(jval *list, jval *item) {
  if (!list || !item) return mem_err("chat template value", sizeof *item);
  if (list->type != JV_SEQ) return err_set(ERR_ARG, "jval_push: the value is not a list");
  if (list->seq.n == list->seq.cap) {
    size_t cap = list->seq.cap ? list->seq.cap * 2 : 4;
    jval **v = arena_alloc(list->seq.a, cap, sizeof *v);
    if (!v) return mem_err("chat template list", cap * sizeof *v);
    if (list->seq.n) memcpy(v, list->seq.v, list->seq.n * sizeof *v);
    list->seq.v = v;
    list->seq.cap = cap;
  }
  list->seq.v[list->seq.n++] = item;
  return ERR_NONE;
}

err jval_set(jval *dict, const char *key, jval *item) {
  if (!dict || !item) return mem_err("chat template value", sizeof *item);
  if (dict->type != JV_DICT) return err_set(ERR_ARG, "jval_set '%s': the value is not a dict", key);
  jval *k = jval_cstr(dict->d.a, key);
  return k ? jd_set(&dict->d, k, item) : mem_err("chat template key", strlen(key));
}

const jval *jval_get(const jval *dict, const char *key) {
  return dict && dict->type == JV_DICT ? jd_gets(&dict->d, key, strlen(key)) : NULL;
}

const jval *jval_at(const jval *list, size_t i) {
  return list && list->type == JV_SEQ && i < list->seq.n ? list->seq.v[i] : NULL;
}

size_t jval_len(const jval *v) {
  if (!v) return 0;
  return v->type == JV_SEQ ? v->seq.n : v->type == JV_DICT ? v->d.n : 0;
}

const char *jval_text(const jval *v, size_t *n) {
  bool ok = v && v->type == JV_STR;
  if (n) *n = ok ? v->s.n : 0;
  return ok ? v->s.p : NULL;
}

/* ---- properties ---- */

bool jv_is_str(const jval *v, const char *s) {
  return v && v->type == JV_STR && v->s.n == strlen(s) && memcmp(v->s.p, s, v->s.n) == 0;
}

bool jv_whole(const jval *v, int64_t *out) {
  if (v->type == JV_BOOL) return *out = v->b, true;
  if (v->type == JV_INT) return *out = v->i, true;
  return false;
}

bool jv_num(const jval *v, double *out) {
  int64_t i;
  if (v->type == JV_FLOAT) return *out = v->f, true;
  if (!jv_whole(v, &i)) return false;
  *out = (double)i;
  return true;
}

bool jv_truth(const jval *v) {
  switch (v->type) {
  case JV_UNDEF:
  case JV_NONE: return false;
  case JV_BOOL: return v->b;
  case JV_INT: return v->i != 0;
  case JV_FLOAT: return v->f != 0;
  case JV_STR: return v->s.n > 0;
  case JV_SEQ: return v->seq.n > 0 || v->flavor == JS_GEN;
  case JV_DICT: return v->d.n > 0;
  default: return true;
  }
}

const char *jv_type_name(const jval *v) {
  static const char *const seq[] = {"a list", "a tuple", "a range", "a dict view", "a generator"};
  switch (v->type) {
  case JV_UNDEF: return "an undefined value";
  case JV_NONE: return "none";
  case JV_BOOL: return "a bool";
  case JV_INT: return "an int";
  case JV_FLOAT: return "a float";
  case JV_STR: return "a str";
  case JV_SEQ: return seq[v->flavor];
  case JV_DICT: return "a dict";
  case JV_NS: return "a namespace";
  case JV_LOOP: return "a loop";
  default: return "a function";
  }
}

/* ---- dicts ---- */

static uint32_t hash_bytes(const char *p, size_t n) {
  uint32_t h = 2166136261u; /* FNV-1a */
  for (size_t i = 0; i < n; i++) h = (h ^ (unsigned char)p[i]) * 16777619u;
  return h ? h : 1;
}

/* 0: the value cannot be a key. Equal numbers of all types have equal hashes. */
static uint32_t hash(const jval *k) {
  double f;
  if (k->type == JV_STR) return hash_bytes(k->s.p, k->s.n);
  if (k->type == JV_NONE) return 3;
  if (!jv_num(k, &f)) return 0;
  if (f == 0) f = 0; /* -0.0 */
  return hash_bytes((const char *)&f, sizeof f);
}

static bool same_key(const jval *a, const jval *b) {
  double x, y;
  int64_t i, j;
  if (a->type == JV_STR || b->type == JV_STR)
    return a->type == b->type && a->s.n == b->s.n && memcmp(a->s.p, b->s.p, a->s.n) == 0;
  if (jv_whole(a, &i) && jv_whole(b, &j)) return i == j;
  if (jv_num(a, &x) && jv_num(b, &y)) return x == y;
  return a->type == JV_NONE && b->type == JV_NONE;
}

/* Index into d->v, or d->n. */
static size_t find(const jdict *d, const jval *key, uint32_t h) {
  if (!d->index) {
    for (size_t i = 0; i < d->n; i++)
      if (d->v[i].hash == h && same_key(d->v[i].key, key)) return i;
    return d->n;
  }
  for (size_t s = h & (d->icap - 1);; s = (s + 1) & (d->icap - 1)) {
    if (!d->index[s]) return d->n;
    size_t i = d->index[s] - 1;
    if (d->v[i].hash == h && same_key(d->v[i].key, key)) return i;
  }
}

static void index_put(jdict *d, size_t i) {
  size_t s = d->v[i].hash & (d->icap - 1);
  while (d->index[s]) s = (s + 1) & (d->icap - 1);
  d->index[s] = (uint32_t)(i + 1);
}

static err grow(jdict *d) {
  size_t cap = d->cap ? d->cap * 2 : 4;
  jpair *v = arena_alloc(d->a, cap, sizeof *v);
  uint32_t *index = cap > 16 ? arena_alloc(d->a, cap * 2, sizeof *index) : NULL;
  if (!v || (cap > 16 && !index)) return mem_err("chat template dict", cap * sizeof *v);
  if (d->n) memcpy(v, d->v, d->n * sizeof *v);
  d->v = v;
  d->cap = cap;
  d->index = index;
  d->icap = index ? cap * 2 : 0;
  for (size_t i = 0; index && i < d->n; i++) index_put(d, i);
  return ERR_NONE;
}

jval *jd_get(const jdict *d, const jval *key) {
  uint32_t h = hash(key);
  size_t i = h ? find(d, key, h) : d->n;
  return i < d->n ? d->v[i].val : NULL;
}

jval *jd_gets(const jdict *d, const char *key, size_t n) {
  jval k = {.type = JV_STR, .s = {key, n}};
  return jd_get(d, &k);
}

err jd_set(jdict *d, jval *key, jval *val) {
  uint32_t h = hash(key);
  if (!h) return err_set(ERR_FORMAT, "a dict key cannot be %s", jv_type_name(key));
  size_t i = find(d, key, h);
  if (i < d->n) return d->v[i].val = val, ERR_NONE;
  if (d->n >= UINT32_MAX / 4) return err_set(ERR_LIMIT, "a dict has over 2^30 keys");
  if (d->n == d->cap) {
    err e = grow(d);
    if (e) return e;
  }
  d->v[d->n] = (jpair){key, val, h};
  if (d->index) index_put(d, d->n);
  d->n++;
  return ERR_NONE;
}
