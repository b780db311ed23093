/* What the files of the synthesiser share. */
#ifndef FRIT_IMPORT_GGUF_SYNTH_IMPL_H
#define FRIT_IMPORT_GGUF_SYNTH_IMPL_H

#include "import/gguf/gguf_write.h"
#include "import/gguf/synth.h"

enum { SYNTH_CHUNK = 4 << 20 }; /* bytes made and written at a time */

typedef struct synth_fill {
  float mean; /* f32 only */
  float std;
} synth_fill;

bool synth_can(dtype t);
/* Blocks first..first+n of a tensor; `dst` has room for three bytes more. The bytes depend on
 * (t, fill, seed, block number) only; `first` is a multiple of 64. */
void synth_blocks(dtype t, const synth_fill *fill, uint32_t seed, uint64_t first, uint64_t n,
                  uint8_t *dst);

/* Keys of a byte-level BPE vocabulary of s->vocab tokens. */
void synth_vocab(gguf_writer *w, const synth_shape *s);

#endif
