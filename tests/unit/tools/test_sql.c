/* SPDX-License-Identifier: Apache-2.0 */
/* Which queries change rows and give no rows. */
#include "sql.h"
#include "support/check_suite.h"

#include <check.h>

START_TEST(updates_are_known_by_their_first_word)
{
    static const char *const UPDATES[] = {
        "INSERT INTO t VALUES (1)",
        "update t set i = 1",
        " \n;\tDelete\nFROM t",
        "REPLACE INTO t VALUES (1)",
        "MERGE/**/INTO t",
        "insert into t values (';'); update t set i = 2; -- all\n",
        "-- a remark\n/* one * more */DELETE--\nFROM t",
    };
    static const char *const OTHERS[] = {
        "",
        "SELECT 1",
        "INSERT",
        "INSERTS INTO t",
        "insert into t values (1); select 1",
        "select 1; insert into t values (1)",
        "insert into t values (1) Returning i",
        "WITH x AS (SELECT 1) INSERT INTO t SELECT * FROM x",
        "-- INSERT INTO t",
        "/* INSERT INTO t",
        "CREATE TABLE t (i INTEGER)",
    };
    size_t i;

    for (i = 0; i < sizeof(UPDATES) / sizeof(*UPDATES); i++)
        ck_assert_msg(uva__sql_is_update(UPDATES[i]), "%s", UPDATES[i]);
    for (i = 0; i < sizeof(OTHERS) / sizeof(*OTHERS); i++)
        ck_assert_msg(!uva__sql_is_update(OTHERS[i]), "%s", OTHERS[i]);
}
END_TEST

int main(void)
{
    TCase *queries = tcase_create("queries");

    tcase_add_test(queries, updates_are_known_by_their_first_word);
    return suite_main("sql", NULL, NULL, queries, NULL);
}
