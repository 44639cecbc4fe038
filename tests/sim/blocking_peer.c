/* SPDX-License-Identifier: Apache-2.0 */
/* A blocking source: fast, slow, stuck until it is interrupted or for good,
 * failing at some batch with or without a text. It checks that one fiber at a
 * time calls it, and that it is not released or freed while an interrupt runs.
 */
#include <errno.h>
#include <stdint.h>

#include "sim/arena.h"
#include "sim/batches.h"
#include "sim/device_stages.h"
#include "sim/engine.h"
#include "sim/hosts.h"
#include "sim/monitor.h"
#include "sim/peers.h"

struct blocking_peer {
    struct expectation *expectation;
    const struct uva_runtime *runtime; /* borrows: only to be compared */
    ArrowDeviceType device_type;
    int64_t next;     /* next batch to give */
    int64_t stuck_at; /* batch it gets stuck at; -1: open; INT64_MAX: never */
    bool deaf;        /* interrupts have no effect */
    bool mute;        /* get_last_error gives NULL */
    bool on_loop;     /* never waits */
    bool interrupted;
    int inside;       /* calls of the stream in flight */
    int interrupting; /* calls of interrupt in flight */
    bool released;    /* the stream was released */
    bool is_open;     /* the stream was opened */
    bool has_permits; /* counts in `shared.users` */
    bool in_session;  /* counts in `shared.inside` */
    bool was_called;  /* by the worker, or by the loop */
};

/* Permits that sources of one runtime share, as in a pool of connections. */
static struct {
    struct uva_runtime *runtime; /* borrows */
    struct uva_permits *permits; /* owns; NULL: there are no permits now */
    int users;                   /* sources that were not freed */
    struct uva_permits *session; /* owns: within these; NULL: there are no
                                  permits */
    int inside;                  /* sources that have those */
} shared;

/* Some sources are in a session of the pool. */
static struct uva_permits *session_get(struct blocking_peer *peer,
                                       int64_t wait_ms)
{
    struct uva_permits *made;

    if (shared.session == NULL &&
        uva_permits_within(shared.permits, 1, wait_ms, &made, NULL) == 0) {
        if (shared.session == NULL)
            shared.session = made;
        else
            uva_permits_release(made);
    }
    if (shared.session == NULL)
        return shared.permits;
    shared.inside++;
    peer->in_session = true;
    return shared.session;
}

/* Gives them to a source, which waits for a limited time: sources may depend on
 * each other. */
static struct uva_permits *permits_get(struct uva_runtime *runtime,
                                       struct blocking_peer *peer)
{
    const int64_t wait_ms = 1 + (int64_t)sim_choose(20);
    struct uva_permits *permits;

    if (shared.users == 0 && shared.permits == NULL &&
        uva_permits_new(runtime, 1 + (int32_t)sim_choose(2), wait_ms, &permits,
                        NULL) == 0) {
        if (shared.permits == NULL) {
            shared.runtime = runtime;
            shared.permits = permits;
        } else {
            uva_permits_release(permits);
        }
    }
    if (shared.permits == NULL || shared.runtime != runtime)
        return NULL;
    shared.users++;
    peer->has_permits = true;
    peer->expectation->excuses |= EXCUSE_TIMEOUT;
    expectation_note("chain %d: its source takes permits",
                     peer->expectation->number);
    (void)uva_permits_resize(shared.permits, 1 + shared.users % 3);
    return wait_ms % 2 == 0 ? session_get(peer, wait_ms) : shared.permits;
}

static void permits_put(const struct blocking_peer *peer)
{
    struct uva_permits *permits = shared.permits, *session = shared.session;

    shared.users--;
    shared.inside -= peer->in_session;
    if (peer->in_session && shared.inside == 0) {
        shared.session = NULL;
        uva_permits_release(session);
    }
    if (shared.users > 0)
        return;
    shared.permits = NULL;
    uva_permits_release(permits);
}

static void peer_enter(struct blocking_peer *peer, const char *what)
{
    expectation_note("source: %s, batch %lld", what, (long long)peer->next);
    peer->was_called = true;
    if (peer->inside++ != 0)
        sim_fail("two calls of a blocking source at once (DS-16)");
    if (peer->released)
        sim_fail("a blocking source is used after its release (DS-06)");
    hosts_count_call(peer->runtime, 1);
    if (!peer->on_loop)
        peers_dawdle();
}

static int peer_leave(struct blocking_peer *peer, int code)
{
    peer->inside--;
    hosts_count_call(peer->runtime, -1);
    return code;
}

static bool peer_may_go_on(void *arg)
{
    const struct blocking_peer *peer = arg;

    return peer->interrupted || peers_are_unblocked();
}

