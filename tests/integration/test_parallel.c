/* SPDX-License-Identifier: Apache-2.0 */
/* Maps and parallel extraction: order, bounds, failures, and the remaining
 * batches when a stream is stopped half-way. */
#include <check.h>
#include <errno.h>
#include <sched.h>
#include <string.h>

#include "loop/loop.h"
#include "stage/limit.h"
#include "support/check_suite.h"
#include "support/fixture.h"

static struct fixture f;

/* A map that runs on workers. */
static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int64_t hold_at;     /* this batch waits until `free_at` has been mapped */
    int64_t free_at;     /* negative: until the test calls map_pass() */
    int64_t fails_at;    /* negative: never */
    bool passed;         /* `free_at` has been mapped */
    bool held;           /* that batch waits now */
    atomic_long running; /* maps in progress */
    atomic_long most;    /* the maximum of `running` */
    atomic_long mapped;  /* maps that have returned */
    atomic_long freed;   /* how often the ctx was freed */
} map = {.lock = PTHREAD_MUTEX_INITIALIZER,
         .changed = PTHREAD_COND_INITIALIZER};

/* The consumer, on the loop thread. */
static int64_t pass_at; /* this batch releases the held one; negative: never */
static int64_t stop_at; /* on_batch returns ECANCELED there; negative: never */

static void map_enter(void)
{
    long now = atomic_fetch_add(&map.running, 1) + 1;
    long most = atomic_load(&map.most);

    while (now > most && !atomic_compare_exchange_weak(&map.most, &most, now))
        ;
    atomic_fetch_add(&map.mapped, 1);
}

static void map_wait(int64_t ordinal)
{
    pthread_mutex_lock(&map.lock);
    if (ordinal == map.free_at)
        map.passed = true;
    map.held = map.held || ordinal == map.hold_at;
    pthread_cond_broadcast(&map.changed);
    if (ordinal == map.hold_at)
        loop_nudge(&f.loop);
    while (ordinal == map.hold_at && !map.passed)
        pthread_cond_wait(&map.changed, &map.lock);
    pthread_mutex_unlock(&map.lock);
}

/* Returns whether the held batch waits, after five batches were delivered. */
static bool is_held(void *ctx)
{
    bool held;

    (void)ctx;
    pthread_mutex_lock(&map.lock);
    held = map.held;
    pthread_mutex_unlock(&map.lock);
    return held && f.got.taken >= 5;
}

static void map_pass(void)
{
    pthread_mutex_lock(&map.lock);
    map.passed = true;
    pthread_cond_broadcast(&map.changed);
    pthread_mutex_unlock(&map.lock);
}

static int map_batch(void *ctx, struct uva_batch *in,
                     struct ArrowDeviceArray *out, struct uva_error *error)
{
    int code = 0;

    (void)ctx;
    map_enter();
    map_wait(in->ordinal);
    ck_assert_str_eq(in->schema->children[0]->format, "l");
    ck_assert_ptr_null(in->stream);
    if (in->ordinal == map.fails_at)
        code = uva_error_set(error, EDOM, "batch %d is odd", (int)in->ordinal);
    else
        uva_array_move(&in->data, out);
    atomic_fetch_sub(&map.running, 1);
    return code;
}

static void map_free(void *ctx)
{
    (void)ctx;
    atomic_fetch_add(&map.freed, 1);
}

static const struct uva_map table = {.batch = map_batch, .free_ctx = map_free};

static void on_batch(struct recording_consumer *c, struct uva_batch *batch)
{
    if (batch->ordinal == pass_at)
        map_pass();
    c->answer = batch->ordinal == stop_at ? ECANCELED : 0;
}

/* Makes a stream of tasks, followed by the map. */
static void set_up(int64_t batches)
{
    fixture_open(&f, batches);
    f.got.on_batch = on_batch;
    map.hold_at = map.free_at = map.fails_at = pass_at = stop_at = -1;
    map.passed = map.held = false;
    map.most = map.mapped = map.freed = 0;
    f.stream = fixture_tasks(&f);
    ck_assert_int_eq(uva_stream_map(f.stream, &table), 0);
}

static void tear_down(void)
{
    fixture_close(&f);
    ck_assert_int_eq(atomic_load(&map.freed), 1);
}

/* ---- cases -------------------------------------------------------------- */

START_TEST(order_is_kept_whoever_finishes_first)
{
    set_up(500);
    map.hold_at = 3;
    map.free_at = 20; /* finishes long before batch 3 */
    uva_stream_parallel(f.stream, &(struct uva_parallel){.workers = 2});
    fixture_run(&f);
    ck_assert_int_eq(f.got.outcome.end, UVA_END_COMPLETE);
    ck_assert_int_eq(f.got.taken, 500);
    ck_assert_int_eq(f.got.sum, 499 * 500 / 2);
    ck_assert(f.got.in_order);
    ck_assert_int_le(atomic_load(&map.most), 2);
}
END_TEST

