/* Engines for tests: synthetic models written on the spot, engines loaded and sessions run to their
 * end with a time limit. */
#ifndef FRIT_UTIL_ENGINE_H
#define FRIT_UTIL_ENGINE_H

#include "import/gguf/synth.h"
#include "infer/engine.h"

/* Writes the model; its path is valid until the next call. NULL, and a failure, when that fails. */
const char *te_model(const synth_desc *d);

/* Overwrites `n` bytes of a tensor of that file. */
void te_write(const char *path, const char *tensor, uint64_t off, const void *bytes, size_t n);
/* Makes block `block` of a tensor NaN: its scale, or its first element. */
void te_spoil(const char *path, const char *tensor, uint64_t block);

/* Opens and loads on `o.device`, or on the device under test with te_open_here. On an error *out is
 * NULL. */
err te_load(const char *path, const engine_opts *o, engine **out);
/* The same; NULL with a failure, or with a loud skip where there is no such device. */
engine *te_open(const char *path, engine_opts o);
engine *te_open_here(const char *path, engine_opts o);

/* The timeline is prompt[n] and nothing else has been run; false, with a failure, when not so. */
bool te_start(session *s, const uint32_t *prompt, uint32_t n);
/* Generates up to `max` tokens into ids[max]; *n says how many came before the end or the error. */
err te_generate(session *s, const sample_opts *o, uint32_t max, uint32_t *ids, uint32_t *n);
/* Logits of the timeline's last token. */
err te_logits(session *s, float *out);
/* Ids below the vocabulary from a seed; id 0 is left out. */
void te_prompt(uint32_t seed, uint32_t vocab, uint32_t *ids, uint32_t n);

#endif
