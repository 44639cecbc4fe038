/* SPDX-License-Identifier: Apache-2.0 */
/* Clients of a server of HTTP on 127.0.0.1, all on one loop.
 *
 * Usage: load PORT PATH CLIENTS REQUESTS [SLOW_MS]
 *        load PORT PATH ping
 *
 * CLIENTS connections send GET requests, each the next one when its answer is
 * complete, until there were REQUESTS answers. An answer must have status 200,
 * the length of the first answer, and its last chunk. With SLOW_MS a client
 * reads 16 KiB and pauses for so long, and after REQUESTS milliseconds all
 * connections are reset, wherever their answers are.
 *
 * `ping` sends a request every 10 ms, until standard input ends.
 *
 * Prints, one a line with a tab: answers, bytes of one, seconds, and the
 * latencies p50 and p99 in milliseconds. */
#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

enum {
    HEAD_MOST = 4096,
    READ_MOST = 262144,
    SLOW_READ = 16384,
    SLOW_ROOM = 65536, /* of the socket of a slow reader */
    PING_MS = 10
};

/* Where in an answer a client is. */
enum state {
    HEAD,
    LENGTH,     /* content of a known length */
    CHUNK_SIZE, /* the line before a chunk */
    CHUNK,      /* the chunk, and the line break after it */
    LAST        /* the line break after the last chunk */
};

struct load;

struct client {
    uv_tcp_t tcp;
    uv_connect_t connect;
    uv_write_t write;
    uv_timer_t timer; /* of a slow reader, or between pings */
    struct load *load;
    enum state state;
    char line[HEAD_MOST]; /* a head or the line before a chunk, so far */
    size_t line_size;
    int64_t left; /* of the content or of the chunk */
    int64_t body; /* bytes of the answer so far */
    uint64_t begun;
    bool is_asking; /* an answer is missing */
};

struct load {
    uv_loop_t loop;
    uv_pipe_t input; /* of `ping` */
    uv_timer_t end;  /* of slow readers */
    struct sockaddr_in address;
    char request[2048];
    struct client *clients;
    int count;
    int64_t wanted; /* answers */
    int64_t asked;
    int64_t answered;
    int64_t bytes;     /* of each answer; -1: no answer so far */
    uint64_t slow_ms;  /* 0: read at once */
    bool is_ping;      /* one client, with pauses */
    bool is_ending;    /* connections are being closed */
    double *latencies; /* in ms */
    size_t room;       /* of latencies */
};

static char read_room[READ_MOST];

static void client_ask(struct client *c);

static void check(bool holds, const char *what)
{
    if (holds)
        return;
    (void)fprintf(stderr, "load: %s\n", what);
    exit(1);
}

/* ---- the end ------------------------------------------------------------- */

static void load_end(struct load *load)
{
    if (load->is_ending)
        return;
    load->is_ending = true;
    for (int i = 0; i < load->count; i++) {
        struct client *c = &load->clients[i];

        uv_close((uv_handle_t *)&c->timer, NULL);
        if (load->slow_ms == 0 || uv_tcp_close_reset(&c->tcp, NULL) != 0)
            uv_close((uv_handle_t *)&c->tcp, NULL);
    }
    if (load->is_ping)
        uv_close((uv_handle_t *)&load->input, NULL);
    uv_close((uv_handle_t *)&load->end, NULL);
}

/* ---- answers ------------------------------------------------------------- */

static void on_ping_timer(uv_timer_t *timer)
{
    client_ask(timer->data);
}

static void client_answered(struct client *c)
{
    struct load *load = c->load;

    check(load->bytes < 0 || load->bytes == c->body || load->is_ping,
          "answers differ in length");
    load->bytes = c->body;
    if ((size_t)load->answered == load->room) {
        load->room = load->room == 0 ? 1024 : 2 * load->room;
        load->latencies =
            realloc(load->latencies, load->room * sizeof(*load->latencies));
        check(load->latencies != NULL, "memory");
    }
    load->latencies[load->answered++] = (double)(uv_hrtime() - c->begun) / 1e6;
    c->state = HEAD;
    c->is_asking = false;
    if (load->is_ping)
        (void)uv_timer_start(&c->timer, on_ping_timer, PING_MS, 0);
    else if (load->answered == load->wanted)
        load_end(load);
    else
        client_ask(c);
}

