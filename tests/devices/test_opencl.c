/* SPDX-License-Identifier: Apache-2.0 */
/* Events of a real OpenCL platform (PoCL, or the installed one): user events
 * that the test completes, markers after them, failures, kernels. Skipped
 * without a platform. */
#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "devices/opencl_device.h"
#include "support/fake_source.h"
#include "support/loop_rig.h"
#include "uvarrow/uvarrow.h"

enum { SOME = 64, MOST = 2048 };

struct scene {
    struct loop_rig rig;
    struct fake_source fake;
    struct opencl_device cl;
    cl_event gates[MOST];  /* user events */
    cl_event events[MOST]; /* events of batches */
    struct ArrowDeviceArray arrays[MOST];
    int64_t batches;
    bool early; /* a batch arrived before its event was complete */
    bool done;
    struct uva_outcome outcome;
    int answers; /* results of uva_array_wait() */
    struct uva_error answer;
};

/* ---- the scene ---------------------------------------------------------- */

static void scene_open_on(struct scene *s, int64_t batches,
                          struct uva_workers *workers)
{
    memset(s, 0, sizeof(*s));
    opencl_device_open(&s->cl);
    loop_rig_open_with(&s->rig,
                       &(struct uva_runtime_options){.workers = workers});
    fake_source_init(&s->fake, batches);
}

static void scene_open(struct scene *s, int64_t batches)
{
    scene_open_on(s, batches, NULL);
}

static void scene_close(struct scene *s)
{
    loop_rig_close(&s->rig);
    ck_assert(!s->early);
    ck_assert_int_eq(atomic_load(&s->fake.live), 0);
    fake_source_fini(&s->fake);
    for (int k = 0; k < MOST; k++) {
        if (s->events[k] != NULL)
            clReleaseEvent(s->events[k]);
        if (s->gates[k] != NULL)
            clReleaseEvent(s->gates[k]);
    }
    opencl_device_close(&s->cl);
}

/* Gives batch k a user event, or a marker after one. */
static void scene_arrays(struct scene *s, int count, bool markers)
{
    cl_int code;

    for (int k = 0; k < count; k++) {
        s->gates[k] = opencl_device_gate(&s->cl);
        if (markers)
            code = clEnqueueMarkerWithWaitList(s->cl.queue, 1, &s->gates[k],
                                               &s->events[k]);
        else
            code = clRetainEvent(s->events[k] = s->gates[k]);
        ck_assert_int_eq(code, CL_SUCCESS);
        fake_source_batch(&s->fake, k, &s->arrays[k]);
        s->arrays[k].device_type = ARROW_DEVICE_OPENCL;
        s->arrays[k].sync_event = &s->events[k];
    }
}

/* ---- streams ------------------------------------------------------------ */

