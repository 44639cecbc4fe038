/* SPDX-License-Identifier: Apache-2.0 */
/* Maps and parallel extraction: order, bounds, failures, and what is left when
 * a stream is stopped in the midst of it. */
#include <check.h>
#include <errno.h>
#include <sched.h>
#include <string.h>

#include "loop/loop.h"
#include "support/fake_source.h"
#include "support/loop_rig.h"
#include "uvarrow/uvarrow.h"

/* A source, a map on workers that can be told to wait, a consumer. */
struct scene {
    struct loop_rig rig;
    struct fake_source fake;
    struct uva_stream *stream;
    /* the map, on workers */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int64_t hold_at;      /* this batch waits until `free_at` has passed */
    int64_t free_at;      /* or for ever, until the test says so */
    bool passed;          /* it has */
    bool held;            /* that batch waits now */
    atomic_long mapping;  /* maps that run now */
    atomic_long most;     /* the most at once */
    atomic_long mapped;   /* in all */
    atomic_long freed;    /* times the map's ctx was */
    int64_t map_fails_at; /* negative: never */
    /* the consumer, on the loop */
    int64_t batches, rows, sum, last;
    bool in_order;
    int64_t pass_at; /* frees the batch that is held; negative: never */
    bool resumed;    /* the test has resumed the stream */
    int64_t stop_at; /* on_batch says ECANCELED there; negative: never */
    bool done;
    struct uva_outcome outcome;
};

static void scene_open(struct scene *s, int64_t batches)
{
    memset(s, 0, sizeof(*s));
    loop_rig_open(&s->rig);
    fake_source_init(&s->fake, batches);
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->changed, NULL);
    s->hold_at = s->free_at = s->map_fails_at = s->stop_at = -1;
    s->pass_at = -1;
    s->last = -1;
    s->in_order = true;
}

static void map_enter(struct scene *s)
{
    long now = atomic_fetch_add(&s->mapping, 1) + 1;
    long most = atomic_load(&s->most);

    while (now > most && !atomic_compare_exchange_weak(&s->most, &most, now))
        ;
    atomic_fetch_add(&s->mapped, 1);
}

static void map_wait(struct scene *s, int64_t ordinal)
{
    pthread_mutex_lock(&s->lock);
    if (ordinal == s->free_at)
        s->passed = true;
    s->held = s->held || ordinal == s->hold_at;
    pthread_cond_broadcast(&s->changed);
    if (ordinal == s->hold_at)
        loop_rig_nudge(&s->rig);
    while (ordinal == s->hold_at && !s->passed)
        pthread_cond_wait(&s->changed, &s->lock);
    pthread_mutex_unlock(&s->lock);
}

/* The batch that is to wait does, behind five that were delivered. */
static bool is_held(void *ctx)
{
    struct scene *s = ctx;
    bool held;

    pthread_mutex_lock(&s->lock);
    held = s->held;
    pthread_mutex_unlock(&s->lock);
    return held && s->batches >= 5;
}

static void scene_pass(struct scene *s)
{
    pthread_mutex_lock(&s->lock);
    s->passed = true;
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->lock);
}

static int map_batch(void *ctx, struct uva_batch *in,
                     struct ArrowDeviceArray *out, struct uva_error *error)
{
    struct scene *s = ctx;
    int code = 0;

    map_enter(s);
    map_wait(s, in->ordinal);
    ck_assert_str_eq(in->schema->children[0]->format, "l");
    ck_assert_ptr_null(in->stream);
    if (in->ordinal == s->map_fails_at)
        code = uva_error_set(error, EDOM, "batch %d is odd", (int)in->ordinal);
    else
        uva_array_move(&in->data, out);
    atomic_fetch_sub(&s->mapping, 1);
    return code;
}

static void map_free(void *ctx)
{
    atomic_fetch_add(&((struct scene *)ctx)->freed, 1);
}

static void scene_tasks(struct scene *s)
{
    struct uva_task_source source = fake_source_tasks(&s->fake);
    struct uva_map map = {.batch = map_batch, .free_ctx = map_free, .ctx = s};

    s->stream = uva_stream_from_tasks(s->rig.runtime, &source);
    ck_assert_int_eq(uva_stream_map(s->stream, &map), 0);
}

