/* SPDX-License-Identifier: Apache-2.0 */
/* Rows that a driver reads, of an ingest and of a query: they are one
 * transaction, and end with their query, also while they wait. With the fake
 * driver; the real ones are in python/tests/test_ingest.py. */
#include <check.h>
#include <errno.h>
#include <sched.h>
#include <string.h>

#include "support/check_suite.h"
#include "support/fake_driver.h"
#include "support/faulty_libc.h"
#include "support/fixture.h"
#include "uvarrow/adbc.h"

#define FAKE UVA_TEST_BUILD "/tests/drivers/libadbc_driver_fake.so"

static struct fixture f; /* its source has the rows */
static struct uva_adbc_pool *pool;
static struct recording_consumer got;
static struct uva_stream *stream;
static int64_t busy_ms; /* of the next queries */

static const struct uva_adbc_pool_options plain = {
    .driver = FAKE, .keeps_session = true, .connections = 1};

static void open_with(int64_t batches, const struct uva_adbc_pool_options *o)
{
    struct uva_error error = {0};

    fixture_open(&f, batches);
    ck_assert_msg(uva_adbc_pool_new(f.loop.runtime, o, &pool, &error) == 0,
                  "%s", error.message);
}

static void set_up(void)
{
    fake_driver_reset();
    busy_ms = 0;
}

static void tear_down(void)
{
    uva_adbc_pool_release(pool);
    pool = NULL;
    fixture_close(&f);
    ck_assert_int_eq(atomic_load(&fake_driver.statements), 0);
    ck_assert_int_eq(atomic_load(&fake_driver.connections), 0);
    ck_assert_int_eq(atomic_load(&fake_driver.drivers), 0);
}

/* Gives a result of the fake driver, in batches of one row, as rows. */
static struct ArrowArrayStream rows_of_fake(struct fake_query *q, int count)
{
    struct AdbcError error = ADBC_ERROR_INIT;
    struct ArrowArrayStream rows;
    char sql[16];

    (void)snprintf(sql, sizeof(sql), "rows %d", count);
    fake_driver_open(q, sql);
    ck_assert_int_eq(
        q->driver.StatementExecuteQuery(&q->statement, &rows, NULL, &error), 0);
    return rows;
}

/* Gives `rows` to the query `sql`; NULL: to a table. */
static struct uva_stream *ask(const char *sql, struct ArrowArrayStream *rows)
{
    return uva_stream_from_query(
        pool, &(struct uva_adbc_query){.sql = sql,
                                       .ingest_table = sql == NULL ? "t" : NULL,
                                       .parameters = rows,
                                       .busy_ms = busy_ms});
}

static void start_rows(const char *sql, struct ArrowArrayStream *rows)
{
    recording_init(&got);
    stream = ask(sql, rows);
    recording_start(&got, stream);
}

static void start(const char *sql)
{
    struct ArrowArrayStream rows;

    fake_source_plain(&f.fake, &rows);
    f.readers++;
    start_rows(sql, &rows);
}

static void await_end(void)
{
    recording_await_done(&got, &f.loop);
    uva_stream_release(stream);
}

/* The next query has the only place: the one before has given it back. */
static void next_works(void)
{
    recording_init(&got);
    stream =
        uva_stream_from_query(pool, &(struct uva_adbc_query){.sql = "rows 1"});
    recording_start(&got, stream);
    await_end();
    recording_ended(&got, UVA_END_COMPLETE, 0, "");
}

static void is_well(long connected)
{
    next_works();
    ck_assert_int_eq(atomic_load(&fake_driver.connected), connected);
}

/* ---- a transaction ------------------------------------------------------ */

static const struct uva_pair no_commit[] = {
    {.key = "adbc.connection.autocommit", .value = "false"}, {0}};
static const struct uva_pair commits[] = {
    {.key = "adbc.connection.autocommit", .value = "true"}, {0}};

static const struct uva_pair reads[] = {
    {.key = "adbc.connection.readonly", .value = "true"}, {0}};

static const struct {
    const char *sql; /* NULL: ingest */
    int rows;        /* in as many batches */
    const struct uva_pair *connection;
    bool has_none; /* the driver has no transactions */
    const char *steps;
} transactions[] = {
    {"parameters", 1, NULL, false, ""},
    {"parameters", 0, NULL, false, ""},
    {"parameters", 2, NULL, false, "begin commit end "},
    {"parameters", 9, NULL, false, "begin commit end "},
    {NULL, 1, NULL, false, "begin commit end "},
    {NULL, 9, NULL, false, "begin commit end "},
    {NULL, 9, no_commit, false, "begin "}, /* of the connection */
    {NULL, 9, commits, false, "end begin commit end "},
    {NULL, 9, NULL, true, ""},
    {"parameters", 9, reads, false, ""}, /* and is rolled back */
};

