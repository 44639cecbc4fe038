/* SPDX-License-Identifier: Apache-2.0 */
/* What devices need lives longer than runtimes and so comes from the C library:
 * here that has no more, at each place in turn. Whatever fails says so; nothing
 * is lost but what the header says is. */
#include <check.h>
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "support/device_scene.h"
#include "support/every_type.h"
#include "support/faulty_libc.h"
#include "support/plain_tree.h"
#include "support/soft_copies.h"
#include "support/soft_memory.h"
#include "support/watch_scene.h"

/* ---- sweeps ------------------------------------------------------------- */

START_TEST(a_copy_without_memory_says_so_and_frees_all)
{
    static struct event_wait_scene s;
    const struct every_variant variant = {6, 1, true};
    struct ArrowDeviceArray array, there, back;
    struct ArrowSchema schema;
    struct uva_error error;
    bool again = true;
    int code, waited = 0;
    long n;

    for (n = 1; again; n++) {
        event_wait_scene_open(&s, SOFT_COPIES);
        every_type(_i == 0 ? 27 : 30, &variant, &schema, &array);
        faulty_libc_fail(n);
        code = event_wait_scene_copy(&s, ARROW_DEVICE_EXT_DEV, &schema, &array,
                                     &there, &error);
        if (code == 0)
            code = event_wait_scene_copy(&s, ARROW_DEVICE_CPU, &schema, &there,
                                         &back, &error);
        again = faulty_libc_stop();
        ck_assert(code == 0 || (again && code == ENOMEM));
        ck_assert(code == 0 || error.message[0] != '\0');
        waited += again && code == 0;
        if (code == 0)
            uva_array_release(&back);
        schema.release(&schema);
        event_wait_scene_close(&s);
        every_type_forget();
        ck_assert_int_eq(plain_live(), 0);
        ck_assert_int_eq(soft_memory_live(), 0);
    }
    ck_assert_int_gt(n, 40);
    ck_assert_int_eq(waited, 2); /* where nobody else could, for the upload */
}
END_TEST

static struct device_scene d; /* large */

START_TEST(a_stage_without_memory_for_a_watch_ends_its_stream)
{
    const struct uva_transfer there = {.device_type = ARROW_DEVICE_EXT_DEV};
    bool again = true;
    int code;
    long n;

    for (n = 1; again; n++) {
        device_scene_open(&d, _i == 0 ? SOFT_CALLS : SOFT_COPIES, 3);
        if (_i == 0)
            device_scene_source(&d);
        else
            device_scene_host_source(&d);
        for (int k = 0; k < 3; k++)
            soft_event_end(&d.device, k, 0);
        ck_assert_int_eq(_i == 0 ? uva_stream_ready(d.stream, NULL)
                                 : uva_stream_transfer(d.stream, &there),
                         0);
        if (_i == 1)
            ck_assert_int_eq(uva_stream_ready(d.stream, NULL), 0);
        faulty_libc_only(sizeof(struct uva_watch));
        faulty_libc_fail(n);
        code = device_scene_run(&d);
        again = faulty_libc_stop();
        faulty_libc_only(0);
        ck_assert(code == (again ? ENOMEM : 0) || (_i == 1 && code == 0));
        ck_assert_int_le(d.batches, code != 0 ? n - 1 : 3);
        device_scene_close(&d);
    }
    /* one for each batch; or two, and one for what goes on meanwhile */
    ck_assert_int_eq(n, _i == 0 ? 5 : 11);
}
END_TEST

/* Whether the call fails for want of memory, at each place in turn. */
static void sweep(int (*call)(struct uva_error *error), int least)
{
    struct uva_error error = {0};
    bool again = true;
    int code, n;

    for (n = 0; again; n++) {
        device_scene_open(&d, SOFT_COPIES, 3);
        faulty_libc_fail(n + 1);
        code = call(&error);
        again = faulty_libc_stop();
        ck_assert_int_eq(code, again ? ENOMEM : 0);
        ck_assert(code == 0 || error.message[0] != '\0');
        device_scene_close(&d);
    }
    ck_assert_int_gt(n, least);
}

static int call_attach(struct uva_error *error)
{
    const struct uva_vulkan_device native = {&d, &d};

    return uva_device_attach(d.rig.runtime, ARROW_DEVICE_VULKAN, 1, &native,
                             error);
}

START_TEST(an_attach_without_memory_says_so)
{
    sweep(call_attach, 1);
}
END_TEST

