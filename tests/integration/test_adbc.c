/* SPDX-License-Identifier: Apache-2.0 */
/* The stream of a real ADBC driver on a loop: read to the end, cancelled, and
 * dropped half-way. test_to_arrow_stream_sqlite and test_query_tool compare its
 * rows. */
#include <check.h>
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "support/adbc_query.h"
#include "support/check_suite.h"
#include "support/fixture.h"

#define DATABASE UVA_TEST_BUILD "/test_query_tool/flights.db"

enum { ROWS = 336776, SKIP = 77 };

static struct fixture f;
static struct adbc_query query;
static int64_t stop_at;    /* rows; negative: never */
static void (*stop)(void); /* called after that many rows */
static atomic_long freed;  /* frees of the driver's objects, after the stream */

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
    (void)ctx;
    (void)error;
    adbc_query_open(&query, DATABASE, "SELECT * FROM flights", out);
    return 0;
}

static void query_free(void *ctx)
{
    (void)ctx;
    adbc_query_close(&query);
    atomic_fetch_add(&freed, 1);
}

static void on_batch(struct recording_consumer *c, struct uva_batch *batch)
{
    if (stop_at >= 0 && c->rows + batch->data.array.length >= stop_at)
        stop();
}

static bool is_over(void *ctx)
{
    (void)ctx;
    return f.got.done > 0 || f.got.silent;
}

static void play(int64_t rows, void (*then)(void))
{
    const struct uva_arrow_source options = {.open = query_open,
                                             .free_ctx = query_free};

    stop_at = rows;
    stop = then;
    atomic_store(&freed, 0);
    fixture_open(&f, 0);
    f.got.on_batch = on_batch;
    f.stream = uva_stream_from_arrow_stream(f.loop.runtime, NULL, &options);
    fixture_start(&f);
    loop_until(&f.loop, is_over, NULL);
}

/* A worker may still be inside a call of the driver. */
static void tear_down(void)
{
    fixture_close(&f);
    await_count(&freed, 1);
    ck_assert_int_eq(f.got.done, f.got.silent ? 0 : 1);
}

START_TEST(a_whole_table_arrives)
{
    play(-1, NULL);
    ck_assert_int_eq(f.got.outcome.end, UVA_END_COMPLETE);
    ck_assert_int_eq(f.got.rows, ROWS);
    ck_assert_int_eq(atomic_load(&freed), 1); /* before on_done was called */
}
END_TEST

static void cancel(void)
{
    uva_stream_cancel(f.stream, 0, "seen enough");
}

START_TEST(a_cancel_in_the_midst_ends_it)
{
    play(20000 * (_i + 1), cancel);
    ck_assert_int_eq(f.got.outcome.end, UVA_END_CANCELLED);
    ck_assert_int_lt(f.got.rows, ROWS);
}
END_TEST

static void drop(void)
{
    fixture_drop(&f);
}

START_TEST(a_drop_in_the_midst_is_silent_and_frees_the_driver)
{
    play(20000 * (_i + 1), drop);
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("sqlite");

    if (!adbc_query_is_possible())
        return SKIP;
    tcase_set_timeout(tc, 100);
    tcase_add_unchecked_fixture(tc, build_database, NULL);
    tcase_add_test(tc, a_whole_table_arrives);
    suite_add_loops(tc, 0, 4, a_cancel_in_the_midst_ends_it,
                    a_drop_in_the_midst_is_silent_and_frees_the_driver, NULL);
    return suite_main("adbc", NULL, tear_down, tc, NULL);
}
