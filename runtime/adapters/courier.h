/* SPDX-License-Identifier: Apache-2.0 */
/* Carries a producer's calls to a handler that may wait: ours on the loop takes
 * them and never waits, a guest thread makes them, one at a time. */
#ifndef UVA_ADAPTERS_COURIER_H
#define UVA_ADAPTERS_COURIER_H

#include "adapters/driven_handlers.h"
#include "stream/producer.h"

struct uva__courier;

/* Makes a courier for `to` (borrows, until its release was entered). It posts a
 * node when there is news for the loop: the queue has room, the handler
 * refused, it was released. 0 gives `out`, with one count; ENOMEM; EAGAIN
 * without a guest thread; ESHUTDOWN. Thread: any. */
UVA_MUST_CHECK int uva__courier_new(struct uva__hub *hub,
                                    struct ArrowAsyncDeviceStreamHandler *to,
                                    struct uva__courier **out);

/* What notes that `to` is driven; it is undone just before its release.
 * Thread: any. */
struct uva__driven *uva__courier_driven(struct uva__courier *courier);

/* Gives up the count. Thread: any. */
void uva__courier_release(struct uva__courier *courier);

/* Begins: the handler to drive, with `producer` as the one that fills it, and
 * `node` (borrows, until uva__courier_forget()) to post. Thread: loop. */
struct ArrowAsyncDeviceStreamHandler *
uva__courier_begin(struct uva__courier *courier, struct uva__producer *producer,
                   struct uva__node *node);

/* Heeds what the guest has left, towards the producer. True once the handler
 * was released. Thread: loop. */
bool uva__courier_heed(struct uva__courier *courier);

/* Nobody waits for the guest any more; if the handler was not released, it
 * counts as stuck until it is. Returns how many batches it was given; gives
 * the code that it refused one of them with, or the schema, or 0.
 * Thread: loop. */
int64_t uva__courier_forget(struct uva__courier *courier, int *refusal);

#endif
