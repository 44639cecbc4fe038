/* SPDX-License-Identifier: Apache-2.0 */
/* The consumer's side of the protocol: valid and invalid streams as short
 * transcripts, then hostile producers at random, compared with counts.
 *
 * A script is a row of letters. The producer's: S schema, s an unusable schema,
 * p a schema without a producer, T task, t a task without a function, N end, E
 * error 5 (EIO), e error 0, R release. Ours: r request if we should, 1 hand on
 * a batch, 0 lose a batch (EIO), c cancel (ECANCELED), C call cancel if we
 * should. The transcript has a word for each of the producer's letters: our
 * action, with the broken rule in brackets. */
#include "protocol/consumer_state.h"
#include "support/check_suite.h"

#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const ACTIONS[] = {"take", "discard", "refuse", "ignore"};

static struct uva__consumer_call call_of(char letter)
{
    switch (letter) {
    case 'S':
        return (struct uva__consumer_call){.event = UVA__EVENT_SCHEMA};
    case 's':
        return (struct uva__consumer_call){.event = UVA__EVENT_SCHEMA,
                                           .code = ENOTSUP};
    case 'p':
        return (struct uva__consumer_call){
            .event = UVA__EVENT_SCHEMA, .code = EINVAL, .clause = "AH-03"};
    case 'T':
        return (struct uva__consumer_call){.event = UVA__EVENT_TASK};
    case 't':
        return (struct uva__consumer_call){
            .event = UVA__EVENT_TASK, .code = EPROTO, .clause = "AT-01"};
    case 'N':
        return (struct uva__consumer_call){.event = UVA__EVENT_END};
    case 'E':
        return (struct uva__consumer_call){.event = UVA__EVENT_ERROR,
                                           .code = EIO};
    case 'e':
        return (struct uva__consumer_call){.event = UVA__EVENT_ERROR};
    default:
        return (struct uva__consumer_call){.event = UVA__EVENT_RELEASE};
    }
}

static void request_wanted(struct uva__consumer_state *s)
{
    const int64_t n = uva__consumer_state_want(s);

    if (n > 0)
        uva__consumer_state_note_request(s, n);
}

/* Returns whether `letter` is one of ours; if so, carries it out. */
static bool is_ours(struct uva__consumer_state *s, char letter)
{
    switch (letter) {
    case 'r':
        request_wanted(s);
        return true;
    case '1':
        uva__consumer_state_note_settled(s, 0);
        return true;
    case '0':
        uva__consumer_state_note_settled(s, EIO);
        return true;
    case 'c':
        uva__consumer_state_note_cancel(s, ECANCELED);
        return true;
    case 'C':
        if (uva__consumer_state_must_cancel(s))
            uva__consumer_state_note_cancel_delivered(s);
        return true;
    default:
        return false;
    }
}

/* Plays a script from the state `s`; returns the transcript. */
static const char *play(struct uva__consumer_state *s, const char *script)
{
    static char transcript[500];

    transcript[0] = '\0';
    for (; *script != '\0'; script++) {
        struct uva__consumer_verdict verdict;
        struct uva__consumer_call call;
        if (is_ours(s, *script))
            continue;
        call = call_of(*script);
        verdict = uva__consumer_state_enter(s, &call);
        uva__consumer_state_leave(s);
        strcat(strcat(transcript, transcript[0] ? " " : ""),
               ACTIONS[verdict.action]);
        if (verdict.code != 0)
            sprintf(transcript + strlen(transcript), "%d", verdict.code);
        if (verdict.clause != NULL)
            strcat(strcat(strcat(transcript, "("), verdict.clause), ")");
    }
    return transcript;
}

/* A script, its transcript, and the end it leads to. */
struct stream {
    const char *script, *transcript;
    enum uva__consumer_end end;
    int code;
};

static void check_stream(const struct stream *stream)
{
    struct uva__consumer_state s;

    uva__consumer_state_init(&s, 8, 0);
    ck_assert_str_eq(play(&s, stream->script), stream->transcript);
    ck_assert_int_eq(s.end, stream->end);
    ck_assert_int_eq(s.code, stream->code);
}

