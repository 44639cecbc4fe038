/* SPDX-License-Identifier: Apache-2.0 */
/* How uva_stream_from_partitions() reads: again after a failure, behind the
 * rows that came; with limits of time; to the end of the others; and under
 * which names. The partitions are texts of the fake driver. */
#define _GNU_SOURCE
#include <check.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>

#include "support/check_suite.h"
#include "support/fake_driver.h"
#include "support/faulty_libc.h"
#include "support/fixture.h"
#include "uvarrow/adbc.h"

#define FAKE UVA_TEST_BUILD "/tests/drivers/libadbc_driver_fake.so"

enum { MOST = 8 };

static struct fixture f;
static struct uva_adbc_pool *pool;

static void set_up(void)
{
    fake_driver_reset();
    fixture_open(&f, 0);
    ck_assert_int_eq(uva_adbc_pool_new(f.loop.runtime,
                                       &(struct uva_adbc_pool_options){
                                           .driver = FAKE, .connections = 4},
                                       &pool, NULL),
                     0);
}

static void tear_down(void)
{
    uva_adbc_pool_release(pool);
    pool = NULL;
    fixture_close(&f);
    ck_assert_int_eq(atomic_load(&fake_driver.results), 0);
    ck_assert_int_eq(atomic_load(&fake_driver.connections), 0);
    ck_assert_int_eq(atomic_load(&fake_driver.wrong), 0);
}

static void never(struct ArrowArray *array)
{
    (void)array; /* it is on the stack */
}

/* Makes a stream of these texts; the last one is NULL. */
static struct uva_stream *stream_of(const char *const *texts,
                                    const struct uva_adbc_partitions *options)
{
    int32_t offsets[MOST + 1] = {0};
    char data[512] = "";
    const void *buffers[] = {NULL, offsets, data}, *nothing[] = {NULL};
    struct ArrowArray column = {
        .n_buffers = 3, .buffers = buffers, .release = never};
    struct ArrowArray *child = &column;
    struct ArrowArray batch = {.n_buffers = 1,
                               .n_children = 1,
                               .buffers = nothing,
                               .children = &child,
                               .release = never};

    for (int i = 0; texts[i] != NULL; i++) {
        strcat(data, texts[i]);
        offsets[i + 1] = (int32_t)strlen(data);
        column.length = batch.length = i + 1;
    }
    return uva_stream_from_partitions(pool, &batch, options);
}

/* Reads them to the end; gives the code. */
static int play(const char *const *texts,
                const struct uva_adbc_partitions *options)
{
    fixture_release(&f);
    recording_init(&f.got);
    f.stream = stream_of(texts, options);
    fixture_start(&f);
    recording_await_done(&f.got, &f.loop);
    f.got.wrong = 0; /* it expects the rows of one stream */
    return f.got.outcome.error.code;
}

static void text_is(const char *expected)
{
    ck_assert_str_eq(f.got.outcome.error.message, expected);
}

/* ---- again --------------------------------------------------------------- */

static const char *const DIES[] = {"rows 2", "batch 3 dies", NULL};

START_TEST(a_failure_is_tried_again_behind_the_rows_that_came)
{
    const struct uva_adbc_partitions options = {.retries = 2};

    atomic_store(&fake_driver.deaths, _i);
    ck_assert_int_eq(play(DIES, &options), 0);
    ck_assert_int_eq(f.got.rows, 2 + 3);
}
END_TEST

START_TEST(a_failure_beyond_the_retries_is_the_end)
{
    const struct uva_adbc_partitions options = {.retries = _i};

    atomic_store(&fake_driver.deaths, _i + 1);
    ck_assert_int_eq(play(DIES, &options), EIO);
    ck_assert_ptr_nonnull(
        strstr(f.got.outcome.error.message, "partition 2 of 2: "));
    ck_assert_ptr_nonnull(strstr(f.got.outcome.error.message, "server closed"));
    ck_assert_int_eq(atomic_load(&fake_driver.deaths), 0);
}
END_TEST

