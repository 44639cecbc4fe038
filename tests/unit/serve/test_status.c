/* SPDX-License-Identifier: Apache-2.0 */
/* The status of each failure, as the table of docs/server.md has it. */
#include "status.h"

#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/check_suite.h"
#include "uvarrow/arrow.h"

/* Of an error that a driver states. `sqlstate` and `type` may be NULL. */
static int status(enum uva__kind kind, int code, const char *message,
                  const char *sqlstate, const char *type)
{
    struct uva_pair pairs[4] = {{.key = "adbc.status", .value = "INTERNAL"}};
    char metadata[200];
    size_t size = sizeof(metadata), count = 1;
    struct uva_error error;

    if (sqlstate != NULL)
        pairs[count++] =
            (struct uva_pair){.key = "adbc.sqlstate", .value = sqlstate};
    if (type != NULL)
        pairs[count++] = (struct uva_pair){
            .key = "adbc.detail.duckdb:error_type", .value = type};
    ck_assert_int_eq(uva_metadata_encode(pairs, metadata, &size), 0);
    (void)uva_error_set(&error, code, "%s", message);
    return uva__status_of(kind, &error, metadata);
}

/* ---- the table ----------------------------------------------------------- */

static int of_postgresql(const char *text)
{
    char state[6] = "00000";

    memcpy(state, text, strlen(text));
    return status(UVA__KIND_POSTGRESQL, EIO, "x", state, NULL);
}

/* The type is a detail, or in the text alone. */
static int of_duckdb(const char *text)
{
    char message[100];
    int code;

    (void)snprintf(message, sizeof(message), "the query fails: %s Error: x",
                   text);
    code = status(UVA__KIND_DUCKDB, EIO, message, NULL, NULL);
    ck_assert_int_eq(status(UVA__KIND_DUCKDB, EIO, "x", NULL, text), code);
    return code;
}

static int of_text(enum uva__kind kind, const char *text)
{
    char message[100];

    (void)snprintf(message, sizeof(message), "the query fails: y Error: %s: x",
                   text);
    return status(kind, EIO, message, NULL, NULL);
}

/* A text with a blank is one, another is a type. */
static void column_check(int column, const char *text, int expected)
{
    int got;

    if (column == 0)
        got = of_postgresql(text);
    else if (column == 2)
        got = of_text(UVA__KIND_SQLITE, text);
    else if (strchr(text, ' ') != NULL)
        got = of_text(UVA__KIND_DUCKDB, text);
    else
        got = of_duckdb(text);
    ck_assert_msg(got == expected, "%s: %d", text, got);
}

/* Checks the text between backticks; returns its length. */
static int row_check(char *line, int expected)
{
    int column = -1, count = 0;
    char *at, *end;

    for (at = line + 5; *at != '\0'; at++) {
        column += *at == '|';
        if (*at != '`')
            continue;
        end = strchr(at + 1, '`');
        ck_assert_ptr_nonnull(end);
        *end = '\0';
        column_check(column, at + 1, expected);
        at = end;
        count++;
    }
    return count;
}

START_TEST(the_documents_state_it)
{
    FILE *file = fopen(UVA_TEST_SOURCE "/docs/server.md", "r");
    char line[1000];
    bool is_inside = false;
    int count = 0;

    ck_assert_ptr_nonnull(file);
    while (fgets(line, sizeof(line), file) != NULL) {
        if (strncmp(line, "| status | SQLSTATE", 19) == 0)
            is_inside = true;
        else if (is_inside && line[0] != '|')
            break;
        else if (is_inside && line[2] >= '4' && line[2] <= '5')
            count += row_check(line, atoi(line + 2));
    }
    (void)fclose(file);
    ck_assert_int_eq(count, 43);
}
END_TEST

START_TEST(what_is_in_no_table_is_the_query_s_fault)
{
    ck_assert_int_eq(of_postgresql("22012"), 400);
    ck_assert_int_eq(of_postgresql("42P01"), 400);
    ck_assert_int_eq(of_postgresql("25001"), 400);
    ck_assert_int_eq(of_duckdb("Parser"), 400);
    ck_assert_int_eq(of_duckdb("Invalid Input"), 400);
    ck_assert_int_eq(of_duckdb("OutOfMemoryX"), 400);
    ck_assert_int_eq(of_duckdb("I"), 400);
    ck_assert_int_eq(of_text(UVA__KIND_SQLITE, "no such table: a"), 400);
}
END_TEST

/* ---- without a statement of the database --------------------------------- */

