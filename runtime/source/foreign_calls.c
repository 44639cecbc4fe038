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
        uva__inlet_frame_begin_locked(i);
    }
    uva__lock_drop(&i->lock);
    if (producer == NULL)
        return; /* the producer has ended by itself */
    producer->cancel(producer);
    uva__lock_take(&i->lock);
    i->locked.cancelling = 0;
    uva__inlet_frame_end_locked(i);
    home = uva__inlet_is_home_locked(i);
    uva__lock_drop(&i->lock);
    if (home)
        uva__inlet_farewell(i);
}

/* ---- start -------------------------------------------------------------- */

bool uva__inlet_hand_over(struct uva__inlet *i)
{
    bool goes;

    uva__lock_take(&i->lock);
    goes = !i->locked.stopped;
    if (goes)
        uva__inlet_frame_begin_locked(i);
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

/* The producer has never called the handler: no release will come. */
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
    uva__inlet_frame_end_locked(i);
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

/* Returns whether the canceller is to be submitted now, which is done once. */
static bool canceller_goes_locked(struct uva__inlet *i)
{
    bool goes = !i->locked.canceller_out && i->locked.producer != NULL &&
                uva__consumer_must_cancel(&i->locked.state);

    i->locked.canceller_out = i->locked.canceller_out || goes;
    return goes;
}

/* Returns whether the requester is to be submitted now: while no batch is
 * outstanding, no callback may come that requests more. */
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

static const struct uva__node_ops inlet_node_ops = {inlet_visit,
                                                    uva__inlet_free};

void uva__inlet_init(struct uva__inlet *i)
{
    uva__peer_side_init(i);
    uva__inlet_state_init(i);
    uva__node_init(&i->node, &inlet_node_ops, 1);
}
