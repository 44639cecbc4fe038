/* SPDX-License-Identifier: Apache-2.0 */
/* The producer's additional mutants: first the functions, then the table. */
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "support/reference_shape.h"
#include "tck/array_spoil.h"
#include "tck/mutant_extras.h"

static int arg_of(const struct reference_producer *p)
{
    return p->how.mutant->arg;
}

static bool first_time(struct reference_producer *p)
{
    return atomic_fetch_add(&p->acts, 1) == 0;
}

static bool nothing(void *peer, void *at)
{
    (void)peer;
    (void)at;
    return true;
}

static bool crashes(void *peer, void *at)
{
    (void)peer;
    (void)at;
    abort();
}

/* ---- endings ------------------------------------------------------------ */

static bool fails_as_end(void *peer, void *at)
{
    struct reference_producer *p = peer;

    (void)at;
    p->handler->on_next_task(p->handler, NULL, NULL);
    return true;
}

/* Loses batches before a failure: all, or only the last one. */
enum { LOSES_ALL, LOSES_LAST };

static bool loses_before_failure(void *peer, void *at)
{
    struct reference_producer *p = peer;

    (void)at;
    if (p->how.fails &&
        (arg_of(p) == LOSES_ALL || p->next == p->how.batches - 1))
        p->next = p->how.batches;
    return false;
}

static bool fails_with(void *peer, void *at)
{
    struct reference_producer *p = peer;

    (void)at;
    p->handler->on_error(p->handler, arg_of(p), "otherwise", NULL);
    return true;
}

/* Reports an error where there must not be one. */
static bool fails_too(void *peer, void *at)
{
    struct reference_producer *p = peer;
    const enum reference_producer_phase phase = p->phase;

    (void)at;
    if (!first_time(p))
        return false;
    p->handler->on_error(p->handler, EIO, "out of turn", NULL);
    p->phase = phase;
    return false;
}

static bool empty_fails(void *peer, void *at)
{
    return ((struct reference_producer *)peer)->next == 0 &&
           fails_too(peer, at);
}

/* If the extraction of the last task fails, it calls on_next_task(NULL) instead
 * of on_error. */
static bool last_fails_as_end(void *peer, void *at)
{
    const struct reference_producer *p = peer;

    return p->how.lazy && p->how.spoilt_at == p->how.batches - 1 &&
           fails_as_end(peer, at);
}

/* Calls on_error inside cancel, under its lock. */
static bool cancel_locks(void *peer, void *at)
{
    struct reference_producer *p = peer;

    (void)at;
    if (p->how.cancel_code == 0 || p->phase != REFERENCE_OPEN ||
        atomic_load(&p->inside) > 0)
        return false;
    pthread_mutex_lock(&p->lock);
    reference_producer_fail(p, EIO, "cannot stop");
    pthread_mutex_unlock(&p->lock);
    return true;
}

static bool is_never_released(void *peer, void *at)
{
    struct reference_producer *p = peer;

    (void)at;
    return p->now.view.cancelled;
}

/* Treats the second cancel as an error. */
static bool cancels_count(void *peer, void *at)
{
    struct reference_producer *p = peer;

    (void)at;
    if (atomic_fetch_add(&p->acts, 1) == 1)
        reference_producer_fail(p, EIO, "cancelled twice");
    return false;
}

/* Releases on the stack of a cancel that is made inside a callback. */
static bool cancel_releases(void *peer, void *at)
{
    struct reference_producer *p = peer;

    (void)at;
    if (atomic_load(&p->inside) > 0 && first_time(p))
        reference_producer_release(p);
    return true;
}

static bool touches_handler(void *peer, void *at)
{
    struct reference_producer *p = peer;

    (void)at;
    p->handler->producer = NULL;
    return false;
}

static bool spoils_object(void *peer, void *at)
{
    struct reference_producer *p = peer;

    (void)at;
    p->object.private_data = NULL;
    return false;
}

static bool block_is_minus(void *peer, void *at)
{
    struct reference_producer *p = peer;

    (void)at;
    if (arg_of(p) == 'T')
        p->blocks.task = REFERENCE_MINUS;
    else if (arg_of(p) == 'E')
        p->blocks.error = REFERENCE_MINUS;
    else
        p->blocks.about = REFERENCE_MINUS;
    return false;
}

static bool about_changes(void *peer, void *at)
{
    struct reference_producer *p = peer;

    (void)at;
    memcpy(p->about, reference_block(REFERENCE_OTHER), sizeof(p->about));
    return false;
}

/* ---- requests ----------------------------------------------------------- */

static bool offers_unasked(void *peer, void *at)
{
    struct reference_producer *p = peer;

    (void)at;
    if ((p->now.asked > 0) == (arg_of(p) == 1) && first_time(p)) {
        reference_producer_offer(p);
        return true;
    }
    return false;
}

