#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Queries of `uvarrow serve` that are listed and ended by their number.
Environment variables as for test_serve_query.py.
"""
import os
import sys
import unittest
from urllib.parse import quote

sys.dont_write_bytecode = True
from server import FOREVER, Server, folder, main  # noqa: E402

SILENT = FOREVER.replace("SELECT i, ", "SELECT count(*), ")  # has no row
BLOCKED = ("SELECT hex(randomblob(1000)) AS a FROM "
           "(" + FOREVER + ")")  # fills the socket of a client that waits


def query(sql, form="csv"):
    return f"/query?format={form}&sql=" + quote(sql)


class Queries(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server(name="queries")

    @classmethod
    def tearDownClass(cls):
        assert cls.server.stop() == 0, cls.server.errors

    def running(self):
        return self.server.ask("/queries").json()["queries"]

    def begun(self, condition):
        """The query under way, once it satisfies the condition."""
        self.server.wait(lambda stats: any(
            condition(query) for query in stats["queries"]["running"]))
        return self.running()[0]

    def end(self, number):
        return self.server.ask(f"/queries/{number}", method="DELETE")

    def rest(self):
        """No query is left, nor a stream, once its driver has noticed."""
        self.server.wait(lambda stats: not stats["queries"]["running"]
                         and stats["runtime"]["streams"] == 0
                         and stats["database"]["used"] == 0)
        self.assertEqual(self.running(), [])

    def test_none_is_under_way(self):
        answer = self.server.ask("/queries")
        self.assertEqual((answer.status, answer.json()), (200, {"queries": []}))

    def test_the_list_shows_the_text(self):
        sql = "-- \u00e9 \"quoted\"\n" + SILENT
        with self.server.client() as client:
            client.request(query(sql, "json"))
            found = self.begun(lambda query: True)
            self.assertEqual(found["sql"], sql)
            self.assertEqual((found["format"], found["begun"], found["rows"]),
                             ("json", False, 0))
            self.assertRegex(found["client"], r"^127\.0\.0\.1")
        self.rest()

    def test_a_long_text_is_cut(self):
        with self.server.client() as client:
            client.request(query(SILENT + " -- " + "\u20ac" * 600))
            self.assertGreater(len(self.begun(bool)["sql"]), 1000)
        self.rest()

    def test_before_its_rows_its_client_gets_409(self):
        before = self.server.stats()["queries"]
        with self.server.client() as client:
            client.request(query(SILENT))
            number = self.begun(bool)["id"]
            answer = self.end(number)
            self.assertEqual((answer.status, answer.body), (204, b""))
            answer = client.answer()
            self.assertEqual(answer.status, 409)
            self.assertEqual(answer.headers["x-query-id"], str(number))
            self.assertEqual(answer.message(),
                             f"the query was ended: DELETE /queries/{number}")
            # the connection goes on
            self.assertEqual(client.ask(query("SELECT 1 AS a")).body, b"a\n1\n")
        self.assertEqual(self.end(number).status, 404)
        self.rest()
        after = self.server.stats()["queries"]
        self.assertEqual(after["ended"], before["ended"] + 1)
        self.assertEqual(after["cancelled"], before["cancelled"])

    def test_a_client_that_waits_for_its_next_answers(self):
        """The end of the first query begins the next one of its client, which
        ends the first one again."""
        with self.server.client() as client:
            client.request(query(SILENT))
            number = self.begun(bool)["id"]
            client.request(f"/queries/{number}", method="DELETE")
            client.request(query("SELECT 1 AS a"))
            self.assertEqual(self.end(number).status, 204)
            self.assertEqual([client.answer().status for _ in range(3)],
                             [409, 404, 200])
        self.rest()

    def test_after_its_rows_its_answer_is_cut(self):
        for form, codings in ("csv", ""), ("arrow", ""), ("json-array", "zstd"):
            with self.subTest(form=form), self.server.client() as client:
                client.request(query(BLOCKED, form), Accept_Encoding=codings)
                number = self.begun(lambda query: query["paused"])["id"]
                self.assertEqual(self.end(number).status, 204)
                answer = client.answer()
                self.assertEqual((answer.status, answer.is_whole), (200, False))
                self.assertEqual(answer.headers["x-query-id"], str(number))
                self.rest()
                cut = self.server.stats()["queries"]["cut"][-1]
                self.assertEqual(cut["id"], number)
                self.assertIn("was ended", cut["error"])

    def test_one_that_waits_for_a_connection(self):
        with Server("--max-queries", "1", name="queries-1") as server:
            with server.client() as first, server.client() as second:
                first.request(query(SILENT))
                server.wait(lambda stats: stats["database"]["used"] == 1)
                second.request(query("SELECT 1"))
                server.wait(lambda stats: stats["database"]["waiting"] == 1)
                number = server.ask("/queries").json()["queries"][0]["id"]
                server.ask(f"/queries/{number}", method="DELETE")
                self.assertEqual(second.answer().status, 409)
            server.wait(lambda stats: stats["database"]["used"] == 0)

    def test_the_next_of_a_client_takes_the_place_of_the_one_that_ends(self):
        with Server("--max-queries", "1", "--max-waiting", "1",
                    name="queries-2") as server:
            with server.client() as first, server.client() as second:
                first.request(query(SILENT))
                server.wait(lambda stats: stats["database"]["used"] == 1)
                number = server.ask("/queries").json()["queries"][0]["id"]
                second.request(query("SELECT 1 AS a"))
                server.wait(lambda stats: stats["database"]["waiting"] == 1)
                first.request(query("SELECT 2 AS a"))
                server.ask(f"/queries/{number}", method="DELETE")
                self.assertEqual([first.answer().status for _ in range(2)],
                                 [409, 200])
                self.assertEqual(second.answer().status, 200)

    def test_numbers_that_are_none(self):
        for text in ("", "0", "-1", "x", "1x", "99999999999999999999999", "1/2",
                     "%31%00", "1?a=b"):
            self.assertIn(self.end(text).status, (400, 404), text)

    def test_methods(self):
        for path, method, allowed in (("/queries", "DELETE", "GET, HEAD"),
                                      ("/queries/1", "GET", "DELETE"),
                                      ("/queries", "POST", "GET, HEAD"),
                                      ("/query", "DELETE", "GET, HEAD, POST")):
            answer = self.server.ask(path, method=method)
            self.assertEqual(answer.status, 405)
            self.assertEqual(answer.headers["allow"], allowed)

    def test_the_token_is_needed_and_pages_elsewhere_are_refused(self):
        path = os.path.join(folder(), f"queries-{os.getpid()}.token")
        with open(path, "w", encoding="utf-8") as file:
            file.write("a-token-of-some-length\n")
        try:
            with Server("--token-file", path, name="queries-token") as server:
                for method, name in ("GET", "/queries"), ("DELETE", "/queries/1"):
                    answer = server.ask(name, method=method)
                    self.assertEqual(answer.status, 401)
                token = "Bearer a-token-of-some-length"
                self.assertEqual(server.ask("/queries/1", method="DELETE",
                                            Authorization=token).status, 404)
        finally:
            os.remove(path)
        answer = self.server.ask("/queries/1", method="DELETE",
                                 Origin="https://evil.example")
        self.assertEqual(answer.status, 403)

    def test_a_failed_query_has_its_number(self):
        self.assertGreater(int(self.server.ask(query("SELECT")).headers
                               ["x-query-id"]), 0)


if __name__ == "__main__":
    main()
