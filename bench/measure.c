/* SPDX-License-Identifier: Apache-2.0 */
#include "measure.h"

#include <stdlib.h>
#include <time.h>

enum { RUNS = 7 };

static double now_ns(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

double measure_ns(void (*work)(void *ctx, int64_t n), void *ctx, int64_t n)
{
    double took[RUNS], begun;

    work(ctx, n);
    for (int i = 0; i < RUNS; i++) {
        begun = now_ns();
        work(ctx, n);
        took[i] = (now_ns() - begun) / (double)n;
    }
    qsort(took, RUNS, sizeof(took[0]), ascending);
    return took[RUNS / 2];
}
