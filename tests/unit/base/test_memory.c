/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks: cleared, aligned, counted, and allocated by the given functions. */
#include "base/memory.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "support/check_suite.h"
#include "support/faulty_allocator.h"

START_TEST(zeroes_become_the_c_library)
{
    struct uva_allocator given = {0}, out;
    char *block;

    ck_assert_int_eq(uva__memory_adopt(&given, &out), 0);
    block = uva__memory_new(&out, 100);
    ck_assert_ptr_nonnull(block);
    for (int i = 0; i < 100; i++)
        ck_assert_int_eq(block[i], 0);
    uva__memory_free(&out, block, 100);
}
END_TEST

START_TEST(an_allocator_of_two_functions_is_kept)
{
    struct faulty_allocator faulty;
    struct uva_allocator given, out;

    faulty_allocator_init(&faulty, 0);
    given = faulty_allocator_table(&faulty);
    ck_assert_int_eq(uva__memory_adopt(&given, &out), 0);
    ck_assert_ptr_eq(out.ctx, &faulty);
    ck_assert(out.alloc == given.alloc && out.dealloc == given.dealloc);
}
END_TEST

START_TEST(half_an_allocator_is_refused)
{
    struct faulty_allocator faulty;
    struct uva_allocator given, out;

    faulty_allocator_init(&faulty, 0);
    given = faulty_allocator_table(&faulty);
    given.dealloc = NULL;
    ck_assert_int_eq(uva__memory_adopt(&given, &out), EINVAL);
    given = faulty_allocator_table(&faulty);
    given.alloc = NULL;
    ck_assert_int_eq(uva__memory_adopt(&given, &out), EINVAL);
}
END_TEST

START_TEST(every_alignment_up_to_a_page_is_kept)
{
    struct faulty_allocator faulty;
    struct uva_allocator tables[2];

    faulty_allocator_init(&faulty, 0);
    tables[0] = faulty_allocator_table(&faulty);
    ck_assert_int_eq(uva__memory_adopt(&(struct uva_allocator){0}, &tables[1]),
                     0);
    for (int t = 0; t < 2; t++)
        for (size_t align = 1; align <= 4096; align *= 2)
            for (size_t size = 1; size < 200; size += 33) {
                char *block = uva__memory_new_aligned(&tables[t], size, align);
                ck_assert_uint_eq((uintptr_t)block % align, 0);
                ck_assert(block[0] == 0 && block[size - 1] == 0);
                uva__memory_free(&tables[t], block, size);
            }
    ck_assert_int_eq(faulty_allocator_live(&faulty), 0);
}
END_TEST

START_TEST(no_memory_is_null_and_null_may_come_back)
{
    struct faulty_allocator faulty;
    struct uva_allocator table;

    faulty_allocator_init(&faulty, 1);
    table = faulty_allocator_table(&faulty);
    ck_assert_ptr_null(uva__memory_new(&table, 8));
    uva__memory_free(&table, NULL, 8);
    ck_assert_int_eq(faulty_allocator_asked(&faulty), 1);
}
END_TEST

START_TEST(more_than_there_can_be_is_null)
{
    struct uva_allocator out;

    ck_assert_int_eq(uva__memory_adopt(&(struct uva_allocator){0}, &out), 0);
    ck_assert_ptr_null(uva__memory_new_aligned(&out, SIZE_MAX - 8, 4096));
}
END_TEST

int main(void)
{
    TCase *blocks = tcase_create("blocks");

    tcase_add_test(blocks, zeroes_become_the_c_library);
    tcase_add_test(blocks, an_allocator_of_two_functions_is_kept);
    tcase_add_test(blocks, half_an_allocator_is_refused);
    tcase_add_test(blocks, every_alignment_up_to_a_page_is_kept);
    tcase_add_test(blocks, no_memory_is_null_and_null_may_come_back);
    tcase_add_test(blocks, more_than_there_can_be_is_null);
    return suite_main("memory", NULL, NULL, blocks, NULL);
}
