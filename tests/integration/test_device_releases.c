/* SPDX-License-Identifier: Apache-2.0 */
/* One array of a device, released after the work that reads it; and the
 * program's settings and queries about devices. */
#include <check.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <string.h>

#include "support/array_fixture.h"
#include "support/check_suite.h"
#include "uvarrow/uvarrow.h"

static struct array_fixture s;

static void tear_down(void)
{
    array_close(&s);
}

/* ---- releasing ---------------------------------------------------------- */

static bool is_released(void *ctx)
{
    (void)ctx;
    return atomic_load(&s.f.fake.live) == 0;
}

static void turn_until_released(void)
{
    while (!is_released(NULL)) {
        loop_settle(&s.f.loop);
        sched_yield();
    }
}

START_TEST(an_array_is_released_when_the_work_that_reads_it_is_over)
{
    array_open(&s, SOFT_COPIES);
    atomic_store(&s.f.device.held, true);
    s.f.device.recorded_code = _i == 0 ? 0 : EIO; /* or the event has failed */
    uva_array_release_after(s.f.loop.runtime, &s.array, NULL);
    ck_assert(s.array.array.release == NULL);
    while (atomic_load(&s.f.device.queries) < 3)
        sched_yield();
    ck_assert_int_ne(atomic_load(&s.f.fake.live), 0);
    if (_i == 2) { /* whatever happens to the runtime */
        loop_close_runtime(&s.f.loop, 0);
        ck_assert_int_ne(atomic_load(&s.f.fake.live), 0);
        atomic_store(&s.f.device.held, false);
        while (atomic_load(&s.f.device.unloads) == 0)
            sched_yield();
    } else {
        atomic_store(&s.f.device.held, false);
        turn_until_released();
    }
    ck_assert_int_eq(s.warnings, 0);
}
END_TEST

START_TEST(an_array_nobody_can_tell_of_is_kept_until_the_workers_end)
{
    static const char *const why[] = {"cannot be recorded", "no soft device",
                                      "cannot record", "nothing is known"};

    array_open(&s, _i == 0 ? SOFT_POLLS : SOFT_COPIES);
    s.f.device.load_code = _i == 1 ? ENODEV : 0;
    s.f.device.record_code = _i == 2 ? EIO : 0;
    s.array.device_type = _i == 3 ? ARROW_DEVICE_METAL : ARROW_DEVICE_EXT_DEV;
    uva_array_release_after(s.f.loop.runtime, &s.array, NULL);
    while (atomic_load(&s.warnings) == 0)
        sched_yield();
    ck_assert_ptr_nonnull(strstr(s.warning, why[_i]));
    ck_assert_ptr_nonnull(strstr(s.warning, "kept until the workers end"));
    loop_settle(&s.f.loop);
    ck_assert_int_ne(atomic_load(&s.f.fake.live), 0);
    loop_close_runtime(&s.f.loop, 0);
    ck_assert_int_eq(atomic_load(&s.f.fake.live), 0);
    if (_i == 1)
        s.f.device.loads = 0;
}
END_TEST

/* Its event uses the device thread, which therefore lasts until the array is
 * released. */
START_TEST(an_array_that_uses_the_service_is_kept_no_longer_than_the_workers)
{
    array_open(&s, SOFT_COPIES);
    s.array.sync_event = NULL;
    ck_assert_int_eq(uva_array_record(s.f.loop.runtime, &s.array, NULL, NULL),
                     0);
    s.f.device.record_code = EIO;
    uva_array_release_after(s.f.loop.runtime, &s.array, NULL);
    while (atomic_load(&s.warnings) == 0)
        sched_yield();
    loop_close_runtime(&s.f.loop, 0);
    while (atomic_load(&s.f.device.unloads) == 0)
        sched_yield();
}
END_TEST

static int cannot_arm(void *state, const struct uva_device_event *event,
                      struct uva_watch *watch, struct uva_error *error)
{
    (void)state, (void)event, (void)watch;
    return uva_error_set(error, EMFILE, "cannot arm");
}

