/* SPDX-License-Identifier: Apache-2.0 */
/* How a pushed stream ends: by the writer, by the consumer, with the runtime,
 * or before it was made; and what either side is told of it. */
#include <check.h>
#include <errno.h>
#include <string.h>

#include "stream/stream_impl.h"
#include "support/plain_tree.h"
#include "support/push_scene.h"
#include "uvarrow/arrow.h"
#include "uvarrow/stages.h"

static struct push_scene scene;

static void tear_down(void)
{
    push_scene_close(&scene);
}

static void push_from(int first, int last)
{
    for (int i = first; i <= last; i++)
        ck_assert_int_eq(push_scene_push(&scene, i, 0), 0);
}

static const char *story(void)
{
    return scene.consumer.story;
}

static void await_done(void)
{
    recording_await_done(&scene.consumer, &scene.rig);
}

/* ---- the end, by the writer --------------------------------------------- */

START_TEST(an_error_comes_after_what_was_pushed)
{
    struct uva_error error = {0};
    char block[64];
    size_t size = sizeof(block);
    const struct uva_pair pair = {{"why\0not", 7}, {"\0\1\xff", 3}};

    ck_assert_int_eq(uva_metadata_encode(&pair, 1, block, &size), 0);
    push_scene_open(&scene, 0, 0);
    push_from(1, 2);
    (void)uva_error_set(&error, 4711, "the wire is cut");
    uva_pusher_close(scene.pusher, &error, block);
    memset(&error, 0xee, sizeof(error)); /* copied */
    memset(block, 0xee, sizeof(block));
    scene.pusher = NULL;
    push_scene_start(&scene);
    await_done();
    ck_assert_str_eq(story(), "schema 1 2 failed");
    ck_assert_int_eq(scene.consumer.outcome.error.code, 4711);
    ck_assert_str_eq(scene.consumer.outcome.error.message, "the wire is cut");
    ck_assert_uint_eq(scene.consumer.metadata_size, size);
    ck_assert_int_eq(uva_metadata_encode(&pair, 1, block, &size), 0);
    ck_assert_mem_eq(scene.consumer.metadata, block, size);
}
END_TEST

static void close_with(int code)
{
    struct uva_error error = {0};

    (void)uva_error_set(&error, code, "%s", "");
    uva_pusher_close(scene.pusher, &error, NULL);
    scene.pusher = NULL;
    push_scene_start(&scene);
    await_done();
}

START_TEST(an_error_may_come_before_the_schema)
{
    push_scene_open_bare(&scene, 0, 0);
    close_with(ECONNREFUSED);
    ck_assert_str_eq(story(), "failed");
    ck_assert_int_eq(scene.consumer.outcome.error.code, ECONNREFUSED);
}
END_TEST

START_TEST(a_code_of_libuv_counts_as_its_twin)
{
    push_scene_open(&scene, 0, 0);
    close_with(UV_ECONNRESET);
    ck_assert_int_eq(scene.consumer.outcome.error.code, ECONNRESET);
}
END_TEST

START_TEST(an_error_without_a_code_is_one_still)
{
    push_scene_open(&scene, 0, 0);
    close_with(0);
    ck_assert_int_eq(scene.consumer.outcome.error.code, EIO);
}
END_TEST

START_TEST(a_close_without_a_schema_is_an_error)
{
    push_scene_open_bare(&scene, 0, 0);
    push_scene_start(&scene);
    push_scene_end(&scene);
    await_done();
    ck_assert_str_eq(story(), "failed");
    ck_assert_int_eq(scene.consumer.outcome.error.code, EPROTO);
    ck_assert(strstr(scene.consumer.outcome.error.message, "schema"));
}
END_TEST

static void end(struct push_scene *s)
{
    push_scene_end(s);
}

