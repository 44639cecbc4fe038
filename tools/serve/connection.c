/* SPDX-License-Identifier: Apache-2.0 */
/* Input is kept in one text, of which the loop in connection_work() reads one
 * request after the other. It stops while a request is being answered or much
 * waits to be written, and reading from the socket stops when the text is long.
 */
#include "connection.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "server_limits.h"
#include "tls.h"

/* Input that waits while a request is answered. */
#define INPUT_MOST 65536

/* Memory of what is to be written, above which no more is taken. */
#define QUEUE_MOST 262144

/* Time for a request that was sent before its connection had been idle for as
 * long as answers state. */
#define IDLE_GRACE_MS 1000

/* Time after which a client that is not read from is looked for again. */
#define LOOK_MS 1000

/* The longest wait for a client at the end of the server. */
#define DRAIN_STEP_MS 700

/* The longest wait for a spare connection, as others wait for its place. */
#define SPARE_MS 1000

static void connection_work(struct uva__connection *c);

static struct uva__connection *connection_of(struct uva__transport *transport)
{
    return (struct uva__connection *)transport;
}

/* ---- waits --------------------------------------------------------------- */

static void on_timer(uv_timer_t *timer);

static void wait_at_most(struct uva__connection *c, int64_t ms)
{
    const int64_t most = c->is_spare && ms > SPARE_MS ? SPARE_MS : ms;

    c->queued = 0;
    (void)uv_timer_start(&c->timer, on_timer, (uint64_t)most, 0);
}

/* The end waits for answers, but for no client that stands still. */
static int64_t client_ms(const struct uva__connection *c, int64_t ms)
{
    return c->all->is_draining && ms > DRAIN_STEP_MS ? DRAIN_STEP_MS : ms;
}

/* Answers state whole seconds, and one at least. */
static int64_t idle_stated_ms(const struct uva__connection *c)
{
    const int64_t ms = c->all->limits->idle_ms;

    return ms < 1000 ? 1000 : ms / 1000 * 1000;
}

/* A request that a client sends at the last moment of that time is still read.
 */
static int64_t idle_ms(const struct uva__connection *c)
{
    return idle_stated_ms(c) + IDLE_GRACE_MS;
}

/* Sets the limit of the present wait. */
static void connection_wait(struct uva__connection *c)
{
    const struct uva__limits *limits = c->all->limits;
    const size_t queued = uva__transport_queued(&c->transport);

    if (queued > 0)
        wait_at_most(c, client_ms(c, limits->write_ms));
    else if (c->phase == UVA__CONNECTION_LINGERING)
        wait_at_most(c, client_ms(c, limits->linger_ms));
    else if (c->phase == UVA__CONNECTION_ANSWERING &&
             c->input.size >= INPUT_MOST)
        wait_at_most(c, LOOK_MS);
    else if (c->phase == UVA__CONNECTION_ANSWERING)
        (void)uv_timer_stop(&c->timer); /* a query takes its time */
    else
        wait_at_most(c, c->answered == 0 ? limits->head_ms : idle_ms(c));
    c->queued = queued;
    c->unconfirmed = uva__transport_unconfirmed(&c->transport);
}

/* Another site that may read an answer that the handler does not give. */
static const char *origin_of(const struct uva__connection *c)
{
    const struct uva__connection_handler *handler = &c->all->handler;

    return handler->origin_of != NULL ? handler->origin_of(handler->ctx, c)
                                      : NULL;
}

/* A write has got somewhere, or the client has not taken a byte. */
static bool connection_has_progress(const struct uva__connection *c)
{
    return c->queued > 0 &&
           (uva__transport_queued(&c->transport) < c->queued ||
            uva__transport_unconfirmed(&c->transport) != c->unconfirmed);
}

static void on_timer(uv_timer_t *timer)
{
    struct uva__connection *c = timer->data;
    const bool only_looks =
        c->phase == UVA__CONNECTION_ANSWERING && c->queued == 0;

    if (only_looks && uva__transport_has_left(&c->transport)) {
        uva__connection_abort(c);
        return;
    }
    if (only_looks || connection_has_progress(c)) {
        connection_wait(c);
        return;
    }
    if (uva__connection_yield(c))
        return;
    if (c->phase != UVA__CONNECTION_LINGERING)
        c->all->stats.timed_out++;
    if (c->phase == UVA__CONNECTION_READING && c->queued == 0 &&
        c->request.phase != UVA__REQUEST_IDLE) {
        uva__connection_fail(c, 408, origin_of(c), NULL,
                             "the request took too long", NULL);
        return;
    }
    uva__connection_abort(c);
}

