/* SPDX-License-Identifier: Apache-2.0 */
/* A consumer that takes batches: in the function that says that some wait, or
 * later, and not always all that wait. It sometimes asks again after the end,
 * or leaves before it. */
#include <errno.h>
#include <stdint.h>

#include "sim/arena.h"
#include "sim/batches.h"
#include "sim/device_stages.h"
#include "sim/engine.h"
#include "sim/hosts.h"
#include "sim/parts_stage.h"
#include "sim/peers.h"
#include "uvarrow/arrow.h"

struct taking_peer {
    struct uva_stream *stream; /* holds a reference */
    struct expectation *expectation;
    bool dawdles;       /* takes later, or only some, now and then */
    bool waits;         /* the function has to be called */
    int loop;           /* the fiber of the first take, or -1 */
    int64_t leaves_at;  /* leaves after so many batches */
    int64_t batches;    /* taken */
    int questions_left; /* to ask after the end */
};

static void peer_free(struct taking_peer *peer)
{
    struct uva_stream *stream = peer->stream;

    arena_free(peer);
    uva_stream_release(stream);
}

/* No call of its function begins after this, and others may wait for its
 * source. */
static void peer_leave(struct taking_peer *peer)
{
    struct uva_stream *stream = peer->stream;

    peer->expectation->over = true;
    arena_free(peer);
    if (hosts_limit_sources(NULL) || peers_chance(1, 2))
        uva_stream_drop(stream);
    else
        uva_stream_release(stream);
}

static void peer_end(struct taking_peer *peer,
                     const struct uva_outcome *outcome)
{
    const enum uva_end end = outcome->end;
    const int code = outcome->error.code;

    expectation_end(peer->expectation, end, code);
    while (peer->questions_left-- > 0) {
        struct uva_outcome again;
        struct uva_batch batch;

        if (uva_stream_take(peer->stream, &batch, &again) != ENOENT)
            sim_fail("a batch after the end");
        if (again.end != end || again.error.code != code)
            sim_fail("the outcome has changed");
    }
    peer_free(peer);
}

static void batch_take(struct taking_peer *peer, struct uva_batch *batch)
{
    expectation_take(peer->expectation, &batch->data);
    peer->batches++;
    if (peers_chance(1, 2))
        sim_point();
    if (peer->expectation->encoded)
        parts_take(&batch->data);
    else if (!device_take(peer->expectation, &batch->data))
        uva_array_release(&batch->data);
}

static void peer_take_posted(void *arg);

/* Returns whether the peer takes the rest later. */
static bool peer_dawdles(struct taking_peer *peer)
{
    struct uva_runtime *runtime = uva_stream_get_runtime(peer->stream);

    return peer->dawdles && peers_chance(1, 3) &&
           uva_runtime_post(runtime, peer_take_posted, peer) == 0;
}

/* The peer may be gone when this returns. */
static void peer_take(struct taking_peer *peer)
{
    struct uva_outcome outcome;
    struct uva_batch batch;
    int code;

    if (peer->loop < 0)
        peer->loop = sim_self();
    if (peer->loop != sim_self())
        sim_fail("a call on another thread");
    while ((code = uva_stream_take(peer->stream, &batch, &outcome)) == 0) {
        batch_take(peer, &batch);
        if (peer->batches >= peer->leaves_at) {
            peer_leave(peer);
            return;
        }
        if (peer_dawdles(peer))
            return;
    }
    if (code == ENOENT)
        peer_end(peer, &outcome);
    else if (code == EAGAIN)
        peer->waits = true;
    else
        sim_fail("take: %s", uva_error_name(code));
}

static void peer_take_posted(void *arg)
{
    peer_take(arg);
}

static void peer_notified(void *arg)
{
    struct taking_peer *peer = arg;

    expectation_note("taker: called");
    if (!peer->waits)
        sim_fail("a call for no EAGAIN");
    peer->waits = false;
    sim_point();
    if (!peer_dawdles(peer))
        peer_take(peer);
}

/* The first question, which only the loop may ask. False: the runtime closes,
 * or there is no memory. Afterwards the peer may be gone. */
static bool peer_begins(struct taking_peer *peer)
{
    struct uva_runtime *runtime = peer->expectation->runtime;
    int code;

    if (!hosts_enter(runtime))
        return false;
    code = uva_runtime_post(runtime, peer_take_posted, peer);
    hosts_leave(runtime);
    return code == 0;
}

int taking_peer_start(struct uva_stream *stream,
                      struct expectation *expectation)
{
    struct taking_peer *peer = arena_new(sizeof(*peer), "a taker");
    const struct uva_window window = peers_window();
    int code;

    *peer = (struct taking_peer){.stream = stream,
                                 .expectation = expectation,
                                 .dawdles = peers_chance(1, 2),
                                 .loop = -1,
                                 .questions_left = (int)sim_choose(3),
                                 .leaves_at = INT64_MAX};
    if (peers_chance(1, 6))
        peer->leaves_at =
            1 + (int64_t)sim_choose((uint64_t)expectation->total + 1);
    expectation_note("chain %d: a consumer that takes", expectation->number);
    code = uva_stream_start_take(stream, &window, peer_notified, peer, NULL);
    if (code != 0) {
        arena_free(peer);
        return code;
    }
    if (!peer_begins(peer)) { /* without a question, no function is called */
        expectation->over = true;
        peer_free(peer);
    }
    return 0;
}
