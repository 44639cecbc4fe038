/* SPDX-License-Identifier: Apache-2.0 */
/* Work that a map queues on a queue of a real OpenCL device, which waits for an
 * event of the test. faulty_opencl.c stands between us and this machine's
 * platform, so that each call may fail. Skipped without a platform. */
#include <check.h>
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "devices/faulty_opencl.h"
#include "devices/opencl_device.h"
#include "support/check_suite.h"
#include "support/fixture.h"

enum { BATCHES = 4, CODE = -9876 };

static struct faulty_opencl cl;

static struct fixture f;

static struct {
    struct opencl_device device;
    cl_event before, work; /* user events: of the batches, and of the work */
    struct ArrowDeviceArray arrays[BATCHES];
    atomic_long calls;
} s;

/* ---- the function ------------------------------------------------------- */

/* The queue goes on when the work's event is complete. */
static int queue_barrier(void *ctx, struct uva_batch *in,
                         struct ArrowDeviceArray *out,
                         const struct uva_device_queue *queue,
                         struct uva_error *error)
{
    (void)ctx;
    if (clEnqueueBarrierWithWaitList(queue->device_stream, 1, &s.work, NULL) !=
        CL_SUCCESS)
        return uva_error_set(error, EPROTO, "the barrier was not queued");
    fake_source_batch(&f.fake, in->ordinal, out);
    out->device_type = 0;
    atomic_fetch_add(&s.calls, 1);
    return 0;
}

static void set_up(void)
{
    memset(&s, 0, sizeof(s));
    opencl_device_open(&s.device);
    s.before = opencl_device_gate(&s.device);
    s.work = opencl_device_gate(&s.device);
    fixture_open(&f, BATCHES);
    for (int k = 0; k < BATCHES; k++) {
        fake_source_batch(&f.fake, k, &s.arrays[k]);
        s.arrays[k].device_type = ARROW_DEVICE_OPENCL;
        s.arrays[k].device_id = 0;
        s.arrays[k].sync_event = &s.before;
    }
}

/* Commands in flight hold references to it. */
static cl_uint context_uses(void)
{
    cl_uint uses = 0;

    clGetContextInfo(s.device.context, CL_CONTEXT_REFERENCE_COUNT, sizeof(uses),
                     &uses, NULL);
    return uses;
}

static void tear_down(void)
{
    if (!f.open)
        return;
    fixture_close(&f);
    clReleaseEvent(s.before);
    clReleaseEvent(s.work);
    clRetainContext(s.device.context);
    opencl_device_close(&s.device);
    while (context_uses() > 1)
        sched_yield();
    clReleaseContext(s.device.context);
}

static void stream_make(void *queue, enum uva_wait wait)
{
    const struct uva_device_map map = {.batch = queue_barrier,
                                       .device_stream = queue};
    const struct uva_ready ready = {.wait = wait};

    f.stream = fixture_arrays(&f, s.arrays, BATCHES);
    ck_assert_int_eq(uva_stream_map_device(f.stream, &map), 0);
    ck_assert_int_eq(uva_stream_ready(f.stream, &ready), 0);
}

static void await_live(long n)
{
    while (atomic_load(&f.fake.live) != n)
        (void)sched_yield();
}

/* Waits until the device thread has run the commands sent so far: the release
 * of an array after an empty queue is the last one. */
static void commands_end(void)
{
    const long before = atomic_load(&f.fake.live);
    struct ArrowDeviceArray array;
    cl_int code;
    cl_command_queue queue = clCreateCommandQueueWithProperties(
        s.device.context, s.device.device, NULL, &code);

    ck_assert_int_eq(code, CL_SUCCESS);
    fake_source_batch(&f.fake, 0, &array);
    array.device_type = ARROW_DEVICE_OPENCL;
    uva_array_release_after(f.loop.runtime, &array, queue);
    while (atomic_load(&f.fake.live) > before)
        (void)sched_yield();
    clReleaseCommandQueue(queue);
}

/* ---- kernels ------------------------------------------------------------ */

START_TEST(a_kernel_keeps_what_it_uses_while_it_runs)
{
    set_up();
    stream_make(s.device.queue, UVA_WAIT_NONE);
    ck_assert_int_eq(fixture_run(&f), 0);
    ck_assert_int_eq(f.got.batches, BATCHES);
    ck_assert_int_eq(s.calls, BATCHES);
    fixture_release(&f);
    for (int i = 0; i < 10; i++)
        commands_end();
    ck_assert_int_eq(atomic_load(&f.fake.live), 2 * BATCHES);
    clSetUserEventStatus(s.before, CL_COMPLETE);
    for (int i = 0; i < 10; i++)
        commands_end();
    ck_assert_int_eq(atomic_load(&f.fake.live), 2 * BATCHES);
    clSetUserEventStatus(s.work, CL_COMPLETE);
    await_live(0);
}
END_TEST

