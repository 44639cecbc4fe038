/* SPDX-License-Identifier: Apache-2.0 */
/* A foreign handler: requests one or many tasks, in callbacks and elsewhere;
 * extracts there, later or on other fibers; discards, refuses, cancels. It
 * checks its producer strictly: callbacks in the permitted order, one at a
 * time, never inside its own call, no more tasks than requested. Tasks that it
 * holds across the end, of any kind, are lost only to a close that may. */
#include <errno.h>
#include <stdint.h>
#include <string.h>

#include "sim/arena.h"
#include "sim/batches.h"
#include "sim/engine.h"
#include "sim/hosts.h"
#include "sim/monitor.h"
#include "sim/peers.h"
#include "uvarrow/arrow.h"

enum { HELD = EXPECTATION_BATCHES };

struct handler_peer {
    struct ArrowAsyncDeviceStreamHandler handler; /* first */
    struct expectation *expectation;
    int64_t requested, offered;
    int64_t one_go;  /* tasks requested at a time */
    int64_t stop_at; /* the task at which it refuses or cancels; -1: schema */
    bool refuses;    /* refuses there */
    bool drops;      /* has the stream dropped there; otherwise it cancels */
    bool keeps;      /* extracts later, on another fiber */
    bool discards;   /* discards some of them */
    bool has_schema, at_end, had_error, let_go, refused, cancelled;
    bool failed;       /* an extraction has failed */
    bool owes;         /* the close waits for its tasks: peer_settle() */
    bool failure_seen; /* and a callback has returned since */
    bool over;         /* no producer method may be called any more */
    int calls;         /* calls in flight on other fibers */
    int inside;        /* callbacks in progress */
    int extractor;     /* the fiber that extracts the kept tasks; or -1 */
    int64_t taken;     /* batches extracted here */
    int64_t missed;    /* tasks that gave no batch, as they were discarded, or
                          taken back */
    int extracting;    /* extractions in progress */
    bool complete;     /* on_done has reported that */
    bool emptied;      /* on_extracted has come */
    bool whole;        /* and reported that no batch was lost */
    struct ArrowAsyncTask held[HELD];
    int held_from, held_to;    /* a ring */
    struct uva_stream *stream; /* a reference, until on_done or the drop */
    bool dropped;              /* so release is the last call */
    int holds; /* references: the handler, the fiber, on_done, and on_extracted;
                  the drop in place of the last two */
};

static struct handler_peer *
peer_of(struct ArrowAsyncDeviceStreamHandler *handler)
{
    return (struct handler_peer *)(void *)handler;
}

static void peer_drop(struct handler_peer *peer)
{
    if (--peer->holds != 0)
        return;
    if (peer->complete && peer->whole && !peer->failed && !peer->discards)
        expectation_end_held(peer->expectation);
    arena_free(peer);
}

/* No on_done and no drop will come any more. */
static void peer_finish(struct handler_peer *peer, enum uva_end end, int code)
{
    peer->expectation->drop = NULL;
    expectation_end(peer->expectation, end, code);
    peer_drop(peer);
}

static void peer_enter(struct handler_peer *peer, const char *what)
{
    expectation_note("handler: %s", what);
    if (peer->inside++ != 0)
        sim_fail("two callbacks at once: %s (TH-01)", what);
    if (peer->let_go)
        sim_fail("%s after release (AH-22)", what);
    if (peer->extractor == sim_self())
        sim_fail("%s inside a call of the consumer's (AP-04, AT-23)", what);
    if ((peer->refused || peer->had_error) && strcmp(what, "release") != 0)
        sim_fail("%s, and only release may come (AH-16, AH-17)", what);
    sim_point();
}

static int peer_leave(struct handler_peer *peer, int code)
{
    peer->inside--;
    peer->failure_seen |= peer->failed;
    return code;
}

/* ---- its calls ---------------------------------------------------------- */

static void peer_request(struct handler_peer *peer)
{
    peer->requested += peer->one_go;
    peer->handler.producer->request(peer->handler.producer, peer->one_go);
}

static void peer_cancel(struct handler_peer *peer)
{
    peer->cancelled = true;
    peer->handler.producer->cancel(peer->handler.producer);
}

