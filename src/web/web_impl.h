/* What the files of src/web share. */
#ifndef FRIT_WEB_WEB_IMPL_H
#define FRIT_WEB_WEB_IMPL_H

#include "tasks/chat.h"
#include "web/web.h"

struct web_model {
  uint32_t source;
  bool gpu;
  gguf *file;     /* until the engine owns it */
  uint8_t **kept; /* [n_kept] header bytes and tensors that the gguf borrows */
  uint32_t n_kept;
  engine *en;
  chat *chat; /* NULL when the file's template cannot be read: chat_error, chat_words */
  err chat_error;
  buf chat_words;
  session *session;
  bool own;       /* the session is not the chat's */
  bool is_direct; /* the generation at hand continues tokens, not messages */
  stream direct;
  uint32_t prompt; /* tokens continued */
  chat_opts o;
  uint64_t footprint; /* of the last web_load */
  token_ids ids;
  buf text;
};

#endif