#define OPEN      UVA__CONSUMER_OPEN
#define COMPLETE  UVA__CONSUMER_COMPLETE
#define FAILED    UVA__CONSUMER_FAILED
#define CANCELLED UVA__CONSUMER_CANCELLED

/* ---- valid streams ------------------------------------------------------ */

/* clauses.md 15.3: the lawful acts of a producer. */
static const struct stream LAWFUL[] = {
    {"SrTTNR", "take take take take take", COMPLETE, 0},
    {"SNR", "take take take", COMPLETE, 0}, /* AH-23: no task */
    {"SrTER", "take take take take", FAILED, EIO},
    {"ER", "take take", FAILED, EIO}, /* AH-18 */
    {"SrTT1N0ER", "take take take take take take", FAILED, EIO},
    {"SrT0CER", "take take take take", FAILED, EIO},    /* ER-05 */
    {"SrTcCR", "take take take", CANCELLED, ECANCELED}, /* AP-18 */
    {"SrTcCTNR", "take take discard take take", CANCELLED, ECANCELED},
    {"SrTcCER", "take take take take", CANCELLED, ECANCELED},       /* Q-03 */
    {"SrcCTTR", "take discard discard take", CANCELLED, ECANCELED}, /* AP-15 */
    {"cSR", "refuse125 take", CANCELLED, ECANCELED},                /* G-30 */
    {"sR", "refuse95 take", FAILED, ENOTSUP},                       /* AH-08 */
    {"SrTN", "take take take", COMPLETE, 0},
    {"Sr", "take", OPEN, 0},
};

START_TEST(a_lawful_producer_is_never_blamed)
{
    check_stream(&LAWFUL[_i]);
    ck_assert_ptr_null(strchr(LAWFUL[_i].transcript, '('));
}
END_TEST

/* ---- invalid streams: clauses.md 14.2, row by row ----------------------- */

static const struct stream UNLAWFUL[] = {
    /* second on_schema */
    {"SrSTNR", "take refuse22(AH-05) take take take", COMPLETE, 0},
    /* task before on_schema: data is lost, so the schema is refused later */
    {"TR", "discard(AH-05) take", FAILED, EPROTO},
    {"TSR", "discard(AH-05) refuse71 take", FAILED, EPROTO},
    {"NR", "ignore(AH-05) take", FAILED, EPROTO},
    /* task without demand: taken */
    {"STNR", "take take(AP-06) take take", COMPLETE, 0},
    {"SrcCTTTTTTTTTR",
     "take discard discard discard discard discard discard discard discard "
     "discard(AP-06) take",
     CANCELLED, ECANCELED},
    /* task after NULL: so that was not the end */
    {"SrNTR", "take take discard(AH-11) take", FAILED, EPROTO},
    /* second NULL */
    {"SrNNR", "take take ignore(AH-11) take", COMPLETE, 0},
    /* anything after on_error except release */
    {"SrETNER", "take take discard(AH-17) ignore(AH-17) ignore(AH-17) take",
     FAILED, EIO},
    {"ESR", "take refuse22(AH-17) take", FAILED, EIO},
    /* on_error after NULL without a failed extraction: accepted */
    {"SrT1NER", "take take take take(AH-33) take", FAILED, EIO},
    {"SrTNER", "take take take take take", FAILED, EIO}, /* may be in flight */
    /* anything after release */
    {"SrNRTSNER",
     "take take take discard(AH-22) refuse22(AH-22) "
     "ignore(AH-22) ignore(AH-22) ignore(AH-21)",
     COMPLETE, 0},
    {"SrNRt", "take take take ignore(AH-22)", COMPLETE, 0},
    /* extract_data is NULL: a task that cannot be called cannot be discarded */
    {"SrtCTR", "take ignore(AT-01) discard take", FAILED, EPROTO},
    {"SrcCtR", "take ignore(AT-01) take", CANCELLED, ECANCELED},
    {"tR", "ignore(AH-05) take", FAILED, EPROTO},
    /* no producer at on_schema; Q-01: ignore later calls */
    {"pR", "refuse22(AH-03) take", FAILED, EINVAL},
    {"sER", "refuse95 take(AH-08) take", FAILED, ENOTSUP},
    {"sNR", "refuse95 ignore(AH-08) take", FAILED, ENOTSUP},
    {"sTSR", "refuse95 discard(AH-08) refuse22(AH-08) take", FAILED, ENOTSUP},
    /* on_error with code 0 */
    {"SeR", "take take(ER-06) take", FAILED, EIO},
    /* release alone */
    {"R", "take(AH-05)", FAILED, ECONNABORTED},
    {"SrTR", "take take take(AH-12)", FAILED, ECONNABORTED},
};

