/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps extraction that may be dear off the loop thread, and data that is not
 * ready from being read, for consumers of ours that extract there. */
#ifndef UVA_ADAPTERS_SAFETY_H
#define UVA_ADAPTERS_SAFETY_H

#include "uvarrow/stream.h"

/* Adds to a stream that may be started a ready stage, if its batches are in
 * pinned or managed memory, and a parallel stage of one worker, if its last
 * hop's extraction may be dear. 0 or the error. Thread: builder. */
UVA_MUST_CHECK int uva__safety_ensure(struct uva_stream *stream,
                                      struct uva_error *error);

#endif
