/* SPDX-License-Identifier: Apache-2.0 */
/* Two sensors send numbers over sockets; both sockets become streams. One is
 * read by a thread that blocks in read(): where there is no room, it waits in
 * uva_pusher_push(), and so the sensor waits too. The other is read on the
 * loop, which must not wait: EAGAIN stops the reading, on_room starts it again.
 */
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <uv.h>

#include "numbers.h"

#define READINGS    1000000 /* that a sensor makes, from 0 upwards */
#define BATCH_BYTES (4096 * sizeof(double))

/* ---- a sensor: a thread that writes to a socket ------------------------- */

struct sensor {
    uv_thread_t thread;
    int fd;   /* its end; owns */
    int peer; /* ours */
};

static void sensor_run(void *ctx)
{
    struct sensor *sensor = ctx;
    double readings[500];

    for (int i = 0; i < READINGS; i += 500) {
        for (int k = 0; k < 500; k++)
            readings[k] = i + k;
        for (size_t sent = 0; sent < sizeof(readings);) {
            ssize_t got = write(sensor->fd, (char *)readings + sent,
                                sizeof(readings) - sent);
            if (got <= 0)
                break;
            sent += (size_t)got;
        }
    }
    (void)close(sensor->fd);
}

static int sensor_start(struct sensor *sensor)
{
    int ends[2];

    if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0)
        return errno;
    sensor->fd = ends[0];
    sensor->peer = ends[1];
    return -uv_thread_create(&sensor->thread, sensor_run, sensor);
}

/* Says what the batches look like. A pusher takes what it accepts. */
static int say_schema(struct uva_pusher *pusher)
{
    struct ArrowSchema schema = {0};
    int code = numbers_schema("reading", &schema);

    if (code != 0)
        return code;
    code = uva_pusher_set_schema(pusher, &schema);
    if (code != 0)
        uva_schema_release(&schema);
    return code;
}

/* ---- read by a thread --------------------------------------------------- */

struct receiver {
    uv_thread_t thread;
    int fd;                    /* owns */
    struct uva_pusher *pusher; /* owns */
};

/* Fills a batch from the socket. Returns how many bytes came. */
static ssize_t receive_batch(int fd, struct ArrowDeviceArray *out)
{
    char *to = (char *)numbers_new(BATCH_BYTES / sizeof(double), out);
    ssize_t size = 0, got = 1;

    if (to == NULL)
        return -1;
    for (; got > 0 && size < (ssize_t)BATCH_BYTES; size += got)
        got = read(fd, to + size, BATCH_BYTES - (size_t)size);
    if (got < 0)
        return -1;
    numbers_cut(out, size / (ssize_t)sizeof(double));
    return size;
}

static int receive_all(struct receiver *r)
{
    struct ArrowDeviceArray batch = {0};
    int code = say_schema(r->pusher);

    while (code == 0) {
        ssize_t size = receive_batch(r->fd, &batch);
        if (size > 0) /* EPIPE would mean: nobody wants more */
            code = uva_pusher_push(r->pusher, &batch, NULL, UVA_FOREVER);
        else if (size < 0)
            code = EIO;
        else
            break;
    }
    uva_array_release(&batch); /* if it was not taken */
    return code;
}

static void receiver_run(void *ctx)
{
    struct receiver *r = ctx;
    struct uva_error error;
    int code = receive_all(r);

    if (code != 0)
        uva_error_set(&error, code, "receiver on socket %d", r->fd);
    uva_pusher_close(r->pusher, code != 0 ? &error : NULL, NULL);
    (void)close(r->fd);
}

/* ---- read on the loop --------------------------------------------------- */

/* The socket is read right into the memory of the next batch. */
struct feed {
    uv_pipe_t pipe;
    struct uva_pusher *pusher;    /* owns; NULL: closed */
    struct ArrowDeviceArray next; /* owns: being filled, or full */
    char *to;                     /* the memory of `next` */
    size_t filled;                /* bytes of it */
    bool over;                    /* the sensor has gone */
};

static void feed_close(struct feed *f, int code)
{
    struct uva_error error;

    if (code != 0)
        uva_error_set(&error, code, "feed: %s", strerror(code));
    uv_close((uv_handle_t *)&f->pipe, NULL);
    uva_array_release(&f->next);
    uva_pusher_close(f->pusher, code != 0 ? &error : NULL, NULL);
    f->pusher = NULL;
}

static void feed_alloc(uv_handle_t *handle, size_t hint, uv_buf_t *buffer)
{
    struct feed *f = handle->data;

    (void)hint;
    if (!uva_array_is_live(&f->next))
        f->to = (char *)numbers_new(BATCH_BYTES / sizeof(double), &f->next);
    *buffer = f->to == NULL ? uv_buf_init(NULL, 0)
                            : uv_buf_init(f->to + f->filled,
                                          (unsigned)(BATCH_BYTES - f->filled));
}

