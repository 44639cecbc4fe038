/* SPDX-License-Identifier: Apache-2.0 */
/* Converts record batches to CSV: arrays in, growing text out. The caller
 * chooses the thread and the destination of the text.
 *
 * The format is RFC 4180, with lines that end in a newline alone. A null is an
 * empty field, an empty string a quoted one (""). Binary data is hexadecimal;
 * times are ISO 8601, in UTC unless their zone is a fixed offset; lists,
 * structs and maps are JSON. A floating-point number is the shortest text that
 * reads back as the same value. */
#ifndef UVA_TOOLS_CSV_H
#define UVA_TOOLS_CSV_H

#include "field.h"
#include "text.h"

/* Describes the columns. */
struct uva__csv {
    struct uva__field root; /* the struct with the columns as its children */
};

/* Fills `csv` from `schema`, which must outlive it. Returns 0; otherwise as
 * uva__field_init(), and there is nothing to free. Thread: any. */
UVA_MUST_CHECK int uva__csv_init(struct uva__csv *csv,
                                 const struct ArrowSchema *schema,
                                 struct uva_error *error);

/* Frees what `csv` owns. Thread: any. */
void uva__csv_fini(struct uva__csv *csv);

/* Appends the line with the column names; appends nothing if there are no
 * columns. Returns 0 or ENOMEM. Thread: any. */
UVA_MUST_CHECK int uva__csv_put_header(const struct uva__csv *csv,
                                       struct uva__text *out);

/* Appends a line for each row of `array`. Returns 0; EINVAL if the array does
 * not fit the schema; ENOMEM. Thread: any. */
UVA_MUST_CHECK int uva__csv_put_rows(const struct uva__csv *csv,
                                     const struct ArrowArray *array,
                                     struct uva__text *out,
                                     struct uva_error *error);

#endif
