/* SPDX-License-Identifier: Apache-2.0 */
/* HIP, with this machine's library, or the fake one in UVA_HIP_LIBRARY. Skipped
 * without a device. */
#include <errno.h>
#include <stdlib.h>

#include "device/hip_abi.h"
#include "devices/gpu_beside.h"
#include "devices/gpu_cases.h"
#include "devices/gpu_faults.h"
#include "devices/gpu_fixture.h"
#include "devices/gpu_kernels.h"
#include "support/check_suite.h"

/* Functions that only programs call, in addition to the library's. */
static struct {
    struct uva__hip hip;
    int (*hipInit)(unsigned flags);
    int (*hipGetDeviceCount)(int *count);
    int (*hipPeekAtLastError)(void);
    int (*hipStreamWaitValue32)(void *stream, void *word, uint32_t value,
                                unsigned flags, uint32_t mask);
    int (*hipStreamBeginCapture)(void *stream, int mode);
    int (*hipStreamEndCapture)(void *stream, void **graph);
} lib;

static struct fake_control control;

static const struct vendor_function functions[] = {
    {"hipEventCreateWithFlags", &vendor_calls.event_create},
    {"hipEventDestroy", &vendor_calls.event_destroy},
    {"hipEventRecord", &vendor_calls.event_record},
    {"hipEventQuery", &vendor_calls.event_query},
    {"hipStreamCreateWithFlags", &vendor_calls.stream_create},
    {"hipStreamDestroy", &vendor_calls.stream_destroy},
    {"hipStreamSynchronize", &vendor_calls.stream_synchronize},
    {"hipHostMalloc", &vendor_calls.host_alloc},
    {"hipHostFree", &vendor_calls.host_free},
    {"hipStreamWaitValue32", &lib.hipStreamWaitValue32},
    {"hipStreamBeginCapture", &lib.hipStreamBeginCapture},
    {"hipStreamEndCapture", &lib.hipStreamEndCapture},
    {"hipInit", &lib.hipInit},
    {"hipGetDeviceCount", &lib.hipGetDeviceCount},
    {"hipGetDevice", &lib.hip.hipGetDevice},
    {"hipPeekAtLastError", &lib.hipPeekAtLastError},
    {"hipSetDevice", &lib.hip.hipSetDevice},
    {"hipGetLastError", &lib.hip.hipGetLastError},
    {"hipMalloc", &lib.hip.hipMalloc},
    {"hipFree", &lib.hip.hipFree},
    {"hipMemcpyAsync", &lib.hip.hipMemcpyAsync},
    {NULL, NULL},
};

static bool hip_open(void *library)
{
    vendor_driver_resolve(library, functions);
    return lib.hipInit(0) == 0 && lib.hip.hipSetDevice(0) == 0;
}

/* HIP always has a current device. */
static void hip_enter(void)
{
    vendor_must(lib.hip.hipSetDevice(0));
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

static void stream_gate(void *stream, _Atomic uint32_t *word, uint32_t value)
{
    vendor_must(lib.hipStreamWaitValue32(vendor_stream_known(stream),
                                         (void *)word, value, 0, UINT32_MAX));
}

static void stream_upload(void *stream, void *target, const void *source,
                          size_t size)
{
    vendor_must(lib.hip.hipMemcpyAsync(target, source, size,
                                       UVA__HIP_HOST_TO_DEVICE,
                                       vendor_stream_known(stream)));
}

static bool event_is_over(void *event)
{
    const int code = vendor_calls.event_query(event);

    (void)lib.hip.hipGetLastError();
    return code == 0;
}

static void *device_alloc(size_t size)
{
    void *memory;

    vendor_must(lib.hip.hipMalloc(&memory, size));
    return memory;
}

static void device_free(void *memory)
{
    vendor_must(lib.hip.hipFree(memory));
}

static void capture_begin(void *stream)
{
    vendor_must(lib.hipStreamBeginCapture(stream, 0));
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
    .peers = true,
    .variable = "UVA_HIP_LIBRARY",
    .names = (const char *const[]){"libamdhip64.so.7", "libamdhip64.so.6",
                                   "libamdhip64.so.5", NULL},
    .open = hip_open,
    .enter = hip_enter,
    .leave = hip_leave,
    .second = hip_second,
    .stream_gate = stream_gate,
    .stream_upload = stream_upload,
    .event_is_over = event_is_over,
    .device_alloc = device_alloc,
    .device_free = device_free,
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
    vendor_must(lib.hip.hipSetDevice(1));
    stream = vendor_stream_new();
    vendor_must(lib.hip.hipSetDevice(0));
    gpu_fixture_array(&s, 0, &s.arrays[0]);
    s.arrays[0].device_id = 1;
    ck_assert_int_eq(
        uva_array_record(s.loop.runtime, &s.arrays[0], stream, &error), 0);
    vendor_must(lib.hip.hipGetDevice(&device));
    ck_assert_int_eq(device, 0);
    gpu_fixture_ask(&s, 0, UVA_FOREVER);
    gpu_fixture_until_done(&s);
    ck_assert_int_eq(s.answer.code, 0);
    uva_array_release(&s.arrays[0]);
    vendor_stream_free(stream);
    gpu_fixture_close(&s);
}
END_TEST

int main(void)
{
    Suite *suite;
    TCase *tc;

    if (!vendor_driver_open(&hip, &control))
        return 77;
    suite = suite_create("hip");
    tc = tcase_create("thread");
    gpu_cases_add(suite, &hip, &control);
    gpu_faults_add(suite, &hip, &control);
    gpu_kernels_add(suite, &hip, &control);
    gpu_beside_add(suite, &hip, &control);
    tcase_set_timeout(tc, 60);
    suite_add(tc, the_programs_thread_is_left_as_it_was,
              the_programs_device_is_current_again, NULL);
    suite_add_tcase(suite, tc);
    return gpu_cases_run(suite);
}
