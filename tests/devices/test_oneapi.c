/* SPDX-License-Identifier: Apache-2.0 */
/* SYCL events of a real libsycl or of a double: polled until they are complete,
 * with the exceptions that libsycl throws for failed ones; and barriers that
 * the library submits. Skipped without a libsycl. */
#include <check.h>
#include <dlfcn.h>
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "devices/sycl_driver.h"
#include "support/check_suite.h"
#include "support/fixture.h"

enum { SOME = 8, MOST = 512 };

static struct fixture f;

static struct {
    void *events[MOST];
    bool ended[MOST];
    int count;
    struct ArrowDeviceArray arrays[MOST];
    bool early; /* a batch was delivered before its event was complete */
} sycl;

static struct sycl_driver driver;

/* ---- the fixture -------------------------------------------------------- */

static void set_up(int count)
{
    memset(&sycl, 0, sizeof(sycl));
    fixture_open(&f, count);
    sycl.count = count;
    for (int k = 0; k < count; k++) {
        sycl.events[k] = driver.event_new();
        fake_source_batch(&f.fake, k, &sycl.arrays[k]);
        sycl.arrays[k].device_type = ARROW_DEVICE_ONEAPI;
        sycl.arrays[k].sync_event = sycl.events[k];
    }
}

static void end_event(int k, bool failed)
{
    sycl.ended[k] = true;
    driver.event_end(sycl.events[k], failed);
}

static void tear_down(void)
{
    if (!f.open)
        return;
    fixture_close_now(&f);
    ck_assert(!sycl.early);
    for (int k = 0; k < sycl.count; k++) {
        if (!sycl.ended[k])
            driver.event_end(sycl.events[k], false);
        driver.event_free(sycl.events[k]);
    }
}

static void on_batch(struct recording_consumer *c, struct uva_batch *batch)
{
    (void)batch;
    sycl.early = sycl.early || !sycl.ended[c->taken];
}

static void make_stream(void)
{
    f.stream = fixture_arrays(&f, sycl.arrays, sycl.count);
    f.got.on_batch = on_batch;
}

static void start(const struct uva_ready *options)
{
    make_stream();
    ck_assert_int_eq(uva_stream_ready(f.stream, options), 0);
    fixture_start(&f);
    loop_settle(&f.loop);
}

static void finish(void)
{
    fixture_await(&f);
    fixture_release(&f);
}

static void wait_array(int64_t timeout_ms)
{
    fixture_wait(&f, &sycl.arrays[0], timeout_ms);
    loop_settle(&f.loop);
    ck_assert(f.answers == 0 || timeout_ms > 0);
}

/* ---- streams ------------------------------------------------------------ */

START_TEST(batches_come_in_order_when_their_events_are_complete)
{
    set_up(SOME);
    start(NULL);
    ck_assert_int_eq(f.got.batches, 0);
    for (int k = SOME - 1; k >= 0; k--) {
        end_event(k, false);
        loop_settle(&f.loop);
    }
    finish();
    ck_assert_int_eq(f.got.outcome.end, UVA_END_COMPLETE);
    ck_assert_int_eq(f.got.batches, SOME);
    ck_assert_ptr_null(f.got.sync_event);
}
END_TEST

START_TEST(hundreds_of_events_are_waited_for_at_once)
{
    const struct uva_ready options = {.window = {.batches = MOST}};

    set_up(MOST);
    start(&options);
    ck_assert_int_eq(f.got.batches, 0);
    for (int k = 0; k < MOST; k++)
        end_event(k * 307 % MOST, false);
    finish();
    ck_assert_int_eq(f.got.batches, MOST);
}
END_TEST

static void assert_vendor(const struct uva_error *error)
{
    ck_assert_int_eq(error->code, EIO);
    ck_assert_str_eq(error->vendor, "sycl");
    ck_assert_int_ne(error->vendor_code, 0);
    text_contains(error->message, "sycl::event::wait");
    ck_assert_ptr_nonnull(strstr(
        error->message,
        driver.real ? "opencl backend" : "the fake device has failed (-5)"));
}

START_TEST(a_failed_event_ends_the_stream_with_the_words_of_the_vendor)
{
    set_up(SOME);
    for (int k = 0; k < SOME; k++)
        if (k != 3 && k != 5) /* 3 fails, and 5 stays pending */
            end_event(k, false);
    start(NULL);
    end_event(3, true);
    finish();
    ck_assert_int_eq(f.got.outcome.end, UVA_END_FAILED);
    assert_vendor(&f.got.outcome.error);
    ck_assert_int_eq(f.got.batches, 3);
}
END_TEST

START_TEST(a_stream_dropped_while_waiting_releases_its_batches)
{
    set_up(SOME);
    start(NULL);
    fixture_drop(&f);
    while (atomic_load(&f.fake.live) != 0)
        loop_settle(&f.loop);
    ck_assert(!f.got.done);
}
END_TEST

START_TEST(a_stuck_event_is_given_up_in_time)
{
    const struct uva_ready options = {.timeout_ms = 20};

    set_up(SOME);
    end_event(0, false);
    start(&options);
    finish();
    ck_assert_int_eq(f.got.outcome.error.code, ETIMEDOUT);
    ck_assert_int_le(f.got.batches, 1);
}
END_TEST

