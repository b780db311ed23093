/* The module's exports: what JavaScript (web/core) calls; JS sees each as frit_NAME.
 *
 * A model is one object with a life in this order: new, part (one or more), the tensors it asks
 * for, open, load until done, then text. Pointers into the module's memory are valid until the next
 * call; results with several values go to `out`. Strings given are UTF-8 with their length, or
 * NUL-terminated where named cstr. Functions that return `err` leave a sentence in frit_error.
 * Sizes and offsets of files are doubles: exact up to 2^53. */
#ifndef FRIT_WEB_WEB_H
#define FRIT_WEB_WEB_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

typedef struct web_model web_model;

enum {                 /* flags of web_open */
       WEB_F32 = 1,    /* nothing is rounded to fewer bits on the way */
       WEB_NO_F16 = 2, /* pretend that the device lacks these */
       WEB_NO_SUBGROUPS = 4,
       WEB_LEVEL_NONE = 8, /* a dispatch an op */
       WEB_LEVEL_ROLE = 16
};

const char *web_version(void);
void *web_alloc(uint32_t size); /* NULL when out of memory */
void web_free(void *p);
const char *web_error(void);

/* `source` is the number by which imports source_fetch and source_fetched know where the bytes are.
 * NULL when out of memory. */
web_model *web_model_new(uint32_t source);
void web_model_free(web_model *m);

/* The first `n` bytes of the next part of the file, of `size` bytes in all. Takes `head` (from
 * web_alloc) over when it succeeds. ERR_TRUNCATED with n < size: call again with more. */
err web_part(web_model *m, const char *name_cstr, uint8_t *head, uint32_t n, double size);
uint32_t web_parts(const web_model *m); /* that the first one announces */
/* The i-th tensor whose values are needed before web_open: out = part, offset, size. False beyond.
 * web_give takes `data` over. */
bool web_need(const web_model *m, uint32_t i, double out[3]);
err web_give(web_model *m, uint32_t i, uint8_t *data);

/* Reads the model and its tokenizer. gpu false: the cpu back end. 0 is the default of all. */
err web_open(web_model *m, bool gpu, uint32_t flags, uint32_t ctx, uint32_t batch,
             double limit_binding);
const char *web_info(web_model *m);   /* JSON: what the file says */
const char *web_device(web_model *m); /* JSON: hw_caps; once loading has passed phase 0 */
/* out = bytes of weights, KV cache and the rest, on a device of these limits (`features`: 1 f16, 2
 * subgroups, 4 packed dot product). After web_open, before or after loading. */
err web_estimate(web_model *m, double max_binding, double max_buffer, uint32_t storage_buffers,
                 uint32_t invocations, uint32_t workgroup_mem, uint32_t features, uint32_t sg_min,
                 uint32_t sg_max, double out[3]);
/* Loads a little: out = phase (engine_phase), done, total, whether all is done, and whether this
 * call got anywhere (else wait for a promise before the next). */
err web_load(web_model *m, double out[5]);

/* out = address and count of u32 ids. special: texts of control tokens stand for those tokens. add:
 * BOS and EOS as the file says. */
err web_encode(web_model *m, const char *text, uint32_t n, bool special, bool add, uint32_t out[2]);
/* out = address and count of the bytes of one token, perhaps half a character. */
err web_piece(web_model *m, uint32_t id, bool special, uint32_t out[2]);
bool web_is_eog(const web_model *m, uint32_t id);

/* How the next generations choose tokens; all 0: greedy, to the end of the context. now: seconds
 * since 1970 in the user's zone, for templates that show a date. */
void web_sampling(web_model *m, float temp, uint32_t top_k, float top_p, float min_p, float penalty,
                  uint32_t seed, uint32_t max, double now);
/* Messages of a conversation, then the answer to them. What the timeline has in common with the
 * rendered messages is not run again. */
void web_chat_clear(web_model *m);
err web_chat_add(web_model *m, const char *role_cstr, const char *text, uint32_t n);
err web_chat_begin(web_model *m);
/* The continuation of a text, and of tokens as they are. */
err web_complete(web_model *m, const char *text, uint32_t n, bool special);
err web_continue(web_model *m, const uint32_t *ids, uint32_t n);
/* out = event (stream_event), address and bytes of text, token id, and whether this call got
 * anywhere. */
err web_step(web_model *m, uint32_t out[5]);
void web_stop(web_model *m);

/* out = prompt tokens, those of them that were run, tokens made, seconds of prefill and of decode,
 * submits, dispatches, why it ended (stream_end). */
void web_usage(const web_model *m, double out[8]);
/* out = address and count of the timeline's ids, readable also after the device failed. */
void web_tokens(const web_model *m, uint32_t out[2]);
/* out = bytes on the device now, at most so far, buffers alive, bind groups made. */
void web_counts(const web_model *m, double out[4]);

/* SHA-256 of bytes that come in pieces. NULL when out of memory; freed with web_free. After
 * web_sha256_end only that is left to do. */
typedef struct web_sha256 web_sha256;
web_sha256 *web_sha256_new(void);
void web_sha256_add(web_sha256 *s, const uint8_t *p, uint32_t n);
void web_sha256_end(web_sha256 *s, uint8_t out[32]);

#endif
