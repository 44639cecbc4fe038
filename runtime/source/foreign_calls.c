/* SPDX-License-Identifier: Apache-2.0 */
/* Our calls of a foreign producer's methods, and what the loop collects from
 * it. What the producer calls is source/foreign_handler.c.
 *
 * Happy path:  handed over to start -> the loop collects again and again, and
 *              may have more requested each time -> stop -> the producer is
 *              done: free_ctx -> the last reference is dropped: freed.
 *
 * What can fail: start. Its code counts where the producer has reported nothing
 *              else; if it has called no callback, the handler is ours again.
 *
 * On cancel and close: stop. The calls that are in flight return before the
 *              producer is done, unless source/foreign_state.c abandons them.
 *
 * Clauses: G-55. */
#include "source/foreign.h"

#include <errno.h>

#include "source/foreign_handler.h"
#include "stream/producer.h"

/* ---- request, cancel ---------------------------------------------------- */

/* While batches are outstanding, a callback will come that can request more.
 * Returns whether this call has requested any. */
static bool foreign_request_once(struct uva__foreign *i)
{
    struct ArrowAsyncProducer *producer;
    int64_t n = 0;
    bool closed;

    uva__lock_take(&i->lock);
    if (i->locked.state.outstanding == 0)
        n = uva__foreign_request_begin_locked(i);
    i->locked.requester_out = n > 0;
    producer = i->locked.producer;
    uva__lock_drop(&i->lock);
    if (n == 0)
        return false;
    producer->request(producer, n);
    uva__lock_take(&i->lock);
    uva__foreign_request_end_locked(i);
    closed = uva__foreign_is_closed_locked(i);
    uva__lock_drop(&i->lock);
    if (closed)
        uva__foreign_free_ctx(i);
    return true;
}

void uva__foreign_request(struct uva__foreign *i)
{
    while (foreign_request_once(i))
        ;
}

void uva__foreign_cancel(struct uva__foreign *i)
{
    struct ArrowAsyncProducer *producer = NULL;
    bool closed;

    uva__lock_take(&i->lock);
    if (uva__consumer_state_must_cancel(&i->locked.state))
        producer = i->locked.producer;
    if (producer != NULL) {
        uva__consumer_state_note_cancel_delivered(&i->locked.state);
        i->locked.cancelling = uva__thread_self();
        uva__foreign_frame_begin_locked(i);
    }
    uva__lock_drop(&i->lock);
    if (producer == NULL)
        return; /* the producer has ended by itself */
    producer->cancel(producer);
    uva__lock_take(&i->lock);
    i->locked.cancelling = 0;
    uva__foreign_frame_end_locked(i);
    closed = uva__foreign_is_closed_locked(i);
    uva__lock_drop(&i->lock);
    if (closed)
        uva__foreign_free_ctx(i);
}

/* ---- start -------------------------------------------------------------- */

bool uva__foreign_may_start(struct uva__foreign *i)
{
    bool goes;

    uva__lock_take(&i->lock);
    goes = !i->locked.stopped;
    if (goes)
        uva__foreign_frame_begin_locked(i);
    i->locked.peer_released = !goes;
    uva__lock_drop(&i->lock);
    if (goes)
        return true;
    uva__foreign_free_ctx(i);
    uva__foreign_release(i);
    return false;
}

static bool peer_has_ended_locked(const struct uva__foreign *i)
{
    return i->locked.state.ended || i->locked.state.failed ||
           i->locked.state.released;
}

/* The producer has never called the handler: no release will come. */
static void foreign_take_back_locked(struct uva__foreign *i)
{
    const struct uva__consumer_call gone = {.event = UVA__EVENT_RELEASE};

    (void)uva__consumer_state_enter(&i->locked.state, &gone);
    uva__consumer_state_leave(&i->locked.state);
    i->locked.peer_released = true;
}

