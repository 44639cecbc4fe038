/* SPDX-License-Identifier: Apache-2.0 */
/* The life of a foreign producer: references, our calls of its methods, the
 * first failure, and the events that the loop collects. The producer calls
 * source/foreign_handler.c. The states are drawn in source/foreign.h.
 *
 * Happy path:  start gets the handler -> the loop collects events repeatedly,
 *              and may have more batches requested each time -> a terminal
 *              callback (NULL, on_error, release) waits for other threads
 *              inside request and cancel, and no call begins after it -> stop
 *              -> the producer has released and the last call has returned:
 *              free_ctx -> the last reference is dropped: freed.
 *
 * Failures:
 * - start: its code counts where the producer has reported no failure itself;
 *   if it has called no callback, the handler is ours again;
 * - a call does not return within UVA__LIMIT_FOREIGN_CALLS_MS: it is no longer
 *   waited for, and keeps its own reference.
 *
 * On stop:     the producer is cancelled. The calls that are in flight return
 * before the producer is CLOSED.
 *
 * Clauses: G-14, G-55. */
#include "source/foreign.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/locked_wait.h"
#include "base/memory.h"
#include "base/thread.h"
#include "base/time_limits.h"
#include "base/unreachable.h"
#include "source/foreign_clauses.h"
#include "source/interrupt.h"
#include "stream/producer.h"
#include "uvarrow/arrow.h"

enum { MS_NS = 1000000 };

/* ---- life --------------------------------------------------------------- */

/* The memory may have been an old object, of which a late call holds the lock.
 */
struct uva__foreign *uva__foreign_alloc(struct uva__rt *rt)
{
    struct uva__handler_slot *slot =
        uva__slots_take_handler(rt, sizeof(struct uva__foreign));
    struct uva__foreign *f;

    if (slot == NULL)
        return NULL;
    f = uva__container_of(slot, struct uva__foreign, slot);
    memset(f, 0, offsetof(struct uva__foreign, lock));
    memset(&f->locked, 0, sizeof(f->locked));
    return f;
}

void uva__foreign_free(struct uva__source *source,
                       const struct uva_allocator *allocator)
{
    struct uva__foreign *f =
        uva__container_of(source, struct uva__foreign, source);
    struct uva__foreign_events *events = &f->locked.events;
    struct uva__rt *rt = source->rt; /* the caller has a reference */

    uva_schema_release(&events->schema);
    uva__metadata_fini(&events->metadata, allocator, NULL);
    uva__failure_fini(&events->failure, allocator);
    uva__source_fini(source);
    uva__slots_put_handler(rt, &f->slot);
}

void uva__foreign_submit(struct uva__foreign *f, struct uva__job *job)
{
    struct uva__rt *rt = f->source.rt;

    if (!uva__rt_job_begin(rt)) {
        UVA__UNREACHABLE("a running stage keeps the workers alive");
        return;
    }
    uva__source_acquire(&f->source);
    uva__lane_run_uncapped(&rt->jobs, job);
}

void uva__foreign_end_job(struct uva__foreign *f)
{
    struct uva__rt *rt = f->source.rt;

    uva__source_release(&f->source);
    uva__rt_job_end(rt);
}

/* ---- work that a loop thread or the producer leaves to another thread ---- */

bool uva__foreign_is_on_loop(const struct uva__foreign *f)
{
    return uva__turn_depth() > 0 || uva__rt_on_loop(f->source.rt);
}

static void foreign_defer(struct uva__foreign *f, struct uva__discard *item,
                          void (*run)(struct uva__discard *item))
{
    item->owner = f;
    item->run = run;
    uva__source_acquire(&f->source);
    uva__discard_add(f->source.rt, item);
}

static void discard_run(struct uva__discard *item)
{
    struct uva__pending_task *task =
        uva__container_of(item, struct uva__pending_task, discard);
    struct uva__foreign *f =
        uva__container_of(task->tasks, struct uva__foreign, pending_tasks);

    uva__pending_task_discard(task);
    uva__foreign_extracted(f);
    uva__source_release(&f->source);
}

void uva__foreign_discard_later(struct uva__foreign *f,
                                struct uva__pending_task *task)
{
    foreign_defer(f, &task->discard, discard_run);
}