START_TEST(work_goes_on_whose_event_cannot_be_armed)
{
    static struct uva_device_ops ops;
    struct uva_error error;

    array_open(&s, SOFT_COPIES);
    ops = *soft_device_ops(&s.f.device);
    ops.arm = cannot_arm;
    ck_assert_int_eq(uva_device_register(s.f.loop.runtime, ARROW_DEVICE_EXT_DEV,
                                         &ops, &s.f.device, &error),
                     0);
    atomic_store(&s.f.device.held, true);
    uva_array_release_after(s.f.loop.runtime, &s.array, NULL);
    while (atomic_load(&s.f.device.queries) < 3 && !is_released(NULL))
        sched_yield();
    ck_assert(!is_released(NULL));
    atomic_store(&s.f.device.held, false);
    turn_until_released();
    ck_assert_int_eq(s.warnings, 0);
    array_close(&s);
}
END_TEST

/* A table with a load function that takes as long as the test wants. */
static struct {
    sem_t here, go;
} slow;

static int slow_load(void *ctx, const char *path, void **state,
                     struct uva_error *error)
{
    (void)ctx, (void)path, (void)state;
    (void)sem_post(&slow.here);
    while (sem_wait(&slow.go) != 0)
        continue;
    return uva_error_set(error, ENODEV, "slow, and not here");
}

static int never_query(void *state, const struct uva_device_event *event,
                       struct uva_error *error)
{
    (void)state, (void)event;
    return uva_error_set(error, EIO, "it is not here");
}

static const struct uva_device_ops slow_ops = {
    .version = UVA_DEVICE_OPS_VERSION,
    .name = "slow",
    .load = slow_load,
    .query = never_query,
};

static void *slow_main(void *arg)
{
    struct uva_device_info info;

    ck_assert_int_eq(uva_device_get_info(arg, ARROW_DEVICE_METAL, &info), 0);
    ck_assert(!info.available);
    return NULL;
}

static void on_closed(void *ctx)
{
    *(bool *)ctx = true;
}

static bool is_set(void *ctx)
{
    return *(bool *)ctx;
}

/* The program's stream may be destroyed once the runtime has closed. */
START_TEST(a_close_waits_until_the_work_is_recorded)
{
    struct uva_error error;
    pthread_t thread;
    bool closed = false;

    array_open(&s, SOFT_COPIES);
    ck_assert_int_eq(sem_init(&slow.here, 0, 0), 0);
    ck_assert_int_eq(sem_init(&slow.go, 0, 0), 0);
    ck_assert_int_eq(uva_device_register(s.f.loop.runtime, ARROW_DEVICE_METAL,
                                         &slow_ops, NULL, &error),
                     0);
    ck_assert_int_eq(pthread_create(&thread, NULL, slow_main, s.f.loop.runtime),
                     0);
    while (sem_wait(&slow.here) != 0)
        continue;
    atomic_store(&s.f.device.held, true);
    uva_array_release_after(s.f.loop.runtime, &s.array, NULL);
    ck_assert_int_eq(
        uva_runtime_close(s.f.loop.runtime, UVA_FOREVER, on_closed, &closed),
        0);
    for (int i = 0; i < 100; i++)
        (void)uv_run(&s.f.loop.uv, UV_RUN_NOWAIT);
    ck_assert(!closed);
    ck_assert_int_eq(s.f.device.events_live, 0);
    (void)sem_post(&slow.go);
    loop_until(&s.f.loop, is_set, &closed);
    s.f.loop.runtime = NULL;
    ck_assert_int_eq(s.f.device.events_live, 1);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    atomic_store(&s.f.device.held, false);
    while (atomic_load(&s.f.device.unloads) == 0)
        sched_yield();
    array_close(&s);
    (void)sem_destroy(&slow.here);
    (void)sem_destroy(&slow.go);
}
END_TEST

/* ---- the close ----------------------------------------------------------- */

