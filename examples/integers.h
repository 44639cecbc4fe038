/* SPDX-License-Identifier: Apache-2.0 */
/* Batches of int64 without nulls: a minimal producer, and a consumer that adds
 * up. */
#ifndef EXAMPLES_INTEGERS_H
#define EXAMPLES_INTEGERS_H

#include "uvarrow/uvarrow.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Gives a batch with room for `length` numbers, and returns the memory for
 * them; NULL when out of memory. */
int64_t *integers_new(int64_t length, struct ArrowDeviceArray *out);

/* Returns the numbers of a batch. */
const int64_t *integers_of(const struct ArrowDeviceArray *batch);

/* Gives the schema, and returns 0: a function for the sources of streams, which
 * uses neither `ctx` nor `error`. */
int integers_schema(void *ctx, struct ArrowSchema *out,
                    struct uva_error *error);

/* Returns a stream of the numbers from 0 on, to be released. */
struct uva_stream *integers_stream(struct uva_runtime *rt, size_t batches,
                                   int64_t rows);

/* Numbers added up. */
struct integers_sum {
    int64_t batches, rows, sum;
    int code; /* 0, or why the stream has failed */
};

/* Adds up the numbers of `s`, which it takes. When the stream has ended, the
 * result is in `sum`, and the text of an error was printed. */
void integers_add_up(struct uva_stream *s, struct integers_sum *sum);

#ifdef __cplusplus
}
#endif

#endif
