/* SPDX-License-Identifier: Apache-2.0 */
/* DuckDB, through its own ADBC driver, as the source of a stream: its rows
 * arrive as they do without a stream, and a query that would take hours is
 * cancelled while a worker waits in it, in open or in get_next. */
#include <arrow-adbc/adbc.h>
#include <arrow/c/bridge.h>
#include <dlfcn.h>
#include <sched.h>

#include <atomic>
#include <cerrno>
#include <cstring>

#include "arrow_peer.hpp"

namespace
{

using namespace interop;

constexpr int SKIP = 77;
constexpr int TOS = static_cast<int>(To::END);

/* Rows of many types, the same in every run. */
const char ROWS[] =
    "SELECT i, i::TINYINT AS i8, i::UBIGINT AS u64, i::HUGEINT AS i128, "
    "i % 3 = 0 AS b, i / 7 AS d, i::FLOAT AS f, i::DECIMAL(9, 3) AS dec, "
    "'row ' || i AS s, repeat('x', i % 40) AS t, 'a'::BLOB AS bl, "
    "DATE '2013-01-01' + i::INT AS dt, TIME '12:00:00' AS ti, "
    "TIMESTAMP '2013-01-01 05:15:00' + to_seconds(i) AS ts, "
    "to_days(i::INT) AS iv, [i, NULL, i + 1] AS l, [i, i]::INT[2] AS a, "
    "{'x': i, 'y': ['z', NULL]} AS st, MAP {'k': i} AS m, "
    "'b'::ENUM('a', 'b') AS e, NULL AS n, "
    "CASE WHEN i % 2 = 0 THEN 'even' END AS half "
    "FROM range(100) r(i), range(200) q(j) ORDER BY i, j";

/* A sum that takes hours before the first row. */
const char ENDLESS_SUM[] =
    "SELECT sum(hash(a.i + b.i)) FROM range(10000000) a(i), "
    "range(10000000) b(i)";

/* Some rows, and then no row for hours. */
const char ENDLESS_ROWS[] = "SELECT i FROM range(1000000000000) r(i) "
                            "WHERE i < 3000000 OR hash(i) = 42";

/* ---- the driver --------------------------------------------------------- */

AdbcDriverInitFunc init_duckdb;

bool load_duckdb()
{
    if (dlopen(UVA_TEST_LIBPYTHON, RTLD_LAZY | RTLD_GLOBAL) == nullptr)
        return false;
    void *library = dlopen(UVA_TEST_DUCKDB, RTLD_LAZY | RTLD_LOCAL);
    if (library == nullptr)
        return false;
    init_duckdb = reinterpret_cast<AdbcDriverInitFunc>(
        dlsym(library, "duckdb_adbc_init"));
    return init_duckdb != nullptr;
}

/* One query: the ctx of a stream. */
struct Session {
    const char *sql;
    const char *before; /* a statement that open runs, or NULL */
    AdbcDriver driver{};
    AdbcDatabase database{};
    AdbcConnection connection{};
    AdbcStatement statement{};
    ArrowArrayStream rows{};
    std::atomic<bool> waiting = false; /* for rows: only there does DuckDB take
                                          a cancel */
    std::atomic<bool> opened = false;
    std::atomic<int> interrupts = 0;
    std::atomic<bool> freed = false;

    explicit Session(const char *query, const char *first = nullptr)
        : sql(query), before(first)
    {
    }

    bool prepare(AdbcError *adbc_error)
    {
        return init_duckdb(ADBC_VERSION_1_1_0, &driver, adbc_error) == 0 &&
               driver.DatabaseNew(&database, adbc_error) == 0 &&
               driver.DatabaseInit(&database, adbc_error) == 0 &&
               driver.ConnectionNew(&connection, adbc_error) == 0 &&
               driver.ConnectionInit(&connection, &database, adbc_error) == 0 &&
               driver.StatementNew(&connection, &statement, adbc_error) == 0;
    }

    bool execute(const char *query, AdbcError *adbc_error)
    {
        return driver.StatementSetSqlQuery(&statement, query, adbc_error) ==
                   0 &&
               driver.StatementExecuteQuery(&statement, &rows, nullptr,
                                            adbc_error) == 0;
    }

