/* SPDX-License-Identifier: Apache-2.0 */
/* Events and copies when calls of OpenCL fail, each in turn, or memory fails;
 * when events fail while a copy is queued after them; when the library is older
 * than shared virtual memory. faulty_opencl.c stands between us and this
 * machine's platform. Skipped without a platform. */
#include <check.h>
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "device/opencl_event.h"
#include "devices/faulty_opencl.h"
#include "devices/opencl_device.h"
#include "support/check_suite.h"
#include "support/faulty_libc.h"
#include "support/fixture.h"

enum { BATCHES = 2, DEVICES = 2, CODE = -9876 };

static struct faulty_opencl cl;

/* ---- the fixture -------------------------------------------------------- */

static struct fixture f;

static struct {
    struct opencl_device devices[DEVICES];
    cl_event gate; /* a user event */
    struct ArrowDeviceArray array;
} s;

static void set_up(int64_t batches)
{
    memset(&s, 0, sizeof(s));
    for (int i = 0; i < DEVICES; i++)
        opencl_device_open(&s.devices[i]);
    fixture_open(&f, batches);
    s.gate = opencl_device_gate(&s.devices[0]);
}

/* Every object of a context holds a reference to it, and so does the
 * library. */
static cl_uint context_uses(cl_context context)
{
    cl_uint uses = 0;

    clGetContextInfo(context, CL_CONTEXT_REFERENCE_COUNT, sizeof(uses), &uses,
                     NULL);
    return uses;
}

/* The device thread may still be copying, or may release the last array. The
 * test waits for it, within the time limit of the program. */
static void tear_down(void)
{
    if (!f.open)
        return;
    fixture_close(&f);
    clReleaseEvent(s.gate);
    for (int i = 0; i < DEVICES; i++) {
        clRetainContext(s.devices[i].context);
        opencl_device_close(&s.devices[i]);
        while (context_uses(s.devices[i].context) > 1)
            sched_yield();
        clReleaseContext(s.devices[i].context);
    }
}

/* Each device has its own context. */
static void attach(bool queue, bool svm)
{
    struct uva_error error;

    for (int i = 0; i < DEVICES; i++) {
        const struct uva_opencl_device native = {
            .context = s.devices[i].context,
            .queue = queue ? s.devices[i].queue : NULL,
            .svm = svm};
        ck_assert_int_eq(uva_device_attach(f.loop.runtime, ARROW_DEVICE_OPENCL,
                                           i, &native, &error),
                         0);
    }
}

static void make_array(void)
{
    fake_source_batch(&f.fake, 0, &s.array);
    s.array.device_type = ARROW_DEVICE_OPENCL;
    s.array.device_id = 0;
}

static void ask(void)
{
    ck_assert_int_eq(uva_array_wait(f.loop.runtime, &s.array, UVA_FOREVER,
                                    fixture_on_answer, &f),
                     0);
}

/* Runs the stream, and releases it. Returns the code of the outcome. */
static int play(void)
{
    recording_init(&f.got);
    (void)fixture_run(&f);
    fixture_release(&f);
    return f.got.outcome.error.code;
}

/* Copies to a device and back. Returns the code of the outcome. */
static int copy(int device)
{
    const struct uva_transfer there = {.device_type = ARROW_DEVICE_OPENCL,
                                       .device_id = device};
    struct ArrowDeviceArrayStream source;

    while (!fake_source_again(&f.fake))
        (void)uv_run(&f.loop.uv, UV_RUN_NOWAIT);
    fake_source_device(&f.fake, ARROW_DEVICE_CPU, &source);
    f.stream = uva_stream_from_device_stream(f.loop.runtime, &source, NULL);
    ck_assert_int_eq(uva_stream_transfer(f.stream, &there), 0);
    ck_assert_int_eq(uva_stream_transfer(f.stream, NULL), 0);
    return play();
}

/* Waits for the array with the options `options`, and takes the array. Returns
 * the code of the outcome. */
static int ready(const struct uva_ready *options)
{
    fixture_ready(&f, fixture_arrays(&f, &s.array, 1), options);
    return play();
}

/* ---- each call in turn -------------------------------------------------- */

/* Checks the error after a call has failed: its code must be the call's, or
 * ENOMEM. */
static void expect_failure(const struct uva_error *error, int wanted)
{
    ck_assert_msg(error->code == 0 || error->code == wanted ||
                      error->code == ENOMEM,
                  "%d: %s", error->code, error->message);
    if (error->code != EIO)
        return;
    ck_assert_str_eq(error->vendor, "opencl");
    ck_assert_int_eq(error->vendor_code, CODE);
    text_contains(error->message, "failed with -9876");
}

static cl_uint gate_uses(void)
{
    cl_uint uses = 0;

    clGetEventInfo(s.gate, CL_EVENT_REFERENCE_COUNT, sizeof(uses), &uses, NULL);
    return uses;
}

/* Waits until the gate is armed, or the planned failure has happened. */
static void gate_await(cl_uint before)
{
    while (gate_uses() == before && cl.faultycl_left() >= 0 &&
           !faulty_libc_has_failed())
        sched_yield();
}

