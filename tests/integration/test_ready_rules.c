/* SPDX-License-Identifier: Apache-2.0 */
/* What waiting for events promises besides: who waits, which events nobody can
 * wait for, what comes along with a batch, how many are waited for at once, and
 * what happens to data that the host cannot read where nobody has asked for
 * it. Two runtimes share what there is. */
#include <check.h>
#include <errno.h>
#include <string.h>

#include "support/device_scene.h"
#include "support/soft_copies.h"

static struct device_scene s, t; /* large */

static const char metadata[] = "\1\0\0\0\1\0\0\0k\1\0\0\0v";

/* ---- who waits ---------------------------------------------------------- */

START_TEST(nobody_waits_if_the_consumer_says_so)
{
    const struct uva_ready how = {.wait = UVA_WAIT_NONE};

    device_scene_open(&s, SOFT_POLLS, 5);
    device_scene_source(&s);
    ck_assert_int_eq(uva_stream_ready(s.stream, &how), 0);
    ck_assert_int_eq(device_scene_run(&s), 0);
    ck_assert_int_eq(s.batches, 5);
    ck_assert_ptr_eq(s.sync_event, &s.device.events[4]);
    ck_assert_int_eq(s.device.queries, 0);
    device_scene_close(&s);
}
END_TEST

START_TEST(a_stream_of_the_consumer_waits_on_the_device)
{
    atomic_long device_stream = 0;
    const struct uva_ready how = {.wait = UVA_WAIT_STREAM,
                                  .device_stream = &device_stream};

    device_scene_open(&s, _i == 0 ? SOFT_POLLS : SOFT_COPIES, 5);
    device_scene_source(&s);
    ck_assert_int_eq(uva_stream_ready(s.stream, &how), 0);
    ck_assert_int_eq(device_scene_run(&s), 0);
    ck_assert_int_eq(s.batches, 5);
    ck_assert_int_eq(atomic_load(&device_stream), 5);
    ck_assert_ptr_eq(s.sync_event, &s.device.events[4]); /* and pending */
    device_scene_close(&s);
}
END_TEST

START_TEST(a_stream_that_cannot_wait_ends_with_a_way_out)
{
    atomic_long device_stream = 0;
    const struct uva_ready how = {.wait = UVA_WAIT_STREAM,
                                  .device_stream = &device_stream};

    device_scene_open(&s, SOFT_CALLS, 5);
    device_scene_source(&s);
    ck_assert_int_eq(uva_stream_ready(s.stream, &how), 0);
    ck_assert_int_eq(device_scene_run(&s), ENOTSUP);
    ck_assert_ptr_nonnull(strstr(s.text, "UVA_WAIT_HOST"));
    device_scene_close(&s);
}
END_TEST

START_TEST(what_makes_no_sense_is_refused)
{
    static const struct uva_ready wrong[] = {
        {.wait = UVA_WAIT_STREAM},  {.device_stream = &s},
        {.wait = (enum uva_wait)3}, {.wait = (enum uva_wait) - 1},
        {.timeout_ms = -1},         {.window = {.batches = -1}},
        {.reserved = {&s}},
    };

    device_scene_open(&s, SOFT_POLLS, 5);
    device_scene_source(&s);
    ck_assert_int_eq(uva_stream_ready(s.stream, &wrong[_i]), EINVAL);
    device_scene_close(&s);
}
END_TEST

/* ---- what comes along --------------------------------------------------- */

START_TEST(metadata_and_ordinals_stay_with_their_batches)
{
    device_scene_open(&s, SOFT_CALLS, 20);
    s.fake.metadata = metadata;
    device_scene_source(&s);
    ck_assert_int_eq(uva_stream_ready(s.stream, NULL), 0);
    for (int k = 19; k >= 0; k--)
        soft_event_end(&s.device, k, 0);
    ck_assert_int_eq(device_scene_run(&s), 0);
    ck_assert_int_eq(s.batches, 20);
    ck_assert(s.in_order);
    ck_assert(s.device_type == ARROW_DEVICE_EXT_DEV);
    device_scene_close(&s);
}
END_TEST

START_TEST(tasks_that_are_dear_are_extracted_by_workers_first)
{
    device_scene_open(&s, SOFT_POLLS, 20);
    s.fake.metadata = metadata;
    device_scene_host_source(&s);
    ck_assert_int_eq(uva_stream_ready(s.stream, NULL), 0);
    ck_assert_int_eq(device_scene_run(&s), 0);
    ck_assert_int_eq(s.batches, 20);
    ck_assert(s.in_order);
    ck_assert(s.told);
    ck_assert_int_eq(s.fake.at_home, 0);
    device_scene_close(&s);
}
END_TEST

