/* SPDX-License-Identifier: Apache-2.0 */
/* A pool of host memory that a vendor has pinned: the device alone copies into
 * it, at full speed, and a copy begins without waiting. Pinning is expensive,
 * so memory that is given back is kept for later copies, up to a limit. */
#ifndef UVA_DEVICE_PINNED_POOL_H
#define UVA_DEVICE_PINNED_POOL_H

#include "device/registry.h"

/* Returns the type of the pinned memory that goes with a device type;
 * ARROW_DEVICE_CPU: its table has no pinned memory. Thread: any. */
ArrowDeviceType uva__pinned_pool_type(const struct uva__backend *backend);

/* Gives memory for `size_bytes`, aligned to a page, or NULL.
 * Thread: the device thread. */
void *uva__pinned_pool_take(struct uva__backend *backend, int64_t device_id,
                            size_t size_bytes);

/* Takes memory back; `size_bytes` is as it was in uva__pinned_pool_take().
 * Thread: the device thread. */
void uva__pinned_pool_give(struct uva__backend *backend, int64_t device_id,
                           void *memory, size_t size_bytes);

/* Frees the memory that is kept. Thread: the device thread. */
void uva__pinned_pool_clear(struct uva__backend *backend);

#endif
