/* SPDX-License-Identifier: Apache-2.0 */
/* CUDA, with this machine's driver, or the fake one in UVA_CUDA_LIBRARY.
 * Skipped without a device. */
#include <dlfcn.h>
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "device/cuda_abi.h"
#include "devices/gpu_beside.h"
#include "devices/gpu_cases.h"
#include "devices/gpu_faults.h"
#include "devices/gpu_fixture.h"
#include "devices/gpu_kernels.h"
#include "support/check_suite.h"
#include "support/fault_fixture.h"

/* Functions that only programs call, in addition to the library's. */
static struct {
    struct uva__cu cu;
    int (*cuInit)(unsigned flags);
    int (*cuCtxSetCurrent)(void *context);
    int (*cuCtxCreate)(void **context, unsigned flags, int device);
    int (*cuCtxDestroy)(void *context);
    int (*cuStreamWaitValue32)(void *stream, uva__cu_pointer word,
                               uint32_t value, unsigned flags);
    int (*cuStreamBeginCapture)(void *stream, int mode);
    int (*cuStreamEndCapture)(void *stream, void **graph);
    int (*cuGraphDestroy)(void *graph);
    /* from 12.5 on; each may be NULL */
    int (*cuDeviceGetDevResource)(int device, void *resource, int type);
    int (*cuDevResourceGenerateDesc)(void **desc, void *resources,
                                     unsigned count);
    int (*cuGreenCtxCreate)(void **green, void *desc, int device,
                            unsigned flags);
    int (*cuGreenCtxDestroy)(void *green);
    int (*cuCtxFromGreenCtx)(void **context, void *green);
    int (*cuGreenCtxStreamCreate)(void **stream, void *green, unsigned flags,
                                  int priority);
    bool has_green;      /* these are there */
    bool streams_report; /* streams report their context */
    bool spares_captures, calls_back, manages,
        pools; /* features of newer drivers */
} lib;

static struct fake_control control;

static const struct vendor_function functions[] = {
    {"cuEventCreate", &vendor_calls.event_create},
    {"cuEventDestroy_v2", &vendor_calls.event_destroy},
    {"cuEventRecord", &vendor_calls.event_record},
    {"cuEventQuery", &vendor_calls.event_query},
    {"cuStreamCreate", &vendor_calls.stream_create},
    {"cuStreamDestroy_v2", &vendor_calls.stream_destroy},
    {"cuStreamSynchronize", &vendor_calls.stream_synchronize},
    {"cuMemHostAlloc", &vendor_calls.host_alloc},
    {"cuMemFreeHost", &vendor_calls.host_free},
    {"cuStreamWaitValue32_v2", &lib.cuStreamWaitValue32},
    {"cuStreamBeginCapture_v2", &lib.cuStreamBeginCapture},
    {"cuStreamEndCapture", &lib.cuStreamEndCapture},
    {"cuGraphDestroy", &lib.cuGraphDestroy},
    {"cuInit", &lib.cuInit},
    {"cuCtxSetCurrent", &lib.cuCtxSetCurrent},
    {"cuCtxCreate_v2", &lib.cuCtxCreate},
    {"cuCtxDestroy_v2", &lib.cuCtxDestroy},
    {"cuDeviceGet", &lib.cu.cuDeviceGet},
    {"cuDevicePrimaryCtxGetState", &lib.cu.cuDevicePrimaryCtxGetState},
    {"cuDevicePrimaryCtxRetain", &lib.cu.cuDevicePrimaryCtxRetain},
    {"cuDevicePrimaryCtxRelease_v2", &lib.cu.cuDevicePrimaryCtxRelease},
    {"cuCtxGetCurrent", &lib.cu.cuCtxGetCurrent},
    {"cuCtxPushCurrent_v2", &lib.cu.cuCtxPushCurrent},
    {"cuCtxPopCurrent_v2", &lib.cu.cuCtxPopCurrent},
    {"cuMemAlloc_v2", &lib.cu.cuMemAlloc},
    {"cuMemFree_v2", &lib.cu.cuMemFree},
    {"cuMemcpyHtoDAsync_v2", &lib.cu.cuMemcpyHtoDAsync},
    {NULL, NULL},
};

