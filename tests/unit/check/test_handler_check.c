/* SPDX-License-Identifier: Apache-2.0 */
/* Calls that break the rules of order and demand, each in one way; and streams
 * that break no rule. */
#include <check.h>
#include <string.h>

#include "support/check_play.h"
#include "support/check_suite.h"

static int refuse_schema(struct check_fixture *s, struct ArrowSchema *schema)
{
    s->peer = s->inner.producer;
    uva_schema_release(schema);
    return EINVAL;
}

/* ---- correct ------------------------------------------------------------ */

START_TEST(a_whole_stream_brings_no_report)
{
    play_begin();
    play_tasks(60);
    play_end();
    ck_assert_int_eq(atomic_load(&play.extracted), 60);
    ck_assert_int_eq(atomic_load(&play.released), 1);
    ck_assert_int_eq((int)atomic_load(&play.requested), 100);
    play_expect_at_last("");
}
END_TEST

START_TEST(an_empty_stream_brings_no_report)
{
    play.on_schema = play_request_none;
    play_begin();
    play_end();
    play_expect_at_last("");
}
END_TEST

START_TEST(an_error_brings_no_report_at_any_time)
{
    check_fixture_error(&play, EIO, "no disk");
    check_fixture_release(&play);
    play_expect_at_last("");
}
END_TEST

START_TEST(an_error_in_the_middle_brings_no_report)
{
    play_begin();
    play_tasks(2);
    check_fixture_error(&play, 100000, NULL);
    check_fixture_release(&play);
    play_expect_at_last("");
}
END_TEST

START_TEST(a_refused_schema_brings_no_report)
{
    play.on_schema = refuse_schema;
    ck_assert_int_eq(check_fixture_schema(&play), EINVAL);
    check_fixture_release(&play);
    play_expect_at_last("");
}
END_TEST

START_TEST(a_refused_task_brings_no_report_when_it_was_discarded)
{
    play_begin();
    play.on_task = play_refuse_task;
    ck_assert_int_eq(check_fixture_task(&play), EIO);
    check_fixture_release(&play);
    play_expect_at_last("");
}
END_TEST

START_TEST(after_a_cancel_tasks_the_end_and_more_cancels_bring_no_report)
{
    play_begin();
    play_tasks(1);
    play_cancel();
    play_cancel();
    play_request(5);
    play_tasks(3);
    play_end();
    ck_assert_int_eq(atomic_load(&play.cancels), 2);
    play_expect_at_last("");
}
END_TEST

START_TEST(after_a_cancel_release_alone_brings_no_report)
{
    play_begin();
    play_cancel();
    check_fixture_release(&play);
    play_expect_at_last("");
}
END_TEST

START_TEST(after_a_cancel_a_late_error_brings_no_report)
{
    play_begin();
    play_cancel();
    check_fixture_error(&play, EIO, "cannot stop");
    check_fixture_release(&play);
    play_expect_at_last("");
}
END_TEST

START_TEST(a_handler_never_given_away_is_released_and_brings_no_report)
{
    play.out->producer = NULL;
    play_expect_at_last("");
    ck_assert_int_eq(atomic_load(&play.released), 1);
}
END_TEST

START_TEST(a_stream_that_waits_to_be_asked_brings_no_report)
{
    play.on_schema = play_request_two;
    play_begin();
    play_tasks(2);
    play_expect_at_last("");
    ck_assert_int_eq(atomic_load(&play.released), 1);
}
END_TEST

/* ---- order -------------------------------------------------------------- */

START_TEST(a_task_before_the_schema_is_AH_05)
{
    play_task();
    play_expect("AH-05 producer error");
    play_begin();
    play_end();
    play_expect_at_last("");
}
END_TEST

START_TEST(a_second_schema_is_AH_05)
{
    play_begin();
    (void)check_fixture_schema(&play);
    play_end();
    play_expect_at_last("AH-05 producer error");
}
END_TEST

START_TEST(a_release_alone_is_AH_05_and_a_warning)
{
    check_fixture_release(&play);
    play_expect_at_last("AH-05 producer warning");
}
END_TEST

