/* SPDX-License-Identifier: Apache-2.0 */
/* The least that a producer of Arrow data has to do: batches of one column of
 * doubles. */
#ifndef EXAMPLES_NUMBERS_H
#define EXAMPLES_NUMBERS_H

#include "uvarrow/uvarrow.h"

/* Gives the schema. Copies `name`. 0; ENOMEM. Thread: any. */
int numbers_schema(const char *name, struct ArrowSchema *out);

/* Gives a batch with room for `length` doubles, and returns where to write
 * them; NULL when out of memory. Thread: any. */
double *numbers_new(int64_t length, struct ArrowDeviceArray *out);

/* Makes a batch that is not full shorter. */
void numbers_cut(struct ArrowDeviceArray *numbers, int64_t length);

/* Where the doubles of a batch are. */
const double *numbers_of(const struct ArrowDeviceArray *numbers);

#endif