static void foreign_close_ctx(struct uva__foreign *f)
{
    if (f->options.free_ctx != NULL)
        f->options.free_ctx(f->options.ctx);
    uva__atomic64_exchange(&f->ctx_freed, 1);
    uva__rt_wake(f->source.rt, &f->source.wakeup);
}

static void free_ctx_run(struct uva__discard *item)
{
    struct uva__foreign *f = uva__container_of(item, struct uva__foreign, last);

    foreign_close_ctx(f);
    uva__source_release(&f->source);
}

void uva__foreign_free_ctx(struct uva__foreign *f)
{
    if (f->options.free_ctx != NULL)
        foreign_defer(f, &f->last, free_ctx_run);
    else
        foreign_close_ctx(f);
}

/* ---- our calls ---------------------------------------------------------- */

bool uva__foreign_enter_closed_locked(struct uva__foreign *f)
{
    if (f->locked.peer != UVA__FOREIGN_PEER_RELEASED || f->locked.inside > 0)
        return false;
    f->locked.peer = UVA__FOREIGN_PEER_CLOSED;
    return true;
}

/* A call of the producer begins; `*thread` (or NULL) becomes this thread. */
static void foreign_call_begin_locked(struct uva__foreign *f, uint64_t *thread)
{
    if (thread != NULL)
        *thread = uva__thread_self();
    f->locked.inside++;
    if (f->locked.wish == UVA__FOREIGN_WISH_ABANDONED)
        uva__atomic64_add(&f->source.rt->stats.calls_stuck, 1);
}

void uva__foreign_call_end_locked(struct uva__foreign *f, uint64_t *thread)
{
    if (thread != NULL)
        *thread = 0;
    f->locked.inside--;
    if (f->locked.wish == UVA__FOREIGN_WISH_ABANDONED)
        uva__atomic64_sub(&f->source.rt->stats.calls_stuck, 1);
    if (f->locked.waiting > 0)
        uva__futex_raise(&f->call_returned);
}

static void foreign_call_begin(struct uva__foreign *f)
{
    uva__lock_take(&f->lock);
    foreign_call_begin_locked(f, NULL);
    uva__lock_drop(&f->lock);
}

static void foreign_call_end(struct uva__foreign *f, uint64_t *thread)
{
    bool closed;

    uva__lock_take(&f->lock);
    uva__foreign_call_end_locked(f, thread);
    closed = uva__foreign_enter_closed_locked(f);
    uva__lock_drop(&f->lock);
    if (closed)
        uva__foreign_free_ctx(f);
}

/* The producer is not CLOSED before its tasks are extracted: that counts as a
 * call. */
static void close_run(struct uva__discard *item)
{
    struct uva__foreign *f = uva__container_of(item, struct uva__foreign, last);

    (void)uva__pending_tasks_close(&f->pending_tasks, true);
    (void)uva__pending_tasks_await(&f->pending_tasks);
    foreign_call_end(f, NULL);
    uva__source_release(&f->source);
}

void uva__foreign_extract_later(struct uva__foreign *f)
{
    foreign_call_begin(f);
    foreign_defer(f, &f->last, close_run);
}

void uva__foreign_release_below(struct uva__foreign *f)
{
    uva__atomic64_store(&f->releasing_thread, uva__thread_self());
    foreign_call_begin(f);
}

void uva__foreign_extracted(struct uva__foreign *f)
{
    if (uva__atomic64_peek(&f->releasing_thread) != uva__thread_self())
        return;
    uva__atomic64_store(&f->releasing_thread, 0);
    foreign_call_end(f, NULL);
}

int64_t uva__foreign_request_begin_locked(struct uva__foreign *f)
{
    struct uva__consumer_state *state = &f->locked.state;
    int64_t n;

    if (f->locked.producer == NULL || f->locked.requesting != 0)
        return 0;
    n = uva__consumer_state_want(state);
    if (n == 0)
        return 0;
    uva__consumer_state_note_request(state, n);
    foreign_call_begin_locked(f, &f->locked.requesting);
    return n;
}

/* While batches are outstanding, a callback will come that can request more.
 * Returns whether this call has requested any. */
static bool foreign_request_once(struct uva__foreign *f)
{
    struct ArrowAsyncProducer *producer;
    int64_t n = 0;

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
    foreign_call_end(f, &f->locked.requesting);
    return true;
}

