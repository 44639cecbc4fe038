/* SPDX-License-Identifier: Apache-2.0 */
/* The job that opens a source reads its first batch, too, if the consumer
 * will request one whatever the program does. The workers have one thread for
 * calls that block, which waits at a gate until the jobs of both streams are
 * queued: once it has opened the last source, the job that opened the one under
 * test has ended, and the loop had no turn in between. */
#include <check.h>
#include <errno.h>
#include <sched.h>

#include "stage/limit.h"
#include "support/check_suite.h"
#include "support/fixture.h"

static struct fixture f, gate, last;
static struct uva_workers *workers;

static void open_both(int64_t batches, int64_t memory_bytes)
{
    const struct uva_workers_options one = {.blocking_threads = 1};
    struct uva_runtime_options options = {.memory_bytes = memory_bytes};

    ck_assert_int_eq(uva_workers_new(&one, &workers, NULL), 0);
    options.workers = workers;
    fixture_open_with(&f, batches, &options);
    fixture_open_beside(&gate, 1, &f);
    fixture_open_beside(&last, 1, &f);
}

static void tear_down(void)
{
    fixture_close(&last);
    fixture_close(&gate);
    fixture_close(&f);
    if (workers != NULL)
        uva_workers_release(workers);
    workers = NULL;
}

/* ---- consumers ---------------------------------------------------------- */

static int64_t taken;
static bool done;

static int on_batch(void *ctx, struct uva_batch *batch)
{
    ck_assert_ptr_eq(ctx, &f);
    ck_assert_int_eq(batch->ordinal, taken++);
    return 0;
}

static int on_schema(void *ctx, const struct uva_stream_info *info)
{
    ck_assert_ptr_eq(ctx, &f);
    ck_assert_ptr_nonnull(info->schema);
    return 0;
}

static int refuse(void *ctx, const struct uva_stream_info *info)
{
    (void)ctx;
    (void)info;
    return EINVAL;
}

static void on_done(void *ctx, const struct uva_outcome *outcome)
{
    ck_assert_ptr_eq(ctx, &f);
    ck_assert(outcome->end == UVA_END_COMPLETE ||
              outcome->end == UVA_END_REJECTED);
    done = true;
}

static bool is_done(void *ctx)
{
    (void)ctx;
    return done;
}

static void on_collected(void *ctx, const struct uva_stream_info *info,
                         struct ArrowDeviceArray *batches, size_t count,
                         const struct uva_outcome *outcome)
{
    (void)info;
    taken = (int64_t)count;
    for (size_t i = 0; i < count; i++)
        uva_array_release(&batches[i]);
    on_done(ctx, outcome);
}

static int start_each(struct uva_stream *stream)
{
    return uva_stream_for_each(stream,
                               &(struct uva_consumer){.on_batch = on_batch,
                                                      .on_done = on_done,
                                                      .ctx = &f},
                               NULL);
}

static int start_with_schema(struct uva_stream *stream)
{
    return uva_stream_for_each(stream,
                               &(struct uva_consumer){.on_schema = on_schema,
                                                      .on_batch = on_batch,
                                                      .on_done = on_done,
                                                      .ctx = &f},
                               NULL);
}

static int start_refusing(struct uva_stream *stream)
{
    return uva_stream_for_each(stream,
                               &(struct uva_consumer){.on_schema = refuse,
                                                      .on_batch = on_batch,
                                                      .on_done = on_done,
                                                      .ctx = &f},
                               NULL);
}

static int start_paused(struct uva_stream *stream)
{
    uva_stream_pause(stream);
    return start_each(stream);
}

static int start_collecting(struct uva_stream *stream)
{
    return uva_stream_collect(stream, 0, on_collected, &f, NULL);
}

static void begin(int (*start)(struct uva_stream *stream))
{
    taken = 0;
    done = false;
    gate.fake.gate_at = 0;
    gate.stream = fixture_blocking(&gate);
    fixture_start(&gate);
    while (!fake_source_is_waiting(&gate.fake))
        (void)uv_run(&f.loop.uv, UV_RUN_NOWAIT);
    ck_assert_int_eq(start(f.stream), 0);
    last.stream = fixture_hook(&last);
    fixture_start(&last);
    loop_settle(&f.loop);
    fake_source_open_gate(&gate.fake);
    while (atomic_load(&last.fake.opened) == 0)
        (void)sched_yield();
}

static bool others_are_done(void *ctx)
{
    (void)ctx;
    return gate.got.done > 0 && last.got.done > 0;
}

/* ---- tests --------------------------------------------------------------- */

static const struct {
    int (*start)(struct uva_stream *stream);
    int64_t batches, window, limit; /* the last negative: no limit */
    long read;                      /* before the loop has another turn */
    int64_t taken;                  /* in all */
} cases[] = {
    {start_each, 5, 0, -1, 2, 5},        {start_each, 1, 0, -1, 1, 1},
    {start_each, 0, 0, -1, 0, 0},        {start_each, 5, 2, -1, 2, 5},
    {start_collecting, 5, 0, -1, 2, 5},  {start_each, 5, 1, -1, 0, 5},
    {start_each, 5, 0, 0, 0, 0},         {start_each, 5, 0, 1, 2, 1},
    {start_with_schema, 5, 0, -1, 0, 5}, {start_refusing, 5, 0, -1, 0, 0},
    {start_paused, 5, 0, -1, 0, 5},
};

enum { CASES = sizeof(cases) / sizeof(cases[0]) };

START_TEST(the_opening_job_reads_what_will_be_requested)
{
    open_both(cases[_i].batches, 0);
    f.options.window.batches = (int32_t)cases[_i].window;
    f.stream = fixture_blocking(&f);
    if (cases[_i].limit >= 0)
        ck_assert_int_eq(uva__stream_limit(f.stream, cases[_i].limit), 0);
    begin(cases[_i].start);
    ck_assert_int_eq(atomic_load(&f.fake.given), cases[_i].read);
    ck_assert_int_eq(taken, 0);
    loop_settle(&f.loop);
    uva_stream_resume(f.stream);
    loop_until(&f.loop, is_done, NULL);
    ck_assert_int_eq(taken, cases[_i].taken);
    loop_until(&f.loop, others_are_done, NULL);
}
END_TEST

/* A full budget admits the first batch of a stream that holds none, and no
 * second one. */
START_TEST(a_budget_admits_one)
{
    open_both(3, 1);
    f.stream = fixture_blocking(&f);
    begin(start_each);
    ck_assert_int_eq(atomic_load(&f.fake.given), 1);
    loop_until(&f.loop, is_done, NULL);
    ck_assert_int_eq(taken, 3);
    loop_until(&f.loop, others_are_done, NULL);
}
END_TEST

/* What was read and is not wanted is released. */
START_TEST(a_cancel_releases_the_first_batch)
{
    open_both(5, 0);
    f.stream = fixture_blocking(&f);
    begin(start_each);
    fixture_drop(&f);
    loop_until(&f.loop, others_are_done, NULL);
    loop_settle(&f.loop);
    ck_assert_int_eq(taken, 0);
    ck_assert(!done);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("first_batch");

    suite_add_loops(tests, 0, CASES,
                    the_opening_job_reads_what_will_be_requested, NULL);
    suite_add(tests, a_budget_admits_one, a_cancel_releases_the_first_batch,
              NULL);
    return suite_main("first_batch", NULL, tear_down, tests, NULL);
}