START_TEST(unordered_batches_come_as_they_finish)
{
    set_up(500);
    map.hold_at = 3;
    pass_at = 20; /* held until batch 20 has been delivered */
    uva_stream_parallel(
        f.stream, &(struct uva_parallel){.workers = 2, .unordered = true});
    fixture_run(&f);
    ck_assert_int_eq(f.got.outcome.end, UVA_END_COMPLETE);
    ck_assert_int_eq(f.got.taken, 500);
    ck_assert_int_eq(f.got.sum, 499 * 500 / 2); /* each of them once */
    ck_assert(!f.got.in_order);
}
END_TEST

/* Batch 2 lets batch 0 finish before batch 3 is taken, in the same turn. */
static void on_batch_between(struct recording_consumer *c,
                             struct uva_batch *batch)
{
    static const int64_t order[] = {1, 2, 3};

    if (c->taken < 3)
        ck_assert_int_eq(batch->ordinal, order[c->taken]);
    on_batch(c, batch);
    if (c->taken == 0)
        c->answer = EAGAIN; /* until all five have been mapped */
    if (batch->ordinal != pass_at)
        return;
    while (atomic_load(&map.running) > 0)
        (void)sched_yield();
    for (int i = 0; i < 100; i++) /* a worker may be about to announce it */
        (void)sched_yield();
}

START_TEST(a_batch_that_finishes_while_others_are_taken_waits_for_its_turn)
{
    set_up(5);
    f.got.on_batch = on_batch_between;
    map.hold_at = 0;
    pass_at = 2;
    uva_stream_parallel(f.stream, &(struct uva_parallel){.workers = 2,
                                                         .window.batches = 5,
                                                         .unordered = true});
    fixture_start(&f);
    while (atomic_load(&map.mapped) < 5) /* then 1, 2 and 3 have been mapped */
        (void)uv_run(&f.loop.uv, UV_RUN_NOWAIT);
    uva__loop_rt(f.loop.runtime)->loop.quantum = 1000;
    uva_stream_resume(f.stream);
    fixture_await(&f);
    ck_assert_int_eq(f.got.taken, 5);
}
END_TEST

START_TEST(one_worker_is_the_default_and_runs_one_map_at_a_time)
{
    set_up(300);
    fixture_run(&f);
    ck_assert_int_eq(f.got.taken, 300);
    ck_assert_int_eq(atomic_load(&map.most), 1);
}
END_TEST

START_TEST(a_window_bounds_what_is_begun_ahead)
{
    struct uva_parallel options = {.workers = 2, .window = {.batches = 6}};

    set_up(1000000);
    uva_stream_parallel(f.stream, &options);
    f.got.appetite = 1;
    fixture_start(&f);
    while (f.got.batches == 0)
        loop_turn(&f.loop);
    loop_settle(&f.loop);
    loop_settle(&f.loop);
    ck_assert_int_eq(f.got.batches, 1);
    ck_assert_int_le(atomic_load(&map.mapped), 7); /* one has been delivered */
    uva_stream_cancel(f.stream, 0, NULL);
    fixture_await(&f);
}
END_TEST

START_TEST(a_failed_map_ends_the_stream_behind_what_was_before_it)
{
    set_up(100);
    map.fails_at = 7;
    uva_stream_parallel(f.stream, &(struct uva_parallel){.workers = 2});
    fixture_run(&f);
    ck_assert_int_eq(f.got.outcome.end, UVA_END_FAILED);
    ck_assert_int_eq(f.got.outcome.error.code, EDOM);
    ck_assert_str_eq(f.got.outcome.error.message, "batch 7 is odd");
    ck_assert_int_eq(f.got.taken, 7);
    ck_assert(f.got.in_order);
}
END_TEST

START_TEST(a_failed_extraction_keeps_its_text)
{
    set_up(100);
    f.fake.extract_at = 4;
    uva_stream_parallel(f.stream, NULL);
    fixture_run(&f);
    ck_assert_int_eq(f.got.outcome.end, UVA_END_FAILED);
    ck_assert_int_eq(f.got.outcome.error.code, EIO);
    ck_assert_str_eq(f.got.outcome.error.message, "tasks: the disk is on fire");
    ck_assert_int_eq(f.got.taken, 4);
}
END_TEST

START_TEST(a_source_error_comes_behind_all_batches)
{
    set_up(100);
    f.fake.fail_at = 30;
    uva_stream_parallel(f.stream, &(struct uva_parallel){.workers = 2});
    fixture_run(&f);
    ck_assert_int_eq(f.got.outcome.end, UVA_END_FAILED);
    ck_assert_str_eq(f.got.outcome.error.message, "tasks: the disk is on fire");
    ck_assert_int_eq(f.got.taken, 30);
}
END_TEST

