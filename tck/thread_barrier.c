/* SPDX-License-Identifier: Apache-2.0 */
/* A thread barrier, which opens once all threads have arrived. */
#include "tck/thread_barrier.h"

#include <inttypes.h>

/* Lives as long as the process, because a thread may hang. */
struct crowd {
    struct uva__case_run *run;
    void (*fn)(void *ctx);
    void *ctx;
    uint64_t threads;
    struct uva__atomic64 arrived;
    struct uva__atomic64 back;
};

static bool thread_barrier_is_complete(void *ctx)
{
    struct crowd *crowd = ctx;

    return uva__atomic64_load(&crowd->arrived) == crowd->threads;
}

static bool thread_barrier_is_back(void *ctx)
{
    struct crowd *crowd = ctx;

    return uva__atomic64_load(&crowd->back) == crowd->threads;
}

static void *thread_barrier_member(void *ctx)
{
    struct crowd *crowd = ctx;

    (void)uva__atomic64_add(&crowd->arrived, 1);
    uva__case_run_changed(crowd->run);
    uva__case_run_await(crowd->run, thread_barrier_is_complete, crowd,
                        "a thread");
    crowd->fn(crowd->ctx);
    (void)uva__atomic64_add(&crowd->back, 1);
    uva__case_run_changed(crowd->run);
    return NULL;
}

void uva__thread_barrier_run(struct uva__case_run *run, int threads,
                             void (*fn)(void *), void *ctx)
{
    struct crowd *crowd = uva__case_run_alloc(run, sizeof(*crowd));

    crowd->run = run;
    crowd->fn = fn;
    crowd->ctx = ctx;
    crowd->threads = (uint64_t)threads;
    for (int i = 0; i < threads; i++)
        uva__case_run_thread(run, thread_barrier_member, crowd);
    uva__case_run_await(run, thread_barrier_is_back, crowd,
                        "the return of a call by another thread");
}
