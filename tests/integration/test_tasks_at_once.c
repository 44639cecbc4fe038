/* SPDX-License-Identifier: Apache-2.0 */
/* Items whose data is made where they were found, alone and among others: the
 * thread, the order, failures, metadata, sizes, maps, and memory that runs out.
 */
#include <check.h>
#include <errno.h>
#include <pthread.h>
#include <string.h>

#include "support/check_suite.h"
#include "support/fixture.h"
#include "uvarrow/arrow.h"

enum { BATCHES = 30 };

static struct fixture f;
static struct uva_task_source real; /* the fake's */
static pthread_t finder;            /* the thread of the last `next` */
static atomic_long moved_away;      /* items made on another thread */
static bool gives_no_array;

static void set_up(void)
{
    fixture_open(&f, BATCHES);
    f.fake.at_once = 1;
    atomic_store(&moved_away, 0);
    gives_no_array = false;
}

static void tear_down(void)
{
    fixture_close(&f);
}

static int next(void *ctx, void **item, const char **metadata,
                struct uva_error *error)
{
    finder = pthread_self();
    return real.next(ctx, item, metadata, error);
}

static int extract(void *ctx, void *item, struct ArrowDeviceArray *out,
                   struct uva_error *error)
{
    int code;

    if (f.fake.at_once == 1 && !pthread_equal(finder, pthread_self()))
        atomic_fetch_add(&moved_away, 1);
    code = real.extract(ctx, item, out, error);
    if (gives_no_array)
        uva_array_release(out);
    return code;
}

static struct uva_stream *make(void)
{
    struct uva_task_source source = real = fake_source_tasks(&f.fake);

    source.next = next;
    source.extract = extract;
    f.contexts++;
    return uva_stream_from_tasks(f.loop.runtime, &source);
}

static void run(int64_t batches)
{
    ck_assert_int_eq(fixture_run(&f), 0);
    ck_assert_int_eq(f.got.taken, batches);
    ck_assert(f.got.in_order);
    ck_assert_int_eq(f.got.wrong, 0);
    ck_assert_int_eq(f.got.rows, batches * f.fake.rows);
}

static struct uva_stage_stats stage_at(size_t at)
{
    struct uva_stage_stats stages[4];
    size_t count = 4;

    ck_assert_int_eq(uva_stream_get_stats(f.stream, stages, &count), 0);
    ck_assert_uint_lt(at, count);
    return stages[at];
}

START_TEST(data_is_made_by_the_thread_that_finds_it)
{
    f.stream = make();
    run(BATCHES);
    ck_assert_int_eq(atomic_load(&moved_away), 0);
    ck_assert_int_eq(stage_at(0).rows, BATCHES * f.fake.rows);
    ck_assert_int_eq(stage_at(0).batches, BATCHES);
}
END_TEST

/* Every third item, or every second one. */
START_TEST(the_order_is_kept_among_others)
{
    const struct uva_parallel parallel = {.workers = 3, .window.batches = 8};

    f.fake.at_once = 2 + _i % 2;
    f.stream = make();
    if (_i >= 2)
        ck_assert_int_eq(uva_stream_parallel(f.stream, &parallel), 0);
    run(BATCHES);
}
END_TEST

START_TEST(each_comes_once_without_an_order)
{
    const struct uva_parallel parallel = {.workers = 2, .unordered = true};

    f.fake.at_once = 1 + _i;
    f.stream = make();
    ck_assert_int_eq(uva_stream_parallel(f.stream, &parallel), 0);
    ck_assert_int_eq(fixture_run(&f), 0);
    ck_assert_int_eq(f.got.taken, BATCHES);
    ck_assert_int_eq(f.got.sum, BATCHES * (BATCHES - 1) / 2);
}
END_TEST

static atomic_long mapped;

static int map_batch(void *ctx, struct uva_batch *in,
                     struct ArrowDeviceArray *out, struct uva_error *error)
{
    (void)ctx;
    (void)error;
    if (!pthread_equal(f.fake.maker, pthread_self()))
        atomic_fetch_add(&mapped, 1);
    uva_array_move(&in->data, out);
    return 0;
}

/* A map is expensive by itself: it does not run on the loop thread. */
START_TEST(a_map_runs_on_a_worker_all_the_same)
{
    const struct uva_map map = {.batch = map_batch};

    atomic_store(&mapped, 0);
    f.stream = make();
    ck_assert_int_eq(uva_stream_map(f.stream, &map), 0);
    run(BATCHES);
    ck_assert_int_eq(atomic_load(&mapped), BATCHES);
}
END_TEST

