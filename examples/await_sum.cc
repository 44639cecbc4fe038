/* SPDX-License-Identifier: Apache-2.0 */
/* C++20: a coroutine awaits one batch after the other, while a worker thread
 * makes them. Options are designated initialisers.
 *
 *     $ c++ -std=c++20 await_sum.cc $(pkg-config --cflags --libs uvarrow libuv)
 *     $ ./a.out
 *     3 rows, sum 3
 *     3 rows, sum 12
 *     3 rows, sum 21
 *     complete
 *
 * The coroutine runs on the loop thread. Between two batches the loop is free
 * for all else. */
#include <uvarrow/uvarrow.hpp>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <numeric>
#include <uv.h>

/* Counts up to `end`, three numbers at a time. An item is the first of them. */
struct counter {
    int64_t next = 0, end = 9;
};

static int counter_schema(void *, ArrowSchema *out, uva_error *)
{
    *out = ArrowSchema{};
    out->format = "l";
    out->name = "number";
    out->release = [](ArrowSchema *s) { s->release = nullptr; };
    return 0;
}

/* On a blocking worker, one call at a time */
static int counter_next(void *ctx, void **item, const char **, uva_error *error)
{
    auto *const self = static_cast<counter *>(ctx);

    return uva::guard(error, [&] { /* new may throw */
                                   if (self->next < self->end)
                                       *item = new int64_t(self->next);
                                   self->next += 3;
                                   return 0;
    });
}

struct column {
    int64_t values[3];
    const void *buffers[2];
};

/* On a compute worker. Takes the item, also when its data is not wanted. */
static int counter_extract(void *, void *item, ArrowDeviceArray *out,
                           uva_error *error)
{
    const std::unique_ptr<int64_t> first(static_cast<int64_t *>(item));

    if (out == nullptr)
        return 0;
    return uva::guard(error, [&] {
        auto *const made = new column;
        ArrowArray plain{};

        std::iota(made->values, made->values + 3, *first);
        made->buffers[0] = nullptr;
        made->buffers[1] = made->values;
        plain.length = 3;
        plain.n_buffers = 2;
        plain.buffers = made->buffers;
        plain.private_data = made;
        plain.release = [](ArrowArray *array) {
            delete static_cast<column *>(array->private_data);
            array->release = nullptr;
        };
        uva_array_from_cpu(&plain, out);
        return 0;
    });
}

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

static job print_sums(uva::stream s)
{
    uva::reader r(std::move(s));
    uva_error error{};

    while (uva::array batch = co_await r.next(&error)) {
        const ArrowArray &a = batch->array;
        const auto *const values = static_cast<const int64_t *>(a.buffers[1]);

        std::printf("%lld rows, sum %lld\n", static_cast<long long>(a.length),
                    static_cast<long long>(std::accumulate(
                        values, values + a.length, int64_t{0})));
    }
    std::printf("%s\n", error.code == 0 ? "complete" : error.message);
}

static int run(uv_loop_t *loop)
{
    uva::runtime rt;
    uva_error error;

    if (rt.open(loop, {.name = "sums"}, &error) != 0) {
        std::fprintf(stderr, "%s\n", error.message);
        return 1;
    }
    print_sums(
        uva::stream::from_tasks(rt.get(), {.schema = counter_schema,
                                           .next = counter_next,
                                           .extract = counter_extract,
                                           .free_ctx = uva::delete_ctx<counter>,
                                           .ctx = new counter,
                                           .window = {.batches = 2}}));
    return uv_run(loop, UV_RUN_DEFAULT);
}

int main()
{
    uv_loop_t *const loop = uv_default_loop();
    const int result = run(loop);

    uv_run(loop, UV_RUN_DEFAULT); /* until the runtime has closed */
    return uv_loop_close(loop) == 0 ? result : 1;
}