static void requester_run(struct uva__job *job)
{
    struct uva__foreign *f =
        uva__container_of(job, struct uva__foreign, requester);

    while (foreign_request_once(f))
        ;
    uva__foreign_end_job(f);
}

/* The producer may have ended by itself meanwhile. */
static void foreign_cancel(struct uva__foreign *f)
{
    struct ArrowAsyncProducer *producer = NULL;

    uva__lock_take(&f->lock);
    if (uva__consumer_state_must_cancel(&f->locked.state))
        producer = f->locked.producer;
    if (producer != NULL) {
        uva__consumer_state_note_cancel_delivered(&f->locked.state);
        foreign_call_begin_locked(f, &f->locked.cancelling);
    }
    uva__lock_drop(&f->lock);
    if (producer == NULL)
        return;
    uva__foreign_log(f, "cancel", -1);
    producer->cancel(producer);
    foreign_call_end(f, &f->locked.cancelling);
}

static void canceller_run(struct uva__job *job)
{
    struct uva__foreign *f =
        uva__container_of(job, struct uva__foreign, canceller);

    foreign_cancel(f);
    uva__foreign_end_job(f);
}

/* ---- waiting for calls --------------------------------------------------- */

/* Returns whether another thread is inside. A call of the waiting thread itself
 * is below it on the stack, and would never return. */
static bool foreign_has_calls_locked(const struct uva__foreign *f)
{
    const uint64_t self = uva__thread_self();

    return (f->locked.requesting != 0 && f->locked.requesting != self) ||
           (f->locked.cancelling != 0 && f->locked.cancelling != self);
}

/* Drops the lock while it waits. False when the time has passed. */
static bool foreign_wait_locked(struct uva__foreign *f, uint64_t until_ns)
{
    const uint64_t now_ns = uva__clock_ns();

    if (now_ns >= until_ns)
        return false;
    f->locked.waiting++;
    (void)uva__locked_wait(&f->lock, &f->call_returned,
                           (int64_t)((until_ns - now_ns) / MS_NS) + 1);
    f->locked.waiting--;
    return true;
}

/* Whether a thread is inside a call that interrupt is for. */
static bool foreign_is_blocked_locked(const struct uva__foreign *f)
{
    return f->locked.start == UVA__FOREIGN_START_IN ||
           f->locked.requesting != 0;
}

/* The rules let no call begin after a terminal callback. */
void uva__foreign_await_calls(struct uva__foreign *f)
{
    const uint64_t until_ns = uva__clock_ns() + (uint64_t)f->limit_ms * MS_NS;
    bool stuck;

    uva__lock_take(&f->lock);
    while (!f->locked.calls_overdue && foreign_has_calls_locked(f) &&
           foreign_wait_locked(f, until_ns))
        ;
    stuck = !f->locked.calls_overdue && foreign_has_calls_locked(f);
    f->locked.calls_overdue = f->locked.calls_overdue || stuck;
    f->locked.producer = NULL;
    uva__lock_drop(&f->lock);
    uva__foreign_report_breach(f, stuck ? "AP-28" : NULL);
}

/* ---- interrupting ------------------------------------------------------- */

/* Counts as a call, so that free_ctx comes later; but not as a stuck call. */
static bool foreign_interrupt_once(void *foreign)
{
    struct uva__foreign *f = foreign;
    bool blocked, closed;

    uva__lock_take(&f->lock);
    blocked = foreign_is_blocked_locked(f);
    f->locked.inside += blocked;
    uva__lock_drop(&f->lock);
    if (!blocked)
        return false;
    f->options.interrupt(f->options.ctx);
    uva__lock_take(&f->lock);
    f->locked.inside--;
    closed = uva__foreign_enter_closed_locked(f);
    uva__lock_drop(&f->lock);
    if (closed)
        uva__foreign_free_ctx(f);
    return true;
}

static void foreign_await_blocked(void *foreign, int64_t limit_ms)
{
    struct uva__foreign *f = foreign;
    const uint64_t until_ns = uva__clock_ns() + (uint64_t)limit_ms * MS_NS;

    uva__lock_take(&f->lock);
    while (foreign_is_blocked_locked(f) && foreign_wait_locked(f, until_ns))
        ;
    uva__lock_drop(&f->lock);
}

