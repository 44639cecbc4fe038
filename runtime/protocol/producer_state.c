/* SPDX-License-Identifier: Apache-2.0 */
/* The order in which a producer calls its handler.
 *
 * Happy path:  on_schema -> (request, batch ready -> on_next_task)* ->
 *              on_next_task(NULL) -> release.
 *
 * Failures:
 * - the source fails: the batches before that are delivered, then the error,
 *   then release;
 * - the consumer returns an error: only release follows;
 * - the consumer requests fewer than one batch: on_error with EINVAL;
 * - an extraction fails: on_error at once, also after the end was delivered.
 *
 * On cancel:   no new batch is delivered, no error and no closing NULL: only
 *              release follows.
 *
 * If the stop of the source takes time, no call follows until it has ended.
 *
 * Clauses: AH-08, AH-16, AP-09, AT-08, G-17, G-27, G-28, G-40. */
#include "protocol/producer_state.h"

#include <assert.h>
#include <errno.h>

void uva__producer_state_init(struct uva__producer_state *s, int64_t limit)
{
    *s = (struct uva__producer_state){.left = limit < 0 ? -1 : limit};
}

static enum uva__producer_move
after_the_end(const struct uva__producer_state *s)
{
    return s->unsettled > 0 && !s->drain_ended ? UVA__MOVE_WAIT
                                               : UVA__MOVE_RELEASE;
}

static enum uva__producer_move
before_the_schema(const struct uva__producer_state *s)
{
    if (s->schema_known)
        return UVA__MOVE_OFFER_SCHEMA;
    return s->source_error != 0 ? UVA__MOVE_OFFER_ERROR : UVA__MOVE_WAIT;
}

/* Whether a move may be made at all, whatever the facts. */
static bool may_move(const struct uva__producer_state *s)
{
    return !s->in_call && !s->released && !s->stopping;
}

/* Returns the first move that applies, in the order that docs/clauses.md gives
 * for the producer. */
enum uva__producer_move
uva__producer_state_next(const struct uva__producer_state *s)
{
    if (!may_move(s))
        return UVA__MOVE_WAIT;
    if (s->refused || s->cancelled || s->error_delivered)
        return UVA__MOVE_RELEASE;
    if (s->urgent)
        return UVA__MOVE_OFFER_ERROR;
    if (s->end_delivered)
        return after_the_end(s);
    if (!s->schema_delivered)
        return before_the_schema(s);
    if (s->paused)
        return UVA__MOVE_WAIT;
    if (s->left == 0)
        return UVA__MOVE_OFFER_END;
    if (s->ready > 0)
        return s->demand > 0 ? UVA__MOVE_OFFER_TASK : UVA__MOVE_WAIT;
    if (s->source_error != 0)
        return UVA__MOVE_OFFER_ERROR;
    return s->exhausted ? UVA__MOVE_OFFER_END : UVA__MOVE_WAIT;
}

bool uva__producer_state_is_sated(const struct uva__producer_state *s)
{
    return s->refused || s->cancelled || s->urgent || s->end_delivered ||
           s->error_delivered || (s->left == 0 && s->schema_delivered);
}

void uva__producer_state_begin(struct uva__producer_state *s,
                               enum uva__producer_move move)
{
    assert(move != UVA__MOVE_WAIT && move == uva__producer_state_next(s));
    if (move == UVA__MOVE_OFFER_TASK)
        uva__producer_state_begin_task(s);
    else
        s->in_call = true;
}

void uva__producer_state_end(struct uva__producer_state *s,
                             enum uva__producer_move move, int code)
{
    assert(s->in_call && move != UVA__MOVE_WAIT);
    if (move == UVA__MOVE_OFFER_TASK) {
        uva__producer_state_end_task(s, code);
        return;
    }
    s->in_call = false;
    switch (move) {
    case UVA__MOVE_OFFER_SCHEMA:
        s->schema_delivered = true;
        s->refused = code != 0;
        break;
    case UVA__MOVE_OFFER_END:
        s->end_delivered = true; /* return value ignored. Clauses: G-41. */
        break;
    case UVA__MOVE_OFFER_ERROR:
        s->error_delivered = true;
        break;
    default: /* release */
        s->released = true;
    }
}

void uva__producer_state_note_request(struct uva__producer_state *s, int64_t n)
{
    if (s->held_up != 0 &&
        (s->cancelled || s->end_delivered || s->error_delivered || s->released))
        return;
    if (n < 1)
        uva__producer_state_note_urgent(s, EINVAL);
    else if (n > UVA__UNBOUNDED - s->demand)
        s->demand = UVA__UNBOUNDED;
    else
        s->demand += n;
}

void uva__producer_state_note_cancel(struct uva__producer_state *s)
{
    s->cancelled = true;
}

void uva__producer_state_note_urgent(struct uva__producer_state *s, int code)
{
    assert(code != 0);
    if (s->urgent || s->error_delivered)
        return;
    s->urgent_error = code;
    s->urgent = true;
}
