/* SPDX-License-Identifier: Apache-2.0 */
/* SYCL events of a real libsycl or of a double: polled until they are complete,
 * with the exceptions that libsycl throws for failed ones; barriers that the
 * library submits. Skipped without a libsycl. */
#include <check.h>
#include <dlfcn.h>
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "devices/sycl_driver.h"
#include "support/fake_source.h"
#include "support/loop_rig.h"
#include "uvarrow/uvarrow.h"

enum { SOME = 8, MOST = 512 };

struct scene {
    struct loop_rig rig;
    struct fake_source fake;
    void *events[MOST];
    bool ended[MOST];
    int count;
    struct ArrowDeviceArray arrays[MOST];
    struct uva_stream *stream;
    int64_t batches;
    void *sync_event; /* event of the last batch */
    bool early;       /* a batch arrived before its event was complete */
    bool done;
    struct uva_outcome outcome;
    struct uva_error answer; /* result of uva_array_wait() */
};

static struct sycl_driver driver;

/* ---- the scene ---------------------------------------------------------- */

static void scene_open(struct scene *s, int count)
{
    memset(s, 0, sizeof(*s));
    loop_rig_open(&s->rig);
    fake_source_init(&s->fake, count);
    s->count = count;
    for (int k = 0; k < count; k++) {
        s->events[k] = driver.event_new();
        fake_source_batch(&s->fake, k, &s->arrays[k]);
        s->arrays[k].device_type = ARROW_DEVICE_ONEAPI;
        s->arrays[k].sync_event = s->events[k];
    }
}

static void scene_end(struct scene *s, int k, bool failed)
{
    s->ended[k] = true;
    driver.event_end(s->events[k], failed);
}

static void scene_close(struct scene *s)
{
    loop_rig_close(&s->rig);
    ck_assert(!s->early);
    ck_assert_int_eq(atomic_load(&s->fake.live), 0);
    fake_source_fini(&s->fake);
    for (int k = 0; k < s->count; k++) {
        if (!s->ended[k])
            driver.event_end(s->events[k], false);
        driver.event_free(s->events[k]);
    }
}

static int on_batch(void *ctx, struct uva_batch *batch)
{
    struct scene *s = ctx;

    s->early = s->early || !s->ended[s->batches];
    s->sync_event = batch->data.sync_event;
    s->batches++;
    return 0;
}

static void on_done(void *ctx, const struct uva_outcome *outcome)
{
    struct scene *s = ctx;

    s->done = true;
    s->outcome = *outcome;
}

static void on_answer(void *ctx, struct ArrowDeviceArray *array,
                      const struct uva_error *error)
{
    struct scene *s = ctx;

    s->answer = *error;
    uva_array_release(array);
    s->done = true;
}

static bool is_done(void *ctx)
{
    return ((struct scene *)ctx)->done;
}

static void scene_stream(struct scene *s)
{
    struct ArrowSchema schema;

    fake_source_schema(&s->fake, &schema);
    s->stream = uva_stream_from_arrays(s->rig.runtime, &schema, s->arrays,
                                       (size_t)s->count);
}

static void scene_start(struct scene *s, const struct uva_ready *how)
{
    const struct uva_consumer consumer = {
        .on_batch = on_batch, .on_done = on_done, .ctx = s};

    scene_stream(s);
    ck_assert_int_eq(uva_stream_ready(s->stream, how), 0);
    ck_assert_int_eq(uva_stream_for_each(s->stream, &consumer, NULL), 0);
    loop_rig_settle(&s->rig);
}

static void scene_finish(struct scene *s)
{
    loop_rig_until(&s->rig, is_done, s);
    uva_stream_release(s->stream);
}

static void scene_wait(struct scene *s, int64_t timeout_ms)
{
    ck_assert_int_eq(
        uva_array_wait(s->rig.runtime, &s->arrays[0], timeout_ms, on_answer, s),
        0);
    loop_rig_settle(&s->rig);
    ck_assert(!s->done || timeout_ms > 0);
}

/* ---- streams ------------------------------------------------------------ */

START_TEST(batches_come_in_order_when_their_events_are_complete)
{
    struct scene s;

    scene_open(&s, SOME);
    scene_start(&s, NULL);
    ck_assert_int_eq(s.batches, 0);
    for (int k = SOME - 1; k >= 0; k--) {
        scene_end(&s, k, false);
        loop_rig_settle(&s.rig);
    }
    scene_finish(&s);
    ck_assert_int_eq(s.outcome.end, UVA_END_COMPLETE);
    ck_assert_int_eq(s.batches, SOME);
    ck_assert_ptr_null(s.sync_event);
    scene_close(&s);
}
END_TEST

