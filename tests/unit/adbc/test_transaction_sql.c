/* SPDX-License-Identifier: Apache-2.0 */
/* Which SQL begins or ends a transaction, and where its statements begin. */
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
    {"select 1; begin", UVA__SQL_BEGIN},
    {"insert into t values (';'); commit -- it", UVA__SQL_COMMIT},
    {"begin; insert into t values (1); end;", UVA__SQL_COMMIT},
    {"savepoint a; rollback; savepoint b", UVA__SQL_ROLLBACK},
    {"select 1; savepoint a; select 2", UVA__SQL_SAVEPOINT},
    {"/* /* */ */ begin", UVA__SQL_BEGIN},
    {"/* /* */ begin", UVA__SQL_BEGIN},
    {"-- \rbegin", UVA__SQL_BEGIN},
    {"select '; begin'", UVA__SQL_OTHER},
    {"select \"; begin\"", UVA__SQL_OTHER},
    {"select $a$ ; begin $$ $a$, $1, $b, 1$", UVA__SQL_OTHER},
    {"select $$ ; begin", UVA__SQL_OTHER},
    {"select E'\\''; begin", UVA__SQL_BEGIN},
    {"select a$b, \xc3\xa4;begin", UVA__SQL_BEGIN},
    {"create trigger a after insert on t begin delete from t; end",
     UVA__SQL_OTHER},
    {"create trigger a after insert on t begin delete from t; end; begin",
     UVA__SQL_BEGIN},
    {"create function f() language sql begin atomic select 1; begin select 2; "
     "end; select case when true then 3 end; end",
     UVA__SQL_OTHER},
    {"create table trigger (a); begin", UVA__SQL_BEGIN},
    {"create procedure p() begin", UVA__SQL_OTHER},
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

/* As SQLite reads it: the second one, or the end. */
static const struct {
    const char *sql, *next;
} TEXTS[] = {
    {"select 1", ""},
    {"select 1 ; -- it\n;/* is */", ""},
    {"select 1; select 2", "select 2"},
    {"select 1;/**/select 2; select 3", "select 2; select 3"},
    {"select ';', \";\", `;`, [;], ''';'", ""},
    {"select [a'b]; select [c'd]", "select [c'd]"},
    {"select $a$; select $b$", "select $b$"},
    {"select 1 /* /* */; select 2", "select 2"},
    {"select 'a; select 2", ""},
    {"select [a; select 2", ""},
    {"explain create temp trigger a after insert on t when 1 begin"
     " select case 1 when 1 then 2 end; update t set n = 1; end ; select 2",
     "select 2"},
    {"create trigger a begin select 1; select 2", ""},
};

START_TEST(statements_end_where_sqlite_ends_them)
{
    ck_assert_str_eq(uva__sql_next(TEXTS[_i].sql, &uva__sql_sqlite),
                     TEXTS[_i].next);
}
END_TEST

/* As PostgreSQL reads it. */
static const struct {
    const char *sql, *next;
} ESCAPES[] = {
    {"select E'it\\'s; fine'", ""},
    {"select e'it\\'s'; select 2", "select 2"},
    {"select E'a\\\\'; select 2", "select 2"},
    {"select E'a''b\\'; c'; select 2", "select 2"},
    {"select E'a'\n 'b\\'; c'; select 2", "select 2"},
    {"select E'a' 'b\\'; select 2", "select 2"},
    {"select E''; select 2", "select 2"},
    {"select E'a\\", ""},
    {"select E'a; select 2", ""},
    {"select 'a\\'; select 2", "select 2"},
    {"select some'a\\'; select 2", "select 2"},
};

START_TEST(backslashes_escape_in_texts_with_an_e)
{
    ck_assert_str_eq(uva__sql_next(ESCAPES[_i].sql, &uva__sql_any),
                     ESCAPES[_i].next);
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("transaction sql");

    suite_add_loops(tc, 0, sizeof(CASES) / sizeof(*CASES),
                    transactions_are_known_by_their_first_words, NULL);
    suite_add_loops(tc, 0, sizeof(TEXTS) / sizeof(*TEXTS),
                    statements_end_where_sqlite_ends_them, NULL);
    suite_add_loops(tc, 0, sizeof(ESCAPES) / sizeof(*ESCAPES),
                    backslashes_escape_in_texts_with_an_e, NULL);
    return suite_main("transaction_sql", NULL, NULL, tc, NULL);
}