START_TEST(a_pool_may_be_released_before_it_is_tried_again)
{
    const struct uva_adbc_partitions options = {.retries = 1};

    atomic_store(&fake_driver.deaths, 1);
    f.stream = stream_of(DIES, &options);
    uva_adbc_pool_release(pool);
    pool = NULL;
    fixture_start(&f);
    recording_await_done(&f.got, &f.loop);
    f.got.wrong = 0;
    ck_assert_int_eq(f.got.outcome.error.code, 0);
    ck_assert_int_eq(f.got.rows, 2 + 3);
}
END_TEST

/* ---- others ---------------------------------------------------------------
 */

START_TEST(others_may_be_finished_first)
{
    static const char *const texts[] = {"batch 1 fails", "rows 4", "rows 5",
                                        NULL};
    const struct uva_adbc_partitions options = {.keep_going = true};

    ck_assert_int_eq(play(texts, &options), EIO);
    text_is("partition 1 of 3: partition: the query fails: division by zero");
    ck_assert_int_eq(f.got.rows, 1 + 4 + 5);
}
END_TEST

START_TEST(each_has_limits_of_time)
{
    static const char *const texts[] = {"rows 1", "batch 1 stops", NULL};
    const struct uva_adbc_partitions options = {.timeout.between_ms = 300};

    fake_driver.cancels_connections = true;
    ck_assert_int_eq(play(texts, &options), ETIMEDOUT);
    text_is("partition 2 of 2: timeout: no batch came within 300 ms "
            "(between_ms); partition waits for its source");
    while (!atomic_load(&fake_driver.goes)) /* by another thread */
        (void)sched_yield();
}
END_TEST

START_TEST(a_window_is_that_of_each)
{
    static const char *const texts[] = {"rows 20", "rows 20", NULL};
    const struct uva_adbc_partitions options = {.window.batches = 1};
    struct uva_stage_stats stages[3];
    size_t count = 3;

    ck_assert_int_eq(play(texts, &options), 0);
    ck_assert_int_eq(f.got.rows, 40);
    ck_assert_int_eq(uva_stream_get_stats(f.stream, stages, &count), 0);
    ck_assert_uint_eq(count, 3);
    for (int i = 0; i < 2; i++)
        ck_assert_int_le(stages[i].queued_max, 1);
    ck_assert_int_le(stages[2].queued_max, 2);
}
END_TEST

static bool are_blocked(void *count)
{
    loop_nudge(&f.loop);
    return atomic_load(&fake_driver.blocked) == *(long *)count;
}

START_TEST(so_many_are_read_at_one_time)
{
    static const char *const texts[] = {"batch 1 waits",
                                        "batch 1 waits",
                                        "batch 1 waits",
                                        "batch 1 waits",
                                        "batch 1 waits",
                                        "batch 1 waits",
                                        NULL};
    static const int32_t asked[] = {0, 1, 3, 9};
    long counts[] = {4, 1, 3, 4}; /* the pool has four connections */
    const struct uva_adbc_partitions options = {.open_at_once = asked[_i]};
    struct uva_adbc_pool_stats stats;

    f.stream = stream_of(texts, &options);
    fixture_start(&f);
    loop_until(&f.loop, are_blocked, &counts[_i]);
    uva_adbc_pool_get_stats(pool, &stats);
    ck_assert_int_eq(stats.connections_used, counts[_i]);
    ck_assert_int_eq(stats.queries_waiting, 0);
    fake_driver_go();
    recording_await_done(&f.got, &f.loop);
    f.got.wrong = 0;
    ck_assert_int_eq(f.got.outcome.error.code, 0);
    ck_assert_int_eq(f.got.rows, 6);
}
END_TEST

/* ---- names ----------------------------------------------------------------
 */

/* Two locations: messages 1a (endpoint) of 12 (location) of 0a (URI). */
#define AT(host) "\x12\x0c\x0a\x0agrpc://" host

START_TEST(they_are_named_and_have_their_hosts)
{
    static const char *const texts[] = {"rows 1",
                                        "\x1a\x1c" AT("a:1") AT("b:2"), NULL};
    struct uva_stage_stats stages[4];
    size_t count = 4;

    f.stream = stream_of(texts, NULL);
    ck_assert_int_eq(uva_stream_get_stats(f.stream, stages, &count), 0);
    ck_assert_uint_eq(count, 3);
    ck_assert_str_eq(stages[0].stream, "partition 1 of 2");
    ck_assert_str_eq(stages[1].stream, "partition 2 of 2 (a:1 or b:2)");
    ck_assert_ptr_null(stages[2].stream);
}
END_TEST

