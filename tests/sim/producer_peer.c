/* SPDX-License-Identifier: Apache-2.0 */
/* A foreign asynchronous producer: makes its callbacks inside start or on its
 * own fiber, serves requests, and ends in a way found in practice. Its start or
 * a request may get stuck until it is interrupted. Some of its behaviour is
 * only tolerated: it reports a cancel as an error, ends without a final
 * callback, has tasks that become invalid with its release, or makes callbacks
 * after that. It checks its consumer strictly: no request below 1, no call
 * after the end, each task extracted once and in time. */
#include <errno.h>
#include <stdint.h>

#include "sim/arena.h"
#include "sim/batches.h"
#include "sim/device_stages.h"
#include "sim/engine.h"
#include "sim/hosts.h"
#include "sim/monitor.h"
#include "sim/peers.h"

enum manner {
    MANNERLY,
    REPORTS_CANCEL, /* calls on_error(ECANCELED) for a cancel */
    ENDS_SILENTLY,  /* releases without an end (ER-13) */
    DIES_EARLY,     /* its tasks become invalid with its release */
    CALLS_LATE      /* makes callbacks after its release (AH-22) */
};

enum stuck { STUCK_NOWHERE, STUCK_IN_START, STUCK_IN_REQUEST };

struct producer_peer {
    struct ArrowAsyncProducer object; /* first */
    struct ArrowAsyncDeviceStreamHandler *handler;
    struct expectation *expectation;
    enum manner manner;
    struct uva_runtime *runtime; /* borrows: for its counts of late calls */
    enum stuck stuck;            /* the first such call is */
    bool interrupted;            /* it is stuck no more */
    int interrupting;            /* calls of interrupt in progress */
    bool inside_start; /* makes callbacks there, not on its own fiber */
    int64_t bad;       /* this extraction fails; or -1 */
    int64_t next;      /* next batch to offer */
    int64_t credit;    /* requests not used up */
    bool cancelled;
    bool failed;   /* an extraction has failed */
    int inside;    /* calls of request and cancel in flight */
    bool ended;    /* a terminal callback has returned */
    bool let_go;   /* release has returned */
    int64_t tasks; /* offered, and not extracted so far */
    int holds;     /* references: the ctx of start, the fiber, each task */
};

/* The private data of a task. */
struct pending_task {
    struct producer_peer *peer;
    int64_t ordinal;
};

static void peer_drop(struct producer_peer *peer)
{
    if (--peer->holds > 0)
        return;
    if (peer->tasks != 0)
        sim_fail("%lld tasks were never spent (AT-02)", (long long)peer->tasks);
    arena_free(peer);
}

/* ---- its methods -------------------------------------------------------- */

static struct producer_peer *peer_of(struct ArrowAsyncProducer *object)
{
    return (struct producer_peer *)(void *)object;
}

static void peer_enter(struct producer_peer *peer, const char *what)
{
    expectation_note("producer: %s", what);
    if (peer->ended)
        sim_fail("%s after the end (TH-10, AP-24)", what);
    peer->inside++;
    peers_dawdle();
}

static void peer_leave(struct producer_peer *peer)
{
    if (peer->ended)
        sim_fail("a call was still inside when the end returned (TH-10)");
    peer->inside--;
}

static bool peer_may_go_on(void *arg)
{
    return ((const struct producer_peer *)arg)->interrupted ||
           peers_are_unblocked();
}

static void peer_get_stuck(struct producer_peer *peer, enum stuck where)
{
    if (peer->stuck != where)
        return;
    expectation_note("producer: is stuck");
    sim_wait(peer_may_go_on, peer);
    peer->stuck = STUCK_NOWHERE;
}

static void peer_interrupt(void *ctx)
{
    struct producer_peer *peer = ctx;

    expectation_note("producer: interrupt");
    if (peer->interrupting++ != 0)
        sim_fail("two interrupts at once");
    peers_dawdle();
    peer->interrupted = true;
    sim_point();
    peer->interrupting--;
}

static void peer_request(struct ArrowAsyncProducer *object, int64_t n)
{
    struct producer_peer *peer = peer_of(object);

    peer_enter(peer, "request");
    if (n < 1)
        sim_fail("request(%lld) (AP-08)", (long long)n);
    peer_get_stuck(peer, STUCK_IN_REQUEST);
    if (!peer->cancelled) /* AP-07 */
        peer->credit = n > 1000 ? 1000 : peer->credit + n;
    peer_leave(peer);
}

static void peer_cancel(struct ArrowAsyncProducer *object)
{
    struct producer_peer *peer = peer_of(object);

    peer_enter(peer, "cancel");
    peer->cancelled = true;
    peer_leave(peer);
}

/* ---- its tasks ---------------------------------------------------------- */

static int task_extract(struct ArrowAsyncTask *task,
                        struct ArrowDeviceArray *out)
{
    struct pending_task *pending_task = task->private_data;
    struct producer_peer *peer = pending_task->peer;
    const int64_t ordinal = pending_task->ordinal;