static int on_batch(void *ctx, struct uva_batch *batch)
{
    struct scene *s = ctx;
    const int64_t *values = batch->data.array.children[0]->buffers[1];

    ck_assert_int_eq(values[0], batch->ordinal * 10);
    s->in_order = s->in_order && batch->ordinal == s->last + 1;
    s->last = batch->ordinal;
    s->batches++;
    s->rows += batch->data.array.length;
    s->sum += values[0];
    if (batch->ordinal == s->pass_at)
        scene_pass(s);
    return batch->ordinal == s->stop_at ? ECANCELED : 0;
}

static void on_done(void *ctx, const struct uva_outcome *outcome)
{
    struct scene *s = ctx;

    s->done = true;
    s->outcome = *outcome;
}

static bool is_done(void *ctx)
{
    return ((struct scene *)ctx)->done;
}

static void scene_start(struct scene *s)
{
    struct uva_consumer consumer = {
        .on_batch = on_batch, .on_done = on_done, .ctx = s};
    struct uva_error error = {0};

    ck_assert_msg(uva_stream_for_each(s->stream, &consumer, &error) == 0, "%s",
                  error.message);
}

static void scene_play(struct scene *s)
{
    scene_start(s);
    loop_rig_until(&s->rig, is_done, s);
}

static void scene_close(struct scene *s)
{
    uva_stream_release(s->stream);
    loop_rig_close_runtime(&s->rig, 0);
    while (faulty_allocator_live(&s->rig.memory) > 0)
        sched_yield(); /* workers may just be leaving */
    ck_assert_int_eq(atomic_load(&s->freed), 1);
    ck_assert_int_eq(atomic_load(&s->fake.freed), 1);
    loop_rig_close(&s->rig);
    fake_source_fini(&s->fake);
    pthread_mutex_destroy(&s->lock);
    pthread_cond_destroy(&s->changed);
}

/* ---- cases -------------------------------------------------------------- */

START_TEST(order_is_kept_whoever_finishes_first)
{
    struct scene s;

    scene_open(&s, 500);
    s.hold_at = 3;
    s.free_at = 20; /* finishes long before batch 3 */
    scene_tasks(&s);
    uva_stream_parallel(s.stream, &(struct uva_parallel){.workers = 2});
    scene_play(&s);
    ck_assert_int_eq(s.outcome.end, UVA_END_COMPLETE);
    ck_assert_int_eq(s.batches, 500);
    ck_assert_int_eq(s.sum, 499 * 500 / 2 * 10);
    ck_assert(s.in_order);
    ck_assert_int_le(atomic_load(&s.most), 2);
    scene_close(&s);
}
END_TEST

START_TEST(unordered_batches_come_as_they_finish)
{
    struct scene s;

    scene_open(&s, 500);
    s.hold_at = 3;
    s.pass_at = 20; /* held until that one has been delivered */
    scene_tasks(&s);
    uva_stream_parallel(
        s.stream, &(struct uva_parallel){.workers = 2, .unordered = true});
    scene_play(&s);
    ck_assert_int_eq(s.outcome.end, UVA_END_COMPLETE);
    ck_assert_int_eq(s.batches, 500);
    ck_assert_int_eq(s.sum, 499 * 500 / 2 * 10); /* each of them once */
    ck_assert(!s.in_order);
    scene_close(&s);
}
END_TEST

/* Batch 2 lets batch 0 finish before batch 3 is taken, in the same turn. */
static int on_batch_between(void *ctx, struct uva_batch *batch)
{
    static const int64_t order[] = {1, 2, 3};
    struct scene *s = ctx;

    if (s->batches == 0 && !s->resumed)
        return EAGAIN;
    if (s->batches < 3)
        ck_assert_int_eq(batch->ordinal, order[s->batches]);
    (void)on_batch(ctx, batch);
    if (batch->ordinal != s->pass_at)
        return 0;
    while (atomic_load(&s->mapping) > 0)
        (void)sched_yield();
    for (int i = 0; i < 100; i++) /* a worker may just be telling that */
        (void)sched_yield();
    return 0;
}

START_TEST(a_batch_that_finishes_while_others_are_taken_waits_for_its_turn)
{
    struct uva_consumer consumer = {.on_batch = on_batch_between,
                                    .on_done = on_done};
    struct scene s;

    scene_open(&s, 5);
    consumer.ctx = &s;
    s.hold_at = 0;
    s.pass_at = 2;
    scene_tasks(&s);
    uva_stream_parallel(s.stream, &(struct uva_parallel){.workers = 2,
                                                         .window.batches = 5,
                                                         .unordered = true});
    ck_assert_int_eq(uva_stream_for_each(s.stream, &consumer, NULL), 0);
    while (atomic_load(&s.mapped) < 5) /* then 1, 2 and 3 are done */
        (void)uv_run(&s.rig.loop, UV_RUN_NOWAIT);
    s.resumed = true;
    uva__loop_rt(s.rig.runtime)->loop.quantum = 1000;
    uva_stream_resume(s.stream);
    loop_rig_until(&s.rig, is_done, &s);
    ck_assert_int_eq(s.batches, 5);
    scene_close(&s);
}
END_TEST