START_TEST(a_cancel_does_not_wait_for_a_map_that_is_stuck)
{
    set_up(100);
    map.hold_at = 5; /* until the test releases it */
    uva_stream_parallel(f.stream, &(struct uva_parallel){.workers = 2});
    fixture_start(&f);
    loop_until(&f.loop, is_held, NULL);
    uva_stream_cancel(f.stream, EINTR, "enough");
    fixture_await(&f);
    ck_assert_int_eq(f.got.outcome.end, UVA_END_CANCELLED);
    ck_assert_int_eq(f.got.outcome.error.code, EINTR);
    ck_assert_int_eq(atomic_load(&map.freed), 0); /* the map is still in use */
    map_pass();
}
END_TEST

START_TEST(a_consumer_that_has_enough_leaves_nothing_behind)
{
    int64_t k;

    for (k = 0; k < 40; k += 3) {
        set_up(100);
        stop_at = k;
        uva_stream_parallel(
            f.stream,
            &(struct uva_parallel){.workers = 2, .window = {.batches = 5}});
        fixture_run(&f);
        ck_assert_int_eq(f.got.outcome.end, UVA_END_CANCELLED);
        ck_assert_int_eq(f.got.batches, k + 1);
        tear_down();
    }
}
END_TEST

START_TEST(stages_may_follow_each_other)
{
    const struct uva_map again = {.batch = map_batch, .on_loop = true};

    set_up(200);
    uva_stream_parallel(f.stream, &(struct uva_parallel){.workers = 2});
    uva_stream_map(f.stream, &again);
    uva__stream_limit(f.stream, 150);
    uva_stream_parallel(f.stream, &(struct uva_parallel){.workers = 1});
    uva__stream_limit(f.stream, 120);
    fixture_run(&f);
    ck_assert_int_eq(f.got.outcome.end, UVA_END_COMPLETE);
    ck_assert_int_eq(f.got.taken, 120);
    ck_assert(f.got.in_order);
}
END_TEST

static int rename_column(void *ctx, const struct ArrowSchema *in,
                         struct ArrowSchema *out, struct uva_error *error)
{
    (void)ctx;
    (void)error;
    ck_assert_str_eq(in->children[0]->name, "n");
    ck_assert_int_eq(uva_schema_copy(in, out), 0);
    out->children[0]->flags = ARROW_FLAG_NULLABLE;
    return 0;
}

static int64_t flags; /* flags of the column */

static int see_flag(void *ctx, const struct uva_stream_info *info)
{
    (void)ctx;
    flags = info->schema->children[0]->flags;
    return 0;
}

START_TEST(a_map_may_change_the_schema)
{
    struct uva_consumer consumer = recording_table(&f.got);
    const struct uva_map second = {
        .batch = map_batch, .schema = rename_column, .on_loop = true};

    set_up(10);
    uva_stream_map(f.stream, &second);
    consumer.on_schema = see_flag;
    ck_assert_int_eq(uva_stream_for_each(f.stream, &consumer, NULL), 0);
    fixture_await(&f);
    ck_assert_int_eq(flags, ARROW_FLAG_NULLABLE);
    ck_assert_int_eq(f.got.rows, 30);
    ck_assert_int_eq(f.got.taken, 10);
}
END_TEST

static int no_schema(void *ctx, const struct ArrowSchema *in,
                     struct ArrowSchema *out, struct uva_error *error)
{
    (void)ctx;
    (void)in;
    (void)out;
    return uva_error_set(error, ENOTSUP, "cannot map that");
}

START_TEST(a_map_that_refuses_the_schema_fails_the_stream)
{
    const struct uva_map second = {
        .batch = map_batch, .schema = no_schema, .on_loop = true};

    set_up(10);
    uva_stream_map(f.stream, &second);
    fixture_run(&f);
    ck_assert_int_eq(f.got.outcome.end, UVA_END_FAILED);
    ck_assert_int_eq(f.got.outcome.error.code, ENOTSUP);
    ck_assert_str_eq(f.got.outcome.error.message, "cannot map that");
    ck_assert_int_eq(f.got.taken, 0);
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("workers");

    tcase_set_timeout(tc, 60);
    suite_add(tc, order_is_kept_whoever_finishes_first,
              unordered_batches_come_as_they_finish,
              a_batch_that_finishes_while_others_are_taken_waits_for_its_turn,
              one_worker_is_the_default_and_runs_one_map_at_a_time,
              a_window_bounds_what_is_begun_ahead,
              a_failed_map_ends_the_stream_behind_what_was_before_it,
              a_failed_extraction_keeps_its_text,
              a_source_error_comes_behind_all_batches,
              a_cancel_does_not_wait_for_a_map_that_is_stuck,
              a_consumer_that_has_enough_leaves_nothing_behind,
              stages_may_follow_each_other, a_map_may_change_the_schema,
              a_map_that_refuses_the_schema_fails_the_stream, NULL);
    return suite_main("parallel", NULL, tear_down, tc, NULL);
}