START_TEST(an_unlawful_producer_is_survived_and_named)
{
    check_stream(&UNLAWFUL[_i]);
}
END_TEST

START_TEST(th01_overlapping_calls_are_named)
{
    const struct uva__consumer_call task = {.event = UVA__EVENT_TASK};
    struct uva__consumer_verdict verdict;
    struct uva__consumer_state s;

    uva__consumer_state_init(&s, 8, 0);
    play(&s, "Sr");
    verdict = uva__consumer_state_enter(&s, &task);
    ck_assert_ptr_null(verdict.clause);
    verdict = uva__consumer_state_enter(&s, &task);
    ck_assert_str_eq(verdict.clause, "TH-01");
    ck_assert_int_eq(verdict.action, UVA__ACTION_TAKE);
    uva__consumer_state_leave(&s);
    uva__consumer_state_leave(&s);
    ck_assert_int_eq(s.calls, 0);
    ck_assert_int_eq(s.breaches, 1);
    ck_assert_str_eq(s.first_breach, "TH-01");
}
END_TEST

START_TEST(ap04_calls_on_the_stack_of_a_request_are_named)
{
    const struct uva__consumer_call calls[] = {
        {.event = UVA__EVENT_TASK, .in_request = true},
        {.event = UVA__EVENT_ERROR, .code = EIO, .in_request = true},
        {.event = UVA__EVENT_RELEASE, .in_request = true}};
    const char *const clauses[] = {"AP-04", "AP-04", "AP-05"};
    struct uva__consumer_state s;

    uva__consumer_state_init(&s, 8, 0);
    play(&s, "Sr");
    for (int i = 0; i < 3; i++) {
        ck_assert_str_eq(uva__consumer_state_enter(&s, &calls[i]).clause,
                         clauses[i]);
        uva__consumer_state_leave(&s);
    }
    ck_assert_int_eq(s.breaches, 3);
}
END_TEST

START_TEST(ah16_after_a_refused_task_only_release_may_come)
{
    struct uva__consumer_state s;

    uva__consumer_state_init(&s, 8, 0);
    play(&s, "SrT1");
    uva__consumer_state_note_refusal(&s, UVA__EVENT_TASK, EDOM);
    ck_assert_str_eq(play(&s, "R"), "take");
    ck_assert_int_eq(s.end, UVA__CONSUMER_REJECTED);
    ck_assert_int_eq(s.code, EDOM);
    uva__consumer_state_init(&s, 8, 0);
    play(&s, "SrT1");
    uva__consumer_state_note_refusal(&s, UVA__EVENT_TASK, EDOM);
    ck_assert_str_eq(play(&s, "TNER"), "discard(AH-16) ignore(AH-16) "
                                       "take(AH-16) take"); /* Q-02 */
    ck_assert_int_eq(s.end, UVA__CONSUMER_REJECTED);
}
END_TEST

START_TEST(of_two_refusals_the_first_counts)
{
    struct uva__consumer_state s;

    uva__consumer_state_init(&s, 8, 0);
    play(&s, "SrTT11");
    uva__consumer_state_note_refusal(&s, UVA__EVENT_TASK, EDOM);
    uva__consumer_state_note_refusal(&s, UVA__EVENT_SCHEMA, EIO);
    ck_assert_str_eq(s.refused, "AH-16");
    ck_assert_int_eq(s.code, EDOM);
}
END_TEST

