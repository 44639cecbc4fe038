/* SPDX-License-Identifier: Apache-2.0 */
/* Calls inside other calls or beside them, and calls that the consumer may not
 * make. */
#include <check.h>
#include <pthread.h>
#include <string.h>

#include "support/check_play.h"
#include "support/check_suite.h"

/* ---- place -------------------------------------------------------------- */

static void request_offers(struct check_fixture *s, int64_t n)
{
    s->on_request = NULL;
    if (n > 0)
        play_task();
}

START_TEST(a_task_inside_request_is_AP_04)
{
    play_begin();
    play.on_request = request_offers;
    play_request(1);
    play_end();
    play_expect_at_last("AP-04 producer error");
}
END_TEST

START_TEST(a_task_inside_request_inside_a_callback_is_AP_04)
{
    play.on_request = request_offers;
    play_begin();
    play_end();
    play_expect_at_last("AP-04 producer error");
}
END_TEST

static int request_and_offer(struct check_fixture *s,
                             struct ArrowAsyncTask *task)
{
    s->on_task = NULL;
    play_request(1);
    play_task();
    return check_fixture_take_task(s, task);
}

START_TEST(a_task_behind_a_request_inside_a_callback_is_not_inside_it)
{
    play_begin();
    play.on_task = request_and_offer;
    play_task();
    play_end();
    play_expect_at_last("TH-08 producer error");
}
END_TEST

static void request_releases(struct check_fixture *s, int64_t n)
{
    (void)s;
    (void)n;
    play_release();
    ck_assert_int_eq(atomic_load(&play.released), 0);
}

START_TEST(a_release_inside_request_is_AP_05_and_waits_for_it)
{
    play_begin();
    play.on_task = play_refuse_task;
    play_task();
    play.on_request = request_releases;
    play_request(1);
    ck_assert_int_eq(atomic_load(&play.released), 1);
    play_expect_at_last("AP-05 producer warning");
}
END_TEST

START_TEST(a_release_inside_request_after_cancel_is_allowed)
{
    play_begin();
    play_cancel();
    play.on_request = request_releases;
    play_request(1);
    play_expect_at_last("");
}
END_TEST

static void cancel_releases(struct check_fixture *s)
{
    (void)s;
    play_release();
}

START_TEST(a_release_inside_cancel_is_AP_13)
{
    play_begin();
    play.on_cancel = cancel_releases;
    play_cancel();
    play_expect_at_last("AP-13 producer error");
}
END_TEST

static void cancel_fails(struct check_fixture *s)
{
    check_fixture_error(s, EIO, "cannot stop");
}

START_TEST(an_error_inside_cancel_is_allowed)
{
    play_begin();
    play.on_cancel = cancel_fails;
    play_cancel();
    check_fixture_release(&play);
    play_expect_at_last("");
}
END_TEST

static int cancel_in_task(struct check_fixture *s, struct ArrowAsyncTask *task)
{
    uva_task_discard(task);
    s->peer->cancel(s->peer);
    return 0;
}

static pthread_t canceller;

static void on_same_thread(struct check_fixture *s, int code,
                           const char *message, const char *metadata)
{
    (void)s;
    (void)code;
    (void)message;
    (void)metadata;
    ck_assert(pthread_equal(pthread_self(), canceller));
}

START_TEST(an_error_inside_cancel_stays_on_its_thread_when_perturbed)
{
    play_again(&(struct uva_check){.perturb_seed = (uint64_t)_i + 1});
    play_begin();
    canceller = pthread_self();
    play.on_error = on_same_thread;
    play.on_cancel = cancel_fails;
    play_cancel();
    check_fixture_release(&play);
    play_expect_at_last("");
}
END_TEST

START_TEST(an_error_inside_cancel_inside_a_callback_is_TH_08)
{
    play_begin();
    play.on_cancel = cancel_fails;
    play.on_task = cancel_in_task;
    play_task();
    check_fixture_release(&play);
    play_expect_at_last("TH-08 producer error");
}
END_TEST

static int nested_task(struct check_fixture *s, struct ArrowAsyncTask *task)
{
    s->on_task = NULL;
    play_task();
    return check_fixture_take_task(s, task);
}

START_TEST(a_callback_inside_a_callback_is_TH_08)
{
    play_begin();
    play.on_task = nested_task;
    play_task();
    play_end();
    play_expect_at_last("TH-08 producer error");
}
END_TEST

static void extract_reports(struct check_fixture *s,
                            struct ArrowDeviceArray *array)
{
    (void)array;
    check_fixture_error(s, EIO, NULL);
}

static int keep_task(struct check_fixture *s, struct ArrowAsyncTask *task)
{
    s->kept[0] = *task;
    return 0;
}

START_TEST(a_callback_inside_extract_data_is_AT_23)
{
    play_begin();
    play.on_task = keep_task;
    play_task();
    play.on_extract = extract_reports;
    (void)check_fixture_take_task(&play, &play.kept[0]);
    check_fixture_release(&play);
    play_expect_at_last("AT-23 producer error");
}
END_TEST

/* ---- beside another callback -------------------------------------------- */

