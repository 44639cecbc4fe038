/* SPDX-License-Identifier: Apache-2.0 */
/* Tables with one column, "tenths": temperatures in tenths of a degree. Your
 * Arrow library makes such structs for you; here they are made by hand. */
#ifndef EXAMPLES_READINGS_H
#define EXAMPLES_READINGS_H

#include "uvarrow/uvarrow.h"

/* Gives the schema. Returns 0 or ENOMEM. */
int readings_schema(struct ArrowSchema *out);

/* Gives a table of `rows` rows, and returns its column, to be filled in; NULL
 * when out of memory. */
int64_t *readings_new(int64_t rows, struct ArrowDeviceArray *out);

/* Returns the column of a table. */
const int64_t *readings_of(const struct ArrowDeviceArray *table);

#endif