START_TEST(one_worker_is_the_default_and_runs_one_map_at_a_time)
{
    struct scene s;

    scene_open(&s, 300);
    scene_tasks(&s);
    scene_play(&s);
    ck_assert_int_eq(s.batches, 300);
    ck_assert_int_eq(atomic_load(&s.most), 1);
    scene_close(&s);
}
END_TEST

static int pause_always(void *ctx, struct uva_batch *batch)
{
    (void)batch;
    ((struct scene *)ctx)->batches++;
    return EAGAIN;
}

START_TEST(a_window_bounds_what_is_begun_ahead)
{
    struct uva_parallel how = {.workers = 2, .window = {.batches = 6}};
    struct scene s;

    scene_open(&s, 1000000);
    scene_tasks(&s);
    uva_stream_parallel(s.stream, &how);
    ck_assert_int_eq(
        uva_stream_for_each(s.stream,
                            &(struct uva_consumer){.on_batch = pause_always,
                                                   .on_done = on_done,
                                                   .ctx = &s},
                            NULL),
        0);
    while (s.batches == 0)
        (void)uv_run(&s.rig.loop, UV_RUN_ONCE);
    loop_rig_settle(&s.rig);
    loop_rig_settle(&s.rig);
    ck_assert_int_eq(s.batches, 1);
    ck_assert_int_le(atomic_load(&s.mapped), 7); /* one is delivered */
    uva_stream_cancel(s.stream, 0, NULL);
    loop_rig_until(&s.rig, is_done, &s);
    scene_close(&s);
}
END_TEST

START_TEST(a_failed_map_ends_the_stream_behind_what_was_before_it)
{
    struct scene s;

    scene_open(&s, 100);
    s.map_fails_at = 7;
    scene_tasks(&s);
    uva_stream_parallel(s.stream, &(struct uva_parallel){.workers = 2});
    scene_play(&s);
    ck_assert_int_eq(s.outcome.end, UVA_END_FAILED);
    ck_assert_int_eq(s.outcome.error.code, EDOM);
    ck_assert_str_eq(s.outcome.error.message, "batch 7 is odd");
    ck_assert_int_eq(s.batches, 7);
    ck_assert(s.in_order);
    scene_close(&s);
}
END_TEST

START_TEST(a_failed_extraction_keeps_its_text)
{
    struct scene s;

    scene_open(&s, 100);
    s.fake.extract_at = 4;
    scene_tasks(&s);
    uva_stream_parallel(s.stream, NULL);
    scene_play(&s);
    ck_assert_int_eq(s.outcome.end, UVA_END_FAILED);
    ck_assert_int_eq(s.outcome.error.code, EIO);
    ck_assert_str_eq(s.outcome.error.message, "the disk is on fire");
    ck_assert_int_eq(s.batches, 4);
    scene_close(&s);
}
END_TEST

START_TEST(a_source_error_comes_behind_all_batches)
{
    struct scene s;

    scene_open(&s, 100);
    s.fake.fail_at = 30;
    scene_tasks(&s);
    uva_stream_parallel(s.stream, &(struct uva_parallel){.workers = 2});
    scene_play(&s);
    ck_assert_int_eq(s.outcome.end, UVA_END_FAILED);
    ck_assert_str_eq(s.outcome.error.message, "the disk is on fire");
    ck_assert_int_eq(s.batches, 30);
    scene_close(&s);
}
END_TEST

START_TEST(a_cancel_does_not_wait_for_a_map_that_is_stuck)
{
    struct scene s;

    scene_open(&s, 100);
    s.hold_at = 5; /* until the test says so */
    scene_tasks(&s);
    uva_stream_parallel(s.stream, &(struct uva_parallel){.workers = 2});
    scene_start(&s);
    loop_rig_until(&s.rig, is_held, &s);
    uva_stream_cancel(s.stream, EINTR, "enough");
    loop_rig_until(&s.rig, is_done, &s);
    ck_assert_int_eq(s.outcome.end, UVA_END_CANCELLED);
    ck_assert_int_eq(s.outcome.error.code, EINTR);
    ck_assert_int_eq(atomic_load(&s.freed), 0); /* it is still in use */
    scene_pass(&s);
    scene_close(&s);
}
END_TEST

