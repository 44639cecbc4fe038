/* SPDX-License-Identifier: Apache-2.0 */
/* Batches with events: delivered in order when their events are complete,
 * however the device tells of them, and released once whatever becomes of the
 * event or of the stream. */
#include <check.h>
#include <errno.h>
#include <sched.h>
#include <string.h>

#include "support/loop_rig.h"
#include "support/soft_device.h"
#include "uvarrow/uvarrow.h"

struct scene {
    struct loop_rig rig;
    struct fake_source fake;
    struct soft_device device;
    struct uva_stream *stream;
    int64_t batches; /* delivered */
    int64_t wanted;  /* delivered, for the loop to go on */
    bool early;      /* one came before its event was complete */
    bool in_order;
    bool done;
    struct uva_outcome outcome;
};

static void nudge(void *ctx)
{
    loop_rig_nudge(ctx);
}

static void scene_open(struct scene *s, enum soft_mode mode, int64_t batches)
{
    struct uva_error error;

    memset(s, 0, sizeof(*s));
    s->in_order = true;
    loop_rig_open(&s->rig);
    fake_source_init(&s->fake, batches);
    soft_device_init(&s->device, mode);
    s->device.armed = nudge;
    s->device.ctx = &s->rig;
    ck_assert_int_eq(uva_device_register(s->rig.runtime, ARROW_DEVICE_EXT_DEV,
                                         soft_device_ops(&s->device),
                                         &s->device, &error),
                     0);
}

static void scene_close(struct scene *s)
{
    loop_rig_close(&s->rig);
    ck_assert(!atomic_load(&s->device.wrong_thread));
    ck_assert(!s->early);
    ck_assert_int_eq(atomic_load(&s->fake.live), 0);
    ck_assert_int_eq(atomic_load(&s->device.loads),
                     atomic_load(&s->device.unloads));
    fake_source_fini(&s->fake);
    soft_device_fini(&s->device);
}

static int on_batch(void *ctx, struct uva_batch *batch)
{
    struct scene *s = ctx;
    const int64_t *values = batch->data.array.children[0]->buffers[1];
    const int k = (int)s->batches++;

    s->in_order = s->in_order && values[0] == k * 10;
    s->early = s->early || atomic_load(&s->device.events[k].state) != 0;
    ck_assert_ptr_null(batch->data.sync_event);
    return 0;
}

static void on_done(void *ctx, const struct uva_outcome *outcome)
{
    struct scene *s = ctx;

    s->done = true;
    s->outcome = *outcome;
}

static bool is_done(void *ctx)
{
    return ((struct scene *)ctx)->done;
}

static bool has_wanted(void *ctx)
{
    struct scene *s = ctx;

    return s->done || s->batches >= s->wanted;
}

static bool has_armed(void *ctx)
{
    struct scene *s = ctx;

    return s->device.mode < SOFT_CALLS || atomic_load(&s->device.arms) > 0;
}

static void scene_start(struct scene *s, const struct uva_ready *how)
{
    const struct uva_consumer consumer = {
        .on_batch = on_batch, .on_done = on_done, .ctx = s};
    struct ArrowDeviceArrayStream source;
    struct uva_error error;

    soft_device_stream(&s->device, &s->fake, &source);
    s->stream = uva_stream_from_blocking(s->rig.runtime, &source, NULL);
    ck_assert_int_eq(uva_stream_ready(s->stream, how), 0);
    ck_assert_int_eq(uva_stream_for_each(s->stream, &consumer, &error), 0);
}

static void scene_finish(struct scene *s)
{
    loop_rig_until(&s->rig, is_done, s);
    uva_stream_release(s->stream);
    scene_close(s);
}

static const enum soft_mode all_modes[] = {
    SOFT_POLLS, SOFT_POLLS_QUICK, SOFT_CALLS, SOFT_CALLS_QUICK, SOFT_FORGETS};

