/* SPDX-License-Identifier: Apache-2.0 */
/* Casts below lists, structs and unions, of dictionaries and of runs: the items
 * that a row has, and the way from an item back to its row. */
#include "arrow/cast.h"

#include <check.h>
#include <errno.h>
#include <string.h>

#include "support/cast_fixture.h"
#include "support/check_suite.h"
#include "support/plain_tree.h"
#include "uvarrow/arrow.h"

/* ---- nested ------------------------------------------------------------- */

/* Two lists of two numbers, of which the last is too large, below list `x`. */
static void list(const char *before, const char *after)
{
    cast_fields(before, after, 1);
    cast_field(cast_from.children[0], 0, "l", "item", 0);
    cast_field(cast_to.children[0], 0, "i", "item", 0);
}

static void list_array(int64_t rows, const void *validity, const void *offsets,
                       const void *sizes, int64_t items, const int64_t *data)
{
    struct ArrowArray *x = cast_array.array.children[0];

    cast_array.array.length = rows;
    plain_array(x, rows, sizes != NULL ? 3 : 2, 1);
    x->buffers[0] = validity;
    x->null_count = validity != NULL ? -1 : 0;
    x->buffers[1] = offsets;
    if (sizes != NULL)
        x->buffers[2] = sizes;
    (void)cast_values(x, 0, items, NULL, data, NULL);
}

START_TEST(a_row_is_found_through_its_list)
{
    static const int32_t offsets[] = {0, 2, 2, 4, 5};

    list("+l", _i == 0 ? "+L" : "+vL");
    list_array(4, NULL, offsets, NULL, 5,
               (const int64_t[]){1, 2, 3, 5000000000, 5});
    cast_refuses(EOVERFLOW, "column x.item, row 2: 5000000000 is no int32");
}
END_TEST

START_TEST(a_null_list_hides_its_items)
{
    static const int32_t offsets[] = {0, 1, 3, 4};
    const struct ArrowArray *x;

    list("+l", "+L");
    list_array(3, CAST_SECOND_IS_NULL, offsets, NULL, 4,
               (const int64_t[]){1, 5000000000, 5000000000, 4});
    x = cast_result();
    ck_assert_int_eq(x->null_count, 1);
    ck_assert_int_eq(((const int64_t *)x->buffers[1])[3], 4);
    ck_assert_int_eq(((const int32_t *)x->children[0]->buffers[1])[3], 4);
}
END_TEST

/* The items before a slice do not matter, and are left out. */
START_TEST(a_slice_has_its_items_alone)
{
    static const int32_t offsets[] = {0, 2, 4, 5};
    const struct ArrowArray *x;

    list("+l", "+vl");
    list_array(3, NULL, offsets, NULL, 5,
               (const int64_t[]){5000000000, 5000000000, 3, 4, 5000000000});
    cast_array.array.children[0]->offset = 1;
    cast_array.array.children[0]->length = 1;
    cast_array.array.length = 1;
    x = cast_result();
    ck_assert_int_eq(x->length, 1);
    ck_assert_int_eq(((const int32_t *)x->buffers[1])[0], 0);
    ck_assert_int_eq(((const int32_t *)x->buffers[2])[0], 2);
    ck_assert_int_eq(x->children[0]->length, 2);
    ck_assert_int_eq(((const int32_t *)x->children[0]->buffers[1])[0], 3);
}
END_TEST

/* In disorder, with a gap, and with one null that is anywhere. */
START_TEST(list_views_become_lists_in_order)
{
    static const int32_t offsets[] = {3, 77, 0, 1}, sizes[] = {2, 9, 1, 1};
    static const int32_t expected[] = {0, 2, 2, 3, 4};
    const struct ArrowArray *x;

    list("+vl", "+l");
    list_array(
        4, CAST_SECOND_IS_NULL, offsets, sizes, 5,
        (const int64_t[]){10, _i == 0 ? 11 : 5000000000, 5000000000, 13, 14});
    if (_i == 1) {
        cast_refuses(EOVERFLOW, "column x.item, row 3: 5000000000 is no int32");
        return;
    }
    x = cast_result();
    ck_assert_mem_eq(x->buffers[1], expected, sizeof(expected));
    ck_assert_mem_eq(x->children[0]->buffers[1],
                     ((const int32_t[]){13, 14, 10, 11}), 16);
}
END_TEST

