/* SPDX-License-Identifier: Apache-2.0 */
/* What our calls of a foreign producer's methods and its calls of our handler
 * share: the references, the first failure, the calls in flight.
 *
 * Happy path:  calls into the producer are counted -> a terminal callback
 * (NULL, on_error, release) closes the gate: it waits for other threads inside
 * request and cancel, and no call enters after it -> the producer has released
 * and the last call has returned: free_ctx
 *              -> the last reference is dropped: freed.
 *
 * What can fail: a call does not return within UVA__LIMIT_FOREIGN_CALLS_MS. It
 * is abandoned, and keeps its own reference.
 *
 * On cancel and close: source/foreign_calls.c marks the stop; the producer is done as
 *              above.
 *
 * Clauses: G-14. */
#include "source/foreign_state.h"

#include <errno.h>
#include <string.h>

#include "source/foreign_clauses.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/thread.h"
#include "base/time_limits.h"
#include "stream/handler_base.h"
#include "uvarrow/arrow.h"

enum { MS_NS = 1000000 };

/* ---- life --------------------------------------------------------------- */

void uva__inlet_free(struct uva__node *node)
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

/* ---- the producer is done ----------------------------------------------- */

bool uva__inlet_is_home_locked(struct uva__inlet *i)
{
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

/* ---- reports ------------------------------------------------------------ */

/* AH-33 is an error after the end without a reason for it. A batch that was
 * handed on and may still fail to be extracted is such a reason, which the
 * rules do not see: for them, batches handed on are done. */
void uva__peer_side_report(struct uva__inlet *i, const char *clause)
{
    if (clause == NULL ||
        (strcmp(clause, "AH-33") == 0 && uva__depot_is_at_risk(&i->depot)))
        return;
    uva__breaches_count(i->feed.hub, clause);
}

void uva__peer_side_tell(struct uva__inlet *i, int code,
                         const struct uva_error *error, const char *metadata)
{
    struct uva__failure failure = {0};
    bool first;

    uva__lock_take(&i->lock);
    first = !i->locked.told;
    i->locked.told = true;
    uva__lock_drop(&i->lock);
    if (!first)
        return;
    uva__failure_set(&failure, &i->feed.hub->allocator, code, error, metadata);
    uva__lock_take(&i->lock);
    i->locked.news.failure = failure;
    uva__lock_drop(&i->lock);
}

void uva__peer_side_tell_text(struct uva__inlet *i, int code, const char *text,
                              const char *clause)
{
    struct uva_error error;

    if (clause != NULL)
        (void)uva_error_set(&error, code, "%s (%s)", text, clause);
    else
        (void)uva_error_set(&error, code, "%s", text);
    uva__peer_side_tell(i, code, &error, NULL);
}

void uva__peer_side_tell_cut_off(struct uva__inlet *i)
{
    struct uva_error error;
    const int code = uva__handler_base_cut_off(&error);

    uva__peer_side_tell(i, code, &error, NULL);
}

/* ---- calls in flight ---------------------------------------------------- */

void uva__inlet_frame_begin_locked(struct uva__inlet *i)
{
    i->locked.inside++;
    if (i->locked.abandoned)
        uva__word_add(&i->feed.hub->counts.calls_stuck, 1);
}

void uva__inlet_frame_end_locked(struct uva__inlet *i)
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
    uva__inlet_frame_begin_locked(i);
    uva__lock_drop(&i->lock);
}

void uva__inlet_extracted(struct uva__inlet *i)
{
    bool home;

    if (uva__word_peek(&i->below) != uva__thread_self())
        return;
    uva__word_store(&i->below, 0);
    uva__lock_take(&i->lock);
    uva__inlet_frame_end_locked(i);
    home = uva__inlet_is_home_locked(i);
    uva__lock_drop(&i->lock);
    if (home)
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
    uva__inlet_frame_begin_locked(i);
    return n;
}

void uva__inlet_request_end_locked(struct uva__inlet *i)
{
    i->locked.requesting = 0;
    uva__inlet_frame_end_locked(i);
}

/* ---- the gate ----------------------------------------------------------- */

/* Returns whether another thread is inside. A call of the waiting thread itself
 * is below it on the stack, and would never return. */
static bool gate_is_busy_locked(const struct uva__inlet *i)
{
    const uint64_t self = uva__thread_self();

    return (i->locked.requesting != 0 && i->locked.requesting != self) ||
           (i->locked.cancelling != 0 && i->locked.cancelling != self);
}

/* Drops the lock while it waits. False when the time has passed. */
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

/* The rules let no call begin after a terminal callback. */
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

/* ---- making one --------------------------------------------------------- */

void uva__inlet_state_init(struct uva__inlet *i)
{
    uva__depot_init(&i->depot, i->feed.hub);
    uva__consumer_init(&i->locked.state, i->how.window.batches,
                       i->how.window.refill);
    i->farewell.run = farewell_run;
    i->patience_ms = UVA__LIMIT_FOREIGN_CALLS_MS;
}
