/* SPDX-License-Identifier: Apache-2.0 */
/* A consumer with three callbacks: takes batches or leaves them, pauses and is
 * resumed elsewhere, refuses a batch, stops early, cancels or drops the stream
 * inside a callback. It checks that all callbacks run on the loop, one at a
 * time, never inside its own call or after the end. */
#include <errno.h>
#include <stdint.h>

#include "sim/arena.h"
#include "sim/batches.h"
#include "sim/device_stages.h"
#include "sim/engine.h"
#include "sim/peers.h"
#include "uvarrow/arrow.h"

struct callback_peer {
    struct uva_stream *stream; /* holds a reference; NULL once released */
    struct expectation *expectation;
    int64_t stop_at;     /* the batch at which it stops */
    int stop;            /* the result of on_batch there; 0: as usual */
    bool cancels, drops; /* its act there instead */
    bool pauses;         /* pauses now and then */
    bool stubborn;       /* must be resumed after a pause */
    int loop;            /* the fiber of the first callback, or -1 */
    bool inside;         /* a callback is running */
    bool calling;        /* a call of the library is in progress */
    bool paused;         /* an on_batch has returned EAGAIN */
    bool fickle;         /* the batch of the pause was not taken */
    int resumers;        /* fibers that will resume the stream */
    int64_t batches;     /* batches received, repeated ones not counted */
    bool done;           /* on_done was called, or the stream dropped */
};

static void peer_enter(struct callback_peer *peer, const char *what)
{
    expectation_note("consumer: %s", what);
    if (peer->done)
        sim_fail("%s after the end", what);
    if (peer->inside)
        sim_fail("%s inside another callback", what);
    if (peer->calling && peer->loop == sim_self())
        sim_fail("%s inside a call of the library", what);
    if (peer->loop < 0)
        peer->loop = sim_self();
    if (peer->loop != sim_self())
        sim_fail("%s on another thread", what);
    peer->inside = true;
    sim_point();
}

static int peer_leave(struct callback_peer *peer, int code)
{
    peer->inside = false;
    return code;
}

static void peer_free(struct callback_peer *peer)
{
    if (peer->done)
        peer->expectation->drop = NULL;
    if (!peer->done || peer->resumers > 0)
        return;
    if (peer->stream != NULL)
        uva_stream_release(peer->stream);
    arena_free(peer);
}

/* ---- pausing ------------------------------------------------------------ */

static bool peer_is_pressed(void *arg)
{
    return ((const struct callback_peer *)arg)->done || peers_are_unblocked();
}

/* Runs on its own fiber. */
static void peer_resume(void *arg)
{
    struct callback_peer *peer = arg;

    if (peer->stubborn)
        sim_wait(peer_is_pressed, peer);
    peers_dawdle();
    if (peer->stream != NULL)
        uva_stream_resume(peer->stream);
    peer->resumers--;
    peer_free(peer);
}

/* A peer that drops releases the stream, so it must not have fibers that
 * resume. */
static int peer_pause(struct callback_peer *peer)
{
    peer->paused = true;
    if (peers_chance(1, 3)) {
        uva_stream_resume(peer->stream);
        return EAGAIN;
    }
    peer->resumers++;
    peers_spawn("resumer", peer_resume, peer);
    if (peers_chance(1, 2))
        sim_point();
    return EAGAIN;
}

/* ---- callbacks ---------------------------------------------------------- */

static int on_schema(void *ctx, const struct uva_stream_info *info)
{
    struct callback_peer *peer = ctx;

    peer_enter(peer, "on_schema");
    expectation_see_schema(peer->expectation, info->schema);
    if (peer->batches != 0)
        sim_fail("a schema after a batch");
    if (peer->stop_at < 0 && peer->stop != 0)
        return peer_leave(peer, peer->stop);
    return peer_leave(peer, 0);
}

/* Drops the stream, which ends all callbacks. */
static void peer_drop(struct callback_peer *peer)
{
    struct uva_stream *stream = peer->stream;

    expectation_note("consumer: drops the stream");
    peer->expectation->over = true;
    peer->done = true;
    peer->stream = NULL;
    uva_stream_drop(stream);
}

/* Runs on the loop, outside of the consumer's callbacks. */
static void peer_drop_posted(void *ctx)
{
    struct callback_peer *peer = ctx;

    if (peer->done || peer->resumers > 0 || peer->inside)
        return;
    peer_drop(peer);
    peer_free(peer);
}

