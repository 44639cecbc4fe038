/* SPDX-License-Identifier: Apache-2.0 */
/* The consumer's state machine: callbacks of a hostile producer in any order,
 * nested and overlapping, and a program that follows the verdicts. Separate
 * counts are compared with the state; at the end no object may be left. */
#include <errno.h>
#include <string.h>

#include "fuzz/fuzz_input.h"
#include "protocol/consumer_state.h"

/* Counts of the tasks that arrived and of their fate. */
struct books {
    int64_t offered;   /* tasks with a function, and without */
    int64_t taken;     /* tasks taken */
    int64_t discarded; /* tasks refused */
    int64_t ignored;   /* tasks ignored */
    int64_t handed_on; /* taken, and not held any more */
    int64_t requested; /* requested in total */
    int cancels;       /* cancels sent to the producer */
    int schemas;       /* schemas taken */
    int releases;      /* releases taken */
    bool closed;       /* no calls to the producer are allowed any more */
    enum uva__consumer_end end; /* the end, as last seen */
    int code;                   /* its code, as last seen */
};

/* ---- invariants --------------------------------------------------------- */

/* Compares the tasks taken and handed on with the state's own counts. */
static void check_sums(const struct uva__consumer_state *s,
                       const struct books *b)
{
    FUZZ_RULE(s->offered == b->offered);
    FUZZ_RULE(b->offered == b->taken + b->discarded + b->ignored);
    FUZZ_RULE(s->held == b->taken - b->handed_on && s->held >= 0);
    FUZZ_RULE(s->held <= s->window + UVA__CONSUMER_UNREQUESTED);
    FUZZ_RULE(s->outstanding >= 0 && s->outstanding <= s->window);
    FUZZ_RULE(b->cancels <= 1 && b->schemas <= 1 && b->releases <= 1);
    FUZZ_RULE((s->breaches == 0) == (s->first_breach == NULL));
}

/* Returns whether the end can no longer be replaced by another one. */
static bool is_final(enum uva__consumer_end end)
{
    return end != UVA__CONSUMER_OPEN && end != UVA__CONSUMER_COMPLETE;
}

/* The first cause must stay, and a stream must not be over before everything is
 * handed on, unless the program has cancelled. */
static void check_end(const struct uva__consumer_state *s,
                      const struct books *b)
{
    const bool waits =
        s->end == UVA__CONSUMER_COMPLETE || s->end == UVA__CONSUMER_FAILED;

    FUZZ_RULE((s->code != 0) == is_final(s->end));
    FUZZ_RULE(s->heard != UVA__HEARD_RELEASE || s->end != UVA__CONSUMER_OPEN);
    FUZZ_RULE(!is_final(b->end) || (s->end == b->end && s->code == b->code));
    FUZZ_RULE(b->end == UVA__CONSUMER_OPEN || s->end != UVA__CONSUMER_OPEN);
    FUZZ_RULE(!uva__consumer_state_is_over(s) || !waits || s->held == 0);
}

/* Calls to the producer must stop before it ends, and must not start again. */
static void check_calls(const struct uva__consumer_state *s, struct books *b)
{
    const bool may = uva__consumer_state_may_call(s);

    FUZZ_RULE(!may || (b->schemas > 0 && s->heard != UVA__HEARD_RELEASE));
    FUZZ_RULE(!may || !b->closed);
    FUZZ_RULE(may || uva__consumer_state_want(s) == 0);
    FUZZ_RULE(may || !uva__consumer_state_must_cancel(s));
    b->closed = b->schemas > 0 && !may;
}

static void check_state(const struct uva__consumer_state *s, struct books *b)
{
    check_sums(s, b);
    check_end(s, b);
    check_calls(s, b);
    b->end = s->end;
    b->code = s->code;
}

static void check_verdict(struct books *b,
                          const struct uva__consumer_call *call,
                          const struct uva__consumer_verdict *verdict)
{
    const bool task = call->event == UVA__EVENT_TASK;
    const bool take = verdict->action == UVA__ACTION_TAKE;

    FUZZ_RULE((verdict->code != 0) == (verdict->action == UVA__ACTION_REFUSE));
    FUZZ_RULE(task || verdict->action != UVA__ACTION_DISCARD);
    if (call->event == UVA__EVENT_SCHEMA) /* never left to the producer */
        FUZZ_RULE(take || verdict->action == UVA__ACTION_REFUSE);
    if (task) /* extracted exactly if it can be (AT-02) */
        FUZZ_RULE((call->code == 0) == (verdict->action != UVA__ACTION_IGNORE));
    if (task)
        FUZZ_RULE(verdict->action != UVA__ACTION_REFUSE); /* G-18 */
    b->offered += task;
    b->taken += task && take;
    b->discarded += verdict->action == UVA__ACTION_DISCARD;
    b->ignored += task && verdict->action == UVA__ACTION_IGNORE;
    b->schemas += call->event == UVA__EVENT_SCHEMA && take;
    b->releases += call->event == UVA__EVENT_RELEASE && take;
}

/* ---- one step ----------------------------------------------------------- */

/* Sends unrequested tasks, more than the consumer will hold. */
static void flood(struct uva__consumer_state *s, struct books *b)
{
    const struct uva__consumer_call task = {.event = UVA__EVENT_TASK};
    struct uva__consumer_verdict verdict;

    for (int i = 0; i < 600; i++) {
        verdict = uva__consumer_state_enter(s, &task);
        check_verdict(b, &task, &verdict);
        uva__consumer_state_leave(s);
    }
}

