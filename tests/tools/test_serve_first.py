#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The first server is one line: the driver is told from the database, as in
`uvarrow query`. Environment variables as for test_serve_query.py.
"""
import os
import sys
import unittest

sys.dont_write_bytecode = True
from command import VENV, path_of, query  # noqa: E402
from server import ROWS, Server, database, main  # noqa: E402

COUNT = "/query?format=csv&sql=SELECT+count(*)+AS+n+FROM+numbers"
LISTEN = "--listen", "127.0.0.1:0", "--quiet"


class First(unittest.TestCase):
    def setUp(self):
        self.path = database("first o%")
        self.addCleanup(os.remove, self.path)

    def assert_served(self, name, system="SQLite"):
        with Server(path=name, own=False, driver="", name="first",
                    env={"VIRTUAL_ENV": VENV}) as server:
            self.assertEqual(server.ask(COUNT).body, f"n\n{ROWS}\n".encode())
            about = server.ask("/database").json()
            self.assertEqual((about["system"], about["writable"]),
                             (system, False))
            self.assertEqual(about["name"], os.path.basename(self.path))
            self.assertEqual(server.post("DROP TABLE numbers").status, 403)

    def test_a_file_is_told_by_its_bytes(self):
        self.assert_served(self.path)

    def test_a_uri_of_a_file_is_told_by_its_bytes(self):
        uri = self.path.replace("%", "%25").replace(" ", "%20")
        for name in f"file:{uri}", f"file://{uri}", f"file:{uri}?cache=private":
            with self.subTest(name=name):
                self.assert_served(name)

    def test_a_scheme_names_the_driver(self):
        self.assert_served("sqlite:" + self.path)

    def assert_refused(self, text, *words):
        done = query(*LISTEN, *words, command="serve")
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        self.assertIn(text, done.stderr)

    def test_no_database(self):
        parquet = path_of("x.parquet")
        self.addCleanup(os.remove, parquet)
        with open(parquet, "wb") as file:
            file.write(b"PAR1" * 8)
        self.assert_refused("it is Parquet, which DuckDB reads", parquet)
        self.assert_refused("is not a file; name its driver", os.path.dirname(
            parquet))
        self.assert_refused("there is no file /nowhere/x.db", "/nowhere/x.db")
        self.assert_refused("no database: give --driver")


if __name__ == "__main__":
    main()
