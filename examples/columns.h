/* SPDX-License-Identifier: Apache-2.0 */
/* A minimal producer of tables: columns of int64 or text without nulls. The
 * layout of their buffers is described in
 * https://arrow.apache.org/docs/format/Columnar.html */
#ifndef EXAMPLES_COLUMNS_H
#define EXAMPLES_COLUMNS_H

#include "uvarrow/uvarrow.h"

/* Characters. Borrows. */
struct text {
    const char *data; /* not terminated by NUL */
    size_t size;      /* in bytes */
};

/* Gives a column of `rows` int64, and returns the memory for them; NULL when
 * out of memory, and the column is a released one. */
int64_t *column_numbers(int64_t rows, struct ArrowArray *out);

/* Gives a column of texts (copied). Returns 0; ENOMEM, and the column is a
 * released one. */
int column_texts(const struct text *texts, int64_t rows,
                 struct ArrowArray *out);

/* Gives a batch of `count` columns, which it takes, also on failure. Returns 0;
 * ENOMEM, also if a column is released, and so is the batch. */
int columns_join(struct ArrowArray *columns, int64_t count, int64_t rows,
                 struct ArrowDeviceArray *out);

/* Returns whether a value is null. */
bool columns_is_null(const struct ArrowArray *batch, int column, int64_t row);

/* Returns a number that is not null. */
int64_t columns_number(const struct ArrowArray *batch, int column, int64_t row);

/* Returns a text that is not null, borrowed from the batch. */
struct text columns_text(const struct ArrowArray *batch, int column,
                         int64_t row);

/* The release function of schemas in static memory. */
void columns_keep_schema(struct ArrowSchema *schema);

#endif
