/* SPDX-License-Identifier: Apache-2.0 */
/* A thread barrier, which opens once all threads have arrived. */
#include "tck/thread_barrier.h"

#include <inttypes.h>

/* Lives as long as the process, because a thread may hang. */
struct crowd {
    struct uva__trial *trial;
    void (*fn)(void *ctx);
    void *ctx;
    uint64_t threads;
    struct uva__word arrived;
    struct uva__word back;
};

static bool crowd_is_complete(void *ctx)
{
    struct crowd *crowd = ctx;

    return uva__word_load(&crowd->arrived) == crowd->threads;
}

static bool crowd_is_back(void *ctx)
{
    struct crowd *crowd = ctx;

    return uva__word_load(&crowd->back) == crowd->threads;
}

static void *crowd_member(void *ctx)
{
    struct crowd *crowd = ctx;

    (void)uva__word_add(&crowd->arrived, 1);
    uva__trial_changed(crowd->trial);
    uva__trial_await(crowd->trial, crowd_is_complete, crowd, "a thread");
    crowd->fn(crowd->ctx);
    (void)uva__word_add(&crowd->back, 1);
    uva__trial_changed(crowd->trial);
    return NULL;
}

void uva__crowd_run(struct uva__trial *trial, int threads, void (*fn)(void *),
                    void *ctx)
{
    struct crowd *crowd = uva__trial_alloc(trial, sizeof(*crowd));

    crowd->trial = trial;
    crowd->fn = fn;
    crowd->ctx = ctx;
    crowd->threads = (uint64_t)threads;
    for (int i = 0; i < threads; i++)
        uva__trial_thread(trial, crowd_member, crowd);
    uva__trial_await(trial, crowd_is_back, crowd,
                     "the return of a call by another thread");
}