START_TEST(an_errno_decides)
{
    static const struct {
        int code, by_driver, by_us;
    } cases[] = {
        {EIO, 500, 500},       {ENOMEM, 503, 503}, {ESHUTDOWN, 503, 503},
        {ETIMEDOUT, 504, 503}, {EACCES, 403, 403}, {ENOTSUP, 501, 501},
        {EINVAL, 400, 500},    {ENOENT, 400, 500}, {EAGAIN, 400, 500},
        {EMFILE, 400, 503},    {ENFILE, 400, 503}};
    struct uva_error error;
    int code = cases[_i].code;

    (void)uva_error_set(&error, code, "x");
    ck_assert_int_eq(status(UVA__KIND_OTHER, code, "x", NULL, NULL),
                     cases[_i].by_driver);
    ck_assert_int_eq(uva__status_of(UVA__KIND_OTHER, &error, NULL),
                     cases[_i].by_us);
    ck_assert_int_eq(uva__status_of(UVA__KIND_SQLITE, &error, NULL),
                     cases[_i].by_us);
    ck_assert_int_eq(status(UVA__KIND_SQLITE, ENOTSUP, "x", NULL, NULL), 501);
}
END_TEST

START_TEST(a_server_that_is_gone_may_come_back)
{
    ck_assert_int_eq(status(UVA__KIND_POSTGRESQL, EIO, "x", NULL, NULL), 503);
    ck_assert_int_eq(status(UVA__KIND_POSTGRESQL, EINVAL, "x", NULL, NULL),
                     400);
}
END_TEST

START_TEST(without_a_connection_a_client_may_come_back)
{
    const struct uva_pair pairs[] = {
        {.key = "adbc.status", .value = "UNAUTHENTICATED"},
        {.key = "adbc.sqlstate", .value = "42000"},
        {.key = "adbc.step", .value = "connect"},
        {0}};
    struct uva_error error;
    char metadata[200];
    size_t size = sizeof(metadata);

    ck_assert_int_eq(uva_metadata_encode(pairs, metadata, &size), 0);
    (void)uva_error_set(&error, EACCES, "x");
    for (int kind = UVA__KIND_OTHER; kind <= UVA__KIND_POSTGRESQL; kind++)
        ck_assert_int_eq(uva__status_of((enum uva__kind)kind, &error, metadata),
                         503);
}
END_TEST

/* A driver that is not there has no status. */
START_TEST(what_will_fail_again_is_known)
{
    const struct uva_pair pairs[] = {{.key = "adbc.step", .value = "connect"},
                                     {.key = "adbc.status", .value = "IO"}};
    static const struct {
        enum uva__kind kind;
        const char *text;
        size_t pairs; /* that there are */
        bool is_lasting;
    } failures[] = {
        {UVA__KIND_SQLITE, "no driver", 1, true},
        {UVA__KIND_SQLITE, "failed to open 'x'", 2, true},
        {UVA__KIND_SQLITE, "database is locked", 2, false},
        {UVA__KIND_DUCKDB, "Cannot open database", 2, true},
        {UVA__KIND_POSTGRESQL, "no driver", 1, true},
        {UVA__KIND_POSTGRESQL, "Connection refused", 2, false},
        {UVA__KIND_POSTGRESQL, "database \"x\" does not exist", 2, true},
        {UVA__KIND_POSTGRESQL, "password authentication failed", 2, true},
        {UVA__KIND_POSTGRESQL, "the database system is starting up", 2, false},
        {UVA__KIND_OTHER, "x", 2, true},
        {UVA__KIND_OTHER, "x", 0, false},
    };
    struct uva_error error;
    char metadata[200];

    for (size_t i = 0; i < sizeof(failures) / sizeof(*failures); i++) {
        struct uva_pair some[3] = {{0}};
        size_t size = sizeof(metadata);

        memcpy(some, pairs, failures[i].pairs * sizeof(*some));
        ck_assert_int_eq(uva_metadata_encode(some, metadata, &size), 0);
        (void)uva_error_set(&error, EIO, "%s", failures[i].text);
        ck_assert_msg(
            uva__status_is_lasting(failures[i].kind, &error,
                                   failures[i].pairs > 0 ? metadata : NULL) ==
                failures[i].is_lasting,
            "%s", failures[i].text);
    }
    (void)uva_error_set(&error, ETIMEDOUT, "x");
    ck_assert(!uva__status_is_lasting(UVA__KIND_POSTGRESQL, &error, NULL));
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("status");

    tcase_add_test(tc, the_documents_state_it);
    tcase_add_test(tc, what_is_in_no_table_is_the_query_s_fault);
    tcase_add_loop_test(tc, an_errno_decides, 0, 11);
    tcase_add_test(tc, a_server_that_is_gone_may_come_back);
    tcase_add_test(tc, without_a_connection_a_client_may_come_back);
    tcase_add_test(tc, what_will_fail_again_is_known);
    return suite_main("serve_status", NULL, NULL, tc, NULL);
}
