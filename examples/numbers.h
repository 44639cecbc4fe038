/* SPDX-License-Identifier: Apache-2.0 */
/* A minimal producer of Arrow data: batches of one column of doubles. */
#ifndef EXAMPLES_NUMBERS_H
#define EXAMPLES_NUMBERS_H

#include "uvarrow/uvarrow.h"

/* Gives the schema. Copies `name`. Returns 0 or ENOMEM.
 * Thread: any. */
int numbers_schema(const char *name, struct ArrowSchema *out);

/* Gives a batch with room for `length` doubles, and returns the memory for
 * them; NULL when out of memory.
 * Thread: any. */
double *numbers_new(int64_t length, struct ArrowDeviceArray *out);

/* Shortens a batch that is not full. */
void numbers_cut(struct ArrowDeviceArray *numbers, int64_t length);

/* Returns the doubles of a batch. */
const double *numbers_of(const struct ArrowDeviceArray *numbers);

#endif
