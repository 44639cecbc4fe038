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
 * Clauses: AH-08, AH-16, AP-09, AP-25, AT-08, G-17, G-27, G-28, G-40. */
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

static enum uva__producer_move
after_the_schema(const struct uva__producer_state *s)
{
    if (s->paused == UVA__PAUSED_ALL)
        return UVA__MOVE_WAIT;
    if (s->left == 0)
        return UVA__MOVE_OFFER_END;
    if (s->ready > 0)
        return uva__producer_state_wants(s) ? UVA__MOVE_OFFER_TASK
                                            : UVA__MOVE_WAIT;
    if (s->source_error != 0)
        return UVA__MOVE_OFFER_ERROR;
    return s->exhausted ? UVA__MOVE_OFFER_END : UVA__MOVE_WAIT;
}

/* Returns the first move that applies, in the order that docs/clauses.md gives
 * for the producer. */
enum uva__producer_move
uva__producer_state_next(const struct uva__producer_state *s)
{
    if (s->in_call || s->stopping || s->phase == UVA__PHASE_RELEASED)
        return UVA__MOVE_WAIT;
    if (s->phase >= UVA__PHASE_FAILED)
        return UVA__MOVE_RELEASE;
    if (s->urgent_error != 0)
        return UVA__MOVE_OFFER_ERROR;
    if (s->phase == UVA__PHASE_FLOWING)
        return after_the_schema(s);
    return s->phase == UVA__PHASE_OPENING ? before_the_schema(s)
                                          : after_the_end(s);
}

bool uva__producer_state_is_sated(const struct uva__producer_state *s)
{
    return s->phase >= UVA__PHASE_ENDED || s->urgent_error != 0 ||
           (s->left == 0 && s->phase == UVA__PHASE_FLOWING);
}

void uva__producer_state_begin(struct uva__producer_state *s,
                               enum uva__producer_move move)
{
    assert(move != UVA__MOVE_WAIT && move == uva__producer_state_next(s));
    s->in_call = true;
    if (move != UVA__MOVE_OFFER_TASK)
        return;
    s->ready--;
    s->demand -= s->demand != UVA__UNBOUNDED;
    s->left -= s->left > 0;
}

static void state_reach(struct uva__producer_state *s,
                        enum uva__producer_phase phase)
{
    if (s->phase < phase)
        s->phase = phase;
}

/* The handler's result for the end is ignored. Clauses: G-41. */
void uva__producer_state_end(struct uva__producer_state *s,
                             enum uva__producer_move move, int code)
{
    static const enum uva__producer_phase phases[] = {
        [UVA__MOVE_OFFER_SCHEMA] = UVA__PHASE_FLOWING,
        [UVA__MOVE_OFFER_TASK] = UVA__PHASE_FLOWING,
        [UVA__MOVE_OFFER_END] = UVA__PHASE_ENDED,
        [UVA__MOVE_OFFER_ERROR] = UVA__PHASE_FAILED,
        [UVA__MOVE_RELEASE] = UVA__PHASE_RELEASED,
    };

    assert(s->in_call && move != UVA__MOVE_WAIT);
    s->in_call = false;
    state_reach(s, phases[move]);
    if (code != 0 && phases[move] == UVA__PHASE_FLOWING)
        uva__producer_state_note_refusal(s);
}

void uva__producer_state_note_request(struct uva__producer_state *s, int64_t n)
{
    if (s->phase >= UVA__PHASE_ENDED)
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
    state_reach(s, UVA__PHASE_CANCELLED);
}

void uva__producer_state_note_refusal(struct uva__producer_state *s)
{
    state_reach(s, UVA__PHASE_REFUSED);
}

void uva__producer_state_note_urgent(struct uva__producer_state *s, int code)
{
    assert(code != 0);
    if (s->urgent_error == 0 && s->phase < UVA__PHASE_FAILED)
        s->urgent_error = code;
}
