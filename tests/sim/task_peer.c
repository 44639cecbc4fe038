/* SPDX-License-Identifier: Apache-2.0 */
/* A source with two halves: one fiber at a time finds items, and the extracting
 * thread makes them into data, several at once, in any order, some without
 * success. Each item must be extracted or freed once, before free_ctx. */
#include <errno.h>
#include <stdint.h>

#include "sim/arena.h"
#include "sim/batches.h"
#include "sim/device_stages.h"
#include "sim/engine.h"
#include "sim/hosts.h"
#include "sim/peers.h"

struct task_peer {
    struct expectation *expectation;
    const struct uva_runtime *runtime; /* borrows: only to be compared */
    int64_t next;                      /* next item to find */
    int64_t stuck_at; /* as in a blocking source; -1: in schema */
    int64_t bad;      /* the item that fails to extract; or -1 */
    int64_t at_once;  /* every such item is made where it was found; 0: none */
    bool deaf;        /* interrupts have no effect */
    bool interrupted;
    int inside;       /* calls of schema and next in flight */
    int interrupting; /* calls of interrupt in flight */
    int64_t items;    /* items not extracted or freed */
};

struct item {
    struct task_peer *peer;
    int64_t ordinal;
};

static bool peer_may_go_on(void *arg)
{
    const struct task_peer *peer = arg;

    return peer->interrupted || peers_are_unblocked();
}

/* Returns false if it was interrupted. */
static bool peer_enter(struct task_peer *peer, const char *what, int64_t at)
{
    expectation_note("tasks: %s, item %lld", what, (long long)peer->next);
    if (peer->inside++ != 0)
        sim_fail("two calls of a task source at once");
    hosts_count_call(peer->runtime, 1);
    peers_dawdle();
    if (peer->stuck_at != at)
        return true;
    sim_wait(peer_may_go_on, peer);
    return !peer->interrupted;
}

static int peer_leave(struct task_peer *peer, int code)
{
    peer->inside--;
    hosts_count_call(peer->runtime, -1);
    return code;
}

static int peer_schema(void *ctx, struct ArrowSchema *out,
                       struct uva_error *error)
{
    struct task_peer *peer = ctx;

    if (!peer_enter(peer, "schema", -1))
        return peer_leave(peer, uva_error_set(error, ECANCELED, "stopped"));
    batches_schema(out);
    return peer_leave(peer, 0);
}

static int peer_next(void *ctx, void **item, const char **metadata,
                     struct uva_error *error)
{
    struct task_peer *peer = ctx;
    const struct expectation *expectation = peer->expectation;
    struct item *found;

    (void)metadata;
    if (!peer_enter(peer, "next", peer->next))
        return peer_leave(peer, uva_error_set(error, ECANCELED, "stopped"));
    if (peer->next >= expectation->fails_at)
        return peer_leave(peer, expectation->fail_code);
    if (peer->next < expectation->total) {
        found = arena_new(sizeof(*found), "an item");
        *found = (struct item){peer, peer->next++};
        *item = found;
        peer->items++;
    }
    return peer_leave(peer, 0);
}

static int peer_extract(void *ctx, void *item, struct ArrowDeviceArray *out,
                        struct uva_error *error)
{
    struct task_peer *peer = ctx;
    struct item *taken = item;
    const int64_t ordinal = taken->ordinal;

    expectation_note("tasks: %s %lld", out != NULL ? "extract" : "discard",
                     (long long)ordinal);
    if (taken->peer != peer)
        sim_fail("an item is extracted that is none");
    taken->peer = NULL;
    peers_dawdle();
    arena_free(taken);
    peer->items--;
    if (out == NULL)
        return 0;
    if (ordinal == peer->bad)
        return uva_error_set(error, EDOM, "a bad item");
    device_batch(peer->expectation, peer->expectation->device, ordinal, 0, out);
    return 0;
}

static bool peer_at_once(void *ctx, const void *item)
{
    const struct task_peer *peer = ctx;
    const struct item *found = item;

    return peer->at_once > 0 && found->ordinal % peer->at_once == 0;
}

static void peer_interrupt(void *ctx)
{
    struct task_peer *peer = ctx;

    expectation_note("tasks: interrupt");
    if (peer->interrupting++ != 0)
        sim_fail("two interrupts at once");
    peers_dawdle();
    if (!peer->deaf)
        peer->interrupted = true;
    sim_point();
    peer->interrupting--;
}

static void peer_free(void *ctx)
{
    struct task_peer *peer = ctx;

    expectation_note("tasks: free_ctx");
    if (peer->inside != 0 || peer->interrupting != 0)
        sim_fail("free_ctx of a task source inside a call of it");
    if (peer->items != 0)
        sim_fail("free_ctx before %lld items were spent",
                 (long long)peer->items);
    arena_free(peer);
}

static void peer_draw(struct task_peer *peer, struct expectation *expectation)
{
    peer->expectation = expectation;
    peer->stuck_at = INT64_MAX;
    peer->bad = -1;
    if (peers_chance(1, 2)) {
        peer->at_once = 1 + (int64_t)sim_choose(3);
        expectation_note("chain %d: made at once: each %lld",
                         expectation->number, (long long)peer->at_once);
    }
    if (peers_chance(1, 8)) {
        peer->stuck_at =
            (int64_t)sim_choose((uint64_t)expectation->total + 2) - 1;
        peer->deaf = peers_chance(1, 4);
        expectation->stalls = true;
        expectation_note("chain %d: stuck at %lld", expectation->number,
                         (long long)peer->stuck_at);
    }
    if (expectation->total > 0 && peers_chance(1, 8)) {
        peer->bad = (int64_t)sim_choose((uint64_t)expectation->total);
        expectation->excuses |= EXCUSE_MAP;
        expectation_note("chain %d: item %lld is bad", expectation->number,
                         (long long)peer->bad);
    }
}

struct uva_stream *task_peer_stream(struct uva_runtime *runtime,
                                    struct expectation *expectation)
{
    struct task_peer *peer = arena_new(sizeof(*peer), "a task source");
    struct uva_task_source source = {
        .schema = peer_schema,
        .next = peer_next,
        .extract = peer_extract,
        .interrupt = peers_chance(2, 3) ? peer_interrupt : NULL,
        .at_once = peer_at_once,
        .free_ctx = peer_free,
        .ctx = peer,
        .device_type = device_type(expectation),
        .window = peers_window()};
    struct uva_stream *stream;
    bool inside;

    peer->runtime = runtime;
    peer_draw(peer, expectation);
    expectation_note("chain %d: a task source, window %d", expectation->number,
                     source.window.batches);
    inside = hosts_enter(runtime);
    if (inside && peer->stuck_at == INT64_MAX)
        source.permits = hosts_permits(runtime);
    stream = uva_stream_from_tasks(runtime, &source);
    if (inside)
        hosts_leave(runtime);
    return stream;
}
