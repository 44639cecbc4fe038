/* SPDX-License-Identifier: Apache-2.0 */
/* Drivers in environments that are made for each test: of the fake driver, in
 * the folders where Python and dbc have them. */
#define _GNU_SOURCE
#include <check.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "adbc/environment.h"
#include "adbc/library.h"
#include "adbc/manifest.h"
#include "support/check_suite.h"
#include "support/fake_driver.h"

#define FAKE UVA_TEST_BUILD "/tests/drivers/libadbc_driver_fake.so"

static char root[] = "/tmp/uva_environment_XXXXXX";
static char found[PATH_MAX];
static struct uva__adbc_failure failure;

/* Gives a path in the folder of the test. */
static const char *at(const char *rest)
{
    static char path[2][PATH_MAX];
    static int turn;

    turn = 1 - turn;
    (void)snprintf(path[turn], PATH_MAX, "%s/%s", root, rest);
    return path[turn];
}

static void run(const char *command, const char *rest)
{
    char line[PATH_MAX + 100];

    (void)snprintf(line, sizeof(line), "%s '%s'", command, at(rest));
    ck_assert_int_eq(system(line), 0);
}

static void make_folder(const char *rest)
{
    run("/bin/mkdir -p", rest);
}

/* Makes a file, or, with `to`, a link. */
static const char *make(const char *folder, const char *name, const char *to)
{
    static char path[PATH_MAX];
    FILE *file;

    make_folder(folder);
    (void)snprintf(path, sizeof(path), "%s/%s/%s", root, folder, name);
    if (to != NULL) {
        ck_assert_int_eq(symlink(to, path), 0);
        return path;
    }
    file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    ck_assert_int_eq(fclose(file), 0);
    ck_assert_int_eq(chmod(path, 0755), 0);
    return path;
}

static void write_text(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");

    ck_assert_ptr_nonnull(file);
    ck_assert_int_ge(fputs(text, file), 0);
    ck_assert_int_eq(fclose(file), 0);
}

