/* SPDX-License-Identifier: Apache-2.0 */
/* When a check frees itself, without `keep`: at the last of release, calls and
 * tasks. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "support/check_scene.h"

static struct check_scene play;

/* A scene whose check frees itself; the schema goes at once, for it counts. */
static int drop_schema(struct check_scene *s, struct ArrowSchema *schema)
{
    uva_schema_release(schema);
    s->peer = s->inner.producer;
    s->peer->request(s->peer, 9);
    return 0;
}

static void setup(void)
{
    check_scene_init(&play, NULL);
    (void)uva_check_withdraw(play.out);
    atomic_store(&play.freed, 0);
    play.how.keep = false;
    ck_assert_int_eq(uva_check_handler(&play.inner, &play.how, &play.out, NULL),
                     0);
    play.out->producer = &play.producer;
    play.on_schema = drop_schema;
}

static void teardown(void)
{
    ck_assert_int_eq(atomic_load(&play.freed), 1);
    ck_assert_int_eq(check_scene_live(), 0);
    play.out = NULL;
    check_scene_fini(&play);
}

static void story(const char *expected)
{
    ck_assert_str_eq(check_scene_story(&play), expected);
}

static int keep_task(struct check_scene *s, struct ArrowAsyncTask *task)
{
    s->kept[0] = *task;
    return 0;
}

static void play_stream(void)
{
    ck_assert_int_eq(check_scene_schema(&play), 0);
    ck_assert_int_eq(check_scene_task(&play), 0);
    ck_assert_int_eq(check_scene_end(&play), 0);
    check_scene_release(&play);
}

START_TEST(release_frees_it)
{
    play_stream();
    ck_assert_int_eq(atomic_load(&play.released), 1);
    story("");
}
END_TEST

START_TEST(a_task_that_is_held_keeps_it)
{
    struct ArrowDeviceArray array;

    play.on_task = keep_task;
    play_stream();
    ck_assert_int_eq(atomic_load(&play.freed), 0);
    ck_assert_int_eq(uva_task_extract(&play.kept[0], &array), 0);
    ck_assert_int_eq(atomic_load(&play.freed), 0);
    uva_array_release(&array);
    story("");
}
END_TEST

START_TEST(late_calls_are_told_while_a_task_is_held)
{
    play.on_task = keep_task;
    play_stream();
    play.peer->request(play.peer, 1);
    play.peer->cancel(play.peer);
    check_scene_release(&play);
    ck_assert_int_eq(atomic_load(&play.released), 1);
    uva_task_discard(&play.kept[0]);
    story("AP-24 consumer error\nAH-21 producer fatal");
}
END_TEST

static void refuse_array(struct ArrowArray *array)
{
    array->release = NULL;
    abort();
}

START_TEST(a_failed_extraction_leaves_a_released_array)
{
    struct ArrowDeviceArray array = {.array.release = refuse_array};

    play.on_task = keep_task;
    play.tasks[0].code = EIO;
    play_stream();
    ck_assert_int_eq(play.kept[0].extract_data(&play.kept[0], &array), EIO);
    ck_assert(array.array.release == NULL);
    story("");
}
END_TEST

static void request_releases(struct check_scene *s, int64_t n)
{
    (void)n;
    s->on_request = NULL;
    check_scene_release(s);
}

START_TEST(a_release_inside_request_frees_it_when_that_returns)
{
    ck_assert_int_eq(check_scene_schema(&play), 0);
    play.on_request = request_releases;
    play.peer->cancel(play.peer);
    play.peer->request(play.peer, 1);
    story("");
}
END_TEST

static int release_in_schema(struct check_scene *s, struct ArrowSchema *schema)
{
    check_scene_release(s);
    ck_assert_int_eq(atomic_load(&s->released), 0);
    uva_schema_release(schema);
    return 0;
}

START_TEST(a_release_inside_a_callback_frees_it_when_that_returns)
{
    play.on_schema = release_in_schema;
    ck_assert_int_eq(check_scene_schema(&play), 0);
    ck_assert_int_eq(atomic_load(&play.released), 1);
    story("TH-08 producer error\nAH-12 producer error");
}
END_TEST

START_TEST(what_is_withdrawn_is_as_it_was)
{
    ck_assert_ptr_eq(uva_check_withdraw(play.out), &play.inner);
    ck_assert_ptr_null(play.inner.producer);
    ck_assert_int_eq(atomic_load(&play.released), 0);
    story("");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("handler_life");
    TCase *all = tcase_create("all");
    SRunner *runner;
    int failed;

    tcase_add_checked_fixture(all, setup, teardown);
    tcase_add_test(all, release_frees_it);
    tcase_add_test(all, a_task_that_is_held_keeps_it);
    tcase_add_test(all, late_calls_are_told_while_a_task_is_held);
    tcase_add_test(all, a_failed_extraction_leaves_a_released_array);
    tcase_add_test(all, a_release_inside_request_frees_it_when_that_returns);
    tcase_add_test(all, a_release_inside_a_callback_frees_it_when_that_returns);
    tcase_add_test(all, what_is_withdrawn_is_as_it_was);
    suite_add_tcase(suite, all);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
