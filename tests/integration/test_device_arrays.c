/* SPDX-License-Identifier: Apache-2.0 */
/* One array of a device, without a stream, in uva_array_wait() and in
 * uva_array_release_after(). */
#include <check.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <string.h>

#include "support/array_fixture.h"
#include "support/check_suite.h"
#include "support/forked_child.h"
#include "uvarrow/uvarrow.h"

static struct array_fixture s;

static void tear_down(void)
{
    array_close(&s);
}

/* ---- waiting ------------------------------------------------------------ */

static bool is_armed(void *ctx)
{
    (void)ctx;
    return s.f.device.mode < SOFT_CALLS || s.f.device.mode == SOFT_COPIES ||
           atomic_load(&s.f.device.arms) > 0;
}

static const enum soft_mode all_modes[] = {SOFT_POLLS, SOFT_POLLS_ON_LOOP,
                                           SOFT_CALLS, SOFT_CALLS_ON_LOOP,
                                           SOFT_FORGETS};

enum { MODES = sizeof(all_modes) / sizeof(all_modes[0]) };

START_TEST(the_answer_comes_when_the_event_is_complete_or_has_failed)
{
    const int code = _i % 2 == 0 ? 0 : EIO;

    array_open(&s, all_modes[_i / 2]);
    ck_assert_int_eq(array_wait(&s, UVA_FOREVER), 0);
    loop_until(&s.f.loop, is_armed, NULL);
    loop_settle(&s.f.loop);
    ck_assert_int_eq(s.f.answers, 0);
    soft_event_end(&s.f.device, 0, code);
    ck_assert_int_eq(array_outcome(&s), code);
    ck_assert_int_eq(s.f.answer.vendor_code, code == 0 ? 0 : 700);
}
END_TEST

START_TEST(without_an_event_or_a_way_to_wait_the_answer_comes_too)
{
    static const struct {
        ArrowDeviceType type;
        bool event;
        int code;
    } cases[] = {{ARROW_DEVICE_EXT_DEV, false, 0},
                 {ARROW_DEVICE_CPU, true, 0}, /* EV-04 */
                 {ARROW_DEVICE_HEXAGON, true, ENOTSUP},
                 {ARROW_DEVICE_METAL, true, ENOTSUP},
                 {77, true, ENOTSUP},
                 {-1, true, ENOTSUP},
                 {77, false, 0}};

    array_open(&s, SOFT_POLLS);
    s.array.device_type = cases[_i].type;
    if (!cases[_i].event)
        s.array.sync_event = NULL;
    ck_assert_int_eq(array_wait(&s, 1000), 0);
    ck_assert_int_eq(s.f.answers, 0); /* not inside the call */
    ck_assert_int_eq(array_outcome(&s), cases[_i].code);
}
END_TEST

START_TEST(a_device_that_is_not_there_is_the_answer)
{
    array_open(&s, SOFT_CALLS);
    s.f.device.load_code = ENODEV;
    ck_assert_int_eq(array_wait(&s, UVA_FOREVER), 0);
    ck_assert_int_eq(array_outcome(&s), ENODEV);
    s.f.device.loads = 0;
}
END_TEST

START_TEST(a_stuck_event_is_answered_in_time)
{
    array_open(&s, all_modes[_i]);
    ck_assert_int_eq(array_wait(&s, _i % 2 * 5), 0);
    ck_assert_int_eq(array_outcome(&s), ETIMEDOUT);
    uva_array_release(&s.array);
    loop_close_runtime(&s.f.loop, 0);
    soft_event_end(&s.f.device, 0, 0);
}
END_TEST

static void end_and_settle(void *code)
{
    soft_event_end(&s.f.device, 0, *(int *)code);
    while (atomic_load(&s.f.device.settles) == 0)
        sched_yield();
}

