/* SPDX-License-Identifier: Apache-2.0 */
/* One hop of the asynchronous interface, by hand on one thread: a producer that
 * offers one prebuilt batch again and again, a handler that extracts and
 * releases it. The floor below which no implementation gets. */
#ifndef BENCH_HOP_H
#define BENCH_HOP_H

#include "uvarrow/arrow_abi.h"

struct hop {
    struct ArrowAsyncDeviceStreamHandler handler; /* to be given to hop_run() */
    int64_t first;                                /* requested in on_schema */
    int64_t each;  /* requested in each on_next_task */
    int64_t taken; /* batches, in all */
};

/* A handler that asks for `first` batches and then for `each` with each. */
void hop_init(struct hop *hop, int64_t first, int64_t each);

/* Drives `handler` with `n` batches, to its release. */
void hop_run(struct ArrowAsyncDeviceStreamHandler *handler, int64_t n);

#endif
