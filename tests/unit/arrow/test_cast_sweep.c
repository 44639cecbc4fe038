/* SPDX-License-Identifier: Apache-2.0 */
/* Each row of the table of casts (stages.h), with every allocation failing in
 * turn: the cast fails with ENOMEM and a text, and nothing is left. */
#include <check.h>
#include <errno.h>
#include <string.h>

#include "support/cast_fixture.h"
#include "support/check_suite.h"
#include "support/plain_tree.h"
#include "uvarrow/arrow.h"

enum { ROWS = 2, FAILURES_MAX = 60 };

/* ---- columns ------------------------------------------------------------ */

static const int64_t zeros[ROWS * 2];
static const int32_t ends[ROWS + 1] = {0, 1, 2};
static const int64_t wide_ends[ROWS + 1] = {0, 1, 2};
static const int8_t indices[ROWS] = {1, 0};
static const char text[] = "ab";

/* Of a type whose values of zero every other such type can hold. */
static void fill_plain(void)
{
    (void)cast_column(ROWS, NULL, zeros, NULL);
}

static void fill_text(void)
{
    (void)cast_column(ROWS, NULL, ends, text);
}

static void fill_wide_text(void)
{
    (void)cast_column(ROWS, NULL, wide_ends, text);
}

static void fill_nulls(void)
{
    plain_array(cast_array.array.children[0], ROWS, 0, 0);
    cast_array.array.length = cast_array.array.children[0]->null_count = ROWS;
}

/* Adds the item of the column to both schemas, and to the array. */
static void fill_item(const char *before, const char *after)
{
    cast_field(cast_from.children[0], 0, before, "item", 0);
    cast_field(cast_to.children[0], 0, after, "item", 0);
    (void)cast_values(cast_array.array.children[0], 0, ROWS, NULL, zeros, NULL);
}

static void fill_list(void)
{
    struct ArrowArray *x = cast_array.array.children[0];

    cast_array.array.length = ROWS;
    plain_array(x, ROWS, 2, 1);
    x->buffers[1] = ends;
    fill_item("l", "i");
}

static void fill_nested(void)
{
    cast_array.array.length = ROWS;
    plain_array(cast_array.array.children[0], ROWS, 1, 1);
    fill_item("l", "i");
}

static void fill_union(void)
{
    static const int8_t types[ROWS];
    struct ArrowArray *x = cast_array.array.children[0];

    cast_array.array.length = ROWS;
    plain_array(x, ROWS, 1, 1);
    x->buffers[0] = types;
    fill_item("l", "i");
}

static void fill_dictionary(void)
{
    struct ArrowArray *values;

    plain_schema(plain_schema_dictionary(cast_from.children[0]), "l", "", 0);
    values = plain_array_dictionary(cast_column(ROWS, NULL, indices, NULL));
    plain_array(values, ROWS, 2, 0);
    values->buffers[1] = zeros;
}

static void fill_text_dictionary(void)
{
    struct ArrowArray *values;

    plain_schema(plain_schema_dictionary(cast_from.children[0]), "u", "", 0);
    values = plain_array_dictionary(cast_column(ROWS, NULL, indices, NULL));
    plain_array(values, ROWS, 3, 0);
    values->buffers[1] = ends;
    values->buffers[2] = text;
}

static void fill_runs(void)
{
    struct ArrowSchema *schema = cast_from.children[0];
    struct ArrowArray *x = cast_array.array.children[0];

    cast_array.array.length = ROWS;
    cast_field(schema, 0, "i", "run_ends", 0);
    cast_field(schema, 1, "l", "values", 0);
    plain_array(x, ROWS, 0, 2);
    (void)cast_values(x, 0, ROWS, NULL, ends + 1, NULL);
    (void)cast_values(x, 1, ROWS, NULL, zeros, NULL);
}

/* ---- the table ---------------------------------------------------------- */

static const struct {
    const char *before, *after;
    int children;
    void (*fill)(void);
} rows[] = {
    {"l", "i", 0, fill_plain},       /* an integer to another one, */
    {"i", "g", 0, fill_plain},       /* to floating point */
    {"g", "l", 0, fill_plain},       /* and back, */
    {"f", "g", 0, fill_plain},       /* between these, */
    {"g", "e", 0, fill_plain},       /* also half of one */
    {"b", "l", 0, fill_plain},       /* a boolean to a number */
    {"c", "b", 0, fill_plain},       /* and back */
    {"ttm", "ttn", 0, fill_plain},   /* times of day, */
    {"tsn:", "tss:", 0, fill_plain}, /* timestamps, */
    {"tDs", "tDn", 0, fill_plain},   /* durations, */
    {"tdD", "tdm", 0, fill_plain},   /* dates */
    {"u", "U", 0, fill_text},        /* texts */
    {"u", "vu", 0, fill_text},
    {"U", "u", 0, fill_wide_text},
    {"z", "Z", 0, fill_text}, /* bytes */
    {"z", "vz", 0, fill_text},
    {"z", "w:1", 0, fill_text},
    {"Z", "z", 0, fill_wide_text},
    {"+l", "+L", 1, fill_list}, /* lists */
    {"+l", "+vl", 1, fill_list},
    {"+l", "+vL", 1, fill_list},
    {"+l", "+l", 1, fill_list}, /* items alone */
    {"+w:1", "+w:1", 1, fill_nested},
    {"+s", "+s", 1, fill_nested},
    {"+us:0", "+us:0", 1, fill_union},
    {"c", "l", 0, fill_dictionary}, /* values of a dictionary */
    {"c", "i", 0, fill_dictionary},
    {"c", "U", 0, fill_text_dictionary},
    {"+r", "l", 2, fill_runs}, /* values of runs */
    {"+r", "i", 2, fill_runs},
    {"n", "l", 0, fill_nulls}, /* nulls */
    {"n", "u", 0, fill_nulls},
    {"n", "+l", 0, fill_nulls},
};

/* Returns whether no allocation failed. */
static bool play(int row, long fail_at)
{
    const bool is_list = strcmp(rows[row].after, "+l") == 0;
    bool whole;

    cast_again();
    cast_field(&cast_from, 0, rows[row].before, "x", rows[row].children);
    cast_field(&cast_to, 0, rows[row].after, "x",
               rows[row].children == 1 || is_list);
    if (is_list && rows[row].children == 0)
        cast_field(cast_to.children[0], 0, "l", "item", 0);
    rows[row].fill();
    faulty_allocator_init(&cast_memory, fail_at);
    whole = cast_run() == 0;
    if (!whole) {
        ck_assert_msg(cast_error.code == ENOMEM, "%s to %s: %s",
                      rows[row].before, rows[row].after, cast_error.message);
        ck_assert_int_ne(cast_error.message[0], '\0');
    }
    ck_assert_int_eq(whole, !faulty_allocator_has_failed(&cast_memory));
    return whole;
}

START_TEST(every_allocation_of_a_cast_may_fail)
{
    long i = 1;

    while (!play(_i, i))
        ck_assert_int_lt(i++, FAILURES_MAX);
    ck_assert_int_gt(i, 3); /* it did allocate */
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("cast_sweep");

    tcase_add_loop_test(tc, every_allocation_of_a_cast_may_fail, 0,
                        (int)(sizeof(rows) / sizeof(rows[0])));
    return suite_main("cast_sweep", cast_set_up, cast_tear_down, tc, NULL);
}
