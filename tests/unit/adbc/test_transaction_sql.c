/* SPDX-License-Identifier: Apache-2.0 */
/* Which SQL begins or ends a transaction. */
#include <check.h>

#include "adbc/sql.h"
#include "support/check_suite.h"

static const struct {
    const char *sql;
    enum uva__sql is;
} CASES[] = {
    {"begin", UVA__SQL_BEGIN},
    {"BEGIN;", UVA__SQL_BEGIN},
    {" \n\t;begin--\n", UVA__SQL_BEGIN},
    {"/* a * b */ -- c\n\fBegin/**/Transaction", UVA__SQL_BEGIN},
    {"begin immediate", UVA__SQL_BEGIN},
    {"begin isolation level serializable", UVA__SQL_BEGIN},
    {"begin; insert into t values (1)", UVA__SQL_BEGIN},
    {"start transaction read only", UVA__SQL_BEGIN},
    {"commit", UVA__SQL_COMMIT},
    {"commit and chain", UVA__SQL_COMMIT},
    {"end", UVA__SQL_COMMIT},
    {"END TRANSACTION", UVA__SQL_COMMIT},
    {"prepare transaction 'x'", UVA__SQL_COMMIT},
    {"rollback", UVA__SQL_ROLLBACK},
    {"rollback work", UVA__SQL_ROLLBACK},
    {"abort", UVA__SQL_ROLLBACK},
    {"rollback to a", UVA__SQL_SAVEPOINT},
    {"rollback transaction to savepoint a", UVA__SQL_SAVEPOINT},
    {"savepoint a", UVA__SQL_SAVEPOINT},
    {"release savepoint a", UVA__SQL_SAVEPOINT},
    {"", UVA__SQL_OTHER},
    {"-- begin", UVA__SQL_OTHER},
    {"/* begin", UVA__SQL_OTHER},
    {"select 1; begin", UVA__SQL_OTHER},
    {"beginning", UVA__SQL_OTHER},
    {"begin_it", UVA__SQL_OTHER},
    {"begin insert into t values (1); end", UVA__SQL_OTHER},
    {"start slave", UVA__SQL_OTHER},
    {"prepare p as select 1", UVA__SQL_OTHER},
    {"end loop", UVA__SQL_OTHER},
    {"with x as (select 1) select * from x", UVA__SQL_OTHER},
};

START_TEST(transactions_are_known_by_their_first_words)
{
    ck_assert_msg(uva__sql_transaction(CASES[_i].sql) == CASES[_i].is, "%s",
                  CASES[_i].sql);
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("transaction sql");

    suite_add_loops(tc, 0, sizeof(CASES) / sizeof(*CASES),
                    transactions_are_known_by_their_first_words, NULL);
    return suite_main("transaction_sql", NULL, NULL, tc, NULL);
}
