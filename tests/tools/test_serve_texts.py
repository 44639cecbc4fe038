#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The texts of the errors of `uvarrow serve`: a client reads what went wrong, as
the database says it, and no name that only a program with several streams needs.
"""
import json
import sys
import unittest
import urllib.parse

sys.dont_write_bytecode = True
from server import FOREVER, Server, main  # noqa: E402

LATE_ERROR = (FOREVER.replace("FROM n)", "FROM n WHERE i < 200000)")
              + " WHERE i < 199999 OR abs(-9223372036854775808 + 0 * i)")


def query(sql, **options):
    options = {"format": "csv", "sql": sql, **options}
    return "/query?" + urllib.parse.urlencode(options)


class Texts(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server(name="texts")

    @classmethod
    def tearDownClass(cls):
        assert cls.server.stop() == 0, cls.server.errors

    def message(self, sql, **options):
        return self.server.ask(query(sql, **options)).message()

    def test_a_query_that_fails(self):
        self.assertEqual(
            self.message("SELECT abs(-9223372036854775808)"),
            "the query fails: Failed to step query: integer overflow")

    def test_a_long_text(self):
        name = "x" * 3000
        message = self.message(f"SELECT {name}")
        self.assertTrue(message.startswith("the query fails: "), message)
        self.assertIn(name, message)

    def test_several_statements(self):
        self.assertEqual(
            self.message("SELECT 1; SELECT 2"),
            "the text has several statements: the driver executes the first alone")

    def test_parameters(self):
        self.assertEqual(
            self.message("SELECT ?", parameters=json.dumps([1, 2])),
            "the query fails: parameter count mismatch: expected 1 but found 2")

    def test_an_error_after_rows(self):
        answer = self.server.ask(query(LATE_ERROR))
        self.assertEqual((answer.status, answer.is_whole), (200, False))
        cut = self.server.ask("/stats").json()["queries"]["cut"]
        self.assertEqual(cut[-1]["error"], "the query fails: integer overflow")

    def test_no_text_begins_with_the_name_of_a_source(self):
        for sql in ("", "SELECT", "SELECT FROM", "SELECT * FROM missing",
                    "SELECT ?", "DROP TABLE numbers", "SELECT x'"):
            self.assertNotRegex(self.message(sql), r"^\w+: ")


if __name__ == "__main__":
    main()
