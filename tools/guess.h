/* SPDX-License-Identifier: Apache-2.0 */
/* The driver of a database that is named without one. */
#ifndef UVA_TOOLS_GUESS_H
#define UVA_TOOLS_GUESS_H

#include "uvarrow/base.h"

/* Guesses the driver of `database`, a path, a URI or ":memory:": by the first
 * bytes of the file, or, if there is no file yet, by its ending. Returns 0 and
 * the name in `driver`, or NULL there for a URI with another scheme than
 * "file": the library knows what it names. Otherwise ENOENT, EISDIR, EINVAL
 * or the errno of a read, with an error that says what it is. Reads the disk.
 * Thread: any. */
UVA_MUST_CHECK int uva__guess_driver(const char *database, const char **driver,
                                     struct uva_error *error);

#endif
