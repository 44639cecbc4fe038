/* SPDX-License-Identifier: Apache-2.0 */
/* A file with Arrow IPC in place of a query. */
#ifndef UVA_TOOLS_FROM_H
#define UVA_TOOLS_FROM_H

#include "uvarrow/stream.h"

/* Makes a stream of the file at `path`; "-": standard input. Returns the
 * stream, never NULL; its start reports what failed. Thread: loop. */
UVA_MUST_CHECK struct uva_stream *uva__from_stream(struct uva_runtime *runtime,
                                                   const char *path);

#endif
