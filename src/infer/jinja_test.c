/* Owns the tests, the words after `is`. */
#include <string.h>

#include "infer/jinja_impl.h"

typedef enum test_id {
  T_DEFINED,
  T_UNDEFINED,
  T_NONE,
  T_STRING,
  T_NUMBER,
  T_INTEGER,
  T_FLOAT,
  T_BOOLEAN,
  T_MAPPING,
  T_ITERABLE,
  T_SEQUENCE,
  T_CALLABLE,
  T_TRUE,
  T_FALSE,
  T_SAFE
} test_id;

static bool is(const jval *v, test_id t) {
  bool seq = v->type == JV_SEQ;
  switch (t) {
  case T_DEFINED: return v->type != JV_UNDEF;
  case T_UNDEFINED: return v->type == JV_UNDEF;
  case T_NONE: return v->type == JV_NONE;
  case T_STRING: return v->type == JV_STR;
  case T_NUMBER: return v->type == JV_INT || v->type == JV_FLOAT || v->type == JV_BOOL;
  case T_INTEGER: return v->type == JV_INT;
  case T_FLOAT: return v->type == JV_FLOAT;
  case T_BOOLEAN: return v->type == JV_BOOL;
  case T_MAPPING: return v->type == JV_DICT;
  case T_ITERABLE: /* Python's Undefined can be walked and has a length: both hold for it */
    return seq || v->type == JV_STR || v->type == JV_DICT || v->type == JV_UNDEF ||
           v->type == JV_LOOP;
  case T_SEQUENCE:
    return (seq && v->flavor <= JS_RANGE) || v->type == JV_STR || v->type == JV_DICT ||
           v->type == JV_UNDEF;
  case T_CALLABLE: return v->type == JV_FUNC || v->type == JV_LOOP || v->type == JV_UNDEF;
  case T_TRUE: return v->type == JV_BOOL && v->b;
  case T_FALSE: return v->type == JV_BOOL && !v->b;
  default: return v->type == JV_STR && v->flavor;
  }
}

#define TYPE_TEST(name, id)                                                                        \
  static jval *name(jctx *c, jval *v, const jargs *a, jval **av) {                                 \
    (void)c, (void)a, (void)av;                                                                    \
    return jx_bool(is(v, id));                                                                     \
  }
TYPE_TEST(t_defined, T_DEFINED)
TYPE_TEST(t_undefined, T_UNDEFINED)
TYPE_TEST(t_none, T_NONE)
TYPE_TEST(t_string, T_STRING)
TYPE_TEST(t_number, T_NUMBER)
TYPE_TEST(t_integer, T_INTEGER)
TYPE_TEST(t_float, T_FLOAT)
TYPE_TEST(t_boolean, T_BOOLEAN)
TYPE_TEST(t_mapping, T_MAPPING)
TYPE_TEST(t_iterable, T_ITERABLE)
TYPE_TEST(t_sequence, T_SEQUENCE)
TYPE_TEST(t_callable, T_CALLABLE)
TYPE_TEST(t_true, T_TRUE)
TYPE_TEST(t_false, T_FALSE)
TYPE_TEST(t_safe, T_SAFE)

/* The result of a comparison that may have failed. */
static jval *checked(jctx *c, bool b) { return c->e ? NULL : jx_bool(b); }

static jval *t_eq(jctx *c, jval *v, const jargs *a, jval **av) {
  (void)a;
  return checked(c, jx_equal(c, v, av[0]));
}
static jval *t_ne(jctx *c, jval *v, const jargs *a, jval **av) {
  (void)a;
  return checked(c, !jx_equal(c, v, av[0]));
}
static jval *t_lt(jctx *c, jval *v, const jargs *a, jval **av) {
  (void)a;
  return checked(c, jx_less(c, v, av[0]));
}
static jval *t_gt(jctx *c, jval *v, const jargs *a, jval **av) {
  (void)a;
  return checked(c, jx_less(c, av[0], v));
}
static jval *t_le(jctx *c, jval *v, const jargs *a, jval **av) {
  (void)a;
  return checked(c, !jx_less(c, av[0], v));
}
static jval *t_ge(jctx *c, jval *v, const jargs *a, jval **av) {
  (void)a;
  return checked(c, !jx_less(c, v, av[0]));
}
static jval *t_in(jctx *c, jval *v, const jargs *a, jval **av) {
  (void)a;
  return checked(c, jx_in(c, v, av[0]));
}