    expectation_note("producer: %s task %lld",
                     out != NULL ? "extract" : "discard", (long long)ordinal);
    if (out == NULL)
        sim_fail("a task of a foreign producer is given no room (Q-13)");
    if (peer->manner == DIES_EARLY && peer->let_go)
        sim_fail("a task is spent after its producer has released (G-13)");
    peers_dawdle();
    arena_free(pending_task);
    peer->tasks--;
    if (ordinal == peer->bad)
        peer->failed = true;
    else
        device_batch(peer->expectation, peer->expectation->device, ordinal, 0,
                     out);
    peer_drop(peer);
    return ordinal == peer->bad ? EDOM : 0;
}

/* Returns the handler's return code. */
static int peer_offer(struct producer_peer *peer)
{
    struct pending_task *pending_task =
        arena_new(sizeof(*pending_task), "a task");
    struct ArrowAsyncTask task = {task_extract, pending_task};
    const int64_t tasks = ++peer->tasks;
    int code;

    *pending_task = (struct pending_task){peer, peer->next++};
    peer->holds++;
    peer->credit--;
    expectation_note("producer: on_next_task %lld",
                     (long long)pending_task->ordinal);
    code = peer->handler->on_next_task(peer->handler, &task, NULL);
    task = (struct ArrowAsyncTask){0}; /* AT-13 */
    if (code != 0 && peer->tasks == tasks) {
        arena_free(pending_task); /* LC-18: it was not extracted */
        peer->tasks--;
        peer_drop(peer);
    }
    return code;
}

/* ---- its callbacks ------------------------------------------------------ */

static bool peer_may_deliver(void *arg)
{
    const struct producer_peer *peer = arg;

    return peer->credit > 0 || peer->cancelled || peer->failed;
}

static bool peer_is_at_end(const struct producer_peer *peer)
{
    return peer->next >= peer->expectation->total ||
           peer->next >= peer->expectation->fails_at;
}

/* Offers tasks until there is a reason to end. Returns false if the handler
 * refused one. */
static bool peer_offer_all(struct producer_peer *peer)
{
    while (!peer_is_at_end(peer) && !peer->failed) {
        sim_wait(peer_may_deliver, peer);
        peers_dawdle();
        if (peer->cancelled && !(peer->credit > 0 && peers_chance(1, 3)))
            return true;
        if (peer->credit > 0 && peer_offer(peer) != 0)
            return false;
    }
    return true;
}

/* The end must come after all calls that the consumer made before. */
static bool peer_is_calm(void *arg)
{
    return ((const struct producer_peer *)arg)->inside == 0;
}

static void peer_deliver_end(struct producer_peer *peer)
{
    struct ArrowAsyncDeviceStreamHandler *handler = peer->handler;
    const struct expectation *expectation = peer->expectation;

    if (peer->failed) {
        handler->on_error(handler, EDOM, "a bad task", NULL);
    } else if (peer->cancelled) {
        if (peer->manner == REPORTS_CANCEL)
            handler->on_error(handler, ECANCELED, NULL, NULL);
        else if (peers_chance(1, 2))
            return;
        else if (peers_chance(1, 2))
            (void)handler->on_next_task(handler, NULL, NULL);
        else
            return;
    } else if (peer->manner == ENDS_SILENTLY) {
        return;
    } else if (peer->next >= expectation->fails_at) {
        handler->on_error(handler, expectation->fail_code, "a bad disk", NULL);
    } else {
        (void)handler->on_next_task(handler, NULL, NULL);
    }
    peer->ended = true;
    if (peer->inside != 0)
        sim_fail("the end returned during a call of the consumer's (TH-10)");
}

static void peer_release_task(struct producer_peer *peer)
{
    expectation_note("producer: release");
    peer->handler->release(peer->handler);
    if (peer->inside != 0)
        sim_fail("release returned during a call of the consumer's (TH-10)");
    peer->ended = true;
    peer->let_go = true;
    if (peer->manner == DIES_EARLY && peer->tasks != 0)
        sim_fail("a task was not spent before release returned (G-13)");
}

/* How often a callback came after a release, in the whole runtime. */
static int64_t late_calls(const struct producer_peer *peer)
{
    struct uva_runtime_stats stats;

    uva_runtime_get_stats(peer->runtime, &stats);
    return stats.late_calls;
}

/* Soon after the release, as the quarantine ends after a second. */
static void peer_call_late(struct producer_peer *peer)
{
    struct ArrowAsyncDeviceStreamHandler *handler = peer->handler;
    const int64_t before = late_calls(peer);
    const bool is_marked = handler->release == NULL;

    expectation_note("producer: late calls");
    handler->on_error(handler, EIO, "too late", NULL);
    sim_point();
    if (handler->on_next_task(handler, NULL, NULL) != 0)
        sim_fail("a late end gives an error");
    if (!is_marked)
        sim_fail("a handler is not marked as released");
    sim_flush();
    if (late_calls(peer) < before + 2)
        sim_fail("a late call is not counted");
    peers_late_end();
}

