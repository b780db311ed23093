/* ATTENTION: softmax(SCALE q k) v over the cache rows that each token sees, with a running maximum
 * (Milakov & Gimelshein 2018), so that scores exist for one block of keys at a time.
 *
 * Several tokens: an item of work is one head and a panel of its tokens; vectors run over tokens,
 * so that maxima and sums need no work across lanes, and both products are those of cpu_matmul.h.
 * One token: the threads share the cache rows, and join their parts at the end. */
#ifndef FRIT_KERNELS_CPU_ATTENTION_H
#define FRIT_KERNELS_CPU_ATTENTION_H

#include "kernels/cpu_matmul.h"

enum { KEYS = 64 }; /* a block */

typedef struct attention {
  dtype t;
  uint32_t h, g, d, pos, tokens;
  float scale;
  const float *q; /* [M, H D] */
  const uint8_t *k, *v;
  float *y; /* [M, H D] */
} attention_args;

static attention_args attention_call(const hw_cpu_call *c) {
  const kernel_spec *s = kernel_spec_of(c);
  const step_params *step = c->buf[4];
  return (attention_args){.t = s->type[0],
                          .h = s->dim[0],
                          .g = s->dim[1],
                          .d = s->dim[2],
                          .pos = step->pos,
                          .tokens = min_u32(step->n_tok, s->dim[3]),
                          .scale = s->f[0],
                          .q = c->buf[0],
                          .k = c->buf[1],
                          .v = c->buf[2],
                          .y = c->buf[3]};
}

/* Row t of a cache, at the key/value head that head h reads. */
static const uint8_t *cache_at(const attention_args *a, const uint8_t *cache, uint32_t t,
                               uint32_t h) {
  size_t i = (size_t)t * a->g * a->d + (size_t)(h / (a->h / a->g)) * a->d;
  return cache + i * (a->t == DT_F16 ? 2 : 4);
}

/* ---- several tokens ---- */

/* One panel: [rows][PANEL] arrays in a thread's scratch. */
typedef struct attention_panel {
  uint32_t head, first, n, width; /* tokens first .. first + n; width: lanes in use */
  float *q, *out;                 /* [D]: scaled queries, sums of p v */
  float *s;                       /* [KEYS]: scores, then p */
  float *max, *sum;               /* [1] */
  float *rows;                    /* [KEYS][D]: cache rows as floats where they are halves */
} attention_panel;

/* Rows from t on as floats; *stride between them. */
static const float *cache_floats(const attention_args *a, const uint8_t *cache, uint32_t t,
                                 uint32_t n, const attention_panel *p, size_t *stride) {
  const uint8_t *at = cache_at(a, cache, t, p->head);
  if (a->t == DT_F32) {
    *stride = (size_t)a->g * a->d;
    return (const float *)(const void *)at;
  }
  *stride = a->d;
  for (uint32_t i = 0; i < n; i++)
    row_f16(cache_at(a, cache, t + i, p->head), a->d, p->rows + (size_t)i * a->d);
  return p->rows;
}

/* Scores of keys t .. t + n -> weights; rescales what was summed before. */
static void panel_softmax(const attention_args *a, const attention_panel *p, uint32_t t,
                          uint32_t n) {
  bool edge = t + n > a->pos + p->first + 1;
  for (uint32_t l = 0; l < p->width; l += VW) {
    vi last; /* key that the lane's token sees last */
    int32_t lanes[VW];
    for (int j = 0; j < VW; j++) lanes[j] = (int32_t)(a->pos + p->first + l + (uint32_t)j);
    memcpy(&last, lanes, sizeof last);
    vf before = v_load(p->max + l), max = before;
    for (uint32_t i = 0; i < n; i++) {
      float *s = p->s + i * PANEL + l;
      if (edge) v_store(s, v_select(vi_set((int32_t)(t + i)) > last, v_set(-1e30f), v_load(s)));
      max = v_max(max, v_load(s));
    }
    vf factor = v_exp(before - max), sum = v_load(p->sum + l) * factor;
    for (uint32_t i = 0; i < n; i++) {
      float *s = p->s + i * PANEL + l;
      vf e = v_exp(v_load(s) - max);
      v_store(s, e);
      sum += e;
    }
    v_store(p->max + l, max);
    v_store(p->sum + l, sum);
    for (uint32_t i = 0; i < a->d; i++)
      v_store(p->out + i * PANEL + l, v_load(p->out + i * PANEL + l) * factor);
  }
}

static void attention_item(const attention_args *a, const attention_panel *p) {
  const uint32_t nv = p->width / VW;
  const float *q = a->q + ((size_t)p->first * a->h + p->head) * a->d;
  memset(p->q, 0, (size_t)a->d * PANEL * sizeof *p->q);
  transpose(q, (size_t)a->h * a->d, p->n, a->d, p->q, PANEL);
  for (uint32_t i = 0; i < a->d * PANEL; i += VW) {
    v_store(p->q + i, v_load(p->q + i) * a->scale);
    v_store(p->out + i, (vf){0});
  }
  for (uint32_t i = 0; i < PANEL; i++) {
    p->max[i] = -1e30f;
    p->sum[i] = 0;
  }
  const uint32_t seen = a->pos + p->first + p->n;
  for (uint32_t t = 0; t < seen; t += KEYS) {
    uint32_t n = min_u32(KEYS, seen - t);
    size_t stride;
    const float *rows = cache_floats(a, a->k, t, n, p, &stride);
    tiles(nv, n, rows, stride, 1, p->q, PANEL, a->d, p->s, PANEL, false);
    panel_softmax(a, p, t, n);
    rows = cache_floats(a, a->v, t, n, p, &stride);
    tiles(nv, a->d, rows, 1, stride, p->s, PANEL, n, p->out, PANEL, true);
  }
  for (uint32_t l = 0; l < p->width; l += VW) {
    vf over = v_set(1.0f) / v_load(p->sum + l);
    for (uint32_t i = 0; i < a->d; i++)
      v_store(p->out + i * PANEL + l, v_load(p->out + i * PANEL + l) * over);
  }
  transpose(p->out, PANEL, a->d, p->n, a->y + ((size_t)p->first * a->h + p->head) * a->d,
            (size_t)a->h * a->d);
}