    int next(ArrowArray *array)
    {
        waiting = true;
        const int code = rows.get_next(&rows, array);
        waiting = false;
        return code;
    }

    /* Runs a statement to its end: DuckDB does not begin until rows are
     * requested. */
    int finish(const char *query, uva_error *error)
    {
        AdbcError adbc_error = ADBC_ERROR_INIT;
        ArrowArray array{};
        int code = 0;

        if (!execute(query, &adbc_error))
            return translate(&adbc_error, error);
        do {
            if (array.release != nullptr)
                array.release(&array);
            code = next(&array);
        } while (code == 0 && array.release != nullptr);
        if (code != 0)
            uva_error_set(error, code, "%s", rows.get_last_error(&rows));
        rows.release(&rows);
        return code;
    }

    static int translate(AdbcError *adbc_error, uva_error *error)
    {
        uva_error_set(error, EIO, "%s", adbc_error->message);
        adbc_error->release(adbc_error);
        return EIO;
    }

    /* Gives DuckDB's rows, and records when a call waits for them. */
    void lend(ArrowArrayStream *out)
    {
        out->get_schema = [](ArrowArrayStream *self, ArrowSchema *schema) {
            auto *inner = &of(self)->rows;
            return inner->get_schema(inner, schema);
        };
        out->get_next = [](ArrowArrayStream *self, ArrowArray *array) {
            return of(self)->next(array);
        };
        out->get_last_error = [](ArrowArrayStream *self) {
            auto *inner = &of(self)->rows;
            return inner->get_last_error(inner);
        };
        out->release = [](ArrowArrayStream *self) {
            auto *inner = &of(self)->rows;
            inner->release(inner);
            self->release = nullptr;
        };
        out->private_data = this;
    }

    static Session *of(ArrowArrayStream *self)
    {
        return static_cast<Session *>(self->private_data);
    }

    static int open(void *ctx, ArrowArrayStream *out, uva_error *error)
    {
        auto *s = static_cast<Session *>(ctx);
        AdbcError adbc_error = ADBC_ERROR_INIT;
        int code = s->prepare(&adbc_error) ? 0 : translate(&adbc_error, error);

        if (code == 0 && s->before != nullptr)
            code = s->finish(s->before, error);
        if (code == 0 && !s->execute(s->sql, &adbc_error))
            code = translate(&adbc_error, error);
        if (code == 0)
            s->lend(out);
        s->opened = code == 0;
        return code;
    }

    /* DuckDB drops a cancel that comes before the query has begun, so this
     * repeats it until the call has returned. */
    static void interrupt(void *ctx)
    {
        auto *s = static_cast<Session *>(ctx);

        do {
            AdbcError adbc_error = ADBC_ERROR_INIT;

            if (s->driver.StatementCancel(&s->statement, &adbc_error) != 0)
                adbc_error.release(&adbc_error);
            s->interrupts++;
            sched_yield();
        } while (s->waiting);
    }

    static void free_ctx(void *ctx)
    {
        auto *s = static_cast<Session *>(ctx);
        AdbcError adbc_error = ADBC_ERROR_INIT;

        if (s->statement.private_data != nullptr)
            s->driver.StatementRelease(&s->statement, &adbc_error);
        if (s->connection.private_data != nullptr)
            s->driver.ConnectionRelease(&s->connection, &adbc_error);
        if (s->database.private_data != nullptr)
            s->driver.DatabaseRelease(&s->database, &adbc_error);
        if (s->driver.release != nullptr)
            s->driver.release(&s->driver, &adbc_error);
        s->freed = true;
    }