/* Waits for an event that completes later, and records an event of the
 * library. */
static void play_events(int wanted)
{
    const cl_uint before = gate_uses();
    const struct uva_ready options = {.wait = UVA_WAIT_STREAM,
                                      .device_stream = s.devices[0].queue};
    struct uva_error error = {0};
    int code;

    make_array();
    s.array.sync_event = &s.gate;
    ask();
    gate_await(before);
    clSetUserEventStatus(s.gate, CL_COMPLETE);
    (void)fixture_await_answers(&f, 1);
    expect_failure(&f.answer, wanted);
    s.array.sync_event = NULL;
    code =
        uva_array_record(f.loop.runtime, &s.array, s.devices[0].queue, &error);
    ck_assert_int_eq(code, error.code);
    ck_assert((code == 0) == (s.array.sync_event != NULL));
    expect_failure(&error, wanted);
    (void)ready(&options);
    expect_failure(&f.got.outcome.error, wanted);
}

static void play_copies(int wanted)
{
    for (int i = 0; i < 2 * DEVICES; i++) {
        const int code = copy(i % DEVICES);
        ck_assert_int_eq(code, f.got.outcome.error.code);
        expect_failure(&f.got.outcome.error, wanted);
        ck_assert((code == 0) == (f.got.batches == BATCHES));
    }
}

/* With shared virtual memory or without; on queues of the program or of the
 * library. */
START_TEST(any_call_may_fail)
{
    bool again = true;
    long k;

    if (!opencl_device_may(_i % 2 == 1))
        return;
    for (k = 1; again; k++) {
        set_up(BATCHES);
        attach(_i / 2 == 1, _i % 2 == 1);
        cl.faultycl_fail(k, CODE);
        faulty_libc_fail(0);
        play_events(EIO);
        play_copies(EIO);
        loop_close_runtime(&f.loop, 0);
        again = cl.faultycl_left() < 0;
        cl.faultycl_fail(0, 0);
        tear_down();
    }
    ck_assert_int_gt(k, 40);
}
END_TEST

/* Memory fails on the device thread, which uses the C library's allocator. */
START_TEST(there_may_be_no_memory)
{
    bool again = true;
    long k;

    faulty_libc_only_thread("uva-devices");
    for (k = 1; again; k++) {
        set_up(BATCHES);
        attach(_i / 2 == 1, _i % 2 == 1);
        faulty_libc_fail(k);
        play_events(ENOMEM);
        play_copies(ENOMEM);
        loop_close_runtime(&f.loop, 0);
        again = faulty_libc_stop();
        tear_down();
    }
    faulty_libc_only_thread(NULL);
    ck_assert_int_gt(k, 10);
}
END_TEST

START_TEST(a_recording_without_memory_leaves_the_array_as_it_was)
{
    struct uva_device_info info;
    struct uva_error error;

    set_up(1);
    make_array();
    ck_assert_int_eq(
        uva_device_get_info(f.loop.runtime, ARROW_DEVICE_OPENCL, &info), 0);
    faulty_libc_only(sizeof(struct uva__opencl_event));
    faulty_libc_fail(1);
    ck_assert_int_eq(
        uva_array_record(f.loop.runtime, &s.array, s.devices[0].queue, &error),
        ENOMEM);
    ck_assert(faulty_libc_stop());
    faulty_libc_only(0);
    ck_assert_ptr_null(s.array.sync_event);
    ck_assert_str_eq(error.message, "no memory for an event");
    uva_array_release(&s.array);
}
END_TEST

START_TEST(codes_of_the_platform_become_ours)
{
    static const int codes[][2] = {{CL_MEM_OBJECT_ALLOCATION_FAILURE, ENOMEM},
                                   {CL_OUT_OF_HOST_MEMORY, ENOMEM},
                                   {CL_DEVICE_NOT_AVAILABLE, ENODEV},
                                   {CL_OUT_OF_RESOURCES, EIO}};
    struct uva_device_info info;
    struct uva_error error;

    set_up(1);
    make_array();
    ck_assert_int_eq(
        uva_device_get_info(f.loop.runtime, ARROW_DEVICE_OPENCL, &info), 0);
    cl.faultycl_fail(1, codes[_i][0]);
    ck_assert_int_eq(
        uva_array_record(f.loop.runtime, &s.array, s.devices[0].queue, &error),
        codes[_i][1]);
    ck_assert_int_eq(error.vendor_code, codes[_i][0]);
    cl.faultycl_fail(0, 0);
    uva_array_release(&s.array);
}
END_TEST

/* ---- events ------------------------------------------------------------- */

/* Platforms other than PoCL do this. */
START_TEST(a_callback_may_tell_of_a_failure)
{
    set_up(1);
    make_array();
    s.array.sync_event = &s.gate;
    cl.faultycl_keep_callback(true);
    ask();
    while (!cl.faultycl_call_back(-5)) /* until it is armed */
        sched_yield();
    cl.faultycl_keep_callback(false);
    (void)fixture_await_answers(&f, 1);
    ck_assert_int_eq(f.answer.code, EIO);
    ck_assert_str_eq(f.answer.vendor, "opencl");
    ck_assert_int_eq(f.answer.vendor_code, -5);
    clSetUserEventStatus(s.gate, CL_COMPLETE);
    uva_array_release(&s.array);
}
END_TEST

