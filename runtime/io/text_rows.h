/* SPDX-License-Identifier: Apache-2.0 */
/* The rows of a batch, as lines of CSV or of JSON. */
#ifndef UVA_IO_TEXT_ROWS_H
#define UVA_IO_TEXT_ROWS_H

#include "io/text.h"
#include "io/text_field.h"

/* Appends the rows of `batch`, which was checked against `root`, a struct of
 * columns: as objects if `style` is NULL, otherwise as CSV. Without memory,
 * `out` has failed. Thread: any. */
void uva__text_rows_put(const struct uva__text_field *root,
                        const struct ArrowArray *batch,
                        const struct uva__csv_style *style,
                        struct uva__text *out);

#endif
