/* SPDX-License-Identifier: Apache-2.0 */
/* Callbacks that break the rules, one at a time; and pairs that break none. */
#include <check.h>
#include <string.h>

#include "support/check_scene.h"

static struct check_scene scene;

static void setup(void)
{
    check_scene_init(&scene, NULL);
}

static void teardown(void)
{
    check_scene_fini(&scene);
    ck_assert_int_eq(check_scene_live(), 0);
    ck_assert_int_eq(atomic_load(&scene.freed), 1);
}

/* Asserts that these were reported, and nothing else so far. */
static void told(const char *story)
{
    ck_assert_str_eq(check_scene_story(&scene), story);
}

static void play_tasks(int count)
{
    for (int i = 0; i < count; i++)
        ck_assert_int_eq(check_scene_task(&scene), 0);
}

/* ---- nothing to tell ---------------------------------------------------- */

START_TEST(a_whole_stream_brings_no_report)
{
    ck_assert_int_eq(check_scene_schema(&scene), 0);
    play_tasks(60);
    ck_assert_int_eq(check_scene_end(&scene), 0);
    check_scene_release(&scene);
    ck_assert_int_eq(atomic_load(&scene.extracted), 60);
    ck_assert_int_eq(atomic_load(&scene.released), 1);
    uva_schema_release(&scene.schema);
    ck_assert_int_eq(check_scene_conclude(&scene), 0);
    told("");
}
END_TEST

START_TEST(an_error_at_the_beginning_brings_no_report)
{
    check_scene_error(&scene, EIO, "no disk");
    check_scene_release(&scene);
    ck_assert_int_eq(check_scene_conclude(&scene), 0);
    told("");
}
END_TEST

/* ---- order -------------------------------------------------------------- */

START_TEST(a_task_before_the_schema_is_AH_05)
{
    (void)check_scene_task(&scene);
    told("AH-05 producer error");
    (void)check_scene_schema(&scene);
    (void)check_scene_end(&scene);
    check_scene_release(&scene);
}
END_TEST

START_TEST(a_second_release_is_AH_21)
{
    (void)check_scene_schema(&scene);
    (void)check_scene_end(&scene);
    check_scene_release(&scene);
    check_scene_release(&scene);
    told("AH-21 producer fatal");
    ck_assert_int_eq(atomic_load(&scene.released), 1);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("handler_check");
    TCase *tests = tcase_create("all");
    SRunner *runner;
    int failed;

    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_test(tests, a_whole_stream_brings_no_report);
    tcase_add_test(tests, an_error_at_the_beginning_brings_no_report);
    tcase_add_test(tests, a_task_before_the_schema_is_AH_05);
    tcase_add_test(tests, a_second_release_is_AH_21);
    suite_add_tcase(suite, tests);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
