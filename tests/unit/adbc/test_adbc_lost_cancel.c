/* SPDX-License-Identifier: Apache-2.0 */
/* Cancels that a driver ignores or forgets, with a double of it: it is asked
 * again, until its call returns, and before it releases a result for which it
 * may work on. The double's library uses the counts of this program. */
#include <check.h>
#include <errno.h>

#include "support/check_suite.h"
#include "support/fake_driver.h"
#include "support/fixture.h"
#include "uvarrow/adbc.h"

#define FAKE UVA_TEST_BUILD "/tests/drivers/libadbc_driver_fake.so"

static struct fixture f;
static struct uva_adbc_pool *pool;
static struct recording_consumer got;
static struct uva_stream *stream;
static struct fake_query query;

static void set_up(void)
{
    fake_driver_reset();
    fixture_open(&f, 0);
    ck_assert_int_eq(uva_adbc_pool_new(f.loop.runtime,
                                       &(struct uva_adbc_pool_options){
                                           .driver = FAKE, .connections = 1},
                                       &pool, NULL),
                     0);
}

static void tear_down(void)
{
    fake_driver_go();
    uva_adbc_pool_release(pool);
    fixture_close(&f);
    ck_assert_int_eq(atomic_load(&fake_driver.results), 0);
    ck_assert_int_eq(atomic_load(&fake_driver.statements), 0);
    ck_assert_int_eq(atomic_load(&fake_driver.connections), 0);
    ck_assert_int_eq(atomic_load(&fake_driver.wrong), 0);
}

static void start(const char *sql)
{
    stream = uva_stream_from_query(pool, &(struct uva_adbc_query){.sql = sql});
    recording_start(&got, stream);
}

static void end(void)
{
    recording_await_done(&got, &f.loop);
    uva_stream_release(stream);
}

static void play(const char *sql)
{
    recording_init(&got);
    start(sql);
    end();
}

static void cancel(void)
{
    uva_stream_cancel(stream, 0, NULL);
    end();
    recording_ended(&got, UVA_END_CANCELLED, ECANCELED, "");
}

static bool is(void *ctx)
{
    const long *const counts = ctx;

    loop_nudge(&f.loop);
    return atomic_load(&fake_driver.blocked) == counts[0] &&
           atomic_load(&fake_driver.cancels) >= counts[1];
}

/* Waits until so many calls block, after so many cancels. */
static void await(long blocked, long cancels)
{
    loop_until(&f.loop, is, (long[]){blocked, cancels});
}

static void plays_on(void)
{
    play("rows 1");
    recording_ended(&got, UVA_END_COMPLETE, 0, "");
}

START_TEST(a_cancel_that_is_ignored_is_repeated)
{
    recording_init(&got);
    start(_i == 0 ? "execute ignores" : "batch 1 ignores");
    await(1, 0);
    cancel();
    await(0, 2);
    plays_on();
}
END_TEST

/* The execute returns before the cancel is repeated. */
START_TEST(a_cancel_that_is_forgotten_is_repeated_after_the_execute)
{
    fake_driver.reads_ahead = fake_driver.executes_late = true;
    recording_init(&got);
    start("rows 1000");
    await(1, 0);
    cancel();
    await(1, 1);
    fake_driver_go();
    await(0, 2);
    plays_on();
}
END_TEST

static bool is_paused(void *ctx)
{
    (void)ctx;
    return got.taken == 1;
}

/* No call was there to be cancelled: the window is full. */
START_TEST(a_result_that_is_left_is_cancelled)
{
    const struct uva_window one = {.batches = 1};

    fake_driver.reads_ahead = true;
    recording_init(&got);
    got.appetite = 1;
    stream = uva_stream_from_query(
        pool, &(struct uva_adbc_query){.sql = "batch 1000", .window = one});
    recording_start(&got, stream);
    loop_until(&f.loop, is_paused, NULL);
    cancel();
    await(0, 1);
    plays_on();
}
END_TEST

START_TEST(a_result_that_is_over_is_not)
{
    fake_driver.reads_ahead = true;
    play("rows 3");
    recording_ended(&got, UVA_END_COMPLETE, 0, "");
    play("batch 1 fails");
    recording_ended(&got, UVA_END_FAILED, EIO, "division");
    ck_assert_int_eq(atomic_load(&fake_driver.cancels), 0);
}
END_TEST

/* Without a pool, which would know the driver. */
START_TEST(a_statement_of_the_user_is_asked_again)
{
    fake_driver.reads_ahead = fake_driver.executes_late = true;
    fake_driver_open(&query, "rows 1000");
    recording_init(&got);
    stream =
        uva_stream_from_adbc(f.loop.runtime, &query.statement,
                             &(struct uva_adbc_source){
                                 .free_ctx = fake_driver_close, .ctx = &query});
    recording_start(&got, stream);
    await(1, 0);
    cancel();
    await(1, 1);
    fake_driver_go();
    await(0, 2);
}
END_TEST

int main(void)
{
    TCase *tc = suite_tests(
        "lost", a_cancel_that_is_forgotten_is_repeated_after_the_execute,
        a_result_that_is_left_is_cancelled, a_result_that_is_over_is_not,
        a_statement_of_the_user_is_asked_again, NULL);

    suite_add_loops(tc, 0, 2, a_cancel_that_is_ignored_is_repeated, NULL);
    return suite_main("adbc_lost_cancel", set_up, tear_down, tc, NULL);
}
