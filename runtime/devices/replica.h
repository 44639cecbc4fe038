/* SPDX-License-Identifier: Apache-2.0 */
/* An array of the same shape as another, with buffers of its own in some
 * memory: what a copy fills. Every node of it may be moved out and outlive the
 * rest (LC-10), so all of them count it. */
#ifndef UVA_DEVICES_REPLICA_H
#define UVA_DEVICES_REPLICA_H

#include "core/format.h"
#include "devices/registry.h"

/* One node of both trees. */
struct uva__replica_node {
    const struct ArrowArray *from; /* borrows: in the array it was made from */
    struct ArrowArray *to;         /* borrows: of the replica */
    struct uva__layout layout;     /* of its format */
    const void **buffers;          /* borrows: of `to` */
    int64_t *sizes;                /* borrows: of those that have memory */
    int64_t n_buffers;             /* of both */
};

struct uva__replica;

/* What its buffers are made of. */
struct uva__replica_memory {
    struct uva__backend *backend; /* borrows: whose; NULL: plain host memory */
    int64_t device_id;
    bool pinned; /* memory of the host that goes with the device, if there is
                    enough of it */
};

/* Makes the shape of `from`, whose format `schema` says, without buffers. 0;
 * ENOMEM; EINVAL, ENOTSUP if they do not fit, with the place. Its memory is the
 * C library's. The result will say `device_type` and `device_id`. Thread: any.
 */
UVA_MUST_CHECK int uva__replica_new(
    struct uva__devices *devices, const struct uva__replica_memory *memory,
    ArrowDeviceType device_type, int64_t device_id,
    const struct ArrowSchema *schema, const struct ArrowDeviceArray *from,
    struct uva__replica **out, struct uva_error *error);

/* Its nodes, parents before children. Thread: any one at a time. */
struct uva__replica_node *uva__replica_nodes(struct uva__replica *replica,
                                             size_t *count);

/* Gives memory to buffer `i` of a node. 0; ENOMEM, or what the vendor says.
 * Thread: service. */
UVA_MUST_CHECK int uva__replica_buffer(struct uva__replica *replica,
                                       struct uva__replica_node *node,
                                       int64_t i, int64_t size_bytes,
                                       struct uva_error *error);

/* Gives the array, once; it owns the replica from now on. Thread: any. */
void uva__replica_give(struct uva__replica *replica,
                       struct ArrowDeviceArray *out);

/* Has the result carry `event`, of its device, which it takes; and counts, once
 * more: its memory stays until uva__replica_drop(). It has a backend.
 * Thread: any. */
void uva__replica_mark(struct uva__replica *replica, void *event);
void uva__replica_drop(struct uva__replica *replica);

/* Frees one that was not given. Thread: any. */
void uva__replica_free(struct uva__replica *replica);

#endif
