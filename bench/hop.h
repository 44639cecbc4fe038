/* SPDX-License-Identifier: Apache-2.0 */
/* One hop of the asynchronous interface, written by hand on one thread: a
 * producer that offers one prebuilt batch again and again, and a handler that
 * extracts and releases it. No implementation can be faster than this. */
#ifndef BENCH_HOP_H
#define BENCH_HOP_H

#include "uvarrow/arrow_abi.h"

struct hop {
    struct ArrowAsyncDeviceStreamHandler handler; /* to pass to hop_run() */
    int64_t first;                                /* requested in on_schema */
    int64_t each;  /* requested in each on_next_task */
    int64_t taken; /* batches taken in total */
};

/* Prepares a handler that requests `first` batches, then `each` with every
 * batch. */
void hop_init(struct hop *hop, int64_t first, int64_t each);

/* Drives `handler` with `n` batches, up to its release. */
void hop_run(struct ArrowAsyncDeviceStreamHandler *handler, int64_t n);

#endif
