/* SPDX-License-Identifier: Apache-2.0 */
/* The producer's state machine: facts in any order, with moves carried out by a
 * caller that keeps the rules, compared with counts of the handler's calls. */
#include <errno.h>

#include "fuzz/fuzz_input.h"
#include "protocol/producer_state.h"

/* The handler's calls, and the stream's. */
struct seen {
    int64_t open;     /* requested and not offered; unbounded stays so */
    int64_t given;    /* batches that became ready */
    int64_t tasks;    /* tasks offered */
    int64_t limit;    /* batches allowed; negative: no limit */
    int schemas;      /* calls of on_schema */
    int ends;         /* calls with NULL */
    int errors;       /* calls of on_error */
    int releases;     /* calls of release */
    int first_urgent; /* the first urgent code, or 0 */
    bool cancelled;   /* cancelled by the consumer */
    bool refused;     /* a callback returned an error */
};

/* Only release may follow. */
static bool is_closed(const struct seen *seen)
{
    return seen->refused || seen->cancelled || seen->errors > 0;
}

/* ---- invariants --------------------------------------------------------- */

static void check_task(const struct uva__producer_state *s,
                       const struct seen *seen)
{
    FUZZ_RULE(seen->schemas == 1 && seen->ends == 0);
    FUZZ_RULE(s->paused == UVA__PAUSED_NOT);
    FUZZ_RULE(seen->open > 0);
    FUZZ_RULE(seen->tasks < seen->given);
    FUZZ_RULE(seen->limit < 0 || seen->tasks < seen->limit);
    FUZZ_RULE(seen->first_urgent == 0);
}

static void check_end(const struct uva__producer_state *s,
                      const struct seen *seen)
{
    FUZZ_RULE(s->paused != UVA__PAUSED_ALL);
    FUZZ_RULE(seen->schemas == 1 && seen->ends == 0);
    FUZZ_RULE(seen->tasks == seen->given || seen->tasks == seen->limit);
}

static void check_release(const struct uva__producer_state *s,
                          const struct seen *seen, bool closed)
{
    FUZZ_RULE(closed || seen->ends == 1);
    FUZZ_RULE(closed || s->drain_ended || s->unsettled == 0);
}

/* The end and an error wait for no batch that is not at hand, and for no
 * request. */
static void check_wait(const struct uva__producer_state *s)
{
    FUZZ_RULE(s->phase != UVA__PHASE_FLOWING || s->stopping || s->ready > 0 ||
              s->paused == UVA__PAUSED_ALL ||
              (!s->exhausted && s->source_error == 0));
}

/* Checks that `move` may follow the handler's calls so far. */
static void check_move(const struct uva__producer_state *s,
                       const struct seen *seen, enum uva__producer_move move)
{
    const bool closed = is_closed(seen);

    if (move == UVA__MOVE_WAIT) {
        check_wait(s);
        return;
    }
    FUZZ_RULE(seen->releases == 0 && !s->stopping);
    FUZZ_RULE(!closed || move == UVA__MOVE_RELEASE);
    if (move == UVA__MOVE_OFFER_SCHEMA)
        FUZZ_RULE(seen->schemas == 0);
    else if (move == UVA__MOVE_OFFER_TASK)
        check_task(s, seen);
    else if (move == UVA__MOVE_OFFER_END)
        check_end(s, seen);
    else if (move == UVA__MOVE_OFFER_ERROR)
        FUZZ_RULE(s->source_error != 0 || s->urgent_error != 0);
    else
        check_release(s, seen, closed);
}

static void check_state(const struct uva__producer_state *s,
                        const struct seen *seen)
{
    FUZZ_RULE(s->demand >= 0 && s->ready >= 0);
    FUZZ_RULE(s->ready == seen->given - seen->tasks);
    FUZZ_RULE(s->left == (seen->limit < 0 ? -1 : seen->limit - seen->tasks));
    FUZZ_RULE(s->demand == seen->open);
    FUZZ_RULE(s->urgent_error == seen->first_urgent);
}

/* ---- one step ----------------------------------------------------------- */

static void note_seen(struct seen *seen, enum uva__producer_move move, int code)
{
    seen->schemas += move == UVA__MOVE_OFFER_SCHEMA;
    seen->tasks += move == UVA__MOVE_OFFER_TASK;
    seen->ends += move == UVA__MOVE_OFFER_END;
    seen->errors += move == UVA__MOVE_OFFER_ERROR;
    seen->releases += move == UVA__MOVE_RELEASE;
    seen->refused =
        seen->refused || (code != 0 && (move == UVA__MOVE_OFFER_TASK ||
                                        move == UVA__MOVE_OFFER_SCHEMA));
}

static void note_request(struct uva__producer_state *s, struct seen *seen,
                         int64_t n)
{
    const bool counts = !is_closed(seen) && seen->ends == 0;

    uva__producer_state_note_request(s, n);
    if (!counts)
        return;
    if (n < 1 && seen->first_urgent == 0)
        seen->first_urgent = EINVAL;
    else if (n >= 1 && n >= UVA__UNBOUNDED - seen->open)
        seen->open = UVA__UNBOUNDED;
    else if (n >= 1)
        seen->open += n;
}

