/* SPDX-License-Identifier: Apache-2.0 */
/* A statement that the program has made itself, with its own connection and its
 * own settings, executed and read without blocking the loop. The program owns
 * the connection; the stream takes the statement.
 *
 *     $ cc adbc_statement.c print.c tell.c \
 *          $(pkg-config --cflags --libs uvarrow-adbc uvarrow-io libuv)
 *     $ ./a.out "$SQLITE" :memory: "SELECT 'pear' AS name"
 *     name
 *     pear
 */
#include <stdio.h>
#include <uv.h>

#include "print.h"
#include "tell.h"
#include "uvarrow/adbc.h"

static struct AdbcDriver driver;
static struct AdbcDatabase database = {.private_driver = &driver};
static struct AdbcConnection connection = {.private_driver = &driver};
static struct AdbcStatement statement = {.private_driver = &driver};

/* With the driver manager these are AdbcDatabaseNew() and so on. */
static bool connect_to(const char *uri, struct AdbcError *error)
{
    return driver.DatabaseNew(&database, error) == 0 &&
           driver.DatabaseSetOption(&database, "uri", uri, error) == 0 &&
           driver.DatabaseInit(&database, error) == 0 &&
           driver.ConnectionNew(&connection, error) == 0 &&
           driver.ConnectionInit(&connection, &database, error) == 0;
}

int main(int argc, char **argv)
{
    struct AdbcError failure = {0};
    struct uva_error error;
    struct uva_runtime *rt;
    int code;

    if (argc != 4 || uva_runtime_open(uv_default_loop(), NULL, &rt, NULL) != 0)
        return fprintf(stderr, "usage: %s DRIVER URI SQL\n", argv[0]), 2;
    if (uva_adbc_load_driver(argv[1], NULL, &driver, &error) != 0)
        return tell(&error);
    if (!connect_to(argv[2], &failure) ||
        driver.StatementNew(&connection, &statement, &failure) != 0 ||
        driver.StatementSetSqlQuery(&statement, argv[3], &failure) != 0)
        return fprintf(stderr, "%s\n", failure.message), 1;
    code = print_to_end(rt, uva_stream_from_adbc(rt, &statement, NULL),
                        UVA_FORMAT_CSV);
    (void)driver.ConnectionRelease(&connection, &failure);
    (void)driver.DatabaseRelease(&database, &failure);
    return code;
}