START_TEST(a_failure_comes_behind_the_batches_before_it)
{
    f.fake.at_once = 1 + _i;
    f.fake.extract_at = 6;
    f.fake.fail_code = EDOM;
    f.fake.fail_text = "it is odd";
    f.stream = make();
    ck_assert_int_eq(fixture_run(&f), EDOM);
    recording_ended(&f.got, UVA_END_FAILED, EDOM, "tasks: it is odd");
    ck_assert_int_eq(strncmp(f.got.outcome.error.message, "tasks: it", 9), 0);
    ck_assert_int_eq(f.got.taken, 6);
}
END_TEST

START_TEST(no_array_is_a_failure)
{
    gives_no_array = true;
    f.stream = make();
    ck_assert_int_eq(fixture_run(&f), EPROTO);
    recording_ended(&f.got, UVA_END_FAILED, EPROTO, "gave no array");
}
END_TEST

START_TEST(metadata_comes_with_the_batch)
{
    const struct uva_pair pairs[] = {{.key = "a", .value = "b"}, {0}};
    char block[64];
    size_t size = sizeof(block);

    ck_assert_int_eq(uva_metadata_encode(pairs, block, &size), 0);
    f.fake.metadata = block;
    f.stream = make();
    run(BATCHES);
    ck_assert_int_eq(atomic_load(&f.got.tagged), BATCHES);
}
END_TEST

START_TEST(an_item_counts_at_least_its_size)
{
    const int64_t rows = (int64_t)sizeof(int64_t) * f.fake.rows;

    f.fake.item_size = _i == 0 ? 1 : 1000000;
    f.stream = make();
    run(BATCHES);
    ck_assert_int_eq(stage_at(1).bytes,
                     BATCHES * (_i == 0 ? rows : f.fake.item_size));
}
END_TEST

/* What was made and is not wanted is released: the fixture checks that. */
START_TEST(a_stream_that_ends_early_leaves_nothing_behind)
{
    f.fake.at_once = 1 + _i % 2;
    f.stream = make();
    if (_i >= 2)
        ck_assert_int_eq(
            uva_stream_parallel(f.stream, &(struct uva_parallel){.workers = 2}),
            0);
    f.got.batch_code = ECANCELED;
    f.got.batch_from = 3;
    f.got.batch_to = 4;
    (void)fixture_run(&f);
    ck_assert_int_eq(f.got.taken, 3);
}
END_TEST

/* A consumer that pauses, so that batches wait before the stage, and is
 * dropped. */
START_TEST(a_drop_releases_what_waits)
{
    f.fake.at_once = 1 + _i;
    f.got.appetite = 2;
    f.stream = make();
    ck_assert_int_eq(uva_stream_parallel(
                         f.stream, &(struct uva_parallel){.workers = 1,
                                                          .window.batches = 1}),
                     0);
    fixture_start(&f);
    recording_await(&f.got, &f.loop, 2);
    loop_settle(&f.loop);
    fixture_drop(&f);
}
END_TEST

START_TEST(every_allocation_may_fail)
{
    const struct uva_pair pairs[] = {
        {.key = "a long key, for which a slot of a batch has no room of its "
                "own, so that its metadata is an allocation",
         .value = "b"},
        {0}};
    char block[256];
    bool failed = true;
    size_t size = sizeof(block);

    ck_assert_int_eq(uva_metadata_encode(pairs, block, &size), 0);
    for (long k = 1; failed; k++) {
        struct uva_error error = {0};
        int code;

        if (k > 1) {
            tear_down();
            set_up();
        }
        f.fake.metadata = block;
        loop_fail(&f.loop, k);
        f.stream = make();
        code = fixture_try(&f, &error);
        if (code == 0)
            code = fixture_await(&f);
        failed = faulty_allocator_has_failed(&f.loop.memory);
        loop_fail(&f.loop, 0);
        ck_assert(code == 0 || (failed && code == ENOMEM));
        ck_assert(code != 0 || f.got.taken == BATCHES);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("tasks_at_once");
    TCase *all = suite_case(suite, "tasks_at_once", set_up, tear_down);

    suite_add_loops(all, 0, 2, each_comes_once_without_an_order,
                    a_failure_comes_behind_the_batches_before_it,
                    an_item_counts_at_least_its_size,
                    a_drop_releases_what_waits, NULL);
    suite_add_loops(all, 0, 4, the_order_is_kept_among_others,
                    a_stream_that_ends_early_leaves_nothing_behind, NULL);
    suite_add(all, data_is_made_by_the_thread_that_finds_it,
              a_map_runs_on_a_worker_all_the_same, no_array_is_a_failure,
              metadata_comes_with_the_batch, every_allocation_may_fail, NULL);
    return suite_run(suite);
}
