/* SPDX-License-Identifier: Apache-2.0 */
/* A thread barrier, which opens once all threads have arrived. */
#include "tck/thread_barrier.h"

#include <inttypes.h>

/* Lives as long as the process, because a thread may hang. */
struct barrier {
    struct uva__case_run *run;
    void (*fn)(void *ctx);
    void *ctx;
    uint64_t threads;
    struct uva__atomic64 arrived;
    struct uva__atomic64 back;
};

static bool thread_barrier_is_complete(void *ctx)
{
    struct barrier *barrier = ctx;

    return uva__atomic64_load(&barrier->arrived) == barrier->threads;
}

static bool thread_barrier_is_back(void *ctx)
{
    struct barrier *barrier = ctx;

    return uva__atomic64_load(&barrier->back) == barrier->threads;
}

static void *thread_barrier_member(void *ctx)
{
    struct barrier *barrier = ctx;

    (void)uva__atomic64_add(&barrier->arrived, 1);
    uva__case_run_changed(barrier->run);
    uva__case_run_await(barrier->run, thread_barrier_is_complete, barrier,
                        "a thread");
    barrier->fn(barrier->ctx);
    (void)uva__atomic64_add(&barrier->back, 1);
    uva__case_run_changed(barrier->run);
    return NULL;
}

void uva__thread_barrier_run(struct uva__case_run *run, int threads,
                             void (*fn)(void *), void *ctx)
{
    struct barrier *barrier = uva__case_run_alloc(run, sizeof(*barrier));

    barrier->run = run;
    barrier->fn = fn;
    barrier->ctx = ctx;
    barrier->threads = (uint64_t)threads;
    for (int i = 0; i < threads; i++)
        uva__case_run_thread(run, thread_barrier_member, barrier);
    uva__case_run_await(run, thread_barrier_is_back, barrier,
                        "the return of a call by another thread");
}
