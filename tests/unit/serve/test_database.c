/* SPDX-License-Identifier: Apache-2.0 */
/* The settings of a database that is only read, however it is named: without
 * them, a query could change it. */
#include "database.h"

#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "support/check_suite.h"

/* The options of a database, "key=value" with a blank after each. */
static const char *settled(struct uva__database *database)
{
    static char text[512];
    struct uva_error error;
    size_t i, size = 0;

    ck_assert_int_eq(uva__database_settle(database, &error), 0);
    text[0] = '\0';
    for (i = 0; i < database->options.count; i++)
        size += (size_t)snprintf(text + size, sizeof(text) - size, "%s=%s ",
                                 database->options.pairs[i].key,
                                 database->options.pairs[i].value);
    uva__database_fini(database);
    return text;
}

static const char *named(const char *driver, const char *name)
{
    return settled(&(struct uva__database){.driver = driver, .name = name});
}

/* The database is named by an option instead. */
static const char *set(const char *driver, const char *option)
{
    struct uva__database database = {.driver = driver};
    struct uva_error error;

    ck_assert_int_eq(uva__database_add(&database.options, option, &error), 0);
    return settled(&database);
}

START_TEST(sqlite_only_reads)
{
    ck_assert_str_eq(named("sqlite", "a%b?#.db"),
                     "uri=file:a%25b%3F%23.db?mode=ro ");
    ck_assert_str_eq(named(NULL, "sqlite:a.db"), "uri=file:a.db?mode=ro ");
    ck_assert_str_eq(named("/x/libadbc_driver_sqlite.so", "file:a.db"),
                     "uri=file:a.db?mode=ro ");
    ck_assert_str_eq(named("sqlite", "file:a.db?mode=rwc"),
                     "uri=file:a.db?mode=rwc&mode=ro ");
    ck_assert_str_eq(named("sqlite", "file:a.db?x=mode=memory#x"),
                     "uri=file:a.db?x=mode=memory&mode=ro#x ");
    ck_assert_str_eq(named("sqlite", "file:a.db?amode=memory"),
                     "uri=file:a.db?amode=memory&mode=ro ");
    ck_assert_str_eq(named("sqlite", "file:a.db#?mode=memory"),
                     "uri=file:a.db?mode=ro#?mode=memory ");
    ck_assert_str_eq(named("sqlite", ":memory:"), "uri=:memory: ");
    ck_assert_str_eq(named("sqlite", "file:a?mode=memory&cache=shared"),
                     "uri=file:a?mode=memory&cache=shared ");
    ck_assert_str_eq(set("sqlite", "uri=a.db"), "uri=file:a.db?mode=ro ");
    ck_assert_str_eq(set(NULL, "uri=sqlite:a.db"), "uri=file:a.db?mode=ro ");
    ck_assert_str_eq(named("sqlite", NULL), "");
    ck_assert_str_eq(settled(&(struct uva__database){.driver = "sqlite",
                                                     .name = "file:a.db",
                                                     .is_writable = true}),
                     "uri=file:a.db ");
}
END_TEST

START_TEST(duckdb_only_reads_and_only_its_file)
{
    const char *safe = "lock_configuration=true access_mode=READ_ONLY "
                       "enable_external_access=false ";
    char text[256];

    (void)snprintf(text, sizeof(text), "path=a.db %s", safe);
    ck_assert_str_eq(named("duckdb", "a.db"), text);
    ck_assert_str_eq(named(NULL, "duckdb:a.db"), text);
    ck_assert_str_eq(set("duckdb", "path=a.db"), text);
    (void)snprintf(text, sizeof(text), "uri=a.db %s", safe);
    ck_assert_str_eq(set("duckdb", "uri=a.db"), text);
    ck_assert_str_eq(named("duckdb", NULL),
                     "lock_configuration=true enable_external_access=false ");
    ck_assert_str_eq(named("duckdb", ":memory:"),
                     "path=:memory: lock_configuration=true "
                     "enable_external_access=false ");
    ck_assert_str_eq(set("duckdb", "access_mode=READ_WRITE"),
                     "access_mode=READ_WRITE lock_configuration=true "
                     "enable_external_access=false ");
    ck_assert_str_eq(set("duckdb", "enable_external_access=true"),
                     "enable_external_access=true lock_configuration=true ");
    ck_assert_str_eq(set("duckdb", "lock_configuration=false"),
                     "lock_configuration=false enable_external_access=false ");
    ck_assert_str_eq(settled(&(struct uva__database){.driver = "duckdb",
                                                     .name = "a.db",
                                                     .is_writable = true}),
                     "path=a.db lock_configuration=true ");
}
END_TEST