START_TEST(ah08_after_a_refused_schema_only_release_may_come)
{
    struct uva__consumer_state s;

    uva__consumer_state_init(&s, 8, 0);
    play(&s, "S");
    uva__consumer_state_note_refusal(&s, UVA__EVENT_SCHEMA, EDOM);
    ck_assert(!uva__consumer_state_may_call(&s));
    ck_assert_int_eq(uva__consumer_state_want(&s), 0);
    ck_assert_str_eq(play(&s, "NR"), "ignore(AH-08) take");
    ck_assert_int_eq(s.end, UVA__CONSUMER_REJECTED);
}
END_TEST

START_TEST(the_detail_of_a_cancelled_stream_is_kept) /* ER-14 */
{
    struct uva__consumer_state s;

    uva__consumer_state_init(&s, 8, 0);
    play(&s, "SrcCER");
    ck_assert_int_eq(s.end, UVA__CONSUMER_CANCELLED);
    ck_assert_int_eq(s.error_code, EIO);
}
END_TEST

START_TEST(too_much_that_nobody_asked_for_is_an_overflow)
{
    struct uva__consumer_state s;

    uva__consumer_state_init(&s, 8, 0);
    play(&s, "S");
    for (int i = 0; i < 8 + UVA__CONSUMER_UNREQUESTED; i++)
        ck_assert_str_eq(play(&s, "T"), "take(AP-06)");
    ck_assert_str_eq(play(&s, "T"), "discard(AP-06)");
    ck_assert_int_eq(s.end, UVA__CONSUMER_FAILED);
    ck_assert_int_eq(s.code, EOVERFLOW);
    ck_assert(uva__consumer_state_must_cancel(&s));
    ck_assert_int_eq(s.outstanding, 0);
}
END_TEST

/* ---- the end ------------------------------------------------------------ */

START_TEST(the_first_cause_is_the_one_told)
{
    struct uva__consumer_state s;

    uva__consumer_state_init(&s, 8, 0);
    play(&s, "SrTT0");
    uva__consumer_state_note_fault(&s, ENOMEM);
    uva__consumer_state_note_cancel(&s, ECANCELED);
    play(&s, "ER");
    ck_assert_int_eq(s.end, UVA__CONSUMER_FAILED);
    ck_assert_int_eq(s.code, EIO);
    uva__consumer_state_init(&s, 8, 0);
    play(&s, "SrTTc0");
    ck_assert_int_eq(s.end, UVA__CONSUMER_CANCELLED);
}
END_TEST

START_TEST(an_end_is_over_once_all_batches_were_handed_on)
{
    struct uva__consumer_state s;

    uva__consumer_state_init(&s, 8, 0);
    play(&s, "SrTTN");
    ck_assert(!uva__consumer_state_is_over(&s));
    play(&s, "1");
    ck_assert(!uva__consumer_state_is_over(&s));
    play(&s, "1");
    ck_assert(uva__consumer_state_is_over(&s));
    uva__consumer_state_init(&s, 8, 0);
    play(&s, "SrTE");
    ck_assert(!uva__consumer_state_is_over(&s));
    play(&s, "1");
    ck_assert(uva__consumer_state_is_over(&s));
    uva__consumer_state_init(&s, 8, 0);
    play(&s, "SrT");
    ck_assert(!uva__consumer_state_is_over(&s));
    play(&s, "c");
    ck_assert(uva__consumer_state_is_over(&s));
}
END_TEST

START_TEST(er12_a_batch_lost_after_the_end_is_not_hidden)
{
    struct uva__consumer_state s;

    uva__consumer_state_init(&s, 8, 0);
    play(&s, "SrTTN1");
    ck_assert_int_eq(s.end, UVA__CONSUMER_COMPLETE);
    play(&s, "0");
    ck_assert_int_eq(s.end, UVA__CONSUMER_FAILED);
    ck_assert_int_eq(s.code, EIO);
    ck_assert(
        !uva__consumer_state_must_cancel(&s)); /* the producer has ended */
}
END_TEST

