/* SPDX-License-Identifier: Apache-2.0 */
/* Batches that are copied to a device and back on their way: in order, several
 * at once, whatever fails; and nothing is freed before a copy that uses it has
 * ended. */
#include <check.h>
#include <errno.h>
#include <sched.h>
#include <string.h>

#include "support/device_scene.h"
#include "support/soft_copies.h"
#include "support/soft_memory.h"

static struct device_scene s; /* large */

static const struct uva_transfer there = {.device_type = ARROW_DEVICE_EXT_DEV};

static void chain(void)
{
    device_scene_host_source(&s);
    ck_assert_int_eq(uva_stream_transfer(s.stream, &there), 0);
    ck_assert_int_eq(uva_stream_transfer(s.stream, NULL), 0);
}

START_TEST(batches_go_to_a_device_and_come_back_in_order)
{
    device_scene_open(&s, SOFT_COPIES, 40);
    s.fake.metadata = "\1\0\0\0\1\0\0\0k\1\0\0\0v";
    chain();
    ck_assert_int_eq(device_scene_run(&s), 0);
    ck_assert_int_eq(s.outcome.end, UVA_END_COMPLETE);
    ck_assert_int_eq(s.batches, 40);
    ck_assert(s.in_order);
    ck_assert(s.told);
    ck_assert_int_eq(s.device_type, ARROW_DEVICE_CPU);
    ck_assert_int_eq(s.device.copies, 80);
    ck_assert_int_eq(s.fake.at_home, 0); /* dear items are for workers */
    device_scene_close(&s);
}
END_TEST

START_TEST(batches_may_stay_on_the_device)
{
    device_scene_open(&s, SOFT_COPIES, 5);
    device_scene_host_source(&s);
    ck_assert_int_eq(uva_stream_transfer(s.stream, &there), 0);
    ck_assert_int_eq(uva_stream_ready(s.stream, NULL), 0);
    ck_assert_int_eq(device_scene_run(&s), 0);
    ck_assert_int_eq(s.batches, 5);
    ck_assert(s.in_order);
    ck_assert_int_eq(s.device_type, ARROW_DEVICE_EXT_DEV);
    ck_assert_ptr_null(s.sync_event); /* EV-01 */
    device_scene_close(&s);
}
END_TEST

START_TEST(batches_that_are_there_pass_through)
{
    device_scene_open(&s, SOFT_COPIES, 5);
    s.device.device_type = ARROW_DEVICE_CPU;
    device_scene_source(&s);
    ck_assert_int_eq(uva_stream_transfer(s.stream, NULL), 0);
    ck_assert_int_eq(device_scene_run(&s), 0);
    ck_assert_int_eq(s.batches, 5);
    ck_assert_int_eq(s.device.copies, 0);
    ck_assert_ptr_null(s.sync_event); /* EV-04: it meant nothing */
    device_scene_close(&s);
}
END_TEST

START_TEST(memory_that_the_host_can_read_is_waited_for_and_not_copied)
{
    static const ArrowDeviceType types[] = {ARROW_DEVICE_EXT_DEV,
                                            ARROW_DEVICE_CUDA_HOST};
    struct uva_error error;

    device_scene_open(&s, SOFT_CALLS, 3);
    s.device.device_type = types[_i / 2];
    if (_i / 2 == 1)
        ck_assert_int_eq(uva_device_register(s.rig.runtime, types[1],
                                             soft_device_ops(&s.device),
                                             &s.device, &error),
                         0);
    device_scene_source(&s);
    ck_assert_int_eq(uva_stream_transfer(s.stream, NULL), 0);
    soft_event_end(&s.device, 0, 0);
    soft_event_end(&s.device, 1, 0);
    soft_event_end(&s.device, 2, _i % 2 == 0 ? 0 : EIO);
    ck_assert_int_eq(device_scene_run(&s), _i % 2 == 0 ? 0 : EIO);
    ck_assert_int_eq(s.batches, _i % 2 == 0 ? 3 : 2);
    ck_assert_int_eq(s.device_type, ARROW_DEVICE_CPU);
    ck_assert_ptr_null(s.sync_event);
    device_scene_close(&s);
}
END_TEST

