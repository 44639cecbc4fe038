/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks are reused in order, only after their quarantine, and by their own
 * slab. */
#include "base/slab.h"

#include <check.h>

#include "support/check_suite.h"
#include "support/faulty_allocator.h"

struct thing {
    int number; /* 0: never used */
    struct uva__link link;
};

static struct faulty_allocator faulty;
static struct uva_allocator memory;
static struct uva__slab slab;

static void set_up(void)
{
    faulty_allocator_init(&faulty, 0);
    memory = faulty_allocator_table(&faulty);
    slab = (struct uva__slab){.allocator = &memory,
                              .size = sizeof(struct thing),
                              .align = _Alignof(struct thing),
                              .link_offset = offsetof(struct thing, link),
                              .step = 2};
}

static void tear_down(void)
{
    uva__slab_fini(&slab);
    ck_assert_int_eq(faulty_allocator_live(&faulty), 0);
}

static struct thing *take(bool (*rested)(const void *block))
{
    struct thing *thing = uva__slab_take(&slab, rested);

    if (thing != NULL)
        return thing;
    uva__slab_add(&slab, uva__slab_fetch(&slab));
    return uva__slab_take(&slab, rested);
}

static bool is_calm(const void *block)
{
    return ((const struct thing *)block)->number >= 0;
}

START_TEST(a_block_is_cleared_once_and_keeps_what_it_holds)
{
    struct thing *thing = take(NULL);

    ck_assert_int_eq(thing->number, 0);
    thing->number = 7;
    uva__slab_put(&slab, thing);
    ck_assert_ptr_eq(take(NULL), thing);
    ck_assert_int_eq(thing->number, 7);
}
END_TEST

START_TEST(who_has_rested_longest_goes_first)
{
    struct thing *first = take(NULL), *second = take(NULL);

    uva__slab_put(&slab, second);
    uva__slab_put(&slab, first);
    ck_assert_ptr_eq(take(NULL), second);
    ck_assert_ptr_eq(take(NULL), first);
}
END_TEST

START_TEST(a_list_of_blocks_goes_to_the_end_in_its_order)
{
    struct thing *things[] = {take(NULL), take(NULL), take(NULL)};
    struct uva__list list = {0};

    uva__list_push(&list, &things[2]->link);
    uva__list_push(&list, &things[1]->link);
    uva__slab_put(&slab, things[0]);
    uva__slab_put_list(&slab, &list, 2);
    ck_assert(uva__list_is_empty(&list));
    ck_assert_uint_eq(slab.resting, 3);
    ck_assert_ptr_eq(take(NULL), things[0]);
    ck_assert_ptr_eq(take(NULL), things[2]);
    ck_assert_ptr_eq(take(NULL), things[1]);
}
END_TEST

START_TEST(so_many_blocks_rest_before_one_is_used_again)
{
    struct thing *first;

    slab.rest = 1;
    first = take(NULL);
    uva__slab_put(&slab, first);
    ck_assert_ptr_ne(take(NULL), first);
    ck_assert_uint_eq(slab.resting, 1);
    uva__slab_put(&slab, take(NULL));
    ck_assert_ptr_eq(take(NULL), first);
}
END_TEST

START_TEST(of_many_blocks_few_go_round)
{
    struct thing *things[6], *last[2];

    slab.rest = slab.step = 1;
    for (int i = 0; i < 6; i++)
        things[i] = take(NULL);
    for (int i = 0; i < 6; i++)
        uva__slab_put(&slab, things[i]);
    for (int i = 0; i < 20; i++) {
        ck_assert(uva__slab_has_surplus(&slab));
        uva__slab_move_surplus(&slab, &slab);
        ck_assert_uint_eq(slab.resting, 1);
        ck_assert(!uva__slab_has_surplus(&slab));
        for (int k = 0; k < 2; k++) {
            last[k] = take(NULL);
            ck_assert(last[k] == things[0] || last[k] == things[1] ||
                      last[k] == things[5]);
        }
        uva__slab_put(&slab, last[0]);
        uva__slab_put(&slab, last[1]);
    }
}
END_TEST