static const struct {
    int32_t offsets[4];
    int32_t sizes[3]; /* 0: these are no views */
} wrong_lists[] = {
    {{0, 3, 1, 4}, {0}},     {{0, 1, 2, 9}, {0}},     {{-1, 1, 2, 3}, {0}},
    {{9, 10, 10, 10}, {0}},  {{3, 0, 4}, {1, -1, 1}}, {{3, 0, 7}, {1, 1, 1}},
    {{3, -1, 4}, {1, 1, 1}}, {{3, 0, 4}, {1, 1, 2}},
};

START_TEST(wrong_lists_are_refused)
{
    static const int64_t items[5] = {0};
    const bool views = wrong_lists[_i].sizes[0] != 0;

    list(views ? "+vl" : "+l", "+L");
    list_array(3, NULL, wrong_lists[_i].offsets,
               views ? wrong_lists[_i].sizes : NULL, 5, items);
    cast_refuses(EINVAL, "column x: its offsets are wrong");
}
END_TEST

START_TEST(lists_of_too_many_items_are_refused)
{
    const int64_t offsets[] = {0, 1, INT64_C(1) << 31, INT64_C(1) << 31};

    list("+L", "+l");
    list_array(3, NULL, offsets, NULL, INT64_C(1) << 31, CAST_LARGE);
    cast_refuses(EOVERFLOW, "column x, row 1: the lists have too many items");
}
END_TEST

START_TEST(lists_of_one_size_are_cast)
{
    const bool hidden = _i == 0;
    struct ArrowArray *x = cast_array.array.children[0];

    list("+w:2", "+w:2");
    cast_array.array.length = 2;
    plain_array(x, 2, 1, 1);
    x->buffers[0] = hidden ? CAST_SECOND_IS_NULL : NULL;
    x->null_count = hidden ? 1 : 0;
    (void)cast_values(x, 0, 4, NULL, (const int64_t[]){1, 2, 3, 5000000000},
                      NULL);
    if (hidden)
        ck_assert_int_eq(
            ((const int32_t *)cast_result()->children[0]->buffers[1])[2], 3);
    else
        cast_refuses(EOVERFLOW, "column x.item, row 1: 5000000000 is no int32");
}
END_TEST

/* The keys and values have any names. */
START_TEST(maps_are_cast_by_position)
{
    static const int32_t offsets[] = {0, 1, 2};
    struct ArrowArray *entries;
    struct ArrowSchema *pair;

    cast_fields("+m", "+m", 1);
    pair = cast_field(cast_from.children[0], 0, "+s", "entries", 2);
    cast_field(pair, 0, "i", "key", 0);
    cast_field(pair, 1, "l", "value", 0);
    pair = cast_field(cast_to.children[0], 0, "+s", "key_value", 2);
    cast_field(pair, 0, "l", "k", 0);
    cast_field(pair, 1, "i", "v", 0);
    list_array(2, NULL, offsets, NULL, 0, NULL);
    entries = cast_array.array.children[0]->children[0];
    entries->release(entries);
    plain_array(entries, 2, 1, 2);
    (void)cast_values(entries, 0, 2, NULL, (const int32_t[]){7, 8}, NULL);
    (void)cast_values(entries, 1, 2, NULL, CAST_LARGE + 2 * _i, NULL);
    if (_i == 0)
        cast_refuses(EOVERFLOW,
                     "column x.key_value.v, row 1: 5000000000 is no int32");
    else
        ck_assert_int_eq(((const int64_t *)cast_result()
                              ->children[0]
                              ->children[0]
                              ->buffers[1])[1],
                         8);
}
END_TEST

