#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The first query is one line: the driver is told from the database, and found
where people have it. Environment variables as for test_serve_query.py.
"""
import os
import sys
import unittest

sys.dont_write_bytecode = True
from command import VENV, environment, folder, path_of, query, sqlite  # noqa: E402

try:
    import duckdb
except ImportError:
    duckdb = None

ONE = "SELECT count(*) AS n FROM t"


def file_of(name, content):
    path = path_of(name)
    with open(path, "wb") as file:
        file.write(content)
    return path


class FirstQuery(unittest.TestCase):
    def assert_answer(self, done, answer="n\n2\n"):
        self.assertEqual((done.returncode, done.stdout), (0, answer),
                         done.stderr)

    def assert_refused(self, done, *parts):
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertEqual(done.stdout, "")
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        for part in parts:
            self.assertIn(part, done.stderr)


class Sqlite(FirstQuery):
    def setUp(self):
        self.path = sqlite("first.db", "CREATE TABLE t (x INT)",
                           "INSERT INTO t VALUES (1), (2)")
        self.addCleanup(os.remove, self.path)

    def test_the_driver_is_in_the_environment_that_is_active(self):
        self.assert_answer(query(self.path, ONE))

    def test_the_driver_is_in_the_environment_of_the_python_on_path(self):
        env = environment(VIRTUAL_ENV="", PATH=os.path.join(VENV, "bin"))
        self.assert_answer(query(self.path, ONE, env=env))
        self.assert_answer(query(self.path, ONE, env={
            **env, "PATH": "/nonexistent:" + env["PATH"]}))

    def test_a_uri_is_told_too(self):
        for uri in ("file:" + self.path, f"file:{self.path}?mode=ro",
                    "file://" + self.path, "sqlite:" + self.path):
            with self.subTest(uri=uri):
                self.assert_answer(query(uri, ONE))
                self.assert_answer(query("--uri", uri, ONE))

    def test_the_bytes_count_not_the_name(self):
        other = os.path.join(folder(), f"{os.getpid()}-first.duckdb")
        os.rename(self.path, other)
        self.addCleanup(os.rename, other, self.path)
        self.assert_answer(query(other, ONE))

    def test_a_colon_in_a_name_is_no_scheme_if_the_file_is_there(self):
        name = f"a{os.getpid()}:b"
        other = os.path.join(folder(), name)
        os.rename(self.path, other)
        self.addCleanup(os.rename, other, self.path)
        self.assert_answer(query("--driver", "sqlite", "./" + name, ONE,
                                 cwd=folder()))
        self.assert_answer(query("./" + name, ONE, cwd=folder()))

    def test_a_database_is_made_by_the_ending_of_its_name(self):
        path = path_of("new.sqlite3")
        self.addCleanup(os.remove, path)
        done = query(path, "CREATE TABLE t AS SELECT 1 AS x UNION SELECT 2")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assert_answer(query(path, ONE))

    def test_an_empty_file_and_memory_are_of_sqlite(self):
        path = file_of("empty.db", b"")
        self.addCleanup(os.remove, path)
        for database in (path, ":memory:", "file::memory:"):
            self.assert_answer(query(database, "SELECT 2 AS n"))

    def test_a_stall_is_measured_without_a_driver(self):
        done = query(self.path, ONE, command="stall", env=environment())
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("through uvarrow                1 ", done.stdout)
        self.assert_refused(query("sqlite:" + self.path, ONE, command="stall"),
                            "no driver; name an ADBC driver")


@unittest.skipIf(duckdb is None or os.environ["UVA_TEST_SANITIZE"],
                 "there is no DuckDB")
class Duckdb(FirstQuery):
    def setUp(self):
        self.path = path_of("first.db")
        connection = duckdb.connect(self.path)
        connection.execute("CREATE TABLE t AS SELECT range AS x FROM range(2)")
        connection.close()
        self.addCleanup(os.remove, self.path)

    def test_its_wheel_is_found_and_needs_no_variable(self):
        self.assert_answer(query(self.path, ONE))
        self.assert_answer(query("duckdb:" + self.path, ONE))
        self.assert_answer(query("--driver", "duckdb", self.path, ONE))
        self.assert_answer(query(self.path, ONE, env=environment(
            VIRTUAL_ENV="", PATH=os.path.join(VENV, "bin"))))

    def test_its_module_needs_no_variable_if_it_is_named(self):
        self.assert_answer(query("--driver", os.environ["UVA_TEST_DUCKDB"],
                                 self.path, ONE))

    def test_it_needs_no_database_to_read_files(self):
        path = file_of("rows.csv", b"x\n1\n2\n")
        self.addCleanup(os.remove, path)
        self.assert_answer(query("--driver", "duckdb",
                                 f"SELECT count(*) AS n FROM '{path}'"))


class WhatIsNotFound(FirstQuery):
    def test_an_error_says_where_it_looked_and_what_installs_it(self):
        env = environment(VIRTUAL_ENV="/nonexistent/venv")
        path = file_of("x.duckdb", b"12345678DUCK")
        self.addCleanup(os.remove, path)
        self.assert_refused(
            query(path, ONE, env=env), "there is no driver 'duckdb'",
            "ADBC_DRIVER_PATH (not set)", "~/.config/adbc/drivers",
            "$VIRTUAL_ENV (/nonexistent/venv)",
            "the Python of PATH (there is none)",
            "dbc install duckdb, or pip install duckdb")
        self.assert_refused(
            query("postgresql://localhost/x", ONE, env=env),
            "dbc install postgresql, or pip install adbc-driver-postgresql")

    def test_files_that_are_no_database_are_explained(self):
        for name, content, part in (
                ("x.parquet", b"PAR1xxxxxxxxxxxx", "it is Parquet, which DuckDB"),
                ("x.arrow", b"ARROW1\0\0", "uvarrow query --from FILE"),
                ("x.arrows", b"\xff\xff\xff\xff\x10\0\0\0", "--from FILE"),
                ("x.db", b"SQLite format 4\0", "its first bytes; name its driver"),
                ("y.db", b"S", "its first bytes; name its driver")):
            with self.subTest(name=name):
                path = file_of(name, content)
                self.addCleanup(os.remove, path)
                self.assert_refused(query(path, ONE), path, part)

    def test_a_database_that_is_not_there(self):
        for name in ("/nonexistent/flights.db", "flights", "a/b", ""):
            self.assert_refused(query(name, ONE), f"there is no file {name};")
        self.assert_refused(query(folder(), ONE), "is not a file")
        self.assert_refused(query("/nonexistent/x.sqlite", ONE),
                            "/nonexistent/x.sqlite")

    @unittest.skipIf(os.geteuid() == 0, "root may read all")
    def test_a_database_that_may_not_be_read(self):
        path = file_of("secret.db", b"")
        os.chmod(path, 0)
        self.addCleanup(os.remove, path)
        self.assert_refused(query(path, ONE), "cannot read the database", path)

    def test_a_query_without_its_database(self):
        self.assert_refused(query("SELECT 1"), "no driver and no database")
        self.assert_refused(query(), "no driver and no database")


if __name__ == "__main__":
    unittest.main()
