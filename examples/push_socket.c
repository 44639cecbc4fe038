/* SPDX-License-Identifier: Apache-2.0 */
/* Pushes the data of a network socket into a stream, with back-pressure. The
 * socket is read on the loop, directly into the memory of the next batch. When
 * a batch fills the window of the stream, push returns EAGAIN and the program
 * stops reading: the buffers of the socket fill up, and the sender blocks in
 * its write().
 * on_writable starts the reading again. Here the consumer is slow, and 16 MB
 * pass through the memory of a few batches.
 *
 *     $ cc push_socket.c $(pkg-config --cflags --libs uvarrow libuv)
 *     $ ./a.out
 *     2000000 numbers in order, complete
 *     the reading stopped and went on; at most 8 batches were in memory
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>
#include <uv.h>

#include "uvarrow/uvarrow.h"

#define NUMBERS     2000000 /* count of numbers sent, from 0 upwards */
#define BATCH_ROWS  4096
#define BATCH_BYTES (BATCH_ROWS * sizeof(int64_t))
#define WINDOW      4 /* batches that may wait for the consumer */

/* ---- batches, counted --------------------------------------------------- */

struct numbers {
    const void *buffers[2]; /* no nulls; `values` */
    int64_t values[BATCH_ROWS];
};

static int live, live_max; /* only used on the loop thread */

static void numbers_release(struct ArrowArray *array)
{
    live--;
    free(array->private_data);
    array->release = NULL;
}

static void schema_release(struct ArrowSchema *schema)
{
    schema->release = NULL; /* no memory to free */
}

static int64_t *numbers_new(struct ArrowDeviceArray *out)
{
    struct numbers *numbers = calloc(1, sizeof(*numbers));
    struct ArrowArray array = {
        .n_buffers = 2, .release = numbers_release, .private_data = numbers};

    if (numbers == NULL)
        return NULL;
    live++;
    live_max = live > live_max ? live : live_max;
    numbers->buffers[1] = numbers->values;
    array.buffers = numbers->buffers;
    uva_array_from_cpu(&array, out);
    return numbers->values;
}

/* ---- the receiver, on the loop ------------------------------------------ */

struct receiver {
    uv_tcp_t tcp;
    struct uva_pusher *pusher;    /* owns, until it is closed */
    struct ArrowDeviceArray next; /* owns: being filled */
    char *to;                     /* the memory of `next` */
    size_t filled;                /* bytes in it */
    bool over;                    /* the sender has closed the connection */
    int stops;                    /* how often the window was full */
    struct uva_stream *stream;    /* borrows: the consumer's */
};

static void receiver_close(struct receiver *r, int code)
{
    struct uva_error error;

    if (code != 0)
        uva_error_set(&error, code, "the socket failed");
    uv_close((uv_handle_t *)&r->tcp, NULL);
    uva_array_release(&r->next);
    uva_pusher_close(r->pusher, code != 0 ? &error : NULL, NULL);
}

static void on_alloc(uv_handle_t *handle, size_t hint, uv_buf_t *buffer)
{
    struct receiver *r = handle->data;

    (void)hint;
    if (!uva_array_is_live(&r->next))
        r->to = (char *)numbers_new(&r->next);
    *buffer = r->to == NULL ? uv_buf_init(NULL, 0)
                            : uv_buf_init(r->to + r->filled,
                                          (unsigned)(BATCH_BYTES - r->filled));
}

/* Pushes the current batch. Returns EAGAIN if the window is full now; then
 * on_writable() will be called. */
static int receiver_push(struct receiver *r)
{
    if (r->filled == 0)
        return 0;
    r->next.array.length = (int64_t)(r->filled / sizeof(int64_t));
    r->filled = 0;
    return uva_pusher_push(r->pusher, &r->next, NULL, 0);
}

static void on_read(uv_stream_t *tcp, ssize_t size, const uv_buf_t *buffer)
{
    struct receiver *r = tcp->data;
    int code = 0;

    (void)buffer;
    if (size > 0)
        r->filled += (size_t)size;
    r->over = size == UV_EOF;
    if (size < 0 && !r->over)
        code = (int)-size;
    else if (r->filled == BATCH_BYTES || r->over)
        code = receiver_push(r);

    if (code == EAGAIN) {
        uv_read_stop(tcp);
        if (r->stops++ == 0)
            uva_stream_resume(r->stream); /* the consumer continues */
        code = 0;
    }
    if (code != 0 || r->over)
        receiver_close(r, code);
}

/* There is room again. */
static void on_writable(void *ctx, struct uva_pusher *pusher)
{
    struct receiver *r = ctx;

    (void)pusher;
    uv_read_start((uv_stream_t *)&r->tcp, on_alloc, on_read);
}

/* The stream has ended. */
static void on_closed(void *ctx, struct uva_pusher *pusher)
{
    (void)pusher;
    receiver_close(ctx, 0);
}

/* ---- the consumer, slower than the network ------------------------------ */

