/* SPDX-License-Identifier: Apache-2.0 */
/* A real driver's stream on a loop: read whole, cancelled and dropped in the
 * midst. What is in the rows is compared by test_to_blocking_sqlite and by
 * test_query_tool. */
#include <check.h>
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "support/adbc_query.h"
#include "support/loop_rig.h"
#include "uvarrow/uvarrow.h"

#define DATABASE UVA_TEST_BUILD "/test_query_tool/flights.db"

enum { ROWS = 336776, SKIP = 77 };

struct scene {
    struct loop_rig rig;
    struct adbc_query query;
    struct uva_stream *stream;
    int64_t rows, stop_at;         /* stop_at: negative: never */
    void (*stop)(struct scene *s); /* at that many rows */
    bool silent;
    int done;
    struct uva_outcome outcome;
    atomic_long freed; /* the driver's things were, after its stream */
};

static void build_database(void)
{
    ck_assert_int_eq(system(UVA_TEST_PYTHON
                            " " UVA_TEST_SOURCE
                            "/tools/flights.py " UVA_TEST_FLIGHTS " " DATABASE),
                     0);
}

static int query_open(void *ctx, struct ArrowArrayStream *out,
                      struct uva_error *error)
{
    struct scene *s = ctx;

    (void)error;
    adbc_query_open(&s->query, DATABASE, "SELECT * FROM flights", out);
    return 0;
}

static void query_free(void *ctx)
{
    struct scene *s = ctx;

    adbc_query_close(&s->query);
    atomic_fetch_add(&s->freed, 1);
}

static int on_batch(void *ctx, struct uva_batch *batch)
{
    struct scene *s = ctx;

    ck_assert(!s->silent);
    s->rows += batch->data.array.length;
    if (s->stop_at >= 0 && s->rows >= s->stop_at)
        s->stop(s);
    return 0;
}

static void on_done(void *ctx, const struct uva_outcome *outcome)
{
    struct scene *s = ctx;

    ck_assert(!s->silent);
    s->done++;
    s->outcome = *outcome;
}

static bool is_over(void *ctx)
{
    struct scene *s = ctx;

    return s->done > 0 || s->silent;
}

static void scene_play(struct scene *s, int64_t stop_at,
                       void (*stop)(struct scene *s))
{
    const struct uva_blocking_source how = {
        .open = query_open, .free_ctx = query_free, .ctx = s};
    const struct uva_consumer consumer = {
        .on_batch = on_batch, .on_done = on_done, .ctx = s};

    memset(s, 0, sizeof(*s));
    s->stop_at = stop_at;
    s->stop = stop;
    loop_rig_open(&s->rig);
    s->stream = uva_stream_from_blocking_cpu(s->rig.runtime, NULL, &how);
    ck_assert_int_eq(uva_stream_for_each(s->stream, &consumer, NULL), 0);
    loop_rig_until(&s->rig, is_over, s);
}

static void scene_close(struct scene *s)
{
    uva_stream_release(s->stream);
    loop_rig_close_runtime(&s->rig, 0);
    while (atomic_load(&s->freed) == 0 ||
           faulty_allocator_live(&s->rig.memory) > 0)
        sched_yield(); /* a worker may still be inside the driver */
    loop_rig_close(&s->rig);
}

START_TEST(a_whole_table_arrives)
{
    struct scene s;

    scene_play(&s, -1, NULL);
    ck_assert_int_eq(s.outcome.end, UVA_END_COMPLETE);
    ck_assert_int_eq(s.rows, ROWS);
    ck_assert_int_eq(atomic_load(&s.freed), 1); /* before the end was told */
    scene_close(&s);
}
END_TEST

static void cancel(struct scene *s)
{
    uva_stream_cancel(s->stream, 0, "seen enough");
}

START_TEST(a_cancel_in_the_midst_ends_it)
{
    struct scene s;

    scene_play(&s, 20000 * (_i + 1), cancel);
    ck_assert_int_eq(s.outcome.end, UVA_END_CANCELLED);
    ck_assert_int_lt(s.rows, ROWS);
    scene_close(&s);
}
END_TEST

static void drop(struct scene *s)
{
    uva_stream_drop(s->stream);
    s->stream = NULL;
    s->silent = true;
}

START_TEST(a_drop_in_the_midst_is_silent_and_frees_the_driver)
{
    struct scene s;

    scene_play(&s, 20000 * (_i + 1), drop);
    scene_close(&s);
    ck_assert_int_eq(s.done, 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("adbc");
    TCase *tc = tcase_create("sqlite");
    SRunner *runner;
    int failed;

    if (!adbc_query_is_possible())
        return SKIP;
    tcase_set_timeout(tc, 100);
    tcase_add_unchecked_fixture(tc, build_database, NULL);
    tcase_add_test(tc, a_whole_table_arrives);
    tcase_add_loop_test(tc, a_cancel_in_the_midst_ends_it, 0, 4);
    tcase_add_loop_test(tc, a_drop_in_the_midst_is_silent_and_frees_the_driver,
                        0, 4);
    suite_add_tcase(suite, tc);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
