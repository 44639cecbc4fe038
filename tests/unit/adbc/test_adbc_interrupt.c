/* SPDX-License-Identifier: Apache-2.0 */
/* The extension of SQLite in a connection: with a double of the driver, which
 * refuses each step in turn, and with the driver that scripts/bootstrap
 * installs; the places where its file is found; its table of functions beside
 * that of <sqlite3ext.h>. */
#define _GNU_SOURCE
#include <check.h>
#include <dlfcn.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <uv.h>

#include "adbc/interrupt.h"
#include "support/check_suite.h"
#include "uvarrow/adbc.h"
#if __has_include(<sqlite3ext.h>)
#include <sqlite3ext.h>
_Static_assert(offsetof(struct sqlite3_api_routines, interruptx) ==
                   offsetof(struct uva__sqlite_api, interrupt),
               "where sqlite3_interrupt() is");
_Static_assert(SQLITE_OK_LOAD_PERMANENTLY == UVA__SQLITE_LOADED_FOR_GOOD,
               "the result of the extension");
#endif

/* ---- a double of the driver ---------------------------------------------- */

/* A connection of the double. */
static struct {
    char said[300];       /* the options in order: "path enabled=true ..." */
    const char *refuses;  /* an option, or one with its value; may be NULL */
    bool is_on;           /* extensions are loaded */
    bool lies;            /* it does not load, and reports success */
    char path[4096];      /* of the extension */
    struct sqlite3 *last; /* that was interrupted */
} fake;

static struct AdbcDriver driver;
static struct AdbcConnection connection = {.private_driver = &driver};
static char handle; /* stands for a connection of SQLite */
static int errors;  /* live */

static void set_up(void)
{
    memset(&fake, 0, sizeof(fake));
    errors = 0;
}

static void fake_interrupt(struct sqlite3 *db)
{
    fake.last = db;
}

static void fake_load(void)
{
    const struct uva__sqlite_api api = {.interrupt = fake_interrupt};
    int (*init)(struct sqlite3 *, char **, const struct uva__sqlite_api *);
    void *file = dlopen(fake.path, RTLD_NOW), *symbol;

    ck_assert_ptr_nonnull(file);
    symbol = dlsym(file, UVA__SQLITE_INIT);
    ck_assert_ptr_nonnull(symbol);
    memcpy(&init, &symbol, sizeof(init));
    ck_assert_int_eq(init((struct sqlite3 *)&handle, NULL, &api),
                     UVA__SQLITE_LOADED_FOR_GOOD);
}

static void error_release(struct AdbcError *error)
{
    errors--;
    error->release = NULL;
}

static AdbcStatusCode refuse(struct AdbcError *error)
{
    error->release = error_release;
    errors++;
    return ADBC_STATUS_UNKNOWN;
}

static AdbcStatusCode fake_set(struct AdbcConnection *given, const char *key,
                               const char *value, struct AdbcError *error)
{
    const char *name = strrchr(key, '.') + 1;
    char option[40];

    ck_assert_ptr_eq(given, &connection);
    ck_assert_int_eq(strncmp(key, "adbc.sqlite.load_extension.", 27), 0);
    if (strcmp(name, "enabled") == 0)
        (void)snprintf(option, sizeof(option), "%s=%s", name, value);
    else
        (void)snprintf(option, sizeof(option), "%s", name);
    (void)strcat(strcat(fake.said, option), " ");
    if (fake.refuses != NULL && strcmp(option, fake.refuses) == 0)
        return refuse(error);
    if (strcmp(name, "enabled") == 0)
        fake.is_on = strcmp(value, "true") == 0;
    else if (strcmp(name, "path") == 0)
        (void)snprintf(fake.path, sizeof(fake.path), "%s", value);
    else if (!fake.is_on)
        return refuse(error);
    else if (!fake.lies)
        fake_load();
    return ADBC_STATUS_OK;
}

/* Looks for the extension, and states whether it was found. */
static bool finds(void)
{
    struct uva__interrupt found;

    driver.ConnectionSetOption = fake_set;
    found = uva__interrupt_find(&connection);
    ck_assert_int_eq(errors, 0);
    if (found.call == NULL) {
        ck_assert_ptr_null(found.db);
        return false;
    }
    found.call(found.db);
    ck_assert_ptr_eq(fake.last, &handle);
    return true;
}

START_TEST(loading_is_turned_on_and_off_again)
{
    ck_assert(finds());
    ck_assert_str_eq(fake.said, "path entrypoint enabled=true path entrypoint "
                                "enabled=false ");
    ck_assert(!fake.is_on);
}
END_TEST