/* ---- the end ------------------------------------------------------------- */

static void connection_free(struct uva__connection *c)
{
    struct uva__connections *all = c->all;

    uva__request_fini(&c->request);
    uva__bytes_clear(&c->input, 0);
    free(c);
    all->on_freed(all);
}

static void on_handle_closed(struct uva__connection *c)
{
    if (--c->handles == 0)
        connection_free(c);
}

static void on_timer_closed(uv_handle_t *handle)
{
    on_handle_closed(handle->data);
}

static void on_closed(struct uva__transport *transport)
{
    on_handle_closed(connection_of(transport));
}

/* Reports the answer, once for each request. `why`: the cause of its cut. */
static void connection_log(struct uva__connection *c, bool is_whole,
                           const char *why)
{
    const struct uva__connection_handler *handler = &c->all->handler;

    if (c->status != 0 && handler->on_answered != NULL)
        handler->on_answered(
            handler->ctx,
            &(struct uva__answered){.connection = c,
                                    .status = c->status,
                                    .bytes = c->bytes,
                                    .ns = (int64_t)(uv_hrtime() - c->begun),
                                    .is_whole = is_whole,
                                    .query = c->query,
                                    .why = why});
    uva__clients_leave(&c->all->clients, &c->asking);
    c->status = 0;
    c->query = 0;
    c->bytes = 0; /* or a client that leaves before its next answer has them */
}

/* Ends the answer under way, if there is one. */
static void connection_leave(struct uva__connection *c)
{
    const struct uva__answer_events events = c->events;

    memset(&c->events, 0, sizeof(c->events));
    if (events.on_gone != NULL && c->status == 0)
        c->status = 499; /* the client left before the answer: in logs only */
    connection_log(c, false, NULL);
    if (events.on_gone != NULL)
        events.on_gone(events.ctx);
}

static void connection_close(struct uva__connection *c, bool reset)
{
    if (c->phase == UVA__CONNECTION_CLOSED)
        return;
    c->phase = UVA__CONNECTION_CLOSED;
    *c->previous = c->next;
    if (c->next != NULL)
        c->next->previous = c->previous;
    uva__transport_close(&c->transport, reset);
    uv_close((uv_handle_t *)&c->timer, on_timer_closed);
    connection_leave(c);
    uva__clients_leave(&c->all->clients, &c->place);
    c->all->on_closed(c->all, c);
}

void uva__connection_abort(struct uva__connection *connection)
{
    connection_close(connection, false);
}

/* Ends our side, and reads on until the client ends its side. */
static void connection_linger(struct uva__connection *c, bool cut)
{
    c->phase = UVA__CONNECTION_LINGERING;
    uva__bytes_clear(&c->input, 0);
    c->looked_at = 0;
    uva__transport_shutdown(&c->transport, cut);
    if (c->phase == UVA__CONNECTION_CLOSED)
        return;
    if (c->has_ended && uva__transport_queued(&c->transport) == 0) {
        connection_close(c, false);
        return;
    }
    uva__transport_read(&c->transport, !c->has_ended);
    connection_wait(c);
}

void uva__connection_drain(struct uva__connection *connection)
{
    connection->keeps_alive = false;
    connection->request.keeps_alive = false;
    if (connection->phase == UVA__CONNECTION_READING)
        connection_linger(connection, false);
    else if (connection->phase != UVA__CONNECTION_CLOSED)
        connection_wait(connection);
}

/* ---- answers ------------------------------------------------------------- */

/* The answer is complete, or cut (`why`). The next request is looked at, here
 * or by the loop over the input that called the handler. */
static void connection_next(struct uva__connection *c, const char *why)
{
    memset(&c->events, 0, sizeof(c->events));
    connection_log(c, why == NULL, why);
    c->answered++;
    if (!c->keeps_alive || c->all->is_draining) {
        connection_linger(c, why != NULL);
        return;
    }
    c->phase = UVA__CONNECTION_READING;
    uva__request_reset(&c->request);
    connection_wait(c);
    if (!c->is_working)
        connection_work(c);
}

static int connection_write(struct uva__connection *c,
                            const struct uva__bytes *head,
                            const struct uva__transport_part *part,
                            const char *tail)
{
    const int code = uva__transport_write(&c->transport, uva__bytes_text(head),
                                          head->size, part, tail, strlen(tail));

    if (code != 0)
        connection_close(c, true);
    else if (c->phase != UVA__CONNECTION_READING)
        connection_wait(c);
    return code;
}

