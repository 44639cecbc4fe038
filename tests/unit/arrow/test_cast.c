/* SPDX-License-Identifier: Apache-2.0 */
/* Values that are cast, values that are refused, and those that are passed on;
 * nested ones are in test_cast_nested.c. All pairs of types, and random tables,
 * are compared with Arrow C++ in tests/interop. */
#include "arrow/cast.h"

#include <check.h>
#include <errno.h>
#include <float.h>
#include <math.h>
#include <string.h>
#include <sys/mman.h>

#include "support/cast_fixture.h"
#include "support/check_suite.h"
#include "support/every_type.h"
#include "support/plain_tree.h"
#include "uvarrow/arrow.h"

/* ---- numbers ------------------------------------------------------------ */

START_TEST(the_error_names_column_row_value_and_type)
{
    cast_fields("l", "i", 0);
    cast_from.children[0]->name = cast_to.children[0]->name = "n";
    (void)cast_column(1, NULL, CAST_LARGE + 1, NULL);
    cast_refuses(EOVERFLOW, "column n, row 0: 5000000000 is no int32");
}
END_TEST

START_TEST(a_null_hides_its_value)
{
    const struct ArrowArray *x;

    cast_fields("l", "i", 0);
    (void)cast_column(5, CAST_SECOND_IS_NULL, CAST_LARGE, NULL);
    x = cast_result();
    ck_assert_int_eq(x->null_count, 2);
    ck_assert_int_eq(((const uint8_t *)x->buffers[0])[0] & 0x1f, 0x0d);
    ck_assert_int_eq(((const int32_t *)x->buffers[1])[0], 1);
    ck_assert_int_eq(((const int32_t *)x->buffers[1])[2], -2);
    ck_assert_int_eq(((const int32_t *)x->buffers[1])[3], 3);
}
END_TEST

/* The offsets of batch and column add up; rows count from that of the batch. */
START_TEST(offsets_are_left_behind)
{
    cast_fields("l", "i", 0);
    (void)cast_column(4, NULL, CAST_LARGE, NULL);
    cast_array.array.children[0]->offset = 1;
    cast_array.array.offset = 1;
    cast_array.array.length = 2;
    if (_i == 0) {
        const struct ArrowArray *x = cast_result();

        ck_assert_int_eq(x->length, 2);
        ck_assert_int_eq(x->offset, 0);
        ck_assert_int_eq(((const int32_t *)x->buffers[1])[0], -2);
        ck_assert_int_eq(((const int32_t *)x->buffers[1])[1], 3);
        return;
    }
    cast_array.array.length = 3;
    cast_refuses(EOVERFLOW, "column x, row 2: 5000000000 is no int32");
}
END_TEST

START_TEST(nulls_need_not_be_counted)
{
    static const int64_t items[] = {1, 2, 3};
    const struct ArrowArray *x;

    cast_fields("l", "i", 0);
    cast_column(3, NULL, items, NULL)->null_count = -1;
    x = cast_result();
    ck_assert_int_eq(x->null_count, 0);
    ck_assert_int_eq(((const int32_t *)x->buffers[1])[2], 3);
}
END_TEST

START_TEST(an_empty_array_is_cast)
{
    cast_fields("l", "b", 0);
    (void)cast_column(0, NULL, NULL, NULL);
    ck_assert_int_eq(cast_result()->length, 0);
}
END_TEST

/* Several chunks, and bits that end within a byte. */
START_TEST(many_items_are_cast)
{
    static int32_t items[1000];
    const struct ArrowArray *x;
    const uint8_t *bits;

    for (int i = 0; i < 1000; i++)
        items[i] = i % 3 == 0;
    cast_fields("i", "b", 0);
    cast_column(997, NULL, items, NULL)->offset = 3;
    x = cast_result();
    bits = x->buffers[1];
    for (int i = 0; i < 997; i++)
        ck_assert_int_eq(bits[i / 8] >> i % 8 & 1, i % 3 == 0);
    cast_again();
    cast_fields("i", "b", 0);
    items[900] = 2;
    (void)cast_column(1000, NULL, items, NULL);
    cast_refuses(EOVERFLOW, "column x, row 900: 2 is no bool");
}
END_TEST

/* A number in each type that has it. */
static const void *const numbers[] = {
    &(const int8_t){42},   &(const int16_t){42},  &(const int32_t){42},
    &(const int64_t){42},  &(const uint8_t){42},  &(const uint16_t){42},
    &(const uint32_t){42}, &(const uint64_t){42}, &(const uint16_t){0x5140},
    &(const float){42},    &(const double){42},
};

