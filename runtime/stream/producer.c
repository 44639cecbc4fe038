/* SPDX-License-Identifier: Apache-2.0 */
/* Drives a handler, one move at a time.
 *
 * Happy path:  begin -> source started -> on_schema -> (request ->
 *              on_next_task)* -> on_next_task(NULL) -> release -> the last task
 *              settled: the memory goes into quarantine.
 *
 * Failures:
 * - the source fails: reported to the handler after the batches before it;
 * - an extraction, a bad request, the owner: reported at once;
 * - no memory for a task: reported at once as ENOMEM.
 *
 * On cancel:   the source is stopped, the handler released at the next
 *              boundary. */
#include "stream/producer.h"

#include <assert.h>
#include <errno.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/sum.h"
#include "base/time_limits.h"
#include "observe/observe.h"
#include "stream/check_hop.h"
#include "stream/deadlines.h"
#include "stream/maps.h"
#include "stream/pausing.h"
#include "stream/runtime_devices.h"
#include "stream/slots.h"
#include "uvarrow/arrow.h"

_Static_assert(offsetof(struct uva__producer, abi.additional_metadata) == 24,
               "where the released layout has it");
_Static_assert(offsetof(struct uva__producer, abi.private_data) == 32,
               "where the printed layout has additional_metadata");
_Static_assert(offsetof(struct uva__producer, printed_private_data) == 40,
               "where the printed layout has private_data");

/* ---- calls of the handler, from any thread ------------------------------ */

static struct uva__producer *producer_of(struct ArrowAsyncProducer *abi)
{
    return uva__container_of(abi, struct uva__producer, abi);
}

/* Takes over a request. */
static void producer_note_request(struct uva__producer *p, int64_t n)
{
    struct uva__counter *all = &p->meter->loop.requested;

    uva__counter_set(all, uva__sum(uva__counter_get(all), n));
    uva__producer_state_note_request(&p->loop->state, n);
}

/* Inside a turn only the caller uses the rules; the dispatcher acts on them
 * afterwards. For inspectors it reports the request then, too, as they are
 * never called inside a call of the handler: it goes the way of other threads.
 */
static void request_in_turn(struct uva__producer *p, int64_t n)
{
    if (uva__atomic64_peek(&p->demand) & UVA__DEMAND_DEAD) {
        uva__atomic64_add(&p->rt->stats.late_calls, 1);
        return;
    }
    if (n < 1)
        uva__atomic64_or(&p->demand, UVA__DEMAND_BAD);
    else
        producer_note_request(p, n);
    if (!p->loop->running)
        uva__rt_wake(p->rt, &p->wakeup);
    if (p->observed != 0) /* last: so it costs the other calls no time */
        uva__observe_step(p, UVA__STEP_REQUEST, n);
}

static void producer_request(struct ArrowAsyncProducer *self, int64_t n)
{
    struct uva__producer *p = producer_of(self);

    if (!uva__rt_is_alive(p->rt))
        return;
    if (uva__rt_in_turn(p->rt) && !(p->observed & UVA__OBSERVED_INSPECT)) {
        request_in_turn(p, n);
        return;
    }
    if (uva__demand_request(&p->demand, n) & UVA__DEMAND_DEAD)
        uva__atomic64_add(&p->rt->stats.late_calls, 1);
    else
        uva__rt_wake(p->rt, &p->wakeup);
}

static void producer_cancel(struct ArrowAsyncProducer *self)
{
    struct uva__producer *p = producer_of(self);
    uint64_t before;

    if (!uva__rt_is_alive(p->rt))
        return;
    before = uva__demand_cancel(&p->demand);
    if (before & UVA__DEMAND_DEAD)
        uva__atomic64_add(&p->rt->stats.late_calls, 1);
    else if (!(before & UVA__DEMAND_CANCEL))
        uva__rt_wake(p->rt, &p->wakeup);
}

/* ---- making one --------------------------------------------------------- */

