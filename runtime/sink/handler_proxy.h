/* SPDX-License-Identifier: Apache-2.0 */
/* A proxy for a handler with callbacks that may block: it takes a producer's
 * calls on the loop thread and never blocks; an extra thread makes them at the
 * handler, one at a time. */
#ifndef UVA_SINK_HANDLER_PROXY_H
#define UVA_SINK_HANDLER_PROXY_H

#include "sink/driven_handlers.h"
#include "stream/producer.h"

struct uva__handler_proxy;

/* Makes a proxy for `to` (borrows, until its release was entered). It posts a
 * wake-up to the loop when the queue has room, and when the handler has refused
 * or was released. 0 gives `out`, with one reference; ENOMEM; EAGAIN without an
 * extra thread; ESHUTDOWN. Thread: any. */
UVA_MUST_CHECK int
uva__handler_proxy_new(struct uva__rt *rt,
                       struct ArrowAsyncDeviceStreamHandler *to,
                       struct uva__handler_proxy **out);

/* Returns the entry that marks `to` as in use, which ends just before its
 * release. Thread: any. */
struct uva__driven_handler *
uva__handler_proxy_driven(struct uva__handler_proxy *proxy);

/* Drops the reference. Thread: any. */
void uva__handler_proxy_release(struct uva__handler_proxy *proxy);

/* Begins. Returns the handler for `producer` to call; `wakeup` (borrows, until
 * uva__handler_proxy_abandon()) is posted. Thread: loop. */
struct ArrowAsyncDeviceStreamHandler *
uva__handler_proxy_begin(struct uva__handler_proxy *proxy,
                         struct uva__producer *producer,
                         struct uva__wakeup *wakeup);

/* Passes on to the producer what the extra thread has reported: room, a
 * refusal. True once the handler was released. Thread: loop. */
bool uva__handler_proxy_poll(struct uva__handler_proxy *proxy);

/* Its tasks are about to be revoked: those that are queued are discarded, and
 * the end behind them becomes an error (ECANCELED). Thread: loop. */
void uva__handler_proxy_cut(struct uva__handler_proxy *proxy);

/* Abandons the extra thread; if the handler was not released, it counts as
 * stuck until it is, and what is queued is cut. Returns how many batches the
 * handler was given; gives the code with which it has refused one of them or
 * the schema, and the code that replaced its end, or 0. Thread: loop. */
int64_t uva__handler_proxy_abandon(struct uva__handler_proxy *proxy,
                                   int *refusal, int *replaced);

#endif