/* The time limit has passed, and the result is in flight. */
START_TEST(an_event_that_was_complete_in_time_is_so)
{
    int code = _i == 0 ? 0 : EIO;

    array_open(&s, SOFT_CALLS_ON_LOOP);
    ck_assert_int_eq(array_wait(&s, 0), 0);
    while (atomic_load(&s.f.device.arms) == 0)
        sched_yield();
    loop_at_timer(&s.f.loop, end_and_settle, &code);
    ck_assert_int_eq(array_outcome(&s), code);
}
END_TEST

static sem_t device_thread_may;

static void device_thread_hold(void *ctx)
{
    (void)ctx;
    while (sem_wait(&device_thread_may) != 0)
        continue;
    (void)sem_post(&device_thread_may); /* ends the hold */
}

static void set(void *ctx)
{
    *(bool *)ctx = true;
}

/* The time limit has passed and the runtime closes, while the device thread is
 * inside the table. */
START_TEST(a_wait_for_nothing_is_answered_though_the_runtime_closes)
{
    array_open(&s, SOFT_POLLS);
    s.array.sync_event = NULL;
    ck_assert_int_eq(array_wait(&s, UVA_FOREVER), 0);
    loop_close_runtime(&s.f.loop, 0);
    ck_assert_int_eq(s.f.answers, 1);
    ck_assert_int_eq(s.f.answer.code, 0);
}
END_TEST

START_TEST(two_reasons_to_end_a_wait_are_one_answer)
{
    bool gone = false;

    array_open(&s, SOFT_POLLS);
    ck_assert_int_eq(sem_init(&device_thread_may, 0, 0), 0);
    s.f.device.asked = device_thread_hold;
    ck_assert_int_eq(array_wait(&s, 1), 0);
    loop_until_timer(&s.f.loop);
    while (loop_has_timer(&s.f.loop)) /* until the timer has fired */
        (void)uv_run(&s.f.loop.uv, UV_RUN_NOWAIT);
    ck_assert_int_eq(uva_runtime_close(s.f.loop.runtime, 0, set, &gone), 0);
    for (int i = 0; i < 10; i++)
        (void)uv_run(&s.f.loop.uv, UV_RUN_NOWAIT);
    ck_assert_int_eq(s.f.answers, 0);
    ck_assert_int_eq(sem_post(&device_thread_may), 0);
    while (!gone)
        loop_turn(&s.f.loop);
    s.f.loop.runtime = NULL;
    ck_assert_int_eq(s.f.answers, 1);
    ck_assert_int_eq(s.f.answer.code, ETIMEDOUT);
    array_close(&s);
    ck_assert_int_eq(sem_destroy(&device_thread_may), 0);
}
END_TEST

/* The loop has no other handle that would keep it alive. */
START_TEST(a_wait_keeps_the_loop_alive_from_the_call_on)
{
    array_open(&s, all_modes[_i]);
    loop_settle(&s.f.loop);
    uv_unref((uv_handle_t *)&s.f.loop.keep);
    ck_assert_int_eq(uv_loop_alive(&s.f.loop.uv), 0);
    ck_assert_int_eq(array_wait(&s, UVA_FOREVER), 0);
    ck_assert_int_ne(uv_loop_alive(&s.f.loop.uv), 0);
    soft_event_end(&s.f.device, 0, 0);
    (void)uv_run(&s.f.loop.uv, UV_RUN_DEFAULT);
    ck_assert_int_eq(s.f.answers, 1);
    ck_assert_int_eq(s.f.answer.code, 0);
    ck_assert_int_eq(uv_loop_alive(&s.f.loop.uv), 0);
    uv_ref((uv_handle_t *)&s.f.loop.keep);
    array_close(&s);
}
END_TEST

START_TEST(a_close_answers_what_waits)
{
    array_open(&s, all_modes[_i]);
    ck_assert_int_eq(array_wait(&s, UVA_FOREVER), 0);
    loop_until(&s.f.loop, is_armed, NULL);
    loop_close_runtime(&s.f.loop, 0);
    ck_assert_int_eq(s.f.answers, 1);
    ck_assert_int_eq(s.f.answer.code, ECANCELED);
    soft_event_end(&s.f.device, 0, 0);
}
END_TEST