/* The batches are complete first, or the work would be. */
START_TEST(a_result_is_complete_behind_its_input_and_its_kernel)
{
    set_up();
    stream_make(s.device.queue, UVA_WAIT_HOST);
    clSetUserEventStatus(_i == 0 ? s.before : s.work, CL_COMPLETE);
    fixture_start(&f);
    while (atomic_load(&s.calls) < BATCHES)
        loop_settle(&f.loop);
    for (int i = 0; i < 10; i++)
        commands_end();
    loop_settle(&f.loop);
    ck_assert_int_eq(f.got.batches, 0);
    clSetUserEventStatus(_i == 0 ? s.work : s.before, CL_COMPLETE);
    ck_assert_int_eq(fixture_await(&f), 0);
    ck_assert_int_eq(f.got.batches, BATCHES);
}
END_TEST

START_TEST(a_cancel_leaves_kernels_what_they_use)
{
    set_up();
    stream_make(s.device.queue, UVA_WAIT_HOST);
    fixture_start(&f);
    while (atomic_load(&s.calls) < BATCHES)
        loop_settle(&f.loop);
    uva_stream_cancel(f.stream, ECANCELED, "enough");
    (void)fixture_await(&f);
    ck_assert_int_eq(f.got.outcome.end, UVA_END_CANCELLED);
    fixture_release(&f);
    commands_end();
    ck_assert_int_eq(atomic_load(&f.fake.live), 2 * BATCHES);
    clSetUserEventStatus(s.before, CL_COMPLETE);
    clSetUserEventStatus(s.work, CL_COMPLETE);
    await_live(0);
}
END_TEST

/* ---- failures ----------------------------------------------------------- */

/* PoCL would never complete work that is queued after it. */
START_TEST(a_batch_that_has_failed_is_not_worked_on)
{
    set_up();
    clSetUserEventStatus(s.before, -5);
    stream_make(s.device.queue, UVA_WAIT_NONE);
    ck_assert_int_eq(fixture_run(&f), EIO);
    ck_assert_int_eq(f.got.outcome.error.vendor_code, -5);
    ck_assert_int_eq(s.calls, 0);
}
END_TEST

START_TEST(a_queue_is_mandatory)
{
    set_up();
    clSetUserEventStatus(s.before, CL_COMPLETE);
    stream_make(NULL, UVA_WAIT_NONE);
    ck_assert_int_eq(fixture_run(&f), EINVAL);
    text_contains(f.got.outcome.error.message, "pass a cl_command_queue");
    ck_assert_int_eq(s.calls, 0);
}
END_TEST

START_TEST(any_call_may_fail)
{
    bool again = true;
    int code;
    long k;

    for (k = 1; again; k++) {
        set_up();
        clSetUserEventStatus(s.before, CL_COMPLETE);
        clSetUserEventStatus(s.work, CL_COMPLETE);
        stream_make(s.device.queue, UVA_WAIT_HOST);
        cl.faultycl_fail(k, CODE);
        code = fixture_run(&f);
        fixture_release(&f);
        loop_close_runtime(&f.loop, 0);
        await_live(0);
        again = cl.faultycl_left() < 0;
        cl.faultycl_fail(0, 0);
        ck_assert(code == 0 || (again && code == EIO));
        ck_assert_int_eq(f.got.outcome.error.vendor_code, code == 0 ? 0 : CODE);
        ck_assert_int_eq(f.got.batches == BATCHES, code == 0);
        tear_down();
    }
    ck_assert_int_gt(k, 20);
}
END_TEST

/* ---- the suite ---------------------------------------------------------- */

int main(void)
{
    Suite *suite;
    cl_device_id device;
    TCase *tc;

    if (!opencl_device_find(&device))
        return 77;
    faulty_opencl_open(&cl, UVA_TEST_FAULTY_OPENCL);
    suite = suite_create("opencl kernels");
    tc = suite_case(suite, "platform", NULL, tear_down);
    tcase_set_timeout(tc, 60);
    suite_add(tc, a_kernel_keeps_what_it_uses_while_it_runs,
              a_cancel_leaves_kernels_what_they_use,
              a_batch_that_has_failed_is_not_worked_on, a_queue_is_mandatory,
              any_call_may_fail, NULL);
    tcase_add_loop_test(
        tc, a_result_is_complete_behind_its_input_and_its_kernel, 0, 2);
    return suite_run_alone(suite);
}
