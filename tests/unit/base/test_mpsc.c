/* SPDX-License-Identifier: Apache-2.0 */
/* A stack that many threads push to and one takes from: no element is lost,
 * doubled, or out of the order in which its thread pushed it. */
#include "base/mpsc.h"
#include "support/check_suite.h"

#include <check.h>
#include <pthread.h>

enum { THREADS = 3, PUSHES = 20000 };

struct item {
    struct uva__link link;
    int thread, number;
};

static struct item *item_of(struct uva__link *link)
{
    return uva__container_of(link, struct item, link);
}

START_TEST(an_empty_stack_gives_nothing)
{
    struct uva__mpsc stack = {{NULL}};

    ck_assert(uva__mpsc_is_empty(&stack));
    ck_assert_ptr_null(uva__mpsc_take(&stack));
}
END_TEST

START_TEST(all_is_taken_at_once_the_oldest_first)
{
    struct uva__mpsc stack = {{NULL}};
    struct item items[3] = {{.number = 0}, {.number = 1}, {.number = 2}};
    struct uva__link *link;

    for (int i = 0; i < 3; i++)
        uva__mpsc_push(&stack, &items[i].link);
    ck_assert(!uva__mpsc_is_empty(&stack));
    link = uva__mpsc_take(&stack);
    ck_assert(uva__mpsc_is_empty(&stack));
    for (int i = 0; i < 3; i++, link = link->next)
        ck_assert_int_eq(item_of(link)->number, i);
    ck_assert_ptr_null(link);
}
END_TEST

START_TEST(what_was_taken_may_be_pushed_again_before_the_rest_is_looked_at)
{
    struct uva__mpsc stack = {{NULL}};
    struct item items[2] = {{.number = 0}, {.number = 1}};
    struct uva__link *first, *second;

    uva__mpsc_push(&stack, &items[0].link);
    uva__mpsc_push(&stack, &items[1].link);
    first = uva__mpsc_take(&stack);
    second = first->next;
    uva__mpsc_push(&stack, first);
    ck_assert_int_eq(item_of(second)->number, 1);
    ck_assert_ptr_null(second->next);
    ck_assert_ptr_eq(uva__mpsc_take(&stack), first);
    ck_assert_ptr_null(first->next);
}
END_TEST

static struct uva__mpsc shared;
static struct item items[THREADS][PUSHES];

static void *push_all(void *arg)
{
    struct item *own = arg;

    for (int i = 0; i < PUSHES; i++)
        uva__mpsc_push(&shared, &own[i].link);
    return NULL;
}

START_TEST(what_many_threads_push_comes_once_and_in_the_order_of_each)
{
    pthread_t threads[THREADS];
    int next[THREADS] = {0}, taken = 0;
    struct uva__link *link;

    for (int t = 0; t < THREADS; t++) {
        for (int i = 0; i < PUSHES; i++)
            items[t][i] = (struct item){.thread = t, .number = i};
        ck_assert_int_eq(pthread_create(&threads[t], NULL, push_all, items[t]),
                         0);
    }
    while (taken < THREADS * PUSHES)
        for (link = uva__mpsc_take(&shared); link != NULL; link = link->next) {
            ck_assert_int_eq(item_of(link)->number,
                             next[item_of(link)->thread]++);
            taken++;
        }
    for (int t = 0; t < THREADS; t++) {
        ck_assert_int_eq(pthread_join(threads[t], NULL), 0);
        ck_assert_int_eq(next[t], PUSHES);
    }
    ck_assert(uva__mpsc_is_empty(&shared));
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("mpsc");

    tcase_add_test(tests, an_empty_stack_gives_nothing);
    tcase_add_test(tests, all_is_taken_at_once_the_oldest_first);
    tcase_add_test(
        tests, what_was_taken_may_be_pushed_again_before_the_rest_is_looked_at);
    tcase_add_test(tests,
                   what_many_threads_push_comes_once_and_in_the_order_of_each);
    return suite_main("mpsc", NULL, NULL, tests, NULL);
}