/* The slot of a task that a drop has revoked may be another task's. */
static bool code_is_known(const struct handler_peer *peer, int code)
{
    return code == EDOM || code == EIO || code == ENETRESET || code == ENOMEM ||
           code == ECANCELED || code == ECONNABORTED ||
           (code == EOVERFLOW && peer->expectation->overflows) ||
           (code == EINVAL && peer->dropped);
}

static void peer_extract(struct handler_peer *peer, struct ArrowAsyncTask *task)
{
    const bool late = peer->emptied;
    struct ArrowDeviceArray array;
    int code;

    peer->extracting++;
    if (peer->discards && peers_chance(1, 2)) {
        uva_task_discard(task);
        peer->extracting--;
        peer->missed++;
        peer->expectation->partial = true;
        return;
    }
    code = uva_task_extract(task, &array);
    peer->extracting--;
    if (code == 0) {
        if (late)
            sim_fail("a batch after the last extraction");
        peer->taken++;
        expectation_take(peer->expectation, &array);
        uva_array_release(&array);
        return;
    }
    if (!peer->expectation->foreign && !code_is_known(peer, code))
        sim_fail("a task gives %s", uva_error_name(code));
    peer->failed = true;
    peer->missed++;
    peer->expectation->partial = true;
}

/* A drop has revoked tasks, which may be extracted until the runtime is closed:
 * the close waits until the handler was released and all of them are spent. */
static void peer_settle(struct handler_peer *peer)
{
    if (!peer->owes || !peer->let_go || peer->held_from != peer->held_to ||
        peer->extracting > 0)
        return;
    peer->owes = false;
    hosts_leave(peer->expectation->runtime);
}

static void peer_spend(struct handler_peer *peer, struct ArrowAsyncTask *task)
{
    peer_extract(peer, task);
    peer_settle(peer);
}

/* The owner wants no more, and no on_done: the stream ends with the release. */
static void peer_drop_stream(void *ctx)
{
    struct handler_peer *peer = ctx;
    const bool released = peer->let_go;

    if (!hosts_enter(peer->expectation->runtime)) {
        if (!peer->over) {
            peer->calls++;
            peer_cancel(peer);
            peer->calls--;
        }
        return;
    }
    peer->owes = true;
    expectation_note("the driven stream is dropped");
    peer->expectation->drop = NULL;
    peer->dropped = true; /* so a release on another fiber finishes it */
    uva_stream_drop(peer->stream);
    peer_settle(peer);
    if (released)
        peer_finish(peer, UVA_END_CANCELLED, ECANCELED);
    peer_drop(peer);
}

static void peer_drop_posted(void *ctx)
{
    struct handler_peer *peer = ctx;

    if (peer->expectation->drop != NULL)
        peer_drop_stream(peer);
    peer_drop(peer);
}

/* At the task where it stops. The owner drops a stream on the loop alone. */
static void peer_stop(struct handler_peer *peer)
{
    if (!peer->drops) {
        peer_cancel(peer);
        return;
    }
    peer->holds++;
    if (uva_runtime_post(peer->expectation->runtime, peer_drop_posted, peer) !=
        0)
        peer_drop(peer);
}

/* ---- on its own fiber --------------------------------------------------- */

static bool peer_holds_some(void *arg)
{
    const struct handler_peer *peer = arg;

    return peer->held_from != peer->held_to || peer->let_go;
}

static void extractor(void *arg)
{
    struct handler_peer *peer = arg;

    peer->extractor = sim_self();
    for (;;) {
        sim_wait(peer_holds_some, peer);
        peers_dawdle();
        if (peer->held_from == peer->held_to)
            break;
        peer_spend(peer, &peer->held[peer->held_from++ % HELD]);
        if (!peer->over && peer->requested < 1000 && peers_chance(1, 4)) {
            peer->calls++;
            peer_request(peer);
            peer->calls--;
        }
    }
    peer_drop(peer);
}

/* ---- its callbacks ------------------------------------------------------ */

static bool peer_is_calm(void *arg)
{
    return ((const struct handler_peer *)arg)->calls == 0;
}

/* Its calls must be over when a terminal callback returns (TH-10). */
static void peer_closed(struct handler_peer *peer)
{
    peer->over = true;
    sim_wait(peer_is_calm, peer);
}