/* The URI is as it was given, with its own options. */
START_TEST(postgresql_reads_in_transactions)
{
    static const char *const NAMES[] = {
        "postgresql://h/d", "postgresql://h/d?",
        "host=/x dbname=d options='-c lock_timeout=500'",
        "postgresql:///d?options=-c%20search_path%3Dmine&host=/x#y"};
    struct uva__database database;
    struct uva_error error;
    size_t i, writable;

    for (i = 0; i < 2 * sizeof(NAMES) / sizeof(*NAMES); i++) {
        const char *name = NAMES[i / 2];

        writable = i % 2;
        database = (struct uva__database){
            .driver = "postgresql", .name = name, .is_writable = writable};
        ck_assert_int_eq(uva__database_settle(&database, &error), 0);
        ck_assert_uint_eq(database.options.count, 1);
        ck_assert_str_eq(database.options.pairs[0].value, name);
        ck_assert_uint_eq(database.connections.count, 1 - writable);
        ck_assert_int_eq(uva__database_needs_rights(&database), !writable);
        if (!writable) {
            ck_assert_str_eq(database.connections.pairs[0].key,
                             "adbc.connection.readonly");
            ck_assert_str_eq(database.connections.pairs[0].value, "true");
        }
        uva__database_fini(&database);
    }
    ck_assert_str_eq(set(NULL, "uri=postgresql://h/d"),
                     "uri=postgresql://h/d ");
}
END_TEST

/* The name of a manifest may be any. */
START_TEST(postgresql_is_known_by_its_uri_too)
{
    static const char *const NAMES[] = {"postgresql://h/d", "postgres://h/d"};
    struct uva__database database;
    struct uva_error error;
    char option[64];

    for (size_t i = 0; i < 4; i++) {
        database = (struct uva__database){.driver = "warehouse"};
        (void)snprintf(option, sizeof(option), "uri=%s", NAMES[i / 2]);
        if (i % 2 == 0)
            database.name = NAMES[i / 2];
        else
            ck_assert_int_eq(
                uva__database_add(&database.options, option, &error), 0);
        ck_assert_int_eq(uva__database_settle(&database, &error), 0);
        ck_assert_int_eq(uva__database_kind(&database), UVA__KIND_POSTGRESQL);
        ck_assert(uva__database_needs_rights(&database));
        ck_assert_uint_eq(database.connections.count, 1);
        ck_assert_str_eq(database.connections.pairs[0].key,
                         "adbc.connection.readonly");
        uva__database_fini(&database);
    }
    /* a driver that opens a file of that name opens it for reading alone */
    ck_assert_str_eq(named("sqlite", NAMES[0]),
                     "uri=file:postgresql://h/d?mode=ro ");
}
END_TEST

START_TEST(an_option_cannot_make_a_read_only_connection_write)
{
    struct uva__database database = {.driver = "postgresql",
                                     .trusts_user = true};
    struct uva_error error;

    ck_assert_int_eq(uva__database_add(&database.connections,
                                       "adbc.connection.readonly=false",
                                       &error),
                     0);
    ck_assert_int_eq(uva__database_settle(&database, &error), 0);
    ck_assert_uint_eq(database.connections.count, 1);
    ck_assert_str_eq(database.connections.pairs[0].value, "true");
    ck_assert(!uva__database_needs_rights(&database));
    uva__database_fini(&database);
}
END_TEST

START_TEST(other_databases_are_as_they_were_named)
{
    ck_assert_str_eq(named("other", "x"), "uri=x ");
    ck_assert_str_eq(named("other", NULL), "");
    ck_assert_str_eq(set("other", "uri=x"), "uri=x ");
}
END_TEST

START_TEST(two_names_are_refused)
{
    struct uva__database database = {.driver = "sqlite", .name = "a.db"};
    struct uva_error error;

    ck_assert_int_eq(uva__database_add(&database.options, "uri=b.db", &error),
                     0);
    ck_assert_int_eq(uva__database_settle(&database, &error), EINVAL);
    ck_assert_str_eq(error.message,
                     "'a.db' is a database, and so is --option uri=b.db");
    uva__database_fini(&database);
}
END_TEST

START_TEST(a_key_is_set_once)
{
    struct uva__database database = {.driver = "sqlite"};
    struct uva_error error;

    ck_assert_int_eq(uva__database_add(&database.options, "uri=a.db", &error),
                     0);
    ck_assert_int_eq(uva__database_add(&database.options, "uri=b.db", &error),
                     EINVAL);
    ck_assert_str_eq(error.message, "'uri=b.db': 'uri' is set already");
    ck_assert_int_eq(uva__database_add(&database.options, "ur=b.db", &error),
                     0);
    ck_assert_str_eq(settled(&database), "uri=file:a.db?mode=ro ur=b.db ");
}
END_TEST

int main(void)
{
    return suite_main(
        "serve_database", NULL, NULL,
        suite_tests("read only", sqlite_only_reads,
                    duckdb_only_reads_and_only_its_file,
                    postgresql_reads_in_transactions,
                    postgresql_is_known_by_its_uri_too,
                    an_option_cannot_make_a_read_only_connection_write,
                    other_databases_are_as_they_were_named,
                    two_names_are_refused, a_key_is_set_once, NULL),
        NULL);
}
