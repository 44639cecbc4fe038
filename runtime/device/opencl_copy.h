/* SPDX-License-Identifier: Apache-2.0 */
/* OpenCL: memory and copies. */
#ifndef UVA_DEVICE_OPENCL_COPY_H
#define UVA_DEVICE_OPENCL_COPY_H

#include "device/opencl_queue.h"

/* Functions of struct uva_device_ops, which describes them. Thread: the device
 * thread. */
int uva__opencl_copy(void *state, const struct uva_device_copy *copy,
                     void **event_out, struct uva_error *error);
int uva__opencl_copy_on(void *state, const struct uva_device_copy *copy,
                        void *device_stream, void **event_out,
                        struct uva_error *error);
void *uva__opencl_alloc(void *state, ArrowDeviceType device_type,
                        int64_t device_id, size_t size_bytes);
void uva__opencl_dealloc(void *state, ArrowDeviceType device_type,
                         int64_t device_id, void *memory);

/* For struct uva__vendor_info. Thread: the device thread. */
int uva__opencl_alloc_failed(void *state, struct uva_error *error);

#endif
