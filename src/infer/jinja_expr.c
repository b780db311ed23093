/* Owns the grammar of expressions, in jinja2's order of precedence: inline if, or, and, not,
 * comparisons, + and -, ~, * / // %, **, signs, then calls, lookups, filters and tests. */
#include <string.h>

#include "infer/jinja_impl.h"

static jnode *parse_cond(jparser *p);
static jnode *parse_or(jparser *p);
static jnode *parse_unary(jparser *p, bool filters);
static jnode *postfix(jparser *p, jnode *n);

static jnode *binary(jparser *p, jkind kind, char op, jnode *a, jnode *b) {
  jnode *n = jp_node(p, kind);
  if (!n || !a || !b) return NULL;
  n->op = (uint8_t)op;
  n->line = a->line;
  n->a = a;
  n->b = b;
  return n;
}

static bool skip_name(jparser *p, const char *name) {
  if (!jp_is_name(p, name)) return false;
  p->t++;
  return true;
}

jnode *jp_expr(jparser *p) {
  if (!jp_enter(p)) return NULL;
  jnode *n = parse_cond(p);
  jp_leave(p);
  return n;
}

static jnode *parse_cond(jparser *p) {
  jnode *a = parse_or(p);
  while (a && skip_name(p, "if")) {
    jnode *test = parse_or(p);
    jnode *n = binary(p, JN_COND, 0, a, test);
    if (!n) return NULL;
    if (skip_name(p, "else")) n->c = jp_expr(p);
    if (p->e) return NULL;
    a = n;
  }
  return a;
}

static jnode *parse_not(jparser *p);

static jnode *parse_and(jparser *p) {
  jnode *a = parse_not(p);
  while (a && skip_name(p, "and")) a = binary(p, JN_AND, 0, a, parse_not(p));
  return a;
}

static jnode *parse_or(jparser *p) {
  jnode *a = parse_and(p);
  while (a && skip_name(p, "or")) a = binary(p, JN_OR, 0, a, parse_and(p));
  return a;
}

static jnode *parse_pow(jparser *p) {
  jnode *a = parse_unary(p, true);
  while (a && jp_skip_op(p, '^')) a = binary(p, JN_BIN, '^', a, parse_unary(p, true));
  return a;
}

/* The operator of `ops` that is next, or 0. */
static char next_op(jparser *p, const char *ops) {
  if (p->e || p->t->kind != JT_OP || !strchr(ops, p->t->op)) return 0;
  return (char)(p->t++)->op;
}

static jnode *parse_product(jparser *p) {
  jnode *a = parse_pow(p);
  char op;
  while (a && (op = next_op(p, "*/f%"))) a = binary(p, JN_BIN, op, a, parse_pow(p));
  return a;
}

static jnode *parse_concat(jparser *p) {
  jnode *a = parse_product(p);
  if (!a || !jp_is_op(p, '~')) return a;
  jnode *n = jp_node(p, JN_CONCAT), *last = a;
  if (!n) return NULL;
  n->a = a;
  while (jp_skip_op(p, '~')) {
    last->next = parse_product(p);
    if (!last->next) return NULL;
    last = last->next;
  }
  return n;
}

static jnode *parse_sum(jparser *p) {
  jnode *a = parse_concat(p);
  char op;
  while (a && (op = next_op(p, "+-"))) a = binary(p, JN_BIN, op, a, parse_concat(p));
  return a;
}

static char compare_op(jparser *p) {
  char op = next_op(p, "=!<l>g");
  if (op) return op;
  if (skip_name(p, "in")) return 'i';
  if (jp_is_name(p, "not") && p->t[1].kind == JT_NAME && p->t[1].n == 2 &&
      memcmp(p->t[1].s, "in", 2) == 0) {
    p->t += 2;
    return 'n';
  }
  return 0;
}

static jnode *parse_compare(jparser *p) {
  jnode *a = parse_sum(p), *n = NULL, **tail = NULL;
  char op;
  while (a && !p->e && (op = compare_op(p))) {
    if (!n) {
      n = jp_node(p, JN_CMP);
      if (!n) return NULL;
      n->a = a;
      tail = &n->b;
    }
    jnode *x = jp_node(p, JN_OPERAND);
    if (!x) return NULL;
    x->op = (uint8_t)op;
    x->a = parse_sum(p);
    *tail = x;
    tail = &x->next;
  }
  return p->e ? NULL : n ? n : a;
}

static jnode *parse_not(jparser *p) {
  if (!jp_is_name(p, "not")) return parse_compare(p);
  if (!jp_enter(p)) return NULL;
  jnode *n = jp_node(p, JN_NOT);
  p->t++;
  if (n) n->a = parse_not(p);
  jp_leave(p);
  return p->e ? NULL : n;
}

/* ---- primaries ---- */

static jnode *constant(jparser *p, jval *v) {
  jnode *n = jp_node(p, JN_CONST);
  if (!n) return NULL;
  if (!v) p->e = mem_err("chat template literal", sizeof *v);
  n->val = v;
  return v ? n : NULL;
}

