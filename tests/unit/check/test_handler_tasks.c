/* SPDX-License-Identifier: Apache-2.0 */
/* Faults of tasks, of their extraction, and of their arrays. */
#include <check.h>
#include <string.h>

#include "support/breach_list.h"
#include "support/check_play.h"
#include "support/check_suite.h"

/* ---- tasks -------------------------------------------------------------- */

static int keep_task(struct check_fixture *s, struct ArrowAsyncTask *task)
{
    s->kept[0] = *task;
    s->pointer = task;
    return 0;
}

static void play_keep(void)
{
    play_begin();
    play.on_task = keep_task;
    play_tasks(1);
}

static int extract_kept(struct ArrowDeviceArray *array)
{
    return play.kept[0].extract_data(&play.kept[0], array);
}

START_TEST(a_task_without_a_function_is_AT_01_and_never_called)
{
    struct ArrowAsyncTask task = {NULL, NULL};
    struct ArrowDeviceArray array;

    play_begin();
    play.on_task = keep_task;
    ck_assert_int_eq(play.out->on_next_task(play.out, &task, NULL), 0);
    ck_assert_int_eq(uva_task_extract(&play.kept[0], &array), EPROTO);
    ck_assert_int_eq(extract_kept(NULL), EPROTO);
    play_end();
    play_expect_at_last("AT-01 producer fatal");
}
END_TEST

START_TEST(a_second_extraction_is_AT_03_and_touches_nothing)
{
    struct ArrowDeviceArray array, before;
    struct ArrowAsyncTask copy;

    play_keep();
    copy = play.kept[0];
    ck_assert_int_eq(extract_kept(&array), 0);
    before = array;
    ck_assert_int_eq(copy.extract_data(&copy, &array), EINVAL);
    ck_assert_mem_eq(&array, &before, sizeof(array));
    ck_assert_int_eq(atomic_load(&play.extracted), 1);
    uva_array_release(&array);
    play_end();
    play_expect_at_last("AT-03 consumer fatal");
}
END_TEST

START_TEST(a_stale_copy_is_known_when_its_slot_is_used_again)
{
    struct ArrowDeviceArray array;

    play_keep();
    ck_assert_int_eq(extract_kept(&array), 0);
    uva_array_release(&array);
    play.on_task = NULL;
    for (int i = 0; i < 10; i++) {
        atomic_store(&play.offered, 1);
        play_request(60);
        play_tasks(60);
    }
    ck_assert_int_eq(extract_kept(&array), EINVAL);
    play_end();
    play_expect_at_last("AT-03 consumer fatal");
}
END_TEST

static int keep_all(struct check_fixture *s, struct ArrowAsyncTask *task)
{
    s->kept[atomic_load(&s->offered)] = *task;
    return 0;
}

START_TEST(a_stale_copy_does_not_reach_the_task_that_has_its_slot)
{
    play_keep();
    ck_assert_int_eq(extract_kept(NULL), 0);
    play.on_task = keep_all;
    for (int round = 0; round < 4; round++) {
        atomic_store(&play.offered, 1);
        play_request(60);
        play_tasks(60);
        ck_assert_int_eq(extract_kept(NULL), EINVAL);
        for (int i = 2; i < 62; i++)
            uva_task_discard(&play.kept[i]);
    }
    ck_assert_int_eq(atomic_load(&play.discarded), 241);
    play_end();
    play_expect_at_last("AT-03 consumer fatal");
}
END_TEST

START_TEST(a_discard_that_fails_is_AT_04)
{
    play.tasks[0].code = EINVAL;
    play_keep();
    ck_assert_int_eq(extract_kept(NULL), EINVAL);
    play_end();
    play_expect_at_last("AT-04 producer error");
}
END_TEST

static void mark_released(struct check_fixture *s,
                          struct ArrowDeviceArray *array)
{
    (void)s;
    array->array.release = NULL;
}

static void array_of_before(struct ArrowArray *array)
{
    array->release = NULL;
}

START_TEST(success_without_an_array_is_AT_05)
{
    struct ArrowDeviceArray array = {.array.release = array_of_before};

    play.tasks[0].empty = true;
    play.on_extract = _i == 0 ? NULL : mark_released;
    play_keep();
    ck_assert_int_eq(extract_kept(&array), 0);
    ck_assert(array.array.release == NULL);
    play_end();
    play_expect_at_last("AT-05 producer error");
}
END_TEST

static int stale_releases;

static void stale_release(struct ArrowArray *array)
{
    array->release = NULL;
    stale_releases++;
}

/* As a producer does that has freed an array and left it in `out`. */
static void leave_stale(struct check_fixture *s, struct ArrowDeviceArray *out)
{
    (void)s;
    out->array.release = stale_release;
}

