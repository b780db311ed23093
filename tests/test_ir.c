/* The model graph: what the checker refuses, the text form, the rope table. */
#include <stdlib.h>

#include "base/file.h"
#include "base/math.h"
#include "import/gguf/model.h"
#include "ir/ir.h"
#include "test.h"
#include "util_engine.h"

/* ids, table, x = embed(table, ids), then whatever a case adds. */
static ir_id begin(ir_graph *g) {
  *g = (ir_graph){.name = "g"};
  g->ids = ir_tensor_add(g, IR_INPUT, DT_U32, IR_M, 1, "ids");
  ir_id table = ir_tensor_add(g, IR_WEIGHT, DT_F32, 10, 8, "table");
  ir_id x = ir_node_add(g, (ir_node){.op = IR_EMBED, .in = {table, g->ids}}, "x");
  g->rope = (ir_rope){.rot = 4};
  g->hidden = g->logits = x;
  return x;
}

static ir_id weight(ir_graph *g, uint32_t rows, uint32_t cols) {
  return ir_tensor_add(g, IR_WEIGHT, DT_F32, rows, cols, "w");
}

static void refused(ir_graph *g, ir_node n, const char *why) {
  ir_node_add(g, n, "y");
  CHECK_ERR(ir_check(g), ERR_FORMAT, why);
  ir_free(g);
}

static void wrong_graphs(void) {
  ir_graph g;
  ir_id x = begin(&g);
  CHECK_OK(ir_check(&g));
  refused(&g, (ir_node){.op = IR_EMBED, .in = {x, g.ids}}, "node 1 (embed of 'x'): wants a table");
  x = begin(&g);
  refused(&g, (ir_node){.op = IR_RMSNORM, .in = {x, weight(&g, 1, 7)}}, "another length");
  x = begin(&g);
  refused(&g, (ir_node){.op = IR_BIAS, .in = {x, weight(&g, 2, 8)}}, "another length");
  x = begin(&g);
  ir_id half = ir_tensor_add(&g, IR_WEIGHT, DT_F16, 1, 8, "half");
  refused(&g, (ir_node){.op = IR_BIAS, .in = {x, half}}, "must be f32");
  x = begin(&g);
  refused(&g, (ir_node){.op = IR_MATMUL, .in = {weight(&g, 3, 9), x}},
          "columns of weight and input");
  x = begin(&g);
  refused(&g, (ir_node){.op = IR_MATMUL, .in = {x, x}}, "columns of weight and input");
  x = begin(&g);
  ir_id table = ir_tensor_add(&g, IR_TABLE, DT_F32, IR_CTX, 4, "rope");
  refused(&g, (ir_node){.op = IR_ROPE, .in = {x, table}, .a = {3}}, "heads or table do not fit");
  x = begin(&g);
  refused(&g, (ir_node){.op = IR_ROPE, .in = {x, x}, .a = {2}}, "heads or table do not fit");
  x = begin(&g);
  ir_id kc = ir_tensor_add(&g, IR_STATE, DT_F32, IR_CTX, 7, "cache");
  refused(&g, (ir_node){.op = IR_KV_APPEND, .in = {x, kc}}, "cache has another width");
  x = begin(&g);
  ir_id k = ir_tensor_add(&g, IR_STATE, DT_F32, IR_CTX, 4, "k");
  ir_id v = ir_tensor_add(&g, IR_STATE, DT_F32, IR_CTX, 8, "v");
  refused(&g, (ir_node){.op = IR_ATTENTION, .in = {x, k, v}, .a = {2, 1}}, "caches differ");
  x = begin(&g);
  k = ir_tensor_add(&g, IR_STATE, DT_F32, IR_CTX, 4, "k");
  refused(&g, (ir_node){.op = IR_ATTENTION, .in = {x, k, k}, .a = {4, 1}}, "head counts");
  x = begin(&g);
  ir_id last = ir_node_add(&g, (ir_node){.op = IR_LAST_ROW, .in = {x}}, "last");
  refused(&g, (ir_node){.op = IR_ADD, .in = {x, last}}, "operands differ in shape");
}

