/* SPDX-License-Identifier: Apache-2.0 */
/* The memory for devices outlives runtimes and therefore comes from the C
 * library, which here runs out of memory at each allocation in turn. Every
 * failure is reported, and no memory leaks except as the header states. */
#include <check.h>
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "support/check_suite.h"
#include "support/every_type.h"
#include "support/faulty_libc.h"
#include "support/fixture.h"
#include "support/plain_tree.h"
#include "support/soft_copies.h"
#include "support/soft_memory.h"
#include "support/watch_fixture.h"

/* ---- sweeps ------------------------------------------------------------- */

START_TEST(a_copy_without_memory_says_so_and_frees_all)
{
    static struct event_wait_fixture s;
    const struct every_variant variant = {6, 1, true};
    struct ArrowDeviceArray array, there, back;
    struct ArrowSchema schema;
    struct uva_error error;
    bool again = true;
    int code, waited = 0;
    long n;

    for (n = 1; again; n++) {
        event_wait_open(&s, SOFT_COPIES);
        every_type(_i == 0 ? 27 : 30, &variant, &schema, &array);
        faulty_libc_fail(n);
        code = event_wait_copy(&s, ARROW_DEVICE_EXT_DEV, &schema, &array,
                               &there, &error);
        if (code == 0)
            code = event_wait_copy(&s, ARROW_DEVICE_CPU, &schema, &there, &back,
                                   &error);
        again = faulty_libc_stop();
        ck_assert(code == 0 || (again && code == ENOMEM));
        ck_assert(code == 0 || error.message[0] != '\0');
        waited += again && code == 0;
        if (code == 0)
            uva_array_release(&back);
        schema.release(&schema);
        event_wait_close(&s);
        every_type_forget();
        ck_assert_int_eq(plain_live(), 0);
        ck_assert_int_eq(soft_memory_live(), 0);
    }
    ck_assert_int_gt(n, 40);
    ck_assert_int_eq(waited, 2); /* twice the upload succeeds without it */
}
END_TEST

static struct fixture f;

static void tear_down(void)
{
    fixture_close(&f);
}

START_TEST(a_stage_without_memory_for_a_watch_ends_its_stream)
{
    const struct uva_transfer there = {.device_type = ARROW_DEVICE_EXT_DEV};
    bool again = true;
    int code;
    long n;

    for (n = 1; again; n++) {
        fixture_open_device(&f, _i == 0 ? SOFT_CALLS : SOFT_COPIES, 3);
        if (_i == 0)
            f.stream = fixture_device_stream(&f);
        else
            f.stream = fixture_tasks(&f);
        for (int k = 0; k < 3; k++)
            soft_event_end(&f.device, k, 0);
        ck_assert_int_eq(_i == 0 ? uva_stream_ready(f.stream, NULL)
                                 : uva_stream_transfer(f.stream, &there),
                         0);
        if (_i == 1)
            ck_assert_int_eq(uva_stream_ready(f.stream, NULL), 0);
        faulty_libc_only(sizeof(struct uva_watch));
        faulty_libc_fail(n);
        code = fixture_run(&f);
        again = faulty_libc_stop();
        faulty_libc_only(0);
        ck_assert(code == (again ? ENOMEM : 0) || (_i == 1 && code == 0));
        ck_assert_int_le(f.got.batches, code != 0 ? n - 1 : 3);
        fixture_close(&f);
    }
    /* one watch for each batch; or two, and one more meanwhile */
    ck_assert_int_eq(n, _i == 0 ? 5 : 11);
}
END_TEST

/* Checks that the call fails for lack of memory at each allocation in turn. */
static void sweep(int (*call)(struct uva_error *error), int least)
{
    struct uva_error error = {0};
    bool again = true;
    int code, n;

    for (n = 0; again; n++) {
        fixture_open_device(&f, SOFT_COPIES, 3);
        faulty_libc_fail(n + 1);
        code = call(&error);
        again = faulty_libc_stop();
        ck_assert_int_eq(code, again ? ENOMEM : 0);
        ck_assert(code == 0 || error.message[0] != '\0');
        fixture_close(&f);
    }
    ck_assert_int_gt(n, least);
}

