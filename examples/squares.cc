/* SPDX-License-Identifier: Apache-2.0 */
/* C++17: a thread pushes numbers, four workers square them, and the loop prints
 * them in order. Classes own the objects of C; callbacks are lambdas.
 *
 *     $ cc -c integers.c $(pkg-config --cflags uvarrow)
 *     $ c++ -std=c++17 squares.cc integers.o \
 *         $(pkg-config --cflags --libs uvarrow libuv)
 *     $ ./a.out
 *     0 1 4 9 16 complete
 */
#include <uvarrow/uvarrow.hpp>

#include <cstdio>
#include <thread>
#include <uv.h>

#include "integers.h"

static int square(uva_batch &in, ArrowDeviceArray &out)
{
    const int64_t number = *integers_of(&in.data);
    int64_t *const to = integers_new(1, &out);

    if (to == nullptr)
        return ENOMEM;
    *to = number * number;
    return 0;
}

/* Owns the writing end: if it leaves without close(), the stream fails. */
static void write_numbers(uva::pusher pusher)
{
    uva::schema schema;

    if (integers_schema(nullptr, schema.out(), nullptr) != 0 ||
        pusher.set_schema(schema.get()) != 0)
        return;
    for (int64_t i = 0; i < 5; i++) {
        uva::array batch;
        int64_t *const number = integers_new(1, batch.out());

        if (number == nullptr)
            return;
        *number = i;
        if (pusher.push(batch.get(), nullptr, UVA_FOREVER) != 0)
            return; /* the stream has ended */
    }
    pusher.close();
}

int main()
{
    uva::consumer print(
        [](uva_batch &batch) {
            return std::printf("%d ", int(*integers_of(&batch.data))) < 0;
        },
        [](const uva_outcome &outcome) {
            std::puts(outcome.error.code == 0 ? "complete"
                                              : outcome.error.message);
        });
    uv_loop_t *const loop = uv_default_loop();
    uva::runtime rt;
    uva::pusher pusher;
    uva_error error;

    if (rt.open(loop, {}, &error) != 0)
        return std::puts(error.message);
    uva::stream s = uva::stream::from_pusher(rt.get(), pusher);
    s.map(square).parallel(
        uva::options<uva_parallel>().set(&uva_parallel::workers, 4));
    std::thread writer(write_numbers, std::move(pusher));
    if (s.for_each(print, &error) != 0) /* the one check */
        std::puts(error.message);
    rt.close(UVA_FOREVER);
    uv_run(loop, UV_RUN_DEFAULT);
    writer.join();
    return s.status() != 0;
}