/* No call begins after a stop, so it ends. */
static void interrupter_run(struct uva__job *job)
{
    struct uva__foreign *f =
        uva__container_of(job, struct uva__foreign, interrupter);

    uva__interrupt_repeat(foreign_interrupt_once, foreign_await_blocked, f);
    uva__foreign_end_job(f);
}

/* ---- reports ------------------------------------------------------------ */

/* An error after the end needs a reason. A batch that was handed on and may
 * still fail to be extracted is such a reason, which the rules do not see: for
 * them, batches handed on are done. Clauses: AH-33. */
void uva__foreign_report_breach(struct uva__foreign *f, const char *clause)
{
    if (clause == NULL || (strcmp(clause, "AH-33") == 0 &&
                           uva__pending_tasks_is_at_risk(&f->pending_tasks)))
        return;
    uva__foreign_count(&f->source, clause);
}

void uva__foreign_log_step(struct uva__foreign *f, const char *step, int64_t n)
{
    char number[24] = "";

    if (n >= 0)
        (void)snprintf(number, sizeof(number), " %lld", (long long)n);
    uva__rt_log(f->source.rt, UVA_LOG_DEBUG, uva__label_text(f->source.label),
                NULL, "peer of async: %s%s", step, number);
}

void uva__foreign_fail(struct uva__foreign *f, int code,
                       const struct uva_error *error, const char *metadata)
{
    struct uva__failure failure = {0};
    bool first;

    uva__lock_take(&f->lock);
    first = f->locked.failure != UVA__FOREIGN_FAILURE_KNOWN;
    f->locked.failure = UVA__FOREIGN_FAILURE_KNOWN;
    uva__lock_drop(&f->lock);
    if (!first)
        return;
    uva__failure_set(&failure, &f->source.rt->allocator, code, error, metadata);
    uva__lock_take(&f->lock);
    f->locked.events.failure = failure;
    uva__lock_drop(&f->lock);
}

void uva__foreign_fail_text(struct uva__foreign *f, int code, const char *text,
                            const char *clause)
{
    struct uva_error error;

    if (clause != NULL)
        (void)uva_error_set(&error, code, "%s (%s)", text, clause);
    else
        (void)uva_error_set(&error, code, "%s", text);
    uva__foreign_fail(f, code, &error, NULL);
}

void uva__foreign_fail_cut_off(struct uva__foreign *f)
{
    struct uva_error error;
    const int code = uva__failure_end_silently(&error);

    uva__foreign_fail(f, code, &error, NULL);
}

/* ---- start -------------------------------------------------------------- */

bool uva__foreign_begin_start(struct uva__foreign *f)
{
    bool due;

    uva__lock_take(&f->lock);
    due = f->locked.wish == UVA__FOREIGN_WISH_WANTED;
    if (due) {
        f->locked.start = UVA__FOREIGN_START_IN;
        foreign_call_begin_locked(f, NULL);
    } else {
        f->locked.peer = UVA__FOREIGN_PEER_CLOSED;
    }
    uva__lock_drop(&f->lock);
    if (due)
        return true;
    uva__foreign_free_ctx(f);
    uva__source_release(&f->source);
    return false;
}

static bool peer_has_ended_locked(const struct uva__foreign *f)
{
    return f->locked.state.heard >= UVA__HEARD_END;
}

/* The producer has never called the handler: no release will come. */
static void foreign_take_back_locked(struct uva__foreign *f)
{
    const struct uva__consumer_call gone = {.event = UVA__EVENT_RELEASE};

    (void)uva__consumer_state_enter(&f->locked.state, &gone);
    uva__consumer_state_leave(&f->locked.state);
    f->locked.peer = UVA__FOREIGN_PEER_RELEASED;
}

void uva__foreign_started(struct uva__foreign *f, int code,
                          const struct uva_error *error)
{
    bool untouched, counts, ended_silently, closed;

    uva__lock_take(&f->lock);
    f->locked.start = UVA__FOREIGN_START_BACK;
    uva__foreign_call_end_locked(f, NULL);
    ended_silently = f->locked.failure == UVA__FOREIGN_FAILURE_CUT_OFF;
    counts = code != 0 && (ended_silently || !peer_has_ended_locked(f));
    untouched = code != 0 && f->locked.peer == UVA__FOREIGN_PEER_SILENT;
    if (counts)
        uva__consumer_state_note_fault(&f->locked.state, code);
    if (untouched)
        foreign_take_back_locked(f);
    closed = uva__foreign_enter_closed_locked(f);
    uva__lock_drop(&f->lock);
    if (counts)
        uva__foreign_fail(f, code, error, NULL);
    else if (ended_silently)
        uva__foreign_fail_cut_off(f);
    uva__rt_wake(f->source.rt, &f->source.wakeup);
    if (closed)
        uva__foreign_free_ctx(f);
    if (untouched)
        uva__source_release(&f->source);
}

