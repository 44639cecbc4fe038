/* SPDX-License-Identifier: Apache-2.0 */
/* Joins rows of several arrays into one with new data: every Arrow type of host
 * memory.
 *
 * Rows are measured first, then given memory, then filled in; measuring reads
 * no values but offsets, views, ids of unions and ends of runs:
 *
 *     uva__concat_reset(concat);
 *     (uva__concat_measure(concat, array, from, count))*
 *     uva__concat_begin(concat);
 *     for each pass: (uva__concat_fill(concat, pass, array, from, count))*
 *                                                         the same rows
 *     uva__concat_finish(concat, &out);
 *
 * Most batches are columns of numbers without nulls. The facts about such a
 * batch are noted when it comes; the join is then one copy after the other, and
 * no array is looked at again:
 *
 *     (uva__concat_note(concat, batch, &part))*
 *     uva__concat_join(concat, parts, rows, &out);
 *
 * The rows of one array that a mask selects are copied in another way, which is
 * fast, too, where they are short runs:
 *
 *     uva__concat_measure_mask(concat, array, mask);
 *     uva__concat_begin(concat);
 *     uva__concat_fill_mask(concat, array, mask);
 *     uva__concat_finish(concat, &out);
 */
#ifndef UVA_ARROW_CONCAT_H
#define UVA_ARROW_CONCAT_H

#include "base/list.h"
#include "uvarrow/arrow_abi.h"
#include "uvarrow/base.h"

struct uva__concat;
struct uva__mask;

/* The facts noted about a batch. */
struct uva__concat_part {
    struct uva__link link;
    const char **values; /* borrows: room for a pointer to the first item of
                            each column */
    int64_t from;        /* the first row that is not joined so far */
    int64_t rows;        /* from there on */
};

/* Makes one for arrays of `schema`, which must stay valid. `allocator` is
 * copied and must stay usable until every result is released. 0 with `out`;
 * ENOMEM; ENOTSUP for an unknown format, EINVAL for a malformed schema. Thread:
 * any. */
UVA_MUST_CHECK int uva__concat_new(const struct uva_allocator *allocator,
                                   const struct ArrowSchema *schema,
                                   struct uva__concat **out);

/* Frees it; NULL is allowed. Results live on. Thread: any one at a time, as for
 * all functions below. */
void uva__concat_free(struct uva__concat *concat);

/* Forgets the measured batches. */
void uva__concat_reset(struct uva__concat *concat);

/* Adds `count` rows of `array` (borrows, until the reset) from row `from` on.
 * `array` fits the schema, as uva__layout_measure() checks it. 0; EOVERFLOW if
 * 32-bit offsets, run ends or indices of a dictionary could not count that far;
 * EINVAL if offsets, views, ids or run ends point out of range. After an error
 * only a reset may follow. */
UVA_MUST_CHECK int uva__concat_measure(struct uva__concat *concat,
                                       const struct ArrowArray *array,
                                       int64_t from, int64_t count);

/* Returns the size of the buffers that the rows measured so far need. */
int64_t uva__concat_bytes(const struct uva__concat *concat);

/* Takes memory for the measured batches. 0; ENOMEM. */
UVA_MUST_CHECK int uva__concat_begin(struct uva__concat *concat);

/* Returns how often the rows are filled in, by passes from 0 on. The columns of
 * a record batch are filled one after the other, as a copy is faster that goes
 * on where the one before it has ended. */
int64_t uva__concat_passes(const struct uva__concat *concat);

/* Copies rows, which are those measured, in that order. */
void uva__concat_fill(struct uva__concat *concat, int64_t pass,
                      const struct ArrowArray *array, int64_t from,
                      int64_t count);

/* Measures the rows of `array` that `mask` selects, at least one. Other rows
 * must not be measured with them. As uva__concat_measure(). */
UVA_MUST_CHECK int uva__concat_measure_mask(struct uva__concat *concat,
                                            const struct ArrowArray *array,
                                            const struct uva__mask *mask);

/* Copies the rows that were measured so, in a single pass. */
void uva__concat_fill_mask(struct uva__concat *concat,
                           const struct ArrowArray *array,
                           const struct uva__mask *mask);

/* How many columns parts have; 0: batches of the schema cannot be noted, as a
 * column is no row of numbers. */
size_t uva__concat_columns(const struct uva__concat *concat);

/* Notes a batch (borrows, until it is joined) that fits the schema, with all
 * its rows, if there are columns. False if it may have nulls: it has to be
 * measured, as all others that are joined to it. */
bool uva__concat_note(const struct uva__concat *concat,
                      const struct ArrowArray *batch,
                      struct uva__concat_part *part);

/* Whether so many rows of batches that were noted can be joined, and need at
 * most `max_bytes`; 0: no matter how many. */
bool uva__concat_holds(const struct uva__concat *concat, int64_t rows,
                       int64_t max_bytes);

/* Returns how many rows of batches that were noted need at most `max_bytes`. */
int64_t uva__concat_rows(const struct uva__concat *concat, int64_t max_bytes);

/* Joins the first rows of the `parts`, which have as many, and hold together.
 * 0 with `out`; ENOMEM. Forgets the measured batches. */
UVA_MUST_CHECK int uva__concat_join(struct uva__concat *concat,
                                    const struct uva__list *parts, int64_t rows,
                                    struct ArrowArray *out);

/* Gives the array. Its children may be moved out and outlive it. */
void uva__concat_finish(struct uva__concat *concat, struct ArrowArray *out);

#endif
