/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that a vendor has pinned: a returned block is reused for requests of
 * about that size on its device, up to a limit. */
#include <check.h>
#include <string.h>
#include <sys/mman.h>

#include "device/driver_gate.h"
#include "device/pinned_pool.h"
#include "support/check_suite.h"
#include "support/faulty_libc.h"

enum { PAGE = 4096, MOST = 256 << 20 };

/* A vendor that counts. Its blocks cannot be accessed, as the pool must not use
 * them: a driver may unmap them when the process exits. */
static struct vendor {
    int allocs, live;
    ArrowDeviceType type; /* last requested */
    int64_t device_id;    /* last requested */
    size_t size;          /* last requested */
} vendor;

static void *vendor_alloc(void *state, ArrowDeviceType device_type,
                          int64_t device_id, size_t size_bytes)
{
    (void)state;
    vendor.allocs++;
    vendor.live++;
    vendor.type = device_type;
    vendor.device_id = device_id;
    vendor.size = size_bytes;
    return mmap(NULL, PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

static void vendor_dealloc(void *state, ArrowDeviceType device_type,
                           int64_t device_id, void *memory)
{
    (void)state;
    (void)device_id;
    ck_assert_int_eq(device_type, vendor.type);
    vendor.live--;
    (void)munmap(memory, PAGE);
}

static const struct uva_device_ops both = {.alloc = vendor_alloc,
                                           .dealloc = vendor_dealloc};

static struct uva__backend row(ArrowDeviceType type)
{
    memset(&vendor, 0, sizeof(vendor));
    return (struct uva__backend){.device_type = type, .ops = &both};
}

START_TEST(the_types_of_gpus_have_pinned_memory)
{
    static const ArrowDeviceType types[][2] = {
        {ARROW_DEVICE_CUDA, ARROW_DEVICE_CUDA_HOST},
        {ARROW_DEVICE_CUDA_MANAGED, ARROW_DEVICE_CUDA_HOST},
        {ARROW_DEVICE_ROCM, ARROW_DEVICE_ROCM_HOST},
        {ARROW_DEVICE_OPENCL, ARROW_DEVICE_CPU},
        {ARROW_DEVICE_EXT_DEV, ARROW_DEVICE_CPU}};
    struct uva__backend backend = row(types[_i][0]);

    ck_assert_int_eq(uva__pinned_pool_type(&backend), types[_i][1]);
}
END_TEST

START_TEST(a_table_needs_both_functions_for_it)
{
    const struct uva_device_ops alloc = {.alloc = vendor_alloc};
    const struct uva_device_ops dealloc = {.dealloc = vendor_dealloc};
    struct uva__backend backend = row(ARROW_DEVICE_CUDA);

    backend.ops = _i == 0 ? &alloc : &dealloc;
    ck_assert_int_eq(uva__pinned_pool_type(&backend), ARROW_DEVICE_CPU);
}
END_TEST

/* Eight classes for each power of two, from 16 pages on. */
START_TEST(sizes_come_in_classes)
{
    static const struct {
        size_t asked, given;
    } sizes[] = {{1, PAGE},
                 {PAGE, PAGE},
                 {PAGE + 1, 2 * PAGE},
                 {16 * PAGE, 16 * PAGE},
                 {16 * PAGE + 1, 17 * PAGE},
                 {32 * PAGE - 1, 32 * PAGE},
                 {32 * PAGE + 1, 34 * PAGE},
                 {1000 * PAGE + 1, 1024 * PAGE}};
    struct uva__backend backend = row(ARROW_DEVICE_CUDA);
    void *memory = uva__pinned_pool_take(&backend, 3, sizes[_i].asked);

    ck_assert_uint_eq(vendor.size, sizes[_i].given);
    ck_assert_uint_le(vendor.size, sizes[_i].asked * 9 / 8 + PAGE);
    ck_assert_int_eq(vendor.type, ARROW_DEVICE_CUDA_HOST);
    ck_assert_int_eq(vendor.device_id, 3);
    uva__pinned_pool_give(&backend, 3, memory, sizes[_i].asked);
    uva__pinned_pool_clear(&backend);
    ck_assert_int_eq(vendor.live, 0);
}
END_TEST

START_TEST(what_came_back_is_given_to_who_asks_for_about_as_much)
{
    struct uva__backend backend = row(ARROW_DEVICE_ROCM);
    void *small = uva__pinned_pool_take(&backend, 0, 100);
    void *large = uva__pinned_pool_take(&backend, 0, 5 * PAGE);
    void *other = uva__pinned_pool_take(&backend, 1, 100);

    uva__pinned_pool_give(&backend, 0, small, 100);
    uva__pinned_pool_give(&backend, 0, large, 5 * PAGE);
    uva__pinned_pool_give(&backend, 1, other, 100);
    ck_assert_int_eq(vendor.live, 3);
    ck_assert_uint_eq(backend.pinned.size_bytes, 7 * PAGE);
    ck_assert_ptr_eq(uva__pinned_pool_take(&backend, 0, 200), small);
    ck_assert_ptr_eq(uva__pinned_pool_take(&backend, 0, 5 * PAGE - 7), large);
    ck_assert_ptr_eq(uva__pinned_pool_take(&backend, 1, PAGE), other);
    ck_assert_uint_eq(backend.pinned.size_bytes, 0);
    ck_assert_int_eq(vendor.allocs, 3);
    uva__pinned_pool_give(&backend, 0, small, 100);
    uva__pinned_pool_give(&backend, 0, large, 5 * PAGE);
    uva__pinned_pool_give(&backend, 1, other, 100);
    uva__pinned_pool_clear(&backend);
    ck_assert_int_eq(vendor.live, 0);
    ck_assert_ptr_null(backend.pinned.first);
}
END_TEST

START_TEST(no_more_than_a_bound_is_kept)
{
    struct uva__backend backend = row(ARROW_DEVICE_CUDA);
    void *half = uva__pinned_pool_take(&backend, 0, MOST / 2);
    void *more = uva__pinned_pool_take(&backend, 0, MOST / 2 + 1);
    void *rest = uva__pinned_pool_take(&backend, 0, MOST / 2);

    uva__pinned_pool_give(&backend, 0, half, MOST / 2);
    uva__pinned_pool_give(&backend, 0, more, MOST / 2 + 1);
    ck_assert_int_eq(vendor.live, 2); /* that block was freed */
    uva__pinned_pool_give(&backend, 0, rest, MOST / 2);
    ck_assert_int_eq(vendor.live, 2);
    ck_assert_uint_eq(backend.pinned.size_bytes, MOST);
    uva__pinned_pool_clear(&backend);
    ck_assert_int_eq(vendor.live, 0);
    ck_assert_uint_eq(backend.pinned.size_bytes, 0);
}
END_TEST

START_TEST(a_block_is_not_kept_without_memory_for_the_list)
{
    struct uva__backend backend = row(ARROW_DEVICE_CUDA);
    void *memory = uva__pinned_pool_take(&backend, 0, PAGE);

    faulty_libc_fail(1);
    uva__pinned_pool_give(&backend, 0, memory, PAGE);
    ck_assert(faulty_libc_stop());
    ck_assert_int_eq(vendor.live, 0);
    ck_assert_uint_eq(backend.pinned.size_bytes, 0);
}
END_TEST

START_TEST(nothing_is_freed_once_the_process_exits)
{
    struct uva__backend backend = row(ARROW_DEVICE_CUDA);
    void *kept = uva__pinned_pool_take(&backend, 0, PAGE);
    void *large = uva__pinned_pool_take(&backend, 0, MOST + 1);

    uva__driver_gate_close();
    uva__pinned_pool_give(&backend, 0, kept, PAGE);
    uva__pinned_pool_give(&backend, 0, large, MOST + 1);
    uva__pinned_pool_clear(&backend);
    ck_assert_int_eq(vendor.live, 2);
    ck_assert_ptr_null(backend.pinned.first);
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("memory");

    tcase_add_loop_test(tc, the_types_of_gpus_have_pinned_memory, 0, 5);
    tcase_add_loop_test(tc, a_table_needs_both_functions_for_it, 0, 2);
    tcase_add_loop_test(tc, sizes_come_in_classes, 0, 8);
    tcase_add_test(tc, what_came_back_is_given_to_who_asks_for_about_as_much);
    tcase_add_test(tc, no_more_than_a_bound_is_kept);
    tcase_add_test(tc, a_block_is_not_kept_without_memory_for_the_list);
    tcase_add_test(tc, nothing_is_freed_once_the_process_exits);
    return suite_main("device pinned", NULL, NULL, tc, NULL);
}
