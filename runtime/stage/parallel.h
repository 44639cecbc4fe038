/* SPDX-License-Identifier: Apache-2.0 */
/* The parallel stage that other stages put in front of themselves: they extract
 * on the loop thread, where nothing may take long. */
#ifndef UVA_STAGE_PARALLEL_H
#define UVA_STAGE_PARALLEL_H

#include "uvarrow/stages.h"

/* Has workers extract the batches of `stream`, if that may be expensive.
 * `window` is complete: see stream/window.h; NULL: it follows the requests.
 * Returns the first error of the stream so far, or 0. Thread: builder. */
UVA_MUST_CHECK int uva__parallel_ensure(struct uva_stream *stream,
                                        const struct uva_window *window);

#endif
