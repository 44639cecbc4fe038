/* SPDX-License-Identifier: Apache-2.0 */
/* Batches with events: delivered in order when their events are complete,
 * whether the device is polled or calls back, and released once, whatever
 * happens to the event or to the stream. */
#include <check.h>
#include <errno.h>
#include <sched.h>
#include <string.h>

#include "support/check_suite.h"
#include "support/fixture.h"

static struct fixture f;
static bool early;     /* a batch was delivered before its event was complete */
static int64_t wanted; /* batches that the loop waits for */

static void on_batch(struct recording_consumer *c, struct uva_batch *batch)
{
    const int k = (int)batch->ordinal;

    early = early || atomic_load(&f.device.events[k].state) != 0;
    ck_assert_ptr_null(c->sync_event);
}

static void set_up(enum soft_mode mode, int64_t batches)
{
    fixture_open_device(&f, mode, batches);
    f.got.on_batch = on_batch;
}

static void tear_down(void)
{
    fixture_close_now(&f);
    ck_assert(!early);
    ck_assert(f.got.in_order);
}

static bool has_wanted(void *ctx)
{
    (void)ctx;
    return f.got.done || f.got.taken >= wanted;
}

static bool has_armed(void *ctx)
{
    (void)ctx;
    return f.device.mode < SOFT_CALLS || atomic_load(&f.device.arms) > 0;
}

static void start(const struct uva_ready *options)
{
    fixture_ready(&f, fixture_device_stream(&f), options);
    fixture_start(&f);
}

static const enum soft_mode all_modes[] = {SOFT_POLLS, SOFT_POLLS_ON_LOOP,
                                           SOFT_CALLS, SOFT_CALLS_ON_LOOP,
                                           SOFT_FORGETS};

START_TEST(batches_come_in_order_whatever_order_their_events_end_in)
{
    set_up(all_modes[_i], 8);
    start(NULL);
    for (int k = 7; k >= 0; k--) {
        if (k == 7)
            loop_until(&f.loop, has_armed, NULL);
        soft_event_end(&f.device, k, 0);
        loop_settle(&f.loop);
        ck_assert_int_eq(f.got.taken, k == 0 ? f.got.taken : 0);
    }
    wanted = 8;
    loop_until(&f.loop, has_wanted, NULL);
    fixture_await(&f);
    ck_assert_int_eq(f.got.outcome.end, UVA_END_COMPLETE);
    ck_assert_int_eq(f.got.taken, 8);
}
END_TEST

START_TEST(a_failed_event_ends_the_stream_behind_what_was_before_it)
{
    set_up(all_modes[_i], 8);
    for (int k = 0; k < 8; k++)
        if (k != 3)
            soft_event_end(&f.device, k, 0);
    start(NULL);
    wanted = 3;
    loop_until(&f.loop, has_wanted, NULL);
    soft_event_end(&f.device, 3, EIO);
    fixture_await(&f);
    ck_assert_int_eq(f.got.outcome.end, UVA_END_FAILED);
    ck_assert_int_eq(f.got.outcome.error.code, EIO);
    ck_assert_int_eq(f.got.outcome.error.vendor_code, 700);
    ck_assert_str_eq(f.got.outcome.error.vendor, "soft");
    ck_assert_int_eq(f.got.taken, 3);
}
END_TEST

START_TEST(a_stuck_event_is_given_up_in_time)
{
    const struct uva_ready options = {.timeout_ms = 5};

    set_up(all_modes[_i], 4);
    soft_event_end(&f.device, 0, 0);
    start(&options);
    fixture_await(&f);
    ck_assert_int_eq(f.got.outcome.end, UVA_END_FAILED);
    ck_assert_int_eq(f.got.outcome.error.code, ETIMEDOUT);
    ck_assert_int_le(f.got.taken, 1);
    fixture_release(&f);
    loop_close_runtime(&f.loop, 0);
    for (int k = 1; k < 4; k++) /* a late callback has no effect */
        soft_event_end(&f.device, k, 0);
}
END_TEST

