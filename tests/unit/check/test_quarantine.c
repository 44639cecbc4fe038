/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks in quarantine: how many are kept, and when they are freed. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "check/quarantine.h"
#include "support/check_suite.h"
#include "support/faulty_allocator.h"

static struct faulty_allocator memory;
static struct uva_allocator allocator;
static struct uva__quarantine quarantine;

static void setup(void)
{
    faulty_allocator_init(&memory, 0);
    allocator = faulty_allocator_table(&memory);
    memset(&quarantine, 0, sizeof(quarantine));
    uva__quarantine_init(&quarantine, &allocator, 2);
}

static void teardown(void)
{
    uva__quarantine_close(&quarantine);
    ck_assert_int_eq(faulty_allocator_live(&memory), 0);
}

START_TEST(as_many_blocks_are_kept_as_there_is_room_for)
{
    char *last = NULL;

    for (int i = 0; i < 5; i++) {
        last = uva__quarantine_alloc(&quarantine, 3);
        ck_assert_ptr_nonnull(last);
        memcpy(last, "abc", 3);
    }
    ck_assert_int_eq(faulty_allocator_live(&memory), 2);
    ck_assert_int_eq(last[2], 'c');
}
END_TEST

START_TEST(without_memory_there_is_no_block)
{
    faulty_allocator_init(&memory, 1);
    ck_assert_ptr_null(uva__quarantine_alloc(&quarantine, 3));
}
END_TEST

START_TEST(blocks_that_are_moved_live_as_long_as_their_new_quarantine)
{
    struct uva__quarantine to = {.capacity = 0};

    uva__quarantine_init(&to, &allocator, UVA__QUARANTINE_UNLIMITED);
    ck_assert_ptr_nonnull(uva__quarantine_alloc(&to, 1));
    ck_assert_ptr_nonnull(uva__quarantine_alloc(&quarantine, 1));
    ck_assert_ptr_nonnull(uva__quarantine_alloc(&quarantine, 1));
    uva__quarantine_move(&quarantine, &to);
    uva__quarantine_close(&quarantine);
    ck_assert_int_eq(faulty_allocator_live(&memory), 3);
    uva__quarantine_close(&to);
    ck_assert_int_eq(faulty_allocator_live(&memory), 0);
}
END_TEST

START_TEST(after_close_a_block_is_freed_at_once)
{
    struct uva__quarantined *block = uva__memory_new(&allocator, 64);

    ck_assert_ptr_nonnull(block);
    uva__quarantine_close(&quarantine);
    uva__quarantine_put(&quarantine, block, 64);
    ck_assert_int_eq(faulty_allocator_live(&memory), 0);
}
END_TEST

/* A block that is not on the heap. */
static struct uva__quarantined once, twice;
static int expired;
static struct uva__quarantine *counted;

/* The first time, puts the block back, which expires it again. */
static void expire(struct uva__quarantined *block)
{
    ck_assert_ptr_eq(block, expired == 0 ? &once : &twice);
    if (expired++ == 0)
        uva__quarantine_put(counted, &twice, sizeof(twice));
}

START_TEST(what_expires_may_use_the_quarantine_and_outlives_no_reference)
{
    expired = 0;
    ck_assert_int_eq(uva__quarantine_new(&allocator, 1, expire, &counted), 0);
    uva__quarantine_acquire(counted);
    uva__quarantine_put(counted, &once, sizeof(once));
    ck_assert_int_eq(expired, 0);
    uva__quarantine_close(counted);
    ck_assert_int_eq(expired, 2);
    uva__quarantine_release(counted);
    ck_assert_int_eq(faulty_allocator_live(&memory), 1);
    uva__quarantine_release(counted);
    ck_assert_int_eq(faulty_allocator_live(&memory), 0);
}
END_TEST

int main(void)
{
    TCase *all = tcase_create("all");

    tcase_add_test(all, as_many_blocks_are_kept_as_there_is_room_for);
    tcase_add_test(all, without_memory_there_is_no_block);
    tcase_add_test(all,
                   blocks_that_are_moved_live_as_long_as_their_new_quarantine);
    tcase_add_test(all, after_close_a_block_is_freed_at_once);
    tcase_add_test(
        all, what_expires_may_use_the_quarantine_and_outlives_no_reference);
    return suite_main("quarantine", setup, teardown, all, NULL);
}