static bool producer_on_wakeup(struct uva__wakeup *wakeup);
static void producer_retire(struct uva__wakeup *wakeup);

static const struct uva__wakeup_ops producer_wakeup_ops = {producer_on_wakeup,
                                                           producer_retire};

struct uva__producer *uva__producer_new(struct uva__source *source)
{
    struct uva__producer *p;

    source->meter = uva__label_add_meter(source->label, source->name, NULL);
    if (source->meter == NULL || uva__check_hop_ensure(source->rt) != 0 ||
        uva__discard_ensure(source->rt) != 0 ||
        uva__share_open(&source->share, source->rt) != 0)
        return NULL;
    p = uva__slots_take_producer(source->rt);
    if (p == NULL)
        return NULL;
    p->abi.device_type = source->device_type;
    p->abi.request = producer_request;
    p->abi.cancel = producer_cancel;
    p->asleep = true;
    uva__atomic64_store(&p->demand, 0);
    p->wakeup.ops = &producer_wakeup_ops;
    uva__wakeup_acquire(&p->wakeup); /* a late caller may hold one just now */
    p->rt = source->rt;              /* its source has a reference */
    uva__rt_hold(p->rt);
    p->source = source;
    p->maps = NULL;
    p->deadlines = NULL;
    p->loop->limit = -1;
    p->meter = source->meter;
    p->observed = source->rt->observed;
    p->loop->inspectors = NULL;
    p->output = NULL;
    uva__small_counter_set(&source->meter->sized,
                           source->sized ||
                               (p->observed & UVA__OBSERVED_MEASURE) != 0);
    p->expensive = source->extraction == UVA__EXTRACTION_EXPENSIVE;
    p->lazy = source->extraction != UVA__EXTRACTION_MOVES;
    source->producer = p;
    return p;
}

/* ---- the end ------------------------------------------------------------ */

/* No task uses the source and the maps any more: gives them up, though holders
 * may still refer to the producer. A handler on another thread may not have
 * seen its metadata by now, so the source's are kept. */
static void producer_end(struct uva__producer *p)
{
    struct uva__source *source = p->source;

    if (p->loop->metadata.block == NULL)
        uva__metadata_move(&source->metadata, &p->loop->metadata);
    p->source = NULL;
    uva__maps_free(p);
    if (p->deadlines != NULL)
        uva__deadlines_free(p->deadlines);
    p->deadlines = NULL;
    uva__observe_free(p);
    uva__outline_release(p->output);
    uva__meter_end(source->meter);
    uva__source_leave(source);
}

/* Puts the memory of the producer into quarantine, on the thread that dropped
 * the last reference; ends it first, if it has never begun, or if the loop has
 * detached. */
static void producer_retire(struct uva__wakeup *wakeup)
{
    struct uva__producer *p =
        uva__container_of(wakeup, struct uva__producer, wakeup);
    struct uva__rt *rt = p->rt;
    bool used;

    if (uva__atomic64_or(&p->demand, UVA__DEMAND_ASLEEP | UVA__DEMAND_DEAD) &
        UVA__DEMAND_ASLEEP)
        return;
    used = uva__rt_try_acquire(rt); /* the source may release the last one */
    if (p->source != NULL)
        producer_end(p);
    uva__failure_fini(&p->loop->urgent, &rt->allocator);
    uva__metadata_fini(&p->loop->metadata, &rt->allocator, NULL);
    p->abi.additional_metadata = p->abi.private_data = NULL;
    uva__slots_put_producer(rt, p);
    uva__rt_unhold(rt);
    if (used)
        uva__rt_release(rt);
}

void uva__producer_acquire(struct uva__producer *p)
{
    uva__wakeup_acquire(&p->wakeup);
}

void uva__producer_release(struct uva__producer *p)
{
    uva__wakeup_release(&p->wakeup);
}

/* ---- begin -------------------------------------------------------------- */

static void drain_over(struct uva__timer *timer)
{
    uva__producer_end_drain(
        uva__container_of(timer, struct uva__producer_loop, drain)->producer);
}

