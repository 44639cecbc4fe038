/* SPDX-License-Identifier: Apache-2.0 */
/* Step 1 of docs/tutorial.md: a blocking source, read on a loop.
 *
 *     $ cc step1_read.c thermometer.c readings.c show.c \
 *         $(pkg-config --cflags --libs uvarrow libuv)
 *     $ seq 201 210 | ./a.out
 *     4 readings from 20.1
 *     4 readings from 20.5
 *     2 readings from 20.9
 *     the end
 */
#include <uv.h>

#include "show.h"
#include "thermometer.h"

int main(void)
{
    const struct uva_consumer to = {.on_batch = show_batch,
                                    .on_done = show_end};
    struct ArrowArrayStream source;
    struct uva_runtime *rt;
    struct uva_stream *s;
    struct uva_error error;

    if (uva_runtime_open(uv_default_loop(), NULL, &rt, &error) != 0)
        return fprintf(stderr, "%s\n", error.message), 1;
    thermometer_open(stdin, &source);
    s = uva_stream_from_arrow_stream(rt, &source, NULL);
    if (uva_stream_for_each(s, &to, &error) != 0)
        fprintf(stderr, "%s\n", error.message);
    uva_stream_release(s); /* it runs to its end */
    uva_runtime_close(rt, UVA_FOREVER, NULL, NULL);
    return uv_run(uv_default_loop(), UV_RUN_DEFAULT);
}
