/* SPDX-License-Identifier: Apache-2.0 */
/* What our calls of a foreign producer's methods and its calls of our handler
 * share: the references, the first failure, the calls in flight.
 *
 * Happy path:  calls into the producer are counted -> a terminal callback
 *              (NULL, on_error, release) waits for other threads inside request
 *              and cancel, and no call begins after it -> the producer has
 *              released and the last call has returned: free_ctx -> the last
 *              reference is dropped: freed.
 *
 * What can fail: a call does not return within UVA__LIMIT_FOREIGN_CALLS_MS. It
 *              is abandoned, and keeps its own reference.
 *
 * On cancel and close: source/foreign_calls.c marks the stop; the producer is
 *              done as above.
 *
 * Clauses: G-14. */
#include "source/foreign_state.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/thread.h"
#include "base/time_limits.h"
#include "source/foreign_clauses.h"
#include "stream/handler_base.h"
#include "uvarrow/arrow.h"

enum { MS_NS = 1000000 };

/* ---- life --------------------------------------------------------------- */

/* The memory may be that of an old one, with a late call that holds the lock.
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

void uva__foreign_free(struct uva__wakeup *wakeup)
{
    struct uva__foreign *f =
        uva__container_of(wakeup, struct uva__foreign, wakeup);
    struct uva__rt *rt = uva__rt_acquire(f->source.rt);
    const struct uva_allocator *allocator = &rt->allocator;
    struct uva__foreign_events *events = &f->locked.events;

    uva_schema_release(&events->schema);
    uva__metadata_fini(&events->metadata, allocator, NULL);
    uva__failure_fini(&events->failure, allocator);
    uva__pending_tasks_fini(&f->pending_tasks);
    uva__source_fini(&f->source);
    uva__slots_put_handler(rt, &f->slot);
    uva__rt_release(rt);
}

void uva__foreign_acquire(struct uva__foreign *f)
{
    uva__wakeup_acquire(&f->wakeup);
}

void uva__foreign_release(struct uva__foreign *f)
{
    uva__wakeup_release(&f->wakeup);
}

bool uva__foreign_run_job(struct uva__foreign *f, struct uva_job *job)
{
    struct uva__rt *rt = f->source.rt;

    if (!uva__rt_job_begin(rt))
        return false;
    uva__foreign_acquire(f);
    uva__lane_run_uncapped(&rt->jobs, job);
    return true;
}

void uva__foreign_end_job(struct uva__foreign *f)
{
    struct uva__rt *rt = f->source.rt;

    uva__foreign_release(f);
    uva__rt_job_end(rt);
}

/* ---- the producer is done ----------------------------------------------- */

bool uva__foreign_is_closed_locked(struct uva__foreign *f)
{
    const bool leaves = f->locked.peer_released && f->locked.inside == 0 &&
                        !f->locked.ctx_free_due;

    if (leaves)
        f->locked.ctx_free_due = true;
    return leaves;
}

void uva__foreign_free_ctx(struct uva__foreign *f)
{
    if (f->options.free_ctx != NULL)
        f->options.free_ctx(f->options.ctx);
    uva__atomic64_exchange(&f->closed, 1);
    uva__rt_wake(f->source.rt, &f->wakeup);
}

static void free_ctx_run(struct uva_job *job)
{
    struct uva__foreign *f =
        uva__container_of(job, struct uva__foreign, free_ctx_job);

    uva__foreign_free_ctx(f);
    uva__foreign_end_job(f);
}

void uva__foreign_free_ctx_async(struct uva__foreign *f)
{
    if (f->options.free_ctx == NULL ||
        !uva__foreign_run_job(f, &f->free_ctx_job))
        uva__foreign_free_ctx(f);
}

/* ---- tasks that a loop thread leaves to another -------------------------- */

bool uva__foreign_is_on_loop(const struct uva__foreign *f)
{
    return uva__turn_depth() > 0 || uva__rt_on_loop(f->source.rt);
}

static struct uva__pending_task *discarder_pop(struct uva__foreign *f)
{
    struct uva__link *link;

    uva__lock_take(&f->lock);
    link = uva__list_pop(&f->locked.unwanted);
    f->locked.discarder_out = link != NULL;
    uva__lock_drop(&f->lock);
    return link != NULL
               ? uva__container_of(link, struct uva__pending_task, link)
               : NULL;
}

static void discarder_discard(struct uva__foreign *f)
{
    struct uva__pending_task *pending_task;

    while ((pending_task = discarder_pop(f)) != NULL) {
        uva__pending_tasks_discard(&f->pending_tasks, pending_task);
        uva__foreign_extracted(f);
    }
}

static void discarder_run(struct uva_job *job)
{
    struct uva__foreign *f =
        uva__container_of(job, struct uva__foreign, discarder);

    discarder_discard(f);
    uva__foreign_end_job(f);
}

void uva__foreign_discard_async(struct uva__foreign *f, struct uva__list *tasks)
{
    bool due;

    uva__lock_take(&f->lock);
    uva__list_append(&f->locked.unwanted, tasks);
    due = !f->locked.discarder_out && !uva__list_is_empty(&f->locked.unwanted);
    f->locked.discarder_out = f->locked.discarder_out || due;
    uva__lock_drop(&f->lock);
    if (due && !uva__foreign_run_job(f, &f->discarder))
        discarder_discard(f);
}