/* Whether its source wakes it as soon as there is work: then a run before that
 * would be in vain. */
static bool producer_is_woken(const struct uva__producer *p)
{
    return p->source->ops->direct && p->observed == 0 && p->deadlines == NULL;
}

void uva__producer_begin_driving(struct uva__producer *p,
                                 struct ArrowAsyncDeviceStreamHandler *handler,
                                 const struct uva__producer_hooks *hooks,
                                 void *ctx)
{
    static const struct uva__producer_hooks none = {0};
    struct ArrowAsyncDeviceStreamHandler *const unchecked = handler;

    assert(p->asleep);
    if (hooks == NULL)
        hooks = &none;
    uva__producer_state_init(&p->loop->state, p->loop->limit);
    if (!hooks->relayed)
        handler = uva__check_hop_handler(p->source->label, p->source->name,
                                         handler, false);
    p->loop->hooks = hooks;
    p->loop->hooks_ctx = ctx;
    p->loop->to_foreign = hooks->foreign && !hooks->relayed;
    p->loop->out.failure = &p->loop->urgent;
    p->loop->out.reuses_slots = hooks->reuses_slots && handler == unchecked;
    p->loop->takes = hooks->take != NULL && handler == unchecked &&
                     p->observed == 0 && !p->lazy;
    p->loop->handler = handler;
    p->loop->drain.fire = drain_over;
    p->asleep = false;
    uva__observe_begin(p);
    uva__atomic64_store(&p->demand,
                        0); /* requests so far meant an older stream */
    handler->producer = &p->abi;
    if (p->deadlines != NULL && !p->loop->ahead)
        uva__deadlines_begin(p->deadlines);
    p->source->started = true;
    if (p->source->ops->start != NULL)
        p->source->ops->start(p->source);
    if (!producer_is_woken(p))
        uva__producer_wake(p);
}

void uva__producer_begin_above(struct uva__producer *p,
                               struct ArrowAsyncDeviceStreamHandler *handler,
                               const struct uva__producer *below, bool ahead)
{
    p->priority = below->priority;
    p->loop->ahead = ahead || below->loop->ahead;
    uva__producer_begin_driving(p, handler, NULL, NULL);
}

void uva__producer_need(struct uva__producer *p)
{
    if (!p->loop->ahead || p->source->stopped)
        return;
    p->loop->ahead = false;
    if (p->deadlines != NULL)
        uva__deadlines_begin(p->deadlines);
    if (p->source->ops->need != NULL)
        p->source->ops->need(p->source);
}

void uva__producer_wake(struct uva__producer *p)
{
    uva__rt_wake(p->rt, &p->wakeup);
}

/* ---- outstanding tasks -------------------------------------------------- */

/* The error of an extraction that has failed goes before all others. */
static void producer_note_failed(struct uva__producer *p)
{
    if (p->loop->urgent.code != 0)
        uva__producer_state_note_urgent(&p->loop->state, p->loop->urgent.code);
}

static void producer_reap_all(struct uva__producer *p)
{
    uva__outstanding_reap_all(&p->loop->out);
    producer_note_failed(p);
}

/* Takes back all unclaimed tasks by `take_back`, and counts the foreign
 * handler's. Clauses: G-16. */
static int64_t producer_take_back(struct uva__producer *p,
                                  bool (*take_back)(struct uva__task *task))
{
    struct uva__atomic64 *revoked = &p->rt->stats.tasks_revoked;
    const int64_t count = uva__outstanding_take_back(&p->loop->out, take_back);

    uva__atomic64_store(revoked, uva__atomic64_peek(revoked) + (uint64_t)count);
    return count;
}

/* How many tasks that consumers hold may still fail. */
static int64_t producer_unsettled(const struct uva__producer *p)
{
    return p->lazy ? p->loop->out.count - p->loop->out.dropped : 0;
}

struct uva__task *uva__producer_take_task(struct uva__producer *p)
{
    struct uva__task *task = uva__slots_take_task(p->rt);

