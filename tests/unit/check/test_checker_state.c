/* SPDX-License-Identifier: Apache-2.0 */
/* The rules alone: scripts of calls in, rules broken out. A letter is a call
 * that begins and ends:
 *   S T N E R  on_schema, on_next_task with a task and with NULL, on_error,
 *              release; S! T! N! return an error
 *   r q c      request(2) from outside, request(0), cancel
 *   x          an extraction fails; ( and ) one begins and ends well
 *   .          no more calls come */
#include <check.h>
#include <errno.h>
#include <string.h>

#include "protocol/checker_state.h"
#include "support/check_suite.h"

static struct uva__checker_state protocol;
static struct uva__findings found;

static void setup(void)
{
    memset(&protocol, 0, sizeof(protocol));
    memset(&found, 0, sizeof(found));
}

static const struct uva__call_context OUTSIDE = {.within = UVA__CALL_NONE};

static void callback(enum uva__call call, int code)
{
    if (!uva__checker_state_begin(&protocol, call, &OUTSIDE, &found))
        return;
    if (call == UVA__CALL_ERROR)
        uva__checker_state_error(&protocol, EIO, NULL, 1, &found);
    uva__checker_state_end(&protocol, call, code, false, &found);
}

static void extract(bool fails)
{
    uva__checker_state_extract(&protocol);
    uva__checker_state_extracted(&protocol, fails);
}

/* The callback that a letter means. */
static enum uva__call call_of(char letter)
{
    static const char letters[] = "?STNER";
    const char *at = strchr(letters, letter);

    return at == NULL ? UVA__CALL_NONE : (enum uva__call)(at - letters);
}

static void other(char letter)
{
    if (letter == 'r')
        (void)uva__checker_state_request(&protocol, 2, &OUTSIDE, &found);
    else if (letter == 'q') {
        (void)uva__checker_state_request(&protocol, 0, &OUTSIDE, &found);
        uva__checker_state_requested(&protocol, 0);
    } else if (letter == 'x')
        extract(true);
    else if (letter == '(')
        uva__checker_state_extract(&protocol);
    else if (letter == ')')
        uva__checker_state_extracted(&protocol, false);
    else if (letter == '.')
        uva__checker_state_conclude(&protocol, true, 0, 0, &found);
    else {
        (void)uva__checker_state_cancel(&protocol, &OUTSIDE, 1, &found);
        uva__checker_state_cancelled(&protocol);
    }
}

static void play(const char *script)
{
    for (; *script != '\0'; script++) {
        if (call_of(*script) == UVA__CALL_NONE)
            other(*script);
        else if (script[1] == '!')
            callback(call_of(*script++), EIO);
        else
            callback(call_of(*script), 0);
    }
}

/* Asserts that the script breaks only `rule`; COUNT: no rule. */
static void breaks(const char *script, enum uva__rule rule)
{
    setup();
    play(script);
    ck_assert_msg(found.count == (rule != UVA__RULE_COUNT),
                  "%s breaks %d rules, the first is %d", script, found.count,
                  (int)found.all[0].rule);
    if (rule != UVA__RULE_COUNT)
        ck_assert_msg(found.all[0].rule == rule, "%s breaks %d", script,
                      (int)found.all[0].rule);
}

/* ---- scripts ------------------------------------------------------------ */

static const char *const LAWFUL[] = {
    "SNR.",     "SrTTNR.",  "SrTER.",   "ER.",       "S!R.",
    "SrT!R.",   "SrTN!R.",  "SrTcR.",   "SrTcTNR.",  "SrcER.",
    "SrTxER.",  "SrTxNER.", "SrTNxER.", "SrT(NE)R.", "SrTNcR.",
    "SrTTrTNR", "SrTTrTTr", "S",        "SrT(R)",    "SrTxT!R.",
    "SrTxcTR.", "SrTNxR.",  "SrTxR.",   "SrTTrTT.",  "SNrR.",
};

