/* SPDX-License-Identifier: Apache-2.0 */
/* Texts that are JSON already, such as the values of a column of databases. */
#ifndef UVA_IO_TEXT_JSON_H
#define UVA_IO_TEXT_JSON_H

#include <stdbool.h>
#include <stddef.h>

#include "io/text.h"

/* Whether `size` bytes are one JSON value, in UTF-8, of at most 512 levels.
 * `data` may be NULL if it is empty. Thread: any. */
bool uva__text_json_check(const char *data, size_t size);

/* Appends JSON that was checked, in one line. Thread: any. */
void uva__text_json_put(struct uva__text *text, const char *data, size_t size);

#endif