START_TEST(g26_cancel_after_the_end_means_something_only_with_batches_left)
{
    struct uva__consumer_state s;

    uva__consumer_state_init(&s, 8, 0);
    play(&s, "SrTN1c");
    ck_assert_int_eq(s.end, UVA__CONSUMER_COMPLETE);
    uva__consumer_state_init(&s, 8, 0);
    play(&s, "SrTNc");
    ck_assert_int_eq(s.end, UVA__CONSUMER_CANCELLED);
    ck_assert(!uva__consumer_state_must_cancel(&s));
}
END_TEST

/* ---- calls to the producer ---------------------------------------------- */

START_TEST(a_window_is_filled_once_and_refilled_at_half)
{
    struct uva__consumer_state s;

    uva__consumer_state_init(&s, 8, 0);
    ck_assert_int_eq(uva__consumer_state_want(&s), 0); /* AH-04 */
    play(&s, "S");
    ck_assert_int_eq(uva__consumer_state_want(&s), 8);
    play(&s, "rT1T1T1");
    ck_assert_int_eq(uva__consumer_state_want(&s), 0);
    play(&s, "T1");
    ck_assert_int_eq(uva__consumer_state_want(&s), 4);
    play(&s, "r");
    ck_assert_int_eq(s.outstanding, 8);
}
END_TEST

START_TEST(batches_not_handed_on_hold_the_producer_back)
{
    struct uva__consumer_state s;

    uva__consumer_state_init(&s, 4, 0);
    play(&s, "SrTrTrTrTr");
    ck_assert_int_eq(s.held, 4);
    ck_assert_int_eq(s.outstanding, 0);
    ck_assert_int_eq(uva__consumer_state_want(&s), 0);
    play(&s, "1");
    ck_assert_int_eq(uva__consumer_state_want(&s),
                     1); /* one stays open: Q-16 */
    play(&s, "r11");
    ck_assert_int_eq(uva__consumer_state_want(&s), 2);
}
END_TEST

START_TEST(a_window_of_one_asks_for_each)
{
    struct uva__consumer_state s;

    uva__consumer_state_init(&s, 1, 0);
    for (int i = 0; i < 5; i++) {
        if (i == 0)
            play(&s, "S");
        ck_assert_int_eq(uva__consumer_state_want(&s), 1);
        play(&s, "rTr");
        ck_assert_int_eq(s.outstanding, 0);
        play(&s, "1");
    }
}
END_TEST

START_TEST(a_refill_of_our_own_is_kept_in_bounds)
{
    struct uva__consumer_state s;

    uva__consumer_state_init(&s, 8, 1);
    play(&s, "SrT1T1T1T1T1T1");
    ck_assert_int_eq(uva__consumer_state_want(&s), 0);
    play(&s, "T1");
    ck_assert_int_eq(uva__consumer_state_want(&s), 7);
    uva__consumer_state_init(&s, 8, 100);
    ck_assert_int_eq(s.refill, 7);
}
END_TEST

START_TEST(q15_one_request_in_a_callback_is_all)
{
    const struct uva__consumer_call task = {.event = UVA__EVENT_TASK};
    struct uva__consumer_state s;

    uva__consumer_state_init(&s, 1, 0);
    play(&s, "Sr");
    (void)uva__consumer_state_enter(&s, &task);
    uva__consumer_state_note_settled(&s, 0);
    ck_assert_int_eq(uva__consumer_state_want(&s), 1);
    uva__consumer_state_note_request(&s, 1);
    s.outstanding = 0; /* as if another batch had been handed on already */
    ck_assert_int_eq(uva__consumer_state_want(&s), 0);
    uva__consumer_state_leave(&s);
    ck_assert_int_eq(uva__consumer_state_want(&s), 1);
}
END_TEST