/* Runs while the runtime closes. */
static void on_answer_try_more(void *ctx, struct ArrowDeviceArray *array,
                               const struct uva_error *error)
{
    struct ArrowDeviceArray other;

    soft_device_batch(&s.f.device, &s.f.fake, 1, &other);
    ck_assert_int_eq(uva_array_wait(s.f.loop.runtime, &other, UVA_FOREVER,
                                    array_on_answer, &s),
                     ESHUTDOWN);
    uva_array_release(&other);
    array_on_answer(ctx, array, error);
}

START_TEST(nothing_is_waited_for_that_comes_while_the_runtime_closes)
{
    array_open(&s, SOFT_CALLS);
    ck_assert_int_eq(uva_array_wait(s.f.loop.runtime, &s.array, UVA_FOREVER,
                                    on_answer_try_more, &s),
                     0);
    loop_close_runtime(&s.f.loop, 0);
    ck_assert_int_eq(s.f.answers, 1);
}
END_TEST

static int child_main(void *ctx)
{
    struct uva_device_info info;
    struct uva_error error;
    struct ArrowDeviceArray array;

    (void)ctx;
    soft_device_batch(&s.f.device, &s.f.fake, 1, &array);
    array.sync_event = NULL;
    return array_wait(&s, 0) != EPERM ||
           uva_array_record(s.f.loop.runtime, &array, NULL, &error) != EPERM ||
           uva_device_get_info(s.f.loop.runtime, 1, &info) != EPERM ||
           uva_device_attach(s.f.loop.runtime, ARROW_DEVICE_VULKAN, 1, &s,
                             &error) != EPERM ||
           strcmp(error.message, "a forked child has no devices") != 0;
}

START_TEST(a_forked_child_has_no_devices)
{
    struct uva_device_info info;

    array_open(&s, SOFT_CALLS);
    ck_assert_int_eq(
        uva_device_get_info(s.f.loop.runtime, ARROW_DEVICE_EXT_DEV, &info), 0);
    forked_child_run(child_main, NULL);
}
END_TEST

START_TEST(what_cannot_be_waited_for_is_said_at_once)
{
    struct ArrowDeviceArray released = {0};

    array_open(&s, SOFT_POLLS);
    ck_assert_int_eq(uva_array_wait(NULL, &s.array, 0, array_on_answer, NULL),
                     EINVAL);
    ck_assert_int_eq(
        uva_array_wait(s.f.loop.runtime, NULL, 0, array_on_answer, NULL),
        EINVAL);
    ck_assert_int_eq(
        uva_array_wait(s.f.loop.runtime, &released, 0, array_on_answer, NULL),
        EINVAL);
    ck_assert_int_eq(uva_array_wait(s.f.loop.runtime, &s.array, 0, NULL, NULL),
                     EINVAL);
    ck_assert_int_eq(array_wait(&s, -1), EINVAL);
    ck_assert_int_eq(array_wait(&s, INT64_MIN), EINVAL);
    ck_assert_int_eq(s.f.answers, 0);
    array_close(&s);
}
END_TEST

START_TEST(a_wait_takes_its_memory_before_it_begins)
{
    int code = ENOMEM;
    long n = 1;

    for (; code != 0; n++) {
        array_open(&s, SOFT_CALLS);
        loop_fail(&s.f.loop, n);
        code = array_wait(&s, UVA_FOREVER);
        loop_fail(&s.f.loop, 0);
        ck_assert(code == 0 || code == ENOMEM);
        soft_event_end(&s.f.device, 0, 0);
        if (code == 0)
            ck_assert_int_eq(array_outcome(&s), 0);
        array_close(&s);
    }
    ck_assert_int_gt(n, 2);
}
END_TEST

/* Threads other than the loop thread. */
struct caller {
    pthread_t thread;
    struct ArrowDeviceArray array;
    int code;
};

static void on_caller_answer(void *ctx, struct ArrowDeviceArray *array,
                             const struct uva_error *error)
{
    struct caller *caller = ctx;

    ck_assert_ptr_eq(array, &caller->array);
    fixture_on_answer_release(&s.f, array, error);
}

