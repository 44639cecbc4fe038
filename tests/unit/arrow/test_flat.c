/* SPDX-License-Identifier: Apache-2.0 */
/* Arrays without offsets: the nodes that are copied, and the others. The values
 * of every type are compared with Arrow C++ in tests/interop. */
#include "arrow/flat.h"

#include <check.h>
#include <errno.h>
#include <string.h>

#include "support/check_suite.h"
#include "support/faulty_allocator.h"
#include "support/plain_tree.h"
#include "uvarrow/arrow.h"

static const int32_t numbers[] = {10, 11, 12, 13, 14};
static const int8_t low[] = {0, 1, 0, 1, 1};

static struct faulty_allocator memory;
static struct uva_allocator allocator;
static struct ArrowSchema schema;
static struct ArrowDeviceArray array, flat;
static struct uva_error error;

/* Three rows of numbers, indices of numbers, and a group of numbers. */
static void set_up(void)
{
    struct ArrowArray *values, *group;

    faulty_allocator_init(&memory, 0);
    allocator = faulty_allocator_table(&memory);
    memset(&error, 0, sizeof(error));
    memset(&array, 0, sizeof(array));
    plain_schema(&schema, "+s", "", 3);
    plain_schema(schema.children[0], "i", "numbers", 0);
    plain_schema(schema.children[1], "c", "indices", 0);
    plain_schema(plain_schema_dictionary(schema.children[1]), "i", "", 0);
    plain_schema(schema.children[2], "+s", "group", 1);
    plain_schema(schema.children[2]->children[0], "i", "inner", 0);
    array.device_type = ARROW_DEVICE_CPU;
    array.device_id = -1;
    plain_array(&array.array, 3, 1, 3);
    plain_array(array.array.children[0], 3, 2, 0);
    array.array.children[0]->buffers[1] = numbers;
    plain_array(array.array.children[1], 3, 2, 0);
    array.array.children[1]->buffers[1] = low;
    values = plain_array_dictionary(array.array.children[1]);
    plain_array(values, 2, 2, 0);
    values->buffers[1] = numbers;
    group = array.array.children[2];
    plain_array(group, 3, 1, 1);
    plain_array(group->children[0], 3, 2, 0);
    group->children[0]->buffers[1] = numbers;
}

static void tear_down(void)
{
    if (uva_array_is_live(&array))
        uva_array_release(&array);
    if (uva_array_is_live(&flat))
        uva_array_release(&flat);
    uva_schema_release(&schema);
    ck_assert_int_eq(plain_live(), 0);
    ck_assert_int_eq(faulty_allocator_live(&memory), 0);
}

static int flatten(void)
{
    return uva__flat_array(&allocator, &schema, &array, &flat, &error);
}

/* Whether a column has these numbers, in its own buffer or not. */
static void has(const struct ArrowArray *column, int32_t first, bool copied)
{
    const int32_t *values = column->buffers[1];

    ck_assert_int_eq(column->offset, 0);
    ck_assert_int_eq(column->length, 3);
    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(values[i], first + i);
    ck_assert_int_eq(values < numbers || values >= numbers + 5, copied);
}

START_TEST(without_an_offset_all_stays_where_it_is)
{
    const void *given = array.array.private_data;

    ck_assert_int_eq(flatten(), 0);
    ck_assert(!uva_array_is_live(&array));
    ck_assert_ptr_eq(flat.array.private_data, given);
    ck_assert_int_eq(faulty_allocator_asked(&memory), 0);
}
END_TEST

START_TEST(an_unknown_format_is_only_passed_on)
{
    schema.children[2]->children[0]->format = "?";
    array.array.children[0]->offset = _i;
    if (_i == 0) {
        ck_assert_int_eq(flatten(), 0);
        return;
    }
    ck_assert_int_eq(flatten(), ENOTSUP);
    ck_assert_ptr_nonnull(strstr(error.message, "unknown format"));
    ck_assert(uva_array_is_live(&array));
}
END_TEST

START_TEST(only_what_has_an_offset_is_copied)
{
    struct ArrowArray *const *columns = array.array.children;

    columns[_i == 0 ? 0 : 2]->offset = 2;
    if (_i == 1) { /* with its children */
        columns[2]->length = 3;
        columns[2]->children[0]->length = 5;
    } else if (_i == 2) {
        columns[2]->offset = 0;
        columns[2]->children[0]->offset = 2;
    }
    ck_assert_int_eq(flatten(), 0);
    has(flat.array.children[0], _i == 0 ? 12 : 10, _i == 0);
    ck_assert_int_eq(flat.array.children[2]->offset, 0);
    has(flat.array.children[2]->children[0], _i == 0 ? 10 : 12, _i != 0);
    ck_assert_ptr_eq(flat.array.children[1]->buffers[1], low);
    uva_array_release(&array);
    has(flat.array.children[0], _i == 0 ? 12 : 10, _i == 0);
}
END_TEST

