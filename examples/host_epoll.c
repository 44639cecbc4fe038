/* SPDX-License-Identifier: Apache-2.0 */
/* Embeds the runtime in a loop other than libuv's, by one file descriptor: a
 * plain epoll loop that also runs a timer of the program.
 *
 *     $ cc host_epoll.c tell.c $(pkg-config --cflags --libs uvarrow-io)
 *     $ ./a.out flights.arrow
 *     336776 rows
 */
#include <inttypes.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "tell.h"
#include "uvarrow/io.h"

static int code; /* of the outcome */

static int on_batch(void *ctx, struct uva_batch *batch)
{
    (void)ctx;
    (void)batch; /* to be used here; the outcome counts the rows */
    return 0;
}

static void on_done(void *ctx, const struct uva_outcome *outcome)
{
    tell_end(&code, outcome);
    printf("%" PRId64 " rows\n", outcome->rows);
    uva_runtime_close(ctx, 0, NULL, NULL);
}

/* Makes `epoll` report `fd`. */
static int watch(int epoll, int fd)
{
    struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};

    return epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event);
}

/* Runs until the runtime has closed, when turn returns false. */
static void run(int epoll, int timer, struct uva_runtime *rt)
{
    struct epoll_event event;
    uint64_t times;

    for (;;) {
        if (epoll_wait(epoll, &event, 1, -1) != 1)
            continue; /* a signal */
        if (event.data.fd == timer)
            (void)!read(timer, &times, sizeof(times)); /* our own work */
        else if (!uva_runtime_turn(rt))
            return;
    }
}

int main(int argc, char **argv)
{
    const struct itimerspec every_ms = {{0, 1000000}, {0, 1000000}};
    const int epoll = epoll_create1(EPOLL_CLOEXEC);
    const int timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
    struct uva_consumer to = {.on_batch = on_batch, .on_done = on_done};
    struct uva_runtime *rt;
    struct uva_error error;
    struct uva_stream *s;

    if (argc != 2 || uva_runtime_open_turned(NULL, NULL, NULL, &rt, NULL) != 0)
        return 1;
    to.ctx = rt;
    s = uva_stream_from_file(rt, argv[1], NULL);
    if (uva_stream_for_each(s, &to, &error) != 0)
        return tell(&error);
    uva_stream_release(s);
    if (timerfd_settime(timer, 0, &every_ms, NULL) != 0 ||
        watch(epoll, timer) != 0 || watch(epoll, uva_runtime_fd(rt)) != 0)
        return 1;
    run(epoll, timer, rt);
    return code != 0;
}
