/* frit pull: fetches a model file. */
#ifndef FRIT_CLI_PULL_H
#define FRIT_CLI_PULL_H

/* argv[0] is the command's name ("pull"), the rest its arguments. Returns the exit status: 0, 1
 * when the file could not be had, 2 for a bad command line. Prints the file's path to standard
 * output. */
int cmd_pull(int argc, const char **argv);

#endif