START_TEST(lawful_scripts_break_nothing)
{
    breaks(LAWFUL[_i], UVA__RULE_COUNT);
}
END_TEST

static const struct {
    const char *script;
    enum uva__rule rule;
} UNLAWFUL[] = {
    {"TSrNR", UVA__RULE_AH_05},    {"ScqR.", UVA__RULE_AP_08},
    {"SNqR.", UVA__RULE_AP_08},    {"SEqR.", UVA__RULE_AP_08},
    {"SSNR", UVA__RULE_AH_05},     {"R", UVA__RULE_AH_05_ALONE},
    {"S!TR", UVA__RULE_AH_08},     {"S!ER", UVA__RULE_AH_08},
    {"S!NR", UVA__RULE_AH_08},     {"S!SR", UVA__RULE_AH_08},
    {"SrT!TR", UVA__RULE_AH_16},   {"SrT!ER", UVA__RULE_AH_16},
    {"SN!ER", UVA__RULE_AH_16},    {"SETR", UVA__RULE_AH_17},
    {"ESR", UVA__RULE_AH_17},      {"SEER", UVA__RULE_AH_32},
    {"SrNTR", UVA__RULE_AH_11},    {"SNNR", UVA__RULE_AH_11},
    {"SR", UVA__RULE_AH_12},       {"SNER", UVA__RULE_AH_33},
    {"SNRR", UVA__RULE_AH_21},     {"SNRE", UVA__RULE_AH_22},
    {"STNR", UVA__RULE_AH_10},     {"SrTTTNR", UVA__RULE_AP_06},
    {"SrcrTTTR", UVA__RULE_AP_07}, {"SrrTxTTER", UVA__RULE_AT_08},
    {"SrTxNR", UVA__RULE_ER_05},   {"SNRr", UVA__RULE_AP_24},
    {"SNRc", UVA__RULE_AP_24},     {"rSNR", UVA__RULE_AH_04},
    {"cSR", UVA__RULE_AH_04},      {"SqER", UVA__RULE_AP_08},
    {"SqNR", UVA__RULE_AP_08},     {"SE.", UVA__RULE_AH_17},
    {"Sc.", UVA__RULE_AP_14},      {"S!.", UVA__RULE_AH_21},
    {"SrT!.", UVA__RULE_AH_21},    {"SN.", UVA__RULE_AH_21},
    {".", UVA__RULE_AH_21},        {"Sr.", UVA__RULE_AP_26},
    {"SrrTT.", UVA__RULE_AP_02},   {"SrrT.", UVA__RULE_AP_26},
};

START_TEST(each_unlawful_script_breaks_one_rule)
{
    breaks(UNLAWFUL[_i].script, UNLAWFUL[_i].rule);
}
END_TEST

enum {
    LAWFUL_COUNT = sizeof(LAWFUL) / sizeof(LAWFUL[0]),
    UNLAWFUL_COUNT = sizeof(UNLAWFUL) / sizeof(UNLAWFUL[0])
};

/* ---- place -------------------------------------------------------------- */

static void begins(enum uva__call call, struct uva__call_context place,
                   enum uva__rule rule)
{
    setup();
    play("Sr");
    ck_assert(uva__checker_state_begin(&protocol, call, &place, &found));
    ck_assert_int_eq(found.count > 0, rule != UVA__RULE_COUNT);
    if (rule != UVA__RULE_COUNT)
        ck_assert_int_eq(found.all[0].rule, rule);
}

START_TEST(a_callback_beside_another_breaks_the_rule_for_both)
{
    const struct uva__call_context task = {.beside = UVA__CALL_TASK};
    const struct uva__call_context end = {.beside = UVA__CALL_END};
    const struct uva__call_context error = {.beside = UVA__CALL_ERROR};

    begins(UVA__CALL_TASK, task, UVA__RULE_AH_15);
    begins(UVA__CALL_TASK, end, UVA__RULE_AH_15);
    begins(UVA__CALL_END, task, UVA__RULE_AH_15);
    begins(UVA__CALL_END, error, UVA__RULE_TH_01);
    begins(UVA__CALL_ERROR, task, UVA__RULE_TH_01);
    begins(UVA__CALL_RELEASE, task, UVA__RULE_TH_09);
    begins(UVA__CALL_TASK, OUTSIDE, UVA__RULE_COUNT);
}
END_TEST