/* Settles how the answer is framed, and appends its head. */
static int connection_head(struct uva__connection *c,
                           struct uva__response *response,
                           struct uva__bytes *out)
{
    c->phase = UVA__CONNECTION_ANSWERING;
    c->status = response->status;
    c->bytes = 0;
    response->is_chunked = response->length < 0 && !c->request.is_old;
    c->body = c->request.method == UVA__METHOD_HEAD ? UVA__BODY_OMITTED
              : response->is_chunked                ? UVA__BODY_CHUNKED
                                                    : UVA__BODY_PLAIN;
    c->keeps_alive = c->request.keeps_alive && !c->is_spare &&
                     c->request.phase == UVA__REQUEST_COMPLETE &&
                     !c->all->is_draining;
    response->keeps_alive = c->keeps_alive;
    response->idle_s = idle_stated_ms(c) / 1000;
    return uva__response_head(response, out);
}

void uva__connection_answer(struct uva__connection *connection, int status,
                            const char *type, const char *origin,
                            const char *more, const char *body, size_t size)
{
    struct uva__response response = {.status = status,
                                     .type = type,
                                     .length = (int64_t)size,
                                     .origin = origin,
                                     .more = more};
    struct uva__bytes text = {0};
    int code = connection_head(connection, &response, &text);

    if (code == 0 && connection->body != UVA__BODY_OMITTED && body != NULL) {
        code = uva__bytes_add(&text, body, size);
        connection->bytes = (int64_t)size;
    }
    memset(&connection->events, 0, sizeof(connection->events));
    if (code != 0)
        connection_close(connection, true);
    else if (connection_write(connection, &text, NULL, "") == 0)
        connection_next(connection, NULL);
    uva__bytes_clear(&text, 0);
}

void uva__connection_fail(struct uva__connection *connection, int status,
                          const char *origin, const char *more,
                          const char *message, const char *const *members)
{
    struct uva__bytes text = {0};

    /* the caller answers, so it is not called back */
    memset(&connection->events, 0, sizeof(connection->events));
    connection->status = status;
    if (uva__response_error(status, message, members, &text) != 0)
        connection_close(connection, true);
    else
        uva__connection_answer(connection, status, "application/json", origin,
                               more, text.data, text.size);
    uva__bytes_clear(&text, 0);
}

void uva__connection_defer(struct uva__connection *connection,
                           const struct uva__answer_events *events)
{
    connection->phase = UVA__CONNECTION_ANSWERING;
    connection->events = *events;
    connection->was_full = false;
    connection_wait(connection);
    if (connection->has_ended) { /* while answers before it were written */
        connection_leave(connection);
        connection_linger(connection, false);
    }
}

int uva__connection_begin(struct uva__connection *connection, int status,
                          const char *type, const char *origin,
                          const char *more)
{
    struct uva__response response = {.status = status,
                                     .type = type,
                                     .length = -1,
                                     .origin = origin,
                                     .more = more};
    struct uva__bytes text = {0};
    int code = connection_head(connection, &response, &text);

    if (code == 0)
        code = connection_write(connection, &text, NULL, "");
    else
        connection_close(connection, true);
    uva__bytes_clear(&text, 0);
    return code;
}

int uva__connection_send(struct uva__connection *connection,
                         const struct uva__transport_part *part, int64_t bytes)
{
    struct uva__bytes head = {0};
    char size[24] = "";

    assert(connection->status != 0 && bytes > 0);
    if (connection->body == UVA__BODY_OMITTED) {
        if (part->release != NULL)
            part->release(part->owner);
        return 0;
    }
    if (connection->body == UVA__BODY_CHUNKED)
        (void)snprintf(size, sizeof(size), "%" PRIx64 "\r\n", (uint64_t)bytes);
    head.data = size;
    head.size = strlen(size);
    connection->bytes += bytes;
    return connection_write(connection, &head, part,
                            connection->body == UVA__BODY_CHUNKED ? "\r\n"
                                                                  : "");
}

bool uva__connection_is_full(struct uva__connection *connection)
{
    const bool full = uva__transport_held(&connection->transport) >= QUEUE_MOST;

    connection->was_full |= full;
    return full;
}

void uva__connection_end(struct uva__connection *connection)
{
    const struct uva__bytes none = {0};

    assert(connection->status != 0);
    memset(&connection->events, 0, sizeof(connection->events));
    if (connection->body == UVA__BODY_CHUNKED &&
        connection_write(connection, &none, NULL, "0\r\n\r\n") != 0)
        return;
    connection_next(connection, NULL);
}

/* Only chunks have an end that can be missing; an omitted body is whole. In
 * HTTP/1.0 the close is the end, unless it is a reset. */
