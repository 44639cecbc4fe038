/* SPDX-License-Identifier: Apache-2.0 */
/* A blocking source of one's own: the readings of an instrument, in tenths of a
 * degree, a line each. docs/tutorial.md begins with it. */
#ifndef EXAMPLES_THERMOMETER_H
#define EXAMPLES_THERMOMETER_H

#include <stdio.h>

#include "uvarrow/uvarrow.h"

/* Gives the stream of what is written to `pipe`, which it borrows: four
 * readings a batch. get_next waits until they are there. */
void thermometer_open(FILE *pipe, struct ArrowArrayStream *out);

#endif