/* ---- options --------------------------------------------------------------
 */

static void refused(const struct uva_adbc_partitions *options, const char *text)
{
    struct uva_stream *stream = stream_of(DIES, options);
    struct uva_error error;

    ck_assert_int_eq(uva_stream_status(stream, &error), EINVAL);
    ck_assert_ptr_nonnull(strstr(error.message, text));
    uva_stream_release(stream);
}

START_TEST(options_are_checked)
{
    static char text[] = "not zero";
    static const struct uva_adbc_partitions bad[] = {
        {.retries = -1},
        {.open_at_once = -1},
        {.reserved = {NULL, NULL, NULL, (void *)text}},
        {.window.batches = -1},
        {.timeout.open_ms = -1}};
    static const char *const texts[] = {"`retries`", "`open_at_once`",
                                        "reserved", "window", "open_ms"};

    refused(&bad[_i], texts[_i]);
}
END_TEST

/* ---- memory ---------------------------------------------------------------
 */

/* Fails allocation number `k`; returns whether there was one. */
static bool fails_at(int k, long deaths)
{
    const struct uva_adbc_partitions options = {.retries = 1,
                                                .timeout.open_ms = 100000};
    bool failed;

    fixture_release(&f);
    recording_init(&f.got);
    atomic_store(&fake_driver.deaths, deaths);
    faulty_libc_fail(k);
    f.stream = stream_of(DIES, &options);
    if (fixture_try(&f, NULL) == 0)
        recording_await_done(&f.got, &f.loop);
    f.got.wrong = 0;
    failed = faulty_libc_stop();
    if (f.got.outcome.end == UVA_END_COMPLETE && f.got.rows > 0)
        ck_assert_int_eq(f.got.rows, 2 + 3); /* each of them once */
    return failed;
}

START_TEST(every_allocation_may_fail)
{
    int k = 1;

    while (fails_at(k, 0))
        ck_assert_int_lt(k++, 1000);
    ck_assert_int_eq(f.got.outcome.error.code, 0);
}
END_TEST

/* Each takes the delay of a retry; so each test has a third of them. */
START_TEST(allocations_of_another_attempt_may_fail)
{
    int k = 30 + _i;

    while (fails_at(k, 1))
        ck_assert_int_lt(k += 3, 1000);
    ck_assert_int_gt(k, 30 + _i);
    ck_assert_int_eq(f.got.outcome.error.code, 0);
}
END_TEST

/* Another attempt counts the rows that came in a block of its own, on the loop.
 */
START_TEST(without_memory_for_the_rows_that_came_it_ends)
{
    char loop[16];
    bool seen = false;
    int k = 1;

    ck_assert_int_eq(pthread_getname_np(pthread_self(), loop, sizeof(loop)), 0);
    faulty_libc_only_thread(loop);
    faulty_libc_only(sizeof(int64_t));
    for (; fails_at(k, 1); k++) {
        ck_assert_int_lt(k, 100);
        seen = seen || strstr(f.got.outcome.error.message,
                              "no memory for a partition") != NULL;
    }
    faulty_libc_only(0);
    faulty_libc_only_thread(NULL);
    ck_assert(seen);
    ck_assert_int_eq(f.got.outcome.error.code, 0);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("partitions");

    suite_add_loops(tests, 0, 3,
                    a_failure_is_tried_again_behind_the_rows_that_came,
                    a_failure_beyond_the_retries_is_the_end,
                    allocations_of_another_attempt_may_fail, NULL);
    suite_add_loops(tests, 0, 5, options_are_checked, NULL);
    suite_add_loops(tests, 0, 4, so_many_are_read_at_one_time, NULL);
    suite_add(tests, a_pool_may_be_released_before_it_is_tried_again,
              others_may_be_finished_first, each_has_limits_of_time,
              a_window_is_that_of_each, they_are_named_and_have_their_hosts,
              every_allocation_may_fail,
              without_memory_for_the_rows_that_came_it_ends, NULL);
    return suite_main("partitions", set_up, tear_down, tests, NULL);
}