START_TEST(what_rests_no_more_is_taken_by_others_the_oldest_first)
{
    struct uva__slab others = slab;
    struct uva__list taken;
    struct thing *things[4];

    slab.rest = 1;
    for (int i = 0; i < 4; i++)
        things[i] = take(NULL);
    for (int i = 0; i < 4; i++)
        uva__slab_put(&slab, things[i]);
    uva__slab_move_surplus(&slab, &others);
    uva__slab_take_fresh(&others, &taken, 2);
    ck_assert_ptr_eq(taken.head, &things[0]->link);
    ck_assert_ptr_eq(taken.head->next, &things[1]->link);
    ck_assert_ptr_null(taken.head->next->next);
    uva__slab_take_fresh(&others, &taken, 2);
    ck_assert_ptr_eq(taken.head, &things[2]->link);
    ck_assert_ptr_null(taken.head->next);
    uva__slab_take_fresh(&others, &taken, 2);
    ck_assert(uva__list_is_empty(&taken));
    ck_assert_ptr_null(uva__slab_take(&others, NULL));
}
END_TEST

START_TEST(what_needs_no_rest_is_used_again_at_once)
{
    struct thing *first = take(NULL), *second = take(NULL);
    struct uva__list blocks = {0};

    slab.rest = 8;
    uva__list_push(&blocks, &first->link);
    uva__list_push(&blocks, &second->link);
    uva__slab_put_fresh(&slab, &blocks);
    ck_assert(uva__list_is_empty(&blocks));
    ck_assert_uint_eq(slab.resting, 0);
    ck_assert_ptr_eq(take(NULL), first);
    ck_assert_ptr_eq(take(NULL), second);
}
END_TEST

START_TEST(a_slab_with_few_at_rest_has_no_surplus)
{
    struct thing *first = take(NULL), *second = take(NULL);

    slab.rest = 1;
    slab.step = 2;
    uva__slab_put(&slab, first);
    uva__slab_put(&slab, second);
    ck_assert(!uva__slab_has_surplus(&slab));
    ck_assert_ptr_eq(take(NULL), first);
}
END_TEST

START_TEST(a_block_that_is_still_looked_at_is_not_used_again)
{
    struct thing *thing = take(is_calm);

    thing->number = -1;
    uva__slab_put(&slab, thing);
    ck_assert_ptr_ne(take(is_calm), thing);
    thing->number = 1;
    ck_assert_ptr_eq(take(is_calm), thing);
}
END_TEST

START_TEST(without_memory_there_is_no_block)
{
    atomic_store(&faulty.fail_at, 1);
    ck_assert_ptr_null(uva__slab_take(&slab, NULL));
    ck_assert_ptr_null(uva__slab_fetch(&slab));
}
END_TEST

static void count(void *block, void *ctx)
{
    (void)block;
    (*(int *)ctx)++;
}

START_TEST(each_block_is_seen_in_use_or_not)
{
    int n = 0;

    uva__slab_put(&slab, take(NULL));
    (void)take(NULL);
    (void)take(NULL);
    (void)take(NULL);
    uva__slab_each(&slab, count, &n);
    ck_assert_int_eq(n, 4);
}
END_TEST

int main(void)
{
    TCase *tcase = tcase_create("blocks");

    tcase_add_test(tcase, a_block_is_cleared_once_and_keeps_what_it_holds);
    tcase_add_test(tcase, who_has_rested_longest_goes_first);
    tcase_add_test(tcase, a_list_of_blocks_goes_to_the_end_in_its_order);
    tcase_add_test(tcase, so_many_blocks_rest_before_one_is_used_again);
    tcase_add_test(tcase, of_many_blocks_few_go_round);
    tcase_add_test(tcase,
                   what_rests_no_more_is_taken_by_others_the_oldest_first);
    tcase_add_test(tcase, what_needs_no_rest_is_used_again_at_once);
    tcase_add_test(tcase, a_slab_with_few_at_rest_has_no_surplus);
    tcase_add_test(tcase, a_block_that_is_still_looked_at_is_not_used_again);
    tcase_add_test(tcase, without_memory_there_is_no_block);
    tcase_add_test(tcase, each_block_is_seen_in_use_or_not);
    return suite_main("slab", set_up, tear_down, tcase, NULL);
}
