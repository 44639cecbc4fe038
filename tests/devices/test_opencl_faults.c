/* SPDX-License-Identifier: Apache-2.0 */
/* Events and copies when calls of OpenCL fail, each in turn, or memory fails;
 * when events fail while a copy is queued after them; when the library is older
 * than shared virtual memory. faulty_opencl.c stands between us and this
 * machine's platform. Skipped without a platform. */
#include <assert.h>
#include <check.h>
#include <dlfcn.h>
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "devices/faulty_opencl.h"
#include "devices/opencl_device.h"
#include "support/fake_source.h"
#include "support/faulty_libc.h"
#include "support/loop_rig.h"
#include "uvarrow/uvarrow.h"

enum { BATCHES = 2, DEVICES = 2, CODE = -9876 };

static struct faulty_opencl cl;

/* ---- the scene ---------------------------------------------------------- */

static struct scene {
    struct loop_rig rig;
    struct fake_source fake;
    struct opencl_device devices[DEVICES];
    cl_event gate; /* a user event */
    struct ArrowDeviceArray array;
    int64_t batches;
    bool done;
    struct uva_outcome outcome;
    struct uva_error answer;
} s;

static void scene_open(int64_t batches)
{
    memset(&s, 0, sizeof(s));
    for (int i = 0; i < DEVICES; i++)
        opencl_device_open(&s.devices[i]);
    loop_rig_open(&s.rig);
    fake_source_init(&s.fake, batches);
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

/* The device thread may still be copying, or be the one to release an array.
 * Anything left for good runs into the time limit of the test. */
static void scene_close(void)
{
    loop_rig_close(&s.rig);
    while (atomic_load(&s.fake.live) != 0)
        sched_yield();
    fake_source_fini(&s.fake);
    clReleaseEvent(s.gate);
    for (int i = 0; i < DEVICES; i++) {
        clRetainContext(s.devices[i].context);
        opencl_device_close(&s.devices[i]);
        while (context_uses(s.devices[i].context) > 1)
            sched_yield();
        clReleaseContext(s.devices[i].context);
    }
}

/* Each device gets a context of its own. */
static void scene_attach(bool queue, bool svm)
{
    struct uva_error error;

    for (int i = 0; i < DEVICES; i++) {
        const struct uva_opencl_device native = {
            .context = s.devices[i].context,
            .queue = queue ? s.devices[i].queue : NULL,
            .svm = svm};
        ck_assert_int_eq(uva_device_attach(s.rig.runtime, ARROW_DEVICE_OPENCL,
                                           i, &native, &error),
                         0);
    }
}

static void scene_array(void)
{
    fake_source_batch(&s.fake, 0, &s.array);
    s.array.device_type = ARROW_DEVICE_OPENCL;
    s.array.device_id = 0;
}

static void on_answer(void *ctx, struct ArrowDeviceArray *array,
                      const struct uva_error *error)
{
    (void)ctx;
    (void)array;
    s.answer = *error;
    s.done = true;
}

static bool is_done(void *ctx)
{
    (void)ctx;
    return s.done;
}

static void until_done(void)
{
    loop_rig_until(&s.rig, is_done, NULL);
    s.done = false;
}

static void scene_ask(void)
{
    ck_assert_int_eq(
        uva_array_wait(s.rig.runtime, &s.array, UVA_FOREVER, on_answer, NULL),
        0);
}

static int on_batch(void *ctx, struct uva_batch *batch)
{
    const struct ArrowArray *column = batch->data.array.children[0];
    const int64_t *values = column->buffers[1];

    (void)ctx;
    if (batch->data.device_type == ARROW_DEVICE_CPU)
        for (int64_t i = 0; i < column->length; i++)
            ck_assert_int_eq(values[i], s.batches * 10 + i);
    s.batches++;
    return 0;
}

static void on_done(void *ctx, const struct uva_outcome *outcome)
{
    (void)ctx;
    s.outcome = *outcome;
    s.done = true;
}

static const struct uva_consumer consumer = {.on_batch = on_batch,
                                             .on_done = on_done};

/* Copies to a device and back; returns the code of the outcome. */
static int scene_copy(int device)
{
    const struct uva_transfer there = {.device_type = ARROW_DEVICE_OPENCL,
                                       .device_id = device};
    struct ArrowDeviceArrayStream source;
    struct uva_stream *stream;

    while (!fake_source_again(&s.fake))
        (void)uv_run(&s.rig.loop, UV_RUN_NOWAIT);
    s.batches = 0;
    fake_source_device(&s.fake, ARROW_DEVICE_CPU, &source);
    stream = uva_stream_from_blocking(s.rig.runtime, &source, NULL);
    ck_assert_int_eq(uva_stream_transfer(stream, &there), 0);
    ck_assert_int_eq(uva_stream_transfer(stream, NULL), 0);
    ck_assert_int_eq(uva_stream_for_each(stream, &consumer, NULL), 0);
    until_done();
    uva_stream_release(stream);
    return s.outcome.error.code;
}

/* Waits for the array by `how`, which takes it; returns the code of the
 * outcome. */
static int scene_ready(const struct uva_ready *how)
{
    struct ArrowSchema schema;
    struct uva_stream *stream;

    fake_source_schema(&s.fake, &schema);
    stream = uva_stream_from_arrays(s.rig.runtime, &schema, &s.array, 1);
    ck_assert_int_eq(uva_stream_ready(stream, how), 0);
    ck_assert_int_eq(uva_stream_for_each(stream, &consumer, NULL), 0);
    until_done();
    uva_stream_release(stream);
    return s.outcome.error.code;
}

/* ---- each call in turn -------------------------------------------------- */

/* Checks the error after a call has failed: it is that of the call, or
 * ENOMEM. */
static void expect_told(const struct uva_error *error, int wanted)
{
    ck_assert_msg(error->code == 0 || error->code == wanted ||
                      error->code == ENOMEM,
                  "%d: %s", error->code, error->message);
    if (error->code != EIO)
        return;
    ck_assert_str_eq(error->vendor, "opencl");
    ck_assert_int_eq(error->vendor_code, CODE);
    ck_assert_ptr_nonnull(strstr(error->message, "failed with -9876"));
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
    const struct uva_ready how = {.wait = UVA_WAIT_STREAM,
                                  .device_stream = s.devices[0].queue};
    struct uva_error error = {0};
    int code;

    scene_array();
    s.array.sync_event = &s.gate;
    scene_ask();
    gate_await(before);
    clSetUserEventStatus(s.gate, CL_COMPLETE);
    until_done();
    expect_told(&s.answer, wanted);
    s.array.sync_event = NULL;
    code =
        uva_array_record(s.rig.runtime, &s.array, s.devices[0].queue, &error);
    ck_assert_int_eq(code, error.code);
    ck_assert((code == 0) == (s.array.sync_event != NULL));
    expect_told(&error, wanted);
    (void)scene_ready(&how);
    expect_told(&s.outcome.error, wanted);
}

static void play_copies(int wanted)
{
    for (int i = 0; i < 2 * DEVICES; i++) {
        const int code = scene_copy(i % DEVICES);
        ck_assert_int_eq(code, s.outcome.error.code);
        expect_told(&s.outcome.error, wanted);
        ck_assert((code == 0) == (s.batches == BATCHES));
    }
}

/* With shared virtual memory or without; on queues of the program or of the
 * library. */
START_TEST(any_call_may_fail)
{
    bool again = true;
    long k;

    for (k = 1; again; k++) {
        scene_open(BATCHES);
        scene_attach(_i / 2 == 1, _i % 2 == 1);
        cl.faultycl_fail(k, CODE);
        faulty_libc_fail(0);
        play_events(EIO);
        play_copies(EIO);
        loop_rig_close_runtime(&s.rig, 0);
        again = cl.faultycl_left() < 0;
        cl.faultycl_fail(0, 0);
        scene_close();
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
        scene_open(BATCHES);
        scene_attach(_i / 2 == 1, _i % 2 == 1);
        faulty_libc_fail(k);
        play_events(ENOMEM);
        play_copies(ENOMEM);
        loop_rig_close_runtime(&s.rig, 0);
        again = faulty_libc_stop();
        scene_close();
    }
    faulty_libc_only_thread(NULL);
    ck_assert_int_gt(k, 10);
}
END_TEST

START_TEST(a_recording_without_memory_leaves_the_array_as_it_was)
{
    struct uva_error error;

    scene_open(1);
    scene_array();
    faulty_libc_only(sizeof(cl_event));
    faulty_libc_fail(1);
    ck_assert_int_eq(
        uva_array_record(s.rig.runtime, &s.array, s.devices[0].queue, &error),
        ENOMEM);
    ck_assert(faulty_libc_stop());
    faulty_libc_only(0);
    ck_assert_ptr_null(s.array.sync_event);
    ck_assert_str_eq(error.message, "no memory for an event");
    uva_array_release(&s.array);
    scene_close();
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

    scene_open(1);
    scene_array();
    ck_assert_int_eq(
        uva_device_get_info(s.rig.runtime, ARROW_DEVICE_OPENCL, &info), 0);
    cl.faultycl_fail(1, codes[_i][0]);
    ck_assert_int_eq(
        uva_array_record(s.rig.runtime, &s.array, s.devices[0].queue, &error),
        codes[_i][1]);
    ck_assert_int_eq(error.vendor_code, codes[_i][0]);
    cl.faultycl_fail(0, 0);
    uva_array_release(&s.array);
    scene_close();
}
END_TEST

/* ---- events ------------------------------------------------------------- */

/* Platforms other than PoCL do this. */
START_TEST(a_callback_may_tell_of_a_failure)
{
    scene_open(1);
    scene_array();
    s.array.sync_event = &s.gate;
    cl.faultycl_keep_callback(true);
    scene_ask();
    while (!cl.faultycl_call_back(-5)) /* until it is armed */
        sched_yield();
    cl.faultycl_keep_callback(false);
    until_done();
    ck_assert_int_eq(s.answer.code, EIO);
    ck_assert_str_eq(s.answer.vendor, "opencl");
    ck_assert_int_eq(s.answer.vendor_code, -5);
    clSetUserEventStatus(s.gate, CL_COMPLETE);
    uva_array_release(&s.array);
    scene_close();
}
END_TEST

/* Waits as long as an independent command takes to complete. */
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
    struct uva_ready how = {.wait = UVA_WAIT_STREAM};
    cl_int status = -1;
    cl_event marker;

    scene_open(1);
    how.device_stream = s.devices[0].queue;
    scene_array();
    s.array.sync_event = &s.gate;
    ck_assert_int_eq(scene_ready(&how), 0);
    ck_assert_int_eq(s.batches, 1);
    clEnqueueMarkerWithWaitList(s.devices[0].queue, 0, NULL, &marker);
    clFlush(s.devices[0].queue);
    work_elsewhere();
    clGetEventInfo(marker, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof(status),
                   &status, NULL);
    ck_assert_int_gt(status, CL_COMPLETE);
    clSetUserEventStatus(s.gate, CL_COMPLETE);
    ck_assert_int_eq(clWaitForEvents(1, &marker), CL_SUCCESS);
    clReleaseEvent(marker);
    scene_close();
}
END_TEST

