/* One line an op: X(ID, name, dims, consts, types, binds).
 *
 * The text is <name>.wgsl, the twin `name_twin`, the shape function `name_shape`, both in a .c file
 * beside it. Binds are "name:r" (read), "name:w" (read_write) or "name:u" (uniform), in the order
 * of
 * @binding numbers.
 *
 * Dims that recur: N outputs (columns of y), K inputs, M rows; ROW0 and NTOT place this tensor's
 * rows in a stack of NTOT rows that share one buffer; y is [M, YN] and this op writes columns Y0 to
 * Y0+N.
 */
#ifndef FRIT_KERNELS_CATALOG_H
#define FRIT_KERNELS_CATALOG_H

#define KERNELS_BASE(X)                                                                            \
  /* file layout -> packed layout: step.n_tok <= NROWS rows from src into dst at row step.pos */   \
  X(PACK, pack, "K NROWS NTOT", "", "W", "src:r dst:w step:u")                                     \
  /* y[m,:] = W[ids[m] - R0,:] where R0 <= ids[m] < R0 + NTOT (a part of a split table) */         \
  X(EMBED, embed, "N NTOT M R0", "", "W", "w:r ids:r y:w step:u")                                  \
  /* y[m,n] = g[n] x[m,n] / sqrt(mean_n(x^2) + EPS) */                                             \
  X(RMSNORM, rmsnorm, "N M", "EPS", "", "x:r g:r y:w step:u")                                      \
  /* y[m,Y0+n] = sum_k W[ROW0+n,k] x[m,k]; matvec is the form for M = 1 */                         \
  X(MATVEC, matvec, "N K ROW0 NTOT YN Y0", "", "W", "w:r x:r y:w step:u")                          \
  X(MATMUL, matmul, "N K M ROW0 NTOT YN Y0", "", "W", "w:r x:r y:w step:u")                        \
  /* y = x + b, b [N] */                                                                           \
  X(BIAS, bias, "N M", "", "", "x:r b:r y:w step:u")                                               \
  /* rotate pairs of each of H heads of D by the angles of position step.pos + m; cs is            \
     [context, ROT/2] (cos, sin); NEOX 0: pairs (2i, 2i+1); 1: pairs (i, i + ROT/2) */             \
  X(ROPE, rope, "H D ROT NEOX M", "", "", "x:r cs:r y:w step:u")                                   \
  /* cache[step.pos + m, :] = x[m, :] */                                                           \
  X(KV_APPEND, kv_append, "N M", "", "KV", "x:r cache:w step:u")                                   \
  /* causal attention of H query heads over G key/value heads of D (head h reads h / (H/G)):       \
     row m sees cache rows 0 .. step.pos + m */                                                    \
  X(ATTENTION, attention, "H G D M", "SCALE", "KV", "q:r k:r v:r y:w step:u")                      \
  X(ADD, add, "N M", "", "", "a:r b:r y:w step:u")                                                 \
  /* y = silu(a) * b, silu(a) = a / (1 + exp(-a)) */                                               \
  X(SILU_MUL, silu_mul, "N M", "", "", "a:r b:r y:w step:u")                                       \
  /* y[0,:] = x[step.n_tok - 1,:] */                                                               \
  X(LAST_ROW, last_row, "N M", "", "", "x:r y:w step:u")                                           \
  /* ids[0] = first n of the greatest logits[n]; of logits with a NaN or +infinity UINT32_MAX,     \
     here and in sample and argmax_join */                                                         \
  X(ARGMAX, argmax, "N", "", "", "logits:r ids:w step:u")                                          \
  /* logits[t] of each t in the ring of recent ids: / or * step.penalty (Keskar et al. 2019) */    \
  X(PENALIZE, penalize, "N RING", "", "", "recent:r logits:w step:u")                              \
  /* ids[0] = a draw: top-k (step.top_k <= 256), then top-p, min-p, temperature, seed */           \
  X(SAMPLE, sample, "N", "", "", "logits:r ids:w step:u")                                          \
  /* recent[(step.pos + step.n_tok) % RING] = ids[0] */                                            \
  X(REMEMBER, remember, "RING", "", "", "ids:r recent:w step:u")                                   \
  /* nll[m] = log(sum_n exp logits[m,n]) - logits[m,next[m]]: perplexity */                        \
  X(NLL, nll, "N M", "", "", "logits:r next:r nll:w step:u")

