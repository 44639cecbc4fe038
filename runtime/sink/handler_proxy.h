/* SPDX-License-Identifier: Apache-2.0 */
/* A proxy for a handler with callbacks that may block: it takes a producer's
 * calls on the loop thread and never blocks; an extra thread makes them at the
 * handler, one at a time. It is a part of its stream, which that thread keeps
 * until the handler has returned. */
#ifndef UVA_SINK_HANDLER_PROXY_H
#define UVA_SINK_HANDLER_PROXY_H

#include "stream/inlet.h"
#include "stream/stream_impl.h"

struct uva__handler_proxy;

/* Makes a proxy for `handler` (borrows, until its release has returned). Calls
 * `releasing` just before that, on the extra thread. It posts the wake-up of
 * `stream` (borrows) when the queue has room, and when the handler has refused
 * or was released. 0; ENOMEM; EAGAIN without an extra thread; ESHUTDOWN.
 * Thread: any.
 */
UVA_MUST_CHECK int uva__handler_proxy_new(
    struct uva_stream *stream, struct ArrowAsyncDeviceStreamHandler *handler,
    void (*releasing)(void *ctx), void *ctx, struct uva__handler_proxy **out);

/* Frees it, with its stream; NULL has no effect. Thread: any. */
void uva__handler_proxy_free(struct uva__handler_proxy *proxy);

/* Begins to drive its inlet, with these hooks, which get the ctx from above.
 * Thread: loop. */
void uva__handler_proxy_begin(struct uva__handler_proxy *proxy,
                              const struct uva__producer_hooks *hooks);

/* Passes on to the producer the reports of the extra thread: room, a refusal.
 * True once the handler was released. Thread: loop. */
bool uva__handler_proxy_poll(struct uva__handler_proxy *proxy);

/* Its tasks are about to be revoked: the queued ones are discarded, and the end
 * after them becomes an error (ECANCELED). Thread: loop. */
void uva__handler_proxy_cut(struct uva__handler_proxy *proxy);

/* Abandons the extra thread; if the handler was not released, it counts as
 * stuck until it is, and the queue is cut. Returns how many batches the handler
 * was given; gives the code with which it has refused a batch or the schema,
 * and the code that replaced its end, or 0. Thread: loop. */
int64_t uva__handler_proxy_abandon(struct uva__handler_proxy *proxy,
                                   int *refusal, int *replaced);

#endif