static bool requests_wrap(void *peer, void *at)
{
    struct reference_producer *p = peer;

    if (*(int64_t *)at < INT64_MAX || first_time(p))
        return false;
    pthread_mutex_lock(&p->lock);
    p->now.view.demand = 0;
    pthread_mutex_unlock(&p->lock);
    return true;
}

/* Loses them when the third one in a row adds up to 2^64. */
static bool requests_wrap_to_zero(void *peer, void *at)
{
    struct reference_producer *p = peer;
    const int64_t n = *(int64_t *)at;

    if (n == INT64_MAX)
        atomic_fetch_add(&p->acts, 1);
    if (n != 2 || atomic_load(&p->acts) != 2)
        return false;
    pthread_mutex_lock(&p->lock);
    p->now.view.demand = 0;
    pthread_mutex_unlock(&p->lock);
    return true;
}

static bool requests_are_lost(void *peer, void *at)
{
    struct reference_producer *p = peer;

    (void)at;
    return atomic_fetch_add(&p->acts, 1) % 7 == 6;
}

/* Blocks as if a lock were held during callbacks. */
static bool ordered_waits_for_callbacks(void *peer, void *at)
{
    struct reference_producer *p = peer;

    (void)at;
    while (p->next > 1 && atomic_load(&p->inside) > 0)
        (void)sched_yield();
    return false;
}

static bool request_releases(void *peer, void *at)
{
    struct reference_producer *p = peer;

    (void)at;
    if (p->phase != REFERENCE_OPEN || atomic_load(&p->inside) > 0 ||
        !first_time(p))
        return false;
    reference_producer_release(p);
    return true;
}

static bool reads_ahead(void *peer, void *at)
{
    struct reference_producer *p = peer;
    struct ArrowDeviceArray array;

    (void)at;
    reference_array(&p->live_structs, p->next++, &array);
    array.array.release(&array.array);
    return false;
}

/* ---- tasks and arrays --------------------------------------------------- */

static bool leaks(void *peer, void *at)
{
    struct reference_producer *p = peer;
    struct ArrowDeviceArray array;

    (void)at;
    reference_array(&p->live_structs, 0, &array);
    return false;
}

static bool misshapes(void *peer, void *at)
{
    struct reference_producer *p = peer;
    struct reference_extraction *e = at;

    reference_array_misshape(e->out, (enum reference_shape)arg_of(p));
    return false;
}

static bool spoils(void *peer, void *at)
{
    struct reference_producer *p = peer;
    struct reference_extraction *e = at;

    array_spoil(e->out, (enum array_spoil)arg_of(p));
    return false;
}

static bool is_spoilt(const struct reference_producer *p,
                      const struct reference_extraction *e)
{
    return p->how.lazy && e->out != NULL &&
           e->item->ordinal == p->how.spoilt_at;
}

/* Fails, and reports that nowhere. */
static void fail_in_silence(struct reference_extraction *e)
{
    reference_item_settle(e->item);
    e->out->array.release = NULL;
    e->code = EIO;
}

/* Calls on_error inside an extraction by another thread, beside a callback. */
static bool fails_beside(void *peer, void *at)
{
    struct reference_producer *p = peer;
    struct reference_extraction *e = at;

    if (!is_spoilt(p, e) || atomic_load(&p->inside) == 0 ||
        pthread_equal(p->stepper, pthread_self()))
        return false;
    fail_in_silence(e);
    reference_producer_fail(p, EIO, "at once");
    return true;
}

/* Calls on_error after release. */
static bool fails_after_all(void *peer, void *at)
{
    struct reference_producer *p = peer;
    struct reference_extraction *e = at;

    if (!is_spoilt(p, e) || p->phase != REFERENCE_OVER)
        return false;
    fail_in_silence(e);
    p->handler->on_error(p->handler, EIO, "too late", NULL);
    return true;
}

/* Does not report an extraction that fails after the end. */
static bool fails_in_the_end(void *peer, void *at)
{
    struct reference_producer *p = peer;
    struct reference_extraction *e = at;

    if (!is_spoilt(p, e) || p->phase != REFERENCE_ENDED)
        return false;
    fail_in_silence(e);
    return true;
}

/* Makes no more calls if an extraction fails while a request is missing. */
static bool fails_for_ever(void *peer, void *at)
{
    struct reference_producer *p = peer;
    struct reference_extraction *e = at;

    if (!is_spoilt(p, e) || p->phase != REFERENCE_OPEN ||
        atomic_load(&p->inside) > 0)
        return false;
    fail_in_silence(e);
    p->phase = REFERENCE_OVER;
    return true;
}