START_TEST(each_type_reads_and_writes)
{
    static const char formats[] = "csilCSILefg";
    static const int widths[] = {1, 2, 4, 8, 1, 2, 4, 8, 2, 4, 8};

    for (int a = 0; a < 11; a++)
        for (int b = 0; b < 11; b++) {
            const char before[] = {formats[a], '\0'},
                       after[] = {formats[b], '\0'};
            cast_again();
            cast_fields(before, after, 0);
            (void)cast_column(1, NULL, numbers[a], NULL);
            ck_assert_int_eq(memcmp(cast_result()->buffers[1], numbers[b],
                                    (size_t)widths[b]),
                             0);
            uva_array_release(&cast_out);
        }
}
END_TEST

struct refused {
    const char *from, *to;
    const void *value;
    const char *text;
};

static const struct refused refused[] = {
    {"L", "l", &(const uint64_t){UINT64_MAX},
     "column x, row 0: 18446744073709551615 is no int64"},
    {"l", "L", &(const int64_t){-1}, "column x, row 0: -1 is no uint64"},
    {"L", "g", &(const uint64_t){UINT64_MAX},
     "column x, row 0: 18446744073709551615 is no float64"},
    {"l", "g", &(const int64_t){INT64_MAX},
     "column x, row 0: 9223372036854775807 is no float64"},
    {"l", "f", &(const int64_t){16777217},
     "column x, row 0: 16777217 is no float32"},
    {"g", "l", &(const double){0x1p63},
     "column x, row 0: 9.2233720368547758e+18 is no int64"},
    {"g", "L", &(const double){0x1p64},
     "column x, row 0: 1.8446744073709552e+19 is no uint64"},
    {"g", "L", &(const double){-1}, "column x, row 0: -1 is no uint64"},
    {"g", "i", &(const double){1.5}, "column x, row 0: 1.5 is no int32"},
    {"g", "i", &(const double){NAN}, "column x, row 0: nan is no int32"},
    {"g", "L", &(const double){INFINITY}, "column x, row 0: inf is no uint64"},
    {"g", "f", &(const double){1e300},
     "column x, row 0: 1.0000000000000001e+300 "
     "is no float32"},
    {"g", "e", &(const double){65520}, "column x, row 0: 65520 is no float16"},
    {"f", "e", &(const float){0x1p-25F},
     "column x, row 0: 2.9802322387695312e-08 is no float16"},
    {"e", "c", &(const uint16_t){0x7bff}, "column x, row 0: 65504 is no int8"},
    {"e", "b", &(const uint16_t){0x4000}, "column x, row 0: 2 is no bool"},
    {"ttm", "tts", &(const int32_t){1500},
     "column x, row 0: 1500 of time32[ms] is no time32[s]"},
    {"ttn", "tts", &(const int64_t){1},
     "column x, row 0: 1 of time64[ns] is no time32[s]"},
    {"ttu", "ttm", &(const int64_t){INT64_C(3000000000000)},
     "column x, row 0: 3000000000000 of time64[us] is no time32[ms]"},
    {"tsm:UTC", "tsn:UTC", &(const int64_t){INT64_MAX},
     "column x, row 0: 9223372036854775807 of timestamp[ms, UTC] is no "
     "timestamp[ns, UTC]"},
    {"tDu", "tDs", &(const int64_t){-1},
     "column x, row 0: -1 of duration[us] is no duration[s]"},
    {"tdm", "tdD", &(const int64_t){86400001},
     "column x, row 0: 86400001 of date64 is no date32"},
};

START_TEST(a_value_that_would_change_is_refused)
{
    const struct refused *r = &refused[_i];

    cast_fields(r->from, r->to, 0);
    (void)cast_column(1, NULL, r->value, NULL);
    cast_refuses(EOVERFLOW, r->text);
}
END_TEST

START_TEST(booleans_are_numbers)
{
    static const uint8_t bits[] = {0xb4};

    cast_fields("b", "s", 0);
    cast_column(4, NULL, bits, NULL)->offset = 2;
    ck_assert_mem_eq(cast_result()->buffers[1], ((const int16_t[]){1, 0, 1, 1}),
                     8);
}
END_TEST

