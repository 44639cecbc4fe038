/* SPDX-License-Identifier: Apache-2.0 */
/* A pool of connections to the fake driver; its library uses the counts of
 * this program. Queries, their order and number, failures, cancels, parameters,
 * the release of the pool, memory that runs out. */
#include <check.h>
#include <errno.h>
#include <limits.h>
#include <string.h>

#include "support/check_suite.h"
#include "support/fake_driver.h"
#include "support/faulty_libc.h"
#include "support/fixture.h"
#include "uvarrow/adbc.h"

#define FAKE UVA_TEST_BUILD "/tests/drivers/libadbc_driver_fake.so"

enum { MANY = 1000, CONNECTIONS = 8 };

static struct fixture f;
static struct uva_adbc_pool *pool;
static struct recording_consumer got[MANY];
static struct uva_stream *streams[MANY];
static char metadata[512];

static const struct uva_adbc_pool_options plain = {.driver = FAKE,
                                                   .keeps_session = true};

static void set_up(void)
{
    fake_driver_reset();
    fixture_open(&f, 0);
    metadata[0] = '\0';
}

static void make(const struct uva_adbc_pool_options *options)
{
    struct uva_error error = {0};
    const int code = uva_adbc_pool_new(f.loop.runtime, options, &pool, &error);

    ck_assert_msg(code == 0, "%s", error.message);
}

static void finish(void)
{
    uva_adbc_pool_release(pool);
    pool = NULL;
    fixture_close(&f);
    ck_assert_int_eq(atomic_load(&fake_driver.statements), 0);
    ck_assert_int_eq(atomic_load(&fake_driver.results), 0);
    ck_assert_int_eq(atomic_load(&fake_driver.connections), 0);
    ck_assert_int_eq(atomic_load(&fake_driver.databases), 0);
    ck_assert_int_eq(atomic_load(&fake_driver.drivers), 0);
    ck_assert_int_eq(atomic_load(&fake_driver.wrong), 0);
}

static void tear_down(void)
{
    finish();
}

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
    metadata[0] = '\0';
    if (info != NULL)
        note(info->metadata);
    note(outcome->metadata);
}

static struct uva_stream *ask(const char *sql)
{
    return uva_stream_from_query(pool, &(struct uva_adbc_query){.sql = sql});
}

/* Starts query number `i`. */
static void start(int i, const char *sql)
{
    recording_init(&got[i]);
    got[i].on_done = on_done;
    streams[i] = ask(sql);
    recording_start(&got[i], streams[i]);
}

static void await_end(int i)
{
    recording_await_done(&got[i], &f.loop);
    uva_stream_release(streams[i]);
}

static void play(const char *sql)
{
    start(0, sql);
    await_end(0);
}

static bool blocks(void *ctx)
{
    loop_nudge(&f.loop);
    return atomic_load(&fake_driver.blocked) >= *(long *)ctx;
}

static void await_blocked(long count)
{
    loop_until(&f.loop, blocks, &count);
}

/* ---- queries ------------------------------------------------------------ */

START_TEST(queries_use_one_connection_after_the_other)
{
    struct uva_adbc_pool_options o = plain;

    o.lock_ms = 5; /* the driver has no setting for that */
    make(&o);
    ck_assert_int_eq(atomic_load(&fake_driver.databases), 0);
    for (int i = 0; i < 3; i++) {
        play("rows 4");
        recording_ended(&got[0], UVA_END_COMPLETE, 0, "");
        ck_assert_int_eq(got[0].rows, 4);
    }
    ck_assert_int_eq(atomic_load(&fake_driver.connected), 1);
    ck_assert_int_eq(atomic_load(&fake_driver.databases), 1);
    play("update 3");
    ck_assert_str_eq(metadata, "adbc.rows_affected=3 ");
    ck_assert_int_eq(atomic_load(&fake_driver.connected), 1);
}
END_TEST

START_TEST(updates_are_executed_without_a_result)
{
    make(&plain);
    play("changes 5");
    ck_assert_str_eq(metadata, "");
    f.stream = uva_stream_from_query(
        pool, &(struct uva_adbc_query){.sql = "changes 5",
                                       .result = UVA_ADBC_CHANGES});
    f.got.on_done = on_done;
    ck_assert_int_eq(fixture_run(&f), 0);
    ck_assert_int_eq(f.got.rows, 0);
    ck_assert_str_eq(metadata, "adbc.rows_affected=5 ");
    ck_assert_int_eq(atomic_load(&fake_driver.connected), 1);
}
END_TEST

START_TEST(many_queries_share_few_connections)
{
    make(&(struct uva_adbc_pool_options){.driver = FAKE,
                                         .connections = CONNECTIONS});
    for (int i = 0; i < MANY; i++)
        start(i, i % 50 == 49 ? "batch 1 fails" : "rows 3");
    for (int i = 0; i < MANY; i++) {
        await_end(i);
        ck_assert_int_eq(got[i].outcome.error.code, i % 50 == 49 ? EIO : 0);
        ck_assert_int_eq(got[i].rows, i % 50 == 49 ? 1 : 3);
    }
    ck_assert_int_le(atomic_load(&fake_driver.most), CONNECTIONS);
    ck_assert_int_eq(atomic_load(&fake_driver.executed), MANY);
}
END_TEST

/* ---- failures ----------------------------------------------------------- */

START_TEST(a_connection_of_a_failed_query_is_closed)
{
    make(&plain);
    play("execute fails");
    recording_ended(&got[0], UVA_END_FAILED, EIO, "division by zero");
    ck_assert_str_eq(metadata, "adbc.status=INVALID_DATA adbc.sqlstate=22012 "
                               "adbc.detail.hint=divide by less "
                               "adbc.detail.bin=\1\2 ");
    play("rows 1");
    ck_assert_int_eq(atomic_load(&fake_driver.connected), 2);
    play("refused");
    recording_ended(&got[0], UVA_END_FAILED, EINVAL, "no such table");
}
END_TEST

START_TEST(a_cancelled_query_ends_at_once)
{
    make(&plain);
    start(0, _i == 0 ? "execute blocks" : "batch 1 blocks");
    await_blocked(1);
    uva_stream_cancel(streams[0], 0, NULL);
    await_end(0);
    recording_ended(&got[0], UVA_END_CANCELLED, ECANCELED, "");
    play("rows 1");
    recording_ended(&got[0], UVA_END_COMPLETE, 0, "");
    ck_assert_int_eq(atomic_load(&fake_driver.connected), 2);
}
END_TEST

static bool was_cancelled(void *ctx)
{
    (void)ctx;
    loop_nudge(&f.loop);
    return atomic_load(&fake_driver.cancels) > 0;
}

