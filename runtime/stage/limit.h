/* SPDX-License-Identifier: Apache-2.0 */
/* The limit of a stream in batches: a count of the producer, and no stage. */
#ifndef UVA_STAGE_LIMIT_H
#define UVA_STAGE_LIMIT_H

#include "uvarrow/stream.h"

/* Passes on the first `batches` batches, then ends the stream COMPLETE and
 * cancels upstream. Returns the first error of the stream so far, or 0; EINVAL
 * if negative. Thread: builder.
 * Clauses: AP-14. */
int uva__stream_limit(struct uva_stream *stream, int64_t batches);

#endif
