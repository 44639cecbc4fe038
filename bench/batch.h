/* SPDX-License-Identifier: Apache-2.0 */
/* The data of the bench: prebuilt batches of one int64 column with 1024 rows.
 * There are 16 columns, which the batches use in turn. Each begins at another
 * row of the same values, so that a consumer can check that it has the right
 * batch. */
#ifndef BENCH_BATCH_H
#define BENCH_BATCH_H

#include <string.h>

#include "uvarrow/arrow_abi.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { BATCH_ROWS = 1024, BATCH_COLUMNS = 16 };

/* Writes batch `i` to `out`; does not allocate. */
void batch_fill(struct ArrowDeviceArray *out, int64_t i);

/* Gives `out` the schema of all batches. */
void batch_schema(struct ArrowSchema *out);

/* A blocking stream of batches, which never blocks. */
struct input {
    struct ArrowDeviceArrayStream abi; /* first */
    int64_t next;                      /* next batch to give */
    int64_t count;                     /* number of batches */
};

/* Prepares a stream of `count` batches. `input` must outlive abi.release(). */
void input_init(struct input *input, int64_t count);

/* The batches that a consumer has received. */
struct tally {
    int64_t seen;  /* batches */
    int64_t wrong; /* not 0: a batch was not the expected one */
};

/* Checks the next batch in order. */
static inline void tally_take(struct tally *tally,
                              const struct ArrowArray *array)
{
    tally->wrong |=
        array->children[0]->offset ^ (tally->seen & (BATCH_COLUMNS - 1));
    tally->wrong |= array->length ^ BATCH_ROWS;
    tally->seen++;
}

/* Aborts unless exactly `count` batches were received, in order. */
void tally_check(const struct tally *tally, int64_t count);

#ifdef __cplusplus
}
#endif

#endif