START_TEST(pinned_memory_without_an_event_is_the_hosts_at_once)
{
    struct ArrowDeviceArrayStream source;

    device_scene_open(&s, SOFT_COPIES, 3);
    fake_source_device(&s.fake, ARROW_DEVICE_CUDA_HOST, &source);
    s.stream = uva_stream_from_blocking(s.rig.runtime, &source, NULL);
    ck_assert_int_eq(
        uva_stream_transfer(
            s.stream, &(struct uva_transfer){.device_type = ARROW_DEVICE_CPU}),
        0);
    ck_assert_int_eq(device_scene_run(&s), 0);
    ck_assert_int_eq(s.batches, 3);
    ck_assert_int_eq(s.device_type, ARROW_DEVICE_CPU);
    ck_assert_int_eq(s.device.queries, 0);
    device_scene_close(&s);
}
END_TEST

START_TEST(a_batch_that_does_not_fit_its_schema_ends_the_stream)
{
    device_scene_open(&s, SOFT_COPIES, 3);
    s.fake.wrong_shape = true;
    device_scene_host_source(&s);
    ck_assert_int_eq(uva_stream_transfer(s.stream, &there), 0);
    ck_assert_int_eq(device_scene_run(&s), EINVAL);
    ck_assert_int_eq(s.batches, 0);
    device_scene_close(&s);
}
END_TEST

START_TEST(where_there_is_no_way_the_stream_ends)
{
    const struct uva_transfer nowhere = {.device_type = ARROW_DEVICE_WEBGPU};

    device_scene_open(&s, SOFT_COPIES, 5);
    device_scene_host_source(&s);
    ck_assert_int_eq(uva_stream_transfer(s.stream, &nowhere), 0);
    ck_assert_int_eq(device_scene_run(&s), ENOTSUP);
    ck_assert_ptr_nonnull(strstr(s.text, "there is no way"));
    device_scene_close(&s);
}
END_TEST

START_TEST(what_makes_no_sense_is_refused)
{
    static const struct uva_transfer wrong[] = {
        {.device_type = -1},         {.device_type = 17},
        {.window = {.batches = -1}}, {.window = {.bytes = -1}},
        {.reserved = {NULL, &s}},
    };

    device_scene_open(&s, SOFT_COPIES, 5);
    device_scene_host_source(&s);
    ck_assert_int_eq(uva_stream_transfer(s.stream, &wrong[_i]), EINVAL);
    device_scene_close(&s);
}
END_TEST

START_TEST(a_call_that_fails_ends_the_stream_behind_what_was_before_it)
{
    device_scene_open(&s, SOFT_COPIES, 9);
    if (_i % 2 == 0)
        s.device.copy_fails_at = _i + 1;
    else
        s.device.step_fails_at = _i + 1;
    chain();
    ck_assert_int_eq(device_scene_run(&s), _i < 18 ? EIO : 0);
    ck_assert_int_le(s.batches, 9 - (_i < 18));
    ck_assert(s.in_order);
    device_scene_close(&s);
}
END_TEST

START_TEST(no_more_than_the_window_is_under_way)
{
    const struct uva_window windows[] = {{.batches = 3}, {.bytes = 1}};
    const struct uva_transfer how = {.device_type = ARROW_DEVICE_EXT_DEV,
                                     .window = windows[_i]};
    struct uva_error error;
    long most = 3;

    device_scene_open(&s, SOFT_COPIES, 9);
    if (_i == 0) {
        device_scene_host_source(&s);
    } else { /* at least one is */
        s.device.device_type = ARROW_DEVICE_CPU;
        device_scene_source(&s);
        most = 1;
    }
    atomic_store(&s.device.held, true);
    ck_assert_int_eq(uva_stream_transfer(s.stream, &how), 0);
    ck_assert_int_eq(uva_stream_ready(s.stream, NULL), 0);
    ck_assert_int_eq(device_scene_start(&s, &error), 0);
    while (atomic_load(&s.device.copies) < most)
        loop_rig_settle(&s.rig);
    for (int i = 0; i < 20; i++) /* those that could begin would */
        loop_rig_settle(&s.rig);
    if (_i == 0)
        ck_assert_int_eq(atomic_load(&s.device.copies), most);
    ck_assert_int_eq(s.batches, 0);
    atomic_store(&s.device.held, false);
    ck_assert_int_eq(device_scene_await(&s), 0);
    ck_assert_int_eq(s.batches, 9);
    device_scene_close(&s);
}
END_TEST

