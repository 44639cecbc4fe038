/* SPDX-License-Identifier: Apache-2.0 */
/* C++20: a coroutine awaits one batch after the other, while workers decode the
 * file. Between two batches the loop is free for all else.
 *
 *     $ c++ -std=c++20 await_batches.cc \
 *         $(pkg-config --cflags --libs uvarrow-io libuv)
 *     $ ./a.out flights.arrow | tail -2
 *     336776 rows so far
 *     complete
 */
#include <uvarrow/uvarrow.hpp>

#include <cstdio>
#include <cstdlib>
#include <uv.h>

/* A coroutine that starts at once and frees itself at its end */
struct job {
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
            std::abort();
        }
    };
};

static job print_batches(uva::stream s, int &code)
{
    uva::reader r(std::move(s));
    uva_error error{};
    int64_t rows = 0;

    while (uva::array batch = co_await r.next(&error)) {
        rows += batch->array.length;
        std::printf("%lld rows so far\n", static_cast<long long>(rows));
    }
    code = error.code;
    std::printf("%s\n", code == 0 ? "complete" : error.message);
}

static int run(uv_loop_t *loop, const char *path)
{
    uva::runtime rt;
    uva_error error;

    if (rt.open(loop, {.name = "sums"}, &error) != 0) {
        std::fprintf(stderr, "%s\n", error.message);
        return 1;
    }
    int code = 0;
    print_batches(uva::stream::from_file(rt.get(), path), code);
    uv_run(loop, UV_RUN_DEFAULT);
    return code != 0;
}

int main(int argc, char **argv)
{
    uv_loop_t *const loop = uv_default_loop();
    const int result = argc == 2 ? run(loop, argv[1]) : 2;

    uv_run(loop, UV_RUN_DEFAULT); /* until the runtime has closed */
    return uv_loop_close(loop) == 0 ? result : 1;
}