/* Returns false if it was interrupted. */
static bool peer_wait(struct blocking_peer *peer, int64_t at)
{
    if (peer->stuck_at != at)
        return true;
    sim_wait(peer_may_go_on, peer);
    return !peer->interrupted;
}

/* ---- the stream --------------------------------------------------------- */

static int peer_schema(struct blocking_peer *peer, struct ArrowSchema *out)
{
    peer_enter(peer, "get_schema");
    batches_schema(out);
    return peer_leave(peer, 0);
}

/* Returns 0 with an ordinal, or -1 at the end; or an error code. */
static int peer_next(struct blocking_peer *peer, int64_t *ordinal)
{
    const struct expectation *expectation = peer->expectation;

    peer_enter(peer, "get_next");
    *ordinal = -1;
    if (!peer_wait(peer, peer->next))
        return peer_leave(peer, ECANCELED);
    if (peer->next >= expectation->fails_at)
        return peer_leave(peer, expectation->fail_code);
    if (peer->next < expectation->total)
        *ordinal = peer->next++;
    return peer_leave(peer, 0);
}

static const char *peer_error(struct blocking_peer *peer)
{
    if (peer->released)
        sim_fail("get_last_error after release (DS-06)");
    return peer->mute ? NULL : "the disk is on fire";
}

static void peer_release(struct blocking_peer *peer)
{
    expectation_note("source: release");
    if (peer->released)
        sim_fail("a blocking source is released twice (DS-14)");
    if (peer->inside != 0)
        sim_fail("a blocking source is released inside a call (DS-16)");
    if (peer->interrupting != 0)
        sim_fail("a blocking source is released during an interrupt");
    peer->released = true;
    sim_point();
    if (peer->interrupting != 0)
        sim_fail("a blocking source is interrupted during its release");
}

static int plain_schema(struct ArrowArrayStream *stream,
                        struct ArrowSchema *out)
{
    return peer_schema(stream->private_data, out);
}

static int plain_next(struct ArrowArrayStream *stream, struct ArrowArray *out)
{
    int64_t ordinal;
    int code = peer_next(stream->private_data, &ordinal);

    if (code != 0)
        return code;
    out->release = NULL;
    if (ordinal >= 0)
        batches_batch(ordinal, 0, out);
    return 0;
}

static const char *plain_error(struct ArrowArrayStream *stream)
{
    return peer_error(stream->private_data);
}

static void plain_release(struct ArrowArrayStream *stream)
{
    peer_release(stream->private_data);
    stream->release = NULL;
}

static int device_schema(struct ArrowDeviceArrayStream *stream,
                         struct ArrowSchema *out)
{
    return peer_schema(stream->private_data, out);
}

static int device_next(struct ArrowDeviceArrayStream *stream,
                       struct ArrowDeviceArray *out)
{
    struct blocking_peer *peer = stream->private_data;
    int64_t ordinal;
    int code = peer_next(peer, &ordinal);

    if (code != 0)
        return code;
    out->array.release = NULL;
    if (ordinal >= 0)
        device_batch(peer->expectation, peer->expectation->device, ordinal, 0,
                     out);
    return 0;
}

static const char *device_error(struct ArrowDeviceArrayStream *stream)
{
    return peer_error(stream->private_data);
}

static void device_release(struct ArrowDeviceArrayStream *stream)
{
    peer_release(stream->private_data);
    stream->release = NULL;
}

static void plain_make(struct blocking_peer *peer, struct ArrowArrayStream *out)
{
    peer->is_open = true;
    *out = (struct ArrowArrayStream){plain_schema, plain_next, plain_error,
                                     plain_release, peer};
}

static void device_make(struct blocking_peer *peer,
                        struct ArrowDeviceArrayStream *out)
{
    peer->is_open = true;
    *out = (struct ArrowDeviceArrayStream){peer->device_type, device_schema,
                                           device_next,       device_error,
                                           device_release,    peer};
}

/* ---- its hooks ---------------------------------------------------------- */

static void peer_needed(void *ctx)
{
    struct blocking_peer *peer = ctx;

    if (peer->was_called || peer->released)
        sim_fail("a source is told too late, or twice, that it is needed");
    peer->was_called = true;
}

static int peer_open(struct blocking_peer *peer)
{
    peer_enter(peer, "open");
    if (!peer_wait(peer, -1))
        return peer_leave(peer, ECANCELED);
    if (peer->expectation->fails_at == 0 && peers_chance(1, 2))
        return peer_leave(peer, peer->expectation->fail_code);
    return peer_leave(peer, 0);
}

static int open_plain(void *ctx, struct ArrowArrayStream *out,
                      struct uva_error *error)
{
    int code = peer_open(ctx);