START_TEST(hundreds_of_events_are_waited_for_at_once)
{
    const struct uva_ready how = {.window = {.batches = MOST}};
    struct scene s;

    scene_open(&s, MOST);
    scene_start(&s, &how);
    ck_assert_int_eq(s.batches, 0);
    for (int k = 0; k < MOST; k++)
        scene_end(&s, k * 307 % MOST, false);
    scene_finish(&s);
    ck_assert_int_eq(s.batches, MOST);
    scene_close(&s);
}
END_TEST

static void assert_vendor(const struct uva_error *error)
{
    ck_assert_int_eq(error->code, EIO);
    ck_assert_str_eq(error->vendor, "sycl");
    ck_assert_int_ne(error->vendor_code, 0);
    ck_assert_ptr_nonnull(strstr(error->message, "sycl::event::wait"));
    ck_assert_ptr_nonnull(strstr(
        error->message,
        driver.real ? "opencl backend" : "the fake device has failed (-5)"));
}

START_TEST(a_failed_event_ends_the_stream_with_the_words_of_the_vendor)
{
    struct scene s;

    scene_open(&s, SOME);
    for (int k = 0; k < SOME; k++)
        if (k != 3 && k != 5) /* never completed before the end */
            scene_end(&s, k, false);
    scene_start(&s, NULL);
    scene_end(&s, 3, true);
    scene_finish(&s);
    ck_assert_int_eq(s.outcome.end, UVA_END_FAILED);
    assert_vendor(&s.outcome.error);
    ck_assert_int_eq(s.batches, 3);
    scene_close(&s);
}
END_TEST

START_TEST(a_stream_dropped_while_waiting_releases_its_batches)
{
    struct scene s;

    scene_open(&s, SOME);
    scene_start(&s, NULL);
    uva_stream_drop(s.stream);
    while (atomic_load(&s.fake.live) != 0)
        loop_rig_settle(&s.rig);
    ck_assert(!s.done);
    scene_close(&s);
}
END_TEST

START_TEST(a_stuck_event_is_given_up_in_time)
{
    const struct uva_ready how = {.timeout_ms = 20};
    struct scene s;

    scene_open(&s, SOME);
    scene_end(&s, 0, false);
    scene_start(&s, &how);
    scene_finish(&s);
    ck_assert_int_eq(s.outcome.error.code, ETIMEDOUT);
    ck_assert_int_le(s.batches, 1);
    scene_close(&s);
}
END_TEST

START_TEST(batches_cannot_be_copied)
{
    const struct uva_consumer consumer = {.on_batch = on_batch,
                                          .on_done = on_done};
    struct uva_consumer mine = consumer;
    struct scene s;

    scene_open(&s, SOME);
    mine.ctx = &s;
    scene_stream(&s);
    ck_assert_int_eq(uva_stream_transfer(s.stream, NULL), 0);
    ck_assert_int_eq(uva_stream_for_each(s.stream, &mine, NULL), 0);
    scene_finish(&s);
    ck_assert_int_eq(s.outcome.error.code, ENOTSUP);
    scene_close(&s);
}
END_TEST

/* ---- one array ---------------------------------------------------------- */

START_TEST(one_array_is_waited_for)
{
    struct scene s;

    scene_open(&s, 1);
    scene_wait(&s, UVA_FOREVER);
    scene_end(&s, 0, _i == 1);
    loop_rig_until(&s.rig, is_done, &s);
    if (_i == 1)
        assert_vendor(&s.answer);
    else
        ck_assert_int_eq(s.answer.code, 0);
    scene_close(&s);
}
END_TEST

START_TEST(patience_with_one_array_ends)
{
    struct scene s;

    scene_open(&s, 1);
    scene_wait(&s, 1);
    loop_rig_until(&s.rig, is_done, &s);
    ck_assert_int_eq(s.answer.code, ETIMEDOUT);
    scene_close(&s);
}
END_TEST

/* ---- queues ------------------------------------------------------------- */

START_TEST(an_array_is_released_behind_the_work_that_reads_it)
{
    struct scene s;

    scene_open(&s, 1);
    s.arrays[0].sync_event = NULL;
    driver.queue_block(s.events[0]);
    uva_array_release_after(s.rig.runtime, &s.arrays[0], driver.queue);
    ck_assert(!uva_array_is_live(&s.arrays[0]));
    loop_rig_settle(&s.rig);
    ck_assert_int_eq(atomic_load(&s.fake.live), 1);
    scene_end(&s, 0, _i == 1);
    while (atomic_load(&s.fake.live) != 0)
        loop_rig_settle(&s.rig);
    loop_rig_close_runtime(&s.rig, 0);
    scene_close(&s);
    while (driver.events_live() > 0)
        sched_yield(); /* the device thread still holds one */
}
END_TEST