/* The cancel may reach the database late, and end the next query. */
START_TEST(a_connection_that_was_cancelled_at_the_end_is_closed)
{
    make(&(struct uva_adbc_pool_options){.driver = FAKE, .connections = 1});
    start(0, _i == 0 ? "batch 1 waits" : "execute waits");
    await_blocked(1);
    uva_stream_cancel(streams[0], 0, NULL);
    await_end(0);
    loop_until(&f.loop, was_cancelled, NULL);
    fake_driver_go();
    play("rows 1");
    recording_ended(&got[0], UVA_END_COMPLETE, 0, "");
    ck_assert_int_eq(atomic_load(&fake_driver.connected), 2);
}
END_TEST

/* Some drivers execute before there is a schema, others after it. */
START_TEST(a_limit_of_the_first_batch_counts_from_the_start)
{
    static const char *const sql[] = {"execute waits", "batch 0 waits"};
    const struct uva_timeout limit = {.first_ms = _i < 2 ? 1 : 0,
                                      .between_ms = _i < 2 ? 0 : 1};

    make(&(struct uva_adbc_pool_options){.driver = FAKE, .connections = 1});
    recording_init(&got[0]);
    streams[0] = ask(sql[_i % 2]);
    ck_assert_int_eq(uva_stream_timeout(streams[0], &limit), 0);
    recording_start(&got[0], streams[0]);
    await_end(0);
    recording_ended(&got[0], UVA_END_FAILED, ETIMEDOUT,
                    _i < 2 ? "within 1 ms (first_ms)"
                           : "within 1 ms (between_ms)");
    fake_driver_go();
}
END_TEST

START_TEST(a_limit_of_the_first_batch_counts_while_a_query_waits_for_a_permit)
{
    make(&(struct uva_adbc_pool_options){.driver = FAKE, .connections = 1});
    start(0, "execute waits");
    await_blocked(1);
    recording_init(&got[1]);
    streams[1] = ask("rows 1");
    ck_assert_int_eq(
        uva_stream_timeout(streams[1], &(struct uva_timeout){.first_ms = 1}),
        0);
    recording_start(&got[1], streams[1]);
    await_end(1);
    recording_ended(&got[1], UVA_END_FAILED, ETIMEDOUT, "(first_ms)");
    fake_driver_go();
    await_end(0);
}
END_TEST

START_TEST(a_query_that_waits_for_its_turn_can_be_cancelled)
{
    make(&(struct uva_adbc_pool_options){.driver = FAKE, .connections = 1});
    start(0, "execute stops");
    await_blocked(1);
    start(1, "rows 1");
    start(2, "rows 1");
    loop_settle(&f.loop);
    uva_stream_cancel(streams[1], 0, NULL);
    await_end(1);
    recording_ended(&got[1], UVA_END_CANCELLED, ECANCELED, "");
    ck_assert_int_eq(got[2].done, 0);
    uva_stream_cancel(streams[0], 0, NULL);
    await_end(0);
    fake_driver_go();
    await_end(2);
    recording_ended(&got[2], UVA_END_COMPLETE, 0, "");
}
END_TEST

START_TEST(a_query_does_not_wait_for_ever)
{
    make(&(struct uva_adbc_pool_options){
        .driver = FAKE, .connections = 1, .wait_ms = 300});
    start(0, "execute stops");
    await_blocked(1);
    start(1, "rows 1");
    start(2, "rows 1");
    await_end(1);
    recording_ended(&got[1], UVA_END_FAILED, ETIMEDOUT, "300 ms");
    await_end(2);
    recording_ended(&got[2], UVA_END_FAILED, ETIMEDOUT, "300 ms");
    fake_driver_go();
    await_end(0);
    play("rows 1");
    recording_ended(&got[0], UVA_END_COMPLETE, 0, "");
}
END_TEST

/* One connection serves two queries before the query that is opened ahead after
 * them, for which no time counts until then. */
START_TEST(a_query_that_is_opened_ahead_takes_no_connection_of_another)
{
    struct uva_stream *second, *third;

    make(&(struct uva_adbc_pool_options){
        .driver = FAKE, .connections = 1, .wait_ms = 60000});
    streams[0] = ask("batch 1 waits");
    second = ask("rows 1");
    third = ask("rows 1");
    ck_assert_int_eq(uva_stream_concat(streams[0], &second, 1, NULL), 0);
    ck_assert_int_eq(uva_stream_concat(streams[0], &third, 1,
                                       &(struct uva_merge){.open_at_once = 2}),
                     0);
    recording_init(&got[0]);
    recording_start(&got[0], streams[0]);
    await_blocked(1);
    loop_settle(&f.loop);
    ck_assert(!loop_has_timer(&f.loop));
    fake_driver_go();
    await_end(0);
    recording_ended(&got[0], UVA_END_COMPLETE, 0, "");
    ck_assert_int_eq(atomic_load(&fake_driver.executed), 3);
    ck_assert_int_eq(atomic_load(&fake_driver.most), 1);
}
END_TEST

START_TEST(a_driver_that_does_not_connect_is_asked_again)
{
    make(&plain);
    fake_driver.no_connect = true;
    play("rows 1");
    recording_ended(&got[0], UVA_END_FAILED, EACCES, "wrong password");
    ck_assert_ptr_nonnull(strstr(metadata, "adbc.step=connect"));
    fake_driver.no_connect = false;
    play("execute fails");
    ck_assert_ptr_nonnull(strstr(metadata, "adbc.status="));
    ck_assert_ptr_null(strstr(metadata, "adbc.step"));
    play("rows 1");
    recording_ended(&got[0], UVA_END_COMPLETE, 0, "");
    ck_assert_int_eq(atomic_load(&fake_driver.databases), 1);
}
END_TEST

START_TEST(a_driver_may_give_nothing)
{
    make(&plain);
    fake_driver.no_database = true;
    play("rows 1");
    recording_ended(&got[0], UVA_END_FAILED, EIO, "no database");
    fake_driver.no_database = false;
    fake_driver.no_connection = true;
    play("rows 1");
    recording_ended(&got[0], UVA_END_FAILED, EIO, "no connection");
    fake_driver.no_connection = false;
    play("rows 1");
    recording_ended(&got[0], UVA_END_COMPLETE, 0, "");
}
END_TEST

START_TEST(a_driver_may_clear_what_it_fills_in)
{
    fake_driver.clears = true;
    make(&plain);
    f.stream = uva_stream_from_objects(pool, NULL);
    ck_assert_int_eq(fixture_run(&f), 0);
}
END_TEST

START_TEST(a_driver_may_give_no_result_at_all)
{
    static const char *const hollow[] = {"hollow0", "hollow1", "hollow2"};

    make(&plain);
    for (int i = 0; i < 3; i++) {
        play(hollow[i]);
        recording_ended(&got[0], UVA_END_FAILED, EPROTO, "lacks functions");
    }
    play("execute plainly");
    recording_ended(&got[0], UVA_END_FAILED, EIO, "gives no reason");
    ck_assert_str_eq(metadata, "adbc.status=IO ");
}
END_TEST