static void *caller_main(void *arg)
{
    struct caller *caller = arg;

    caller->code = uva_array_wait(s.f.loop.runtime, &caller->array, UVA_FOREVER,
                                  on_caller_answer, caller);
    loop_nudge(&s.f.loop);
    return NULL;
}

START_TEST(many_threads_may_wait_at_once)
{
    enum { CALLERS = 7 };
    struct caller callers[CALLERS] = {0};

    array_open(&s, all_modes[_i]);
    s.wanted = CALLERS;
    for (int k = 0; k < CALLERS; k++) {
        soft_device_batch(&s.f.device, &s.f.fake, k + 1, &callers[k].array);
        ck_assert_int_eq(
            pthread_create(&callers[k].thread, NULL, caller_main, &callers[k]),
            0);
    }
    for (int k = CALLERS; k > 0; k--)
        soft_event_end(&s.f.device, k, 0);
    ck_assert_int_eq(array_outcome(&s), 0);
    for (int k = 0; k < CALLERS; k++) {
        ck_assert_int_eq(pthread_join(callers[k].thread, NULL), 0);
        ck_assert_int_eq(callers[k].code, 0);
    }
}
END_TEST

/* ---- recording ---------------------------------------------------------- */

START_TEST(a_recorded_event_goes_with_its_array)
{
    struct ArrowDeviceArray moved;
    struct uva_error error;
    int device_stream;

    array_open(&s, SOFT_COPIES);
    ck_assert_int_eq(
        uva_array_record(s.f.loop.runtime, &s.array, &device_stream, &error),
        EBUSY);
    s.array.sync_event = NULL;
    atomic_store(&s.f.device.held, true);
    ck_assert_int_eq(
        uva_array_record(s.f.loop.runtime, &s.array, &device_stream, NULL), 0);
    ck_assert_ptr_nonnull(s.array.sync_event);
    ck_assert_int_eq(s.f.device.events_live, 1);
    ck_assert_int_eq(array_wait(&s, UVA_FOREVER), 0);
    loop_settle(&s.f.loop);
    ck_assert_int_eq(s.f.answers, 0);
    atomic_store(&s.f.device.held, false);
    ck_assert_int_eq(array_outcome(&s), 0);
    uva_array_move(&s.array, &moved);
    if (_i == 0)
        uva_array_release(&moved);
    loop_close_runtime(&s.f.loop, 0);
    if (_i == 1) /* the array may outlive every runtime */
        uva_array_release(&moved);
    while (atomic_load(&s.f.device.unloads) == 0)
        sched_yield();
    array_close(&s);
}
END_TEST

START_TEST(an_event_that_cannot_be_recorded_leaves_the_array_as_it_was)
{
    static const int codes[] = {ENOTSUP, ENODEV, EIO, ENOTSUP, EINVAL, EIO};
    void (*release)(struct ArrowArray * array);
    struct uva_error error = {0};

    array_open(&s, _i == 0 ? SOFT_POLLS : SOFT_COPIES);
    s.array.sync_event = NULL;
    release = s.array.array.release;
    s.f.device.load_code = _i == 1 ? ENODEV : 0;
    s.f.device.record_code = _i == 2 ? EIO : _i == 5 ? EAGAIN : 0;
    s.array.device_type = _i == 3 ? ARROW_DEVICE_CPU : ARROW_DEVICE_EXT_DEV;
    ck_assert_int_eq(uva_array_record(_i == 4 ? NULL : s.f.loop.runtime,
                                      &s.array, NULL, &error),
                     codes[_i]);
    ck_assert_int_eq(error.code, codes[_i]);
    ck_assert_int_ne(error.message[0], '\0');
    ck_assert_int_ne(uva_array_record(_i == 4 ? NULL : s.f.loop.runtime,
                                      &s.array, NULL, NULL),
                     0);
    ck_assert(s.array.array.release == release);
    ck_assert_ptr_null(s.array.sync_event);
    atomic_store(&s.f.device.loads, atomic_load(&s.f.device.loads) - (_i == 1));
}
END_TEST

