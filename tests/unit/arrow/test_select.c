/* SPDX-License-Identifier: Apache-2.0 */
/* Selected rows of arrays of every type, by random masks: each row has the same
 * value as before. What the public function refuses is tested in
 * tests/integration/test_array_select.c. */
#include "arrow/select.h"

#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "arrow/layout.h"
#include "support/check_suite.h"
#include "support/every_type.h"
#include "support/faulty_allocator.h"
#include "support/plain_tree.h"
#include "support/row_text.h"
#include "uvarrow/arrow.h"

enum { ROWS = 12, TEXT_MAX = 2048 };

static struct faulty_allocator memory;
static struct uva_allocator allocator;

static void set_up(void)
{
    faulty_allocator_init(&memory, 0);
    allocator = faulty_allocator_table(&memory);
}

static void tear_down(void)
{
    every_type_forget();
    ck_assert_int_eq(faulty_allocator_live(&memory), 0);
    ck_assert_int_eq(plain_live(), 0);
}

/* An array of one type, and the texts of its rows. */
struct sample {
    struct ArrowSchema schema;
    struct ArrowDeviceArray array;
    char rows[ROWS][TEXT_MAX];
};

static void sample_make(struct sample *s, int type, int variant)
{
    const struct every_variant kind = {.length = ROWS - variant % 2,
                                       .offset = variant % 2,
                                       .nulls = variant / 2 == 1};

    every_type(type, &kind, &s->schema, &s->array);
    row_text_make_sound(&s->schema, &s->array.array);
    for (int64_t row = 0; row < kind.length; row++)
        row_text_write(&s->schema, &s->array.array, row, s->rows[row],
                       TEXT_MAX);
}

static int sample_select(struct sample *s, unsigned bits,
                         struct ArrowDeviceArray *out)
{
    const uint8_t bytes[] = {bits & 0xff, (uint8_t)(bits >> 8)};
    struct uva__mask mask;

    uva__mask_read(&mask, bytes, s->array.array.length);
    return uva__select_rows(&allocator, &s->schema, &s->array, &mask, out);
}

/* `out` has the rows of `bits`, fits the schema, and outlives the array. */
static void check_rows(const struct sample *s, unsigned bits, int64_t length,
                       const struct ArrowDeviceArray *out)
{
    char text[TEXT_MAX];
    int64_t bytes, done = 0;
    struct uva_error error;

    ck_assert_msg(uva__layout_measure(&s->schema, out, &bytes, &error) == 0,
                  "%s", error.message);
    for (int64_t row = 0; row < length; row++) {
        if ((bits >> row & 1) == 0)
            continue;
        ck_assert_int_lt(done, out->array.length);
        row_text_write(&s->schema, &out->array, done++, text, sizeof(text));
        ck_assert_msg(strcmp(text, s->rows[row]) == 0,
                      "%s by %x, row %d: %s, not %s", s->schema.format, bits,
                      (int)row, text, s->rows[row]);
    }
    ck_assert_int_eq(out->array.length, done);
}

static void check_select(int type, int variant, unsigned bits)
{
    static struct sample s;
    struct ArrowDeviceArray out;
    int64_t length;

    sample_make(&s, type, variant);
    length = s.array.array.length;
    ck_assert_int_eq(sample_select(&s, bits, &out), 0);
    ck_assert(!uva_array_is_live(&s.array));
    check_rows(&s, bits, length, &out);
    uva_array_release(&out);
    uva_schema_release(&s.schema);
    every_type_forget();
}

START_TEST(every_row_keeps_its_value)
{
    const int type = _i / 4;
    uint32_t bits = 7 + (uint32_t)_i;

    check_select(type, _i % 4, 0);
    check_select(type, _i % 4, 0xfff);
    check_select(type, _i % 4, 0x3c);
    check_select(type, _i % 4, 0x555);
    check_select(type, _i % 4, 0x801);
    for (int i = 0; i < 60; i++) {
        bits = bits * 1664525U + 1013904223U;
        check_select(type, _i % 4, bits >> 8 & 0xffff);
    }
}
END_TEST

