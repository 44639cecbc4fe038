/* SPDX-License-Identifier: Apache-2.0 */
/* The errors reported if a library of CUDA or HIP is missing, is another
 * library, is the toolkit's stub, or finds no device. The last case also runs
 * with the real HIP library, if it is installed. */
#include <check.h>
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "support/check_suite.h"
#include "support/fault_fixture.h"

static const ArrowDeviceType types[] = {
    ARROW_DEVICE_CUDA, ARROW_DEVICE_CUDA_HOST, ARROW_DEVICE_CUDA_MANAGED,
    ARROW_DEVICE_ROCM, ARROW_DEVICE_ROCM_HOST};

static void type_is_lost(ArrowDeviceType device_type, const char *why)
{
    struct uva_device_info info;
    struct loop_fixture loop;

    loop_open(&loop);
    ck_assert_int_eq(uva_device_get_info(loop.runtime, device_type, &info), 0);
    ck_assert(!info.available);
    ck_assert(!info.can_copy);
    ck_assert_msg(strstr(info.library, why) != NULL, "%s", info.library);
    loop_close(&loop);
}

START_TEST(a_library_that_is_not_there_is_said_so)
{
    setenv("UVA_CUDA_LIBRARY", "/nowhere/libcuda.so.1", 1);
    setenv("UVA_HIP_LIBRARY", "/nowhere/libamdhip64.so", 1);
    type_is_lost(types[_i], "/nowhere/");
}
END_TEST

START_TEST(a_library_of_something_else_is_said_so)
{
    setenv("UVA_CUDA_LIBRARY", UVA_TEST_FAKE_HIP, 1);
    setenv("UVA_HIP_LIBRARY", UVA_TEST_FAKE_CUDA, 1);
    type_is_lost(ARROW_DEVICE_CUDA, "it has no cuEventCreate");
    type_is_lost(ARROW_DEVICE_ROCM, "it has no hipEventCreateWithFlags");
}
END_TEST

START_TEST(the_stub_of_the_toolkit_is_no_library)
{
    setenv("UVA_CUDA_LIBRARY", UVA_TEST_FAKE_CUDA, 1);
    setenv("UVA_FAKE_STUB", "1", 1);
    type_is_lost(ARROW_DEVICE_CUDA, "cuDriverGetVersion failed with 34");
    unsetenv("UVA_FAKE_STUB");
}
END_TEST

START_TEST(a_library_is_named_as_it_was_found)
{
    struct uva_device_info info;
    struct loop_fixture loop;

    setenv("UVA_CUDA_LIBRARY", UVA_TEST_FAKE_CUDA, 1);
    loop_open(&loop);
    ck_assert_int_eq(
        uva_device_get_info(loop.runtime, ARROW_DEVICE_CUDA, &info), 0);
    ck_assert(info.available);
    ck_assert(info.can_copy);
    ck_assert(!info.host_readable);
    ck_assert_str_eq(info.library, UVA_TEST_FAKE_CUDA);
    ck_assert_int_eq(
        uva_device_get_info(loop.runtime, ARROW_DEVICE_CUDA_HOST, &info), 0);
    ck_assert(info.host_readable);
    loop_close(&loop);
}
END_TEST

/* ---- errors of streams -------------------------------------------------- */

/* Runs a stream of arrays with events of a type; the other stream is on the
 * host. */
static void stream_fails_with(ArrowDeviceType device_type,
                              const struct fault *fault)
{
    struct fault_fixture s;
    void *event = NULL;

    fault_open(&s);
    for (int k = 0; k < FAULT_ARRAYS; k++)
        fault_array(&s, device_type, 0, &event);
    fault_ready(&s, NULL);
    fault_expect(&s, fault);
    ck_assert_int_eq(s.f.got.batches, 0);
    fault_close(&s);
}

static const char *vendor_of(int i)
{
    return i < 3 ? "cuda" : "hip";
}

