/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of the host that a vendor has pinned: copies into it are made by the
 * device alone, at full speed, and begin without waiting. It is dear to make,
 * so what comes back is kept for the next, up to a bound. */
#ifndef UVA_DEVICES_PINNED_H
#define UVA_DEVICES_PINNED_H

#include "devices/registry.h"

/* The type of the pinned memory that goes with a device type; ARROW_DEVICE_CPU:
 * its table has none. Thread: any. */
ArrowDeviceType uva__pinned_type(const struct uva__backend *backend);

/* Gives memory for `size_bytes`, or NULL; it is aligned as pages are.
 * Thread: service. */
void *uva__pinned_take(struct uva__backend *backend, int64_t device_id,
                       size_t size_bytes);

/* Takes it back, with what was asked for. Thread: service. */
void uva__pinned_give(struct uva__backend *backend, int64_t device_id,
                      void *memory, size_t size_bytes);

/* Frees what is kept. Thread: service. */
void uva__pinned_clear(struct uva__backend *backend);

#endif
