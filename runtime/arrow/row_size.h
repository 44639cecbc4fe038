/* SPDX-License-Identifier: Apache-2.0 */
/* How many bytes the rows of an array take: the part of its buffers that is
 * theirs. The size of its memory is measured by layout.h. */
#ifndef UVA_ARROW_ROW_SIZE_H
#define UVA_ARROW_ROW_SIZE_H

#include <stdbool.h>
#include <stdint.h>

#include "uvarrow/arrow_abi.h"

/* Returns the size of `count` rows of `array` from row `from` on. It was found
 * to fit `schema`, in all formats, and has these rows. So defined that arrays
 * which share buffers, and have one row after the other, add up to the array
 * that has all these rows: data that several rows share counts for the first of
 * them. With `on_host`, offsets, views, lengths, type ids and ends of runs are
 * read, and may have any values. Thread: any. */
int64_t uva__row_size_measure(const struct ArrowSchema *schema,
                              const struct ArrowArray *array, int64_t from,
                              int64_t count, bool on_host);

#endif