static int task_elsewhere(struct check_fixture *s, struct ArrowAsyncTask *task)
{
    s->on_task = NULL;
    play_elsewhere(play_task);
    return check_fixture_take_task(s, task);
}

START_TEST(two_tasks_at_once_are_AH_15)
{
    play_begin();
    play.on_task = task_elsewhere;
    play_task();
    play_end();
    play_expect_at_last("AH-15 producer fatal");
}
END_TEST

static int end_elsewhere(struct check_fixture *s, struct ArrowAsyncTask *task)
{
    play_elsewhere(play_the_end);
    return check_fixture_take_task(s, task);
}

START_TEST(the_end_beside_a_task_is_AH_15)
{
    play_begin();
    play.on_task = end_elsewhere;
    play_task();
    check_fixture_release(&play);
    play_expect_at_last("AH-15 producer fatal");
}
END_TEST

static void request_one(void)
{
    play_request(1);
}

static int request_elsewhere(struct check_fixture *s)
{
    (void)s;
    play_elsewhere(request_one);
    return 0;
}

START_TEST(a_request_beside_the_end_beside_a_task_adds_no_report)
{
    play_begin();
    play.on_task = end_elsewhere;
    play.on_end = request_elsewhere;
    play_task();
    check_fixture_release(&play);
    play_expect_at_last("AH-15 producer fatal");
}
END_TEST

static int request_from_third(struct check_fixture *s,
                              struct ArrowAsyncTask *task)
{
    s->on_task = NULL;
    play_elsewhere(request_one);
    return check_fixture_take_task(s, task);
}

static int second_task_elsewhere(struct check_fixture *s,
                                 struct ArrowAsyncTask *task)
{
    s->on_task = request_from_third;
    play_elsewhere(play_task);
    return check_fixture_take_task(s, task);
}

START_TEST(a_request_beside_two_tasks_adds_no_report)
{
    play_begin();
    play.on_task = second_task_elsewhere;
    play_task();
    play_end();
    play_expect_at_last("AH-15 producer fatal");
}
END_TEST

static int task_during_schema(struct check_fixture *s,
                              struct ArrowSchema *schema)
{
    const int code = check_fixture_take_schema(s, schema);

    play_elsewhere(play_task);
    return code;
}

START_TEST(a_task_beside_on_schema_is_TH_01)
{
    play.on_schema = task_during_schema;
    play_begin();
    play_end();
    play_expect_at_last("TH-01 producer fatal");
}
END_TEST

static void release_elsewhere(struct check_fixture *s)
{
    (void)s;
    play_elsewhere(play_release);
    ck_assert_int_eq(atomic_load(&play.released), 0);
}

START_TEST(a_release_beside_a_task_is_TH_09_and_waits_for_it)
{
    play_begin();
    play.on_cancel = release_elsewhere;
    play.on_task = cancel_in_task;
    play_task();
    ck_assert_int_eq(atomic_load(&play.released), 1);
    play_expect_at_last("TH-09 producer fatal");
}
END_TEST

/* ---- the consumer's calls ----------------------------------------------- */

START_TEST(a_call_before_on_schema_is_AH_04_and_made_in_it)
{
    play.peer = play.inner.producer;
    play_request(3);
    play_request(INT64_MAX);
    play_cancel();
    ck_assert_int_eq(atomic_load(&play.cancels), 0);
    play.on_schema = play_request_none;
    play_begin();
    ck_assert(atomic_load(&play.requested) == INT64_MAX);
    ck_assert_int_eq(atomic_load(&play.cancels), 1);
    (void)check_fixture_schema(&play);
    ck_assert_int_eq(atomic_load(&play.cancels), 1);
    ck_assert(atomic_load(&play.requested) == INT64_MAX);
    check_fixture_release(&play);
    play_expect_at_last("AH-04 consumer error\nAH-05 producer error");
}
END_TEST

START_TEST(a_bad_request_before_on_schema_stays_one)
{
    play.peer = play.inner.producer;
    play_request(-7);
    play_request(4);
    play.on_schema = play_request_none;
    play_begin();
    ck_assert_int_eq((int)atomic_load(&play.requested), -1);
    check_fixture_error(&play, EINVAL, NULL);
    check_fixture_release(&play);
    play_expect_at_last("AH-04 consumer error\nAP-08 consumer error");
}
END_TEST

static void request_in_error(struct check_fixture *s, int code,
                             const char *message, const char *metadata)
{
    (void)s;
    (void)code;
    (void)message;
    (void)metadata;
    play_request(1);
}

START_TEST(a_request_in_on_error_is_AH_19)
{
    play_begin();
    play.on_error = request_in_error;
    check_fixture_error(&play, EIO, NULL);
    check_fixture_release(&play);
    play_expect_at_last("AH-19 consumer error");
}
END_TEST

static void cancel_in_release(struct check_fixture *s)
{
    (void)s;
    play_cancel();
}

START_TEST(a_cancel_in_release_is_AH_19_and_goes_no_further)
{
    play_begin();
    play_the_end();
    play.on_release = cancel_in_release;
    check_fixture_release(&play);
    ck_assert_int_eq(atomic_load(&play.cancels), 0);
    play_expect_at_last("AH-19 consumer error");
}
END_TEST

