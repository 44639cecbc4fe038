// SPDX-License-Identifier: Apache-2.0
// C++20: `while (uva::array batch = co_await r.next(&error))` of uvarrow.hpp.
#include <coroutine>

#include "uvarrow/uvarrow.hpp"

#include <cassert>
#include <uv.h>

#include "support/world.h"

// A coroutine that starts at once; its owner may destroy it at any time.
struct job {
    struct promise_type {
        job get_return_object()
        {
            return {std::coroutine_handle<promise_type>::from_promise(*this)};
        }
        std::suspend_never initial_suspend() noexcept
        {
            return {};
        }
        std::suspend_always final_suspend() noexcept
        {
            return {};
        }
        void return_void()
        {
        }
        void unhandled_exception()
        {
            std::terminate();
        }
    };
    std::coroutine_handle<promise_type> handle;
};

struct counted {
    int64_t rows = 0;
    uva_error error{};
    bool ended = false;
};

static job count_rows(uva::stream s, counted &c)
{
    uva::reader r(std::move(s));

    while (uva::array batch = co_await r.next(&c.error)) {
        const ArrowArray &a = batch->array;
        for (int64_t i = 0; i < a.length; i++)
            assert(column_values(&a)[i] == c.rows++);
    }
    c.ended = true;
}

static uva::stream scan(const uva::runtime &rt, db *d)
{
    uva::arrow_stream rows;
    const int code = db_query(d, "SELECT * FROM flights", rows.out());

    assert(code == 0);
    return uva::stream::from_arrow_stream(rt.get(), rows.get());
}

// A stream that gives one batch of 10 rows, and no end.
static uva::stream push_one(const uva::runtime &rt, uva::pusher &pusher)
{
    uva::stream s = uva::stream::from_pusher(rt.get(), pusher);
    uva::schema schema;
    uva::cpu_array plain;
    uva::array batch;
    int code = column_schema(schema.out());

    code = code ? code : column_count_up(0, 10, plain.out());
    code = code ? code : pusher.set_schema(schema.get());
    uva_array_from_cpu(plain.get(), batch.out());
    code = code ? code : pusher.push(batch.get(), nullptr, 0);
    assert(code == 0);
    return s;
}

int main()
{
    counted whole, broken, refused, destroyed, waiting;
    {
        uva::runtime rt;
        const int code = rt.open(uv_default_loop());
        db *const good = db_open("flights.db"), *const bad =
                                                    db_open("flights.db");

        assert(code == 0);
        db_interrupt(bad); // its first batch is an error
        const job jobs[] = {count_rows(scan(rt, good), whole),
                            count_rows(scan(rt, bad), broken),
                            count_rows(uva::stream(), refused)};
        job early = count_rows(scan(rt, good), destroyed);
        early.handle.destroy(); // while its first batch is on the way

        uva::pusher pusher;
        job late = count_rows(push_one(rt, pusher), waiting);
        while (waiting.rows == 0)
            uv_run(uv_default_loop(), UV_RUN_ONCE);
        late.handle.destroy(); // while it waits for the second batch
        pusher.close();

        uv_run(uv_default_loop(), UV_RUN_DEFAULT);
        for (const job &j : jobs)
            j.handle.destroy();
        db_close(good);
        db_close(bad);
    }
    assert(whole.ended && whole.error.code == 0);
    assert(whole.rows == DB_BATCHES * DB_ROWS);
    assert(broken.ended && broken.error.code == ECANCELED && broken.rows == 0);
    assert(refused.ended && refused.error.code == EINVAL);
    assert(!destroyed.ended && destroyed.rows == 0);
    assert(!waiting.ended && waiting.rows == 10);
    uv_run(uv_default_loop(), UV_RUN_DEFAULT); // ends the runtime
    world_await_release();
    return uv_loop_close(uv_default_loop());
}
