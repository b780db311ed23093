/* frit synth: a model file with random weights. */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/cli.h"
#include "import/gguf/synth.h"

static int write_model(const synth_desc *d, const char *path) {
  char part[4096];
  snprintf(part, sizeof part, "%s.part", path); /* what the writer makes until it is whole */
  cli_temporary(part, false);
  err e = synth_write(d, path);
  if (e == ERR_ARG) return cli_usage(&cli_synth, "%s", err_text());
  return e ? cli_fail() : CLI_OK;
}

static int run_synth(int argc, const char **argv) {
  synth_desc d = {.seed = 1};
  cli_table t = {0};
  cli_args args;
  char presets[256];
  snprintf(presets, sizeof presets, "shape: %s", synth_presets());
  cli_add(
      &t,
      (cli_option[]){
          {.name = "arch", .type = CLI_TEXT, .to = &d.preset, .arg = "NAME", .help = presets},
          {.name = "type",
           .type = CLI_TEXT,
           .to = &d.quant,
           .arg = "T",
           .help = "type of the matrices, such as f32, q4_0, q8_0, q4_k (default q4_0)"},
          {.name = "mix",
           .type = CLI_TEXT,
           .to = &d.mix,
           .arg = "PART=T,...",
           .help = "other types for matrices whose name contains PART"},
          {.name = "seed",
           .type = CLI_U32,
           .to = &d.seed,
           .arg = "N",
           .help = "of the weights (default 1)"},
          {.name = "context",
           .type = CLI_U32,
           .to = &d.context,
           .arg = "N",
           .max = 1 << 24,
           .help = "context that the file claims (default 0: the shape's own)"},
          {.name = "bias", .type = CLI_FLAG, .to = &d.bias, .help = "adds biases"},
          {.name = "untied", .type = CLI_FLAG, .to = &d.untied, .help = "a separate output matrix"},
          {0}});
  int status = cli_parse(&cli_synth, &t, "OUT.gguf", argc, argv, &args);
  if (status != CLI_GO) return status;
  synth_shape shape;
  struct stat st;
  if (!d.preset)
    status = cli_usage(&cli_synth, "--arch is missing; there are: %s", synth_presets());
  else if (!synth_preset(d.preset, &shape))
    status =
        cli_usage(&cli_synth, "--arch: there is no '%s'; there are: %s", d.preset, synth_presets());
  else if ((status = write_model(&d, args.arg[0])) == CLI_OK) {
    if (stat(args.arg[0], &st) == 0)
      fprintf(stderr, "%s: %s\n", args.arg[0], cli_bytes((uint64_t)st.st_size));
  }
  cli_args_free(&args);
  return status;
}

const cli_command cli_synth = {
    .name = "synth",
    .summary = "writes a model file with random weights",
    .synopsis = "OUT.gguf --arch=NAME [--type=T] [--seed=N] [OPTION...]",
    .text =
        "Writes a GGUF file of the shape of a known model with random weights and a small working\n"
        "tokenizer, for tests and measurements. The same options give the same bytes.",
    .examples = "frit synth tiny.gguf --arch=tiny --type=f32\n"
                "frit synth 1b.gguf --arch=llama-3.2-1b --type=q4_0\nfrit bench 1b.gguf",
    .exit = "0 done, 1 the file cannot be written",
    .run = run_synth,
};
