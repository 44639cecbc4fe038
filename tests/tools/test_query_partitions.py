#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`uvarrow query --partitions`, with a server of Flight SQL that gives its results
in parts, which fail on the way. Without the driver or pyarrow these are skipped.
Environment variables as for test_serve_query.py.
"""
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
from command import query  # noqa: E402

SERVER = os.path.join(os.path.dirname(os.path.abspath(__file__)),
                      "../support/flight_server.py")
HAS_FLIGHT = all(importlib.util.find_spec(name)
                 for name in ("pyarrow", "adbc_driver_flightsql"))


class Parts(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = None
        if HAS_FLIGHT:
            cls.folder = tempfile.mkdtemp()
            port = os.path.join(cls.folder, "port.new")
            os.mkfifo(port)
            cls.server = subprocess.Popen([sys.executable, SERVER, cls.folder],
                                          stdin=subprocess.PIPE)
            with open(port, encoding="ascii") as file:
                cls.uri = f"grpc://127.0.0.1:{file.read()}"

    @classmethod
    def tearDownClass(cls):
        if cls.server is not None:
            cls.server.stdin.close()
            cls.server.wait()
            shutil.rmtree(cls.folder)

    def ask(self, sql, *words):
        if self.server is None:
            self.skipTest("no driver of Flight SQL, or no pyarrow")
        return query("--driver", "flightsql", "--uri", self.uri, *words, sql)

    def assert_rows(self, done, parts, rows):
        self.assertEqual(done.returncode, 0, done.stderr)
        head, *values = done.stdout.split()
        self.assertEqual(head, "n")
        self.assertEqual(sorted(map(int, values)), [
            1000 * part + row for part in range(parts) for row in range(rows)])

    def test_all_parts_are_read(self):
        sql = "parts 5 rows 20 as plain"
        done = self.ask(sql, "--partitions", "3")
        self.assert_rows(done, 5, 20)
        self.assertIn("complete: 100 rows", done.stderr)
        done = self.ask(sql, "--partitions=1", "--limit", "7", "--quiet")
        self.assertEqual((done.returncode, len(done.stdout.split())), (0, 8))
        done = self.ask("parts 0 rows 1", "--partitions", "3", "--quiet")
        self.assertEqual((done.returncode, done.stdout.strip(), done.stderr),
                         (0, "", ""))

    def test_a_part_that_fails_is_read_again(self):
        sql = "parts 4 rows 20 breaks 7 times 2 as again"
        self.assert_rows(self.ask(sql, "--partitions", "4", "--retry", "2"), 4, 20)

    def test_a_part_fails_in_the_end(self):
        done = self.ask("parts 1 rows 20 breaks 7 times 9 as fails",
                        "--partitions", "4", "--retry", "1", "--quiet")
        self.assertEqual(done.returncode, 1)
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        self.assertIn("partition 1 of 1", done.stderr)

    def test_the_query_fails(self):
        done = self.ask("fails", "--partitions", "4", "--quiet")
        self.assertEqual((done.returncode, done.stdout), (2, ""), done.stderr)
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        self.assertIn("division by zero", done.stderr)


class Refused(unittest.TestCase):
    def assert_refused(self, words, text):
        done = query(*words)
        self.assertEqual((done.returncode, done.stdout), (2, ""), done.stderr)
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        self.assertIn(text, done.stderr)

    def test_a_database_without_partitions(self):
        self.assert_refused((":memory:", "--partitions", "2", "SELECT 1"),
                            "partition")

    def test_numbers(self):
        for value in "0", "-1", "x", "", "1x", "1001", "99999999999999999999":
            self.assert_refused(
                (":memory:", f"--partitions={value}", "SELECT 1"),
                f"--partitions takes a number from 1 to 1000, not '{value}'")
        self.assert_refused(
            (":memory:", "--partitions=2", "--retry=-1", "SELECT 1"),
            "--retry takes a number from 0 to 1000")

    def test_what_does_not_go_together(self):
        for words, text in (
                ((":memory:", "--retry=2", "SELECT 1"),
                 "--retry is for --partitions"),
                (("--partitions=2", "--from", "a.arrow"), "not for --from"),
                ((":memory:", "--partitions=2", "--explain", "SELECT 1"),
                 "not for --explain"),
                ((":memory:", "--partitions=2", "SELECT 1; SELECT 2"),
                 "--partitions is for one statement")):
            self.assert_refused(words, text)


if __name__ == "__main__":
    unittest.main()
