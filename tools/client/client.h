/* SPDX-License-Identifier: Apache-2.0 */
/* A client of HTTP: rows of Arrow IPC that a server sends, as a stream. */
#ifndef UVA_CLIENT_H
#define UVA_CLIENT_H

#include "options.h"
#include "uvarrow/stream.h"

/* Makes a stream of the answer of the server at the URL `options->from`, to the
 * query of the options if there is one. The server is held up while the stream
 * is. `error` must stay valid until the loop has no work: before the stream
 * fails because of the connection or of the answer, it is set to the reason,
 * unless it has one; then it counts, not the stream's. An answer that is cut is
 * a failure. Returns the stream, never NULL, with one reference for the caller.
 * Thread: loop. */
UVA_MUST_CHECK struct uva_stream *
uva__client_stream(struct uva_runtime *runtime,
                   const struct uva__options *options, struct uva_error *error);

#endif
