/* SPDX-License-Identifier: Apache-2.0 */
/* A stage that encodes: what follows it receives parts of the output, each
 * carried by an array without rows. */
#ifndef UVA_IO_PARCEL_H
#define UVA_IO_PARCEL_H

#include "uvarrow/io.h"
#include "uvarrow/stream.h"

/* Adds a stage to `stream` that encodes its batches as `options` (copied) has
 * them. Compression runs on a compute worker, other work on the loop thread. 0,
 * or the first error of the stream. Thread: builder. */
UVA_MUST_CHECK int uva__parcel_stage(struct uva_stream *stream,
                                     const struct uva_write *options);

/* Returns the part that an array of the stage carries, borrowed from it.
 * Thread: any. */
const struct uva_encoder_part *
uva__parcel_part(const struct ArrowDeviceArray *array);

#endif
