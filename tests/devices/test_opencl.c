/* SPDX-License-Identifier: Apache-2.0 */
/* Events of a real OpenCL platform (PoCL, or the installed one): user events
 * that the test completes, markers after them, failures, kernels. Skipped
 * without a platform. */
#include <check.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "devices/opencl_device.h"
#include "support/check_suite.h"
#include "support/fixture.h"

enum { SOME = 64, MOST = 2048 };

static struct fixture f;

static struct {
    struct opencl_device device;
    cl_event gates[MOST];  /* user events */
    cl_event events[MOST]; /* events of batches */
    struct ArrowDeviceArray arrays[MOST];
    bool early; /* a batch was delivered before its event was complete */
} cl;

/* ---- the fixture -------------------------------------------------------- */

static void set_up_on(int64_t batches, struct uva_workers *workers)
{
    memset(&cl, 0, sizeof(cl));
    opencl_device_open(&cl.device);
    fixture_open_with(&f, batches,
                      &(struct uva_runtime_options){.workers = workers});
}

static void set_up(int64_t batches)
{
    set_up_on(batches, NULL);
}

static void tear_down(void)
{
    if (!f.open)
        return;
    fixture_close_now(&f);
    ck_assert(!cl.early);
    for (int k = 0; k < MOST; k++) {
        if (cl.events[k] != NULL)
            clReleaseEvent(cl.events[k]);
        if (cl.gates[k] != NULL)
            clReleaseEvent(cl.gates[k]);
    }
    opencl_device_close(&cl.device);
}

/* Batch k carries a user event, or a marker after one. */
static void make_arrays(int count, bool markers)
{
    cl_int code;

    for (int k = 0; k < count; k++) {
        cl.gates[k] = opencl_device_gate(&cl.device);
        if (markers)
            code = clEnqueueMarkerWithWaitList(cl.device.queue, 1, &cl.gates[k],
                                               &cl.events[k]);
        else
            code = clRetainEvent(cl.events[k] = cl.gates[k]);
        ck_assert_int_eq(code, CL_SUCCESS);
        /* rusticl takes commands flushed together for one command */
        ck_assert_int_eq(clFlush(cl.device.queue), CL_SUCCESS);
        fake_source_batch(&f.fake, k, &cl.arrays[k]);
        cl.arrays[k].device_type = ARROW_DEVICE_OPENCL;
        cl.arrays[k].sync_event = &cl.events[k];
    }
}

/* ---- streams ------------------------------------------------------------ */

static void on_batch(struct recording_consumer *c, struct uva_batch *batch)
{
    cl_int status = 1;

    (void)batch;
    clGetEventInfo(cl.events[c->taken], CL_EVENT_COMMAND_EXECUTION_STATUS,
                   sizeof(status), &status, NULL);
    cl.early = cl.early || status != CL_COMPLETE;
}

static void start_with(int count, const struct uva_ready *options)
{
    fixture_ready(&f, fixture_arrays(&f, cl.arrays, count), options);
    f.got.on_batch = on_batch;
    fixture_start(&f);
    loop_settle(&f.loop);
}

static void start(int count)
{
    start_with(count, NULL);
}

START_TEST(batches_come_when_their_events_are_complete)
{
    const bool markers = _i == 1;

    set_up(SOME);
    make_arrays(SOME, markers);
    start(SOME);
    ck_assert_int_eq(f.got.batches, 0);
    for (int k = SOME - 1; k >= 0; k--)
        ck_assert_int_eq(clSetUserEventStatus(cl.gates[k], CL_COMPLETE), 0);
    fixture_await(&f);
    ck_assert_int_eq(f.got.outcome.end, UVA_END_COMPLETE);
    ck_assert_int_eq(f.got.batches, SOME);
}
END_TEST

/* All events are waited for at once, and complete in an arbitrary order. */
START_TEST(thousands_of_events_are_waited_for_at_once)
{

    set_up(MOST);
    make_arrays(MOST, _i == 1);
    start_with(MOST, &(struct uva_ready){.window = {.batches = MOST}});
    ck_assert_int_eq(f.got.batches, 0);
    for (int k = 0; k < MOST; k++)
        clSetUserEventStatus(cl.gates[k * 1031 % MOST], CL_COMPLETE);
    fixture_await(&f);
    ck_assert_int_eq(f.got.outcome.end, UVA_END_COMPLETE);
    ck_assert_int_eq(f.got.batches, MOST);
}
END_TEST

