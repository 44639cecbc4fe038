/* SPDX-License-Identifier: Apache-2.0 */
/* Batches that are copied to a device and back: in order, several at once, with
 * failures at any step; and no memory is freed before a copy that uses it has
 * ended. */
#include <check.h>
#include <errno.h>
#include <sched.h>
#include <string.h>

#include "support/check_suite.h"
#include "support/fixture.h"
#include "support/native.h"
#include "support/soft_copies.h"
#include "support/soft_memory.h"

static struct fixture f;

static void tear_down(void)
{
    fixture_close(&f);
}

static const struct uva_transfer there = {.device_type = ARROW_DEVICE_EXT_DEV};

static void chain(void)
{
    f.stream = fixture_tasks(&f);
    ck_assert_int_eq(uva_stream_transfer(f.stream, &there), 0);
    ck_assert_int_eq(uva_stream_transfer(f.stream, NULL), 0);
}

START_TEST(batches_go_to_a_device_and_come_back_in_order)
{
    fixture_open_device(&f, SOFT_COPIES, 40);
    f.fake.metadata = NATIVE_PAIR;
    chain();
    fixture_completes(&f, 40);
    ck_assert(f.got.in_order);
    ck_assert_int_eq(f.got.tagged, f.got.batches);
    ck_assert_int_eq(f.got.device_type, ARROW_DEVICE_CPU);
    ck_assert_int_eq(f.device.copies, 80);
    ck_assert_int_eq(f.fake.extracted_here, 0); /* extracted on workers */
}
END_TEST

START_TEST(batches_may_stay_on_the_device)
{
    fixture_open_device(&f, SOFT_COPIES, 5);
    f.stream = fixture_tasks(&f);
    ck_assert_int_eq(uva_stream_transfer(f.stream, &there), 0);
    ck_assert_int_eq(uva_stream_ready(f.stream, NULL), 0);
    fixture_completes(&f, 5);
    ck_assert(f.got.in_order);
    ck_assert_int_eq(f.got.device_type, ARROW_DEVICE_EXT_DEV);
    ck_assert_ptr_null(f.got.sync_event); /* EV-01 */
}
END_TEST

START_TEST(batches_that_are_there_pass_through)
{
    fixture_open_device(&f, SOFT_COPIES, 5);
    f.device.device_type = ARROW_DEVICE_CPU;
    f.stream = fixture_device_stream(&f);
    ck_assert_int_eq(uva_stream_transfer(f.stream, NULL), 0);
    fixture_completes(&f, 5);
    ck_assert_int_eq(f.device.copies, 0);
    ck_assert_ptr_null(f.got.sync_event); /* EV-04: it had no meaning */
}
END_TEST

START_TEST(memory_that_the_host_can_read_is_waited_for_and_not_copied)
{
    static const ArrowDeviceType types[] = {ARROW_DEVICE_EXT_DEV,
                                            ARROW_DEVICE_CUDA_HOST};
    struct uva_error error;

    fixture_open_device(&f, SOFT_CALLS, 3);
    f.device.device_type = types[_i / 2];
    if (_i / 2 == 1)
        ck_assert_int_eq(uva_device_register(f.loop.runtime, types[1],
                                             soft_device_ops(&f.device),
                                             &f.device, &error),
                         0);
    f.stream = fixture_device_stream(&f);
    ck_assert_int_eq(uva_stream_transfer(f.stream, NULL), 0);
    soft_event_end(&f.device, 0, 0);
    soft_event_end(&f.device, 1, 0);
    soft_event_end(&f.device, 2, _i % 2 == 0 ? 0 : EIO);
    ck_assert_int_eq(fixture_run(&f), _i % 2 == 0 ? 0 : EIO);
    ck_assert_int_eq(f.got.batches, _i % 2 == 0 ? 3 : 2);
    ck_assert_int_eq(f.got.device_type, ARROW_DEVICE_CPU);
    ck_assert_ptr_null(f.got.sync_event);
}
END_TEST

