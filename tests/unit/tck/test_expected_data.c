/* SPDX-License-Identifier: Apache-2.0 */
/* The faults that the suite finds in a schema and in an array: each fault
 * alone, in otherwise right data, breaks its clauses. */
#define _GNU_SOURCE
#include <check.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

#include "tck/expected_data.h"
#include "tck/sandbox.h"

enum { ROWS = UVA_SUBJECT_ROWS, COLUMNS = 1, TEXT = 64, LONG_MS = 60000 };

static struct uva__case_run_page *page;
static struct uva__case_run run;

static struct ArrowSchema schema, column;
static struct ArrowDeviceArray batch;
static struct ArrowArray values;
static int64_t numbers[ROWS + 1];
static int released;

/* ---- data that is right ------------------------------------------------- */

static void schema_release(struct ArrowSchema *given)
{
    given->release = NULL;
}

static void array_release(struct ArrowArray *array)
{
    array->release = NULL;
    released++;
}

static void array_keeps_its_release(struct ArrowArray *array)
{
    (void)array;
}

static void set_up(void)
{
    static struct ArrowSchema *columns[] = {&column};
    static struct ArrowArray *children[] = {&values};
    static const void *none[1], *both[2];

    page = mmap(NULL, sizeof(*page), PROT_READ | PROT_WRITE,
                MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ck_assert_ptr_ne(page, MAP_FAILED);
    run = (struct uva__case_run){.page = page, .clause = "XX-00"};
    for (int i = 0; i <= ROWS; i++)
        numbers[i] = i;
    both[0] = NULL;
    both[1] = numbers;
    column = (struct ArrowSchema){
        .format = "l", .name = "n", .release = schema_release};
    schema = (struct ArrowSchema){.format = "+s",
                                  .n_children = COLUMNS,
                                  .children = columns,
                                  .release = schema_release};
    children[0] = &values;
    values = (struct ArrowArray){.length = ROWS,
                                 .n_buffers = 2,
                                 .buffers = both,
                                 .release = array_release};
    batch = (struct ArrowDeviceArray){.array = {.length = ROWS,
                                                .n_buffers = 1,
                                                .n_children = COLUMNS,
                                                .buffers = none,
                                                .children = children,
                                                .release = array_release},
                                      .device_id = -1,
                                      .device_type = ARROW_DEVICE_CPU};
    released = 0;
}

static void tear_down(void)
{
    (void)munmap(page, sizeof(*page));
}

/* ---- checks ------------------------------------------------------------- */

/* The clauses that were broken, in order, each with a blank after it. */
static const char *broken(void)
{
    static char clauses[UVA__CASE_RUN_BREACHES * 8];
    const uint64_t count = uva__atomic64_load(&page->breached);

    clauses[0] = '\0';
    for (uint64_t i = 0; i < count; i++) {
        (void)strcat(clauses, page->breaches[i].clause);
        (void)strcat(clauses, " ");
    }
    return clauses;
}

static void schema_breaks(const char *clauses)
{
    uva__expected_data_check_schema(&run, &schema, "AS-02");
    ck_assert_str_eq(broken(), clauses);
}

static void array_breaks(bool readable, const char *clauses)
{
    run.columns = COLUMNS;
    ck_assert_int_eq(
        uva__expected_data_check_array(&run, &batch, 0, "AT-01", "AT-16"),
        readable);
    ck_assert_str_eq(broken(), clauses);
}

START_TEST(data_that_is_right_breaks_nothing)
{
    schema_breaks("");
    ck_assert_int_eq(run.columns, COLUMNS);
    array_breaks(true, "");
    uva__expected_data_release_array(&run, &batch, 0);
    ck_assert_str_eq(broken(), "");
    ck_assert_int_eq(released, 1);
}
END_TEST

START_TEST(a_schema_of_another_kind_breaks_its_clause)
{
    static struct ArrowSchema dictionary = {.format = "u"};

    schema.dictionary = &dictionary;
    schema_breaks("AS-02 ");
    column.release = NULL;
    schema_breaks("AS-02 LC-01 ");
}
END_TEST

START_TEST(an_array_for_another_device_cannot_be_read)
{
    batch.device_type = ARROW_DEVICE_CUDA;
    array_breaks(false, "DA-03 AT-16 ");
}
END_TEST

START_TEST(fields_of_the_device_break_their_clauses)
{
    batch.device_id = 0;
    batch.sync_event = &batch;
    batch.reserved[2] = 1;
    array_breaks(true, "DA-05 EV-04 DA-08 ");
}
END_TEST

START_TEST(a_negative_number_breaks_its_clause)
{
    values.null_count = -2;
    array_breaks(true, "DA-21 ");
}
END_TEST

START_TEST(another_number_of_columns_cannot_be_read)
{
    batch.array.n_children = 2;
    array_breaks(false, "AT-16 DA-20 ");
}
END_TEST

START_TEST(a_column_that_is_not_there_cannot_be_read)
{
    batch.array.children[0] = NULL;
    array_breaks(false, "DA-25 ");
}
END_TEST

START_TEST(a_column_that_is_released_cannot_be_read)
{
    values.release = NULL;
    array_breaks(false, "LC-01 ");
}
END_TEST

START_TEST(a_dictionary_breaks_its_clause)
{
    values.dictionary = &batch.array;
    array_breaks(true, "DA-26 ");
}
END_TEST

START_TEST(another_number_of_buffers_cannot_be_read)
{
    values.n_buffers = 3;
    array_breaks(false, "AT-16 DA-20 ");
}
END_TEST

START_TEST(a_buffer_that_is_not_there_cannot_be_read)
{
    values.buffers[1] = NULL;
    array_breaks(false, "DA-22 ");
}
END_TEST

START_TEST(values_that_are_not_aligned_break_their_clause)
{
    (void)memmove((char *)numbers + 1, numbers, sizeof(int64_t) * ROWS);
    values.buffers[1] = (char *)numbers + 1;
    array_breaks(true, "DA-24 ");
}
END_TEST

START_TEST(too_few_rows_cannot_be_read)
{
    values.length--;
    array_breaks(false, "AT-16 ");
}
END_TEST

START_TEST(values_of_another_batch_break_their_clauses)
{
    numbers[0] = 7;
    array_breaks(true, "AT-01 ");
    uva__expected_data_release_array(&run, &batch, 0);
    ck_assert_ptr_nonnull(strstr(broken(), "LC-12 "));
}
END_TEST

START_TEST(an_array_that_keeps_its_release_breaks_its_clauses)
{
    batch.array.release = array_keeps_its_release;
    uva__expected_data_release_array(&run, &batch, 0);
    ck_assert_str_eq(broken(), "LC-07 DA-12 ");
}
END_TEST

/* ---- metadata ----------------------------------------------------------- */

static int64_t metadata_breaks(const int32_t *block, const char *clauses)
{
    int64_t size = 0;
    char tag[64];

    uva__expected_data_check_metadata(&run, (const char *)block, "MD-03", tag,
                                      &size);
    ck_assert_str_eq(broken(), clauses);
    return size;
}

START_TEST(metadata_breaks_the_clauses_of_its_faults)
{
    static const int32_t empty = 0, negative = -1, huge = INT32_MAX;

    ck_assert_int_eq(metadata_breaks(NULL, ""), -1);
    ck_assert_int_eq(metadata_breaks(&empty, "MD-02 "), -1);
    ck_assert_int_eq(metadata_breaks(&huge, "MD-02 MD-09 "), -1);
    ck_assert_int_eq(
        metadata_breaks(&negative, "MD-02 MD-09 MD-03 MD-01 MD-05 "), -1);
}
END_TEST

/* ---- the ends of a case ------------------------------------------------- */

static void schema_check(void *ctx)
{
    (void)ctx;
    uva__expected_data_check_schema(&run, &schema, "AS-02");
}

/* The process of the case ends with a verdict, which is in the shared page. */
static void schema_ends_its_case(const char *part)
{
    struct uva__sandbox sandbox;
    char text[TEXT];

    ck_assert_int_eq(uva__sandbox_open(&sandbox, schema_check, NULL, LONG_MS),
                     0);
    ck_assert_int_eq(uva__sandbox_wait(&sandbox, 1), 0);
    uva__sandbox_fini(&sandbox, text, sizeof(text));
    ck_assert_int_eq(sandbox.end, UVA__SANDBOX_EXITED);
    ck_assert_uint_eq(uva__atomic64_load(&page->state), UVA__CASE_RUN_BROKEN);
    ck_assert_msg(strstr(page->message, part) != NULL, "%s", page->message);
}

START_TEST(a_schema_that_is_no_struct_ends_the_case)
{
    static const char *const formats[] = {NULL, "i"};

    schema.format = formats[_i];
    schema_ends_its_case("not a struct with a column");
}
END_TEST

START_TEST(a_schema_without_a_column_ends_the_case)
{
    schema.n_children = _i;
    schema.children = NULL;
    schema_ends_its_case("not a struct with a column");
}
END_TEST

START_TEST(another_first_column_ends_the_case)
{
    static const struct ArrowSchema others[] = {{.name = "n"},
                                                {.format = "i", .name = "n"},
                                                {.format = "l"},
                                                {.format = "l", .name = "m"}};

    column = others[_i];
    column.release = schema_release;
    schema_ends_its_case("the first column is not");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("expected data");
    TCase *all = tcase_create("expected data");
    SRunner *runner = srunner_create(suite);
    int failed;

    tcase_add_checked_fixture(all, set_up, tear_down);
    tcase_add_test(all, data_that_is_right_breaks_nothing);
    tcase_add_test(all, a_schema_of_another_kind_breaks_its_clause);
    tcase_add_test(all, an_array_for_another_device_cannot_be_read);
    tcase_add_test(all, fields_of_the_device_break_their_clauses);
    tcase_add_test(all, a_negative_number_breaks_its_clause);
    tcase_add_test(all, another_number_of_columns_cannot_be_read);
    tcase_add_test(all, a_column_that_is_not_there_cannot_be_read);
    tcase_add_test(all, a_column_that_is_released_cannot_be_read);
    tcase_add_test(all, a_dictionary_breaks_its_clause);
    tcase_add_test(all, another_number_of_buffers_cannot_be_read);
    tcase_add_test(all, a_buffer_that_is_not_there_cannot_be_read);
    tcase_add_test(all, values_that_are_not_aligned_break_their_clause);
    tcase_add_test(all, too_few_rows_cannot_be_read);
    tcase_add_test(all, values_of_another_batch_break_their_clauses);
    tcase_add_test(all, an_array_that_keeps_its_release_breaks_its_clauses);
    tcase_add_test(all, metadata_breaks_the_clauses_of_its_faults);
    tcase_add_loop_test(all, a_schema_that_is_no_struct_ends_the_case, 0, 2);
    tcase_add_loop_test(all, a_schema_without_a_column_ends_the_case, 0, 2);
    tcase_add_loop_test(all, another_first_column_ends_the_case, 0, 4);
    suite_add_tcase(suite, all);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
