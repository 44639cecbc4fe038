/* SPDX-License-Identifier: Apache-2.0 */
/* Two owners of one array: whatever each of them moves, releases or shares
 * again, in any order, the data is freed once, with the last of them. */
#include "arrow/share.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "arrow/structs.h"
#include "support/check_suite.h"
#include "support/faulty_allocator.h"
#include "support/plain_tree.h"
#include "uvarrow/arrow.h"

static const int32_t NUMBERS[] = {1, 2, 3};

/* Makes columns: numbers, a list of numbers, and a dictionary. */
static void make_array(struct ArrowDeviceArray *out)
{
    struct ArrowArray *item;

    memset(out, 0, sizeof(*out));
    plain_array(&out->array, 3, 1, 3);
    plain_array(out->array.children[0], 3, 2, 0);
    out->array.children[0]->buffers[1] = NUMBERS;
    plain_array(out->array.children[1], 3, 2, 1);
    item = out->array.children[1]->children[0];
    plain_array(item, 3, 2, 0);
    item->buffers[1] = NUMBERS;
    plain_array(out->array.children[2], 3, 2, 0);
    plain_array(plain_array_dictionary(out->array.children[2]), 3, 3, 0);
    out->device_type = ARROW_DEVICE_CUDA;
    out->device_id = 2;
    out->sync_event = (void *)(uintptr_t)0x1234;
    out->reserved[1] = 77;
}

static void check_whole(const struct ArrowArray *array)
{
    ck_assert_int_eq(array->n_children, 3);
    ck_assert_int_eq(array->length, 3);
    ck_assert_ptr_eq(array->children[0]->buffers[1], NUMBERS);
    ck_assert_ptr_eq(array->children[1]->children[0]->buffers[1], NUMBERS);
    ck_assert_int_eq(array->children[2]->dictionary->n_buffers, 3);
    for (int i = 0; i < 3; i++)
        ck_assert(array->children[i]->release != NULL);
}

START_TEST(both_halves_are_whole_and_released_apart)
{
    for (int first = 0; first < 2; first++) {
        struct ArrowDeviceArray halves[2];
        make_array(&halves[0]);
        ck_assert_int_eq(uva_array_share(&halves[0], &halves[1]), 0);
        check_whole(&halves[0].array);
        check_whole(&halves[1].array);
        ck_assert_int_eq(plain_live(), 6);
        uva_array_release(&halves[first]);
        ck_assert(halves[first].array.release == NULL);
        ck_assert_int_eq(plain_live(), 6);
        check_whole(&halves[1 - first].array);
        uva_array_release(&halves[1 - first]);
        ck_assert_int_eq(plain_live(), 0);
    }
}
END_TEST

START_TEST(ev22_device_and_event_are_shared_too)
{
    struct ArrowDeviceArray one, other;

    make_array(&one);
    ck_assert_int_eq(uva_array_share(&one, &other), 0);
    ck_assert_int_eq(other.device_type, ARROW_DEVICE_CUDA);
    ck_assert_int_eq(other.device_id, 2);
    ck_assert_ptr_eq(other.sync_event, one.sync_event);
    ck_assert_int_eq(other.reserved[1], 77);
    ck_assert_int_eq(one.reserved[1], 77);
    uva_array_release(&one);
    uva_array_release(&other);
}
END_TEST

START_TEST(lc10_a_child_moved_out_of_either_half_keeps_the_data)
{
    struct ArrowDeviceArray one, other;
    struct ArrowArray from_one, from_other, deep;

    make_array(&one);
    ck_assert_int_eq(uva_array_share(&one, &other), 0);
    from_one = *one.array.children[1];
    one.array.children[1]->release = NULL;
    uva_array_release(&one);
    from_other = *other.array.children[1];
    other.array.children[1]->release = NULL;
    deep = *other.array.children[2]->dictionary;
    other.array.children[2]->dictionary->release = NULL;
    uva_array_release(&other);
    ck_assert_int_eq(plain_live(), 6);
    ck_assert_ptr_eq(from_one.children[0]->buffers[1], NUMBERS);
    from_one.release(&from_one);
    ck_assert_ptr_eq(from_other.children[0]->buffers[1], NUMBERS);
    from_other.release(&from_other);
    ck_assert_int_eq(plain_live(), 6);
    ck_assert_int_eq(deep.length, 3);
    deep.release(&deep);
    ck_assert_int_eq(plain_live(), 0);
}
END_TEST