/* Fields of a struct are found by name; a null row hides them. */
START_TEST(structs_are_cast_by_name)
{
    const struct ArrowArray *group;
    struct ArrowArray *x = cast_array.array.children[0];

    cast_fields("+s", "+s", 2);
    cast_field(cast_from.children[0], 0, "l", "a", 0);
    cast_field(cast_from.children[0], 1, "u", "b", 0);
    cast_field(cast_to.children[0], 0, "u", "b", 0);
    cast_field(cast_to.children[0], 1, "i", "a", 0);
    cast_array.array.length = 3;
    plain_array(x, 3, 1, 2);
    x->buffers[0] = _i == 0 ? CAST_SECOND_IS_NULL : NULL;
    x->null_count = _i == 0 ? -1 : 0;
    (void)cast_values(x, 0, 3, NULL, CAST_LARGE, NULL);
    (void)cast_values(x, 1, 3, NULL, (const int32_t[]){0, 1, 2, 3}, "abc");
    if (_i == 1) {
        cast_refuses(EOVERFLOW, "column x.a, row 1: 5000000000 is no int32");
        return;
    }
    group = cast_result();
    ck_assert_int_eq(group->null_count, 1);
    ck_assert_int_eq(((const int32_t *)group->children[1]->buffers[1])[2], -2);
}
END_TEST

/* A member has other items where the row is of another member. */
START_TEST(sparse_unions_are_cast)
{
    static const int8_t ids[] = {5, 9, 5};
    struct ArrowArray *x = cast_array.array.children[0];

    cast_fields("+us:9,5", "+us:9,5", 2);
    cast_field(cast_from.children[0], 0, "l", "n", 0);
    cast_field(cast_from.children[0], 1, "u", "t", 0);
    cast_field(cast_to.children[0], 0, "i", "n", 0);
    cast_field(cast_to.children[0], 1, "U", "t", 0);
    cast_array.array.length = 3;
    plain_array(x, 3, 1, 2);
    x->buffers[0] = ids;
    (void)cast_values(x, 0, 3, NULL,
                      _i == 0 ? (const int64_t[]){5000000000, 2, 5000000000}
                              : CAST_LARGE,
                      NULL);
    (void)cast_values(x, 1, 3, NULL, (const int32_t[]){0, 1, 2, 3}, "abc");
    if (_i == 1)
        cast_refuses(EOVERFLOW, "column x.n, row 1: 5000000000 is no int32");
    else
        ck_assert_mem_eq(cast_result()->buffers[0], ids, 3);
}
END_TEST

/* Items 1 and 2 of the numbers, and item 0 of the texts. */
START_TEST(dense_unions_are_cast)
{
    static const int8_t ids[] = {0, 3, 0, 0}, wrong[] = {0, 3, 4, 0},
                        below[] = {0, 3, -1, 0};
    static const int32_t offsets[] = {2, 0, 1, 2}, less[] = {2, 0, -1, 2},
                         expected[] = {1, 0, 0, 1};
    struct ArrowArray *x = cast_array.array.children[0];

    cast_fields("+ud:0,3", "+ud:0,3", 2);
    cast_field(cast_from.children[0], 0, "l", "n", 0);
    cast_field(cast_from.children[0], 1, "u", "t", 0);
    cast_field(cast_to.children[0], 0, "i", "n", 0);
    cast_field(cast_to.children[0], 1, "U", "t", 0);
    cast_array.array.length = 4;
    plain_array(x, 4, 2, 2);
    x->buffers[0] = _i == 2 ? wrong : _i == 3 ? below : ids;
    x->buffers[1] = _i == 4 ? less : offsets;
    (void)cast_values(x, 0, 4, NULL,
                      _i == 1 ? (const int64_t[]){1, 5000000000, 2, 3}
                              : (const int64_t[]){5000000000, 1, 2, 5000000000},
                      NULL);
    (void)cast_values(x, 1, 1, NULL, (const int32_t[]){0, 1}, "a");
    if (_i == 1) {
        cast_refuses(EOVERFLOW, "column x.n, row 2: 5000000000 is no int32");
    } else if (_i >= 2) {
        cast_refuses(EINVAL, "column x: its offsets are wrong");
    } else {
        const struct ArrowArray *made = cast_result();

        ck_assert_mem_eq(made->buffers[1], expected, sizeof(expected));
        ck_assert_int_eq(made->children[0]->length, 2);
    }
}
END_TEST