static int on_batch(void *ctx, struct uva_batch *batch)
{
    struct scene *s = ctx;
    cl_int status = 1;

    (void)batch;
    clGetEventInfo(s->events[s->batches++], CL_EVENT_COMMAND_EXECUTION_STATUS,
                   sizeof(status), &status, NULL);
    s->early = s->early || status != CL_COMPLETE;
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

static struct uva_stream *scene_start_with(struct scene *s, int count,
                                           const struct uva_ready *how)
{
    const struct uva_consumer consumer = {
        .on_batch = on_batch, .on_done = on_done, .ctx = s};
    struct ArrowSchema schema;
    struct uva_stream *stream;

    fake_source_schema(&s->fake, &schema);
    stream = uva_stream_from_arrays(s->rig.runtime, &schema, s->arrays,
                                    (size_t)count);
    ck_assert_int_eq(uva_stream_ready(stream, how), 0);
    ck_assert_int_eq(uva_stream_for_each(stream, &consumer, NULL), 0);
    return stream;
}

static struct uva_stream *scene_start(struct scene *s, int count)
{
    return scene_start_with(s, count, NULL);
}

START_TEST(batches_come_when_their_events_are_complete)
{
    const bool markers = _i == 1;
    struct uva_stream *stream;
    struct scene s;

    scene_open(&s, SOME);
    scene_arrays(&s, SOME, markers);
    stream = scene_start(&s, SOME);
    loop_rig_settle(&s.rig);
    ck_assert_int_eq(s.batches, 0);
    for (int k = SOME - 1; k >= 0; k--)
        ck_assert_int_eq(clSetUserEventStatus(s.gates[k], CL_COMPLETE), 0);
    loop_rig_until(&s.rig, is_done, &s);
    ck_assert_int_eq(s.outcome.end, UVA_END_COMPLETE);
    ck_assert_int_eq(s.batches, SOME);
    uva_stream_release(stream);
    scene_close(&s);
}
END_TEST

/* All of them wait at once, and complete in an arbitrary order. */
START_TEST(thousands_of_events_are_waited_for_at_once)
{
    struct uva_stream *stream;
    struct scene s;

    scene_open(&s, MOST);
    scene_arrays(&s, MOST, _i == 1);
    stream = scene_start_with(&s, MOST,
                              &(struct uva_ready){.window = {.batches = MOST}});
    loop_rig_settle(&s.rig);
    ck_assert_int_eq(s.batches, 0);
    for (int k = 0; k < MOST; k++)
        clSetUserEventStatus(s.gates[k * 1031 % MOST], CL_COMPLETE);
    loop_rig_until(&s.rig, is_done, &s);
    ck_assert_int_eq(s.outcome.end, UVA_END_COMPLETE);
    ck_assert_int_eq(s.batches, MOST);
    uva_stream_release(stream);
    scene_close(&s);
}
END_TEST

START_TEST(a_failed_event_is_told_with_the_code_of_the_platform)
{
    const bool markers = _i == 1;
    struct uva_stream *stream;
    struct scene s;

    scene_open(&s, 4);
    scene_arrays(&s, 4, markers);
    for (int k = 0; k < 2; k++)
        clSetUserEventStatus(s.gates[k], CL_COMPLETE);
    stream = scene_start(&s, 4);
    loop_rig_settle(&s.rig);
    clSetUserEventStatus(s.gates[2], -5);
    loop_rig_until(&s.rig, is_done, &s);
    ck_assert_int_eq(s.outcome.end, UVA_END_FAILED);
    ck_assert_int_eq(s.outcome.error.code, EIO);
    ck_assert_str_eq(s.outcome.error.vendor, "opencl");
    ck_assert_int_lt(s.outcome.error.vendor_code, 0);
    ck_assert_int_eq(s.batches, 2);
    clSetUserEventStatus(s.gates[3], CL_COMPLETE);
    uva_stream_release(stream);
    scene_close(&s);
}
END_TEST

/* ---- one array ---------------------------------------------------------- */

static void on_answer(void *ctx, struct ArrowDeviceArray *array,
                      const struct uva_error *error)
{
    struct scene *s = ctx;

    s->answers++;
    s->answer = *error;
    uva_array_release(array);
    s->done = true;
}

START_TEST(one_array_is_waited_for)
{
    struct scene s;

    scene_open(&s, 1);
    scene_arrays(&s, 1, false);
    ck_assert_int_eq(
        uva_array_wait(s.rig.runtime, &s.arrays[0], UVA_FOREVER, on_answer, &s),
        0);
    loop_rig_settle(&s.rig);
    ck_assert_int_eq(s.answers, 0);
    clSetUserEventStatus(s.gates[0], CL_COMPLETE);
    loop_rig_until(&s.rig, is_done, &s);
    ck_assert_int_eq(s.answers, 1);
    ck_assert_int_eq(s.answer.code, 0);
    scene_close(&s);
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
    struct scene s;
    cl_uint before;

    scene_open(&s, 1);
    scene_arrays(&s, 1, marker);
    before = event_uses(s.events[0]);
    ck_assert_int_eq(
        uva_array_wait(s.rig.runtime, &s.arrays[0], UVA_FOREVER, on_answer, &s),
        0);
    while (event_uses(s.events[0]) == before) /* until it is armed */
        sched_yield();
    clSetUserEventStatus(s.gates[0], -7);
    loop_rig_until(&s.rig, is_done, &s);
    ck_assert_int_eq(s.answers, 1);
    ck_assert_int_eq(s.answer.code, EIO);
    ck_assert_str_eq(s.answer.vendor, "opencl");
    ck_assert_int_lt(s.answer.vendor_code, 0);
    loop_rig_close_runtime(&s.rig, 0);
    while (event_uses(s.events[0]) > before)
        sched_yield();
    scene_close(&s);
}
END_TEST

/* The event of an array may be waited for any number of times (EV-22): by one
 * device thread, if the runtimes share the workers, or by two. */
START_TEST(two_runtimes_wait_for_the_same_events)
{
    struct uva_workers *workers = NULL;
    struct uva_stream *streams[2];
    struct scene s, other;

    if (_i >= 2)
        ck_assert_int_eq(uva_workers_new(NULL, &workers, NULL), 0);
    scene_open_on(&s, SOME, workers);
    scene_open_on(&other, SOME, workers);
    scene_arrays(&s, SOME, _i % 2 == 1);
    for (int k = 0; k < SOME; k++) {
        clRetainEvent(other.events[k] = s.events[k]);
        fake_source_batch(&other.fake, k, &other.arrays[k]);
        other.arrays[k].device_type = ARROW_DEVICE_OPENCL;
        other.arrays[k].sync_event = &other.events[k];
    }
    streams[0] = scene_start(&s, SOME);
    streams[1] = scene_start(&other, SOME);
    loop_rig_settle(&s.rig);
    loop_rig_settle(&other.rig);
    for (int k = 0; k < SOME; k++)
        clSetUserEventStatus(s.gates[k], CL_COMPLETE);
    loop_rig_until(&other.rig, is_done, &other);
    loop_rig_until(&s.rig, is_done, &s);
    ck_assert_int_eq(s.batches + other.batches, 2 * SOME);
    uva_stream_release(streams[0]);
    uva_stream_release(streams[1]);
    scene_close(&other);
    scene_close(&s);
    if (workers != NULL)
        uva_workers_free(workers);
}
END_TEST

START_TEST(patience_with_one_array_ends)
{
    struct scene s;

    scene_open(&s, 1);
    scene_arrays(&s, 1, false);
    ck_assert_int_eq(
        uva_array_wait(s.rig.runtime, &s.arrays[0], 1, on_answer, &s), 0);
    loop_rig_until(&s.rig, is_done, &s);
    ck_assert_int_eq(s.answer.code, ETIMEDOUT);
    clSetUserEventStatus(s.gates[0], CL_COMPLETE);
    scene_close(&s);
}
END_TEST

START_TEST(a_producer_records_an_event_behind_its_work)
{
    struct ArrowDeviceArray array;
    struct uva_error error;
    cl_event barrier;
    struct scene s;

    scene_open(&s, 1);
    scene_arrays(&s, 1, false);
    uva_array_release(&s.arrays[0]);
    ck_assert_int_eq(
        clEnqueueBarrierWithWaitList(s.cl.queue, 1, &s.gates[0], &barrier), 0);
    fake_source_batch(&s.fake, 0, &array);
    array.device_type = ARROW_DEVICE_OPENCL;
    ck_assert_int_eq(
        uva_array_record(s.rig.runtime, &array, s.cl.queue, &error), 0);
    ck_assert_ptr_nonnull(array.sync_event);
    ck_assert_int_eq(
        uva_array_record(s.rig.runtime, &array, s.cl.queue, &error), EBUSY);
    ck_assert_int_eq(
        uva_array_wait(s.rig.runtime, &array, UVA_FOREVER, on_answer, &s), 0);
    loop_rig_settle(&s.rig);
    ck_assert_int_eq(s.answers, 0);
    clSetUserEventStatus(s.gates[0], CL_COMPLETE);
    loop_rig_until(&s.rig, is_done, &s);
    ck_assert_int_eq(s.answer.code, 0);
    clReleaseEvent(barrier);
    scene_close(&s);
}
END_TEST

static bool is_released(void *ctx)
{
    return atomic_load(&((struct scene *)ctx)->fake.live) == 0;
}

START_TEST(an_array_is_released_behind_the_work_that_reads_it)
{
    struct ArrowDeviceArray array;
    cl_event barrier;
    struct scene s;

    scene_open(&s, 1);
    scene_arrays(&s, 1, false);
    uva_array_release(&s.arrays[0]);
    clEnqueueBarrierWithWaitList(s.cl.queue, 1, &s.gates[0], &barrier);
    fake_source_batch(&s.fake, 0, &array);
    array.device_type = ARROW_DEVICE_OPENCL;
    uva_array_release_after(s.rig.runtime, &array, s.cl.queue);
    ck_assert(!uva_array_is_live(&array));
    loop_rig_settle(&s.rig);
    ck_assert_int_eq(atomic_load(&s.fake.live), 1);
    loop_rig_close_runtime(&s.rig, 0);
    ck_assert_int_eq(atomic_load(&s.fake.live), 1);
    clSetUserEventStatus(s.gates[0], CL_COMPLETE);
    while (!is_released(&s))
        sched_yield();
    clReleaseEvent(barrier);
    scene_close(&s);
}
END_TEST

/* ---- copies ------------------------------------------------------------- */

static int on_copied(void *ctx, struct uva_batch *batch)
{
    struct scene *s = ctx;
    const struct ArrowArray *column = batch->data.array.children[0];
    const int64_t *values = column->buffers[1];

    ck_assert_int_eq(batch->data.device_type, ARROW_DEVICE_CPU);
    ck_assert_ptr_null(batch->data.sync_event);
    for (int64_t i = 0; i < column->length; i++)
        ck_assert_int_eq(values[i], s->batches * 10 + i);
    s->batches++;
    return 0;
}

START_TEST(batches_go_to_the_device_and_come_back)
{
    struct uva_opencl_device native = {.svm = _i == 1};
    const struct uva_transfer there = {.device_type = ARROW_DEVICE_OPENCL,
                                       .device_id = 3};
    struct uva_consumer consumer = {.on_batch = on_copied, .on_done = on_done};
    struct ArrowDeviceArrayStream source;
    struct uva_stream *stream;
    struct uva_error error;
    struct scene s;

    scene_open(&s, 40);
    consumer.ctx = &s;
    native.context = s.cl.context;
    native.queue = s.cl.queue;
    ck_assert_int_eq(uva_device_attach(s.rig.runtime, ARROW_DEVICE_OPENCL, 3,
                                       &native, &error),
                     0);
    ck_assert_int_eq(uva_device_attach(s.rig.runtime, ARROW_DEVICE_OPENCL, 3,
                                       &native, &error),
                     EBUSY);
    fake_source_device(&s.fake, ARROW_DEVICE_CPU, &source);
    stream = uva_stream_from_blocking(s.rig.runtime, &source, NULL);
    ck_assert_int_eq(uva_stream_transfer(stream, &there), 0);
    ck_assert_int_eq(uva_stream_transfer(stream, NULL), 0);
    ck_assert_int_eq(uva_stream_for_each(stream, &consumer, &error), 0);
    loop_rig_until(&s.rig, is_done, &s);
    ck_assert_msg(s.outcome.end == UVA_END_COMPLETE, "%s",
                  s.outcome.error.message);
    ck_assert_int_eq(s.batches, 40);
    uva_stream_release(stream);
    loop_rig_close_runtime(&s.rig, 0);
    scene_close(&s);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("opencl");
    TCase *tc = tcase_create("platform");
    cl_device_id device;
    SRunner *runner;
    int failed;

    if (!opencl_device_find(&device))
        return 77;
    tcase_set_timeout(tc, 60);
    tcase_add_loop_test(tc, batches_come_when_their_events_are_complete, 0, 2);
    tcase_add_loop_test(
        tc, a_failed_event_is_told_with_the_code_of_the_platform, 0, 2);
    tcase_add_loop_test(tc, thousands_of_events_are_waited_for_at_once, 0, 2);
    tcase_add_test(tc, one_array_is_waited_for);
    tcase_add_loop_test(
        tc, a_failed_event_is_found_out_and_let_go_of_without_a_callback, 0, 2);
    tcase_add_loop_test(tc, two_runtimes_wait_for_the_same_events, 0, 4);
    tcase_add_test(tc, patience_with_one_array_ends);
    tcase_add_test(tc, a_producer_records_an_event_behind_its_work);
    tcase_add_test(tc, an_array_is_released_behind_the_work_that_reads_it);
    tcase_add_loop_test(tc, batches_go_to_the_device_and_come_back, 0, 2);
    suite_add_tcase(suite, tc);
    runner = srunner_create(suite);
    srunner_set_fork_status(runner, CK_NOFORK); /* drivers have threads */
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
