/* SPDX-License-Identifier: Apache-2.0 */
/* Sources that count their users: their wake-up runs the producer, and the last
 * release frees the object. */
#ifndef UVA_STREAM_SOURCE_KIND_H
#define UVA_STREAM_SOURCE_KIND_H

#include "stream/source.h"

/* Sets up the common part of an object of `size` bytes, or 0 for memory that
 * the allocator of `rt` has not given. The reference is the producer's.
 * Thread: any. */
void uva__source_init_counted(struct uva__source *source,
                              const struct uva__source_ops *ops,
                              struct uva__rt *rt, size_t size);

/* Makes such an object, cleared but for the common part, with which it begins.
 * NULL without memory. Thread: any. */
struct uva__source *uva__source_new(const struct uva__source_ops *ops,
                                    struct uva__rt *rt, size_t size);

#endif