/* Otherwise a process that exits next would exit while a driver is called. */
START_TEST(a_close_waits_for_what_the_device_thread_has_to_do)
{
    for (int round = 0; round < 20; round++) {
        array_open(&s, SOFT_COPIES);
        s.array.sync_event = NULL;
        ck_assert_int_eq(
            uva_array_record(s.f.loop.runtime, &s.array, NULL, NULL), 0);
        uva_array_release(&s.array); /* the device thread frees the event */
        loop_close_runtime(&s.f.loop, 0);
        ck_assert_int_eq(atomic_load(&s.f.device.events_live), 0);
        ck_assert_int_eq(atomic_load(&s.f.device.unloads), 1);
        array_close(&s);
    }
}
END_TEST

static void *let_go_main(void *arg)
{
    (void)arg;
    for (int i = 0; i < 10; i++) /* a close waits for no more than a second */
        (void)sched_yield();
    atomic_store(&s.f.device.held, false);
    return NULL;
}

START_TEST(a_close_waits_for_an_array_that_work_still_reads)
{
    pthread_t thread;

    array_open(&s, SOFT_COPIES);
    atomic_store(&s.f.device.held, true);
    uva_array_release_after(s.f.loop.runtime, &s.array, NULL);
    while (atomic_load(&s.f.device.queries) == 0)
        (void)sched_yield();
    ck_assert_int_eq(pthread_create(&thread, NULL, let_go_main, NULL), 0);
    loop_close_runtime(&s.f.loop, 0);
    ck_assert_int_eq(atomic_load(&s.f.fake.live), 0);
    ck_assert_int_eq(atomic_load(&s.f.device.unloads), 1);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
}
END_TEST

START_TEST(an_array_of_the_host_is_released_at_once)
{
    array_open(&s, SOFT_COPIES);
    s.array.device_type = ARROW_DEVICE_CPU;
    uva_array_release_after(s.f.loop.runtime, &s.array, NULL);
    ck_assert_int_eq(atomic_load(&s.f.fake.live), 0);
    uva_array_release_after(s.f.loop.runtime, &s.array,
                            NULL); /* it was released already */
    uva_array_release_after(s.f.loop.runtime, NULL, NULL);
}
END_TEST

/* ---- settings and queries ----------------------------------------------- */

START_TEST(a_program_asks_what_there_is)
{
    struct uva_device_info info;

    array_open(&s, SOFT_CALLS);
    ck_assert_int_eq(
        uva_device_get_info(s.f.loop.runtime, ARROW_DEVICE_EXT_DEV, &info), 0);
    ck_assert(info.available && info.host_readable && !info.can_copy);
    ck_assert_str_eq(info.name, "soft");
    ck_assert_str_eq(info.mechanism, "callback");
    ck_assert_int_eq(uva_device_get_info(s.f.loop.runtime, 5, &info), ENOENT);
    ck_assert_int_eq(uva_device_get_info(s.f.loop.runtime, 1, NULL), EINVAL);
    ck_assert_int_eq(uva_device_get_info(NULL, 1, &info), EINVAL);
}
END_TEST

/* Queries its own device type in the middle of its load. */
static int curious_load(void *ctx, const char *path, void **state,
                        struct uva_error *error)
{
    struct uva_device_info info;

    (void)path, (void)error;
    ck_assert_int_eq(
        uva_device_get_info(s.f.loop.runtime, ARROW_DEVICE_METAL, &info), 0);
    ck_assert(!info.available);
    ck_assert_ptr_nonnull(strstr(info.library, "is being loaded"));
    *state = ctx;
    return 0;
}

static const struct uva_device_ops curious_ops = {
    .version = UVA_DEVICE_OPS_VERSION,
    .name = "curious",
    .load = curious_load,
    .query = never_query,
};

static void ask_about_another(void *ctx)
{
    struct uva_device_info info;

    (void)ctx;
    ck_assert_int_eq(
        uva_device_get_info(s.f.loop.runtime, ARROW_DEVICE_METAL, &info), 0);
    ck_assert(info.available);
}

