#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`uvarrow query` with PostgreSQL: the first query, Ctrl-C, a plan, several
statements. Environment variables as for test_serve_postgresql.py.
"""
import sys
import unittest

sys.dont_write_bytecode = True
from command import Terminal, query  # noqa: E402
from postgresql import Cluster  # noqa: E402

RUNNING = ("SELECT count(*) AS n FROM pg_stat_activity WHERE query LIKE "
           "'%pg_sleep(3600)%' AND state = 'active' AND pid <> pg_backend_pid()")


class Postgresql(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster("fsync=off")
        cls.addClassCleanup(cls.cluster.close)
        cls.uri = cls.cluster.uri("postgres")

    def test_the_scheme_tells_the_driver(self):
        for uri in (self.uri, self.uri.replace("postgresql:", "postgres:")):
            done = query(uri, "SELECT 7 AS n")
            self.assertEqual((done.returncode, done.stdout), (0, "n\n7\n"),
                             done.stderr)

    def test_ctrl_c_ends_the_query_in_the_database(self):
        terminal = Terminal(self.uri, "SELECT pg_sleep(3600)")
        while query(self.uri, RUNNING, "--quiet").stdout != "n\n1\n":
            pass
        terminal.press(b"\x03")
        self.assertEqual(terminal.end(), 130)
        self.assertIn("interrupted: 0 rows", terminal.seen)
        while query(self.uri, RUNNING, "--quiet").stdout != "n\n0\n":
            pass

    def test_a_plan_has_its_lines(self):
        done = query(self.uri, "--explain", "SELECT * FROM pg_class, pg_type",
                     "--quiet")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("Nested Loop", done.stdout.split("\n")[0])
        self.assertGreater(done.stdout.count("\n"), 2)

    def test_tables_are_listed_without_those_of_the_system(self):
        done = query(self.uri, "CREATE TABLE listed (a int NOT NULL, b text)")
        self.assertEqual(done.returncode, 0, done.stderr)
        done = query(self.uri, command="tables")
        self.assertIn("postgres,public,listed,table\n", done.stdout)
        self.assertNotIn("pg_catalog", done.stdout)
        done = query(self.uri, "public.listed", command="tables")
        self.assertIn("column,type,nullable\na,int32,", done.stdout)
        self.assertIn("\nb,text,", done.stdout)

    def test_several_statements(self):
        done = query(self.uri, "CREATE TEMP TABLE t (x text); INSERT INTO t "
                     "VALUES ($a$;$a$); SELECT x FROM t")
        self.assertEqual((done.returncode, done.stdout), (0, "x\n;\n"),
                         done.stderr)

    def test_a_text_with_escapes_is_whole(self):
        done = query(self.uri, r"SELECT E'it\'s; fine' AS x")
        self.assertEqual((done.returncode, done.stdout),
                         (0, "x\nit's; fine\n"), done.stderr)


if __name__ == "__main__":
    unittest.main()
