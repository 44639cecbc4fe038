/* SPDX-License-Identifier: Apache-2.0 */
/* Columns of simple types as plain as they are in most batches. */
#ifndef UVA_ARROW_PLAN_PLAIN_H
#define UVA_ARROW_PLAN_PLAIN_H

#include <stdbool.h>
#include <stdint.h>

#include "uvarrow/arrow_abi.h"

/* Adds up runs of columns of `rows` items each, from 1 to 31 bits, but for the
 * items of fixed width. False if not all of them are plain. A column of numbers
 * costs about 30 instructions, of texts 45. Thread: any. */
bool uva__plan_plain_runs(const uint8_t *run, const uint8_t *end,
                          struct ArrowArray *const *column, int64_t rows,
                          int64_t *size);

#endif
