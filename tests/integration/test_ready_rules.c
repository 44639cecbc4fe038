/* SPDX-License-Identifier: Apache-2.0 */
/* Further rules of waiting for events: which side waits, which events cannot be
 * waited for, the metadata and ordinal of a batch, how many events are waited
 * for at once, and how data is refused that the host cannot read. Two runtimes
 * share one device thread. */
#include <check.h>
#include <errno.h>
#include <string.h>

#include "support/asking.h"
#include "support/check_suite.h"
#include "support/fixture.h"
#include "support/native.h"
#include "support/recording_handler.h"
#include "support/soft_copies.h"

static struct asking asking;

static struct fixture f, g;

static void tear_down(void)
{
    fixture_close(&f);
}

static const char metadata[] = NATIVE_PAIR;

/* ---- which side waits --------------------------------------------------- */

START_TEST(nobody_waits_if_the_consumer_says_so)
{
    const struct uva_ready options = {.wait = UVA_WAIT_NONE};

    fixture_open_device(&f, SOFT_POLLS, 5);
    fixture_ready(&f, fixture_device_stream(&f), &options);
    fixture_completes(&f, 5);
    ck_assert_ptr_eq(f.got.sync_event, &f.device.events[4]);
    ck_assert_int_eq(f.device.queries, 0);
}
END_TEST

START_TEST(a_stream_of_the_consumer_waits_on_the_device)
{
    atomic_long device_stream = 0;
    const struct uva_ready options = {.wait = UVA_WAIT_STREAM,
                                      .device_stream = &device_stream};

    fixture_open_device(&f, _i == 0 ? SOFT_POLLS : SOFT_COPIES, 5);
    fixture_ready(&f, fixture_device_stream(&f), &options);
    fixture_completes(&f, 5);
    ck_assert_int_eq(atomic_load(&device_stream), 5);
    ck_assert_ptr_eq(f.got.sync_event, &f.device.events[4]); /* pending */
}
END_TEST

START_TEST(a_stream_that_cannot_wait_ends_with_a_way_out)
{
    atomic_long device_stream = 0;
    const struct uva_ready options = {.wait = UVA_WAIT_STREAM,
                                      .device_stream = &device_stream};

    fixture_open_device(&f, SOFT_CALLS, 5);
    fixture_ready(&f, fixture_device_stream(&f), &options);
    ck_assert_int_eq(fixture_run(&f), ENOTSUP);
    text_contains(f.got.outcome.error.message, "UVA_WAIT_HOST");
}
END_TEST

START_TEST(what_makes_no_sense_is_refused)
{
    static const struct uva_ready wrong[] = {
        {.wait = UVA_WAIT_NONE, .device_stream = &f},
        {.device_stream = &f},
        {.wait = (enum uva_wait)3},
        {.wait = (enum uva_wait) - 1},
        {.timeout_ms = -1},
        {.window = {.batches = -1}},
        {.reserved = {&f}},
    };

    fixture_open_device(&f, SOFT_POLLS, 5);
    f.stream = fixture_device_stream(&f);
    ck_assert_int_eq(uva_stream_ready(f.stream, &wrong[_i]), EINVAL);
}
END_TEST

/* ---- delivered with a batch --------------------------------------------- */

START_TEST(metadata_and_ordinals_stay_with_their_batches)
{
    fixture_open_device(&f, SOFT_CALLS, 20);
    f.fake.metadata = metadata;
    fixture_ready(&f, fixture_device_stream(&f), NULL);
    for (int k = 19; k >= 0; k--)
        soft_event_end(&f.device, k, 0);
    fixture_completes(&f, 20);
    ck_assert(f.got.in_order);
    ck_assert(f.got.device_type == ARROW_DEVICE_EXT_DEV);
}
END_TEST

START_TEST(tasks_that_are_dear_are_extracted_by_workers_first)
{
    fixture_open_device(&f, SOFT_POLLS, 20);
    f.fake.metadata = metadata;
    fixture_ready(&f, fixture_tasks(&f), NULL);
    fixture_completes(&f, 20);
    ck_assert(f.got.in_order);
    ck_assert_int_eq(f.got.tagged, f.got.batches);
    ck_assert_int_eq(f.fake.extracted_here, 0);
}
END_TEST