START_TEST(a_request_after_release_is_AP_24_and_goes_no_further)
{
    play_begin();
    play_end();
    play_request(1);
    play_cancel();
    ck_assert_int_eq((int)atomic_load(&play.requested), 100);
    play_expect_at_last("AP-24 consumer error");
}
END_TEST

static void request_late(struct check_fixture *s)
{
    (void)s;
    play_elsewhere(play_cancel);
}

START_TEST(a_cancel_on_another_thread_that_ends_within_release_is_no_breach)
{
    play_begin();
    play.on_release = request_late;
    play_the_end();
    check_fixture_release(&play);
    ck_assert_int_eq(atomic_load(&play.cancels), 0);
    play_expect_at_last("");
}
END_TEST

START_TEST(a_request_after_the_end_is_no_breach)
{
    play_begin();
    play_the_end();
    play_request(1);
    check_fixture_release(&play);
    play_expect_at_last("");
}
END_TEST

/* Another thread that stays inside request until it is released. */
static pthread_barrier_t barrier;

static void stay_in_request(struct check_fixture *s, int64_t n)
{
    (void)n;
    s->on_request = NULL;
    (void)pthread_barrier_wait(&barrier);
    (void)pthread_barrier_wait(&barrier);
}

static void *request_main(void *arg)
{
    play_request(1);
    return arg;
}

START_TEST(a_request_still_under_way_at_the_end_is_TH_10)
{
    pthread_t thread;

    ck_assert_int_eq(pthread_barrier_init(&barrier, NULL, 2), 0);
    play_begin();
    play.on_request = stay_in_request;
    ck_assert_int_eq(pthread_create(&thread, NULL, request_main, NULL), 0);
    (void)pthread_barrier_wait(&barrier);
    play_the_end();
    (void)pthread_barrier_wait(&barrier);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    check_fixture_release(&play);
    (void)pthread_barrier_destroy(&barrier);
    play_expect_at_last("TH-10 consumer fatal");
}
END_TEST

static int return_odd(struct check_fixture *s, struct ArrowSchema *schema)
{
    s->peer = s->inner.producer;
    uva_schema_release(schema);
    return *(int *)s->ctx;
}

START_TEST(an_odd_code_is_AH_09_and_passed_on)
{
    int codes[] = {-5, 100000};

    play.ctx = &codes[_i];
    play.on_schema = return_odd;
    ck_assert_int_eq(check_fixture_schema(&play), codes[_i]);
    check_fixture_release(&play);
    play_expect_at_last("AH-09 consumer warning");
}
END_TEST

/* ---- all cases ---------------------------------------------------------- */

static void add_0(TCase *all)
{
    tcase_add_test(all, a_task_inside_request_is_AP_04);
    tcase_add_test(all, a_task_inside_request_inside_a_callback_is_AP_04);
    tcase_add_test(all,
                   a_task_behind_a_request_inside_a_callback_is_not_inside_it);
    tcase_add_test(all, a_release_inside_request_is_AP_05_and_waits_for_it);
    tcase_add_test(all, a_release_inside_request_after_cancel_is_allowed);
    tcase_add_test(all, a_release_inside_cancel_is_AP_13);
    tcase_add_test(all, an_error_inside_cancel_is_allowed);
    tcase_add_loop_test(
        all, an_error_inside_cancel_stays_on_its_thread_when_perturbed, 0, 16);
    tcase_add_test(all, an_error_inside_cancel_inside_a_callback_is_TH_08);
    tcase_add_test(all, a_callback_inside_a_callback_is_TH_08);
    tcase_add_test(all, a_callback_inside_extract_data_is_AT_23);
    tcase_add_test(all, two_tasks_at_once_are_AH_15);
    tcase_add_test(all, the_end_beside_a_task_is_AH_15);
    tcase_add_test(all, a_request_beside_the_end_beside_a_task_adds_no_report);
    tcase_add_test(all, a_request_beside_two_tasks_adds_no_report);
    tcase_add_test(all, a_task_beside_on_schema_is_TH_01);
    tcase_add_test(all, a_release_beside_a_task_is_TH_09_and_waits_for_it);
    tcase_add_test(all, a_call_before_on_schema_is_AH_04_and_made_in_it);
    tcase_add_test(all, a_bad_request_before_on_schema_stays_one);
    tcase_add_test(all, a_request_in_on_error_is_AH_19);
    tcase_add_test(all, a_cancel_in_release_is_AH_19_and_goes_no_further);
    tcase_add_test(all, a_request_after_release_is_AP_24_and_goes_no_further);
    tcase_add_test(
        all, a_cancel_on_another_thread_that_ends_within_release_is_no_breach);
    tcase_add_test(all, a_request_after_the_end_is_no_breach);
    tcase_add_test(all, a_request_still_under_way_at_the_end_is_TH_10);
    tcase_add_loop_test(all, an_odd_code_is_AH_09_and_passed_on, 0, 2);
}

int main(void)
{
    TCase *all = tcase_create("all");

    add_0(all);
    return suite_main("handler context", play_setup, play_teardown, all, NULL);
}