/* Notes a fact from the consumer or from an extracting thread. */
static void meddle(struct uva__producer_state *s, struct seen *seen,
                   struct fuzz_input *in)
{
    switch (fuzz_below(in, 8)) {
    case 0:
    case 1:
    case 2:
        note_request(s, seen, 1 + fuzz_below(in, 4));
        break;
    case 3:
        note_request(s, seen, fuzz_strange(in));
        break;
    case 4:
        if (fuzz_byte(in) < 128)
            break;
        uva__producer_state_note_cancel(s);
        seen->cancelled = true;
        break;
    case 5:
        s->unsettled -= s->unsettled > 0;
        break;
    case 6:
        if (s->unsettled == 0)
            break;
        s->unsettled--;
        uva__producer_state_note_urgent(s, ENODATA); /* an extraction failed */
        if (seen->first_urgent == 0 && !is_closed(seen) && seen->releases == 0)
            seen->first_urgent = ENODATA;
        break;
    default:
        s->drain_ended = true;
        break;
    }
}

/* Notes a fact from the source, or from the code that carries out moves. */
static void supply(struct uva__producer_state *s, struct seen *seen,
                   struct fuzz_input *in)
{
    switch (fuzz_below(in, 7)) {
    case 0:
        s->schema_known = true;
        break;
    case 1:
    case 2:
        if (s->exhausted || s->source_error != 0 || !s->schema_known)
            break;
        s->ready++;
        seen->given++;
        break;
    case 3:
        s->exhausted =
            s->exhausted || (s->schema_known && s->source_error == 0);
        break;
    case 4:
        if (!s->exhausted)
            s->source_error = EIO;
        break;
    case 5:
        s->paused = (enum uva__producer_paused)fuzz_below(in, 3);
        break;
    default:
        s->stopping = !s->stopping;
        break;
    }
}

/* Carries out the next move; more facts arrive while it runs. */
static enum uva__producer_move carry_out(struct uva__producer_state *s,
                                         struct seen *seen,
                                         struct fuzz_input *in)
{
    const enum uva__producer_move move = uva__producer_state_next(s);
    int code;

    check_move(s, seen, move);
    if (move == UVA__MOVE_WAIT)
        return move;
    uva__producer_state_begin(s, move);
    FUZZ_RULE(uva__producer_state_next(s) == UVA__MOVE_WAIT);
    s->unsettled += move == UVA__MOVE_OFFER_TASK;
    seen->open -= move == UVA__MOVE_OFFER_TASK && seen->open != UVA__UNBOUNDED;
    code = fuzz_byte(in) > 240 ? EDOM : 0;
    for (int i = fuzz_below(in, 3); i > 0; i--)
        meddle(s, seen, in);
    uva__producer_state_end(s, move, code);
    note_seen(seen, move, code);
    return move;
}

/* ---- one input ---------------------------------------------------------- */

/* Once no facts arrive from outside, the stream must reach its release. */
static void finish(struct uva__producer_state *s, struct seen *seen)
{
    struct fuzz_input nothing = {0};

    s->paused = UVA__PAUSED_NOT;
    s->stopping = false;
    s->schema_known = s->schema_known || s->source_error == 0;
    s->exhausted = s->exhausted || s->source_error == 0;
    note_request(s, seen, INT64_MAX);
    s->unsettled = 0;
    for (int i = 0; i < 2000 && s->phase != UVA__PHASE_RELEASED; i++) {
        (void)carry_out(s, seen, &nothing);
        s->unsettled = 0;
    }
    FUZZ_RULE(s->phase == UVA__PHASE_RELEASED);
    FUZZ_RULE(seen->releases == 1 && seen->schemas <= 1);
    FUZZ_RULE(seen->ends <= 1 && seen->errors <= 1);
    FUZZ_RULE(seen->refused || seen->cancelled ||
              seen->ends + seen->errors > 0);
    FUZZ_RULE(uva__producer_state_is_sated(s));
    FUZZ_RULE(uva__producer_state_next(s) == UVA__MOVE_WAIT);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_input in = {data, size < 1024 ? size : 1024};
    struct uva__producer_state s;
    struct seen seen = {0};
    const int limit = fuzz_byte(&in);

    seen.limit = limit < 128 ? -1 : limit % 8;
    uva__producer_state_init(&s, seen.limit);
    while (in.size > 0) {
        const bool sated = uva__producer_state_is_sated(&s);
        switch (fuzz_below(&in, 3)) {
        case 0:
            supply(&s, &seen, &in);
            break;
        case 1:
            meddle(&s, &seen, &in);
            break;
        default:
            FUZZ_RULE(carry_out(&s, &seen, &in) != UVA__MOVE_OFFER_TASK ||
                      !sated);
            break;
        }
        check_state(&s, &seen);
    }
    finish(&s, &seen);
    return 0;
}
