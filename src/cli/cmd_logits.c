/* frit logits: the logits after a text, as a NumPy file. */
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "cli/cli.h"

typedef struct options {
  cli_device device;
  cli_text text;
  const char *out;
  bool no_special;
} options;

/* Format 1.0 of numpy.lib.format: magic, version, header length, a dict padded with blanks so that
 * the data begins at a multiple of 64. */
static err write_npy(const char *path, const float *v, uint32_t n) {
  buf b = {0};
  char dict[128];
  int len =
      snprintf(dict, sizeof dict, "{'descr': '<f4', 'fortran_order': False, 'shape': (%u,), }", n);
  int total = (10 + len + 1 + 63) / 64 * 64;
  int header = total - 10;
  buf_put(&b, "\x93NUMPY\x01\x00", 8);
  buf_putc(&b, (char)(header & 255));
  buf_putc(&b, (char)(header >> 8));
  buf_puts(&b, dict);
  while (b.n + 1 < (size_t)total && !b.failed) buf_putc(&b, ' ');
  buf_putc(&b, '\n');
  buf_put(&b, v, n * sizeof *v);
  err e = b.failed ? mem_err("logits", n * sizeof *v) : file_write(path, b.p, b.n);
  buf_free(&b);
  return e;
}

static int logits(const char *path, const options *o, const char *text, size_t n) {
  cli_model m = {0};
  session *s = NULL;
  token_ids ids = {0};
  float *v = NULL;
  bool done = false;
  cli_wait w = {0};
  err e;
  TRY(cli_load(&o->device, path, NULL, &m));
  TRY(session_new(m.e, &s));
  TRY(cli_encode(&m, text, n, !o->no_special, &ids));
  uint32_t vocab = run_vocab(engine_run(m.e));
  v = mem_alloc(vocab * sizeof *v);
  if (!v) e = mem_err("logits", vocab * sizeof *v);
  else e = session_feed(s, ids.p, (uint32_t)ids.n);
  while (!e && !done) {
    e = session_logits(s, v, &done);
    cli_wait_step(&w, done);
  }
  if (!e) e = write_npy(o->out, v, vocab);
  if (!e) fprintf(stderr, "%s: %u logits after %zu tokens\n", o->out, vocab, ids.n);
done:
  mem_free(v);
  token_ids_free(&ids);
  session_free(s);
  cli_unload(&m);
  return e ? cli_fail() : CLI_OK;
}

static int run_logits(int argc, const char **argv) {
  options o = {0};
  cli_table t = {0};
  cli_args args;
  cli_add_text(&t, &o.text);
  cli_add(&t, (cli_option[]){{.name = "out",
                              .letter = 'o',
                              .type = CLI_TEXT,
                              .to = &o.out,
                              .arg = "FILE.npy",
                              .help = "where they go"},
                             {0}});
  cli_add_no_special(&t, &o.no_special);
  cli_add_quiet(&t, &o.device);
  cli_add_device(&t, &o.device);
  int status = cli_parse(&cli_logits, &t, "MODEL", argc, argv, &args);
  if (status != CLI_GO) return status;
  char *text = NULL;
  size_t n;
  status = cli_check_device(&cli_logits, &o.device);
  if (status == CLI_GO && !o.out) status = cli_usage(&cli_logits, "--out is missing");
  if (status == CLI_GO) status = cli_read_text(&cli_logits, &o.text, &text, &n);
  if (status == CLI_GO) status = logits(args.arg[0], &o, text, n);
  mem_free(text);
  cli_args_free(&args);
  return status;
}

const cli_command cli_logits = {
    .name = "logits",
    .summary = "writes the logits after a text as a NumPy file",
    .synopsis = "MODEL -p TEXT --out=FILE.npy [OPTION...]",
    .text =
        "Runs the text and writes the logits of the token that would follow: float32, one a token "
        "of the\nvocabulary. The text begins with the tokens that the file's own rules add.",
    .examples = "frit logits model.gguf -p 'The capital of France is' --out=x.npy --precision=f32",
    .run = run_logits,
};
