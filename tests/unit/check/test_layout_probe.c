/* SPDX-License-Identifier: Apache-2.0 */
/* Places in signposts, at many addresses. */
#include <check.h>
#include <stdlib.h>

#include "base/platform.h"
#include "check/layout_probe.h"
#include "support/check_suite.h"

enum { POSTS = 4096 };

static struct uva__layout_probe
    *probes; /* adjacent, all zeroes before each test */

static void posts_open(void)
{
    const size_t size = POSTS * sizeof(*probes);

    probes = uva__platform_alloc(UVA__LAYOUT_PROBE_SIZE, size);
    ck_assert_ptr_nonnull(probes);
    memset(probes, 0, size);
}

static void posts_close(void)
{
    uva__platform_free(probes);
}

START_TEST(a_place_leads_to_its_object_and_holds_an_empty_block)
{
    for (int i = 0; i < POSTS; i++) {
        const char *address = uva__layout_probe_set(&probes[i], &probes[i / 2]);

        ck_assert_ptr_eq(uva__layout_probe_read(address), &probes[i / 2]);
        ck_assert_uint_eq((uintptr_t)address % 2, 1);
        ck_assert(address >= probes[i].room);
        ck_assert(address + 4 <= probes[i].room + sizeof(probes[i].room));
        ck_assert_mem_eq(address, "\0\0\0\0", 4);
    }
}
END_TEST

START_TEST(what_is_beside_a_place_is_none)
{
    for (int i = 0; i < POSTS; i++) {
        char *address = uva__layout_probe_set(&probes[i], probes);

        for (char *at = (char *)&probes[i]; at < (char *)&probes[i + 1]; at++)
            ck_assert(at == address || uva__layout_probe_read(at) == NULL);
    }
}
END_TEST

START_TEST(memory_that_was_never_raised_is_none)
{
    memset(probes, 0x5A, POSTS * sizeof(*probes));
    for (int i = 0; i < POSTS; i++)
        for (char *at = (char *)&probes[i]; at < (char *)&probes[i + 1]; at++)
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
        const char *address = uva__layout_probe_set(&probes[i], probes);

        seen |= UINT64_C(1) << (uintptr_t)address % UVA__LAYOUT_PROBE_SIZE;
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
