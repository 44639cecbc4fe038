/* SPDX-License-Identifier: Apache-2.0 */
/* A source that passes on the batches of another stream with metadata of its
 * producer, and a look at that metadata. */
#ifndef UVA_SUPPORT_METADATA_SOURCE_H
#define UVA_SUPPORT_METADATA_SOURCE_H

#include "support/recording_consumer.h"

/* Makes a stream of such a source. Takes `stream`. */
struct uva_stream *metadata_source(struct uva_runtime *runtime,
                                   struct uva_stream *stream);

/* An on_batch that checks the metadata of the stream of the batch. */
void metadata_source_seen(struct recording_consumer *c,
                          struct uva_batch *batch);

#endif
