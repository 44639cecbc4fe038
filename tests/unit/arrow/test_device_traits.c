/* SPDX-License-Identifier: Apache-2.0 */
/* The place of the memory of each device type, and its events. */
#include <check.h>
#include <stdint.h>
#include <stdlib.h>

#include "arrow/device_traits.h"
#include "support/check_suite.h"

static const struct {
    ArrowDeviceType type;
    const char *name;
    bool host, pinned, readable, has_events;
} types[] = {
    {ARROW_DEVICE_CPU, "CPU", true, false, true, false},
    {ARROW_DEVICE_CUDA, "CUDA", false, false, false, true},
    {ARROW_DEVICE_CUDA_HOST, "CUDA_HOST", true, true, true, true},
    {ARROW_DEVICE_OPENCL, "OPENCL", false, false, false, true},
    {ARROW_DEVICE_VULKAN, "VULKAN", false, false, false, true},
    {ARROW_DEVICE_METAL, "METAL", false, false, false, true},
    {ARROW_DEVICE_VPI, "VPI", false, false, false, false},
    {ARROW_DEVICE_ROCM, "ROCM", false, false, false, true},
    {ARROW_DEVICE_ROCM_HOST, "ROCM_HOST", true, true, true, true},
    {ARROW_DEVICE_EXT_DEV, "EXT_DEV", false, false, false, true},
    {ARROW_DEVICE_CUDA_MANAGED, "CUDA_MANAGED", false, false, true, true},
    {ARROW_DEVICE_ONEAPI, "ONEAPI", false, false, false, true},
    {ARROW_DEVICE_WEBGPU, "WEBGPU", false, false, false, false},
    {ARROW_DEVICE_HEXAGON, "HEXAGON", false, false, false, false},
};

enum { TYPES = sizeof(types) / sizeof(types[0]) };

START_TEST(a_type_of_the_document_has_its_traits)
{
    const ArrowDeviceType type = types[_i].type;

    ck_assert_str_eq(uva__device_traits(type)->name, types[_i].name);
    ck_assert_int_eq(uva__device_is_host(type), types[_i].host);
    ck_assert_int_eq(uva__device_is_pinned(type), types[_i].pinned);
    ck_assert_int_eq(uva__device_is_readable(type), types[_i].readable);
    ck_assert_int_eq(uva__device_has_events(type), types[_i].has_events);
}
END_TEST

START_TEST(no_other_number_is_a_type)
{
    int known = 0;

    for (int type = -1; type <= UVA__DEVICE_TYPES; type++)
        known += uva__device_traits(type)->name != NULL;
    ck_assert_int_eq(known, TYPES);
}
END_TEST

START_TEST(an_unknown_type_is_device_memory_with_an_unknown_event)
{
    const ArrowDeviceType numbers[] = {INT32_MIN, -1, 0, 5, 6, 17, INT32_MAX};
    const struct uva__device_traits *traits = uva__device_traits(numbers[_i]);

    ck_assert_ptr_null(traits->name);
    ck_assert_int_eq(traits->memory, UVA__MEMORY_DEVICE);
    ck_assert_int_eq(traits->events, UVA__EVENTS_UNKNOWN);
    ck_assert_int_eq(traits->pinned_type, 0);
    ck_assert(uva__device_has_events(numbers[_i]));
}
END_TEST

START_TEST(types_of_one_vendor_have_events_of_one_kind)
{
    const enum uva__device_events cuda =
        uva__device_traits(ARROW_DEVICE_CUDA)->events;
    const enum uva__device_events hip =
        uva__device_traits(ARROW_DEVICE_ROCM)->events;

    ck_assert_int_eq(uva__device_traits(ARROW_DEVICE_CUDA_HOST)->events, cuda);
    ck_assert_int_eq(uva__device_traits(ARROW_DEVICE_CUDA_MANAGED)->events,
                     cuda);
    ck_assert_int_eq(uva__device_traits(ARROW_DEVICE_ROCM_HOST)->events, hip);
    ck_assert_int_ne(cuda, hip);
}
END_TEST

START_TEST(pinned_memory_goes_with_a_device_of_its_vendor)
{
    const struct uva__device_traits *traits =
        uva__device_traits(types[_i].type);
    const ArrowDeviceType pinned = traits->pinned_type;

    if (pinned == 0)
        return;
    ck_assert(uva__device_is_pinned(pinned));
    ck_assert(!uva__device_is_host(types[_i].type));
    ck_assert_int_eq(uva__device_traits(pinned)->events, traits->events);
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("types");

    tcase_add_loop_test(tc, a_type_of_the_document_has_its_traits, 0, TYPES);
    tcase_add_test(tc, no_other_number_is_a_type);
    tcase_add_loop_test(
        tc, an_unknown_type_is_device_memory_with_an_unknown_event, 0, 7);
    tcase_add_test(tc, types_of_one_vendor_have_events_of_one_kind);
    tcase_add_loop_test(tc, pinned_memory_goes_with_a_device_of_its_vendor, 0,
                        TYPES);
    return suite_main("device traits", NULL, NULL, tc, NULL);
}
