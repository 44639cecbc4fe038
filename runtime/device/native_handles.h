/* SPDX-License-Identifier: Apache-2.0 */
/* The native handles of device ids, which arrays do not carry: the program
 * attaches them, for all runtimes on the same workers.
 *
 * Clauses: G-57. */
#ifndef UVA_DEVICE_NATIVE_HANDLES_H
#define UVA_DEVICE_NATIVE_HANDLES_H

#include "base/atomic.h"
#include "uvarrow/device.h"

struct uva__native_handle;

/* All zeroes is empty. */
struct uva__native_handles {
    struct uva__lock lock;
    struct uva__native_handle *newest; /* owns; locked */
    struct uva__futex changed;         /* raised when a use is over */
};

/* Attaches a copy of `size` bytes of handles to a device. 0; EBUSY if the
 * device has handles; ENOMEM. Thread: any. */
UVA_MUST_CHECK int
uva__native_handles_add(struct uva__native_handles *native_handles,
                        ArrowDeviceType device_type, int64_t device_id,
                        const void *native, size_t size);

/* Detaches the handles of a device, and waits until they are not in use. False:
 * there are no handles. Thread: any, but not a thread that uses them. */
UVA_MUST_CHECK bool
uva__native_handles_remove(struct uva__native_handles *native_handles,
                           ArrowDeviceType device_type, int64_t device_id);

/* Uses the handles of a device: they stay valid until
 * uva__native_handles_drop(), which has to follow soon. NULL: there are no
 * handles.
 * Thread: any. */
struct uva__native_handle *
uva__native_handles_use(struct uva__native_handles *native_handles,
                        ArrowDeviceType device_type, int64_t device_id);
void uva__native_handles_drop(struct uva__native_handles *native_handles,
                              struct uva__native_handle *native_handle);

/* Returns the handles. Thread: the user's. */
const void *
uva__native_handle_native(const struct uva__native_handle *native_handle);

/* Frees all handles; all are unused. Thread: any. */
void uva__native_handles_fini(struct uva__native_handles *native_handles);

#endif
