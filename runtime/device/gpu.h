/* SPDX-License-Identifier: Apache-2.0 */
/* The common part of CUDA and HIP: events that are polled, then waited for by a
 * callback on our stream; copies on two streams for each device, one to it and
 * one from it. The rest is in device/cuda.c and device/hip.c. */
#ifndef UVA_DEVICE_GPU_H
#define UVA_DEVICE_GPU_H

#include "device/gpu_driver.h"
#include "device/registry.h"

/* Functions of struct uva_device_ops; `state` begins with a struct uva__gpu,
 * and is from malloc(). */
void uva__gpu_unload(void *state);
int uva__gpu_query(void *state, const struct uva_device_event *event,
                   struct uva_error *error);
int uva__gpu_arm(void *state, const struct uva_device_event *event,
                 struct uva_watch *watch, struct uva_error *error);
int uva__gpu_record(void *state, const struct uva_device_event *device,
                    void *device_stream, void **event_out,
                    struct uva_error *error);
int uva__gpu_stream_wait(void *state, const struct uva_device_event *event,
                         void *device_stream, struct uva_error *error);
void uva__gpu_event_free(void *state, void *event);
int uva__gpu_copy(void *state, const struct uva_device_copy *copy,
                  void **event_out, struct uva_error *error);
int uva__gpu_copy_on(void *state, const struct uva_device_copy *copy,
                     void *device_stream, void **event_out,
                     struct uva_error *error);
void *uva__gpu_alloc(void *state, ArrowDeviceType device_type,
                     int64_t device_id, size_t size_bytes);
void uva__gpu_dealloc(void *state, ArrowDeviceType device_type,
                      int64_t device_id, void *memory);

/* A struct uva_device_ops made of them, for one device type; the differences
 * are its name, how it is loaded, whether a callback is armed (or NULL), how it
 * is copied (or NULL: the host reads it where it is), and whether the host can
 * read it once the event is complete. */
#define UVA__GPU_OPS(type_name, load_fn, arm_fn, copy_fn, readable)            \
    {                                                                          \
        .version = UVA_DEVICE_OPS_VERSION, .host_readable = (readable),        \
        .name = (type_name), .load = (load_fn), .unload = uva__gpu_unload,     \
        .query = uva__gpu_query, .arm = (arm_fn), .copy = (copy_fn),           \
        .record = uva__gpu_record, .stream_wait = uva__gpu_stream_wait,        \
        .event_free = uva__gpu_event_free, .alloc = uva__gpu_alloc,            \
        .dealloc = uva__gpu_dealloc, .copy_on = uva__gpu_copy_on,              \
    }

/* For struct uva__vendor_info. Thread: any. */
int uva__gpu_enter(void *state, int64_t device_id, void *device_stream,
                   struct uva__stream_scope *scope, struct uva_error *error);
void uva__gpu_leave(void *state, struct uva__stream_scope *scope);

/* For struct uva__vendor_info. Thread: the device thread. */
void uva__gpu_prepare(void *state, int64_t device_id);
void *uva__gpu_alloc_on(void *state, ArrowDeviceType device_type,
                        int64_t device_id, void *device_stream,
                        size_t size_bytes);
int uva__gpu_peers(void *state, int64_t from_id, int64_t to_id, bool *direct,
                   struct uva_error *error);
int uva__gpu_copy_peer(void *state, const struct uva_device_copy *copy,
                       int64_t to_id, void *device_stream, void **event_out,
                       struct uva_error *error);
int uva__gpu_alloc_failed(void *state, struct uva_error *error);
int uva__gpu_begin_use(void *state, int64_t device_id, void **stream,
                       struct uva_error *error);
void uva__gpu_end_use(void *state, int64_t device_id);

#endif
