/* SPDX-License-Identifier: Apache-2.0 */
/* What is said where a library of CUDA or HIP is not there, is another one, is
 * the toolkit's stub, or finds no device. The last with the real HIP library,
 * where there is one. */
#include <check.h>
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "support/fake_source.h"
#include "support/loop_rig.h"
#include "uvarrow/uvarrow.h"

static void type_is_lost(ArrowDeviceType device_type, const char *why)
{
    struct uva_device_info info;
    struct loop_rig rig;

    loop_rig_open(&rig);
    ck_assert_int_eq(uva_device_get_info(rig.runtime, device_type, &info), 0);
    ck_assert(!info.available);
    ck_assert(!info.can_copy);
    ck_assert_msg(strstr(info.library, why) != NULL, "%s", info.library);
    loop_rig_close(&rig);
}

START_TEST(a_library_that_is_not_there_is_said_so)
{
    static const ArrowDeviceType types[] = {
        ARROW_DEVICE_CUDA, ARROW_DEVICE_CUDA_HOST, ARROW_DEVICE_CUDA_MANAGED,
        ARROW_DEVICE_ROCM, ARROW_DEVICE_ROCM_HOST};

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
    struct loop_rig rig;

    setenv("UVA_CUDA_LIBRARY", UVA_TEST_FAKE_CUDA, 1);
    loop_rig_open(&rig);
    ck_assert_int_eq(uva_device_get_info(rig.runtime, ARROW_DEVICE_CUDA, &info),
                     0);
    ck_assert(info.available);
    ck_assert(info.can_copy);
    ck_assert(!info.host_readable);
    ck_assert_str_eq(info.library, UVA_TEST_FAKE_CUDA);
    ck_assert_int_eq(
        uva_device_get_info(rig.runtime, ARROW_DEVICE_CUDA_HOST, &info), 0);
    ck_assert(info.host_readable);
    loop_rig_close(&rig);
}
END_TEST

/* ---- no device ---------------------------------------------------------- */

struct answer {
    bool done;
    struct uva_error error;
};

static void on_answer(void *ctx, struct ArrowDeviceArray *array,
                      const struct uva_error *error)
{
    struct answer *answer = ctx;

    answer->error = *error;
    answer->done = true;
    uva_array_release(array);
}

static bool is_done(void *ctx)
{
    return ((struct answer *)ctx)->done;
}

static void wait_finds_no_device(void)
{
    struct ArrowDeviceArray array;
    struct answer answer = {0};
    struct fake_source fake;
    struct loop_rig rig;
    void *event = NULL;

    loop_rig_open(&rig);
    fake_source_init(&fake, 1);
    fake_source_batch(&fake, 0, &array);
    array.device_type = ARROW_DEVICE_ROCM;
    array.sync_event = &event;
    ck_assert_int_eq(
        uva_array_wait(rig.runtime, &array, UVA_FOREVER, on_answer, &answer),
        0);
    loop_rig_until(&rig, is_done, &answer);
    ck_assert_int_eq(answer.error.code, ENODEV);
    ck_assert_str_eq(answer.error.vendor, "hip");
    ck_assert_int_ne(answer.error.vendor_code, 0);
    ck_assert_ptr_nonnull(strstr(answer.error.message, "hipEventQuery"));
    loop_rig_close(&rig);
    fake_source_fini(&fake);
}

START_TEST(a_library_without_a_device_says_so)
{
    setenv("UVA_HIP_LIBRARY", UVA_TEST_FAKE_HIP, 1);
    setenv("UVA_FAKE_NO_DEVICE", "1", 1);
    wait_finds_no_device();
    unsetenv("UVA_FAKE_NO_DEVICE");
}
END_TEST

/* Debian's, of which one without a device is known to be careful. */
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
    unsetenv("UVA_HIP_LIBRARY");
    wait_finds_no_device();
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("gpu library");
    TCase *tc = tcase_create("library");
    SRunner *runner;
    int failed;

    tcase_set_timeout(tc, 60);
    tcase_add_loop_test(tc, a_library_that_is_not_there_is_said_so, 0, 5);
    tcase_add_test(tc, a_library_of_something_else_is_said_so);
    tcase_add_test(tc, the_stub_of_the_toolkit_is_no_library);
    tcase_add_test(tc, a_library_is_named_as_it_was_found);
    tcase_add_test(tc, a_library_without_a_device_says_so);
    if (real_hip_has_no_device())
        tcase_add_test(tc, the_real_library_without_a_device_says_so);
    suite_add_tcase(suite, tc);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