START_TEST(a_connection_is_cancelled_where_a_statement_cannot_be)
{
    fake_driver.cancels_connections = true;
    make(&plain);
    start(0, "execute stops");
    await_blocked(1);
    uva_stream_cancel(streams[0], 0, NULL);
    await_end(0);
    recording_ended(&got[0], UVA_END_CANCELLED, ECANCELED, "");
}
END_TEST

static const struct uva_pair good[] = {
    {.key = "a", .value = "b"}, {.key = "c", .value = "d"}, {0}};
static const struct uva_pair refused[] = {
    {.key = "a", .value = "b"}, {.key = "refused", .value = "x"}, {0}};

START_TEST(options_are_set)
{
    make(&(struct uva_adbc_pool_options){.driver = FAKE,
                                         .entrypoint = "fake_other_init",
                                         .options = good,
                                         .connection_options = good});
    f.stream = uva_stream_from_query(
        pool, &(struct uva_adbc_query){.sql = "rows 1", .options = good});
    ck_assert_int_eq(fixture_run(&f), 0);
}
END_TEST

START_TEST(an_option_that_is_refused_is_named)
{
    static const char *const places[] = {"database", "connection", "statement"};
    struct uva_adbc_pool_options o = plain;

    o.options = _i == 0 ? refused : NULL;
    o.connection_options = _i == 1 ? refused : NULL;
    make(&o);
    f.stream = uva_stream_from_query(
        pool, &(struct uva_adbc_query){.sql = "rows 1",
                                       .options = _i == 2 ? refused : NULL});
    ck_assert_int_eq(fixture_run(&f), ENOTSUP);
    text_contains(f.got.outcome.error.message, "option refused of the");
    text_contains(f.got.outcome.error.message, places[_i]);
}
END_TEST

static const struct uva_pair read_only[] = {
    {.key = "a", .value = "b"},
    {.key = "adbc.connection.readonly", .value = "true"},
    {0}};
static const struct uva_pair read_write[] = {
    {.key = "adbc.connection.readonly", .value = "false"},
    {.key = "a", .value = "b"},
    {0}};

/* A driver of a database without a statement for that gets the option. */
START_TEST(a_query_that_only_reads_needs_a_driver_that_can)
{
    struct uva_adbc_pool_options o = plain;

    o.connection_options = _i == 1 ? read_write : read_only;
    make(&o);
    play("rows 1");
    recording_ended(&got[0], UVA_END_COMPLETE, 0, "");
    play("rows 1");
    recording_ended(&got[0], UVA_END_COMPLETE, 0, "");
    ck_assert_int_eq(atomic_load(&fake_driver.restricted), _i == 1 ? 0 : 2);
    uva_adbc_pool_release(pool);
    fake_driver.is_bare = true;
    o.connection_options = &read_only[1];
    make(&o);
    play("rows 1");
    recording_ended(&got[0], UVA_END_FAILED, ENOTSUP,
                    "refuses the option adbc.connection.readonly of the");
}
END_TEST

/* Some are taken before a connection is open, others only afterwards, in any
 * order; an option that is never taken is named. */
START_TEST(options_of_a_connection_are_set_when_the_driver_takes_them)
{
    static const struct uva_pair options[][4] = {
        {{.key = "late", .value = "1"},
         {.key = "early", .value = "1"},
         {.key = "late", .value = "2"}},
        {{.key = "late", .value = "1"},
         {.key = "refused", .value = "1"},
         {.key = "early", .value = "1"}}};
    struct uva_adbc_pool_options o = plain;

    o.connection_options = options[_i];
    make(&o);
    play("rows 1");
    if (_i == 0)
        recording_ended(&got[0], UVA_END_COMPLETE, 0, "");
    else
        recording_ended(&got[0], UVA_END_FAILED, ENOTSUP,
                        "refuses the option refused of the connection");
}
END_TEST

/* A read of the catalog has begun a transaction, too. */
START_TEST(a_connection_without_autocommit_is_not_kept)
{
    static const struct uva_pair manual[] = {
        {.key = ADBC_CONNECTION_OPTION_AUTOCOMMIT,
         .value = ADBC_OPTION_VALUE_DISABLED},
        {0}};

    make(&(struct uva_adbc_pool_options){.driver = FAKE,
                                         .connection_options = manual});
    for (int i = 1; i < 3; i++) {
        recording_init(&got[0]);
        streams[0] = uva_stream_from_objects(pool, NULL);
        recording_start(&got[0], streams[0]);
        await_end(0);
        recording_ended(&got[0], UVA_END_COMPLETE, 0, "");
        ck_assert_int_eq(atomic_load(&fake_driver.connected), i);
    }
}
END_TEST

START_TEST(no_driver_is_an_error_of_the_query)
{
    static const struct uva_pair uri[] = {{.key = "uri", .value = "nosuch:db"},
                                          {0}};

    make(&(struct uva_adbc_pool_options){.options = uri});
    play("rows 1");
    recording_ended(&got[0], UVA_END_FAILED, ENOENT, "'nosuch'");
}
END_TEST

/* ---- parameters --------------------------------------------------------- */

static struct ArrowArrayStream result_of_fake(struct fake_query *q,
                                              const char *sql)
{
    struct ArrowArrayStream rows;
    struct AdbcError error = ADBC_ERROR_INIT;

    fake_driver_open(q, sql);
    ck_assert_int_eq(
        q->driver.StatementExecuteQuery(&q->statement, &rows, NULL, &error), 0);
    return rows;
}

static struct ArrowArrayStream rows_of_fake(struct fake_query *q)
{
    return result_of_fake(q, "rows 7");
}

START_TEST(a_driver_may_have_few_functions)
{
    static const struct uva_pair some[] = {{.key = "a", .value = "b"}, {0}};
    struct uva_adbc_pool_options o = plain;
    struct ArrowArrayStream rows;
    struct fake_query q;

    rows = rows_of_fake(&q);
    fake_driver.is_bare = _i != 3;
    fake_driver.binds_nothing = true;
    o.options = _i == 0 ? some : NULL;
    o.connection_options = _i == 1 ? some : NULL;
    make(&o);
    f.stream = uva_stream_from_query(
        pool, &(struct uva_adbc_query){.sql = "rows 1",
                                       .parameters = _i == 3 ? &rows : NULL,
                                       .options = _i == 2 ? some : NULL});
    ck_assert_int_eq(fixture_run(&f), ENOTSUP);
    if (_i != 3)
        rows.release(&rows);
    fake_driver_close(&q);
}
END_TEST

START_TEST(an_old_driver_cannot_be_cancelled)
{
    fake_driver.is_old = true;
    make(&plain);
    start(0, "execute stops");
    await_blocked(1);
    uva_stream_cancel(streams[0], 0, NULL);
    await_end(0);
    recording_ended(&got[0], UVA_END_CANCELLED, ECANCELED, "");
    fake_driver_go();
}
END_TEST

