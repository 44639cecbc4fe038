#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`uvarrow tables`: the tables of a database, and the columns of one.
Environment variables as for test_serve_query.py.
"""
import json
import os
import sys
import unittest

sys.dont_write_bytecode = True
from command import environment, on_terminal, path_of, query, sqlite  # noqa: E402

try:
    import duckdb
except ImportError:
    duckdb = None


def tables(*words, **options):
    return query(*words, command="tables", **options)


class Tables(unittest.TestCase):
    def assert_output(self, done, output):
        self.assertEqual((done.returncode, done.stdout), (0, output),
                         done.stderr)

    def assert_refused(self, done, part):
        self.assertEqual((done.returncode, done.stdout), (2, ""), done.stderr)
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        self.assertIn(part, done.stderr)


class OfSqlite(Tables):
    def setUp(self):
        self.path = sqlite("tables.db", "CREATE TABLE a (x INTEGER, y TEXT)",
                           "CREATE VIEW b AS SELECT x FROM a",
                           'CREATE TABLE "ä b" (z REAL)',
                           "INSERT INTO a VALUES (1, 'x')",
                           'INSERT INTO "ä b" VALUES (1.5)')
        self.addCleanup(os.remove, self.path)

    def test_tables_are_listed(self):
        done = tables(self.path)
        self.assertEqual(sorted(done.stdout.split("\n")), [
            "", "catalog,schema,table,type", 'main,"",a,table', 'main,"",b,view',
            'main,"",ä b,table'])
        self.assertIn("complete: 3 rows", done.stderr)
        lines, _ = on_terminal(self.path, command="tables",
                               env=environment(NO_COLOR="1"))
        self.assertEqual(lines[0], " catalog │ schema │ table │ type")

    def test_columns_of_one_are_listed(self):
        for words in ((self.path, "a"), ("--uri", self.path, "a"),
                      ("sqlite:" + self.path, "a")):
            self.assert_output(tables(*words, "--quiet"),
                               "column,type,nullable\nx,int64,yes\n"
                               "y,text,yes\n")
        self.assert_output(tables(self.path, "ä b", "--format", "json"),
                           '{"column":"z","type":"float64","nullable":"yes"}\n')

    def test_a_database_without_tables(self):
        self.assert_output(tables(":memory:"), "catalog,schema,table,type\n")

    def test_many_tables(self):
        path = sqlite("many.db", *(f"CREATE TABLE t{i} (x)"
                                   for i in range(60)))
        self.addCleanup(os.remove, path)
        done = tables(path, "--format", "json-array")
        self.assertEqual({row["table"] for row in json.loads(done.stdout)},
                         {f"t{i}" for i in range(60)})
        self.assert_output(tables(path, "--limit", "0"),
                           "catalog,schema,table,type\n")

    def test_what_is_refused(self):
        for words, part in (
                ((self.path, "nope"), "no such table"),
                ((self.path, "nope.a"), "schema"),
                ((), "no driver and no database"),
                ((self.path, "a", "b"), "more than one"),
                ((self.path, "--from", "a"), "there is no option '--from'"),
                ((self.path, "--param", "1"), "no option '--param'"),
                ((self.path, "--file", "a"), "no option '--file'"),
                ((self.path, "--explain"), "no option '--explain'"),
                ((self.path, "--limit", "x"), "--limit takes a number"),
                (("/nonexistent/x",), "there is no file")):
            with self.subTest(words=words):
                self.assert_refused(tables(*words), part)

    def test_it_has_help(self):
        self.assertIn("Usage: uvarrow tables ", tables("--help").stdout)


@unittest.skipIf(duckdb is None or os.environ["UVA_TEST_SANITIZE"],
                 "there is no DuckDB")
class OfDuckdb(Tables):
    def test_schemas_are_listed_and_named(self):
        path = path_of("tables.duckdb")
        connection = duckdb.connect(path)
        connection.execute("CREATE SCHEMA s; CREATE TABLE s.t (a INT NOT NULL, "
                           "b DECIMAL(10, 2)); CREATE VIEW v AS SELECT 1 AS c")
        catalog = connection.execute("SELECT current_database()").fetchone()[0]
        connection.close()
        self.addCleanup(os.remove, path)
        done = tables(path)
        self.assertCountEqual(done.stdout.split("\n"), [
            "catalog,schema,table,type", f"{catalog},main,v,VIEW",
            f"{catalog},s,t,BASE TABLE", ""])
        for name in ("s.t", f"{catalog}.s.t"):
            self.assertEqual(
                [line.rsplit(",", 1)[0] for line in
                 tables(path, name).stdout.split("\n")],
                ["column,type", "a,int32", 'b,"decimal(10, 2)"', ""])


if __name__ == "__main__":
    unittest.main()
