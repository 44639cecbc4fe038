/* SPDX-License-Identifier: Apache-2.0 */
/* Measures how long a producer waits for its source.
 *
 * Happy path:  a batch is wanted, and is not there: the time of the wait
 *              begins -> the batch comes: the wait is over. The timer goes on,
 *              so that a batch does not start one: when it fires, it is set
 *              anew for the wait of that moment.
 *
 * Failures: a limit passes: the producer is aborted.
 *
 * A loop thread that was busy for long finds the timer due before it sees the
 * batches that have come meanwhile. So the producer first runs a few more
 * times, after the wake-ups that are queued: each brings such a batch one stage
 * nearer. */
#include "stream/deadlines.h"

#include <errno.h>

#include "base/clock.h"
#include "base/memory.h"

/* A source that is in no call is looked at again after so long, as a call of it
 * may begin at any time. */
enum { RUNS_MAX = 32, BUSY_LOOK_MS = 50 };

/* The longest limit: 34 years. Nanoseconds cannot overflow below it. */
#define LIMIT_MAX_MS ((int64_t)1 << 40)

/* The limits, in the order of struct uva_timeout, and the source's own. */
enum limit {
    LIMIT_OPEN,
    LIMIT_FIRST,
    LIMIT_BETWEEN,
    LIMIT_TOTAL,
    LIMIT_BUSY,
    LIMITS
};

struct uva__deadlines {
    struct uva__rt *rt; /* borrows these: the producer's, which owns
                           the limits */
    struct uva__wakeup *wakeup;
    const struct uva__source *source;
    const struct uva__producer_state *state;
    const struct uva__counter *batches; /* that were offered */
    int64_t limit_ms[LIMITS];           /* 0: no limit */
    struct uva__timer timer;            /* fires when the earliest may pass */
    uint64_t begun_ns;                  /* when the producer has begun, and was
                                           needed; 0: it is not so far */
    uint64_t opened_ns;                 /* when the schema was there, or 0 */
    uint64_t since_ns; /* when the present wait has begun; 0: it
                          does not wait for a batch */
    int64_t offered;   /* batches offered before that wait */
    int32_t runs;      /* since a limit seems to have passed */
    bool fired;        /* the timer has */
};

/* ---- making them -------------------------------------------------------- */

static void deadlines_fired(struct uva__timer *timer)
{
    struct uva__deadlines *d =
        uva__container_of(timer, struct uva__deadlines, timer);

    d->fired = true;
    uva__rt_wake(d->rt, d->wakeup);
}

static struct uva__deadlines *deadlines_of(struct uva__producer *p)
{
    struct uva__deadlines *d = p->deadlines;

    if (d != NULL)
        return d;
    d = p->deadlines = uva__memory_new(&p->rt->allocator, sizeof(*d));
    if (d == NULL)
        return NULL;
    d->rt = p->rt;
    d->wakeup = &p->wakeup;
    d->source = p->source;
    d->state = &p->loop->state;
    d->batches = &p->meter->loop.batches;
    d->timer.fire = deadlines_fired;
    return d;
}

/* Sets the limits that are not 0. */
static int deadlines_set(struct uva__producer *p, const int64_t ms[LIMITS])
{
    struct uva__deadlines *d = deadlines_of(p);

    if (d == NULL)
        return ENOMEM;
    for (int i = 0; i < LIMITS; i++)
        if (ms[i] > 0 && (d->limit_ms[i] == 0 || ms[i] < d->limit_ms[i]))
            d->limit_ms[i] = ms[i] < LIMIT_MAX_MS ? ms[i] : LIMIT_MAX_MS;
    return 0;
}

int uva__deadlines_add(struct uva__producer *p,
                       const struct uva_timeout *limits)
{
    const int64_t ms[LIMITS] = {limits->open_ms, limits->first_ms,
                                limits->between_ms, limits->total_ms};

    return deadlines_set(p, ms);
}

int uva__deadlines_add_busy(struct uva__producer *p, int64_t busy_ms)
{
    const int64_t ms[LIMITS] = {[LIMIT_BUSY] = busy_ms};

    return deadlines_set(p, ms);
}

void uva__deadlines_free(struct uva__deadlines *d)
{
    uva__memory_free(&d->rt->allocator, d, sizeof(*d));
}

/* ---- the waits ----------------------------------------------------------- */

static bool waits_for_schema(const struct uva__deadlines *d)
{
    return !d->state->schema_known;
}

/* A handler that is paused wants no batch, whatever the demand. */
static bool waits_for_batch(const struct uva__deadlines *d)
{
    const struct uva__producer_state *state = d->state;

    return state->phase == UVA__PHASE_FLOWING &&
           uva__producer_state_wants(state) && state->ready == 0;
}

/* Which limit counts for a batch: for the first one its own, if there is one.
 */
static enum limit limit_of_batch(const struct uva__deadlines *d)
{
    return d->offered == 0 && d->limit_ms[LIMIT_FIRST] > 0 ? LIMIT_FIRST
                                                           : LIMIT_BETWEEN;
}

/* The time that the wait for the schema adds to the wait for the first batch: a
 * driver may execute a query in either. */
static uint64_t opening_ns(const struct uva__deadlines *d)
{
    return d->offered == 0 &&
                   d->opened_ns > d->begun_ns /* it was not opened ahead */
               ? d->opened_ns - d->begun_ns
               : 0;
}

/* Notes whether the producer waits for a batch. Returns whether a wait has
 * begun. */