START_TEST(a_failed_event_is_told_with_the_code_of_the_platform)
{
    const bool markers = _i == 1;

    set_up(4);
    make_arrays(4, markers);
    for (int k = 0; k < 2; k++)
        clSetUserEventStatus(cl.gates[k], CL_COMPLETE);
    start(4);
    clSetUserEventStatus(cl.gates[2], -5);
    fixture_await(&f);
    recording_ended(&f.got, UVA_END_FAILED, EIO, "");
    ck_assert_str_eq(f.got.outcome.error.vendor, "opencl");
    ck_assert_int_lt(f.got.outcome.error.vendor_code, 0);
    ck_assert_int_eq(f.got.batches, 2);
    clSetUserEventStatus(cl.gates[3], CL_COMPLETE);
}
END_TEST

/* ---- one array ---------------------------------------------------------- */

START_TEST(one_array_is_waited_for)
{
    set_up(1);
    make_arrays(1, false);
    fixture_wait(&f, &cl.arrays[0], UVA_FOREVER);
    loop_settle(&f.loop);
    ck_assert_int_eq(f.answers, 0);
    clSetUserEventStatus(cl.gates[0], CL_COMPLETE);
    (void)fixture_await_answers(&f, 1);
    ck_assert_int_eq(f.answers, 1);
    ck_assert_int_eq(f.answer.code, 0);
}
END_TEST

static cl_uint event_uses(cl_event event)
{
    cl_uint uses = 0;

    clGetEventInfo(event, CL_EVENT_REFERENCE_COUNT, sizeof(uses), &uses, NULL);
    return uses;
}

/* PoCL does not call back in this case. */
START_TEST(a_failed_event_is_found_out_and_let_go_of_without_a_callback)
{
    const bool marker = _i == 1;
    cl_uint before;

    set_up(1);
    make_arrays(1, marker);
    before = event_uses(cl.events[0]);
    fixture_wait(&f, &cl.arrays[0], UVA_FOREVER);
    while (event_uses(cl.events[0]) == before) /* until the event is armed */
        sched_yield();
    clSetUserEventStatus(cl.gates[0], -7);
    (void)fixture_await_answers(&f, 1);
    ck_assert_int_eq(f.answers, 1);
    ck_assert_int_eq(f.answer.code, EIO);
    ck_assert_str_eq(f.answer.vendor, "opencl");
    ck_assert_int_lt(f.answer.vendor_code, 0);
    loop_close_runtime(&f.loop, 0);
    while (event_uses(cl.events[0]) > before)
        sched_yield();
}
END_TEST

/* The event of an array may be waited for any number of times (EV-22): by one
 * device thread, if the runtimes share the workers, or by two. */
START_TEST(two_runtimes_wait_for_the_same_events)
{
    static struct fixture other;
    static struct ArrowDeviceArray arrays[SOME];
    struct fixture *const both[] = {&f, &other};
    struct uva_runtime_options options = {0};

    if (_i >= 2)
        ck_assert_int_eq(uva_workers_new(NULL, &options.workers, NULL), 0);
    set_up_on(SOME, options.workers);
    fixture_open_with(&other, SOME, &options);
    make_arrays(SOME, _i % 2 == 1);
    for (int k = 0; k < SOME; k++) {
        fake_source_batch(&other.fake, k, &arrays[k]);
        arrays[k].device_type = ARROW_DEVICE_OPENCL;
        arrays[k].sync_event = &cl.events[k];
    }
    f.stream = fixture_arrays(&f, cl.arrays, SOME);
    other.stream = fixture_arrays(&other, arrays, SOME);
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(uva_stream_ready(both[i]->stream, NULL), 0);
        both[i]->got.on_batch = on_batch;
        fixture_start(both[i]);
    }
    loop_settle(&f.loop);
    loop_settle(&other.loop);
    for (int k = 0; k < SOME; k++)
        clSetUserEventStatus(cl.gates[k], CL_COMPLETE);
    fixture_await(&other);
    fixture_await(&f);
    ck_assert_int_eq(f.got.batches + other.got.batches, 2 * SOME);
    fixture_close_now(&other);
    tear_down();
    if (options.workers != NULL)
        uva_workers_release(options.workers);
}
END_TEST

