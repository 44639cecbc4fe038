/* SPDX-License-Identifier: Apache-2.0 */
/* The simplest handler, written by hand: it extracts each task at once, checks
 * the batch and releases it. */
#ifndef BENCH_TAKER_H
#define BENCH_TAKER_H

#include "batch.h"

#ifdef __cplusplus
extern "C" {
#endif

struct taker {
    struct ArrowAsyncDeviceStreamHandler abi; /* first */
    int64_t window;     /* maximum number of open requests */
    int64_t taken;      /* batches since the last request */
    struct tally tally; /* batches received */
};

/* Prepares a handler that opens `window` requests and renews them when half of
 * them are used up. */
void taker_init(struct taker *taker, int64_t window);

#ifdef __cplusplus
}
#endif

#endif
