/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of texts, as a batch of Arrow. */
#ifndef UVA_TOOLS_TEXT_ROWS_H
#define UVA_TOOLS_TEXT_ROWS_H

#include <stddef.h>

#include "uvarrow/arrow.h"
#include "uvarrow/base.h"

enum { UVA__TEXT_COLUMNS = 4 };

/* Some rows. Zeroes, and the number of columns: no rows. */
struct uva__text_rows {
    int columns;  /* at most UVA__TEXT_COLUMNS */
    char **texts; /* owns, and each; NULL in it: a null */
    size_t count; /* of texts */
    int code;     /* ENOMEM: one was lost */
};

/* Adds a text, of `size` bytes, to the last row, or begins another row; NULL: a
 * null. Thread: any. */
void uva__text_rows_add(struct uva__text_rows *rows, const char *text,
                        size_t size);

/* Gives the schema of such rows: a column of texts for each of `names`. 0; or
 * as uva_schema_copy(). Thread: any. */
UVA_MUST_CHECK int uva__text_rows_schema(const char *const *names, int columns,
                                         struct ArrowSchema *out);

/* Moves all rows into a batch. 0 and `out`; or ENOMEM, also for a text that was
 * lost. Thread: any. */
UVA_MUST_CHECK int uva__text_rows_take(struct uva__text_rows *rows,
                                       struct ArrowDeviceArray *out);

/* Frees them. Thread: any. */
void uva__text_rows_fini(struct uva__text_rows *rows);

#endif
