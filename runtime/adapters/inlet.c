/* SPDX-License-Identifier: Apache-2.0 */
/* Our side of the peer: calls of its methods, the gate that ends them, the
 * looks of the loop. What the peer calls is adapters/peer_side.c.
 *
 * Happy path:  handed over to start -> looks, each of which may have more
 *              requested -> stop -> the peer is home: free_ctx -> the last
 *              count given back: freed.
 *
 * What can fail: start. Its code counts where the peer has said nothing else;
 *              if it has made no callback, the handler is ours again (G-55).
 *
 * On cancel and close: stop. A terminal callback (NULL, on_error, release)
 *              closes the gate: it waits for other threads inside request and
 *              cancel, and nobody enters after it (G-14, R08). Who does not
 *              come out is left behind, with a count of his own. */
#include "adapters/inlet.h"

#include <errno.h>

#include "adapters/peer_side.h"
#include "core/clock.h"
#include "core/memory.h"
#include "core/thread.h"
#include "core/time_limits.h"
#include "stream/producer.h"
#include "uvarrow/arrow.h"

enum { MS_NS = 1000000 };

/* ---- life --------------------------------------------------------------- */

static void inlet_free(struct uva__node *node)
{
    struct uva__inlet *i = uva__container_of(node, struct uva__inlet, node);
    struct uva__hub *hub = uva__hub_acquire(i->feed.hub);
    const struct uva_allocator *allocator = &hub->allocator;
    struct uva__inlet_news *news = &i->locked.news;

    uva_schema_release(&news->schema);
    uva__memory_free(allocator, news->metadata, news->metadata_size);
    uva__failure_fini(&news->failure, allocator);
    uva__depot_fini(&i->depot);
    uva__feed_fini(&i->feed);
    uva__memory_free(allocator, i, sizeof(*i));
    uva__hub_release(hub);
}

void uva__inlet_acquire(struct uva__inlet *i)
{
    uva__node_acquire(&i->node);
}

void uva__inlet_release(struct uva__inlet *i)
{
    uva__node_release(&i->node);
}

/* ---- the peer goes home ------------------------------------------------- */

bool uva__inlet_is_home_locked(struct uva__inlet *i)
{
    /* not covered: it is called once more after it has left (AH-22) */
    const bool leaves =
        i->locked.given_back && i->locked.inside == 0 && !i->locked.leaving;

    if (leaves)
        i->locked.leaving = true;
    return leaves;
}

void uva__inlet_farewell(struct uva__inlet *i)
{
    if (i->how.free_ctx != NULL)
        i->how.free_ctx(i->how.ctx);
    uva__word_exchange(&i->home, 1);
    uva__hub_post(i->feed.hub, &i->node);
}

static void farewell_run(struct uva_job *job)
{
    struct uva__inlet *i = uva__container_of(job, struct uva__inlet, farewell);
    struct uva__hub *hub = i->feed.hub;

    uva__inlet_farewell(i);
    uva__inlet_release(i);
    uva__hub_job_end(hub);
}

void uva__inlet_farewell_elsewhere(struct uva__inlet *i)
{
    struct uva__hub *hub = i->feed.hub;

    if (i->how.free_ctx == NULL || !uva__hub_job_begin(hub)) {
        uva__inlet_farewell(i);
        return;
    }
    uva__inlet_acquire(i);
    uva__guest_run(&hub->jobs, &i->farewell);
}

/* ---- inside the peer's methods ------------------------------------------ */

static void frame_begin_locked(struct uva__inlet *i)
{
    i->locked.inside++;
    if (i->locked.abandoned)
        uva__word_add(&i->feed.hub->counts.calls_stuck, 1);
}

static void frame_end_locked(struct uva__inlet *i)
{
    i->locked.inside--;
    if (i->locked.abandoned)
        uva__word_sub(&i->feed.hub->counts.calls_stuck, 1);
    if (i->locked.waiting > 0)
        uva__signal_raise(&i->left);
}

void uva__inlet_release_below(struct uva__inlet *i)
{
    uva__word_store(&i->below, uva__thread_self());
    uva__lock_take(&i->lock);
    frame_begin_locked(i);
    uva__lock_drop(&i->lock);
}

void uva__inlet_extracted(struct uva__inlet *i)
{
    bool home;

    if (uva__word_peek(&i->below) != uva__thread_self())
        return;
    uva__word_store(&i->below, 0);
    uva__lock_take(&i->lock);
    frame_end_locked(i);
    home = uva__inlet_is_home_locked(i);
    uva__lock_drop(&i->lock);
    if (home) /* not covered: another call is still inside */
        uva__inlet_farewell_elsewhere(i);
}