static void client_on_head(struct client *c)
{
    const char *length;

    check(strncmp(c->line, "HTTP/1.1 200 ", 13) == 0, c->line);
    for (char *at = c->line; *at != '\0'; at++)
        *at = (char)tolower((unsigned char)*at);
    length = strstr(c->line, "\r\ncontent-length:");
    c->body = 0;
    c->state = CHUNK_SIZE;
    if (length != NULL) {
        c->state = LENGTH;
        c->left = strtoll(length + 17, NULL, 10);
        c->body = c->left;
    }
    if (c->state == LENGTH && c->left == 0)
        client_answered(c);
}

static void client_on_chunk_size(struct client *c)
{
    c->left = strtoll(c->line, NULL, 16);
    c->body += c->left;
    c->state = c->left > 0 ? CHUNK : LAST;
    c->left += 2; /* the line break after the chunk */
}

/* Collects a text that ends with `mark`. Returns how many bytes it took. */
static size_t client_line(struct client *c, const char *data, size_t size,
                          const char *mark, void (*then)(struct client *c))
{
    const size_t mark_size = strlen(mark);

    for (size_t i = 0; i < size; i++) {
        check(c->line_size + 1 < HEAD_MOST, "a line is too long");
        c->line[c->line_size++] = data[i];
        if (c->line_size < mark_size ||
            memcmp(c->line + c->line_size - mark_size, mark, mark_size) != 0)
            continue;
        c->line[c->line_size] = '\0';
        c->line_size = 0;
        then(c);
        return i + 1;
    }
    return size;
}

/* Skips content. Returns how many bytes it took. */
static size_t client_skip(struct client *c, size_t size)
{
    const size_t most = (int64_t)size < c->left ? size : (size_t)c->left;

    c->left -= (int64_t)most;
    if (c->left > 0)
        return most;
    if (c->state == CHUNK)
        c->state = CHUNK_SIZE;
    else
        client_answered(c);
    return most;
}

static void client_feed(struct client *c, const char *data, size_t size)
{
    size_t took;

    for (; size > 0 && !c->load->is_ending; data += took, size -= took) {
        if (c->state == HEAD)
            took = client_line(c, data, size, "\r\n\r\n", client_on_head);
        else if (c->state == CHUNK_SIZE)
            took = client_line(c, data, size, "\r\n", client_on_chunk_size);
        else
            took = client_skip(c, size);
    }
}

/* ---- connections --------------------------------------------------------- */

static void on_alloc(uv_handle_t *handle, size_t size, uv_buf_t *out)
{
    const struct client *c = handle->data;

    (void)size;
    *out = uv_buf_init(read_room, c->load->slow_ms > 0 ? SLOW_READ : READ_MOST);
}

static void on_read(uv_stream_t *stream, ssize_t size, const uv_buf_t *buffer);

static void on_slow_timer(uv_timer_t *timer)
{
    struct client *c = timer->data;

    (void)uv_read_start((uv_stream_t *)&c->tcp, on_alloc, on_read);
}

static void on_read(uv_stream_t *stream, ssize_t size, const uv_buf_t *buffer)
{
    struct client *c = stream->data;

    if (size < 0) {
        check(!c->is_asking, "a connection was closed before its answer");
        (void)uv_read_stop(stream); /* an idle one may be */
        return;
    }
    client_feed(c, buffer->base, (size_t)size);
    if (c->load->slow_ms == 0 || c->load->is_ending)
        return;
    (void)uv_read_stop(stream);
    (void)uv_timer_start(&c->timer, on_slow_timer, c->load->slow_ms, 0);
}

static void client_ask(struct client *c)
{
    struct load *load = c->load;
    uv_buf_t buffer =
        uv_buf_init(load->request, (unsigned)strlen(load->request));

    if (!load->is_ping && load->slow_ms == 0 && load->asked == load->wanted)
        return;
    load->asked++;
    c->begun = uv_hrtime();
    c->is_asking = true;
    check(uv_write(&c->write, (uv_stream_t *)&c->tcp, &buffer, 1, NULL) == 0,
          "write");
}