START_TEST(a_stream_is_told_that_the_library_is_not_there)
{
    const struct fault fault = {ENOTSUP, vendor_of(_i), 0, "dlopen"};

    setenv("UVA_CUDA_LIBRARY", "/nowhere/libcuda.so.1", 1);
    setenv("UVA_HIP_LIBRARY", "/nowhere/libamdhip64.so", 1);
    stream_fails_with(types[_i], &fault);
}
END_TEST

START_TEST(a_stream_is_told_that_the_library_is_too_old)
{
    const struct fault fault = {ENOSYS, vendor_of(_i), 0, "dlsym"};

    setenv("UVA_CUDA_LIBRARY", UVA_TEST_FAKE_HIP, 1);
    setenv("UVA_HIP_LIBRARY", UVA_TEST_FAKE_CUDA, 1);
    stream_fails_with(types[_i], &fault);
}
END_TEST

START_TEST(a_stream_is_told_that_the_library_is_the_toolkits_stub)
{
    const struct fault fault = {ENOTSUP, "cuda", 34, "cuDriverGetVersion"};

    setenv("UVA_CUDA_LIBRARY", UVA_TEST_FAKE_CUDA, 1);
    setenv("UVA_FAKE_STUB", "1", 1);
    stream_fails_with(types[_i], &fault);
    unsetenv("UVA_FAKE_STUB");
}
END_TEST

/* CUDA's driver has not been initialised in this case; HIP initialises itself.
 */
START_TEST(a_stream_is_told_that_there_is_no_device)
{
    const struct fault fault = {ENODEV, vendor_of(_i), _i < 3 ? 3 : 100,
                                _i < 3 ? "cuEventQuery" : "hipEventQuery"};

    setenv("UVA_CUDA_LIBRARY", UVA_TEST_FAKE_CUDA, 1);
    setenv("UVA_HIP_LIBRARY", UVA_TEST_FAKE_HIP, 1);
    setenv("UVA_FAKE_NO_DEVICE", "1", 1);
    stream_fails_with(types[_i], &fault);
    unsetenv("UVA_FAKE_NO_DEVICE");
}
END_TEST

/* Looks for Debian's library, which is known to work safely without a
 * device. */
static bool real_hip_has_no_device(void)
{
    void *library = dlopen("libamdhip64.so.5", RTLD_NOW | RTLD_LOCAL);
    int (*count_devices)(int *count) = NULL;
    void *address;
    int count = 0;

    if (library == NULL)
        return false;
    address = dlsym(library, "hipGetDeviceCount");
    memcpy(&count_devices, &address, sizeof(address));
    return address != NULL && count_devices(&count) != 0;
}

START_TEST(the_real_library_without_a_device_says_so)
{
    const struct fault fault = {ENODEV, "hip", FAULT_ANY, "hipEventQuery"};

    unsetenv("UVA_HIP_LIBRARY");
    stream_fails_with(types[3 + _i], &fault);
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("library");

    tcase_set_timeout(tc, 60);
    tcase_add_loop_test(tc, a_library_that_is_not_there_is_said_so, 0, 5);
    suite_add(tc, a_library_of_something_else_is_said_so,
              the_stub_of_the_toolkit_is_no_library,
              a_library_is_named_as_it_was_found, NULL);
    suite_add_loops(tc, 0, 5, a_stream_is_told_that_the_library_is_not_there,
                    a_stream_is_told_that_the_library_is_too_old, NULL);
    tcase_add_loop_test(
        tc, a_stream_is_told_that_the_library_is_the_toolkits_stub, 0, 3);
    tcase_add_loop_test(tc, a_stream_is_told_that_there_is_no_device, 0, 5);
    if (real_hip_has_no_device())
        tcase_add_loop_test(tc, the_real_library_without_a_device_says_so, 0,
                            2);
    return suite_main("gpu library", NULL, NULL, tc, NULL);
}