/* Takes as long as an independent command needs to complete. */
static void work_elsewhere(void)
{
    cl_event marker;

    for (int i = 0; i < 200; i++) {
        clEnqueueMarkerWithWaitList(s.devices[1].queue, 0, NULL, &marker);
        clFinish(s.devices[1].queue);
        clReleaseEvent(marker);
    }
}

START_TEST(a_queue_of_the_program_waits_instead_of_the_host)
{
    struct uva_ready options = {.wait = UVA_WAIT_STREAM};
    cl_int status = -1;
    cl_event marker;

    set_up(1);
    options.device_stream = s.devices[0].queue;
    make_array();
    s.array.sync_event = &s.gate;
    ck_assert_int_eq(ready(&options), 0);
    ck_assert_int_eq(f.got.batches, 1);
    clEnqueueMarkerWithWaitList(s.devices[0].queue, 0, NULL, &marker);
    clFlush(s.devices[0].queue);
    work_elsewhere();
    clGetEventInfo(marker, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof(status),
                   &status, NULL);
    ck_assert_int_gt(status, CL_COMPLETE);
    clSetUserEventStatus(s.gate, CL_COMPLETE);
    ck_assert_int_eq(clWaitForEvents(1, &marker), CL_SUCCESS);
    clReleaseEvent(marker);
}
END_TEST

/* ---- copies ------------------------------------------------------------- */

/* Copies the array to the host. */
static int fetch(void)
{
    f.stream = fixture_arrays(&f, &s.array, 1);
    ck_assert_int_eq(uva_stream_transfer(f.stream, NULL), 0);
    return play();
}

static void gate_fail(void *ctx)
{
    (void)ctx;
    clSetUserEventStatus(s.gate, -5);
}

/* The library abandons its queue and makes another one. */
START_TEST(an_event_that_fails_while_a_copy_is_queued_fails_the_copy)
{
    cl_mem memory;
    cl_int code;

    set_up(1);
    attach(_i == 1, false);
    if (_i == 2) /* a queue of another context exists */
        for (int i = 0; i < DEVICES; i++)
            ck_assert_int_eq(copy(i), 0);
    make_array();
    memory = clCreateBuffer(s.devices[0].context, CL_MEM_READ_WRITE, 64, NULL,
                            &code);
    s.array.array.children[0]->buffers[1] = memory;
    s.array.sync_event = &s.gate;
    cl.faultycl_behind_copy(gate_fail, NULL);
    ck_assert_int_eq(fetch(), EIO);
    ck_assert_int_eq(f.got.outcome.error.vendor_code, -5);
    ck_assert_int_eq(f.got.batches, 0);
    if (_i != 1)
        ck_assert_int_eq(copy(0), 0);
    loop_close_runtime(&f.loop, 0);
    clReleaseMemObject(memory);
}
END_TEST

START_TEST(an_old_library_has_no_shared_virtual_memory)
{
    setenv("UVA_OPENCL_LIBRARY", UVA_TEST_OLD_OPENCL, 1);
    set_up(1);
    attach(true, true);
    ck_assert_int_eq(copy(0), ENOMEM); /* there is no memory there */
    tear_down();
    set_up(1);
    attach(true, false);
    ck_assert_int_eq(copy(0), 0);
    tear_down();
    setenv("UVA_OPENCL_LIBRARY", UVA_TEST_FAULTY_OPENCL, 1);
}
END_TEST

/* Such a library cannot copy from memory declared as shared, either. */
START_TEST(an_old_library_copies_no_shared_virtual_memory)
{
    setenv("UVA_OPENCL_LIBRARY", UVA_TEST_OLD_OPENCL, 1);
    set_up(1);
    attach(true, true);
    make_array();
    ck_assert_int_eq(fetch(), ENOTSUP);
    text_contains(f.got.outcome.error.message, "clEnqueueSVMMemcpy");
    tear_down();
    setenv("UVA_OPENCL_LIBRARY", UVA_TEST_FAULTY_OPENCL, 1);
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
    suite = suite_create("opencl faults");
    tc = suite_case(suite, "platform", NULL, tear_down);
    faulty_opencl_open(&cl, UVA_TEST_FAULTY_OPENCL);
    tcase_set_timeout(tc, 120);
    suite_add_loops(tc, 0, 4, any_call_may_fail, there_may_be_no_memory, NULL);
    tcase_add_test(tc, a_recording_without_memory_leaves_the_array_as_it_was);
    tcase_add_loop_test(tc, codes_of_the_platform_become_ours, 0, 4);
    suite_add(tc, a_callback_may_tell_of_a_failure,
              a_queue_of_the_program_waits_instead_of_the_host, NULL);
    tcase_add_loop_test(
        tc, an_event_that_fails_while_a_copy_is_queued_fails_the_copy, 0, 3);
    suite_add(tc, an_old_library_has_no_shared_virtual_memory,
              an_old_library_copies_no_shared_virtual_memory, NULL);
    return suite_run_alone(suite);
}