    if (task != NULL)
        task->producer = p;
    return task;
}

void uva__producer_drop_task(struct uva__producer *p, struct uva__task *task)
{
    uva__task_discard(task);
    if (task->is_lazy)
        uva__outstanding_keep_dropped(&p->loop->out, task);
    else
        uva__slots_put_task(p->rt, task, true);
}

/* ---- moves -------------------------------------------------------------- */

static void producer_describe(struct uva__producer *p)
{
    p->abi.device_type = p->source->device_type;
    p->abi.additional_metadata = p->loop->metadata.block != NULL
                                     ? p->loop->metadata.block
                                     : p->source->metadata.block;
    p->abi.private_data = /* where the printed layout has the metadata */
        (void *)(uintptr_t)p->abi.additional_metadata;
}

/* Makes the arguments of on_schema. False: it cannot be had, and the error goes
 * first. */
static bool producer_prepare_schema(struct uva__producer *p)
{
    int code;

    producer_describe(p);
    uva__rt_note_device(p->rt, uva__label_text(p->source->label),
                        p->abi.device_type);
    code = uva__maps_open(p, &p->source->schema);
    if (code != 0)
        uva__producer_state_note_urgent(&p->loop->state, p->loop->urgent.code);
    return code == 0;
}

static int producer_move_schema(struct uva__producer *p)
{
    struct ArrowAsyncDeviceStreamHandler *handler = p->loop->handler;
    struct ArrowSchema schema;
    int code;

    uva_schema_move(&p->source->schema, &schema);
    code = handler->on_schema(handler, &schema);
    uva_schema_release(&schema); /* if it was left. Clauses: LC-17. */
    return code;
}

/* Counts a batch that is about to be offered. Rows and bytes of a batch that is
 * made at its extraction are counted then, and its slot has no rows. */
static void producer_count_task(struct uva__producer *p,
                                const struct uva__task *task)
{
    struct uva__meter_loop *meter = &p->meter->loop;

    uva__counter_add(&meter->batches, 1);
    uva__counter_add(&meter->bytes, task->is_lazy ? 0 : task->info.bytes);
    uva__counter_add(&meter->rows, task->array.array.length);
}

static int producer_offer(struct uva__producer *p, struct uva__task *task)
{
    struct ArrowAsyncDeviceStreamHandler *handler = p->loop->handler;
    struct ArrowAsyncTask offered;
    int code;

    if (p->observed != 0)
        uva__observe_task(p, task);
    uva__task_offer(task, p->loop->to_foreign, &offered);
    code = handler->on_next_task(handler, &offered, task->info.metadata.block);
    if (p->observed != 0)
        uva__observe_offered(p);
    return code;
}

static inline int producer_move_task(struct uva__producer *p)
{
    struct uva__task *task = p->source->ops->take(p->source);
    int code;

    if (task == NULL) {
        uva__failure_set(&p->loop->urgent, &p->rt->allocator, ENOMEM, NULL,
                         NULL);
        uva__producer_state_note_urgent(&p->loop->state, ENOMEM);
        return 0;
    }
    producer_count_task(p, task);
    if (p->loop->takes && p->loop->hooks->take(p->loop->hooks_ctx, task)) {
        uva__slots_put_task(p->rt, task, false);
        return 0;
    }
    code = producer_offer(p, task);
    if (code != 0)
        (void)uva__task_revoke(task); /* Clauses: LC-18, LC-19, G-18. */
    if (uva__task_state(task) == UVA__TASK_DONE) {
        uva__slots_put_task(p->rt, task, true);
        return code;
    }
    uva__outstanding_keep(&p->loop->out, task);
    producer_note_failed(p);
    if (uva__task_state(task) == UVA__TASK_FAILED)
        producer_reap_all(p); /* before other callbacks. Clauses: AT-08. */
    return code;
}

