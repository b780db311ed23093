/* Shared by the jinja_*.c files: values, syntax tree, and the state of one render.
 *
 * Values are immutable once a template can see them, except namespaces and the `spent` mark of
 * generators. A function returning jval* returns NULL exactly when it has called jx_fail (or
 * another that did): callers return NULL at once. */
#ifndef FRIT_INFER_JINJA_IMPL_H
#define FRIT_INFER_JINJA_IMPL_H

#include "infer/jinja.h"

/* ---- values ---- */

typedef enum jtype {
  JV_UNDEF, /* s: why, for messages */
  JV_NONE,
  JV_BOOL,
  JV_INT,
  JV_FLOAT,
  JV_STR,
  JV_SEQ,
  JV_DICT,
  JV_NS, /* namespace(): a dict whose items can be set */
  JV_FUNC,
  JV_LOOP
} jtype;

typedef enum jflavor { JS_LIST, JS_TUPLE, JS_RANGE, JS_VIEW, JS_GEN } jflavor;

typedef struct jpair {
  jval *key, *val;
  uint32_t hash;
} jpair;

typedef struct jdict {
  jpair *v;        /* in the order of insertion */
  uint32_t *index; /* open addressing, cap 2^k > 4/3 n, entry + 1; NULL while n is small */
  size_t n, cap, icap;
  arena *a;
} jdict;

typedef struct jscope jscope;
typedef struct jloop jloop;
typedef struct jnode jnode;
typedef struct jctx jctx;
typedef struct jargs jargs;

/* A built-in: `self` is the filter's or method's subject (NULL for globals), av[i] the i-th
 * declared parameter or NULL when not given. */
typedef jval *(*jfn)(jctx *c, jval *self, const jargs *a, jval **av);
typedef struct jbuiltin {
  const char *name;
  const char *params; /* names, blank between; "*": takes the raw arguments */
  uint8_t need;       /* how many of them must be given */
  uint8_t type;       /* methods: the jtype of self */
  jfn fn;
} jbuiltin;

struct jval {
  uint8_t type;   /* jtype */
  uint8_t flavor; /* of JV_SEQ: jflavor; of JV_STR: 1 when it is marked safe */
  bool spent;     /* a generator that was walked */
  union {
    bool b;
    int64_t i;
    double f;
    struct {
      const char *p;
      size_t n;
    } s;
    struct {
      jval **v;
      size_t n, cap;
      arena *a;
    } seq;
    jdict d;
    struct {
      const jbuiltin *fn; /* or NULL: a macro */
      jval *self;
      const jnode *macro;
      jscope *env;
    } fn;
    jloop *loop;
  };
};

extern const jval jv_none, jv_true, jv_false, jv_empty; /* jv_empty: "" */

bool jv_is_str(const jval *v, const char *s);
bool jv_num(const jval *v, double *out);    /* bool, int or float */
bool jv_whole(const jval *v, int64_t *out); /* bool or int */
bool jv_truth(const jval *v);
const char *jv_type_name(const jval *v); /* with its article: "an int" */
/* NULL when there is no such key. */
jval *jd_get(const jdict *d, const jval *key);
jval *jd_gets(const jdict *d, const char *key, size_t n);
/* ERR_FORMAT when the key cannot be one (a list, say). */
err jd_set(jdict *d, jval *key, jval *val);

/* ---- text ---- */

/* Length of the character at p (1 for a byte that is no UTF-8, whose code is then 0xDC00 + byte,
 * as Python's surrogateescape has it). n > 0. */
size_t jt_decode(const char *p, size_t n, uint32_t *cp);
void jt_put(buf *b, uint32_t cp); /* encodes */
size_t jt_count(const char *p, size_t n);
bool jt_space(uint32_t cp); /* as Python's str.isspace */
bool jt_alpha(uint32_t cp);
uint32_t jt_upper(uint32_t cp);
uint32_t jt_lower(uint32_t cp);
/* Byte range of p[0..n) without blanks, or without characters of `set` when it is not NULL. */
void jt_strip(const char **p, size_t *n, const jval *set, bool left, bool right);
/* First place of x in p at or after `from`, SIZE_MAX when there is none. Counts its work. */
size_t jt_find(jctx *c, const jval *p, const jval *x, size_t from);
jval *jx_lines(jctx *c, const jval *v, bool keep); /* list; keep: with their line breaks */
void jt_float(buf *b, double f);                   /* as Python's repr */

/* ---- syntax tree ---- */

