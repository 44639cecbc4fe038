/* SPDX-License-Identifier: Apache-2.0 */
/* The native handles behind device ids, which arrays do not carry: the program
 * attaches them, for all runtimes on the same workers.
 *
 * Clauses: G-57. */
#ifndef UVA_DEVICES_ATTACHMENTS_H
#define UVA_DEVICES_ATTACHMENTS_H

#include "base/atomic.h"
#include "uvarrow/device.h"

struct uva__attachment;

/* All zeroes is empty. */
struct uva__attachments {
    struct uva__lock lock;
    struct uva__attachment *newest; /* owns; locked */
    struct uva__signal changed;     /* raised when a use is over */
};

/* Attaches a copy of `size` bytes of handles to a device. 0; EBUSY if the
 * device has handles; ENOMEM. Thread: any. */
UVA_MUST_CHECK int uva__attachments_add(struct uva__attachments *attachments,
                                        ArrowDeviceType device_type,
                                        int64_t device_id, const void *native,
                                        size_t size);

/* Detaches the handles of a device, and waits until they are not in use. False:
 * there are none. Thread: any, but not one that uses them. */
UVA_MUST_CHECK bool
uva__attachments_remove(struct uva__attachments *attachments,
                        ArrowDeviceType device_type, int64_t device_id);

/* Uses the handles of a device: they stay valid until uva__attachments_drop(),
 * which has to follow soon. NULL: there are none. Thread: any. */
struct uva__attachment *
uva__attachments_use(struct uva__attachments *attachments,
                     ArrowDeviceType device_type, int64_t device_id);
void uva__attachments_drop(struct uva__attachments *attachments,
                           struct uva__attachment *attachment);

/* Returns the handles. Thread: the one that uses them. */
const void *uva__attachment_native(const struct uva__attachment *attachment);

/* Frees all handles; none is in use. Thread: any. */
void uva__attachments_fini(struct uva__attachments *attachments);

#endif