START_TEST(a_source_that_fails_is_heard_behind_its_batches)
{
    fixture_open_device(&f, SOFT_CALLS, 20);
    if (_i == 0)
        f.fake.fail_at = 7;
    else
        f.fake.extract_at = 7;
    f.fake.fail_code = ENETDOWN;
    fixture_ready(&f, _i == 0 ? fixture_device_stream(&f) : fixture_tasks(&f),
                  NULL);
    for (int k = 0; k < 20; k++)
        soft_event_end(&f.device, k, 0);
    ck_assert_int_eq(fixture_run(&f), ENETDOWN);
    ck_assert_int_eq(f.got.batches, 7);
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
    const struct uva_map options = {
        .batch = map_fails, .ctx = &spared, .on_loop = true};

    fixture_open_device(&f, SOFT_CALLS, 9);
    f.stream = fixture_device_stream(&f);
    for (int k = 0; k < 9; k++)
        soft_event_end(&f.device, k, 0);
    ck_assert_int_eq(uva_stream_map(f.stream, &options), 0);
    ck_assert_int_eq(uva_stream_ready(f.stream, NULL), 0);
    ck_assert_int_eq(fixture_run(&f), ERANGE);
    ck_assert_int_eq(f.got.batches, 4);
    ck_assert_str_eq(f.got.outcome.error.message, "no more");
}
END_TEST

START_TEST(a_stage_takes_its_memory_from_the_runtime)
{
    struct ArrowDeviceArrayStream source;
    struct uva_error error;
    bool failed = true;
    int code;

    for (long n = 1; failed; n++) {
        fixture_open_device(&f, _i == 0 ? SOFT_CALLS : SOFT_POLLS_ON_LOOP, 3);
        f.fake.metadata = metadata;
        for (int k = 0; k < 3; k++)
            soft_event_end(&f.device, k, _i == 1 && k == 2 ? EIO : 0);
        soft_device_stream(&f.device, &f.fake, &source);
        loop_fail(&f.loop, n);
        f.stream = uva_stream_from_device_stream(f.loop.runtime, &source, NULL);
        code = uva_stream_ready(f.stream, NULL);
        ck_assert(code == 0 || code == ENOMEM);
        code = fixture_try(&f, &error);
        ck_assert(code == 0 || code == ENOMEM);
        if (code == 0)
            code = fixture_await(&f);
        failed = faulty_allocator_has_failed(&f.loop.memory);
        ck_assert(code == ENOMEM || code == _i * EIO);
        loop_fail(&f.loop, 0);
        fixture_close(&f);
    }
}
END_TEST

static bool is_held_up(void)
{
    return atomic_load(&f.device.arms) == 9 || f.got.done > 0 ||
           faulty_allocator_has_failed(&f.loop.memory);
}

/* The events wait, so that all batches are held at once. */
START_TEST(a_stage_may_lack_memory_for_what_waits)
{
    struct uva_error error;
    bool failed = true;
    int code;

    for (long n = 1; failed; n++) {
        fixture_open_device(&f, SOFT_CALLS, 9);
        fixture_ready(&f, fixture_device_stream(&f), NULL);
        loop_fail(&f.loop, n);
        code = fixture_try(&f, &error);
        if (code == 0) {
            while (!is_held_up())
                (void)uv_run(&f.loop.uv, UV_RUN_NOWAIT);
            for (int k = 0; k < 9; k++)
                soft_event_end(&f.device, k, 0);
            code = fixture_await(&f);
        }
        failed = faulty_allocator_has_failed(&f.loop.memory);
        ck_assert(code == 0 || (code == ENOMEM && failed));
        loop_fail(&f.loop, 0);
        fixture_close(&f);
    }
}
END_TEST

/* The handler keeps all tasks, so that more memory is taken for them; half of
 * them are passed on at once, so that the stage needs it. */