START_TEST(parameters_are_bound)
{
    struct fake_query q;
    struct ArrowArrayStream rows = rows_of_fake(&q);

    make(&plain);
    f.stream = uva_stream_from_query(
        pool, &(struct uva_adbc_query){.sql = _i == 0 ? "parameters" : NULL,
                                       .ingest_table = _i == 1 ? "table" : NULL,
                                       .parameters = &rows});
    ck_assert(rows.release == NULL);
    f.got.on_done = on_done;
    ck_assert_int_eq(fixture_run(&f), 0);
    ck_assert_int_eq(f.got.rows, _i == 0 ? 7 : 0);
    ck_assert_str_eq(metadata, _i == 0 ? "" : "adbc.rows_affected=7 ");
    fake_driver_close(&q);
}
END_TEST

static char column[20]; /* the name that the driver got */

static void on_done_name(struct recording_consumer *c,
                         const struct uva_outcome *outcome)
{
    const struct uva_stream_info *info = uva_stream_get_info(outcome->stream);

    (void)c;
    (void)snprintf(column, sizeof(column), "%s",
                   info != NULL ? info->schema->children[0]->name : "none");
}

/* Its rows have the column n. */
START_TEST(parameters_are_bound_by_name)
{
    static const struct {
        const char *theirs, *bound;
    } cases[] = {{":n", ":n"}, {"@n", "@n"}, {"$n", "$n"},
                 {"?n", "?n"}, {"n", "n"},   {":x", "n"},
                 {"xn", "n"},  {"", "n"},    {NULL, "n"}};
    struct fake_query q;
    struct ArrowArrayStream rows = rows_of_fake(&q);

    fake_driver.parameter = cases[_i].theirs;
    make(&plain);
    f.stream = uva_stream_from_query(
        pool, &(struct uva_adbc_query){
                  .sql = "parameters", .parameters = &rows, .by_name = true});
    f.got.on_done = on_done_name;
    ck_assert_int_eq(fixture_run(&f), 0);
    ck_assert_int_eq(f.got.rows, 7);
    ck_assert_str_eq(column, cases[_i].bound);
    fake_driver_close(&q);
}
END_TEST

START_TEST(a_driver_that_binds_in_order_alone_is_not_asked_by_name)
{
    struct fake_query q;
    struct ArrowArrayStream rows = rows_of_fake(&q);

    fake_driver.binds_in_order = true;
    make(&plain);
    f.stream = uva_stream_from_query(
        pool, &(struct uva_adbc_query){
                  .sql = "parameters", .parameters = &rows, .by_name = true});
    ck_assert_int_eq(fixture_run(&f), ENOTSUP);
    text_contains(f.got.outcome.error.message, "by_name: the driver cannot");
    ck_assert_int_eq(atomic_load(&fake_driver.executed),
                     1); /* of rows_of_fake */
    fake_driver_close(&q);
}
END_TEST

/* ---- parameters of other shapes ----------------------------------------- */

/* Parameters with the columns `fields`, in batches of as many rows as `lengths`
 * states, up to a negative one, which is the error. */
static struct {
    struct ArrowSchema *fields[2];
    const int *lengths;
    int schema_code;
    const char *text;
    const char *format;       /* NULL: "+s" */
    struct ArrowArray *batch; /* given for a length above 1, once */
} made;

static void on_made_schema_release(struct ArrowSchema *schema)
{
    schema->release = NULL;
}

static int on_made_schema(struct ArrowArrayStream *self,
                          struct ArrowSchema *out)
{
    (void)self;
    *out =
        (struct ArrowSchema){.format = made.format != NULL ? made.format : "+s",
                             .n_children = made.fields[1] != NULL ? 2 : 0,
                             .children = made.fields,
                             .release = on_made_schema_release};
    return made.schema_code;
}

static void on_made_array_release(struct ArrowArray *array)
{
    array->release = NULL;
}

static int on_made_next(struct ArrowArrayStream *self, struct ArrowArray *out)
{
    const int length = *made.lengths++;

    (void)self;
    if (length == INT_MAX)
        return 0;
    *out =
        (struct ArrowArray){.length = length, .release = on_made_array_release};
    if (length > 1)
        *out = *made.batch;
    return length < 0 ? length == -1 ? ERANGE : length : 0;
}

static const char *on_made_error(struct ArrowArrayStream *self)
{
    (void)self;
    return made.text;
}

static void on_made_release(struct ArrowArrayStream *self)
{
    self->release = NULL;
}

static struct ArrowArrayStream rows_of_made(void)
{
    return (struct ArrowArrayStream){.get_schema = on_made_schema,
                                     .get_next = on_made_next,
                                     .get_last_error = on_made_error,
                                     .release = on_made_release};
}

static struct ArrowSchema made_field(const char *name)
{
    return (struct ArrowSchema){
        .format = "l", .name = name, .release = on_made_schema_release};
}

/* Gives `rows` to a query; returns its code, with its text in f.got. */
static int ask_made(const int *lengths, bool by_name, const char *sql)
{
    struct ArrowArrayStream rows = rows_of_made();

    made.lengths = lengths;
    recording_init(&f.got);
    f.got.on_done = on_done;
    f.stream = uva_stream_from_query(
        pool, &(struct uva_adbc_query){
                  .sql = sql, .parameters = &rows, .by_name = by_name});
    return fixture_run(&f);
}

START_TEST(parameters_without_rows_execute_nothing)
{
    static const int none[] = {INT_MAX}, empty[] = {0, 0, INT_MAX};

    make(&plain);
    ck_assert_int_eq(ask_made(_i == 0 ? none : empty, false, "rows 1"), 0);
    ck_assert_int_eq(f.got.schemas, 1);
    ck_assert_int_eq(f.got.rows, 0);
    ck_assert_str_eq(metadata, "adbc.rows_affected=0 ");
    ck_assert_int_eq(atomic_load(&fake_driver.executed), 0);
    uva_stream_release(f.stream);
    ck_assert_int_eq(ask_made(_i == 0 ? none : empty, false, "unprepared"),
                     EINVAL);
}
END_TEST

START_TEST(parameters_without_rows_have_no_partitions)
{
    static const int empty[] = {0, INT_MAX};
    struct ArrowArrayStream rows = rows_of_made();

    made.lengths = empty;
    fake_driver.binds_nothing = true; /* it is not asked to */
    make(&plain);
    f.stream = uva_stream_from_query(
        pool, &(struct uva_adbc_query){.sql = "partitions 3",
                                       .result = UVA_ADBC_PARTITIONS,
                                       .parameters = &rows});
    ck_assert_int_eq(fixture_run(&f), 0);
    ck_assert_int_eq(f.got.rows, 0);
}
END_TEST