static void peer_deliver_all(struct producer_peer *peer)
{
    struct ArrowSchema schema;
    int code;

    peers_dawdle();
    peer->handler->producer = &peer->object;
    if (peer->expectation->fails_at == 0 && peers_chance(1, 2)) {
        peer_deliver_end(peer);
        peer_release_task(peer);
        return;
    }
    batches_schema(&schema);
    expectation_note("producer: on_schema");
    code = peer->handler->on_schema(peer->handler, &schema);
    if (schema.release != NULL)
        sim_fail("the schema was left (AH-06)");
    if (code == 0 && peer_offer_all(peer)) {
        sim_wait(peer_is_calm, peer);
        peer_deliver_end(peer);
    }
    peer_release_task(peer);
}

static void peer_deliver(struct producer_peer *peer)
{
    peer_deliver_all(peer);
    if (peer->manner == CALLS_LATE)
        peer_call_late(peer);
}

static void caller(void *arg)
{
    struct producer_peer *peer = arg;

    peer_deliver(peer);
    peer_drop(peer);
}

/* ---- as a source -------------------------------------------------------- */

/* A request that does not return is also a breach (AP-28). */
static bool peer_breaks_rules(const struct producer_peer *peer)
{
    return peer->manner != MANNERLY || peer->stuck == STUCK_IN_REQUEST;
}

static int peer_start(void *ctx, struct ArrowAsyncDeviceStreamHandler *handler,
                      struct uva_error *error)
{
    struct producer_peer *peer = ctx;

    (void)error;
    expectation_note("producer: start");
    if (peer->handler != NULL)
        sim_fail("start twice");
    peer->handler = handler;
    if (peer->manner != CALLS_LATE) /* of which the checker is not there then */
        peer->handler = monitor_handler(
            handler, peer_breaks_rules(peer) ? UVA_PARTY_PRODUCER : 0);
    peer_get_stuck(peer, STUCK_IN_START);
    if (peer->inside_start) {
        peer_deliver(peer);
        return 0;
    }
    peer->holds++;
    peers_spawn("producer", caller, peer);
    return 0;
}

static void peer_free(void *ctx)
{
    struct producer_peer *peer = ctx;

    expectation_note("producer: free_ctx");
    if (peer->interrupting != 0)
        sim_fail("free_ctx of a producer inside an interrupt");
    if (peer->manner == CALLS_LATE && peer->handler == NULL)
        peers_late_end(); /* it was never started */
    peer_drop(peer);
}

static void peer_draw(struct producer_peer *peer)
{
    struct expectation *expectation = peer->expectation;

    peer->inside_start = peers_chance(1, 4);
    peer->manner =
        peers_chance(1, 2) ? MANNERLY : (enum manner)(1 + sim_choose(4));
    if (peer->manner == CALLS_LATE &&
        (!peers_may_call_late() || hosts_are_checked()))
        peer->manner = MANNERLY;
    if (peer->manner == CALLS_LATE)
        peers_late_begin();
    if (peer->manner == ENDS_SILENTLY)
        expectation->excuses |= EXCUSE_ODD_END;
    if (peers_chance(1, 8)) {
        peer->stuck = (enum stuck)(1 + sim_choose(2));
        expectation->stalls = true;
    }
    if (peer_breaks_rules(peer))
        monitor_excuse(UVA_PARTY_PRODUCER);
    peer->bad = -1;
    if (expectation->total > 0 && peers_chance(1, 8)) {
        peer->bad = (int64_t)sim_choose((uint64_t)expectation->total);
        expectation->excuses |= EXCUSE_MAP;
    }
    expectation_note("chain %d: a foreign producer, manner %d, stuck %d%s%s",
                     expectation->number, (int)peer->manner, (int)peer->stuck,
                     peer->inside_start ? ", inside start" : "",
                     peer->bad >= 0 ? ", with a bad task" : "");
}

struct uva_stream *producer_peer_stream(struct uva_runtime *runtime,
                                        struct expectation *expectation)
{
    struct producer_peer *peer = arena_new(sizeof(*peer), "a producer");
    struct uva_async_source source = {.start = peer_start,
                                      .free_ctx = peer_free,
                                      .ctx = peer,
                                      .device_type = device_type(expectation),
                                      .window = peers_window(),
                                      .on_loop = peers_chance(1, 3)};

    peer->object =
        (struct ArrowAsyncProducer){.device_type = device_type(expectation),
                                    .request = peer_request,
                                    .cancel = peer_cancel};
    peer->runtime = runtime;
    peer->expectation = expectation;
    peer->holds = 1;
    peer_draw(peer);
    if (peers_chance(2, 3))
        source.interrupt = peer_interrupt;
    return uva_stream_from_async(runtime, &source);
}
