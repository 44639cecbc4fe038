/* SPDX-License-Identifier: Apache-2.0 */
/* A cast whose memory is counted. */
#include "support/cast_fixture.h"

#include <check.h>
#include <string.h>

#include "arrow/cast.h"
#include "support/plain_tree.h"
#include "uvarrow/arrow.h"

struct faulty_allocator cast_memory;
struct ArrowSchema cast_from, cast_to;
struct ArrowDeviceArray cast_array, cast_out;
struct uva_error cast_error;
static struct uva_allocator allocator;

const int64_t CAST_LARGE[] = {1, 5000000000, -2, 3, 5000000000};
const uint8_t CAST_SECOND_IS_NULL[] = {0x0d};
const char CAST_NULL_AT_0[] =
    "column x, row 0: a null, which the column cannot have";
const char CAST_NULL_AT_1[] =
    "column x, row 1: a null, which the column cannot have";

static void structs_make(int before, int after)
{
    plain_schema(&cast_from, "+s", "", before);
    plain_schema(&cast_to, "+s", "", after);
    plain_array(&cast_array.array, 0, 1, before);
}

void cast_set_up(void)
{
    faulty_allocator_init(&cast_memory, 0);
    allocator = faulty_allocator_table(&cast_memory);
    memset(&cast_error, 0, sizeof(cast_error));
    memset(&cast_array, 0, sizeof(cast_array));
    memset(&cast_out, 0, sizeof(cast_out));
    structs_make(1, 1);
    cast_array.device_type = ARROW_DEVICE_CPU;
    cast_array.device_id = -1;
}

void cast_tear_down(void)
{
    if (uva_array_is_live(&cast_array))
        uva_array_release(&cast_array);
    if (uva_array_is_live(&cast_out))
        uva_array_release(&cast_out);
    uva_schema_release(&cast_from);
    uva_schema_release(&cast_to);
    ck_assert_int_eq(plain_live(), 0);
    ck_assert_int_eq(faulty_allocator_live(&cast_memory), 0);
}

void cast_again(void)
{
    cast_tear_down();
    cast_set_up();
}

void cast_columns(int before, int after, int64_t rows)
{
    uva_schema_release(&cast_from);
    uva_schema_release(&cast_to);
    cast_array.array.release(&cast_array.array);
    structs_make(before, after);
    cast_array.array.length = rows;
}

struct ArrowSchema *cast_field(struct ArrowSchema *parent, int i,
                               const char *format, const char *name,
                               int children)
{
    plain_schema(parent->children[i], format, name, children);
    parent->children[i]->flags = ARROW_FLAG_NULLABLE;
    return parent->children[i];
}

void cast_fields(const char *before, const char *after, int children)
{
    cast_field(&cast_from, 0, before, "x", children);
    cast_field(&cast_to, 0, after, "x", children);
}

struct ArrowArray *cast_values(struct ArrowArray *parent, int i, int64_t length,
                               const void *validity, const void *second,
                               const void *third)
{
    struct ArrowArray *child = parent->children[i];

    plain_array(child, length, third != NULL ? 3 : 2, 0);
    child->buffers[0] = validity;
    child->null_count = validity != NULL ? -1 : 0;
    child->buffers[1] = second;
    if (third != NULL)
        child->buffers[2] = third;
    return child;
}

struct ArrowArray *cast_column(int64_t length, const void *validity,
                               const void *second, const void *third)
{
    cast_array.array.length = length;
    return cast_values(&cast_array.array, 0, length, validity, second, third);
}

int cast_run(void)
{
    struct uva__cast *made;
    int code =
        uva__cast_new(&allocator, &cast_from, &cast_to, &made, &cast_error);

    if (code == 0)
        code = uva__cast_array(made, &cast_array, &cast_out, &cast_error);
    uva__cast_free(made);
    ck_assert_int_eq(cast_error.code, code);
    ck_assert_int_eq(uva_array_is_live(&cast_out), code == 0);
    return code;
}

const struct ArrowArray *cast_result(void)
{
    ck_assert_msg(cast_run() == 0, "%s", cast_error.message);
    ck_assert_int_eq(cast_out.device_type, ARROW_DEVICE_CPU);
    if (uva_array_is_live(&cast_array))
        uva_array_release(&cast_array);
    ck_assert_int_eq(cast_out.array.offset, 0);
    return cast_out.array.children[0];
}

void cast_refuses(int code, const char *text)
{
    ck_assert_int_eq(cast_run(), code);
    ck_assert_str_eq(cast_error.message, text);
}
