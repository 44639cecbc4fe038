/* SPDX-License-Identifier: Apache-2.0 */
/* Pieces of a copy in pinned memory: packed, as large as a block at most, and
 * as many as there are blocks; without pinned memory there is no staging. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "device/pinned_pool.h"
#include "device/staging.h"
#include "support/check_suite.h"

enum { BLOCK = UVA__STAGING_BLOCK, MOST = UVA__STAGING_BLOCKS };

static int live, left; /* blocks; allocs that succeed */

static void *vendor_alloc(void *state, ArrowDeviceType device_type,
                          int64_t device_id, size_t size_bytes)
{
    (void)state;
    ck_assert_int_eq(device_type, ARROW_DEVICE_CUDA_HOST);
    ck_assert_int_eq(device_id, 3);
    if (left-- <= 0)
        return NULL;
    live++;
    return malloc(size_bytes);
}

static void vendor_dealloc(void *state, ArrowDeviceType device_type,
                           int64_t device_id, void *memory)
{
    (void)state;
    (void)device_type;
    (void)device_id;
    live--;
    free(memory);
}

static const struct uva_device_ops ops = {.alloc = vendor_alloc,
                                          .dealloc = vendor_dealloc};
static struct uva__backend backend = {.device_type = ARROW_DEVICE_CUDA,
                                      .ops = &ops};
static struct uva__staging staging;

static void open_for(size_t announced, int blocks)
{
    memset(&staging, 0, sizeof(staging));
    left = blocks;
    uva__staging_begin(&staging, &backend, 3);
    uva__staging_announce(&staging, announced);
}

static void tear_down(void)
{
    uva__staging_clear(&staging);
    uva__pinned_pool_clear(&backend);
    ck_assert_int_eq(live, 0);
}

START_TEST(small_buffers_share_a_block)
{
    const void *first, *second;

    open_for(10, MOST);
    uva__staging_announce(&staging, 100);
    ck_assert_uint_eq(uva__staging_put(&staging, "abcdefghi", 10, &first), 10);
    ck_assert_uint_eq(uva__staging_put(&staging, "ABCDEFGHI", 10, &second), 10);
    ck_assert_str_eq(first, "abcdefghi");
    ck_assert_str_eq(second, "ABCDEFGHI");
    ck_assert_ptr_eq(second, (const char *)first + 64);
    ck_assert_int_eq(live, 1);
}
END_TEST

START_TEST(a_large_buffer_goes_in_pieces_until_all_blocks_are_in_flight)
{
    const size_t size = (size_t)(MOST + 1) * BLOCK + 5;
    char *source = calloc(1, size);
    const void *out;
    size_t done = 0;

    open_for(size, MOST);
    for (int i = 0; i < MOST; i++, done += BLOCK) {
        source[done] = (char)i;
        ck_assert_uint_eq(
            uva__staging_put(&staging, source + done, size - done, &out),
            BLOCK);
        ck_assert_int_eq(*(const char *)out, i);
    }
    ck_assert_uint_eq(uva__staging_put(&staging, source + done, 1, &out), 0);
    uva__staging_clear(&staging);
    ck_assert_uint_eq(
        uva__staging_put(&staging, source + done, size - done, &out), BLOCK);
    done += BLOCK;
    ck_assert_uint_eq(
        uva__staging_put(&staging, source + done, size - done, &out), 5);
    ck_assert_int_eq(live, MOST + 0); /* they were used again */
    free(source);
}
END_TEST

START_TEST(without_pinned_memory_the_source_itself_is_copied)
{
    static const char source[2 * BLOCK];
    const void *out;

    open_for(sizeof(source), _i);
    if (_i == 1)
        ck_assert_uint_eq(
            uva__staging_put(&staging, source, sizeof(source), &out), BLOCK);
    ck_assert_uint_eq(uva__staging_put(&staging, source, sizeof(source), &out),
                      sizeof(source));
    ck_assert_ptr_eq(out, source);
}
END_TEST

START_TEST(a_type_without_pinned_memory_stages_nothing)
{
    struct uva__backend other = {.device_type = ARROW_DEVICE_OPENCL,
                                 .ops = &ops};
    const void *out;

    open_for(0, 0);
    memset(&staging, 0, sizeof(staging));
    uva__staging_begin(&staging, &other, 3);
    ck_assert_uint_eq(uva__staging_put(&staging, "abc", 4, &out), 4);
    ck_assert_str_eq(out, "abc");
    ck_assert_int_eq(left, 0);
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("pieces");

    suite_add(tc, small_buffers_share_a_block,
              a_large_buffer_goes_in_pieces_until_all_blocks_are_in_flight,
              a_type_without_pinned_memory_stages_nothing, NULL);
    tcase_add_loop_test(tc, without_pinned_memory_the_source_itself_is_copied,
                        0, 2);
    return suite_main("staging", NULL, tear_down, tc, NULL);
}
