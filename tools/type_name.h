/* SPDX-License-Identifier: Apache-2.0 */
/* The type of a column, in words. */
#ifndef UVA_TOOLS_TYPE_NAME_H
#define UVA_TOOLS_TYPE_NAME_H

#include <stdbool.h>
#include <stddef.h>

#include "uvarrow/arrow.h"

/* Writes the type of a column: "int64", "timestamp[us, UTC]", "list<text>"; of
 * an extension type its name, such as "uuid"; of an unknown format the format.
 * Cut to `size`. Thread: any. */
void uva__type_name(const struct ArrowSchema *schema, char *out, size_t size);

/* Returns whether values of the column are numbers, which stand at the right.
 * Thread: any. */
bool uva__type_is_number(const struct ArrowSchema *schema);

#endif