void uva__foreign_started(struct uva__foreign *i, int code,
                          const struct uva_error *error)
{
    bool untouched, stats, ended_silently, closed;

    uva__lock_take(&i->lock);
    uva__foreign_frame_end_locked(i);
    i->locked.start_returned = true;
    ended_silently = i->locked.ended_silently;
    stats = code != 0 && (ended_silently || !peer_has_ended_locked(i));
    untouched = code != 0 && !i->locked.touched;
    if (stats)
        uva__consumer_state_note_fault(&i->locked.state, code);
    if (untouched)
        foreign_take_back_locked(i);
    closed = uva__foreign_is_closed_locked(i);
    uva__lock_drop(&i->lock);
    if (stats)
        uva__foreign_fail(i, code, error, NULL);
    else if (ended_silently)
        uva__foreign_fail_cut_off(i);
    uva__rt_wake(i->source.rt, &i->wakeup);
    if (closed)
        uva__foreign_free_ctx(i);
    if (untouched)
        uva__foreign_release(i);
}

/* ---- the loop ----------------------------------------------------------- */

void uva__foreign_fault(struct uva__foreign *i, int code)
{
    uva__lock_take(&i->lock);
    uva__consumer_state_note_fault(&i->locked.state, code);
    uva__lock_drop(&i->lock);
    uva__rt_wake(i->source.rt, &i->wakeup);
}

static void settle_locked(struct uva__foreign *i, int64_t taken)
{
    for (; taken > 0; taken--)
        uva__consumer_state_note_settled(&i->locked.state, 0);
}

/* Returns whether the canceller is to be submitted now, which is done once. */
static bool canceller_goes_locked(struct uva__foreign *i)
{
    bool goes = !i->locked.canceller_out && i->locked.producer != NULL &&
                uva__consumer_state_must_cancel(&i->locked.state);

    i->locked.canceller_out = i->locked.canceller_out || goes;
    return goes;
}

/* Returns whether the requester is to be submitted now: while no batch is
 * outstanding, no callback may come that requests more. */
static bool requester_goes_locked(struct uva__foreign *i)
{
    bool goes = !i->locked.requester_out && i->locked.requesting == 0 &&
                i->locked.producer != NULL &&
                i->locked.state.outstanding == 0 &&
                uva__consumer_state_want(&i->locked.state) > 0;

    i->locked.requester_out = i->locked.requester_out || goes;
    return goes;
}

bool uva__foreign_poll(struct uva__foreign *i, int64_t taken,
                       struct uva__foreign_events *events, bool *cancel)
{
    bool requester;

    uva__lock_take(&i->lock);
    settle_locked(i, taken);
    *events = i->locked.events;
    events->ended = i->locked.state.end == UVA__CONSUMER_COMPLETE;
    i->locked.events = (struct uva__foreign_events){.count = 0};
    *cancel = canceller_goes_locked(i);
    requester = requester_goes_locked(i);
    uva__lock_drop(&i->lock);
    return requester;
}

bool uva__foreign_stop(struct uva__foreign *i, int64_t taken,
                       struct uva__list *rest)
{
    bool cancel;

    uva__lock_take(&i->lock);
    settle_locked(i, taken);
    i->locked.stopped = true;
    uva__list_append(rest, &i->locked.events.queue);
    uva__consumer_state_note_cancel(&i->locked.state, ECANCELED);
    if (!peer_has_ended_locked(i)) {
        i->locked.abandoned = true;
        uva__atomic64_add(&i->source.rt->stats.calls_stuck,
                          (uint64_t)i->locked.inside);
    }
    cancel = canceller_goes_locked(i);
    uva__lock_drop(&i->lock);
    return cancel;
}

/* ---- making one --------------------------------------------------------- */

static bool foreign_on_wakeup(struct uva__wakeup *wakeup)
{
    struct uva__foreign *i =
        uva__container_of(wakeup, struct uva__foreign, wakeup);

    if (i->loop.started && !i->source.stopped)
        uva__producer_run(i->source.producer);
    if (i->loop.draining && uva__atomic64_load(&i->closed) != 0) {
        i->loop.draining = false;
        i->source.rt->loop.draining--;
    }
    return false;
}

static const struct uva__wakeup_ops foreign_wakeup_ops = {foreign_on_wakeup,
                                                          uva__foreign_free};

void uva__foreign_init(struct uva__foreign *i)
{
    uva__foreign_handler_init(i);
    uva__foreign_init_state(i);
    uva__wakeup_init(&i->wakeup, &foreign_wakeup_ops, 1);
}
