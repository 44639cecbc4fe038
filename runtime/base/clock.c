/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the system's monotonic clock. */
#define _GNU_SOURCE
#include "base/clock.h"

#include <time.h>

uint64_t uva__clock_ns(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}