/* The largest number stays finite, and infinity and NaN are kept. */
START_TEST(floats_become_narrower)
{
    static const double values[] = {FLT_MAX, -FLT_MAX, INFINITY, -INFINITY,
                                    NAN};
    static const double large[] = {1.5 * FLT_MAX, -1.5 * FLT_MAX};
    const float *narrow;

    cast_fields("g", "f", 0);
    if (_i > 0) {
        (void)cast_column(1, NULL, &large[_i - 1], NULL);
        ck_assert_int_eq(cast_run(), EOVERFLOW);
        return;
    }
    (void)cast_column(5, NULL, values, NULL);
    narrow = cast_result()->buffers[1];
    ck_assert(narrow[0] == FLT_MAX && narrow[1] == -FLT_MAX);
    ck_assert(isinf(narrow[2]) && narrow[3] < -FLT_MAX && isnan(narrow[4]));
}
END_TEST

/* The smallest, a subnormal, NaN, infinities, zeroes. */
START_TEST(half_precision_comes_back)
{
    static uint16_t halves[0x10000];
    static double wide[0x10000];
    const uint16_t *back;

    for (int i = 0; i < 0x10000; i++)
        halves[i] = (uint16_t)i;
    cast_fields("e", "g", 0);
    (void)cast_column(0x10000, NULL, halves, NULL);
    memcpy(wide, cast_result()->buffers[1], sizeof(wide));
    ck_assert(wide[1] == 0x1p-24 && wide[0x3ff] == 1023 * 0x1p-24);
    ck_assert(wide[0x3c00] == 1 && wide[0xc000] == -2);
    ck_assert(isinf(wide[0x7c00]) && isnan(wide[0x7c01]));
    ck_assert(signbit(wide[0x8000]));
    cast_again();
    cast_fields("g", "e", 0);
    (void)cast_column(0x10000, NULL, wide, NULL);
    back = cast_result()->buffers[1];
    for (int i = 0; i < 0x10000; i++)
        ck_assert_int_eq(back[i],
                         isnan(wide[i]) ? i | 0x200 : i); /* is quiet */
}
END_TEST

/* ---- equal columns ------------------------------------------------------ */

START_TEST(an_equal_schema_is_passed_on_as_a_whole)
{
    const void *given = cast_array.array.private_data;

    cast_fields("l", "l", 0);
    (void)cast_column(1, NULL, CAST_LARGE, NULL);
    cast_array.device_type = ARROW_DEVICE_CUDA;
    ck_assert_int_eq(cast_run(), 0);
    ck_assert_int_eq(cast_out.device_type, ARROW_DEVICE_CUDA);
    ck_assert_ptr_eq(cast_out.array.private_data, given);
}
END_TEST

/* Beside another one, whose order is another. */
START_TEST(an_equal_column_is_moved)
{
    const struct ArrowArray *x;
    const void *given;

    cast_columns(3, 2, 2);
    cast_field(&cast_from, 0, "l", "a", 0);
    cast_field(&cast_from, 1, "u", "dropped", 0);
    cast_field(&cast_from, 2, "l", "b", 0);
    cast_field(&cast_to, 0, "l", "b", 0);
    cast_field(&cast_to, 1, "i", "a", 0);
    (void)cast_values(&cast_array.array, 0, 4, NULL, CAST_LARGE + 2, NULL);
    (void)cast_values(&cast_array.array, 1, 4, NULL, (const int32_t[5]){0}, "");
    (void)cast_values(&cast_array.array, 2, 4, NULL, CAST_LARGE, NULL);
    cast_array.array.offset = _i;
    cast_array.array.length = _i == 0 ? 4 : 1;
    given = cast_array.array.children[2]->private_data;
    if (_i == 0)
        cast_array.array.length = 2;
    cast_array.array.children[2]->length = _i == 0 ? 2 : 4;
    ck_assert_int_eq(cast_run(), 0);
    uva_array_release(&cast_array);
    x = cast_out.array.children[0];
    ck_assert_ptr_eq(x->buffers[1], CAST_LARGE);
    ck_assert_int_eq(x->offset, _i);
    ck_assert_int_eq(x->length, cast_out.array.length);
    ck_assert_int_eq(x->private_data == given, _i == 0);
    ck_assert_int_eq(
        ((const int32_t *)cast_out.array.children[1]->buffers[1])[0],
        _i == 0 ? -2 : 3);
}
END_TEST

