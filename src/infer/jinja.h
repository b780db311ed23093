/* Chat templates: runs a model's own Jinja text (`tokenizer.chat_template`) on values that the
 * caller builds, with the settings that the transformers library gives jinja2 (trim_blocks,
 * lstrip_blocks, loop controls, `generation` blocks, its `tojson`). docs/templates.md lists the
 * constructs. What always holds: a template reads nothing but the values it is given, and limits
 * on time, memory, output and depth end it with a typed error.
 *
 * Every error names the line: "chat template line 3: filter 'foo' is not supported". Codes:
 * ERR_FORMAT (syntax, types, undefined values), ERR_UNSUPPORTED (Jinja that is not run here),
 * ERR_ARG (the template's own raise_exception), ERR_LIMIT, ERR_NOMEM. */
#ifndef FRIT_INFER_JINJA_H
#define FRIT_INFER_JINJA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/mem.h"

typedef struct jinja jinja; /* a parsed template; immutable, may be rendered by several threads */
typedef struct jval jval;   /* a value: none, bool, int, float, string, list or dict */

/* Parses `text` (UTF-8, at most 4 MiB; not kept). Returns ownership. */
err jinja_new(const char *text, size_t n, jinja **out);
void jinja_free(jinja *t);

/* Zero means default. */
typedef struct jinja_opts {
  uint64_t max_steps; /* work units, about one a node evaluated or 16 bytes handled; 20 million */
  size_t max_memory;  /* bytes of values alive during one render; 256 MiB */
  size_t max_output;  /* bytes rendered; 16 MiB */
  uint32_t max_depth; /* nesting of expressions, blocks and macro calls; 400 */
  int64_t now;        /* for strftime_now: seconds since 1970 in the user's zone (the caller adds
                         the zone's offset); the clock's UTC time */
} jinja_opts;

/* Appends the rendered text to `out`; on an error `out` is as it was. `globals` is a dict: messages
 * (list of dicts with role and content), add_generation_prompt, bos_token, eos_token, tools (none
 * when there are none), ... `o` may be NULL. */
err jinja_render(const jinja *t, const jval *globals, const jinja_opts *o, buf *out);

/* Values live in the arena and are valid until it is freed. Each returns NULL when out of memory;
 * jval_push and jval_set take such a NULL and return ERR_NOMEM, so that only they need a check.
 * Strings are copied. */
jval *jval_none(arena *a);
jval *jval_bool(arena *a, bool b);
jval *jval_int(arena *a, int64_t i);
jval *jval_f64(arena *a, double f);
jval *jval_str(arena *a, const char *s, size_t n);
jval *jval_cstr(arena *a, const char *s);
jval *jval_list(arena *a);
jval *jval_dict(arena *a);
err jval_push(jval *list, jval *item);
err jval_set(jval *dict, const char *key, jval *item); /* replaces an item of that key */

/* Strict JSON text into a value, nesting at most 128. Errors: ERR_FORMAT with the byte's offset,
 * ERR_LIMIT (depth, integers over 64 bits), ERR_NOMEM. */
err jval_from_json(arena *a, const char *text, size_t n, jval **out);

/* Reading: NULL or 0 when the value is of another type or has no such item. */
const jval *jval_get(const jval *dict, const char *key);
const jval *jval_at(const jval *list, size_t i);
size_t jval_len(const jval *list_or_dict);
const char *jval_text(const jval *str, size_t *n); /* NUL-terminated; n may be NULL */

#endif