/* It may be larger than all else. */
START_TEST(a_dictionary_is_not_copied_with_its_indices)
{
    struct ArrowArray *indices = array.array.children[1], dictionary;

    indices->offset = 1;
    ck_assert_int_eq(flatten(), 0);
    uva_array_release(&array);
    indices = flat.array.children[1];
    ck_assert_int_eq(indices->offset, 0);
    ck_assert_int_eq(memcmp(indices->buffers[1], low + 1, 3), 0);
    ck_assert_ptr_ne(indices->buffers[1], low + 1);
    ck_assert_ptr_eq(indices->dictionary->buffers[1], numbers);
    dictionary = *indices->dictionary;
    if (_i == 0)
        return;
    indices->dictionary->release = NULL; /* moved out */
    uva_array_release(&flat);
    ck_assert_ptr_eq(dictionary.buffers[1], numbers);
    dictionary.release(&dictionary);
}
END_TEST

START_TEST(a_dictionary_may_have_an_offset)
{
    array.array.children[1]->dictionary->offset = 3;
    array.array.children[1]->offset = _i;
    ck_assert_int_eq(flatten(), 0);
    ck_assert_int_eq(flat.array.children[1]->dictionary->offset, 0);
    ck_assert_int_eq(
        memcmp(flat.array.children[1]->dictionary->buffers[1], numbers + 3, 8),
        0);
}
END_TEST

/* The batch's offset counts for each of its columns. */
START_TEST(a_batch_may_have_an_offset)
{
    for (int i = 0; i < 3; i++)
        array.array.children[i]->length = 5;
    array.array.children[2]->children[0]->length = 5;
    array.array.offset = 2;
    ck_assert_int_eq(flatten(), 0);
    ck_assert_int_eq(flat.array.offset, 0);
    has(flat.array.children[0], 12, true);
    has(flat.array.children[2]->children[0], 12, true);
}
END_TEST

/* Each owner keeps the copies; so does a column that was moved out. */
START_TEST(what_was_copied_can_be_shared)
{
    struct ArrowDeviceArray other, column = {0};

    array.array.children[2]->children[0]->offset = 2;
    ck_assert_int_eq(flatten(), 0);
    if (_i == 0) {
        ck_assert_int_eq(uva_array_share(&flat, &other), 0);
    } else {
        uva_array_from_cpu(flat.array.children[2], &column);
        ck_assert_int_eq(uva_array_share(&column, &other), 0);
        uva_array_release(&column);
    }
    uva_array_release(&array);
    uva_array_release(&flat);
    has(_i == 0 ? other.array.children[2]->children[0]
                : other.array.children[0],
        12, true);
    uva_array_release(&other);
}
END_TEST

START_TEST(what_cannot_be_copied_is_refused)
{
    if (_i < 2)
        array.array.children[0]->offset = 1;
    if (_i == 0)
        array.device_type = ARROW_DEVICE_CUDA;
    else if (_i == 1)
        array.sync_event = &memory;
    else
        array.array.n_children = 2; /* of three */
    ck_assert_int_eq(flatten(), _i < 2 ? ENOTSUP : EINVAL);
    ck_assert_int_eq(error.code, _i < 2 ? ENOTSUP : EINVAL);
    ck_assert(uva_array_is_live(&array));
    ck_assert(!uva_array_is_live(&flat));
    array.array.n_children = 3;
}
END_TEST

START_TEST(memory_that_runs_out_is_reported)
{
    bool failed = true;

    for (long k = 1; failed; k++) {
        int code;

        tear_down();
        set_up();
        array.array.children[0]->offset = 1;
        array.array.children[1]->offset = 1;
        array.array.children[1]->dictionary->offset = 1;
        faulty_allocator_init(&memory, k);
        code = flatten();
        failed = faulty_allocator_has_failed(&memory);
        ck_assert_int_eq(code, failed ? ENOMEM : 0);
        if (failed)
            ck_assert_ptr_nonnull(strstr(error.message, "ENOMEM"));
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("flat");
    TCase *all = suite_case(suite, "flat", set_up, tear_down);

    suite_add_loops(all, 0, 3, only_what_has_an_offset_is_copied,
                    what_cannot_be_copied_is_refused, NULL);
    suite_add_loops(all, 0, 2, a_dictionary_is_not_copied_with_its_indices,
                    a_dictionary_may_have_an_offset,
                    an_unknown_format_is_only_passed_on,
                    what_was_copied_can_be_shared, NULL);
    suite_add(all, without_an_offset_all_stays_where_it_is,
              a_batch_may_have_an_offset, memory_that_runs_out_is_reported,
              NULL);
    return suite_run(suite);
}