void uva__connection_cut(struct uva__connection *connection, const char *why)
{
    memset(&connection->events, 0, sizeof(connection->events));
    connection->keeps_alive = false;
    if (connection->body != UVA__BODY_PLAIN) {
        connection_next(connection, why);
        return;
    }
    connection_log(connection, false, why);
    connection_close(connection, true);
}

bool uva__connection_yield(struct uva__connection *connection)
{
    const bool is_silent = connection->phase == UVA__CONNECTION_READING &&
                           connection->request.phase == UVA__REQUEST_IDLE;
    const bool is_answered = connection->phase == UVA__CONNECTION_LINGERING &&
                             uva__transport_queued(&connection->transport) == 0;

    if (!connection->is_spare || (!is_silent && !is_answered))
        return false;
    if (is_silent) {
        connection->all->stats.refused++;
        connection->begun = uv_hrtime();
        uva__connection_fail(connection, 503, NULL, "Retry-After: 1\r\n",
                             "there are too many connections", NULL);
    }
    uva__connection_abort(connection);
    return true;
}

/* ---- requests ------------------------------------------------------------ */

/* Takes the input that the request was read from out of the text. */
static void input_compact(struct uva__connection *c)
{
    if (c->phase == UVA__CONNECTION_CLOSED)
        return;
    uva__bytes_skip(&c->input, c->looked_at);
    c->looked_at = 0;
    if (c->input.size == 0)
        uva__bytes_clear(&c->input, 4096);
    uva__transport_read(&c->transport,
                        !c->has_ended && c->input.size < INPUT_MOST);
}

/* Settles the client: the peer, or the one that a trusted proxy states. */
static void connection_name(struct uva__connection *c, const char *forwarded)
{
    c->client = uva__proxies_client(&c->all->proxies, &c->peer, forwarded);
    uva__network_name(&c->client, c->client_name);
}

int uva__connection_count(struct uva__connection *connection)
{
    return connection->asking.client != NULL
               ? 0
               : uva__clients_enter(&connection->all->clients,
                                    UVA__CLIENTS_QUERY, &connection->client,
                                    &connection->asking);
}

/* The head is complete: it may be refused, or its client wants to be asked for
 * the body. */
static void connection_on_head(struct uva__connection *c)
{
    const struct uva__connection_handler *handler = &c->all->handler;
    const char *go_on = "HTTP/1.1 100 Continue\r\n\r\n";
    const struct uva__bytes none = {0};

    if (c->all->proxies.count > 0)
        connection_name(
            c, uva__request_field(&c->request, UVA__FIELD_X_FORWARDED_FOR));
    if (!c->request.has_body)
        return; /* on_request follows at once */
    if (handler->on_head != NULL)
        handler->on_head(handler->ctx, c);
    if (c->phase != UVA__CONNECTION_READING)
        return;
    wait_at_most(c, c->all->limits->body_ms);
    if (c->request.expects_continue && c->looked_at == c->input.size)
        (void)connection_write(c, &none, NULL, go_on);
}

static void connection_on_request(struct uva__connection *c)
{
    const struct uva__connection_handler *handler = &c->all->handler;

    c->all->stats.requests++;
    c->phase = UVA__CONNECTION_ANSWERING;
    handler->on_request(handler->ctx, c);
    assert(c->phase != UVA__CONNECTION_ANSWERING || c->events.on_gone != NULL);
}

static void connection_on_refused(struct uva__connection *c)
{
    c->all->stats.malformed++;
    c->request.keeps_alive = false;
    uva__connection_fail(c, c->request.status, origin_of(c), NULL,
                         c->request.why, NULL);
}

/* Reads the input of the present request. */
static void request_step(struct uva__connection *c)
{
    const bool is_new = c->request.phase == UVA__REQUEST_IDLE;

    if (is_new)
        c->begun = uv_hrtime();
    if (is_new && c->all->proxies.count > 0)
        connection_name(c, NULL); /* not the client of the request before */
    c->looked_at += uva__request_feed(&c->request,
                                      uva__bytes_text(&c->input) + c->looked_at,
                                      c->input.size - c->looked_at);
    if (is_new && c->request.phase == UVA__REQUEST_HEAD)
        wait_at_most(c, c->all->limits->head_ms);
    switch (c->request.phase) {
    case UVA__REQUEST_READY:
        connection_on_head(c);
        break;
    case UVA__REQUEST_COMPLETE:
        connection_on_request(c);
        break;
    case UVA__REQUEST_FAILED:
        connection_on_refused(c);
        break;
    default:
        break;
    }
}

/* Whether a step would read something. After its head a request may have no
 * body. */
