/* The version, from the build's project(VERSION). */
#include "frit.h"

const char *frit_version(void) { return FRIT_VERSION; }
