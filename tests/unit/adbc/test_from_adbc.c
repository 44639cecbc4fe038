/* SPDX-License-Identifier: Apache-2.0 */
/* Statements of a driver as streams and for a handler: whole, empty, failing in
 * every call, cancelled in every call, without memory. */
#include <check.h>
#include <errno.h>
#include <string.h>

#include "support/check_suite.h"
#include "support/fake_driver.h"
#include "support/faulty_libc.h"
#include "support/fixture.h"
#include "support/recording_handler.h"
#include "uvarrow/adbc.h"

static struct fixture f;
static struct fake_query query;
static struct uva_stream *stream;
static char metadata[512]; /* of the info or the outcome: "key=value ..." */

static void set_up(void)
{
    fake_driver_reset();
    fixture_open(&f, 0);
    metadata[0] = '\0';
    stream = NULL;
}

static void tear_down(void)
{
    fixture_close(&f);
    ck_assert_int_eq(atomic_load(&fake_driver.databases), 0);
    ck_assert_int_eq(atomic_load(&fake_driver.connections), 0);
    ck_assert_int_eq(atomic_load(&fake_driver.statements), 0);
    ck_assert_int_eq(atomic_load(&fake_driver.results), 0);
    ck_assert_int_eq(atomic_load(&fake_driver.wrong), 0);
}

static const struct uva_adbc_source closes = {.free_ctx = fake_driver_close,
                                              .ctx = &query};

static void note(const char *block)
{
    struct uva_metadata_at at = {0};
    struct uva_pair pair;
    size_t size = strlen(metadata);

    while (uva_metadata_next(block, &at, &pair) == 0)
        size += (size_t)snprintf(metadata + size, sizeof(metadata) - size,
                                 "%.*s=%.*s ", (int)pair.key_size,
                                 (const char *)pair.key, (int)pair.value_size,
                                 (const char *)pair.value);
}

static void on_done(struct recording_consumer *c,
                    const struct uva_outcome *outcome)
{
    const struct uva_stream_info *info = uva_stream_get_info(outcome->stream);

    (void)c;
    if (info != NULL)
        note(info->metadata);
    note(outcome->metadata);
}

static void open_query(const char *sql)
{
    fake_driver_open(&query, sql);
    stream = uva_stream_from_adbc(f.loop.runtime, &query.statement, &closes);
    ck_assert_int_eq(uva_stream_status(stream, NULL), 0);
    ck_assert_ptr_null(query.statement.private_data);
    ck_assert_ptr_null(query.statement.private_driver);
}

/* Runs a query to its end. */
static void play(const char *sql)
{
    open_query(sql);
    f.got.on_done = on_done;
    (void)fixture_consume(&f, stream);
    fixture_close(&f);
    ck_assert_int_eq(atomic_load(&query.closed), 1);
}

/* ---- whole -------------------------------------------------------------- */

START_TEST(rows_arrive)
{
    play("rows 5");
    recording_ended(&f.got, UVA_END_COMPLETE, 0, "");
    ck_assert_int_eq(f.got.rows, 5);
    ck_assert_str_eq(metadata, "");
}
END_TEST

START_TEST(an_update_has_no_rows_and_a_number)
{
    play("update 12");
    recording_ended(&f.got, UVA_END_COMPLETE, 0, "");
    ck_assert_int_eq(f.got.schemas, 1);
    ck_assert_int_eq(f.got.rows, 0);
    ck_assert_str_eq(metadata, "adbc.rows_affected=12 ");
}
END_TEST

/* Of a result with columns, they are its rows. */
START_TEST(the_rows_that_a_driver_states_are_expected)
{
    static const char *const sql[] = {"rows 5", "rows 5", "update 12"};
    struct uva_stage_stats stage;
    size_t count = 1;

    fake_driver.stated = _i == 1 ? 0 : 5;
    open_query(sql[_i]);
    recording_start(&f.got, stream);
    (void)fixture_await(&f);
    ck_assert_int_eq(uva_stream_get_stats(stream, &stage, &count), 0);
    ck_assert_str_eq(stage.name, "statement");
    ck_assert_int_eq(stage.rows_expected, _i == 0 ? 5 : 0);
    ck_assert_int_eq(stage.bytes_expected, 0);
    uva_stream_release(stream);
}
END_TEST

