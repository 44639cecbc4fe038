/* SPDX-License-Identifier: Apache-2.0 */
/* Rows for a person to look at: the first and the last ones of a result, as a
 * table that fits a terminal. Only batches with such rows are kept. */
#ifndef UVA_TOOLS_TABLE_H
#define UVA_TOOLS_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "uvarrow/arrow.h"
#include "uvarrow/base.h"

/* Rows that are shown of a longer result, at its head and at its tail. */
enum { UVA__TABLE_ROWS = 20 };

/* How a table looks. */
struct uva__table_style {
    int columns;     /* of the terminal; 0: as wide as it is */
    bool has_colors; /* escape sequences */
    bool is_ascii;   /* lines of | and -, for a terminal without Unicode */
    bool as_stored;  /* as in struct uva_encode */
};

/* A batch that is kept. */
struct uva__table_batch {
    struct ArrowDeviceArray rows; /* owns */
    int64_t first;                /* number of its first row */
};

/* Zeroes: no rows, and no schema. */
struct uva__table {
    struct ArrowSchema schema; /* owns; released: none has come */
    struct uva__table_batch kept[2 * UVA__TABLE_ROWS + 2];
    size_t count;
    int64_t rows; /* in all */
};

/* Copies the schema of the rows. 0; or an errno. Thread: any. */
UVA_MUST_CHECK int uva__table_begin(struct uva__table *table,
                                    const struct ArrowSchema *schema);

/* Adds rows of the schema, which it takes. Thread: any. */
void uva__table_add(struct uva__table *table, struct ArrowDeviceArray *rows);

/* Writes the table as text, which the caller frees, of `size` bytes. Its rows
 * are released. 0; or an errno with an error, and no text. Thread: any. */
UVA_MUST_CHECK int uva__table_print(struct uva__table *table,
                                    const struct uva__table_style *style,
                                    char **text, size_t *size,
                                    struct uva_error *error);

/* Releases the rest. Thread: any. */
void uva__table_fini(struct uva__table *table);

#endif
