/* SPDX-License-Identifier: Apache-2.0 */
/* How a consumer classifies the calls of its producer.
 *
 * Happy path:  schema taken -> (request -> task taken -> passed on)* -> end ->
 *              release.
 *
 * Failures:
 * - the producer reports an error: its code ends the stream, after the batches
 *   that came before it;
 * - the producer breaks a rule: its data is used where that is possible, and
 *   discarded elsewhere; only a breach that loses data ends the stream;
 * - we lose a batch: its code ends the stream, the producer is cancelled, and
 *   the remaining batches are discarded;
 * - the producer calls release without an end or an error: ECONNABORTED.
 *
 * On cancel:   everything that follows is discarded; errors that come after it
 *              serve as detail only.
 *
 * The states of the consumer in docs/clauses.md: C3 is an open stream with a
 * schema; C5 one that has FAILED, or was CANCELLED or REJECTED, before the
 * producer has called its end; C6 is HEARD_END, C7 HEARD_ERROR, C8
 * HEARD_RELEASE, C9 the same without a held task.
 *
 * Clauses: ER-13, ER-14. */
#include "protocol/consumer_state.h"

#include <assert.h>
#include <errno.h>
#include <stddef.h>

void uva__consumer_state_init(struct uva__consumer_state *s, int64_t window,
                              int64_t refill)
{
    assert(window > 0 && refill >= 0);
    *s = (struct uva__consumer_state){.window = window};
    s->refill = refill == 0 ? window / 2 : refill;
    if (s->refill >= window)
        s->refill = window - 1;
}

/* ---- the end ------------------------------------------------------------ */

/* The only function that changes `end`. The first end counts; but COMPLETE is
 * replaced by a loss, and by a cancel before all batches were passed on. */
static void consumer_settle(struct uva__consumer_state *s,
                            enum uva__consumer_end end, int code)
{
    const bool finished = s->end == UVA__CONSUMER_COMPLETE &&
                          end == UVA__CONSUMER_CANCELLED && s->held == 0;

    assert(end != UVA__CONSUMER_OPEN);
    assert((code == 0) == (end == UVA__CONSUMER_COMPLETE));
    if (finished ||
        (s->end != UVA__CONSUMER_OPEN && s->end != UVA__CONSUMER_COMPLETE))
        return;
    s->end = end;
    s->code = code;
}

/* Whether further data of the producer is discarded. */
static bool consumer_is_stopping(const struct uva__consumer_state *s)
{
    return s->end != UVA__CONSUMER_OPEN && s->end != UVA__CONSUMER_COMPLETE;
}

bool uva__consumer_state_is_over(const struct uva__consumer_state *s)
{
    switch (s->end) {
    case UVA__CONSUMER_OPEN:
        return false;
    case UVA__CONSUMER_COMPLETE:
    case UVA__CONSUMER_FAILED:
        return s->held == 0;
    default:
        return true;
    }
}

/* ---- the callbacks ------------------------------------------------------ */

static struct uva__consumer_verdict consumer_take(const char *clause)
{
    return (struct uva__consumer_verdict){UVA__ACTION_TAKE, 0, clause};
}

static struct uva__consumer_verdict consumer_ignore(const char *clause)
{
    return (struct uva__consumer_verdict){UVA__ACTION_IGNORE, 0, clause};
}

static struct uva__consumer_verdict consumer_refuse(int code,
                                                    const char *clause)
{
    return (struct uva__consumer_verdict){UVA__ACTION_REFUSE, code, clause};
}

/* A task that is not wanted. A task that cannot even be discarded is ignored.
 */
static struct uva__consumer_verdict
consumer_discard(const struct uva__consumer_call *call, const char *clause)
{
    if (call->code != 0)
        return consumer_ignore(clause);
    return (struct uva__consumer_verdict){UVA__ACTION_DISCARD, 0, clause};
}

/* The rule that forbids every call but release by now; NULL if no rule does. */
static const char *consumer_closed_by(const struct uva__consumer_state *s)
{
    if (s->heard == UVA__HEARD_ERROR)
        return "AH-17";
    if (s->refused != NULL)
        return s->refused;
    return s->heard == UVA__HEARD_END ? "AH-11" : NULL;
}

