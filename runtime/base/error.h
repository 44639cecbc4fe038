/* SPDX-License-Identifier: Apache-2.0 */
/* Codes and texts of foreign errors, turned into a struct uva_error. Errors of
 * our own are filled in by uva_error_set() in base.h. */
#ifndef UVA_BASE_ERROR_H
#define UVA_BASE_ERROR_H

#include <stddef.h>
#include <string.h>

#include "uvarrow/base.h"

/* Clears an error before a callback that may fill it in. Clears only the first
 * byte of the text, as this runs for every batch. Thread: any. */
static inline void uva__error_begin(struct uva_error *error)
{
    memset(error, 0, offsetof(struct uva_error, message) + 1);
}

/* The positive form of a code that may be negative, as libuv's are; 0 stays 0.
 * Thread: any. */
int uva__error_positive(int code);

/* How many bytes of `text` (borrows; `size` bytes without a NUL) fit into
 * `room` bytes without cutting a UTF-8 character in two. Bytes that are not
 * UTF-8 count as characters of their own. Thread: any. */
size_t uva__error_utf8_prefix(const char *text, size_t size, size_t room);

/* Puts `name` and a colon in front of the text; neither may be NULL.
 * Thread: any. */
void uva__error_prefix(struct uva_error *error, const char *name);

/* Fills `error` (may be NULL) with a foreign error, and returns its code: the
 * positive form of a negative one, and EIO for 0. `text` is borrowed and cut if
 * it does not fit; NULL: the name of the code takes its place. Thread: any.
 * Clauses: ER-01, ER-06, ER-07. */
int uva__error_set_foreign(struct uva_error *error, int code, const char *text);

#endif
