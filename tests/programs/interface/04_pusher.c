/* SPDX-License-Identifier: Apache-2.0 */
/* A thread reads messages from a socket that blocks, and pushes them: a slow
 * consumer holds up the sender, through the window and the socket. Beside it,
 * the same on the loop thread, where no call may wait.
 *
 *     $ ./04_pusher | sort
 *     loop: 1000 messages, 1000000 rows, stopped while the window was full
 *     thread: 1000 messages, 1000000 rows
 */
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/socket.h>
#include <uv.h>

#include "data.h"

#define MESSAGES 1000
#define ROWS     1000

struct feed {
    const char *name;
    int ends[2];               /* of a pair of sockets: read 0, write 1 */
    struct uva_pusher *pusher; /* owns, until closed */
    struct uva_stream *stream; /* counts */
    uv_poll_t poll;            /* on the loop */
    int messages, stops;
};

static void *send_all(void *ctx)
{
    struct feed *feed = ctx;

    for (int64_t i = 0; i < MESSAGES; i++)
        if (send(feed->ends[1], &i, sizeof(i), 0) != sizeof(i))
            break;
    (void)shutdown(feed->ends[1], SHUT_WR);
    return NULL;
}

/* Reads a message as a batch. Returns 0; ENOENT at the end; EAGAIN if there is
 * none now; or another errno. */
static int feed_read(struct feed *feed, int flags, struct ArrowDeviceArray *out)
{
    int64_t number;
    const ssize_t size = recv(feed->ends[0], &number, sizeof(number), flags);

    if (size != sizeof(number))
        return size < 0 ? errno : ENOENT;
    feed->messages++;
    return data_make(8, number * ROWS, ROWS, out);
}

static void feed_end(struct feed *feed, int code)
{
    struct uva_error error;

    if (code != ENOENT)
        (void)uva_error_set(&error, code, "the feed broke");
    uva_pusher_close(feed->pusher, code != ENOENT ? &error : NULL, NULL);
}

/* ---- on a thread: a push waits for room ---------------------------------- */

static void *receive(void *ctx)
{
    struct feed *feed = ctx;
    struct ArrowDeviceArray batch;
    int code;

    while ((code = feed_read(feed, 0, &batch)) == 0)
        if ((code = uva_pusher_push(feed->pusher, &batch, NULL, UVA_FOREVER)) !=
            0)
            break;
    feed_end(feed, code);
    return NULL;
}

/* ---- on the loop thread: EAGAIN is "pushed, and full" ------------------- */

static void on_readable(uv_poll_t *poll, int status, int events)
{
    struct feed *feed = poll->data;
    struct ArrowDeviceArray batch;
    int code;

    (void)status;
    (void)events;
    while ((code = feed_read(feed, MSG_DONTWAIT, &batch)) == 0)
        if ((code = uva_pusher_push(feed->pusher, &batch, NULL, 0)) != 0) {
            (void)uv_poll_stop(poll); /* EAGAIN: until on_writable */
            feed->stops++;
            return;
        }
    if (code == EAGAIN)
        return; /* no message now */
    uv_close((uv_handle_t *)poll, NULL);
    feed_end(feed, code);
}

static void on_writable(void *ctx, struct uva_pusher *pusher)
{
    struct feed *feed = ctx;

    (void)pusher;
    (void)uv_poll_start(&feed->poll, UV_READABLE, on_readable);
}

/* ---- the consumer ------------------------------------------------------- */

static void on_collected(void *ctx, const struct uva_stream_info *info,
                         struct ArrowDeviceArray *batches, size_t count,
                         const struct uva_outcome *outcome)
{
    struct feed *feed = ctx;

    (void)info;
    (void)batches;
    (void)count;
    printf("%s: %d messages, %" PRId64 " rows%s\n", feed->name, feed->messages,
           outcome->rows,
           feed->stops > 0 ? ", stopped while the window was full" : "");
    uva_stream_release(feed->stream);
}

static int thread_start(void *(*fn)(void *ctx), struct feed *feed)
{
    pthread_t thread;
    const int code = pthread_create(&thread, NULL, fn, feed);

    return code != 0 ? code : pthread_detach(thread);
}

static int feed_open(struct feed *feed, struct uva_runtime *rt, bool on_loop)
{
    const struct uva_push_source options = {.on_writable =
                                                on_loop ? on_writable : NULL,
                                            .ctx = feed,
                                            .window = {.batches = 8}};
    struct ArrowSchema schema;
    int code = data_schema(8, &schema);

    if (code != 0 || socketpair(AF_UNIX, SOCK_SEQPACKET, 0, feed->ends) != 0)
        return code != 0 ? code : errno;
    feed->stream = uva_stream_from_pusher(rt, &options, &feed->pusher);
    (void)uva_stream_set_name(feed->stream, feed->name);
    code = uva_pusher_set_schema(feed->pusher, &schema);
    if (code == 0)
        code = uva_stream_collect(feed->stream, 0, on_collected, feed, NULL);
    if (code == 0 && on_loop) {
        feed->poll.data = feed;
        code = uv_poll_init(uv_default_loop(), &feed->poll, feed->ends[0]);
        on_writable(feed, feed->pusher);
    } else if (code == 0) {
        code = thread_start(receive, feed);
    }
    return code != 0 ? code : thread_start(send_all, feed);
}

int main(void)
{
    static struct feed on_thread = {.name = "thread"},
                       on_loop = {.name = "loop"};
    struct uva_runtime *rt;

    if (uva_runtime_open(uv_default_loop(), NULL, &rt, NULL) != 0 ||
        feed_open(&on_thread, rt, false) != 0 ||
        feed_open(&on_loop, rt, true) != 0)
        return 1;
    (void)uva_runtime_close(rt, UVA_FOREVER, NULL, NULL);
    return uv_run(uv_default_loop(), UV_RUN_DEFAULT);
}
