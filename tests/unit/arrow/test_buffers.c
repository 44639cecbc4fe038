/* SPDX-License-Identifier: Apache-2.0 */
/* uva_array_buffers(): sizes that were computed by hand, for each kind of
 * layout, and sums for every type. */
#include <check.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "arrow/layout.h"
#include "support/check_suite.h"
#include "support/every_type.h"
#include "support/plain_tree.h"
#include "uvarrow/arrow.h"

enum { MOST = 64 };

static struct ArrowSchema schema;
static struct ArrowDeviceArray array;
static struct uva_buffer buffers[MOST];
static char text[512];

static void tear_down(void)
{
    uva_array_release(&array);
    uva_schema_release(&schema);
    every_type_forget();
    ck_assert_int_eq(plain_live(), 0);
}

/* Makes an array of the first type of such a format. */
static void make(const char *format, const struct every_variant *variant)
{
    for (int k = 0; k < EVERY_TYPES; k++) {
        every_type(k, variant, &schema, &array);
        if (strcmp(schema.format, format) == 0)
            return;
        uva_array_release(&array);
        uva_schema_release(&schema);
    }
    ck_abort_msg("no type %s", format);
}

/* The sizes as text; an absent buffer is '-'. */
static const char *sizes(void)
{
    size_t count = MOST, used = 0;

    memset(buffers, 0xff, sizeof(buffers));
    ck_assert_int_eq(uva_array_buffers(&schema, &array, buffers, &count), 0);
    ck_assert_uint_le(count, MOST);
    text[0] = '\0';
    for (size_t i = 0; i < count; i++) {
        const char *const space = i == 0 ? "" : " ";

        ck_assert(buffers[i].data != NULL || buffers[i].size_bytes == 0);
        used += (size_t)(buffers[i].data == NULL
                             ? snprintf(text + used, sizeof(text) - used, "%s-",
                                        space)
                             : snprintf(text + used, sizeof(text) - used,
                                        "%s%" PRId64, space,
                                        buffers[i].size_bytes));
    }
    return text;
}

/* Three rows after one that the offset skips; children have 40 after one. */
START_TEST(sizes_are_those_of_the_rows_and_those_before)
{
    static const struct {
        const char *format, *sizes;
    } cases[] = {
        {"n", ""},
        {"b", "1 1"},
        {"c", "1 4"},
        {"l", "1 32"},
        {"w:3", "1 12"},
        {"d:19,10", "1 64"},
        {"u", "1 20 12"},
        {"Z", "1 40 12"},
        {"vu", "1 64 33 - 5 24"},
        {"+l", "1 20 6 168 123"},
        {"+vL", "1 32 32 6 328"},
        {"+w:2", "1 6 82"},
        {"+s", "1 6 168 123 6 168 11 672 249"},
        {"+ud:0,1", "4 16 6 164 6 168 123"},
        {"+us:0,1", "4 6 328 6 656 33 - 5 24"},
        {"+r", "6 164 6 168 123"},
        {"S", "1 8 6 656 33 - 5 24"},
    };
    static const struct every_variant variant = {
        .length = 3, .offset = 1, .nulls = true};

    make(cases[_i].format, &variant);
    ck_assert_str_eq(sizes(), cases[_i].sizes);
}
END_TEST

START_TEST(absent_bitmaps_are_counted)
{
    static const struct every_variant variant = {.length = 3};

    make("+s", &variant);
    ck_assert_str_eq(sizes(), "- - 164 120 - 164 - 648 240");
}
END_TEST

START_TEST(without_rows_no_bytes_are_used)
{
    static const struct every_variant variant = {.length = 0, .nulls = true};

    make("u", &variant);
    array.array.buffers[1] = "";
    ck_assert_str_eq(sizes(), "- 0 -");
}
END_TEST

