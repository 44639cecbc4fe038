/* SPDX-License-Identifier: Apache-2.0 */
/* Transcripts: facts as letters, and the resulting moves as words. tests/fuzz
 * drives the machine at random.
 *
 * Facts: s schema known, b batch ready, x exhausted, f the source fails (EIO),
 * 1 one batch requested, 0 no batch requested, * every batch requested, c
 * cancel, u urgent error (ENODATA), h paused, p paused for batches alone, H
 * resumed, t an offered batch settles, n the next callback returns an error, w
 * the stop of the source takes time, W it has ended, ! the end waits no
 * longer. After each fact, all
 * resulting moves are carried out. */
#include "protocol/producer_state.h"
#include "support/check_suite.h"

#include <check.h>
#include <errno.h>
#include <string.h>

static const char *const MOVES[] = {
    [UVA__MOVE_WAIT] = "wait",         [UVA__MOVE_OFFER_SCHEMA] = "schema",
    [UVA__MOVE_OFFER_TASK] = "task",   [UVA__MOVE_OFFER_END] = "end",
    [UVA__MOVE_OFFER_ERROR] = "error", [UVA__MOVE_RELEASE] = "release"};

static int answer; /* return code of the next callback */

static void note_pause(struct uva__producer_state *s, char fact)
{
    if (fact == 'w' || fact == 'W')
        s->stopping = fact == 'w';
    else
        s->paused = fact == 'h'   ? UVA__PAUSED_ALL
                    : fact == 'p' ? UVA__PAUSED_BATCHES
                                  : UVA__PAUSED_NOT;
}

static void note(struct uva__producer_state *s, char fact)
{
    switch (fact) {
    case 's':
        s->schema_known = true;
        break;
    case 'b':
        s->ready++;
        break;
    case 'x':
        s->exhausted = true;
        break;
    case 'f':
        s->source_error = EIO;
        break;
    case '1':
    case '0':
        uva__producer_state_note_request(s, fact - '0');
        break;
    case '*':
        uva__producer_state_note_request(s, INT64_MAX);
        break;
    case 'c':
        uva__producer_state_note_cancel(s);
        break;
    case 'u':
        uva__producer_state_note_urgent(s, ENODATA);
        break;
    case 't':
        s->unsettled--;
        break;
    case 'n':
        answer = EDOM;
        break;
    case '!':
        s->drain_ended = true;
        break;
    default:
        note_pause(s, fact);
    }
}

/* Plays a script from the state `s`; returns the moves. */
static const char *play(struct uva__producer_state *s, const char *script)
{
    static char transcript[200];
    enum uva__producer_move move;

    transcript[0] = '\0';
    answer = 0;
    for (; *script != '\0'; script++) {
        note(s, *script);
        while ((move = uva__producer_state_next(s)) != UVA__MOVE_WAIT) {
            strcat(strcat(transcript, transcript[0] ? " " : ""), MOVES[move]);
            uva__producer_state_begin(s, move);
            ck_assert_int_eq(uva__producer_state_next(s), UVA__MOVE_WAIT);
            s->unsettled += move == UVA__MOVE_OFFER_TASK;
            uva__producer_state_end(s, move, answer);
            answer = 0;
        }
    }
    return transcript;
}

