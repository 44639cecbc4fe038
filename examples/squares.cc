/* SPDX-License-Identifier: Apache-2.0 */
/* C++17: a thread pushes numbers, four workers square them, and the loop prints
 * them in order. The classes of uvarrow.hpp own the objects of the C functions;
 * callbacks are lambdas.
 *
 *     $ c++ -std=c++17 squares.cc $(pkg-config --cflags --libs uvarrow libuv)
 *     $ ./a.out
 *     0 1 4
 *     9 16 25
 *     36 49 64
 *     complete: 3 batches
 *
 * The pusher waits while the stream has no room for another batch. If the
 * thread were to leave without close(), the pusher's destructor would end the
 * stream as failed. */
#include <uvarrow/uvarrow.hpp>

#include <cstdint>
#include <cstdio>
#include <thread>
#include <uv.h>
#include <vector>

/* A column of int64 in Arrow's layout, which owns its numbers. */
struct column {
    std::vector<int64_t> values;
    const void *buffers[2];

    static void release(ArrowArray *array)
    {
        delete static_cast<column *>(array->private_data);
        array->release = nullptr;
    }
};

static uva::array make_column(std::vector<int64_t> values)
{
    auto *const made = new column{std::move(values), {}};
    ArrowArray plain{};
    uva::array batch;

    made->buffers[1] = made->values.data();
    plain.length = static_cast<int64_t>(made->values.size());
    plain.n_buffers = 2;
    plain.buffers = made->buffers;
    plain.private_data = made;
    plain.release = column::release;
    uva_array_from_cpu(&plain, batch.out());
    return batch;
}

static const int64_t *numbers(const uva_batch &batch)
{
    return static_cast<const int64_t *>(batch.data.array.buffers[1]);
}

static int square(uva_batch &in, ArrowDeviceArray &out)
{
    std::vector<int64_t> values(numbers(in),
                                numbers(in) + in.data.array.length);

    for (int64_t &value : values)
        value *= value;
    make_column(std::move(values)).move_to(&out);
    return 0;
}

/* Owns the writing end, and closes it when it has pushed everything. */
static void write_numbers(uva::pusher pusher)
{
    uva::schema schema;

    schema->format = "l";
    schema->name = "number";
    schema->release = [](ArrowSchema *s) { s->release = nullptr; };
    if (pusher.set_schema(schema.get()) != 0)
        return;
    for (int64_t first = 0; first < 9; first += 3) {
        uva::array batch = make_column({first, first + 1, first + 2});

        if (pusher.push(batch.get(), nullptr, UVA_FOREVER) != 0)
            return; /* the stream has ended; `batch` is still ours */
    }
    pusher.close();
}

static int run(uv_loop_t *loop)
{
    uva::consumer print(
        [](uva_batch &batch) {
            for (int64_t i = 0; i < batch.data.array.length; i++)
                std::printf("%s%lld", i > 0 ? " " : "",
                            static_cast<long long>(numbers(batch)[i]));
            std::printf("\n");
            return 0;
        },
        [](const uva_outcome &outcome) {
            if (outcome.end == UVA_END_COMPLETE)
                std::printf("complete: %lld batches\n",
                            static_cast<long long>(outcome.batches));
            else
                std::printf("%s\n", outcome.error.message);
        });
    uva::runtime rt;
    uva::pusher pusher;
    uva_error error;

    if (rt.open(loop, {}, &error) != 0) {
        std::fprintf(stderr, "%s\n", error.message);
        return 1;
    }
    uva::stream s = uva::stream::from_pusher(rt.get(), pusher);
    s.map(square).parallel(
        uva::options<uva_parallel>().set(&uva_parallel::workers, 4));
    std::thread writer(write_numbers, std::move(pusher));
    const int code = s.for_each(print, &error); /* the one check */
    if (code != 0)
        std::fprintf(stderr, "%s\n", error.message);
    s.release(); /* it runs to its end */
    uv_run(loop, UV_RUN_DEFAULT);
    writer.join();
    return code != 0;
}

int main()
{
    uv_loop_t *const loop = uv_default_loop();
    const int result = run(loop);

    uv_run(loop, UV_RUN_DEFAULT); /* until the runtime has closed */
    return uv_loop_close(loop) == 0 ? result : 1;
}
