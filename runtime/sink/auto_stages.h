/* SPDX-License-Identifier: Apache-2.0 */
/* Adds stages for consumers of ours that extract on the loop thread: so that
 * expensive extraction does not run there, and data that is not ready is not
 * read. */
#ifndef UVA_SINK_AUTO_STAGES_H
#define UVA_SINK_AUTO_STAGES_H

#include "uvarrow/stream.h"

/* Adds a ready stage, if the stream's batches are in pinned or managed memory,
 * and a parallel stage of one worker, if its extraction may be expensive. Both
 * get `window` (NULL: the default one). 0 if the stream may be started, or the
 * error. Thread: builder. */
UVA_MUST_CHECK int uva__auto_stages_add(struct uva_stream *stream,
                                        const struct uva_window *window,
                                        struct uva_error *error);

#endif
