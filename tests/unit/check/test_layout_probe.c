/* SPDX-License-Identifier: Apache-2.0 */
/* Places in signposts, at many addresses. */
#include <check.h>
#include <stdlib.h>

#include "check/layout_probe.h"
#include "support/check_suite.h"

enum { POSTS = 4096 };

static struct uva__layout_probe
    *posts; /* adjacent, all zeroes before each test */

static void posts_open(void)
{
    const size_t size = POSTS * sizeof(*posts);

    posts = aligned_alloc(UVA__LAYOUT_PROBE_SIZE, size);
    ck_assert_ptr_nonnull(posts);
    memset(posts, 0, size);
}

static void posts_close(void)
{
    free(posts);
}

START_TEST(a_place_leads_to_its_object_and_holds_an_empty_block)
{
    for (int i = 0; i < POSTS; i++) {
        const char *place = uva__layout_probe_set(&posts[i], &posts[i / 2]);

        ck_assert_ptr_eq(uva__layout_probe_read(place), &posts[i / 2]);
        ck_assert_uint_eq((uintptr_t)place % 2, 1);
        ck_assert(place >= posts[i].room);
        ck_assert(place + 4 <= posts[i].room + sizeof(posts[i].room));
        ck_assert_mem_eq(place, "\0\0\0\0", 4);
    }
}
END_TEST

START_TEST(what_is_beside_a_place_is_none)
{
    for (int i = 0; i < POSTS; i++) {
        char *place = uva__layout_probe_set(&posts[i], posts);

        for (char *at = (char *)&posts[i]; at < (char *)&posts[i + 1]; at++)
            ck_assert(at == place || uva__layout_probe_read(at) == NULL);
    }
}
END_TEST

START_TEST(memory_that_was_never_raised_is_none)
{
    memset(posts, 0x5A, POSTS * sizeof(*posts));
    for (int i = 0; i < POSTS; i++)
        for (char *at = (char *)&posts[i]; at < (char *)&posts[i + 1]; at++)
            ck_assert_ptr_null(uva__layout_probe_read(at));
}
END_TEST

START_TEST(pointers_to_structs_are_none_and_not_followed)
{
    ck_assert_ptr_null(uva__layout_probe_read(NULL));
    for (uintptr_t low = 0; low < UVA__LAYOUT_PROBE_SIZE; low += 2)
        ck_assert_ptr_null(uva__layout_probe_read((void *)(4096 + low)));
}
END_TEST

START_TEST(many_places_are_made_use_of)
{
    uint64_t seen = 0;
    int count = 0;

    for (int i = 0; i < POSTS; i++) {
        const char *place = uva__layout_probe_set(&posts[i], posts);

        seen |= UINT64_C(1) << (uintptr_t)place % UVA__LAYOUT_PROBE_SIZE;
    }
    for (; seen != 0; seen &= seen - 1)
        count++;
    ck_assert_int_eq(count, 22);
}
END_TEST

int main(void)
{
    TCase *tcase = tcase_create("places");

    tcase_add_test(tcase, a_place_leads_to_its_object_and_holds_an_empty_block);
    tcase_add_test(tcase, what_is_beside_a_place_is_none);
    tcase_add_test(tcase, memory_that_was_never_raised_is_none);
    tcase_add_test(tcase, pointers_to_structs_are_none_and_not_followed);
    tcase_add_test(tcase, many_places_are_made_use_of);
    return suite_main("layout probe", posts_open, posts_close, tcase, NULL);
}
