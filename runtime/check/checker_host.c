/* SPDX-License-Identifier: Apache-2.0 */
/* Creates a thread for each call, as this serves to find faults and need not be
 * fast. */
#include "check/checker_host.h"

#include <stddef.h>

#include "base/clock.h"
#include "base/platform.h"
#include "base/thread.h"

struct call {
    void (*fn)(void *arg); /* to run */
    void *arg;             /* borrows */
};

static void *host_main(void *arg)
{
    const struct call *call = arg;

    call->fn(call->arg);
    return NULL;
}

void uva__checker_host_run(void (*fn)(void *arg), void *arg)
{
    struct call call = {fn, arg};
    pthread_t thread;

    if (uva__platform_start_thread(&thread, host_main, &call) != 0) {
        fn(arg);
        return;
    }
    (void)pthread_join(thread, NULL);
}

int64_t uva__checker_host_clock_ns(bool fine)
{
    return fine ? (int64_t)uva__clock_ns() : uva__platform_coarse_clock_ns();
}
