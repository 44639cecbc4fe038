/* SPDX-License-Identifier: Apache-2.0 */
/* A program with an epoll loop of its own: one descriptor to watch, one call
 * when it is readable. Work that is no stream runs on a worker, too.
 *
 *     $ ./07_epoll
 *     100 batches, 100000 rows
 *     the report is written
 */
#include <inttypes.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "data.h"

struct app {
    struct uva_runtime *rt;
    bool is_over;
    char report[100];
};

static int on_batch(void *ctx, struct uva_batch *batch)
{
    (void)ctx;
    (void)batch;
    return 0;
}

static void write_report(void *ctx) /* on a worker: it may block */
{
    struct app *app = ctx;

    (void)usleep(10000);
    (void)snprintf(app->report, sizeof(app->report), "the report is written");
}

static void on_written(void *ctx) /* on the loop thread */
{
    struct app *app = ctx;

    printf("%s\n", app->report);
    app->is_over = true;
}

static void on_done(void *ctx, const struct uva_outcome *outcome)
{
    struct app *app = ctx;

    printf("%" PRId64 " batches, %" PRId64 " rows\n", outcome->batches,
           outcome->rows);
    if (uva_runtime_run(app->rt, UVA_LANE_BLOCKING, write_report, on_written,
                        app) != 0)
        app->is_over = true;
}

int main(void)
{
    struct app app = {0};
    struct epoll_event event = {.events = EPOLLIN};
    struct uva_error error;
    struct uva_stream *s;
    const int loop = epoll_create1(EPOLL_CLOEXEC);
    int code = uva_runtime_open_turned(NULL, NULL, NULL, &app.rt, &error);

    if (code != 0)
        return fprintf(stderr, "%s\n", error.message), 1;
    code = epoll_ctl(loop, EPOLL_CTL_ADD, uva_runtime_fd(app.rt), &event);
    s = data_stream(app.rt, 8, 100, 1000);
    if (code == 0)
        code = uva_stream_for_each(s,
                                   &(struct uva_consumer){.on_batch = on_batch,
                                                          .on_done = on_done,
                                                          .ctx = &app},
                                   &error);
    uva_stream_release(s);
    while (code == 0 && !app.is_over)
        if (epoll_wait(loop, &event, 1, -1) == 1)
            (void)uva_runtime_turn(app.rt);
    if (uva_runtime_join(app.rt, 0) != 0) /* closes, and makes the last turns */
        return 1;
    return close(loop) != 0 || code != 0;
}
