/* SPDX-License-Identifier: Apache-2.0 */
/* From a runtime to the devices of its workers. How one waits for an event is
 * devices/watch.h. */
#ifndef UVA_STREAM_FENCE_H
#define UVA_STREAM_FENCE_H

#include "devices/watch.h"
#include "uv/hub.h"

/* Gives the devices of the runtime's workers, made at first need, with a count
 * for the caller. 0; ENOMEM; ESHUTDOWN once the workers were let go of; EPERM
 * in a forked child. Thread: any. */
UVA_MUST_CHECK int uva__fence_devices(struct uva__hub *hub,
                                      struct uva__devices **out);

/* The same, but the count is a use of the service: it goes with
 * uva__devices_quit(). Thread: any. */
UVA_MUST_CHECK int uva__fence_use(struct uva__hub *hub,
                                  struct uva__devices **out);

/* The same as the first, and makes sure that the service runs: also EAGAIN,
 * where the system gives no thread. Thread: any. */
UVA_MUST_CHECK int uva__fence_service(struct uva__hub *hub,
                                      struct uva__devices **out);

#endif
