/* SPDX-License-Identifier: Apache-2.0 */
/* The name under which a database is shown: it must never hold a password. */
#include "about.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "format.h"
#include "support/check_suite.h"

static const char *name_of(const char *driver, const char *name)
{
    static char out[64];
    const struct uva__database database = {.driver = driver, .name = name};

    uva__about_name(&database, out, sizeof(out));
    return out;
}

START_TEST(a_file_is_without_its_folders)
{
    ck_assert_str_eq(name_of("sqlite", "/a/b/c d.db"), "c d.db");
    ck_assert_str_eq(name_of("sqlite", "c?#.db"), "c?#.db");
    ck_assert_str_eq(name_of("sqlite", "file:/a/c.db?mode=ro&x=/y"), "c.db");
    ck_assert_str_eq(name_of("sqlite", "file:c.db#x"), "c.db");
    ck_assert_str_eq(name_of("sqlite", "file:/a/c%20d%3F.db?x"), "c d?.db");
    ck_assert_str_eq(name_of("sqlite", "file://localhost/c.db"), "c.db");
    ck_assert_str_eq(name_of("sqlite", "file::memory:?cache=shared"), "");
    ck_assert_str_eq(name_of("duckdb", "a/c.duckdb"), "c.duckdb");
    ck_assert_str_eq(name_of("sqlite", ":memory:"), "");
    ck_assert_str_eq(name_of("duckdb", ":memory:x"), "");
    ck_assert_str_eq(name_of("sqlite", ""), "");
    ck_assert_str_eq(name_of("sqlite", NULL), "");
}
END_TEST

START_TEST(a_secret_in_the_place_of_a_file_is_not_shown)
{
    static const char *const SECRETS[] = {"md:flights?motherduck_token=secret",
                                          "md:secret",
                                          "postgres:host=h password=secret",
                                          "FILE:/x/a.db?key=secret",
                                          "s3://bucket/a.db?key=secret",
                                          "a/host=h password=secret",
                                          "file:/x/key=secret",
                                          "file:/x/key%3Dsecret"};
    size_t i;

    for (i = 0; i < sizeof(SECRETS) / sizeof(*SECRETS); i++)
        ck_assert_str_eq(name_of("duckdb", SECRETS[i]), "");
    ck_assert_str_eq(name_of("duckdb", "./a:b"), "b");
}
END_TEST

START_TEST(a_uri_is_without_user_and_password)
{
    static const char *const SECRETS[] = {
        "postgresql://u:secret@h",
        "postgresql://u:s@secret@h/db",
        "postgresql://u:p?secret@h/db",
        "postgresql://u:p#secret@h/db",
        "postgresql://u:p@q?secret@h/db",
        "postgresql://h/db?user=u&password=secret",
        "postgresql://h/db?password=p@secret",
        "host=h user=u password=secret dbname=db",
        "password=secret@h"};
    size_t i;

    for (i = 0; i < sizeof(SECRETS) / sizeof(*SECRETS); i++)
        ck_assert_ptr_null(strstr(name_of("postgresql", SECRETS[i]), "secret"));
    ck_assert_str_eq(name_of(NULL, "postgresql://u:p@h:5432/db?x=y"),
                     "h:5432/db");
    ck_assert_str_eq(name_of(NULL, "postgres://h/db"), "h/db");
    ck_assert_str_eq(name_of("other", "x://u:p@h/db#f"), "h/db");
    ck_assert_str_eq(name_of("other", "pwd=secret;server=h"), "");
}
END_TEST

START_TEST(a_long_name_is_cut)
{
    char name[200];

    memset(name, 'x', sizeof(name));
    name[sizeof(name) - 1] = '\0';
    ck_assert_uint_eq(strlen(name_of("sqlite", name)), 63);
}
END_TEST

START_TEST(half_a_character_is_no_name)
{
    char name[300];
    const struct uva__database database = {.driver = "sqlite", .name = name};
    json_t *about;

    memset(name, 'x', sizeof(name));
    memcpy(name + 254, "\xc3\xa9", 3); /* the first of two bytes fits */
    about = uva__about_json(&database);
    ck_assert_str_eq(json_string_value(json_object_get(about, "name")), "");
    ck_assert_uint_eq(json_array_size(json_object_get(about, "formats")),
                      UVA__ROWS_FORMATS);
    json_decref(about);
}
END_TEST

static size_t allocations_left;

static void *scarce_malloc(size_t size)
{
    if (allocations_left == 0)
        return NULL;
    allocations_left--;
    return malloc(size);
}

START_TEST(each_lack_of_memory_gives_no_description)
{
    const struct uva__database database = {.driver = "sqlite", .name = "a.db"};
    json_t *about = NULL;
    size_t n;

    json_set_alloc_funcs(scarce_malloc, free);
    for (n = 0; about == NULL && n < 1000; n++) {
        allocations_left = n;
        about = uva__about_json(&database);
    }
    ck_assert_ptr_nonnull(about);
    ck_assert_uint_gt(n, 10);
    allocations_left = SIZE_MAX;
    json_decref(about);
    json_set_alloc_funcs(malloc, free);
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("about");

    tcase_add_test(tc, a_file_is_without_its_folders);
    tcase_add_test(tc, a_secret_in_the_place_of_a_file_is_not_shown);
    tcase_add_test(tc, a_uri_is_without_user_and_password);
    tcase_add_test(tc, a_long_name_is_cut);
    tcase_add_test(tc, half_a_character_is_no_name);
    tcase_add_test(tc, each_lack_of_memory_gives_no_description);
    return suite_main("serve_about", NULL, NULL, tc, NULL);
}