START_TEST(a_callback_inside_another_call_breaks_the_rule_for_that)
{
    const struct uva__call_context request = {.within = UVA__CALL_REQUEST};
    const struct uva__call_context cancel = {.within = UVA__CALL_CANCEL};
    const struct uva__call_context both = {.within = UVA__CALL_CANCEL,
                                           .callback = UVA__CALL_TASK};
    const struct uva__call_context extract = {.within = UVA__CALL_EXTRACT,
                                              .callback = UVA__CALL_TASK};

    begins(UVA__CALL_TASK, request, UVA__RULE_AP_04);
    begins(UVA__CALL_RELEASE, request, UVA__RULE_AP_05);
    begins(UVA__CALL_TASK, cancel, UVA__RULE_AP_13);
    begins(UVA__CALL_ERROR, cancel, UVA__RULE_COUNT);
    begins(UVA__CALL_ERROR, both, UVA__RULE_TH_08);
    begins(UVA__CALL_ERROR, extract, UVA__RULE_AT_23);
}
END_TEST

/* ---- on_error ----------------------------------------------------------- */

/* The arguments of on_error after a cancel on thread 1. */
static int echoes(int code, const char *message, uint64_t thread)
{
    setup();
    play("Src");
    uva__checker_state_error(&protocol, code, message, thread, &found);
    return found.count;
}

START_TEST(an_error_that_tells_of_a_cancel_is_an_echo)
{
    ck_assert_int_eq(echoes(ECANCELED, NULL, 1), 1);
    ck_assert_int_eq(echoes(ECANCELED, NULL, 2), 0);
    ck_assert_int_eq(echoes(EINVAL, "was CANCELLED", 2), 1);
    ck_assert_int_eq(echoes(EINVAL, "cance", 1), 0);
    ck_assert_int_eq(echoes(EINVAL, NULL, 1), 0);
    ck_assert_int_eq(echoes(EIO, "cancelled", 1), 0);
}
END_TEST

START_TEST(an_error_a_callback_after_the_cancel_is_an_echo_on_any_thread)
{
    play("SrcT");
    uva__checker_state_error(&protocol, ECANCELED, NULL, 2, &found);
    ck_assert_int_eq(found.count, 1);
    ck_assert_int_eq(found.all[0].rule, UVA__RULE_AP_16);
}
END_TEST

START_TEST(while_cancel_has_not_returned_no_error_is_an_echo)
{
    play("Sr");
    (void)uva__checker_state_cancel(&protocol, &OUTSIDE, 1, &found);
    uva__checker_state_error(&protocol, ECANCELED, NULL, 1, &found);
    play("T");
    uva__checker_state_error(&protocol, ECANCELED, NULL, 2, &found);
    ck_assert_int_eq(found.count, 0);
}
END_TEST

START_TEST(while_cancel_has_not_returned_a_text_is_no_echo)
{
    play("Sr");
    (void)uva__checker_state_cancel(&protocol, &OUTSIDE, 1, &found);
    uva__checker_state_error(&protocol, EINVAL, "cancelled", 2, &found);
    ck_assert_int_eq(found.count, 0);
}
END_TEST

/* ---- bad requests ------------------------------------------------------- */

/* Plays the script, with a bad request at '-' that begins there and returns at
 * '+'; returns whether the producer should have answered it. */
static bool must_answer(const char *script)
{
    char one[2] = "";

    setup();
    for (; *script != '\0'; script++) {
        one[0] = *script;
        if (*script == '-')
            (void)uva__checker_state_request(&protocol, 0, &OUTSIDE, &found);
        else if (*script == '+')
            uva__checker_state_requested(&protocol, 0);
        else
            play(one);
    }
    ck_assert_int_eq(found.all[0].rule, UVA__RULE_AP_08);
    if (found.count == 2)
        ck_assert_int_eq(found.all[1].rule, UVA__RULE_AP_09);
    return found.count == 2;
}

