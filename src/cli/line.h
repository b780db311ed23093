/* Lines from the user: with editing and history in a terminal, plain otherwise. */
#ifndef FRIT_CLI_LINE_H
#define FRIT_CLI_LINE_H

#include "base/mem.h"

typedef struct line_editor line_editor;

/* `history`: name of the file in $XDG_STATE_HOME/frit. A history that cannot be read or kept is no
 * error. Returns ownership. */
err line_open(const char *history, line_editor **out);
void line_close(line_editor *l); /* keeps the history */
bool line_terminal(const line_editor *l);
/* The next line without its end; lines ending with a backslash are joined by line breaks. Ctrl-C in
 * the editor drops what was typed. False at the end of input. */
bool line_read(line_editor *l, buf *out);

#endif