static int call_attach(struct uva_error *error)
{
    const struct uva_vulkan_device native = {&f, &f};

    return uva_device_attach(f.loop.runtime, ARROW_DEVICE_VULKAN, 1, &native,
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
    soft_device_batch(&f.device, &f.fake, 0, &array);
    faulty_libc_resume(before);
    array.sync_event = NULL;
    code = uva_array_record(f.loop.runtime, &array, NULL, error);
    uva_array_release(&array);
    return code;
}

START_TEST(a_recording_without_memory_says_so)
{
    sweep(call_record, 2);
}
END_TEST

/* The first use of devices in this runtime. */
START_TEST(devices_without_memory_are_made_later)
{
    struct loop_fixture loop;
    struct soft_device *device = calloc(1, sizeof(*device));
    struct uva_error error;
    struct ArrowDeviceArray array;
    int code = ENOMEM;
    long n = 1;

    soft_device_init(device, SOFT_POLLS);
    loop_open(&loop);
    memset(&array, 0, sizeof(array));
    for (; code != 0; n++) {
        faulty_libc_fail(n);
        code = uva_device_register(loop.runtime, ARROW_DEVICE_EXT_DEV,
                                   soft_device_ops(device), device, &error);
        ck_assert_int_eq(code, faulty_libc_stop() ? ENOMEM : 0);
        ck_assert(code == 0 ||
                  strcmp(error.message, "no memory for devices") == 0);
    }
    ck_assert_int_eq(n, 4); /* two allocations, then no more */
    loop_close(&loop);
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

/* The first call that needs devices makes them. */
START_TEST(devices_without_memory_are_told_of_whoever_asks_first)
{
    const struct uva_transfer there = {.device_type = ARROW_DEVICE_EXT_DEV};
    struct ArrowDeviceArray array = {.device_type = ARROW_DEVICE_EXT_DEV};
    struct ArrowDeviceArrayStream source;
    struct fake_source fake;
    struct uva_stream *stream;
    struct uva_error error;
    struct loop_fixture loop;

    loop_open(&loop);
    fake_source_init(&fake, 1);
    array.array.release = lose_release;
    faulty_libc_only(_i < 2 ? 0 : sizeof(struct uva__devices));
    fake_source_device(&fake, ARROW_DEVICE_EXT_DEV, &source);
    stream = uva_stream_from_device_stream(loop.runtime, &source, NULL);
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
            uva_array_wait(loop.runtime, &array, 0, not_called, NULL), ENOMEM);
        break;
    case 3:
        ck_assert_int_eq(uva_array_record(loop.runtime, &array, NULL, &error),
                         ENOMEM);
        ck_assert_ptr_null(array.sync_event);
        break;
    case 4:
        uva_array_release_after(loop.runtime, &array, NULL);
        ck_assert(array.array.release == NULL);
        break;
    }
    ck_assert(faulty_libc_stop());
    faulty_libc_only(0);
    uva_stream_release(stream);
    loop_close(&loop);
    ck_assert_int_eq(atomic_load(&fake.live), 0);
    fake_source_fini(&fake);
}
END_TEST

START_TEST(a_table_without_memory_says_so)
{
    static const ArrowDeviceType types[] = {
        ARROW_DEVICE_CUDA, ARROW_DEVICE_ROCM, ARROW_DEVICE_ONEAPI};
    struct uva_device_info info;
    struct loop_fixture loop;

    loop_open(&loop);
    faulty_libc_only_thread("uva-devices");
    faulty_libc_fail(1);
    ck_assert_int_eq(uva_device_get_info(loop.runtime, types[_i], &info), 0);
    ck_assert(faulty_libc_stop());
    faulty_libc_only_thread(NULL);
    ck_assert(!info.available);
    ck_assert_msg(strncmp(info.library, "no memory for ", 14) == 0, "%s",
                  info.library);
    loop_close(&loop);
}
END_TEST