/* ---- copies ------------------------------------------------------------- */

/* Copies the array to the host. */
static void scene_fetch(void)
{
    struct ArrowSchema schema;
    struct uva_stream *stream;

    fake_source_schema(&s.fake, &schema);
    stream = uva_stream_from_arrays(s.rig.runtime, &schema, &s.array, 1);
    ck_assert_int_eq(uva_stream_transfer(stream, NULL), 0);
    ck_assert_int_eq(uva_stream_for_each(stream, &consumer, NULL), 0);
    until_done();
    uva_stream_release(stream);
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

    scene_open(1);
    scene_attach(_i == 1, false);
    if (_i == 2) /* in another context */
        for (int i = 0; i < DEVICES; i++)
            ck_assert_int_eq(scene_copy(i), 0);
    s.batches = 0;
    scene_array();
    memory = clCreateBuffer(s.devices[0].context, CL_MEM_READ_WRITE, 64, NULL,
                            &code);
    s.array.array.children[0]->buffers[1] = memory;
    s.array.sync_event = &s.gate;
    cl.faultycl_behind_copy(gate_fail, NULL);
    scene_fetch();
    ck_assert_int_eq(s.outcome.error.code, EIO);
    ck_assert_int_eq(s.outcome.error.vendor_code, -5);
    ck_assert_int_eq(s.batches, 0);
    if (_i != 1)
        ck_assert_int_eq(scene_copy(0), 0);
    loop_rig_close_runtime(&s.rig, 0);
    clReleaseMemObject(memory);
    scene_close();
}
END_TEST

