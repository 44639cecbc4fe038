/* SPDX-License-Identifier: Apache-2.0 */
/* One write to ring, one read to note it. */
#include "bell.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include "suite.h"

static void bell_on_poll(uv_poll_t *poll, int status, int events)
{
    struct bell *bell = poll->data;
    uint64_t count;

    (void)events;
    bench_check(status == 0, "poll");
    if (read(bell->fd, &count, sizeof(count)) == (ssize_t)sizeof(count))
        bell->on_ring(bell->ctx);
}

void bell_init(struct bell *bell, uv_loop_t *loop, void (*on_ring)(void *ctx),
               void *ctx)
{
    bell->on_ring = on_ring;
    bell->ctx = ctx;
    bell->fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    bench_check(bell->fd >= 0, "eventfd");
    bench_check(uv_poll_init(loop, &bell->poll, bell->fd) == 0, "poll");
    bell->poll.data = bell;
    bench_check(uv_poll_start(&bell->poll, UV_READABLE, bell_on_poll) == 0,
                "poll");
}

void bell_ring(struct bell *bell)
{
    const uint64_t one = 1;

    bench_check(write(bell->fd, &one, sizeof(one)) == (ssize_t)sizeof(one),
                "eventfd");
}

void bell_close(struct bell *bell)
{
    uv_close((uv_handle_t *)&bell->poll, NULL);
}

void bell_fini(struct bell *bell)
{
    (void)close(bell->fd);
}