START_TEST(da17_halves_may_lie_anywhere)
{
    struct ArrowDeviceArray one, other, moved;

    make_array(&one);
    ck_assert_int_eq(uva_array_share(&one, &other), 0);
    uva_array_move(&one, &moved);
    memset(&one, 0xDD, sizeof(one));
    check_whole(&moved.array);
    uva_array_release(&moved);
    uva_array_move(&other, &moved);
    memset(&other, 0xDD, sizeof(other));
    check_whole(&moved.array);
    uva_array_release(&moved);
    ck_assert_int_eq(plain_live(), 0);
}
END_TEST

/* It does not have the vectors of the whole. */
START_TEST(a_column_of_a_half_is_no_whole)
{
    struct ArrowDeviceArray one, other;

    make_array(&one);
    ck_assert_int_eq(uva_array_share(&one, &other), 0);
    ck_assert_ptr_nonnull(uva__array_share_whole(&other.array));
    ck_assert_ptr_null(uva__array_share_whole(other.array.children[1]));
    other.array.n_buffers = 0;
    ck_assert_ptr_null(uva__array_share_whole(&other.array));
    other.array.n_buffers = 1;
    uva_array_release(&one);
    uva_array_release(&other);
    ck_assert_int_eq(plain_live(), 0);
}
END_TEST

START_TEST(a_half_is_shared_again_without_a_second_origin)
{
    struct faulty_allocator faulty;
    struct uva_allocator table;
    struct ArrowDeviceArray halves[50];

    faulty_allocator_init(&faulty, 0);
    table = faulty_allocator_table(&faulty);
    make_array(&halves[0]);
    for (int i = 1; i < 50; i++)
        ck_assert_int_eq(
            uva__array_share(&table, &halves[rand() % i], &halves[i]), 0);
    ck_assert_int_eq(faulty_allocator_live(&faulty), 49);
    for (int i = 0; i < 50; i++) {
        check_whole(&halves[(i * 7) % 50].array);
        ck_assert_int_eq(plain_live(), 6);
        uva_array_release(&halves[(i * 7) % 50]);
    }
    ck_assert_int_eq(plain_live(), 0);
    ck_assert_int_eq(faulty_allocator_live(&faulty), 0);
}
END_TEST

START_TEST(more_copies_lie_in_few_blocks)
{
    struct faulty_allocator faulty;
    struct uva_allocator table;
    struct uva__array_share_room room = {0};
    struct ArrowDeviceArray copies[20], one;

    faulty_allocator_init(&faulty, 0);
    table = faulty_allocator_table(&faulty);
    make_array(&one);
    ck_assert_int_eq(uva__array_share(&table, &one, &copies[0]), 0);
    for (int i = 1; i < 20; i++) {
        if (i == 7) /* the rest of the first block has gone */
            uva__array_share_give_up(&room);
        ck_assert_int_eq(
            uva__array_share_more(&table, &room, &one, 100, &copies[i]), 0);
        ck_assert_int_eq(faulty_allocator_live(&faulty), i < 7 ? 2 : 3);
    }
    uva_array_release(&one);
    for (int i = 0; i < 20; i++) {
        check_whole(&copies[(i * 7) % 20].array);
        ck_assert_int_eq(plain_live(), 6);
        if (i == 10)
            uva__array_share_give_up(&room);
        uva_array_release(&copies[(i * 7) % 20]);
    }
    uva__array_share_give_up(&room); /* once is enough */
    ck_assert_int_eq(plain_live(), 0);
    ck_assert_int_eq(faulty_allocator_live(&faulty), 0);
}
END_TEST

