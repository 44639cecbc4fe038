/* SPDX-License-Identifier: Apache-2.0 */
/* The data of the bench: prebuilt batches of one shape, which a run chooses
 * (`--shape`, see batch_use()). There are 16 of them, which are given again and
 * again: each begins at another row of the same values, so that a consumer can
 * check that it has the right batch. */
#ifndef BENCH_BATCH_H
#define BENCH_BATCH_H

#include <string.h>

#include "uvarrow/arrow_abi.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { BATCH_ROWS = 1024, BATCH_PLACES = 16 };

/* The batches that are given now. */
struct batch_shape {
    int64_t rows;
    int64_t columns;
};
extern struct batch_shape batch_now;

/* Gives batches of another shape from now on, by its name:
 *   number   one column of int64
 *   flights  19 columns as the demo's flights: 14 of numbers and 4 of texts
 * with nulls, and a timestamp mixed    64 columns: numbers, texts, doubles,
 * decimals, timestamps, booleans, dates and dictionaries of texts, in turn,
 * most of them with nulls numbers  1,000 columns of int64 Aborts for another
 * name. Thread: while no other one uses batches. */
void batch_use(const char *name);

/* As that, for `columns` columns of the kinds of `kinds` in turn, and `rows`
 * rows. A kind is a letter, as batch.c has them. */
void batch_use_kinds(const char *kinds, int64_t columns, int64_t rows);

/* As batch_use() for the same columns, and another number of rows. */
void batch_use_rows(int64_t rows);

/* Writes batch `i` to `out`; does not allocate. */
void batch_fill(struct ArrowDeviceArray *out, int64_t i);

/* Gives `out` the schema of all batches. */
void batch_schema(struct ArrowSchema *out);

/* The bytes of the values of a batch, and a copy of those of `batches` batches,
 * column after column, to `to`: the work of joining them, by hand. */
int64_t batch_bytes(void);
void batch_copy(char *to, int64_t batches);

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
        array->children[0]->offset ^ (tally->seen & (BATCH_PLACES - 1));
    tally->wrong |= array->length ^ batch_now.rows;
    tally->seen++;
}

/* Aborts unless exactly `count` batches were received, in order. */
void tally_check(const struct tally *tally, int64_t count);

#ifdef __cplusplus
}
#endif

#endif
