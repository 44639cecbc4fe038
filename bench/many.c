/* SPDX-License-Identifier: Apache-2.0 */
/* One open stream on a loop, and up to 100,000: the time for a batch, the heap
 * memory of an idle stream and of a closed one, and whether a stream needs a
 * thread; and how equal the shares of 16 are. `window` is the number of
 * streams.
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

struct group {
    struct host host;
    int64_t heap;  /* bytes allocated now */
    int64_t each;  /* batches of a stream between the two stops */
    int64_t stops; /* streams that are stopped */
    int64_t count; /* number of streams */
    struct member {
        struct input input;
        struct tally tally;
        struct group *group;       /* borrows */
        struct uva_stream *stream; /* owns a reference */
        struct uva_pusher *pusher; /* owns, if it has one */
    } * members;                   /* owns */
};

static int member_on_batch(void *ctx, struct uva_batch *batch)
{
    struct member *member = ctx;
    struct group *group = member->group;

    tally_take(&member->tally, &batch->data.array);
    if (member->tally.seen != 1 && member->tally.seen != group->each + 1)
        return 0;
    if (++group->stops == group->count)
        group->host.ended_ns = bench_now_ns(group->host.how);
    return EAGAIN;
}

static void member_on_done(void *ctx, const struct uva_outcome *outcome)
{
    host_on_done(&((struct member *)ctx)->group->host, outcome);
}

enum origin { FROM_LOOP, FROM_WORKER, FROM_PUSHER };

static void member_open(struct member *member, enum origin origin,
                        int (*on_batch)(void *ctx, struct uva_batch *batch))
{
    const struct uva_arrow_source source = {.on_loop = origin == FROM_LOOP};
    struct group *group = member->group;
    struct uva_runtime *runtime = group->host.runtime;
    struct ArrowSchema schema;

    if (origin == FROM_PUSHER) {
        batch_schema(&schema);
        member->stream = uva_stream_from_pusher(runtime, NULL, &member->pusher);
        bench_check(uva_pusher_set_schema(member->pusher, &schema) == 0,
                    "set_schema");
    } else {
        input_init(&member->input, group->each + 2);
        member->stream =
            uva_stream_from_device_stream(runtime, &member->input.abi, &source);
    }
    bench_check(
        uva_stream_for_each(member->stream,
                            &(struct uva_consumer){.on_batch = on_batch,
                                                   .on_done = member_on_done,
                                                   .ctx = member},
                            NULL) == 0,
        "for_each");
    group->host.open++;
}

/* ---- all streams -------------------------------------------------------- */

static void group_open(struct group *group, const struct bench_how *how,
                       int64_t count, int64_t each)
{
    *group = (struct group){.count = count, .each = each};
    group->members = calloc((size_t)count, sizeof(*group->members));
    bench_check(group->members != NULL, "memory");
    host_open_on(
        &group->host, how, 0,
        &(struct uva_allocator){heap_alloc, heap_dealloc, &group->heap});
    for (int64_t i = 0; i < count; i++)
        group->members[i].group = group;
}

static void group_close(struct group *group)
{
    for (int64_t i = 0; i < group->count; i++)
        uva_stream_release(group->members[i].stream);
    host_close(&group->host);
    free(group->members);
}

static void group_resume(struct group *group)
{
    group->stops = 0;
    for (int64_t i = 0; i < group->count; i++)
        uva_stream_resume(group->members[i].stream);
}

static void group_run_to_stop(struct group *group)
{
    while (group->stops < group->count)
        (void)uv_run(&group->host.loop, UV_RUN_ONCE);
}

static double run_group(const struct bench_case *self,
                        const struct bench_how *how)
{
    const int64_t count =
        self->window < how->batches ? self->window : how->batches;
    struct group group;
    double begun;

    group_open(&group, how, count, how->batches / count + 1);
    for (int64_t i = 0; i < group.count; i++)
        member_open(&group.members[i], FROM_LOOP, member_on_batch);
    group_run_to_stop(&group);
    begun = bench_now_ns(how);
    group_resume(&group);
    group_run_to_stop(&group);
    begun = group.host.ended_ns - begun;
    group_resume(&group);
    (void)host_run(&group.host);
    for (int64_t i = 0; i < group.count; i++)
        tally_check(&group.members[i].tally, group.each + 2);
    begun *= (double)how->batches / (double)(group.each * group.count);
    group_close(&group);
    return begun;
}

static void print_below(const char *name, const char *what, double value)
{
    char path[64];

    (void)snprintf(path, sizeof(path), "%s/%s", name, what);
    bench_print(path, value, what);
}

/* Idle streams: they wait for a push, or for a consumer that returned EAGAIN
 * (`more` is 1). */
