/* SPDX-License-Identifier: Apache-2.0 */
/* A library on top of uvarrow, which counts the rows of any stream. It writes
 * to the log of its user's runtime. */
#ifndef EXAMPLES_COUNTING_H
#define EXAMPLES_COUNTING_H

#include "uvarrow/uvarrow.h"

/* Starts `s`, and calls `fn` with the number of its rows after its end, unless
 * the user has dropped it. Returns 0, or a code, and `fn` is not called. */
int counting_start(struct uva_stream *s, void (*fn)(int64_t rows),
                   struct uva_error *error);

#endif