START_TEST(without_a_start_the_statement_is_released)
{
    open_query("rows 1");
    uva_stream_release(stream);
    fixture_close(&f);
    ck_assert_int_eq(atomic_load(&query.closed), 1);
    ck_assert_int_eq(atomic_load(&fake_driver.executed), 0);
}
END_TEST

/* ---- failing ------------------------------------------------------------ */

static const char *const failing[] = {"execute fails", "schema fails",
                                      "batch 2 fails"};

START_TEST(a_failure_has_status_sqlstate_and_details)
{
    play(failing[_i]);
    recording_ended(&f.got, UVA_END_FAILED, EIO, "division by zero");
    ck_assert_str_eq(metadata, "adbc.status=INVALID_DATA adbc.sqlstate=22012 "
                               "adbc.detail.hint=divide by less "
                               "adbc.detail.bin=\1\2 ");
    ck_assert_int_eq(f.got.rows, _i == 2 ? 2 : 0);
}
END_TEST

/* DuckDB's streams return 1, which is EPERM. */
START_TEST(the_status_of_a_stream_that_fails_makes_its_code)
{
    fake_driver.row_code = 1;
    play("batch 1 fails");
    recording_ended(&f.got, UVA_END_FAILED, EIO, "division by zero");
    ck_assert_ptr_nonnull(strstr(metadata, "adbc.status=INVALID_DATA"));
}
END_TEST

static const int row_codes[][2] = {{-1, EIO}, {ERANGE, ERANGE}};

START_TEST(without_a_status_the_code_is_that_of_the_stream)
{
    fake_driver.is_old = true;
    fake_driver.row_code = row_codes[_i][0];
    play("batch 1 fails");
    recording_ended(&f.got, UVA_END_FAILED, row_codes[_i][1],
                    "division by zero");
}
END_TEST

START_TEST(an_old_driver_fails_with_a_vendor_code)
{
    fake_driver.is_old = true;
    play("execute fails");
    recording_ended(&f.got, UVA_END_FAILED, EIO, "division by zero");
    ck_assert_str_eq(metadata, "adbc.status=INVALID_DATA adbc.sqlstate=22012 "
                               "adbc.vendor_code=7 ");
    ck_assert_int_eq(f.got.outcome.error.vendor_code, 7);
    ck_assert_str_eq(f.got.outcome.error.vendor, "adbc");
}
END_TEST

START_TEST(an_old_stream_fails_with_its_text)
{
    fake_driver.is_old = true;
    play("batch 1 fails");
    recording_ended(&f.got, UVA_END_FAILED, EIO, "division by zero");
    ck_assert_str_eq(metadata, "");
}
END_TEST

static const char *const plain[] = {"execute plainly", "schema plainly",
                                    "batch 0 plainly"};

START_TEST(a_failure_without_a_text_has_one)
{
    play(plain[_i]);
    recording_ended(&f.got, UVA_END_FAILED, EIO, "the driver gives no reason");
}
END_TEST

/* ---- cancelled ---------------------------------------------------------- */

static const char *const blocking[] = {"execute blocks", "schema blocks",
                                       "batch 3 blocks"};

static bool blocks(void *ctx)
{
    (void)ctx;
    loop_nudge(&f.loop);
    return atomic_load(&fake_driver.blocked) > 0;
}

START_TEST(a_cancel_reaches_the_driver)
{
    open_query(blocking[_i]);
    f.stream = stream;
    fixture_start(&f);
    loop_until(&f.loop, blocks, NULL);
    uva_stream_cancel(stream, 0, "seen enough");
    (void)fixture_await(&f);
    recording_ended(&f.got, UVA_END_CANCELLED, ECANCELED, "seen enough");
    fixture_close(&f);
    ck_assert_int_gt(atomic_load(&fake_driver.cancels), 0);
    ck_assert_int_eq(atomic_load(&query.closed), 1);
}
END_TEST

