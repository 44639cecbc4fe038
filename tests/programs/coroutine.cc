// SPDX-License-Identifier: Apache-2.0
// C++20: `while (auto batch = co_await next(s))` over uva_stream_next().
#include <cassert>
#include <coroutine>
#include <exception>
#include <optional>
#include <uv.h>

#include "support/world.h"
#include "uva.hpp"

struct array { // owns one device array
    ArrowDeviceArray a{};
    array() = default;
    array(array &&o) noexcept
    {
        uva_array_move(&o.a, &a);
    }
    ~array()
    {
        uva_array_release(&a);
    }
};

struct next { // one call is one awaitable
    uva_stream *s;
    std::coroutine_handle<> waiting{};
    std::optional<array> got{};
    uva_error failure{};

    bool await_ready() const noexcept
    {
        return false;
    }
    bool await_suspend(std::coroutine_handle<> h)
    {
        waiting = h; // safe: the callback always runs later
        return uva_stream_next(s, answer, this, &failure) == 0;
    }
    std::optional<array> await_resume()
    {
        uva::error::check(failure.code, failure);
        return std::move(got);
    }
    static void answer(void *ctx, uva_batch *batch, const uva_outcome *outcome)
    {
        auto *n = static_cast<next *>(ctx);
        if (batch != nullptr)
            uva_array_move(&batch->data, &n->got.emplace().a);
        else
            n->failure = outcome->error;
        n->waiting.resume();
    }
};

struct job { // starts at once, and frees itself
    struct promise_type {
        job get_return_object()
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
        void return_void()
        {
        }
        void unhandled_exception()
        {
            std::terminate();
        }
    };
};

struct counted {
    int64_t rows = 0;
    int code = -1; // how it ended
};

// Takes `s`.
static job count_rows(uva_stream *s, counted &c)
{
    try {
        while (auto batch = co_await next{s}) {
            const ArrowArray &a = batch->a.array;
            for (int64_t i = 0; i < a.length; i++)
                assert(column_values(&a)[i] == c.rows++);
        }
        c.code = 0;
    } catch (const uva::error &e) {
        c.code = e.code;
    }
    uva_stream_release(s);
}

static uva_stream *scan(const uva::runtime &rt, db *d)
{
    ArrowArrayStream rows{};
    const int code = db_query(d, "SELECT * FROM flights", &rows);

    assert(code == 0);
    return uva_stream_from_arrow_stream(rt.get(), &rows, nullptr);
}

int main()
{
    counted whole, broken, refused;
    {
        uva::runtime rt(uv_default_loop());
        db *good = db_open("flights.db"), *bad = db_open("flights.db");

        db_interrupt(bad); // its first batch is an error
        count_rows(scan(rt, good), whole);
        count_rows(scan(rt, bad), broken);
        count_rows(uva_stream_from_arrow_stream(nullptr, nullptr, nullptr),
                   refused);
        uv_run(uv_default_loop(), UV_RUN_DEFAULT);
        db_close(good);
        db_close(bad);
    }
    assert(whole.code == 0 && whole.rows == DB_BATCHES * DB_ROWS);
    assert(broken.code == ECANCELED && broken.rows == 0);
    assert(refused.code == EINVAL);
    uv_run(uv_default_loop(), UV_RUN_DEFAULT); // ends the runtime
    world_await_release();
    return uv_loop_close(uv_default_loop());
}
