/* SPDX-License-Identifier: Apache-2.0 */
/* Record batches as CSV: arrays in, growing text out. Which thread does so, and
 * where the text goes, is left to others.
 *
 * RFC 4180, with lines that end in a newline alone. A null is an empty field,
 * an empty string a quoted one (""). Binary data is hexadecimal; times are ISO
 * 8601, in UTC unless their zone is a fixed offset; lists, structs and maps
 * are JSON. Reals are the shortest text that reads back as the same value. */
#ifndef UVA_TOOLS_CSV_H
#define UVA_TOOLS_CSV_H

#include "field.h"
#include "text.h"

/* What is known of the columns. */
struct uva__csv {
    struct uva__field root; /* the struct whose children are the columns */
};

/* Fills `csv` from `schema`, which must outlive it. 0; otherwise as
 * uva__field_init(), and there is nothing to free. Thread: any. */
UVA_MUST_CHECK int uva__csv_init(struct uva__csv *csv,
                                 const struct ArrowSchema *schema,
                                 struct uva_error *error);

/* Frees what `csv` owns. Thread: any. */
void uva__csv_fini(struct uva__csv *csv);

/* Appends the line with the names; nothing if there are no columns. 0; ENOMEM.
 * Thread: any. */
UVA_MUST_CHECK int uva__csv_put_header(const struct uva__csv *csv,
                                       struct uva__text *out);

/* Appends a line for each row of `array`. 0; EINVAL for an array that is not as
 * the schema says; ENOMEM. Thread: any. */
UVA_MUST_CHECK int uva__csv_put_rows(const struct uva__csv *csv,
                                     const struct ArrowArray *array,
                                     struct uva__text *out,
                                     struct uva_error *error);

#endif