START_TEST(several_rows_are_one_transaction)
{
    struct uva_adbc_pool_options o = plain;
    struct ArrowArrayStream rows;
    struct fake_query q;

    fake_driver.no_transactions = transactions[_i].has_none;
    o.connection_options = transactions[_i].connection;
    open_with(0, &o);
    rows = rows_of_fake(&q, transactions[_i].rows);
    start_rows(transactions[_i].sql, &rows);
    await_end();
    recording_ended(&got, UVA_END_COMPLETE, 0, "");
    ck_assert_int_eq(got.rows,
                     transactions[_i].sql == NULL ? 0 : transactions[_i].rows);
    ck_assert_str_eq(fake_driver.transactions, transactions[_i].steps);
    is_well(2); /* one connection belongs to the rows */
    fake_driver_close(&q);
}
END_TEST

/* A transaction that it begins could not end. */
START_TEST(a_driver_that_lacks_a_step_begins_no_transaction)
{
    fake_driver.lacks_step = _i == 0 ? LACKS_SET : LACKS_COMMIT;
    open_with(3, &plain);
    start(NULL);
    await_end();
    recording_ended(&got, UVA_END_COMPLETE, 0, "");
    ck_assert_str_eq(fake_driver.transactions, "");
    is_well(1);
}
END_TEST

/* Without the last one the rows are committed, but the connection is not fit
 * for other queries. */
START_TEST(a_step_of_a_transaction_may_fail)
{
    static const struct {
        const char *step, *text, *steps;
    } cases[] = {
        {"begin", "cannot begin a transaction: no such step", "begin "},
        {"commit", "cannot commit: no such step", "begin commit "},
        {"end", "", "begin commit end "}};

    fake_driver.no_step = cases[_i].step;
    open_with(3, &plain);
    start(NULL);
    await_end();
    recording_ended(&got, _i < 2 ? UVA_END_FAILED : UVA_END_COMPLETE,
                    _i < 2 ? EIO : 0, cases[_i].text);
    ck_assert_str_eq(fake_driver.transactions, cases[_i].steps);
    is_well(2);
}
END_TEST

/* The driver takes the failure for the end of the rows. */
START_TEST(rows_that_fail_are_not_committed)
{
    open_with(5, &plain);
    f.fake.fail_at = 3;
    f.fake.fail_code = ENOSPC;
    f.fake.fail_text = "the source is full";
    start(_i == 0 ? NULL : "lenient parameters");
    await_end();
    recording_ended(&got, UVA_END_FAILED, ENOSPC,
                    "the parameters fail: the source is full");
    ck_assert_str_eq(fake_driver.transactions, "begin ");
    is_well(2);
}
END_TEST

static bool was_cancelled(void *ctx)
{
    (void)ctx;
    loop_nudge(&f.loop);
    return atomic_load(&fake_driver.cancels) > 0;
}

static bool is_blocked(void *ctx)
{
    (void)ctx;
    loop_nudge(&f.loop);
    return atomic_load(&fake_driver.blocked) > 0;
}

/* It ends without a failure, after the cancel. */
START_TEST(what_is_cancelled_at_its_end_is_not_committed)
{
    open_with(3, &plain);
    start("batch 2 waits");
    loop_until(&f.loop, is_blocked, NULL);
    uva_stream_cancel(stream, 0, NULL);
    await_end();
    loop_until(&f.loop, was_cancelled, NULL);
    fake_driver_go();
    is_well(2);
    ck_assert_str_eq(fake_driver.transactions, "begin ");
}
END_TEST

/* ---- rows that wait ----------------------------------------------------- */

static bool waits_at_gate(void *ctx)
{
    (void)ctx;
    loop_nudge(&f.loop);
    return fake_source_is_waiting(&f.fake);
}

/* Its call returns only later: the driver does not wait for that. */
START_TEST(a_source_that_waits_keeps_no_connection)
{
    open_with(5, &plain);
    f.fake.gate_at = 3;
    start(_i == 0 ? NULL : "parameters");
    loop_until(&f.loop, waits_at_gate, NULL);
    uva_stream_cancel(stream, _i, NULL);
    await_end();
    recording_ended(&got, UVA_END_CANCELLED, _i == 0 ? ECANCELED : _i, "");
    is_well(2);
    ck_assert_str_eq(fake_driver.transactions, "begin ");
    ck_assert_int_eq(atomic_load(&f.fake.released), 0);
    fake_source_open_gate(&f.fake);
}
END_TEST

