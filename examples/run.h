/* SPDX-License-Identifier: Apache-2.0 */
/* The last lines of a program that runs one stream on a thread of the library:
 * start, wait, report. */
#ifndef EXAMPLES_RUN_H
#define EXAMPLES_RUN_H

#include "uvarrow/uvarrow.h"

/* Runs `s` to its end, closes `rt`, and prints the error, if there is one.
 * Takes both. Returns the exit code of the program. */
int run_to_end(struct uva_runtime *rt, struct uva_stream *s,
               const struct uva_consumer *consumer);

#endif