START_TEST(loading_that_was_on_stays_on)
{
    fake.is_on = true;
    ck_assert(finds());
    ck_assert_str_eq(fake.said, "path entrypoint ");
    ck_assert(fake.is_on);
}
END_TEST

static const char *const refused[][2] = {
    {"path", "path enabled=true path enabled=false "},
    {"entrypoint",
     "path entrypoint enabled=true path entrypoint enabled=false "},
    {"enabled=true", "path entrypoint enabled=true "},
};

START_TEST(a_driver_that_refuses_has_no_interrupt)
{
    fake.refuses = refused[_i][0];
    ck_assert(!finds());
    ck_assert_str_eq(fake.said, refused[_i][1]);
    ck_assert(!fake.is_on);
}
END_TEST

START_TEST(a_driver_without_options_has_no_interrupt)
{
    driver.ConnectionSetOption = NULL;
    ck_assert(uva__interrupt_find(&connection).call == NULL);
}
END_TEST

START_TEST(what_another_connection_has_loaded_is_not_taken)
{
    (void)strcpy(fake.path, UVA_TEST_EXTENSION);
    fake_load(); /* for another connection */
    fake.is_on = true;
    fake.lies = true;
    ck_assert(!finds());
}
END_TEST

/* ---- the file ------------------------------------------------------------ */

/* The answers of the linker and the system. */
static struct {
    bool is_faked;
    const char *own;     /* the file with the library; NULL: not known */
    const char *program; /* NULL: not known */
    const char *there;   /* the only place of the extension */
    bool lacks_function; /* it is another file */
    bool has_no_name;    /* it is nowhere */
    char looked[20000];  /* all places, each with a space after it */
    int asked;           /* times that a file of an address was */
} linker;

void *__real_dlopen(const char *path, int flags);
void *__wrap_dlopen(const char *path, int flags);
void *__real_dlsym(void *file, const char *name);
void *__wrap_dlsym(void *file, const char *name);
int __real_dladdr(const void *address, Dl_info *out);
int __wrap_dladdr(const void *address, Dl_info *out);
int __real_uv_exepath(char *out, size_t *size);
int __wrap_uv_exepath(char *out, size_t *size);

void *__wrap_dlopen(const char *path, int flags)
{
    if (!linker.is_faked)
        return __real_dlopen(path, flags);
    (void)strcat(strcat(linker.looked, path), " ");
    return linker.there != NULL && strcmp(path, linker.there) == 0
               ? __real_dlopen(UVA_TEST_EXTENSION, flags)
               : NULL;
}

void *__wrap_dlsym(void *file, const char *name)
{
    return linker.lacks_function ? NULL : __real_dlsym(file, name);
}

int __wrap_dladdr(const void *address, Dl_info *out)
{
    if (!linker.is_faked)
        return __real_dladdr(address, out);
    linker.asked++;
    if (linker.asked == 1 && linker.own != NULL) {
        out->dli_fname = linker.own;
        return 1;
    }
    return linker.asked == 1 || linker.has_no_name
               ? 0
               : __real_dladdr(address, out);
}

int __wrap_uv_exepath(char *out, size_t *size)
{
    if (!linker.is_faked)
        return __real_uv_exepath(out, size);
    if (linker.program == NULL)
        return UV_ENOSYS;
    (void)snprintf(out, *size, "%s", linker.program);
    return 0;
}

#define NAME strrchr(UVA_TEST_EXTENSION, '/') + 1

/* Looks for the extension, which is in one place, and states whether the driver
 * was asked to load it. */
static bool is_loaded_from(const char *own, const char *program,
                           const char *there)
{
    linker.is_faked = true;
    linker.own = own;
    linker.program = program;
    linker.there = there;
    linker.looked[0] = '\0';
    linker.asked = 0;
    fake.is_on = fake.lies = true; /* it is the double's, and the first step */
    fake.said[0] = '\0';
    ck_assert(!finds());
    linker.is_faked = false;
    return strcmp(fake.said, "path entrypoint ") == 0;
}

/* Compares the places with those as seen from a folder. */
static void looked_in(const char *folder)
{
    char expected[6000];

    (void)snprintf(expected, sizeof(expected), "%s/%s %s/%s/%s %s ", folder,
                   NAME, folder, UVA_TEST_LIBRARIES, NAME, NAME);
    ck_assert_str_eq(linker.looked, expected);
}

START_TEST(it_lies_beside_the_library)
{
    char folder[] = UVA_TEST_EXTENSION;

    ck_assert(is_loaded_from(folder, NULL, folder));
    ck_assert(!is_loaded_from(folder, NULL, NULL));
    *strrchr(folder, '/') = '\0';
    looked_in(folder);
}
END_TEST