START_TEST(an_array_of_a_failed_extraction_is_AT_07_and_not_released)
{
    struct ArrowDeviceArray array;

    stale_releases = 0;
    play.tasks[0].code = EIO;
    play.on_extract = leave_stale;
    play_keep();
    ck_assert_int_eq(uva_task_extract(&play.kept[0], &array), EIO);
    ck_assert_int_eq(stale_releases, 0); /* AT-22 */
    check_fixture_error(&play, EIO, NULL);
    play_release();
    play_expect_at_last("AT-07 producer error");
}
END_TEST

START_TEST(out_released_after_a_failure_is_AT_22)
{
    struct ArrowDeviceArray array = {.array.release = array_of_before};

    play.tasks[0].code = EIO;
    play_keep();
    ck_assert_int_eq(extract_kept(&array), EIO);
    uva_array_release(&array);
    uva_array_release(&array);
    check_fixture_error(&play, EIO, NULL);
    play_release();
    play_expect_at_last("AT-22 consumer fatal");
}
END_TEST

/* As where both parties check. */
START_TEST(of_two_checks_neither_takes_the_others_trap_for_an_array)
{
    struct ArrowAsyncDeviceStreamHandler *const inner = play.out;
    struct ArrowDeviceArray array = {.array.release = array_of_before};
    struct breach_list reports = {0};
    struct uva_check options = breach_list_check(&reports);

    options.keep = true;
    ck_assert_int_eq(uva_check_handler(inner, &options, &play.out, NULL), 0);
    play.out->producer = &play.producer;
    play.tasks[0].code = EIO;
    play_keep();
    ck_assert_int_eq(extract_kept(&array), EIO);
    check_fixture_error(&play, EIO, NULL);
    play_release();
    uva_schema_release(&play.schema);
    ck_assert_int_eq(uva_check_conclude(play.out), 0);
    breach_list_is_empty(&reports);
    play.out = inner;
    play_expect_at_last("");
}
END_TEST

START_TEST(out_marked_before_a_failure_stays_as_it_was)
{
    struct ArrowDeviceArray array = {.device_id = 7}, before = array;

    play.tasks[0].code = EIO;
    play_keep();
    ck_assert_int_eq(extract_kept(&array), EIO);
    ck_assert_mem_eq(&array, &before, sizeof(array));
    check_fixture_error(&play, EIO, NULL);
    play_release();
    play_expect_at_last("");
}
END_TEST

START_TEST(a_task_used_through_its_pointer_after_the_call_is_AT_13)
{
    struct ArrowDeviceArray array;

    play_keep();
    ck_assert_int_eq(play.pointer->extract_data(play.pointer, &array), EINVAL);
    ck_assert_int_eq(play.pointer->extract_data(NULL, &array), EINVAL);
    ck_assert_int_eq(extract_kept(NULL), 0);
    play_end();
    play_expect_at_last("AT-13 consumer fatal");
}
END_TEST

START_TEST(private_data_of_a_task_altered_is_AT_14)
{
    struct ArrowAsyncTask altered;

    play_keep();
    altered = play.kept[0];
    altered.private_data = (char *)altered.private_data + (_i == 0 ? 1 : 8);
    ck_assert_int_eq(altered.extract_data(&altered, NULL), EINVAL);
    ck_assert_int_eq(extract_kept(NULL), 0);
    play_end();
    play_expect_at_last("AT-14 consumer fatal");
}
END_TEST

START_TEST(a_struct_that_the_producer_uses_again_is_AT_20_when_perturbed)
{
    struct ArrowAsyncTask task = {check_fixture_extract, &play.tasks[0]};

    play_again(&(struct uva_check){.perturb_seed = 5});
    play.tasks[0].fixture = &play;
    play_begin();
    ck_assert_int_eq(play.out->on_next_task(play.out, &task, NULL), 0);
    ck_assert_int_eq(task.extract_data(&task, NULL), EINVAL);
    task.private_data = NULL;
    ck_assert_int_eq(task.extract_data(&task, NULL), EINVAL);
    play_end();
    play_expect_at_last("AT-20 producer error");
}
END_TEST

static int refuse(struct check_fixture *s, struct ArrowAsyncTask *task)
{
    (void)s;
    uva_task_discard(task);
    return EIO;
}

START_TEST(the_struct_of_a_refused_task_is_left_alone)
{
    struct ArrowAsyncTask task = {check_fixture_extract, &play.tasks[0]};
    const struct ArrowAsyncTask before = task;

    play_again(&(struct uva_check){.perturb_seed = 5});
    play.tasks[0].fixture = &play;
    play_begin();
    play.on_task = refuse;
    ck_assert_int_eq(play.out->on_next_task(play.out, &task, NULL), EIO);
    ck_assert_mem_eq(&task, &before, sizeof(task));
    play_release();
    play_expect_at_last("");
}
END_TEST

