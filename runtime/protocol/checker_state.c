/* SPDX-License-Identifier: Apache-2.0 */
/* Happy path:  on_schema -> (request -> on_next_task)* -> on_next_task(NULL) ->
 *              release.
 *
 * A call breaks at most one rule on order: the first that applies. So it is
 * with the rules on place (the call that it began inside or beside).
 *
 * Only conclude checks liveness, that is, calls that should have come. */
#include "protocol/checker_state.h"

#include <errno.h>
#include <stddef.h>

_Static_assert(UVA__RULE_COUNT <= 256, "each rule has a bit");

enum { CODE_MAX = 4095 };

void uva__findings_add(struct uva__findings *findings, enum uva__rule rule,
                       int64_t number)
{
    if (findings->count == UVA__FINDINGS_MAX)
        return;
    findings->all[findings->count].rule = rule;
    findings->all[findings->count].number = number;
    findings->count++;
}

void uva__checker_state_find(struct uva__checker_state *p,
                             struct uva__findings *findings,
                             enum uva__rule rule, int64_t number)
{
    const uint64_t bit = (uint64_t)1 << (rule & 63);

    if (p->found[rule >> 6] & bit)
        return;
    p->found[rule >> 6] |= bit;
    uva__findings_add(findings, rule, number);
}

static bool is_cancelled(const struct uva__checker_state *p)
{
    return p->cancel >= UVA__CANCEL_ENTERED;
}

static bool is_released(const struct uva__checker_state *p)
{
    return p->release >= UVA__RELEASE_ENTERED;
}

/* ---- where a callback begins -------------------------------------------- */

/* The rule against a callback inside another call on its thread; COUNT if there
 * is no such rule. */
static enum uva__rule rule_within(const struct uva__checker_state *p,
                                  enum uva__call call,
                                  const struct uva__call_context *context)
{
    const bool is_release = call == UVA__CALL_RELEASE;

    if (context->within == UVA__CALL_EXTRACT)
        return UVA__RULE_AT_23;
    if (context->within == UVA__CALL_REQUEST && !is_release)
        return UVA__RULE_AP_04;
    if (context->within == UVA__CALL_REQUEST && !is_cancelled(p))
        return UVA__RULE_AP_05;
    if (context->within == UVA__CALL_CANCEL && call != UVA__CALL_ERROR)
        return UVA__RULE_AP_13;
    if (context->callback != UVA__CALL_NONE)
        return UVA__RULE_TH_08;
    return UVA__RULE_COUNT;
}

/* The rule against a callback while one runs on another thread. */
static enum uva__rule rule_beside(enum uva__call call, enum uva__call beside)
{
    if (beside == UVA__CALL_NONE)
        return UVA__RULE_COUNT;
    if (call == UVA__CALL_RELEASE)
        return UVA__RULE_TH_09;
    if ((call == UVA__CALL_TASK || call == UVA__CALL_END) &&
        (beside == UVA__CALL_TASK || beside == UVA__CALL_END))
        return UVA__RULE_AH_15;
    return UVA__RULE_TH_01;
}

static void check_context(struct uva__checker_state *p, enum uva__call call,
                          const struct uva__call_context *context,
                          struct uva__findings *findings)
{
    enum uva__rule rule = rule_within(p, call, context);

    if (rule == UVA__RULE_COUNT)
        rule = rule_beside(call, context->beside);
    if (rule != UVA__RULE_COUNT)
        uva__checker_state_find(p, findings, rule, 0);
}

/* ---- the order of callbacks --------------------------------------------- */

/* The rule against a release before the outcome of the stream is known. */
static enum uva__rule rule_of_release(const struct uva__checker_state *p)
{
    if (p->refusal != UVA__REFUSAL_NONE || p->failed || is_cancelled(p))
        return UVA__RULE_COUNT;
    if (!p->schema_delivered)
        return UVA__RULE_AH_05_ALONE;
    if (p->bad_request != UVA__BAD_REQUEST_NONE)
        return UVA__RULE_AP_09;
    if (p->failure_known)
        return UVA__RULE_ER_05;
    if (!p->ended && p->failures == 0 && p->extracting == 0)
        return UVA__RULE_AH_12;
    return UVA__RULE_COUNT;
}

static enum uva__rule rule_of_error(const struct uva__checker_state *p)
{
    if (p->ended && p->failures == 0 && p->extracting == 0)
        return UVA__RULE_AH_33;
    return UVA__RULE_COUNT;
}

/* The rule against a call after the stream ended in another way than by NULL.
 */
static enum uva__rule rule_of_more(const struct uva__checker_state *p,
                                   enum uva__call call)
{
    if (p->refusal == UVA__REFUSAL_OF_SCHEMA)
        return UVA__RULE_AH_08;
    if (p->refusal == UVA__REFUSAL_OF_TASK)
        return UVA__RULE_AH_16;
    if (p->failed)
        return call == UVA__CALL_ERROR ? UVA__RULE_AH_32 : UVA__RULE_AH_17;
    return UVA__RULE_COUNT;
}