START_TEST(an_end_after_a_refused_schema_is_AH_08)
{
    play.on_schema = refuse_schema;
    (void)check_fixture_schema(&play);
    play_end();
    play_expect_at_last("AH-08 producer error");
}
END_TEST

START_TEST(an_error_after_a_refused_schema_is_AH_08)
{
    play.on_schema = refuse_schema;
    (void)check_fixture_schema(&play);
    check_fixture_error(&play, EINVAL, "refused");
    check_fixture_release(&play);
    play_expect_at_last("AH-08 producer error");
}
END_TEST

START_TEST(a_task_after_the_end_is_AH_11)
{
    play_begin();
    play_the_end();
    play_tasks(1);
    check_fixture_release(&play);
    play_expect_at_last("AH-11 producer error");
}
END_TEST

START_TEST(a_second_end_is_AH_11)
{
    play_begin();
    play_the_end();
    play_end();
    play_expect_at_last("AH-11 producer error");
}
END_TEST

START_TEST(a_release_without_an_end_is_AH_12)
{
    play_begin();
    check_fixture_release(&play);
    play_expect_at_last("AH-12 producer error");
}
END_TEST

START_TEST(an_error_after_a_refused_task_is_AH_16)
{
    play_begin();
    play.on_task = play_refuse_task;
    play_task();
    check_fixture_error(&play, EIO, NULL);
    check_fixture_release(&play);
    play_expect_at_last("AH-16 producer error");
}
END_TEST

START_TEST(an_end_after_an_error_is_AH_17)
{
    play_begin();
    check_fixture_error(&play, EIO, NULL);
    play_end();
    play_expect_at_last("AH-17 producer error");
}
END_TEST

START_TEST(a_second_error_is_AH_32)
{
    play_begin();
    check_fixture_error(&play, EIO, NULL);
    check_fixture_error(&play, EIO, NULL);
    check_fixture_release(&play);
    play_expect_at_last("AH-32 producer error");
}
END_TEST

START_TEST(an_error_after_the_end_is_AH_33)
{
    play_begin();
    play_tasks(1);
    play_the_end();
    check_fixture_error(&play, EIO, NULL);
    check_fixture_release(&play);
    play_expect_at_last("AH-33 producer error");
}
END_TEST

START_TEST(an_error_after_the_end_tells_of_a_failed_extraction)
{
    play_begin();
    play.tasks[0].code = EIO;
    play_tasks(1);
    play_the_end();
    check_fixture_error(&play, EIO, NULL);
    check_fixture_release(&play);
    play_expect_at_last("");
}
END_TEST

START_TEST(a_second_release_is_AH_21)
{
    play_begin();
    play_end();
    check_fixture_release(&play);
    ck_assert_int_eq(atomic_load(&play.released), 1);
    play_expect_at_last("AH-21 producer fatal");
}
END_TEST

START_TEST(whatever_comes_after_release_is_AH_22_and_goes_no_further)
{
    play_begin();
    play_end();
    ck_assert_int_eq(check_fixture_schema(&play), ECANCELED);
    ck_assert_int_eq(check_fixture_task(&play), 0);
    ck_assert_int_eq(check_fixture_end(&play), 0);
    check_fixture_error(&play, EIO, NULL);
    ck_assert_int_eq(atomic_load(&play.discarded), 1);
    ck_assert_int_eq(play.out->on_schema(play.out, NULL), ECANCELED);
    ck_assert_int_eq(
        play.out->on_next_task(play.out, &(struct ArrowAsyncTask){0}, NULL), 0);
    play_expect_at_last("AH-22 producer fatal");
}
END_TEST

/* ---- demand ------------------------------------------------------------- */

START_TEST(a_task_beyond_the_requests_is_AP_06)
{
    play.on_schema = play_request_two;
    play_begin();
    play_tasks(2);
    play_expect("");
    play_tasks(1);
    play_expect("AP-06 producer error");
    play_request(2);
    play_tasks(1);
    play_end();
    play_expect_at_last("");
}
END_TEST

START_TEST(a_task_before_any_request_is_AH_10)
{
    play.on_schema = play_request_none;
    play_begin();
    play_tasks(1);
    play_end();
    play_expect_at_last("AH-10 producer error");
}
END_TEST

