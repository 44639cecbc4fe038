/* SPDX-License-Identifier: Apache-2.0 */
/* A consumer with three callbacks: takes batches or leaves them, pauses and is
 * resumed elsewhere, refuses a batch, stops early, cancels or drops the stream
 * inside a callback. It checks that all callbacks run on the loop, one at a
 * time, never inside its own call, during a pause, or after the end. */
#include <errno.h>
#include <stdint.h>

#include "sim/arena.h"
#include "sim/batches.h"
#include "sim/device_stages.h"
#include "sim/engine.h"
#include "sim/parts_stage.h"
#include "sim/peers.h"
#include "uvarrow/arrow.h"

struct callback_peer {
    struct uva_stream *stream; /* holds a reference; NULL once released */
    struct expectation *expectation;
    int64_t stop_at;     /* the batch at which it stops */
    int stop;            /* the result of on_batch there; 0: as usual */
    bool cancels, drops; /* its act there instead */
    bool pauses;         /* pauses now and then, by EAGAIN or by a call */
    bool stubborn;       /* must be resumed after a pause */
    bool early;          /* pauses before the start */
    bool fickle;         /* another fiber pauses it, and resumes it */
    int64_t hold_at;     /* the batch after which it pauses while the next one
                            is requested; INT64_MAX: it does not */
    int loop;            /* the fiber of the first callback, or -1 */
    bool inside;         /* a callback is running */
    bool calling;        /* a call of the library is in progress */
    bool off;            /* it has paused, and no resume has begun since */
    int resumers;        /* fibers that will resume the stream, or functions
                            that will pause it */
    int resumes;         /* calls that resume it */
    int resuming;        /* such calls in progress */
    int64_t batches;     /* batches received */
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

static void peer_resume_now(struct callback_peer *peer)
{
    expectation_note("consumer: is resumed");
    peer->off = false;
    peer->resumes++;
    peer->resuming++;
    uva_stream_resume(peer->stream);
    peer->resuming--;
}

/* Runs on its own fiber. */
static void peer_resume(void *arg)
{
    struct callback_peer *peer = arg;

    if (peer->stubborn || peer->expectation->held)
        sim_wait(peer_is_pressed, peer);
    peers_dawdle();
    peer->expectation->held = false;
    if (peer->stream != NULL)
        peer_resume_now(peer);
    peer->resumers--;
    peer_free(peer);
}

/* A peer that drops releases the stream, so it must not have fibers that
 * resume. */
static void peer_spawn_resumer(struct callback_peer *peer)
{
    peer->resumers++;
    peers_spawn("resumer", peer_resume, peer);
    if (peers_chance(1, 2))
        sim_point();
}

/* Pauses while a batch is requested, on the loop. If it comes, it waits; if the
 * end comes instead, that is reported. */
static void peer_hold(void *arg)
{
    struct callback_peer *peer = arg;

    peer->resumers--;
    if (!peer->done) {
        expectation_note("consumer: pauses outside of its callbacks");
        uva_stream_pause(peer->stream);
        peer->off = true;
        peer->expectation->held = peers_chance(1, 2);
        peer_spawn_resumer(peer);
    }
    peer_free(peer);
}

static void peer_hold_soon(struct callback_peer *peer)
{
    struct uva_runtime *runtime = uva_stream_get_runtime(peer->stream);

    peer->resumers++;
    if (uva_runtime_post(runtime, peer_hold, peer) != 0)
        peer->resumers--;
}

/* Pauses it from outside, sometimes when it is paused, or has ended. Each pause
 * is followed by a resume. */
static void peer_waver(void *arg)
{
    struct callback_peer *peer = arg;

    for (uint64_t n = 1 + sim_choose(3); n > 0 && peer->stream != NULL; n--) {
        peers_dawdle();
        expectation_note("consumer: is paused");
        uva_stream_pause(peer->stream);
        peers_dawdle();
        peer_resume_now(peer);
    }
    peer->resumers--;
    peer_free(peer);
}

/* Pauses in a callback: by a call, or by the code that on_batch returns. If no
 * resume comes in between, no batch may follow. */
static int peer_pause(struct callback_peer *peer, bool calls)
{
    const int resumes = peer->resumes;
    const bool calm = peer->resuming == 0;

    expectation_note("consumer: pauses by %s", calls ? "a call" : "EAGAIN");
    if (calls)
        uva_stream_pause(peer->stream);
    if (peers_chance(1, 3))
        peer_resume_now(peer);
    else
        peer_spawn_resumer(peer);
    peer->off = calm && peer->resumes == resumes;
    return calls ? 0 : EAGAIN;
}

/* ---- callbacks ---------------------------------------------------------- */

static int on_schema(void *ctx, const struct uva_stream_info *info)
{
    struct callback_peer *peer = ctx;

    peer_enter(peer, "on_schema");
    expectation_see_schema(peer->expectation, info->schema);
    if (peer->batches != 0)
        sim_fail("a schema after a batch");
    if (peer->hold_at == 0)
        peer_hold_soon(peer);
    if (peer->stop_at < 0 && peer->stop != 0)
        return peer_leave(peer, peer->stop);
    if (peer->pauses && peers_chance(1, 4))
        (void)peer_pause(peer, true);
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

    if (peer->expectation->encoded && peers_chance(1, 2)) {
        parts_take(&batch->data);
        return;
    }
    if (device_take(peer->expectation, &batch->data) || peers_chance(1, 2))
        return; /* the library releases it */
    uva_array_move(&batch->data, &mine);
    sim_point();
    uva_array_release(&mine);
}

static int on_batch(void *ctx, struct uva_batch *batch)
{
    struct callback_peer *peer = ctx;
    bool stops;
    int code = 0;

    peer_enter(peer, "on_batch");
    if (peer->off)
        sim_fail("a batch during a pause");
    stops = peer->batches == peer->stop_at;
    expectation_take(peer->expectation, &batch->data);
    batch_take(peer, batch);
    if (++peer->batches == peer->hold_at)
        peer_hold_soon(peer);
    if (peer->pauses && !stops && peers_chance(1, 4))
        return peer_leave(peer, peer_pause(peer, peers_chance(1, 3)));
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

    peer->stop_at = peer->hold_at = INT64_MAX;
    peer->loop = -1;
    peer->pauses = peers_chance(1, 3);
    if (!peer->pauses && peers_chance(1, 6))
        peer->hold_at = (int64_t)sim_choose((uint64_t)expectation->total + 1);
    peer->stubborn = peer->pauses && peers_chance(1, 8);
    peer->early = peer->pauses && peers_chance(1, 6);
    peer->fickle = peer->pauses && !peer->stubborn && peers_chance(1, 6);
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

/* The fibers count before the start, as the peer may be over after it. */
static void peer_begin_pauses(struct callback_peer *peer)
{
    peer->resumers += peer->early + peer->fickle;
    if (!peer->early)
        return;
    expectation_note("consumer: pauses before the start");
    uva_stream_pause(peer->stream);
    peer->off = true;
}

static void peer_go_on_pausing(struct callback_peer *peer, bool early,
                               bool fickle)
{
    if (early)
        peers_spawn("resumer", peer_resume, peer);
    if (fickle)
        peers_spawn("fickle fiber", peer_waver, peer);
}

int callback_peer_start(struct uva_stream *stream,
                        struct expectation *expectation)
{
    struct callback_peer *peer = arena_new(sizeof(*peer), "a consumer");
    struct uva_consumer consumer = {
        .on_batch = on_batch, .on_done = on_done, .ctx = peer};
    bool early, fickle;
    int code;

    peer->stream = uva_stream_acquire(stream);
    peer->expectation = expectation;
    peer_draw(peer);
    if (peer->stop_at < 0 || peer->hold_at == 0 || peers_chance(2, 3))
        consumer.on_schema = on_schema;
    expectation->drop_ctx = peer;
    expectation->drop = peer_drop_posted;
    peer_begin_pauses(peer);
    early = peer->early, fickle = peer->fickle;
    code = uva_stream_for_each(stream, &consumer, NULL);
    if (code == 0) {
        uva_stream_release(stream);
        peer_go_on_pausing(peer, early, fickle);
        return 0;
    }
    peer->resumers = 0;
    peer->done = true;
    peer_free(peer);
    return code;
}