static int call_record(struct uva_error *error)
{
    struct ArrowDeviceArray array;
    const long before = faulty_libc_left();
    int code;

    faulty_libc_resume(0);
    soft_device_batch(&d.device, &d.fake, 0, &array);
    faulty_libc_resume(before);
    array.sync_event = NULL;
    code = uva_array_record(d.rig.runtime, &array, NULL, error);
    uva_array_release(&array);
    return code;
}

START_TEST(a_recording_without_memory_says_so)
{
    sweep(call_record, 2);
}
END_TEST

/* The runtime's first word about devices. */
START_TEST(devices_without_memory_are_made_later)
{
    struct loop_rig rig;
    struct soft_device *device = calloc(1, sizeof(*device));
    struct uva_error error;
    struct ArrowDeviceArray array;
    int code = ENOMEM;
    long n = 1;

    soft_device_init(device, SOFT_POLLS);
    loop_rig_open(&rig);
    memset(&array, 0, sizeof(array));
    for (; code != 0; n++) {
        faulty_libc_fail(n);
        code = uva_device_register(rig.runtime, ARROW_DEVICE_EXT_DEV,
                                   soft_device_ops(device), device, &error);
        ck_assert_int_eq(code, faulty_libc_stop() ? ENOMEM : 0);
        ck_assert(code == 0 ||
                  strcmp(error.message, "no memory for devices") == 0);
    }
    ck_assert_int_eq(n, 4); /* two things, then none */
    loop_rig_close(&rig);
    soft_device_fini(device);
    free(device);
}
END_TEST

static void lose_release(struct ArrowArray *array)
{
    ck_abort_msg("a device may read it still");
    array->release = NULL;
}

static void not_called(void *ctx, struct ArrowDeviceArray *array,
                       const struct uva_error *error)
{
    (void)ctx, (void)array, (void)error;
    ck_abort_msg("nothing was begun");
}

/* What comes first makes them. */
START_TEST(devices_without_memory_are_told_of_whoever_asks_first)
{
    const struct uva_transfer there = {.device_type = ARROW_DEVICE_EXT_DEV};
    struct ArrowDeviceArray array = {.device_type = ARROW_DEVICE_EXT_DEV};
    struct ArrowDeviceArrayStream source;
    struct fake_source fake;
    struct uva_stream *stream;
    struct uva_error error;
    struct loop_rig rig;

    loop_rig_open(&rig);
    fake_source_init(&fake, 1);
    array.array.release = lose_release;
    faulty_libc_only(_i < 2 ? 0 : sizeof(struct uva__devices));
    fake_source_device(&fake, ARROW_DEVICE_EXT_DEV, &source);
    stream = uva_stream_from_blocking(rig.runtime, &source, NULL);
    faulty_libc_fail(1);
    switch (_i) {
    case 0:
        ck_assert_int_eq(uva_stream_ready(stream, NULL), ENOMEM);
        break;
    case 1:
        ck_assert_int_eq(uva_stream_transfer(stream, &there), ENOMEM);
        break;
    case 2:
        ck_assert_int_eq(
            uva_array_wait(rig.runtime, &array, 0, not_called, NULL), ENOMEM);
        break;
    case 3:
        ck_assert_int_eq(uva_array_record(rig.runtime, &array, NULL, &error),
                         ENOMEM);
        ck_assert_ptr_null(array.sync_event);
        break;
    case 4:
        uva_array_release_after(rig.runtime, &array, NULL);
        ck_assert(array.array.release == NULL);
        break;
    }
    ck_assert(faulty_libc_stop());
    faulty_libc_only(0);
    uva_stream_release(stream);
    loop_rig_close(&rig);
    ck_assert_int_eq(atomic_load(&fake.live), 0);
    fake_source_fini(&fake);
}
END_TEST

START_TEST(a_table_without_memory_says_so)
{
    static const ArrowDeviceType types[] = {
        ARROW_DEVICE_CUDA, ARROW_DEVICE_ROCM, ARROW_DEVICE_ONEAPI};
    struct uva_device_info info;
    struct loop_rig rig;

    loop_rig_open(&rig);
    faulty_libc_only_thread("uva-devices");
    faulty_libc_fail(1);
    ck_assert_int_eq(uva_device_get_info(rig.runtime, types[_i], &info), 0);
    ck_assert(faulty_libc_stop());
    faulty_libc_only_thread(NULL);
    ck_assert(!info.available);
    ck_assert_msg(strncmp(info.library, "no memory for ", 14) == 0, "%s",
                  info.library);
    loop_rig_close(&rig);
}
END_TEST