/* The place of a child that was released may be used for another one. */
START_TEST(a_child_of_one_half_may_be_moved_into_the_other)
{
    struct ArrowDeviceArray one, second, other;

    make_array(&one);
    ck_assert_int_eq(uva_array_share(&one, &second), 0);
    uva_array_release(&second);
    ck_assert_int_eq(uva_array_share(&one, &other), 0);
    other.array.children[0]->release(other.array.children[0]);
    *other.array.children[0] = *one.array.children[0];
    one.array.children[0]->release = NULL;
    uva_array_release(&one);
    check_whole(&other.array);
    uva_array_release(&other);
    ck_assert_int_eq(plain_live(), 0);
}
END_TEST

START_TEST(more_copies_fail_without_a_trace)
{
    struct faulty_allocator faulty;
    struct uva_allocator table;
    struct uva__array_share_room room = {0};
    struct ArrowDeviceArray one, other;

    faulty_allocator_init(&faulty, 0);
    table = faulty_allocator_table(&faulty);
    make_array(&one);
    ck_assert_int_eq(uva__array_share(&table, &one, &other), 0);
    uva_array_release(&other);
    memset(&other, 0xA5, sizeof(other));
    faulty.fail_at = faulty.asked + 1;
    ck_assert_int_eq(uva__array_share_more(&table, &room, &one, 3, &other),
                     ENOMEM);
    ck_assert(other.array.release == NULL);
    uva__array_share_give_up(&room);
    check_whole(&one.array);
    uva_array_release(&one);
    ck_assert_int_eq(faulty_allocator_live(&faulty), 0);
}
END_TEST

START_TEST(sharing_fails_without_a_trace_wherever_memory_ends)
{
    struct faulty_allocator faulty;
    struct ArrowDeviceArray one, other, before;
    long n = 0;
    int code;

    make_array(&one);
    do {
        struct uva_allocator table = faulty_allocator_table(&faulty);
        faulty_allocator_init(&faulty, ++n);
        memset(&other, 0xA5, sizeof(other));
        memcpy(&before, &one, sizeof(one));
        code = uva__array_share(&table, &one, &other);
        if (code == 0)
            break;
        ck_assert_int_eq(code, ENOMEM);
        ck_assert(other.array.release == NULL);
        ck_assert_mem_eq(&before, &one, sizeof(one));
        ck_assert_int_eq(faulty_allocator_live(&faulty), 0);
    } while (true);
    ck_assert_int_eq(n, 2); /* one for all */
    faulty.fail_at = faulty.asked + 1;
    ck_assert_int_eq(uva_array_share(&one, &before), ENOMEM);
    ck_assert(before.array.release == NULL);
    uva_array_release(&one);
    uva_array_release(&other);
    ck_assert_int_eq(faulty_allocator_live(&faulty), 0);
    ck_assert_int_eq(plain_live(), 0);
}
END_TEST

START_TEST(what_has_gone_from_the_tree_stays_gone)
{
    struct ArrowDeviceArray one, other;
    struct ArrowArray child;

    make_array(&one);
    child = *one.array.children[1];
    memset(one.array.children[1], 0xDD, sizeof(child));
    one.array.children[1]->release = NULL;
    ck_assert_int_eq(uva_array_share(&one, &other), 0);
    ck_assert(one.array.children[1]->release == NULL);
    ck_assert(other.array.children[1]->release == NULL);
    uva_array_release(&one);
    uva_array_release(&other);
    ck_assert_int_eq(plain_live(), 2);
    child.release(&child);
    ck_assert_int_eq(plain_live(), 0);
}
END_TEST

/* Returns the code of sharing `array`, which must fail without a result.
 * Releases the array. */
static int refused(struct ArrowDeviceArray *array)
{
    struct ArrowDeviceArray out;
    int code;

    memset(&out, 0xA5, sizeof(out));
    code = uva_array_share(array, &out);
    ck_assert(out.array.release == NULL);
    uva_array_release(array);
    ck_assert_int_eq(plain_live(), 0);
    return code;
}

START_TEST(what_cannot_be_an_array_is_not_shared)
{
    struct ArrowDeviceArray array = {0};

    ck_assert_int_eq(refused(&array), EINVAL);
    plain_array(&array.array, 1, 1, 0);
    array.array.n_children = 3;
    ck_assert_int_eq(refused(&array), EINVAL);
    plain_array(&array.array, 1, 1, 0);
    array.array.n_children = -3;
    ck_assert_int_eq(refused(&array), EINVAL);
    plain_array(&array.array, 1, 1, 1);
    array.array.n_children = INT64_MAX;
    ck_assert_int_eq(refused(&array), EINVAL);
    plain_array(&array.array, 1, 1, 1);
    free(array.array.children[0]);
    array.array.children[0] = NULL;
    ck_assert_int_eq(refused(&array), EINVAL);
}
END_TEST

