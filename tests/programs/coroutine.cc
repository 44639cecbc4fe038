// SPDX-License-Identifier: Apache-2.0
// C++20: `while (auto batch = co_await next{t})` over uva_stream_take().
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

struct next;

struct taken { // owns a stream that is taken from
    uva_stream *s;
    next *waiting = nullptr;

    explicit taken(uva_stream *from) : s(from)
    {
        uva_error failure{};
        const int code =
            uva_stream_start_take(s, nullptr, ready, this, &failure);

        if (code != 0)
            uva_stream_release(s);
        uva::error::check(code, failure);
    }
    ~taken()
    {
        uva_stream_drop(s);
    }
    static void ready(void *ctx);
};

struct next { // one batch, which may wait already
    taken &from;
    std::coroutine_handle<> handle{};
    std::optional<array> got{};
    uva_outcome outcome{};

    bool await_ready() // or at the end
    {
        uva_batch batch;
        const int code = uva_stream_take(from.s, &batch, &outcome);

        if (code == 0)
            uva_array_move(&batch.data, &got.emplace().a);
        return code != EAGAIN;
    }
    void await_suspend(std::coroutine_handle<> h)
    {
        handle = h; // safe: the callback always runs later
        from.waiting = this;
    }
    std::optional<array> await_resume()
    {
        uva::error::check(outcome.error.code, outcome.error);
        return std::move(got);
    }
};

void taken::ready(void *ctx) // also when the schema is known
{
    const next *const n = static_cast<taken *>(ctx)->waiting;

    if (static_cast<taken *>(ctx)->waiting->await_ready())
        n->handle.resume();
}

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
        taken t(s);
        while (auto batch = co_await next{t}) {
            const ArrowArray &a = batch->a.array;
            for (int64_t i = 0; i < a.length; i++)
                assert(column_values(&a)[i] == c.rows++);
        }
        c.code = 0;
    } catch (const uva::error &e) {
        c.code = e.code;
    }
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
