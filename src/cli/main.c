/* The command frit: finds the command named by the first argument. */
#include <fcntl.h>
#include <langinfo.h>
#include <locale.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/pull.h"
#include "frit.h"

static const cli_command cli_pull = {
    .name = "pull", .summary = "fetches a model file", .run = cmd_pull};

static const cli_command *const commands[] = {
    &cli_chat,  &cli_complete,   &cli_tokenize, &cli_inspect, &cli_devices, &cli_explain,
    &cli_bench, &cli_perplexity, &cli_logits,   &cli_pull,    &cli_synth,   &cli_selftest,
};
enum { N_COMMANDS = sizeof commands / sizeof *commands };

static const cli_command *find(const char *name) {
  for (int i = 0; i < N_COMMANDS; i++)
    if (strcmp(commands[i]->name, name) == 0) return commands[i];
  return NULL;
}

static void overview(FILE *to) {
  fputs("frit runs machine-learning models on any GPU through WebGPU, and on the CPU.\n\n"
        "Usage: frit COMMAND [OPTION...] [ARGUMENT...]\n\nCommands:\n",
        to);
  for (int i = 0; i < N_COMMANDS; i++)
    fprintf(to, "  %-12s %s\n", commands[i]->name, commands[i]->summary);
  fputs("\n'frit help COMMAND' explains one, 'frit --version' prints the version.\n", to);
}

static int unknown(const char *name) {
  cli_note("there is no command '%s'; 'frit help' lists them", name);
  return CLI_BAD_USAGE;
}

static int help(int argc, char **argv) {
  if (argc < 3) {
    overview(stdout);
    return cli_flush();
  }
  const cli_command *c = find(argv[2]);
  if (!c) return unknown(argv[2]);
  return c->run(2, (const char *[]){c->name, "--help", NULL});
}

/* The number of a closed standard stream would go to the next file that is opened, and messages
 * into that file. What stands in for it can be neither read nor written. */
static void hold_standard_streams(void) {
  for (int fd = 0; fd <= STDERR_FILENO; fd++)
    if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", fd ? O_RDONLY : O_WRONLY) != fd) return;
}

int main(int argc, char **argv) {
  hold_standard_streams();
  /* For line editing; numbers stay as in C. Texts are UTF-8, whatever the locale says. */
  if (!setlocale(LC_CTYPE, "") || strcmp(nl_langinfo(CODESET), "UTF-8") != 0)
    setlocale(LC_CTYPE, "C.UTF-8");
  if (argc < 2) {
    overview(stderr);
    return CLI_BAD_USAGE;
  }
  const char *name = argv[1];
  if (strcmp(name, "--version") == 0 || strcmp(name, "version") == 0) {
    printf("frit %s\n", frit_version());
    return cli_flush();
  }
  if (strcmp(name, "help") == 0 || strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0)
    return help(argc, argv);
  const cli_command *c = find(name);
  return c ? c->run(argc - 1, (const char **)(argv + 1)) : unknown(name);
}