START_TEST(a_half_that_was_changed_is_not_shared_again)
{
    struct ArrowDeviceArray one, other, third;

    make_array(&one);
    ck_assert_int_eq(uva_array_share(&one, &other), 0);
    other.array.n_children = -other.array.n_children;
    ck_assert_int_eq(uva_array_share(&other, &third), EINVAL);
    ck_assert(third.array.release == NULL);
    other.array.n_children = -other.array.n_children;
    uva_array_release(&one);
    uva_array_release(&other);
    ck_assert_int_eq(plain_live(), 0);
}
END_TEST

static void nothing(struct ArrowArray *array)
{
    (void)array;
}

START_TEST(an_array_that_leads_in_a_circle_is_refused)
{
    struct ArrowDeviceArray array = {0}, out;
    struct ArrowArray child = {.n_children = 1, .release = nothing};
    struct ArrowArray *children[] = {&child};

    child.children = children;
    array.array = child;
    ck_assert_int_eq(uva_array_share(&array, &out), EINVAL);
}
END_TEST

/* Handles a set of halves at random: each step shares, moves, takes a child out
 * or releases. */
static void live(unsigned seed)
{
    struct ArrowDeviceArray held[16] = {0};
    struct ArrowArray orphans[64];
    int count = 1, lost = 0;

    srand(seed);
    make_array(&held[0]);
    for (int step = 0; step < 60 && count > 0; step++) {
        struct ArrowDeviceArray *at = &held[rand() % count];
        struct ArrowArray *child = at->array.children[rand() % 3];
        if (rand() % 3 == 0 && count < 16) {
            ck_assert_int_eq(uva_array_share(at, &held[count++]), 0);
        } else if (rand() % 2 == 0 && child->release != NULL) {
            orphans[lost++] = *child;
            child->release = NULL;
        } else {
            uva_array_release(at);
            if (at != &held[--count])
                uva_array_move(&held[count], at);
        }
        ck_assert_int_eq(plain_live() != 0, count + lost > 0);
    }
    while (count > 0)
        uva_array_release(&held[--count]);
    while (lost > 0) {
        lost--;
        orphans[lost].release(&orphans[lost]);
    }
    ck_assert_int_eq(plain_live(), 0);
}

START_TEST(no_order_of_releases_loses_or_keeps_data)
{
    for (unsigned seed = 0; seed < 3000; seed++)
        live(seed);
}
END_TEST

int main(void)
{
    TCase *halves = tcase_create("halves");

    tcase_add_test(halves, both_halves_are_whole_and_released_apart);
    tcase_add_test(halves, ev22_device_and_event_are_shared_too);
    tcase_add_test(halves,
                   lc10_a_child_moved_out_of_either_half_keeps_the_data);
    tcase_add_test(halves, da17_halves_may_lie_anywhere);
    tcase_add_test(halves, a_column_of_a_half_is_no_whole);
    tcase_add_test(halves, a_half_is_shared_again_without_a_second_origin);
    tcase_add_test(halves, more_copies_lie_in_few_blocks);
    tcase_add_test(halves, more_copies_fail_without_a_trace);
    tcase_add_test(halves, a_child_of_one_half_may_be_moved_into_the_other);
    tcase_add_test(halves, sharing_fails_without_a_trace_wherever_memory_ends);
    tcase_add_test(halves, what_has_gone_from_the_tree_stays_gone);
    tcase_add_test(halves, what_cannot_be_an_array_is_not_shared);
    tcase_add_test(halves, a_half_that_was_changed_is_not_shared_again);
    tcase_add_test(halves, an_array_that_leads_in_a_circle_is_refused);
    tcase_add_test(halves, no_order_of_releases_loses_or_keeps_data);
    return suite_main("share", NULL, NULL, halves, NULL);
}
