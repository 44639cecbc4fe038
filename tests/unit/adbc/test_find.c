/* SPDX-License-Identifier: Apache-2.0 */
/* Drivers by path, by name, by manifest, and entry points by guessing. The
 * folders are made for each test. */
#define _GNU_SOURCE
#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "adbc/library.h"
#include "adbc/manifest.h"
#include "adbc/uri.h"
#include "support/check_suite.h"
#include "support/fake_driver.h"
#include "support/faulty_libc.h"
#include "uvarrow/adbc.h"

#define DRIVERS UVA_TEST_BUILD "/tests/drivers"
#define FAKE    DRIVERS "/libadbc_driver_fake.so"

static char folder[] = "/tmp/uva_find_XXXXXX";
static struct AdbcDriver driver;
static struct uva__adbc_failure failure;

static void set_up(void)
{
    fake_driver_reset();
    (void)strcpy(folder + strlen(folder) - 6, "XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    ck_assert_int_eq(unsetenv("ADBC_DRIVER_PATH"), 0);
    ck_assert_int_eq(setenv("XDG_CONFIG_HOME", folder, 1), 0);
}

static void tear_down(void)
{
    char command[100];

    (void)snprintf(command, sizeof(command), "rm -r %s", folder);
    ck_assert_int_eq(system(command), 0);
    uva__adbc_failure_fini(&failure);
}

/* Writes a file in the folder; gives its path. */
static const char *write_file(const char *name, const char *text)
{
    static char path[200];
    FILE *file;

    (void)snprintf(path, sizeof(path), "%s/%s", folder, name);
    file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    ck_assert_int_ge(fputs(text, file), 0);
    ck_assert_int_eq(fclose(file), 0);
    return path;
}

static void loads(const char *name, const char *entrypoint)
{
    const int code = uva__adbc_driver_load(name, entrypoint, &driver, &failure);

    ck_assert_msg(code == 0, "%s: %s", name, failure.error.message);
    ck_assert(driver.StatementExecuteQuery != NULL);
    ck_assert_int_eq(failure.error.code, 0); /* of earlier attempts */
}

static void fails(const char *name, const char *entrypoint, int code,
                  const char *text)
{
    ck_assert_int_eq(uva__adbc_driver_load(name, entrypoint, &driver, &failure),
                     code);
    ck_assert_int_eq(failure.error.code, code);
    ck_assert_msg(strstr(failure.error.message, text) != NULL,
                  "\"%s\" lacks \"%s\"", failure.error.message, text);
}

/* ---- libraries ---------------------------------------------------------- */

START_TEST(a_path_is_loaded)
{
    loads(FAKE, NULL);
    loads(FAKE, "fake_other_init");
}
END_TEST

START_TEST(a_program_may_load_a_driver)
{
    struct uva_error error = {0};

    ck_assert_int_eq(uva_adbc_load_driver(FAKE, NULL, &driver, &error), 0);
    ck_assert(driver.StatementExecuteQuery != NULL);
    ck_assert_int_eq(uva_adbc_load_driver("/no/such", NULL, &driver, &error),
                     ENOENT);
    ck_assert_ptr_nonnull(strstr(error.message, "/no/such"));
    ck_assert_int_eq(uva_adbc_load_driver("/no/such", NULL, &driver, NULL),
                     ENOENT);
    ck_assert_int_eq(uva_adbc_load_driver(NULL, NULL, &driver, &error), EINVAL);
    ck_assert_int_eq(uva_adbc_load_driver(FAKE, NULL, NULL, &error), EINVAL);
}
END_TEST

START_TEST(a_uri_names_its_driver)
{
    static const struct {
        const char *uri, *driver, *rest;
    } uris[] = {
        {"sqlite:flights.db", "sqlite", "flights.db"},
        {"postgresql://a:b@c/d", "postgresql", "postgresql://a:b@c/d"},
        {"postgres://c", "postgresql", "postgres://c"},
        {"grpc+tls://c:1", "flightsql", "grpc+tls://c:1"},
        {"a-b.c_2:", "a-b.c_2", ""},
        {"plain", NULL, NULL},
        {"/a/b:c", NULL, NULL},
        {"2a:b", NULL, NULL},
        {":a", NULL, NULL},
        {"", NULL, NULL},
    };
    char text[40], *name;
    int scheme;

    for (size_t i = 0; i < sizeof(uris) / sizeof(*uris); i++) {
        (void)strcpy(text, uris[i].uri);
        scheme = uva__adbc_uri_scheme(text);
        ck_assert_int_eq(scheme > 0, uris[i].driver != NULL);
        if (scheme == 0)
            continue;
        name = uva__adbc_uri_driver(text, scheme);
        ck_assert_str_eq(name, uris[i].driver);
        ck_assert_str_eq(uva__adbc_uri_rest(text, scheme), uris[i].rest);
        free(name);
    }
}
END_TEST

START_TEST(what_is_no_driver_is_refused)
{
    fails(NULL, NULL, EINVAL, "no driver");
    fails("", NULL, EINVAL, "no driver");
    fails("/no/such.so", NULL, ENOENT, "/no/such.so");
    fails("/no/such", NULL, ENOENT, "/no/such");
    fails("libm.so.6", NULL, EINVAL, "is no ADBC driver");
    fails(FAKE, "Nothing", EINVAL, "'Nothing'");
    fails(FAKE, "fake_empty_init", EPROTO, "lacks functions");
    fails("uv", NULL, EINVAL, "is no ADBC driver"); /* found by the linker */
    fails("no-such-driver", NULL, ENOENT, "ADBC_DRIVER_PATH (not set)");
}
END_TEST

START_TEST(what_a_failed_init_leaves_in_the_driver_is_not_read)
{
    fails(FAKE, "fake_garbage_init", EIO, "the driver does not start");
    ck_assert(driver.release == NULL && driver.ErrorGetDetail == NULL);
}
END_TEST

START_TEST(a_driver_must_have_all_its_functions)
{
    fake_driver.lacks = _i;
    fails(FAKE, NULL, EPROTO, "lacks functions");
    ck_assert_int_eq(atomic_load(&fake_driver.drivers), 0);
    ck_assert(driver.DatabaseNew == NULL && driver.ConnectionNew == NULL);
}
END_TEST

/* Gives the library another name in the folder. */
static const char *library_as(const char *name)
{
    static char path[700];

    (void)snprintf(path, sizeof(path), "%s/%s", folder, name);
    ck_assert_int_eq(symlink(FAKE, path), 0);
    return path;
}

START_TEST(a_library_may_have_any_name)
{
    char name[300];

    loads(library_as("libadbc-driver-fake.so.1"), NULL);
    loads(library_as("AdbcDriver_fake.so"), NULL);
    fails(library_as("other.so"), NULL, EINVAL, "is no ADBC driver");
    memset(name, 'a', 240);
    (void)strcpy(name + 240, ".so");
    fails(library_as(name), NULL, EINVAL, "is no ADBC driver");
    ck_assert_int_eq(setenv("ADBC_DRIVER_PATH", folder, 1), 0);
    (void)library_as("libadbc_driver.so");
    fails("adbc_driver", NULL, EINVAL, "is no ADBC driver");
    fails("folder/", NULL, ENOENT, "folder/");
    (void)library_as("plain");
    loads("plain", "fake_other_init");
}
END_TEST

START_TEST(an_old_driver_is_asked_again)
{
    fake_driver.is_old = true;
    loads(FAKE, NULL);
    ck_assert(driver.StatementCancel == NULL);
}
END_TEST

static const char *const names[] = {"fake", "adbc_driver_fake",
                                    "libadbc_driver_fake"};

START_TEST(a_name_is_found_in_the_environment)
{
    char list[300];

    (void)snprintf(list, sizeof(list), "/no/such::%s:%s", folder, DRIVERS);
    ck_assert_int_eq(setenv("ADBC_DRIVER_PATH", list, 1), 0);
    loads(names[_i], NULL);
    fails("other", NULL, ENOENT, DRIVERS);
}
END_TEST

START_TEST(a_folder_that_is_too_long_is_passed_over)
{
    char *list = malloc(20000);

    memset(list, 'x', 19999);
    (void)strcpy(list + 9999, ":" DRIVERS);
    ck_assert_int_eq(setenv("ADBC_DRIVER_PATH", list, 1), 0);
    loads("fake", NULL);
    memset(list, 'x', 19999);
    list[5000] = '\0';
    ck_assert_int_eq(setenv("XDG_CONFIG_HOME", list, 1), 0);
    loads("fake", NULL);
    list[4090] = '\0';
    ck_assert_int_eq(setenv("ADBC_DRIVER_PATH", list, 1), 0);
    fails("fake", NULL, ENOENT, "there is no driver");
    fails(list, NULL, ENOENT, "there is no driver");
    list[0] = '/';
    fails(list, NULL, ENOENT, "cannot load");
    list[4090] = 'x';
    fails(list, NULL, ENAMETOOLONG, "too long");
    free(list);
}
END_TEST

/* ---- manifests ---------------------------------------------------------- */

#define HEAD "manifest_version = 1\nname = 'Fake'\n"
#define OTHER                                                                  \
    "x = [1, \"]\", # comment\n [2.5, {y = 1}],\n]\n\n[[Files]]\nz = true\n"

static const char *const manifests[] = {
    HEAD OTHER "[Driver]\nshared = \"" FAKE "\"\n",
    HEAD "[Driver]\r\nentrypoint = 'fake_other_init' # this\r\n"
         "[Driver.shared]\r\nlinux_amd64 = '" FAKE "'\r\nlinux_arm64 = '" FAKE
         "'\nlinux_riscv=\"" FAKE "\"\nlinux_s390x = '" FAKE "'",
    "Driver\t. \"shared\"='" FAKE "'\n a-b_c = 1 # the end",
    "[Driver]\nshared = { linux_amd64 = '" FAKE "', linux_arm64 = '" FAKE
    "', linux_riscv = '" FAKE "', linux_s390x = '" FAKE
    "' }\n[Empty]\na = {}\nb=[]\nc = \"\\\"\\\\\\n\\t\"",
};

START_TEST(a_manifest_leads_to_a_library)
{
    loads(write_file("other.toml", manifests[_i]), NULL);
    ck_assert_int_eq(setenv("ADBC_DRIVER_PATH", folder, 1), 0);
    loads("other", NULL);
}
END_TEST

START_TEST(a_manifest_is_found_in_the_users_folder)
{
    char path[200];

    (void)snprintf(path, sizeof(path), "%s/adbc", folder);
    ck_assert_int_eq(mkdir(path, 0700), 0);
    (void)snprintf(path, sizeof(path), "%s/adbc/drivers", folder);
    ck_assert_int_eq(mkdir(path, 0700), 0);
    (void)write_file("adbc/drivers/mine.toml", manifests[0]);
    loads("mine", NULL);
    (void)snprintf(path, sizeof(path), "%s/adbc/drivers/mine", folder);
    loads(path, NULL); /* absolute, without an extension */
    ck_assert_int_eq(unsetenv("XDG_CONFIG_HOME"), 0);
    ck_assert_int_eq(setenv("HOME", "", 1), 0);
    fails("mine", NULL, ENOENT, "there is no driver");
    ck_assert_int_eq(unsetenv("HOME"), 0);
    fails("mine", NULL, ENOENT, "there is no driver");
    ck_assert_int_eq(setenv("XDG_CONFIG_HOME", "", 1), 0);
    fails("mine", NULL, ENOENT, "there is no driver");
    ck_assert_int_eq(setenv("HOME", folder, 1), 0);
    fails("mine", NULL, ENOENT, "there is no driver");
}
END_TEST

static const struct {
    const char *text;
    int code;
    const char *why;
} bad[] = {
    {"", EINVAL, "empty"},
    {"name = 'x'", EINVAL, "names no library"},
    {"manifest_version = 2\n[Driver]\nshared = 'x'", EINVAL, "version 2"},
    {"[Driver.shared]\nwindows_amd64 = 'x.dll'", ENOENT, "this platform"},
    {"[Driver]\nshared = '/no/such.so'", ENOENT, "/no/such.so"},
    {"[Driver]\nshared = \"x", EINVAL, "line 2"},
    {"[Driver]\nshared = \"x\\q\"", EINVAL, "line 2"},
    {"[Driver]\n\nshared = \"\"\"x\"\"\"", EINVAL, "line 3"},
    {"[Driver\nshared = 'x'", EINVAL, "line 1"},
    {"[[Driver]\nshared = 'x'", EINVAL, "line 1"},
    {"= 'x'", EINVAL, "line 1"},
    {"'x\n' = 'x'", EINVAL, "line 1"},
    {"x", EINVAL, "line 1"},
    {"x =", EINVAL, "line 1"},
    {"x = 'a' b", EINVAL, "line 1"},
    {"x = 1\r", EINVAL, "line 1"},
    {"x = {= 1}", EINVAL, "line 1"},
    {"x = {a = }", EINVAL, "line 1"},
    {"x = {a 1}", EINVAL, "line 1"},
    {"[]", EINVAL, "line 1"},
    {"x = {a}", EINVAL, "line 1"},
    {"x = {a = 1", EINVAL, "line 1"},
    {"x = [1 = 2]", EINVAL, "names no library"},
    {"x = [1", EINVAL, "line 1"},
    {"x = ['a' 'b']", EINVAL, "line 1"},
    {"x = [,]", EINVAL, "line 1"},
    {"x = [[[[[[[[[[[[1]]]]]]]]]]]]", EINVAL, "line 1"},
};

START_TEST(a_bad_manifest_is_refused)
{
    fails(write_file("bad.toml", bad[_i].text), NULL, bad[_i].code,
          bad[_i].why);
    ck_assert_int_eq(setenv("ADBC_DRIVER_PATH", folder, 1), 0);
    fails("bad", NULL, bad[_i].code, _i == 3 ? "no driver" : bad[_i].why);
}
END_TEST

START_TEST(long_keys_and_texts_are_refused)
{
    char text[10000];

    memset(text, 'k', sizeof(text));
    (void)strcpy(text + 300, " = 1");
    fails(write_file("long.toml", text), NULL, EINVAL, "line 1");
    (void)memcpy(text, "x = '", 5);
    memset(text + 5, 'v', 9000);
    (void)strcpy(text + 9005, "'");
    fails(write_file("long.toml", text), NULL, EINVAL, "line 1");
    memset(text, 'k', 255);
    (void)strcpy(text + 255, ".a = 1");
    fails(write_file("long.toml", text), NULL, EINVAL, "line 1");
    (void)memcpy(text, "Driver.entrypoint = '", 21);
    memset(text + 21, 'v', 256);
    (void)strcpy(text + 277, "'");
    fails(write_file("long.toml", text), NULL, EINVAL, "line 1");
    fails("/no/such.toml", NULL, ENOENT, "cannot read");
}
END_TEST

START_TEST(a_manifest_needs_memory)
{
    const char *path = write_file("good.toml", manifests[0]);

    faulty_libc_only(1 << 20);
    faulty_libc_fail(1);
    fails(path, NULL, ENOMEM, "good.toml");
    ck_assert(faulty_libc_stop());
    faulty_libc_only(0);
}
END_TEST

START_TEST(a_manifest_has_no_zeroes)
{
    static char path[200];
    FILE *file;

    (void)snprintf(path, sizeof(path), "%s", write_file("zero.toml", ""));
    file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fwrite("x = 1\0\n'", 1, 8, file), 8);
    ck_assert_int_eq(fclose(file), 0);
    fails(path, NULL, EINVAL, "no text");
}
END_TEST

