/* SPDX-License-Identifier: Apache-2.0 */
/* Errors of drivers that no driver here reports, and streams without one. */
#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "adbc/failure.h"
#include "adbc/fixed.h"
#include "support/check_suite.h"
#include "support/faulty_libc.h"
#include "uvarrow/arrow.h"

static struct uva__adbc_failure failure;
static struct AdbcDriver driver;
static int details; /* how many the driver has */
static size_t detail_size;
static bool is_lent; /* their value */

static void tear_down(void)
{
    uva__adbc_failure_fini(&failure);
    driver = (struct AdbcDriver){0};
    detail_size = 0;
    is_lent = false;
}

static int detail_count(const struct AdbcError *error)
{
    (void)error;
    return details;
}

static struct AdbcErrorDetail detail_get(const struct AdbcError *error,
                                         int index)
{
    (void)error;
    return (struct AdbcErrorDetail){.key = index == 1 ? NULL : "key",
                                    .value =
                                        is_lent ? (const uint8_t *)"" : NULL,
                                    .value_length = detail_size};
}

/* Copies an error; gives how many pairs of metadata it has. */
static int pairs_of(AdbcStatusCode status, const struct AdbcError *error)
{
    struct uva_metadata_at at = {0};
    struct uva_pair pair;
    int count = 0;

    ck_assert_int_ne(
        uva__adbc_failure_copy(&failure, "it fails", status, error, &driver),
        0);
    while (uva_metadata_next(failure.metadata, &at, &pair) == 0)
        count++;
    return count;
}

START_TEST(an_unknown_status_is_an_error)
{
    const struct AdbcError error = {.vendor_code = 0};

    ck_assert_int_eq(pairs_of(200, &error), 1); /* its name alone */
    ck_assert_int_eq(failure.error.code, EIO);
    ck_assert_ptr_nonnull(strstr(failure.error.message, "gives no reason"));
}
END_TEST

START_TEST(details_need_both_functions)
{
    struct AdbcError error = ADBC_ERROR_INIT;

    details = 100;
    error.private_data = &details;
    driver.ErrorGetDetail = detail_get;
    ck_assert_int_eq(pairs_of(ADBC_STATUS_IO, &error), 1);
    driver.ErrorGetDetail = NULL;
    driver.ErrorGetDetailCount = detail_count;
    ck_assert_int_eq(pairs_of(ADBC_STATUS_IO, &error), 1);
    driver.ErrorGetDetail = detail_get;
    ck_assert_int_eq(pairs_of(ADBC_STATUS_IO, &error), 1 + 63);
    detail_size = 1; /* of 0 bytes */
    ck_assert_int_eq(pairs_of(ADBC_STATUS_IO, &error), 1);
    error.private_data = NULL; /* never filled in */
    ck_assert_int_eq(pairs_of(ADBC_STATUS_IO, &error), 1);
}
END_TEST

/* They are not read. */
START_TEST(details_that_are_too_large_are_left_out_with_the_rest)
{
    struct AdbcError error = ADBC_ERROR_INIT;

    details = 1;
    detail_size = (size_t)INT32_MAX + 1;
    is_lent = true;
    error.private_data = &details;
    driver.ErrorGetDetail = detail_get;
    driver.ErrorGetDetailCount = detail_count;
    ck_assert_int_eq(pairs_of(ADBC_STATUS_IO, &error), 0);
    ck_assert_ptr_null(failure.metadata);
    ck_assert_int_eq(failure.error.code, EIO);
}
END_TEST

/* "it fails: " and so many characters: the last ones that fit, and one more. */
static const size_t lengths[] = {997, 998, 100000};

START_TEST(a_text_that_was_cut_is_whole_in_the_metadata)
{
    char *text = malloc(lengths[_i] + 1);
    struct AdbcError error = {.message = text};
    struct uva_pair whole = {0};

    ck_assert_ptr_nonnull(text);
    memset(text, 'x', lengths[_i]);
    text[lengths[_i]] = '\0';
    ck_assert_int_eq(pairs_of(ADBC_STATUS_IO, &error), _i == 0 ? 1 : 2);
    (void)!uva_metadata_get(failure.metadata, "adbc.message", &whole);
    ck_assert_uint_eq(whole.value_size, _i == 0 ? 0 : lengths[_i]);
    ck_assert(whole.value_size == 0 ||
              memcmp(whole.value, text, whole.value_size) == 0);
    ck_assert(_i != 0 || strstr(failure.error.message, text) != NULL);
    free(text);
}
END_TEST

START_TEST(without_memory_there_is_no_metadata)
{
    const struct AdbcError error = ADBC_ERROR_INIT;

    for (int k = 1; k <= 2; k++) {
        faulty_libc_fail(k);
        (void)uva__adbc_failure_copy(&failure, "it fails", ADBC_STATUS_IO,
                                     &error, &driver);
        ck_assert(faulty_libc_stop());
        ck_assert_ptr_null(failure.metadata);
        ck_assert_int_eq(failure.error.code, EIO);
    }
}
END_TEST

