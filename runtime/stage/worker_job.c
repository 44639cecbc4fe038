/* SPDX-License-Identifier: Apache-2.0 */
/* Runs the work of a stage on compute workers, and counts the calls that are
 * stuck there. */
#include "stage/worker_job.h"

enum { GIVEN_UP = 1, ONE_RUN = 2 }; /* of `calls` */

/* A run begins. Returns whether it counts: not after the job was given up. */
static bool calls_enter(struct uva__atomic64 *calls)
{
    uint64_t seen = uva__atomic64_load(calls);

    do
        if ((seen & GIVEN_UP) != 0)
            return false;
    while (!uva__atomic64_cas(calls, &seen, seen + ONE_RUN));
    return true;
}

/* A run that counts ends. */
static void calls_leave(struct uva__atomic64 *calls, struct uva__stats *stats)
{
    if ((uva__atomic64_sub(calls, ONE_RUN) & GIVEN_UP) != 0)
        uva__atomic64_sub(&stats->calls_stuck, 1);
}

/* The job is given up. Its runs are counted as stuck before one of them can
 * take that back. */
static void calls_give_up(struct uva__atomic64 *calls, struct uva__stats *stats)
{
    uint64_t seen = uva__atomic64_load(calls), runs;

    for (;;) {
        runs = seen / ONE_RUN;
        uva__atomic64_add(&stats->calls_stuck, runs);
        if (uva__atomic64_cas(calls, &seen, seen | GIVEN_UP))
            return;
        uva__atomic64_sub(&stats->calls_stuck, runs);
    }
}

static void worker_job_queue(struct uva__worker_job *job)
{
    uva__meter_submit(job->stage->source.meter, UVA_LANE_COMPUTE, &job->job,
                      &job->submitted_ns);
}

static void worker_job_run(struct uva__job *ours)
{
    struct uva__worker_job *job =
        uva__container_of(ours, struct uva__worker_job, job);
    struct uva__stage *stage = job->stage;
    struct uva__rt *rt = stage->source.rt;
    const bool counts = calls_enter(&job->calls);
    bool yields;

    uva__meter_run_begin(stage->source.meter, job->submitted_ns);
    yields = job->work(job);
    uva__meter_run_end(stage->source.meter);
    if (counts)
        calls_leave(&job->calls, &rt->stats);
    if (yields) {
        worker_job_queue(job);
        return;
    }
    uva__stage_release(stage);
    uva__rt_job_end(rt);
}

bool uva__worker_job_submit(struct uva__worker_job *job)
{
    if (!uva__rt_job_begin(job->stage->source.rt))
        return false;
    uva__stage_acquire(job->stage);
    job->job.priority = job->stage->source.producer->priority;
    worker_job_queue(job);
    return true;
}

void uva__worker_job_give_up(struct uva__worker_job *job)
{
    struct uva__rt *rt = job->stage->source.rt;

    calls_give_up(&job->calls, &rt->stats);
    if (!uva__rt_job_begin(rt))
        return;
    (void)uva__lane_give_up(&rt->jobs, UVA_LANE_COMPUTE, &job->job);
    uva__rt_job_end(rt);
}

void uva__worker_job_init(struct uva__worker_job *job, struct uva__stage *stage,
                          bool (*work)(struct uva__worker_job *job))
{
    job->job.run = worker_job_run;
    job->stage = stage;
    job->work = work;
}