static bool is_released(void *ctx)
{
    (void)ctx;
    loop_nudge(&f.loop);
    return atomic_load(&f.fake.released) > 0;
}

static atomic_bool is_asked, may_answer; /* for the schema of the rows */
static int (*answer)(struct ArrowArrayStream *self, struct ArrowSchema *out);

static int answer_late(struct ArrowArrayStream *self, struct ArrowSchema *out)
{
    atomic_store(&is_asked, true);
    while (!atomic_load(&may_answer))
        (void)sched_yield();
    return answer(self, out);
}

static bool has_been_asked(void *ctx)
{
    (void)ctx;
    loop_nudge(&f.loop);
    return atomic_load(&is_asked);
}

/* A driver that asks for it after the cancel may not bear that it fails. From
 * the answer of the rows until then the loop takes no turn, in which it could
 * pass the schema on. */
START_TEST(rows_that_are_cancelled_have_a_schema)
{
    struct ArrowArrayStream rows;

    fake_driver.reads_late = true;
    open_with(5, &plain);
    fake_source_plain(&f.fake, &rows);
    f.readers++;
    answer = rows.get_schema;
    rows.get_schema = answer_late;
    start_rows(NULL, &rows);
    loop_until(&f.loop, has_been_asked, NULL);
    atomic_store(&may_answer, true);
    while (atomic_load(&fake_driver.blocked) == 0)
        (void)sched_yield();
    uva_stream_cancel(stream, 0, NULL);
    await_end();
    loop_until(&f.loop, is_released, NULL);
    fake_driver_go();
    is_well(2);
    ck_assert_int_eq(atomic_load(&fake_driver.schemaless), 0);
    ck_assert_str_eq(fake_driver.transactions, "begin ");
}
END_TEST

/* It may pass before there is a connection. */
START_TEST(a_limit_ends_rows_that_wait)
{
    struct ArrowArrayStream rows;

    open_with(5, &plain);
    f.fake.gate_at = 3;
    fake_source_plain(&f.fake, &rows);
    f.readers++;
    recording_init(&got);
    stream = ask(NULL, &rows);
    ck_assert_int_eq(
        uva_stream_timeout(stream, &(struct uva_timeout){.total_ms = 1}), 0);
    recording_start(&got, stream);
    await_end();
    ck_assert_int_eq(got.outcome.error.code, ETIMEDOUT);
    next_works();
    ck_assert_ptr_null(strstr(fake_driver.transactions, "commit"));
    fake_source_open_gate(&f.fake);
}
END_TEST

/* In a call of the driver, and within that in a call of the rows. */
START_TEST(the_time_of_a_driver_is_limited)
{
    struct ArrowArrayStream rows;

    open_with(5, &plain);
    f.fake.gate_at = _i == 0 ? -1 : 3;
    busy_ms = 1;
    fake_source_plain(&f.fake, &rows);
    f.readers++;
    recording_init(&got);
    stream = ask(_i == 0 ? "execute blocks" : NULL, &rows);
    recording_start(&got, stream);
    await_end();
    recording_ended(&got, UVA_END_FAILED, ETIMEDOUT, "(busy_ms)");
    busy_ms = 0;
    is_well(atomic_load(&fake_driver.connected) + 1);
    fake_source_open_gate(&f.fake);
}
END_TEST

/* ---- rows of the library ------------------------------------------------ */

static atomic_bool is_gone;

static void on_gone(void *ctx, struct uva_pusher *pusher)
{
    (void)ctx;
    (void)pusher;
    atomic_store(&is_gone, true);
}

static bool has_gone(void *ctx)
{
    (void)ctx;
    return atomic_load(&is_gone);
}

static struct uva_pusher *pusher;

/* A stream of batches that are pushed, as rows. */
static struct ArrowArrayStream pushed_rows(int batches)
{
    struct uva_stream *pushed = uva_stream_from_pusher(
        f.loop.runtime, &(struct uva_push_source){.on_closed = on_gone},
        &pusher);
    struct ArrowArrayStream rows;
    struct ArrowDeviceArray batch;
    struct ArrowSchema schema;