START_TEST(a_partition_may_have_an_empty_descriptor)
{
    make(&plain);
    f.stream = uva_stream_from_query(
        pool, &(struct uva_adbc_query){.sql = "hollow3",
                                       .result = UVA_ADBC_PARTITIONS});
    ck_assert_int_eq(fixture_run(&f), 0);
    ck_assert_int_eq(f.got.rows, 1);
}
END_TEST

/* The last one is of an unknown code. */
START_TEST(parameters_that_fail_are_reported)
{
    static const int at_once[] = {-1}, later[] = {0, -1}, odd[] = {-7};
    const char *texts[] = {"no more of them", NULL, NULL};
    const int *const lengths[] = {at_once, later, odd};

    made.text = texts[_i];
    make(&plain);
    ck_assert_int_eq(ask_made(lengths[_i], false, "rows 1"),
                     _i == 2 ? EIO : ERANGE);
    text_contains(f.got.outcome.error.message,
                  _i == 0   ? "the parameters fail: no more of them"
                  : _i == 1 ? "the parameters fail: Numerical result"
                            : "the parameters fail: Input/output error");
    ck_assert_int_eq(atomic_load(&fake_driver.executed), 0);
}
END_TEST

/* They are read ahead, so that it may be known before the first rows come. */
START_TEST(parameters_that_fail_behind_the_first_row_are_reported)
{
    struct fake_query q;
    struct ArrowArrayStream rows = result_of_fake(&q, "batch 2 fails");

    make(&plain);
    f.stream = uva_stream_from_query(
        pool,
        &(struct uva_adbc_query){.sql = "parameters", .parameters = &rows});
    ck_assert_int_eq(fixture_run(&f), EIO);
    text_contains(f.got.outcome.error.message,
                  "the parameters fail: division by zero");
    ck_assert_int_le(f.got.rows, 2);
    fake_driver_close(&q);
}
END_TEST

/* Of a result and of partitions: the driver takes a failure for their end,
 * and may have given the first rows by then. */
START_TEST(parameters_that_fail_do_not_just_end)
{
    struct fake_query q;
    struct ArrowArrayStream rows = result_of_fake(&q, "batch 2 fails");

    make(&plain);
    f.stream =
        _i == 0 ? uva_stream_from_query(
                      pool, &(struct uva_adbc_query){.sql = "lenient "
                                                            "parameters",
                                                     .parameters = &rows})
                : uva_stream_from_query(pool, &(struct uva_adbc_query){
                                                  .sql = "partitions 3",
                                                  .result = UVA_ADBC_PARTITIONS,
                                                  .parameters = &rows});
    ck_assert_int_eq(fixture_run(&f), EIO);
    text_contains(f.got.outcome.error.message,
                  "the parameters fail: division by zero");
    ck_assert_int_le(f.got.rows, _i == 0 ? 2 : 0);
    fake_driver_close(&q);
}
END_TEST

/* ---- the offset and the null rows of batches ---------------------------- */

static const uint8_t row_bits[] = {0xFB}; /* row 2 is null */
static const int64_t row_values[] = {0, 1, 2, 3, 4, 5, 6, 7};
static const void *row_buffers[] = {row_bits}, *no_bits[] = {NULL},
                  *value_buffers[] = {row_bits, row_values};

/* A batch of `length` rows from `offset` on, of eight; the structs are static,
 * so that they outlive it. */
static struct ArrowArray *made_batch(int64_t offset, int64_t length,
                                     const void **buffers)
{
    static struct ArrowArray first, second, batch, *children[2];

    first = second = (struct ArrowArray){.length = 8,
                                         .n_buffers = 2,
                                         .buffers = value_buffers,
                                         .release = on_made_array_release};
    second.null_count = 1; /* somewhere */
    children[0] = &first;
    children[1] = &second;
    batch = (struct ArrowArray){.length = length,
                                .offset = offset,
                                .null_count = buffers[0] != NULL ? -1 : 0,
                                .n_buffers = 1,
                                .buffers = buffers,
                                .n_children = 2,
                                .children = children,
                                .release = on_made_array_release};
    return &batch;
}

static struct ArrowArray bound_batch, bound_column; /* copies of structs */

static void on_bound(struct recording_consumer *c, struct uva_batch *batch)
{
    (void)c;
    bound_batch = batch->data.array;
    bound_column = *batch->data.array.children[1];
    ck_assert(bound_batch.buffers[0] == NULL ||
              bound_batch.buffers[0] == row_bits);
}

/* Drivers read the columns alone. Without an offset it is unchanged. */
START_TEST(rows_are_bound_as_those_of_their_columns)
{
    static const struct {
        int64_t offset, length;
        const void **buffers;
    } cases[] = {{0, 8, no_bits},
                 {0, 2, row_buffers},
                 {3, 4, no_bits},
                 {3, 4, row_buffers}};
    static const int one[] = {2, INT_MAX};
    struct ArrowSchema first = made_field("a"), second = made_field("b");
    struct ArrowArrayStream rows = rows_of_made();

    made.fields[0] = &first;
    made.fields[1] = &second;
    made.lengths = one;
    made.batch =
        made_batch(cases[_i].offset, cases[_i].length, cases[_i].buffers);
    make(&plain);
    f.got.on_batch = on_bound;
    f.stream = uva_stream_from_query(
        pool,
        &(struct uva_adbc_query){.sql = "parameters", .parameters = &rows});
    ck_assert_int_eq(fixture_run(&f), 0);
    ck_assert_int_eq(f.got.rows, cases[_i].length);
    ck_assert_int_eq(bound_batch.offset, 0);
    ck_assert_int_eq(bound_column.offset, cases[_i].offset);
    if (cases[_i].offset > 0) {
        ck_assert_int_eq(bound_column.length, cases[_i].length);
        ck_assert_int_eq(bound_column.null_count, -1);
    }
}
END_TEST

/* Of a query, and of a table that is written, by a driver that takes a failure
 * of its rows for their end. */
START_TEST(null_rows_are_not_bound)
{
    static const int one[] = {2, INT_MAX};
    struct ArrowSchema field = made_field("a"), other = made_field("b");
    struct ArrowArrayStream rows = rows_of_made();

    made.fields[0] = &field;
    made.fields[1] = &other;
    made.lengths = one;
    made.batch = made_batch(1, 4, row_buffers);
    make(&plain);
    f.stream = uva_stream_from_query(
        pool, &(struct uva_adbc_query){.sql = _i == 0 ? "parameters" : NULL,
                                       .ingest_table = _i == 1 ? "t" : NULL,
                                       .parameters = &rows});
    ck_assert_int_eq(fixture_run(&f), ENOTSUP);
    text_contains(f.got.outcome.error.message,
                  "the parameters fail: row 1 of a batch is null");
    ck_assert_int_eq(f.got.rows, 0);
}
END_TEST

