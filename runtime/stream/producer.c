/* SPDX-License-Identifier: Apache-2.0 */
/* Happy path:  begin -> feed started -> on_schema -> (request -> on_next_task)*
 *              -> on_next_task(NULL) -> release -> the last task settled: the
 *              memory goes into quarantine.
 *
 * What can fail:
 * - the feed fails: reported to the handler behind the batches before it;
 * - an extraction, a bad request, the owner: reported at once;
 * - no memory for a task: reported at once as ENOMEM.
 *
 * On cancel:   the feed is stopped, the handler released at the next boundary.
 *
 * Task slots are reused from the oldest on. One that stays unsettled for long
 * is set aside, so that it does not hold up those behind it; no other count of
 * tasks exists. */
#include "stream/producer.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "base/memory.h"
#include "base/error.h"
#include "arrow/structs.h"
#include "base/time_limits.h"
#include "stream/check_hop.h"
#include "stream/slots.h"
#include "uvarrow/arrow.h"

enum { HEAD_AGE_MAX = 64 };

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

/* Inside a turn the caller has the rules to itself, and the dispatcher asks
 * them afterwards. */
static void request_in_turn(struct uva__producer *p, int64_t n)
{
    if (p->loop.state.released) {
        uva__word_add(&p->hub->counts.late_calls, 1);
        return;
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

/* ---- what tasks call, from any thread ----------------------------------- */

static void producer_extraction_failed(struct uva__task *task, int code,
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
    uva__demand_note_failed(&p->word); /* before the wake-up */
    uva__producer_wake(p);
    uva__producer_release(p);
}

static const struct uva__task_owner producer_task_owner = {
    .failed = producer_extraction_failed,
    .unwatched = uva__producer_release,
};

/* ---- making one --------------------------------------------------------- */

static bool producer_visit(struct uva__node *node);
static void producer_rest(struct uva__node *node);

static const struct uva__node_ops producer_node_ops = {producer_visit,
                                                       producer_rest};

struct uva__producer *uva__producer_new(struct uva__feed *feed)
{
    struct uva__producer *p;

    if (uva__checked_ensure(feed->hub) != 0 ||
        uva__discard_ensure(feed->hub) != 0)
        return NULL;
    p = uva__stock_take_producer(feed->hub);
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
    p->task_owner = &producer_task_owner;
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

/* The last reference is gone. Runs on the thread that dropped it. */
static void producer_rest(struct uva__node *node)
{
    struct uva__producer *p =
        uva__container_of(node, struct uva__producer, node);
    struct uva__hub *hub = p->hub;

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
    uva__word_store(&p->word, 0); /* requests so far meant an older stream */
    handler->producer = &p->abi;
    p->feed->ops->start(p->feed);
    uva__producer_wake(p);
}

void uva__producer_wake(struct uva__producer *p)
{
    uva__hub_post(p->hub, &p->node);
}

/* ---- outstanding tasks -------------------------------------------------- */

/* Puts a slot that is over back into the pool. */
static void producer_put_task(struct uva__producer *p, struct uva__task *task)
{
    uva__task_clear(task, &p->hub->allocator);
    uva__stock_put_task(p->hub, task);
}

/* The loop thread alone writes this counter: no read-modify-write is needed. */
static void producer_count_held(struct uva__producer *p, int change)
{
    struct uva__word *held = &p->hub->counts.tasks_held;

    uva__word_store(held, uva__word_peek(held) + (uint64_t)(int64_t)change);
}

/* Takes a slot back that is over. If the extraction failed, the reason becomes
 * the producer's error. */
static void producer_end_task(struct uva__producer *p, struct uva__task *task)
{
    if (uva__task_state(task) == UVA__TASK_FAILED && p->loop.urgent.code == 0) {
        uva__failure_set(&p->loop.urgent, &p->hub->allocator, task->failed.code,
                         task->failed.error, NULL);
        uva__producer_note_urgent(&p->loop.state, p->loop.urgent.code);
    }
    p->loop.out_count--;
    p->loop.dropped_count -= task->dropped;
    task->dropped = false;
    producer_count_held(p, -1);
    producer_put_task(p, task);
}

static struct uva__task *task_of(struct uva__link *link)
{
    return uva__container_of(link, struct uva__task, link);
}

static void producer_reap_aside(struct uva__producer *p)
{
    struct uva__list still = {0};
    struct uva__link *link;

    while ((link = uva__list_pop(&p->loop.aside)) != NULL)
        if (uva__task_is_over(task_of(link)))
            producer_end_task(p, task_of(link));
        else
            uva__list_push(&still, link);
    p->loop.aside = still;
}

/* Takes slots back that are over, from the oldest on. */
static void producer_reap(struct uva__producer *p)
{
    struct uva__link *head;

    while ((head = p->loop.out.head) != NULL) {
        if (uva__task_is_over(task_of(head))) {
            (void)uva__list_pop(&p->loop.out);
            producer_end_task(p, task_of(head));
        } else if (p->loop.head_age > HEAD_AGE_MAX) {
            (void)uva__list_pop(&p->loop.out);
            uva__list_push(&p->loop.aside, head);
        } else {
            return;
        }
        p->loop.head_age = 0;
    }
}

/* The settling thread will post the producer, unless the task is over. */
static void producer_watch_task(struct uva__producer *p, struct uva__task *task)
{
    uva__producer_acquire(p);
    if (!uva__task_watch(task))
        uva__producer_release(p);
}

/* Keeps a task that was offered, or is being discarded, until it is over. */
static void producer_keep_task(struct uva__producer *p, struct uva__task *task)
{
    uva__list_push(&p->loop.out, &task->link);
    p->loop.out_count++;
    producer_count_held(p, 1);
    assert(!p->loop.watching); /* tasks are watched only after the last one */
    if (p->loop.head_age++ <= HEAD_AGE_MAX)
        return;
    producer_reap(p);
    producer_reap_aside(p);
}

/* Keeps a task that was never offered while its data is discarded. */
static void producer_keep_dropped(struct uva__producer *p,
                                  struct uva__task *task)
{
    task->dropped = true;
    p->loop.dropped_count++;
    producer_keep_task(p, task);
}

/* How many tasks that consumers hold may still fail. */
static int64_t producer_unsettled(const struct uva__producer *p)
{
    return p->lazy ? p->loop.out_count - p->loop.dropped_count : 0;
}

/* From now on the thread that settles a task posts the producer. */
static void producer_watch_tasks(struct uva__producer *p)
{
    struct uva__link *link;

    if (p->loop.watching)
        return;
    p->loop.watching = true;
    uva__list_append(&p->loop.out, &p->loop.aside);
    for (link = p->loop.out.head; link != NULL; link = link->next)
        producer_watch_task(p, task_of(link));
}

/* Takes all slots back that are over, wherever they stand. */
static void producer_reap_all(struct uva__producer *p)
{
    uva__list_append(&p->loop.aside, &p->loop.out);
    producer_reap_aside(p);
}

/* Revokes unclaimed tasks (G-16); their slots are used again. */
static void producer_reclaim_tasks(struct uva__producer *p)
{
    struct uva__link *link;

    for (link = p->loop.out.head; link != NULL; link = link->next)
        uva__task_reclaim(task_of(link));
    for (link = p->loop.aside.head; link != NULL; link = link->next)
        uva__task_reclaim(task_of(link));
}

/* Revokes unclaimed tasks for good, as the loop detaches. */
static void producer_lapse_tasks(struct uva__producer *p)
{
    struct uva__link *link, *next;

    uva__list_append(&p->loop.out, &p->loop.aside);
    for (link = p->loop.out.head; link != NULL; link = next) {
        next = link->next; /* the task may be gone after the next call */
        uva__task_lapse(task_of(link));
    }
}
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
        producer_keep_dropped(p, task);
    else
        producer_put_task(p, task);
}

/* ---- moves -------------------------------------------------------------- */

/* Passes the schema through the maps. Each map keeps its input schema. */
static int producer_map_schema(struct uva__producer *p,
                               struct ArrowSchema *schema)
{
    struct uva__mapping *m;
    struct ArrowSchema next;
    struct uva_error error = {0};
    int code = 0;

    for (m = p->maps; m != NULL && code == 0; m = m->next) {
        memset(&next, 0, sizeof(next));
        code = uva__structs_copy_schema(&p->hub->allocator, schema, &m->schema);
        if (code != 0 || m->how.schema == NULL)
            continue;
        code = uva__status_positive(
            m->how.schema(m->how.ctx, &m->schema, &next, &error));
        if (code == 0 && uva__structs_check_schema(&next, &error) != 0) {
            code = uva_error_set(&error, EPROTO,
                                 "a map said success and gave no good schema");
            uva_schema_release(&next);
        }
        if (code != 0)
            break;
        uva_schema_release(schema);
        uva_schema_move(&next, schema);
    }
    if (code != 0)
        uva__failure_set(&p->loop.urgent, &p->hub->allocator, code, &error,
                         NULL);
    return code;
}

static void producer_describe(struct uva__producer *p)
{
    p->abi.device_type = p->feed->device_type;
    p->abi.additional_metadata =
        p->loop.metadata != NULL ? p->loop.metadata : p->feed->metadata;
    p->abi.private_data = /* where the printed layout has the metadata */
        (void *)(uintptr_t)p->abi.additional_metadata;
}

static int producer_move_schema(struct uva__producer *p)
{
    struct ArrowAsyncDeviceStreamHandler *handler = p->loop.handler;
    struct ArrowSchema schema;
    int code;

    uva_schema_move(&p->feed->schema, &schema);
    code = handler->on_schema(handler, &schema);
    uva_schema_release(&schema); /* LC-17 */
    return code;
}

static int producer_move_task(struct uva__producer *p)
{
    struct ArrowAsyncDeviceStreamHandler *handler = p->loop.handler;
    struct uva__task *task = p->feed->ops->take(p->feed);
    struct ArrowAsyncTask offered;
    int code;

    if (task == NULL) {
        uva__failure_set(&p->loop.urgent, &p->hub->allocator, ENOMEM, NULL,
                         NULL);
        uva__producer_note_urgent(&p->loop.state, ENOMEM);
        return 0;
    }
    uva__task_offer(task, &offered);
    code = handler->on_next_task(handler, &offered, task->metadata);
    p->loop.told++;
    if (code != 0)
        uva__task_reclaim(task); /* LC-18, LC-19, G-18 */
    if (uva__task_state(task) == UVA__TASK_SETTLED) {
        producer_put_task(p, task);
        return code;
    }
    producer_keep_task(p, task);
    if (uva__task_state(task) == UVA__TASK_FAILED)
        producer_reap_all(p); /* before any other callback (AT-08) */
    return code;
}

static void producer_move_error(struct uva__producer *p)
{
    struct ArrowAsyncDeviceStreamHandler *handler = p->loop.handler;
    const struct uva__failure *failure = uva__producer_failure(p);

    if (!p->loop.state.schema_told) /* fixed from then on (AP-20) */
        producer_describe(p);
    handler->on_error(handler, failure->code, uva__failure_message(failure),
                      uva__failure_metadata(failure));
}

/* Stops the feed, once: none of its batches is offered any more. */
static void producer_stop_feed(struct uva__producer *p)
{
    if (p->loop.stopped)
        return;
    p->loop.stopped = true;
    p->feed->ops->stop(p->feed);
    p->loop.state.ready = 0;
}

static void producer_move_release(struct uva__producer *p)
{
    struct ArrowAsyncDeviceStreamHandler *handler = p->loop.handler;
    struct uva__producer_hooks hooks = p->loop.hooks;

    p->loop.handler = NULL;
    uva__timer_stop(p->hub, &p->loop.drain);
    uva__word_or(&p->word, UVA__WORD_DEAD);
    if (hooks.releasing != NULL)
        hooks.releasing(hooks.ctx);
    handler->release(handler);
    p->loop.state.released = true;
    if (hooks.released != NULL)
        hooks.released(hooks.ctx);
}

/* The end was reported: the handler is released only after the tasks that may
 * still fail, or after a time limit (G-17). */
static void producer_drain(struct uva__producer *p)
{
    assert(!p->loop.state.hurried); /* set only after the end */
    if (producer_unsettled(p) > 0) {
        producer_watch_tasks(p);
        producer_reap_all(p);
        uva__timer_start(p->hub, &p->loop.drain, UVA__LIMIT_DRAIN_MS);
    }
    p->loop.state.unsettled = producer_unsettled(p);
    if (p->loop.state.unsettled > 0 && p->loop.hooks.ended != NULL)
        p->loop.hooks.ended(p->loop.hooks.ctx);
}

/* Makes `move`, which the rules have just decided. */
static void producer_move(struct uva__producer *p, enum uva__producer_move move)
{
    struct uva__producer_state *state = &p->loop.state;
    int code = 0;

    if (move != UVA__MOVE_TELL_TASK && uva__producer_is_sated(state))
        producer_stop_feed(p);
    if (move == UVA__MOVE_TELL_SCHEMA) {
        producer_describe(p);
        code = producer_map_schema(p, &p->feed->schema);
        if (code != 0) {
            uva__producer_note_urgent(state, p->loop.urgent.code);
            return;
        }
    }
    uva__producer_begin(state, move);
    switch (move) {
    case UVA__MOVE_TELL_SCHEMA:
        code = producer_move_schema(p);
        break;
    case UVA__MOVE_TELL_TASK:
        code = producer_move_task(p);
        break;
    case UVA__MOVE_TELL_END:
        (void)p->loop.handler->on_next_task(p->loop.handler, NULL, NULL);
        break;
    case UVA__MOVE_TELL_ERROR:
        producer_move_error(p);
        break;
    case UVA__MOVE_RELEASE:
        producer_move_release(p);
        break;
    case UVA__MOVE_WAIT:
        assert(!"not a move");
    }
    if (code != 0)
        p->loop.refusal = code;
    uva__producer_end(state, move, code);
    if (move == UVA__MOVE_TELL_END)
        producer_drain(p);
}
/* ---- the dispatcher ----------------------------------------------------- */

/* Takes over the requests of other threads, and the flags beside them. */
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

/* Takes back slots that are over, from the oldest on; searches all of them if
 * one failed, or if the producer waits for each. */
static void absorb_tasks(struct uva__producer *p)
{
    const bool failed = uva__demand_take_failed(&p->word);

    if (failed || p->loop.watching)
        producer_reap_all(p);
    else
        producer_reap(p);
    if (p->loop.watching)
        p->loop.state.unsettled = producer_unsettled(p);
}

static void absorb_feed(struct uva__producer *p)
{
    struct uva__producer_state *state = &p->loop.state;
    struct uva__feed *feed = p->feed;

    if (uva__producer_is_sated(state)) {
        producer_stop_feed(p);
        return;
    }
    feed->ops->pull(feed, state->demand);
    state->schema_known = feed->schema_known;
    state->ready = feed->ready;
    state->exhausted = feed->ended;
    state->source_error = feed->failure.code;
}

/* Makes moves until none is left, or the quantum is spent. Returns how many
 * batches it offered. */
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
        producer_move(p, move);
    }
    p->hub->loop.spent += (int32_t)(p->loop.told - before);
    return p->loop.told - before;
}