START_TEST(a_source_that_fails_is_heard_behind_its_batches)
{
    device_scene_open(&s, SOFT_CALLS, 20);
    if (_i == 0)
        s.fake.fail_at = 7;
    else
        s.fake.extract_at = 7;
    s.fake.fail_code = ENETDOWN;
    if (_i == 0)
        device_scene_source(&s);
    else
        device_scene_host_source(&s);
    ck_assert_int_eq(uva_stream_ready(s.stream, NULL), 0);
    for (int k = 0; k < 20; k++)
        soft_event_end(&s.device, k, 0);
    ck_assert_int_eq(device_scene_run(&s), ENETDOWN);
    ck_assert_int_eq(s.batches, 7);
    device_scene_close(&s);
}
END_TEST

static int map_fails(void *ctx, struct uva_batch *in,
                     struct ArrowDeviceArray *out, struct uva_error *error)
{
    if (--*(int *)ctx == 0)
        return uva_error_set(error, ERANGE, "no more");
    uva_array_move(&in->data, out);
    return 0;
}

START_TEST(a_batch_that_cannot_be_extracted_ends_the_stream_in_its_place)
{
    int spared = 5;
    const struct uva_map how = {
        .batch = map_fails, .ctx = &spared, .on_loop = true};

    device_scene_open(&s, SOFT_CALLS, 9);
    device_scene_source(&s);
    for (int k = 0; k < 9; k++)
        soft_event_end(&s.device, k, 0);
    ck_assert_int_eq(uva_stream_map(s.stream, &how), 0);
    ck_assert_int_eq(uva_stream_ready(s.stream, NULL), 0);
    ck_assert_int_eq(device_scene_run(&s), ERANGE);
    ck_assert_int_eq(s.batches, 4);
    ck_assert_str_eq(s.text, "no more");
    device_scene_close(&s);
}
END_TEST

START_TEST(a_stage_takes_its_memory_from_the_runtime)
{
    struct ArrowDeviceArrayStream source;
    struct uva_error error;
    bool failed = true;
    int code;

    for (long n = 1; failed; n++) {
        device_scene_open(&s, _i == 0 ? SOFT_CALLS : SOFT_POLLS_QUICK, 3);
        s.fake.metadata = metadata;
        for (int k = 0; k < 3; k++)
            soft_event_end(&s.device, k, _i == 1 && k == 2 ? EIO : 0);
        soft_device_stream(&s.device, &s.fake, &source);
        loop_rig_fail(&s.rig, n);
        s.stream = uva_stream_from_blocking(s.rig.runtime, &source, NULL);
        code = uva_stream_ready(s.stream, NULL);
        ck_assert(code == 0 || code == ENOMEM);
        code = device_scene_start(&s, &error);
        ck_assert(code == 0 || code == ENOMEM);
        if (code == 0)
            code = device_scene_await(&s);
        failed = faulty_allocator_has_failed(&s.rig.memory);
        ck_assert(code == ENOMEM || code == _i * EIO);
        loop_rig_fail(&s.rig, 0);
        device_scene_close(&s);
    }
}
END_TEST

START_TEST(no_more_than_the_window_is_waited_for)
{
    const struct uva_ready how = {.window = {.batches = 3}};
    struct uva_error error;

    device_scene_open(&s, SOFT_CALLS, 9);
    device_scene_source(&s);
    ck_assert_int_eq(uva_stream_ready(s.stream, &how), 0);
    ck_assert_int_eq(device_scene_start(&s, &error), 0);
    while (atomic_load(&s.device.arms) < 3)
        loop_rig_settle(&s.rig);
    loop_rig_settle(&s.rig);
    ck_assert_int_eq(atomic_load(&s.device.arms), 3);
    for (int k = 8; k >= 0; k--)
        soft_event_end(&s.device, k, 0);
    ck_assert_int_eq(device_scene_await(&s), 0);
    ck_assert_int_eq(s.batches, 9);
    device_scene_close(&s);
}
END_TEST

/* ---- events that nobody can wait for ------------------------------------ */

START_TEST(an_event_that_nobody_knows_ends_the_stream)
{
    static const ArrowDeviceType types[] = {
        ARROW_DEVICE_METAL, ARROW_DEVICE_VPI, ARROW_DEVICE_WEBGPU,
        ARROW_DEVICE_HEXAGON, 99};
    const struct uva_ready how = {.wait = UVA_WAIT_HOST};

    device_scene_open(&s, SOFT_POLLS, 5);
    s.device.device_type = types[_i];
    device_scene_source(&s);
    ck_assert_int_eq(uva_stream_ready(s.stream, &how), 0);
    ck_assert_int_eq(device_scene_run(&s), ENOTSUP);
    ck_assert_int_eq(s.batches, 0);
    device_scene_close(&s);
}
END_TEST