static jnode *parse_name(jparser *p) {
  static const char *const words[] = {"true", "True", "false", "False", "none", "None"};
  for (size_t i = 0; i < 6; i++) {
    if (!jp_is_name(p, words[i])) continue;
    jnode *n = constant(p, i < 4 ? jval_bool(p->a, i < 2) : jval_none(p->a));
    p->t++;
    return n;
  }
  jnode *n = jp_node(p, JN_NAME);
  if (!n) return NULL;
  n->s = p->t->s;
  n->n = p->t->n;
  if (jp_is_name(p, "caller")) p->uses |= JU_CALLER;
  if (jp_is_name(p, "kwargs")) p->uses |= JU_KWARGS;
  if (jp_is_name(p, "varargs")) p->uses |= JU_VARARGS;
  p->t++;
  return n;
}

static jnode *parse_strings(jparser *p) {
  if (p->t[1].kind != JT_STR) {
    jnode *n = constant(p, jval_str(p->a, p->t->s, p->t->n));
    p->t++;
    return n;
  }
  buf b = {0};
  const jtok *t = p->t;
  for (; t->kind == JT_STR; t++) buf_put(&b, t->s, t->n);
  jval *v = b.failed ? NULL : jval_str(p->a, b.p ? b.p : "", b.n);
  buf_free(&b);
  jnode *n = constant(p, v);
  p->t = t;
  return n;
}

/* [a, b] or {k: v}; the opening bracket is next. */
static jnode *parse_display(jparser *p, bool dict) {
  char close = dict ? '}' : ']';
  jnode *n = jp_node(p, dict ? JN_DICT : JN_LIST);
  if (!n) return NULL;
  jnode **tail = &n->a;
  p->t++;
  while (!p->e && !jp_is_op(p, close)) {
    if (n->a && !jp_expect_op(p, ',')) return NULL;
    if (jp_is_op(p, close)) break;
    jnode *x = jp_expr(p);
    if (!x) return NULL;
    if (dict) {
      if (!jp_expect_op(p, ':')) return NULL;
      x = binary(p, JN_PAIR, 0, x, jp_expr(p));
      if (!x) return NULL;
    }
    *tail = x;
    tail = &x->next;
  }
  return jp_expect_op(p, close) ? n : NULL;
}

static jnode *parse_primary(jparser *p) {
  jnode *n;
  switch (p->t->kind) {
  case JT_NAME: return parse_name(p);
  case JT_STR: return parse_strings(p);
  case JT_INT:
    n = constant(p, jval_int(p->a, p->t->i));
    p->t++;
    return n;
  case JT_FLOAT:
    n = constant(p, jval_f64(p->a, p->t->f));
    p->t++;
    return n;
  case JT_EOF: return jp_fail(p, ERR_FORMAT, "the text ends inside a tag");
  default: break;
  }
  if (jp_skip_op(p, '(')) {
    n = jp_tuple(p, true, NULL, true);
    return n && jp_expect_op(p, ')') ? n : NULL;
  }
  if (jp_is_op(p, '[')) return parse_display(p, false);
  if (jp_is_op(p, '{')) return parse_display(p, true);
  return jp_fail(p, ERR_FORMAT, "expected an expression");
}

jnode *jp_tuple(jparser *p, bool cond, const char *stop, bool empty_ok) {
  jnode *first = NULL, **tail = &first;
  bool tuple = false;
  if (!jp_enter(p)) return NULL;
  for (;;) {
    if (p->t->kind == JT_VAR_END || p->t->kind == JT_BLOCK_END || jp_is_op(p, ')') ||
        (stop && jp_is_name(p, stop)))
      break;
    *tail = cond ? jp_expr(p) : parse_or(p);
    if (!*tail) break;
    tail = &(*tail)->next;
    if (!jp_skip_op(p, ',')) break;
    tuple = true;
  }
  jp_leave(p);
  if (p->e) return NULL;
  if (!tuple && first) return first;
  if (!first && !empty_ok) return jp_fail(p, ERR_FORMAT, "expected an expression");
  jnode *n = jp_node(p, JN_TUPLE);
  if (n) n->a = first;
  return n;
}

/* ---- what follows a primary ---- */

/* The arguments of a call, ')' included; '(' was read. */
static jnode *parse_args(jparser *p) {
  jnode *first = NULL, **tail = &first;
  while (!p->e && !jp_is_op(p, ')')) {
    if (first && !jp_expect_op(p, ',')) return NULL;
    if (jp_is_op(p, ')')) break;
    jnode *n = jp_node(p, JN_ARG);
    if (!n) return NULL;
    if (jp_skip_op(p, '*')) n->op = '*';
    else if (jp_skip_op(p, '^')) n->op = '^';
    else if (p->t->kind == JT_NAME && p->t[1].kind == JT_OP && p->t[1].op == 'a') {
      n->s = p->t->s;
      n->n = p->t->n;
      p->t += 2;
    }
    n->a = jp_expr(p);
    *tail = n;
    tail = &n->next;
  }
  jp_expect_op(p, ')');
  return first;
}

