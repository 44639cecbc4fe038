/* SPDX-License-Identifier: Apache-2.0 */
/* A program with an epoll loop of its own hosts the runtime by one descriptor.
 * Prints the rows of a query, and how often a timer of the program's own went
 * off meanwhile:
 *
 *     example_host_epoll DRIVER.so URI SQL */
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "database.h"
#include "rows.h"

struct app {
    struct uva_runtime *rt;
    int code; /* how the query ended */
};

static int on_batch(void *ctx, struct uva_batch *batch)
{
    (void)ctx;
    return rows_write(stdout, batch->schema, &batch->data.array);
}

static void on_done(void *ctx, const struct uva_outcome *outcome)
{
    struct app *app = ctx;

    app->code = outcome->error.code;
    if (app->code != 0)
        fprintf(stderr, "query: %s\n", outcome->error.message);
    uva_runtime_close(app->rt, 0, NULL, NULL);
}

static int query(struct app *app, char **argv, struct uva_error *error)
{
    struct uva_stream *s = uva_stream_from_blocking_cpu(
        app->rt, NULL,
        &(struct uva_blocking_source){
            .open = database_open,
            .interrupt = database_interrupt,
            .free_ctx = database_free,
            .ctx = database_new(argv[1], argv[2], argv[3])});
    int code = uva_stream_for_each(s,
                                   &(struct uva_consumer){.on_batch = on_batch,
                                                          .on_done = on_done,
                                                          .ctx = app},
                                   error);

    uva_stream_release(s);
    return code;
}

/* Has `epoll` report `fd` as `name`. */
static int watch(int epoll, int fd, int name)
{
    struct epoll_event event = {.events = EPOLLIN, .data.fd = name};

    return epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event);
}

/* The loop of the program: all it knows of the runtime is turn. */
static uint64_t run(int epoll, int timer, struct uva_runtime *rt)
{
    struct epoll_event event;
    uint64_t beats = 0, times;

    for (;;) {
        if (epoll_wait(epoll, &event, 1, -1) != 1)
            continue;
        if (event.data.fd != timer) {
            if (!uva_runtime_turn(rt))
                return beats;
        } else if (read(timer, &times, sizeof(times)) == sizeof(times))
            beats += times;
    }
}

int main(int argc, char **argv)
{
    const struct itimerspec every_ms = {{0, 1000000}, {0, 1000000}};
    const int epoll = epoll_create1(EPOLL_CLOEXEC);
    const int timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
    struct app app = {0};
    struct uva_error error;

    if (argc != 4) {
        fprintf(stderr, "usage: %s DRIVER.so URI SQL\n", argv[0]);
        return 2;
    }
    if (uva_runtime_open(NULL, &(struct uva_runtime_options){.no_thread = true},
                         &app.rt, &error) != 0 ||
        query(&app, argv, &error) != 0) {
        fprintf(stderr, "%s\n", error.message);
        return 1;
    }
    if (timerfd_settime(timer, 0, &every_ms, NULL) != 0 ||
        watch(epoll, timer, timer) != 0 ||
        watch(epoll, uva_runtime_fd(app.rt), -1) != 0)
        return 1;
    fprintf(stderr, "%llu beats\n",
            (unsigned long long)run(epoll, timer, app.rt));
    (void)close(timer);
    (void)close(epoll);
    return app.code != 0;
}
