/* SPDX-License-Identifier: Apache-2.0 */
/* The native handles behind device ids, which arrays do not carry: brought in
 * by the program, for all runtimes on the same workers (G-57). */
#ifndef UVA_DEVICES_ATTACHMENTS_H
#define UVA_DEVICES_ATTACHMENTS_H

#include "core/sync.h"
#include "uvarrow/device.h"

struct uva__attachment;

/* All zeroes is empty. */
struct uva__attachments {
    struct uva__lock lock;
    struct uva__attachment *newest; /* owns; locked */
    struct uva__signal changed;     /* raised when a use is over */
};

/* Attaches `size` bytes of handles to a device, a copy. 0; EBUSY if it has
 * some; ENOMEM. Thread: any. */
UVA_MUST_CHECK int uva__attachments_add(struct uva__attachments *attachments,
                                        ArrowDeviceType device_type,
                                        int64_t device_id, const void *native,
                                        size_t size);

/* Takes them off, and waits until nobody uses them. False: there are none.
 * Thread: any, but not while using one. */
UVA_MUST_CHECK bool
uva__attachments_remove(struct uva__attachments *attachments,
                        ArrowDeviceType device_type, int64_t device_id);

/* Uses the handles of a device: they stay until uva__attachment_drop(), which
 * is to come soon. NULL: there are none. Thread: any. */
struct uva__attachment *
uva__attachments_use(struct uva__attachments *attachments,
                     ArrowDeviceType device_type, int64_t device_id);
void uva__attachments_drop(struct uva__attachments *attachments,
                           struct uva__attachment *attachment);

/* The handles. Thread: who uses them. */
const void *uva__attachment_native(const struct uva__attachment *attachment);

/* Forgets all; nobody uses any. Thread: any. */
void uva__attachments_fini(struct uva__attachments *attachments);

#endif
