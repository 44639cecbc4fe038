/* SPDX-License-Identifier: Apache-2.0 */
/* uva_array_select(): what is moved, sliced, copied and refused. That rows of
 * every type keep their values is tested in tests/unit/arrow/test_select.c. */
#include <check.h>
#include <errno.h>
#include <string.h>

#include "support/check_suite.h"
#include "support/faulty_libc.h"
#include "support/plain_tree.h"
#include "uvarrow/arrow.h"

static const int32_t numbers[] = {1, 2, 3, 4, 5};

static struct uva_error error;
static struct ArrowSchema schema;
static struct ArrowDeviceArray array, out;

static void set_up(void)
{
    memset(&error, 0, sizeof(error));
    memset(&out, 0xff, sizeof(out));
    plain_schema(&schema, "i", "x", 0);
    array = (struct ArrowDeviceArray){.device_id = -1,
                                      .device_type = ARROW_DEVICE_CPU};
    plain_array(&array.array, 5, 2, 0);
    array.array.buffers[1] = numbers;
}

static void tear_down(void)
{
    uva_array_release(&out);
    uva_schema_release(&schema);
    ck_assert_int_eq(plain_live(), 0);
}

static int rows_select(uint8_t bits)
{
    return uva_array_select(&schema, &array, &bits, &out, &error);
}

START_TEST(other_rows_are_copied)
{
    static const int32_t expected[] = {1, 4, 5};

    ck_assert_int_eq(rows_select(0xf9), 0); /* with bits after the last row */
    ck_assert(!uva_array_is_live(&array));
    ck_assert_int_eq(plain_live(), 1); /* the schema */
    ck_assert_int_eq(out.array.length, 3);
    ck_assert_int_eq(out.device_type, ARROW_DEVICE_CPU);
    ck_assert_int_eq(memcmp(out.array.buffers[1], expected, sizeof(expected)),
                     0);
}
END_TEST

START_TEST(all_rows_are_moved)
{
    ck_assert_int_eq(rows_select(0x1f), 0);
    ck_assert(!uva_array_is_live(&array));
    ck_assert_ptr_eq(out.array.buffers[1], numbers);
    ck_assert_int_eq(out.array.length, 5);
}
END_TEST

START_TEST(neighbours_share_the_data_on_any_device)
{
    array.device_type = ARROW_DEVICE_CUDA;
    array.device_id = 3;
    array.sync_event = &schema;
    ck_assert_int_eq(rows_select(0x0c), 0);
    ck_assert(!uva_array_is_live(&array));
    ck_assert_ptr_eq(out.array.buffers[1], numbers);
    ck_assert_int_eq(out.array.offset, 2);
    ck_assert_int_eq(out.array.length, 2);
    ck_assert_int_eq(out.device_id, 3);
    ck_assert_ptr_eq(out.sync_event, &schema);
}
END_TEST

START_TEST(no_rows_are_an_empty_slice)
{
    array.device_type = ARROW_DEVICE_CUDA;
    ck_assert_int_eq(rows_select(0), 0);
    ck_assert_int_eq(out.array.length, 0);
    ck_assert_int_eq(out.device_type, ARROW_DEVICE_CUDA);
}
END_TEST

START_TEST(of_an_empty_array_no_bits_are_read)
{
    array.array.length = 0;
    ck_assert_int_eq(rows_select(0xff), 0);
    ck_assert_int_eq(out.array.length, 0);
}
END_TEST

/* Fails, with the array as it was. */
static void check_refused(const struct ArrowSchema *by,
                          struct ArrowDeviceArray *from, const uint8_t *bits,
                          int code, const char *text)
{
    memset(&out, 0xff, sizeof(out));
    ck_assert_int_eq(uva_array_select(by, from, bits, &out, &error), code);
    ck_assert_msg(strstr(error.message, text) != NULL, "%s", error.message);
    ck_assert(!uva_array_is_live(&out));
    ck_assert_int_eq(uva_array_select(by, from, bits, &out, NULL), code);
    if (from != NULL)
        ck_assert_ptr_eq(from->array.buffers[1], numbers);
}

START_TEST(what_cannot_be_selected_is_refused)
{
    static const uint8_t bits = 0x15;
    struct ArrowSchema released = schema;

    released.release = NULL;
    check_refused(NULL, &array, &bits, EINVAL, "no schema");
    check_refused(&released, &array, &bits, EINVAL, "no schema");
    check_refused(&schema, NULL, &bits, EINVAL, "no array");
    check_refused(&schema, &array, NULL, EINVAL, "no bits");
    array.device_type = ARROW_DEVICE_CUDA;
    check_refused(&schema, &array, &bits, ENOTSUP, "not on the CPU");
    array.device_type = ARROW_DEVICE_CPU;
    array.sync_event = &schema;
    check_refused(&schema, &array, &bits, ENOTSUP, "an event");
    array.sync_event = NULL;
    array.array.n_buffers = 3;
    check_refused(&schema, &array, &bits, EINVAL, "n_buffers");
    array.array.n_buffers = 2;
    uva_schema_release(&schema);
    plain_schema(&schema, "?", "x", 0);
    check_refused(&schema, &array, &bits, ENOTSUP, "unknown format");
    uva_array_release(&array);
}
END_TEST

START_TEST(memory_that_runs_out_is_reported)
{
    bool failed = true;

    for (long k = 1; failed; k++) {
        int code;

        faulty_libc_fail(k);
        code = rows_select(_i == 0 ? 0x06 : 0x15);
        failed = faulty_libc_stop();
        ck_assert_int_eq(code, failed ? ENOMEM : 0);
        ck_assert(uva_array_is_live(&array) == failed);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("array_select");
    TCase *cases = suite_case(suite, "select", set_up, tear_down);

    suite_add(cases, other_rows_are_copied, all_rows_are_moved,
              neighbours_share_the_data_on_any_device,
              no_rows_are_an_empty_slice, of_an_empty_array_no_bits_are_read,
              what_cannot_be_selected_is_refused, NULL);
    suite_add_loops(cases, 0, 2, memory_that_runs_out_is_reported, NULL);
    return suite_run(suite);
}