static bool connection_can_step(const struct uva__connection *c)
{
    return c->phase == UVA__CONNECTION_READING &&
           (c->looked_at < c->input.size ||
            c->request.phase == UVA__REQUEST_READY) &&
           uva__transport_held(&c->transport) < QUEUE_MOST;
}

static void connection_work(struct uva__connection *c)
{
    assert(!c->is_working);
    c->is_working = true;
    while (connection_can_step(c))
        request_step(c);
    c->is_working = false;
    input_compact(c);
    if (c->phase == UVA__CONNECTION_READING && c->has_ended &&
        c->input.size == 0)
        connection_linger(c, false);
}

/* ---- the transport ------------------------------------------------------- */

static void on_data(struct uva__transport *transport, const char *data,
                    size_t size)
{
    struct uva__connection *c = connection_of(transport);

    if (c->phase == UVA__CONNECTION_LINGERING)
        return;
    if (uva__bytes_add(&c->input, data, size) != 0) {
        connection_close(c, true);
        return;
    }
    if (c->phase == UVA__CONNECTION_READING) {
        connection_work(c);
    } else if (c->input.size >= INPUT_MOST) {
        uva__transport_read(&c->transport, false);
        connection_wait(c);
    }
}

/* A client that has ended its side during an answer, or before a later one, is
 * taken for gone: a close looks no different. Other requests that were sent
 * before are answered. */
static void on_end(struct uva__transport *transport, int code)
{
    struct uva__connection *c = connection_of(transport);

    c->has_ended = true;
    if (code != 0 || c->events.on_gone != NULL)
        connection_close(c, false);
    else if (c->phase == UVA__CONNECTION_READING)
        connection_work(c);
    else if (uva__transport_queued(transport) == 0)
        connection_close(c, false);
}

static void on_written(struct uva__transport *transport, int code)
{
    struct uva__connection *c = connection_of(transport);
    const size_t queued = uva__transport_queued(transport),
                 held = uva__transport_held(transport);

    if (code != 0) {
        connection_close(c, false);
        return;
    }
    if (c->phase == UVA__CONNECTION_LINGERING && c->has_ended && queued == 0) {
        connection_close(c, false);
        return;
    }
    if (c->phase != UVA__CONNECTION_READING ||
        (c->request.phase == UVA__REQUEST_IDLE && queued == 0))
        connection_wait(c);
    if (c->phase == UVA__CONNECTION_READING && held < QUEUE_MOST / 2)
        connection_work(c);
    if (c->was_full && held < QUEUE_MOST / 2 && c->events.on_writable != NULL) {
        c->was_full = false;
        c->events.on_writable(c->events.ctx);
    }
}

static const struct uva__transport_events EVENTS = {
    .on_data = on_data,
    .on_end = on_end,
    .on_written = on_written,
    .on_closed = on_closed,
};

/* ---- begin --------------------------------------------------------------- */

/* Finds out who has connected, and counts it. Returns 0; EDQUOT; ENOMEM. A peer
 * that has left by now is unknown. */
static int connection_meet(struct uva__connection *c, int fd)
{
    struct sockaddr_storage address;
    socklen_t size = sizeof(address);

    if (getpeername(fd, (struct sockaddr *)&address, &size) != 0)
        return 0;
    (void)uva__network_of(&address, &c->peer);
    connection_name(c, NULL);
    return uva__proxies_trust(&c->all->proxies, &c->peer)
               ? 0
               : uva__clients_enter(&c->all->clients, UVA__CLIENTS_CONNECTION,
                                    &c->peer, &c->place);
}

int uva__connection_accept(struct uva__connections *all, uv_loop_t *loop,
                           int fd, bool is_spare)
{
    struct uva__connection *c = calloc(1, sizeof(*c));
    int code;

    if (c == NULL)
        return ENOMEM;
    c->all = all;
    c->is_spare = is_spare;
    (void)snprintf(c->client_name, sizeof(c->client_name), "-");
    code = connection_meet(c, fd);
    if (code != 0) {
        free(c);
        return code;
    }
    c->next = all->first;
    c->previous = &all->first;
    if (c->next != NULL)
        c->next->previous = &c->next;
    all->first = c;
    uva__request_init(&c->request, all->limits);
    (void)uv_timer_init(loop, &c->timer);
    c->timer.data = c;
    c->handles = 2;
    code = uva__transport_accept(&c->transport, loop, fd, all->tls, &EVENTS);
    if (code != 0) {
        connection_close(c, true);
        return 0;
    }
    connection_wait(c);
    uva__transport_read(&c->transport, true);
    return 0;
}
