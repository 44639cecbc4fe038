/* SPDX-License-Identifier: Apache-2.0 */
/* The layout of a table: columns that fit a width. */
#ifndef UVA_TOOLS_TABLE_TEXT_H
#define UVA_TOOLS_TABLE_TEXT_H

#include <stddef.h>

#include "cells.h"
#include "table.h"

/* Writes names, types and cells as a table. There are as many rows of cells as
 * are shown of `rows` rows in all: the first and the last ones. Gives `text`,
 * which the caller frees. 0; or ENOMEM. Thread: any. */
UVA_MUST_CHECK int uva__table_text(const struct ArrowSchema *schema,
                                   const struct uva__cells *cells, int64_t rows,
                                   const struct uva__table_style *style,
                                   char **text, size_t *size);

#endif