START_TEST(patience_with_one_array_ends)
{
    set_up(1);
    make_arrays(1, false);
    fixture_wait(&f, &cl.arrays[0], 1);
    (void)fixture_await_answers(&f, 1);
    ck_assert_int_eq(f.answer.code, ETIMEDOUT);
    clSetUserEventStatus(cl.gates[0], CL_COMPLETE);
}
END_TEST

static void *finish_main(void *queue)
{
    ck_assert_int_eq(clFinish(queue), CL_SUCCESS);
    return NULL;
}

/* The loop's thread asks the platform for the state of an event. */
START_TEST(an_event_is_answered_while_another_thread_waits_in_the_platform)
{
    pthread_t thread;
    cl_event marker;

    set_up(1);
    make_arrays(1, false);
    cl.gates[1] = opencl_device_gate(&cl.device);
    ck_assert_int_eq(
        clEnqueueMarkerWithWaitList(cl.device.queue, 1, &cl.gates[1], &marker),
        CL_SUCCESS);
    ck_assert_int_eq(
        pthread_create(&thread, NULL, finish_main, cl.device.queue), 0);
    fixture_wait(&f, &cl.arrays[0], UVA_FOREVER);
    loop_settle(&f.loop);
    clSetUserEventStatus(cl.gates[0], CL_COMPLETE);
    (void)fixture_await_answers(&f, 1);
    ck_assert_int_eq(f.answer.code, 0);
    clSetUserEventStatus(cl.gates[1], CL_COMPLETE);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    clReleaseEvent(marker);
}
END_TEST

START_TEST(a_producer_records_an_event_behind_its_work)
{
    struct ArrowDeviceArray array;
    struct uva_error error;
    cl_event barrier;

    set_up(1);
    make_arrays(1, false);
    uva_array_release(&cl.arrays[0]);
    ck_assert_int_eq(clEnqueueBarrierWithWaitList(cl.device.queue, 1,
                                                  &cl.gates[0], &barrier),
                     0);
    fake_source_batch(&f.fake, 0, &array);
    array.device_type = ARROW_DEVICE_OPENCL;
    ck_assert_int_eq(
        uva_array_record(f.loop.runtime, &array, cl.device.queue, &error), 0);
    ck_assert_ptr_nonnull(array.sync_event);
    ck_assert_int_eq(
        uva_array_record(f.loop.runtime, &array, cl.device.queue, &error),
        EBUSY);
    fixture_wait(&f, &array, UVA_FOREVER);
    loop_settle(&f.loop);
    ck_assert_int_eq(f.answers, 0);
    clSetUserEventStatus(cl.gates[0], CL_COMPLETE);
    (void)fixture_await_answers(&f, 1);
    ck_assert_int_eq(f.answer.code, 0);
    clReleaseEvent(barrier);
}
END_TEST

/* A default stream is CUDA's and HIP's. */
START_TEST(there_is_no_queue_without_a_handle)
{
    const struct uva_ready options = {.wait = UVA_WAIT_STREAM};
    struct uva_error error;

    set_up(1);
    make_arrays(1, false);
    cl.arrays[0].sync_event = NULL;
    ck_assert_int_eq(
        uva_array_record(f.loop.runtime, &cl.arrays[0], NULL, &error), EINVAL);
    text_contains(error.message, "cl_command_queue");
    cl.arrays[0].sync_event = &cl.events[0];
    start_with(1, &options);
    fixture_await(&f);
    ck_assert_int_eq(f.got.outcome.error.code, EINVAL);
    text_contains(f.got.outcome.error.message, "cl_command_queue");
    clSetUserEventStatus(cl.gates[0], CL_COMPLETE);
}
END_TEST