/* Pushes what is there. EAGAIN: there is no room, feed_room() will follow. */
static int feed_push(struct feed *f)
{
    int code;

    if (f->filled == 0)
        return 0;
    numbers_cut(&f->next, (int64_t)(f->filled / sizeof(double)));
    code = uva_pusher_push(f->pusher, &f->next, NULL, 0);
    if (code == 0)
        f->filled = 0;
    return code;
}

static void feed_read(uv_stream_t *pipe, ssize_t size, const uv_buf_t *buffer)
{
    struct feed *f = pipe->data;
    int code = 0;

    (void)buffer;
    if (size > 0)
        f->filled += (size_t)size;
    f->over = size == UV_EOF;
    if (size < 0 && !f->over)
        code = (int)-size;
    else if (f->filled == BATCH_BYTES || f->over)
        code = feed_push(f);

    if (code == EAGAIN)
        uv_read_stop(pipe);
    else if (code != 0 || f->over)
        feed_close(f, code);
}

static void feed_room(void *ctx, struct uva_pusher *pusher)
{
    struct feed *f = ctx;
    int code = feed_push(f);

    (void)pusher;
    if (code == 0 && !f->over)
        uv_read_start((uv_stream_t *)&f->pipe, feed_alloc, feed_read);
    else if (code != EAGAIN)
        feed_close(f, code);
}

/* Nobody wants more. */
static void feed_gone(void *ctx, struct uva_pusher *pusher)
{
    (void)pusher;
    feed_close(ctx, 0);
}

/* ---- the consumers ------------------------------------------------------ */

struct seen {
    const char *name;
    int64_t rows; /* that came in order */
    bool well;    /* all came, and nothing else */
};

static int on_batch(void *ctx, struct uva_batch *batch)
{
    struct seen *seen = ctx;

    for (int64_t i = 0; i < batch->data.array.length; i++) {
        if (numbers_of(&batch->data)[i] != (double)seen->rows)
            return EIO;
        seen->rows++;
    }
    return 0;
}

static void on_done(void *ctx, const struct uva_outcome *outcome)
{
    struct seen *seen = ctx;

    seen->well = outcome->end == UVA_END_COMPLETE && seen->rows == READINGS;
    printf("%s: %lld readings in %lld batches, %s\n", seen->name,
           (long long)seen->rows, (long long)outcome->batches,
           outcome->error.code != 0 ? outcome->error.message : "complete");
}

/* Starts a stream, and lets go of it. */
static int consume(struct uva_stream *s, struct seen *seen)
{
    struct uva_error error;
    int code = uva_stream_for_each(s,
                                   &(struct uva_consumer){.on_batch = on_batch,
                                                          .on_done = on_done,
                                                          .ctx = seen},
                                   &error);

    if (code != 0)
        fprintf(stderr, "%s\n", error.message);
    uva_stream_release(s);
    return code;
}

static int start_receiver(struct uva_runtime *rt, struct receiver *r,
                          struct seen *seen)
{
    const struct uva_push_source how = {.window = {.batches = 4}};

    if (consume(uva_stream_from_pusher(rt, &how, &r->pusher), seen) != 0)
        return -1;
    return uv_thread_create(&r->thread, receiver_run, r);
}

static int start_feed(struct uva_runtime *rt, struct feed *f, int fd,
                      struct seen *seen)
{
    const struct uva_push_source how = {.on_room = feed_room,
                                        .on_gone = feed_gone,
                                        .ctx = f,
                                        .window = {.batches = 4}};

    f->pipe.data = f;
    if (uv_pipe_init(uv_default_loop(), &f->pipe, 0) != 0 ||
        uv_pipe_open(&f->pipe, fd) != 0)
        return -1;
    if (consume(uva_stream_from_pusher(rt, &how, &f->pusher), seen) != 0 ||
        say_schema(f->pusher) != 0)
        return -1;
    return uv_read_start((uv_stream_t *)&f->pipe, feed_alloc, feed_read);
}

int main(void)
{
    struct seen threads = {.name = "thread"}, loops = {.name = "loop"};
    struct sensor sensors[2];
    struct receiver receiver;
    struct feed feed = {0};
    struct uva_runtime *rt;

    if (uva_runtime_open(uv_default_loop(), NULL, &rt, NULL) != 0 ||
        sensor_start(&sensors[0]) != 0 || sensor_start(&sensors[1]) != 0)
        return 1;
    receiver.fd = sensors[0].peer;
    if (start_receiver(rt, &receiver, &threads) != 0 ||
        start_feed(rt, &feed, sensors[1].peer, &loops) != 0)
        return 1;

    uv_run(uv_default_loop(), UV_RUN_DEFAULT);
    uv_thread_join(&receiver.thread);
    uv_thread_join(&sensors[0].thread);
    uv_thread_join(&sensors[1].thread);
    uva_runtime_close(rt, 0, NULL, NULL);
    uv_run(uv_default_loop(), UV_RUN_DEFAULT);
    return uv_loop_close(uv_default_loop()) != 0 || !threads.well ||
           !loops.well;
}