START_TEST(an_old_library_has_no_shared_virtual_memory)
{
    setenv("UVA_OPENCL_LIBRARY", UVA_TEST_OLD_OPENCL, 1);
    scene_open(1);
    scene_attach(true, true);
    ck_assert_int_eq(scene_copy(0), ENOMEM); /* not available there */
    scene_close();
    scene_open(1);
    scene_attach(true, false);
    ck_assert_int_eq(scene_copy(0), 0);
    scene_close();
    setenv("UVA_OPENCL_LIBRARY", UVA_TEST_FAULTY_OPENCL, 1);
}
END_TEST

/* Nor can it copy from memory declared as shared. */
START_TEST(an_old_library_copies_no_shared_virtual_memory)
{
    setenv("UVA_OPENCL_LIBRARY", UVA_TEST_OLD_OPENCL, 1);
    scene_open(1);
    scene_attach(true, true);
    scene_array();
    scene_fetch();
    ck_assert_int_eq(s.outcome.error.code, ENOTSUP);
    ck_assert_ptr_nonnull(
        strstr(s.outcome.error.message, "clEnqueueSVMMemcpy"));
    scene_close();
    setenv("UVA_OPENCL_LIBRARY", UVA_TEST_FAULTY_OPENCL, 1);
}
END_TEST

