/* SPDX-License-Identifier: Apache-2.0 */
/* The devices of a runtime's worker threads. device/event_wait.h waits for
 * their events. */
#ifndef UVA_STREAM_RUNTIME_DEVICES_H
#define UVA_STREAM_RUNTIME_DEVICES_H

#include "device/event_wait.h"
#include "loop/rt.h"

/* Gives the devices of the runtime's workers, made at first need, with a
 * reference for the caller. 0; ENOMEM; ESHUTDOWN once the workers were
 * released; EPERM in a forked child. Thread: any. */
UVA_MUST_CHECK int uva__rt_devices(struct uva__rt *rt,
                                   struct uva__devices **out);

/* Gives the devices as uva__rt_devices() does, but the reference is a use of
 * the device thread: uva__devices_quit() releases it. Thread: any. */
UVA_MUST_CHECK int uva__rt_devices_use(struct uva__rt *rt,
                                       struct uva__devices **out);

/* Gives the devices as uva__rt_devices() does, and makes sure that the
 * device thread runs: also EAGAIN, if the system gives no thread. Thread: any.
 */
UVA_MUST_CHECK int uva__rt_devices_thread(struct uva__rt *rt,
                                          struct uva__devices **out);

/* Logs the first use of a device type by the runtime; not of the CPU. `stream`
 * may be NULL. Thread: any. */
void uva__rt_note_device(struct uva__rt *rt, const char *stream,
                         ArrowDeviceType device_type);

#endif
