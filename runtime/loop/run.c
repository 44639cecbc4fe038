/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a function on a worker, and its end on the loop thread.
 *
 * Happy path:  submitted -> `work` on a worker -> posted -> `done` on the loop
 *              thread -> freed.
 *
 * On close:    `done` is called where the wake-up is disposed of: by the worker
 *              if the loop has gone. */
#include <errno.h>

#include "base/memory.h"
#include "loop/runtime_impl.h"

/* A function that runs. */
struct run {
    struct uva__job job;
    struct uva__wakeup wakeup;
    struct uva__rt *rt; /* counts */
    uva_call_fn *work;
    uva_call_fn *done; /* NULL: not given, or it was called */
    void *ctx;         /* borrows, until `done` */
    bool keeps_loop;   /* keeps the loop alive until `done` */
};

static void run_end(struct run *run)
{
    uva_call_fn *done = run->done;

    run->done = NULL;
    if (done != NULL)
        done(run->ctx);
}

static bool run_on_wakeup(struct uva__wakeup *wakeup)
{
    struct run *run = uva__container_of(wakeup, struct run, wakeup);

    run_end(run);
    if (run->keeps_loop)
        uva__loop_unref(run->rt);
    return false;
}

static void run_free(struct uva__wakeup *wakeup)
{
    struct run *run = uva__container_of(wakeup, struct run, wakeup);
    struct uva__rt *rt = run->rt;

    run_end(run);
    uva__memory_free(&rt->allocator, run, sizeof(*run));
    uva__rt_release(rt);
}

static const struct uva__wakeup_ops run_ops = {run_on_wakeup, run_free};

static void run_on_worker(struct uva__job *job)
{
    struct run *run = uva__container_of(job, struct run, job);
    struct uva__rt *rt = run->rt;

    run->work(run->ctx);
    if (run->done != NULL)
        uva__rt_wake(rt, &run->wakeup);
    uva__wakeup_release(&run->wakeup);
    uva__rt_job_end(rt);
}

/* The threads of a lane may wait for blocking work, so it has a thread beyond
 * them. */
static void run_submit(struct run *run, enum uva_lane lane)
{
    if (lane == UVA_LANE_COMPUTE)
        uva__lane_submit(&run->rt->jobs, lane, &run->job);
    else
        uva__lane_run_uncapped(&run->rt->jobs, &run->job);
}

/* Allocates one, and finds it a thread. The caller is counted as a job. */
static int run_make(struct uva__rt *rt, enum uva_lane lane, struct run **out)
{
    const int code = lane == UVA_LANE_COMPUTE
                         ? uva__lane_ensure(&rt->jobs, lane)
                         : uva__lane_ensure_uncapped(&rt->jobs);

    if (code != 0)
        return code;
    *out = uva__memory_new(&rt->allocator, sizeof(**out));
    return *out != NULL ? 0 : ENOMEM;
}

int uva_runtime_run(struct uva_runtime *runtime, enum uva_lane lane,
                    uva_call_fn *work, uva_call_fn *done, void *ctx)
{
    struct uva__rt *rt = uva__loop_rt(runtime);
    struct run *run = NULL;
    int code;

    if (rt == NULL || work == NULL ||
        (lane != UVA_LANE_COMPUTE && lane != UVA_LANE_BLOCKING))
        return EINVAL;
    if (!uva__rt_is_alive(rt))
        return EPERM;
    if (!uva__rt_job_begin(rt))
        return ESHUTDOWN;
    code = run_make(rt, lane, &run);
    if (code != 0) {
        uva__rt_job_end(rt);
        return code;
    }
    uva__wakeup_init(&run->wakeup, &run_ops, 1);
    run->job.run = run_on_worker;
    run->rt = uva__rt_acquire(rt);
    run->work = work;
    run->done = done;
    run->ctx = ctx;
    run->keeps_loop = done != NULL && uva__rt_on_loop(rt);
    if (run->keeps_loop)
        uva__loop_ref(rt);
    run_submit(run, lane);
    return 0;
}