/* Not known; a program as it was called; a program that was moved. */
static const char *const programs[] = {NULL, "uvarrow", "/none/such/uvarrow"};

START_TEST(it_lies_where_a_program_has_its_libraries)
{
    char there[1000];

    (void)snprintf(there, sizeof(there), "/opt/bin/%s/%s", UVA_TEST_LIBRARIES,
                   NAME);
    ck_assert(is_loaded_from(programs[_i], "/opt/bin/uvarrow", there));
    ck_assert(!is_loaded_from(programs[_i], "/opt/bin/uvarrow", NULL));
    looked_in("/opt/bin");
}
END_TEST

static const char *const without_folder[] = {NULL, "uvarrow"};

START_TEST(it_lies_where_the_system_looks)
{
    char expected[100];

    ck_assert(is_loaded_from(NULL, without_folder[_i], NAME));
    (void)snprintf(expected, sizeof(expected), "%s ", NAME);
    ck_assert_str_eq(linker.looked, expected);
}
END_TEST

START_TEST(another_file_of_that_name_is_not_loaded)
{
    linker.lacks_function = _i == 0;
    linker.has_no_name = _i == 1;
    ck_assert(!is_loaded_from(NULL, NULL, NAME));
    ck_assert_str_eq(fake.said, "");
}
END_TEST

/* ---- the real driver ----------------------------------------------------- */

static const char *const MEMORY = ":memory:";

static AdbcStatusCode real_set(struct AdbcConnection *given, const char *name,
                               const char *value)
{
    struct AdbcDriver *real = given->private_driver;
    struct AdbcError error = {0};
    char key[64];
    AdbcStatusCode status;

    (void)snprintf(key, sizeof(key), "adbc.sqlite.load_extension.%s", name);
    status = real->ConnectionSetOption(given, key, value, &error);
    if (error.release != NULL)
        error.release(&error);
    return status;
}

START_TEST(the_driver_loads_no_other_extension_behind_it)
{
    struct AdbcDriver real;
    struct AdbcDatabase database = {.private_driver = &real};
    struct AdbcConnection own = {.private_driver = &real};
    struct AdbcError error = {0};
    struct uva__interrupt found;

    ck_assert_int_eq(uva_adbc_load_driver(UVA_TEST_DRIVER, NULL, &real, NULL),
                     0);
    ck_assert_int_eq(real.DatabaseNew(&database, &error), 0);
    ck_assert_int_eq(real.DatabaseSetOption(&database, "uri", MEMORY, &error),
                     0);
    ck_assert_int_eq(real.DatabaseInit(&database, &error), 0);
    ck_assert_int_eq(real.ConnectionNew(&own, &error), 0);
    ck_assert_int_eq(real.ConnectionInit(&own, &database, &error), 0);
    for (int i = 0; i < 2; i++) { /* it may be there already */
        found = uva__interrupt_find(&own);
        ck_assert(found.call != NULL);
        ck_assert_ptr_nonnull(found.db);
        found.call(found.db);
        ck_assert_int_eq(real_set(&own, "path", UVA_TEST_EXTENSION), 0);
        ck_assert_int_ne(real_set(&own, "entrypoint", UVA__SQLITE_INIT), 0);
    }
    ck_assert_int_eq(real.ConnectionRelease(&own, &error), 0);
    ck_assert_int_eq(real.DatabaseRelease(&database, &error), 0);
    ck_assert_int_eq(real.release(&real, &error), 0);
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("interrupt");

    tcase_add_test(tc, loading_is_turned_on_and_off_again);
    tcase_add_test(tc, loading_that_was_on_stays_on);
    tcase_add_loop_test(tc, a_driver_that_refuses_has_no_interrupt, 0, 3);
    tcase_add_test(tc, a_driver_without_options_has_no_interrupt);
    tcase_add_test(tc, what_another_connection_has_loaded_is_not_taken);
    tcase_add_test(tc, it_lies_beside_the_library);
    tcase_add_loop_test(tc, it_lies_where_a_program_has_its_libraries, 0, 3);
    tcase_add_loop_test(tc, it_lies_where_the_system_looks, 0, 2);
    tcase_add_loop_test(tc, another_file_of_that_name_is_not_loaded, 0, 2);
    if (access(UVA_TEST_DRIVER, R_OK) == 0)
        tcase_add_test(tc, the_driver_loads_no_other_extension_behind_it);
    return suite_main("adbc_interrupt", set_up, NULL, tc, NULL);
}