START_TEST(a_part_has_the_nulls_of_its_rows)
{
    static const int64_t counts[] = {0, 5, 3};

    cast_columns(2, 1, 5);
    cast_field(&cast_from, 0, "l", "x", 0);
    cast_field(&cast_from, 1, "l", "other", 0);
    cast_field(&cast_to, 0, "l", "x", 0);
    (void)cast_values(&cast_array.array, 0, 5, CAST_SECOND_IS_NULL, CAST_LARGE,
                      NULL);
    (void)cast_values(&cast_array.array, 1, 5, NULL, CAST_LARGE, NULL);
    cast_array.array.children[0]->null_count = counts[_i];
    cast_array.array.offset = 1;
    cast_array.array.length = 3;
    ck_assert_int_eq(cast_result()->null_count, _i == 0 ? 0 : _i == 1 ? 3 : -1);
    ck_assert_int_eq(cast_out.array.children[0]->offset, 1);
}
END_TEST

/* ---- nulls -------------------------------------------------------------- */

START_TEST(there_are_nulls_of_every_type)
{
    struct ArrowSchema target;
    struct ArrowDeviceArray example;
    int64_t size;

    for (int64_t rows = 0; rows < 3; rows++)
        for (int k = 0; k < EVERY_TYPES; k++) {
            cast_again();
            every_type(k, &(struct every_variant){1, 0, true}, &target,
                       &example);
            uva_array_release(&example);
            cast_field(&cast_from, 0, "n", "x", 0);
            target.name = "x";
            uva_schema_move(&target, cast_to.children[0]);
            plain_array(cast_array.array.children[0], rows, 0, 0);
            cast_array.array.children[0]->null_count = rows;
            cast_array.array.length = rows;
            cast_to.children[0]->flags = ARROW_FLAG_NULLABLE;
            ck_assert_int_eq(cast_result()->length, rows);
            ck_assert_int_eq(uva_array_size(&cast_to, &cast_out, &size), 0);
            uva_array_release(&cast_out);
            every_type_forget();
        }
}
END_TEST

START_TEST(too_many_nulls_are_refused)
{
    static const char *const formats[] = {"w:2147483647", "+w:2147483647", "i"};
    static const char *const texts[] = {
        "column x: 18014398509481984 nulls: ENOMEM",
        "column x: 134217728 nulls: EOVERFLOW", "too many items"};
    const int64_t rows = INT64_C(1) << (_i == 0 ? 54 : _i == 1 ? 27 : 62);

    cast_field(&cast_from, 0, "n", "x", 0);
    cast_field(&cast_to, 0, formats[_i], "x", _i == 1);
    if (_i == 1)
        cast_field(cast_to.children[0], 0, "c", "item", 0);
    plain_array(cast_array.array.children[0], rows, 0, 0);
    cast_array.array.length = rows;
    cast_refuses(_i == 0 ? ENOMEM : EOVERFLOW, texts[_i]);
}
END_TEST

/* In the first of two fields. */
START_TEST(too_many_nulls_in_a_field_are_refused)
{
    struct ArrowSchema *x;

    cast_field(&cast_from, 0, "n", "x", 0);
    x = cast_field(&cast_to, 0, "+s", "x", 2);
    cast_field(cast_field(x, 0, "+w:2147483647", "a", 1), 0, "c", "item", 0);
    cast_field(x, 1, "i", "b", 0);
    plain_array(cast_array.array.children[0], 1 << 27, 0, 0);
    cast_array.array.length = 1 << 27;
    cast_refuses(EOVERFLOW, "column x: 134217728 nulls: EOVERFLOW");
}
END_TEST

START_TEST(nulls_may_have_no_size)
{
    cast_field(&cast_from, 0, "n", "x", 0);
    cast_field(&cast_to, 0, _i == 0 ? "w:0" : "+w:0", "x", _i);
    if (_i == 1)
        cast_field(cast_to.children[0], 0, "c", "item", 0);
    plain_array(cast_array.array.children[0], 3, 0, 0);
    cast_array.array.length = 3;
    ck_assert_int_eq(cast_result()->null_count, 3);
}
END_TEST

START_TEST(a_dictionary_of_nulls_outlives_its_indices)
{
    struct ArrowArray values, *x;

    cast_field(&cast_from, 0, "n", "x", 0);
    plain_schema(plain_schema_dictionary(cast_field(&cast_to, 0, "c", "x", 0)),
                 "u", "", 0);
    plain_array(cast_array.array.children[0], 3, 0, 0);
    cast_array.array.length = 3;
    (void)cast_result();
    x = cast_out.array.children[0];
    values = *x->dictionary;
    x->dictionary->release = NULL;
    uva_array_release(&cast_out);
    ck_assert_int_eq(values.length, 0);
    values.release(&values);
}
END_TEST