/* ---- the suite ---------------------------------------------------------- */

static void find(void *library, const char *name, void *out)
{
    void *address = dlsym(library, name);

    memcpy(out, &address, sizeof(address));
}

static void control_open(void)
{
    void *library = dlopen(UVA_TEST_FAULTY_OPENCL, RTLD_NOW | RTLD_LOCAL);

    assert(library != NULL);
    setenv("UVA_OPENCL_LIBRARY", UVA_TEST_FAULTY_OPENCL, 1);
    find(library, "faultycl_fail", &cl.faultycl_fail);
    find(library, "faultycl_left", &cl.faultycl_left);
    find(library, "faultycl_behind_copy", &cl.faultycl_behind_copy);
    find(library, "faultycl_keep_callback", &cl.faultycl_keep_callback);
    find(library, "faultycl_call_back", &cl.faultycl_call_back);
}

int main(void)
{
    Suite *suite = suite_create("opencl faults");
    TCase *tc = tcase_create("platform");
    cl_device_id device;
    SRunner *runner;
    int failed;

    if (!opencl_device_find(&device))
        return 77;
    control_open();
    tcase_set_timeout(tc, 120);
    tcase_add_loop_test(tc, any_call_may_fail, 0, 4);
    tcase_add_loop_test(tc, there_may_be_no_memory, 0, 4);
    tcase_add_test(tc, a_recording_without_memory_leaves_the_array_as_it_was);
    tcase_add_loop_test(tc, codes_of_the_platform_become_ours, 0, 4);
    tcase_add_test(tc, a_callback_may_tell_of_a_failure);
    tcase_add_test(tc, a_queue_of_the_program_waits_instead_of_the_host);
    tcase_add_loop_test(
        tc, an_event_that_fails_while_a_copy_is_queued_fails_the_copy, 0, 3);
    tcase_add_test(tc, an_old_library_has_no_shared_virtual_memory);
    tcase_add_test(tc, an_old_library_copies_no_shared_virtual_memory);
    suite_add_tcase(suite, tc);
    runner = srunner_create(suite);
    srunner_set_fork_status(runner, CK_NOFORK); /* drivers have threads */
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
