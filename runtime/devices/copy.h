/* SPDX-License-Identifier: Apache-2.0 */
/* Copies one array from a device to the host, or from the host to a device, all
 * types and levels of it. Queued on the device behind the array's event, so
 * that nobody waits for that first; nor for the end of those to a device. What
 * is waited for, step by step, is a watch's business. */
#ifndef UVA_DEVICES_COPY_H
#define UVA_DEVICES_COPY_H

#include "devices/watch.h"

struct uva__copy;

/* Where to. */
struct uva__copy_target {
    ArrowDeviceType
        device_type; /* the host, or a device of the source's kind */
    int64_t device_id;
};

/* Who is told when nothing of a copy is under way any more. */
struct uva__tail_client {
    /* called once, by the device thread; may only post. NULL: not called */
    void (*over)(void *ctx, int64_t weight);
    void *ctx;      /* borrows: valid until that call */
    int64_t weight; /* passed on as it is */
};

/* How an array gets there. */
enum uva__copy_way {
    UVA__COPY_NONE, /* it is there */
    UVA__COPY_WAIT, /* the host can read it behind its event */
    UVA__COPY_MOVE, /* by a copy */
    UVA__COPY_LOST  /* there is no way: ENOTSUP */
};

/* Finds the way, by the types alone. Thread: any. */
enum uva__copy_way uva__copy_find(struct uva__devices *devices,
                                  const struct uva__copy_target *target,
                                  const struct ArrowDeviceArray *array,
                                  struct uva_error *error);

/* Makes the work of a copy, for a watch of the device's type; takes `array` on
 * success. 0; ENOMEM; EINVAL, ENOTSUP if `schema` (borrows for the call) does
 * not fit. Thread: any. */
UVA_MUST_CHECK int uva__copy_new(struct uva__devices *devices,
                                 const struct uva__copy_target *target,
                                 const struct ArrowSchema *schema,
                                 struct ArrowDeviceArray *array,
                                 struct uva__copy **out,
                                 struct uva_error *error);

/* What a watch is made of: its work, and the event to make it with. */
struct uva__work *uva__copy_work(struct uva__copy *copy);
struct uva_device_event uva__copy_event(const struct uva__copy *copy);

/* Whether it may go on when its result is given. Thread: any. */
bool uva__copy_goes_on(const struct uva__copy *copy);

/* Tells `client` once nothing of it is under way any more: by the service, or
 * by whoever frees the work. Before a watch has it. */
void uva__copy_tell(struct uva__copy *copy,
                    const struct uva__tail_client *client);

/* Gives the result of one that is complete, or that goes on: then with an
 * event, which the array owns. Thread: any. */
void uva__copy_give(struct uva__work *work, struct ArrowDeviceArray *out);

#endif
