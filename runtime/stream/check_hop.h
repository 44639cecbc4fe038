/* SPDX-License-Identifier: Apache-2.0 */
/* The protocol checker on the hops of our own streams, where the user switched
 * it on: UVA_CHECK=1 in the environment, or uva_runtime_options.check. Broken
 * rules go to the runtime's log; without one, to standard error. */
#ifndef UVA_STREAM_CHECK_HOP_H
#define UVA_STREAM_CHECK_HOP_H

#include "observe/label.h"
#include "uvarrow/arrow_abi.h"

/* Makes the quarantine of the runtime's checks, unless it exists or the checker
 * is off. 0 or ENOMEM. Thread: any. */
UVA_MUST_CHECK int uva__check_hop_ensure(struct uva__rt *rt);

/* Gives the handler that a producer shall drive in place of `handler` (borrows,
 * until its release returns): a check in front of it, or `handler` itself if
 * the checker is off. Without memory it goes unchecked, which is logged.
 * Reports are about `name`, a part of the stream with that label. A foreign
 * producer may have the layout that the document prints; a check shows the
 * released one. Thread: any, after uva__check_hop_ensure() has succeeded. */
struct ArrowAsyncDeviceStreamHandler *
uva__check_hop_handler(struct uva__label *label, const char *name,
                       struct ArrowAsyncDeviceStreamHandler *handler,
                       bool printed_layout);

/* Gives the task (borrows) that a check has replaced by its own; NULL for a
 * task that is not a check's. Thread: the holder. */
const struct ArrowAsyncTask *
uva__check_hop_unwrap(const struct ArrowAsyncTask *task);

/* Puts a check around a blocking stream, in place. Thread: any. */
void uva__check_hop_stream(struct uva__label *label, const char *name,
                           struct ArrowDeviceArrayStream *stream);

#endif