START_TEST(what_a_copy_uses_stays_until_it_has_ended_whoever_has_gone)
{
    struct uva_error error;
    long live;

    device_scene_open(&s, SOFT_COPIES, 9);
    atomic_store(&s.device.held, true);
    chain();
    ck_assert_int_eq(device_scene_start(&s, &error), 0);
    while (_i < 2 && atomic_load(&s.device.copies) == 0)
        loop_rig_settle(&s.rig);
    if (_i == 0)
        uva_stream_cancel(s.stream, ECANCELED, "enough");
    uva_stream_release(s.stream);
    s.stream = NULL;
    loop_rig_close_runtime(&s.rig, 0);
    ck_assert(s.done);
    ck_assert_int_eq(s.batches, 0);
    live = atomic_load(&s.fake.live);
    ck_assert(_i == 2 || live > 0);
    ck_assert(_i == 2 || soft_memory_live() > 0);
    atomic_store(&s.device.held, false);
    while (atomic_load(&s.fake.live) > 0 || soft_memory_live() > 0)
        sched_yield();
    device_scene_close(&s);
}
END_TEST

/* Does not fit beside a task. */
static const char *long_metadata(void)
{
    static char block[13 + 2000] = "\1\0\0\0\1\0\0\0k";
    const int32_t size = 2000;

    memcpy(block + 9, &size, sizeof(size));
    memset(block + 13, 'v', 2000);
    return block;
}

START_TEST(a_stage_takes_its_memory_from_the_runtime)
{
    struct uva_task_source tasks;
    struct uva_error error;
    bool failed = true;
    int code;

    for (long n = 1; failed; n++) {
        device_scene_open(&s, SOFT_COPIES, 2);
        s.fake.metadata = long_metadata();
        loop_rig_fail(&s.rig, n);
        tasks = fake_source_tasks(&s.fake);
        s.stream = uva_stream_from_tasks(s.rig.runtime, &tasks);
        if (s.stream != NULL) {
            (void)uva_stream_transfer(s.stream, &there);
            (void)uva_stream_transfer(s.stream, NULL);
            code = device_scene_start(&s, &error);
            ck_assert(code == 0 || code == ENOMEM);
            if (code == 0)
                code = device_scene_await(&s);
            ck_assert(code == 0 || code == ENOMEM);
        }
        failed = faulty_allocator_has_failed(&s.rig.memory);
        loop_rig_fail(&s.rig, 0);
        device_scene_close(&s);
    }
}
END_TEST

static void add_tests(TCase *tc)
{
    tcase_add_test(tc, batches_go_to_a_device_and_come_back_in_order);
    tcase_add_test(tc, batches_may_stay_on_the_device);
    tcase_add_test(tc, batches_that_are_there_pass_through);
    tcase_add_loop_test(
        tc, memory_that_the_host_can_read_is_waited_for_and_not_copied, 0, 4);
    tcase_add_test(tc, pinned_memory_without_an_event_is_the_hosts_at_once);
    tcase_add_test(tc, a_batch_that_does_not_fit_its_schema_ends_the_stream);
    tcase_add_test(tc, where_there_is_no_way_the_stream_ends);
    tcase_add_loop_test(tc, what_makes_no_sense_is_refused, 0, 5);
    tcase_add_loop_test(
        tc, a_call_that_fails_ends_the_stream_behind_what_was_before_it, 0, 20);
    tcase_add_loop_test(tc, no_more_than_the_window_is_under_way, 0, 2);
    tcase_add_loop_test(
        tc, what_a_copy_uses_stays_until_it_has_ended_whoever_has_gone, 0, 3);
    tcase_add_test(tc, a_stage_takes_its_memory_from_the_runtime);
}

int main(void)
{
    Suite *suite = suite_create("transfer");
    TCase *tc = tcase_create("copies");
    SRunner *runner;
    int failed;

    tcase_set_timeout(tc, 60);
    add_tests(tc);
    suite_add_tcase(suite, tc);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
