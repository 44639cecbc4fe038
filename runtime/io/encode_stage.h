/* SPDX-License-Identifier: Apache-2.0 */
/* A stage that encodes: what follows it receives parts of the output, each
 * carried by an array without rows. */
#ifndef UVA_IO_ENCODE_STAGE_H
#define UVA_IO_ENCODE_STAGE_H

#include "uvarrow/io.h"
#include "uvarrow/stream.h"

/* Adds a stage to `stream` that encodes its batches as `options` (copied) has
 * them. Text is encoded by compute workers, one batch each; compression runs on
 * one of them, and other work on the loop thread. 0, or the first error of the
 * stream. Thread: builder. */
UVA_MUST_CHECK int uva__encode_stage_add(struct uva_stream *stream,
                                         const struct uva_write *options);

/* Gives an array that carries what comes before the first batch, if the stage
 * does not emit that itself: text. It reads as released if nothing comes. 0 or
 * ENOMEM. Thread: any. */
UVA_MUST_CHECK int uva__encode_stage_first(const struct ArrowSchema *schema,
                                           struct ArrowDeviceArray *out);

/* Returns the part that an array of the stage carries, borrowed from it.
 * Thread: any. */
const struct uva_encoder_part *
uva__encode_stage_part(const struct ArrowDeviceArray *array);

/* Returns whether such an array carries a batch: not what comes first or last.
 * Thread: any. */
bool uva__encode_stage_is_batch(const struct ArrowDeviceArray *array);

#endif