START_TEST(a_stage_may_lack_memory_for_what_it_passes_on)
{
    enum { MANY = 100, EARLY = 60 };
    static struct recording_handler handler;
    bool failed = true;

    for (long n = 1; failed; n++) {
        fixture_open_device(&f, SOFT_CALLS, MANY);
        fixture_ready(&f, fixture_device_stream(&f),
                      &(struct uva_ready){.window = {.batches = MANY}});
        recording_handler_init(&handler, MANY, 0);
        handler.hold = true;
        ck_assert_int_eq(
            uva_stream_drive(f.stream, &handler.handler, NULL, NULL), 0);
        while (atomic_load(&f.device.arms) < MANY)
            loop_settle(&f.loop);
        loop_fail(&f.loop, n);
        for (int k = EARLY; k < MANY; k++)
            soft_event_end(&f.device, k, 0);
        for (int k = 0; k < EARLY; k++)
            soft_event_end(&f.device, k, 0);
        while (!recording_handler_is_released(&handler))
            loop_turn(&f.loop);
        failed = faulty_allocator_has_failed(&f.loop.memory);
        for (int64_t i = 0; i < handler.held_count; i++)
            (void)recording_handler_extract(&handler, &handler.held[i]);
        ck_assert(failed || recording_handler_tasks(&handler) == MANY);
        recording_handler_fini(&handler);
        loop_fail(&f.loop, 0);
        fixture_close(&f);
    }
}
END_TEST

START_TEST(no_more_than_the_window_is_waited_for)
{
    const struct uva_ready options = {.window = {.batches = 3}};

    fixture_open_device(&f, SOFT_CALLS, 9);
    fixture_ready(&f, fixture_device_stream(&f), &options);
    fixture_start(&f);
    while (atomic_load(&f.device.arms) < 3)
        loop_settle(&f.loop);
    loop_settle(&f.loop);
    ck_assert_int_eq(atomic_load(&f.device.arms), 3);
    for (int k = 8; k >= 0; k--)
        soft_event_end(&f.device, k, 0);
    ck_assert_int_eq(fixture_await(&f), 0);
    ck_assert_int_eq(f.got.batches, 9);
}
END_TEST

static bool is_source_released(void *ctx)
{
    (void)ctx;
    return atomic_load(&f.fake.released) > 0;
}

/* Events 4 to 7 are waited for meanwhile. Event 8 is looked at when its batch
 * comes, as the first events have loaded the table by then. */
START_TEST(a_failed_event_cancels_the_source_at_once)
{
    const struct uva_ready options = {.window = {.batches = 8}};

    fixture_open_device(&f, SOFT_POLLS_ON_LOOP, 1000);
    for (int k = 0; k < 4; k++)
        soft_event_end(&f.device, k, 0);
    soft_event_end(&f.device, 8, EIO);
    fixture_ready(&f, fixture_device_stream(&f), &options);
    fixture_start(&f);
    loop_until(&f.loop, is_source_released, NULL);
    ck_assert(!f.got.done);
    for (int k = 4; k < 8; k++)
        soft_event_end(&f.device, k, 0);
    ck_assert_int_eq(fixture_await(&f), EIO);
    ck_assert_int_eq(f.got.batches, 8);
}
END_TEST

/* ---- events that cannot be waited for ----------------------------------- */

START_TEST(an_event_that_nobody_knows_ends_the_stream)
{
    static const ArrowDeviceType types[] = {
        ARROW_DEVICE_METAL, ARROW_DEVICE_VPI, ARROW_DEVICE_WEBGPU,
        ARROW_DEVICE_HEXAGON, 99};
    const struct uva_ready options = {.wait = UVA_WAIT_HOST};

    fixture_open_device(&f, SOFT_POLLS, 5);
    f.device.device_type = types[_i];
    fixture_ready(&f, fixture_device_stream(&f), &options);
    ck_assert_int_eq(fixture_run(&f), ENOTSUP);
    ck_assert_int_eq(f.got.batches, 0);
}
END_TEST

START_TEST(an_event_on_the_host_is_not_looked_at)
{
    fixture_open_device(&f, SOFT_POLLS, 5);
    f.device.device_type = ARROW_DEVICE_CPU; /* EV-04 */
    f.stream = fixture_device_stream(&f);
    if (_i == 0)
        ck_assert_int_eq(uva_stream_ready(f.stream, NULL), 0);
    fixture_completes(&f, 5);
    ck_assert_int_eq(f.device.queries, 0);
    if (_i == 0)
        ck_assert_ptr_null(f.got.sync_event); /* it is not passed on */
}
END_TEST

