/* SPDX-License-Identifier: Apache-2.0 */
/* A write that fails is not reported: then the stream has ended, or the pair
 * has, and the stream reports that. */
#include "feed.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#define HIGH_BYTES ((size_t)256 << 10) /* full at this size */
#define LOW_BYTES  ((size_t)64 << 10)  /* room again at this size */

/* A write under way. */
struct write {
    uv_write_t request;
    struct uva__feed *feed; /* borrows */
    size_t size;            /* of the data */
    char data[];
};

/* Cannot fail: the descriptor is new, and does not block. */
static void feed_take(uv_pipe_t *pipe, uv_loop_t *loop, int fd)
{
    (void)uv_pipe_init(loop, pipe, 0);
    if (uv_pipe_open(pipe, fd) != 0)
        abort();
}

int uva__feed_open(struct uva__feed *feed, uv_pipe_t *other, uv_loop_t *loop,
                   const struct uva__feed_events *events)
{
    int pair[2];

    memset(feed, 0, sizeof(*feed));
    feed->events = *events;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0,
                   pair) != 0)
        return errno;
    feed_take(&feed->pipe, loop, pair[0]);
    feed_take(other, loop, pair[1]);
    return 0;
}

static void on_written(uv_write_t *request, int status)
{
    struct write *w = request->data;
    struct uva__feed *feed = w->feed;

    (void)status;
    feed->queued -= w->size;
    free(w);
    if (!feed->is_full || feed->queued > LOW_BYTES)
        return;
    feed->is_full = false;
    feed->events.on_room(feed->events.ctx);
}

/* Writes `held` if there is one, and `size` bytes. */
static int feed_send(struct uva__feed *feed, const char *data, size_t size)
{
    const size_t held = feed->has_held ? 1 : 0;
    struct write *w;
    uv_buf_t buffer;
    int code;

    if (held + size == 0)
        return 0;
    w = malloc(sizeof(*w) + held + size);
    if (w == NULL)
        return ENOMEM;
    w->feed = feed;
    w->size = held + size;
    w->request.data = w;
    w->data[0] = feed->held;
    if (size > 0)
        memcpy(w->data + held, data, size);
    buffer = uv_buf_init(w->data, (unsigned)w->size);
    code = uv_write(&w->request, (uv_stream_t *)&feed->pipe, &buffer, 1,
                    on_written);
    if (code != 0) {
        free(w);
        return -code;
    }
    feed->queued += w->size;
    feed->has_held = false;
    return 0;
}

int uva__feed_write(struct uva__feed *feed, const char *data, size_t size)
{
    int code;

    if (size == 0)
        return 0;
    code = feed_send(feed, data, size - 1);
    feed->held = data[size - 1];
    feed->has_held = true;
    return code;
}

bool uva__feed_is_full(struct uva__feed *feed)
{
    feed->is_full = feed->queued >= HIGH_BYTES;
    return feed->is_full;
}

static void on_shutdown(uv_shutdown_t *request, int status)
{
    (void)request;
    (void)status;
}

void uva__feed_end(struct uva__feed *feed, bool whole)
{
    if (feed->is_ended || uv_is_closing((uv_handle_t *)&feed->pipe))
        return;
    feed->is_ended = true;
    feed->is_full = false;
    if (whole)
        (void)feed_send(feed, NULL, 0); /* without memory, it is cut */
    (void)uv_shutdown(&feed->shutdown, (uv_stream_t *)&feed->pipe, on_shutdown);
}

static void on_closed(uv_handle_t *handle)
{
    struct uva__feed *feed = handle->data;

    feed->events.on_closed(feed->events.ctx);
}

void uva__feed_close(struct uva__feed *feed)
{
    feed->is_full = false;
    feed->pipe.data = feed;
    uv_close((uv_handle_t *)&feed->pipe, on_closed);
}
