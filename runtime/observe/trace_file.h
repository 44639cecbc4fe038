/* SPDX-License-Identifier: Apache-2.0 */
/* The file to which a process writes the trace events of its runtimes, because
 * its environment has UVA_TRACE=file.json.
 *
 * The environment belongs to the process, and so does the file: it is the one
 * object of the library that its runtimes share without having been given it.
 * It exists while at least one runtime uses it. */
#ifndef UVA_OBSERVE_TRACE_FILE_H
#define UVA_OBSERVE_TRACE_FILE_H

#include "uvarrow/trace.h"

/* Gives in `out` the trace that writes to the file at `path`: the file of the
 * process if it is open, whatever its path. Otherwise opens it; if an earlier
 * runtime of the process has written it, the events follow those. Returns 0, to
 * be followed by uva__trace_file_release(); EBUSY if another process writes to
 * it; EINVAL if it is no regular file; ENOMEM; an errno of the system. Thread:
 * any. */
UVA_MUST_CHECK int uva__trace_file_open(const char *path,
                                        struct uva_trace *out);

/* The runtime needs `trace` no more, and reports no event from now on. With the
 * last runtime, all events are written and the file is closed. Thread: any. */
void uva__trace_file_release(struct uva_trace *trace);

#endif