static struct uva__consumer_verdict
consumer_check_schema(struct uva__consumer_state *s,
                      const struct uva__consumer_call *call)
{
    const char *const closed = consumer_closed_by(s);

    if (closed != NULL || s->heard == UVA__HEARD_SCHEMA)
        return consumer_refuse(EINVAL, closed != NULL ? closed : "AH-05");
    s->heard = UVA__HEARD_SCHEMA;
    if (call->code != 0)
        consumer_settle(s, UVA__CONSUMER_FAILED, call->code);
    if (consumer_is_stopping(s)) { /* the only way to stop before a schema came;
                                      Clauses: G-30. */
        s->refused = "AH-08";
        return consumer_refuse(s->code, call->clause);
    }
    return consumer_take(NULL);
}

/* Counts a task against the demand. Returns the clause it broke, or NULL. */
static const char *consumer_count_task(struct uva__consumer_state *s)
{
    if (s->outstanding == 0)
        return "AP-06";
    if (s->outstanding != UVA__CONSUMER_UNBOUNDED)
        s->outstanding--;
    return NULL;
}

/* A task out of order: after NULL, before on_schema, or otherwise too late. */
static struct uva__consumer_verdict
consumer_check_stray(struct uva__consumer_state *s,
                     const struct uva__consumer_call *call, const char *closed)
{
    if (s->heard != UVA__HEARD_ERROR && s->refused == NULL)
        consumer_settle(s, UVA__CONSUMER_FAILED, EPROTO);
    return consumer_discard(call, closed != NULL ? closed : "AH-05");
}

static struct uva__consumer_verdict
consumer_check_task(struct uva__consumer_state *s,
                    const struct uva__consumer_call *call)
{
    const char *const closed = consumer_closed_by(s);
    const char *clause;

    if (closed != NULL || s->heard == UVA__HEARD_NOTHING)
        return consumer_check_stray(s, call, closed);
    clause = consumer_count_task(s);
    if (call->code != 0) {
        consumer_settle(s, UVA__CONSUMER_FAILED, call->code);
        return consumer_ignore(call->clause);
    }
    if (s->held - UVA__CONSUMER_UNREQUESTED >= s->window)
        consumer_settle(s, UVA__CONSUMER_FAILED, EOVERFLOW);
    if (consumer_is_stopping(s))
        return consumer_discard(call, clause);
    s->held++;
    return consumer_take(clause);
}

static struct uva__consumer_verdict
consumer_check_end(struct uva__consumer_state *s)
{
    const char *const closed = consumer_closed_by(s);
    const bool silent = s->heard == UVA__HEARD_NOTHING;

    if (closed != NULL)
        return consumer_ignore(closed);
    s->heard = UVA__HEARD_END;
    if (silent) {
        consumer_settle(s, UVA__CONSUMER_FAILED, EPROTO);
        return consumer_ignore("AH-05");
    }
    consumer_settle(s, UVA__CONSUMER_COMPLETE, 0);
    return consumer_take(NULL);
}

/* Accepted even where it must not come, as a reason is better than none. */
static struct uva__consumer_verdict
consumer_check_error(struct uva__consumer_state *s,
                     const struct uva__consumer_call *call)
{
    const char *clause = s->refused;

    if (s->heard == UVA__HEARD_ERROR)
        return consumer_ignore("AH-17");
    if (clause == NULL && s->end == UVA__CONSUMER_COMPLETE && s->held == 0)
        clause = "AH-33"; /* no extraction has failed or is in flight */
    if (clause == NULL && call->code == 0)
        clause = "ER-06";
    s->heard = UVA__HEARD_ERROR;
    s->error_code = call->code == 0 ? EIO : call->code;
    consumer_settle(s, UVA__CONSUMER_FAILED, s->error_code);
    return consumer_take(clause);
}

static struct uva__consumer_verdict
consumer_check_release(struct uva__consumer_state *s)
{
    const bool silent = s->heard == UVA__HEARD_NOTHING;

    s->heard = UVA__HEARD_RELEASE;
    if (s->end != UVA__CONSUMER_OPEN)
        return consumer_take(NULL);
    consumer_settle(s, UVA__CONSUMER_FAILED, ECONNABORTED);
    return consumer_take(silent ? "AH-05" : "AH-12");
}