START_TEST(a_bad_request_must_be_answered_once_a_callback_has_returned_since)
{
    ck_assert(must_answer("Sr-+TNR"));
    ck_assert(must_answer("Sr-T+TNR"));
    ck_assert(!must_answer("Sr-TN+R"));
    ck_assert(!must_answer("Sr-T+NR"));
    ck_assert(!must_answer("Sr-N+R"));
    ck_assert(!must_answer("Sr-+NR"));
    ck_assert(!must_answer("Sr-+TER"));
}
END_TEST

START_TEST(a_bad_request_inside_a_callback_must_be_answered_after_it)
{
    const struct uva__call_context inside = {.within = UVA__CALL_TASK,
                                             .callback = UVA__CALL_TASK};

    play("Sr");
    (void)uva__checker_state_begin(&protocol, UVA__CALL_TASK, &OUTSIDE, &found);
    (void)uva__checker_state_request(&protocol, 0, &inside, &found);
    uva__checker_state_end(&protocol, UVA__CALL_TASK, 0, false, &found);
    play("NR");
    ck_assert_int_eq(found.count, 2);
    ck_assert_int_eq(found.all[1].rule, UVA__RULE_AP_09);
}
END_TEST

/* ---- the end of a callback ---------------------------------------------- */

START_TEST(codes_of_errno_are_in_order)
{
    uva__checker_state_end(&protocol, UVA__CALL_TASK, 4095, true, &found);
    ck_assert_int_eq(found.count, 0);
    uva__checker_state_end(&protocol, UVA__CALL_TASK, 4096, false, &found);
    ck_assert_int_eq(found.count, 1);
    ck_assert_int_eq(found.all[0].rule, UVA__RULE_AH_09);
}
END_TEST

START_TEST(calls_beside_the_end_are_TH_10)
{
    const enum uva__call calls[] = {UVA__CALL_END, UVA__CALL_ERROR,
                                    UVA__CALL_RELEASE};

    uva__checker_state_end(&protocol, calls[_i], 0, true, &found);
    ck_assert_int_eq(found.count, 1);
    ck_assert_int_eq(found.all[0].rule, UVA__RULE_TH_10);
}
END_TEST

/* ---- conclude ----------------------------------------------------------- */

START_TEST(what_is_held_at_the_end_is_told_by_how_the_stream_ended)
{
    const char *const scripts[] = {"SrTNR", "SrTcR", "SrTER", "SrTxNER"};

    play(scripts[_i]);
    uva__checker_state_conclude(&protocol, true, 2, 7, &found);
    ck_assert_int_eq(found.count, 1);
    ck_assert_int_eq(found.all[0].rule,
                     _i == 0 ? UVA__RULE_AT_02 : UVA__RULE_AT_21);
    ck_assert_int_eq((int)found.all[0].number, 7);
}
END_TEST

START_TEST(a_handler_nobody_accepted_may_stay_unreleased)
{
    uva__checker_state_conclude(&protocol, false, 0, 0, &found);
    ck_assert_int_eq(found.count, 0);
}
END_TEST

START_TEST(requests_inside_callbacks_alone_are_told_apart)
{
    const struct uva__call_context inside = {.within = UVA__CALL_SCHEMA,
                                             .callback = UVA__CALL_SCHEMA};

    play("S");
    (void)uva__checker_state_request(&protocol, 5, &inside, &found);
    play(".");
    ck_assert_int_eq(found.all[0].rule, UVA__RULE_AP_03);
}
END_TEST