static int on_schema(struct ArrowAsyncDeviceStreamHandler *handler,
                     struct ArrowSchema *schema)
{
    struct handler_peer *peer = peer_of(handler);

    peer_enter(peer, "on_schema");
    if (peer->has_schema)
        sim_fail("on_schema twice (AH-05)");
    if (handler->producer == NULL)
        sim_fail("no producer in on_schema (AH-03)");
    expectation_see_schema(peer->expectation, schema);
    schema->release(schema);
    peer->has_schema = true;
    if (peer->stop_at < 0 && peer->refuses) {
        peer->refused = true;
        return peer_leave(peer, EDOM);
    }
    if (peer->stop_at < 0)
        peer_stop(peer);
    peer_request(peer);
    return peer_leave(peer, 0);
}

static int peer_end(struct handler_peer *peer)
{
    if (peer->at_end)
        sim_fail("two ends (AH-11)");
    peer->at_end = true;
    peer_closed(peer);
    return peer_leave(peer, 0);
}

static void peer_take(struct handler_peer *peer, struct ArrowAsyncTask *task)
{
    if (!peer->keeps || peer->held_to - peer->held_from == HELD)
        peer_spend(peer, task);
    else
        peer->held[peer->held_to++ % HELD] = *task;
    memset(task, 0x5A, sizeof(*task)); /* AT-20 */
}

static int on_next_task(struct ArrowAsyncDeviceStreamHandler *handler,
                        struct ArrowAsyncTask *task, const char *metadata)
{
    struct handler_peer *peer = peer_of(handler);

    (void)metadata;
    peer_enter(peer, "on_next_task");
    if (!peer->has_schema)
        sim_fail("a task before the schema (AH-05)");
    if (peer->failure_seen && !peer->cancelled)
        sim_fail("%s after a failed extraction (AT-08)",
                 task != NULL ? "a task" : "the end");
    if (task == NULL)
        return peer_end(peer);
    if (peer->at_end)
        sim_fail("a task after the end (AH-11)");
    if (peer->offered++ == peer->requested)
        sim_fail("a task more than was requested (AP-06)");
    if (peer->offered - 1 == peer->stop_at && peer->refuses) {
        peer->refused = true;
        peer_closed(peer);
        if (peers_chance(1, 2))
            peer_spend(peer, task); /* LC-19; otherwise LC-18 */
        return peer_leave(peer, EDOM);
    }
    if (peer->offered - 1 == peer->stop_at)
        peer_stop(peer);
    peer_take(peer, task);
    if (peer->offered == peer->requested ||
        (peer->requested < 1000 && peers_chance(1, 4)))
        peer_request(peer);
    return peer_leave(peer, 0);
}

static void on_error(struct ArrowAsyncDeviceStreamHandler *handler, int code,
                     const char *message, const char *metadata)
{
    struct handler_peer *peer = peer_of(handler);

    (void)message;
    (void)metadata;
    peer_enter(peer, "on_error");
    expectation_note("handler: that is %s", uva_error_name(code));
    if (code == 0)
        sim_fail("on_error(0) (ER-06)");
    if (peer->had_error)
        sim_fail("on_error twice (AH-32)");
    peer->had_error = true;
    peer_closed(peer);
    (void)peer_leave(peer, 0);
}

static void on_release(struct ArrowAsyncDeviceStreamHandler *handler)
{
    struct handler_peer *peer = peer_of(handler);

    peer_enter(peer, "release");
    if (!peer->at_end && !peer->had_error && !peer->refused && !peer->cancelled)
        sim_fail("release without an end (AH-12)");
    peer_closed(peer);
    peer->let_go = true;
    peer_settle(peer);
    (void)peer_leave(peer, 0);
    memset(handler, 0x5A, sizeof(*handler)); /* AH-27 */
    if (peer->dropped)
        peer_finish(peer, UVA_END_CANCELLED, ECANCELED);
    peer_drop(peer);
}

/* ---- on_done and on_extracted, which are no callbacks of the handler ----- */

static void on_done(void *ctx, const struct uva_outcome *outcome)
{
    struct handler_peer *peer = ctx;

    if (peer->dropped)
        sim_fail("on_done after a drop");
    peer->complete = outcome->end == UVA_END_COMPLETE;
    uva_stream_release(peer->stream);
    peer_finish(peer, outcome->end, outcome->error.code);
}