START_TEST(a_task_for_a_request_after_cancel_is_AP_07)
{
    play.on_schema = play_request_two;
    play_begin();
    play_cancel();
    play_request(5);
    play_tasks(2);
    play_expect("");
    play_tasks(1);
    check_fixture_release(&play);
    play_expect_at_last("AP-07 producer error");
}
END_TEST

START_TEST(requests_without_end_are_counted_to_infinity)
{
    play.on_schema = play_request_none;
    play_begin();
    play_request(INT64_MAX);
    play_request(INT64_MAX);
    play_request(3); /* the sum is 1, in 64 bits */
    play_tasks(3);
    play_end();
    play_expect_at_last("");
}
END_TEST

START_TEST(a_request_of_none_is_AP_08_and_an_error_answers_it)
{
    play_begin();
    play_request(0);
    check_fixture_error(&play, EINVAL, "n must be positive");
    check_fixture_release(&play);
    play_expect_at_last("AP-08 consumer error");
}
END_TEST

START_TEST(a_request_of_none_that_brings_no_error_is_AP_09)
{
    play_begin();
    play_request(-1);
    play_tasks(1);
    play_end();
    play_expect_at_last("AP-08 consumer error\nAP-09 producer warning");
}
END_TEST

START_TEST(a_request_of_none_after_cancel_needs_no_answer)
{
    play_begin();
    play_cancel();
    play_request(-1);
    check_fixture_release(&play);
    play_expect_at_last("AP-08 consumer error");
}
END_TEST

START_TEST(a_cancel_reported_as_an_error_is_AP_16)
{
    play_begin();
    play_cancel();
    check_fixture_error(&play, ECANCELED, NULL);
    check_fixture_release(&play);
    play_expect_at_last("AP-16 producer error");
}
END_TEST

START_TEST(a_cancel_reported_in_words_is_AP_16)
{
    play_begin();
    play_cancel();
    check_fixture_error(&play, EINVAL, "Consumer requested Cancellation");
    check_fixture_release(&play);
    play_expect_at_last("AP-16 producer error");
}
END_TEST

static void error_of_cancel(void)
{
    check_fixture_error(&play, ECANCELED, NULL);
}

START_TEST(an_abort_that_may_have_come_before_the_cancel_is_not_AP_16)
{
    play_begin();
    play_cancel();
    play_elsewhere(error_of_cancel);
    check_fixture_release(&play);
    play_expect_at_last("");
}
END_TEST

START_TEST(other_errors_after_a_cancel_are_not_AP_16)
{
    play_begin();
    play_cancel();
    check_fixture_error(&play, EINVAL, "bad input");
    check_fixture_release(&play);
    play_expect_at_last("");
}
END_TEST

/* ---- failed extractions ------------------------------------------------- */

START_TEST(a_task_after_a_failed_extraction_is_AT_08)
{
    play_begin();
    play.tasks[0].code = EIO;
    play_tasks(2);
    check_fixture_error(&play, EIO, NULL);
    check_fixture_release(&play);
    play_expect_at_last("AT-08 producer warning");
}
END_TEST

START_TEST(a_failed_extraction_that_brings_no_error_is_ER_05)
{
    play_begin();
    play.tasks[0].code = EIO;
    play_tasks(1);
    play_end();
    play_expect_at_last("ER-05 producer warning");
}
END_TEST

/* ---- missing calls ------------------------------------------------------ */

START_TEST(a_release_that_never_comes_is_AH_21)
{
    play_begin();
    play_the_end();
    play_expect_at_last("AH-21 producer fatal");
    ck_assert_int_eq(atomic_load(&play.released), 1);
}
END_TEST

START_TEST(a_release_that_never_comes_for_a_silent_producer_is_AH_21)
{
    play_expect_at_last("AH-21 producer fatal");
}
END_TEST

START_TEST(a_release_that_never_comes_after_an_error_is_AH_17)
{
    play_begin();
    check_fixture_error(&play, EIO, NULL);
    play_expect_at_last("AH-17 producer error");
}
END_TEST

