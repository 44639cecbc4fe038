/* SPDX-License-Identifier: Apache-2.0 */
/* The outlines that a runtime keeps: the four that were used last. */
#include "stream/outline.h"

#include <check.h>
#include <errno.h>

#include "support/check_suite.h"
#include "support/faulty_allocator.h"
#include "uvarrow/arrow.h"

enum { KEPT = 4, SCHEMAS = 6 };

static struct faulty_allocator memory;
static struct uva__rt *rt;
static const char *const formats[SCHEMAS] = {"c", "s", "i", "l", "f", "g"};

static void set_up(void)
{
    struct uva_runtime_options options = {0};

    faulty_allocator_init(&memory, 0);
    options.allocator = faulty_allocator_table(&memory);
    ck_assert_int_eq(uva__rt_new(&options, &rt), 0);
}

static void tear_down(void)
{
    uva__rt_retire(rt);
    uva__rt_release(rt);
    ck_assert_int_eq(faulty_allocator_live(&memory), 0);
}

static void schema_forget(struct ArrowSchema *schema)
{
    schema->release = NULL;
}

/* The outline of a table with a column of that format, by another schema each
 * time. The caller gets no count: it is compared alone. */
static const struct uva__outline *outline_of(int format)
{
    struct ArrowSchema column = {
        .format = formats[format], .name = "", .release = schema_forget};
    struct ArrowSchema *columns[] = {&column};
    const struct ArrowSchema schema = {.format = "+s",
                                       .name = "",
                                       .n_children = 1,
                                       .children = columns,
                                       .release = schema_forget};
    struct uva__outline *outline;

    ck_assert_int_eq(uva__outline_acquire(rt, &schema, &outline), 0);
    ck_assert_str_eq(uva__outline_measure(outline)->schema.children[0]->format,
                     formats[format]);
    uva__outline_release(outline);
    return outline;
}

START_TEST(the_last_ones_are_found_again)
{
    static const int order[] = {3, 3, 0, 2, 1, 0, 3, 1, 2, 2, 0};
    const struct uva__outline *outlines[KEPT];
    long asked;

    for (int i = 0; i < KEPT; i++)
        outlines[i] = outline_of(i);
    asked = faulty_allocator_asked(&memory);
    for (size_t i = 0; i < sizeof(order) / sizeof(order[0]); i++)
        ck_assert_ptr_eq(outline_of(order[i]), outlines[order[i]]);
    ck_assert_int_eq(faulty_allocator_asked(&memory), asked);
}
END_TEST

START_TEST(the_one_not_used_for_longest_is_dropped)
{
    long asked;

    for (int i = 0; i < KEPT; i++)
        (void)outline_of(i);
    (void)outline_of(0);
    (void)outline_of(KEPT); /* in place of number 1 */
    asked = faulty_allocator_asked(&memory);
    (void)outline_of(0);
    (void)outline_of(2);
    (void)outline_of(3);
    (void)outline_of(KEPT);
    ck_assert_int_eq(faulty_allocator_asked(&memory), asked);
    (void)outline_of(1);
    ck_assert_int_gt(faulty_allocator_asked(&memory), asked);
}
END_TEST

START_TEST(a_count_keeps_it_after_it_was_dropped)
{
    const struct ArrowSchema schema = {
        .format = "+s", .name = "", .release = schema_forget};
    struct uva__outline *outline;

    ck_assert_int_eq(uva__outline_acquire(rt, &schema, &outline), 0);
    for (int i = 0; i < SCHEMAS; i++)
        (void)outline_of(i);
    ck_assert_str_eq(uva__outline_measure(outline)->schema.format, "+s");
    ck_assert_ptr_eq(uva__outline_share(outline), outline);
    ck_assert_ptr_null(uva__outline_share(NULL));
    uva__outline_release(outline);
    ck_assert_int_eq(uva__outline_measure(outline)->schema.n_children, 0);
    uva__outline_release(outline);
    uva__outline_release(NULL);
}
END_TEST

START_TEST(without_memory_there_is_none)
{
    const struct ArrowSchema schema = {
        .format = "+s", .name = "", .release = schema_forget};
    struct uva__outline *outline;
    int code = ENOMEM;

    for (long n = 1; code != 0; n++) {
        atomic_store(&memory.fail_at, faulty_allocator_asked(&memory) + n);
        code = uva__outline_acquire(rt, &schema, &outline);
        ck_assert(code == 0 || code == ENOMEM);
        ck_assert_int_eq(code == 0, outline != NULL);
    }
    uva__outline_release(outline);
}
END_TEST

int main(void)
{
    return suite_main("outlines", set_up, tear_down,
                      suite_tests("outlines", the_last_ones_are_found_again,
                                  the_one_not_used_for_longest_is_dropped,
                                  a_count_keeps_it_after_it_was_dropped,
                                  without_memory_there_is_none, NULL),
                      NULL);
}
