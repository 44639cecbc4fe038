/* SPDX-License-Identifier: Apache-2.0 */
/* The protocol checker on the hops of our own streams, for those who ask for
 * it: UVA_CHECK=1 in the environment, or uva_runtime_options.check. What is
 * found goes to the runtime's log; without one, to standard error. */
#ifndef UVA_STREAM_CHECKED_H
#define UVA_STREAM_CHECKED_H

#include "uv/hub.h"
#include "uvarrow/arrow_abi.h"

/* Gives what is to be handed to a producer in the stead of `handler` (borrows,
 * until its release returns): a check in front of it, or itself where nobody
 * asked for one. Without memory it goes unchecked, which the log tells. `name`
 * is whom reports are about. Thread: any. */
struct ArrowAsyncDeviceStreamHandler *
uva__checked_hop(struct uva__hub *hub, const char *name,
                 struct ArrowAsyncDeviceStreamHandler *handler);

/* The same around a blocking stream, in place. Thread: any. */
void uva__checked_stream(struct uva__hub *hub, const char *name,
                         struct ArrowDeviceArrayStream *stream);

#endif