/* The second member is looked for by its id. */
START_TEST(a_value_of_the_second_member_is_refused)
{
    static const int8_t ids[] = {9, 5};
    static const int32_t offsets[] = {0, 0};
    const bool dense = _i == 1;
    const char *format = dense ? "+ud:9,5" : "+us:9,5";
    struct ArrowArray *x = cast_array.array.children[0];

    cast_fields(format, format, 2);
    cast_field(cast_from.children[0], 0, "l", "a", 0);
    cast_field(cast_from.children[0], 1, "l", "b", 0);
    cast_field(cast_to.children[0], 0, "l", "a", 0);
    cast_field(cast_to.children[0], 1, "i", "b", 0);
    cast_array.array.length = 2;
    plain_array(x, 2, dense ? 2 : 1, 2);
    x->buffers[0] = ids;
    if (dense)
        x->buffers[1] = offsets;
    (void)cast_values(x, 0, 2, NULL, CAST_LARGE, NULL);
    (void)cast_values(x, 1, 2, NULL, CAST_LARGE + dense, NULL);
    cast_refuses(EOVERFLOW, "column x.b, row 1: 5000000000 is no int32");
}
END_TEST

/* Items that only rows have which a null above hides. */
START_TEST(hidden_rows_of_a_dense_union_do_not_matter)
{
    static const int8_t ids[] = {0, 0};
    static const int32_t offsets[] = {0, 1};
    struct ArrowArray *x = cast_array.array.children[0], *inner;
    struct ArrowSchema *both[] = {&cast_from, &cast_to};

    for (int i = 0; i < 2; i++)
        cast_field(cast_field(cast_field(both[i], 0, "+s", "x", 1), 0, "+ud:0",
                              "u", 1),
                   0, i == 0 ? "l" : "i", "n", 0);
    cast_array.array.length = 2;
    plain_array(x, 2, 1, 1);
    x->buffers[0] = CAST_SECOND_IS_NULL;
    x->null_count = 1;
    inner = x->children[0];
    plain_array(inner, 2, 2, 1);
    inner->buffers[0] = ids;
    inner->buffers[1] = offsets;
    (void)cast_values(inner, 0, 2, NULL, CAST_LARGE, NULL);
    ck_assert_int_eq(cast_result()->null_count, 1);
}
END_TEST

/* ---- dictionaries and runs ---------------------------------------------- */

static void dictionary(const char *index, const char *value, const char *after)
{
    cast_field(&cast_from, 0, index, "x", 0);
    plain_schema(plain_schema_dictionary(cast_from.children[0]), value, "", 0);
    cast_from.children[0]->dictionary->flags = ARROW_FLAG_NULLABLE;
    cast_field(&cast_to, 0, after, "x", 0);
}

static struct ArrowArray *dictionary_array(int64_t rows, const void *validity,
                                           const void *indices)
{
    return plain_array_dictionary(cast_column(rows, validity, indices, NULL));
}

static const char *const index_formats[] = {"c", "C", "s", "S",
                                            "i", "I", "l", "L"};
static const void *const indices[] = {
    (const int8_t[]){2, 99, 0, 1},  (const uint8_t[]){2, 99, 0, 1},
    (const int16_t[]){2, 99, 0, 1}, (const uint16_t[]){2, 99, 0, 1},
    (const int32_t[]){2, 99, 0, 1}, (const uint32_t[]){2, 99, 0, 1},
    (const int64_t[]){2, 99, 0, 1}, (const uint64_t[]){2, 99, 0, 1}};