/* Python's `is`: the same object; small constants are always the same. */
static jval *t_sameas(jctx *c, jval *v, const jargs *a, jval **av) {
  (void)a;
  bool scalar = v->type == JV_NONE || v->type == JV_BOOL || v->type == JV_INT;
  return checked(c, v == av[0] || (scalar && v->type == av[0]->type && jx_equal(c, v, av[0])));
}

static jval *remainder_is(jctx *c, jval *v, jval *by, int64_t want) {
  jval *r = jx_arith(c, '%', v, by);
  jval w = {.type = JV_INT, .i = want};
  return r ? checked(c, jx_equal(c, r, &w)) : NULL;
}
static jval *t_odd(jctx *c, jval *v, const jargs *a, jval **av) {
  (void)a, (void)av;
  return remainder_is(c, v, jx_int(c, 2), 1);
}
static jval *t_even(jctx *c, jval *v, const jargs *a, jval **av) {
  (void)a, (void)av;
  return remainder_is(c, v, jx_int(c, 2), 0);
}
static jval *t_divisible(jctx *c, jval *v, const jargs *a, jval **av) {
  (void)a;
  return remainder_is(c, v, av[0], 0);
}

/* There is a letter with case, and none of the other case. */
static jval *letters(jctx *c, jval *v, bool upper) {
  jval *s = jx_tostr(c, v);
  if (!s || !jx_work(c, s->s.n / 16)) return NULL;
  bool any = false;
  for (size_t i = 0; i < s->s.n;) {
    uint32_t cp;
    i += jt_decode(s->s.p + i, s->s.n - i, &cp);
    bool up = jt_lower(cp) != cp, low = jt_upper(cp) != cp || cp == 0xDF;
    if (upper ? low : up) return jx_bool(false);
    any = any || up || low;
  }
  return jx_bool(any);
}
static jval *t_upper(jctx *c, jval *v, const jargs *a, jval **av) {
  (void)a, (void)av;
  return letters(c, v, true);
}
static jval *t_lower(jctx *c, jval *v, const jargs *a, jval **av) {
  (void)a, (void)av;
  return letters(c, v, false);
}

static jval *t_filter(jctx *c, jval *v, const jargs *a, jval **av) {
  (void)c, (void)a, (void)av;
  return jx_bool(v->type == JV_STR && jinja_filter(v->s.p, v->s.n));
}
static jval *t_test(jctx *c, jval *v, const jargs *a, jval **av) {
  (void)c, (void)a, (void)av;
  return jx_bool(v->type == JV_STR && jinja_test(v->s.p, v->s.n));
}

const jbuiltin *jinja_test(const char *s, size_t n) {
  static const jbuiltin rows[] = {
      {"defined", "", 0, 0, t_defined},
      {"undefined", "", 0, 0, t_undefined},
      {"none", "", 0, 0, t_none},
      {"string", "", 0, 0, t_string},
      {"number", "", 0, 0, t_number},
      {"integer", "", 0, 0, t_integer},
      {"float", "", 0, 0, t_float},
      {"boolean", "", 0, 0, t_boolean},
      {"mapping", "", 0, 0, t_mapping},
      {"iterable", "", 0, 0, t_iterable},
      {"sequence", "", 0, 0, t_sequence},
      {"callable", "", 0, 0, t_callable},
      {"true", "", 0, 0, t_true},
      {"false", "", 0, 0, t_false},
      {"escaped", "", 0, 0, t_safe},
      {"eq", "other", 1, 0, t_eq},
      {"equalto", "other", 1, 0, t_eq},
      {"==", "other", 1, 0, t_eq},
      {"ne", "other", 1, 0, t_ne},
      {"!=", "other", 1, 0, t_ne},
      {"lt", "other", 1, 0, t_lt},
      {"lessthan", "other", 1, 0, t_lt},
      {"<", "other", 1, 0, t_lt},
      {"gt", "other", 1, 0, t_gt},
      {"greaterthan", "other", 1, 0, t_gt},
      {">", "other", 1, 0, t_gt},
      {"le", "other", 1, 0, t_le},
      {"<=", "other", 1, 0, t_le},
      {"ge", "other", 1, 0, t_ge},
      {">=", "other", 1, 0, t_ge},
      {"in", "seq", 1, 0, t_in},
      {"sameas", "other", 1, 0, t_sameas},
      {"odd", "", 0, 0, t_odd},
      {"even", "", 0, 0, t_even},
      {"divisibleby", "num", 1, 0, t_divisible},
      {"upper", "", 0, 0, t_upper},
      {"lower", "", 0, 0, t_lower},
      {"filter", "", 0, 0, t_filter},
      {"test", "", 0, 0, t_test},
  };
  return jinja_row(rows, sizeof rows / sizeof *rows, s, n);
}
