/* SPDX-License-Identifier: Apache-2.0 */
/* Databases whose first bytes cannot be read. */
#include "guess.h"
#include "support/check_suite.h"

#include <check.h>
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

/* A file of Linux, of which the first bytes are mapped nowhere. */
#define UNREADABLE "/proc/self/mem"

START_TEST(a_read_that_fails_is_no_empty_database)
{
    const char *driver = "";
    struct uva_error error = {0};
    struct stat about;

    if (stat(UNREADABLE, &about) != 0 || !S_ISREG(about.st_mode))
        return; /* another system */
    ck_assert_int_eq(uva__guess_driver(UNREADABLE, &driver, &error), EIO);
    ck_assert_ptr_null(driver);
    ck_assert_int_eq(error.code, EIO);
    ck_assert_ptr_nonnull(strstr(error.message, UNREADABLE));
    ck_assert_ptr_nonnull(strstr(error.message, strerror(EIO)));
}
END_TEST

START_TEST(a_folder_is_no_database)
{
    const char *driver = "";
    struct uva_error error = {0};

    ck_assert_int_eq(uva__guess_driver("/", &driver, &error), EISDIR);
    ck_assert_ptr_null(driver);
    ck_assert_str_eq(error.message, "the database / is not a file; name its "
                                    "driver with --driver");
    ck_assert_int_eq(uva__guess_driver("/dev/null", &driver, &error), EINVAL);
    ck_assert_ptr_null(driver);
}
END_TEST

/* As SQLite opens it. */
START_TEST(a_uri_is_read_as_sqlite_reads_it)
{
    static const char *const NAMES[] = {"file:%2Fdev/null", "file:///dev/null",
                                        "file://localhost/dev/null?x"};
    const char *driver = "";
    struct uva_error error = {0};

    ck_assert_int_eq(uva__guess_driver(NAMES[_i], &driver, &error), EINVAL);
    ck_assert_ptr_nonnull(strstr(error.message, " /dev/null is not a file"));
}
END_TEST

START_TEST(a_database_in_memory_is_of_sqlite)
{
    static const char *const NAMES[] = {":memory:", "file::memory:?cache=x"};
    const char *driver = "";

    ck_assert_int_eq(uva__guess_driver(NAMES[_i], &driver, NULL), 0);
    ck_assert_str_eq(driver, "sqlite");
}
END_TEST

START_TEST(no_name_is_no_database)
{
    const char *driver = "";

    ck_assert_int_eq(uva__guess_driver(_i == 0 ? "" : "file:", &driver, NULL),
                     ENOENT);
    ck_assert_ptr_null(driver);
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("guess");

    suite_add(tc, a_read_that_fails_is_no_empty_database,
              a_folder_is_no_database, NULL);
    suite_add_loops(tc, 0, 3, a_uri_is_read_as_sqlite_reads_it, NULL);
    suite_add_loops(tc, 0, 2, a_database_in_memory_is_of_sqlite,
                    no_name_is_no_database, NULL);
    return suite_main("guess", NULL, NULL, tc, NULL);
}