START_TEST(a_consumer_that_has_enough_leaves_nothing_behind)
{
    struct scene s;
    int64_t k;

    for (k = 0; k < 40; k += 3) {
        scene_open(&s, 100);
        s.stop_at = k;
        scene_tasks(&s);
        uva_stream_parallel(
            s.stream,
            &(struct uva_parallel){.workers = 2, .window = {.batches = 5}});
        scene_play(&s);
        ck_assert_int_eq(s.outcome.end, UVA_END_CANCELLED);
        ck_assert_int_eq(s.batches, k + 1);
        scene_close(&s);
    }
}
END_TEST

START_TEST(stages_may_follow_each_other)
{
    struct uva_map again = {.batch = map_batch, .on_loop = true};
    struct scene s;

    scene_open(&s, 200);
    again.ctx = &s;
    scene_tasks(&s);
    uva_stream_parallel(s.stream, &(struct uva_parallel){.workers = 2});
    uva_stream_map(s.stream, &again);
    uva_stream_limit(s.stream, 150);
    uva_stream_parallel(s.stream, &(struct uva_parallel){.workers = 1});
    uva_stream_limit(s.stream, 120);
    scene_play(&s);
    ck_assert_int_eq(s.outcome.end, UVA_END_COMPLETE);
    ck_assert_int_eq(s.batches, 120);
    ck_assert(s.in_order);
    scene_close(&s);
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

static int see_flag(void *ctx, const struct uva_stream_info *info)
{
    ((struct scene *)ctx)->rows = info->schema->children[0]->flags;
    return 0;
}

START_TEST(a_map_may_change_the_schema)
{
    struct uva_map map = {
        .batch = map_batch, .schema = rename_column, .on_loop = true};
    struct scene s;

    scene_open(&s, 10);
    map.ctx = &s;
    scene_tasks(&s);
    uva_stream_map(s.stream, &map);
    ck_assert_int_eq(
        uva_stream_for_each(s.stream,
                            &(struct uva_consumer){.on_schema = see_flag,
                                                   .on_batch = on_batch,
                                                   .on_done = on_done,
                                                   .ctx = &s},
                            NULL),
        0);
    loop_rig_until(&s.rig, is_done, &s);
    ck_assert_int_eq(s.rows, ARROW_FLAG_NULLABLE + 30);
    ck_assert_int_eq(s.batches, 10);
    scene_close(&s);
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
    struct uva_map map = {
        .batch = map_batch, .schema = no_schema, .on_loop = true};
    struct scene s;

    scene_open(&s, 10);
    map.ctx = &s;
    scene_tasks(&s);
    uva_stream_map(s.stream, &map);
    scene_play(&s);
    ck_assert_int_eq(s.outcome.end, UVA_END_FAILED);
    ck_assert_int_eq(s.outcome.error.code, ENOTSUP);
    ck_assert_str_eq(s.outcome.error.message, "cannot map that");
    ck_assert_int_eq(s.batches, 0);
    scene_close(&s);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("parallel");
    TCase *tc = tcase_create("workers");
    SRunner *runner;
    int failed;

    tcase_set_timeout(tc, 60);
    tcase_add_test(tc, order_is_kept_whoever_finishes_first);
    tcase_add_test(tc, unordered_batches_come_as_they_finish);
    tcase_add_test(
        tc, a_batch_that_finishes_while_others_are_taken_waits_for_its_turn);
    tcase_add_test(tc, one_worker_is_the_default_and_runs_one_map_at_a_time);
    tcase_add_test(tc, a_window_bounds_what_is_begun_ahead);
    tcase_add_test(tc, a_failed_map_ends_the_stream_behind_what_was_before_it);
    tcase_add_test(tc, a_failed_extraction_keeps_its_text);
    tcase_add_test(tc, a_source_error_comes_behind_all_batches);
    tcase_add_test(tc, a_cancel_does_not_wait_for_a_map_that_is_stuck);
    tcase_add_test(tc, a_consumer_that_has_enough_leaves_nothing_behind);
    tcase_add_test(tc, stages_may_follow_each_other);
    tcase_add_test(tc, a_map_may_change_the_schema);
    tcase_add_test(tc, a_map_that_refuses_the_schema_fails_the_stream);
    suite_add_tcase(suite, tc);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