START_TEST(a_call_during_release_is_not_made_and_not_told)
{
    play("S");
    (void)uva__checker_state_begin(&protocol, UVA__CALL_ERROR, &OUTSIDE,
                                   &found);
    (void)uva__checker_state_begin(&protocol, UVA__CALL_RELEASE, &OUTSIDE,
                                   &found);
    ck_assert(!uva__checker_state_request(&protocol, 1, &OUTSIDE, &found));
    ck_assert(!uva__checker_state_cancel(&protocol, &OUTSIDE, 1, &found));
    ck_assert_int_eq(found.count, 0);
    setup();
    (void)uva__checker_state_begin(&protocol, UVA__CALL_ERROR, &OUTSIDE,
                                   &found);
    (void)uva__checker_state_begin(&protocol, UVA__CALL_RELEASE, &OUTSIDE,
                                   &found);
    ck_assert(!uva__checker_state_cancel(&protocol, &OUTSIDE, 1, &found));
    ck_assert_int_eq(found.count, 0);
}
END_TEST

/* ---- at random ---------------------------------------------------------- */

START_TEST(whatever_comes_each_rule_is_found_once_at_most)
{
    static const char letters[] = "STNERSTrrqcx(.";
    uint64_t seed = (uint64_t)_i * 977 + 1;
    char script[2] = "";
    int seen[UVA__RULE_COUNT] = {0};

    for (int i = 0; i < 400; i++) {
        seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407u;
        script[0] = letters[(seed >> 33) % (sizeof(letters) - 1)];
        found.count = 0;
        play(script);
        for (int k = 0; k < found.count; k++)
            ck_assert_int_eq(++seen[found.all[k].rule], 1);
    }
}
END_TEST

START_TEST(no_more_is_found_at_once_than_there_is_room_for)
{
    struct uva__findings all = {.count = 0};

    for (int i = 0; i < UVA__RULE_COUNT; i++)
        uva__checker_state_find(&protocol, &all, (enum uva__rule)i, i);
    ck_assert_int_eq(all.count, UVA__FINDINGS_MAX);
    uva__checker_state_observed(&protocol, &all, &found);
    ck_assert_int_eq(found.count, 0);
}
END_TEST

/* ---- all cases ---------------------------------------------------------- */

int main(void)
{
    TCase *all = tcase_create("all");

    tcase_add_loop_test(all, lawful_scripts_break_nothing, 0, LAWFUL_COUNT);
    tcase_add_loop_test(all, each_unlawful_script_breaks_one_rule, 0,
                        UNLAWFUL_COUNT);
    tcase_add_test(all, a_callback_beside_another_breaks_the_rule_for_both);
    tcase_add_test(all,
                   a_callback_inside_another_call_breaks_the_rule_for_that);
    tcase_add_test(all, an_error_that_tells_of_a_cancel_is_an_echo);
    tcase_add_test(
        all, an_error_a_callback_after_the_cancel_is_an_echo_on_any_thread);
    tcase_add_test(all, while_cancel_has_not_returned_no_error_is_an_echo);
    tcase_add_test(all, while_cancel_has_not_returned_a_text_is_no_echo);
    tcase_add_test(
        all, a_bad_request_must_be_answered_once_a_callback_has_returned_since);
    tcase_add_test(all,
                   a_bad_request_inside_a_callback_must_be_answered_after_it);
    tcase_add_test(all, codes_of_errno_are_in_order);
    tcase_add_loop_test(all, calls_beside_the_end_are_TH_10, 0, 3);
    tcase_add_loop_test(
        all, what_is_held_at_the_end_is_told_by_how_the_stream_ended, 0, 4);
    tcase_add_test(all, a_handler_nobody_accepted_may_stay_unreleased);
    tcase_add_test(all, requests_inside_callbacks_alone_are_told_apart);
    tcase_add_test(all, a_call_during_release_is_not_made_and_not_told);
    tcase_add_loop_test(all, whatever_comes_each_rule_is_found_once_at_most, 0,
                        50);
    tcase_add_test(all, no_more_is_found_at_once_than_there_is_room_for);
    return suite_main("checker state", setup, NULL, all, NULL);
}