START_TEST(batches_cannot_be_copied)
{
    set_up(SOME);
    make_stream();
    ck_assert_int_eq(uva_stream_transfer(f.stream, NULL), 0);
    fixture_start(&f);
    finish();
    ck_assert_int_eq(f.got.outcome.error.code, ENOTSUP);
}
END_TEST

/* ---- one array ---------------------------------------------------------- */

START_TEST(one_array_is_waited_for)
{
    set_up(1);
    wait_array(UVA_FOREVER);
    end_event(0, _i == 1);
    (void)fixture_await_answers(&f, 1);
    if (_i == 1)
        assert_vendor(&f.answer);
    else
        ck_assert_int_eq(f.answer.code, 0);
}
END_TEST

START_TEST(patience_with_one_array_ends)
{
    set_up(1);
    wait_array(1);
    (void)fixture_await_answers(&f, 1);
    ck_assert_int_eq(f.answer.code, ETIMEDOUT);
}
END_TEST

/* ---- queues ------------------------------------------------------------- */

START_TEST(an_array_is_released_behind_the_work_that_reads_it)
{
    set_up(1);
    sycl.arrays[0].sync_event = NULL;
    driver.queue_block(sycl.events[0]);
    uva_array_release_after(f.loop.runtime, &sycl.arrays[0], driver.queue);
    ck_assert(!uva_array_is_live(&sycl.arrays[0]));
    loop_settle(&f.loop);
    ck_assert_int_eq(atomic_load(&f.fake.live), 1);
    end_event(0, _i == 1);
    while (atomic_load(&f.fake.live) != 0)
        loop_settle(&f.loop);
    tear_down();
    while (driver.events_live() > 0)
        sched_yield(); /* the device thread still holds one */
}
END_TEST

START_TEST(a_producer_records_an_event_behind_its_work)
{
    struct uva_error error;

    set_up(1);
    sycl.arrays[0].sync_event = NULL;
    driver.queue_block(sycl.events[0]);
    ck_assert_int_eq(
        uva_array_record(f.loop.runtime, &sycl.arrays[0], driver.queue, &error),
        0);
    ck_assert_ptr_nonnull(sycl.arrays[0].sync_event);
    wait_array(UVA_FOREVER);
    end_event(0, false);
    (void)fixture_await_answers(&f, 1);
    ck_assert_int_eq(f.answer.code, 0);
    tear_down();
    while (driver.events_live() > 0)
        sched_yield(); /* the device thread still holds one */
}
END_TEST

/* Work queued then must run after the batches' events. */
START_TEST(a_queue_of_the_consumer_waits)
{
    const struct uva_ready options = {.wait = UVA_WAIT_STREAM,
                                      .device_stream = driver.queue};
    struct ArrowDeviceArray later;

    set_up(2);
    fake_source_batch(&f.fake, 0, &later);
    later.device_type = ARROW_DEVICE_ONEAPI;
    sycl.ended[0] = sycl.ended[1] = true; /* no ready stage waits for them */
    start(&options);
    finish();
    sycl.ended[0] = sycl.ended[1] = false;
    ck_assert_int_eq(f.got.batches, 2);
    ck_assert_ptr_eq(f.got.sync_event, sycl.events[1]);
    uva_array_release_after(f.loop.runtime, &later, driver.queue);
    loop_settle(&f.loop);
    ck_assert_int_eq(atomic_load(&f.fake.live), 1);
    end_event(0, false);
    loop_settle(&f.loop);
    ck_assert_int_eq(atomic_load(&f.fake.live), 1);
    end_event(1, false);
    while (atomic_load(&f.fake.live) != 0)
        loop_settle(&f.loop);
}
END_TEST

/* ---- attached libraries ------------------------------------------------- */

START_TEST(the_type_says_what_it_rests_on)
{
    struct uva_device_info info;

    set_up(0);
    ck_assert_int_eq(
        uva_device_get_info(f.loop.runtime, ARROW_DEVICE_ONEAPI, &info), 0);
    ck_assert(info.available);
    ck_assert(!info.can_copy);
    ck_assert_str_eq(info.mechanism, "polling");
    ck_assert_ptr_nonnull(strstr(info.library, "libsycl.so"));
}
END_TEST

static void add_tests(TCase *tc)
{
    suite_add(tc, batches_come_in_order_when_their_events_are_complete,
              hundreds_of_events_are_waited_for_at_once,
              a_failed_event_ends_the_stream_with_the_words_of_the_vendor,
              a_stream_dropped_while_waiting_releases_its_batches,
              a_stuck_event_is_given_up_in_time, batches_cannot_be_copied,
              NULL);
    tcase_add_loop_test(tc, one_array_is_waited_for, 0, 2);
    suite_add(tc, patience_with_one_array_ends,
              a_producer_records_an_event_behind_its_work,
              a_queue_of_the_consumer_waits, NULL);
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
    Suite *suite;
    TCase *tc;
    int failed;

    if (!driver_open())
        return 77;
    suite = suite_create("oneapi");
    tc = suite_case(suite, "events", NULL, tear_down);
    tcase_set_timeout(tc, 60);
    add_tests(tc);
    failed = suite_run_alone(suite);
    if (driver.real) { /* its libraries may crash when the process exits */
        (void)fflush(NULL);
        _exit(failed != 0);
    }
    return failed;
}