static const struct vendor_function green_functions[] = {
    {"cuDeviceGetDevResource", &lib.cuDeviceGetDevResource},
    {"cuDevResourceGenerateDesc", &lib.cuDevResourceGenerateDesc},
    {"cuGreenCtxCreate", &lib.cuGreenCtxCreate},
    {"cuGreenCtxDestroy", &lib.cuGreenCtxDestroy},
    {"cuCtxFromGreenCtx", &lib.cuCtxFromGreenCtx},
    {"cuGreenCtxStreamCreate", &lib.cuGreenCtxStreamCreate},
    {NULL, NULL},
};

static bool cuda_open(void *library)
{
    int device;

    vendor_driver_resolve(library, functions);
    lib.has_green = dlsym(library, "cuStreamGetCtx_v2") != NULL;
    if (lib.has_green)
        vendor_driver_resolve(library, green_functions);
    lib.streams_report = dlsym(library, "cuStreamGetCtx") != NULL;
    lib.spares_captures =
        dlsym(library, "cuThreadExchangeStreamCaptureMode") != NULL;
    lib.calls_back = dlsym(library, "cuLaunchHostFunc") != NULL;
    lib.pools = dlsym(library, "cuMemAllocAsync") != NULL;
    lib.manages = dlsym(library, "cuMemAllocManaged") != NULL;
    return lib.cuInit(0) == 0 && lib.cu.cuDeviceGet(&device, 0) == 0;
}

static void cuda_enter(void)
{
    void *context;

    vendor_must(lib.cu.cuDevicePrimaryCtxRetain(&context, 0));
    vendor_must(lib.cuCtxSetCurrent(context));
}

static void cuda_leave(void)
{
    vendor_must(lib.cuCtxSetCurrent(NULL));
    vendor_must(lib.cu.cuDevicePrimaryCtxRelease(0));
}

static bool cuda_second(bool on)
{
    void *context;
    int device;

    if (lib.cu.cuDeviceGet(&device, 1) != 0)
        return false;
    vendor_must(on ? lib.cu.cuDevicePrimaryCtxRetain(&context, device)
                   : lib.cu.cuDevicePrimaryCtxRelease(device));
    return true;
}

static void stream_gate(void *stream, _Atomic uint32_t *word, uint32_t value)
{
    vendor_must(lib.cuStreamWaitValue32(stream, (uintptr_t)word, value, 0));
}

static void stream_upload(void *stream, void *target, const void *source,
                          size_t size)
{
    vendor_must(
        lib.cu.cuMemcpyHtoDAsync((uintptr_t)target, source, size, stream));
}

static bool event_is_over(void *event)
{
    return vendor_calls.event_query(event) == 0;
}

static void *device_alloc(size_t size)
{
    uva__cu_pointer memory;

    vendor_must(lib.cu.cuMemAlloc(&memory, size));
    return (void *)(uintptr_t)memory;
}

static void device_free(void *memory)
{
    vendor_must(lib.cu.cuMemFree((uintptr_t)memory));
}

static void capture_begin(void *stream)
{
    vendor_must(lib.cuStreamBeginCapture(stream, 0));
}

static int capture_end(void *stream)
{
    void *graph = NULL;
    const int code = lib.cuStreamEndCapture(stream, &graph);

    if (graph != NULL)
        vendor_must(lib.cuGraphDestroy(graph));
    return code;
}

static struct vendor_driver cuda = {
    .vendor = "cuda",
    .query = "cuEventQuery",
    .choose = "cuDeviceGet",
    .alloc = "cuMemAlloc",
    .too_old = UVA__GPU_DRIVER_MISMATCH,
    .device_type = ARROW_DEVICE_CUDA,
    .host_type = ARROW_DEVICE_CUDA_HOST,
    .variable = "UVA_CUDA_LIBRARY",
    .names = (const char *const[]){"libcuda.so.1", NULL},
    .open = cuda_open,
    .enter = cuda_enter,
    .leave = cuda_leave,
    .second = cuda_second,
    .stream_gate = stream_gate,
    .stream_upload = stream_upload,
    .event_is_over = event_is_over,
    .device_alloc = device_alloc,
    .device_free = device_free,
    .capture_begin = capture_begin,
    .capture_end = capture_end,
};

