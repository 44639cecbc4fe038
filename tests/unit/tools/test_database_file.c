/* SPDX-License-Identifier: Apache-2.0 */
/* The file of a database, by its name: as SQLite reads it, and without memory.
 */
#include "database_file.h"

#include <check.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "support/check_suite.h"

static bool is_without_memory;

char *__real_strdup(const char *text);
char *__wrap_strdup(const char *text);
char *__real_strndup(const char *text, size_t size);
char *__wrap_strndup(const char *text, size_t size);

char *__wrap_strdup(const char *text)
{
    return is_without_memory ? NULL : __real_strdup(text);
}

char *__wrap_strndup(const char *text, size_t size)
{
    return is_without_memory ? NULL : __real_strndup(text, size);
}

static const struct {
    const char *name, *path;
} CASES[] = {
    {"a.db", "a.db"},
    {"/a/b c.db", "/a/b c.db"},
    {"a%20b.db?x#y", "a%20b.db?x#y"}, /* no URI */
    {"FILE:a.db", "FILE:a.db"},       /* SQLite's scheme has small letters */
    {"file:a.db", "a.db"},
    {"file:a.db?mode=ro", "a.db"},
    {"file:a.db#x?y", "a.db"},
    {"file:/a/b.db", "/a/b.db"},
    {"file:///a/b.db", "/a/b.db"},
    {"file://localhost/a/b.db?x", "/a/b.db"},
    {"file:a%20b%3f%2F%c3%A9.db", "a b?/\xc3\xa9.db"},
    {"file:a%2", "a%2"},
    {"file:a%g0%0g%", "a%g0%0g%"},
    {"file:a%00b.db", "a"},
    {"file:%3amemory:", NULL},
    {"file::memory:?cache=shared", NULL},
    {":memory:", NULL},
    {":memory:x", NULL},
    {"file:", NULL},
    {"file://localhost", NULL},
    {"file:?mode=memory", NULL},
    {"", NULL},
    {NULL, NULL},
};

enum { COUNT = sizeof(CASES) / sizeof(*CASES) };

START_TEST(a_name_means_a_file)
{
    char *path = "";

    ck_assert_int_eq(uva__database_file(CASES[_i].name, &path), 0);
    ck_assert_pstr_eq(path, CASES[_i].path);
    free(path);
}
END_TEST

START_TEST(without_memory_there_is_no_path)
{
    char *path = "";

    is_without_memory = true;
    ck_assert_int_eq(uva__database_file(_i == 0 ? "a.db" : "file:a.db", &path),
                     ENOMEM);
    ck_assert_ptr_null(path);
    ck_assert_int_eq(uva__database_uri_path("a.db", &path), ENOMEM);
    ck_assert_int_eq(uva__database_file(NULL, &path), 0);
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("database_file");

    suite_add_loops(tc, 0, COUNT, a_name_means_a_file, NULL);
    suite_add_loops(tc, 0, 2, without_memory_there_is_no_path, NULL);
    return suite_main("database_file", NULL, NULL, tc, NULL);
}