#define KERNELS_ROLE(X)                                                                            \
  /* ---- roles of decode (M = 1); h = rmsnorm(x) g ---- */                                        \
  /* rows OFF .. OFF+N of the virtual stack q, k, v (NQ, NK, NK rows) of W h: q and k rotated as   \
     rope does (heads of D), k and v appended to the cache. Replaces rmsnorm, 3 matvec, 2 rope,    \
     2 kv_append */                                                                                \
  X(QKV_MV, qkv_mv, "N K ROW0 NTOT OFF NQ NK D ROT NEOX", "EPS", "W KV",                           \
    "w:r x:r g:r cs:r q:w kc:w vc:w step:u")                                                       \
  /* part[h, s, 0..D-1] = sum exp(score - max) v, [D] = max, [D+1] = sum of exp, over split s of S \
     of the cache rows; attn_combine joins the splits into y [H*D]. Replace attention */           \
  X(ATTN_SPLIT, attn_split, "H G D S", "SCALE", "KV", "q:r k:r v:r part:w step:u")                 \
  X(ATTN_COMBINE, attn_combine, "H D S", "", "", "part:r y:w step:u")                              \
  /* y = r + W x. Replaces matvec, add */                                                          \
  X(MATVEC_RES, matvec_res, "N K ROW0 NTOT", "", "W", "w:r x:r r:r y:w step:u")                    \
  /* y[n] = silu(W[n] h) * (W[N+n] h), W the stack gate, up [2N, K]. Replaces rmsnorm, 2 matvec,   \
     silu_mul */                                                                                   \
  X(FFN_MV, ffn_mv, "N K", "EPS", "W", "w:r x:r g:r y:w step:u")                                   \
  /* y[Y0+n] = W[ROW0+n] h. Replaces rmsnorm, matvec */                                            \
  X(NORM_MV, norm_mv, "N K ROW0 NTOT YN Y0", "EPS", "W", "w:r x:r g:r y:w step:u")                 \
  /* part[p] = (order key, id) of the greatest of the p-th share of the logits; argmax_join takes  \
     the greatest of P shares, lowest id first. Replace argmax */                                  \
  X(ARGMAX_PART, argmax_part, "N P", "", "", "logits:r part:w step:u")                             \
  X(ARGMAX_JOIN, argmax_join, "P", "", "", "part:r ids:w step:u")                                  \
  /* ---- roles of prefill (M > 1) ---- */                                                         \
  /* y = r + x W^T. Replaces matmul, add */                                                        \
  X(MATMUL_RES, matmul_res, "N K M ROW0 NTOT", "", "W", "w:r x:r r:r y:w step:u")                  \
  /* qkv [M, (H+2G) D] -> q [M, H D] and cache rows. Replaces 2 rope, 2 kv_append */               \
  X(ROPE_APPEND, rope_append, "H G D ROT NEOX M", "", "KV", "qkv:r cs:r q:w kc:w vc:w step:u")     \
  /* attention by tiles of queries and keys with a running maximum. Replaces attention */          \
  X(ATTN_FLASH, attn_flash, "H G D M", "SCALE", "KV", "q:r k:r v:r y:w step:u")                    \
  /* y = silu(gu[:, :N]) * gu[:, N:], gu [M, 2N]. Replaces silu_mul */                             \
  X(SILU_MUL_PAIR, silu_mul_pair, "N M", "", "", "gu:r y:w step:u")

#define KERNELS(X) KERNELS_BASE(X) KERNELS_ROLE(X)

#endif