    uva_stream *stream(World &world)
    {
        uva_arrow_source how{};

        how.open = open;
        how.interrupt = interrupt;
        how.free_ctx = free_ctx;
        how.ctx = this;
        return uva_stream_from_arrow_stream(world.runtime, nullptr, &how);
    }
};

/* Reads a query with Arrow directly, without our stream. */
Batches rows_without_stream(const char *sql)
{
    Session session(sql);
    ArrowArrayStream rows{};
    Batches batches;

    ck_assert_int_eq(Session::open(&session, &rows, nullptr), 0);
    auto reader = value_of(arrow::ImportRecordBatchReader(&rows));
    for (;;) {
        Batch batch;

        ck_assert_arrow(reader->ReadNext(&batch));
        if (!batch)
            break;
        batches.push_back(batch);
    }
    reader.reset();
    Session::free_ctx(&session);
    return batches;
}

/* Checks that the stream is over and no call of DuckDB is running. */
void check_rest(World &world, const Session &session)
{
    uva_runtime_stats stats;

    world.until([&session] { return session.freed.load(); });
    uva_runtime_get_stats(world.runtime, &stats);
    ck_assert_int_eq(stats.calls_stuck, 0);
}

/* ---- cases -------------------------------------------------------------- */

START_TEST(rows_arrive_as_they_do_without_a_stream)
{
    const Batches expected = rows_without_stream(ROWS);
    Session session(ROWS);
    World world;

    const Delivery got =
        carry(world, session.stream(world), static_cast<To>(_i));

    ck_assert_arrow(got.status);
    ck_assert_int_eq(got.ending.end, UVA_END_COMPLETE);
    ck_assert_uint_gt(expected.size(), 1);
    check_equal(expected, got.batches);
}
END_TEST

START_TEST(a_wrong_query_is_told_in_its_words)
{
    Session session("SELECT * FROM nowhere");
    World world;

    const Delivery got = carry(world, session.stream(world), To::EACH);

    ck_assert_int_eq(got.ending.end, UVA_END_FAILED);
    ck_assert_int_eq(got.ending.code, EIO);
    ck_assert_ptr_nonnull(
        std::strstr(got.ending.message.c_str(), "nowhere does not exist"));
}
END_TEST

START_TEST(an_error_among_the_rows_is_told_in_its_words)
{
    Session session("SELECT CASE WHEN i = 50000 THEN error('row is bad') "
                    "ELSE i::VARCHAR END FROM range(100000) r(i)");
    World world;

    const Delivery got =
        carry(world, session.stream(world), static_cast<To>(_i));
    const std::string &text = got.ending.done && got.status.ok()
                                  ? got.ending.message
                                  : got.status.ToString();

    ck_assert_msg(std::strstr(text.c_str(), "row is bad") != nullptr, "%s",
                  text.c_str());
}
END_TEST

/* A consumer on the loop, which runs while a worker waits in DuckDB. */
struct Watch {
    int batches = 0;
    Ending ending;

