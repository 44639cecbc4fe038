/* SPDX-License-Identifier: Apache-2.0 */
/* Measures of batches, by the plan of their schema, and in full. */
#include "stream/measure.h"

#include <check.h>
#include <errno.h>
#include <string.h>

#include "base/memory.h"
#include "support/check_suite.h"
#include "support/faulty_allocator.h"
#include "support/plain_tree.h"
#include "uvarrow/arrow.h"

static int64_t DATA[8];
static struct faulty_allocator faulty;
static struct uva_allocator allocator;
static struct ArrowSchema schema;
static struct ArrowDeviceArray batch;
static struct uva__measure measure;

/* A batch of one column: four items of 4 bytes. */
static void set_up(void)
{
    faulty_allocator_init(&faulty, 0);
    allocator = faulty_allocator_table(&faulty);
    memset(&measure, 0, sizeof(measure));
    plain_schema(&schema, "+s", "", 1);
    plain_schema(schema.children[0], "i", "x", 0);
    batch = (struct ArrowDeviceArray){.device_type = ARROW_DEVICE_CPU,
                                      .device_id = -1};
    plain_array(&batch.array, 4, 1, 1);
    plain_array(batch.array.children[0], 4, 2, 0);
    batch.array.children[0]->buffers[1] = DATA;
}

static void tear_down(void)
{
    uva__measure_fini(&measure);
    uva_array_release(&batch);
    if (schema.release != NULL)
        uva_schema_release(&schema);
    ck_assert_int_eq(plain_live(), 0);
    ck_assert_int_eq(faulty_allocator_live(&faulty), 0);
}

static void expect(int code, int64_t size)
{
    int64_t bytes = -1;
    struct uva_error error = {0};

    ck_assert_int_eq(uva__measure(&measure, &batch, &bytes, &error), code);
    ck_assert_int_eq(bytes, size);
    ck_assert(code == 0 || error.message[0] != '\0');
}

START_TEST(a_copy_outlives_the_schema)
{
    ck_assert(!uva__measure_is_known(&measure));
    ck_assert_int_eq(uva__measure_init(&measure, &allocator, &schema), 0);
    uva_schema_release(&schema);
    ck_assert(uva__measure_is_known(&measure));
    expect(0, 16);
}
END_TEST

START_TEST(a_lent_schema_stays_the_owners)
{
    uva__measure_lend(&measure, &allocator, &schema);
    expect(0, 16);
    uva__measure_fini(&measure);
    ck_assert(!uva__measure_is_known(&measure));
    ck_assert(schema.release != NULL);
    uva__measure_fini(&measure);
}
END_TEST

START_TEST(a_batch_without_a_plan_is_measured)
{
    uva__measure_lend(&measure, &allocator, &schema);
    measure.plan.size = 0;
    expect(0, 16);
}
END_TEST

START_TEST(the_size_of_an_unknown_format_is_not_known)
{
    schema.children[0]->format = "?";
    uva__measure_lend(&measure, &allocator, &schema);
    expect(0, 0);
}
END_TEST

START_TEST(a_batch_that_does_not_fit_is_refused)
{
    uva__measure_lend(&measure, &allocator, &schema);
    batch.array.children[0]->n_buffers = 1;
    expect(EINVAL, 0);
}
END_TEST

START_TEST(a_batch_counts_at_most_what_a_window_counts)
{
    schema.children[0]->format = "w:65536";
    uva__measure_lend(&measure, &allocator, &schema);
    batch.device_type = ARROW_DEVICE_CUDA;
    batch.array.length = batch.array.children[0]->length = (int64_t)1 << 30;
    expect(0, UVA__WINDOW_SIZE_MAX);
}
END_TEST

START_TEST(without_memory_there_is_no_schema)
{
    faulty_allocator_init(&faulty, 1);
    ck_assert_int_eq(uva__measure_init(&measure, &allocator, &schema), ENOMEM);
    ck_assert(!uva__measure_is_known(&measure));
}
END_TEST

int main(void)
{
    TCase *tc = suite_tests("measure", a_copy_outlives_the_schema,
                            a_lent_schema_stays_the_owners,
                            a_batch_without_a_plan_is_measured,
                            the_size_of_an_unknown_format_is_not_known,
                            a_batch_that_does_not_fit_is_refused,
                            a_batch_counts_at_most_what_a_window_counts,
                            without_memory_there_is_no_schema, NULL);
    return suite_main("measure", set_up, tear_down, tc, NULL);
}
