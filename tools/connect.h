/* SPDX-License-Identifier: Apache-2.0 */
/* The query of a command line, as a stream. */
#ifndef UVA_TOOLS_CONNECT_H
#define UVA_TOOLS_CONNECT_H

#include "options.h"
#include "uvarrow/stream.h"

/* Creates a stream of the query in `options`, which has failed if that is not
 * possible. Returns it, never NULL, with one reference for the caller.
 * Thread: any. */
UVA_MUST_CHECK struct uva_stream *
uva__connect(struct uva_runtime *runtime, const struct uva__options *options);

#endif