static void producer_move_error(struct uva__producer *p)
{
    struct ArrowAsyncDeviceStreamHandler *handler = p->loop->handler;
    const struct uva__failure *failure = uva__producer_failure(p);
    const char *name = uva__label_whole(p->source->label);
    struct uva_error error;

    if (p->loop->state.phase == UVA__PHASE_OPENING) /* Clauses: AP-20. */
        producer_describe(p);
    (void)uva__failure_get(failure, &error);
    if (p->loop->hooks->foreign && name != NULL)
        uva__error_prefix(&error, name);
    handler->on_error(handler, failure->code, error.message,
                      uva__failure_metadata(failure));
}

/* Stops the source, once: its batches are not offered any more. */
static void producer_stop_source(struct uva__producer *p)
{
    if (!p->source->stopped) {
        p->source->stopped = true;
        p->source->ops->stop(p->source);
        p->loop->state.ready = 0;
    }
    p->loop->state.stopping = p->source->stopping != 0;
}

static void producer_move_release(struct uva__producer *p)
{
    struct ArrowAsyncDeviceStreamHandler *handler = p->loop->handler;
    const struct uva__producer_hooks *hooks = p->loop->hooks;
    void *ctx = p->loop->hooks_ctx;

    p->loop->handler = NULL;
    uva__timer_stop(p->rt, &p->loop->drain);
    if (p->deadlines != NULL)
        uva__deadlines_stop(p->deadlines);
    uva__atomic64_or(&p->demand, UVA__DEMAND_DEAD);
    if (hooks->releasing != NULL)
        hooks->releasing(ctx);
    handler->release(handler);
    if (hooks->released != NULL)
        hooks->released(ctx);
}

/* The end was reported: the handler is released only after the tasks that may
 * still fail, or after a time limit. Clauses: G-17. */
static void producer_drain(struct uva__producer *p)
{
    assert(!p->loop->state.drain_ended); /* set only after the end */
    if (producer_unsettled(p) > 0) {
        uva__outstanding_watch(&p->loop->out, &p->wakeup);
        producer_reap_all(p);
        uva__timer_start(p->rt, &p->loop->drain, UVA__LIMIT_DRAIN_MS);
    }
    p->loop->state.unsettled = producer_unsettled(p);
}

/* Stops a source that is not wanted any more. False: that takes time, and the
 * move has to wait. */
static bool producer_settle_source(struct uva__producer *p)
{
    if (uva__producer_state_is_sated(&p->loop->state))
        producer_stop_source(p);
    return !p->loop->state.stopping;
}

/* Makes way for a move other than to offer a task. False: it has to wait, or
 * another one goes first. */
static bool producer_prepare(struct uva__producer *p,
                             enum uva__producer_move move)
{
    if (!producer_settle_source(p))
        return false;
    if (move == UVA__MOVE_OFFER_SCHEMA && !producer_prepare_schema(p))
        return false;
    if (p->observed != 0)
        uva__observe_step(p, move, 1);
    return true;
}

/* Calls the handler. Returns its answer, where that counts. */
static inline int producer_call(struct uva__producer *p,
                                enum uva__producer_move move)
{
    struct ArrowAsyncDeviceStreamHandler *handler = p->loop->handler;

    switch (move) {
    case UVA__MOVE_OFFER_TASK:
        return producer_move_task(p);
    case UVA__MOVE_OFFER_SCHEMA:
        return producer_move_schema(p);
    case UVA__MOVE_OFFER_END:
        (void)handler->on_next_task(handler, NULL, NULL);
        return 0;
    case UVA__MOVE_OFFER_ERROR:
        producer_move_error(p);
        return 0;
    default:
        producer_move_release(p);
        return 0;
    }
}

/* Makes `move`, which the rules have just decided. */
static void producer_move(struct uva__producer *p, enum uva__producer_move move)
{
    struct uva__producer_state *state = &p->loop->state;
    int code;

    if (move != UVA__MOVE_OFFER_TASK && !producer_prepare(p, move))
        return;
    uva__producer_state_begin(state, move);
    code = producer_call(p, move);
    if (code != 0)
        p->loop->refusal = code;
    uva__producer_state_end(state, move, code);
    if (move == UVA__MOVE_OFFER_END)
        producer_drain(p);
}

