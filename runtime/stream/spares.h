/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that every stream needs and that no late call reaches, kept for the
 * next stream: a few blocks of each kind, attached to the rt. An allocator of
 * the user's gets each block back at once. What late calls may reach is in
 * stream/slots. */
#ifndef UVA_STREAM_SPARES_H
#define UVA_STREAM_SPARES_H

#include "loop/rt.h"

enum uva__spare {
    UVA__SPARE_LABEL, /* a label with its stream */
    UVA__SPARE_READER,
    UVA__SPARES
};

/* Gives `size` bytes, of which the first `cleared` ones are cleared, perhaps
 * those of an object that is gone; NULL without memory. Thread: any. */
void *uva__spares_take(struct uva__rt *rt, enum uva__spare kind, size_t size,
                       size_t cleared);

/* Takes back a block of `size` bytes, aligned for a pointer: frees it, or keeps
 * it. Thread: any. */
void uva__spares_put(struct uva__rt *rt, enum uva__spare kind, void *block,
                     size_t size);

#endif