typedef enum jkind {
  /* expressions */
  JN_CONST,  /* val */
  JN_NAME,   /* s */
  JN_LIST,   /* a: first of chain */
  JN_TUPLE,  /* a: first of chain */
  JN_DICT,   /* a: chain of JN_PAIR */
  JN_PAIR,   /* a: key, b: value */
  JN_ATTR,   /* a.s */
  JN_ITEM,   /* a[b] */
  JN_SLICE,  /* a[b:c:d], each may be NULL */
  JN_CALL,   /* a(b: chain of JN_ARG) */
  JN_ARG,    /* s: keyword or NULL, op: 0, '*', '^' for double star; a: value */
  JN_FILTER, /* a|s(b); a NULL at the head of a filter block's chain */
  JN_TEST,   /* a is s(b) */
  JN_NEG,
  JN_POS,
  JN_NOT,
  JN_BIN,     /* a op b; op: '+', '-', '*', '/', 'f' for floor, '%', '^' */
  JN_CMP,     /* a, then chain b of JN_OPERAND */
  JN_OPERAND, /* op a; op: '=', '!', '<', 'l' for <=, '>', 'g' for >=, 'i' in, 'n' not in */
  JN_AND,
  JN_OR,
  JN_CONCAT, /* a: first of chain */
  JN_COND,   /* a if b else c (may be NULL) */
  /* statements */
  JN_TEXT,        /* s */
  JN_OUTPUT,      /* a */
  JN_IF,          /* a: chain of JN_BRANCH */
  JN_BRANCH,      /* a: condition or NULL for else, b: body */
  JN_FOR,         /* for a in b if c: d, else: e */
  JN_SET,         /* a = b */
  JN_SETBLOCK,    /* a, b: filter chain or NULL, d: body */
  JN_NSREF,       /* target s.val */
  JN_MACRO,       /* s; b: chain of JN_PARAM; d: body; op: JU_ bits */
  JN_PARAM,       /* s; a: default or NULL */
  JN_CALLBLOCK,   /* a: call; b: JN_MACRO */
  JN_FILTERBLOCK, /* b: filter chain, d: body */
  JN_WITH,        /* b: chain of JN_SET, d: body */
  JN_SCOPE,       /* d: body */
  JN_BREAK,
  JN_CONTINUE
} jkind;

enum { JU_CALLER = 1, JU_KWARGS = 2, JU_VARARGS = 4 }; /* implicit names that a macro uses */

struct jnode {
  uint8_t kind, op;
  uint32_t line;
  const char *s;
  size_t n;
  jval *val;
  const jbuiltin *fn; /* of JN_FILTER, JN_TEST: NULL when unknown */
  jnode *a, *b, *c, *d, *e;
  jnode *next; /* in a chain */
};

struct jinja {
  arena mem;
  jnode *body; /* chain of statements */
};

typedef enum jtok_kind {
  JT_EOF,
  JT_TEXT,
  JT_VAR_BEGIN,
  JT_VAR_END,
  JT_BLOCK_BEGIN,
  JT_BLOCK_END,
  JT_NAME,
  JT_STR,
  JT_INT,
  JT_FLOAT,
  JT_OP /* op: the character, or 'f' //, '^' **, '=' for ==, '!' !=, 'l' <=, 'g' >=, 'a' for = */
} jtok_kind;

typedef struct jtok {
  uint8_t kind, op;
  uint32_t line;
  const char *s; /* of names and texts: into the arena; strings are unescaped */
  size_t n;
  union {
    int64_t i;
    double f;
  };
} jtok;

/* Splits the text; tokens are in `a`, the last is JT_EOF. */
err jinja_lex(arena *a, const char *text, size_t n, jtok **out, size_t *count);

typedef struct jparser {
  arena *a;
  const jtok *t;
  uint32_t depth, loops;
  uint8_t uses; /* JU_ bits seen in the macro at hand */
  err e;
} jparser;

/* Both return NULL after p->e was set. jp_tuple: `a` or `a, b`; `cond` allows an inline if;
 * `stop` is a name that ends it, or NULL. */
jnode *jp_expr(jparser *p);
jnode *jp_tuple(jparser *p, bool cond, const char *stop, bool empty_ok);
jnode *jp_filters(jparser *p, jnode *subject, bool inline_start);
jnode *jp_node(jparser *p, jkind kind);
jnode *jp_fail(jparser *p, err code, const char *what);
bool jp_is_op(const jparser *p, char op);
bool jp_is_name(const jparser *p, const char *name);
bool jp_skip_op(jparser *p, char op);
bool jp_expect_op(jparser *p, char op);
bool jp_enter(jparser *p); /* counts nesting; jp_leave after a true */
void jp_leave(jparser *p);
jnode *jp_body(jparser *p); /* the whole template */

/* ---- a render ---- */

typedef struct jvar {
  const char *s;
  size_t n;
  jval *v;
} jvar;

struct jscope {
  jscope *parent;
  jvar *v;
  size_t n, cap;
  bool captured; /* a macro refers to it: it must not be reused */
};