/* ---- the dispatcher ----------------------------------------------------- */

/* Takes over the requests of other threads, and the flags beside them; searches
 * all tasks if an extraction failed. */
static void absorb_demand(struct uva__producer *p)
{
    struct uva__producer_state *state = &p->loop->state;
    const uint64_t word = uva__demand_take(&p->demand);

    if (p->observed != 0)
        uva__observe_demand(p, word);
    if (word & UVA__DEMAND_UNBOUNDED)
        producer_note_request(p, UVA__UNBOUNDED);
    if (word >> UVA__DEMAND_SHIFT)
        producer_note_request(p, (int64_t)(word >> UVA__DEMAND_SHIFT));
    if ((word & UVA__DEMAND_BAD) && p->loop->urgent.code == 0 &&
        state->phase < UVA__PHASE_ENDED) {
        uva__producer_state_note_request(state, 0);
        uva__failure_format(&p->loop->urgent, &p->rt->allocator, EINVAL,
                            "request: n must be positive (AP-08)");
    }
    if (word & UVA__DEMAND_CANCEL)
        uva__producer_state_note_cancel(state);
    if ((word & UVA__DEMAND_FAILED) && p->loop->urgent.code == 0)
        producer_reap_all(p); /* before the next batch. Clauses: AT-08. */
}

/* Takes back slots that are over, from the oldest on; searches every slot if
 * the handler's release waits for each. */
static void absorb_tasks(struct uva__producer *p)
{
    if (!p->loop->out.watched || p->loop->state.phase == UVA__PHASE_RELEASED) {
        uva__outstanding_reap(&p->loop->out);
        producer_note_failed(p);
        return;
    }
    producer_reap_all(p);
    p->loop->state.unsettled = producer_unsettled(p);
}

/* Takes over the state of the consumer's word. Between this and the call of
 * on_batch no code of the user runs but its maps and inspectors. */
static void absorb_pausing(struct uva__producer *p)
{
    const bool on = uva__pausing_is_on(p->loop->pausing);

    if (on == (p->loop->state.paused == UVA__PAUSED_BATCHES))
        return;
    p->loop->state.paused = on ? UVA__PAUSED_BATCHES : UVA__PAUSED_NOT;
    uva__small_counter_set(&p->meter->loop.paused, on);
}

static void absorb_source(struct uva__producer *p)
{
    struct uva__producer_state *state = &p->loop->state;
    struct uva__source *source = p->source;

    if (uva__producer_state_is_sated(state)) {
        producer_stop_source(p);
        return;
    }
    if (source->ops->pull != NULL)
        source->ops->pull(source, state->demand);
    state->schema_known = source->schema_known;
    state->ready = source->ready;
    state->exhausted = source->ended;
    state->source_error = source->failure.code;
}

/* Makes moves until no move remains, or the quantum is spent; between two turns
 * it only offers tasks. Returns how many it offered. */
static int64_t producer_dispatch(struct uva__producer *p)
{
    const bool in_turn = uva__rt_in_turn(p->rt);
    const int64_t before = uva__producer_offered(p);
    int32_t left = p->rt->loop.budget - p->rt->loop.spent;
    enum uva__producer_move move;
    int64_t offered;

    if (left > p->rt->loop.quantum)
        left = p->rt->loop.quantum;
    for (;;) {
        if (uva__atomic64_peek(&p->demand) != 0) {
            if (!in_turn)
                break;
            absorb_demand(p);
        }
        if (p->loop->pausing != NULL)
            absorb_pausing(p);
        move = uva__producer_state_next(&p->loop->state);
        if (move == UVA__MOVE_OFFER_TASK ? left-- <= 0
                                         : move == UVA__MOVE_WAIT || !in_turn)
            break;
        producer_move(p, move);
    }
    offered = uva__producer_offered(p) - before;
    p->rt->loop.spent += (int32_t)offered;
    return offered;
}

