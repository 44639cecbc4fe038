/* SPDX-License-Identifier: Apache-2.0 */
/* What the library does with errors that others hand it: turn their codes and
 * texts into a struct uva_error of ours. Filling one of our own is
 * uva_error_set() in base.h. */
#ifndef UVA_CORE_STATUS_H
#define UVA_CORE_STATUS_H

#include <stddef.h>
#include <string.h>

#include "uvarrow/base.h"

/* Readies an error for a callback that may fill it in: clears all but the rest
 * of the text, as this is done for every batch. Thread: any. */
static inline void uva__error_begin(struct uva_error *error)
{
    memset(error, 0, offsetof(struct uva_error, message) + 1);
}

/* The positive twin of a code that may be negative, as libuv's are; 0 stays.
 * Thread: any. */
int uva__status_positive(int code);

/* How many bytes of `text` (borrows; `size` of them are there, without a NUL
 * among them) may be kept if there is room for `room`, without cutting a UTF-8
 * character in two. Bytes that are no UTF-8 count as characters of their own.
 * Thread: any. */
size_t uva__status_clip(const char *text, size_t size, size_t room);

/* Copies `from` to `to`, which may be NULL. Reads `from->message` no further
 * than its end, even if its owner forgot the NUL. Thread: any. */
void uva__error_copy(const struct uva_error *from, struct uva_error *to);

/* Fills `error` (may be NULL) with what a foreign party reported, and returns
 * the code: unchanged (ER-01), but EIO for 0 (ER-06). `text` is borrowed and
 * cut where it does not fit; NULL: the code's name stands in (ER-07).
 * Thread: any. */
int uva__error_receive(struct uva_error *error, int code, const char *text);

#endif