/* No call may follow release. */
static struct uva__consumer_verdict
consumer_check_late(const struct uva__consumer_call *call)
{
    switch (call->event) {
    case UVA__EVENT_SCHEMA:
        return consumer_refuse(EINVAL, "AH-22");
    case UVA__EVENT_TASK:
        return consumer_discard(call, "AH-22");
    case UVA__EVENT_RELEASE:
        return consumer_ignore("AH-21");
    default:
        return consumer_ignore("AH-22");
    }
}

static struct uva__consumer_verdict
consumer_check(struct uva__consumer_state *s,
               const struct uva__consumer_call *call)
{
    if (s->heard == UVA__HEARD_RELEASE)
        return consumer_check_late(call);
    switch (call->event) {
    case UVA__EVENT_SCHEMA:
        return consumer_check_schema(s, call);
    case UVA__EVENT_TASK:
        return consumer_check_task(s, call);
    case UVA__EVENT_END:
        return consumer_check_end(s);
    case UVA__EVENT_ERROR:
        return consumer_check_error(s, call);
    default:
        return consumer_check_release(s);
    }
}

struct uva__consumer_verdict
uva__consumer_state_enter(struct uva__consumer_state *s,
                          const struct uva__consumer_call *call)
{
    struct uva__consumer_verdict verdict = consumer_check(s, call);

    assert(call->clause == NULL || call->code != 0);
    s->offered += call->event == UVA__EVENT_TASK;
    if (verdict.clause == NULL && call->in_request)
        verdict.clause = call->event == UVA__EVENT_RELEASE ? "AP-05" : "AP-04";
    if (s->calls > 0)
        verdict.clause = "TH-01"; /* the worst of them */
    if (verdict.clause != NULL && s->breaches++ == 0)
        s->first_breach = verdict.clause;
    s->calls++;
    s->requested = false;
    return verdict;
}

void uva__consumer_state_leave(struct uva__consumer_state *s)
{
    assert(s->calls > 0);
    s->calls--;
}

void uva__consumer_state_note_refusal(struct uva__consumer_state *s,
                                      enum uva__consumer_event event, int code)
{
    assert(code != 0);
    assert(event == UVA__EVENT_SCHEMA || event == UVA__EVENT_TASK);
    if (s->refused == NULL)
        s->refused = event == UVA__EVENT_SCHEMA ? "AH-08" : "AH-16";
    consumer_settle(s, UVA__CONSUMER_REJECTED, code);
}

/* ---- towards the producer ----------------------------------------------- */

bool uva__consumer_state_may_call(const struct uva__consumer_state *s)
{
    return s->heard == UVA__HEARD_SCHEMA && s->refused == NULL &&
           !s->cancel_delivered;
}

int64_t uva__consumer_state_want(const struct uva__consumer_state *s)
{
    int64_t room;

    if (!uva__consumer_state_may_call(s) || s->end != UVA__CONSUMER_OPEN ||
        (s->calls > 0 && s->requested) || s->outstanding >= s->window)
        return 0;
    room = s->window - s->outstanding - s->held;
    if (room <= 0)
        return 0;
    return s->outstanding == 0 || s->window - room <= s->refill ? room : 0;
}

void uva__consumer_state_note_request(struct uva__consumer_state *s, int64_t n)
{
    assert(n > 0);
    s->requested = true;
    if (n > UVA__CONSUMER_UNBOUNDED - s->outstanding)
        s->outstanding = UVA__CONSUMER_UNBOUNDED;
    else
        s->outstanding += n;
}

bool uva__consumer_state_must_cancel(const struct uva__consumer_state *s)
{
    return consumer_is_stopping(s) && uva__consumer_state_may_call(s);
}

void uva__consumer_state_note_cancel_delivered(struct uva__consumer_state *s)
{
    s->cancel_delivered = true;
}

/* ---- from the program --------------------------------------------------- */

void uva__consumer_state_note_settled(struct uva__consumer_state *s, int code)
{
    assert(s->held > 0);
    s->held--;
    if (code != 0)
        consumer_settle(s, UVA__CONSUMER_FAILED, code);
}

void uva__consumer_state_note_fault(struct uva__consumer_state *s, int code)
{
    assert(code != 0);
    consumer_settle(s, UVA__CONSUMER_FAILED, code);
}

void uva__consumer_state_note_cancel(struct uva__consumer_state *s, int code)
{
    assert(code != 0);
    consumer_settle(s, UVA__CONSUMER_CANCELLED, code);
}
