/* Which device a word names: "auto", "cpu", "gpu" or "gpu:N".
 *
 * auto is the first GPU that is not a CPU playing one, else the cpu back end; gpu takes the first
 * adapter, a real one before a software one; gpu:N is the N-th that `frit devices` lists. */
#ifndef FRIT_TASKS_PICK_H
#define FRIT_TASKS_PICK_H

#include "hw/hw.h"

typedef struct pick pick;

/* True when the word is one of those. NULL is auto. */
bool pick_valid(const char *device);
/* `library` as in hw_open_desc, valid until pick_end. ERR_ARG for another word, ERR_NO_DEVICE when
 * a GPU is asked for and there is no library. Returns ownership. */
err pick_begin(const char *device, const char *library, pick **out);
/* Call until *done, then *kind and *index say which. ERR_NO_DEVICE when there is no such adapter.
 */
err pick_poll(pick *p, hw_kind *kind, uint32_t *index, bool *done);
/* Once done: why auto took the CPU, "" otherwise. Valid until pick_end. */
const char *pick_note(const pick *p);
void pick_end(pick *p);

#endif