    (void)error;
    if (code == 0)
        plain_make(ctx, out);
    return code;
}

static int open_device(void *ctx, struct ArrowDeviceArrayStream *out,
                       struct uva_error *error)
{
    int code = peer_open(ctx);

    if (code != 0)
        return uva_error_set(error, code, "no such table");
    device_make(ctx, out);
    return 0;
}

static void peer_interrupt(void *ctx)
{
    struct blocking_peer *peer = ctx;

    expectation_note("source: interrupt");
    if (peer->interrupting++ != 0)
        sim_fail("two interrupts at once");
    if (peer->released)
        sim_fail("an interrupt after the release");
    peers_dawdle();
    if (!peer->deaf)
        peer->interrupted = true;
    sim_point();
    if (peer->released)
        sim_fail("a release during an interrupt");
    peer->interrupting--;
}

static void peer_free(void *ctx)
{
    struct blocking_peer *peer = ctx;

    expectation_note("source: free_ctx");
    if (peer->is_open && !peer->released)
        sim_fail("free_ctx of a source before its release");
    if (peer->inside != 0 || peer->interrupting != 0)
        sim_fail("free_ctx of a source inside a call of it");
    if (peer->has_permits)
        permits_put(peer);
    arena_free(peer);
}

/* ---- making one --------------------------------------------------------- */

static void peer_get_stuck(struct blocking_peer *peer)
{
    struct expectation *expectation = peer->expectation;

    peer->stuck_at = INT64_MAX;
    if (peer->on_loop || !peers_chance(1, 8))
        return;
    peer->stuck_at = (int64_t)sim_choose((uint64_t)expectation->total + 2) - 1;
    peer->deaf = peers_chance(1, 4);
    expectation->stalls = true;
    expectation_note("chain %d: stuck at %lld%s", expectation->number,
                     (long long)peer->stuck_at, peer->deaf ? ", and deaf" : "");
}

/* By the drawn values: other schedules stay as they were. */
static struct uva_permits *permits_draw(struct uva_runtime *runtime,
                                        struct blocking_peer *peer,
                                        int32_t window, bool may_wait)
{
    if ((window + peer->expectation->total) % 4 == 1)
        return permits_get(runtime, peer);
    return may_wait && peer->stuck_at == INT64_MAX ? hosts_permits(runtime)
                                                   : NULL;
}

/* With `may_wait` no close begins meanwhile, so that there are permits. */
static struct uva_stream *blocking_make(struct uva_runtime *runtime,
                                        struct expectation *expectation,
                                        bool may_wait)
{
    struct blocking_peer *peer = arena_new(sizeof(*peer), "a blocking source");
    struct uva_arrow_source options = {.ctx = peer,
                                       .free_ctx = peer_free,
                                       .needed = peer_needed,
                                       .window = peers_window(),
                                       .on_loop = peers_chance(1, 10)};
    const bool opens = peers_chance(1, 3);
    const bool plain = !expectation->device && peers_chance(1, 2);
    struct ArrowDeviceArrayStream device;
    struct ArrowArrayStream cpu;

    peer->expectation = expectation;
    peer->runtime = runtime;
    peer->device_type = options.device_type = device_type(expectation);
    peer->on_loop = options.on_loop;
    peer->mute = peers_chance(1, 3);
    peer_get_stuck(peer);
    if (peers_chance(2, 3))
        options.interrupt = peer_interrupt;
    options.permits =
        permits_draw(runtime, peer, options.window.batches, may_wait);
    expectation_note(
        "chain %d: a blocking source, %s%s%s, window %d", expectation->number,
        plain ? "plain" : "device", opens ? ", opened later" : "",
        options.on_loop ? ", on the loop" : "", options.window.batches);
    options.open = opens && plain ? open_plain : NULL;
    options.open_device = opens && !plain ? open_device : NULL;
    if (opens)
        return plain ? uva_stream_from_arrow_stream(runtime, NULL, &options)
                     : uva_stream_from_device_stream(runtime, NULL, &options);
    if (plain) {
        plain_make(peer, &cpu);
        return uva_stream_from_arrow_stream(runtime, &cpu, &options);
    }
    device_make(peer, &device);
    monitor_blocking(&device);
    return uva_stream_from_device_stream(runtime, &device, &options);
}

struct uva_stream *blocking_peer_stream(struct uva_runtime *runtime,
                                        struct expectation *expectation)
{
    const bool may_wait = hosts_enter(runtime);
    struct uva_stream *stream = blocking_make(runtime, expectation, may_wait);

    if (may_wait)
        hosts_leave(runtime);
    return stream;
}