static const struct {
    const char *script, *transcript;
    int64_t limit;
} STREAMS[] = {
    {"1sbxt", "schema task end release", -1},
    {"sbb1t1txt", "schema task task end release", -1},       /* AP-06 */
    {"sx", "schema end release", -1},                        /* AH-23 */
    {"s*bbbttt*x", "schema task task task end release", -1}, /* G-35 */
    {"sb*1tx", "schema task end release", -1},
    {"s1bxt", "schema task end release", -1},
    {"s1bx!", "schema task end release", -1}, /* the end waits no longer */
    {"s1bxut", "schema task end error release", -1}, /* G-17 */
    {"f", "error release", -1},                      /* AH-18 */
    {"sf", "schema error release", -1},
    {"s1bbf1", "schema task task error release", -1}, /* G-40 */
    {"s1bu", "schema task error release", -1},        /* AT-08 */
    {"s0", "schema error release", -1},               /* AP-09 */
    {"0s", "error release", -1},
    {"c", "release", -1},
    {"s1bc1b", "schema task release", -1}, /* AP-07, G-27 */
    {"ns", "schema release", -1},          /* AH-08 */
    {"s1nb", "schema task release", -1},   /* AH-16 */
    {"snx", "schema end release", -1},     /* G-41 */
    {"hs1bH", "schema task", -1},
    {"hsxHc", "schema end release", -1},
    {"ps1b", "schema", -1}, /* AP-25 */
    {"ps1bH", "schema task", -1},
    {"psx", "schema end release", -1},
    {"ps1bx", "schema", -1}, /* the end waits behind the batch */
    {"ps1bxHt", "schema task end release", -1},
    {"psf", "schema error release", -1},
    {"ps1bfH", "schema task error release", -1},
    {"ps1bu", "schema error release", -1},
    {"ps1bc", "schema release", -1},
    {"pf", "error release", -1},
    {"s*btpb", "schema task end release", 1}, /* one more is at hand */
    {"hsf", "schema", -1},
    {"hsxp", "schema end release", -1},
    {"s*bbbtt", "schema task task end release", 2},
    {"s*hbbHt", "schema task end release", 1}, /* one more is at hand */
    {"s", "schema end release", 0},
    {"uu1", "error release", -1},
    {"s1bwc", "schema task", -1},
    {"s1bwcW", "schema task release", -1},
    {"wuW", "error release", -1},
    {"s1bfwW", "schema task error release", -1},
    {"wsxW", "schema end release", 0},
};

START_TEST(each_story_has_its_end)
{
    struct uva__producer_state s;

    uva__producer_state_init(&s, STREAMS[_i].limit);
    ck_assert_str_eq(play(&s, STREAMS[_i].script), STREAMS[_i].transcript);
    ck_assert_int_eq(s.phase == UVA__PHASE_RELEASED,
                     strstr(STREAMS[_i].transcript, "release") != NULL);
}
END_TEST

static void flows_as_decided(struct uva__producer_state s, bool expected)
{
    ck_assert_int_eq(uva__producer_state_next(&s) == UVA__MOVE_OFFER_TASK,
                     expected);
}

START_TEST(each_fact_alone_ends_the_flow)
{
    const struct uva__producer_state flows = {.schema_known = true,
                                              .phase = UVA__PHASE_FLOWING,
                                              .demand = 1,
                                              .ready = 1,
                                              .left = 1};
    struct uva__producer_state s[8];

    flows_as_decided(flows, true);
    for (int i = 0; i < 8; i++)
        s[i] = flows;
    s[0].phase = UVA__PHASE_OPENING;
    s[1].in_call = true;
    s[2].ready = 0;
    s[3].demand = 0;
    s[4].left = 0;
    uva__producer_state_note_urgent(&s[5], EIO);
    s[6].paused = UVA__PAUSED_ALL;
    s[7].paused = UVA__PAUSED_BATCHES;
    for (int i = 0; i < 8; i++)
        flows_as_decided(s[i], false);
}
END_TEST

START_TEST(a_source_may_stop_once_nothing_of_it_will_be_told)
{
    static const struct {
        const char *script;
        int64_t limit;
        bool sated;
    } cases[] = {{"", -1, false},  {"s1b", -1, false}, {"c", -1, true},
                 {"u", -1, true},  {"sf", -1, true},   {"snx", -1, true},
                 {"ns", -1, true}, {"s", 0, true},     {"", 0, false},
                 {"s1b", 1, true}, {"s1b", 2, false},  {"s1bx", -1, true}};
    struct uva__producer_state s;

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        uva__producer_state_init(&s, cases[i].limit);
        (void)play(&s, cases[i].script);
        ck_assert_msg(uva__producer_state_is_sated(&s) == cases[i].sated,
                      "after \"%s\"", cases[i].script);
    }
}
END_TEST

