/* SPDX-License-Identifier: Apache-2.0 */
/* The queue: elements may be removed from any place, and others pushed after
 * the rest; a whole list goes before another one. */
#include "base/list.h"
#include "support/check_suite.h"

#include <check.h>

enum { LINKS = 3 };

/* Removes an element of three, and pushes it again. */
START_TEST(any_element_may_be_removed)
{
    struct uva__list list = {NULL, NULL};
    struct uva__link links[LINKS];

    for (int i = 0; i < LINKS; i++)
        uva__list_push(&list, &links[i]);
    uva__list_remove(&list, &links[_i]);
    uva__list_push(&list, &links[_i]);
    for (int i = 0; i < LINKS; i++)
        if (i != _i)
            ck_assert_ptr_eq(uva__list_pop(&list), &links[i]);
    ck_assert_ptr_eq(uva__list_pop(&list), &links[_i]);
    ck_assert_ptr_null(uva__list_pop(&list));
}
END_TEST

START_TEST(without_its_only_element_a_list_is_empty)
{
    struct uva__list list = {NULL, NULL};
    struct uva__link link;

    uva__list_push(&list, &link);
    uva__list_remove(&list, &link);
    ck_assert(uva__list_is_empty(&list));
    uva__list_push(&list, &link);
    ck_assert_ptr_eq(uva__list_pop(&list), &link);
}
END_TEST

/* The first `_i` elements go before the rest: 0, some or all. */
START_TEST(a_list_may_go_before_another_one)
{
    struct uva__list list = {NULL, NULL}, first = {NULL, NULL};
    struct uva__link links[LINKS], last;

    for (int i = 0; i < LINKS; i++)
        uva__list_push(i < _i ? &first : &list, &links[i]);
    uva__list_prepend(&list, &first);
    ck_assert(uva__list_is_empty(&first));
    uva__list_push(&list, &last);
    for (int i = 0; i < LINKS; i++)
        ck_assert_ptr_eq(uva__list_pop(&list), &links[i]);
    ck_assert_ptr_eq(uva__list_pop(&list), &last);
    ck_assert_ptr_null(uva__list_pop(&list));
}
END_TEST

int main(void)
{
    TCase *removal = tcase_create("removal"),
          *joining = tcase_create("joining");

    suite_add_loops(removal, 0, LINKS, any_element_may_be_removed, NULL);
    suite_add(removal, without_its_only_element_a_list_is_empty, NULL);
    suite_add_loops(joining, 0, LINKS + 1, a_list_may_go_before_another_one,
                    NULL);
    return suite_main("list", NULL, NULL, removal, joining, NULL);
}
