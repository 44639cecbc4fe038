/* SPDX-License-Identifier: Apache-2.0 */
/* uva_array_concat(): joined arrays, refused arrays, and memory that runs out.
 * Joining itself is tested in tests/unit/arrow/test_concat.c. */
#include <check.h>
#include <errno.h>
#include <string.h>

#include "support/check_suite.h"
#include "support/every_type.h"
#include "support/faulty_libc.h"
#include "support/plain_tree.h"
#include "uvarrow/arrow.h"

static struct uva_error error;
static struct ArrowDeviceArray out;

static void set_up(void)
{
    memset(&error, 0, sizeof(error));
    memset(&out, 0xff, sizeof(out));
}

static void tear_down(void)
{
    every_type_forget();
    ck_assert_int_eq(plain_live(), 0);
}

static const int32_t numbers[] = {1, 2, 3, 4, 5};

/* A column of `length` of the numbers, from `offset` on. */
static struct ArrowDeviceArray column(int64_t length, int64_t offset)
{
    struct ArrowDeviceArray made = {.device_id = -1,
                                    .device_type = ARROW_DEVICE_CPU};

    plain_array(&made.array, length, 2, 0);
    made.array.buffers[1] = numbers;
    made.array.offset = offset;
    return made;
}

static struct ArrowSchema schema_of(const char *format)
{
    struct ArrowSchema schema;

    plain_schema(&schema, format, "x", 0);
    return schema;
}

START_TEST(arrays_are_joined)
{
    struct ArrowSchema schema = schema_of("i");
    struct ArrowDeviceArray arrays[] = {column(2, 3), column(0, 0),
                                        column(3, 0)};
    static const int32_t expected[] = {4, 5, 1, 2, 3};

    ck_assert_int_eq(uva_array_concat(&schema, arrays, 3, 0, &out, &error), 0);
    for (int i = 0; i < 3; i++)
        uva_array_release(&arrays[i]);
    ck_assert_int_eq(out.array.length, 5);
    ck_assert_int_eq(out.device_type, ARROW_DEVICE_CPU);
    ck_assert_int_eq(memcmp(out.array.buffers[1], expected, sizeof(expected)),
                     0);
    uva_array_release(&out);
    uva_schema_release(&schema);
}
END_TEST

START_TEST(no_arrays_have_no_rows)
{
    struct ArrowSchema schema = schema_of("i");

    ck_assert_int_eq(uva_array_concat(&schema, NULL, 0, 0, &out, &error), 0);
    ck_assert_int_eq(out.array.length, 0);
    uva_array_release(&out);
    uva_schema_release(&schema);
}
END_TEST

/* Refuses `count` copies of an array, which it takes. */
static void refused(struct ArrowSchema *schema, struct ArrowDeviceArray *array,
                    size_t count, int64_t most, int code, const char *text)
{
    struct ArrowDeviceArray arrays[3];

    for (int i = 0; i < 3 && array != NULL; i++)
        arrays[i] = *array;
    ck_assert_int_eq(uva_array_concat(schema, array == NULL ? NULL : arrays,
                                      count, most, &out, &error),
                     code);
    ck_assert_msg(strstr(error.message, text) != NULL, "%s", error.message);
    ck_assert(!uva_array_is_live(&out));
    if (array != NULL)
        uva_array_release(array);
}

START_TEST(what_cannot_be_joined_is_refused)
{
    struct ArrowSchema schema = schema_of("i"), released = schema;
    struct ArrowDeviceArray array = column(2, 0);

    released.release = NULL;
    refused(NULL, NULL, 0, 0, EINVAL, "no schema");
    refused(&released, NULL, 0, 0, EINVAL, "no schema");
    refused(&released, &array, 1, 0, EINVAL, "no schema");
    array = column(2, 0);
    refused(&schema, NULL, 1, 0, EINVAL, "no arrays");
    refused(&schema, &array, 2, 8, EMSGSIZE, "EMSGSIZE");
    array = column(2, 0);
    array.array.n_buffers = 1;
    refused(&schema, &array, 2, 0, EINVAL, ""); /* the first one decides */
    array = column(2, 0);
    array.device_type = ARROW_DEVICE_CUDA;
    refused(&schema, &array, 1, 0, ENOTSUP, "CPU");
    array = column(2, 0);
    array.sync_event = &schema;
    refused(&schema, &array, 1, 0, ENOTSUP, "CPU");
    uva_schema_release(&schema);
    schema = schema_of("?");
    refused(&schema, NULL, 0, 0, ENOTSUP, "ENOTSUP");
    uva_schema_release(&schema);
}
END_TEST

/* Only the offsets of texts are read before the sum is known. */
START_TEST(texts_of_more_than_two_gib_are_refused)
{
    static const int32_t ends[] = {0, 1500000000};
    struct ArrowSchema schema = schema_of("u");
    struct ArrowDeviceArray array = {.device_id = -1,
                                     .device_type = ARROW_DEVICE_CPU};

    plain_array(&array.array, 1, 3, 0);
    array.array.buffers[1] = ends;
    array.array.buffers[2] = numbers;
    refused(&schema, &array, 3, 0, EOVERFLOW, "EOVERFLOW");
    uva_schema_release(&schema);
}
END_TEST

START_TEST(memory_that_runs_out_is_reported)
{
    struct ArrowSchema schema = schema_of("i");
    struct ArrowDeviceArray array = column(2, 0);
    bool failed = true;

    for (long k = 1; failed; k++) {
        int code;

        faulty_libc_fail(k);
        code = uva_array_concat(&schema, &array, 1, 0, &out, &error);
        failed = faulty_libc_stop();
        ck_assert_int_eq(code, failed ? ENOMEM : 0);
        ck_assert(uva_array_is_live(&out) == !failed);
        uva_array_release(&out);
    }
    uva_array_release(&array);
    uva_schema_release(&schema);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("array_concat");

    suite_add(suite_case(suite, "concat", set_up, tear_down), arrays_are_joined,
              no_arrays_have_no_rows, what_cannot_be_joined_is_refused,
              texts_of_more_than_two_gib_are_refused,
              memory_that_runs_out_is_reported, NULL);
    return suite_run(suite);
}
