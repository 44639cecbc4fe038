#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Where `uvarrow query` writes, and in what format.

UVA_TEST_TOOL is the path of the command, UVA_TEST_DRIVER that of the driver for
SQLite. Nothing here waits for a time to pass; PATIENCE only ends a test that
hangs.
"""
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import unittest

PATIENCE = 100  # seconds


class Output(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)

    def path(self, name):
        return os.path.join(self.folder, name)

    def write(self, name, data=b"old\n"):
        with open(self.path(name), "wb") as file:
            file.write(data)
        return self.path(name)

    def read(self, name):
        with open(self.path(name), "rb") as file:
            return file.read()

    def command(self, *words):
        return [os.environ["UVA_TEST_TOOL"], "query", *words]

    def query(self, sql, *words):
        return self.command("--driver", os.environ["UVA_TEST_DRIVER"], *words,
                            ":memory:", sql)

    def run_tool(self, words, **how):
        how.setdefault("stdout", subprocess.PIPE)
        return subprocess.run(words, stderr=subprocess.PIPE, timeout=PATIENCE,
                              check=False, **how)

    def start(self, words, **how):
        process = subprocess.Popen(words, **how)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def arrow(self, name):
        """Makes a file of Arrow IPC."""
        done = self.run_tool(self.query("SELECT 1 AS one", "--format", "arrow"))
        return self.write(name, done.stdout)

    def assert_refused(self, done, part):
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertEqual(done.stderr.count(b"\n"), 1, done.stderr)
        self.assertIn(part.encode(), done.stderr)


class WhichFormat(Output):
    def begin(self, name, *more):
        done = self.run_tool(self.query("SELECT 1 AS one", "--quiet",
                                        "--output", self.path(name), *more))
        self.assertEqual((done.returncode, done.stderr), (0, b""))
        return self.read(name)

    def test_the_ending_is_the_format(self):
        for name in ("a.json", "a.jsonl", "a.b.NDJSON"):
            self.assertEqual(self.begin(name), b'{"one":1}\n')
        for name in ("a.csv", "a.CSV", "none", ".hidden"):
            self.assertEqual(self.begin(name), b"one\n1\n")
        for name in ("a.arrow", "a.feather"):
            data = self.begin(name)
            self.assertEqual((data[:6], data[-6:]), (b"ARROW1", b"ARROW1"))
        self.assertEqual(self.begin("a.arrows")[:4], b"\xff\xff\xff\xff")

    def test_the_option_is_stronger(self):
        self.assertEqual(self.begin("a.parquet", "--format", "csv"),
                         b"one\n1\n")
        self.assertEqual(self.begin("a.csv", "--format=json"), b'{"one":1}\n')
        self.assertEqual(self.begin("a.arrow", "--format=arrow")[:4],
                         b"\xff\xff\xff\xff")
        self.assertEqual(self.begin("a.csv", "--format=arrow-file")[:6],
                         b"ARROW1")

    def test_other_endings_are_refused(self):
        for name in ("a.parquet", "a.csv.gz", "a.txt", "a.arrow.", "a."):
            done = self.run_tool(self.query("SELECT 1", "--output",
                                            self.path(name)))
            self.assert_refused(done, "name one with --format")
        self.assertEqual(os.listdir(self.folder), [])
        done = self.run_tool(self.query("SELECT 1", "--output",
                                        self.path("a.json"), "--no-header"))
        self.assert_refused(done, "--no-header is for CSV alone")


if __name__ == "__main__":
    if not all(os.path.exists(os.environ.get("UVA_TEST_" + name, ""))
               for name in ("TOOL", "DRIVER")):
        print("skipped: UVA_TEST_TOOL or UVA_TEST_DRIVER is not there")
        sys.exit(77)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    unittest.main()