/* The number of a fault, and whether the rows are written into a table. */
START_TEST(rows_that_do_not_fit_their_schema_are_not_bound)
{
    static const int one[] = {2, INT_MAX};
    struct ArrowSchema first = made_field("a"), second = made_field("b");
    struct ArrowArrayStream rows = rows_of_made();
    struct ArrowArray *batch = made_batch(1, 4, no_bits);
    struct ArrowArray *child = batch->children[1];
    const int fault = _i / 2;

    made.fields[0] = &first;
    made.fields[1] = &second;
    made.lengths = one;
    made.batch = batch;
    made.text = "nothing";
    batch->buffers = fault == 0 ? NULL : batch->buffers;
    batch->null_count = fault == 0 ? -1 : fault == 1 ? 1 : 0;
    batch->offset = fault == 2 ? -1 : 1;
    batch->length = fault == 3 ? -1 : 4;
    batch->n_children = fault == 4 ? 3 : 2;
    batch->children = fault == 5 ? NULL : batch->children;
    child->offset = fault == 6 ? INT64_MAX : fault == 7 ? -1 : 0;
    child->length = fault == 8 ? 4 : 8;
    child->release = fault == 9 ? NULL : child->release;
    if (fault == 10)
        batch->children[1] = NULL;
    make(&plain);
    f.stream = uva_stream_from_query(
        pool, &(struct uva_adbc_query){.sql = _i % 2 == 0 ? "parameters" : NULL,
                                       .ingest_table = _i % 2 == 1 ? "t" : NULL,
                                       .parameters = &rows});
    ck_assert_int_eq(fixture_run(&f), EINVAL);
    text_contains(f.got.outcome.error.message,
                  "the parameters fail: a batch does not fit its schema");
}
END_TEST

/* The driver may know it. */
START_TEST(rows_of_a_format_that_is_unknown_are_bound)
{
    static const int one[] = {2, INT_MAX};
    struct ArrowSchema first = made_field("a"), second = made_field("b");
    struct ArrowArrayStream rows = rows_of_made();

    second.format = "?";
    made.fields[0] = &first;
    made.fields[1] = &second;
    made.lengths = one;
    made.batch = made_batch(1, 4, no_bits);
    make(&plain);
    f.stream = uva_stream_from_query(
        pool,
        &(struct uva_adbc_query){.ingest_table = "t", .parameters = &rows});
    f.got.on_done = on_done;
    ck_assert_int_eq(fixture_run(&f), 0);
    ck_assert_str_eq(metadata, "adbc.rows_affected=4 ");
}
END_TEST

START_TEST(an_array_that_is_none_of_rows_is_not_bound)
{
    static const int one[] = {1, INT_MAX};
    struct ArrowSchema first = made_field("a"), second = made_field("b");

    made.fields[0] = &first;
    made.fields[1] = &second;
    made.format = "l";
    make(&plain);
    ck_assert_int_eq(ask_made(one, _i == 1, "parameters"), EINVAL);
    text_contains(f.got.outcome.error.message,
                  "no rows of columns, but an array of the format 'l'");
}
END_TEST

START_TEST(names_of_parameters_that_cannot_be_are_refused)
{
    static const int some[] = {1, INT_MAX};
    struct ArrowSchema first = made_field("a"), second = made_field(":a"),
                       nameless = made_field(NULL);

    made.fields[0] = &first;
    made.fields[1] = &second;
    fake_driver.parameter = ":a";
    make(&plain);
    ck_assert_int_eq(ask_made(some, true, "rows 1"), EINVAL);
    text_contains(f.got.outcome.error.message, "by_name: two of the parameters "
                                               "are :a");
    uva_stream_release(f.stream);
    made.fields[0] = made.fields[1] = &nameless;
    ck_assert_int_eq(ask_made(some, true, "rows 1"), EINVAL);
    text_contains(f.got.outcome.error.message, "two of the parameters are");
    uva_stream_release(f.stream);
    made.fields[0] = NULL;
    ck_assert_int_eq(ask_made(some, true, "rows 1"), EINVAL);
    text_contains(f.got.outcome.error.message, "the parameters have no schema: "
                                               "Invalid argument");
    uva_stream_release(f.stream);
    made.schema_code = ENOBUFS;
    ck_assert_int_eq(ask_made(some, true, "rows 1"), ENOBUFS);
    text_contains(f.got.outcome.error.message, "the parameters fail");
}
END_TEST

START_TEST(parameters_that_are_not_used_are_released)
{
    static const char *const texts[] = {"refused", "rows 1", "unprepared"};
    struct fake_query q;
    struct ArrowArrayStream rows = rows_of_fake(&q);

    make(&plain);
    f.stream = uva_stream_from_query(
        pool, &(struct uva_adbc_query){.sql = texts[_i], .parameters = &rows});
    if (_i != 1) /* that one is not started */
        ck_assert_int_eq(fixture_run(&f), EINVAL);
    fake_driver_close(&q);
}
END_TEST

/* ---- invalid ------------------------------------------------------------ */

static void pool_refuses(const struct uva_adbc_pool_options *options,
                         const char *text)
{
    struct uva_adbc_pool *none = NULL;
    struct uva_error error;

    ck_assert_int_eq(uva_adbc_pool_new(f.loop.runtime, options, &none, &error),
                     EINVAL);
    text_contains(error.message, text);
    ck_assert_ptr_null(none);
}

static void query_refuses(const struct uva_adbc_query *query, const char *text)
{
    fixture_refused(&f, uva_stream_from_query(pool, query), EINVAL, text);
}

START_TEST(limits_that_are_negative_are_refused)
{
    static const struct uva_adbc_pool_options odd[] = {
        {.connections = -1}, {.stuck_connections = -1}, {.idle_ms = -1},
        {.max_age_ms = -1},  {.connect_ms = -1},        {.wait_ms = -1},
        {.lock_ms = -1},     {.batch_bytes = -1}};

    pool_refuses(&odd[_i], "must not be negative");
    make(&plain);
}
END_TEST

START_TEST(a_pool_either_only_reads_or_not)
{
    static const struct uva_pair maybe[] = {
        {.key = "adbc.connection.readonly", .value = "maybe"}, {0}};
    static const struct uva_pair twice[] = {
        {.key = "adbc.connection.readonly", .value = "true"},
        {.key = "adbc.connection.readonly", .value = "true"},
        {0}};
    struct uva_adbc_pool_options o = plain;

    o.connection_options = _i == 0 ? maybe : twice;
    pool_refuses(&o, "adbc.connection.readonly is given once, as true or "
                     "false");
    make(&plain);
}
END_TEST

START_TEST(parameters_that_lack_a_function_are_refused)
{
    struct ArrowArrayStream rows = rows_of_made();

    rows.get_schema = _i == 0 ? NULL : rows.get_schema;
    rows.get_next = _i == 1 ? NULL : rows.get_next;
    rows.get_last_error = _i == 2 ? NULL : rows.get_last_error;
    make(&plain);
    query_refuses(&(struct uva_adbc_query){.sql = "a", .parameters = &rows},
                  "parameters lacks functions");
    ck_assert(rows.release == NULL);
}
END_TEST