START_TEST(closed_in_on_room_it_hears_no_more)
{
    push_scene_open(&scene, 1, 0);
    scene.on_told = end;
    push_from(1, 1);
    ck_assert_int_eq(push_scene_push(&scene, 2, 0), EAGAIN);
    push_scene_start(&scene);
    await_done();
    loop_rig_settle(&scene.rig);
    ck_assert_str_eq(story(), "schema 1 room complete");
}
END_TEST

START_TEST(closed_before_the_room_came_it_hears_nothing)
{
    push_scene_open(&scene, 1, 0);
    push_from(1, 1);
    ck_assert_int_eq(push_scene_push(&scene, 2, 0), EAGAIN);
    push_scene_end(&scene);
    push_scene_start(&scene);
    await_done();
    loop_rig_settle(&scene.rig);
    ck_assert_str_eq(story(), "schema 1 complete");
}
END_TEST

/* ---- the end, by the other side ----------------------------------------- */

/* Pushes are refused, on_closed has been called once, nothing is kept. */
static void ck_gone(const char *expected)
{
    loop_rig_settle(&scene.rig);
    ck_assert_str_eq(story(), expected);
    ck_assert_int_eq(push_scene_push(&scene, 1, 0), EPIPE);
    ck_assert_int_eq(push_scene_describe(&scene), EPIPE);
    loop_rig_settle(&scene.rig);
    ck_assert_str_eq(story(), expected);
    ck_assert_int_eq(scene.freed, 0);
    push_scene_end(&scene);
    loop_rig_settle(&scene.rig);
    ck_assert_str_eq(story(), expected);
}

START_TEST(a_cancel_releases_the_queue_and_is_told)
{
    push_scene_open(&scene, 4, 0);
    scene.consumer.appetite = 0;
    push_scene_start(&scene);
    push_from(1, 4);
    ck_assert_int_eq(push_scene_push(&scene, 5, 0), EAGAIN);
    loop_rig_settle(&scene.rig);
    uva_stream_cancel(scene.stream, 0, NULL);
    await_done();
    ck_gone("schema cancelled gone");
    ck_assert_int_eq(plain_live(), 1); /* the stream's schema */
}
END_TEST

START_TEST(a_cancel_is_told_while_others_hold_the_producer)
{
    struct uva__producer *producer;

    push_scene_open(&scene, 0, 0);
    producer = scene.stream->tail;
    uva__producer_acquire(producer);
    push_scene_start(&scene);
    push_from(1, 1);
    loop_rig_settle(&scene.rig);
    uva_stream_cancel(scene.stream, 0, NULL);
    ck_gone("schema 1 cancelled gone");
    uva__producer_release(producer);
}
END_TEST

START_TEST(a_cancel_before_the_schema_is_told)
{
    push_scene_open_bare(&scene, 0, 0);
    push_scene_start(&scene);
    loop_rig_settle(&scene.rig);
    uva_stream_cancel(scene.stream, 0, NULL);
    ck_gone("cancelled gone");
}
END_TEST

START_TEST(a_drop_is_told)
{
    push_scene_open(&scene, 0, 0);
    push_scene_start(&scene);
    push_from(1, 1);
    loop_rig_settle(&scene.rig);
    uva_stream_drop(scene.stream);
    scene.stream = NULL;
    ck_gone("schema 1 gone");
}
END_TEST

START_TEST(a_rejection_is_told)
{
    push_scene_open(&scene, 0, 0);
    scene.consumer.verdict = EIO;
    push_scene_start(&scene);
    push_from(1, 3);
    ck_gone("schema rejected gone");
}
END_TEST

START_TEST(a_limit_that_is_reached_is_told)
{
    push_scene_open(&scene, 0, 0);
    ck_assert_int_eq(uva_stream_limit(scene.stream, 2), 0);
    push_scene_start(&scene);
    push_from(1, 3);
    ck_gone("schema 1 2 complete gone");
}
END_TEST