START_TEST(memory_may_run_out)
{
    static const unsigned masks[] = {0, 0x3c, 0x555};
    static struct sample s;
    struct ArrowDeviceArray out;
    bool done = false;

    for (long k = 1; !done; k++) {
        int code;

        sample_make(&s, _i / 3, 3);
        faulty_allocator_init(&memory, k);
        code = sample_select(&s, masks[_i % 3], &out);
        done = !faulty_allocator_has_failed(&memory);
        ck_assert_int_eq(code, done ? 0 : ENOMEM);
        ck_assert(uva_array_is_live(&out) == done);
        ck_assert(uva_array_is_live(&s.array) == !done);
        if (!done) { /* all rows are still there */
            check_rows(&s, 0xfff, s.array.array.length, &s.array);
            uva_array_release(&s.array);
        }
        uva_array_release(&out);
        uva_schema_release(&s.schema);
        every_type_forget();
    }
}
END_TEST

START_TEST(children_outlive_the_other_rows)
{
    struct sample s;
    struct ArrowDeviceArray out;
    struct ArrowArray child;
    int type = -1;

    do { /* the first type with columns */
        if (type >= 0)
            uva_array_release(&s.array), uva_schema_release(&s.schema);
        sample_make(&s, ++type, 0);
    } while (strcmp(s.schema.format, "+s") != 0);
    ck_assert_int_eq(sample_select(&s, 0x555, &out), 0);
    child = *out.array.children[0];
    out.array.children[0]->release = NULL;
    uva_array_release(&out);
    ck_assert_int_eq(child.length, 6);
    child.release(&child);
    uva_schema_release(&s.schema);
}
END_TEST

/* Two rows of 2^31 - 2 items that do not exist: both do not fit. */
START_TEST(rows_that_share_items_may_be_too_many)
{
    static const int32_t offsets[] = {0, 0, 0};
    static const int32_t sizes[] = {INT32_MAX - 1, 0, INT32_MAX - 1};
    struct sample s = {
        .array = {.device_id = -1, .device_type = ARROW_DEVICE_CPU}};
    struct ArrowDeviceArray out;

    plain_schema(&s.schema, "+vl", "x", 1);
    plain_schema(s.schema.children[0], "n", "x", 0);
    plain_array(&s.array.array, 3, 3, 1);
    plain_array(s.array.array.children[0], INT32_MAX, 0, 0);
    s.array.array.buffers[1] = offsets;
    s.array.array.buffers[2] = sizes;
    ck_assert_int_eq(sample_select(&s, 5, &out), EOVERFLOW);
    ck_assert(uva_array_is_live(&s.array) && !uva_array_is_live(&out));
    uva_array_release(&s.array);
    uva_schema_release(&s.schema);
}
END_TEST

/* Of two rows with the same text of 2^31 - 1 bytes, which does not exist. */
START_TEST(texts_that_overlap_may_be_too_many)
{
    static const int32_t offsets[] = {0, INT32_MAX, 0, INT32_MAX};
    struct sample s = {
        .array = {.device_id = -1, .device_type = ARROW_DEVICE_CPU}};
    struct ArrowDeviceArray out;

    plain_schema(&s.schema, "u", "x", 0);
    plain_array(&s.array.array, 3, 3, 0);
    s.array.array.buffers[1] = offsets;
    s.array.array.buffers[2] = "data";
    ck_assert_int_eq(sample_select(&s, 5, &out), EOVERFLOW);
    ck_assert(uva_array_is_live(&s.array) && !uva_array_is_live(&out));
    uva_array_release(&s.array);
    uva_schema_release(&s.schema);
}
END_TEST

START_TEST(texts_without_data_are_an_error)
{
    static const int32_t offsets[] = {0, 1, 1, 2};
    struct sample s = {
        .array = {.device_id = -1, .device_type = ARROW_DEVICE_CPU}};
    struct ArrowDeviceArray out;

    plain_schema(&s.schema, "u", "x", 0);
    plain_array(&s.array.array, 3, 3, 0);
    s.array.array.buffers[1] = offsets;
    ck_assert_int_eq(sample_select(&s, 5, &out), EINVAL);
    uva_array_release(&s.array);
    uva_schema_release(&s.schema);
}
END_TEST

/* Arrays of texts of bytes that do not begin at 0; nulls are not counted. */
static int select_texts(const int32_t *offsets, const char *data, unsigned bits,
                        struct ArrowDeviceArray *out)
{
    struct sample s = {
        .array = {.device_id = -1, .device_type = ARROW_DEVICE_CPU}};
    int code;

    plain_schema(&s.schema, "u", "x", 0);
    plain_array(&s.array.array, 4, 3, 0);
    s.array.array.null_count = -1;
    s.array.array.buffers[1] = offsets;
    s.array.array.buffers[2] = data;
    code = sample_select(&s, bits, out);
    ck_assert(uva_array_is_live(&s.array) == (code != 0));
    uva_array_release(&s.array);
    uva_schema_release(&s.schema);
    return code;
}