/* ---- copies ------------------------------------------------------------- */

static int on_batch(void *ctx, struct uva_batch *batch)
{
    (void)batch;
    ((struct gpu_fixture *)ctx)->batches++;
    return 0;
}

/* Copies array 0 to a device, and returns the code of the outcome. */
static int transfer(struct gpu_fixture *s, ArrowDeviceType device_type)
{
    const struct uva_transfer options = {.device_type = device_type};
    const struct uva_ready nobody = {.wait = UVA_WAIT_NONE};
    const struct uva_consumer consumer = {
        .on_batch = on_batch, .on_done = gpu_fixture_on_done, .ctx = s};
    struct ArrowSchema schema;
    struct uva_stream *stream;

    fake_source_schema(&s->fake, &schema);
    stream = uva_stream_from_arrays(s->loop.runtime, &schema, s->arrays, 1);
    ck_assert_int_eq(uva_stream_transfer(stream, &options), 0);
    ck_assert_int_eq(uva_stream_ready(stream, &nobody), 0);
    ck_assert_int_eq(uva_stream_for_each(stream, &consumer, NULL), 0);
    gpu_fixture_until_done(s);
    uva_stream_release(stream);
    return s->outcome.error.code;
}

/* ---- contexts ----------------------------------------------------------- */

static void *own;

/* The legacy default stream, by its two handles, and the thread's. */
static void *const default_streams[] = {NULL, (void *)1, (void *)2};

/* The runtimes of other cases have kept the primary context. */
static void set_up(void)
{
    gpu_fixture_await_end(&control);
}

static void own_enter(void)
{
    vendor_must(lib.cuCtxCreate(&own, 0, 0));
}

static void own_leave(void)
{
    vendor_must(lib.cuCtxDestroy(own));
}

static void primary_is_not_there(void)
{
    unsigned flags;
    int active;

    vendor_must(lib.cu.cuDevicePrimaryCtxGetState(0, &flags, &active));
    ck_assert_int_eq(active, 0);
}

/* The event belongs to a context that the library does not know, and it lasts.
 */
START_TEST(no_context_is_made_where_the_program_has_none)
{
    struct vendor_driver driver = cuda;
    struct gpu_fixture s;

    driver.enter = own_enter;
    driver.leave = own_leave;
    gpu_fixture_open(&s, &driver, &control, 1);
    gpu_fixture_arrays(&s, 1);
    gpu_fixture_ask(&s, 0, 30);
    gpu_fixture_until_done(&s);
    gpu_fixture_ask(&s, 0, UVA_FOREVER);
    gpu_fixture_pass(&s, 0);
    gpu_fixture_until_done(&s);
    ck_assert_int_eq(s.answer.code, 0);
    primary_is_not_there();
    uva_array_release(&s.arrays[0]);
    gpu_fixture_close(&s);
}
END_TEST

/* Streams report their context; memory does not. */
START_TEST(a_context_of_the_programs_own_records_but_copies_nothing)
{
    struct vendor_driver driver = cuda;
    struct uva_error error;
    struct gpu_fixture s;

    driver.enter = own_enter;
    driver.leave = own_leave;
    gpu_fixture_open(&s, &driver, &control, 1);
    gpu_fixture_array(&s, 0, &s.arrays[0]);
    ck_assert_int_eq(
        uva_array_record(s.loop.runtime, &s.arrays[0], s.streams[0], &error),
        lib.streams_report ? 0 : ENODEV);
    if (!lib.streams_report)
        text_contains(error.message, "primary context");
    uva_array_release(&s.arrays[0]);
    gpu_fixture_array(&s, 0, &s.arrays[0]);
    ck_assert_int_eq(
        uva_array_record(s.loop.runtime, &s.arrays[0], NULL, &error), 0);
    gpu_fixture_ask(&s, 0, UVA_FOREVER);
    gpu_fixture_until_done(&s);
    ck_assert_int_eq(s.answer.code, 0);
    ck_assert_int_eq(transfer(&s, ARROW_DEVICE_CPU), ENODEV);
    text_contains(s.outcome.error.message, "primary context");
    primary_is_not_there();
    gpu_fixture_close(&s);
}
END_TEST

