/* SPDX-License-Identifier: Apache-2.0 */
/* HIP, with this machine's library, or the fake one in UVA_HIP_LIBRARY. Skipped
 * without a device. */
#include <errno.h>
#include <stdlib.h>

#include "device/hip_abi.h"
#include "devices/gpu_cases.h"
#include "devices/gpu_faults.h"
#include "devices/gpu_fixture.h"
#include "support/check_suite.h"

/* Functions that only programs call, in addition to the library's. */
static struct {
    struct uva__hip hip;
    struct uva__gpu_calls calls;
    int (*hipInit)(unsigned flags);
    int (*hipGetDeviceCount)(int *count);
    int (*hipPeekAtLastError)(void);
    int (*hipStreamWaitValue32)(void *stream, void *word, uint32_t value,
                                unsigned flags, uint32_t mask);
    int (*hipStreamBeginCapture)(void *stream, int mode);
    int (*hipStreamEndCapture)(void *stream, void **graph);
} lib;

static struct fake_control control;

static bool hip_open(void *library)
{
    vendor_driver_resolve(library, "hipEventCreateWithFlags",
                          &lib.calls.event_create);
    vendor_driver_resolve(library, "hipEventDestroy", &lib.calls.event_destroy);
    vendor_driver_resolve(library, "hipEventRecord", &lib.calls.event_record);
    vendor_driver_resolve(library, "hipEventQuery", &lib.calls.event_query);
    vendor_driver_resolve(library, "hipStreamCreateWithFlags",
                          &lib.calls.stream_create);
    vendor_driver_resolve(library, "hipStreamDestroy",
                          &lib.calls.stream_destroy);
    vendor_driver_resolve(library, "hipStreamSynchronize",
                          &lib.calls.stream_synchronize);
    vendor_driver_resolve(library, "hipHostMalloc", &lib.calls.host_alloc);
    vendor_driver_resolve(library, "hipHostFree", &lib.calls.host_free);
    vendor_driver_resolve(library, "hipStreamWaitValue32",
                          &lib.hipStreamWaitValue32);
    vendor_driver_resolve(library, "hipStreamBeginCapture",
                          &lib.hipStreamBeginCapture);
    vendor_driver_resolve(library, "hipStreamEndCapture",
                          &lib.hipStreamEndCapture);
    vendor_driver_resolve(library, "hipInit", &lib.hipInit);
    vendor_driver_resolve(library, "hipGetDeviceCount", &lib.hipGetDeviceCount);
    vendor_driver_resolve(library, "hipGetDevice", &lib.hip.hipGetDevice);
    vendor_driver_resolve(library, "hipPeekAtLastError",
                          &lib.hipPeekAtLastError);
    vendor_driver_resolve(library, "hipSetDevice", &lib.hip.hipSetDevice);
    vendor_driver_resolve(library, "hipGetLastError", &lib.hip.hipGetLastError);
    vendor_driver_resolve(library, "hipMalloc", &lib.hip.hipMalloc);
    vendor_driver_resolve(library, "hipFree", &lib.hip.hipFree);
    vendor_driver_resolve(library, "hipMemcpyAsync", &lib.hip.hipMemcpyAsync);
    return lib.hipInit(0) == 0 && lib.hip.hipSetDevice(0) == 0;
}

static void must(int code)
{
    ck_assert_int_eq(code, 0);
}

/* HIP always has a current device. */
static void hip_enter(void)
{
    must(lib.hip.hipSetDevice(0));
}

static void hip_leave(void)
{
}

static bool hip_second(bool on)
{
    int devices = 0;

    (void)on;
    return lib.hipGetDeviceCount(&devices) == 0 && devices > 1;
}

static void *stream_new(void)
{
    void *stream;

    must(lib.calls.stream_create(&stream, UVA__GPU_STREAM_NON_BLOCKING));
    return stream;
}

static void stream_free(void *stream)
{
    must(lib.calls.stream_destroy(stream));
}

static void stream_drain(void *stream)
{
    must(lib.calls.stream_synchronize(stream));
}

static void stream_gate(void *stream, _Atomic uint32_t *word, uint32_t value)
{
    must(lib.hipStreamWaitValue32(stream, (void *)word, value, 0, UINT32_MAX));
}

static void stream_upload(void *stream, void *target, const void *source,
                          size_t size)
{
    must(lib.hip.hipMemcpyAsync(target, source, size, UVA__HIP_HOST_TO_DEVICE,
                                stream));
}

static void *event_new(void)
{
    void *event;

    must(lib.calls.event_create(&event, UVA__GPU_EVENT_DISABLE_TIMING));
    return event;
}

static void event_free(void *event)
{
    must(lib.calls.event_destroy(event));
}