/* ---- a handler ---------------------------------------------------------- */

static bool is_released(void *ctx)
{
    return recording_handler_is_released(ctx);
}

/* Executes the statement for a handler, as an asynchronous execute would. */
static int drive(struct ArrowAsyncDeviceStreamHandler *handler)
{
    int code;

    stream = uva_stream_from_adbc(f.loop.runtime, &query.statement, &closes);
    code = uva_stream_drive(stream, handler, NULL, NULL);
    uva_stream_release(stream);
    return code;
}

START_TEST(a_handler_receives_the_rows)
{
    struct recording_handler handler;

    recording_handler_init(&handler, 100, 0);
    fake_driver_open(&query, _i == 0 ? "rows 3" : "update 8");
    ck_assert_int_eq(drive(&handler.handler), 0);
    loop_until(&f.loop, is_released, &handler);
    fixture_close(&f);
    ck_assert_int_eq(handler.rows, _i == 0 ? 3 : 0);
    ck_assert_str_eq(handler.about, _i == 0 ? "" : "adbc.rows_affected=8");
    ck_assert_int_eq(atomic_load(&query.closed), 1);
    recording_handler_fini(&handler);
}
END_TEST

START_TEST(a_handler_receives_the_error)
{
    struct recording_handler handler;

    recording_handler_init(&handler, 100, 0);
    fake_driver_open(&query, "batch 1 fails");
    ck_assert_int_eq(drive(&handler.handler), 0);
    loop_until(&f.loop, is_released, &handler);
    fixture_close(&f);
    ck_assert_int_eq(handler.error_code, EIO);
    text_contains(handler.message, "division by zero");
    text_contains(handler.metadata, "adbc.status=INVALID_DATA");
    recording_handler_fini(&handler);
}
END_TEST

START_TEST(a_refused_handler_executes_nothing)
{
    struct ArrowAsyncDeviceStreamHandler handler = {0};

    fake_driver_open(&query, "rows 1");
    ck_assert_int_eq(drive(&handler), EINVAL);
    fixture_close(&f);
    ck_assert_int_eq(atomic_load(&fake_driver.executed), 0);
    ck_assert_int_eq(atomic_load(&query.closed), 1);
}
END_TEST

/* ---- invalid ------------------------------------------------------------ */

START_TEST(what_is_invalid_is_refused)
{
    struct AdbcStatement empty = {0};
    struct uva_adbc_source reserved = closes;
    AdbcStatusCode (*execute)(struct AdbcStatement *, struct ArrowArrayStream *,
                              int64_t *, struct AdbcError *);
    AdbcStatusCode (*release)(struct AdbcStatement *, struct AdbcError *);

    reserved.reserved[3] = &query;
    fixture_refused(&f, uva_stream_from_adbc(f.loop.runtime, NULL, NULL),
                    EINVAL, "private_driver");
    fixture_refused(&f, uva_stream_from_adbc(f.loop.runtime, &empty, NULL),
                    EINVAL, "private_driver");
    fake_driver_open(&query, "rows 1");
    fixture_refused(
        &f, uva_stream_from_adbc(f.loop.runtime, &query.statement, &reserved),
        EINVAL, "reserved");
    execute = query.driver.StatementExecuteQuery;
    query.driver.StatementExecuteQuery = NULL;
    fixture_refused(
        &f, uva_stream_from_adbc(f.loop.runtime, &query.statement, NULL),
        EINVAL, "lacks functions");
    release = query.driver.StatementRelease;
    query.driver.StatementExecuteQuery = execute;
    query.driver.StatementRelease = NULL;
    fixture_refused(
        &f, uva_stream_from_adbc(f.loop.runtime, &query.statement, NULL),
        EINVAL, "lacks functions");
    query.driver.StatementExecuteQuery = NULL;
    query.driver.StatementRelease = release;
    fixture_refused(&f,
                    uva_stream_from_adbc(
                        f.loop.runtime, &query.statement,
                        &(struct uva_adbc_source){.window = {.batches = -1}}),
                    EINVAL, "");
    ck_assert_ptr_nonnull(query.statement.private_data);
    fake_driver_close(&query);
}
END_TEST

