#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Answers of `uvarrow serve` as one array of JSON. Environment variables as for
test_serve_query.py.
"""
import json
import sys
import unittest
from urllib.parse import quote

sys.dont_write_bytecode = True
from server import FOREVER, Server, main  # noqa: E402


def query(sql):
    return "/query?format=json-array&sql=" + quote(sql)


class Array(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server(name="array")

    @classmethod
    def tearDownClass(cls):
        assert cls.server.stop() == 0, cls.server.errors

    def test_it_has_the_objects_of_the_lines(self):
        sql = "SELECT i, text, 'a' || char(10) || ',[]' AS t FROM numbers"
        answer = self.server.ask(query(sql))
        self.assertEqual(answer.headers["content-type"], "application/json")
        lines = self.server.ask(query(sql).replace("json-array", "json")).body
        self.assertEqual(answer.body, b"[" + lines.rstrip(b"\n").replace(
            b"\n", b",\n") + b"]\n")
        self.assertEqual(len(answer.json()), 1000)
        self.assertEqual(answer.json()[7], {"i": 7, "text": "row 7",
                                            "t": "a\n,[]"})

    def test_few_rows_and_many(self):
        for count in 0, 1, 2, 200000:
            answer = self.server.ask(query(FOREVER + f" LIMIT {count}"))
            self.assertTrue(answer.is_whole)
            rows = answer.json()
            self.assertEqual([row["i"] for row in rows],
                             [*range(1, count + 1)])

    def test_by_accept(self):
        answer = self.server.ask("/query?sql=SELECT+1+AS+a",
                                 Accept="application/json")
        self.assertEqual(answer.body, b'[{"a":1}]\n')

    def test_head(self):
        with self.server.client() as client:
            for sql in "SELECT 1", "SELECT 1 WHERE 0":
                answer = client.ask(query(sql), method="HEAD")
                self.assertEqual(answer.status, 200)
            self.assertEqual(client.ask(query("SELECT 1 AS a")).body,
                             b'[{"a":1}]\n')

    def test_a_cut_one_has_no_end(self):
        answer = self.server.ask(query(
            FOREVER.replace("FROM n)", "FROM n WHERE i < 200000)") +
            " WHERE i < 199999 OR abs(-9223372036854775808 + 0 * i)"))
        self.assertFalse(answer.is_whole)
        with self.assertRaises(json.JSONDecodeError):
            answer.json()

    def test_tables(self):
        tables = self.server.ask("/tables?format=json-array").json()
        self.assertEqual(tables[0]["catalog_db_schemas"][0]["db_schema_tables"]
                         [0]["table_name"], "numbers")


if __name__ == "__main__":
    main()