START_TEST(a_stream_released_before_its_start_is_told)
{
    push_scene_open(&scene, 0, 0);
    push_from(1, 3);
    push_scene_release(&scene);
    ck_assert_int_eq(push_scene_push(&scene, 1, 0), EPIPE);
    ck_assert_int_eq(plain_live(), 1); /* the schema, until the close */
    ck_gone("gone");
    ck_assert_int_eq(scene.freed, 1);
}
END_TEST

START_TEST(closed_in_on_gone_it_is_freed_after)
{
    push_scene_open(&scene, 0, 0);
    scene.on_told = end;
    push_scene_release(&scene);
    ck_assert_int_eq(scene.freed, 0);
    loop_rig_settle(&scene.rig);
    ck_assert_str_eq(story(), "gone");
    ck_assert_int_eq(scene.freed, 1);
}
END_TEST

START_TEST(after_a_close_nothing_is_told)
{
    push_scene_open(&scene, 0, 0);
    scene.consumer.appetite = 0;
    push_scene_start(&scene);
    push_from(1, 3);
    push_scene_end(&scene);
    loop_rig_settle(&scene.rig);
    uva_stream_cancel(scene.stream, 0, NULL);
    await_done();
    loop_rig_settle(&scene.rig);
    ck_assert_str_eq(story(), "schema cancelled");
}
END_TEST

/* ---- the runtime closes ------------------------------------------------- */

START_TEST(a_close_of_the_runtime_cancels_and_is_told)
{
    push_scene_open(&scene, 0, 0);
    push_scene_start(&scene);
    push_from(1, 1);
    loop_rig_settle(&scene.rig);
    loop_rig_close_runtime(&scene.rig, 0);
    ck_assert_str_eq(story(), "schema 1 cancelled gone");
    ck_assert_int_eq(push_scene_push(&scene, 1, 0), EPIPE);
    ck_assert_int_eq(push_scene_describe(&scene), EPIPE);
}
END_TEST

START_TEST(a_runtime_that_closes_in_time_lets_the_stream_end)
{
    push_scene_open(&scene, 0, 0);
    push_scene_start(&scene);
    ck_assert_int_eq(
        uva_runtime_close(scene.rig.runtime, UVA_FOREVER, NULL, NULL), 0);
    (void)uv_run(&scene.rig.loop, UV_RUN_NOWAIT);
    push_from(1, 2);
    push_scene_end(&scene);
    await_done();
    scene.rig.runtime = NULL;
    ck_assert_str_eq(story(), "schema 1 2 complete");
}
END_TEST

static void close_never_started(int64_t grace_ms)
{
    push_scene_open(&scene, 0, 0);
    push_from(1, 1);
    loop_rig_close_runtime(&scene.rig, grace_ms);
    ck_assert_str_eq(story(), "");
    ck_assert_int_eq(push_scene_push(&scene, 1, 0), EPIPE);
    ck_assert_int_eq(push_scene_describe(&scene), EPIPE);
}

START_TEST(never_started_it_is_over_with_the_runtime)
{
    close_never_started(0);
    push_scene_end(&scene);
    ck_assert_int_eq(scene.freed, 0);
    push_scene_release(&scene);
    ck_assert_int_eq(scene.freed, 1);
}
END_TEST

START_TEST(never_started_it_is_over_with_a_runtime_that_had_time)
{
    close_never_started(UVA_FOREVER);
    push_scene_release(&scene);
    ck_assert_int_eq(push_scene_push(&scene, 1, 0), EPIPE);
    ck_assert_int_eq(scene.freed, 0);
    push_scene_end(&scene);
    ck_assert_int_eq(scene.freed, 1);
    ck_assert_str_eq(story(), "");
}
END_TEST