    atomic_store(&is_gone, false);
    fake_source_schema(&f.fake, &schema);
    ck_assert_int_eq(uva_pusher_set_schema(pusher, &schema), 0);
    for (int i = 0; i < batches; i++) {
        fake_source_batch(&f.fake, i, &batch);
        ck_assert_int_eq(uva_pusher_push(pusher, &batch, NULL, 0), 0);
    }
    ck_assert_int_eq(uva_stream_to_arrow_stream(pushed, NULL, &rows, NULL), 0);
    uva_stream_release(pushed);
    return rows;
}

static bool is_executed(void *ctx)
{
    (void)ctx;
    loop_nudge(&f.loop);
    return atomic_load(&fake_driver.executed) > 0;
}

/* The pusher learns it: so do its writers. */
START_TEST(a_stream_that_waits_is_cancelled)
{
    struct ArrowArrayStream rows;

    open_with(9, &plain);
    rows = pushed_rows(_i);
    start_rows(NULL, &rows);
    loop_until(&f.loop, is_executed, NULL);
    uva_stream_cancel(stream, 0, NULL);
    await_end();
    loop_until(&f.loop, has_gone, NULL);
    is_well(2);
    ck_assert_str_eq(fake_driver.transactions, "begin ");
    uva_pusher_close(pusher, NULL, NULL);
}
END_TEST

START_TEST(a_stream_is_read_to_its_end)
{
    struct ArrowArrayStream rows;

    open_with(9, &plain);
    rows = pushed_rows(5);
    uva_pusher_close(pusher, NULL, NULL);
    start_rows("parameters", &rows);
    await_end();
    recording_ended(&got, UVA_END_COMPLETE, 0, "");
    ck_assert_int_eq(got.rows, 15);
    is_well(1);
}
END_TEST

START_TEST(a_reader_of_no_stream_has_none)
{
    struct ArrowArrayStream rows;
    struct uva_stream *of;

    open_with(1, &plain);
    ck_assert_ptr_null(uva_stream_of_reader(NULL));
    fake_source_plain(&f.fake, &rows);
    f.readers++;
    ck_assert_ptr_null(uva_stream_of_reader(&rows));
    rows.release(&rows);
    ck_assert_ptr_null(uva_stream_of_reader(&rows));
    rows = pushed_rows(0);
    of = uva_stream_of_reader(&rows);
    ck_assert_ptr_nonnull(of);
    uva_stream_release(of);
    rows.release(&rows);
    loop_until(&f.loop, has_gone, NULL);
    uva_pusher_close(pusher, NULL, NULL);
}
END_TEST

/* ---- without memory ----------------------------------------------------- */

/* By the allocator of the runtime, and by the C library's. */
START_TEST(every_allocation_may_fail)
{
    struct ArrowArrayStream rows;
    struct fake_query q;
    bool failed = true;

    for (long k = 1; failed; k++) {
        fake_driver_reset();
        open_with(0, &plain);
        rows = rows_of_fake(&q, 3);
        busy_ms = 3600000;
        if (_i == 0)
            loop_fail(&f.loop, k);
        else
            faulty_libc_fail(k);
        f.stream = ask(NULL, &rows);
        ck_assert(rows.release == NULL);
        if (fixture_try(&f, NULL) == 0)
            (void)fixture_await(&f);
        failed = _i == 0 ? faulty_allocator_has_failed(&f.loop.memory)
                         : faulty_libc_stop();
        ck_assert_int_eq(strstr(fake_driver.transactions, "commit") != NULL,
                         f.got.done > 0 &&
                             f.got.outcome.end == UVA_END_COMPLETE);
        fixture_release(&f);
        fake_driver_close(&q);
        tear_down();
        ck_assert_int_lt(k, 1000);
    }
    open_with(0, &plain);
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("ingest");

    tcase_add_loop_test(tc, several_rows_are_one_transaction, 0,
                        sizeof(transactions) / sizeof(*transactions));
    suite_add_loops(tc, 0, 3, a_step_of_a_transaction_may_fail, NULL);
    suite_add_loops(tc, 0, 2, a_driver_that_lacks_a_step_begins_no_transaction,
                    rows_that_fail_are_not_committed,
                    a_source_that_waits_keeps_no_connection,
                    the_time_of_a_driver_is_limited, every_allocation_may_fail,
                    NULL);
    suite_add_loops(tc, 0, 3, a_stream_that_waits_is_cancelled, NULL);
    suite_add(tc, what_is_cancelled_at_its_end_is_not_committed,
              rows_that_are_cancelled_have_a_schema,
              a_limit_ends_rows_that_wait, a_stream_is_read_to_its_end,
              a_reader_of_no_stream_has_none, NULL);
    return suite_main("adbc_ingest", set_up, tear_down, tc, NULL);
}