START_TEST(a_producer_records_an_event_behind_its_work)
{
    struct uva_error error;
    struct scene s;

    scene_open(&s, 1);
    s.arrays[0].sync_event = NULL;
    driver.queue_block(s.events[0]);
    ck_assert_int_eq(
        uva_array_record(s.rig.runtime, &s.arrays[0], driver.queue, &error), 0);
    ck_assert_ptr_nonnull(s.arrays[0].sync_event);
    scene_wait(&s, UVA_FOREVER);
    scene_end(&s, 0, false);
    loop_rig_until(&s.rig, is_done, &s);
    ck_assert_int_eq(s.answer.code, 0);
    loop_rig_close_runtime(&s.rig, 0);
    scene_close(&s);
    while (driver.events_live() > 0)
        sched_yield(); /* the device thread still holds one */
}
END_TEST

/* Work queued then must run after the batches' events. */
START_TEST(a_queue_of_the_consumer_waits)
{
    const struct uva_ready how = {.wait = UVA_WAIT_STREAM,
                                  .device_stream = driver.queue};
    struct ArrowDeviceArray later;
    struct scene s;

    scene_open(&s, 2);
    fake_source_batch(&s.fake, 0, &later);
    later.device_type = ARROW_DEVICE_ONEAPI;
    s.ended[0] = s.ended[1] = true; /* these are never waited for */
    scene_start(&s, &how);
    scene_finish(&s);
    s.ended[0] = s.ended[1] = false;
    ck_assert_int_eq(s.batches, 2);
    ck_assert_ptr_eq(s.sync_event, s.events[1]);
    uva_array_release_after(s.rig.runtime, &later, driver.queue);
    loop_rig_settle(&s.rig);
    ck_assert_int_eq(atomic_load(&s.fake.live), 1);
    scene_end(&s, 0, false);
    loop_rig_settle(&s.rig);
    ck_assert_int_eq(atomic_load(&s.fake.live), 1);
    scene_end(&s, 1, false);
    while (atomic_load(&s.fake.live) != 0)
        loop_rig_settle(&s.rig);
    scene_close(&s);
}
END_TEST

/* ---- what is known ------------------------------------------------------ */

START_TEST(the_type_says_what_it_rests_on)
{
    struct uva_device_info info;
    struct scene s;

    scene_open(&s, 0);
    ck_assert_int_eq(
        uva_device_get_info(s.rig.runtime, ARROW_DEVICE_ONEAPI, &info), 0);
    ck_assert(info.available);
    ck_assert(!info.can_copy);
    ck_assert_str_eq(info.mechanism, "polling");
    ck_assert_ptr_nonnull(strstr(info.library, "libsycl.so"));
    scene_close(&s);
}
END_TEST

static void add_tests(TCase *tc)
{
    tcase_add_test(tc, batches_come_in_order_when_their_events_are_complete);
    tcase_add_test(tc, hundreds_of_events_are_waited_for_at_once);
    tcase_add_test(tc,
                   a_failed_event_ends_the_stream_with_the_words_of_the_vendor);
    tcase_add_test(tc, a_stream_dropped_while_waiting_releases_its_batches);
    tcase_add_test(tc, a_stuck_event_is_given_up_in_time);
    tcase_add_test(tc, batches_cannot_be_copied);
    tcase_add_loop_test(tc, one_array_is_waited_for, 0, 2);
    tcase_add_test(tc, patience_with_one_array_ends);
    tcase_add_test(tc, a_producer_records_an_event_behind_its_work);
    tcase_add_test(tc, a_queue_of_the_consumer_waits);
    /* Intel's runtime may crash at a barrier that follows a failure. */
    tcase_add_loop_test(tc, an_array_is_released_behind_the_work_that_reads_it,
                        0, driver.real ? 1 : 2);
    tcase_add_test(tc, the_type_says_what_it_rests_on);
}

/* Opens the double that the environment names. */
static bool driver_open(void)
{
    const char *path = getenv("UVA_TEST_SYCL");
    const struct sycl_driver *fake;
    void *library;

    if (path == NULL)
        return dpctl_driver_open(&driver);
    library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    fake = library != NULL ? dlsym(library, FAKE_SYCL_DRIVER) : NULL;
    if (fake == NULL)
        abort(); /* the test was built for it */
    driver = *fake;
    return true;
}

int main(void)
{
    SRunner *runner;
    Suite *suite;
    TCase *tc;
    int failed;

    if (!driver_open())
        return 77;
    suite = suite_create("oneapi");
    tc = tcase_create("events");
    tcase_set_timeout(tc, 60);
    add_tests(tc);
    suite_add_tcase(suite, tc);
    runner = srunner_create(suite);
    srunner_set_fork_status(runner, CK_NOFORK); /* drivers have threads */
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    if (driver.real) { /* their libraries may crash at exit */
        (void)fflush(NULL);
        _exit(failed != 0);
    }
    return failed != 0;
}