/* Stops in the middle of a callback. */
static int peer_stop(struct callback_peer *peer)
{
    peer->calling = true;
    if (peer->cancels)
        uva_stream_cancel(peer->stream, 0, "enough");
    if (peer->drops && peer->resumers == 0)
        peer_drop(peer);
    peer->calling = false;
    return peer->stop;
}

static void batch_take(const struct callback_peer *peer,
                       struct uva_batch *batch)
{
    struct ArrowDeviceArray mine;

    if (device_take(peer->expectation, &batch->data) || peers_chance(1, 2))
        return; /* the library releases it */
    uva_array_move(&batch->data, &mine);
    sim_point();
    uva_array_release(&mine);
}

/* A batch that was not taken during a pause is delivered again. */
static bool batch_is_again(struct callback_peer *peer,
                           const struct uva_batch *batch)
{
    if (!peer->fickle)
        return false;
    peer->fickle = false;
    if (!uva_array_is_live(&batch->data))
        sim_fail("no batch");
    return true;
}

static int on_batch(void *ctx, struct uva_batch *batch)
{
    struct callback_peer *peer = ctx;
    const bool again = batch_is_again(peer, batch);
    bool stops;
    int code = 0;

    peer_enter(peer, "on_batch");
    stops = peer->batches == peer->stop_at;
    if (!again)
        expectation_take(peer->expectation, &batch->data);
    peer->batches += !again;
    if (peer->pauses && peers_chance(1, 4)) {
        peer->fickle = peers_chance(1, 2);
        if (!peer->fickle)
            uva_array_release(&batch->data);
        return peer_leave(peer, peer_pause(peer));
    }
    batch_take(peer, batch);
    if (stops)
        code = peer_stop(peer);
    peer_leave(peer, 0);
    if (peer->done)
        peer_free(peer);
    return code;
}

static void on_done(void *ctx, const struct uva_outcome *outcome)
{
    struct callback_peer *peer = ctx;

    peer_enter(peer, "on_done");
    if (outcome->batches != peer->batches && outcome->end == UVA_END_COMPLETE)
        sim_fail("an outcome counts %lld batches, and %lld came",
                 (long long)outcome->batches, (long long)peer->batches);
    expectation_end(peer->expectation, outcome->end, outcome->error.code);
    peer->done = true;
    peer_leave(peer, 0);
    peer_free(peer);
}

/* ---- starting ----------------------------------------------------------- */

static void peer_draw(struct callback_peer *peer)
{
    struct expectation *expectation = peer->expectation;

    peer->stop_at = INT64_MAX;
    peer->loop = -1;
    peer->pauses = peers_chance(1, 3);
    peer->stubborn = peer->pauses && peers_chance(1, 8);
    expectation->stalls = expectation->stalls || peer->stubborn;
    if (!peers_chance(1, 4))
        return;
    peer->stop_at = (int64_t)sim_choose((uint64_t)expectation->total + 1) - 1;
    switch (sim_choose(peer->stop_at < 0 ? 2 : 4)) {
    case 0:
        peer->stop = EDOM;
        expectation->excuses |= EXCUSE_REJECT;
        break;
    case 1:
        peer->stop = ECANCELED;
        expectation->excuses |= EXCUSE_CANCEL;
        break;
    case 2:
        peer->cancels = true;
        expectation->excuses |= EXCUSE_CANCEL;
        break;
    default:
        peer->drops = true;
    }
    expectation_note("chain %d: at batch %lld the consumer stops: %s",
                     expectation->number, (long long)peer->stop_at,
                     peer->drops     ? "drop"
                     : peer->cancels ? "cancel"
                                     : "code");
}

int callback_peer_start(struct uva_stream *stream,
                        struct expectation *expectation)
{
    struct callback_peer *peer = arena_new(sizeof(*peer), "a consumer");
    struct uva_consumer consumer = {
        .on_batch = on_batch, .on_done = on_done, .ctx = peer};
    int code;

    peer->stream = uva_stream_acquire(stream);
    peer->expectation = expectation;
    peer_draw(peer);
    if (peer->stop_at < 0 || peers_chance(2, 3))
        consumer.on_schema = on_schema;
    expectation->drop_ctx = peer;
    expectation->drop = peer_drop_posted;
    code = uva_stream_for_each(stream, &consumer, NULL);
    if (code == 0) {
        uva_stream_release(stream);
        return 0;
    }
    peer->done = true;
    peer_free(peer);
    return code;
}