START_TEST(only_the_memory_of_a_device_has_the_size_of_texts)
{
    static const struct every_variant variant = {.length = 3};

    make("u", &variant);
    array.device_type = ARROW_DEVICE_CUDA;
    ck_assert_str_eq(sizes(), "- 16 -1");
    array.device_type = ARROW_DEVICE_CUDA_HOST;
    ck_assert_str_eq(sizes(), "- 16 9");
    array.sync_event = &schema; /* it may not be read yet */
    ck_assert_str_eq(sizes(), "- 16 -1");
    uva_array_release(&array);
    uva_schema_release(&schema);
    make("vz", &variant);
    array.device_type = ARROW_DEVICE_CUDA;
    ck_assert_str_eq(sizes(), "- 48 -1 - -1 24");
}
END_TEST

START_TEST(the_buffers_of_every_type_are_those_that_it_has)
{
    const struct every_variant variant = {
        .length = 4, .offset = _i % 2, .nulls = _i / EVERY_TYPES == 1};
    int64_t sum = 0, bytes;
    size_t count = MOST;
    int full = 0;

    every_type(_i % EVERY_TYPES, &variant, &schema, &array);
    ck_assert_int_eq(uva_array_buffers(&schema, &array, buffers, &count), 0);
    for (size_t i = 0; i < count; i++) {
        sum += buffers[i].size_bytes;
        full += buffers[i].size_bytes > 0;
    }
    ck_assert_int_eq(uva__layout_copied(&schema, &array, &bytes, NULL), 0);
    ck_assert_int_eq(sum, bytes);
    ck_assert_int_eq(full, every_type_buffers(&schema, &array.array));
    if (array.array.n_buffers > 0)
        ck_assert_ptr_eq(buffers[0].data, array.array.buffers[0]);
}
END_TEST

START_TEST(as_many_are_given_as_fit)
{
    static const struct every_variant variant = {.length = 3};

    make("+s", &variant);
    for (size_t room = 0; room <= 9; room++) {
        size_t count = room;

        memset(buffers, 0xff, sizeof(buffers));
        ck_assert_int_eq(uva_array_buffers(&schema, &array,
                                           room == 0 ? NULL : buffers, &count),
                         0);
        ck_assert_uint_eq(count, 9);
        ck_assert_int_eq(buffers[room].size_bytes, -1); /* untouched */
        ck_assert(room == 0 || buffers[room - 1].size_bytes >= 0);
    }
}
END_TEST

START_TEST(what_does_not_fit_the_schema_is_refused)
{
    static const struct every_variant variant = {.length = 3};
    size_t count = MOST;

    make("i", &variant);
    ck_assert_int_eq(uva_array_buffers(NULL, &array, buffers, &count), EINVAL);
    ck_assert_int_eq(uva_array_buffers(&schema, NULL, buffers, &count), EINVAL);
    ck_assert_int_eq(uva_array_buffers(&schema, &array, NULL, &count), EINVAL);
    ck_assert_int_eq(uva_array_buffers(&schema, &array, buffers, NULL), EINVAL);
    array.array.n_buffers = 1;
    ck_assert_int_eq(uva_array_buffers(&schema, &array, buffers, &count),
                     EINVAL);
    array.array.n_buffers = 2;
    uva_schema_release(&schema);
    plain_schema(&schema, "?", "x", 0);
    ck_assert_int_eq(uva_array_buffers(&schema, &array, buffers, &count),
                     ENOTSUP);
    ck_assert_uint_eq(count, MOST);
}
END_TEST

int main(void)
{
    TCase *layouts = tcase_create("layouts");

    suite_add_loops(layouts, 0, 17,
                    sizes_are_those_of_the_rows_and_those_before, NULL);
    suite_add_loops(layouts, 0, 2 * EVERY_TYPES,
                    the_buffers_of_every_type_are_those_that_it_has, NULL);
    return suite_main(
        "buffers", NULL, tear_down, layouts,
        suite_tests("one array", absent_bitmaps_are_counted,
                    without_rows_no_bytes_are_used,
                    only_the_memory_of_a_device_has_the_size_of_texts,
                    as_many_are_given_as_fit,
                    what_does_not_fit_the_schema_is_refused, NULL),
        NULL);
}
