// SPDX-License-Identifier: Apache-2.0
// The C++ binding of uva.hpp in use: a map on four workers, lambdas for all
// callbacks, and an exception where building fails.
#include "uva.hpp"

#include <cassert>
#include <uv.h>

#include "support/world.h"

static uva_stream *scan(const uva::runtime &rt)
{
    ArrowArrayStream rows{};
    const int code = db_scan("flights.db", &rows);

    assert(code == 0);
    return uva_stream_from_arrow_stream(rt.get(), &rows, nullptr);
}

static void run(const uva::runtime &rt)
{
    uva::stream s(scan(rt));
    int64_t count = 0;
    int ended = 0;
    uva_parallel four{};

    s.map([factor = 2.0](uva_batch &in, ArrowDeviceArray &out) {
        ArrowArray plain;
        const int code = column_scale(&in.data.array, factor, &plain);
        if (code == 0)
            uva_array_from_cpu(&plain, &out);
        return code;
    });
    four.workers = 4;
    uva_stream_parallel(s.get(), &four);
    s.for_each(
        [&](uva_batch &b) {
            for (int64_t i = 0; i < b.data.array.length; i++)
                assert(column_values(&b.data.array)[i] == 2 * count++);
            return 0;
        },
        [&](const uva_outcome &o) { ended += o.end == UVA_END_COMPLETE; });
    uv_run(uv_default_loop(), UV_RUN_DEFAULT);
    assert(ended == 1 && count == DB_BATCHES * DB_ROWS);
}

static void an_exception_does_not_cross_c(const uva::runtime &rt)
{
    uva::stream s(scan(rt));
    uva_end end = UVA_END_COMPLETE;

    s.for_each([](uva_batch &) -> int { throw std::runtime_error("no"); },
               [&](const uva_outcome &o) { end = o.end; });
    uv_run(uv_default_loop(), UV_RUN_DEFAULT);
    assert(end == UVA_END_REJECTED);
}

static void after_the_destructor_no_callback_comes(const uva::runtime &rt)
{
    {
        uva::stream s(scan(rt));
        s.for_each([](uva_batch &) { return EIO; },
                   [](const uva_outcome &) { assert(false); });
    }
    uv_run(uv_default_loop(), UV_RUN_DEFAULT);
}

static void building_fails_with_an_exception(const uva::runtime &rt)
{
    ArrowArrayStream released{};
    uva::stream s(uva_stream_from_arrow_stream(rt.get(), &released, nullptr));
    int code = 0;

    try {
        s.for_each([](uva_batch &) { return 0; }, [](const uva_outcome &) {});
    } catch (const uva::error &e) {
        code = e.code;
    }
    assert(code == EINVAL);
}

int main()
{
    {
        uva::runtime rt(uv_default_loop());
        run(rt);
        an_exception_does_not_cross_c(rt);
        after_the_destructor_no_callback_comes(rt);
        building_fails_with_an_exception(rt);
    }
    uv_run(uv_default_loop(), UV_RUN_DEFAULT); // ends the runtime
    world_await_release();
    return uv_loop_close(uv_default_loop());
}
