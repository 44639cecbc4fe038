/* SPDX-License-Identifier: Apache-2.0 */
/* Copies one array from a device to the host, to a device, or from one device
 * to another, of any type and depth. A copy to the host is queued on the
 * device after the array's event, and a copy to a device when that event is
 * complete. No thread waits for it, or for the end of a copy to a device. The
 * steps of a copy are the work of a wait (device/event_wait.h). */
#ifndef UVA_DEVICE_COPY_H
#define UVA_DEVICE_COPY_H

#include "device/copy_allocator.h"
#include "device/event_wait.h"

struct uva__copy;

/* Where an array is copied to. */
struct uva__copy_destination {
    ArrowDeviceType device_type; /* the host, or a device */
    int64_t device_id;
    struct uva__copy_allocator *allocator; /* borrows: of memory on the device;
                                              NULL: the table's */
    void *device_stream; /* borrows: the caller's, to queue copies on; NULL:
                            our streams */
};

/* The callback for the moment when all work of a copy is complete. */
struct uva__copy_tail_client {
    /* called once, by the device thread; may only post a wake-up. May be NULL
     */
    void (*over)(void *ctx, int64_t weight);
    void *ctx;      /* borrows: valid until that call */
    int64_t weight; /* passed on as it is */
};

/* How an array gets there. */
enum uva__copy_way {
    UVA__COPY_NONE, /* it is there already */
    UVA__COPY_WAIT, /* the host can read it once its event is complete */
    UVA__COPY_MOVE, /* by a copy */
    UVA__COPY_LOST  /* there is no way: ENOTSUP */
};

/* Finds the way, by the types alone. Thread: any. */
enum uva__copy_way uva__copy_find(struct uva__devices *devices,
                                  const struct uva__copy_destination *target,
                                  const struct ArrowDeviceArray *array,
                                  struct uva_error *error);

/* Makes the work of a copy, for a wait of the device's type; takes `array` on
 * success. 0; ENOMEM; EINVAL, ENOTSUP if `schema` (borrows for the call) does
 * not fit. Thread: any. */
UVA_MUST_CHECK int uva__copy_new(struct uva__devices *devices,
                                 const struct uva__copy_destination *target,
                                 const struct ArrowSchema *schema,
                                 struct ArrowDeviceArray *array,
                                 struct uva__copy **out,
                                 struct uva_error *error);

/* Return the parts of the wait: the work of the copy, and the event. */
struct uva__work *uva__copy_work(struct uva__copy *copy);
struct uva_device_event uva__copy_event(const struct uva__copy *copy);

/* Returns whether the copy may be in flight when its result is given.
 * Thread: any. */
bool uva__copy_may_be_in_flight(const struct uva__copy *copy);

/* Has `client` called once all work of the copy is complete: by the device
 * thread, or by the thread that frees the work. Before the wait has it. */
void uva__copy_set_client(struct uva__copy *copy,
                          const struct uva__copy_tail_client *client);

/* Gives the result of a copy that is complete, or in flight: then with an
 * event, which the array owns. Thread: any. */
void uva__copy_give(struct uva__work *work, struct ArrowDeviceArray *out);

#endif