START_TEST(a_failed_stream_takes_the_statement)
{
    struct uva_adbc_source options = closes;

    options.window.batches = -1;
    fake_driver_open(&query, "rows 1");
    fixture_refused(
        &f, uva_stream_from_adbc(f.loop.runtime, &query.statement, &options),
        EINVAL, "window");
    ck_assert_ptr_null(query.statement.private_data);
    ck_assert_int_eq(atomic_load(&query.closed), 1);
}
END_TEST

/* ---- changed rows ------------------------------------------------------- */

START_TEST(changed_rows_are_a_number_of_the_metadata)
{
    static const struct {
        const char *text;
        int64_t rows;
    } cases[] = {{"0", 0},
                 {"12", 12},
                 {"9223372036854775807", INT64_MAX},
                 {"", -1},
                 {"-1", -1},
                 {"x", -1},
                 {"1x", -1},
                 {"100000000000000000000000", -1}};
    char block[100];
    struct uva_stream_info info = {.metadata = block};

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        const struct uva_pair pairs[] = {
            {.key = "adbc.rows_affected", .value = cases[i].text}, {0}};
        size_t size = sizeof(block);

        ck_assert_int_eq(uva_metadata_encode(pairs, block, &size), 0);
        ck_assert_int_eq(uva_adbc_rows_changed(&info), cases[i].rows);
    }
    info.metadata = NULL;
    ck_assert_int_eq(uva_adbc_rows_changed(&info), -1);
    ck_assert_int_eq(uva_adbc_rows_changed(NULL), -1);
}
END_TEST

/* ---- without memory ----------------------------------------------------- */

static const char *const swept[] = {"rows 2", "execute fails", "batch 1 fails"};

START_TEST(every_allocation_may_fail)
{
    bool failed = true;

    for (long k = 1; failed; k++) {
        fake_driver_open(&query, swept[_i]);
        faulty_libc_fail(k);
        stream =
            uva_stream_from_adbc(f.loop.runtime, &query.statement, &closes);
        f.stream = stream;
        if (fixture_try(&f, NULL) == 0)
            (void)fixture_await(&f);
        failed = faulty_libc_stop();
        fixture_close(&f);
        ck_assert_int_eq(atomic_load(&query.closed), 1);
        ck_assert_int_eq(atomic_load(&fake_driver.statements), 0);
        fixture_open(&f, 0);
        ck_assert_int_lt(k, 1000);
    }
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("from_adbc");

    tcase_add_test(tc, rows_arrive);
    tcase_add_test(tc, an_update_has_no_rows_and_a_number);
    tcase_add_loop_test(tc, the_rows_that_a_driver_states_are_expected, 0, 3);
    tcase_add_test(tc, without_a_start_the_statement_is_released);
    tcase_add_test(tc, the_status_of_a_stream_that_fails_makes_its_code);
    tcase_add_test(tc, an_old_driver_fails_with_a_vendor_code);
    tcase_add_test(tc, an_old_stream_fails_with_its_text);
    tcase_add_test(tc, a_handler_receives_the_error);
    tcase_add_test(tc, changed_rows_are_a_number_of_the_metadata);
    tcase_add_test(tc, a_refused_handler_executes_nothing);
    tcase_add_test(tc, what_is_invalid_is_refused);
    tcase_add_test(tc, a_failed_stream_takes_the_statement);
    suite_add_loops(tc, 0, 3, a_failure_has_status_sqlstate_and_details,
                    a_failure_without_a_text_has_one,
                    a_cancel_reaches_the_driver, every_allocation_may_fail,
                    NULL);
    suite_add_loops(tc, 0, 2, a_handler_receives_the_rows,
                    without_a_status_the_code_is_that_of_the_stream, NULL);
    return suite_main("from_adbc", set_up, tear_down, tc, NULL);
}