static void set_up(void)
{
    fake_driver_reset();
    (void)strcpy(root + strlen(root) - 6, "XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(root));
    (void)unsetenv("ADBC_DRIVER_PATH");
    (void)unsetenv("VIRTUAL_ENV");
    (void)unsetenv("CONDA_PREFIX");
    (void)unsetenv("PYENV_VERSION");
    ck_assert_int_eq(setenv("XDG_CONFIG_HOME", root, 1), 0);
    ck_assert_int_eq(setenv("HOME", at("home"), 1), 0);
}

static void tear_down(void)
{
    ck_assert_int_eq(setenv("PATH", "/usr/bin:/bin", 1), 0);
    run("rm -r", "");
    uva__adbc_failure_fini(&failure);
    memset(&failure, 0, sizeof(failure));
}

/* No Python but the test's is seen. */
static void search_in(const char *rest)
{
    ck_assert_int_eq(setenv("PATH", at(rest), 1), 0);
}

static void finds(const char *name, const char *rest)
{
    ck_assert(uva__adbc_environment_find(name, found, sizeof(found)));
    ck_assert_str_eq(found, at(rest));
}

static void finds_none(const char *name)
{
    ck_assert(!uva__adbc_environment_find(name, found, sizeof(found)));
}

#define PACKAGE "lib/python3.11/site-packages/adbc_driver_fake"
#define LIBRARY "libadbc_driver_fake.so"

/* ---- packages ----------------------------------------------------------- */

static const char *const layouts[] = {
    "lib/python3.11/site-packages", "lib64/python3.9/site-packages",
    "lib/python3/dist-packages", "local/lib/python3.13/dist-packages",
    "lib/python3.40/site-packages"};

START_TEST(packages_of_an_environment_are_found)
{
    char folder[100], path[150];

    (void)snprintf(folder, sizeof(folder), "venv/%s/adbc_driver_fake",
                   layouts[_i]);
    (void)snprintf(path, sizeof(path), "%s/" LIBRARY, folder);
    (void)make(folder, LIBRARY, FAKE);
    search_in("none");
    finds_none("fake");
    (void)setenv("VIRTUAL_ENV", at("venv"), 1);
    finds("fake", path);
    finds_none("other");
    (void)unsetenv("VIRTUAL_ENV");
    (void)setenv("CONDA_PREFIX", at("venv"), 1);
    finds("fake", path);
}
END_TEST

START_TEST(the_python_of_the_path_tells_its_folder)
{
    (void)make("venv/bin", "python3", NULL);
    (void)make("venv/" PACKAGE, LIBRARY, FAKE);
    search_in("none:/nonexistent::");
    finds_none("fake");
    search_in("venv/bin");
    finds("fake", "venv/" PACKAGE "/" LIBRARY);
    ck_assert_int_eq(rename(at("venv/bin/python3"), at("venv/bin/python")), 0);
    finds("fake", "venv/" PACKAGE "/" LIBRARY);
    ck_assert_int_eq(chmod(at("venv/bin/python"), 0644), 0);
    if (geteuid() != 0)
        finds_none("fake");
    ck_assert_int_eq(chdir(root), 0);
    (void)make("bin", "python3", NULL);
    ck_assert_int_eq(setenv("PATH", "bin", 1), 0); /* it has no folder */
    finds_none("fake");
    ck_assert_int_eq(unsetenv("PATH"), 0);
    finds_none("fake");
}
END_TEST

START_TEST(the_folder_of_a_linked_python_is_looked_at_too)
{
    (void)make("real/bin", "python3.11", NULL);
    (void)make("real/" PACKAGE, LIBRARY, FAKE);
    (void)make("bin", "python3", at("real/bin/python3.11"));
    search_in("bin");
    finds("fake", "real/" PACKAGE "/" LIBRARY);
}
END_TEST

START_TEST(a_shim_of_pyenv_stands_for_a_version)
{
    (void)make("pyenv/shims", "python3", NULL);
    (void)make("pyenv/versions/3.11.9/" PACKAGE, LIBRARY, FAKE);
    search_in("pyenv/shims");
    finds_none("fake");
    write_text(make("pyenv", "version", NULL), "\n");
    finds_none("fake");
    write_text(at("pyenv/version"), "3.11.9:3.12.1\n");
    finds("fake", "pyenv/versions/3.11.9/" PACKAGE "/" LIBRARY);
    (void)setenv("PYENV_VERSION", "3.10.1", 1);
    finds_none("fake");
}
END_TEST

START_TEST(packages_of_the_user_are_found_last)
{
    (void)make("home/.local/" PACKAGE, LIBRARY, FAKE);
    search_in("none");
    finds("fake", "home/.local/" PACKAGE "/" LIBRARY);
    (void)make("venv/" PACKAGE, LIBRARY, FAKE);
    (void)setenv("VIRTUAL_ENV", at("venv"), 1);
    finds("fake", "venv/" PACKAGE "/" LIBRARY);
    (void)unsetenv("VIRTUAL_ENV");
    (void)unsetenv("HOME");
    finds_none("fake");
}
END_TEST

START_TEST(names_that_are_no_names_are_not_looked_for)
{
    char name[PATH_MAX];

    (void)setenv("VIRTUAL_ENV", at("venv"), 1);
    memset(name, 'x', sizeof(name) - 1);
    name[sizeof(name) - 1] = '\0';
    finds_none(name);
    finds_none("");
    finds_none("../fake");
    (void)setenv("VIRTUAL_ENV", name, 1); /* too long to be a folder */
    (void)setenv("PATH", name, 1);
    finds_none("fake");
    name[PATH_MAX - 4] = '\0';
    (void)setenv("VIRTUAL_ENV", name, 1);
    (void)setenv("HOME", name, 1);
    finds_none("fake");
    finds_none("duckdb");
}
END_TEST

/* ---- modules and manifests ---------------------------------------------- */

static const char *const modules[][2] = {
    {"venv/lib/python3.11/site-packages", "_duckdb.cpython-311-x.so"},
    {"venv/lib/python3.11/site-packages/duckdb", "duckdb.cpython-311-x.so"}};

START_TEST(the_module_of_duckdb_is_found)
{
    char path[PATH_MAX];

    (void)make(modules[_i][0], "_duckdb.py", NULL);
    (void)make(modules[_i][0], modules[_i][1], NULL);
    (void)snprintf(path, sizeof(path), "%s/%s", modules[_i][0], modules[_i][1]);
    (void)setenv("VIRTUAL_ENV", at("venv"), 1);
    finds("duckdb", path);
    finds_none("other");
}
END_TEST

START_TEST(what_dbc_installs_comes_before_packages)
{
    struct AdbcDriver driver;
    char text[PATH_MAX];

    (void)make("venv/lib/python3.11/site-packages/adbc_driver_mine",
               "libadbc_driver_mine.so", "/nonexistent.so");
    (void)snprintf(text, sizeof(text), "[Driver]\nshared = '%s'\n", FAKE);
    write_text(make("venv/etc/adbc/drivers", "mine.toml", NULL), text);
    (void)setenv("VIRTUAL_ENV", at("venv"), 1);
    finds("mine", "venv/etc/adbc/drivers/mine.toml");
    ck_assert_int_eq(uva__adbc_driver_load("mine", NULL, &driver, &failure), 0);
    ck_assert(driver.StatementExecuteQuery != NULL);
}
END_TEST

START_TEST(a_package_is_loaded_by_its_name)
{
    struct AdbcDriver driver;

    (void)make("venv/" PACKAGE, LIBRARY, FAKE);
    (void)setenv("VIRTUAL_ENV", at("venv"), 1);
    ck_assert_int_eq(uva__adbc_driver_load("fake", NULL, &driver, &failure), 0);
    ck_assert(driver.StatementExecuteQuery != NULL);
}
END_TEST

/* ---- the library of Python ---------------------------------------------- */

START_TEST(a_module_needs_the_library_of_its_version)
{
    static const struct {
        const char *path, *needed;
    } paths[] = {
        {"/a/_duckdb.cpython-399-x86_64-linux-gnu.so", "libpython3.99.so.1.0"},
        {"_duckdb.cpython-399t-x.so", "libpython3.99t.so.1.0"},
        {"/a.cpython-399-x/libduckdb.so", ""},
        {"/a/_duckdb.cpython-3-x.so", ""},
        {"/a/_duckdb.cpython-399999999-x.so", ""},
        {"/a/_duckdb.abi3.so", ""}};
    char needed[UVA__ADBC_NAME];

    for (size_t i = 0; i < sizeof(paths) / sizeof(*paths); i++) {
        needed[0] = '\0';
        ck_assert(!uva__adbc_environment_load_python(paths[i].path, needed,
                                                     sizeof(needed)));
        ck_assert_str_eq(needed, paths[i].needed);
    }
}
END_TEST

START_TEST(the_library_of_python_is_found_beside_it)
{
    char needed[UVA__ADBC_NAME];

    (void)make("venv/lib", "libpython3.99.so.1.0", FAKE);
    (void)setenv("VIRTUAL_ENV", at("venv"), 1);
    ck_assert(uva__adbc_environment_load_python("a.cpython-399-x.so", needed,
                                                sizeof(needed)));
}
END_TEST

START_TEST(a_module_without_its_library_is_explained)
{
    struct AdbcDriver driver;
    const char *path = make("a", "_duckdb.cpython-398-x.so", NULL);

    ck_assert_int_eq(uva__adbc_driver_load(path, NULL, &driver, &failure),
                     ENOENT);
    ck_assert_ptr_nonnull(
        strstr(failure.error.message, "needs libpython3.98.so.1.0"));
    ck_assert_ptr_nonnull(strstr(failure.error.message, "dbc install duckdb"));
}
END_TEST

/* ---- texts -------------------------------------------------------------- */

START_TEST(the_error_says_where_it_looked_and_what_installs_it)
{
    struct AdbcDriver driver;

    static const struct {
        const char *name, *install;
    } names[] = {{"duckdb", "dbc install duckdb, or pip install duckdb;"},
                 {"snowflake", "dbc install snowflake, or pip install "
                               "adbc-driver-snowflake;"},
                 {"other", "dbc install other;"}};

    (void)make("bin", "python3", NULL);
    search_in("bin");
    (void)setenv("VIRTUAL_ENV", at("venv"), 1);
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
        ck_assert_int_eq(
            uva__adbc_driver_load(names[i].name, NULL, &driver, &failure),
            ENOENT);
        ck_assert_ptr_nonnull(strstr(failure.error.message, names[i].install));
        ck_assert_ptr_nonnull(strstr(failure.error.message, at("venv)")));
        ck_assert_ptr_nonnull(
            strstr(failure.error.message, at("bin/python3)")));
    }
    (void)unsetenv("VIRTUAL_ENV");
    search_in("none");
    ck_assert_int_eq(uva__adbc_driver_load("other", NULL, &driver, &failure),
                     ENOENT);
    ck_assert_ptr_nonnull(strstr(failure.error.message,
                                 "$VIRTUAL_ENV (not set), the Python of PATH "
                                 "(there is none)"));
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("environment");

    tcase_add_loop_test(tc, packages_of_an_environment_are_found, 0,
                        sizeof(layouts) / sizeof(*layouts));
    tcase_add_loop_test(tc, the_module_of_duckdb_is_found, 0, 2);
    suite_add(tc, the_python_of_the_path_tells_its_folder,
              the_folder_of_a_linked_python_is_looked_at_too,
              a_shim_of_pyenv_stands_for_a_version,
              packages_of_the_user_are_found_last,
              names_that_are_no_names_are_not_looked_for,
              what_dbc_installs_comes_before_packages,
              a_package_is_loaded_by_its_name,
              a_module_needs_the_library_of_its_version,
              the_library_of_python_is_found_beside_it,
              a_module_without_its_library_is_explained,
              the_error_says_where_it_looked_and_what_installs_it, NULL);
    return suite_main("environment", set_up, tear_down, tc, NULL);
}
