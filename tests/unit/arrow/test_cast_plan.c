/* SPDX-License-Identifier: Apache-2.0 */
/* Schemas that can be cast, and texts about those that cannot. */
#include "arrow/cast_plan.h"

#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "support/cast_fixture.h"
#include "support/check_suite.h"
#include "support/every_type.h"
#include "support/plain_tree.h"
#include "uvarrow/arrow.h"

static struct uva__cast_plan plan;

static int make(void)
{
    struct uva_allocator allocator = faulty_allocator_table(&cast_memory);
    const int code = uva__cast_plan_init(&allocator, &cast_from, &cast_to,
                                         &plan, &cast_error);

    if (code != 0)
        uva__cast_plan_fini(&allocator, &plan);
    return code;
}

static void undo(void)
{
    struct uva_allocator allocator = faulty_allocator_table(&cast_memory);

    uva__cast_plan_fini(&allocator, &plan);
}

static void refuses(const char *text)
{
    ck_assert_int_eq(make(), EINVAL);
    ck_assert_str_eq(cast_error.message, text);
}

/* ---- columns ------------------------------------------------------------ */

START_TEST(a_missing_column_is_named)
{
    cast_fields("i", "l", 0);
    cast_to.children[0]->name = _i == 0 ? "y" : NULL;
    refuses(_i == 0 ? "column y is missing" : "column #0 is missing");
}
END_TEST

START_TEST(a_column_that_is_there_twice_is_named)
{
    if (_i == 2) {
        cast_columns(3, 1, 0);
        cast_field(&cast_from, 1, "i", "a", 0);
        cast_field(&cast_from, 2, "i", "x", 0);
    } else {
        cast_columns(_i == 0 ? 2 : 1, _i == 0 ? 1 : 2, 0);
    }
    cast_field(&cast_from, 0, "i", "x", 0);
    cast_field(&cast_to, 0, "l", "x", 0);
    if (_i == 0)
        cast_field(&cast_from, 1, "i", "x", 0);
    else if (_i == 1)
        cast_field(&cast_to, 1, "i", "x", 0);
    refuses("column x is there twice");
}
END_TEST

/* A column that the target lacks may be there twice. */
START_TEST(other_columns_do_not_matter)
{
    cast_columns(4, 2, 0);
    cast_field(&cast_from, 0, "?", "dropped", 0);
    cast_field(&cast_from, 1, "i", "a", 0);
    cast_field(&cast_from, 2, "?", "dropped", 0);
    cast_field(&cast_from, 3, "i", "b", 0);
    cast_field(&cast_to, 0, "i", "b", 0);
    cast_field(&cast_to, 1, "l", "a", 0);
    ck_assert_int_eq(make(), 0);
    ck_assert_int_eq(plan.kind, UVA__CAST_STRUCT);
    ck_assert_int_eq(plan.children[0].child, 3);
    ck_assert_int_eq(plan.children[0].kind, UVA__CAST_EQUAL);
    ck_assert_int_eq(plan.children[1].child, 1);
    ck_assert_int_eq(plan.children[1].kind, UVA__CAST_NUMBER);
    undo();
}
END_TEST

START_TEST(many_columns_are_found_by_their_names)
{
    enum { COLUMNS = 1000 };
    static char names[COLUMNS][8];

    cast_columns(COLUMNS, COLUMNS, 0);
    for (int i = 0; i < COLUMNS; i++) {
        (void)snprintf(names[i], sizeof(names[i]), "c%d", i);
        cast_field(&cast_from, i, "i", names[i], 0);
        cast_field(&cast_to, COLUMNS - 1 - i, "l", names[i], 0);
    }
    ck_assert_int_eq(make(), 0);
    for (int i = 0; i < COLUMNS; i++)
        ck_assert_int_eq(plan.children[i].child, COLUMNS - 1 - i);
    undo();
}
END_TEST

START_TEST(no_columns_are_cast)
{
    cast_columns(1, 0, 0);
    cast_field(&cast_from, 0, "i", "x", 0);
    ck_assert_int_eq(make(), 0);
    ck_assert_int_eq(plan.n_children, 0);
    undo();
}
END_TEST

START_TEST(the_path_of_a_field_is_named)
{
    struct ArrowSchema *before, *after;

    cast_fields("+s", "+s", 1);
    before = cast_field(cast_from.children[0], 0, "+l", "list", 1);
    after = cast_field(cast_to.children[0], 0, "+L", "list", 1);
    before = cast_field(before, 0, "+s", "item", 1);
    after = cast_field(after, 0, "+s", "element", 1);
    cast_field(before, 0, "u", "text", 0);
    cast_field(after, 0, "z", "text", 0);
    refuses("column x.list.element.text cannot be cast from utf8 to binary");
}
END_TEST