START_TEST(an_event_on_the_host_is_not_looked_at)
{
    device_scene_open(&s, SOFT_POLLS, 5);
    s.device.device_type = ARROW_DEVICE_CPU; /* EV-04 */
    device_scene_source(&s);
    if (_i == 0)
        ck_assert_int_eq(uva_stream_ready(s.stream, NULL), 0);
    ck_assert_int_eq(device_scene_run(&s), 0);
    ck_assert_int_eq(s.batches, 5);
    ck_assert_int_eq(s.device.queries, 0);
    if (_i == 0)
        ck_assert_ptr_null(s.sync_event); /* nor passed on */
    device_scene_close(&s);
}
END_TEST

/* ---- without asking ----------------------------------------------------- */

START_TEST(data_that_the_host_cannot_read_needs_consent)
{
    device_scene_open(&s, SOFT_POLLS, 5);
    device_scene_source(&s);
    ck_assert_int_eq(device_scene_run(&s), ENOTSUP);
    ck_assert_int_eq(s.batches, 0);
    ck_assert_ptr_nonnull(
        strstr(s.outcome.error.message, "uva_stream_transfer()"));
    ck_assert_ptr_nonnull(
        strstr(s.outcome.error.message, "uva_stream_ready()"));
    device_scene_close(&s);
}
END_TEST

START_TEST(pinned_memory_is_waited_for_by_itself)
{
    static const ArrowDeviceType types[] = {ARROW_DEVICE_CUDA_HOST,
                                            ARROW_DEVICE_CUDA_MANAGED,
                                            ARROW_DEVICE_ROCM_HOST};
    struct uva_error error;

    device_scene_open(&s, SOFT_CALLS, 5);
    s.device.device_type = types[_i % 3];
    ck_assert_int_eq(uva_device_register(s.rig.runtime, types[_i % 3],
                                         soft_device_ops(&s.device), &s.device,
                                         &error),
                     0);
    device_scene_source(&s);
    ck_assert_int_eq(device_scene_start(&s, &error), 0);
    while (atomic_load(&s.device.arms) == 0)
        loop_rig_settle(&s.rig);
    ck_assert_int_eq(s.batches, 0);
    for (int k = 0; k < 5; k++)
        soft_event_end(&s.device, k, _i >= 3 && k == 3 ? EIO : 0);
    ck_assert_int_eq(device_scene_await(&s), _i < 3 ? 0 : EIO);
    ck_assert_int_eq(s.batches, _i < 3 ? 5 : 3);
    ck_assert_ptr_null(s.sync_event);
    device_scene_close(&s);
}
END_TEST

/* ---- one at a time ------------------------------------------------------ */

static int next_code;

static void on_next(void *ctx, struct uva_batch *batch,
                    const struct uva_outcome *outcome)
{
    (void)ctx;
    next_code = batch != NULL ? 0 : outcome->error.code;
    s.done = true;
    if (outcome != NULL)
        ck_assert_ptr_nonnull(
            strstr(outcome->error.message, "uva_stream_transfer()"));
}

START_TEST(who_asks_for_one_batch_needs_to_consent_too)
{
    device_scene_open(&s, SOFT_POLLS_QUICK, 5);
    device_scene_source(&s);
    soft_event_end(&s.device, 0, 0);
    if (_i == 1)
        ck_assert_int_eq(uva_stream_ready(s.stream, NULL), 0);
    next_code = -1;
    ck_assert_int_eq(uva_stream_next(s.stream, on_next, NULL, NULL), 0);
    while (!s.done)
        (void)uv_run(&s.rig.loop, UV_RUN_ONCE);
    ck_assert_int_eq(next_code, _i == 1 ? 0 : ENOTSUP);
    device_scene_close(&s);
}
END_TEST

/* ---- many --------------------------------------------------------------- */

START_TEST(a_burst_of_events_wakes_the_loop_a_few_times)
{
    enum { MANY = 4096 };
    const struct uva_ready how = {.window = {.batches = MANY}};
    struct uva_runtime_stats before, after;
    struct uva_error error;

    device_scene_open(&s, SOFT_CALLS_QUICK, MANY);
    device_scene_source(&s);
    ck_assert_int_eq(uva_stream_ready(s.stream, &how), 0);
    ck_assert_int_eq(device_scene_start(&s, &error), 0);
    while (atomic_load(&s.device.arms) < MANY)
        loop_rig_settle(&s.rig);
    loop_rig_settle(&s.rig);
    uva_runtime_get_stats(s.rig.runtime, &before);
    for (int k = 1; k < MANY; k++)
        soft_event_end(&s.device, k, 0);
    loop_rig_settle(&s.rig); /* none can be passed on yet */
    ck_assert_int_eq(s.batches, 0);
    uva_runtime_get_stats(s.rig.runtime, &after);
    soft_event_end(&s.device, 0, 0);
    ck_assert_int_eq(device_scene_await(&s), 0);
    ck_assert_int_eq(s.batches, MANY);
    ck_assert(s.in_order);
    ck_assert_int_le(after.turns - before.turns, 64);
    device_scene_close(&s);
}
END_TEST

