/* One answer of a model: chat MODEL "QUESTION"
 *
 *     cc chat.c $(pkg-config --cflags --libs frit) -o chat */
#include <frit.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

static int failed(const char *what) {
  fprintf(stderr, "chat: %s: %s\n", what, frit_error());
  return 1;
}

/* Nothing in frit waits, so that the caller may do something else; this one sleeps. */
static void nap(void) { nanosleep(&(struct timespec){.tv_nsec = 50000}, NULL); }

int main(int argc, char **argv) {
  frit_engine *engine = NULL;
  frit_session *session = NULL;
  frit_event event = FRIT_BUSY;
  int ready = 0, status = 0;
  if (argc != 3) return fprintf(stderr, "usage: chat MODEL QUESTION\n"), 2;
  if (frit_open(argv[1], NULL, &engine)) return failed("open");
  while (!ready && !status) {
    if (frit_load(engine, NULL, &ready)) status = failed("load");
    else if (!ready) nap();
  }
  if (!status && (frit_session_new(engine, &session) ||
                  frit_chat_add(session, "user", argv[2], strlen(argv[2])) ||
                  frit_chat(session, &(frit_sampling){
                                         .temperature = 0.7f, .min_p = 0.05f, .max_tokens = 200})))
    status = failed("chat");
  while (!status && event != FRIT_DONE) {
    const char *text;
    size_t n;
    if (frit_step(session, &event, &text, &n)) status = failed("answer");
    else if (event == FRIT_BUSY) nap();
    else fwrite(text, 1, n, stdout), fflush(stdout);
  }
  if (!status) putchar('\n');
  frit_session_free(session);
  frit_close(engine);
  return status;
}