/* The loop detaches while others may still extract: the last of them ends the
 * producer. */
static void producer_detach(struct uva__detach_hook *hook)
{
    struct uva__producer *p =
        uva__container_of(hook, struct uva__producer, loop.detach);

    producer_watch_tasks(p);
    producer_lapse_tasks(p); /* extraction fails with ECANCELED from now on */
    p->loop.asleep = true;
    uva__producer_release(p);
}

/* The handler is released, but outstanding tasks may still be extracted: the
 * producer lives until all of them are over. */
static void producer_linger(struct uva__producer *p)
{
    producer_reap_all(p);
    if (p->loop.out_count > 0) {
        p->loop.detach.run = producer_detach;
        if (!p->loop.lingering)
            uva__hub_add_detach_hook(p->hub, &p->loop.detach);
        p->loop.lingering = true;
        producer_watch_tasks(p);
        producer_reap_all(p);
    }
    if (p->loop.out_count > 0)
        return;
    if (p->loop.lingering)
        uva__hub_remove_detach_hook(p->hub, &p->loop.detach);
    p->loop.lingering = false;
    p->loop.asleep = true;
    uva__producer_release(p); /* the maker's reference */
}

/* Fetches more batches. A prompt feed makes them in the next turn instead, so
 * that they are still in the cache when they are offered. */
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

/* ---- what its owner calls ----------------------------------------------- */

void uva__producer_abort(struct uva__producer *p, struct uva__failure *failure)
{
    const struct uva_allocator *allocator = &p->hub->allocator;

    if (p->loop.state.end_told) {
        uva__failure_fini(failure, allocator);
        uva__producer_hurry(p);
        return;
    }
    if (p->loop.urgent.code == 0) {
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
    producer_reclaim_tasks(p);
    uva__producer_wake(p);
}

void uva__producer_hurry(struct uva__producer *p)
{
    p->loop.state.hurried = true;
    uva__producer_wake(p);
}
