/* Devices for tests: one device of the kind that --device names, opened once and shared by every
 * suite, and waiting for it with a time limit. */
#ifndef FRIT_UTIL_HW_H
#define FRIT_UTIL_HW_H

#include "hw/hw.h"

/* The shared device, ready; opened by the first call, reopened when it has failed, closed at exit.
 * NULL (and the case is marked skipped, loudly) when --device gpu finds no library or adapter:
 * `hw *h = test_open(); if (!h) return;`. Whatever a case makes on it, it frees. */
hw *test_open(void);
void test_close(void); /* closes the shared device now */

/* A device of the case's own; `d.kind` is filled in. NULL as above; the caller closes it. */
hw *test_open_desc(hw_open_desc d);
hw_kind test_kind(void); /* what --device names */

/* Polls until the submit is done; false (and a failure) after 60 s. */
bool test_wait(hw *h, hw_ticket t);
/* Polls until the kernel is compiled; its error. */
err test_kernel_wait(hw *h, hw_kernel k);
/* Reads all or part of a buffer through a submit of its own, any size. */
err test_read(hw *h, hw_buf b, uint64_t off, void *dst, uint64_t size);

#endif
