/* SPDX-License-Identifier: Apache-2.0 */
/* What the streams of one runtime share: type-stable memory for tasks and
 * producers, a sweeper for data that must not be discarded on the loop, and the
 * handlers that are being driven. Kept with the hub. */
#ifndef UVA_STREAM_STOCK_H
#define UVA_STREAM_STOCK_H

#include "core/slab.h"
#include "stream/task.h"
#include "uv/hub.h"

struct uva__quarantine;

/* Makes sure that the stock is there. 0 or ENOMEM. Thread: any. */
UVA_MUST_CHECK int uva__stock_ensure(struct uva__hub *hub);

/* Gives the place where checks of hops rest, empty after the close; NULL where
 * nobody asked for checks. Thread: any, while a stream is open. */
struct uva__quarantine *uva__stock_yard(struct uva__hub *hub);

/* Gives a free slot; NULL without memory. Thread: loop. */
struct uva__task *uva__stock_take_task(struct uva__hub *hub);

/* Takes a cleared slot back. Thread: loop. */
void uva__stock_put_task(struct uva__hub *hub, struct uva__task *task);

/* Of many slots that were put back, has few go round; now and then, after a few
 * puts. Thread: loop. */
void uva__stock_trim_tasks(struct uva__hub *hub);

/* Gives memory for a producer, that of an old one or cleared; NULL without
 * memory. Thread: any. */
void *uva__stock_take_producer(struct uva__hub *hub);

/* Takes it back, to rest long before it is reused (R19). Thread: any. */
void uva__stock_put_producer(struct uva__hub *hub, void *producer);

/* Discards a task in state SWEEPING on a guest thread, then settles it as
 * RECLAIMED. Thread: any. */
void uva__stock_sweep(struct uva__hub *hub, struct uva__task *task);

/* Notes that `handler` (borrows) is being driven. False if it is already
 * (AH-29). Thread: any. */
struct uva__driven {
    struct uva__driven *next;                      /* in its bucket */
    struct ArrowAsyncDeviceStreamHandler *handler; /* borrows */
};
UVA_MUST_CHECK bool uva__stock_drive(struct uva__hub *hub,
                                     struct uva__driven *driven);

/* Notes that it no longer is. Thread: any. */
void uva__stock_undrive(struct uva__hub *hub, struct uva__driven *driven);

/* Puts a producer that waits only for others to extract among those that are
 * let go of when the loop is; or takes it out. Thread: loop. */
void uva__stock_linger(struct uva__hub *hub, struct uva__producer *producer);
void uva__stock_unlinger(struct uva__hub *hub, struct uva__producer *producer);

#endif