int64_t uva__inlet_request_begin_locked(struct uva__inlet *i)
{
    struct uva__consumer_state *state = &i->locked.state;
    int64_t n;

    if (i->locked.producer == NULL || i->locked.requesting != 0)
        return 0;
    n = uva__consumer_want(state);
    if (n == 0)
        return 0;
    uva__consumer_note_request(state, n);
    i->locked.requesting = uva__thread_self();
    frame_begin_locked(i);
    return n;
}

void uva__inlet_request_end_locked(struct uva__inlet *i)
{
    i->locked.requesting = 0;
    frame_end_locked(i);
}

/* Where something is outstanding, a callback will come that can ask for more.
 * Returns whether there was something to ask for. */
static bool inlet_request_once(struct uva__inlet *i)
{
    struct ArrowAsyncProducer *producer;
    int64_t n = 0;
    bool home;

    uva__lock_take(&i->lock);
    if (i->locked.state.outstanding == 0)
        n = uva__inlet_request_begin_locked(i);
    i->locked.requester_out = n > 0;
    producer = i->locked.producer;
    uva__lock_drop(&i->lock);
    if (n == 0)
        return false;
    producer->request(producer, n);
    uva__lock_take(&i->lock);
    uva__inlet_request_end_locked(i);
    home = uva__inlet_is_home_locked(i);
    uva__lock_drop(&i->lock);
    if (home)
        uva__inlet_farewell(i);
    return true;
}

void uva__inlet_request(struct uva__inlet *i)
{
    while (inlet_request_once(i))
        ;
}

void uva__inlet_cancel(struct uva__inlet *i)
{
    struct ArrowAsyncProducer *producer = NULL;
    bool home;

    uva__lock_take(&i->lock);
    if (uva__consumer_must_cancel(&i->locked.state))
        producer = i->locked.producer;
    if (producer != NULL) {
        uva__consumer_note_cancel_told(&i->locked.state);
        i->locked.cancelling = uva__thread_self();
        frame_begin_locked(i);
    }
    uva__lock_drop(&i->lock);
    if (producer == NULL)
        return; /* it has ended by itself */
    producer->cancel(producer);
    uva__lock_take(&i->lock);
    i->locked.cancelling = 0;
    frame_end_locked(i);
    home = uva__inlet_is_home_locked(i);
    uva__lock_drop(&i->lock);
    if (home)
        uva__inlet_farewell(i);
}

/* ---- the gate ----------------------------------------------------------- */

/* Whether another thread is inside. The caller's own frame is below this one,
 * and cannot be waited for (R08). */
static bool gate_is_busy_locked(const struct uva__inlet *i)
{
    const uint64_t self = uva__thread_self();

    return (i->locked.requesting != 0 && i->locked.requesting != self) ||
           (i->locked.cancelling != 0 && i->locked.cancelling != self);
}

/* Drops the lock meanwhile. False when the time has passed. */
static bool gate_wait_locked(struct uva__inlet *i, uint64_t until_ns)
{
    const uint32_t seen = uva__signal_now(&i->left);
    const uint64_t now_ns = uva__clock_ns();

    if (now_ns >= until_ns)
        return false;
    i->locked.waiting++;
    uva__lock_drop(&i->lock);
    (void)uva__signal_wait(&i->left, seen,
                           (int64_t)((until_ns - now_ns) / MS_NS) + 1);
    uva__lock_take(&i->lock);
    i->locked.waiting--;
    return true;
}

/* The state lets nobody enter any more. */
void uva__inlet_close_gate(struct uva__inlet *i)
{
    const uint64_t until_ns =
        uva__clock_ns() + (uint64_t)i->patience_ms * MS_NS;
    bool stuck;

    uva__lock_take(&i->lock);
    while (!i->locked.left_behind && gate_is_busy_locked(i) &&
           gate_wait_locked(i, until_ns))
        ;
    stuck = !i->locked.left_behind && gate_is_busy_locked(i);
    i->locked.left_behind = i->locked.left_behind || stuck;
    i->locked.producer = NULL;
    uva__lock_drop(&i->lock);
    uva__peer_side_report(i, stuck ? "AP-28" : NULL);
}

/* ---- start -------------------------------------------------------------- */

bool uva__inlet_hand_over(struct uva__inlet *i)
{
    bool goes;

    uva__lock_take(&i->lock);
    goes = !i->locked.stopped;
    if (goes)
        frame_begin_locked(i);
    i->locked.given_back = !goes;
    uva__lock_drop(&i->lock);
    if (goes)
        return true;
    uva__inlet_farewell(i);
    uva__inlet_release(i);
    return false;
}

static bool peer_has_ended_locked(const struct uva__inlet *i)
{
    return i->locked.state.ended || i->locked.state.failed ||
           i->locked.state.released;
}