static struct uva__producer *producer_at(struct uva__hold_up *hold_up)
{
    return uva__container_of(hold_up, struct uva__producer_loop, hold_up)
        ->producer;
}

/* Extraction fails with ECANCELED from now on. The close waits for the
 * extractions and discards that are running. */
static void producer_close(struct uva__hold_up *hold_up)
{
    struct uva__producer *p = producer_at(hold_up);

    p->loop->revoked = producer_take_back(p, uva__task_orphan);
    if (p->loop->revoked > 0)
        uva__rt_log(p->rt, UVA_LOG_WARN, uva__label_text(p->source->label),
                    NULL,
                    "%lld batches are lost: the runtime has closed before the "
                    "handler extracted them",
                    (long long)p->loop->revoked);
    uva__producer_wake(p);
}

/* The last call of its hooks, which may release the last other reference. */
static void producer_emptied(struct uva__producer *p)
{
    const struct uva__producer_hooks *hooks = p->loop->hooks;

    if (hooks->emptied != NULL)
        hooks->emptied(p->loop->hooks_ctx, p->loop->revoked);
}

/* The close has waited long enough: the last extraction or discard that is
 * running ends the producer. */
static void producer_detach(struct uva__hold_up *hold_up)
{
    struct uva__producer *p = producer_at(hold_up);

    p->asleep = true;
    producer_emptied(p);
    uva__producer_release(p);
}

static const struct uva__hold_up_ops hold_up_ops = {producer_close,
                                                    producer_detach};

/* The handler is released, but outstanding tasks may still be extracted: the
 * producer lives until each is over, or revoked by a close. */
static void producer_linger(struct uva__producer *p)
{
    struct uva__outstanding *out = &p->loop->out;

    uva__outstanding_reap_after(out);
    if (out->count > 0) {
        uva__rt_hold_up(p->rt, &p->loop->hold_up, &hold_up_ops);
        uva__outstanding_watch(out, &p->wakeup);
        uva__outstanding_reap(out); /* a task that was not watched in time */
    }
    if (out->count > 0)
        return;
    uva__rt_drop_hold_up(p->rt, &p->loop->hold_up);
    p->asleep = true;
    producer_end(p);
    uva__rt_drain_on(p->rt);
    producer_emptied(p);
    uva__producer_release(p); /* the maker's reference */
}

/* Fetches more batches. A source that pulls inline makes them in the next turn
 * instead, so that they are still in the cache when they are offered. */
static bool producer_fetch(struct uva__producer *p, int64_t offered)
{
    uva__slots_trim_tasks(p->rt);
    if (offered > 0 && p->source->ops->pulls_inline &&
        p->loop->state.demand > 0 && p->loop->state.ready == 0)
        return true;
    absorb_source(p);
    return uva__producer_state_next(&p->loop->state) != UVA__MOVE_WAIT;
}

/* Returns whether the producer has to run again before a limit passes. */
static bool producer_check_deadlines(struct uva__producer *p)
{
    struct uva__failure failure = {0};
    const bool more = uva__deadlines_check(p->deadlines, &failure);

    if (failure.code != 0)
        uva__producer_abort(p, &failure);
    return more;
}

static bool producer_on_wakeup(struct uva__wakeup *wakeup)
{
    struct uva__producer *p =
        uva__container_of(wakeup, struct uva__producer, wakeup);
    bool more;

    if (p->asleep)
        return false;
    p->loop->running = true;
    if (p->observed & UVA__OBSERVED_MEASURE)
        uva__observe_run_begin(p);
    absorb_tasks(p);
    absorb_demand(p);
    absorb_source(p);
    more = producer_fetch(p, producer_dispatch(p));
    if (p->deadlines != NULL)
        more = producer_check_deadlines(p) || more;
    p->loop->running = false;
    if (p->observed & UVA__OBSERVED_MEASURE)
        uva__observe_run_end(p);
    if (p->loop->state.phase == UVA__PHASE_RELEASED)
        producer_linger(p);
    return more;
}