START_TEST(texts_may_be_empty)
{
    static const int32_t offsets[] = {1, 2, 2, 3, 5}, none[5] = {0};
    struct ArrowDeviceArray out;
    const int32_t *got;

    ck_assert_int_eq(select_texts(offsets, "-abcd", 0xb, &out), 0);
    got = out.array.buffers[1];
    ck_assert_int_eq(out.array.length, 3);
    ck_assert_int_eq(got[2] - got[1], 0);
    ck_assert_mem_eq((const char *)out.array.buffers[2] + got[0], "acd", 3);
    uva_array_release(&out);
    ck_assert_int_eq(select_texts(none, NULL, 5, &out), 0);
    ck_assert_int_eq(out.array.length, 2);
    uva_array_release(&out);
}
END_TEST

START_TEST(texts_that_go_back_are_an_error)
{
    static const int32_t negative[] = {-1, 1, 2, 3, 4};
    static const int32_t back[] = {2, 1, 2, 3, 4};
    struct ArrowDeviceArray out;

    ck_assert_int_eq(select_texts(negative, "data", 5, &out), EINVAL);
    ck_assert_int_eq(select_texts(back, "data", 5, &out), EINVAL);
}
END_TEST

/* Lists of one item each. */
START_TEST(a_run_may_cross_words)
{
    enum { LISTS = 200 };
    static int32_t offsets[LISTS + 1];
    struct sample s = {
        .array = {.device_id = -1, .device_type = ARROW_DEVICE_CPU}};
    struct ArrowDeviceArray out;
    struct uva__mask mask;
    uint8_t bits[LISTS / 8];

    for (int i = 0; i <= LISTS; i++)
        offsets[i] = i;
    memset(bits, 0xff, sizeof(bits));
    bits[0] = 0xfe;
    bits[19] = 0xf7;
    plain_schema(&s.schema, "+l", "x", 1);
    plain_schema(s.schema.children[0], "n", "x", 0);
    plain_array(&s.array.array, LISTS, 2, 1);
    plain_array(s.array.array.children[0], LISTS, 0, 0);
    s.array.array.buffers[1] = offsets;
    uva__mask_read(&mask, bits, LISTS);
    ck_assert_int_eq(
        uva__select_rows(&allocator, &s.schema, &s.array, &mask, &out), 0);
    ck_assert_int_eq(out.array.length, LISTS - 2);
    ck_assert_int_eq(out.array.children[0]->length, LISTS - 2);
    uva_array_release(&out);
    uva_schema_release(&s.schema);
}
END_TEST

START_TEST(rows_out_of_range_are_an_error)
{
    static const int32_t offsets[] = {0, 9, 2, 4};
    struct sample s = {
        .array = {.device_id = -1, .device_type = ARROW_DEVICE_CPU}};
    struct ArrowDeviceArray out;

    plain_schema(&s.schema, "+s", "x", 2);
    plain_array(&s.array.array, 3, 1, 2);
    for (int i = 0; i < 2; i++) {
        plain_schema(s.schema.children[i], "u", "x", 0);
        plain_array(s.array.array.children[i], 3, 3, 0);
        s.array.array.children[i]->buffers[1] = offsets;
        s.array.array.children[i]->buffers[2] = "data";
    }
    ck_assert_int_eq(sample_select(&s, 5, &out), EINVAL);
    ck_assert(uva_array_is_live(&s.array) && !uva_array_is_live(&out));
    uva_array_release(&s.array);
    uva_schema_release(&s.schema);
}
END_TEST

int main(void)
{
    TCase *every = tcase_create("every type");

    suite_add_loops(every, 0, 4 * EVERY_TYPES, every_row_keeps_its_value, NULL);
    suite_add_loops(every, 0, 3 * EVERY_TYPES, memory_may_run_out, NULL);
    return suite_main(
        "select", set_up, tear_down, every,
        suite_tests("rows", children_outlive_the_other_rows,
                    rows_that_share_items_may_be_too_many,
                    texts_that_overlap_may_be_too_many,
                    texts_without_data_are_an_error, texts_may_be_empty,
                    texts_that_go_back_are_an_error, a_run_may_cross_words,
                    rows_out_of_range_are_an_error, NULL),
        NULL);
}
