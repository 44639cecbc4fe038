/* SPDX-License-Identifier: Apache-2.0 */
/* The value of a row as text, for arrays of every type in host memory: equal
 * rows have equal texts, wherever their bytes lie. And sound values for the
 * arrays of support/every_type.h. */
#ifndef UVA_SUPPORT_ROW_TEXT_H
#define UVA_SUPPORT_ROW_TEXT_H

#include <stddef.h>

#include "uvarrow/arrow_abi.h"

/* Overwrites what every_type() has left arbitrary and Arrow does not: views,
 * type ids, ends of runs, indices of dictionaries. Thread: any. */
void row_text_make_sound(const struct ArrowSchema *schema,
                         const struct ArrowArray *array);

/* Writes the value of a row. Aborts if it does not fit. Thread: any. */
void row_text_write(const struct ArrowSchema *schema,
                    const struct ArrowArray *array, int64_t row, char *text,
                    size_t room);

#endif