struct jloop {
  jval **v;
  size_t n, i;
};

struct jctx {
  const jval *globals;
  jinja_opts o;
  arena mem;
  buf *out;
  size_t out_base; /* bytes in the outermost `out` before us */
  err e;
  uint32_t line, depth;
  uint64_t steps;
  jscope *scope;
  uint8_t flow; /* JN_BREAK or JN_CONTINUE on the way out to the loop */
};

typedef struct jkw {
  const char *s;
  size_t n;
  jval *v;
} jkw;

struct jargs {
  jval **pos;
  size_t npos;
  jkw *kw;
  size_t nkw;
};

/* Keeps the first error, with the line before it. Returns NULL. */
#if defined(__GNUC__)
__attribute__((format(printf, 3, 4)))
#endif
jval *
jx_fail(jctx *c, err code, const char *fmt, ...);
bool jx_work(jctx *c, uint64_t units); /* false after an error: a limit was passed */
bool jx_enter(jctx *c);                /* counts nesting; c->depth-- after a true */
void *jx_alloc(jctx *c, size_t n, size_t size);

jval *jx_new(jctx *c, jtype t);
jval *jx_bool(bool b);
jval *jx_none(void);
jval *jx_int(jctx *c, int64_t i);
jval *jx_f64(jctx *c, double f);
jval *jx_str(jctx *c, const char *p, size_t n);     /* copies */
jval *jx_substr(jctx *c, const char *p, size_t n);  /* refers to p, which is of a value */
jval *jx_like(jctx *c, const jval *s, jval *fresh); /* fresh, marked safe as s is */
jval *jx_buf(jctx *c, buf *b);                      /* takes the bytes; frees b */
bool jx_put(jctx *c, buf *b, const char *p, size_t n);
jval *jx_undef(jctx *c, const char *fmt, ...)
#if defined(__GNUC__)
    __attribute__((format(printf, 2, 3)))
#endif
    ;
jval *jx_seq(jctx *c, jflavor f);
bool jx_push(jctx *c, jval *seq, jval *item); /* false: failed, also for a NULL item */
jval *jx_dict(jctx *c);
bool jx_dset(jctx *c, jval *d, jval *key, jval *val);

/* str(v); v itself when it is a string. */
jval *jx_tostr(jctx *c, jval *v);
/* Appends str(v), or repr(v). */
bool jx_print(jctx *c, buf *b, jval *v, bool repr);
/* Walks v as Python's iter: a sequence of its items, characters or keys. NULL: not iterable. */
jval *jx_iter(jctx *c, jval *v);
/* -1 or NULL-like failure is in c->e. */
bool jx_equal(jctx *c, const jval *a, const jval *b);
bool jx_less(jctx *c, const jval *a, const jval *b);
bool jx_in(jctx *c, jval *x, jval *box);
jval *jx_escape(jctx *c, jval *v);
jval *jx_sort(jctx *c, jval *items, jval *keys, bool reverse); /* stable, by keys[i] */
jval *jx_arith(jctx *c, char op, jval *a, jval *b);
jval *jx_concat(jctx *c, jval **v, size_t n);
jval *jx_attr(jctx *c, jval *v, const char *s, size_t n); /* v.s */
jval *jx_item(jctx *c, jval *v, jval *key);               /* v[key] */
jval *jx_slice(jctx *c, jval *v, jval *from, jval *to, jval *by);
jval *jx_path(jctx *c, jval *v, const jval *path); /* "a.b.0", as filters' attribute= */
jval *jx_json(jctx *c, jval *v, jval *indent, jval *seps, bool ascii, bool sorted);

jval *jx_eval(jctx *c, const jnode *n);
jval *jx_apply(jctx *c, const jnode *filters, jval *subject); /* a chain whose head has no a */
jval *jx_call(jctx *c, jval *f, const jargs *a);
jval *jx_macro(jctx *c, const jval *f, const jargs *a);
jval *jx_builtin(jctx *c, const jbuiltin *b, const char *sort, jval *self, const jargs *a);
bool jx_args(jctx *c, const jnode *list, jargs *out);
jval *jx_lookup(jctx *c, const char *s, size_t n);
bool jx_assign(jctx *c, const char *s, size_t n, jval *v);
bool jx_exec(jctx *c, const jnode *body); /* a chain of statements */

const jbuiltin *jinja_filter(const char *s, size_t n);
const jbuiltin *jinja_test(const char *s, size_t n);
const jbuiltin *jinja_method(const jval *v, const char *s, size_t n);
const jbuiltin *jinja_global(const char *s, size_t n);
/* The filters of jinja_seq.c. */
const jbuiltin *jinja_seq_filter(const char *s, size_t n);
const jbuiltin *jinja_row(const jbuiltin *rows, size_t count, const char *s, size_t n);

#endif