START_TEST(a_release_that_never_comes_after_a_cancel_is_AP_14)
{
    play_begin();
    play_cancel();
    play_expect_at_last("AP-14 producer error");
}
END_TEST

START_TEST(a_release_that_never_comes_after_a_refusal_is_AH_21)
{
    play.on_schema = refuse_schema;
    (void)check_fixture_schema(&play);
    play_expect_at_last("AH-21 producer fatal");
}
END_TEST

START_TEST(requests_that_replace_each_other_are_AP_02)
{
    play.on_schema = play_request_two;
    play_begin();
    play_request(3);
    play_tasks(3);
    play_expect_at_last("AP-02 producer error");
}
END_TEST

START_TEST(a_request_in_a_callback_that_brings_nothing_is_AP_03)
{
    play_begin();
    play_expect_at_last("AP-03 producer error");
}
END_TEST

START_TEST(tasks_that_stop_coming_are_AP_26)
{
    play_begin();
    play_tasks(1);
    play_expect_at_last("AP-26 producer error");
}
END_TEST

START_TEST(tasks_that_never_come_when_asked_from_outside_are_AP_26)
{
    play.on_schema = play_request_none;
    play_begin();
    play_request(1);
    play_expect_at_last("AP-26 producer error");
}
END_TEST

static int keep_task(struct check_fixture *s, struct ArrowAsyncTask *task)
{
    s->kept[0] = *task;
    return 0;
}

START_TEST(a_task_never_extracted_is_AT_02)
{
    play_begin();
    play.on_task = keep_task;
    play_tasks(2);
    (void)check_fixture_take_task(&play, &play.kept[0]);
    play_end();
    play_expect_at_last("AT-02 consumer error");
}
END_TEST

START_TEST(a_task_left_when_the_stream_was_cut_short_is_AT_21)
{
    play_begin();
    play.on_task = keep_task;
    play_tasks(2);
    play_cancel();
    check_fixture_release(&play);
    play_expect_at_last("AT-21 consumer error");
}
END_TEST

static int refuse_untouched(struct check_fixture *s,
                            struct ArrowAsyncTask *task)
{
    s->kept[0] = *task;
    return EIO;
}

START_TEST(a_task_refused_and_not_extracted_is_AT_02_and_the_producers_again)
{
    struct ArrowDeviceArray array;

    play_begin();
    play.on_task = refuse_untouched;
    play_task();
    play_expect("AT-02 consumer error");
    ck_assert_int_eq(uva_task_extract(&play.kept[0], &array), ECANCELED);
    ck_assert_int_eq(play.kept[0].extract_data(&play.kept[0], NULL), ECANCELED);
    ck_assert_int_eq(atomic_load(&play.extracted), 0);
    check_fixture_release(&play);
    play_expect_at_last("");
}
END_TEST

/* ---- the report --------------------------------------------------------- */

START_TEST(each_rule_is_told_once_with_the_calls_that_led_to_it)
{
    play_begin();
    play_the_end();
    play_the_end();
    play_the_end();
    ck_assert_int_eq(play.reports, 1);
    ck_assert(strstr(play.transcript, "on_schema") != NULL);
    ck_assert(strstr(play.transcript, "request(100)") != NULL);
    ck_assert(strstr(play.transcript, "on_next_task(NULL)") != NULL);
    check_fixture_release(&play);
    uva_schema_release(&play.schema);
    ck_assert_int_eq(check_fixture_conclude(&play), 1);
}
END_TEST

/* ---- all cases ---------------------------------------------------------- */