START_TEST(a_pusher_may_be_made_while_the_runtime_closes)
{
    struct uva_push_source how = push_scene_options(&scene);
    struct uva_stream *stream;
    struct uva_pusher *pusher;
    struct uva_error error = {0};
    struct uva_consumer table = recording_table(&scene.consumer);

    push_scene_open(&scene, 0, 0);
    ck_assert_int_eq(uva_runtime_close(scene.rig.runtime, 0, NULL, NULL), 0);
    stream = uva_stream_from_pusher(scene.rig.runtime, &how, &pusher);
    ck_assert_int_eq(uva_stream_for_each(stream, &table, &error), ESHUTDOWN);
    uva_stream_release(stream);
    uva_pusher_close(pusher, NULL, NULL);
    (void)uv_run(&scene.rig.loop, UV_RUN_NOWAIT);
    scene.rig.runtime = NULL;
    ck_assert_int_eq(scene.freed, 1);
    scene.freed = 0; /* the other one is yet to come */
}
END_TEST

/* ---- making one --------------------------------------------------------- */

static void ck_not_made(struct uva_runtime *runtime,
                        const struct uva_push_source *how, const char *text)
{
    struct uva_pusher *pusher = (struct uva_pusher *)&scene;
    struct uva_error error = {0};
    struct uva_stream *stream;

    stream = uva_stream_from_pusher(runtime, how, &pusher);
    ck_assert_ptr_null(pusher);
    ck_assert_int_eq(uva_stream_status(stream, &error), EINVAL);
    ck_assert_msg(strstr(error.message, text) != NULL, "%s", error.message);
    ck_assert_int_eq(scene.freed, 1);
    scene.freed = 0;
    uva_stream_release(stream);
    loop_rig_settle(&scene.rig);
    ck_assert_str_eq(story(), "");
}

START_TEST(options_that_make_no_sense_are_refused)
{
    struct uva_push_source how = push_scene_options(&scene);
    struct uva_stream *stream;

    push_scene_open(&scene, 0, 0);
    ck_not_made(NULL, &how, "without a runtime");
    how.window.bytes = -1;
    ck_not_made(scene.rig.runtime, &how, "window");
    how.window.bytes = 0;
    how.reserved[2] = &how;
    ck_not_made(scene.rig.runtime, &how, "reserved");
    how.reserved[2] = NULL;
    stream = uva_stream_from_pusher(scene.rig.runtime, &how, NULL);
    ck_assert_int_eq(uva_stream_status(stream, NULL), EINVAL);
    ck_assert_int_eq(scene.freed, 1);
    scene.freed = 0;
    uva_stream_release(stream);
}
END_TEST

START_TEST(without_options_the_defaults_hold)
{
    struct uva_pusher *pusher;
    struct uva_stream *stream;

    push_scene_open(&scene, 0, 0);
    stream = uva_stream_from_pusher(scene.rig.runtime, NULL, &pusher);
    ck_assert_int_eq(uva_stream_status(stream, NULL), 0);
    uva_pusher_close(pusher, NULL, NULL);
    uva_stream_release(stream);
}
END_TEST

/* ---- memory ------------------------------------------------------------- */

/* A whole life, which ends with 4711. Returns the first error reported. */
static int live(const char *block)
{
    struct uva_push_source how = push_scene_options(&scene);
    struct uva_error error = {0};
    struct uva_consumer table = recording_table(&scene.consumer);
    int code;

    scene.stream =
        uva_stream_from_pusher(scene.rig.runtime, &how, &scene.pusher);
    (void)uva_error_set(&error, 4711, "cut");
    if (scene.pusher == NULL)
        code = uva_stream_status(scene.stream, NULL);
    else
        code = push_scene_describe(&scene);
    for (int i = 1; code == 0 && i <= 3; i++)
        code = push_scene_push_with(&scene, i, block, 0);
    uva_pusher_close(scene.pusher, &error, block);
    scene.pusher = NULL;
    if (code == 0)
        code = uva_stream_for_each(scene.stream, &table, NULL);
    if (code == 0)
        await_done();
    if (code == 0)
        code = scene.consumer.outcome.error.code;
    push_scene_release(&scene);
    return code;
}