START_TEST(ap24_nothing_is_asked_or_cancelled_after_a_terminal_callback)
{
    const char *const scripts[] = {"SrTN", "SrTE", "SrTR", "SrTcC", "s", "cS"};

    for (int i = 0; i < 6; i++) {
        struct uva__consumer_state s;
        uva__consumer_state_init(&s, 8, 0);
        play(&s, scripts[i]);
        uva__consumer_state_note_cancel(&s, ECANCELED);
        ck_assert(!uva__consumer_state_may_call(&s));
        ck_assert(!uva__consumer_state_must_cancel(&s));
        ck_assert_int_eq(uva__consumer_state_want(&s), 0);
    }
}
END_TEST

START_TEST(cancel_is_owed_once)
{
    struct uva__consumer_state s;

    uva__consumer_state_init(&s, 8, 0);
    play(&s, "Sr");
    ck_assert(!uva__consumer_state_must_cancel(&s));
    play(&s, "c");
    ck_assert(uva__consumer_state_must_cancel(&s));
    ck_assert_int_eq(uva__consumer_state_want(&s), 0);
    play(&s, "C");
    ck_assert(!uva__consumer_state_must_cancel(&s));
}
END_TEST

START_TEST(g35_demand_without_bound_is_not_used_up)
{
    struct uva__consumer_state s;

    uva__consumer_state_init(&s, 8, 0);
    play(&s, "S");
    uva__consumer_state_note_request(&s, 5);
    uva__consumer_state_note_request(&s, INT64_MAX - 1);
    ck_assert_int_eq(s.outstanding, UVA__CONSUMER_UNBOUNDED);
    ck_assert_str_eq(play(&s, "TTTTTTTTT"),
                     "take take take take take take take take take");
    ck_assert_int_eq(s.outstanding, UVA__CONSUMER_UNBOUNDED);
    ck_assert_int_eq(uva__consumer_state_want(&s), 0);
}
END_TEST

/* ---- at random ---------------------------------------------------------- */

