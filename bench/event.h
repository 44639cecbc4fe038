/* SPDX-License-Identifier: Apache-2.0 */
/* A device that costs almost nothing, so that only the waiting is measured: its
 * events are atomics that the bench sets. */
#ifndef BENCH_EVENT_H
#define BENCH_EVENT_H

#include <stdatomic.h>

#include "batch.h"
#include "uvarrow/uvarrow.h"

/* An event; all zeroes is a pending one. */
struct event {
    _Atomic(void *) is; /* NULL; the watch it was armed for; or its own
                           address: complete */
};

/* How often the device functions were called. */
struct event_counts {
    atomic_long arms;
    atomic_long queries;
};

/* Registers the events with a runtime as device type EXT_DEV, completed by
 * callback or polled. `counts` is borrowed while the runtime's workers exist.
 */
void event_register(struct uva_runtime *runtime, bool by_callback,
                    struct event_counts *counts);

/* Completes an event, once. Thread: any. */
void event_end(struct event *event);

/* A stream of type EXT_DEV. It borrows the struct and the events. */
struct event_input {
    struct input input;   /* first */
    struct event *events; /* borrows: one for each batch */
    int64_t mask;         /* batch i carries event (i & mask) */
};

/* Prepares a stream of `count` batches with the events `events[i & mask]`. */
void event_input_init(struct event_input *input, int64_t count,
                      struct event *events, int64_t mask);

#endif