/* The second runtime's stream takes the second half of the events. */
START_TEST(two_runtimes_share_one_service)
{
    struct ArrowDeviceArrayStream source;
    struct uva_workers *workers;
    struct uva_error error;

    ck_assert_int_eq(uva_workers_new(NULL, &workers, &error), 0);
    device_scene_open_on(&s, SOFT_CALLS, 5, workers);
    device_scene_source(&s);
    memset(&t, 0, sizeof(t));
    t.in_order = true;
    loop_rig_open_with(&t.rig,
                       &(struct uva_runtime_options){.workers = workers});
    uva_workers_free(workers);
    fake_source_init(&t.fake, 3);
    soft_device_stream(&s.device, &t.fake, &source);
    t.stream = uva_stream_from_blocking(t.rig.runtime, &source, NULL);
    ck_assert_int_eq(uva_stream_ready(s.stream, NULL), 0);
    ck_assert_int_eq(uva_stream_ready(t.stream, NULL), 0);
    for (int k = 0; k < 3; k++)
        soft_event_end(&s.device, k, 0);
    ck_assert_int_eq(device_scene_run(&t), 0);
    ck_assert_int_eq(t.batches, 3);
    ck_assert_int_eq(uva_device_register(t.rig.runtime, ARROW_DEVICE_EXT_DEV,
                                         soft_device_ops(&s.device), &s.device,
                                         &error),
                     EBUSY);
    uva_stream_release(t.stream);
    if (_i == 0) { /* the first to come goes first, with events pending */
        ck_assert_int_eq(device_scene_start(&s, &error), 0);
        while (atomic_load(&s.device.arms) == 0)
            loop_rig_settle(&s.rig);
        loop_rig_close(&t.rig);
        ck_assert_int_eq(atomic_load(&s.device.unloads), 0);
        soft_event_end(&s.device, 3, 0);
        soft_event_end(&s.device, 4, EIO);
        ck_assert_int_eq(device_scene_await(&s), EIO);
        ck_assert_int_eq(s.batches, 4);
    } else {
        uva_stream_release(s.stream);
        s.stream = NULL;
        loop_rig_close_runtime(&s.rig, 0);
        ck_assert_int_eq(atomic_load(&s.device.unloads), 0);
        loop_rig_close(&t.rig);
    }
    ck_assert_int_eq(atomic_load(&s.device.loads), 1);
    ck_assert_int_eq(atomic_load(&t.fake.live), 0);
    fake_source_fini(&t.fake);
    device_scene_close(&s);
}
END_TEST

static void add_tests(TCase *tc)
{
    tcase_add_test(tc, nobody_waits_if_the_consumer_says_so);
    tcase_add_loop_test(tc, a_stream_of_the_consumer_waits_on_the_device, 0, 2);
    tcase_add_test(tc, a_stream_that_cannot_wait_ends_with_a_way_out);
    tcase_add_loop_test(tc, what_makes_no_sense_is_refused, 0, 7);
    tcase_add_test(tc, metadata_and_ordinals_stay_with_their_batches);
    tcase_add_test(tc, tasks_that_are_dear_are_extracted_by_workers_first);
    tcase_add_loop_test(tc, a_source_that_fails_is_heard_behind_its_batches, 0,
                        2);
    tcase_add_test(
        tc, a_batch_that_cannot_be_extracted_ends_the_stream_in_its_place);
    tcase_add_loop_test(tc, a_stage_takes_its_memory_from_the_runtime, 0, 2);
    tcase_add_test(tc, no_more_than_the_window_is_waited_for);
    tcase_add_loop_test(tc, an_event_that_nobody_knows_ends_the_stream, 0, 5);
    tcase_add_loop_test(tc, an_event_on_the_host_is_not_looked_at, 0, 2);
    tcase_add_test(tc, data_that_the_host_cannot_read_needs_consent);
    tcase_add_loop_test(tc, pinned_memory_is_waited_for_by_itself, 0, 6);
    tcase_add_loop_test(tc, who_asks_for_one_batch_needs_to_consent_too, 0, 2);
    tcase_add_test(tc, a_burst_of_events_wakes_the_loop_a_few_times);
    tcase_add_loop_test(tc, two_runtimes_share_one_service, 0, 2);
}

int main(void)
{
    Suite *suite = suite_create("ready rules");
    TCase *tc = tcase_create("rules");
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
