/* SPDX-License-Identifier: Apache-2.0 */
/* A handler by hand, as plain as can be: it extracts each task at once, looks
 * at the batch and releases it. */
#ifndef BENCH_TAKER_H
#define BENCH_TAKER_H

#include "batch.h"

#ifdef __cplusplus
extern "C" {
#endif

struct taker {
    struct ArrowAsyncDeviceStreamHandler abi; /* first */
    int64_t window;                           /* requests open at most */
    int64_t taken;                            /* since the last request */
    struct tally tally;                       /* of what came */
};

/* Prepares a handler that opens `window` requests and renews them when half of
 * them are used up. */
void taker_init(struct taker *taker, int64_t window);

#ifdef __cplusplus
}
#endif

#endif
