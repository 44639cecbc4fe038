/* SPDX-License-Identifier: Apache-2.0 */
/* A pool for which no thread can be had to connect, with the double of a
 * driver: the query fails, where its own worker once connected without any
 * limit. The test replaces uva_runtime_run() at link time. */
#define _GNU_SOURCE
#include <check.h>
#include <errno.h>
#include <time.h>

#include "adbc/known.h"
#include "support/check_suite.h"
#include "support/fake_driver.h"
#include "support/fixture.h"
#include "uvarrow/adbc.h"

#define FAKE UVA_TEST_BUILD "/tests/drivers/libadbc_driver_fake.so"

static struct fixture f;
static struct uva_adbc_pool *pool;
static struct recording_consumer got;
static int refusal; /* of uva_runtime_run(); 0: it runs */

int __real_uva_runtime_run(struct uva_runtime *runtime, enum uva_lane lane,
                           uva_call_fn *work, uva_call_fn *done, void *ctx);
int __wrap_uva_runtime_run(struct uva_runtime *runtime, enum uva_lane lane,
                           uva_call_fn *work, uva_call_fn *done, void *ctx);

int __wrap_uva_runtime_run(struct uva_runtime *runtime, enum uva_lane lane,
                           uva_call_fn *work, uva_call_fn *done, void *ctx)
{
    return refusal != 0
               ? refusal
               : __real_uva_runtime_run(runtime, lane, work, done, ctx);
}

static bool answers; /* the driver can be asked whether a connection is alive */

const struct uva__known *
__wrap_uva__known_find(struct AdbcConnection *connection);

const struct uva__known *
__wrap_uva__known_find(struct AdbcConnection *connection)
{
    static const struct uva__known known = {.reset = UVA__RESET_CLOSE},
                                   asked = {.reset = UVA__RESET_CLOSE,
                                            .traits = UVA__KNOWN_ANSWERS};

    (void)connection;
    return answers ? &asked : &known;
}

static void set_up(void)
{
    const struct uva_adbc_pool_options options = {.driver = FAKE,
                                                  .keeps_session = true};

    refusal = 0;
    answers = false;
    fake_driver_reset();
    fixture_open(&f, 0);
    ck_assert_int_eq(uva_adbc_pool_new(f.loop.runtime, &options, &pool, NULL),
                     0);
}

static void tear_down(void)
{
    uva_adbc_pool_release(pool);
    fixture_close(&f);
    ck_assert_int_eq(atomic_load(&fake_driver.statements), 0);
    ck_assert_int_eq(atomic_load(&fake_driver.connections), 0);
    ck_assert_int_eq(atomic_load(&fake_driver.databases), 0);
    ck_assert_int_eq(atomic_load(&fake_driver.wrong), 0);
}

static void play(void)
{
    struct uva_stream *stream;

    recording_init(&got);
    stream =
        uva_stream_from_query(pool, &(struct uva_adbc_query){.sql = "rows 1"});
    recording_start(&got, stream);
    recording_await_done(&got, &f.loop);
    uva_stream_release(stream);
}

START_TEST(a_query_fails_that_gets_no_thread_to_connect)
{
    struct uva_adbc_pool_stats stats;

    refusal = _i == 0 ? ENOMEM : ESHUTDOWN;
    play();
    recording_ended(&got, UVA_END_FAILED, refusal, "no thread can connect");
    ck_assert_int_eq(atomic_load(&fake_driver.connections), 0);
    uva_adbc_pool_get_stats(pool, &stats);
    ck_assert_int_eq(stats.connections_used, 0);
    refusal = 0;
    play();
    recording_ended(&got, UVA_END_COMPLETE, 0, "");
}
END_TEST

static bool is_idle(void *ctx)
{
    struct uva_adbc_pool_stats stats;

    (void)ctx;
    loop_nudge(&f.loop);
    uva_adbc_pool_get_stats(pool, &stats);
    return stats.connections_idle == 1;
}

/* An idle connection needs none. One that has rested, which another worker
 * would ask whether it is alive, is used without that. */
START_TEST(a_connection_that_is_idle_is_used_without_a_thread)
{
    answers = _i == 1;
    play();
    recording_ended(&got, UVA_END_COMPLETE, 0, "");
    loop_until(&f.loop, is_idle, NULL);
    if (answers)
        (void)nanosleep(&(struct timespec){.tv_nsec = 110000000}, NULL);
    refusal = ENOMEM;
    play();
    recording_ended(&got, UVA_END_COMPLETE, 0, "");
    refusal = 0;
}
END_TEST

int main(void)
{
    TCase *all = tcase_create("pool");

    suite_add_loops(all, 0, 2, a_query_fails_that_gets_no_thread_to_connect,
                    a_connection_that_is_idle_is_used_without_a_thread, NULL);
    return suite_main("adbc_no_thread", set_up, tear_down, all, NULL);
}
