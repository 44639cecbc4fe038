/* SPDX-License-Identifier: Apache-2.0 */
/* Times a piece of work over and over and keeps the median. */
#ifndef BENCH_MEASURE_H
#define BENCH_MEASURE_H

#include <stdint.h>

/* Nanoseconds of work(ctx, n) for each of `n`: the median of 7 runs, after one
 * that warms up. */
double measure_ns(void (*work)(void *ctx, int64_t n), void *ctx, int64_t n);

#endif