static enum uva__rule rule_of_order(const struct uva__checker_state *p,
                                    enum uva__call call)
{
    enum uva__rule rule;

    if (call == UVA__CALL_RELEASE)
        return rule_of_release(p);
    rule = rule_of_more(p, call);
    if (rule != UVA__RULE_COUNT)
        return rule;
    if (call == UVA__CALL_ERROR)
        return rule_of_error(p);
    if ((call == UVA__CALL_SCHEMA) == p->schema_delivered)
        return UVA__RULE_AH_05;
    return p->ended ? UVA__RULE_AH_11 : UVA__RULE_COUNT;
}

/* ---- demand ------------------------------------------------------------- */

/* Checks whether a task that came in order was requested. */
static void check_offer(struct uva__checker_state *p,
                        struct uva__findings *findings)
{
    const uint64_t offers = (uint64_t)p->offers + 1;

    if (p->granted == 0)
        uva__checker_state_find(p, findings, UVA__RULE_AH_10, p->offers);
    else if (offers > p->granted)
        uva__checker_state_find(p, findings, UVA__RULE_AP_06, p->offers);
    else if (p->cancel >= UVA__CANCEL_RETURNED && offers > p->granted_early)
        uva__checker_state_find(p, findings, UVA__RULE_AP_07, p->offers);
    if (p->failure_known && !is_cancelled(p))
        uva__checker_state_find(p, findings, UVA__RULE_AT_08, p->offers);
}

/* ---- a callback --------------------------------------------------------- */

/* An end that was decided beside a bad request cannot answer it. */
static void note_begun(struct uva__checker_state *p, enum uva__call call)
{
    if (call == UVA__CALL_END && p->bad_request != UVA__BAD_REQUEST_KNOWN)
        p->bad_request = UVA__BAD_REQUEST_NONE;
    if (call == UVA__CALL_RELEASE)
        p->release = UVA__RELEASE_ENTERED;
    p->schema_delivered |= call == UVA__CALL_SCHEMA;
    p->ended |= call == UVA__CALL_END;
    p->failed |= call == UVA__CALL_ERROR;
    p->offers += call == UVA__CALL_TASK;
}

bool uva__checker_state_begin(struct uva__checker_state *p, enum uva__call call,
                              const struct uva__call_context *context,
                              struct uva__findings *findings)
{
    enum uva__rule rule;

    if (is_released(p)) {
        rule = call == UVA__CALL_RELEASE ? UVA__RULE_AH_21 : UVA__RULE_AH_22;
        uva__checker_state_find(p, findings, rule, 0);
        return false;
    }
    check_context(p, call, context, findings);
    rule = rule_of_order(p, call);
    if (rule != UVA__RULE_COUNT)
        uva__checker_state_find(p, findings, rule, 0);
    else if (call == UVA__CALL_TASK)
        check_offer(p, findings);
    note_begun(p, call);
    return true;
}

/* Whether an error only reports a cancel: by its code or, under the generic
 * EINVAL, by its message. */
static bool reports_cancel(int code, const char *message)
{
    static const char word[] = "cancel";

    if (code == ECANCELED)
        return true;
    if (code != EINVAL || message == NULL)
        return false;
    for (; *message != '\0'; message++)
        if (strncasecmp(message, word, sizeof(word) - 1) == 0)
            return true;
    return false;
}

void uva__checker_state_error(struct uva__checker_state *p, int code,
                              const char *message, uint64_t thread,
                              struct uva__findings *findings)
{
    const bool knew = p->cancel == UVA__CANCEL_KNOWN ||
                      (p->cancel == UVA__CANCEL_RETURNED &&
                       (p->canceller == thread || code == EINVAL));

    if (code == 0)
        uva__checker_state_find(p, findings, UVA__RULE_ER_06, 0);
    if (knew && reports_cancel(code, message))
        uva__checker_state_find(p, findings, UVA__RULE_AP_16, code);
}

static bool is_terminal(enum uva__call call)
{
    return call == UVA__CALL_END || call == UVA__CALL_ERROR ||
           call == UVA__CALL_RELEASE;
}

/* Errors and releases cannot be refused. */
static void note_refusal(struct uva__checker_state *p, enum uva__call call)
{
    if (call == UVA__CALL_SCHEMA)
        p->refusal = UVA__REFUSAL_OF_SCHEMA;
    else if (p->refusal == UVA__REFUSAL_NONE)
        p->refusal = UVA__REFUSAL_OF_TASK;
}