/* As many were lost as it holds, and perhaps some that gave no batch before,
 * are being extracted, or are just being given. */
static void peer_count_lost(const struct handler_peer *peer, int64_t lost)
{
    const int64_t held = peer->held_to - peer->held_from;
    const int64_t others = peer->missed + peer->extracting + peer->inside;

    expectation_note("handler: the last extraction, %lld lost",
                     (long long)lost);
    if (lost < held || lost > held + others)
        sim_fail("%lld batches are lost, and %lld are held", (long long)lost,
                 (long long)held);
    if (lost > 0 && !hosts_may_revoke(peer->expectation->runtime))
        sim_fail("batches are lost, and no close took them");
}

static void on_extracted(void *ctx, int64_t lost)
{
    struct handler_peer *peer = ctx;

    if (peer->emptied || peer->dropped)
        sim_fail("on_extracted twice, or after a drop");
    if (!peer->expectation->over)
        sim_fail("on_extracted before on_done");
    peer_count_lost(peer, lost);
    peer->emptied = true;
    peer->whole = lost == 0;
    peer_drop(peer);
}

/* ---- starting ----------------------------------------------------------- */

static void peer_draw(struct handler_peer *peer)
{
    static const int64_t goes[] = {1, 1, 2, 3, 64, INT64_MAX / 4};
    struct expectation *expectation = peer->expectation;

    peer->one_go = goes[sim_choose(6)];
    peer->stop_at = INT64_MAX;
    /* A stream with kept tasks does not keep a loop alive. */
    peer->keeps = !peers_are_alone() && peers_chance(1, 2);
    peer->discards = peers_chance(1, 5);
    if (!peers_chance(1, 4))
        return;
    peer->stop_at = (int64_t)sim_choose((uint64_t)expectation->total + 1) - 1;
    peer->refuses = peers_chance(1, 3);
    peer->drops = peers_chance(1, 2);
    if (peer->refuses)
        monitor_excuse(UVA_PARTY_CONSUMER);
    expectation->excuses |= peer->refuses ? EXCUSE_REJECT : EXCUSE_CANCEL;
}

int handler_peer_start(struct uva_stream *stream,
                       struct expectation *expectation)
{
    struct handler_peer *peer = arena_new(sizeof(*peer), "a handler");
    struct ArrowAsyncDeviceStreamHandler *checked;
    const struct uva_drive options = {.on_done = on_done,
                                      .on_extracted = on_extracted,
                                      .ctx = peer,
                                      .on_worker = peers_chance(1, 3)};
    int code;

    peer->handler =
        (struct ArrowAsyncDeviceStreamHandler){.on_schema = on_schema,
                                               .on_next_task = on_next_task,
                                               .on_error = on_error,
                                               .release = on_release};
    peer->expectation = expectation;
    peer->extractor = -1;
    peer->holds = 3;
    peer->stream = uva_stream_acquire(stream);
    peer_draw(peer);
    expectation->partial = peer->keeps || peer->discards || peer->refuses;
    expectation->unordered =
        expectation->unordered || (peer->keeps && peer->refuses);
    expectation_note("chain %d: a handler%s, %lld at once%s%s%s",
                     expectation->number,
                     options.on_worker ? " on a worker" : "",
                     (long long)peer->one_go, peer->keeps ? ", keeps" : "",
                     peer->refuses                               ? ", refuses"
                     : peer->drops && peer->stop_at != INT64_MAX ? ", drops"
                                                                 : "",
                     peer->discards ? ", discards" : "");
    if (peer->keeps) {
        peer->holds++;
        peers_spawn("extractor", extractor, peer);
    }
    checked =
        monitor_handler(&peer->handler, peer->refuses ? UVA_PARTY_CONSUMER : 0);
    expectation->drop_ctx = peer;
    expectation->drop = peer_drop_stream;
    code = uva_stream_drive(stream, checked, &options, NULL);
    if (code == 0) {
        uva_stream_release(stream);
        return 0;
    }
    expectation->drop = NULL;
    uva_stream_release(peer->stream);
    peer->refused = true; /* refused by us: the release is our own call */
    checked->release(checked);
    peer_drop(peer);
    peer_drop(peer);
    return code;
}
