/* SPDX-License-Identifier: Apache-2.0 */
/* Happy path:  begin -> feed started -> on_schema -> (request -> on_next_task)*
 *              -> on_next_task(NULL) -> release -> the last task settled: rest.
 *
 * What can fail:
 * - the feed fails: told behind the batches before it;
 * - an extraction, a bad request, the owner: told at once;
 * - no memory for a task: told at once as ENOMEM.
 *
 * On cancel:   the feed is stopped, the handler released at the next boundary.
 */
#include "stream/producer.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "core/memory.h"
#include "stream/checked.h"
#include "stream/moves.h"
#include "stream/offered.h"
#include "stream/stock.h"
#include "uvarrow/arrow.h"

_Static_assert(offsetof(struct uva__producer, abi.additional_metadata) == 24,
               "where the released layout has it");
_Static_assert(offsetof(struct uva__producer, abi.private_data) == 32,
               "where the printed layout has additional_metadata");
_Static_assert(offsetof(struct uva__producer, printed_private_data) == 40,
               "where the printed layout has private_data");

/* ---- what the handler calls, from any thread ---------------------------- */

static struct uva__producer *producer_of(struct ArrowAsyncProducer *abi)
{
    return uva__container_of(abi, struct uva__producer, abi);
}

/* Inside a turn the rules are ours to tell, and the dispatcher will ask them.
 */
static void request_in_turn(struct uva__producer *p, int64_t n)
{
    if (p->loop.state.released) { /* not covered: a late call in a turn */
        uva__word_add(&p->hub->counts.late_calls, 1); /* not covered: it */
        return;                                       /* not covered: it */
    }
    if (n < 1)
        uva__word_or(&p->word, UVA__WORD_BAD);
    else
        uva__producer_note_request(&p->loop.state, n);
    if (!p->loop.visiting)
        uva__hub_post(p->hub, &p->node);
}

static void producer_request(struct ArrowAsyncProducer *self, int64_t n)
{
    struct uva__producer *p = producer_of(self);

    if (!uva__hub_is_alive(p->hub))
        return;
    if (uva__hub_in_turn(p->hub)) {
        request_in_turn(p, n);
        return;
    }
    if (uva__demand_ask(&p->word, n) & UVA__WORD_DEAD)
        uva__word_add(&p->hub->counts.late_calls, 1);
    else
        uva__hub_post(p->hub, &p->node);
}

static void producer_cancel(struct ArrowAsyncProducer *self)
{
    struct uva__producer *p = producer_of(self);
    uint64_t before;

    if (!uva__hub_is_alive(p->hub))
        return;
    before = uva__demand_cancel(&p->word);
    if (before & UVA__WORD_DEAD)
        uva__word_add(&p->hub->counts.late_calls, 1);
    else if (!(before & UVA__WORD_CANCEL))
        uva__hub_post(p->hub, &p->node);
}

/* ---- making one --------------------------------------------------------- */

static bool producer_visit(struct uva__node *node);
static void producer_rest(struct uva__node *node);

static const struct uva__node_ops producer_node_ops = {producer_visit,
                                                       producer_rest};

struct uva__producer *uva__producer_new(struct uva__feed *feed)
{
    struct uva__producer *p = uva__stock_take_producer(feed->hub);

    if (p == NULL)
        return NULL;
    memset(&p->loop, 0, sizeof(p->loop));
    p->abi.device_type = feed->device_type;
    p->abi.request = producer_request;
    p->abi.cancel = producer_cancel;
    p->loop.asleep = true;
    uva__word_store(&p->word, 0);
    uva__node_init(&p->node, &producer_node_ops, 1);
    p->hub = uva__hub_acquire(feed->hub);
    p->feed = feed;
    p->maps = NULL;
    p->limit = -1;
    p->dear = feed->dear;
    p->lazy = feed->lazy;
    feed->producer = p;
    return p;
}

int uva__producer_map(struct uva__producer *p, const struct uva_map *how)
{
    struct uva__mapping *m = uva__memory_new(&p->hub->allocator, sizeof(*m));
    struct uva__mapping **end = &p->maps;

    if (m == NULL) {
        if (how->free_ctx != NULL)
            how->free_ctx(how->ctx);
        return ENOMEM;
    }
    m->how = *how;
    while (*end != NULL)
        end = &(*end)->next;
    *end = m;
    p->dear = p->dear || !how->cheap;
    p->lazy = true;
    return 0;
}

/* ---- the end ------------------------------------------------------------ */

static void producer_free_maps(struct uva__producer *p)
{
    struct uva__mapping *m = p->maps, *next;

    for (; m != NULL; m = next) {
        next = m->next;
        uva_schema_release(&m->schema);
        if (m->how.free_ctx != NULL)
            m->how.free_ctx(m->how.ctx);
        uva__memory_free(&p->hub->allocator, m, sizeof(*m));
    }
    p->maps = NULL;
}