START_TEST(what_is_invalid_is_refused)
{
    static const struct uva_pair odd[] = {
        {.key = "a", .value = "b"},
        {.key = "c", .value = "d\0e", .value_size = 3},
        {0}};
    static const struct uva_pair path[] = {{.key = "uri", .value = "plain"},
                                           {0}};
    struct uva_adbc_pool_options o = plain;
    struct fake_query q;
    struct ArrowArrayStream rows = rows_of_fake(&q), empty = {0};
    struct ArrowArrayStream spare = rows_of_made();

    pool_refuses(NULL, "neither a driver");
    pool_refuses(&(struct uva_adbc_pool_options){.options = path},
                 "neither a driver");
    pool_refuses(&(struct uva_adbc_pool_options){.options = odd}, "has a NUL");
    pool_refuses(&(struct uva_adbc_pool_options){.connection_options = odd},
                 "has a NUL");
    o.reserved[3] = &f;
    pool_refuses(&o, "reserved");
    ck_assert_int_eq(uva_adbc_pool_new(NULL, &plain, &pool, NULL), EINVAL);
    ck_assert_int_eq(uva_adbc_pool_new(f.loop.runtime, &plain, NULL, NULL),
                     EINVAL);
    make(&plain);
    uva_stream_release(uva_stream_from_query(NULL, NULL));
    query_refuses(NULL, "no query");
    query_refuses(&(struct uva_adbc_query){0}, "sql or ingest_table");
    query_refuses(&(struct uva_adbc_query){.sql = "a",
                                           .ingest_table = "b",
                                           .parameters = &rows},
                  "sql or ingest_table");
    ck_assert(rows.release == NULL);
    query_refuses(&(struct uva_adbc_query){.ingest_table = "b"},
                  "needs the rows");
    query_refuses(&(struct uva_adbc_query){.sql = "a", .parameters = &empty},
                  "released");
    query_refuses(&(struct uva_adbc_query){.sql = "a", .options = odd},
                  "has a NUL");
    query_refuses(&(struct uva_adbc_query){.sql = "a", .by_name = true},
                  "by_name needs");
    query_refuses(&(struct uva_adbc_query){.ingest_table = "a",
                                           .parameters = &spare,
                                           .by_name = true},
                  "by_name is for sql");
    ck_assert(spare.release == NULL);
    query_refuses(&(struct uva_adbc_query){.sql = "a", .reserved = {&f}},
                  "reserved");
    query_refuses(&(struct uva_adbc_query){.sql = "a", .busy_ms = -1},
                  "busy_ms and batch_bytes must not be negative");
    query_refuses(&(struct uva_adbc_query){.sql = "a", .batch_bytes = -1},
                  "busy_ms and batch_bytes must not be negative");
    query_refuses(
        &(struct uva_adbc_query){.sql = "a", .window = {.batches = -1}},
        "window");
    fake_driver_close(&q);
}
END_TEST

START_TEST(a_result_without_a_meaning_is_refused)
{
    make(&plain);
    query_refuses(
        &(struct uva_adbc_query){.sql = "a", .result = (enum uva_adbc_result)3},
        "result is none of enum uva_adbc_result");
    query_refuses(
        &(struct uva_adbc_query){.sql = "a",
                                 .result = (enum uva_adbc_result) - 1},
        "result is none of enum uva_adbc_result");
    query_refuses(&(struct uva_adbc_query){.result = UVA_ADBC_PARTITIONS,
                                           .ingest_table = "a"},
                  "ingest_table has no result");
}
END_TEST

/* ---- the end ------------------------------------------------------------ */

START_TEST(a_released_pool_lets_queries_end)
{
    make(&plain);
    play("rows 1");
    start(0, "execute stops");
    await_blocked(1);
    start(1, "rows 2");
    uva_adbc_pool_release(pool);
    fake_driver_go();
    await_end(0);
    await_end(1);
    recording_ended(&got[1], UVA_END_COMPLETE, 0, "");
    pool = NULL;
    uva_adbc_pool_release(NULL);
}
END_TEST

START_TEST(a_pool_may_outlive_its_runtime)
{
    make(&plain);
    play("rows 1");
    loop_close_runtime(&f.loop, 0);
    ck_assert_int_eq(atomic_load(&fake_driver.connections), 1);
    f.stream = ask("rows 1");
    ck_assert_int_eq(fixture_try(&f, NULL), ESHUTDOWN);
    fixture_release(&f);
    uva_adbc_pool_release(pool);
    pool = NULL;
    ck_assert_int_eq(atomic_load(&fake_driver.connections), 0);
}
END_TEST

START_TEST(idle_connections_are_closed)
{
    make(&(struct uva_adbc_pool_options){
        .driver = FAKE, .idle_ms = 1, .keeps_session = true});
    start(0, "execute blocks");
    start(1, "execute blocks");
    await_blocked(2);
    for (int i = 0; i < 2; i++)
        uva_stream_cancel(streams[i], 0, NULL);
    for (int i = 0; i < 2; i++)
        await_end(i);
    while (atomic_load(&fake_driver.connected) < 4) /* until 1 ms passes */
        play("rows 1");
}
END_TEST

static bool has_passed(void *ctx)
{
    loop_nudge(&f.loop);
    return uv_hrtime() - *(uint64_t *)ctx > 20000000;
}

/* Turns the loop for a while. There is no event to wait for that must not come.
 */
static void pass(void)
{
    uint64_t since = uv_hrtime();

    loop_until(&f.loop, has_passed, &since);
}

static void make_two_connections(int32_t idle_ms)
{
    make(&(struct uva_adbc_pool_options){.driver = FAKE,
                                         .connections = 2,
                                         .idle_ms = idle_ms,
                                         .keeps_session = true});
    start(0, "execute waits");
    start(1, "execute waits");
    await_blocked(2);
    fake_driver_go();
    await_end(0);
    await_end(1);
    ck_assert_int_eq(atomic_load(&fake_driver.connected), 2);
    atomic_store(&fake_driver.goes, false);
    fake_driver.closes_late = true;
}

/* One query closes the connections that are idle for too long; the next one
 * waits until there is room. */
START_TEST(connections_that_are_being_closed_count)
{
    make_two_connections(1);
    pass();
    start(0, "rows 1");
    await_blocked(1);
    start(1, "rows 1");
    pass();
    fake_driver_go();
    await_end(0);
    await_end(1);
    ck_assert_int_eq(atomic_load(&fake_driver.most), 2);
}
END_TEST

