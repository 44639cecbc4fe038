/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks of bytes, and those that a store keeps: which are used again, which
 * are not kept, and the end of the store before that of its blocks. */
#include <check.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>

#include "io/shared_bytes.h"
#include "support/check_suite.h"
#include "support/faulty_libc.h"

enum { SIZE = 10000, LARGE = 40 << 20, MANY = 100, THREADS = 3, TURNS = 50 };

static struct uva__kept_bytes *kept;

static void set_up(void)
{
    kept = uva__kept_bytes_new();
    ck_assert_ptr_nonnull(kept);
}

static void tear_down(void)
{
    uva__kept_bytes_close(kept);
    kept = NULL;
}

/* Takes a block, and writes to each of its bytes. */
static struct uva__shared_bytes *take(size_t size)
{
    struct uva__shared_bytes *block = uva__kept_bytes_take(kept, size);

    ck_assert_ptr_nonnull(block);
    ck_assert_uint_eq(block->size, size);
    ck_assert_uint_eq((uintptr_t)block->bytes % 64, 0);
    memset(block->bytes, 7, size);
    return block;
}

START_TEST(a_block_is_used_again)
{
    struct uva__shared_bytes *first = take(SIZE), *other;

    uva__shared_bytes_release(uva__shared_bytes_acquire(first));
    other = take(SIZE); /* the first one has a reference left */
    ck_assert_ptr_ne(other, first);
    uva__shared_bytes_release(first);
    ck_assert_ptr_eq(take(SIZE + SIZE / 10), first);
    uva__shared_bytes_release(first);
    uva__shared_bytes_release(other);
}
END_TEST

/* Room for a large block is not spent on a small one; and what no one wants
 * makes room. */
START_TEST(a_store_follows_the_sizes)
{
    struct uva__shared_bytes *first = take(SIZE), *small;

    uva__shared_bytes_release(first);
    small = take(SIZE / 3);
    ck_assert_uint_eq(small->size, SIZE / 3);
    uva__shared_bytes_release(small);
    ck_assert_ptr_eq(take(SIZE / 3), small);
    uva__shared_bytes_release(small);
}
END_TEST

/* Whether a block of the first size is lent to bytes of the second. A block has
 * an eighth more room than it was made for, and is not lent if more than a
 * fifth of it and 4 KiB were left over. Large ones have no more room, and those
 * of more than 31 MiB are not kept. */
static const struct {
    size_t first, next;
    bool is_lent;
} LENT[] = {
    {1048576, 1048576, true},   {1048576, 1179648, true},
    {1048576, 1179649, false},  {1048576, 940442, true},
    {1048576, 940441, false},   {1000, 1125, true},
    {1000, 1126, false},        {1000, 1, true},
    {5000, 1224, true},         {5000, 1223, false},
    {20 << 20, 20 << 20, true}, {20 << 20, (20 << 20) + 1, false},
    {31 << 20, 31 << 20, true}, {(31 << 20) + 1, (31 << 20) + 1, false},
};

START_TEST(a_block_is_lent_to_bytes_that_nearly_fill_it)
{
    struct uva__shared_bytes *next;
    bool is_new;

    uva__shared_bytes_release(uva__kept_bytes_take(kept, LENT[_i].first));
    faulty_libc_fail(1);
    next = uva__kept_bytes_take(kept, LENT[_i].next);
    is_new = faulty_libc_stop();
    ck_assert_int_eq(is_new, !LENT[_i].is_lent);
    ck_assert_int_eq(next == NULL, is_new);
    uva__shared_bytes_release(next);
}
END_TEST

/* How many of many blocks, released at once, come again. */
static int again(size_t size)
{
    struct uva__shared_bytes *blocks[MANY], *next[MANY];
    int count = 0;

    for (int i = 0; i < MANY; i++)
        blocks[i] = take(size);
    for (int i = 0; i < MANY; i++) {
        blocks[i]->bytes[0] = 1;
        uva__shared_bytes_release(blocks[i]);
    }
    for (int i = 0; i < MANY; i++) {
        next[i] = uva__kept_bytes_take(kept, size);
        ck_assert_ptr_nonnull(next[i]);
    }
    for (int i = 0; i < MANY; i++)
        for (int k = 0; k < MANY; k++)
            count += next[i] == blocks[k];
    for (int i = 0; i < MANY; i++)
        uva__shared_bytes_release(next[i]);
    return count;
}

/* The allocator may give a block once more, too. */
START_TEST(a_store_keeps_a_part)
{
    ck_assert_int_ge(again(SIZE), 20);
    uva__shared_bytes_release(take(LARGE));
}
END_TEST

START_TEST(blocks_outlive_their_store)
{
    struct uva__shared_bytes *blocks[3];

    for (int i = 0; i < 3; i++)
        blocks[i] = take(SIZE);
    uva__shared_bytes_release(blocks[0]);
    tear_down();
    for (int i = 1; i < 3; i++) {
        memset(blocks[i]->bytes, 1, SIZE);
        uva__shared_bytes_release(blocks[i]);
    }
    uva__kept_bytes_close(NULL);
    uva__shared_bytes_release(NULL);
}
END_TEST

START_TEST(what_cannot_be_allocated_is_not_there)
{
    ck_assert_ptr_null(uva__shared_bytes_new(SIZE_MAX));
    ck_assert_ptr_null(uva__kept_bytes_take(kept, SIZE_MAX));
}
END_TEST

/* ---- threads ------------------------------------------------------------ */

/* Blocks of each thread, which it releases. */
static struct uva__shared_bytes *given[THREADS][MANY];

static void *release_all(void *ctx)
{
    struct uva__shared_bytes **blocks = ctx;

    for (int i = 0; i < MANY; i++) {
        ck_assert_int_eq(blocks[i]->bytes[blocks[i]->size - 1], 7);
        uva__shared_bytes_release(blocks[i]);
    }
    return NULL;
}

/* In the meantime others are taken, or the store is closed. */
START_TEST(threads_put_blocks_back)
{
    for (int turn = 0; turn < TURNS; turn++) {
        pthread_t threads[THREADS];

        for (int i = 0; i < THREADS * MANY; i++)
            given[i % THREADS][i / THREADS] = take((size_t)(64 + i % 100));
        for (int i = 0; i < THREADS; i++)
            ck_assert_int_eq(
                pthread_create(&threads[i], NULL, release_all, given[i]), 0);
        for (int i = 0; i < MANY && _i == 0; i++)
            uva__shared_bytes_release(take((size_t)(64 + i)));
        if (_i == 1)
            tear_down();
        for (int i = 0; i < THREADS; i++)
            (void)pthread_join(threads[i], NULL);
        if (_i == 1)
            set_up();
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("shared_bytes");
    TCase *all = suite_case(suite, "shared_bytes", set_up, tear_down);

    suite_add_loops(all, 0, 2, threads_put_blocks_back, NULL);
    suite_add_loops(all, 0, sizeof(LENT) / sizeof(*LENT),
                    a_block_is_lent_to_bytes_that_nearly_fill_it, NULL);
    suite_add(all, a_block_is_used_again, a_store_follows_the_sizes,
              a_store_keeps_a_part, blocks_outlive_their_store,
              what_cannot_be_allocated_is_not_there, NULL);
    return suite_run(suite);
}