static void order_and_ends(void) {
  ir_graph g;
  ir_id x = begin(&g);
  ir_id y = ir_node_add(&g, (ir_node){.op = IR_ADD, .in = {x, x}}, "y");
  g.nodes[1].in[0] = y; /* reads what it makes */
  CHECK_ERR(ir_check(&g), ERR_FORMAT, "node 1 (add): input 0 is not made before it");
  g.nodes[1].in[0] = 99;
  CHECK_ERR(ir_check(&g), ERR_FORMAT, "input 0 is not made before it");
  ir_free(&g);
  begin(&g);
  g.logits = IR_NONE;
  CHECK_ERR(ir_check(&g), ERR_FORMAT, "g: the graph has no logits");
  ir_free(&g);
  begin(&g);
  g.body_end = 2;
  CHECK_ERR(ir_check(&g), ERR_FORMAT, "the graph has no logits");
  ir_free(&g);
  begin(&g); /* a node of nothing: building stops there */
  CHECK(ir_node_add(&g, (ir_node){.op = IR_ADD, .in = {0, 77}}, "z") == IR_NONE);
  CHECK(ir_tensor_add(&g, IR_VALUE, DT_F32, 1, 1, "z") == IR_NONE);
  CHECK(ir_check(&g) == ERR_NOMEM);
  ir_free(&g);
}

static void text_form(void) {
  synth_shape one;
  REQUIRE(synth_preset("tiny", &one));
  one.layers = 1;
  const char *path = te_model(&(synth_desc){.shape = &one, .bias = true, .untied = true});
  gguf *file = NULL;
  model *m = NULL;
  buf text = {0};
  CHECK_OK(gguf_open(path, &file));
  CHECK_OK(model_import(file, &m));
  REQUIRE(m);
  ir_print(&m->graph, &text);
  const char *update = getenv("FRIT_UPDATE_GOLDEN"), *golden = test_data("plan/graph.txt");
  char *want = NULL;
  size_t n;
  if (update && update[0] == '1') CHECK_OK(file_write(golden, text.p, text.n));
  CHECK_OK(file_read(golden, 1 << 20, &want, &n));
  CHECK_STR(text.p, want);
  mem_free(want);
  buf_free(&text);
  model_free(m);
  gguf_free(file);
}

static void rope_rows(void) {
  const double freq[2] = {1.0, 0.01};
  ir_rope r = {.rot = 4, .freq = freq, .mscale = 2};
  float cs[4];
  ir_rope_row(&r, 0, cs);
  CHECK(cs[0] == 2 && cs[1] == 0 && cs[2] == 2 && cs[3] == 0);
  ir_rope_row(&r, 100, cs);
  CHECK_NEAR(cs[0], 2 * cos(100.0), 1e-6);
  CHECK_NEAR(cs[1], 2 * sin(100.0), 1e-6);
  CHECK_NEAR(cs[2], 2 * cos(1.0), 1e-6);
  CHECK_NEAR(cs[3], 2 * sin(1.0), 1e-6);
  CHECK(ir_rows(IR_M, 3, 9) == 3 && ir_rows(IR_CTX, 3, 9) == 9 && ir_rows(5, 3, 9) == 5);
}

static void allocation_failures(void) {
  const char *path = te_model(&(synth_desc){.preset = "tiny", .bias = true});
  gguf *file = NULL;
  CHECK_OK(gguf_open(path, &file));
  REQUIRE(file);
  uint64_t before = mem_live();
  err e = ERR_NOMEM;
  int n = 0;
  while (e && n < 1000) {
    model *m = NULL;
    n++;
    mem_fail_at((uint64_t)n, n % 2);
    e = model_import(file, &m);
    mem_fail_at(0, false);
    if (e) CHECK_EQ(e, ERR_NOMEM);
    model_free(m);
    CHECK_EQ(mem_live(), before);
  }
  CHECK(n > 3 && n < 1000);
  gguf_free(file);
}

void suite_ir(void) {
  RUN(wrong_graphs);
  RUN(order_and_ends);
  RUN(text_form);
  RUN(rope_rows);
  RUN(allocation_failures);
}