static void add_0(TCase *all)
{
    tcase_add_test(all, a_whole_stream_brings_no_report);
    tcase_add_test(all, an_empty_stream_brings_no_report);
    tcase_add_test(all, an_error_brings_no_report_at_any_time);
    tcase_add_test(all, an_error_in_the_middle_brings_no_report);
    tcase_add_test(all, a_refused_schema_brings_no_report);
    tcase_add_test(all, a_refused_task_brings_no_report_when_it_was_discarded);
    tcase_add_test(
        all, after_a_cancel_tasks_the_end_and_more_cancels_bring_no_report);
    tcase_add_test(all, after_a_cancel_release_alone_brings_no_report);
    tcase_add_test(all, after_a_cancel_a_late_error_brings_no_report);
    tcase_add_test(all,
                   a_handler_never_given_away_is_released_and_brings_no_report);
    tcase_add_test(all, a_stream_that_waits_to_be_asked_brings_no_report);
    tcase_add_test(all, a_task_before_the_schema_is_AH_05);
    tcase_add_test(all, a_second_schema_is_AH_05);
    tcase_add_test(all, a_release_alone_is_AH_05_and_a_warning);
    tcase_add_test(all, an_end_after_a_refused_schema_is_AH_08);
    tcase_add_test(all, an_error_after_a_refused_schema_is_AH_08);
    tcase_add_test(all, a_task_after_the_end_is_AH_11);
    tcase_add_test(all, a_second_end_is_AH_11);
    tcase_add_test(all, a_release_without_an_end_is_AH_12);
    tcase_add_test(all, an_error_after_a_refused_task_is_AH_16);
    tcase_add_test(all, an_end_after_an_error_is_AH_17);
    tcase_add_test(all, a_second_error_is_AH_32);
    tcase_add_test(all, an_error_after_the_end_is_AH_33);
    tcase_add_test(all, an_error_after_the_end_tells_of_a_failed_extraction);
    tcase_add_test(all, a_second_release_is_AH_21);
    tcase_add_test(all,
                   whatever_comes_after_release_is_AH_22_and_goes_no_further);
    tcase_add_test(all, a_task_beyond_the_requests_is_AP_06);
    tcase_add_test(all, a_task_before_any_request_is_AH_10);
    tcase_add_test(all, a_task_for_a_request_after_cancel_is_AP_07);
    tcase_add_test(all, requests_without_end_are_counted_to_infinity);
    tcase_add_test(all, a_request_of_none_is_AP_08_and_an_error_answers_it);
    tcase_add_test(all, a_request_of_none_that_brings_no_error_is_AP_09);
    tcase_add_test(all, a_request_of_none_after_cancel_needs_no_answer);
    tcase_add_test(all, a_cancel_reported_as_an_error_is_AP_16);
    tcase_add_test(all, a_cancel_reported_in_words_is_AP_16);
    tcase_add_test(all,
                   an_abort_that_may_have_come_before_the_cancel_is_not_AP_16);
    tcase_add_test(all, other_errors_after_a_cancel_are_not_AP_16);
    tcase_add_test(all, a_task_after_a_failed_extraction_is_AT_08);
    tcase_add_test(all, a_failed_extraction_that_brings_no_error_is_ER_05);
    tcase_add_test(all, a_release_that_never_comes_is_AH_21);
}

static void add_1(TCase *all)
{
    tcase_add_test(all,
                   a_release_that_never_comes_for_a_silent_producer_is_AH_21);
    tcase_add_test(all, a_release_that_never_comes_after_an_error_is_AH_17);
    tcase_add_test(all, a_release_that_never_comes_after_a_cancel_is_AP_14);
    tcase_add_test(all, a_release_that_never_comes_after_a_refusal_is_AH_21);
    tcase_add_test(all, requests_that_replace_each_other_are_AP_02);
    tcase_add_test(all, a_request_in_a_callback_that_brings_nothing_is_AP_03);
    tcase_add_test(all, tasks_that_stop_coming_are_AP_26);
    tcase_add_test(all,
                   tasks_that_never_come_when_asked_from_outside_are_AP_26);
    tcase_add_test(all, a_task_never_extracted_is_AT_02);
    tcase_add_test(all, a_task_left_when_the_stream_was_cut_short_is_AT_21);
    tcase_add_test(
        all, a_task_refused_and_not_extracted_is_AT_02_and_the_producers_again);
    tcase_add_test(all, each_rule_is_told_once_with_the_calls_that_led_to_it);
}

int main(void)
{
    TCase *all = tcase_create("all");

    add_0(all);
    add_1(all);
    return suite_main("handler_check", play_setup, play_teardown, all, NULL);
}