/* A check that is cheaper than ck_assert(), for millions of calls. */
#define RULE(truth)                                                            \
    do {                                                                       \
        if (!(truth))                                                          \
            ck_abort_msg("broken: %s", #truth);                                \
    } while (false)

/* Counts of the acts of a hostile producer and of ours. */
struct tally {
    int64_t asked, offered, taken, discarded, ignored, settled;
    int cancels, schemas, releases;
    bool over, complete; /* the end as reported */
};

static void check_rules(const struct uva__consumer_state *s, struct tally *t)
{
    RULE(s->offered == t->offered);
    RULE(t->offered == t->taken + t->discarded + t->ignored);
    RULE(s->held == t->taken - t->settled);
    RULE(s->outstanding >= 0);
    RULE(s->outstanding <= s->window);
    RULE(s->held <= s->window + UVA__CONSUMER_UNREQUESTED);
    RULE(t->cancels <= 1);
    RULE(t->schemas <= 1);
    RULE(t->releases <= 1);
    RULE((s->code == 0) ==
         (s->end == UVA__CONSUMER_OPEN || s->end == UVA__CONSUMER_COMPLETE));
    RULE((s->breaches == 0) == (s->first_breach == NULL));
    if (t->over) /* a reported end must not change, unless a rule was broken */
        RULE(uva__consumer_state_is_over(s) || s->breaches > 0);
    if (t->complete)
        RULE(s->end == UVA__CONSUMER_COMPLETE || s->breaches > 0);
    if (s->heard == UVA__HEARD_RELEASE)
        RULE(s->end != UVA__CONSUMER_OPEN);
    t->over = uva__consumer_state_is_over(s);
    t->complete = t->over && s->end == UVA__CONSUMER_COMPLETE;
}

/* Makes a random call that the program may make at any time. */
static void meddle(struct uva__consumer_state *s, struct tally *t)
{
    const int64_t n = uva__consumer_state_want(s);

    switch (rand() % 8) {
    case 0:
    case 1:
    case 2:
        if (s->held == 0)
            break;
        uva__consumer_state_note_settled(s, rand() % 40 == 0 ? EIO : 0);
        t->settled++;
        break;
    case 3:
        if (rand() % 40 == 0)
            uva__consumer_state_note_cancel(s, ECANCELED);
        break;
    case 4:
        if (uva__consumer_state_must_cancel(s)) {
            uva__consumer_state_note_cancel_delivered(s);
            t->cancels++;
        }
        break;
    default:
        RULE(n >= 0);
        RULE(n == 0 || s->outstanding + s->held + n <= s->window);
        if (n == 0)
            break;
        uva__consumer_state_note_request(s, n);
        t->asked += n;
        break;
    }
}

static void check_verdict(struct tally *t,
                          const struct uva__consumer_call *call,
                          struct uva__consumer_verdict verdict)
{
    const bool task = call->event == UVA__EVENT_TASK;
    const bool take = verdict.action == UVA__ACTION_TAKE;

    t->offered += task;
    t->taken += task && take;
    t->discarded += verdict.action == UVA__ACTION_DISCARD;
    t->ignored += task && verdict.action == UVA__ACTION_IGNORE;
    t->schemas += call->event == UVA__EVENT_SCHEMA && take;
    t->releases += call->event == UVA__EVENT_RELEASE && take;
    RULE(task || verdict.action != UVA__ACTION_DISCARD);
    RULE((verdict.code != 0) == (verdict.action == UVA__ACTION_REFUSE));
    if (call->event == UVA__EVENT_SCHEMA) /* never left to the producer */
        RULE(take || verdict.action == UVA__ACTION_REFUSE);
    if (task && call->code == 0) /* must never be left unextracted: AT-02 */
        RULE(verdict.action != UVA__ACTION_IGNORE);
}

static void torment(unsigned seed)
{
    static const char letters[] = "SSSTTTTTTTTTTTTspteENER";
    struct uva__consumer_state s;
    struct tally t = {0};

    srand(seed);
    uva__consumer_state_init(&s, 1 + rand() % 10, rand() % 12);
    for (int step = 0; step < 100; step++) {
        const struct uva__consumer_call call =
            call_of(step == 0 && seed % 2 == 0
                        ? 'S'
                        : letters[(size_t)rand() % (sizeof(letters) - 1)]);
        check_verdict(&t, &call, uva__consumer_state_enter(&s, &call));
        for (int i = rand() % 4; i > 0; i--)
            meddle(&s, &t);
        if (rand() % 20 != 0 || s.calls > 3)
            while (s.calls > 0)
                uva__consumer_state_leave(&s);
        meddle(&s, &t);
        check_rules(&s, &t);
    }
}

START_TEST(no_order_of_calls_breaks_our_rules)
{
    for (unsigned seed = 0; seed < 20000; seed++)
        torment(seed);
}
END_TEST

/* A producer that keeps every rule; gives `left` batches, then NULL or an
 * error. */
struct honest {
    int64_t demand, left;
    bool fails;         /* the end is an error */
    bool needs_request; /* ends only while a request is open (Q-16) */
    bool told;          /* the end was reported */
};

static char next_letter(const struct uva__consumer_state *s,
                        const struct honest *producer)
{
    if (s->heard == UVA__HEARD_NOTHING)
        return 'S';
    if (producer->told || s->cancel_delivered || s->refused != NULL)
        return 'R';
    if (producer->left > 0)
        return producer->demand > 0 ? 'T' : '-';
    if (producer->needs_request && producer->demand == 0)
        return '-';
    return producer->fails ? 'E' : 'N';
}

static void produce(struct uva__consumer_state *s, struct honest *producer,
                    struct tally *t)
{
    const char letter = next_letter(s, producer);
    const struct uva__consumer_call call = call_of(letter);

    if (letter == '-')
        return;
    producer->left -= letter == 'T';
    producer->demand -= letter == 'T';
    producer->told = producer->told || letter == 'E' || letter == 'N';
    check_verdict(t, &call, uva__consumer_state_enter(s, &call));
    uva__consumer_state_leave(s);
}

static void converse(unsigned seed)
{
    struct uva__consumer_state s;
    struct honest producer = {0};
    struct tally t = {0};
    const int64_t batches = (int64_t)(seed % 50);
    int64_t before;

    srand(seed);
    producer.left = batches;
    producer.fails = rand() % 4 == 0;
    producer.needs_request = rand() % 2 == 0;
    uva__consumer_state_init(&s, 1 + rand() % 10, rand() % 12);
    for (int step = 0; step < 5000 && s.heard != UVA__HEARD_RELEASE; step++) {
        before = t.asked;
        meddle(&s, &t);
        producer.demand += t.asked - before;
        if (rand() % 2 == 0)
            produce(&s, &producer, &t);
        check_rules(&s, &t);
    }
    RULE(s.heard == UVA__HEARD_RELEASE); /* no side waits for ever */
    RULE(s.breaches == 0);
    RULE(t.discarded == 0 || s.end != UVA__CONSUMER_COMPLETE);
    if (s.end == UVA__CONSUMER_COMPLETE)
        RULE(t.taken == batches);
}

START_TEST(an_honest_producer_always_comes_to_its_end)
{
    for (unsigned seed = 0; seed < 20000; seed++)
        converse(seed);
}
END_TEST

#define COUNT(table) ((int)(sizeof(table) / sizeof((table)[0])))

static TCase *streams(void)
{
    TCase *tcase = tcase_create("streams");

    tcase_add_loop_test(tcase, a_lawful_producer_is_never_blamed, 0,
                        COUNT(LAWFUL));
    tcase_add_loop_test(tcase, an_unlawful_producer_is_survived_and_named, 0,
                        COUNT(UNLAWFUL));
    tcase_add_test(tcase, th01_overlapping_calls_are_named);
    tcase_add_test(tcase, ap04_calls_on_the_stack_of_a_request_are_named);
    tcase_add_test(tcase, ah16_after_a_refused_task_only_release_may_come);
    tcase_add_test(tcase, of_two_refusals_the_first_counts);
    tcase_add_test(tcase, ah08_after_a_refused_schema_only_release_may_come);
    tcase_add_test(tcase, the_detail_of_a_cancelled_stream_is_kept);
    tcase_add_test(tcase, too_much_that_nobody_asked_for_is_an_overflow);
    tcase_add_test(tcase, the_first_cause_is_the_one_told);
    tcase_add_test(tcase, an_end_is_over_once_all_batches_were_handed_on);
    tcase_add_test(tcase, er12_a_batch_lost_after_the_end_is_not_hidden);
    tcase_add_test(
        tcase, g26_cancel_after_the_end_means_something_only_with_batches_left);
    return tcase;
}

static TCase *demand(void)
{
    TCase *tcase = tcase_create("demand");

    tcase_add_test(tcase, a_window_is_filled_once_and_refilled_at_half);
    tcase_add_test(tcase, batches_not_handed_on_hold_the_producer_back);
    tcase_add_test(tcase, a_window_of_one_asks_for_each);
    tcase_add_test(tcase, a_refill_of_our_own_is_kept_in_bounds);
    tcase_add_test(tcase, q15_one_request_in_a_callback_is_all);
    tcase_add_test(
        tcase, ap24_nothing_is_asked_or_cancelled_after_a_terminal_callback);
    tcase_add_test(tcase, cancel_is_owed_once);
    tcase_add_test(tcase, g35_demand_without_bound_is_not_used_up);
    return tcase;
}

static TCase *chance(void)
{
    TCase *tcase = tcase_create("chance");

    tcase_set_timeout(tcase, 120);
    tcase_add_test(tcase, no_order_of_calls_breaks_our_rules);
    tcase_add_test(tcase, an_honest_producer_always_comes_to_its_end);
    return tcase;
}

int main(void)
{
    Suite *suite = suite_create("consumer_state");

    suite_add_tcase(suite, streams());
    suite_add_tcase(suite, demand());
    suite_add_tcase(suite, chance());
    return suite_run(suite);
}
