/* Owns the catalog table and the assembly of WGSL texts: const lines, then the text with its
 * includes put in place. */
#include "kernels/kernel.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/math.h"
#include "kernels/cpu_isa.h"
#include "kernels/kernel_impl.h"

static const kernel_def defs[] = {
#define X(id, name, dims, consts, types, binds)                                                    \
  [KERNEL_##id] = {#name, dims, consts, types, binds, name##_twin, name##_shape},
    KERNELS(X)
#undef X
};

const kernel_def *kernel_get(kernel_op op) { return &defs[op]; }

bool kernel_spec_equal(const kernel_spec *a, const kernel_spec *b) {
  for (uint32_t i = 0; i < KERNEL_CONSTS; i++) {
    if (a->f[i] != b->f[i]) return false;
  }
  return a->op == b->op && memcmp(a->dim, b->dim, sizeof a->dim) == 0 &&
         memcmp(a->type, b->type, sizeof a->type) == 0 && a->sg == b->sg && a->wg == b->wg &&
         a->rounds == b->rounds;
}

/* The i-th word of a list separated by blanks; false after the last. */
static bool word(const char *list, uint32_t i, const char **w, uint32_t *n) {
  for (;; i--) {
    while (*list == ' ') list++;
    if (!*list) return false;
    uint32_t len = (uint32_t)strcspn(list, " ");
    if (i == 0) {
      *w = list;
      *n = len;
      return true;
    }
    list += len;
  }
}

static int index_of(const char *list, const char *name, size_t n) {
  const char *w;
  uint32_t len;
  for (uint32_t i = 0; word(list, i, &w, &len); i++) {
    if (len == n && memcmp(w, name, n) == 0) return (int)i;
  }
  return -1;
}

uint32_t kernel_dim(const kernel_spec *s, const char *name) {
  int i = index_of(defs[s->op].dims, name, strlen(name));
  assert(i >= 0);
  return s->dim[i];
}

dtype kernel_type(const kernel_spec *s, const char *name) {
  int i = index_of(defs[s->op].types, name, strlen(name));
  assert(i >= 0);
  return s->type[i];
}

/* ---- label and consts: the same walk over a spec, printed twice ---- */

static void print_spec(const kernel_spec *s, buf *out, const char *dim_form,
                       const char *const_form) {
  const kernel_def *d = &defs[s->op];
  const char *w;
  uint32_t n;
  for (uint32_t i = 0; word(d->dims, i, &w, &n); i++) {
    buf_put(out, dim_form, strcspn(dim_form, "@"));
    buf_put(out, w, n);
    buf_printf(out, strchr(dim_form, '@') + 1, s->dim[i]);
  }
  for (uint32_t i = 0; word(d->consts, i, &w, &n); i++) {
    buf_put(out, const_form, strcspn(const_form, "@"));
    buf_put(out, w, n);
    buf_printf(out, strchr(const_form, '@') + 1, (double)s->f[i]);
  }
}

void kernel_label(const kernel_spec *s, char *out, uint32_t size) {
  const kernel_def *d = &defs[s->op];
  const char *w;
  uint32_t len;
  int n = snprintf(out, size, "%s(", d->name);
  const char *comma = "";
#define ADD(...)                                                                                   \
  do {                                                                                             \
    if (n >= 0 && (uint32_t)n < size) n += snprintf(out + n, size - (uint32_t)n, __VA_ARGS__);     \
    comma = ",";                                                                                   \
  } while (0)
  for (uint32_t i = 0; word(d->dims, i, &w, &len); i++)
    ADD("%s%.*s=%u", comma, (int)len, w, s->dim[i]);
  for (uint32_t i = 0; word(d->consts, i, &w, &len); i++)
    ADD("%s%.*s=%g", comma, (int)len, w, (double)s->f[i]);
  for (uint32_t i = 0; word(d->types, i, &w, &len); i++)
    ADD("%s%.*s=%s", comma, (int)len, w, dtype_get(s->type[i])->name);
  if (s->sg) ADD("%sSG=%u", comma, s->sg);
  if (s->wg) ADD("%sWG=%u", comma, s->wg);
  if (s->rounds) ADD("%sA=q8", comma);
  ADD(")");
#undef ADD
}

/* ---- text ---- */

static const char *find_text(const char *path, size_t n) {
  for (uint32_t i = 0; i < kernel_n_texts; i++) {
    if (n && strlen(kernel_texts[i].path) == n && memcmp(kernel_texts[i].path, path, n) == 0)
      return kernel_texts[i].text;
  }
  return NULL;
}

/* Puts `{KNOB}` parts of an include's path in place: a type's name, or sg / nosg for {SG}. */
static void expand_path(const kernel_spec *s, const char *p, size_t n, buf *out) {
  for (size_t i = 0; i < n; i++) {
    const char *close = p[i] == '{' ? memchr(p + i, '}', n - i) : NULL;
    if (!close) {
      buf_putc(out, p[i]);
      continue;
    }
    size_t len = (size_t)(close - (p + i + 1));
    int t = index_of(defs[s->op].types, p + i + 1, len);
    if (t >= 0) buf_puts(out, dtype_get(s->type[t])->name);
    else buf_puts(out, s->sg ? "sg" : "nosg");
    i += len + 1;
  }
}

/* Appends a text; lines of the form
 *   #include "path"                 put that text here
 *   #include "path" with A=B        the same, the identifier prefix A replaced by B
 * Depth is bounded: texts are ours. */
static err append_text(const kernel_spec *s, const char *path, size_t path_n, const char *from,
                       const char *to, int depth, buf *out) {
  const char *p = find_text(path, path_n);
  if (!p || depth > 8) return err_set(ERR_UNSUPPORTED, "no kernel text '%.*s'", (int)path_n, path);
  while (*p) {
    size_t n = strcspn(p, "\n");
    if (strncmp(p, "#include \"", 10) == 0) {
      const char *q = p + 10, *close = memchr(q, '"', n - 10);
      if (!close) return err_set(ERR_UNSUPPORTED, "'%.*s': a bad #include", (int)path_n, path);
      buf name = {0};
      expand_path(s, q, (size_t)(close - q), &name);
      char a[32] = "", b[32] = "";
      const char *with = close + 1 < p + n ? strstr(close, " with ") : NULL;
      if (with && with < p + n) sscanf(with, " with %31[A-Za-z0-9_]=%31[A-Za-z0-9_]", a, b);
      err e = name.failed ? mem_err("kernel text", name.n)
                          : append_text(s, name.p, name.n, a[0] ? a : NULL, b, depth + 1, out);
      buf_free(&name);
      if (e) return e;
    } else if (!from) {
      buf_put(out, p, n);
    } else {
      size_t from_n = strlen(from);
      for (size_t i = 0; i < n; i++) {
        bool starts =
            i == 0 ||
            !strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_", p[i - 1]);
        if (starts && n - i >= from_n && memcmp(p + i, from, from_n) == 0) {
          buf_puts(out, to);
          i += from_n - 1;
        } else {
          buf_putc(out, p[i]);
        }
      }
    }
    buf_putc(out, '\n');
    p += n + (p[n] == '\n');
  }
  return ERR_NONE;
}

err kernel_wgsl(const kernel_spec *s, buf *out) {
  if (s->sg) buf_puts(out, "enable subgroups;\n");
  print_spec(s, out, "const @ = %uu;\n", "const @ = f32(%.9g);\n");
  if (s->sg) buf_printf(out, "const SG = %uu;\n", s->sg);
  kernel_shape shape;
  defs[s->op].shape(s, &shape);
  for (int i = 0; i < 4; i++) {
    if (shape.tile[i]) buf_printf(out, "const T%d = %uu;\n", i, shape.tile[i]);
  }
  char path[64];
  int n = snprintf(path, sizeof path, "%s.wgsl", defs[s->op].name);
  err e = append_text(s, path, (size_t)n, NULL, NULL, 0, out);
  if (!e && out->failed) e = mem_err("kernel text", out->n);
  return e;
}

/* ---- making one ---- */

void kernel_limit_threads(kernel_spec *s, uint32_t wg) {
  kernel_shape plain, limited;
  kernel_spec few = *s;
  few.wg = wg;
  defs[s->op].shape(s, &plain);
  defs[s->op].shape(&few, &limited);
  if (memcmp(plain.workgroup, limited.workgroup, sizeof plain.workgroup) != 0) *s = few;
}

uint32_t kernel_threads(const kernel_spec *s, uint32_t best, uint32_t least) {
  uint32_t n = 1;
  while (n < (s->wg ? s->wg : best) || n < least) n *= 2;
  return n;
}

void kernel_grid(uint64_t n, uint32_t groups[3]) {
  uint64_t y = div_up(n, 32768);
  groups[0] = (uint32_t)(y > 1 ? div_up(n, y) : n);
  groups[1] = (uint32_t)y;
  groups[2] = 1;
}

static uint32_t parse_binds(const char *binds, hw_bind *out) {
  uint32_t n = 0;
  const char *w;
  uint32_t len;
  for (; word(binds, n, &w, &len); n++) {
    char kind = w[len - 1];
    out[n] = kind == 'w' ? HW_BIND_WRITE : kind == 'u' ? HW_BIND_UNIFORM : HW_BIND_READ;
  }
  return n;
}

/* Gives the twin to one thread: twins know nothing of threads. */
err kernel_new(hw *h, const kernel_spec *s, bool twin, arena *keep, hw_kernel *out) {
  const kernel_def *d = &defs[s->op];
  char label[HW_LABEL * 2];
  kernel_label(s, label, sizeof label);
  kernel_spec *copy = arena_alloc(keep, 1, sizeof *copy);
  if (!copy) return mem_err(label, sizeof *copy);
  *copy = *s;
  kernel_shape shape;
  d->shape(s, &shape);
  if (shape.refuse) return err_set(ERR_UNSUPPORTED, "%s: %s", label, shape.refuse);
  hw_kernel_desc desc = {.label = label,
                         .workgroup_mem = shape.workgroup_mem,
                         .cpu_ctx = copy,
                         .cpu_scratch = shape.cpu_scratch,
                         .cpu_single = shape.cpu_single};
  memcpy(desc.workgroup, shape.workgroup, sizeof desc.workgroup);
  desc.n_bind = parse_binds(d->binds, desc.bind);
  hw_cpu_fn fast = twin ? NULL : kernel_cpu_fast(s->op, s->rounds);
  desc.cpu = fast ? fast : d->twin;
  if (fast) {
    kernel_cpu_shape(s, &shape);
    desc.cpu_scratch = shape.cpu_scratch;
    desc.cpu_own = shape.cpu_own;
  } else {
    desc.cpu_single = true;
  }
  buf text = {0};
  err e = ERR_NONE;
  if (hw_get_caps(h)->kind != HW_CPU) {
    TRY(kernel_wgsl(s, &text));
    desc.wgsl = text.p;
  }
  e = hw_kernel_new(h, &desc, out);
done:
  buf_free(&text);
  return e;
}
