/* SPDX-License-Identifier: Apache-2.0 */
/* Our calls of a foreign producer's methods, and the events that the loop
 * collects from it. The producer calls source/foreign_handler.c.
 *
 * Happy path:  start gets the handler -> the loop collects events repeatedly,
 *              and may have more batches requested each time -> stop -> the
 *              producer is done: free_ctx -> the last reference is dropped:
 *              freed.
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
#include "source/interrupt.h"
#include "stream/producer.h"

/* ---- request, cancel ---------------------------------------------------- */

/* While batches are outstanding, a callback will come that can request more.
 * Returns whether this call has requested any. */
static bool foreign_request_once(struct uva__foreign *f)
{
    struct ArrowAsyncProducer *producer;
    int64_t n = 0;
    bool closed;

    uva__lock_take(&f->lock);
    if (f->locked.state.outstanding == 0)
        n = uva__foreign_request_begin_locked(f);
    f->locked.requester_out = n > 0;
    producer = f->locked.producer;
    uva__lock_drop(&f->lock);
    if (n == 0)
        return false;
    uva__foreign_log(f, "request", n);
    producer->request(producer, n);
    uva__lock_take(&f->lock);
    uva__foreign_request_end_locked(f);
    closed = uva__foreign_is_closed_locked(f);
    uva__lock_drop(&f->lock);
    if (closed)
        uva__foreign_free_ctx(f);
    return true;
}

void uva__foreign_request(struct uva__foreign *f)
{
    while (foreign_request_once(f))
        ;
}

void uva__foreign_cancel(struct uva__foreign *f)
{
    struct ArrowAsyncProducer *producer = NULL;
    bool closed;

    uva__lock_take(&f->lock);
    if (uva__consumer_state_must_cancel(&f->locked.state))
        producer = f->locked.producer;
    if (producer != NULL) {
        uva__consumer_state_note_cancel_delivered(&f->locked.state);
        f->locked.cancelling = uva__thread_self();
        uva__foreign_frame_begin_locked(f);
    }
    uva__lock_drop(&f->lock);
    if (producer == NULL)
        return; /* the producer has ended by itself */
    uva__foreign_log(f, "cancel", -1);
    producer->cancel(producer);
    uva__lock_take(&f->lock);
    f->locked.cancelling = 0;
    uva__foreign_frame_end_locked(f);
    closed = uva__foreign_is_closed_locked(f);
    uva__lock_drop(&f->lock);
    if (closed)
        uva__foreign_free_ctx(f);
}

/* ---- interrupt ---------------------------------------------------------- */

/* Counts as a call, so that free_ctx comes later; but not as one that is stuck.
 * False: no call is blocked any more. */
static bool foreign_interrupt_once(struct uva__foreign *f)
{
    bool blocked, closed;

    uva__lock_take(&f->lock);
    blocked = uva__foreign_is_blocked_locked(f);
    f->locked.inside += blocked;
    uva__lock_drop(&f->lock);
    if (!blocked)
        return false;
    f->options.interrupt(f->options.ctx);
    uva__lock_take(&f->lock);
    f->locked.inside--;
    closed = uva__foreign_is_closed_locked(f);
    uva__lock_drop(&f->lock);
    if (closed)
        uva__foreign_free_ctx(f);
    return true;
}

/* Interrupts repeatedly, as a reader does: drivers forget an interrupt that
 * came just before the call. No call begins after a stop, so it ends. */
void uva__foreign_interrupt(struct uva__foreign *f)
{
    int64_t pause_ms = INTERRUPT_PAUSE_MS;

    while (foreign_interrupt_once(f)) {
        uva__foreign_await_blocked(f, pause_ms);
        pause_ms = uva__interrupt_next_pause(pause_ms);
    }
}

/* ---- start -------------------------------------------------------------- */

bool uva__foreign_may_start(struct uva__foreign *f)
{
    bool due;

    uva__lock_take(&f->lock);
    due = !f->locked.stopped;
    f->locked.starting = due;
    if (due)
        uva__foreign_frame_begin_locked(f);
    f->locked.peer_released = !due;
    uva__lock_drop(&f->lock);
    if (due)
        return true;
    uva__foreign_free_ctx(f);
    uva__foreign_release(f);
    return false;
}

static bool peer_has_ended_locked(const struct uva__foreign *f)
{
    return f->locked.state.ended || f->locked.state.failed ||
           f->locked.state.released;
}

