/* SPDX-License-Identifier: Apache-2.0 */
/* An error of a stream, stored until it is reported: code, text and metadata.
 * All zeroes is no error. Without memory for the text only the code is stored.
 */
#ifndef UVA_STREAM_FAILURE_H
#define UVA_STREAM_FAILURE_H

#include <stdarg.h>

#include "arrow/metadata.h"
#include "uvarrow/base.h"

struct uva__failure {
    int code;                           /* a positive errno, or 0 */
    struct uva__failure_detail *detail; /* owns; NULL: only the code is known */
};

struct uva__failure_detail {
    struct uva_error error;        /* with an empty text if it is not known */
    struct uva__metadata metadata; /* owns; on_error's */
};

/* Keeps the first failure: copies `error` (NULL: only `code`) and `metadata`
 * (NULL: the vendor's part of the error, if any; a malformed block is left
 * out). No effect on a failure that is set. Thread: any, one at a time. */
void uva__failure_set(struct uva__failure *failure,
                      const struct uva_allocator *allocator, int code,
                      const struct uva_error *error, const char *metadata);

/* Keeps the first failure, with a formatted text. */
void uva__failure_format(struct uva__failure *failure,
                         const struct uva_allocator *allocator, int code,
                         const char *format, ...) UVA_PRINTF(4, 5);
void uva__failure_format_args(struct uva__failure *failure,
                              const struct uva_allocator *allocator, int code,
                              const char *format, va_list args)
    UVA_PRINTF(4, 0);

/* The same with a copy of `from`, but for its metadata. */
void uva__failure_copy(const struct uva__failure *from, struct uva__failure *to,
                       const struct uva_allocator *allocator);

/* Moves; `from` is then cleared. The content of `to` is freed. */
void uva__failure_move(struct uva__failure *from, struct uva__failure *to,
                       const struct uva_allocator *allocator);

/* Puts a name in front of the text; NULL, or without a failure or memory: no
 * effect. */
void uva__failure_name(struct uva__failure *failure,
                       const struct uva_allocator *allocator, const char *name);

/* The text, never NULL. Borrows. */
const char *uva__failure_message(const struct uva__failure *failure);

/* The error, as uva__failure_set() takes it; NULL: only the code is known.
 * Borrows. */
const struct uva_error *uva__failure_error(const struct uva__failure *failure);

/* Completes an error made from the arguments of on_error() for this failure:
 * they carry a vendor only as metadata, which has fewer names. */
void uva__failure_add_vendor(const struct uva__failure *failure,
                             struct uva_error *error);

/* Fills in the error of a producer that releases its handler before an end or
 * an error. Returns its code. Clauses: ER-13. */
int uva__failure_end_silently(struct uva_error *error);

/* Whether a failure is that error. It may have come through on_error, which
 * carries a code and a text: a producer may report the same code for another
 * reason, so the text decides. */
bool uva__failure_is_silent_end(const struct uva__failure *failure);

/* The metadata, or NULL. Borrows. */
const char *uva__failure_metadata(const struct uva__failure *failure);

/* Gives a whole error; no effect if `error` is NULL. Returns the code. */
int uva__failure_get(const struct uva__failure *failure,
                     struct uva_error *error);

/* Frees its memory and clears it. */
void uva__failure_fini(struct uva__failure *failure,
                       const struct uva_allocator *allocator);

#endif
