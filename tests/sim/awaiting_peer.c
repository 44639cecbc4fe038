/* SPDX-License-Identifier: Apache-2.0 */
/* A consumer that requests one batch at a time, from the previous callback or
 * from its own fiber, and sometimes once more after the end. */
#include <errno.h>
#include <stdint.h>

#include "sim/arena.h"
#include "sim/batches.h"
#include "sim/device_stages.h"
#include "sim/engine.h"
#include "sim/hosts.h"
#include "sim/peers.h"
#include "uvarrow/arrow.h"

struct awaiting_peer {
    struct uva_stream *stream; /* holds a reference */
    struct expectation *expectation;
    bool by_fiber;      /* requests from its own fiber */
    bool waiting;       /* a request is outstanding */
    bool ended;         /* an outcome was received */
    int requests_after; /* requests to make after the end */
    int64_t leaves_at;  /* drops the stream after so many batches */
    int64_t batches;
    enum uva_end end; /* the outcome, which must not change */
    int code;
};

static void peer_free(struct awaiting_peer *peer)
{
    struct uva_stream *stream = peer->stream;

    arena_free(peer);
    uva_stream_release(stream);
}

static bool peer_request_next(struct awaiting_peer *peer);

/* Once the stream is dropped, outstanding requests must end with CANCELLED. */
static void peer_note_end(struct awaiting_peer *peer,
                          const struct uva_outcome *outcome)
{
    if (peer->ended &&
        (peer->end != outcome->end || peer->code != outcome->error.code))
        sim_fail("the outcome has changed");
    if (!peer->ended)
        expectation_end(peer->expectation, outcome->end, outcome->error.code);
    peer->ended = true;
    peer->end = outcome->end;
    peer->code = outcome->error.code;
}

static bool peer_wants_more(struct awaiting_peer *peer)
{
    if (peer->ended)
        return peer->requests_after-- > 0;
    if (peer->batches < peer->leaves_at)
        return true;
    peer->expectation->over = true; /* no further callback will follow */
    if (hosts_limit_sources(NULL))  /* others may wait for its source */
        uva_stream_cancel(peer->stream, 0, NULL);
    return false;
}

static void answered(void *ctx, struct uva_batch *batch,
                     const struct uva_outcome *outcome)
{
    struct awaiting_peer *peer = ctx;

    if (!peer->waiting)
        sim_fail("an answer that was not requested");
    if ((batch == NULL) == (outcome == NULL))
        sim_fail("neither a batch nor an outcome, or both");
    sim_point();
    if (outcome != NULL) {
        peer_note_end(peer, outcome);
    } else {
        expectation_take(peer->expectation, &batch->data);
        peer->batches++;
        if (!device_take(peer->expectation, &batch->data) && peers_chance(1, 2))
            uva_array_release(&batch->data);
    }
    expectation_note("awaiter: answered");
    peer->waiting = false; /* lets the waiting fiber run */
    if (peer->by_fiber)
        return;
    if (!peer_wants_more(peer) || !peer_request_next(peer))
        peer_free(peer);
}

/* Returns false once the runtime closes. That may be as soon as the end was
 * reported, or before it if another peer closes early. */
static bool peer_request_next(struct awaiting_peer *peer)
{
    int code;

    peer->waiting = true;
    code = uva_stream_next(peer->stream, answered, peer, NULL);
    if (code != 0 &&
        !(code == ESHUTDOWN &&
          (peer->ended || (peer->expectation->excuses & EXCUSE_CLOSE) != 0)))
        sim_fail("next: %s", uva_error_name(code));
    if (code != 0)
        peer->expectation->over = true;
    return code == 0;
}

static bool peer_is_answered(void *arg)
{
    return !((const struct awaiting_peer *)arg)->waiting;
}

static void requester(void *arg)
{
    struct awaiting_peer *peer = arg;

    sim_wait(peer_is_answered, peer);
    while (peer_wants_more(peer)) {
        peers_dawdle();
        if (!peer_request_next(peer))
            break;
        sim_wait(peer_is_answered, peer);
    }
    peer_free(peer);
}

int awaiting_peer_start(struct uva_stream *stream,
                        struct expectation *expectation)
{
    struct awaiting_peer *peer = arena_new(sizeof(*peer), "an awaiter");
    const bool by_fiber = !peers_are_alone() && peers_chance(1, 2);
    int code;

    *peer = (struct awaiting_peer){.stream = stream,
                                   .expectation = expectation,
                                   .by_fiber = by_fiber,
                                   .waiting = true,
                                   .requests_after = (int)sim_choose(3),
                                   .leaves_at = INT64_MAX};
    if (peers_chance(1, 6))
        peer->leaves_at =
            1 + (int64_t)sim_choose((uint64_t)expectation->total + 1);
    expectation_note("chain %d: a consumer that awaits%s", expectation->number,
                     by_fiber ? ", on a fiber" : "");
    code = uva_stream_next(stream, answered, peer, NULL);
    if (code != 0) {
        arena_free(peer);
        return code;
    }
    if (by_fiber) /* otherwise it may be freed by now */
        peers_spawn("asker", requester, peer);
    return 0;
}
