/* SPDX-License-Identifier: Apache-2.0 */
/* The caller's allocator for copies to a device. It is counted, since arrays
 * with its memory may outlive the stage that it was given to. */
#ifndef UVA_DEVICE_COPY_ALLOCATOR_H
#define UVA_DEVICE_COPY_ALLOCATOR_H

#include "device/registry.h"
#include "uvarrow/device.h"

struct uva__copy_allocator;

/* The place that memory is for. */
struct uva__copy_place {
    struct uva__backend *backend; /* borrows: the device's row, loaded */
    ArrowDeviceType device_type;
    int64_t device_id;
    void *device_stream; /* borrows the caller's, on which copies are queued;
                            NULL: they are queued on our stream */
};

/* Makes one with a reference; takes the ctx. NULL without memory: no argument
 * was taken. Its memory is the C library's. Thread: any. */
struct uva__copy_allocator *
uva__copy_allocator_new(const struct uva_device_allocator *given);

/* Counts references; NULL is allowed. The last release frees the ctx. Thread:
 * any. */
struct uva__copy_allocator *
uva__copy_allocator_acquire(struct uva__copy_allocator *allocator);
void uva__copy_allocator_release(struct uva__copy_allocator *allocator);

/* Gives memory, or NULL and the reason. Thread: the device thread. */
void *uva__copy_allocator_take(struct uva__copy_allocator *allocator,
                               const struct uva__copy_place *place,
                               size_t size_bytes, struct uva_error *error);

/* Takes memory back, which is not used any more. Thread: the device thread. */
void uva__copy_allocator_give(struct uva__copy_allocator *allocator,
                              const struct uva__copy_place *place, void *memory,
                              size_t size_bytes);

#endif
