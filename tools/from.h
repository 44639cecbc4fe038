/* SPDX-License-Identifier: Apache-2.0 */
/* Arrow IPC in place of a query of a driver: a file, or a server's answer. */
#ifndef UVA_TOOLS_FROM_H
#define UVA_TOOLS_FROM_H

#include "options.h"
#include "uvarrow/stream.h"

/* Makes a stream of the inputs `options->froms`, one after the other, or
 * merged: paths, "-" for standard input, or URLs. For a URL, `error` may be set
 * later, too: see uva__client_stream(). Returns the stream, never NULL; its
 * start reports a failure. Thread: loop. */
UVA_MUST_CHECK struct uva_stream *
uva__from_stream(struct uva_runtime *runtime,
                 const struct uva__options *options, struct uva_error *error);

#endif