/* Leaks the batch that the source was making when it was cancelled. */
static bool leaks_late_batch(void *peer, void *at)
{
    struct reference_producer *p = peer;

    return p->how.slow && atomic_load(&p->inside) == 0 && first_time(p) &&
           leaks(peer, at);
}

/* Makes a task invalid when its callback returns. */
static bool task_dies(void *peer, void *at)
{
    struct ArrowAsyncTask *task = at;

    (void)peer;
    reference_item_settle(task->private_data);
    return false;
}

/* Makes a task invalid when its stream ends. */
static bool task_dies_late(void *peer, void *at)
{
    struct reference_producer *p = peer;
    struct reference_extraction *e = at;

    if (p->phase != REFERENCE_OVER)
        return false;
    e->code = EIO;
    return true;
}

/* Makes a task invalid when its stream ends in one way. */
enum { DIES_CANCELLED, DIES_FAILED, DIES_REFUSED };

static bool task_dies_of(void *peer, void *at)
{
    struct reference_producer *p = peer;
    bool cancelled;
    int end;

    pthread_mutex_lock(&p->lock);
    cancelled = p->now.view.cancelled;
    pthread_mutex_unlock(&p->lock);
    if (p->how.fails)
        end = DIES_FAILED;
    else if (cancelled)
        end = DIES_CANCELLED;
    else
        end = atomic_load(&p->offered) < p->how.batches ? DIES_REFUSED : -1;
    return end == p->how.mutant->arg && task_dies_late(peer, at);
}

static bool extracts_in_order(void *peer, void *at)
{
    struct reference_producer *p = peer;
    struct reference_extraction *e = at;

    if (atomic_fetch_add(&p->acts, 1) == e->item->ordinal)
        return false;
    reference_item_settle(e->item);
    e->code = EBUSY;
    return true;
}

static bool dawdles(void *peer, void *at)
{
    const struct timespec pause = {.tv_nsec = 700000000};

    (void)at;
    if (first_time(peer))
        (void)nanosleep(&pause, NULL);
    return false;
}

/* Makes the release of an array wait for callbacks. */
static void live_structs_waits(void *ctx)
{
    (void)ordered_waits_for_callbacks(ctx, NULL);
}

static bool release_waits(void *peer, void *at)
{
    struct reference_producer *p = peer;

    (void)at;
    p->live_structs.ctx = p;
    p->live_structs.on_release = live_structs_waits;
    return false;
}

/* ---- the table ---------------------------------------------------------- */

#define M(clause, variant, point, act, arg)                                    \
    {                                                                          \
        clause, variant, REFERENCE_AT_##point, act, arg, NULL, 0, NULL         \
    }

