/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the system's clocks. */
#define _GNU_SOURCE
#include "base/clock.h"

#include <time.h>

static uint64_t clock_read(clockid_t clock)
{
    struct timespec now;

    (void)clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

uint64_t uva__clock_ns(void)
{
    return clock_read(CLOCK_MONOTONIC);
}

uint64_t uva__clock_thread_cpu_ns(void)
{
    return clock_read(CLOCK_THREAD_CPUTIME_ID);
}
