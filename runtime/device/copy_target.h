/* SPDX-License-Identifier: Apache-2.0 */
/* The target of a copy: an array of the same shape as another one, with its own
 * buffers. A consumer may move any node of it out, which then outlives the
 * rest, so every node holds a reference.
 *
 * Clauses: LC-10. */
#ifndef UVA_DEVICE_COPY_TARGET_H
#define UVA_DEVICE_COPY_TARGET_H

#include "arrow/format.h"
#include "device/copy_allocator.h"

/* One node of both trees. */
struct uva__copy_target_node {
    const struct ArrowArray *from; /* borrows: in the array it was made from */
    struct ArrowArray *to;         /* borrows: of the target */
    struct uva__layout layout;     /* of its format */
    const void **buffers;          /* borrows: of `to` */
    int64_t *sizes;                /* borrows: of its buffers; 0: no memory */
    int64_t n_buffers;             /* of both */
};

struct uva__copy_target;

/* Where the memory of its buffers is from. */
struct uva__copy_target_memory {
    struct uva__backend *backend; /* borrows: its allocator; NULL: plain
                                     memory of the host */
    int64_t device_id;
    struct uva__copy_allocator *allocator; /* borrows: the caller's, in place
                                              of the backend's; or NULL */
    void *device_stream; /* borrows: of the copies; NULL: ours */
    bool pinned; /* pinned memory that goes with the device, or plain memory
                    when that has run out */
};

/* Makes a tree of the shape of `from`, which has the type `schema`, without
 * buffers.
 * 0; ENOMEM; EINVAL, ENOTSUP if the two do not fit, with the place. Its memory
 * is the C library's. The resulting array has `device_type` and `device_id`.
 * Thread: any. */
UVA_MUST_CHECK int uva__copy_target_new(
    struct uva__devices *devices, const struct uva__copy_target_memory *memory,
    ArrowDeviceType device_type, int64_t device_id,
    const struct ArrowSchema *schema, const struct ArrowDeviceArray *from,
    struct uva__copy_target **out, struct uva_error *error);

/* Returns its nodes, parents before children. Thread: any one at a time. */
struct uva__copy_target_node *
uva__copy_target_nodes(struct uva__copy_target *copy_target, size_t *count);

/* Gives memory to buffer `i` of a node. 0; ENOMEM, or the vendor's error.
 * Thread: the device thread. */
UVA_MUST_CHECK int uva__copy_target_buffer(struct uva__copy_target *copy_target,
                                           struct uva__copy_target_node *node,
                                           int64_t i, int64_t size_bytes,
                                           struct uva_error *error);

/* Gives the array, once; the array owns the target from now on. Thread: any.
 */
void uva__copy_target_give(struct uva__copy_target *copy_target,
                           struct ArrowDeviceArray *out);

/* Takes `event`, of its device, which becomes the result's sync_event, and adds
 * a reference: its memory is kept until uva__copy_target_drop(). Only with a
 * backend. Thread: any. */
void uva__copy_target_mark(struct uva__copy_target *copy_target, void *event);
void uva__copy_target_drop(struct uva__copy_target *copy_target);

/* Frees a target that has not given its array. Thread: any. */
void uva__copy_target_free(struct uva__copy_target *copy_target);

#endif