START_TEST(a_manifest_may_not_be_endless)
{
    char *text = malloc((1 << 20) + 2);

    memset(text, '\n', 1 << 20);
    text[1 << 20] = '\0';
    fails(write_file("endless.toml", text), NULL, EINVAL, "too long");
    free(text);
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("find");

    tcase_add_test(tc, a_path_is_loaded);
    tcase_add_test(tc, a_program_may_load_a_driver);
    tcase_add_test(tc, a_uri_names_its_driver);
    tcase_add_test(tc, what_is_no_driver_is_refused);
    tcase_add_test(tc, what_a_failed_init_leaves_in_the_driver_is_not_read);
    tcase_add_test(tc, an_old_driver_is_asked_again);
    tcase_add_test(tc, a_folder_that_is_too_long_is_passed_over);
    tcase_add_test(tc, a_manifest_is_found_in_the_users_folder);
    tcase_add_test(tc, long_keys_and_texts_are_refused);
    tcase_add_test(tc, a_manifest_may_not_be_endless);
    tcase_add_test(tc, a_manifest_has_no_zeroes);
    tcase_add_test(tc, a_manifest_needs_memory);
    tcase_add_test(tc, a_library_may_have_any_name);
    suite_add_loops(tc, 1, 10, a_driver_must_have_all_its_functions, NULL);
    suite_add_loops(tc, 0, 3, a_name_is_found_in_the_environment, NULL);
    suite_add_loops(tc, 0, 4, a_manifest_leads_to_a_library, NULL);
    suite_add_loops(tc, 0, sizeof(bad) / sizeof(*bad),
                    a_bad_manifest_is_refused, NULL);
    return suite_main("find", set_up, tear_down, tc, NULL);
}