/* Of the schema itself, and of values, the column is named. */
START_TEST(the_path_of_values_is_that_of_their_column)
{
    cast_field(&cast_from, 0, "c", "x", 0);
    plain_schema(plain_schema_dictionary(cast_from.children[0]), "+s", "", 1);
    cast_field(cast_from.children[0]->dictionary, 0, "u", "y", 0);
    cast_field(cast_field(&cast_to, 0, "+s", "x", 1), 0, "i", "y", 0);
    refuses("column x.y cannot be cast from utf8 to int32");
}
END_TEST

START_TEST(a_schema_of_one_array_is_cast)
{
    uva_schema_release(&cast_to);
    plain_schema(&cast_to, "i", "", 0);
    cast_field(&cast_from, 0, "i", "x", 0);
    refuses("the schema cannot be cast from struct to int32");
}
END_TEST

START_TEST(long_paths_are_cut)
{
    static char name[300];

    memset(name, 'a', sizeof(name) - 1);
    cast_fields("+s", "+s", 1);
    cast_from.children[0]->name = cast_to.children[0]->name = name;
    cast_field(cast_from.children[0], 0, "u", "b", 0);
    cast_field(cast_to.children[0], 0, "i", "b", 0);
    ck_assert_int_eq(make(), EINVAL);
    ck_assert_ptr_nonnull(strstr(cast_error.message, "aaa cannot be cast"));
}
END_TEST

/* ---- types -------------------------------------------------------------- */

struct pair {
    const char *from, *to, *text;
};

#define CANNOT "column x cannot be cast from "

static const struct pair pairs[] = {
    {"i", "u", CANNOT "int32 to utf8"},
    {"u", "i", CANNOT "utf8 to int32"},
    {"u", "z", CANNOT "utf8 to binary"},
    {"w:3", "w:4", CANNOT "fixed_size_binary[3] to fixed_size_binary[4]"},
    {"vu", "vz", CANNOT "utf8_view to binary_view"},
    {"i", "n", CANNOT "int32 to null"},
    {"i", "d:9,2", CANNOT "int32 to 'd:9,2'"},
    {"d:9,128", "d:9", CANNOT "'d:9,128' to 'd:9'"},
    {"d:9,2", "d:9,3", CANNOT "'d:9,2' to 'd:9,3'"},
    {"d:9,2", "d:9,2,256", CANNOT "'d:9,2' to 'd:9,2,256'"},
    {"tss:", "tsm:UTC", CANNOT "timestamp[s] to timestamp[ms, UTC]"},
    {"tss:UTC", "tss:", CANNOT "timestamp[s, UTC] to timestamp[s]"},
    {"tts", "tDs", CANNOT "time32[s] to duration[s]"},
    {"tdD", "tss:", CANNOT "date32 to timestamp[s]"},
    {"tiM", "tiD", CANNOT "'tiM' to 'tiD'"},
    {"tDs", "l", CANNOT "duration[s] to int64"},
    {"?", "i", CANNOT "'?' to int32"},
    {"i", "?", CANNOT "int32 to '?'"},
    {"i", "w:x", CANNOT "int32 to fixed_size_binary[x]"},
    {"i", "", CANNOT "int32 to ''"},
    {"n", "?", CANNOT "null to '?'"},
    {"n", "+ud:", CANNOT "null to '+ud:'"},
    {"+s", "i", CANNOT "struct to int32"},
    {"i", "+s", CANNOT "int32 to struct"},
    {"ts", "tss:", CANNOT "'ts' to timestamp[s]"},
};

START_TEST(types_without_a_cast_are_refused)
{
    cast_fields(pairs[_i].from, pairs[_i].to, 0);
    refuses(pairs[_i].text);
}
END_TEST

/* Lists and the like, each of int32. */
static const struct pair nested[] = {
    {"+l", "+w:2", CANNOT "list to fixed_size_list[2]"},
    {"+w:2", "+w:3", CANNOT "fixed_size_list[2] to fixed_size_list[3]"},
    {"+w:2", "+l", CANNOT "fixed_size_list[2] to list"},
    {"+us:1", "+us:2", CANNOT "'+us:1' to '+us:2'"},
    {"+us:1", "+ud:1", CANNOT "'+us:1' to '+ud:1'"},
    {"+l", "+s", CANNOT "list to struct"},
    {"+l", "+m", CANNOT "list to map"},
    {"+l", "+vL", NULL},
    {"+us:1", "+us:1", NULL},
};

START_TEST(nested_types_without_a_cast_are_refused)
{
    cast_fields(nested[_i].from, nested[_i].to, 1);
    cast_field(cast_from.children[0], 0, "i", "item", 0);
    cast_field(cast_to.children[0], 0, "l", "item", 0);
    if (nested[_i].text != NULL) {
        refuses(nested[_i].text);
        return;
    }
    ck_assert_int_eq(make(), 0);
    undo();
}
END_TEST

