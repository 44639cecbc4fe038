/* SPDX-License-Identifier: Apache-2.0 */
/* One open stream on a loop, and 10,000: the time for a batch, the heap memory
 * of an idle stream, and whether a stream needs a thread. `window` is the
 * number of streams.
 *
 * Time is measured between two stops, at which every consumer returns EAGAIN:
 * after its first batch, to leave out opening, and after its last but one, to
 * leave out closing. */
#include <stdio.h>
#include <stdlib.h>

#include "host.h"

/* ---- heap --------------------------------------------------------------- */

static void *heap_alloc(void *ctx, size_t size, size_t align)
{
    void *block = aligned_alloc(align, (size + align - 1) / align * align);

    if (block != NULL)
        (void)__atomic_add_fetch((int64_t *)ctx, (int64_t)size,
                                 __ATOMIC_RELAXED);
    return block;
}

static void heap_dealloc(void *ctx, void *block, size_t size)
{
    (void)__atomic_sub_fetch((int64_t *)ctx, (int64_t)size, __ATOMIC_RELAXED);
    free(block);
}

/* ---- streams ------------------------------------------------------------ */

struct crowd {
    struct host host;
    int64_t heap;  /* bytes allocated now */
    int64_t each;  /* batches of a stream between the two stops */
    int64_t stops; /* streams that are stopped */
    int64_t count; /* number of streams */
    struct member {
        struct feed feed;
        struct tally tally;
        struct crowd *crowd;       /* borrows */
        struct uva_stream *stream; /* owns a reference */
        struct uva_pusher *pusher; /* owns, if it has one */
    } * members;                   /* owns */
};

static int member_on_batch(void *ctx, struct uva_batch *batch)
{
    struct member *member = ctx;
    struct crowd *crowd = member->crowd;

    tally_take(&member->tally, &batch->data.array);
    if (member->tally.seen != 1 && member->tally.seen != crowd->each + 1)
        return 0;
    if (++crowd->stops == crowd->count)
        crowd->host.ended_ns = bench_now_ns(crowd->host.how);
    uva_array_release(&batch->data);
    return EAGAIN;
}

static void member_on_done(void *ctx, const struct uva_outcome *outcome)
{
    host_on_done(&((struct member *)ctx)->crowd->host, outcome);
}

static void member_open(struct member *member, bool pushed)
{
    const struct uva_blocking_source source = {.on_loop = true};
    struct crowd *crowd = member->crowd;
    struct uva_runtime *runtime = crowd->host.runtime;
    struct ArrowSchema schema;

    if (pushed) {
        batch_schema(&schema);
        member->stream = uva_stream_from_pusher(runtime, NULL, &member->pusher);
        bench_check(uva_pusher_set_schema(member->pusher, &schema) == 0,
                    "set_schema");
    } else {
        feed_init(&member->feed, crowd->each + 2);
        member->stream =
            uva_stream_from_blocking(runtime, &member->feed.abi, &source);
    }
    bench_check(
        uva_stream_for_each(member->stream,
                            &(struct uva_consumer){.on_batch = member_on_batch,
                                                   .on_done = member_on_done,
                                                   .ctx = member},
                            NULL) == 0,
        "for_each");
    crowd->host.open++;
}

/* ---- all streams -------------------------------------------------------- */

static void crowd_open(struct crowd *crowd, const struct bench_how *how,
                       int64_t count, int64_t each)
{
    *crowd = (struct crowd){.count = count, .each = each};
    crowd->members = calloc((size_t)count, sizeof(*crowd->members));
    bench_check(crowd->members != NULL, "memory");
    host_open_on(
        &crowd->host, how, 0,
        &(struct uva_allocator){heap_alloc, heap_dealloc, &crowd->heap});
    for (int64_t i = 0; i < count; i++)
        crowd->members[i].crowd = crowd;
}

static void crowd_close(struct crowd *crowd)
{
    for (int64_t i = 0; i < crowd->count; i++)
        uva_stream_release(crowd->members[i].stream);
    host_close(&crowd->host);
    free(crowd->members);
}

static void crowd_resume(struct crowd *crowd)
{
    crowd->stops = 0;
    for (int64_t i = 0; i < crowd->count; i++)
        uva_stream_resume(crowd->members[i].stream);
}

static void crowd_run_to_stop(struct crowd *crowd)
{
    while (crowd->stops < crowd->count)
        (void)uv_run(&crowd->host.loop, UV_RUN_ONCE);
}

static double run_crowd(const struct bench_case *self,
                        const struct bench_how *how)
{
    struct crowd crowd;
    double begun;

    crowd_open(&crowd, how, self->window, how->batches / self->window + 1);
    for (int64_t i = 0; i < crowd.count; i++)
        member_open(&crowd.members[i], false);
    crowd_run_to_stop(&crowd);
    begun = bench_now_ns(how);
    crowd_resume(&crowd);
    crowd_run_to_stop(&crowd);
    begun = crowd.host.ended_ns - begun;
    crowd_resume(&crowd);
    (void)host_run(&crowd.host);
    for (int64_t i = 0; i < crowd.count; i++)
        tally_check(&crowd.members[i].tally, crowd.each + 2);
    begun *= (double)how->batches / (double)(crowd.each * crowd.count);
    crowd_close(&crowd);
    return begun;
}

static void say_below(const char *name, const char *what, double value)
{
    char path[64];

    (void)snprintf(path, sizeof(path), "%s/%s", name, what);
    bench_say(path, value, what);
}

/* Idle streams: they wait for a push, or for a consumer that returned EAGAIN
 * (`more` is 1). */
static double run_idle(const struct bench_case *self,
                       const struct bench_how *how)
{
    struct uva_runtime_stats stats;
    struct crowd crowd;
    int64_t before;

    crowd_open(&crowd, how, self->window, 0);
    before = crowd.heap;
    for (int64_t i = 0; i < crowd.count; i++)
        member_open(&crowd.members[i], self->more == 0);
    (void)uv_run(&crowd.host.loop, UV_RUN_NOWAIT);
    if (self->more != 0)
        crowd_run_to_stop(&crowd);
    uva_runtime_get_stats(crowd.host.runtime, &stats);
    bench_check(stats.streams_open == crowd.count, "streams open");
    say_below(self->name, "bytes",
              (double)(crowd.heap - before) / (double)crowd.count);
    say_below(self->name, "threads",
              (double)(stats.threads_compute + stats.threads_blocking));
    for (int64_t i = 0; i < crowd.count; i++)
        uva_pusher_close(crowd.members[i].pusher, NULL, NULL);
    crowd_resume(&crowd);
    (void)host_run(&crowd.host);
    crowd_close(&crowd);
    return 0;
}

static const struct bench_case cases[] = {
    {"many/1/uvarrow", 5000000, run_crowd, 1, 0, 0},
    {"many/10000/uvarrow", 5000000, run_crowd, 10000, 0, 0},
    {"many/waiting", 0, run_idle, 10000, 0, BENCH_PRINTS},
    {"many/stopped", 0, run_idle, 10000, 1, BENCH_PRINTS},
};

int main(int argc, char **argv)
{
    return bench_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