/* ---- streams without a driver ------------------------------------------- */

static const uint8_t *const texts[] = {(const uint8_t *)"ab", NULL};
static const size_t sizes[] = {2, 0};

START_TEST(a_stream_may_be_released_unread)
{
    struct ArrowArrayStream stream;
    struct ArrowSchema schema;
    struct ArrowArray array, child;

    ck_assert_int_eq(
        uva__fixed_binary("name", texts, sizes, 2, &schema, &array), 0);
    ck_assert_int_eq(array.length, 2);
    child = *array.children[0]; /* moved out of its parent */
    array.children[0]->release = NULL;
    ck_assert_int_eq(uva__fixed_new(&schema, &array, &stream), 0);
    ck_assert_ptr_null(stream.get_last_error(&stream));
    stream.release(&stream);
    ck_assert(stream.release == NULL);
    child.release(&child);
}
END_TEST

START_TEST(without_memory_all_is_released)
{
    struct ArrowArrayStream stream;
    struct ArrowSchema schema;
    struct ArrowArray array;

    for (int k = 1; k <= 2; k++) {
        faulty_libc_fail(k);
        ck_assert_int_eq(
            uva__fixed_binary("name", texts, sizes, 2, &schema, &array),
            ENOMEM);
        ck_assert(faulty_libc_stop());
    }
    ck_assert_int_eq(
        uva__fixed_binary("name", texts, sizes, 2, &schema, &array), 0);
    faulty_libc_fail(1);
    ck_assert_int_eq(uva__fixed_new(&schema, &array, &stream), ENOMEM);
    ck_assert(faulty_libc_stop());
    ck_assert_int_eq(
        uva__fixed_binary("name", texts, sizes, 2, &schema, &array), 0);
    array.release(&array);
    faulty_libc_fail(1);
    ck_assert_int_eq(uva__fixed_new(&schema, NULL, &stream), ENOMEM);
    ck_assert(faulty_libc_stop());
}
END_TEST

START_TEST(a_sum_that_is_too_large_is_refused)
{
    const size_t large[] = {1, INT32_MAX};
    struct ArrowSchema schema;
    struct ArrowArray array;

    ck_assert_int_eq(
        uva__fixed_binary("name", texts, large, 2, &schema, &array), EOVERFLOW);
}
END_TEST

START_TEST(a_note_is_behind_all_the_rest)
{
    struct AdbcError error = ADBC_ERROR_INIT;
    struct uva_pair pair;

    details = 100;
    error.private_data = &details;
    driver.ErrorGetDetail = detail_get;
    driver.ErrorGetDetailCount = detail_count;
    ck_assert_int_eq(pairs_of(ADBC_STATUS_IO, &error), 64);
    for (int k = 1; k < 3; k++) { /* unless memory runs out */
        faulty_libc_fail(k);
        uva__adbc_failure_note(&failure, "adbc.step", "x");
        ck_assert(faulty_libc_stop());
        ck_assert_int_ne(uva_metadata_get(failure.metadata, "adbc.step", &pair),
                         0);
        ck_assert_int_eq(
            uva_metadata_get(failure.metadata, "adbc.status", &pair), 0);
    }
    uva__adbc_failure_note(&failure, "adbc.step", "x");
    ck_assert_int_eq(uva_metadata_get(failure.metadata, "adbc.step", &pair), 0);
    ck_assert_int_eq(uva_metadata_get(failure.metadata, "adbc.status", &pair),
                     0);
    for (int i = 0; i < 9; i++) /* the last one stays */
        uva__adbc_failure_note(&failure, i < 8 ? "other" : "last", "x");
    ck_assert_int_eq(uva_metadata_get(failure.metadata, "last", &pair), 0);
    ck_assert_int_eq(uva_metadata_get(failure.metadata, "adbc.step", &pair), 0);
    uva__adbc_failure_fini(&failure);
    uva__adbc_failure_note(&failure, "adbc.step", "y");
    ck_assert_int_eq(uva_metadata_get(failure.metadata, "adbc.step", &pair), 0);
    ck_assert_int_eq(*pair.value, 'y');
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("failure");

    suite_add(tc, an_unknown_status_is_an_error, details_need_both_functions,
              details_that_are_too_large_are_left_out_with_the_rest,
              without_memory_there_is_no_metadata,
              a_stream_may_be_released_unread, without_memory_all_is_released,
              a_sum_that_is_too_large_is_refused, a_note_is_behind_all_the_rest,
              NULL);
    suite_add_loops(tc, 0, 3, a_text_that_was_cut_is_whole_in_the_metadata,
                    NULL);
    return suite_main("failure", NULL, tear_down, tc, NULL);
}