START_TEST(batches_come_in_order_whatever_order_their_events_end_in)
{
    struct scene s;

    scene_open(&s, all_modes[_i], 8);
    scene_start(&s, NULL);
    for (int k = 7; k >= 0; k--) {
        if (k == 7)
            loop_rig_until(&s.rig, has_armed, &s);
        soft_event_end(&s.device, k, 0);
        loop_rig_settle(&s.rig);
        ck_assert_int_eq(s.batches, k == 0 ? s.batches : 0);
    }
    s.wanted = 8;
    loop_rig_until(&s.rig, has_wanted, &s);
    loop_rig_until(&s.rig, is_done, &s);
    ck_assert_int_eq(s.outcome.end, UVA_END_COMPLETE);
    ck_assert_int_eq(s.batches, 8);
    ck_assert(s.in_order);
    scene_finish(&s);
}
END_TEST

START_TEST(a_failed_event_ends_the_stream_behind_what_was_before_it)
{
    struct scene s;

    scene_open(&s, all_modes[_i], 8);
    for (int k = 0; k < 8; k++)
        if (k != 3)
            soft_event_end(&s.device, k, 0);
    scene_start(&s, NULL);
    s.wanted = 3;
    loop_rig_until(&s.rig, has_wanted, &s);
    soft_event_end(&s.device, 3, EIO);
    loop_rig_until(&s.rig, is_done, &s);
    ck_assert_int_eq(s.outcome.end, UVA_END_FAILED);
    ck_assert_int_eq(s.outcome.error.code, EIO);
    ck_assert_int_eq(s.outcome.error.vendor_code, 700);
    ck_assert_str_eq(s.outcome.error.vendor, "soft");
    ck_assert_int_eq(s.batches, 3);
    scene_finish(&s);
}
END_TEST

START_TEST(a_stuck_event_is_given_up_in_time)
{
    const struct uva_ready how = {.timeout_ms = 5};
    struct scene s;

    scene_open(&s, all_modes[_i], 4);
    soft_event_end(&s.device, 0, 0);
    scene_start(&s, &how);
    loop_rig_until(&s.rig, is_done, &s);
    ck_assert_int_eq(s.outcome.end, UVA_END_FAILED);
    ck_assert_int_eq(s.outcome.error.code, ETIMEDOUT);
    ck_assert_int_le(s.batches, 1);
    uva_stream_release(s.stream);
    loop_rig_close_runtime(&s.rig, 0);
    for (int k = 1; k < 4; k++) /* a vendor that is late finds nobody */
        soft_event_end(&s.device, k, 0);
    scene_close(&s);
}
END_TEST

/* The time of both is over when the loop comes round, and the event of the
 * first is complete. */
START_TEST(an_event_that_is_complete_is_not_given_up)
{
    const struct uva_ready how = {.timeout_ms = 3};
    struct uva_consumer consumer = {.on_batch = on_batch, .on_done = on_done};
    struct ArrowDeviceArray arrays[2];
    struct ArrowSchema schema;
    struct scene s;

    scene_open(&s, SOFT_CALLS_QUICK, 2);
    consumer.ctx = &s;
    for (int k = 0; k < 2; k++)
        soft_device_batch(&s.device, &s.fake, k, &arrays[k]);
    fake_source_schema(&s.fake, &schema);
    s.stream = uva_stream_from_arrays(s.rig.runtime, &schema, arrays, 2);
    ck_assert_int_eq(uva_stream_ready(s.stream, &how), 0);
    ck_assert_int_eq(uva_stream_for_each(s.stream, &consumer, NULL), 0);
    loop_rig_until_timer(&s.rig);
    while (atomic_load(&s.device.arms) == 0)
        sched_yield();
    loop_rig_pass(&s.rig, how.timeout_ms + 2);
    soft_event_end(&s.device, 0, 0);
    while (atomic_load(&s.device.settles) == 0)
        sched_yield();
    loop_rig_until(&s.rig, is_done, &s);
    ck_assert_int_eq(s.outcome.error.code, ETIMEDOUT);
    ck_assert_int_eq(s.batches, 1);
    uva_stream_release(s.stream);
    loop_rig_close_runtime(&s.rig, 0);
    soft_event_end(&s.device, 1, 0);
    scene_close(&s);
}
END_TEST