void uva__checker_state_end(struct uva__checker_state *p, enum uva__call call,
                            int code, bool calls_beside,
                            struct uva__findings *findings)
{
    if (code < 0 || code > CODE_MAX)
        uva__checker_state_find(p, findings, UVA__RULE_AH_09, code);
    if (is_terminal(call) && calls_beside)
        uva__checker_state_find(p, findings, UVA__RULE_TH_10, 0);
    if (code != 0)
        note_refusal(p, call);
    if (call == UVA__CALL_RELEASE)
        p->release = UVA__RELEASE_RETURNED;
    if (p->cancel == UVA__CANCEL_RETURNED)
        p->cancel = UVA__CANCEL_KNOWN;
    if (p->bad_request == UVA__BAD_REQUEST_RETURNED)
        p->bad_request = UVA__BAD_REQUEST_KNOWN;
    p->failure_known |= p->failures > 0;
}

/* ---- calls of the consumer ---------------------------------------------- */

/* Checks a call by its place. Returns whether the producer may be called. */
static bool check_call(struct uva__checker_state *p,
                       const struct uva__call_context *context,
                       struct uva__findings *findings)
{
    if (context->callback == UVA__CALL_ERROR ||
        context->callback == UVA__CALL_RELEASE)
        uva__checker_state_find(p, findings, UVA__RULE_AH_19, 0);
    else if (p->release == UVA__RELEASE_RETURNED)
        uva__checker_state_find(p, findings, UVA__RULE_AP_24, 0);
    else if (!p->schema_delivered && !is_released(p))
        uva__checker_state_find(p, findings, UVA__RULE_AH_04, 0);
    return !is_released(p);
}

/* A request(n < 1): in a callback it returns before that does. */
static void note_bad_request(struct uva__checker_state *p, bool in_callback)
{
    if (p->bad_request == UVA__BAD_REQUEST_NONE)
        p->bad_request = UVA__BAD_REQUEST_ENTERED;
    if (p->bad_request == UVA__BAD_REQUEST_ENTERED && in_callback)
        p->bad_request = UVA__BAD_REQUEST_RETURNED;
}

static uint64_t add_saturating(uint64_t sum, int64_t n)
{
    return sum > UINT64_MAX - (uint64_t)n ? UINT64_MAX : sum + (uint64_t)n;
}

bool uva__checker_state_request(struct uva__checker_state *p, int64_t n,
                                const struct uva__call_context *context,
                                struct uva__findings *findings)
{
    const bool open =
        check_call(p, context, findings) && !p->ended && !p->failed;

    if (n < 1) {
        uva__checker_state_find(p, findings, UVA__RULE_AP_08, n);
        if (open && !is_cancelled(p))
            note_bad_request(p, context->callback != UVA__CALL_NONE);
        return open;
    }
    p->granted = add_saturating(p->granted, n);
    if (p->cancel < UVA__CANCEL_RETURNED)
        p->granted_early = p->granted;
    if ((uint64_t)n > p->largest)
        p->largest = (uint64_t)n;
    p->requests++;
    p->requested_outside |= context->callback == UVA__CALL_NONE;
    return open;
}

bool uva__checker_state_cancel(struct uva__checker_state *p,
                               const struct uva__call_context *context,
                               uint64_t thread, struct uva__findings *findings)
{
    const bool alive = check_call(p, context, findings);

    if (alive && !is_cancelled(p))
        p->cancel = UVA__CANCEL_ENTERED;
    p->canceller = thread;
    return alive;
}

void uva__checker_state_cancelled(struct uva__checker_state *p)
{
    if (p->cancel == UVA__CANCEL_ENTERED)
        p->cancel = UVA__CANCEL_RETURNED;
}

/* ---- the end ------------------------------------------------------------ */

/* The rule that is broken if release never came, or no call came before it. */
static enum uva__rule rule_of_silence(const struct uva__checker_state *p)
{
    if (p->failed)
        return UVA__RULE_AH_17;
    if (is_cancelled(p))
        return UVA__RULE_AP_14;
    if (p->refusal != UVA__REFUSAL_NONE || p->ended || !p->schema_delivered)
        return UVA__RULE_AH_21;
    if (p->granted <= (uint64_t)p->offers)
        return UVA__RULE_COUNT; /* it waits for a request, lawfully */
    if (p->requests > 1 && (uint64_t)p->offers >= p->largest)
        return UVA__RULE_AP_02;
    return p->offers == 0 && !p->requested_outside ? UVA__RULE_AP_03
                                                   : UVA__RULE_AP_26;
}

void uva__checker_state_conclude(struct uva__checker_state *p, bool accepted,
                                 int64_t held, int64_t first,
                                 struct uva__findings *findings)
{
    /* the producer may wait for a task that can still fail */
    const bool waits = held > 0 && p->ended && !p->failed && !is_cancelled(p);
    enum uva__rule rule = UVA__RULE_COUNT;

    if (accepted && !is_released(p) && !waits)
        rule = rule_of_silence(p);
    if (rule != UVA__RULE_COUNT)
        uva__checker_state_find(p, findings, rule, p->offers);
    if (held > 0)
        uva__checker_state_find(p, findings,
                                is_cancelled(p) || p->failed ? UVA__RULE_AT_21
                                                             : UVA__RULE_AT_02,
                                first);
}