/* The primary context has default streams, too, on which no work is queued. */
START_TEST(a_default_stream_is_that_of_the_current_context)
{
    void *const handle = default_streams[_i];
    struct vendor_driver driver = cuda;
    struct uva_error error;
    struct gpu_fixture s;
    void *primary;

    vendor_must(lib.cu.cuDevicePrimaryCtxRetain(&primary, 0));
    driver.enter = own_enter;
    driver.leave = own_leave;
    gpu_fixture_open(&s, &driver, &control, 1);
    gpu_fixture_array(&s, 0, &s.arrays[0]);
    stream_gate(handle, &s.words[0], 1);
    ck_assert_int_eq(
        uva_array_record(s.loop.runtime, &s.arrays[0], handle, &error), 0);
    ck_assert(!event_is_over(*(void **)s.arrays[0].sync_event));
    gpu_fixture_pass(&s, 0);
    gpu_fixture_ask(&s, 0, UVA_FOREVER);
    gpu_fixture_until_done(&s);
    ck_assert_int_eq(s.answer.code, 0);
    uva_array_release(&s.arrays[0]);
    vendor_must(lib.cu.cuDevicePrimaryCtxRelease(0));
    gpu_fixture_close(&s);
}
END_TEST

/* The device thread would use the primary context's. */
START_TEST(a_default_stream_of_another_context_cannot_be_made_to_wait)
{
    const struct uva_ready options = {.wait = UVA_WAIT_STREAM};
    struct vendor_driver driver = cuda;
    struct ArrowSchema schema;
    struct uva_stream *stream;
    struct gpu_fixture s;
    void *primary, *current;

    if (_i == 1)
        vendor_must(lib.cu.cuDevicePrimaryCtxRetain(&primary, 0));
    driver.enter = own_enter;
    driver.leave = own_leave;
    gpu_fixture_open(&s, &driver, &control, 1);
    gpu_fixture_arrays(&s, 1);
    if (_i == 2) /* no context is current */
        vendor_must(lib.cu.cuCtxPopCurrent(&current));
    fake_source_schema(&s.fake, &schema);
    stream = uva_stream_from_arrays(s.loop.runtime, &schema, s.arrays, 1);
    ck_assert_int_eq(uva_stream_ready(stream, &options), _i == 2 ? 0 : ENOTSUP);
    uva_stream_release(stream);
    if (_i == 2)
        vendor_must(lib.cu.cuCtxPushCurrent(current));
    if (_i == 1)
        vendor_must(lib.cu.cuDevicePrimaryCtxRelease(0));
    gpu_fixture_close(&s);
}
END_TEST

/* Makes a green context of the whole device, and its stream. */
static void *green_new(void **stream)
{
    uint64_t resource[64] = {0}; /* a CUdevResource, which has 144 bytes */
    void *desc, *green;

    vendor_must(lib.cuDeviceGetDevResource(0, resource, 1));
    vendor_must(lib.cuDevResourceGenerateDesc(&desc, resource, 1));
    vendor_must(lib.cuGreenCtxCreate(&green, desc, 0, 1));
    vendor_must(lib.cuGreenCtxStreamCreate(stream, green,
                                           UVA__GPU_STREAM_NON_BLOCKING, 0));
    return green;
}

/* It may be current on one thread only, which is this one. */
START_TEST(a_green_context_stays_on_its_thread)
{
    void *green, *context, *stream;
    struct gpu_fixture s;

    if (!lib.has_green)
        return;
    gpu_fixture_open(&s, &cuda, &control, 1);
    green = green_new(&stream);
    vendor_must(lib.cuCtxFromGreenCtx(&context, green));
    vendor_must(lib.cu.cuCtxPushCurrent(context));
    stream_gate(stream, &s.words[0], 1);
    gpu_fixture_array(&s, 0, &s.arrays[0]);
    uva_array_release_after(s.loop.runtime, &s.arrays[0], stream);
    loop_settle(&s.loop);
    ck_assert_int_eq(atomic_load(&s.fake.live), 1);
    gpu_fixture_pass(&s, 0);
    while (atomic_load(&s.fake.live) != 0)
        (void)sched_yield();
    vendor_must(lib.cu.cuCtxPopCurrent(&context));
    vendor_stream_drain(stream);
    vendor_stream_free(stream);
    vendor_must(lib.cuGreenCtxDestroy(green));
    gpu_fixture_close(&s);
}
END_TEST