static jnode *parse_call(jparser *p, jnode *f) {
  jnode *n = jp_node(p, JN_CALL);
  p->t++;
  if (!n) return NULL;
  n->a = f;
  n->b = parse_args(p);
  return p->e ? NULL : n;
}

static jnode *parse_dot(jparser *p, jnode *a) {
  jnode *n = jp_node(p, JN_ATTR);
  p->t++;
  if (!n) return NULL;
  n->a = a;
  if (p->t->kind == JT_INT) {
    n->kind = JN_ITEM;
    n->b = parse_primary(p);
    return p->e ? NULL : n;
  }
  if (p->t->kind != JT_NAME) return jp_fail(p, ERR_FORMAT, "expected a name after '.'");
  n->s = p->t->s;
  n->n = p->t->n;
  p->t++;
  return n;
}

static jnode *parse_subscript(jparser *p, jnode *a) {
  jnode *n = jp_node(p, JN_ITEM), *part[3] = {0};
  p->t++;
  if (!n) return NULL;
  n->a = a;
  int i = 0;
  for (;;) {
    if (!jp_is_op(p, ']') && !jp_is_op(p, ':') && !(part[i] = jp_expr(p))) return NULL;
    if (i == 2 || !jp_skip_op(p, ':')) break;
    n->kind = JN_SLICE;
    i++;
  }
  if (!jp_expect_op(p, ']')) return NULL;
  if (n->kind == JN_ITEM && !part[0]) return jp_fail(p, ERR_FORMAT, "expected an index");
  n->b = part[0];
  n->c = part[1];
  n->d = part[2];
  return n;
}

static jnode *postfix(jparser *p, jnode *n) {
  while (n && !p->e) {
    if (jp_is_op(p, '.')) n = parse_dot(p, n);
    else if (jp_is_op(p, '[')) n = parse_subscript(p, n);
    else if (jp_is_op(p, '(')) n = parse_call(p, n);
    else break;
  }
  return n;
}

static jnode *parse_test(jparser *p, jnode *subject) {
  bool negated = false;
  p->t++;
  negated = skip_name(p, "not");
  if (p->t->kind != JT_NAME) return jp_fail(p, ERR_FORMAT, "expected the name of a test");
  jnode *n = jp_node(p, JN_TEST);
  if (!n) return NULL;
  n->a = subject;
  n->s = p->t->s;
  n->n = p->t->n;
  n->fn = jinja_test(n->s, n->n);
  p->t++;
  uint8_t k = p->t->kind;
  if (jp_skip_op(p, '(')) {
    n->b = parse_args(p);
  } else if (k == JT_STR || k == JT_INT || k == JT_FLOAT || jp_is_op(p, '[') || jp_is_op(p, '{') ||
             (k == JT_NAME && !jp_is_name(p, "else") && !jp_is_name(p, "or") &&
              !jp_is_name(p, "and"))) {
    if (jp_is_name(p, "is")) return jp_fail(p, ERR_FORMAT, "tests cannot be chained with is");
    n->b = jp_node(p, JN_ARG);
    if (n->b) n->b->a = postfix(p, parse_primary(p));
  }
  if (p->e || !negated) return p->e ? NULL : n;
  jnode *not = jp_node(p, JN_NOT);
  if (not) not->a = n;
  return not;
}

static jnode *one_filter(jparser *p, jnode *subject) {
  if (p->t->kind != JT_NAME) return jp_fail(p, ERR_FORMAT, "expected the name of a filter");
  jnode *n = jp_node(p, JN_FILTER);
  if (!n) return NULL;
  n->a = subject;
  n->s = p->t->s;
  n->n = p->t->n;
  n->fn = jinja_filter(n->s, n->n);
  p->t++;
  if (jp_skip_op(p, '(')) n->b = parse_args(p);
  return p->e ? NULL : n;
}

jnode *jp_filters(jparser *p, jnode *subject, bool inline_start) {
  jnode *n = subject;
  if (inline_start) n = one_filter(p, n);
  while (!p->e && jp_skip_op(p, '|')) n = one_filter(p, n);
  return p->e ? NULL : n;
}

static jnode *parse_unary(jparser *p, bool filters) {
  jnode *n;
  if (!jp_enter(p)) return NULL;
  if (jp_is_op(p, '-') || jp_is_op(p, '+')) {
    n = jp_node(p, jp_is_op(p, '-') ? JN_NEG : JN_POS);
    p->t++;
    if (n) n->a = parse_unary(p, false);
  } else {
    n = parse_primary(p);
  }
  if (!p->e) n = postfix(p, n);
  while (filters && n && !p->e) {
    if (jp_is_op(p, '|')) n = jp_filters(p, n, false);
    else if (jp_is_name(p, "is")) n = parse_test(p, n);
    else if (jp_is_op(p, '(')) n = parse_call(p, n);
    else break;
  }
  jp_leave(p);
  return p->e ? NULL : n;
}
