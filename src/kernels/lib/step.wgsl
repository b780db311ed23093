// What changes from run to run: one block, written before each submit.
struct Step {
  pos: u32,        // position of the chunk's first token in the KV cache
  n_tok: u32,      // tokens in this chunk, 1 .. M
  seed: u32,       // of the sampler
  draw: u32,       // counts sampled tokens: the random number is a function of (seed, draw)
  top_k: u32,      // 1 .. 256
  n_recent: u32,   // ids in the ring that the penalty looks at
  temp: f32,       // temperature > 0
  top_p: f32,      // 1: off
  min_p: f32,      // 0: off
  penalty: f32,    // repetition penalty, 1: off
}