/* ---- the loop ----------------------------------------------------------- */

void uva__foreign_note_lost(struct uva__foreign *f, int code)
{
    uva__lock_take(&f->lock);
    uva__consumer_state_note_fault(&f->locked.state, code);
    uva__lock_drop(&f->lock);
    uva__rt_wake(f->source.rt, &f->source.wakeup);
}

static void settle_locked(struct uva__foreign *f, int64_t taken)
{
    for (; taken > 0; taken--)
        uva__consumer_state_note_settled(&f->locked.state, 0);
}

/* Returns whether the canceller is to be submitted now, which is done once. */
static bool canceller_claim_locked(struct uva__foreign *f)
{
    bool due = !f->locked.canceller_submitted && f->locked.producer != NULL &&
               uva__consumer_state_must_cancel(&f->locked.state);

    f->locked.canceller_submitted = f->locked.canceller_submitted || due;
    return due;
}

/* Returns whether the requester is to be submitted now: while no batch is
 * outstanding, no callback may come that requests more. */
static bool requester_claim_locked(struct uva__foreign *f)
{
    bool due = !f->locked.requester_out && f->locked.requesting == 0 &&
               f->locked.producer != NULL && f->locked.state.outstanding == 0 &&
               uva__consumer_state_want(&f->locked.state) > 0;

    f->locked.requester_out = f->locked.requester_out || due;
    return due;
}

void uva__foreign_poll(struct uva__foreign *f, int64_t taken,
                       struct uva__foreign_events *events)
{
    bool request, cancel;

    uva__lock_take(&f->lock);
    settle_locked(f, taken);
    *events = f->locked.events;
    events->ended = f->locked.state.end == UVA__CONSUMER_COMPLETE;
    f->locked.events = (struct uva__foreign_events){.count = 0};
    cancel = canceller_claim_locked(f);
    request = requester_claim_locked(f);
    uva__lock_drop(&f->lock);
    if (request)
        uva__foreign_submit(f, &f->requester);
    if (cancel)
        uva__foreign_submit(f, &f->canceller);
}

/* Returns whether the producer has not ended: then it is cancelled. */
static bool foreign_abandon_locked(struct uva__foreign *f)
{
    const bool abandons = !peer_has_ended_locked(f);

    uva__consumer_state_note_cancel(&f->locked.state, ECANCELED);
    f->locked.wish =
        abandons ? UVA__FOREIGN_WISH_ABANDONED : UVA__FOREIGN_WISH_STOPPED;
    if (abandons)
        uva__atomic64_add(&f->source.rt->stats.calls_stuck,
                          (uint64_t)f->locked.inside);
    return abandons;
}

void uva__foreign_stop(struct uva__foreign *f, int64_t taken,
                       struct uva__list *ready)
{
    struct uva__link *link;
    bool cancel, interrupt;

    uva__lock_take(&f->lock);
    settle_locked(f, taken);
    uva__list_append(ready, &f->locked.events.queue);
    interrupt = foreign_abandon_locked(f) && f->options.interrupt != NULL &&
                foreign_is_blocked_locked(f);
    cancel = canceller_claim_locked(f);
    uva__lock_drop(&f->lock);
    if (cancel)
        uva__foreign_submit(f, &f->canceller);
    if (interrupt)
        uva__foreign_submit(f, &f->interrupter);
    while ((link = uva__list_pop(ready)) != NULL)
        uva__foreign_discard_later(f, uva__pending_task_of(link));
}

/* ---- making one --------------------------------------------------------- */

void uva__foreign_init(struct uva__foreign *f)
{
    f->pending_tasks.source = &f->source;
    uva__consumer_state_init(&f->locked.state, f->options.window.batches, 0);
    f->requester.run = requester_run;
    f->canceller.run = canceller_run;
    f->interrupter.run = interrupter_run;
    f->limit_ms = UVA__LIMIT_FOREIGN_CALLS_MS;
}