/* All is over, on whatever thread saw to the last of it. */
static void producer_rest(struct uva__node *node)
{
    struct uva__producer *p =
        uva__container_of(node, struct uva__producer, node);
    struct uva__hub *hub = p->hub;

    /* not covered: a stranger was about to post it when it came to rest */
    if (uva__word_or(&p->word, UVA__WORD_RESTS | UVA__WORD_DEAD) &
        UVA__WORD_RESTS)
        return;
    producer_free_maps(p);
    uva__failure_fini(&p->loop.urgent, &hub->allocator);
    uva__memory_free(&hub->allocator, p->loop.metadata, p->loop.metadata_size);
    p->feed->ops->leave(p->feed);
    p->feed = NULL;
    p->abi.additional_metadata = p->abi.private_data = NULL;
    uva__stock_put_producer(hub, p);
    uva__hub_release(hub);
}

void uva__producer_acquire(struct uva__producer *p)
{
    uva__node_acquire(&p->node);
}

void uva__producer_release(struct uva__producer *p)
{
    uva__node_release(&p->node);
}

/* ---- begin -------------------------------------------------------------- */

static void drain_over(struct uva__timer *timer)
{
    uva__producer_hurry(
        uva__container_of(timer, struct uva__producer, loop.drain));
}

void uva__producer_begin_driving(struct uva__producer *p,
                                 struct ArrowAsyncDeviceStreamHandler *handler,
                                 const struct uva__producer_hooks *hooks)
{
    assert(p->loop.asleep);
    uva__producer_init(&p->loop.state, p->limit);
    if (!hooks->relayed)
        handler = uva__checked_hop(p->hub, p->feed->ops->name, handler);
    p->loop.handler = handler;
    p->loop.hooks = *hooks;
    p->loop.drain.fire = drain_over;
    p->loop.asleep = false;
    uva__word_store(&p->word, 0); /* nobody could mean this stream so far */
    handler->producer = &p->abi;
    p->feed->ops->start(p->feed);
    uva__producer_wake(p);
}

void uva__producer_wake(struct uva__producer *p)
{
    uva__hub_post(p->hub, &p->node);
}

/* ---- tasks -------------------------------------------------------------- */

struct uva__task *uva__producer_take_task(struct uva__producer *p)
{
    struct uva__task *task = uva__stock_take_task(p->hub);

    if (task != NULL)
        task->producer = p;
    return task;
}

void uva__producer_drop_task(struct uva__producer *p, struct uva__task *task)
{
    uva__task_discard(task);
    if (task->is_lazy)
        uva__offered_drop(p, task);
    else
        uva__offered_put(p, task);
}

void uva__producer_extraction_failed(struct uva__task *task, int code,
                                     const struct uva_error *error)
{
    struct uva__producer *p = task->producer;
    struct uva_error *kept = NULL;

    uva__producer_acquire(p);
    if (error->message[0] != '\0')
        kept = uva__memory_new(&p->hub->allocator, sizeof(*kept));
    if (kept != NULL)
        *kept = *error;
    task->is_lazy = false;
    task->failed.code = code;
    task->failed.error = kept;
    uva__task_settle(task, UVA__TASK_FAILED);
    uva__demand_note_failed(&p->word); /* then the loop is told */
    uva__producer_wake(p);
    uva__producer_release(p);
}

/* ---- the dispatcher ----------------------------------------------------- */

/* Takes in what other threads have asked for since, and what is no credit. */
static void absorb_word(struct uva__producer *p)
{
    struct uva__producer_state *state = &p->loop.state;
    const uint64_t word = uva__demand_take(&p->word);

    if (word & UVA__WORD_UNBOUNDED)
        uva__producer_note_request(state, UVA__UNBOUNDED);
    if (word >> UVA__WORD_SHIFT)
        uva__producer_note_request(state, (int64_t)(word >> UVA__WORD_SHIFT));
    if ((word & UVA__WORD_BAD) && p->loop.urgent.code == 0 &&
        !state->cancelled && !state->end_told) {
        uva__producer_note_request(state, 0);
        uva__failure_say(&p->loop.urgent, &p->hub->allocator, EINVAL,
                         "request: n must be positive (AP-08)");
    }
    if (word & UVA__WORD_CANCEL)
        uva__producer_note_cancel(state);
}

/* Slots that are over, from the oldest on; all of them where one failed, or
 * where each is waited for. */
static void absorb_tasks(struct uva__producer *p)
{
    const bool failed = uva__demand_take_failed(&p->word);

    if (failed || p->loop.watching)
        uva__offered_reap_all(p);
    else
        uva__offered_reap(p);
    if (p->loop.watching)
        p->loop.state.unsettled = uva__offered_unsettled(p);
}