START_TEST(a_system_without_threads_is_told_of_and_can_be_asked_again)
{
    const struct uva_transfer there = {.device_type = ARROW_DEVICE_EXT_DEV};
    struct uva_device_info info;
    struct ArrowDeviceArray array;
    struct uva_error error;

    fixture_open_device(&f, SOFT_COPIES, 3);
    f.stream = fixture_device_stream(&f);
    soft_device_batch(&f.device, &f.fake, 0, &array);
    faulty_libc_threads(false);
    ck_assert_int_eq(
        uva_array_wait(f.loop.runtime, &array, 0, not_called, NULL), ENOMEM);
    array.sync_event = NULL;
    ck_assert_int_eq(uva_array_record(f.loop.runtime, &array, NULL, &error),
                     ENOMEM);
    ck_assert_str_eq(error.message, "the system gives no thread");
    ck_assert_int_eq(
        uva_device_get_info(f.loop.runtime, ARROW_DEVICE_EXT_DEV, &info), 0);
    ck_assert(!info.available);
    ck_assert_str_eq(info.library, "the system gives no thread");
    ck_assert_int_eq(_i == 0 ? uva_stream_ready(f.stream, NULL)
                             : uva_stream_transfer(f.stream, &there),
                     ENOMEM);
    uva_array_release(&array);
    array.device_type = ARROW_DEVICE_EXT_DEV;
    array.array.release = lose_release;
    uva_array_release_after(f.loop.runtime, &array, NULL);
    ck_assert(array.array.release == NULL);
    faulty_libc_threads(true);
    ck_assert_int_eq(
        uva_device_get_info(f.loop.runtime, ARROW_DEVICE_EXT_DEV, &info), 0);
    ck_assert(info.available);
}
END_TEST

START_TEST(an_array_nobody_can_wait_for_is_never_released)
{
    struct ArrowDeviceArray array = {.device_type = ARROW_DEVICE_EXT_DEV};

    fixture_open_device(&f, SOFT_COPIES, 1);
    array.array.release = lose_release;
    faulty_libc_fail(1);
    uva_array_release_after(f.loop.runtime, &array, NULL);
    ck_assert(faulty_libc_stop());
    ck_assert(array.array.release == NULL);
    array.array.release = lose_release;
    uva_array_release_after(NULL, &array, NULL); /* not without a runtime */
    ck_assert(array.array.release == NULL);
}
END_TEST

/* Later failures: the array is kept until the workers end. */
START_TEST(an_array_whose_event_has_no_memory_is_kept)
{
    struct ArrowDeviceArray array;

    for (long n = 2; n <= 4; n++) {
        fixture_open_device(&f, SOFT_COPIES, 1);
        soft_device_batch(&f.device, &f.fake, 0, &array);
        faulty_libc_fail(n);
        uva_array_release_after(f.loop.runtime, &array, NULL);
        ck_assert(array.array.release == NULL);
        while (!faulty_libc_has_failed())
            sched_yield();
        ck_assert(faulty_libc_stop());
        ck_assert_int_gt(atomic_load(&f.fake.live), 0);
        fixture_close(&f);
    }
}
END_TEST

static void add_tests(TCase *tc)
{
    suite_add(tc, an_attach_without_memory_says_so,
              a_recording_without_memory_says_so,
              devices_without_memory_are_made_later,
              an_array_nobody_can_wait_for_is_never_released,
              an_array_whose_event_has_no_memory_is_kept, NULL);
    suite_add_loops(tc, 0, 2, a_copy_without_memory_says_so_and_frees_all,
                    a_stage_without_memory_for_a_watch_ends_its_stream,
                    a_system_without_threads_is_told_of_and_can_be_asked_again,
                    NULL);
    tcase_add_loop_test(tc, a_table_without_memory_says_so, 0, 3);
    tcase_add_loop_test(
        tc, devices_without_memory_are_told_of_whoever_asks_first, 0, 5);
}

int main(void)
{
    TCase *tc = tcase_create("memory");

    tcase_set_timeout(tc, 60);
    add_tests(tc);
    return suite_main("device memory", NULL, tear_down, tc, NULL);
}