static void event_record(void *event, void *stream)
{
    must(lib.calls.event_record(event, stream));
}

static bool event_is_over(void *event)
{
    const int code = lib.calls.event_query(event);

    (void)lib.hip.hipGetLastError();
    return code == 0;
}

static void *device_alloc(size_t size)
{
    void *memory;

    must(lib.hip.hipMalloc(&memory, size));
    return memory;
}

static void device_free(void *memory)
{
    must(lib.hip.hipFree(memory));
}

static void *host_alloc(size_t size)
{
    void *memory;

    must(lib.calls.host_alloc(&memory, size, UVA__GPU_HOST_PORTABLE));
    return memory;
}

static void host_free(void *memory)
{
    must(lib.calls.host_free(memory));
}

static void capture_begin(void *stream)
{
    must(lib.hipStreamBeginCapture(stream, 0));
}

static int capture_end(void *stream)
{
    void *graph = NULL; /* never freed: one per process */

    return lib.hipStreamEndCapture(stream, &graph);
}

static const struct vendor_driver hip = {
    .vendor = "hip",
    .query = "hipEventQuery",
    .choose = "hipSetDevice",
    .alloc = "hipMalloc",
    .too_old = UVA__GPU_OLD_DRIVER,
    .device_type = ARROW_DEVICE_ROCM,
    .host_type = ARROW_DEVICE_ROCM_HOST,
    .spares_captures = true,
    .variable = "UVA_HIP_LIBRARY",
    .names = (const char *const[]){"libamdhip64.so.7", "libamdhip64.so.6",
                                   "libamdhip64.so.5", NULL},
    .open = hip_open,
    .enter = hip_enter,
    .leave = hip_leave,
    .second = hip_second,
    .stream_new = stream_new,
    .stream_free = stream_free,
    .stream_drain = stream_drain,
    .stream_gate = stream_gate,
    .stream_upload = stream_upload,
    .event_new = event_new,
    .event_free = event_free,
    .event_record = event_record,
    .event_is_over = event_is_over,
    .device_alloc = device_alloc,
    .device_free = device_free,
    .host_alloc = host_alloc,
    .host_free = host_free,
    .capture_begin = capture_begin,
    .capture_end = capture_end,
};

/* ---- state of the calling thread ---------------------------------------- */

/* Calls on a thread of the program must leave no error and no other device
 * there. */
START_TEST(the_programs_thread_is_left_as_it_was)
{
    struct uva_error error;
    struct gpu_fixture s;

    gpu_fixture_open(&s, &hip, &control, 1);
    gpu_fixture_array(&s, 0, &s.arrays[0]);
    s.arrays[0].device_id = 77;
    ck_assert_int_eq(
        uva_array_record(s.loop.runtime, &s.arrays[0], s.streams[0], &error),
        ENODEV);
    ck_assert_str_eq(error.vendor, "hip");
    ck_assert_int_eq(error.vendor_code, UVA__GPU_INVALID_DEVICE);
    ck_assert_int_eq(lib.hipPeekAtLastError(), 0);
    s.arrays[0].device_id = 0;
    ck_assert_int_eq(
        uva_array_record(s.loop.runtime, &s.arrays[0], s.streams[0], &error),
        0);
    uva_array_release(&s.arrays[0]);
    gpu_fixture_close(&s);
}
END_TEST

START_TEST(the_programs_device_is_current_again)
{
    struct uva_error error;
    struct gpu_fixture s;
    int device = -1;
    void *stream;

    if (!hip_second(true))
        return;
    gpu_fixture_open(&s, &hip, &control, 1);
    must(lib.hip.hipSetDevice(1));
    stream = stream_new();
    must(lib.hip.hipSetDevice(0));
    gpu_fixture_array(&s, 0, &s.arrays[0]);
    s.arrays[0].device_id = 1;
    ck_assert_int_eq(
        uva_array_record(s.loop.runtime, &s.arrays[0], stream, &error), 0);
    must(lib.hip.hipGetDevice(&device));
    ck_assert_int_eq(device, 0);
    gpu_fixture_ask(&s, 0, UVA_FOREVER);
    gpu_fixture_until_done(&s);
    ck_assert_int_eq(s.answer.code, 0);
    uva_array_release(&s.arrays[0]);
    stream_free(stream);
    gpu_fixture_close(&s);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("hip");
    TCase *tc = tcase_create("thread");

    if (!vendor_driver_open(&hip, &control))
        return 77;
    gpu_cases_add(suite, &hip, &control);
    gpu_faults_add(suite, &hip, &control);
    tcase_set_timeout(tc, 60);
    suite_add(tc, the_programs_thread_is_left_as_it_was,
              the_programs_device_is_current_again, NULL);
    suite_add_tcase(suite, tc);
    return gpu_cases_run(suite);
}
