/* frit: machine-learning models and population simulations on any GPU.
 *
 * The only public header; C11 and C++17. */
#ifndef FRIT_H
#define FRIT_H

#ifdef __cplusplus
extern "C" {
#endif

/* The library's version, "MAJOR.MINOR.PATCH". Static, never NULL. */
const char *frit_version(void);

#ifdef __cplusplus
}
#endif

#endif
