/* SPDX-License-Identifier: Apache-2.0 */
/* The calls inside and beside each other; and the tagged pointers to objects.
 */
#include <check.h>
#include <stdlib.h>

#include "base/platform.h"
#include "check/tagged_pointer.h"
#include "protocol/active_calls.h"
#include "support/check_suite.h"

/* ---- epochs ------------------------------------------------------------- */

static struct uva__active_calls active_calls;
static struct uva__active_call calls[4];
static int count;

static void setup(void)
{
    active_calls = (struct uva__active_calls){0};
    count = 0;
}

static struct uva__active_call *enter(enum uva__call call, uint64_t thread)
{
    struct uva__active_call *active_call = &calls[count++];

    *active_call = (struct uva__active_call){.call = call, .thread = thread};
    uva__active_calls_enter(&active_calls, active_call);
    return active_call;
}

START_TEST(nothing_is_nowhere)
{
    const struct uva__call_context place =
        uva__active_calls_context(&active_calls, 1);

    ck_assert_int_eq(place.within, UVA__CALL_NONE);
    ck_assert_int_eq(place.callback, UVA__CALL_NONE);
    ck_assert_int_eq(place.beside, UVA__CALL_NONE);
    ck_assert(!uva__active_calls_hold_release(&active_calls, 1));
}
END_TEST

START_TEST(the_innermost_call_of_a_thread_counts)
{
    struct uva__call_context place;

    (void)enter(UVA__CALL_SCHEMA, 1);
    (void)enter(UVA__CALL_TASK, 1);
    (void)enter(UVA__CALL_REQUEST, 1);
    place = uva__active_calls_context(&active_calls, 1);
    ck_assert_int_eq(place.within, UVA__CALL_REQUEST);
    ck_assert_int_eq(place.callback, UVA__CALL_TASK);
    ck_assert_int_eq(place.beside, UVA__CALL_NONE);
}
END_TEST

START_TEST(a_call_that_is_a_part_of_a_callback_is_inside_it_until_it_ends)
{
    struct uva__active_call request = {.call = UVA__CALL_REQUEST, .thread = 1};
    struct uva__active_call *host = enter(UVA__CALL_TASK, 1);
    struct uva__call_context place;

    ck_assert_ptr_eq(uva__active_calls_context(&active_calls, 1).innermost,
                     host);
    ck_assert_ptr_null(uva__active_calls_context(&active_calls, 2).innermost);
    uva__active_calls_join(host, &request);
    place = uva__active_calls_context(&active_calls, 1);
    ck_assert_int_eq(place.within, UVA__CALL_REQUEST);
    ck_assert_int_eq(place.callback, UVA__CALL_TASK);
    (void)enter(UVA__CALL_ERROR, 1);
    ck_assert_int_eq(uva__active_calls_context(&active_calls, 1).within,
                     UVA__CALL_ERROR);
    uva__active_calls_part(&request);
    uva__active_calls_leave(&active_calls, &calls[1]);
    ck_assert_int_eq(uva__active_calls_context(&active_calls, 1).within,
                     UVA__CALL_TASK);
}
END_TEST

START_TEST(on_next_task_counts_rather_than_other_callbacks_beside)
{
    (void)enter(UVA__CALL_ERROR, 4);
    (void)enter(_i == 0 ? UVA__CALL_TASK : UVA__CALL_END, 2);
    (void)enter(UVA__CALL_SCHEMA, 3);
    (void)enter(UVA__CALL_EXTRACT, 3);
    ck_assert_int_eq(uva__active_calls_context(&active_calls, 1).beside,
                     _i == 0 ? UVA__CALL_TASK : UVA__CALL_END);
    ck_assert_int_eq(uva__active_calls_context(&active_calls, 3).within,
                     UVA__CALL_EXTRACT);
}
END_TEST

START_TEST(a_call_is_also_on_the_thread_that_runs_it)
{
    struct uva__active_call *active_call = enter(UVA__CALL_TASK, 1);

    uva__atomic64_store(&active_call->runner, 2);
    ck_assert_int_eq(uva__active_calls_context(&active_calls, 1).within,
                     UVA__CALL_TASK);
    ck_assert_int_eq(uva__active_calls_context(&active_calls, 2).within,
                     UVA__CALL_TASK);
    ck_assert_int_eq(uva__active_calls_context(&active_calls, 3).within,
                     UVA__CALL_NONE);
}
END_TEST

START_TEST(calls_end_in_any_order)
{
    struct uva__active_call *first = enter(UVA__CALL_TASK, 1);
    struct uva__active_call *second = enter(UVA__CALL_EXTRACT, 2);
    struct uva__active_call *third = enter(UVA__CALL_EXTRACT, 3);

    uva__active_calls_leave(&active_calls, second);
    uva__active_calls_leave(&active_calls, first);
    ck_assert_int_eq(uva__active_calls_context(&active_calls, 3).within,
                     UVA__CALL_EXTRACT);
    uva__active_calls_leave(&active_calls, third);
    ck_assert_ptr_null(active_calls.newest);
}
END_TEST