START_TEST(a_system_without_threads_is_told_of_and_can_be_asked_again)
{
    const struct uva_transfer there = {.device_type = ARROW_DEVICE_EXT_DEV};
    struct uva_device_info info;
    struct ArrowDeviceArray array;
    struct uva_error error;

    device_scene_open(&d, SOFT_COPIES, 3);
    device_scene_source(&d);
    soft_device_batch(&d.device, &d.fake, 0, &array);
    faulty_libc_threads(false);
    ck_assert_int_eq(uva_array_wait(d.rig.runtime, &array, 0, not_called, NULL),
                     EAGAIN);
    array.sync_event = NULL;
    ck_assert_int_eq(uva_array_record(d.rig.runtime, &array, NULL, &error),
                     EAGAIN);
    ck_assert_str_eq(error.message, "the system gives no thread");
    ck_assert_int_eq(
        uva_device_get_info(d.rig.runtime, ARROW_DEVICE_EXT_DEV, &info), 0);
    ck_assert(!info.available);
    ck_assert_str_eq(info.library, "the system gives no thread");
    ck_assert_int_eq(_i == 0 ? uva_stream_ready(d.stream, NULL)
                             : uva_stream_transfer(d.stream, &there),
                     EAGAIN);
    uva_array_release(&array);
    array.device_type = ARROW_DEVICE_EXT_DEV;
    array.array.release = lose_release;
    uva_array_release_after(d.rig.runtime, &array, NULL);
    ck_assert(array.array.release == NULL);
    faulty_libc_threads(true);
    ck_assert_int_eq(
        uva_device_get_info(d.rig.runtime, ARROW_DEVICE_EXT_DEV, &info), 0);
    ck_assert(info.available);
    device_scene_close(&d);
}
END_TEST

START_TEST(an_array_nobody_can_wait_for_is_never_released)
{
    struct ArrowDeviceArray array = {.device_type = ARROW_DEVICE_EXT_DEV};

    device_scene_open(&d, SOFT_COPIES, 1);
    array.array.release = lose_release;
    faulty_libc_fail(1);
    uva_array_release_after(d.rig.runtime, &array, NULL);
    ck_assert(faulty_libc_stop());
    ck_assert(array.array.release == NULL);
    array.array.release = lose_release;
    uva_array_release_after(NULL, &array, NULL); /* nor without a runtime */
    ck_assert(array.array.release == NULL);
    device_scene_close(&d);
}
END_TEST

/* Later failures: kept until the workers end. */
START_TEST(an_array_whose_event_has_no_memory_is_kept)
{
    struct ArrowDeviceArray array;

    for (long n = 2; n <= 4; n++) {
        device_scene_open(&d, SOFT_COPIES, 1);
        soft_device_batch(&d.device, &d.fake, 0, &array);
        faulty_libc_fail(n);
        uva_array_release_after(d.rig.runtime, &array, NULL);
        ck_assert(array.array.release == NULL);
        while (!faulty_libc_has_failed())
            sched_yield();
        ck_assert(faulty_libc_stop());
        ck_assert_int_gt(atomic_load(&d.fake.live), 0);
        device_scene_close(&d);
    }
}
END_TEST

static void add_tests(TCase *tc)
{
    tcase_add_loop_test(tc, a_copy_without_memory_says_so_and_frees_all, 0, 2);
    tcase_add_loop_test(tc, a_stage_without_memory_for_a_watch_ends_its_stream,
                        0, 2);
    tcase_add_test(tc, an_attach_without_memory_says_so);
    tcase_add_loop_test(tc, a_table_without_memory_says_so, 0, 3);
    tcase_add_test(tc, a_recording_without_memory_says_so);
    tcase_add_test(tc, devices_without_memory_are_made_later);
    tcase_add_loop_test(
        tc, devices_without_memory_are_told_of_whoever_asks_first, 0, 5);
    tcase_add_loop_test(
        tc, a_system_without_threads_is_told_of_and_can_be_asked_again, 0, 2);
    tcase_add_test(tc, an_array_nobody_can_wait_for_is_never_released);
    tcase_add_test(tc, an_array_whose_event_has_no_memory_is_kept);
}

int main(void)
{
    Suite *suite = suite_create("device memory");
    TCase *tc = tcase_create("memory");
    SRunner *runner;
    int code;

    tcase_set_timeout(tc, 60);
    add_tests(tc);
    suite_add_tcase(suite, tc);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    code = srunner_ntests_failed(runner);
    srunner_free(runner);
    return code != 0;
}
