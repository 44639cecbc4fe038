/* SPDX-License-Identifier: Apache-2.0 */
/* A configuration file: lines "name = value". A value is all the rest of the
 * line, without the blanks around it; there are no quotes and no escapes. Empty
 * lines, and lines that begin with '#', are remarks. */
#ifndef UVA_SERVE_CONFIG_H
#define UVA_SERVE_CONFIG_H

#include "bytes.h"

/* Zeroes, then uva__config_open(). */
struct uva__config {
    const char *path;       /* borrows: for texts of errors */
    struct uva__bytes text; /* owns: the file, whose lines are cut in place */
    char *at;               /* the lines to be read */
    int line;               /* number of the last one that was read */
};

/* Reads the file, up to 1 MiB. Returns 0; an errno with an error.
 * uva__config_fini() frees it in every case. Thread: any, as all here. */
UVA_MUST_CHECK int uva__config_open(struct uva__config *config,
                                    const char *path, struct uva_error *error);

/* Gives the next setting, whose texts the configuration owns; `name` is NULL at
 * the end. Returns 0; EINVAL with an error that names file and line. */
UVA_MUST_CHECK int uva__config_next(struct uva__config *config,
                                    const char **name, const char **value,
                                    struct uva_error *error);

/* Puts file and line in front of the text of an error. Returns its code. */
int uva__config_blame(const struct uva__config *config,
                      struct uva_error *error);

/* Frees its content, and so the texts that it gave. */
void uva__config_fini(struct uva__config *config);

#endif