struct consumer {
    uv_idle_t work;            /* simulates the work on a batch */
    struct uva_stream *stream; /* owns a reference */
    int64_t rows;              /* number received in order */
    bool complete;
};

/* Runs one loop turn later, when the work is done: continue. */
static void on_work(uv_idle_t *work)
{
    struct consumer *c = work->data;

    uv_idle_stop(work);
    uva_stream_resume(c->stream);
}

static int on_batch(void *ctx, struct uva_batch *batch)
{
    const int64_t *values = batch->data.array.buffers[1];
    struct consumer *c = ctx;
    int code = EAGAIN; /* taken, and no more now */

    for (int64_t i = 0; i < batch->data.array.length; i++) {
        if (values[i] != c->rows++)
            code = EPROTO;
    }
    uv_idle_start(&c->work, on_work);
    return code;
}

static void on_done(void *ctx, const struct uva_outcome *outcome)
{
    struct consumer *c = ctx;

    c->complete = outcome->end == UVA_END_COMPLETE && c->rows == NUMBERS;
    printf("%" PRId64 " numbers in order, %s\n", c->rows,
           outcome->error.code != 0 ? outcome->error.message : "complete");
    uv_close((uv_handle_t *)&c->work, NULL);
    uva_stream_release(c->stream);
}

/* ---- the program -------------------------------------------------------- */

/* The sender, usually another program. It only writes. */
static void send_all(void *ctx)
{
    const int fd = *(int *)ctx;
    int64_t values[1000];

    for (int64_t sent = 0; sent < NUMBERS; sent += 1000) {
        for (int64_t i = 0; i < 1000; i++)
            values[i] = sent + i;
        for (size_t at = 0; at < sizeof(values);) {
            const ssize_t size =
                write(fd, (char *)values + at, sizeof(values) - at);
            if (size <= 0)
                return;
            at += (size_t)size;
        }
    }
    (void)close(fd);
}

/* Opens a connection over the loopback device. Gives both ends. */
static int connect_ends(int *sender, int *receiver)
{
    const int listener = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in address;
    socklen_t size = sizeof(address);

    *sender = socket(AF_INET, SOCK_STREAM, 0);
    uv_ip4_addr("127.0.0.1", 0, &address); /* port 0: any port */
    if (bind(listener, (struct sockaddr *)&address, size) != 0 ||
        listen(listener, 1) != 0 ||
        getsockname(listener, (struct sockaddr *)&address, &size) != 0 ||
        connect(*sender, (struct sockaddr *)&address, size) != 0)
        return errno;
    *receiver = accept(listener, NULL, NULL);
    (void)close(listener);
    return *receiver < 0 ? errno : 0;
}

static int start(struct uva_runtime *rt, struct receiver *r, int fd,
                 struct consumer *c)
{
    const struct uva_push_source options = {.on_writable = on_writable,
                                            .on_closed = on_closed,
                                            .ctx = r,
                                            .window = {.batches = WINDOW}};
    const struct uva_consumer consumer = {
        .on_batch = on_batch, .on_done = on_done, .ctx = c};
    struct ArrowSchema schema = {
        .format = "l", /* int64 */ .name = "", .release = schema_release};

    r->tcp.data = r;
    c->work.data = c;
    uv_idle_init(uv_default_loop(), &c->work);
    c->stream = uva_stream_from_pusher(rt, &options, &r->pusher);
    uva_stream_pause(c->stream); /* until the sender has to wait: on_read() */
    r->stream = c->stream;
    if (uv_tcp_init(uv_default_loop(), &r->tcp) != 0 ||
        uv_tcp_open(&r->tcp, fd) != 0 ||
        uva_stream_for_each(c->stream, &consumer, NULL) != 0 ||
        uva_pusher_set_schema(r->pusher, &schema) != 0)
        return -1;
    return uv_read_start((uv_stream_t *)&r->tcp, on_alloc, on_read);
}

int main(void)
{
    struct receiver receiver = {0};
    struct consumer consumer = {0};
    struct uva_runtime *rt;
    uv_thread_t sender;
    int to = -1, from = -1;

    if (connect_ends(&to, &from) != 0 ||
        uva_runtime_open(uv_default_loop(), NULL, &rt, NULL) != 0 ||
        start(rt, &receiver, from, &consumer) != 0 ||
        uv_thread_create(&sender, send_all, &to) != 0)
        return 1;
    uv_run(uv_default_loop(), UV_RUN_DEFAULT);
    uv_thread_join(&sender);

    uva_runtime_close(rt, 0, NULL, NULL);
    uv_run(uv_default_loop(), UV_RUN_DEFAULT);
    if (receiver.stops > 0)
        printf("the reading stopped and went on; ");
    if (live_max <= 2 * WINDOW)
        printf("at most %d batches were in memory\n", 2 * WINDOW);
    return uv_loop_close(uv_default_loop()) != 0 || !consumer.complete ||
           live != 0;
}