static double run_idle(const struct bench_case *self,
                       const struct bench_how *how)
{
    struct uva_runtime_stats stats;
    struct group group;
    int64_t before;

    group_open(&group, how, self->window, 0);
    before = group.heap;
    for (int64_t i = 0; i < group.count; i++)
        member_open(&group.members[i],
                    self->more == 0 ? FROM_PUSHER : FROM_LOOP, member_on_batch);
    (void)uv_run(&group.host.loop, UV_RUN_NOWAIT);
    if (self->more != 0)
        group_run_to_stop(&group);
    uva_runtime_get_stats(group.host.runtime, &stats);
    bench_check(stats.streams_open == group.count, "streams open");
    print_below(self->name, "bytes",
                (double)(group.heap - before) / (double)group.count);
    print_below(self->name, "threads",
                (double)(stats.threads_compute + stats.threads_blocking));
    for (int64_t i = 0; i < group.count; i++)
        uva_pusher_close(group.members[i].pusher, NULL, NULL);
    group_resume(&group);
    (void)host_run(&group.host);
    group_close(&group);
    return 0;
}

/* ---- closed streams ------------------------------------------------------ */

static int closed_on_batch(void *ctx, struct uva_batch *batch)
{
    tally_take(&((struct member *)ctx)->tally, &batch->data.array);
    return 0;
}

/* Opens streams one after the other, each at the end of the one before. */
static void group_run_each(struct group *group)
{
    const struct uva_arrow_source source = {.on_loop = true};
    struct member *member;

    for (int64_t i = 0; i < group->count; i++) {
        member = &group->members[i];
        input_init(&member->input, 2);
        member->tally = (struct tally){0};
        member->stream = uva_stream_from_device_stream(
            group->host.runtime, &member->input.abi, &source);
        bench_check(uva_stream_for_each(
                        member->stream,
                        &(struct uva_consumer){.on_batch = closed_on_batch,
                                               .on_done = member_on_done,
                                               .ctx = member},
                        NULL) == 0,
                    "for_each");
        group->host.open++;
        (void)host_run(&group->host);
        tally_check(&member->tally, 2);
        uva_stream_release(member->stream);
        member->stream = NULL;
    }
}

/* The memory that each of many streams leaves when it is closed, while all are
 * in quarantine. The first ones make the memory that the rest use again. */
static double run_closed(const struct bench_case *self,
                         const struct bench_how *how)
{
    struct group group;
    int64_t before;

    group_open(&group, how, self->window, 0);
    group_run_each(&group);
    before = group.heap;
    group_run_each(&group);
    print_below(self->name, "bytes",
                (double)(group.heap - before) / (double)group.count);
    group_close(&group);
    return 0;
}

/* ---- shares -------------------------------------------------------------- */

enum { SHARES = 16 };

struct shares {
    struct group group;   /* first */
    int64_t seen[SHARES]; /* batches of each stream, when one has had its own */
};

static int share_on_batch(void *ctx, struct uva_batch *batch)
{
    struct member *member = ctx;
    struct group *group = member->group;

    tally_take(&member->tally, &batch->data.array);
    if (member->tally.seen == group->each && group->stops++ == 0)
        for (int64_t i = 0; i < group->count; i++)
            ((struct shares *)group)->seen[i] = group->members[i].tally.seen;
    return 0;
}

/* Equal streams, each read by a job on a worker. */
static double run_shares(const struct bench_case *self,
                         const struct bench_how *how)
{
    struct shares shares;
    struct group *group = &shares.group;

    group_open(group, how, self->window, how->batches / self->window + 1);
    for (int64_t i = 0; i < group->count; i++)
        member_open(&group->members[i], FROM_WORKER, share_on_batch);
    (void)host_run(&group->host);
    for (int64_t i = 0; i < group->count; i++)
        tally_check(&group->members[i].tally, group->each + 2);
    bench_print_shares(self->name, shares.seen, group->count);
    group_close(group);
    return 0;
}

static const struct bench_case cases[] = {
    {"many/1/uvarrow", 5000000, run_group, 1, 0, 0},
    {"many/100/uvarrow", 5000000, run_group, 100, 0, 0},
    {"many/1000/uvarrow", 5000000, run_group, 1000, 0, 0},
    {"many/10000/uvarrow", 5000000, run_group, 10000, 0, 0},
    {"many/100000/uvarrow", 5000000, run_group, 100000, 0, 0},
    {"many/waiting", 0, run_idle, 10000, 0, BENCH_PRINTS},
    {"many/stopped", 0, run_idle, 10000, 1, BENCH_PRINTS},
    {"many/closed", 0, run_closed, 1024, 0, BENCH_PRINTS},
    {"many/16/shares", 5000000, run_shares, SHARES, 0, BENCH_PRINTS},
};

int main(int argc, char **argv)
{
    return bench_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