START_TEST(a_column_without_nulls_may_forbid_them)
{
    cast_fields("l", "i", 0);
    cast_to.children[0]->flags = 0;
    (void)cast_column(1, NULL, CAST_LARGE, NULL);
    ck_assert_int_eq(cast_result()->null_count, 0);
}
END_TEST

/* An array that is no struct: there is no column to name. */
START_TEST(a_single_array_is_cast)
{
    uva_schema_release(&cast_from);
    uva_schema_release(&cast_to);
    uva_array_release(&cast_array);
    plain_schema(&cast_from, "l", "", 0);
    plain_schema(&cast_to, "i", "", 0);
    plain_array(&cast_array.array, 2, 2, 0);
    cast_array.array.buffers[1] = CAST_LARGE + _i;
    cast_array.array.length = 1 + _i;
    if (_i == 0)
        ck_assert_int_eq(cast_run(), 0);
    else
        cast_refuses(EOVERFLOW, "row 0: 5000000000 is no int32");
}
END_TEST

START_TEST(a_run_of_nulls_has_an_end)
{
    static const char *const ends[] = {"s", "s", "i", "l"};
    const int64_t rows = _i == 0 ? 40000 : 30000;
    struct ArrowSchema *x;

    cast_field(&cast_from, 0, "n", "x", 0);
    x = cast_field(&cast_to, 0, "+r", "x", 2);
    cast_field(x, 0, ends[_i], "run_ends", 0);
    cast_field(x, 1, "i", "values", 0);
    plain_array(cast_array.array.children[0], rows, 0, 0);
    cast_array.array.length = rows;
    if (_i == 0)
        cast_refuses(EOVERFLOW, "column x: 40000 nulls: EOVERFLOW");
    else /* in its low bytes */
        ck_assert_int_eq(
            ((const int16_t *)cast_result()->children[0]->buffers[1])[0],
            30000);
}
END_TEST

START_TEST(a_null_that_the_target_lacks_is_refused)
{
    cast_fields(_i == 2 ? "n" : "l", _i == 1 ? "i" : "l", 0);
    cast_to.children[0]->flags = 0;
    if (_i == 2) {
        plain_array(cast_array.array.children[0], 1, 0, 0);
        cast_array.array.length = 1;
    } else {
        (void)cast_column(4, CAST_SECOND_IS_NULL, CAST_LARGE, NULL);
    }
    cast_refuses(EINVAL, _i == 2 ? CAST_NULL_AT_0 : CAST_NULL_AT_1);
    cast_again();
    cast_fields("l", "l", 0);
    cast_to.children[0]->flags = 0;
    (void)cast_column(1, CAST_SECOND_IS_NULL, CAST_LARGE, NULL);
    ck_assert_int_eq(cast_result()->length, 1);
}
END_TEST

/* ---- bytes -------------------------------------------------------------- */

START_TEST(a_text_stays_where_it_is)
{
    static const int32_t offsets[] = {0, 2, 2, 5};
    const struct ArrowArray *x;
    const char *data = "abcde";

    cast_fields("u", "U", 0);
    (void)cast_column(3, NULL, offsets, data);
    cast_array.array.children[0]->offset = 1;
    cast_array.array.children[0]->length = 2;
    cast_array.array.length = 2;
    ck_assert_int_eq(cast_run(), 0);
    uva_array_release(&cast_array);
    x = cast_out.array.children[0];
    ck_assert_ptr_eq(x->buffers[2], data);
    ck_assert_int_eq(((const int64_t *)x->buffers[1])[0], 2);
    ck_assert_int_eq(((const int64_t *)x->buffers[1])[2], 5);
}
END_TEST

/* Where a slice lies far behind, its offsets begin at 0. */
START_TEST(large_offsets_become_small_ones)
{
    static const int64_t far = INT64_C(3) << 30;
    const int64_t offsets[] = {far, far + 2, far + (_i == 1 ? far : 4)};
    const struct ArrowArray *x;

    cast_fields("Z", "z", 0);
    (void)cast_column(2, NULL, offsets, (const void *)(uintptr_t)64);
    if (_i == 1) {
        cast_refuses(EOVERFLOW,
                     "column x, row 1: the values are too long for binary");
        return;
    }
    x = cast_result();
    ck_assert_int_eq((int64_t)(uintptr_t)x->buffers[2], far + 64);
    ck_assert_int_eq(((const int32_t *)x->buffers[1])[0], 0);
    ck_assert_int_eq(((const int32_t *)x->buffers[1])[2], 4);
}
END_TEST

