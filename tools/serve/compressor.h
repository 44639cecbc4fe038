/* SPDX-License-Identifier: Apache-2.0 */
/* Compresses a text that arrives in pieces, by zlib or zstd. */
#ifndef UVA_SERVE_COMPRESSOR_H
#define UVA_SERVE_COMPRESSOR_H

#include <stdbool.h>
#include <stddef.h>

#include "bytes.h"
#include "coding.h"

struct uva__compressor;

/* Makes one for a coding that uva__coding_accepted() gives, and that is not
 * UVA__CODING_NONE. NULL: there is no memory. Thread: any, one at a time, as
 * all here. */
struct uva__compressor *uva__compressor_new(enum uva__coding coding);

/* Compresses `size` bytes, and appends what results so far. Returns 0 or
 * ENOMEM, as the next one; after that it can only be freed. */
UVA_MUST_CHECK int uva__compressor_add(struct uva__compressor *compressor,
                                       const char *data, size_t size,
                                       struct uva__bytes *out);

/* Appends the rest, so that a reader can decode all bytes so far. `is_last`:
 * ends the text. */
UVA_MUST_CHECK int uva__compressor_flush(struct uva__compressor *compressor,
                                         bool is_last, struct uva__bytes *out);

/* NULL is allowed. */
void uva__compressor_free(struct uva__compressor *compressor);

#endif