START_TEST(no_event_is_recorded_for_an_array_that_is_not_there)
{
    struct ArrowDeviceArray released = {.device_type = ARROW_DEVICE_EXT_DEV};
    struct uva_error error;

    array_open(&s, SOFT_COPIES);
    ck_assert_int_eq(uva_array_record(s.f.loop.runtime, NULL, NULL, &error),
                     EINVAL);
    ck_assert_int_eq(
        uva_array_record(s.f.loop.runtime, &released, NULL, &error), EINVAL);
    text_contains(error.message, "no live array");
    ck_assert_ptr_null(released.sync_event);
    array_close(&s);
}
END_TEST

/* A device with recorded events that need not be freed. */
static int lasting_record(void *state, const struct uva_device_event *event,
                          void *device_stream, void **event_out,
                          struct uva_error *error)
{
    (void)event;
    (void)device_stream;
    (void)error;
    *event_out = &((struct soft_device *)state)->events[7];
    return 0;
}

START_TEST(an_event_may_be_one_that_is_not_freed)
{
    struct uva_device_ops ops;
    struct uva_error error;

    array_open(&s, SOFT_COPIES);
    ops = *soft_device_ops(&s.f.device);
    ops.record = lasting_record;
    ops.event_free = NULL;
    ck_assert_int_eq(uva_device_register(s.f.loop.runtime, ARROW_DEVICE_EXT_DEV,
                                         &ops, &s.f.device, &error),
                     0);
    s.array.sync_event = NULL;
    if (_i == 0) {
        ck_assert_int_eq(
            uva_array_record(s.f.loop.runtime, &s.array, NULL, &error), 0);
        ck_assert_ptr_eq(s.array.sync_event, &s.f.device.events[7]);
        uva_array_release(&s.array);
    } else {
        uva_array_release_after(s.f.loop.runtime, &s.array, NULL);
        while (atomic_load(&s.f.device.queries) < 3)
            sched_yield();
        ck_assert_int_eq(atomic_load(&s.f.fake.live), 1);
        soft_event_end(&s.f.device, 7, 0);
        while (atomic_load(&s.f.fake.live) != 0)
            sched_yield();
    }
    ck_assert_int_eq(atomic_load(&s.f.fake.live), 0);
    loop_close_runtime(&s.f.loop, 0);
    while (atomic_load(&s.f.device.unloads) == 0)
        sched_yield();
}
END_TEST

static void add_tests(TCase *tc)
{
    suite_add(tc, a_device_that_is_not_there_is_the_answer,
              a_wait_for_nothing_is_answered_though_the_runtime_closes,
              two_reasons_to_end_a_wait_are_one_answer,
              nothing_is_waited_for_that_comes_while_the_runtime_closes,
              a_forked_child_has_no_devices,
              what_cannot_be_waited_for_is_said_at_once,
              a_wait_takes_its_memory_before_it_begins,
              no_event_is_recorded_for_an_array_that_is_not_there, NULL);
    tcase_add_loop_test(
        tc, the_answer_comes_when_the_event_is_complete_or_has_failed, 0,
        2 * MODES);
    tcase_add_loop_test(
        tc, without_an_event_or_a_way_to_wait_the_answer_comes_too, 0, 7);
    suite_add_loops(tc, 0, MODES, a_stuck_event_is_answered_in_time,
                    a_wait_keeps_the_loop_alive_from_the_call_on,
                    a_close_answers_what_waits, many_threads_may_wait_at_once,
                    NULL);
    suite_add_loops(tc, 0, 2, an_event_that_was_complete_in_time_is_so,
                    a_recorded_event_goes_with_its_array,
                    an_event_may_be_one_that_is_not_freed, NULL);
    tcase_add_loop_test(
        tc, an_event_that_cannot_be_recorded_leaves_the_array_as_it_was, 0, 6);
}

int main(void)
{
    TCase *tc = tcase_create("arrays");

    tcase_set_timeout(tc, 60);
    add_tests(tc);
    return suite_main("device arrays", NULL, tear_down, tc, NULL);
}
