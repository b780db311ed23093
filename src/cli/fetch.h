/* Downloads of one file over HTTP: resumable, checked, and there only when whole.
 *
 * While it runs, the bytes are in PATH.part and what identifies them (address and the server's
 * validator) in PATH.part.tag. Both stay after a failure, so that the next call goes on from there
 * if the server still has the same file, and starts anew if not. */
#ifndef FRIT_CLI_FETCH_H
#define FRIT_CLI_FETCH_H

#include <stdint.h>

#include "base/err.h"

/* done: bytes of the file that are here; total: its size, 0 while unknown. Called often. */
typedef void (*fetch_progress)(void *user, uint64_t done, uint64_t total);

typedef struct fetch_options {
  const char *url;    /* http or https */
  const char *path;   /* where the file goes; replaced if there */
  const char *sha256; /* 64 hex digits in lower case, or NULL: not checked */
  int retries;        /* further tries after a broken connection, each resuming */
  fetch_progress progress;
  void *user;
} fetch_options;

typedef struct fetch_result {
  uint64_t bytes;   /* size of the file */
  uint64_t resumed; /* of which were there from an earlier call */
  char sha256[65];
} fetch_result;

/* Errors: ERR_IO for network, server and disk, ERR_FORMAT for a wrong SHA-256 (nothing is kept). */
err fetch_file(const fetch_options *o, fetch_result *out);

/* SHA-256 of a file as 64 hex digits and a NUL. */
err fetch_sha256(const char *path, char out[65]);

#endif