/* The handler is as it was when it was handed over: no release will come. */
static void inlet_take_back_locked(struct uva__inlet *i)
{
    const struct uva__consumer_call gone = {.event = UVA__EVENT_RELEASE};

    (void)uva__consumer_enter(&i->locked.state, &gone);
    uva__consumer_leave(&i->locked.state);
    i->locked.given_back = true;
}

void uva__inlet_started(struct uva__inlet *i, int code,
                        const struct uva_error *error)
{
    bool untouched, counts, cut_off, home;

    uva__lock_take(&i->lock);
    frame_end_locked(i);
    i->locked.start_returned = true;
    cut_off = i->locked.cut_off;
    counts = code != 0 && (cut_off || !peer_has_ended_locked(i));
    untouched = code != 0 && !i->locked.touched;
    if (counts)
        uva__consumer_note_fault(&i->locked.state, code);
    if (untouched)
        inlet_take_back_locked(i);
    home = uva__inlet_is_home_locked(i);
    uva__lock_drop(&i->lock);
    if (counts)
        uva__peer_side_tell(i, code, error, NULL);
    else if (cut_off)
        uva__peer_side_tell_cut_off(i);
    uva__hub_post(i->feed.hub, &i->node);
    if (home)
        uva__inlet_farewell(i);
    if (untouched)
        uva__inlet_release(i);
}

/* ---- the loop ----------------------------------------------------------- */

void uva__inlet_fault(struct uva__inlet *i, int code)
{
    uva__lock_take(&i->lock);
    uva__consumer_note_fault(&i->locked.state, code);
    uva__lock_drop(&i->lock);
    uva__hub_post(i->feed.hub, &i->node);
}

static void settle_locked(struct uva__inlet *i, int64_t taken)
{
    for (; taken > 0; taken--)
        uva__consumer_note_settled(&i->locked.state, 0);
}

/* Whether a canceller is to be sent now, which is done once. */
static bool canceller_goes_locked(struct uva__inlet *i)
{
    bool goes = !i->locked.canceller_out && i->locked.producer != NULL &&
                uva__consumer_must_cancel(&i->locked.state);

    i->locked.canceller_out = i->locked.canceller_out || goes;
    return goes;
}

/* Whether a requester is: where nothing is outstanding, no callback may come.
 */
static bool requester_goes_locked(struct uva__inlet *i)
{
    bool goes = !i->locked.requester_out && i->locked.requesting == 0 &&
                i->locked.producer != NULL &&
                i->locked.state.outstanding == 0 &&
                uva__consumer_want(&i->locked.state) > 0;

    i->locked.requester_out = i->locked.requester_out || goes;
    return goes;
}

bool uva__inlet_look(struct uva__inlet *i, int64_t taken,
                     struct uva__inlet_news *news, bool *cancel)
{
    bool requester;

    uva__lock_take(&i->lock);
    settle_locked(i, taken);
    *news = i->locked.news;
    news->ended = i->locked.state.end == UVA__CONSUMER_COMPLETE;
    i->locked.news = (struct uva__inlet_news){.count = 0};
    *cancel = canceller_goes_locked(i);
    requester = requester_goes_locked(i);
    uva__lock_drop(&i->lock);
    return requester;
}

bool uva__inlet_stop(struct uva__inlet *i, int64_t taken,
                     struct uva__list *rest)
{
    bool cancel;

    uva__lock_take(&i->lock);
    settle_locked(i, taken);
    i->locked.stopped = true;
    uva__list_append(rest, &i->locked.news.queue);
    uva__consumer_note_cancel(&i->locked.state, ECANCELED);
    if (!peer_has_ended_locked(i)) {
        i->locked.abandoned = true;
        uva__word_add(&i->feed.hub->counts.calls_stuck,
                      (uint64_t)i->locked.inside);
    }
    cancel = canceller_goes_locked(i);
    uva__lock_drop(&i->lock);
    return cancel;
}

/* ---- making one --------------------------------------------------------- */

static bool inlet_visit(struct uva__node *node)
{
    struct uva__inlet *i = uva__container_of(node, struct uva__inlet, node);

    if (i->loop.started && !i->loop.stopped)
        uva__producer_wake(i->feed.producer);
    if (i->loop.homing && uva__word_load(&i->home) != 0) {
        i->loop.homing = false;
        i->feed.hub->loop.homing--;
    }
    return false;
}

static const struct uva__node_ops inlet_node_ops = {inlet_visit, inlet_free};

void uva__inlet_init(struct uva__inlet *i)
{
    uva__peer_side_init(i);
    uva__depot_init(&i->depot, i->feed.hub);
    uva__consumer_init(&i->locked.state, i->how.window.batches,
                       i->how.window.refill);
    uva__node_init(&i->node, &inlet_node_ops, 1);
    i->farewell.run = farewell_run;
    i->patience_ms = UVA__LIMIT_FOREIGN_CALLS_MS;
}
