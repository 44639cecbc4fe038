/* SPDX-License-Identifier: Apache-2.0 */
/* Fibers that push: each waits in the library, for a while or without limit, or
 * does not wait, and hears that the window is full; then it waits for
 * on_writable, or goes on all the same. The last one to finish closes the
 * pusher, with success or with the error of the scenario.
 */
#include <errno.h>
#include <stdint.h>

#include "sim/arena.h"
#include "sim/batches.h"
#include "sim/device_stages.h"
#include "sim/engine.h"
#include "sim/hosts.h"
#include "sim/peers.h"
#include "uvarrow/arrow.h"

struct pusher_peer {
    struct expectation *expectation;
    struct uva_pusher *pusher;
    int64_t next;         /* next batch to push */
    int writers;          /* fibers that push */
    int64_t rooms;        /* calls of on_writable */
    bool closed_reported; /* on_closed was called */
    bool freed;           /* free_ctx was called */
    bool held;            /* a fiber is about to read it */
};

static void peer_free(struct pusher_peer *peer)
{
    if (peer->freed && peer->writers == 0 && !peer->held)
        arena_free(peer);
}

/* ---- the library's calls ------------------------------------------------ */

static void on_writable(void *ctx, struct uva_pusher *pusher)
{
    struct pusher_peer *peer = ctx;

    expectation_note("pusher: on_writable");
    if (peer->freed || pusher == NULL)
        sim_fail("on_writable after free_ctx");
    peer->rooms++;
}

static void on_closed(void *ctx, struct uva_pusher *pusher)
{
    struct pusher_peer *peer = ctx;

    expectation_note("pusher: on_closed");
    if (peer->freed || pusher == NULL)
        sim_fail("on_closed after free_ctx");
    if (peer->closed_reported)
        sim_fail("on_closed twice");
    peer->closed_reported = true;
}

static void free_ctx(void *ctx)
{
    struct pusher_peer *peer = ctx;

    expectation_note("pusher: free_ctx");
    if (peer->freed)
        sim_fail("free_ctx twice");
    peer->freed = true;
    peer_free(peer);
}

/* ---- writers ------------------------------------------------------------ */

/* A push after which the window was full. */
struct fullness {
    const struct pusher_peer *peer;
    int64_t rooms; /* calls of on_writable before the push */
    int closed;    /* runtimes closed before it */
};

static bool fullness_is_over(void *arg)
{
    const struct fullness *fullness = arg;

    return fullness->peer->rooms != fullness->rooms ||
           hosts_closed() != fullness->closed || /* no callback will follow */
           fullness->peer->closed_reported || fullness->peer->freed;
}

static int64_t peer_limit(void)
{
    const uint64_t kind = sim_choose(3);

    return kind == 0 ? 0 : kind == 1 ? UVA_FOREVER : 1 + (int64_t)sim_choose(9);
}

/* Pushes batch number `number`, once. */
static int peer_push_once(struct pusher_peer *peer, int64_t number)
{
    struct fullness fullness = {peer, peer->rooms, hosts_closed()};
    const int64_t limit_ms = peer_limit();
    struct ArrowDeviceArray batch;
    int code;

    device_batch(peer->expectation, peer->expectation->device, number, 0,
                 &batch);
    peers_dawdle();
    fullness.rooms = peer->rooms;
    code = uva_pusher_push(peer->pusher, &batch, NULL, limit_ms);
    expectation_note("pusher: push, waiting %lld: %s", (long long)limit_ms,
                     uva_error_name(code));
    if (uva_array_is_live(&batch))
        sim_fail("a push left its batch: %s", uva_error_name(code));
    if (code == ETIMEDOUT && limit_ms == UVA_FOREVER)
        sim_fail("a push for ever timed out");
    if (code == EAGAIN && limit_ms != 0)
        sim_fail("a push that waits returned EAGAIN");
    if (code == EAGAIN && peers_chance(2, 3))
        sim_wait(fullness_is_over, &fullness);
    return code == EAGAIN ? 0 : code;
}

/* Pushes a batch until it is taken, or the stream takes no more: one that found
 * no room in time is made anew. */
static int peer_push(struct pusher_peer *peer, int64_t number)
{
    int code;

    do
        code = peer_push_once(peer, number);
    while (code == ETIMEDOUT);
    return code;
}

static bool peer_is_done(const struct pusher_peer *peer)
{
    return peer->next >= peer->expectation->total ||
           peer->next >= peer->expectation->fails_at;
}

/* Returns 0, or why the stream takes no more. */
static int peer_write(struct pusher_peer *peer)
{
    int code = 0;

    while (code == 0 && !peer_is_done(peer))
        code = peer_push(peer, peer->next++);
    return code;
}

static void peer_close(struct pusher_peer *peer)
{
    const struct expectation *expectation = peer->expectation;
    struct uva_error error;

    expectation_note("pusher: close");
    if (expectation->fails_at <= expectation->total)
        (void)uva_error_set(&error, expectation->fail_code, "the feed broke");
    uva_pusher_close(
        peer->pusher,
        expectation->fails_at <= expectation->total ? &error : NULL, NULL);
}

static void writer(void *arg)
{
    struct pusher_peer *peer = arg;
    int code = peer_write(peer);

    if (code != 0 && code != EPIPE && code != ENOMEM)
        sim_fail("a push failed: %s", uva_error_name(code));
    if (code == ENOMEM)
        peer->expectation->excuses |= EXCUSE_ODD_END; /* one batch is missing */
    if (--peer->writers > 0)
        return;
    peer->held = true;
    peer_close(peer);
    peer->held = false;
    peer_free(peer);
}

struct uva_stream *pusher_peer_stream(struct uva_runtime *runtime,
                                      struct expectation *expectation)
{
    struct pusher_peer *peer = arena_new(sizeof(*peer), "a pusher's ctx");
    const struct uva_push_source options = {.on_writable = on_writable,
                                            .on_closed = on_closed,
                                            .free_ctx = free_ctx,
                                            .ctx = peer,
                                            .device_type =
                                                device_type(expectation),
                                            .window = peers_window()};
    struct uva_stream *stream;
    struct ArrowSchema schema;
    int n = peers_chance(1, 3) ? 2 : 1, code;

    peer->expectation = expectation;
    peer->held = true;
    expectation->unordered = expectation->unordered || n > 1;
    expectation_note("chain %d: %d fibers that push, window %d",
                     expectation->number, n, options.window.batches);
    stream = uva_stream_from_pusher(runtime, &options, &peer->pusher);
    batches_schema(&schema);
    code = uva_pusher_set_schema(peer->pusher, &schema);
    if (code == 0) {
        peer->writers = n;
    } else {
        expectation->excuses |= EXCUSE_ODD_END;
        uva_pusher_close(peer->pusher, NULL, NULL);
    }
    peer->held = false;
    peer_free(peer);
    for (int i = 0; i < n && code == 0; i++)
        peers_spawn("pusher", writer, peer);
    return stream;
}
