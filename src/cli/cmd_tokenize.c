/* frit tokenize: text to token ids. */
#include <stdio.h>

#include "cli/cli.h"
#include "infer/token_gguf.h"

typedef struct options {
  cli_text text;
  bool json, no_special, no_bos;
} options;

static void print_quoted(const char *p, size_t n) {
  for (size_t i = 0; i < n; i++) {
    unsigned char c = (unsigned char)p[i];
    if (c == '\n') fputs("\\n", stdout);
    else if (c == '\\' || c == '\'') printf("\\%c", c);
    else if (c < 0x20 || c == 0x7F) printf("\\x%02x", c);
    else putchar(c);
  }
}

static err print_plain(const tokenizer *t, const token_ids *ids) {
  for (size_t i = 0; i < ids->n; i++) {
    const char *p;
    size_t n;
    err e = token_piece(t, ids->p[i], true, &p, &n);
    if (e) return e;
    printf("%6u '", ids->p[i]);
    print_quoted(p, n);
    puts("'");
  }
  return ERR_NONE;
}

/* Pieces as JSON strings: bytes that are no whole character become U+FFFD. */
static err print_json(const tokenizer *t, const token_ids *ids, int *status) {
  cJSON *j = cJSON_CreateObject();
  cJSON_AddItemToObject(j, "tokens", cli_json_ids(ids->p, ids->n));
  cJSON *pieces = cJSON_AddArrayToObject(j, "pieces");
  buf b = {0};
  err e = ERR_NONE;
  for (size_t i = 0; i < ids->n && !e; i++) {
    const char *p;
    size_t n;
    utf8_stream u = {0};
    buf_clear(&b);
    e = token_piece(t, ids->p[i], true, &p, &n);
    if (e) break;
    utf8_stream_put(&u, p, n, &b);
    utf8_stream_flush(&u, &b);
    cJSON_AddItemToArray(pieces, cJSON_CreateString(b.p ? b.p : ""));
  }
  buf_free(&b);
  if (e) cJSON_Delete(j);
  else *status = cli_print_json(j);
  return e;
}

static int tokenize(const char *path, const options *o, const char *text, size_t n) {
  gguf *g = NULL;
  tokenizer *t = NULL;
  token_ids ids = {0};
  int status = CLI_OK;
  err e;
  TRY(gguf_open(path, &g));
  TRY(token_from_gguf(g, &t));
  TRY(token_encode(t, text, n, !o->no_special, !o->no_bos, &ids));
  if (o->json) e = print_json(t, &ids, &status);
  else if (!(e = print_plain(t, &ids))) status = cli_flush();
done:
  if (e) status = cli_fail();
  token_ids_free(&ids);
  token_free(t);
  gguf_free(g);
  return status;
}

static int run_tokenize(int argc, const char **argv) {
  options o = {0};
  cli_table t = {0};
  cli_args args;
  cli_add_text(&t, &o.text);
  cli_add(&t, (cli_option[]){{.name = "no-bos",
                              .type = CLI_FLAG,
                              .to = &o.no_bos,
                              .help = "leaves out the tokens that the file's own rules add"},
                             {.name = "json",
                              .type = CLI_FLAG,
                              .to = &o.json,
                              .help = "prints one object: tokens, pieces"},
                             {0}});
  cli_add_no_special(&t, &o.no_special);
  int status = cli_parse(&cli_tokenize, &t, "MODEL", argc, argv, &args);
  if (status != CLI_GO) return status;
  char *text;
  size_t n;
  status = cli_read_text(&cli_tokenize, &o.text, &text, &n);
  if (status == CLI_GO) status = tokenize(args.arg[0], &o, text, n);
  mem_free(text);
  cli_args_free(&args);
  return status;
}

const cli_command cli_tokenize = {
    .name = "tokenize",
    .summary = "prints the token ids of a text",
    .synopsis = "MODEL -p TEXT [OPTION...]\nMODEL --file=FILE [OPTION...]",
    .text =
        "Cuts the text into the tokens of the model's vocabulary and prints id and text of each. "
        "Texts of\nspecial tokens, such as <|im_start|>, stand for those tokens. No device is "
        "opened.",
    .examples = "frit tokenize model.gguf -p 'Hello, world'\n"
                "frit tokenize model.gguf --file=letter.txt --json",
    .run = run_tokenize,
};