static void attention_panels(const hw_cpu_call *c, const attention_args *a) {
  float *own = c->own;
  attention_panel p = {.q = own, .out = own + a->d * PANEL, .s = own + 2 * a->d * PANEL};
  p.max = p.s + KEYS * PANEL;
  p.sum = p.max + PANEL;
  p.rows = p.sum + PANEL;
  const uint32_t panels = (a->tokens + PANEL - 1) / PANEL;
  /* Later panels see more keys: items are dealt in turn, so that the threads' shares are alike. */
  for (uint32_t i = c->thread; i < panels * a->h; i += c->n_threads) {
    p.head = i % a->h;
    p.first = i / a->h * PANEL;
    p.n = min_u32(PANEL, a->tokens - p.first);
    p.width = (p.n + VW - 1) / VW * VW;
    attention_item(a, &p);
  }
}

/* ---- one token ---- */

/* A thread's part of a head: sum of p v [D], greatest score, sum of p. */
static void attention_part(const attention_args *a, uint32_t h, uint32_t begin, uint32_t end,
                           float *part) {
  const float *q = a->q + (size_t)h * a->d;
  float max = -1e30f, sum = 0;
  memset(part, 0, a->d * sizeof *part);
  for (uint32_t t = begin; t < end; t += KEYS) {
    uint32_t n = min_u32(KEYS, end - t);
    float s[KEYS], top = max;
    for (uint32_t i = 0; i < n; i++) {
      const uint8_t *k = cache_at(a, a->k, t + i, h);
      vf acc = {0};
      uint32_t j = 0;
      for (; j + VW <= a->d; j += VW) acc = v_fma(v_load(q + j), v_load_as(a->t, k, j), acc);
      s[i] = v_sum(acc);
      for (; j < a->d; j++) s[i] += q[j] * load_as(a->t, k, j);
      s[i] *= a->scale;
      top = s[i] > top ? s[i] : top;
    }
    for (uint32_t i = n; i < KEYS; i++) s[i] = -1e30f;
    float factor[VW];
    v_store(factor, v_exp(v_set(max - top)));
    vf total = {0};
    for (uint32_t i = 0; i < KEYS; i += VW) {
      vf e = v_exp(v_load(s + i) - top);
      v_store(s + i, e);
      total += e;
    }
    sum = sum * factor[0] + v_sum(total);
    max = top;
    uint32_t j = 0;
    for (; j + VW <= a->d; j += VW) {
      vf acc = v_load(part + j) * factor[0];
      for (uint32_t i = 0; i < n; i++)
        acc = v_fma(v_set(s[i]), v_load_as(a->t, cache_at(a, a->v, t + i, h), j), acc);
      v_store(part + j, acc);
    }
    for (; j < a->d; j++) {
      part[j] *= factor[0];
      for (uint32_t i = 0; i < n; i++)
        part[j] += s[i] * load_as(a->t, cache_at(a, a->v, t + i, h), j);
    }
  }
  part[a->d] = max;
  part[a->d + 1] = sum;
}

static void join_parts(const attention_args *a, uint32_t h, const float *parts, size_t part_row,
                       uint32_t n) {
  float max = -1e30f, sum = 0, factor[VW];
  float *y = a->y + (size_t)h * a->d;
  for (uint32_t i = 0; i < n; i++)
    max = parts[i * part_row + a->d] > max ? parts[i * part_row + a->d] : max;
  memset(y, 0, a->d * sizeof *y);
  for (uint32_t i = 0; i < n; i++) {
    const float *p = parts + i * part_row;
    v_store(factor, v_exp(v_set(p[a->d] - max)));
    sum += p[a->d + 1] * factor[0];
    for (uint32_t j = 0; j < a->d; j++) y[j] += p[j] * factor[0];
  }
  for (uint32_t j = 0; j < a->d; j++) y[j] /= sum;
}

/* Parts are [thread][H][D + 2]. */
static void attention_one(const hw_cpu_call *c, const attention_args *a) {
  uint32_t begin, end;
  kernel_share(c, a->pos + 1, 16, &begin, &end);
  size_t part = a->d + 2, row = part * a->h;
  float *parts = c->scratch;
  for (uint32_t h = 0; h < a->h; h++)
    attention_part(a, h, begin, end, parts + c->thread * row + h * part);
  hw_cpu_barrier(c);
  kernel_share(c, a->h, 1, &begin, &end);
  for (uint32_t h = begin; h < end; h++) join_parts(a, h, parts + h * part, row, c->n_threads);
}

static void attention_form(const hw_cpu_call *c) {
  const attention_args a = attention_call(c);
  if (a.tokens == 1) attention_one(c, &a);
  else attention_panels(c, &a);
}

#endif
