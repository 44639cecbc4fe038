#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`uvarrow query` with several inputs: one after the other, or merged.
Environment variables as for test_serve_query.py.
"""
import os
import subprocess
import sys
import unittest

sys.dont_write_bytecode = True
from command import PATIENCE, Terminal, path_of, query  # noqa: E402

try:
    import pyarrow
except ImportError:
    pyarrow = None

HAS_SERVER = "  serve " in query(command="help").stdout


class Several(unittest.TestCase):
    def file_of(self, name, sql, *words):
        path = path_of(name)
        self.addCleanup(os.remove, path)
        done = query(":memory:", sql, "--output", path, *words)
        self.assertEqual(done.returncode, 0, done.stderr)
        return path

    def numbers(self, name, first, last, *words):
        return self.file_of(
            name, f"WITH RECURSIVE n(i) AS (SELECT {first} UNION ALL SELECT "
            f"i + 1 FROM n WHERE i < {last}) SELECT i FROM n", *words)

    def assert_refused(self, done, *parts):
        self.assertEqual((done.returncode, done.stdout), (2, ""), done.stderr)
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        for part in parts:
            self.assertIn(part, done.stderr)


class Files(Several):
    def test_files_follow_one_another(self):
        a = self.numbers("a.arrow", 1, 3000)
        b = self.numbers("b.arrows", 3001, 3003)
        done = query("--from", a, "--from", b)
        self.assertEqual(done.stdout.split(),
                         ["i"] + [str(i) for i in range(1, 3004)])
        self.assertIn("complete: 3,003 rows", done.stderr)
        done = query("--from", b, "--from", a, "--from", b, "--quiet")
        self.assertEqual(done.stdout.split()[:5], ["i", "3001", "3002", "3003",
                                                   "1"])
        self.assertEqual((done.stdout.count("\n"), done.stderr), (3007, ""))

    def test_files_are_merged(self):
        a = self.numbers("a.arrow", 1, 3000)
        b = self.numbers("b.arrow", 3001, 6000)
        done = query("--from", a, "--from", b, "--merge", "--quiet")
        rows = [int(row) for row in done.stdout.split()[1:]]
        self.assertEqual(sorted(rows), list(range(1, 6001)))
        for first in (1, 3001):  # each of them in order
            own = [row for row in rows if first <= row < first + 3000]
            self.assertEqual(own, sorted(own))

    def test_standard_input_may_be_one_of_them(self):
        a, b = self.numbers("a.arrow", 1, 2), self.numbers("b.arrows", 3, 4)
        with open(b, "rb") as file:
            done = subprocess.run(
                [os.environ["UVA_TEST_TOOL"], "query", "--from", a, "--from",
                 "-", "--quiet"], stdin=file, capture_output=True,
                timeout=PATIENCE, check=False)
        self.assertEqual(done.stdout, b"i\n1\n2\n3\n4\n")

    def test_other_types_are_cast_if_that_is_wanted(self):
        a = self.file_of("a.arrow", "SELECT 1 AS n, 'x' AS t")
        b = self.file_of("b.arrow", "SELECT 'y' AS t, 2.0 AS n")
        self.assert_refused_half(query("--from", a, "--from", b), b)
        done = query("--from", a, "--from", b, "--cast", "--quiet")
        self.assertEqual(done.stdout, "n,t\n1,x\n2,y\n")
        c = self.file_of("c.arrow", "SELECT 'z' AS t, 2.5 AS n")
        done = query("--from", a, "--from", c, "--cast")
        self.assertEqual(done.returncode, 1)
        self.assertIn("n", done.stderr)

    def assert_refused_half(self, done, path):
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("schema", done.stderr)

    def test_the_progress_counts_all_files(self):
        """More text than the command keeps for its reader, who is not there."""
        a = self.numbers("a.arrow", 1, 150000)
        b = self.numbers("b.arrow", 1, 1000000)
        ours, other = os.pipe()
        terminal = Terminal("--from", a, "--from", b, "--format", "csv",
                            stdout=other)
        os.close(other)
        terminal.until(" of 1,150,000 rows  ")
        os.close(ours)
        terminal.end()

    def test_an_error_names_the_file(self):
        a = self.numbers("a.arrow", 1, 2)
        broken = path_of("broken.arrow")
        self.addCleanup(os.remove, broken)
        with open(broken, "wb") as file:
            file.write(b"no arrow")
        done = query("--from", a, "--from", broken)
        self.assertEqual(done.returncode, 1)
        self.assertIn(broken, done.stderr)
        self.assertNotIn(a, done.stderr)
        done = query("--from", a, "--from", "/nonexistent/b.arrow")
        self.assertIn("/nonexistent/b.arrow", done.stderr)
        self.assertIn(done.returncode, (1, 2))

    def test_none_of_them_may_be_the_output(self):
        a, b = self.numbers("a.arrow", 1, 2), self.numbers("b.arrow", 3, 4)
        self.assert_refused(query("--from", a, "--from", b, "--output", b),
                            b, "the input")


class Refused(Several):
    def test_options_that_have_no_sense(self):
        many = [word for i in range(101) for word in ("--from", f"{i}.arrow")]
        url = "http://127.0.0.1:1"
        for words, part in (
                (("--from", "a", "--merge"), "--merge is for more than one"),
                (("--from", "a", "--cast"), "--cast is for more than one"),
                (("--merge", ":memory:", "SELECT 1"), "--merge is for more"),
                (("--from", "-", "--from", "-"), "more than one --from is -"),
                (("--from", url, "--from", "a"), "each --from is a file, or"),
                (("--from", "a", "--from", url), "each --from is a file, or"),
                (many, "more than 100 --from"),
                (("--from", "a", "--from", "b", "SELECT 1"), "no query"),
                (("--from", "a", "--from", "b", "--merge=1"), "no value")):
            with self.subTest(words=words):
                self.assert_refused(query(*words), part)


@unittest.skipUnless(HAS_SERVER, "there is no uvarrow serve")
class Servers(Several):
    def test_servers_are_asked_the_same(self):
        from server import Server
        with Server(name="source-a") as a, Server(name="source-b") as b:
            urls = [f"http://127.0.0.1:{server.port}" for server in (a, b)]
            words = ("--from", urls[0], "--from", urls[1], "--quiet",
                     "SELECT i FROM numbers WHERE i < ?", "--param", "3")
            self.assertEqual(query(*words).stdout, "i\n0\n1\n2\n0\n1\n2\n")
            done = query(*words, "--merge")
            self.assertEqual(sorted(done.stdout.split()[1:]), list("001122"))
            urls = [url + "/query?sql=SELECT+7+AS+a" for url in urls]
            done = query("--from", urls[0], "--from", urls[1], "--quiet")
            self.assertEqual(done.stdout, "a\n7\n7\n")
            done = query("--from", urls[0], "--from", urls[1] + "%2Cx")
            self.assertNotEqual(done.returncode, 0)
            self.assertIn("no such column", done.stderr)


if __name__ == "__main__":
    unittest.main()