START_TEST(calls_of_the_producer_beside_a_callback_are_seen)
{
    struct uva__active_call *end = enter(UVA__CALL_END, 1);
    struct uva__active_call *inside = enter(UVA__CALL_CANCEL, 2);

    (void)enter(UVA__CALL_REQUEST, 1);
    inside->inside = true;
    ck_assert(!uva__active_calls_calls_beside(&active_calls, end));
    inside->inside = false;
    ck_assert(uva__active_calls_calls_beside(&active_calls, end));
    inside->call = UVA__CALL_REQUEST;
    ck_assert(uva__active_calls_calls_beside(&active_calls, end));
    inside->call = UVA__CALL_EXTRACT;
    ck_assert(!uva__active_calls_calls_beside(&active_calls, end));
}
END_TEST

START_TEST(release_waits_for_callbacks_and_for_its_own_thread)
{
    struct uva__active_call *request = enter(UVA__CALL_REQUEST, 1);

    ck_assert(uva__active_calls_hold_release(&active_calls, 1));
    ck_assert(!uva__active_calls_hold_release(&active_calls, 2));
    uva__active_calls_leave(&active_calls, request);
    (void)enter(UVA__CALL_TASK, 1);
    ck_assert(uva__active_calls_hold_release(&active_calls, 2));
}
END_TEST

/* ---- tagged pointers ---------------------------------------------------- */

START_TEST(a_tagged_pointer_names_its_object_and_generation)
{
    void *object = uva__platform_alloc(UVA__TAGGED_POINTER_ALIGN, 64);

    for (int generation = 0; generation < 256; generation++) {
        void *tagged = uva__tagged_pointer_make(object, (uint8_t)generation);
        const struct uva__tagged_pointer read =
            uva__tagged_pointer_read(tagged);

        ck_assert_ptr_eq(read.object, object);
        ck_assert_int_eq(read.generation, generation);
        ck_assert(read.intact);
    }
    uva__platform_free(object);
}
END_TEST

START_TEST(no_single_bit_of_a_tagged_pointer_can_change_unseen)
{
    void *object = uva__platform_alloc(UVA__TAGGED_POINTER_ALIGN, 64);
    const uint64_t tagged =
        (uint64_t)(uintptr_t)uva__tagged_pointer_make(object, 77);

    for (int bit = 0; bit < 64; bit++) {
        const struct uva__tagged_pointer read = uva__tagged_pointer_read(
            (void *)(uintptr_t)(tagged ^ (uint64_t)1 << bit));

        ck_assert(!read.intact);
        ck_assert(read.object == NULL || read.object == object);
    }
    uva__platform_free(object);
}
END_TEST

START_TEST(small_steps_of_a_tagged_pointer_leave_its_object_known)
{
    void *object = uva__platform_alloc(UVA__TAGGED_POINTER_ALIGN, 64);
    char *tagged = uva__tagged_pointer_make(object, 3);

    for (int step = 1; step <= 32; step++) {
        const struct uva__tagged_pointer read =
            uva__tagged_pointer_read(tagged + step);

        ck_assert_ptr_eq(read.object, object);
        ck_assert(!read.intact);
    }
    uva__platform_free(object);
}
END_TEST

START_TEST(no_plain_pointer_is_a_tagged_one)
{
    for (uintptr_t i = 1; i < 100000; i++) {
        const uintptr_t pointer = i * UINT64_C(0x5851f42d4c957f2d) >> 17;

        ck_assert_ptr_null(uva__tagged_pointer_read((void *)pointer).object);
    }
}
END_TEST

START_TEST(what_is_no_tagged_pointer_names_nothing)
{
    const uintptr_t values[] = {0, 1, 64, 4096, UINTPTR_MAX};

    ck_assert_ptr_null(uva__tagged_pointer_read((void *)values[_i]).object);
}
END_TEST

/* ---- all cases ---------------------------------------------------------- */

int main(void)
{
    TCase *all = tcase_create("all");

    tcase_add_test(all, nothing_is_nowhere);
    tcase_add_test(all, the_innermost_call_of_a_thread_counts);
    tcase_add_test(
        all, a_call_that_is_a_part_of_a_callback_is_inside_it_until_it_ends);
    tcase_add_loop_test(
        all, on_next_task_counts_rather_than_other_callbacks_beside, 0, 2);
    tcase_add_test(all, a_call_is_also_on_the_thread_that_runs_it);
    tcase_add_test(all, calls_end_in_any_order);
    tcase_add_test(all, calls_of_the_producer_beside_a_callback_are_seen);
    tcase_add_test(all, release_waits_for_callbacks_and_for_its_own_thread);
    tcase_add_test(all, a_tagged_pointer_names_its_object_and_generation);
    tcase_add_test(all, no_single_bit_of_a_tagged_pointer_can_change_unseen);
    tcase_add_test(all, small_steps_of_a_tagged_pointer_leave_its_object_known);
    tcase_add_test(all, no_plain_pointer_is_a_tagged_one);
    tcase_add_loop_test(all, what_is_no_tagged_pointer_names_nothing, 0, 5);
    return suite_main("active calls", setup, NULL, all, NULL);
}
