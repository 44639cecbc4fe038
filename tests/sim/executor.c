/* SPDX-License-Identifier: Apache-2.0 */
/* A fiber made for one job stays for later ones. */
#include "sim/executor.h"

#include <errno.h>
#include <string.h>

#include "sim/engine.h"
#include "sim/peers.h"

enum { LANES = 2, JOBS = 512 };

static struct queue {
    struct uva_job *jobs[JOBS]; /* a ring */
    unsigned first, last;
    unsigned free; /* fibers that are waiting, or soon will be */
} queues[LANES];
static bool is_over, may_refuse;

void executor_begin(bool refuses)
{
    may_refuse = refuses;
    memset(queues, 0, sizeof(queues));
    is_over = false;
}

static bool queue_has_job(void *arg)
{
    const struct queue *queue = arg;

    return is_over || queue->first != queue->last;
}

static void run_jobs(void *arg)
{
    struct queue *queue = arg;

    for (;;) {
        sim_wait(queue_has_job, queue);
        queue->free--;
        if (queue->first == queue->last)
            return;
        uva_job_run(queue->jobs[queue->first++ % JOBS]);
        queue->free++;
    }
}

static int submit(void *ctx, enum uva_lane lane, struct uva_job *job)
{
    struct queue *queue = &queues[lane];

    (void)ctx;
    peers_dawdle();
    sim_flush(); /* makes earlier stores visible to that fiber */
    if (may_refuse && peers_chance(1, 30))
        return EBUSY;
    if (queue->last - queue->first == JOBS)
        sim_fail("too many jobs");
    queue->jobs[queue->last++ % JOBS] = job;
    if (queue->last - queue->first > queue->free) {
        queue->free++;
        peers_spawn("worker of an executor", run_jobs, queue);
    }
    sim_point(); /* the job may be over before this returns */
    return 0;
}

struct uva_executor executor_table(void)
{
    return (struct uva_executor){.submit = submit};
}

void executor_end(void)
{
    is_over = true;
}