START_TEST(pinned_memory_without_an_event_is_the_hosts_at_once)
{
    struct ArrowDeviceArrayStream source;

    fixture_open_device(&f, SOFT_COPIES, 3);
    fake_source_device(&f.fake, ARROW_DEVICE_CUDA_HOST, &source);
    f.stream = uva_stream_from_blocking(f.loop.runtime, &source, NULL);
    ck_assert_int_eq(
        uva_stream_transfer(
            f.stream, &(struct uva_transfer){.device_type = ARROW_DEVICE_CPU}),
        0);
    fixture_completes(&f, 3);
    ck_assert_int_eq(f.got.device_type, ARROW_DEVICE_CPU);
    ck_assert_int_eq(f.device.queries, 0);
}
END_TEST

START_TEST(a_batch_that_does_not_fit_its_schema_ends_the_stream)
{
    fixture_open_device(&f, SOFT_COPIES, 3);
    f.fake.wrong_shape = true;
    f.stream = fixture_tasks(&f);
    ck_assert_int_eq(uva_stream_transfer(f.stream, &there), 0);
    ck_assert_int_eq(fixture_run(&f), EINVAL);
    ck_assert_int_eq(f.got.batches, 0);
}
END_TEST

START_TEST(where_there_is_no_way_the_stream_ends)
{
    const struct uva_transfer nowhere = {.device_type = ARROW_DEVICE_WEBGPU};

    fixture_open_device(&f, SOFT_COPIES, 5);
    f.stream = fixture_tasks(&f);
    ck_assert_int_eq(uva_stream_transfer(f.stream, &nowhere), 0);
    ck_assert_int_eq(fixture_run(&f), ENOTSUP);
    text_contains(f.got.outcome.error.message, "there is no way");
}
END_TEST

START_TEST(what_makes_no_sense_is_refused)
{
    static const struct uva_transfer wrong[] = {
        {.device_type = -1},         {.device_type = 17},
        {.window = {.batches = -1}}, {.window = {.bytes = -1}},
        {.reserved = {NULL, &f}},
    };

    fixture_open_device(&f, SOFT_COPIES, 5);
    f.stream = fixture_tasks(&f);
    ck_assert_int_eq(uva_stream_transfer(f.stream, &wrong[_i]), EINVAL);
}
END_TEST

START_TEST(a_call_that_fails_ends_the_stream_behind_what_was_before_it)
{
    fixture_open_device(&f, SOFT_COPIES, 9);
    if (_i % 2 == 0)
        f.device.copy_fails_at = _i + 1;
    else
        f.device.step_fails_at = _i + 1;
    chain();
    ck_assert_int_eq(fixture_run(&f), _i < 18 ? EIO : 0);
    ck_assert_int_le(f.got.batches, 9 - (_i < 18));
    ck_assert(f.got.in_order);
}
END_TEST

START_TEST(no_more_than_the_window_is_under_way)
{
    const struct uva_window windows[] = {{.batches = 3}, {.bytes = 1}};
    const struct uva_transfer options = {.device_type = ARROW_DEVICE_EXT_DEV,
                                         .window = windows[_i]};
    long most = 3;

    fixture_open_device(&f, SOFT_COPIES, 9);
    if (_i == 0) {
        f.stream = fixture_tasks(&f);
    } else { /* at least one is copied */
        f.device.device_type = ARROW_DEVICE_CPU;
        f.stream = fixture_device_stream(&f);
        most = 1;
    }
    atomic_store(&f.device.held, true);
    ck_assert_int_eq(uva_stream_transfer(f.stream, &options), 0);
    ck_assert_int_eq(uva_stream_ready(f.stream, NULL), 0);
    fixture_start(&f);
    while (atomic_load(&f.device.copies) < most)
        loop_settle(&f.loop);
    for (int i = 0; i < 20; i++) /* time for copies that could begin */
        loop_settle(&f.loop);
    if (_i == 0)
        ck_assert_int_eq(atomic_load(&f.device.copies), most);
    ck_assert_int_eq(f.got.batches, 0);
    atomic_store(&f.device.held, false);
    ck_assert_int_eq(fixture_await(&f), 0);
    ck_assert_int_eq(f.got.batches, 9);
}
END_TEST

