/* SPDX-License-Identifier: Apache-2.0 */
/* Step 2 of docs/tutorial.md: a function on two workers, results in order.
 *
 *     $ cc step2_map.c thermometer.c readings.c show.c \
 *         $(pkg-config --cflags --libs uvarrow libuv)
 *     $ seq 201 210 | ./a.out
 *     4 readings from 68.1
 *     4 readings from 68.9
 *     2 readings from 69.6
 *     the end
 */
#include <uv.h>

#include "readings.h"
#include "show.h"
#include "thermometer.h"

/* Tenths of a degree Celsius become tenths of a degree Fahrenheit. */
static int to_fahrenheit(void *ctx, struct uva_batch *in,
                         struct ArrowDeviceArray *out, struct uva_error *error)
{
    const int64_t *celsius = readings_of(&in->data);
    int64_t *fahrenheit = readings_new(in->data.array.length, out);

    (void)ctx;
    if (fahrenheit == NULL)
        return uva_error_set(error, ENOMEM, "no memory for a batch");
    for (int64_t i = 0; i < in->data.array.length; i++)
        fahrenheit[i] = celsius[i] * 9 / 5 + 320;
    return 0;
}

int main(void)
{
    struct ArrowArrayStream source;
    struct uva_runtime *rt;
    struct uva_stream *s;
    struct uva_error error;

    if (uva_runtime_open(uv_default_loop(), NULL, &rt, &error) != 0)
        return fprintf(stderr, "%s\n", error.message), 1;
    thermometer_open(stdin, &source);
    s = uva_stream_from_arrow_stream(rt, &source, NULL);
    uva_stream_map(s, &(struct uva_map){.batch = to_fahrenheit});
    uva_stream_parallel(s, &(struct uva_parallel){.workers = 2});
    if (uva_stream_for_each(
            s,
            &(struct uva_consumer){.on_batch = show_batch, .on_done = show_end},
            &error) != 0)
        fprintf(stderr, "%s\n", error.message);
    uva_stream_release(s);
    uva_runtime_close(rt, UVA_FOREVER, NULL, NULL);
    return uv_run(uv_default_loop(), UV_RUN_DEFAULT);
}
