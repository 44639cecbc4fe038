/* SPDX-License-Identifier: Apache-2.0 */
/* A device that costs next to nothing, so that what is measured is what waits
 * for it: its events are words that the bench sets. */
#ifndef BENCH_EVENT_H
#define BENCH_EVENT_H

#include <stdatomic.h>

#include "batch.h"
#include "uvarrow/uvarrow.h"

/* An event; all zeroes is one that is pending. */
struct event {
    _Atomic(void *) is; /* NULL; the watch that it was armed for; or itself:
                           complete */
};

/* How often the tables were called. */
struct event_counts {
    atomic_long arms;
    atomic_long queries;
};

/* Makes events known to a runtime, as device type EXT_DEV: told by callback, or
 * polled. `counts` is borrowed while the runtime's workers last. */
void event_register(struct uva_runtime *runtime, bool by_callback,
                    struct event_counts *counts);

/* Completes one, once. Thread: any. */
void event_end(struct event *event);

/* A feed whose batch i carries event i: a stream of type EXT_DEV. `feed`, which
 * is first, and the events are borrowed by it. */
struct event_feed {
    struct feed feed;     /* first */
    struct event *events; /* borrows: one a batch */
    int64_t mask;         /* batch i carries event (i & mask) */
};

/* Prepares a stream of `count` batches with the events `events[i & mask]`. */
void event_feed_init(struct event_feed *feed, int64_t count,
                     struct event *events, int64_t mask);

#endif