/* ---- the context of a kernel --------------------------------------------- */

static void *seen; /* the context that was current in the function */

static int see_context(void *ctx, struct uva_batch *in,
                       struct ArrowDeviceArray *out,
                       const struct uva_device_queue *queue,
                       struct uva_error *error)
{
    (void)ctx, (void)queue, (void)error;
    uva_array_move(&in->data, out);
    return lib.cu.cuCtxGetCurrent(&seen);
}

/* Runs the function on array 0, with a stream. Returns the code of the outcome,
 * or of the stage. */
static int kernel_run(struct gpu_fixture *s, void *device_stream)
{
    const struct uva_device_map map = {.batch = see_context,
                                       .device_stream = device_stream};
    const struct uva_consumer consumer = {
        .on_batch = on_batch, .on_done = gpu_fixture_on_done, .ctx = s};
    struct ArrowSchema schema;
    struct uva_stream *stream;
    int code;

    gpu_fixture_array(s, 0, &s->arrays[0]);
    fake_source_schema(&s->fake, &schema);
    stream = uva_stream_from_arrays(s->loop.runtime, &schema, s->arrays, 1);
    code = uva_stream_map_device(stream, &map);
    (void)uva_stream_ready(stream, NULL);
    if (code == 0)
        code = uva_stream_for_each(stream, &consumer, NULL);
    if (code == 0) {
        gpu_fixture_until_done(s);
        code = s->outcome.error.code;
    }
    uva_stream_release(stream);
    return code;
}

START_TEST(a_kernel_runs_in_the_context_of_its_stream)
{
    void *primary, *green, *stream;
    struct gpu_fixture s;

    gpu_fixture_open(&s, &cuda, &control, 1);
    vendor_must(lib.cu.cuCtxGetCurrent(&primary));
    ck_assert_int_eq(kernel_run(&s, s.streams[0]), 0);
    ck_assert_ptr_eq(seen, primary);
    ck_assert_int_eq(kernel_run(&s, NULL), 0);
    ck_assert_ptr_eq(seen, primary);
    if (lib.has_green) {
        green = green_new(&stream);
        ck_assert_int_eq(kernel_run(&s, stream), 0);
        ck_assert_ptr_eq(seen, primary);
        vendor_stream_drain(stream);
        vendor_stream_free(stream);
        vendor_must(lib.cuGreenCtxDestroy(green));
    }
    gpu_fixture_close(&s);
}
END_TEST

/* There is no primary one, in which a default stream would be used. */
START_TEST(a_kernel_runs_in_a_context_of_the_programs_own)
{
    struct vendor_driver driver = cuda;
    struct gpu_fixture s;

    driver.enter = own_enter;
    driver.leave = own_leave;
    gpu_fixture_open(&s, &driver, &control, 1);
    ck_assert_int_eq(kernel_run(&s, s.streams[0]),
                     lib.streams_report ? 0 : ENODEV);
    if (lib.streams_report)
        ck_assert_ptr_eq(seen, own);
    ck_assert_int_eq(kernel_run(&s, NULL), ENOTSUP);
    primary_is_not_there();
    gpu_fixture_close(&s);
}
END_TEST

/* The context is current here, and the array is on another device. */
START_TEST(an_array_elsewhere_is_recorded_in_the_primary_context)
{
    struct uva_error error;
    struct gpu_fixture s;

    if (!cuda_second(true))
        return;
    gpu_fixture_open(&s, &cuda, &control, 1);
    gpu_fixture_array(&s, 0, &s.arrays[0]);
    s.arrays[0].device_id = 1;
    stream_gate(NULL, &s.words[0], 1);
    ck_assert_int_eq(
        uva_array_record(s.loop.runtime, &s.arrays[0], NULL, &error), 0);
    gpu_fixture_ask(&s, 0, UVA_FOREVER);
    gpu_fixture_until_done(&s); /* before the gate opens */
    ck_assert_int_eq(s.answer.code, 0);
    uva_array_release(&s.arrays[0]);
    loop_close_runtime(&s.loop, 0);
    gpu_fixture_pass(&s, 0);
    vendor_stream_drain(NULL);
    (void)cuda_second(false);
    gpu_fixture_close(&s);
}
END_TEST