START_TEST(a_dictionary_gives_its_values)
{
    struct ArrowArray *d;
    const struct ArrowArray *x;

    dictionary(index_formats[_i], "l", "i");
    d = dictionary_array(4, CAST_SECOND_IS_NULL, indices[_i]);
    plain_array(d, 3, 2, 0);
    d->buffers[1] = CAST_LARGE + 2;
    ck_assert_int_eq(cast_run(), EOVERFLOW);
    ck_assert_str_eq(cast_error.message,
                     "column x, row 0: 5000000000 is no int32");
    cast_again();
    dictionary(index_formats[_i], "l", "l");
    d = dictionary_array(4, CAST_SECOND_IS_NULL, indices[_i]);
    plain_array(d, 3, 2, 0);
    d->buffers[1] = CAST_LARGE;
    x = cast_result();
    ck_assert_int_eq(x->null_count, 1);
    ck_assert_int_eq(((const int64_t *)x->buffers[1])[0], -2);
    ck_assert_int_eq(((const int64_t *)x->buffers[1])[2], 1);
    ck_assert_int_eq(((const int64_t *)x->buffers[1])[3], 5000000000);
}
END_TEST

START_TEST(a_value_that_no_row_has_may_be_anything)
{
    struct ArrowArray *d;

    dictionary("c", "l", "i");
    d = dictionary_array(3, NULL, (const int8_t[]){0, 2, 3});
    plain_array(d, 4, 2, 0);
    d->buffers[1] = CAST_LARGE;
    ck_assert_int_eq(((const int32_t *)cast_result()->buffers[1])[2], 3);
}
END_TEST

START_TEST(an_index_out_of_range_is_refused)
{
    struct ArrowArray *d;

    dictionary("c", "l", "i");
    d = dictionary_array(2, NULL, (const int8_t[]){0, (int8_t)(_i ? -1 : 1)});
    plain_array(d, 1, 2, 0);
    d->buffers[1] = CAST_LARGE;
    cast_refuses(EINVAL,
                 _i ? "column x, row 1: index -1 into a dictionary of 1 values"
                    : "column x, row 1: index 1 into a dictionary of 1 "
                      "values");
}
END_TEST

/* In the dictionary, not among the indices. */
START_TEST(a_null_value_is_found)
{
    struct ArrowArray *d;

    dictionary("c", "l", "l");
    cast_to.children[0]->flags = 0;
    d = dictionary_array(2, NULL, (const int8_t[]){0, 1});
    plain_array(d, 2, 2, 0);
    d->buffers[0] = CAST_SECOND_IS_NULL;
    d->null_count = 1;
    d->buffers[1] = CAST_LARGE;
    cast_refuses(EINVAL,
                 "column x, row 1: a null, which the column cannot have");
}
END_TEST

/* A null struct hides an index. */
START_TEST(a_hidden_index_may_be_anything)
{
    struct ArrowArray *x = cast_array.array.children[0], *inner;
    struct ArrowSchema *s = cast_field(&cast_from, 0, "+s", "x", 1);

    cast_field(s, 0, "c", "d", 0);
    plain_schema(plain_schema_dictionary(s->children[0]), "l", "", 0);
    cast_field(cast_field(&cast_to, 0, "+s", "x", 1), 0, "i", "d", 0);
    cast_array.array.length = 2;
    plain_array(x, 2, 1, 1);
    x->buffers[0] = CAST_SECOND_IS_NULL;
    x->null_count = 1;
    inner = cast_values(x, 0, 2, NULL, (const int8_t[]){0, 77}, NULL);
    plain_array(plain_array_dictionary(inner), 1, 2, 0);
    inner->dictionary->buffers[1] = CAST_LARGE;
    ck_assert_int_eq(
        ((const int32_t *)cast_result()->children[0]->buffers[1])[0], 1);
}
END_TEST

static void runs(const char *ends, const char *after, int64_t rows,
                 const void *at, int64_t count)
{
    struct ArrowSchema *s = cast_field(&cast_from, 0, "+r", "x", 2);
    struct ArrowArray *x = cast_array.array.children[0];

    plain_schema(s->children[0], ends, "run_ends", 0);
    cast_field(s, 1, "l", "values", 0);
    cast_field(&cast_to, 0, after, "x", 0);
    cast_array.array.length = rows;
    plain_array(x, rows, 0, 2);
    (void)cast_values(x, 0, count, NULL, at, NULL);
    (void)cast_values(x, 1, count, NULL, CAST_LARGE + 2, NULL);
}