static void pass_and_end_first(void *timeout_ms)
{
    while (atomic_load(&f.device.arms) == 0)
        sched_yield();
    loop_pass(&f.loop, *(int64_t *)timeout_ms + 2);
    soft_event_end(&f.device, 0, 0);
    while (atomic_load(&f.device.settles) == 0)
        sched_yield();
}

/* The time limits of both have passed when the loop turns, and the event of the
 * first one is complete. */
START_TEST(an_event_that_is_complete_is_not_given_up)
{
    struct uva_ready options = {.timeout_ms = 3};
    struct ArrowDeviceArray arrays[2];

    set_up(SOFT_CALLS_ON_LOOP, 2);
    for (int k = 0; k < 2; k++)
        soft_device_batch(&f.device, &f.fake, k, &arrays[k]);
    fixture_ready(&f, fixture_arrays(&f, arrays, 2), &options);
    fixture_start(&f);
    loop_at_timer(&f.loop, pass_and_end_first, &options.timeout_ms);
    fixture_await(&f);
    ck_assert_int_eq(f.got.outcome.error.code, ETIMEDOUT);
    ck_assert_int_eq(f.got.taken, 1);
    fixture_release(&f);
    loop_close_runtime(&f.loop, 0);
    soft_event_end(&f.device, 1, 0);
}
END_TEST

START_TEST(a_close_releases_what_waits)
{
    set_up(all_modes[_i], 4);
    start(NULL);
    loop_until(&f.loop, has_armed, NULL);
    fixture_release(&f);
    loop_close_runtime(&f.loop, 0);
    ck_assert_int_eq(atomic_load(&f.fake.live), 0);
    for (int k = 0; k < 4; k++)
        soft_event_end(&f.device, k, 0);
}
END_TEST

START_TEST(many_events_may_be_outstanding)
{
    enum { MANY = 4096 };
    const struct uva_ready options = {.window = {.batches = MANY}};

    set_up(all_modes[_i], MANY);
    start(&options);
    for (int k = MANY - 1; k >= 0; k--)
        soft_event_end(&f.device, k, 0);
    fixture_await(&f);
    ck_assert_int_eq(f.got.taken, MANY);
}
END_TEST

START_TEST(a_device_stream_is_made_to_wait_instead)
{
    atomic_long device_stream = 0;
    const struct uva_ready options = {.wait = UVA_WAIT_STREAM,
                                      .device_stream = &device_stream};
    struct uva_consumer consumer = {.on_done = recording_on_done};

    set_up(SOFT_POLLS, 5);
    fixture_ready(&f, fixture_device_stream(&f), &options);
    ck_assert_int_eq(uva_stream_for_each(f.stream, &consumer, NULL), EINVAL);
}
END_TEST

START_TEST(a_table_that_cannot_be_loaded_ends_the_stream_with_its_text)
{
    set_up(SOFT_POLLS, 5);
    f.device.load_code = ENODEV;
    start(NULL);
    fixture_await(&f);
    ck_assert_int_eq(f.got.outcome.error.code, ENODEV);
    ck_assert_str_eq(f.got.outcome.error.message, "no soft device");
    f.device.loads = 0;
}
END_TEST

int main(void)
{
    const int modes = sizeof(all_modes) / sizeof(all_modes[0]);
    TCase *tc = tcase_create("events");

    tcase_set_timeout(tc, 60);
    suite_add(tc, an_event_that_is_complete_is_not_given_up,
              a_device_stream_is_made_to_wait_instead,
              a_table_that_cannot_be_loaded_ends_the_stream_with_its_text,
              NULL);
    suite_add_loops(
        tc, 0, modes, batches_come_in_order_whatever_order_their_events_end_in,
        a_failed_event_ends_the_stream_behind_what_was_before_it,
        a_stuck_event_is_given_up_in_time, a_close_releases_what_waits,
        many_events_may_be_outstanding, NULL);
    return suite_main("ready", NULL, tear_down, tc, NULL);
}
