/* SPDX-License-Identifier: Apache-2.0 */
/* Step 4 of docs/tutorial.md: all readings go into a file, and each batch is
 * shown as well.
 *
 *     $ cc step4_tee.c thermometer.c readings.c show.c \
 *         $(pkg-config --cflags --libs uvarrow-io libuv)
 *     $ seq 201 206 | ./a.out readings.csv
 *     4 readings from 20.1
 *     2 readings from 20.5
 *     31 bytes: saved
 *     $ tail -n 2 readings.csv
 *     205
 *     206
 */
#include <fcntl.h>
#include <inttypes.h>
#include <uv.h>

#include "show.h"
#include "thermometer.h"
#include "uvarrow/io.h"

static void on_written(void *ctx, const struct uva_outcome *outcome,
                       int64_t bytes)
{
    (void)ctx;
    printf("%" PRId64 " bytes: %s\n", bytes,
           outcome->error.code == 0 ? "saved" : outcome->error.message);
}

int main(int argc, char **argv)
{
    const struct uva_write csv = {.encode.format = UVA_FORMAT_CSV,
                                  .on_done = on_written};
    const int file =
        argc == 2 ? open(argv[1], O_CREAT | O_TRUNC | O_WRONLY, 0644) : -1;
    struct ArrowArrayStream source;
    struct uva_runtime *rt;
    struct uva_stream *s, *shown;
    struct uva_error error;

    if (file < 0)
        return fprintf(stderr, "usage: %s FILE\n", argv[0]), 2;
    if (uva_runtime_open(uv_default_loop(), NULL, &rt, &error) != 0)
        return fprintf(stderr, "%s\n", error.message), 1;
    thermometer_open(stdin, &source);
    s = uva_stream_from_arrow_stream(rt, &source, NULL);
    shown = uva_stream_tee(s, NULL); /* the slower branch sets the pace */
    if (uva_stream_write_file(s, file, &csv, &error) != 0 ||
        uva_stream_for_each(
            shown, &(struct uva_consumer){.on_batch = show_batch}, &error) != 0)
        fprintf(stderr, "%s\n", error.message);
    uva_stream_release(s);
    uva_stream_release(shown);
    uva_runtime_close(rt, UVA_FOREVER, NULL, NULL);
    return uv_run(uv_default_loop(), UV_RUN_DEFAULT);
}
