/* SPDX-License-Identifier: Apache-2.0 */
/* C++20: a coroutine that reads two streams as one, and, with a database, keeps
 * the sum in a transaction.
 *
 *     $ ./12_coroutine
 *     2000 rows, sum 999000
 *     $ ./12_coroutine sqlite sums.db
 *     2000 rows, sum 999000
 *     committed
 */
#include <coroutine>
#include <cstdio>
#include <exception>
#include <uv.h>

#include "data.h"
#include "uvarrow/adbc.hpp"
#include "uvarrow/uvarrow.hpp"

// A coroutine that runs by itself and frees itself at its end.
struct job {
    struct promise_type {
        job get_return_object() noexcept
        {
            return {};
        }
        std::suspend_never initial_suspend() noexcept
        {
            return {};
        }
        std::suspend_never final_suspend() noexcept
        {
            return {};
        }
        void return_void() noexcept
        {
        }
        void unhandled_exception() noexcept
        {
            std::terminate();
        }
    };
};

static job run(uva_runtime *rt, const uva::adbc_pool &pool)
{
    uva_error error{};
    int64_t rows = 0, sum = 0;
    uva::stream both(data_stream(rt, 8, 10, 100));

    both.merge(uva::stream(data_stream(rt, 4, 10, 100)), {.cast = true})
        .timeout({.first_ms = 5000});
    uva::reader reader(std::move(both), {.batches = 8});
    while (uva::array batch = co_await reader.next(&error)) {
        auto *values =
            static_cast<const int64_t *>(data_values(&batch->array, 8));

        for (int64_t i = 0; i < batch->array.length; i++)
            sum += values[i];
        rows += batch->array.length;
    }
    std::printf("%d rows, sum %d\n", (int)rows, (int)sum);

    uva::adbc_pool session;
    if (!pool || error.code != 0 || pool.session(session, {}, &error) != 0)
        co_return;
    const uva_value values[] = {{.type = UVA_VALUE_INT, .integer = sum}, {}};
    uva::reader create(session.query("CREATE TABLE IF NOT EXISTS sums (n)"));
    uva::reader insert(session.query({.sql = "INSERT INTO sums VALUES (?)",
                                      .result = UVA_ADBC_CHANGES,
                                      .values = values}));
    uva::reader commit(session.commit());

    for (uva::reader *step : {&create, &insert, &commit})
        if (error.code == 0)
            co_await step->next(&error); // no rows: the end
    std::printf("%s\n", error.code == 0 ? "committed" : error.message);
} // without a commit, the session rolls back

int main(int argc, char **argv)
{
    const uva_pair options[] = {
        {.key = "uri", .value = argc == 3 ? argv[2] : ""}, {}};
    uva::runtime rt;
    uva::adbc_pool pool;
    uva_error error{};
    int code = rt.open(uv_default_loop(), {}, &error);

    if (code == 0 && argc == 3)
        code = pool.open(rt.get(), {.driver = argv[1], .options = options},
                         &error);
    if (code != 0)
        return std::printf("%s\n", error.message), 1;
    run(rt.get(), pool);
    (void)uv_run(uv_default_loop(), UV_RUN_DEFAULT);
    rt.close();
    return uv_run(uv_default_loop(), UV_RUN_DEFAULT);
}