START_TEST(g35_demand_saturates)
{
    struct uva__producer_state s;

    uva__producer_state_init(&s, -1);
    uva__producer_state_note_request(&s, 2);
    uva__producer_state_note_request(&s, INT64_MAX - 2);
    ck_assert_int_eq(s.demand, INT64_MAX);
    uva__producer_state_note_request(&s, 1);
    ck_assert_int_eq(s.demand, UVA__UNBOUNDED);
}
END_TEST

START_TEST(ap07_a_request_after_the_end_means_nothing)
{
    const char *const ends[] = {"c", "sx", "f", "sx1", "ns"};
    struct uva__producer_state s;

    for (int i = 0; i < 5; i++) {
        uva__producer_state_init(&s, -1);
        (void)play(&s, ends[i]);
        uva__producer_state_note_request(&s, 5);
        uva__producer_state_note_request(&s, 0);
        ck_assert_int_eq(s.demand, 0);
        ck_assert_int_eq(s.urgent_error, 0);
    }
}
END_TEST

/* A state in which one thing alone ends the stream, and release is still to
 * come: the consumer calls from a callback, or from another thread. */
static void state_end(struct uva__producer_state *s, const char *by)
{
    uva__producer_state_init(s, -1);
    if (strcmp(by, "cancel") == 0)
        uva__producer_state_note_cancel(s);
    else if (strcmp(by, "end") == 0)
        (void)play(s, "s1bx"); /* a task is not settled */
    else if (strcmp(by, "error") == 0) {
        note(s, 'f');
        uva__producer_state_begin(s, UVA__MOVE_OFFER_ERROR);
        uva__producer_state_end(s, UVA__MOVE_OFFER_ERROR, 0);
    } else {
        (void)play(s, "ns"); /* refused, then released */
    }
}

START_TEST(each_ending_alone_makes_a_request_mean_nothing)
{
    const char *const endings[] = {"cancel", "end", "error", "release"};
    struct uva__producer_state s;

    for (int i = 0; i < 4; i++) {
        state_end(&s, endings[i]);
        ck_assert_int_eq(s.phase == UVA__PHASE_RELEASED, i == 3);
        uva__producer_state_note_request(&s, 5);
        uva__producer_state_note_request(&s, 0);
        uva__producer_state_note_request(&s, INT64_MAX);
        ck_assert_msg(s.demand == 0, "after %s", endings[i]);
        ck_assert_msg(s.urgent_error == 0, "after %s", endings[i]);
    }
}
END_TEST

START_TEST(a_bad_request_behind_the_end_brings_no_error)
{
    struct uva__producer_state s;

    uva__producer_state_init(&s, -1);
    ck_assert_str_eq(play(&s, "s1bx0t"), "schema task end release");
    uva__producer_state_init(&s, -1);
    ck_assert_str_eq(play(&s, "s1bx1bt"), "schema task end release");
}
END_TEST

START_TEST(the_first_urgent_error_is_the_one_told)
{
    struct uva__producer_state s;

    uva__producer_state_init(&s, -1);
    uva__producer_state_note_urgent(&s, ENODATA);
    uva__producer_state_note_urgent(&s, EINVAL);
    ck_assert_int_eq(s.urgent_error, ENODATA);
    uva__producer_state_init(&s, -1);
    (void)play(&s, "f");
    uva__producer_state_note_urgent(&s, ENODATA); /* too late */
    ck_assert_int_eq(s.urgent_error, 0);
}
END_TEST

int main(void)
{
    TCase *tcase = tcase_create("scripts");

    tcase_add_loop_test(tcase, each_story_has_its_end, 0,
                        sizeof(STREAMS) / sizeof(STREAMS[0]));
    tcase_add_test(tcase, each_fact_alone_ends_the_flow);
    tcase_add_test(tcase, a_source_may_stop_once_nothing_of_it_will_be_told);
    tcase_add_test(tcase, g35_demand_saturates);
    tcase_add_test(tcase, ap07_a_request_after_the_end_means_nothing);
    tcase_add_test(tcase, each_ending_alone_makes_a_request_mean_nothing);
    tcase_add_test(tcase, a_bad_request_behind_the_end_brings_no_error);
    tcase_add_test(tcase, the_first_urgent_error_is_the_one_told);
    return suite_main("producer_state", NULL, NULL, tcase, NULL);
}