START_TEST(a_close_releases_what_waits)
{
    struct scene s;

    scene_open(&s, all_modes[_i], 4);
    scene_start(&s, NULL);
    loop_rig_until(&s.rig, has_armed, &s);
    uva_stream_release(s.stream);
    loop_rig_close_runtime(&s.rig, 0);
    ck_assert_int_eq(atomic_load(&s.fake.live), 0);
    for (int k = 0; k < 4; k++)
        soft_event_end(&s.device, k, 0);
    scene_close(&s);
}
END_TEST

START_TEST(many_events_may_be_outstanding)
{
    enum { MANY = 4096 };
    const struct uva_ready how = {.window = {.batches = MANY}};
    struct scene s;

    scene_open(&s, all_modes[_i], MANY);
    scene_start(&s, &how);
    for (int k = MANY - 1; k >= 0; k--)
        soft_event_end(&s.device, k, 0);
    loop_rig_until(&s.rig, is_done, &s);
    ck_assert_int_eq(s.batches, MANY);
    ck_assert(s.in_order);
    scene_finish(&s);
}
END_TEST

START_TEST(a_device_stream_is_made_to_wait_instead)
{
    atomic_long device_stream = 0;
    const struct uva_ready how = {.wait = UVA_WAIT_STREAM,
                                  .device_stream = &device_stream};
    struct uva_consumer consumer = {.on_done = on_done};
    struct ArrowDeviceArrayStream source;
    struct scene s;

    scene_open(&s, SOFT_POLLS, 5);
    consumer.ctx = &s;
    soft_device_stream(&s.device, &s.fake, &source);
    s.stream = uva_stream_from_blocking(s.rig.runtime, &source, NULL);
    ck_assert_int_eq(uva_stream_ready(s.stream, &how), 0);
    consumer.on_batch = NULL;
    ck_assert_int_eq(uva_stream_for_each(s.stream, &consumer, NULL), EINVAL);
    uva_stream_release(s.stream);
    scene_close(&s);
}
END_TEST

START_TEST(a_table_that_cannot_be_loaded_ends_the_stream_with_its_text)
{
    struct scene s;

    scene_open(&s, SOFT_POLLS, 5);
    s.device.load_code = ENODEV;
    scene_start(&s, NULL);
    loop_rig_until(&s.rig, is_done, &s);
    ck_assert_int_eq(s.outcome.error.code, ENODEV);
    ck_assert_str_eq(s.outcome.error.message, "no soft device");
    s.device.loads = 0;
    scene_finish(&s);
}
END_TEST

int main(void)
{
    const int modes = sizeof(all_modes) / sizeof(all_modes[0]);
    Suite *suite = suite_create("ready");
    TCase *tc = tcase_create("events");
    SRunner *runner;
    int failed;

    tcase_set_timeout(tc, 60);
    tcase_add_loop_test(
        tc, batches_come_in_order_whatever_order_their_events_end_in, 0, modes);
    tcase_add_loop_test(
        tc, a_failed_event_ends_the_stream_behind_what_was_before_it, 0, modes);
    tcase_add_loop_test(tc, a_stuck_event_is_given_up_in_time, 0, modes);
    tcase_add_test(tc, an_event_that_is_complete_is_not_given_up);
    tcase_add_loop_test(tc, a_close_releases_what_waits, 0, modes);
    tcase_add_loop_test(tc, many_events_may_be_outstanding, 0, modes);
    tcase_add_test(tc, a_device_stream_is_made_to_wait_instead);
    tcase_add_test(tc,
                   a_table_that_cannot_be_loaded_ends_the_stream_with_its_text);
    suite_add_tcase(suite, tc);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
