/* SPDX-License-Identifier: Apache-2.0 */
/* A blocking stream that is opened, gives one batch and is closed, beside one
 * uv_queue_work(). `window` is how many of them are open at any time: the end
 * of each one opens the next. One stream, or one piece of work, is counted as a
 * batch. The clock is read at the begin and at the end of a case alone: to read
 * the time of a process is a call of the system. */
#include <stdlib.h>

#include "host.h"

/* ---- uvarrow ------------------------------------------------------------ */

struct opener {
    struct host *host; /* borrows */
    int64_t left;      /* streams to open */
    double ended_ns;   /* the last one */
};

struct member {
    struct input input;
    struct tally tally;
    struct opener *opener; /* borrows */
};

static void member_open(struct member *member);

static int member_on_batch(void *ctx, struct uva_batch *batch)
{
    tally_take(&((struct member *)ctx)->tally, &batch->data.array);
    return 0;
}

static void member_on_done(void *ctx, const struct uva_outcome *outcome)
{
    struct member *member = ctx;
    struct opener *opener = member->opener;

    bench_check(outcome->end == UVA_END_COMPLETE, outcome->error.message);
    tally_check(&member->tally, 1);
    member_open(member);
    if (--opener->host->open == 0)
        opener->ended_ns = bench_now_ns(opener->host->how);
}

static void member_open(struct member *member)
{
    const struct uva_arrow_source source = {0};
    struct opener *opener = member->opener;
    struct uva_stream *stream;

    if (opener->left == 0)
        return;
    opener->left--;
    opener->host->open++;
    member->tally = (struct tally){0};
    input_init(&member->input, 1);
    stream = uva_stream_from_device_stream(opener->host->runtime,
                                           &member->input.abi, &source);
    bench_check(
        uva_stream_for_each(stream,
                            &(struct uva_consumer){.on_batch = member_on_batch,
                                                   .on_done = member_on_done,
                                                   .ctx = member},
                            NULL) == 0,
        "for_each");
    uva_stream_release(stream);
}

static double run_open(const struct bench_case *self,
                       const struct bench_how *how)
{
    struct member *members = calloc((size_t)self->window, sizeof(*members));
    struct host host;
    struct opener opener = {.host = &host, .left = how->batches};
    double begun;

    bench_check(members != NULL, "memory");
    host_open(&host, how, 0);
    begun = bench_now_ns(how);
    for (int32_t i = 0; i < self->window; i++) {
        members[i].opener = &opener;
        member_open(&members[i]);
    }
    (void)host_run(&host);
    bench_check(opener.left == 0, "streams left");
    host_close(&host);
    free(members);
    return opener.ended_ns - begun;
}

/* ---- uv_queue_work() ---------------------------------------------------- */

struct queue {
    uv_loop_t loop;
    const struct bench_how *how; /* borrows */
    int64_t left;                /* pieces of work to queue */
    int64_t queued;              /* and not done */
    double ended_ns;             /* the last one */
};

struct work {
    uv_work_t req; /* first */
    struct input input;
    struct tally tally;
    struct queue *queue; /* borrows */
    struct ArrowDeviceArray array;
};

static void work_queue(struct work *work);

static void work_do(uv_work_t *req)
{
    struct work *work = (struct work *)req;

    (void)work->input.abi.get_next(&work->input.abi, &work->array);
}

static void work_done(uv_work_t *req, int status)
{
    struct work *work = (struct work *)req;

    bench_check(status == 0, "work");
    work->tally = (struct tally){0};
    tally_take(&work->tally, &work->array.array);
    tally_check(&work->tally, 1);
    work->array.array.release(&work->array.array);
    work->input.abi.release(&work->input.abi);
    work_queue(work);
    if (--work->queue->queued == 0)
        work->queue->ended_ns = bench_now_ns(work->queue->how);
}

static void work_queue(struct work *work)
{
    if (work->queue->left == 0)
        return;
    work->queue->left--;
    work->queue->queued++;
    input_init(&work->input, 1);
    (void)uv_queue_work(&work->queue->loop, &work->req, work_do, work_done);
}

static double run_queue(const struct bench_case *self,
                        const struct bench_how *how)
{
    struct work *works = calloc((size_t)self->window, sizeof(*works));
    struct queue queue = {.how = how, .left = how->batches};
    double begun;

    bench_check(works != NULL, "memory");
    bench_check(uv_loop_init(&queue.loop) == 0, "loop");
    begun = bench_now_ns(how);
    bench_stay_on(how, 1); /* libuv's threads inherit the core of this one */
    for (int32_t i = 0; i < self->window; i++) {
        works[i].queue = &queue;
        work_queue(&works[i]);
    }
    bench_stay_on(how, 0);
    (void)uv_run(&queue.loop, UV_RUN_DEFAULT);
    bench_check(uv_loop_close(&queue.loop) == 0, "loop not empty");
    free(works);
    return queue.ended_ns - begun;
}

static const struct bench_case cases[] = {
    {"open/1/queue_work", 20000, run_queue, 1, 0, 0},
    {"open/1/uvarrow", 20000, run_open, 1, 0, 0},
    {"open/64/queue_work", 200000, run_queue, 64, 0, 0},
    {"open/64/uvarrow", 100000, run_open, 64, 0, 0},
};

int main(int argc, char **argv)
{
    return bench_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