/* ---- without a ready stage ---------------------------------------------- */

START_TEST(data_that_the_host_cannot_read_needs_consent)
{
    fixture_open_device(&f, SOFT_POLLS, 5);
    f.stream = fixture_device_stream(&f);
    ck_assert_int_eq(fixture_run(&f), ENOTSUP);
    ck_assert_int_eq(f.got.batches, 0);
    text_contains(f.got.outcome.error.message, "uva_stream_transfer()");
    text_contains(f.got.outcome.error.message, "uva_stream_ready()");
}
END_TEST

START_TEST(pinned_memory_is_waited_for_by_itself)
{
    static const ArrowDeviceType types[] = {ARROW_DEVICE_CUDA_HOST,
                                            ARROW_DEVICE_CUDA_MANAGED,
                                            ARROW_DEVICE_ROCM_HOST};
    struct uva_error error;

    fixture_open_device(&f, SOFT_CALLS, 5);
    f.device.device_type = types[_i % 3];
    ck_assert_int_eq(uva_device_register(f.loop.runtime, types[_i % 3],
                                         soft_device_ops(&f.device), &f.device,
                                         &error),
                     0);
    f.stream = fixture_device_stream(&f);
    fixture_start(&f);
    while (atomic_load(&f.device.arms) == 0)
        loop_settle(&f.loop);
    ck_assert_int_eq(f.got.batches, 0);
    for (int k = 0; k < 5; k++)
        soft_event_end(&f.device, k, _i >= 3 && k == 3 ? EIO : 0);
    ck_assert_int_eq(fixture_await(&f), _i < 3 ? 0 : EIO);
    ck_assert_int_eq(f.got.batches, _i < 3 ? 5 : 3);
    ck_assert_ptr_null(f.got.sync_event);
}
END_TEST

/* ---- one at a time ------------------------------------------------------ */

static int next_code;

static void on_next(void *ctx, struct uva_batch *batch,
                    const struct uva_outcome *outcome)
{
    (void)ctx;
    next_code = batch != NULL ? 0 : outcome->error.code;
    if (outcome != NULL)
        text_contains(outcome->error.message, "uva_stream_transfer()");
}

START_TEST(who_asks_for_one_batch_needs_to_consent_too)
{
    fixture_open_device(&f, SOFT_POLLS_ON_LOOP, 5);
    f.stream = fixture_device_stream(&f);
    soft_event_end(&f.device, 0, 0);
    if (_i == 1)
        ck_assert_int_eq(uva_stream_ready(f.stream, NULL), 0);
    next_code = -1;
    ck_assert_int_eq(asking_next(&asking, f.stream, on_next, NULL), 0);
    while (next_code < 0)
        loop_turn(&f.loop);
    ck_assert_int_eq(next_code, _i == 1 ? 0 : ENOTSUP);
}
END_TEST

/* ---- many --------------------------------------------------------------- */

START_TEST(a_burst_of_events_wakes_the_loop_a_few_times)
{
    enum { MANY = 4096 };
    const struct uva_ready options = {.window = {.batches = MANY}};
    struct uva_runtime_stats before, after;

    fixture_open_device(&f, SOFT_CALLS_ON_LOOP, MANY);
    fixture_ready(&f, fixture_device_stream(&f), &options);
    fixture_start(&f);
    while (atomic_load(&f.device.arms) < MANY)
        loop_settle(&f.loop);
    loop_settle(&f.loop);
    uva_runtime_get_stats(f.loop.runtime, &before);
    for (int k = 1; k < MANY; k++)
        soft_event_end(&f.device, k, 0);
    loop_settle(&f.loop); /* no event is complete, so no batch can be
                             delivered */
    ck_assert_int_eq(f.got.batches, 0);
    uva_runtime_get_stats(f.loop.runtime, &after);
    soft_event_end(&f.device, 0, 0);
    ck_assert_int_eq(fixture_await(&f), 0);
    ck_assert_int_eq(f.got.batches, MANY);
    ck_assert(f.got.in_order);
    ck_assert_int_le(after.turns - before.turns, 64);
}
END_TEST