START_TEST(a_table_may_ask_what_there_is)
{
    struct uva_error error;

    array_open(&s, SOFT_POLLS);
    ck_assert_int_eq(uva_device_register(s.f.loop.runtime, ARROW_DEVICE_METAL,
                                         &curious_ops, &s, &error),
                     0);
    s.f.device.asked = ask_about_another; /* called on the device thread */
    soft_event_end(&s.f.device, 0, 0);
    ck_assert_int_eq(array_wait(&s, UVA_FOREVER), 0);
    ck_assert_int_eq(array_outcome(&s), 0);
}
END_TEST

START_TEST(a_program_brings_in_handles_and_takes_them_away)
{
    const struct uva_vulkan_device native = {&s, &s};
    struct uva_error error;

    array_open(&s, SOFT_CALLS);
    ck_assert_int_eq(uva_device_attach(s.f.loop.runtime, ARROW_DEVICE_VULKAN, 3,
                                       &native, &error),
                     0);
    ck_assert_int_eq(uva_device_attach(s.f.loop.runtime, ARROW_DEVICE_VULKAN, 3,
                                       &native, &error),
                     EBUSY);
    ck_assert_int_eq(uva_device_attach(s.f.loop.runtime, ARROW_DEVICE_VULKAN, 4,
                                       NULL, &error),
                     EINVAL);
    ck_assert_int_eq(uva_device_attach(s.f.loop.runtime, ARROW_DEVICE_CUDA, 4,
                                       &native, &error),
                     ENOTSUP);
    ck_assert_int_eq(
        uva_device_attach(NULL, ARROW_DEVICE_VULKAN, 4, &native, &error),
        EINVAL);
    ck_assert_int_eq(
        uva_device_detach(s.f.loop.runtime, ARROW_DEVICE_VULKAN, 4), ENOENT);
    ck_assert_int_eq(
        uva_device_detach(s.f.loop.runtime, ARROW_DEVICE_VULKAN, 3), 0);
    ck_assert_int_eq(
        uva_device_detach(s.f.loop.runtime, ARROW_DEVICE_VULKAN, 3), ENOENT);
    ck_assert_int_eq(uva_device_detach(NULL, ARROW_DEVICE_VULKAN, 3), EINVAL);
    ck_assert_int_eq(
        uva_device_register(NULL, ARROW_DEVICE_EXT_DEV, NULL, NULL, &error),
        EINVAL);
}
END_TEST

START_TEST(a_device_that_is_taken_away_ends_the_waits_for_it)
{
    int event = 0;

    array_open(&s, SOFT_CALLS);
    s.array.device_type = ARROW_DEVICE_VULKAN; /* no device was attached */
    s.array.sync_event = &event;
    ck_assert_int_eq(array_wait(&s, UVA_FOREVER), 0);
    ck_assert_int_eq(array_outcome(&s), ENODEV);
    text_contains(s.f.answer.message, "uva_device_attach()");
}
END_TEST

static void add_tests(TCase *tc)
{
    suite_add(tc,
              an_array_that_uses_the_service_is_kept_no_longer_than_the_workers,
              work_goes_on_whose_event_cannot_be_armed,
              a_close_waits_until_the_work_is_recorded,
              a_close_waits_for_what_the_device_thread_has_to_do,
              a_close_waits_for_an_array_that_work_still_reads,
              an_array_of_the_host_is_released_at_once,
              a_program_asks_what_there_is, a_table_may_ask_what_there_is,
              a_program_brings_in_handles_and_takes_them_away,
              a_device_that_is_taken_away_ends_the_waits_for_it, NULL);
    tcase_add_loop_test(
        tc, an_array_is_released_when_the_work_that_reads_it_is_over, 0, 3);
    tcase_add_loop_test(
        tc, an_array_nobody_can_tell_of_is_kept_until_the_workers_end, 0, 4);
}

int main(void)
{
    TCase *tc = tcase_create("releases");

    tcase_set_timeout(tc, 60);
    add_tests(tc);
    return suite_main("device releases", NULL, tear_down, tc, NULL);
}