static bool wait_note(struct uva__deadlines *d)
{
    const int64_t offered = uva__counter_get(d->batches);
    const bool same = d->since_ns != 0 && d->offered == offered;

    if (!waits_for_batch(d)) {
        d->since_ns = 0;
        return false;
    }
    if (same)
        return false;
    d->offered = offered;
    d->since_ns = uva__clock_ns() - opening_ns(d);
    return true;
}

/* ---- when a limit passes ------------------------------------------------ */

/* Makes `limit` the one to pass first, if it is set and passes before. */
static void limit_choose(const struct uva__deadlines *d, enum limit limit,
                         uint64_t since_ns, enum limit *first, uint64_t *due_ns)
{
    const uint64_t due = since_ns + (uint64_t)d->limit_ms[limit] * 1000000;

    if (d->limit_ms[limit] == 0 || due >= *due_ns)
        return;
    *first = limit;
    *due_ns = due;
}

/* As that, for the time that the source's calls take, which may have passed
 * before now. */
static void limit_choose_busy(const struct uva__deadlines *d, enum limit *first,
                              uint64_t *due_ns)
{
    const struct uva__source *source = d->source;
    const uint64_t now_ns = uva__clock_ns(),
                   limit_ns = (uint64_t)d->limit_ms[LIMIT_BUSY] * 1000000,
                   look_ns = now_ns + (uint64_t)BUSY_LOOK_MS * 1000000;
    uint64_t spent_ns, due;
    bool is_busy;

    if (limit_ns == 0)
        return;
    spent_ns = source->ops->busy_ns(source, now_ns, &is_busy);
    due = spent_ns < limit_ns ? now_ns + limit_ns - spent_ns : 0;
    if (!is_busy && spent_ns < limit_ns && due < look_ns)
        due = look_ns;
    if (due >= *due_ns)
        return;
    *first = LIMIT_BUSY;
    *due_ns = due;
}

/* Gives the limit that passes first, and when; LIMITS: no limit does. */
static enum limit limit_next(const struct uva__deadlines *d, uint64_t *due_ns)
{
    enum limit first = LIMITS;

    *due_ns = UINT64_MAX;
    limit_choose(d, LIMIT_TOTAL, d->begun_ns, &first, due_ns);
    if (waits_for_schema(d)) {
        limit_choose(d, LIMIT_OPEN, d->begun_ns, &first, due_ns);
        limit_choose(d, limit_of_batch(d), d->begun_ns, &first, due_ns);
    }
    if (d->since_ns != 0)
        limit_choose(d, limit_of_batch(d), d->since_ns, &first, due_ns);
    limit_choose_busy(d, &first, due_ns);
    return first;
}

static void limit_fail(const struct uva__deadlines *d, enum limit limit,
                       struct uva__failure *failure)
{
    static const char *const names[LIMITS] = {
        "open_ms", "first_ms", "between_ms", "total_ms", "busy_ms"};
    static const char *const missing[LIMITS] = {
        "no schema came", "no first batch came", "no batch came",
        "the stream has not ended", "the calls of its source were not done"};
    const char *stage = d->source->name, *part = NULL;
    enum uva_waiting what = UVA_WAITING_CONSUMER;

    if (limit == LIMIT_BUSY)
        what = UVA_WAITING_SOURCE;
    else if (waits_for_schema(d) || d->since_ns != 0)
        what = uva__source_waiting(d->source, &stage, &part);
    uva__failure_format(
        failure, &d->rt->allocator, ETIMEDOUT,
        "timeout: %s within %lld ms (%s); %s%s%s waits for %s", missing[limit],
        (long long)d->limit_ms[limit], names[limit], part != NULL ? part : "",
        part != NULL ? ": " : "", stage, uva__waiting_text(what));
}

/* ---- on the loop -------------------------------------------------------- */

void uva__deadlines_begin(struct uva__deadlines *d)
{
    uint64_t due_ns;

    d->begun_ns = uva__clock_ns();
    if (limit_next(d, &due_ns) != LIMITS)
        uva__timer_start_at(d->rt, &d->timer, due_ns);
}

/* The timer has fired. It may have been set for a wait that is over. */
static bool deadlines_look(struct uva__deadlines *d,
                           struct uva__failure *failure)
{
    const uint64_t now_ns = uva__clock_ns();
    uint64_t due_ns;
    const enum limit limit = limit_next(d, &due_ns);

    if (limit != LIMITS && now_ns >= due_ns && d->runs < RUNS_MAX) {
        d->runs++;
        return true;
    }
    d->fired = false;
    d->runs = 0;
    if (limit != LIMITS && now_ns < due_ns)
        uva__timer_start_at(d->rt, &d->timer, due_ns);
    else if (limit != LIMITS)
        limit_fail(d, limit, failure);
    return false;
}

bool uva__deadlines_check(struct uva__deadlines *d,
                          struct uva__failure *failure)
{
    const bool opens = d->opened_ns == 0 && !waits_for_schema(d);
    uint64_t due_ns;
    bool begins;

    if (uva__producer_state_is_sated(d->state)) {
        uva__deadlines_stop(d);
        return false;
    }
    if (opens)
        d->opened_ns = uva__clock_ns();
    if (d->begun_ns == 0)
        return false;
    begins = wait_note(d);
    if (d->fired)
        return deadlines_look(d, failure);
    if (!opens && !begins)
        return false;
    if (limit_next(d, &due_ns) == LIMITS)
        uva__timer_stop(d->rt, &d->timer);
    else if (begins)
        uva__timer_start_at(d->rt, &d->timer, due_ns);
    return false;
}

void uva__deadlines_stop(struct uva__deadlines *d)
{
    d->fired = false;
    d->since_ns = 0;
    uva__timer_stop(d->rt, &d->timer);
}