static void absorb_feed(struct uva__producer *p)
{
    struct uva__producer_state *state = &p->loop.state;
    struct uva__feed *feed = p->feed;

    if (uva__producer_is_sated(state)) {
        uva__moves_stop_feed(p);
        return;
    }
    feed->ops->pull(feed, state->demand);
    state->schema_known = feed->schema_known;
    state->ready = feed->ready;
    state->exhausted = feed->ended;
    state->source_error = feed->failure.code;
}

/* Until there is nothing to do, or a quantum is spent. Gives the batches told.
 */
static int64_t producer_dispatch(struct uva__producer *p)
{
    const int64_t before = p->loop.told;
    int32_t left = p->hub->loop.budget - p->hub->loop.spent;
    enum uva__producer_move move;

    if (left > p->hub->loop.quantum)
        left = p->hub->loop.quantum;
    for (;;) {
        if (uva__word_peek(&p->word) != 0)
            absorb_word(p);
        move = uva__producer_next(&p->loop.state);
        if (move == UVA__MOVE_WAIT ||
            (move == UVA__MOVE_TELL_TASK && left-- <= 0))
            break;
        uva__moves_make(p, move);
    }
    p->hub->loop.spent += (int32_t)(p->loop.told - before);
    return p->loop.told - before;
}

/* The handler is gone; what it holds may be extracted yet. */
static void producer_linger(struct uva__producer *p)
{
    uva__offered_reap_all(p);
    if (p->loop.out_count > 0) {
        if (!p->loop.lingering)
            uva__stock_linger(p->hub, p);
        p->loop.lingering = true;
        uva__offered_watch(p);
        uva__offered_reap_all(p);
    }
    if (p->loop.out_count > 0)
        return;
    if (p->loop.lingering)
        uva__stock_unlinger(p->hub, p);
    p->loop.lingering = false;
    p->loop.asleep = true;
    uva__producer_release(p); /* the maker's count */
}

/* Fetches anew; a prompt feed on its next turn, so that nothing goes cold. */
static bool producer_fetch(struct uva__producer *p, int64_t told)
{
    if (told > 1)
        uva__stock_trim_tasks(p->hub);
    if (told > 0 && p->feed->prompt && p->loop.state.demand > 0 &&
        p->loop.state.ready == 0)
        return true;
    absorb_feed(p);
    return uva__producer_next(&p->loop.state) != UVA__MOVE_WAIT;
}

static bool producer_visit(struct uva__node *node)
{
    struct uva__producer *p =
        uva__container_of(node, struct uva__producer, node);
    bool more;

    if (p->loop.asleep)
        return false;
    p->loop.visiting = true;
    absorb_tasks(p);
    absorb_word(p);
    absorb_feed(p);
    more = producer_fetch(p, producer_dispatch(p));
    p->loop.visiting = false;
    if (p->loop.state.released)
        producer_linger(p);
    return more;
}

/* ---- what its owner may say --------------------------------------------- */

void uva__producer_abort(struct uva__producer *p, struct uva__failure *failure)
{
    const struct uva_allocator *allocator = &p->hub->allocator;

    if (p->loop.state.end_told) {
        uva__failure_fini(failure, allocator);
        uva__producer_hurry(p);
        return;
    }
    if (p->loop.urgent.code == 0) { /* not covered: a map has failed since */
        uva__failure_move(failure, &p->loop.urgent, allocator);
        uva__producer_note_urgent(&p->loop.state, p->loop.urgent.code);
    }
    uva__failure_fini(failure, allocator);
    uva__producer_wake(p);
}

void uva__producer_quit(struct uva__producer *p,
                        struct ArrowAsyncProducer *seen)
{
    struct uva__failure failure = {.code = ECANCELED};

    if (p->loop.state.schema_told || p->loop.state.in_call)
        seen->cancel(seen);
    else
        uva__producer_abort(p, &failure);
}

void uva__producer_hold(struct uva__producer *p, bool held)
{
    p->loop.state.held = held;
    if (!held)
        uva__producer_wake(p);
}

void uva__producer_refuse(struct uva__producer *p, int code)
{
    p->loop.state.refused = true;
    p->loop.refusal = code;
    uva__producer_wake(p);
}

void uva__producer_reclaim(struct uva__producer *p)
{
    uva__offered_reclaim(p);
    uva__producer_wake(p);
}

void uva__producer_hurry(struct uva__producer *p)
{
    p->loop.state.hurried = true;
    uva__producer_wake(p);
}

void uva__producer_let_go(struct uva__producer *p)
{
    uva__offered_watch(p);
    uva__offered_lapse(p); /* extracting is told ECANCELED from now on */
    p->loop.asleep = true;
    uva__producer_release(p);
}
