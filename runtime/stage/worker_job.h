/* SPDX-License-Identifier: Apache-2.0 */
/* A job of a stage on a compute worker. From its submission until its end it
 * counts the stage, which therefore need not wait for it when it stops: it
 * gives the job up, and a run that is inside foreign code counts as a stuck
 * call of the runtime until it returns. */
#ifndef UVA_STAGE_WORKER_JOB_H
#define UVA_STAGE_WORKER_JOB_H

#include "stage/stage.h"

struct uva__worker_job {
    struct uva__job job;      /* its `awaited` and `done` are the stage's */
    struct uva__stage *stage; /* borrows; counts it meanwhile */
    /* the work, on a worker. True: it yields to other jobs, and is submitted
     * again. False: the stage may submit it again once the work has told it,
     * also before this returns */
    bool (*work)(struct uva__worker_job *job);
    uint64_t submitted_ns;      /* when that was; 0: not timed */
    struct uva__atomic64 calls; /* runs in progress << 1, and whether it was
                                   given up */
};

void uva__worker_job_init(struct uva__worker_job *job, struct uva__stage *stage,
                          bool (*work)(struct uva__worker_job *job));

/* Submits the job, which is not queued and does no work. False: the runtime has
 * released the worker threads. Thread: loop. */
UVA_MUST_CHECK bool uva__worker_job_submit(struct uva__worker_job *job);

/* No one waits for the job any more: the thread that runs it may be written
 * off. The job need not be submitted. Thread: loop. */
void uva__worker_job_give_up(struct uva__worker_job *job);

#endif
