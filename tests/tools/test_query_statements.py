#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`uvarrow query` with several statements, and with --explain. Environment
variables as for test_serve_query.py.
"""
import os
import sys
import unittest

sys.dont_write_bytecode = True
from command import Terminal, environment, on_terminal, path_of, query, sqlite  # noqa: E402

try:
    import duckdb
except ImportError:
    duckdb = None

NO_DUCKDB = duckdb is None or os.environ["UVA_TEST_SANITIZE"]
NEVER = ("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) "
         "SELECT count(*) FROM n")


class Asked(unittest.TestCase):
    def assert_output(self, done, output):
        self.assertEqual((done.returncode, done.stdout), (0, output),
                         done.stderr)

    def assert_refused(self, done, part, code=2):
        self.assertEqual((done.returncode, done.stdout), (code, ""),
                         done.stderr)
        self.assertIn(part, done.stderr)
        if code == 2:
            self.assertEqual(done.stderr.count("\n"), 1, done.stderr)


class Statements(Asked):
    def test_the_rows_of_the_last_one_are_written(self):
        self.assert_output(query(
            ":memory:", "CREATE TABLE t (x); INSERT INTO t VALUES (1), (2);\n"
            "-- a comment; with a semicolon\nSELECT 7 AS a; ; SELECT x FROM t;"),
            "x\n1\n2\n")

    def test_a_table_shows_the_rows_of_each(self):
        done = query(":memory:", "SELECT 7 AS n; CREATE TABLE t (x); INSERT "
                     "INTO t VALUES (1), (2); SELECT x FROM t WHERE x > 9; "
                     "SELECT x FROM t; SELECT 'z' AS b", "--format", "table",
                     env=environment(LANG="C"))
        self.assert_output(done, "     n\n int64\n-------\n     7\n"
                           "     x\n int64\n-------\n     1\n     2\n"
                           " b\n text\n------\n z\n")
        self.assertIn("4 rows", done.stderr)

    def test_a_terminal_shows_the_rows_of_each(self):
        lines, _ = on_terminal(":memory:", "SELECT 1 AS one; SELECT 2 AS two",
                               env=environment(NO_COLOR="1", LANG="C"))
        for name in "one", "two":
            self.assertIn(name, " ".join(lines).split())

    def test_a_table_of_rows_before_a_failure_is_shown(self):
        done = query(":memory:", "SELECT 7 AS seven; SELECT nothing; SELECT 8",
                     "--format", "table")
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("seven", done.stdout)
        self.assertNotIn("8", done.stdout)
        self.assertIn("statement 2 of 3", done.stderr)

    def test_they_share_a_connection(self):
        self.assert_output(query(
            ":memory:", "CREATE TEMP TABLE t AS SELECT ';' AS x; "
            "UPDATE t SET x = x || 'a'; SELECT x FROM temp.t"), "x\n;a\n")

    def test_changes_are_added_up(self):
        done = query(":memory:", "CREATE TABLE t (x); INSERT INTO t VALUES "
                     "(1), (2); INSERT INTO t VALUES (3); DELETE FROM t "
                     "WHERE x > 1")
        self.assertIn("complete: 5 rows changed", done.stderr)

    def test_names_in_brackets_and_triggers_are_whole(self):
        self.assert_output(query(
            ":memory:", "CREATE TABLE [a;b] (x); CREATE TABLE log (x); "
            "CREATE TRIGGER r AFTER INSERT ON [a;b] BEGIN INSERT INTO log "
            "VALUES (new.x); INSERT INTO log VALUES (0); END; "
            "INSERT INTO [a;b] VALUES (5); SELECT x FROM log"), "x\n5\n0\n")

    def test_a_failure_ends_them(self):
        path = sqlite("several.db", "CREATE TABLE t (x)")
        self.addCleanup(os.remove, path)
        done = query(path, "INSERT INTO t VALUES (1); SELEC 2; INSERT INTO t "
                           "VALUES (3)")
        self.assertEqual(done.returncode, 1)
        self.assertIn("uvarrow: statement 2 of 3: query: the query fails: ",
                      done.stderr)
        self.assert_output(query(path, "SELECT x FROM t"), "x\n1\n")
        done = query(path, "SELEC 1; SELECT 2")
        self.assertEqual(done.returncode, 2)
        self.assertIn("uvarrow: statement 1 of 2: ", done.stderr)

    def test_a_transaction_is_theirs(self):
        path = sqlite("several.db", "CREATE TABLE t (x)")
        self.addCleanup(os.remove, path)
        query(path, "BEGIN; INSERT INTO t VALUES (1); ROLLBACK; BEGIN; "
                    "INSERT INTO t VALUES (2); COMMIT; BEGIN; INSERT INTO t "
                    "VALUES (3)")  # is rolled back
        self.assert_output(query(path, "SELECT x FROM t"), "x\n2\n")

    def test_they_may_be_in_a_file(self):
        path = path_of("several.sql")
        self.addCleanup(os.remove, path)
        with open(path, "w", encoding="utf-8") as file:
            file.write("CREATE TABLE t (x);\nINSERT INTO t VALUES (1);\n"
                       "SELECT x FROM t;\n")
        self.assert_output(query(":memory:", "--file", path), "x\n1\n")

    def test_an_interrupt_ends_the_one_that_runs(self):
        terminal = Terminal(":memory:", "CREATE TABLE t (x); " + NEVER +
                            "; SELECT 1")
        terminal.until("waits for the database")
        terminal.press(b"\x03")
        self.assertEqual(terminal.end(), 130)

    @unittest.skipIf(NO_DUCKDB, "there is no DuckDB")
    def test_duckdb(self):
        self.assert_output(query(
            "--driver", "duckdb", "CREATE TABLE t AS SELECT $$;$$ AS x; "
            "INSERT INTO t VALUES ('b'); SELECT x FROM t ORDER BY x"),
            "x\n;\nb\n")
        self.assert_output(query(
            "--driver", "duckdb", r"SELECT 1; SELECT E'it\'s; fine' AS x"),
            "x\nit's; fine\n")

    def test_parameters_are_for_one(self):
        self.assert_refused(query(":memory:", "SELECT ?; SELECT ?", "--param",
                                  "1"), "--param is for one statement, and "
                                        "there are 2")


class Explain(Asked):
    SQL = "SELECT * FROM a WHERE x IN (SELECT y FROM b)"

    def setUp(self):
        self.path = sqlite("plan.db", "CREATE TABLE a (x)",
                           "CREATE TABLE b (y)")
        self.addCleanup(os.remove, self.path)

    def test_the_plan_of_sqlite_is_indented(self):
        done = query(self.path, "--explain", self.SQL, "--quiet")
        lines = done.stdout.split("\n")
        self.assertEqual(lines[:3], ["SCAN a", "LIST SUBQUERY 1", "  SCAN b"])
        lines, _ = on_terminal(self.path, "--explain", self.SQL,
                               env=environment(NO_COLOR="1"))
        self.assertEqual(lines[0], "SCAN a")

    def test_a_plan_may_have_a_format(self):
        done = query(self.path, "--explain", "SELECT * FROM a", "--format=json")
        self.assertIn('"detail":"SCAN a"}', done.stdout)

    @unittest.skipIf(NO_DUCKDB, "there is no DuckDB")
    def test_the_plan_of_duckdb_is_drawn(self):
        done = query("--driver", "duckdb", "--explain", "--quiet",
                     "SELECT * FROM range(10)")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("RANGE", done.stdout.upper())
        self.assertGreater(done.stdout.count("\n"), 2)

    def test_a_plan_is_of_one_statement_of_a_database(self):
        self.assert_refused(query(self.path, "--explain", "SELECT 1; SELECT 2"),
                            "--explain is for one statement, and there are 2")
        self.assert_refused(query("--from", "a.arrow", "--explain"),
                            "--explain is for a database")
        self.assert_refused(query(self.path, "--explain", "/* nothing */"),
                            "no query to explain")
        self.assert_refused(query(self.path, "--explain=1", "SELECT 1"),
                            "--explain takes no value")


if __name__ == "__main__":
    unittest.main()