START_TEST(members_of_unions_have_names)
{
    cast_fields("+us:1", "+us:1", 1);
    cast_field(cast_from.children[0], 0, "i", "a", 0);
    cast_field(cast_to.children[0], 0, "i", "b", 0);
    refuses(CANNOT "'+us:1' to '+us:1'");
}
END_TEST

/* Of a type with another number of children, in either schema. */
START_TEST(malformed_types_are_refused)
{
    cast_columns(1, 1, 0);
    cast_field(&cast_from, 0, "+l", "x", _i == 0 ? 2 : 1);
    cast_field(&cast_to, 0, "+L", "x", _i == 1 ? 0 : 1);
    cast_field(cast_from.children[0], 0, "i", "item", 0);
    if (_i == 0)
        cast_field(cast_from.children[0], 1, "i", "item", 0);
    else if (_i == 2)
        cast_from.children[0]->format = "+m";
    if (_i != 1)
        cast_field(cast_to.children[0], 0, "i", "item", 0);
    refuses(_i == 2 ? CANNOT "map to large_list" : CANNOT "list to large_list");
}
END_TEST

/* The ends of runs are integers of 16, 32 or 64 bits. */
START_TEST(odd_ends_of_runs_are_refused)
{
    static const char *const ends[] = {"c", "i", "tdD", "", "i"};
    struct ArrowSchema *field;

    cast_field(&cast_from, 0, "+r", "x", 2);
    field = cast_field(cast_from.children[0], 0, ends[_i], "run_ends", 0);
    if (_i == 4)
        plain_schema(plain_schema_dictionary(field), "i", "", 0);
    cast_field(cast_from.children[0], 1, _i == 1 ? "?" : "i", "values", 0);
    cast_field(&cast_to, 0, "i", "x", 0);
    refuses(CANNOT "run_end_encoded to int32");
    cast_again();
    cast_field(&cast_from, 0, "n", "x", 0);
    cast_field(&cast_to, 0, "+r", "x", 2);
    cast_field(cast_to.children[0], 0, "c", "run_ends", 0);
    cast_field(cast_to.children[0], 1, "i", "values", 0);
    refuses(CANNOT "null to run_end_encoded");
}
END_TEST

/* Below a struct, whose second field is sound. */
START_TEST(nulls_of_malformed_types_are_refused)
{
    static const char *const formats[] = {"?", "+l", "+ud:", "u", "c"};
    struct ArrowSchema *field;

    cast_field(&cast_from, 0, "n", "x", 0);
    cast_field(&cast_to, 0, "+s", "x", 2);
    field = cast_field(cast_to.children[0], 0, formats[_i], "a", 0);
    cast_field(cast_to.children[0], 1, "i", "b", 0);
    if (_i >= 3)
        plain_schema(plain_schema_dictionary(field), _i == 3 ? "i" : "?", "",
                     0);
    refuses(CANNOT "null to struct");
}
END_TEST

START_TEST(a_dictionary_of_no_integers_is_refused)
{
    cast_fields("u", "U", 0);
    plain_schema(plain_schema_dictionary(cast_from.children[0]), "i", "", 0);
    refuses(CANNOT "dictionary to large_utf8");
}
END_TEST

START_TEST(nothing_becomes_a_dictionary_or_runs)
{
    cast_field(&cast_from, 0, _i == 0 ? "u" : "i", "x", 0);
    if (_i == 0) {
        cast_field(&cast_to, 0, "c", "x", 0);
        plain_schema(plain_schema_dictionary(cast_to.children[0]), "u", "", 0);
        refuses(CANNOT "utf8 to dictionary");
        return;
    }
    cast_field(&cast_to, 0, "+r", "x", 2);
    cast_field(cast_to.children[0], 0, "i", "run_ends", 0);
    cast_field(cast_to.children[0], 1, "i", "values", 0);
    refuses(CANNOT "int32 to run_end_encoded");
}
END_TEST

/* A dictionary of other indices is another type, but of the values' names, and
 * of a bitmap's, the same. */
START_TEST(equal_dictionaries_are_passed_on)
{
    cast_field(&cast_from, 0, "c", "x", 0);
    plain_schema(plain_schema_dictionary(cast_from.children[0]), "u", "a", 0);
    cast_field(&cast_to, 0, _i == 1 ? "s" : "c", "x", 0);
    plain_schema(plain_schema_dictionary(cast_to.children[0]),
                 _i == 3 ? "U" : "u", "b", 0);
    if (_i == 2)
        cast_to.children[0]->flags |= ARROW_FLAG_DICTIONARY_ORDERED;
    if (_i > 0) {
        refuses(CANNOT "dictionary to dictionary");
        return;
    }
    ck_assert_int_eq(make(), 0);
    ck_assert_int_eq(plan.kind, UVA__CAST_EQUAL);
    undo();
}
END_TEST