/* Data buffers of views are counted by 32 bits. The texts are not short, and
 * the first bytes of them are read, so they have to be there. */
START_TEST(views_of_much_text_have_several_buffers)
{
    static char text[64];
    int64_t offsets[] = {0, 20, 40, 60};
    const struct ArrowArray *x;
    const int32_t *views;

    cast_fields("U", "vu", 0);
    (void)cast_column(3, NULL, offsets, text);
    x = cast_result();
    ck_assert_int_eq(x->n_buffers, 4);
    ck_assert_ptr_eq(x->buffers[2], text);
    views = x->buffers[1];
    ck_assert_int_eq(views[0], 20);
    ck_assert_int_eq(views[11], 40);
    ck_assert_int_eq(((const int64_t *)x->buffers[3])[0], 60);
    cast_again();
    cast_fields("U", "vu", 0);
    offsets[3] = 40 + (INT64_C(1) << 31);
    (void)cast_column(3, NULL, offsets, text);
    cast_refuses(EOVERFLOW,
                 "column x, row 2: the values are too long for utf8_view");
}
END_TEST

START_TEST(wrong_offsets_and_views_are_refused)
{
    static const int32_t back[] = {0, 3, 1, 4}, past[] = {0, 9, 4, 4};
    static const int32_t lies[] = {-1, 0, 0, 0}, none[] = {13, 0, 0, 0};
    struct ArrowArray *x;

    cast_fields(_i < 2 ? "u" : "vu", "U", 0);
    x = cast_column(_i < 2 ? 3 : 1, NULL,
                    _i == 0   ? back
                    : _i == 1 ? past
                    : _i == 2 ? lies
                              : none,
                    "abcd");
    if (_i >= 2)
        x->buffers[2] = NULL;
    cast_refuses(EINVAL, "column x: its offsets or views are wrong");
}
END_TEST

/* Views of an array with two data buffers: short ones, long ones, a null. */
struct view {
    int32_t size;
    char prefix[4];
    int32_t buffer, offset;
};

static const struct view views[] = {
    {2, "ab", 0, 0}, {13, "long", 1, 1}, {-7, "", 9, 9}, {14, "anot", 0, 0}};
static const uint8_t third_is_null[] = {0x0b};

static void views_column(const struct view *given, int64_t count,
                         const void *validity, const int64_t *lengths)
{
    struct ArrowArray *x = cast_array.array.children[0];

    cast_array.array.length = count;
    plain_array(x, count, 5, 0);
    x->buffers[0] = validity;
    x->null_count = validity != NULL ? 1 : 0;
    x->buffers[1] = given;
    x->buffers[2] = "another value.";
    x->buffers[3] = "?long and long";
    x->buffers[4] = lengths;
}

START_TEST(views_are_copied)
{
    static const int64_t lengths[] = {14, 14};
    static const int32_t ends[] = {0, 2, 15, 15, 29};
    const struct ArrowArray *x;

    cast_fields("vz", _i == 0 ? "z" : "w:13", 0);
    if (_i == 1) { /* of which none is copied but the right one */
        views_column(views + 1, 1, NULL, lengths);
        ck_assert_mem_eq(cast_result()->buffers[1], "long and long", 13);
        return;
    }
    views_column(views, 4, third_is_null, lengths);
    x = cast_result();
    ck_assert_mem_eq(x->buffers[1], ends, sizeof(ends));
    ck_assert_mem_eq(x->buffers[2], "ablong and longanother value.", 29);
    ck_assert_int_eq(x->null_count, 1);
}
END_TEST

START_TEST(views_that_point_elsewhere_are_refused)
{
    static const int64_t lengths[] = {14, 14};
    static const struct view wrong[] = {{13, "", -1, 0}, {13, "", 2, 0},
                                        {13, "", 0, -1}, {13, "", 0, 2},
                                        {-1, "", 0, 0},  {13, "", 0, 0}};

    cast_fields("vu", "u", 0);
    views_column(&wrong[_i], 1, NULL, lengths);
    if (_i == 5)
        cast_array.array.children[0]->buffers[2] = NULL;
    cast_refuses(EINVAL, _i == 5 ? "children[0] (name 'x', format 'vu'): "
                                   "buffers[2] is NULL"
                                 : "column x: its offsets or views are wrong");
}
END_TEST