/* The producer has never called the handler: no release will come. */
static void foreign_take_back_locked(struct uva__foreign *f)
{
    const struct uva__consumer_call gone = {.event = UVA__EVENT_RELEASE};

    (void)uva__consumer_state_enter(&f->locked.state, &gone);
    uva__consumer_state_leave(&f->locked.state);
    f->locked.peer_released = true;
}

void uva__foreign_started(struct uva__foreign *f, int code,
                          const struct uva_error *error)
{
    bool untouched, counts, ended_silently, closed;

    uva__lock_take(&f->lock);
    f->locked.starting = false;
    uva__foreign_frame_end_locked(f);
    f->locked.start_returned = true;
    ended_silently = f->locked.ended_silently;
    counts = code != 0 && (ended_silently || !peer_has_ended_locked(f));
    untouched = code != 0 && !f->locked.touched;
    if (counts)
        uva__consumer_state_note_fault(&f->locked.state, code);
    if (untouched)
        foreign_take_back_locked(f);
    closed = uva__foreign_is_closed_locked(f);
    uva__lock_drop(&f->lock);
    if (counts)
        uva__foreign_fail(f, code, error, NULL);
    else if (ended_silently)
        uva__foreign_fail_cut_off(f);
    uva__rt_wake(f->source.rt, &f->wakeup);
    if (closed)
        uva__foreign_free_ctx(f);
    if (untouched)
        uva__foreign_release(f);
}

/* ---- the loop ----------------------------------------------------------- */

void uva__foreign_fault(struct uva__foreign *f, int code)
{
    uva__lock_take(&f->lock);
    uva__consumer_state_note_fault(&f->locked.state, code);
    uva__lock_drop(&f->lock);
    uva__rt_wake(f->source.rt, &f->wakeup);
}

static void settle_locked(struct uva__foreign *f, int64_t taken)
{
    for (; taken > 0; taken--)
        uva__consumer_state_note_settled(&f->locked.state, 0);
}

/* Returns whether the canceller is to be submitted now, which is done once. */
static bool canceller_is_due_locked(struct uva__foreign *f)
{
    bool due = !f->locked.canceller_out && f->locked.producer != NULL &&
               uva__consumer_state_must_cancel(&f->locked.state);

    f->locked.canceller_out = f->locked.canceller_out || due;
    return due;
}

/* Returns whether the requester is to be submitted now: while no batch is
 * outstanding, no callback may come that requests more. */
static bool requester_is_due_locked(struct uva__foreign *f)
{
    bool due = !f->locked.requester_out && f->locked.requesting == 0 &&
               f->locked.producer != NULL && f->locked.state.outstanding == 0 &&
               uva__consumer_state_want(&f->locked.state) > 0;

    f->locked.requester_out = f->locked.requester_out || due;
    return due;
}

bool uva__foreign_poll(struct uva__foreign *f, int64_t taken,
                       struct uva__foreign_events *events, bool *cancel)
{
    bool requester;

    uva__lock_take(&f->lock);
    settle_locked(f, taken);
    *events = f->locked.events;
    events->ended = f->locked.state.end == UVA__CONSUMER_COMPLETE;
    f->locked.events = (struct uva__foreign_events){.count = 0};
    *cancel = canceller_is_due_locked(f);
    requester = requester_is_due_locked(f);
    uva__lock_drop(&f->lock);
    return requester;
}

bool uva__foreign_stop(struct uva__foreign *f, int64_t taken,
                       struct uva__list *queued, bool *interrupt)
{
    bool cancel;

    uva__lock_take(&f->lock);
    settle_locked(f, taken);
    f->locked.stopped = true;
    uva__list_append(queued, &f->locked.events.queue);
    uva__consumer_state_note_cancel(&f->locked.state, ECANCELED);
    if (!peer_has_ended_locked(f)) {
        f->locked.abandoned = true;
        uva__atomic64_add(&f->source.rt->stats.calls_stuck,
                          (uint64_t)f->locked.inside);
    }
    cancel = canceller_is_due_locked(f);
    *interrupt = f->options.interrupt != NULL && f->locked.abandoned &&
                 uva__foreign_is_blocked_locked(f);
    uva__lock_drop(&f->lock);
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

void uva__foreign_init(struct uva__foreign *f)
{
    uva__foreign_handler_init(f);
    uva__foreign_init_state(f);
    uva__wakeup_init(&f->wakeup, &foreign_wakeup_ops, 1);
}