static const char *const end_formats[] = {"s", "i", "l"};
static const void *const ends[] = {
    (const int16_t[]){2, 5}, (const int32_t[]){2, 5}, (const int64_t[]){2, 5}};

START_TEST(runs_give_their_values)
{
    const struct ArrowArray *x;

    runs(end_formats[_i], "i", 4, ends[_i], 2);
    cast_array.array.children[0]->offset = 1;
    x = cast_result();
    ck_assert_mem_eq(x->buffers[1], ((const int32_t[]){-2, 3, 3, 3}), 16);
}
END_TEST

START_TEST(runs_that_end_early_are_refused)
{
    runs("i", "i", 4, (const int32_t[]){2, 5}, 2);
    if (_i == 0)
        cast_array.array.children[0]->offset = 2;
    else
        cast_array.array.children[0]->children[1]->length = 1;
    cast_refuses(EINVAL, "column x: its runs are wrong");
}
END_TEST

/* Values that are refused as they are copied. */
START_TEST(values_that_are_wrong_are_refused)
{
    struct ArrowArray *d;

    dictionary("c", "u", "U");
    d = dictionary_array(1, NULL, (const int8_t[]){0});
    plain_array(d, 2, 3, 0);
    d->buffers[1] = (const int32_t[]){0, 5, 4};
    d->buffers[2] = "abcd";
    cast_refuses(EINVAL, "column x: the values cannot be copied: EINVAL");
}
END_TEST

/* ---- all ---------------------------------------------------------------- */

/* Children that were moved out of a result outlive it. */
START_TEST(a_column_outlives_its_batch)
{
    static const int32_t offsets[] = {0, 2, 4};
    struct ArrowArray item;

    list("+l", "+L");
    list_array(2, NULL, offsets, NULL, 4, (const int64_t[]){1, 2, 3, 4});
    (void)cast_result();
    item = *cast_out.array.children[0]->children[0];
    cast_out.array.children[0]->children[0]->release = NULL;
    uva_array_release(&cast_out);
    ck_assert_int_eq(((const int32_t *)item.buffers[1])[3], 4);
    item.release(&item);
}
END_TEST

/* Every kind in one batch. */
static void all_kinds(void)
{
    static const int32_t two[] = {0, 1, 2}, apart[] = {1, 0}, ones[] = {1, 1};
    static const int8_t low[] = {0, 0}, ids[] = {0, 0};
    static const uint8_t first[] = {0x01}; /* the row that is not null */
    struct ArrowArray *a, *root = &cast_array.array;
    struct ArrowSchema *f;

    cast_columns(11, 11, 1);
    root->offset = 1;
    cast_field(&cast_from, 0, "l", "number", 0);
    cast_field(&cast_to, 0, "i", "number", 0);
    (void)cast_values(root, 0, 2, NULL, CAST_LARGE + 2, NULL);
    cast_field(&cast_from, 1, "u", "text", 0);
    cast_field(&cast_to, 1, "vu", "text", 0);
    (void)cast_values(root, 1, 2, NULL, two, "ab");
    f = cast_field(&cast_from, 2, "c", "dictionary", 0);
    plain_schema(plain_schema_dictionary(f), "l", "", 0);
    cast_field(&cast_to, 2, "i", "dictionary", 0);
    a = cast_values(root, 2, 2, first, low, NULL);
    plain_array(plain_array_dictionary(a), 1, 2, 0);
    a->dictionary->buffers[1] = CAST_LARGE;
    cast_field(cast_field(&cast_from, 3, "+vl", "lists", 1), 0, "l", "item", 0);
    cast_field(cast_field(&cast_to, 3, "+l", "lists", 1), 0, "i", "item", 0);
    a = root->children[3];
    plain_array(a, 2, 3, 1);
    a->buffers[1] = apart;
    a->buffers[2] = ones;
    (void)cast_values(a, 0, 2, NULL, CAST_LARGE + 2, NULL);
    cast_field(&cast_from, 4, "n", "null", 0);
    cast_field(cast_field(&cast_to, 4, "+s", "null", 1), 0, "+l", "list", 1);
    cast_field(cast_to.children[4]->children[0], 0, "u", "item", 0);
    plain_array(root->children[4], 2, 0, 0);
    cast_field(cast_field(&cast_from, 5, "+ud:0", "union", 1), 0, "l", "n", 0);
    cast_field(cast_field(&cast_to, 5, "+ud:0", "union", 1), 0, "i", "n", 0);
    a = root->children[5];
    plain_array(a, 2, 2, 1);
    a->buffers[0] = ids;
    a->buffers[1] = apart;
    (void)cast_values(a, 0, 2, NULL, CAST_LARGE + 2, NULL);
    cast_field(&cast_from, 6, "l", "equal", 0);
    cast_field(&cast_to, 6, "l", "equal", 0);
    (void)cast_values(root, 6, 2, NULL, CAST_LARGE, NULL);
    cast_field(cast_field(&cast_from, 7, "+us:0", "sparse", 1), 0, "l", "n", 0);
    cast_field(cast_field(&cast_to, 7, "+us:0", "sparse", 1), 0, "i", "n", 0);
    a = root->children[7];
    plain_array(a, 2, 1, 1);
    a->buffers[0] = ids;
    (void)cast_values(a, 0, 2, NULL, CAST_LARGE + 2, NULL);
}

