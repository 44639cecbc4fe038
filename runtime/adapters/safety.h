/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps extraction that may be dear off the loop thread, for consumers of ours
 * that extract there. */
#ifndef UVA_ADAPTERS_SAFETY_H
#define UVA_ADAPTERS_SAFETY_H

#include "uvarrow/stream.h"

/* Adds a parallel stage of one worker to a stream that may be started, if its
 * last hop's extraction may be dear. 0 or the error. Thread: builder. */
UVA_MUST_CHECK int uva__safety_ensure(struct uva_stream *stream,
                                      struct uva_error *error);

#endif
