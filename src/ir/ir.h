/* The model graph: tensors and nodes in execution order. Knows no device.
 *
 * Tensors are row-major [rows, cols]. `rows` may be a symbol bound when a program is made: IR_M
 * (tokens of a chunk) or IR_CTX (rows of the KV cache). Everything lives in the graph's arena.
 * ir_check runs after an import and after each pass; it is the only place that knows what each op
 * wants. */
#ifndef FRIT_IR_IR_H
#define FRIT_IR_IR_H

#include <stdbool.h>
#include <stdint.h>

#include "base/dtype.h"
#include "base/mem.h"

/* X(id, name, inputs) */
#define IR_OPS(X)                                                                                  \
  X(IR_EMBED, "embed", 2)         /* table [V, N], ids [M] -> [M, N] */                            \
  X(IR_RMSNORM, "rmsnorm", 2)     /* x, g [N]; f: eps */                                           \
  X(IR_MATMUL, "matmul", 2)       /* w [N, K], x [M, K] -> [M, N] */                               \
  X(IR_BIAS, "bias", 2)           /* x, b [N] */                                                   \
  X(IR_ROPE, "rope", 2)           /* x [M, H D], table; a: heads, neox */                          \
  X(IR_KV_APPEND, "kv_append", 2) /* x [M, N], cache [CTX, N]; no output */                        \
  X(IR_ATTENTION, "attention", 3) /* q, k cache, v cache; a: heads, kv heads; f: scale */          \
  X(IR_ADD, "add", 2)                                                                              \
  X(IR_SILU_MUL, "silu_mul", 2) /* silu(a) b */                                                    \
  X(IR_LAST_ROW, "last_row", 1) /* x [M, N] -> [1, N] */

typedef enum ir_op {
#define X(id, name, n) id,
  IR_OPS(X)
#undef X
      IR_OP_COUNT_
} ir_op;

typedef enum ir_kind {
  IR_WEIGHT, /* from the file; `data` and `size` say where */
  IR_INPUT,  /* written by the caller before a run: ids */
  IR_STATE,  /* outlives a run: KV cache */
  IR_TABLE,  /* rope angles [CTX, rot/2] of (cos, sin): filled once from ir_rope */
  IR_VALUE   /* made by a node */
} ir_kind;

#define IR_M 0x80000000u   /* rows: tokens of the chunk */
#define IR_CTX 0x80000001u /* rows: of the KV cache */
#define IR_NONE 0xFFFFFFFFu
typedef uint32_t ir_id; /* index of a tensor */

typedef struct ir_tensor {
  const char *name; /* the file's own name for a weight; "blk.3/q" style for a value */
  ir_kind kind;
  dtype type;
  uint32_t rows, cols;
  const void *data; /* weight: its bytes when the file is mapped, else NULL */
  uint64_t size;    /* weight: bytes in the file */
  uint64_t file_off;
  uint32_t part;
} ir_tensor;

typedef struct ir_node {
  ir_op op;
  ir_id in[3];
  ir_id out; /* IR_NONE for kv_append */
  uint32_t a[2];
  float f;
} ir_node;

/* Rotary angles: angle of pair i at position p is p * freq[i]; (cos, sin) times mscale. */
typedef struct ir_rope {
  uint32_t rot;       /* rotated components of a head, even */
  const double *freq; /* [rot/2] radians a position */
  double mscale;
} ir_rope;

typedef struct ir_graph {
  arena mem;
  const char *name;
  ir_tensor *tensors;
  uint32_t n_tensors, cap_tensors;
  ir_node *nodes;
  uint32_t n_nodes, cap_nodes;
  uint32_t body_end; /* nodes [0, body_end) make the hidden state, the rest the logits */
  ir_id ids, hidden, logits;
  ir_rope rope;
  bool failed; /* an allocation failed while building; ir_check reports it */
} ir_graph;

/* Builders; on out of memory they set `failed` and return IR_NONE. Names are copied. */
ir_id ir_tensor_add(ir_graph *g, ir_kind kind, dtype t, uint32_t rows, uint32_t cols,
                    const char *name);
/* Adds a node whose output shape follows from its inputs; returns the output. */
ir_id ir_node_add(ir_graph *g, ir_node n, const char *name);

const char *ir_op_name(ir_op op);
uint32_t ir_op_inputs(ir_op op);
/* Every node's inputs exist, come before it and have the shapes its op wants. ERR_FORMAT naming
 * node and tensor. */
err ir_check(const ir_graph *g);
/* The text form: one line a tensor that is not a value, then one a node. */
void ir_print(const ir_graph *g, buf *out);
/* Row `pos` of the rope table: rot/2 pairs (cos, sin) of mscale, computed in f64. */
void ir_rope_row(const ir_rope *r, uint32_t pos, float *cs);
/* Rows with symbols replaced. */
uint32_t ir_rows(uint32_t rows, uint32_t m, uint32_t ctx);
void ir_free(ir_graph *g);

#endif