START_TEST(connections_of_a_released_pool_count)
{
    make_two_connections(0);
    for (int i = 0; i < 3; i++)
        streams[i] = ask("rows 1");
    uva_adbc_pool_release(pool);
    pool = NULL;
    await_blocked(1);
    for (int i = 0; i < 3; i++) {
        recording_init(&got[i]);
        recording_start(&got[i], streams[i]);
    }
    pass();
    uva_stream_cancel(streams[1], 0, NULL); /* it waits for room */
    await_end(1);
    recording_ended(&got[1], UVA_END_CANCELLED, ECANCELED, "");
    fake_driver_go();
    await_end(0);
    await_end(2);
    ck_assert_int_eq(atomic_load(&fake_driver.most), 2);
}
END_TEST

/* ADBC allows one call of a database at a time. */
START_TEST(connections_are_opened_one_after_the_other)
{
    fake_driver.connects_late = true;
    make(&plain);
    for (int i = 0; i < 3; i++)
        start(i, "rows 1");
    await_blocked(1);
    pass();
    ck_assert_int_eq(atomic_load(&fake_driver.blocked), 1);
    uva_stream_cancel(streams[1], 0, NULL);
    await_end(1);
    pass();
    fake_driver_go();
    await_end(0);
    await_end(2);
    recording_ended(&got[0], UVA_END_COMPLETE, 0, "");
    recording_ended(&got[2], UVA_END_COMPLETE, 0, "");
}
END_TEST

/* ---- without memory ----------------------------------------------------- */

/* The last one has rows with an offset, which go into structs of our own. */
static const char *const swept[] = {"rows 2", "execute fails", NULL,
                                    "parameters", "parameters"};

START_TEST(every_allocation_may_fail)
{
    static const int one[] = {2, INT_MAX};
    struct uva_adbc_query query = {.sql = swept[_i], .options = good};
    struct ArrowSchema first = made_field("a"), second = made_field("b");
    struct fake_query q;
    struct ArrowArrayStream rows;
    bool failed = true;

    made.fields[0] = &first;
    made.fields[1] = &second;
    made.batch = made_batch(3, 4, no_bits);
    made.text = "not of this call";
    for (long k = 1; failed; k++) {
        rows = rows_of_fake(&q);
        made.lengths = one;
        if (_i == 4) {
            rows.release(&rows);
            rows = rows_of_made();
        }
        query.ingest_table = _i == 2 ? "table" : NULL;
        query.by_name = _i == 3;
        fake_driver.parameter = ":n";
        query.parameters = &rows;
        faulty_libc_fail(k);
        if (uva_adbc_pool_new(
                f.loop.runtime,
                &(struct uva_adbc_pool_options){.driver = FAKE,
                                                .entrypoint = "fake_other_init",
                                                .options = good,
                                                .connection_options = good},
                &pool, NULL) == 0) {
            f.stream = uva_stream_from_query(pool, &query);
            if (fixture_try(&f, NULL) == 0)
                (void)fixture_await(&f);
        }
        failed = faulty_libc_stop();
        ck_assert_ptr_null(
            strstr(f.got.outcome.error.message, "not of this call"));
        if (rows.release != NULL)
            rows.release(&rows);
        fixture_release(&f);
        fake_driver_close(&q);
        finish();
        fixture_open(&f, 0);
        ck_assert_int_lt(k, 1000);
    }
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("pool");

    tcase_add_test(tc, queries_use_one_connection_after_the_other);
    tcase_add_test(tc, updates_are_executed_without_a_result);
    tcase_add_test(tc, many_queries_share_few_connections);
    tcase_add_test(tc, a_connection_of_a_failed_query_is_closed);
    tcase_add_loop_test(tc, a_limit_of_the_first_batch_counts_from_the_start, 0,
                        4);
    tcase_add_test(
        tc, a_limit_of_the_first_batch_counts_while_a_query_waits_for_a_permit);
    tcase_add_test(tc, a_query_that_waits_for_its_turn_can_be_cancelled);
    tcase_add_test(tc, a_query_does_not_wait_for_ever);
    tcase_add_test(tc,
                   a_query_that_is_opened_ahead_takes_no_connection_of_another);
    tcase_add_test(tc, a_driver_that_does_not_connect_is_asked_again);
    tcase_add_test(tc, options_are_set);
    tcase_add_test(tc, an_old_driver_cannot_be_cancelled);
    tcase_add_loop_test(tc, a_driver_may_have_few_functions, 0, 5);
    suite_add(tc, a_connection_without_autocommit_is_not_kept,
              no_driver_is_an_error_of_the_query, what_is_invalid_is_refused,
              a_result_without_a_meaning_is_refused, NULL);
    tcase_add_loop_test(tc, limits_that_are_negative_are_refused, 0, 8);
    tcase_add_test(tc, a_released_pool_lets_queries_end);
    tcase_add_test(tc, a_pool_may_outlive_its_runtime);
    tcase_add_test(tc, idle_connections_are_closed);
    tcase_add_test(tc, connections_that_are_being_closed_count);
    tcase_add_test(tc, connections_are_opened_one_after_the_other);
    tcase_add_test(tc, connections_of_a_released_pool_count);
    tcase_add_test(tc, a_driver_may_clear_what_it_fills_in);
    tcase_add_test(tc, a_driver_may_give_no_result_at_all);
    suite_add_loops(tc, 0, 2, a_cancelled_query_ends_at_once,
                    options_of_a_connection_are_set_when_the_driver_takes_them,
                    a_query_that_only_reads_needs_a_driver_that_can,
                    a_pool_either_only_reads_or_not,
                    a_connection_that_was_cancelled_at_the_end_is_closed,
                    an_array_that_is_none_of_rows_is_not_bound,
                    null_rows_are_not_bound, parameters_are_bound,
                    parameters_that_fail_do_not_just_end,
                    parameters_without_rows_execute_nothing, NULL);
    tcase_add_loop_test(tc, parameters_are_bound_by_name, 0, 9);
    tcase_add_test(tc, a_driver_that_binds_in_order_alone_is_not_asked_by_name);
    tcase_add_test(tc, parameters_without_rows_have_no_partitions);
    tcase_add_test(tc, a_partition_may_have_an_empty_descriptor);
    tcase_add_test(tc, parameters_that_fail_behind_the_first_row_are_reported);
    tcase_add_test(tc, names_of_parameters_that_cannot_be_are_refused);
    tcase_add_loop_test(tc, every_allocation_may_fail, 0, 5);
    tcase_add_loop_test(tc, rows_are_bound_as_those_of_their_columns, 0, 4);
    tcase_add_loop_test(tc, rows_that_do_not_fit_their_schema_are_not_bound, 0,
                        22);
    tcase_add_test(tc, rows_of_a_format_that_is_unknown_are_bound);
    tcase_add_test(tc, a_driver_may_give_nothing);
    tcase_add_test(tc, a_connection_is_cancelled_where_a_statement_cannot_be);
    suite_add_loops(tc, 0, 3, an_option_that_is_refused_is_named,
                    parameters_that_are_not_used_are_released,
                    parameters_that_lack_a_function_are_refused,
                    parameters_that_fail_are_reported, NULL);
    return suite_main("pool", set_up, tear_down, tc, NULL);
}