/* Keys that are not sorted do not become so. */
START_TEST(maps_of_the_same_names_or_not_are_equal)
{
    for (int i = 0; i < 2; i++) {
        struct ArrowSchema *map =
            cast_field(i == 0 ? &cast_from : &cast_to, 0, "+m", "x", 1);
        struct ArrowSchema *pair =
            cast_field(map, 0, "+s", i == 0 ? "entries" : "pairs", 2);

        cast_field(pair, 0, "i", i == 0 ? "key" : "k", 0);
        cast_field(pair, 1, "i", i == 0 ? "value" : "v", 0);
    }
    if (_i == 1) {
        cast_to.children[0]->flags |= ARROW_FLAG_MAP_KEYS_SORTED;
        refuses(CANNOT "map to map");
        return;
    }
    ck_assert_int_eq(make(), 0);
    ck_assert_int_eq(plan.kind, UVA__CAST_EQUAL);
    undo();
}
END_TEST

START_TEST(decimals_of_128_bits_have_two_formats)
{
    cast_fields(_i == 0 ? "d:9,2" : "d:9,2,128",
                _i == 0 ? "d:9,2,128" : "d:9,2", 0);
    ck_assert_int_eq(make(), 0);
    ck_assert_int_eq(plan.kind, UVA__CAST_EQUAL);
    undo();
}
END_TEST

START_TEST(every_type_is_equal_to_itself)
{
    const struct every_variant variant = {3, 0, true};
    struct ArrowDeviceArray array;

    uva_schema_release(&cast_from);
    uva_schema_release(&cast_to);
    every_type(_i, &variant, &cast_from, &array);
    uva_array_release(&array);
    every_type(_i, &variant, &cast_to, &array);
    uva_array_release(&array);
    ck_assert_int_eq(make(), 0);
    ck_assert_int_eq(plan.kind, UVA__CAST_EQUAL);
    every_type_forget();
}
END_TEST

/* Entries of a map with another number of fields. */
START_TEST(malformed_maps_are_refused)
{
    for (int i = 0; i < 2; i++) {
        struct ArrowSchema *pair = cast_field(
            cast_field(i == 0 ? &cast_from : &cast_to, 0, "+m", "x", 1), 0,
            "+s", "entries", i + 1);

        for (int k = 0; k <= i; k++)
            cast_field(pair, k, "i", "", 0);
    }
    refuses("column x.entries cannot be cast from struct to struct");
}
END_TEST

/* With nulls that the target lacks, below: it is looked at. */
START_TEST(a_stricter_child_is_not_equal)
{
    cast_fields("+l", "+l", 1);
    cast_field(cast_from.children[0], 0, "i", "item", 0);
    cast_field(cast_to.children[0], 0, "i", "item", 0)->flags = 0;
    ck_assert_int_eq(make(), 0);
    ck_assert_int_eq(plan.children[0].kind, UVA__CAST_LIST);
    ck_assert(plan.children[0].children[0].strict);
    ck_assert(!plan.children[0].strict);
    undo();
}
END_TEST

int main(void)
{
    const int refused = sizeof(pairs) / sizeof(pairs[0]);
    const int below = sizeof(nested) / sizeof(nested[0]);
    Suite *suite = suite_create("cast_plan");
    TCase *all = suite_case(suite, "cast_plan", cast_set_up, cast_tear_down);

    suite_add_loops(all, 0, refused, types_without_a_cast_are_refused, NULL);
    suite_add_loops(all, 0, below, nested_types_without_a_cast_are_refused,
                    NULL);
    suite_add_loops(all, 0, EVERY_TYPES, every_type_is_equal_to_itself, NULL);
    suite_add_loops(all, 0, 5, odd_ends_of_runs_are_refused,
                    nulls_of_malformed_types_are_refused, NULL);
    suite_add_loops(all, 0, 4, equal_dictionaries_are_passed_on, NULL);
    suite_add_loops(all, 0, 3, malformed_types_are_refused,
                    a_column_that_is_there_twice_is_named, NULL);
    suite_add_loops(all, 0, 2, a_missing_column_is_named,
                    nothing_becomes_a_dictionary_or_runs,
                    maps_of_the_same_names_or_not_are_equal,
                    decimals_of_128_bits_have_two_formats, NULL);
    suite_add(
        all, other_columns_do_not_matter, many_columns_are_found_by_their_names,
        no_columns_are_cast, the_path_of_a_field_is_named,
        the_path_of_values_is_that_of_their_column,
        a_schema_of_one_array_is_cast, a_dictionary_of_no_integers_is_refused,
        long_paths_are_cut, members_of_unions_have_names,
        a_stricter_child_is_not_equal, malformed_maps_are_refused, NULL);
    return suite_run(suite);
}
