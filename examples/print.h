/* SPDX-License-Identifier: Apache-2.0 */
/* The last lines of a program that prints one stream, on libuv's default loop:
 * start, wait, report. */
#ifndef EXAMPLES_PRINT_H
#define EXAMPLES_PRINT_H

#include "uvarrow/io.h"
#include "uvarrow/uvarrow.h"

/* Writes `s` to standard output, closes `rt`, and prints the error, if there is
 * one. Takes both. Returns the exit code of the program. */
int print_to_end(struct uva_runtime *rt, struct uva_stream *s,
                 enum uva_format format);

#endif
