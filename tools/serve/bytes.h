/* SPDX-License-Identifier: Apache-2.0 */
/* A text in memory that grows, ended by a NUL. */
#ifndef UVA_SERVE_BYTES_H
#define UVA_SERVE_BYTES_H

#include <stddef.h>

#include "uvarrow/base.h"

/* Zeroes: empty. */
struct uva__bytes {
    char *data;  /* owns; NULL until something is added */
    size_t size; /* without the NUL */
    size_t room; /* with it */
};

/* Appends. Returns 0 or ENOMEM, then without a change. Thread: any. */
UVA_MUST_CHECK int uva__bytes_add(struct uva__bytes *bytes, const void *data,
                                  size_t size);

/* Drops the first `size` bytes. Thread: any. */
void uva__bytes_skip(struct uva__bytes *bytes, size_t size);

/* Returns the text; "" for an empty one. Thread: any. */
const char *uva__bytes_text(const struct uva__bytes *bytes);

/* Gives back the room that is not used, if that is possible. Thread: any. */
void uva__bytes_fit(struct uva__bytes *bytes);

/* Empties the text; memory of more than `keep` bytes is freed. Thread: any. */
void uva__bytes_clear(struct uva__bytes *bytes, size_t keep);

#endif