START_TEST(an_array_is_released_behind_the_work_that_reads_it)
{
    struct ArrowDeviceArray array;
    cl_event barrier;

    set_up(1);
    make_arrays(1, false);
    uva_array_release(&cl.arrays[0]);
    clEnqueueBarrierWithWaitList(cl.device.queue, 1, &cl.gates[0], &barrier);
    fake_source_batch(&f.fake, 0, &array);
    array.device_type = ARROW_DEVICE_OPENCL;
    uva_array_release_after(f.loop.runtime, &array, cl.device.queue);
    ck_assert(!uva_array_is_live(&array));
    loop_settle(&f.loop);
    ck_assert_int_eq(atomic_load(&f.fake.live), 1);
    loop_close_runtime(&f.loop, 0);
    ck_assert_int_eq(atomic_load(&f.fake.live), 1);
    clSetUserEventStatus(cl.gates[0], CL_COMPLETE);
    while (atomic_load(&f.fake.live) != 0)
        sched_yield();
    clReleaseEvent(barrier);
}
END_TEST

/* ---- copies ------------------------------------------------------------- */

static void on_copied(struct recording_consumer *c, struct uva_batch *batch)
{
    const struct ArrowArray *column = batch->data.array.children[0];
    const int64_t *values = column->buffers[1];

    ck_assert_int_eq(batch->data.device_type, ARROW_DEVICE_CPU);
    ck_assert_ptr_null(batch->data.sync_event);
    for (int64_t i = 0; i < column->length; i++)
        ck_assert_int_eq(values[i], c->taken * 10 + i);
}

START_TEST(batches_go_to_the_device_and_come_back)
{
    struct uva_opencl_device native = {.svm = _i % 2 == 1};
    struct uva_transfer there = {.device_type = ARROW_DEVICE_OPENCL,
                                 .device_id = 3};
    struct uva_transfer back = {.device_type = ARROW_DEVICE_CPU};
    struct ArrowDeviceArrayStream source;
    struct uva_error error;

    if (!opencl_device_may(native.svm))
        return;
    set_up(40);
    native.context = cl.device.context;
    if (_i < 2)
        native.queue = cl.device.queue;
    else
        there.device_stream = back.device_stream = cl.device.queue;
    ck_assert_int_eq(uva_device_attach(f.loop.runtime, ARROW_DEVICE_OPENCL, 3,
                                       &native, &error),
                     0);
    ck_assert_int_eq(uva_device_attach(f.loop.runtime, ARROW_DEVICE_OPENCL, 3,
                                       &native, &error),
                     EBUSY);
    fake_source_device(&f.fake, ARROW_DEVICE_CPU, &source);
    f.stream = uva_stream_from_device_stream(f.loop.runtime, &source, NULL);
    ck_assert_int_eq(uva_stream_transfer(f.stream, &there), 0);
    ck_assert_int_eq(uva_stream_transfer(f.stream, &back), 0);
    f.got.on_batch = on_copied;
    fixture_run(&f);
    ck_assert_msg(f.got.outcome.end == UVA_END_COMPLETE, "%s",
                  f.got.outcome.error.message);
    ck_assert_int_eq(f.got.batches, 40);
    loop_close_runtime(&f.loop, 0);
}
END_TEST

int main(void)
{
    Suite *suite;
    cl_device_id device;
    TCase *tc;

    if (!opencl_device_find(&device))
        return 77;
    suite = suite_create("opencl");
    tc = suite_case(suite, "platform", NULL, tear_down);
    tcase_set_timeout(tc, 60);
    suite_add_loops(tc, 0, 2, batches_come_when_their_events_are_complete,
                    a_failed_event_is_told_with_the_code_of_the_platform,
                    thousands_of_events_are_waited_for_at_once, NULL);
    tcase_add_test(tc, one_array_is_waited_for);
    tcase_add_loop_test(
        tc, a_failed_event_is_found_out_and_let_go_of_without_a_callback, 0, 2);
    tcase_add_loop_test(tc, two_runtimes_wait_for_the_same_events, 0, 4);
    suite_add(tc, patience_with_one_array_ends,
              an_event_is_answered_while_another_thread_waits_in_the_platform,
              a_producer_records_an_event_behind_its_work,
              there_is_no_queue_without_a_handle,
              an_array_is_released_behind_the_work_that_reads_it, NULL);
    tcase_add_loop_test(tc, batches_go_to_the_device_and_come_back, 0, 4);
    return suite_run_alone(suite);
}