/* The second runtime's stream has the second half of the events. */
START_TEST(two_runtimes_share_one_service)
{
    struct ArrowDeviceArrayStream source;
    struct uva_runtime_options on_them = {0};
    struct uva_workers *workers;
    struct uva_error error;

    ck_assert_int_eq(uva_workers_new(NULL, &workers, &error), 0);
    on_them.workers = workers;
    fixture_open_with(&f, 5, &on_them);
    fixture_device(&f, SOFT_CALLS);
    f.stream = fixture_device_stream(&f);
    fixture_open_with(&g, 3, &on_them);
    uva_workers_release(workers);
    soft_device_stream(&f.device, &g.fake, &source);
    g.stream = uva_stream_from_device_stream(g.loop.runtime, &source, NULL);
    ck_assert_int_eq(uva_stream_ready(f.stream, NULL), 0);
    ck_assert_int_eq(uva_stream_ready(g.stream, NULL), 0);
    for (int k = 0; k < 3; k++)
        soft_event_end(&f.device, k, 0);
    ck_assert_int_eq(fixture_run(&g), 0);
    ck_assert_int_eq(g.got.batches, 3);
    ck_assert_int_eq(uva_device_register(g.loop.runtime, ARROW_DEVICE_EXT_DEV,
                                         soft_device_ops(&f.device), &f.device,
                                         &error),
                     EBUSY);
    fixture_release(&g);
    if (_i == 0) { /* one runtime closes while the other's events are pending */
        fixture_start(&f);
        while (atomic_load(&f.device.arms) == 0)
            loop_settle(&f.loop);
        fixture_close(&g);
        ck_assert_int_eq(atomic_load(&f.device.unloads), 0);
        soft_event_end(&f.device, 3, 0);
        soft_event_end(&f.device, 4, EIO);
        ck_assert_int_eq(fixture_await(&f), EIO);
        ck_assert_int_eq(f.got.batches, 4);
    } else {
        fixture_release(&f);
        loop_close_runtime(&f.loop, 0);
        ck_assert_int_eq(atomic_load(&f.device.unloads), 0);
        fixture_close(&g);
    }
    ck_assert_int_eq(atomic_load(&f.device.loads), 1);
}
END_TEST

static void add_tests(TCase *tc)
{
    suite_add(tc, nobody_waits_if_the_consumer_says_so,
              a_stream_that_cannot_wait_ends_with_a_way_out,
              metadata_and_ordinals_stay_with_their_batches,
              tasks_that_are_dear_are_extracted_by_workers_first,
              a_batch_that_cannot_be_extracted_ends_the_stream_in_its_place,
              a_stage_may_lack_memory_for_what_waits,
              a_stage_may_lack_memory_for_what_it_passes_on,
              no_more_than_the_window_is_waited_for,
              a_failed_event_cancels_the_source_at_once,
              data_that_the_host_cannot_read_needs_consent,
              a_burst_of_events_wakes_the_loop_a_few_times, NULL);
    suite_add_loops(tc, 0, 2, a_stream_of_the_consumer_waits_on_the_device,
                    a_source_that_fails_is_heard_behind_its_batches,
                    a_stage_takes_its_memory_from_the_runtime,
                    an_event_on_the_host_is_not_looked_at,
                    who_asks_for_one_batch_needs_to_consent_too,
                    two_runtimes_share_one_service, NULL);
    tcase_add_loop_test(tc, what_makes_no_sense_is_refused, 0, 7);
    tcase_add_loop_test(tc, an_event_that_nobody_knows_ends_the_stream, 0, 5);
    tcase_add_loop_test(tc, pinned_memory_is_waited_for_by_itself, 0, 6);
}

int main(void)
{
    TCase *tc = tcase_create("rules");

    tcase_set_timeout(tc, 60);
    add_tests(tc);
    return suite_main("ready rules", NULL, tear_down, tc, NULL);
}