START_TEST(managed_memory_is_there_if_the_driver_has_it)
{
    struct gpu_fixture s;

    gpu_fixture_open(&s, &cuda, &control, 1);
    fake_source_batch(&s.fake, 0, &s.arrays[0]);
    ck_assert_int_eq(transfer(&s, ARROW_DEVICE_CUDA_MANAGED),
                     lib.manages ? 0 : ENOMEM);
    ck_assert_int_eq(s.batches, lib.manages);
    gpu_fixture_close(&s);
}
END_TEST

START_TEST(a_copy_that_wants_the_primary_context_is_told_that_there_is_none)
{
    const struct uva_transfer there = {.device_type = ARROW_DEVICE_CUDA};
    const struct fault fault = {ENODEV, "cuda", 0,
                                "cuDevicePrimaryCtxGetState"};
    struct fault_fixture s;

    fault_open(&s);
    own_enter();
    fault_array(&s, ARROW_DEVICE_CPU, -1, NULL);
    fault_transfer(&s, &there);
    fault_expect(&s, &fault);
    primary_is_not_there();
    own_leave();
    fault_close(&s);
}
END_TEST

/* Only on a double: such an event must not be used on a driver. */
START_TEST(an_event_of_a_context_that_is_gone_is_told_so)
{
    const struct fault fault = {ENODEV, "cuda", UVA__GPU_CONTEXT_DESTROYED,
                                "cuEventQuery"};
    struct fault_fixture s;
    void *stream, *event;

    fault_open(&s);
    own_enter();
    stream = vendor_stream_new();
    event = vendor_event_new();
    vendor_event_record(event, stream);
    vendor_stream_drain(stream);
    vendor_stream_free(stream);
    own_leave();
    fault_array(&s, ARROW_DEVICE_CUDA, 0, &event);
    fault_ready(&s, NULL);
    fault_expect(&s, &fault);
    fault_close(&s);
    vendor_event_free(event);
}
END_TEST

int main(void)
{
    Suite *suite;
    TCase *tc;

    if (!vendor_driver_open(&cuda, &control))
        return 77;
    suite = suite_create("cuda");
    cuda.spares_captures = lib.spares_captures;
    cuda.calls_back = lib.calls_back;
    cuda.pools = lib.pools;
    cuda.peers = lib.pools; /* drivers have both */
    if (lib.pools)
        cuda.alloc = "cuMemAllocAsync";
    cuda.managed_type = lib.manages ? ARROW_DEVICE_CUDA_MANAGED : 0;
    gpu_cases_add(suite, &cuda, &control);
    gpu_faults_add(suite, &cuda, &control);
    gpu_kernels_add(suite, &cuda, &control);
    gpu_beside_add(suite, &cuda, &control);
    tc = suite_case(suite, "contexts", set_up, NULL);
    tcase_set_timeout(tc, 60);
    tcase_add_loop_test(tc, a_default_stream_is_that_of_the_current_context, 0,
                        3);
    tcase_add_loop_test(
        tc, a_default_stream_of_another_context_cannot_be_made_to_wait, 0, 3);
    suite_add(tc, an_array_elsewhere_is_recorded_in_the_primary_context,
              no_context_is_made_where_the_program_has_none,
              a_context_of_the_programs_own_records_but_copies_nothing,
              a_kernel_runs_in_the_context_of_its_stream,
              a_kernel_runs_in_a_context_of_the_programs_own,
              managed_memory_is_there_if_the_driver_has_it,
              a_copy_that_wants_the_primary_context_is_told_that_there_is_none,
              NULL);
    if (control.fakegpu_count != NULL)
        suite_add(tc, an_event_of_a_context_that_is_gone_is_told_so, NULL);
    tc = suite_case(suite, "green contexts", set_up, NULL);
    suite_add(tc, a_green_context_stays_on_its_thread, NULL);
    return gpu_cases_run(suite);
}
