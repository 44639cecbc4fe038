/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that every stream needs and that no late call reaches, kept for the
 * next stream: a few blocks of each kind, attached to the rt. An allocator of
 * the user's gets each block back at once. What late calls may reach is in
 * stream/slots. */
#ifndef UVA_STREAM_SPARES_H
#define UVA_STREAM_SPARES_H

#include "loop/rt.h"

/* How many blocks of one kind are kept at most. AddressSanitizer, which looks
 * for uses of freed memory, is to see all of them freed. */
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define UVA__SPARES_KEPT 0
#endif
#elif defined(__SANITIZE_ADDRESS__)
#define UVA__SPARES_KEPT 0
#endif
#ifndef UVA__SPARES_KEPT
#define UVA__SPARES_KEPT 16
#endif

/* No larger block is kept: that of a reader with a long window. */
#define UVA__SPARES_MAX_BYTES 16384

enum uva__spare {
    UVA__SPARE_LABEL, /* a label with its stream */
    UVA__SPARE_READER,
    UVA__SPARES
};

/* Gives a block of `size` bytes. The first `cleared` ones are zero, the rest
 * may have any value. NULL without memory. Thread: any. */
void *uva__spares_take(struct uva__rt *rt, enum uva__spare kind, size_t size,
                       size_t cleared);

/* Takes back a block of `size` bytes, aligned for a pointer: keeps it, or frees
 * it. Kept blocks of the kind that have another size are freed. Thread: any. */
void uva__spares_put(struct uva__rt *rt, enum uva__spare kind, void *block,
                     size_t size);

#endif