/* Its quantum and the turn's budget apply as in a queued run, and the rest goes
 * to the end of the queue, after the other streams. The reference is for the
 * wake-up: the run may drop the last other reference. */
void uva__producer_run(struct uva__producer *p)
{
    assert(uva__rt_in_turn(p->rt) && !p->loop->running);
    if (p->wakeup.queued)
        return;
    uva__producer_acquire(p);
    if (producer_on_wakeup(&p->wakeup))
        uva__producer_wake(p);
    uva__producer_release(p);
}

/* ---- between two turns -------------------------------------------------- */

bool uva__producer_is_direct(const struct uva__producer *p)
{
    return p->rt->loop.turned && p->observed == 0 && p->deadlines == NULL &&
           !p->lazy && p->source->ops->direct;
}

/* As a run, but only offers batches, within the rest of the budget of the last
 * turn. All other moves, and the stop of the source, are left to a turn. */
void uva__producer_request_direct(struct uva__producer *p, int64_t n)
{
    struct uva__producer_state *state = &p->loop->state;

    assert(!uva__rt_in_turn(p->rt) && !p->loop->running);
    if (n > 0)
        producer_note_request(p, n);
    p->loop->running = true;
    do
        if (!uva__producer_state_is_sated(state))
            absorb_source(p);
    while (producer_dispatch(p) > 0);
    uva__slots_trim_tasks(p->rt);
    p->loop->running = false;
    if (uva__producer_state_next(state) != UVA__MOVE_WAIT)
        uva__producer_wake(p);
}

/* ---- calls of its owner ------------------------------------------------- */

void uva__producer_abort(struct uva__producer *p, struct uva__failure *failure)
{
    const struct uva_allocator *allocator = &p->rt->allocator;

    if (p->loop->state.phase >= UVA__PHASE_ENDED) {
        uva__failure_fini(failure, allocator);
        uva__producer_end_drain(p);
        return;
    }
    if (p->loop->urgent.code == 0) {
        uva__failure_move(failure, &p->loop->urgent, allocator);
        uva__producer_state_note_urgent(&p->loop->state, p->loop->urgent.code);
    }
    uva__failure_fini(failure, allocator);
    uva__producer_wake(p);
}

void uva__producer_quit(struct uva__producer *p,
                        struct ArrowAsyncProducer *seen)
{
    const struct uva__producer_state *state = &p->loop->state;
    struct uva__failure failure = {.code = ECANCELED};

    if (state->phase == UVA__PHASE_FAILED)
        return; /* perhaps without a schema. Clauses: AH-04. */
    if (state->phase != UVA__PHASE_OPENING || state->in_call)
        seen->cancel(seen);
    else
        uva__producer_abort(p, &failure);
}

void uva__producer_pause(struct uva__producer *p, bool paused)
{
    p->loop->state.paused = paused ? UVA__PAUSED_ALL : UVA__PAUSED_NOT;
    if (!paused)
        uva__producer_wake(p);
}

void uva__producer_pause_by(struct uva__producer *p,
                            const struct uva__atomic64 *word)
{
    p->loop->pausing = word;
}

void uva__producer_refuse(struct uva__producer *p, int code)
{
    uva__producer_state_note_refusal(&p->loop->state);
    p->loop->refusal = code;
    uva__producer_wake(p);
}

void uva__producer_revoke(struct uva__producer *p)
{
    (void)producer_take_back(p, uva__task_revoke);
    uva__producer_wake(p);
}

void uva__producer_end_drain(struct uva__producer *p)
{
    p->loop->state.drain_ended = true;
    uva__producer_wake(p);
}

void uva__producer_end_stop(struct uva__producer *p)
{
    assert(p->source->stopped && p->source->stopping > 0);
    if (--p->source->stopping == 0)
        uva__producer_wake(p);
}