/* Begins a callback. */
static void call(struct uva__consumer_state *s, struct books *b,
                 struct fuzz_input *in)
{
    static const struct uva__consumer_call calls[] = {
        {.event = UVA__EVENT_SCHEMA},
        {.event = UVA__EVENT_SCHEMA, .code = ENOTSUP},
        {.event = UVA__EVENT_SCHEMA, .code = EINVAL, .clause = "AH-03"},
        {.event = UVA__EVENT_TASK},
        {.event = UVA__EVENT_TASK},
        {.event = UVA__EVENT_TASK},
        {.event = UVA__EVENT_TASK, .code = EPROTO, .clause = "AT-01"},
        {.event = UVA__EVENT_END},
        {.event = UVA__EVENT_ERROR},
        {.event = UVA__EVENT_ERROR, .code = EIO},
        {.event = UVA__EVENT_RELEASE},
    };
    const int byte = fuzz_byte(in);
    const int64_t breaches = s->breaches;
    struct uva__consumer_call this = calls[byte % 11];
    struct uva__consumer_verdict verdict;
    int code;

    this.in_request = byte >= 232;
    verdict = uva__consumer_state_enter(s, &this);
    check_verdict(b, &this, &verdict);
    FUZZ_RULE(s->breaches == breaches + (verdict.clause != NULL));
    FUZZ_RULE(s->calls < 2 || strcmp(verdict.clause, "TH-01") == 0);
    if (verdict.action != UVA__ACTION_TAKE || fuzz_byte(in) < 240)
        return;
    code = 1 + fuzz_below(in, 100); /* the program refuses */
    if (this.event == UVA__EVENT_SCHEMA)
        uva__consumer_state_note_refusal(s, UVA__EVENT_SCHEMA, code);
    if (this.event != UVA__EVENT_TASK)
        return;
    uva__consumer_state_note_settled(s, 0);
    b->handed_on++;
    uva__consumer_state_note_refusal(s, UVA__EVENT_TASK, code);
}

static void request_wanted(struct uva__consumer_state *s, struct books *b)
{
    const int64_t n = uva__consumer_state_want(s);

    FUZZ_RULE(n >= 0);
    if (n == 0)
        return;
    FUZZ_RULE(uva__consumer_state_may_call(s) && s->end == UVA__CONSUMER_OPEN);
    FUZZ_RULE(s->outstanding + s->held + n <= s->window);
    uva__consumer_state_note_request(s, n);
    b->requested += n;
    FUZZ_RULE(s->calls == 0 || uva__consumer_state_want(s) == 0); /* */
}

static void call_cancel(struct uva__consumer_state *s, struct books *b)
{
    if (!uva__consumer_state_must_cancel(s))
        return;
    FUZZ_RULE(uva__consumer_state_may_call(s));
    uva__consumer_state_note_cancel_delivered(s);
    b->cancels++;
    FUZZ_RULE(!uva__consumer_state_may_call(s));
}

/* Makes a random call of the program. */
static void meddle(struct uva__consumer_state *s, struct books *b,
                   struct fuzz_input *in)
{
    switch (fuzz_below(in, 8)) {
    case 0:
    case 1:
        request_wanted(s, b);
        break;
    case 2:
        call_cancel(s, b);
        break;
    case 3:
        if (fuzz_byte(in) >= 128)
            uva__consumer_state_note_cancel(s, ECANCELED);
        break;
    case 4:
        if (fuzz_byte(in) >= 192)
            uva__consumer_state_note_fault(s, ENOMEM);
        break;
    default:
        if (s->held == 0)
            break;
        uva__consumer_state_note_settled(s, fuzz_byte(in) >= 250 ? EIO : 0);
        b->handed_on++;
        break;
    }
}

/* ---- one input ---------------------------------------------------------- */

/* The producer releases, the program hands on its tasks: then all must be over.
 */
static void finish(struct uva__consumer_state *s, struct books *b)
{
    const struct uva__consumer_call release = {.event = UVA__EVENT_RELEASE};
    struct uva__consumer_verdict verdict;

    while (s->calls > 0)
        uva__consumer_state_leave(s);
    if (s->heard != UVA__HEARD_RELEASE) {
        verdict = uva__consumer_state_enter(s, &release);
        check_verdict(b, &release, &verdict);
        uva__consumer_state_leave(s);
    }
    while (s->held > 0) {
        uva__consumer_state_note_settled(s, 0);
        b->handed_on++;
    }
    check_state(s, b);
    FUZZ_RULE(b->releases == 1);
    FUZZ_RULE(uva__consumer_state_is_over(s));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_input in = {data, size < 4096 ? size : 4096};
    struct uva__consumer_state s;
    struct books books = {0};
    const int64_t window = 1 + fuzz_below(&in, 8);

    uva__consumer_state_init(&s, window, fuzz_below(&in, 10));
    FUZZ_RULE(s.refill < window);
    while (in.size > 0) {
        const int way = fuzz_byte(&in);
        if (way == 99)
            flood(&s, &books);
        else if (way < 99)
            call(&s, &books, &in);
        else
            meddle(&s, &books, &in);
        if (s.calls > 0 && (way % 4 != 0 || s.calls > 3))
            uva__consumer_state_leave(&s);
        check_state(&s, &books);
    }
    finish(&s, &books);
    return 0;
}