/* Bytes, also from views of short ones, which follow the others. */
static void all_bytes(void)
{
    static const int32_t two[] = {0, 1, 2};
    static const int32_t views[8] = {1, 'a', 0, 0, 1, 'b', 0, 0};
    struct ArrowArray *a = cast_array.array.children[8];

    cast_field(&cast_from, 8, "vu", "views", 0);
    cast_field(&cast_to, 8, "u", "views", 0);
    plain_array(a, 2, 3, 0);
    a->buffers[1] = views;
    cast_field(&cast_from, 9, "u", "offsets", 0);
    cast_field(&cast_to, 9, "U", "offsets", 0);
    (void)cast_values(&cast_array.array, 9, 2, NULL, two, "ab");
    cast_field(&cast_from, 10, "z", "fixed", 0);
    cast_field(&cast_to, 10, "w:1", "fixed", 0);
    (void)cast_values(&cast_array.array, 10, 2, NULL, two, "ab");
}

START_TEST(memory_that_runs_out_is_reported)
{
    bool failed = true;
    long k;

    for (k = 1; failed; k++) {
        int code;

        cast_again();
        all_kinds();
        all_bytes();
        faulty_allocator_init(&cast_memory, k);
        code = cast_run();
        failed = faulty_allocator_has_failed(&cast_memory);
        ck_assert_int_eq(code, failed ? ENOMEM : 0);
    }
    ck_assert_int_gt(k, 30);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cast_nested");
    TCase *all = suite_case(suite, "cast_nested", cast_set_up, cast_tear_down);

    suite_add_loops(all, 0, 8, a_dictionary_gives_its_values, NULL);
    suite_add_loops(all, 0, 8, wrong_lists_are_refused, NULL);
    suite_add_loops(all, 0, 5, dense_unions_are_cast, NULL);
    suite_add_loops(all, 0, 3, runs_give_their_values, NULL);
    suite_add_loops(all, 0, 2, a_row_is_found_through_its_list,
                    list_views_become_lists_in_order,
                    lists_of_one_size_are_cast, maps_are_cast_by_position,
                    structs_are_cast_by_name, sparse_unions_are_cast,
                    a_value_of_the_second_member_is_refused,
                    an_index_out_of_range_is_refused,
                    runs_that_end_early_are_refused, NULL);
    suite_add(all, a_null_list_hides_its_items, a_slice_has_its_items_alone,
              lists_of_too_many_items_are_refused,
              hidden_rows_of_a_dense_union_do_not_matter,
              a_value_that_no_row_has_may_be_anything, a_null_value_is_found,
              a_hidden_index_may_be_anything, values_that_are_wrong_are_refused,
              a_column_outlives_its_batch, memory_that_runs_out_is_reported,
              NULL);
    return suite_run(suite);
}
