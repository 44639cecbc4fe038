/* SPDX-License-Identifier: Apache-2.0 */
/* A proxy for a handler with callbacks that may block: it takes a producer's
 * calls on the loop thread and never blocks; an extra thread makes them at the
 * handler, one at a time. */
#ifndef UVA_ADAPTERS_COURIER_H
#define UVA_ADAPTERS_COURIER_H

#include "sink/driven_handlers.h"
#include "stream/producer.h"

struct uva__courier;

/* Makes a proxy for `to` (borrows, until its release was entered). It posts a
 * node to the loop when the queue has room, and when the handler has refused or
 * was released. 0 gives `out`, with one reference; ENOMEM; EAGAIN without an
 * extra thread; ESHUTDOWN. Thread: any. */
UVA_MUST_CHECK int uva__courier_new(struct uva__hub *hub,
                                    struct ArrowAsyncDeviceStreamHandler *to,
                                    struct uva__courier **out);

/* Returns the entry that marks `to` as in use, which ends just before its
 * release. Thread: any. */
struct uva__driven *uva__courier_driven(struct uva__courier *courier);

/* Drops the reference. Thread: any. */
void uva__courier_release(struct uva__courier *courier);

/* Begins. Returns the handler for `producer` to call; `node` (borrows, until
 * uva__courier_forget()) is posted. Thread: loop. */
struct ArrowAsyncDeviceStreamHandler *
uva__courier_begin(struct uva__courier *courier, struct uva__producer *producer,
                   struct uva__node *node);

/* Passes on to the producer what the extra thread has left: room, a refusal.
 * True once the handler was released. Thread: loop. */
bool uva__courier_heed(struct uva__courier *courier);

/* Abandons the extra thread; if the handler was not released, it counts as
 * stuck until it is. Returns how many batches the handler was given; gives
 * the code with which it has refused one of them or the schema, or 0.
 * Thread: loop. */
int64_t uva__courier_forget(struct uva__courier *courier, int *refusal);

#endif