/* More text than 32 bits count, as the same values again and again. */
START_TEST(too_many_views_are_refused)
{
    enum { VIEWS = 3, SIZE = 1 << 30 };
    static const struct view large[VIEWS] = {
        {SIZE, "", 0, 0}, {SIZE, "", 0, 0}, {SIZE, "", 0, 0}};
    static const int64_t lengths[] = {SIZE, 0};

    cast_fields("vu", "u", 0);
    views_column(large, VIEWS, NULL, lengths);
    cast_refuses(EOVERFLOW,
                 "column x, row 1: the values are too long for utf8");
}
END_TEST

/* Two data buffers, as the last value is far from the first; its first bytes
 * are read, and so are those of the others. */
START_TEST(a_buffer_of_views_begins_at_its_first_value)
{
    const int64_t far = INT64_C(5) << 29;
    char *data = mmap(NULL, (size_t)far + 40, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    const int64_t offsets[] = {0, 20, 20, far, far + 40};
    static const uint8_t validity[] = {0x09};
    const struct ArrowArray *x;
    const struct view *made;

    ck_assert(data != MAP_FAILED);
    cast_fields("U", "vu", 0);
    (void)cast_column(4, validity, offsets, data);
    x = cast_result();
    made = x->buffers[1];
    ck_assert_int_eq(x->n_buffers, 5);
    ck_assert_ptr_eq(x->buffers[2], data);
    ck_assert_ptr_eq(x->buffers[3], data + far);
    ck_assert_int_eq(made[0].buffer, 0);
    ck_assert_int_eq(made[3].buffer, 1);
    ck_assert_int_eq(made[3].offset, 0);
    ck_assert_int_eq(((const int64_t *)x->buffers[4])[1], 40);
    (void)munmap(data, (size_t)far + 40);
}
END_TEST

/* Each value would need a data buffer of its own. */
START_TEST(too_far_apart_for_views)
{
    enum { VALUES = 514 };
    static int64_t offsets[VALUES + 1];
    static uint8_t odd_are_null[VALUES / 8 + 1];

    for (int i = 0; i <= VALUES; i++)
        offsets[i] = i / 2 * (INT64_C(3) << 30) + i % 2 * 13;
    memset(odd_are_null, 0x55, sizeof(odd_are_null));
    cast_fields("U", "vu", 0);
    (void)cast_column(VALUES, odd_are_null, offsets, (const void *)"x");
    cast_refuses(EOVERFLOW,
                 "column x, row 512: the values are too long for utf8_view");
}
END_TEST

START_TEST(empty_bytes_are_cast)
{
    static const char *const formats[] = {"z", "Z", "vz", "w:4"};

    cast_fields(formats[_i % 4], formats[(_i + 1 + _i / 4) % 4], 0);
    plain_array(cast_array.array.children[0], 0, _i % 4 == 3 ? 2 : 3, 0);
    ck_assert_int_eq(cast_result()->length, 0);
}
END_TEST

START_TEST(bytes_of_another_size_are_refused)
{
    static const int32_t offsets[] = {0, 2, 5, 7};
    const struct ArrowArray *x;

    cast_fields("z", "w:2", 0);
    (void)cast_column(3, _i == 0 ? NULL : CAST_SECOND_IS_NULL, offsets,
                      "abcdefg");
    if (_i == 0) {
        cast_refuses(EOVERFLOW, "column x, row 1: a value of 3 bytes is no "
                                "fixed_size_binary[2]");
        return;
    }
    x = cast_result();
    ck_assert_mem_eq(x->buffers[1], "ab\0\0fg", 6);
    cast_again();
    cast_fields("z", "w:0", 0);
    (void)cast_column(2, NULL, (const int32_t[]){0, 0, 0}, "");
    ck_assert_int_eq(cast_result()->length, 2);
}
END_TEST

START_TEST(bytes_of_one_size_become_others)
{
    const char *data = "a much longer valueanother long value";
    const struct ArrowArray *x;

    cast_fields("w:18", _i == 0 ? "z" : "vz", 0);
    (void)cast_column(2, NULL, data, NULL);
    ck_assert_int_eq(cast_run(), 0);
    x = cast_out.array.children[0];
    ck_assert_ptr_eq(x->buffers[2], data);
    if (_i == 0)
        ck_assert_int_eq(((const int32_t *)x->buffers[1])[2], 36);
    else
        ck_assert_int_eq(((const int32_t *)x->buffers[1])[7], 18);
}
END_TEST

/* ---- all ---------------------------------------------------------------- */

START_TEST(data_elsewhere_is_refused)
{
    cast_fields("l", "i", 0);
    (void)cast_column(1, NULL, CAST_LARGE, NULL);
    if (_i == 0)
        cast_array.device_type = ARROW_DEVICE_CUDA;
    else if (_i == 1)
        cast_array.sync_event = &cast_memory;
    else
        cast_array.array.children[0]->n_buffers = 1;
    if (_i == 2)
        ck_assert_int_eq(cast_run(), EINVAL);
    else
        cast_refuses(ENOTSUP, "only data of the CPU can be cast");
    ck_assert(uva_array_is_live(&cast_array));
    cast_array.array.children[0]->n_buffers = 2;
}
END_TEST

/* A format that the library does not know is passed on beside others. */
START_TEST(an_unknown_format_is_passed_on)
{
    uva_schema_release(&cast_from);
    uva_schema_release(&cast_to);
    uva_array_release(&cast_array);
    plain_schema(&cast_from, "+s", "", 2);
    plain_schema(&cast_to, "+s", "", 2);
    cast_field(&cast_from, 0, "l", "n", 0);
    cast_field(&cast_from, 1, "?", "q", 0);
    cast_field(&cast_to, 0, "i", "n", 0);
    cast_field(&cast_to, 1, "?", "q", 0);
    plain_array(&cast_array.array, 1, 1, 2);
    (void)cast_values(&cast_array.array, 0, 1, NULL, CAST_LARGE, NULL);
    (void)cast_values(&cast_array.array, 1, 1, NULL, CAST_LARGE, NULL);
    ck_assert_int_eq(cast_run(), 0);
    ck_assert_ptr_eq(cast_out.array.children[1]->buffers[1], CAST_LARGE);
}
END_TEST

int main(void)
{
    const int count = sizeof(refused) / sizeof(refused[0]);
    Suite *suite = suite_create("cast");
    TCase *all = suite_case(suite, "cast", cast_set_up, cast_tear_down);

    suite_add_loops(all, 0, count, a_value_that_would_change_is_refused, NULL);
    suite_add_loops(all, 0, 4, a_run_of_nulls_has_an_end, NULL);
    suite_add(all, too_many_nulls_in_a_field_are_refused,
              a_dictionary_of_nulls_outlives_its_indices,
              a_column_without_nulls_may_forbid_them, too_far_apart_for_views,
              NULL);
    suite_add_loops(all, 0, 12, empty_bytes_are_cast, NULL);
    suite_add_loops(all, 0, 6, views_that_point_elsewhere_are_refused, NULL);
    suite_add_loops(all, 0, 3, floats_become_narrower, NULL);
    suite_add_loops(all, 0, 2, views_are_copied, NULL);
    suite_add(all, booleans_are_numbers, too_many_views_are_refused,
              a_buffer_of_views_begins_at_its_first_value, NULL);
    suite_add_loops(all, 0, 4, wrong_offsets_and_views_are_refused, NULL);
    suite_add_loops(all, 0, 3, a_part_has_the_nulls_of_its_rows,
                    too_many_nulls_are_refused,
                    a_null_that_the_target_lacks_is_refused,
                    data_elsewhere_is_refused, NULL);
    suite_add_loops(all, 0, 2, offsets_are_left_behind,
                    an_equal_column_is_moved, nulls_may_have_no_size,
                    a_single_array_is_cast, large_offsets_become_small_ones,
                    bytes_of_another_size_are_refused,
                    bytes_of_one_size_become_others, NULL);
    suite_add(
        all, the_error_names_column_row_value_and_type, a_null_hides_its_value,
        nulls_need_not_be_counted, an_empty_array_is_cast, many_items_are_cast,
        each_type_reads_and_writes, half_precision_comes_back,
        an_equal_schema_is_passed_on_as_a_whole, there_are_nulls_of_every_type,
        a_text_stays_where_it_is, views_of_much_text_have_several_buffers,
        an_unknown_format_is_passed_on, NULL);
    return suite_run(suite);
}
