// SPDX-License-Identifier: Apache-2.0
// The class of adbc.hpp, on SQLite: queries, the catalog, errors, and a pool
// that ends before its streams. Without the driver it only checks failures.
#include "uvarrow/adbc.hpp"
#include "uvarrow/uvarrow.hpp"

#include <cassert>
#include <cerrno>
#include <cstring>
#include <unistd.h>
#include <utility>
#include <uv.h>

// The result of a stream.
struct result {
    int code;
    int64_t rows;
};

static result result_of(uva::stream s)
{
    result got{-1, 0};
    uva::consumer add(
        [&](uva_batch &b) {
            got.rows += b.data.array.length;
            return 0;
        },
        [&](const uva_outcome &o) { got.code = o.error.code; });
    const int code = s.for_each(add);

    s.release();
    if (code != 0)
        return {code, 0};
    while (got.code < 0)
        (void)uv_run(uv_default_loop(), UV_RUN_ONCE);
    return got;
}

static void what_is_asked_is_given(uva_runtime *rt)
{
    static const uva_pair options[] = {
        {"uri", "file:cpp?mode=memory&cache=shared", 0, 0}, {}};
    uva::adbc_pool pool;
    const int code =
        pool.open(rt, uva::options<uva_adbc_pool_options>()
                          .set(&uva_adbc_pool_options::driver, UVA_TEST_DRIVER)
                          .set(&uva_adbc_pool_options::options, options));

    assert(code == 0 && pool);
    uva::adbc_pool kept = std::move(pool);
    assert(!pool);
    result got = result_of(kept.query("CREATE TABLE t (n INTEGER)"));
    assert(got.code == 0);
    got = result_of(kept.query("INSERT INTO t VALUES (1), (2), (3)"));
    assert(got.code == 0);
    got = result_of(kept.query("SELECT * FROM t"));
    assert(got.code == 0 && got.rows == 3);
    got = result_of(kept.objects());
    assert(got.code == 0 && got.rows == 1);
    got = result_of(kept.table_schema("t"));
    assert(got.code == 0 && got.rows == 0);
    got = result_of(kept.query("SELECT * FROM missing"));
    assert(got.code == EINVAL);
    got = result_of(
        kept.query(uva::options<uva_adbc_query>()
                       .set(&uva_adbc_query::sql, "SELECT 1")
                       .set(&uva_adbc_query::result, UVA_ADBC_PARTITIONS)));
    assert(got.code == ENOTSUP);
    got = result_of(kept.partition("", 0));
    assert(got.code == ENOTSUP);

    uva::stream last = kept.query("SELECT * FROM t");
    kept = uva::adbc_pool(); // the stream keeps the pool
    got = result_of(std::move(last));
    assert(got.code == 0 && got.rows == 3);
}

static void a_session_commits_and_rolls_back(uva_runtime *rt)
{
    static const uva_pair options[] = {
        {"uri", "file:session?mode=memory&cache=shared", 0, 0}, {}};
    uva::adbc_pool pool, session;
    int code =
        pool.open(rt, uva::options<uva_adbc_pool_options>()
                          .set(&uva_adbc_pool_options::driver, UVA_TEST_DRIVER)
                          .set(&uva_adbc_pool_options::options, options));

    assert(code == 0);
    code = pool.session(session);
    assert(code == 0 && session);
    result got = result_of(session.query("CREATE TABLE t (n INTEGER)"));
    assert(got.code == 0);
    got = result_of(session.commit());
    assert(got.code == 0);
    got = result_of(session.query("INSERT INTO t VALUES (1)"));
    assert(got.code == 0 && pool.stats().connections_used == 1);
    got = result_of(session.rollback());
    assert(got.code == 0);
    got = result_of(session.query("SELECT * FROM t"));
    assert(got.code == 0 && got.rows == 0);
    code = session.session(pool);
    assert(code == EINVAL && pool);
}

static void what_is_invalid_is_refused(uva_runtime *rt)
{
    uva::adbc_pool none;
    uva_error error{};
    AdbcStatement statement{};
    result got;
    const int code = none.open(rt, {}, &error);

    assert(code == EINVAL && !none);
    assert(std::strstr(error.message, "neither a driver") != nullptr);
    got = result_of(none.query("SELECT 1"));
    assert(got.code == EINVAL);
    got = result_of(none.partitions(ArrowArray{}));
    assert(got.code == EINVAL);
    got = result_of(uva::from_adbc(rt, statement));
    assert(got.code == EINVAL);
}

int main()
{
    uva::runtime rt;
    const int code = rt.open(uv_default_loop());

    assert(code == 0);
    a_session_commits_and_rolls_back(rt.get());
    what_is_invalid_is_refused(rt.get());
    if (access(UVA_TEST_DRIVER, R_OK) == 0)
        what_is_asked_is_given(rt.get());
    rt.close();
    (void)uv_run(uv_default_loop(), UV_RUN_DEFAULT);
    return 0;
}