/* clang-format off: a table */
static const struct reference_mutant PRODUCER_EXTRAS[] = {
    M("DA-02", "unreadable", FILLED, spoils, ARRAY_UNREADABLE),
    M("DA-03", "other", FILLED, misshapes, REFERENCE_TYPE_OTHER),
    M("DA-07", "event", FILLED, misshapes, REFERENCE_EVENT),
    M("DA-12", "marked", FILLED, misshapes, REFERENCE_MARK_STAYS),
    M("DA-14", "behind", FILLED, spoils, ARRAY_OVERFLOWS),
    M("DA-15", "changes", FILLED, spoils, ARRAY_CHANGES),
    M("DA-17", "home", FILLED, spoils, ARRAY_BOUND_TO_ADDRESS),
    M("DA-18", "changes", FILLED, spoils, ARRAY_CHANGES),
    M("DA-20", "many", FILLED, misshapes, REFERENCE_BUFFERS_MANY),
    M("DA-22", "unknown", FILLED, misshapes, REFERENCE_NULLS_UNKNOWN),
    M("DA-26", "none", FILLED, misshapes, REFERENCE_WORDS_NONE),
    M("AT-06", "leaks", EXTRACT, leaks, 0),
    M("AT-09", "long", EXTRACT, dawdles, 0),
    M("AT-10", "dies", OFFERED, task_dies, 0),
    M("AT-11", "ordered", EXTRACT, extracts_in_order, 0),
    M("AT-12", "dies", OFFERED, task_dies, 0),
    M("AT-15", "other", FILLED, spoils, ARRAY_OTHER),
    M("AT-18", "changes", FILLED, spoils, ARRAY_CHANGES),
    M("AT-23", "beside", EXTRACT, fails_beside, 0),
    M("AT-24", "waits", EXTRACT, ordered_waits_for_callbacks, 0),
    M("AP-02", "wraps", REQUEST, requests_wrap, 0),
    M("AP-02", "brim", REQUEST, requests_wrap_to_zero, 0),
    M("AP-05", "releases", REQUEST, request_releases, 0),
    M("AP-06", "more", WAIT, offers_unasked, 1),
    M("AP-11", "counts", CANCEL, cancels_count, 0),
    M("AP-12", "never", RELEASE, is_never_released, 0),
    M("AP-13", "inside", CANCEL, cancel_releases, 0),
    M("AP-14", "failed", EXTRACT, fails_for_ever, 0),
    M("AP-17", "mute", FAIL, nothing, 0),
    M("AP-18", "never", RELEASE, is_never_released, 0),
    M("AP-22", "spoilt", RELEASE, spoils_object, 0),
    M("AP-26", "all", STARTED, loses_before_failure, LOSES_ALL),
    M("AP-26", "last", OFFERED, loses_before_failure, LOSES_LAST),
    M("AP-27", "lost", REQUEST, requests_are_lost, 0),
    M("AP-28", "waits", REQUEST, ordered_waits_for_callbacks, 0),
    M("AP-29", "ahead", WAIT, reads_ahead, 0),
    M("AH-10", "early", WAIT, offers_unasked, 0),
    M("AH-13", "minus", START, block_is_minus, 'T'),
    M("AH-18", "mute", FAIL, nothing, 0),
    M("AH-22", "failed", EXTRACT, fails_after_all, 0),
    M("AH-23", "fails", END, empty_fails, 0),
    M("AH-27", "touches", RELEASED, touches_handler, 0),
    M("AH-30", "few", FILLED, misshapes, REFERENCE_CHILDREN_FEW),
    M("AH-34", "dies", EXTRACT, task_dies_late, 0),
    M("AH-34", "cancelled", EXTRACT, task_dies_of, DIES_CANCELLED),
    M("AH-34", "failed", EXTRACT, task_dies_of, DIES_FAILED),
    M("AH-34", "refused", EXTRACT, task_dies_of, DIES_REFUSED),
    M("TH-04", "never", RELEASE, is_never_released, 0),
    M("TH-05", "never", RELEASE, is_never_released, 0),
    M("TH-06", "waits", EXTRACT, ordered_waits_for_callbacks, 0),
    M("TH-06", "cancel", CANCELLING, cancel_locks, 0),
    M("TH-07", "threaded", FILLED, spoils, ARRAY_THREADED),
    M("MD-01", "minus", START, block_is_minus, 'A'),
    M("MD-03", "other", NOTHING, nothing, 0), /* implemented in tagging.c */
    M("MD-06", "cut", NOTHING, nothing, 0),   /* implemented in tagging.c */
    M("MD-11", "changes", END, about_changes, 0),
    M("LC-01", "dead", FILLED, misshapes, REFERENCE_CHILD_DEAD),
    M("LC-06", "leaks", OFFER, leaks, 0),
    M("LC-08", "home", FILLED, spoils, ARRAY_BOUND_TO_ADDRESS),
    M("LC-09", "home", FILLED, spoils, ARRAY_BOUND_TO_ADDRESS),
    M("LC-10", "selfish", FILLED, spoils, ARRAY_SELFISH),
    M("LC-12", "orderly", FILLED, spoils, ARRAY_ORDERLY),
    M("LC-13", "spoilt", RELEASE, spoils_object, 0),
    M("LC-14", "none", START, nothing, 0),
    M("LC-16", "dies", EXTRACT, task_dies_late, 0),
    M("LC-17", "leaks", ISSUE, leaks, 0),
    M("LC-18", "leaks", REFUSED, leaks, 0),
    M("LC-19", "twice", REFUSED, crashes, 0),
    M("LC-22", "leaks", RELEASED, leaks, 0),
    M("LC-22", "late", CANCEL, leaks_late_batch, 0),
    M("LC-22", "stuck", NOTHING, nothing, 0), /* see mutant_subject.c */
    M("LC-24", "waits", START, release_waits, 0),
    M("ER-01", "zero", FAIL, fails_with, 0),
    M("ER-02", "other", FAIL, fails_with, ENOENT),
    M("ER-03", "mute", FAIL, nothing, 0),
    M("ER-04", "error", REFUSED, fails_too, 0),
    M("ER-05", "hurries", NOTHING, nothing, 0), /* see mutant_subject.c */
    M("ER-05", "late", EXTRACT, fails_in_the_end, 0),
    M("ER-08", "minus", START, block_is_minus, 'E'),
    M("ER-09", "end", FAIL, fails_as_end, 0),
    M("ER-09", "last", FAIL, last_fails_as_end, 0),
    M("ER-10", "both", ENDED, fails_too, 0),
    M("ER-11", "late", RELEASED, fails_too, 0),
};
/* clang-format on */

const struct reference_mutant *mutant_producer_extras(int *count)
{
    *count = (int)(sizeof(PRODUCER_EXTRAS) / sizeof(*PRODUCER_EXTRAS));
    return PRODUCER_EXTRAS;
}