START_TEST(what_a_copy_uses_stays_until_it_has_ended_whoever_has_gone)
{
    long live;

    fixture_open_device(&f, SOFT_COPIES, 9);
    atomic_store(&f.device.held, true);
    chain();
    fixture_start(&f);
    while (_i < 2 && atomic_load(&f.device.copies) == 0)
        loop_settle(&f.loop);
    if (_i == 0)
        uva_stream_cancel(f.stream, ECANCELED, "enough");
    fixture_release(&f);
    loop_close_runtime(&f.loop, 0);
    ck_assert(f.got.done);
    ck_assert_int_eq(f.got.batches, 0);
    live = atomic_load(&f.fake.live);
    ck_assert(_i == 2 || live > 0);
    ck_assert(_i == 2 || soft_memory_live() > 0);
    atomic_store(&f.device.held, false);
    while (atomic_load(&f.fake.live) > 0 || soft_memory_live() > 0)
        sched_yield();
}
END_TEST

/* Returns metadata too long to be stored beside a task. */
static const char *long_metadata(void)
{
    static char block[13 + 2000] = NATIVE("\1") NATIVE("\1") "k";
    const int32_t size = 2000;

    memcpy(block + 9, &size, sizeof(size));
    memset(block + 13, 'v', 2000);
    return block;
}

START_TEST(a_stage_takes_its_memory_from_the_runtime)
{
    struct uva_error error;
    bool failed = true;
    int code;

    for (long n = 1; failed; n++) {
        fixture_open_device(&f, SOFT_COPIES, 2);
        f.fake.metadata = long_metadata();
        loop_fail(&f.loop, n);
        f.stream = fixture_tasks(&f);
        if (f.stream != NULL) {
            (void)uva_stream_transfer(f.stream, &there);
            (void)uva_stream_transfer(f.stream, NULL);
            code = fixture_try(&f, &error);
            ck_assert(code == 0 || code == ENOMEM);
            if (code == 0)
                code = fixture_await(&f);
            ck_assert(code == 0 || code == ENOMEM);
        }
        failed = faulty_allocator_has_failed(&f.loop.memory);
        loop_fail(&f.loop, 0);
        fixture_close(&f);
    }
}
END_TEST

static void add_tests(TCase *tc)
{
    suite_add(tc, batches_go_to_a_device_and_come_back_in_order,
              batches_may_stay_on_the_device,
              batches_that_are_there_pass_through,
              pinned_memory_without_an_event_is_the_hosts_at_once,
              a_batch_that_does_not_fit_its_schema_ends_the_stream,
              where_there_is_no_way_the_stream_ends,
              a_stage_takes_its_memory_from_the_runtime, NULL);
    tcase_add_loop_test(
        tc, memory_that_the_host_can_read_is_waited_for_and_not_copied, 0, 4);
    tcase_add_loop_test(tc, what_makes_no_sense_is_refused, 0, 5);
    tcase_add_loop_test(
        tc, a_call_that_fails_ends_the_stream_behind_what_was_before_it, 0, 20);
    tcase_add_loop_test(tc, no_more_than_the_window_is_under_way, 0, 2);
    tcase_add_loop_test(
        tc, what_a_copy_uses_stays_until_it_has_ended_whoever_has_gone, 0, 3);
}

int main(void)
{
    TCase *tc = tcase_create("copies");

    tcase_set_timeout(tc, 60);
    add_tests(tc);
    return suite_main("transfer", NULL, tear_down, tc, NULL);
}