/* The producer is not done before its tasks are extracted. */
static void closer_close(struct uva__foreign *f)
{
    bool closed;

    (void)uva__pending_tasks_close(&f->pending_tasks, true);
    (void)uva__pending_tasks_await(&f->pending_tasks);
    uva__lock_take(&f->lock);
    uva__foreign_frame_end_locked(f);
    closed = uva__foreign_is_closed_locked(f);
    uva__lock_drop(&f->lock);
    if (closed)
        uva__foreign_free_ctx(f);
}

static void closer_run(struct uva_job *job)
{
    struct uva__foreign *f =
        uva__container_of(job, struct uva__foreign, closer);

    closer_close(f);
    uva__foreign_end_job(f);
}

void uva__foreign_close_async(struct uva__foreign *f)
{
    uva__lock_take(&f->lock);
    uva__foreign_frame_begin_locked(f);
    uva__lock_drop(&f->lock);
    if (!uva__foreign_run_job(f, &f->closer))
        closer_close(f);
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
    uva__foreign_clauses_count(&f->source, clause);
}

void uva__foreign_log_step(struct uva__foreign *f, const char *step, int64_t n)
{
    char number[24] = "";

    if (n >= 0)
        (void)snprintf(number, sizeof(number), " %lld", (long long)n);
    uva__rt_log(f->source.rt, UVA_LOG_DEBUG, uva__label_text(f->source.label),
                NULL, "peer of from_async: %s%s", step, number);
}

void uva__foreign_fail(struct uva__foreign *f, int code,
                       const struct uva_error *error, const char *metadata)
{
    struct uva__failure failure = {0};
    bool first;

    uva__lock_take(&f->lock);
    first = !f->locked.failure_reported;
    f->locked.failure_reported = true;
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
    const int code = uva__handler_base_ended_silently(&error);

    uva__foreign_fail(f, code, &error, NULL);
}

/* ---- calls in flight ---------------------------------------------------- */

void uva__foreign_frame_begin_locked(struct uva__foreign *f)
{
    f->locked.inside++;
    if (f->locked.abandoned)
        uva__atomic64_add(&f->source.rt->stats.calls_stuck, 1);
}

void uva__foreign_frame_end_locked(struct uva__foreign *f)
{
    f->locked.inside--;
    if (f->locked.abandoned)
        uva__atomic64_sub(&f->source.rt->stats.calls_stuck, 1);
    if (f->locked.waiting > 0)
        uva__futex_raise(&f->left);
}

void uva__foreign_release_below(struct uva__foreign *f)
{
    uva__atomic64_store(&f->releasing_thread, uva__thread_self());
    uva__lock_take(&f->lock);
    uva__foreign_frame_begin_locked(f);
    uva__lock_drop(&f->lock);
}

void uva__foreign_extracted(struct uva__foreign *f)
{
    bool closed;

    if (uva__atomic64_peek(&f->releasing_thread) != uva__thread_self())
        return;
    uva__atomic64_store(&f->releasing_thread, 0);
    uva__lock_take(&f->lock);
    uva__foreign_frame_end_locked(f);
    closed = uva__foreign_is_closed_locked(f);
    uva__lock_drop(&f->lock);
    if (closed)
        uva__foreign_free_ctx_async(f);
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
    f->locked.requesting = uva__thread_self();
    uva__foreign_frame_begin_locked(f);
    return n;
}

void uva__foreign_request_end_locked(struct uva__foreign *f)
{
    f->locked.requesting = 0;
    uva__foreign_frame_end_locked(f);
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
    const uint32_t seen = uva__futex_now(&f->left);
    const uint64_t now_ns = uva__clock_ns();

    if (now_ns >= until_ns)
        return false;
    f->locked.waiting++;
    uva__lock_drop(&f->lock);
    (void)uva__futex_wait(&f->left, seen,
                          (int64_t)((until_ns - now_ns) / MS_NS) + 1);
    uva__lock_take(&f->lock);
    f->locked.waiting--;
    return true;
}

bool uva__foreign_is_blocked_locked(const struct uva__foreign *f)
{
    return f->locked.starting || f->locked.requesting != 0;
}

void uva__foreign_await_blocked(struct uva__foreign *f, int64_t limit_ms)
{
    const uint64_t until_ns = uva__clock_ns() + (uint64_t)limit_ms * MS_NS;

    uva__lock_take(&f->lock);
    while (uva__foreign_is_blocked_locked(f) &&
           foreign_wait_locked(f, until_ns))
        ;
    uva__lock_drop(&f->lock);
}

/* The rules let no call begin after a terminal callback. */
void uva__foreign_await_calls(struct uva__foreign *f)
{
    const uint64_t until_ns = uva__clock_ns() + (uint64_t)f->limit_ms * MS_NS;
    bool stuck;

    uva__lock_take(&f->lock);
    while (!f->locked.calls_abandoned && foreign_has_calls_locked(f) &&
           foreign_wait_locked(f, until_ns))
        ;
    stuck = !f->locked.calls_abandoned && foreign_has_calls_locked(f);
    f->locked.calls_abandoned = f->locked.calls_abandoned || stuck;
    f->locked.producer = NULL;
    uva__lock_drop(&f->lock);
    uva__foreign_report_breach(f, stuck ? "AP-28" : NULL);
}

/* ---- making one --------------------------------------------------------- */

void uva__foreign_init_state(struct uva__foreign *f)
{
    uva__pending_tasks_init(&f->pending_tasks, &f->source);
    uva__consumer_state_init(&f->locked.state, f->options.window.batches,
                             f->options.window.refill);
    f->free_ctx_job.run = free_ctx_run;
    f->discarder.run = discarder_run;
    f->closer.run = closer_run;
    f->limit_ms = UVA__LIMIT_FOREIGN_CALLS_MS;
}
