/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks that are kept come back cleared, to the kind and the size that they
 * had. Only a few blocks are kept, no large ones, and of one size. A user's
 * allocator gets each one back at once. */
#include "stream/spares.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "support/check_suite.h"
#include "support/faulty_allocator.h"
#include "support/faulty_libc.h"

enum { SIZE = 200, CLEARED = 100, MANY = 40 };

static struct uva__rt *rt;

static struct uva__rt *open_rt(const struct uva_allocator *allocator)
{
    struct uva_runtime_options options = {0};
    struct uva__rt *made;

    if (allocator != NULL)
        options.allocator = *allocator;
    ck_assert_int_eq(uva__rt_new(&options, &made), 0);
    return made;
}

static void close_rt(struct uva__rt *open)
{
    uva__rt_retire(open);
    uva__rt_release(open);
}

static void set_up(void)
{
    rt = open_rt(NULL);
}

static void tear_down(void)
{
    close_rt(rt);
}

static char *take(enum uva__spare kind, size_t size)
{
    char *block = uva__spares_take(rt, kind, size, CLEARED);

    ck_assert_ptr_nonnull(block);
    for (size_t i = 0; i < CLEARED; i++)
        ck_assert_int_eq(block[i], 0);
    memset(block, 0xA5, size);
    return block;
}

static void take_and_put(int times)
{
    for (int i = 0; i < times; i++)
        uva__spares_put(rt, UVA__SPARE_LABEL, take(UVA__SPARE_LABEL, SIZE),
                        SIZE);
}

START_TEST(a_block_is_cleared_again)
{
    take_and_put(3);
}
END_TEST

START_TEST(a_block_is_not_given_twice)
{
    char *blocks[MANY];

    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < MANY; i++) {
            blocks[i] = take(UVA__SPARE_LABEL, SIZE);
            for (int j = 0; j < i; j++)
                ck_assert_ptr_ne(blocks[i], blocks[j]);
        }
        for (int i = 0; i < MANY; i++)
            uva__spares_put(rt, UVA__SPARE_LABEL, blocks[i], SIZE);
    }
}
END_TEST

/* A block is never one that was put back with less room: that block is still
 * kept, so the C library has not reused it. */
START_TEST(a_block_has_the_size_that_was_asked_for)
{
    char *small = take(UVA__SPARE_LABEL, SIZE), *large, *again;

    uva__spares_put(rt, UVA__SPARE_LABEL, small, SIZE);
    large = take(UVA__SPARE_LABEL, 100 * (size_t)SIZE);
    again = take(UVA__SPARE_LABEL, SIZE);
    ck_assert(large + 100 * (size_t)SIZE <= again || again + SIZE <= large);
    uva__spares_put(rt, UVA__SPARE_LABEL, again, SIZE);
    uva__spares_put(rt, UVA__SPARE_LABEL, large, 100 * (size_t)SIZE);
}
END_TEST

/* Returns whether a returned block is the next one that is taken: that needs no
 * memory. */
static bool is_kept(size_t size)
{
    char *block = take(UVA__SPARE_READER, size), *again;

    uva__spares_put(rt, UVA__SPARE_READER, block, size);
    faulty_libc_fail(1);
    again = uva__spares_take(rt, UVA__SPARE_READER, size, CLEARED);
    (void)faulty_libc_stop();
    if (again != NULL)
        uva__spares_put(rt, UVA__SPARE_READER, again, size);
    return again != NULL;
}

START_TEST(blocks_of_the_last_size_are_kept)
{
    const bool any = UVA__SPARES_KEPT > 0;

    ck_assert_int_eq(is_kept(SIZE), any);
    ck_assert_int_eq(is_kept(2 * (size_t)SIZE), any);
    ck_assert_int_eq(is_kept(SIZE), any);
    ck_assert_int_eq(is_kept(UVA__SPARES_MAX_BYTES), any);
    ck_assert(!is_kept(UVA__SPARES_MAX_BYTES + 1));
    ck_assert_int_eq(is_kept(SIZE), any);
}
END_TEST

START_TEST(a_users_allocator_gets_each_block_back)
{
    struct faulty_allocator memory;
    struct uva_allocator table;
    struct uva__rt *other;
    long before;
    void *block;

    faulty_allocator_init(&memory, 0);
    table = faulty_allocator_table(&memory);
    other = open_rt(&table);
    before = faulty_allocator_live(&memory);
    block = uva__spares_take(other, UVA__SPARE_READER, SIZE, CLEARED);
    ck_assert_int_eq(faulty_allocator_live(&memory), before + 1);
    uva__spares_put(other, UVA__SPARE_READER, block, SIZE);
    ck_assert_int_eq(faulty_allocator_live(&memory), before);
    close_rt(other);
}
END_TEST

/* The list of kept blocks is made when it is needed first. */
START_TEST(without_memory_for_the_list_no_block_is_kept)
{
    char *block = uva__memory_new(&rt->allocator, SIZE);

    ck_assert_ptr_nonnull(block);
    faulty_libc_fail(1);
    uva__spares_put(rt, UVA__SPARE_LABEL, block, SIZE);
    ck_assert_int_eq(faulty_libc_stop(), UVA__SPARES_KEPT > 0);
    take_and_put(2);
}
END_TEST

int main(void)
{
    TCase *spares = suite_tests(
        "spares", a_block_is_cleared_again, a_block_is_not_given_twice,
        a_block_has_the_size_that_was_asked_for,
        blocks_of_the_last_size_are_kept,
        a_users_allocator_gets_each_block_back,
        without_memory_for_the_list_no_block_is_kept, NULL);

    return suite_main("spares", set_up, tear_down, spares, NULL);
}
