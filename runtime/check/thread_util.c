/* SPDX-License-Identifier: Apache-2.0 */
/* Creates a thread for each call, as this serves to find faults and need not be
 * fast. */
#define _GNU_SOURCE
#include "check/thread_util.h"

#include <stddef.h>
#include <time.h>

#include "base/clock.h"
#include "base/thread.h"

struct call {
    void (*fn)(void *arg); /* to run */
    void *arg;             /* borrows */
};

static void *thread_util_main(void *arg)
{
    const struct call *call = arg;

    call->fn(call->arg);
    return NULL;
}

void uva__thread_util_run(void (*fn)(void *arg), void *arg)
{
    struct call call = {fn, arg};
    pthread_t thread;

    if (uva__thread_start(&thread, thread_util_main, &call) != 0) {
        fn(arg);
        return;
    }
    (void)pthread_join(thread, NULL);
}

int64_t uva__thread_util_clock_ns(bool fine)
{
    struct timespec now;

    if (fine)
        return (int64_t)uva__clock_ns();
    (void)clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}