START_TEST(every_allocation_may_fail)
{
    char block[256], value[100] = {0};
    size_t size = sizeof(block);
    const struct uva_pair pair = {{"key", 3}, {value, sizeof(value)}};
    bool failed = true;
    int enomem = 0;

    ck_assert_int_eq(uva_metadata_encode(&pair, 1, block, &size), 0);
    push_scene_open(&scene, 0, 0);
    push_scene_end(&scene);
    push_scene_release(&scene);
    loop_rig_settle(&scene.rig);
    for (long n = 1; failed; n++) {
        scene.freed = 0;
        memset(&scene.consumer, 0, sizeof(scene.consumer));
        scene.consumer.appetite = -1;
        loop_rig_fail(&scene.rig, n);
        int code = live(block);
        failed = faulty_allocator_has_failed(&scene.rig.memory);
        loop_rig_fail(&scene.rig, 0);
        loop_rig_settle(&scene.rig);
        ck_assert_int_eq(scene.freed, 1);
        ck_assert_int_eq(plain_live(), 0);
        ck_assert_ptr_null(strstr(story(), "gone")); /* it was closed */
        enomem += code == ENOMEM;
        ck_assert(code == 4711 || (failed && code == ENOMEM));
    }
    ck_assert_int_gt(enomem, 5);
    ck_assert_str_eq(story(), "schema 1 2 3 failed");
}
END_TEST

/* ------------------------------------------------------------------------- */

static TCase *part(Suite *suite, const char *name)
{
    TCase *part = tcase_create(name);

    tcase_add_checked_fixture(part, NULL, tear_down);
    suite_add_tcase(suite, part);
    return part;
}

static void add_ends(Suite *suite)
{
    TCase *writer = part(suite, "the end, by the writer");
    TCase *other = part(suite, "the end, by the other side");
    TCase *runtime = part(suite, "the runtime closes");
    TCase *making = part(suite, "making one");

    tcase_add_test(writer, an_error_comes_after_what_was_pushed);
    tcase_add_test(writer, an_error_may_come_before_the_schema);
    tcase_add_test(writer, a_code_of_libuv_counts_as_its_twin);
    tcase_add_test(writer, an_error_without_a_code_is_one_still);
    tcase_add_test(writer, a_close_without_a_schema_is_an_error);
    tcase_add_test(writer, closed_in_on_room_it_hears_no_more);
    tcase_add_test(writer, closed_before_the_room_came_it_hears_nothing);
    tcase_add_test(other, a_cancel_releases_the_queue_and_is_told);
    tcase_add_test(other, a_cancel_is_told_while_others_hold_the_producer);
    tcase_add_test(other, a_cancel_before_the_schema_is_told);
    tcase_add_test(other, a_drop_is_told);
    tcase_add_test(other, a_rejection_is_told);
    tcase_add_test(other, a_limit_that_is_reached_is_told);
    tcase_add_test(other, a_stream_released_before_its_start_is_told);
    tcase_add_test(other, closed_in_on_gone_it_is_freed_after);
    tcase_add_test(other, after_a_close_nothing_is_told);
    tcase_add_test(runtime, a_close_of_the_runtime_cancels_and_is_told);
    tcase_add_test(runtime, a_runtime_that_closes_in_time_lets_the_stream_end);
    tcase_add_test(runtime, never_started_it_is_over_with_the_runtime);
    tcase_add_test(runtime,
                   never_started_it_is_over_with_a_runtime_that_had_time);
    tcase_add_test(runtime, a_pusher_may_be_made_while_the_runtime_closes);
    tcase_add_test(making, options_that_make_no_sense_are_refused);
    tcase_add_test(making, without_options_the_defaults_hold);
    tcase_add_test(making, every_allocation_may_fail);
}

int main(void)
{
    Suite *suite = suite_create("from_pusher, ends");
    SRunner *runner;
    int failed;

    add_ends(suite);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