static void on_connected(uv_connect_t *request, int status)
{
    struct client *c = request->handle->data;

    check(status == 0, "no connection");
    (void)uv_read_start((uv_stream_t *)&c->tcp, on_alloc, on_read);
    client_ask(c);
}

static void client_open(struct client *c, struct load *load)
{
    int room = SLOW_ROOM;

    c->load = load;
    check(uv_tcp_init_ex(&load->loop, &c->tcp, AF_INET) == 0, "socket");
    if (load->slow_ms > 0)
        (void)uv_recv_buffer_size((uv_handle_t *)&c->tcp, &room);
    (void)uv_timer_init(&load->loop, &c->timer);
    c->tcp.data = c->timer.data = c;
    check(uv_tcp_connect(&c->connect, &c->tcp,
                         (const struct sockaddr *)&load->address,
                         on_connected) == 0,
          "connect");
}

/* ---- the program --------------------------------------------------------- */

static void on_end_timer(uv_timer_t *timer)
{
    load_end(timer->data);
}

static void on_input_alloc(uv_handle_t *handle, size_t size, uv_buf_t *out)
{
    (void)handle;
    (void)size;
    *out = uv_buf_init(read_room, READ_MOST);
}

static void on_input(uv_stream_t *stream, ssize_t size, const uv_buf_t *buffer)
{
    (void)buffer;
    if (size < 0)
        load_end(stream->data);
}

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static double percentile(struct load *load, int percent)
{
    const int64_t place = load->answered * percent / 100;

    return load->answered == 0 ? 0 : load->latencies[place];
}

static void load_print(struct load *load, double seconds)
{
    qsort(load->latencies, (size_t)load->answered, sizeof(double), compare);
    (void)printf("answers\t%lld\nbytes\t%lld\nseconds\t%.3f\np50\t%.3f\n"
                 "p99\t%.3f\n",
                 (long long)load->answered,
                 (long long)(load->bytes < 0 ? 0 : load->bytes), seconds,
                 percentile(load, 50), percentile(load, 99));
}

static void load_read(struct load *load, int argc, char **argv)
{
    const int port = argc > 3 ? atoi(argv[1]) : 0;

    load->is_ping = argc == 4 && strcmp(argv[3], "ping") == 0;
    check(load->is_ping || argc >= 5,
          "Usage: load PORT PATH CLIENTS REQUESTS [SLOW_MS], or PORT PATH "
          "ping");
    load->count = load->is_ping ? 1 : atoi(argv[3]);
    load->wanted = load->is_ping ? -1 : atoll(argv[4]);
    load->slow_ms = argc > 5 ? (uint64_t)atoll(argv[5]) : 0;
    load->bytes = -1;
    check(uv_ip4_addr("127.0.0.1", port, &load->address) == 0, "port");
    (void)snprintf(load->request, sizeof(load->request),
                   "GET %s HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n\r\n", argv[2],
                   port);
    check(strlen(load->request) + 1 < sizeof(load->request), "a long path");
}

static void load_run(struct load *load)
{
    load->clients = calloc((size_t)load->count, sizeof(*load->clients));
    check(load->count > 0 && load->clients != NULL, "clients");
    check(uv_loop_init(&load->loop) == 0, "loop");
    (void)uv_timer_init(&load->loop, &load->end);
    load->end.data = load->input.data = load;
    if (load->slow_ms > 0)
        (void)uv_timer_start(&load->end, on_end_timer, (uint64_t)load->wanted,
                             0);
    if (load->is_ping) {
        (void)uv_pipe_init(&load->loop, &load->input, 0);
        check(uv_pipe_open(&load->input, 0) == 0, "standard input");
        (void)uv_read_start((uv_stream_t *)&load->input, on_input_alloc,
                            on_input);
    }
    for (int i = 0; i < load->count; i++)
        client_open(&load->clients[i], load);
    (void)uv_run(&load->loop, UV_RUN_DEFAULT);
    check(uv_loop_close(&load->loop) == 0, "the loop does not close");
}

int main(int argc, char **argv)
{
    static struct load load;
    uint64_t begun;

    load_read(&load, argc, argv);
    begun = uv_hrtime();
    load_run(&load);
    load_print(&load, (double)(uv_hrtime() - begun) / 1e9);
    free(load.latencies);
    free(load.clients);
    return 0;
}