    void start(uva_stream *stream)
    {
        uva_consumer consumer{};

        consumer.on_batch = [](void *ctx, uva_batch *) {
            static_cast<Watch *>(ctx)->batches++;
            return 0;
        };
        consumer.on_done = [](void *ctx, const uva_outcome *outcome) {
            Ending::on_done(&static_cast<Watch *>(ctx)->ending, outcome);
        };
        consumer.ctx = this;
        ck_assert_int_eq(uva_stream_for_each(stream, &consumer, nullptr), 0);
    }
};

/* Turns the loop without blocking: the condition becomes true on workers. */
void spin_until(World &world, const std::function<bool()> &is_over)
{
    while (!is_over()) {
        uv_run(&world.loop, UV_RUN_NOWAIT);
        sched_yield();
    }
}

START_TEST(a_query_is_cancelled_while_open_waits)
{
    Session session("SELECT 1", ENDLESS_SUM);
    World world;
    Watch watch;
    uva_stream *stream = session.stream(world);

    watch.start(stream);
    spin_until(world, [&session] { return session.waiting.load(); });
    uva_stream_cancel(stream, 0, "the user is tired");
    spin_until(world, [&watch] { return watch.ending.done; });
    uva_stream_release(stream);

    ck_assert_int_eq(watch.ending.end, UVA_END_CANCELLED);
    ck_assert_int_eq(watch.ending.code, ECANCELED);
    check_text(watch.ending.message, "the user is tired");
    check_rest(world, session);
    ck_assert(!session.opened);
    ck_assert_int_ge(session.interrupts, 1);
}
END_TEST

START_TEST(a_query_is_cancelled_before_its_first_row)
{
    Session session(ENDLESS_SUM);
    World world;
    Watch watch;
    uva_stream *stream = session.stream(world);

    watch.start(stream);
    spin_until(world, [&session] { return session.opened && session.waiting; });
    uva_stream_cancel(stream, 0, nullptr);
    spin_until(world, [&watch] { return watch.ending.done; });
    uva_stream_release(stream);

    ck_assert_int_eq(watch.ending.end, UVA_END_CANCELLED);
    ck_assert_int_eq(watch.batches, 0);
    check_rest(world, session);
    ck_assert_int_ge(session.interrupts, 1);
}
END_TEST

START_TEST(a_query_is_cancelled_among_its_rows)
{
    Session session(ENDLESS_ROWS);
    World world;
    Watch watch;
    uva_stream *stream = session.stream(world);

    watch.start(stream);
    spin_until(world, [&] { return watch.batches > 0 && session.waiting; });
    uva_stream_cancel(stream, 0, nullptr);
    spin_until(world, [&watch] { return watch.ending.done; });
    uva_stream_release(stream);

    ck_assert_int_eq(watch.ending.end, UVA_END_CANCELLED);
    check_rest(world, session);
}
END_TEST

START_TEST(a_query_is_dropped_while_it_runs)
{
    Session session(ENDLESS_SUM);
    World world;
    Watch watch;
    uva_stream *stream = session.stream(world);

    watch.start(stream);
    spin_until(world, [&session] { return session.waiting.load(); });
    uva_stream_drop(stream);

    check_rest(world, session);
    ck_assert(!watch.ending.done);
}
END_TEST

START_TEST(a_runtime_closes_around_a_query_that_runs)
{
    Session session(ENDLESS_SUM);
    World world;
    Watch watch;
    uva_stream *stream = session.stream(world);

    watch.start(stream);
    spin_until(world, [&session] { return session.waiting.load(); });
    world.close();
    spin_until(world, [&session] { return session.freed.load(); });
    uva_stream_release(stream);

    ck_assert_int_eq(watch.ending.end, UVA_END_CANCELLED);
}
END_TEST

/* A blocking reader waits for rows that never come; the loop cancels. */
START_TEST(a_waiting_reader_is_told_of_the_cancel)
{
    Session session(ENDLESS_SUM);
    World world;
    uva_stream *stream = uva_stream_acquire(session.stream(world));
    uv_idle_t idle;
    struct Canceller {
        Session *session;
        uva_stream *stream;
    } canceller{&session, stream};

    uv_idle_init(&world.loop, &idle);
    idle.data = &canceller;
    uv_idle_start(&idle, [](uv_idle_t *handle) {
        auto *c = static_cast<Canceller *>(handle->data);

        if (!c->session->waiting)
            return;
        uva_stream_cancel(c->stream, ETIMEDOUT, "no rows in time");
        uv_close(reinterpret_cast<uv_handle_t *>(handle), nullptr);
    });
    const Delivery got = carry(world, stream, static_cast<To>(_i));
    uva_stream_release(stream);

    ck_assert(!got.status.ok());
    ck_assert_ptr_nonnull(
        std::strstr(got.status.ToString().c_str(), "no rows in time"));
    check_rest(world, session);
}
END_TEST

} // namespace

int main()
{
    Suite *suite = suite_create("duckdb");
    TCase *tcase = new_case(suite, "duckdb");

    if (!load_duckdb())
        return SKIP;
    tcase_add_loop_test(tcase, rows_arrive_as_they_do_without_a_stream, 0, TOS);
    tcase_add_test(tcase, a_wrong_query_is_told_in_its_words);
    tcase_add_loop_test(tcase, an_error_among_the_rows_is_told_in_its_words, 0,
                        TOS);
    tcase_add_test(tcase, a_query_is_cancelled_while_open_waits);
    tcase_add_test(tcase, a_query_is_cancelled_before_its_first_row);
    tcase_add_test(tcase, a_query_is_cancelled_among_its_rows);
    tcase_add_test(tcase, a_query_is_dropped_while_it_runs);
    tcase_add_test(tcase, a_runtime_closes_around_a_query_that_runs);
    tcase_add_loop_test(tcase, a_waiting_reader_is_told_of_the_cancel,
                        static_cast<int>(To::DRIVE), TOS);
    return run_suite(suite);
}