START_TEST(many_tasks_never_extracted_are_told_once)
{
    play_begin();
    play.on_task = keep_task;
    play_tasks(20);
    play_end();
    play_expect_at_last("AT-02 consumer error");
    ck_assert(strstr(play.message, "task 0 ") != NULL);
}
END_TEST

START_TEST(a_task_that_names_nothing_is_refused)
{
    struct ArrowAsyncTask altered;

    play_keep();
    altered = play.kept[0];
    ck_assert_int_eq(altered.extract_data(NULL, NULL), EINVAL);
    altered.private_data = NULL;
    ck_assert_int_eq(altered.extract_data(&altered, NULL), EINVAL);
    altered.private_data = &altered;
    ck_assert_int_eq(altered.extract_data(&altered, NULL), EINVAL);
    ck_assert_int_eq(extract_kept(NULL), 0);
    play_end();
    play_expect_at_last("");
}
END_TEST

/* ---- arrays ------------------------------------------------------------- */

static void of_another_device(struct check_fixture *s,
                              struct ArrowDeviceArray *array)
{
    (void)s;
    array->device_type = ARROW_DEVICE_CUDA_HOST;
}

static void of_another_shape(struct check_fixture *s,
                             struct ArrowDeviceArray *array)
{
    (void)s;
    array->array.n_buffers = 0;
}

static void with_dirt(struct check_fixture *s, struct ArrowDeviceArray *array)
{
    (void)s;
    array->reserved[1] = 1;
}

static void of_device_zero(struct check_fixture *s,
                           struct ArrowDeviceArray *array)
{
    (void)s;
    array->device_id = 0;
}

static const struct {
    void (*spoil)(struct check_fixture *s, struct ArrowDeviceArray *array);
    const char *breaches;
} ARRAYS[] = {{of_another_device, "AT-16 producer warning"},
              {of_another_shape, "AT-17 producer warning"},
              {with_dirt, "DA-08 producer error"},
              {of_device_zero, "DA-05 producer note"}};

START_TEST(what_is_wrong_with_arrays_is_told_once)
{
    play.on_extract = ARRAYS[_i].spoil;
    play_begin();
    play_tasks(3);
    play_end();
    play_expect_at_last(ARRAYS[_i].breaches);
}
END_TEST

START_TEST(an_array_released_twice_is_LC_02)
{
    struct ArrowDeviceArray array, copy;

    play_keep();
    ck_assert_int_eq(extract_kept(&array), 0);
    copy = array;
    uva_array_release(&array);
    uva_array_release(&copy);
    play_end();
    play_expect_at_last("LC-02 consumer fatal");
}
END_TEST

START_TEST(an_array_may_be_released_when_the_check_is_gone)
{
    struct ArrowDeviceArray array;

    play_keep();
    ck_assert_int_eq(extract_kept(&array), 0);
    play_end();
    play_expect_at_last("LC-02 consumer error");
    ck_assert_int_eq(atomic_load(&play.freed), 0);
    uva_array_release(&array);
}
END_TEST

/* ---- all cases ---------------------------------------------------------- */

static void add_all(TCase *all)
{
    tcase_add_test(all, a_task_without_a_function_is_AT_01_and_never_called);
    tcase_add_test(all, a_second_extraction_is_AT_03_and_touches_nothing);
    tcase_add_test(all, a_stale_copy_is_known_when_its_slot_is_used_again);
    tcase_add_test(all, a_stale_copy_does_not_reach_the_task_that_has_its_slot);
    tcase_add_test(all, a_discard_that_fails_is_AT_04);
    tcase_add_loop_test(all, success_without_an_array_is_AT_05, 0, 2);
    tcase_add_test(all,
                   an_array_of_a_failed_extraction_is_AT_07_and_not_released);
    tcase_add_test(all, out_released_after_a_failure_is_AT_22);
    tcase_add_test(all,
                   of_two_checks_neither_takes_the_others_trap_for_an_array);
    tcase_add_test(all, out_marked_before_a_failure_stays_as_it_was);
    tcase_add_test(all,
                   a_task_used_through_its_pointer_after_the_call_is_AT_13);
    tcase_add_loop_test(all, private_data_of_a_task_altered_is_AT_14, 0, 2);
    tcase_add_test(
        all, a_struct_that_the_producer_uses_again_is_AT_20_when_perturbed);
    tcase_add_test(all, the_struct_of_a_refused_task_is_left_alone);
    tcase_add_test(all, many_tasks_never_extracted_are_told_once);
    tcase_add_test(all, a_task_that_names_nothing_is_refused);
    tcase_add_loop_test(all, what_is_wrong_with_arrays_is_told_once, 0, 4);
    tcase_add_test(all, an_array_released_twice_is_LC_02);
    tcase_add_test(all, an_array_may_be_released_when_the_check_is_gone);
}

int main(void)
{
    TCase *all = tcase_create("all");

    add_all(all);
    return suite_main("handler_tasks", play_setup, play_teardown, all, NULL);
}
