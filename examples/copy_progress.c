/* SPDX-License-Identifier: Apache-2.0 */
/* An Arrow file becomes CSV, at no more than so many bytes a second, so that
 * other programs get their share of the disk. A timer shows the progress: a
 * file of the file format says how many rows it has.
 *
 *     $ cc copy_progress.c $(pkg-config --cflags --libs uvarrow-io libuv)
 *     $ ./a.out flights.arrow flights.csv 1000000000 2>progress
 *     336776 rows
 */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <uv.h>

#include "uvarrow/io.h"
#include "uvarrow/uvarrow.h"

static struct uva_runtime *rt;
static struct uva_stream *s; /* counts */
static uv_timer_t timer;
static int result;

static void on_timer(uv_timer_t *handle)
{
    struct uva_stage_stats file; /* the first of the stages is the source */
    size_t count = 1;

    (void)handle;
    if (uva_stream_get_stats(s, &file, &count) != 0)
        return;
    fprintf(stderr, "%" PRId64 " of %" PRId64 " rows%s\n", file.rows,
            file.rows_expected, /* 0: the file does not say */
            file.waiting == UVA_WAITING_CONSUMER ? ", waits for the copy" : "");
}

static void on_done(void *ctx, const struct uva_outcome *outcome, int64_t bytes)
{
    (void)ctx, (void)bytes;
    on_timer(NULL);
    result = outcome->error.code;
    if (result != 0)
        fprintf(stderr, "%s\n", outcome->error.message);
    else
        printf("%" PRId64 " rows\n", outcome->rows);
    uva_stream_release(s);
    uv_close((uv_handle_t *)&timer, NULL);
    uva_runtime_close(rt, 0, NULL, NULL);
}

int main(int argc, char **argv)
{
    const struct uva_write csv = {.encode.format = UVA_FORMAT_CSV,
                                  .on_done = on_done};
    uv_loop_t *loop = uv_default_loop();
    struct uva_throttle rate = {0};
    struct uva_error error;
    int fd = -1;

    if (argc == 4)
        fd = open(argv[2], O_CREAT | O_TRUNC | O_WRONLY, 0644);
    if (fd < 0 || uva_runtime_open(loop, NULL, &rt, NULL) != 0)
        return fprintf(stderr, "usage: %s FROM TO RATE\n", argv[0]), 2;
    rate.bytes_per_s = atoll(argv[3]);
    s = uva_stream_from_file(rt, argv[1], NULL);
    uva_stream_throttle(s, &rate);
    if (uva_stream_write_file(s, fd, &csv, &error) != 0)
        return fprintf(stderr, "%s\n", error.message), 1;
    uv_timer_init(loop, &timer);
    uv_timer_start(&timer, on_timer, 100, 100);
    return uv_run(loop, UV_RUN_DEFAULT) != 0 || result != 0;
}
