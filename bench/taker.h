/* SPDX-License-Identifier: Apache-2.0 */
/* The simplest handler, written by hand: it extracts each task at once, checks
 * the batch and releases it. */
#ifndef BENCH_TAKER_H
#define BENCH_TAKER_H

#include "batch.h"
#include "host.h"

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

enum {
    TAKER_AT_ONCE = 4096
}; /* batches of one stream, which fit into the
      cache */

/* Makes a stream of `count` batches for a case. */
typedef struct uva_stream *
taker_make_fn(struct host *host, const struct bench_case *self, int64_t count);

/* Runs the case with streams that `make` makes, of at most TAKER_AT_ONCE
 * batches each, one after the other. Returns the nanoseconds for all batches,
 * without the time of making them. The second form includes these. */
double taker_run(const struct bench_case *self, const struct bench_how *how,
                 taker_make_fn *make);
double taker_run_made(const struct bench_case *self,
                      const struct bench_how *how, taker_make_fn *make);

#ifdef __cplusplus
}
#endif

#endif
