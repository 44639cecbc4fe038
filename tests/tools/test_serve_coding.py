#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compressed answers of `uvarrow serve`. Environment variables as for
test_serve_query.py.
"""
import sys
import unittest
import zlib
from urllib.parse import quote

import pyarrow

sys.dont_write_bytecode = True
from server import FOREVER, Server, main  # noqa: E402

MANY = FOREVER + " LIMIT 30000"
LATE_ERROR = (FOREVER.replace("FROM n)", "FROM n WHERE i < 200000)")
              + " WHERE i < 199999 OR abs(-9223372036854775808 + 0 * i)")


def query(sql, form="csv"):
    return f"/query?format={form}&sql=" + quote(sql)


def decode(coding, data):
    """The text of a whole body."""
    if coding == "gzip":
        decoder = zlib.decompressobj(31)
        text = decoder.decompress(data)
        assert decoder.eof and not decoder.unused_data
        return text
    with pyarrow.CompressedInputStream(pyarrow.BufferReader(data), coding) as f:
        return f.read()


class Coding(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server(name="coding")
        answer = cls.server.ask(query("SELECT 1"), Accept_Encoding="gzip, zstd")
        if "content-encoding" not in answer.headers:
            cls.server.stop()
            raise unittest.SkipTest("built without a library of codings")

    @classmethod
    def tearDownClass(cls):
        assert cls.server.stop() == 0, cls.server.errors

    def check(self, path, coding, **options):
        plain = self.server.ask(path)
        self.assertNotIn("content-encoding", plain.headers)
        answer = self.server.ask(path, Accept_Encoding=coding, **options)
        self.assertEqual(answer.headers["content-encoding"], coding)
        self.assertIn("Accept-Encoding", answer.headers["vary"])
        self.assertEqual(answer.headers["content-type"],
                         plain.headers["content-type"])
        self.assertTrue(answer.is_whole)
        self.assertEqual(decode(coding, answer.body), plain.body)
        return plain, answer

    def test_each_format_of_text(self):
        for coding in "gzip", "zstd":
            for form in "csv", "json", "json-array":
                for sql in "SELECT 1 AS a", "SELECT 1 AS a WHERE 0", MANY:
                    with self.subTest(coding=coding, form=form, sql=sql):
                        plain, answer = self.check(query(sql, form), coding)
                self.assertLess(len(answer.body), len(plain.body) / 4)

    def test_tables(self):
        self.check("/tables?format=json", "gzip")

    def test_the_weights_decide(self):
        for accept, coding in (("gzip;q=0.5, zstd;q=0.4", "gzip"),
                               ("gzip, deflate, br, zstd", "zstd"),
                               ("br;q=1, *;q=0", None),
                               ("identity, gzip;q=0.9", None)):
            answer = self.server.ask(query("SELECT 1"), Accept_Encoding=accept)
            self.assertEqual(answer.headers.get("content-encoding"), coding)

    def test_two_lines_are_one_list(self):
        with self.server.client() as client:
            client.send(f"GET {query('SELECT 1')} HTTP/1.1\r\n"
                        f"Host: 127.0.0.1:{client.port}\r\n"
                        "Accept-Encoding: br\r\naccept-encoding: gzip\r\n\r\n")
            self.assertEqual(client.answer().headers["content-encoding"], "gzip")

    def test_arrow_and_errors_are_as_they_are(self):
        for path, status in ((query("SELECT 1", "arrow"), 200),
                             (query("SELECT"), 400), ("/stats", 200),
                             ("/", 200)):
            answer = self.server.ask(path, Accept_Encoding="gzip, zstd")
            self.assertEqual(answer.status, status)
            self.assertNotIn("content-encoding", answer.headers)

    def test_head(self):
        answer = self.server.ask(query(MANY), method="HEAD",
                                 Accept_Encoding="zstd")
        self.assertEqual(answer.headers["content-encoding"], "zstd")

    def test_http_1_0(self):
        with self.server.client() as client:
            client.send(f"GET {query('SELECT 1 AS a')} HTTP/1.0\r\n"
                        "Accept-Encoding: gzip\r\n\r\n")
            self.assertEqual(decode("gzip", client.answer().body), b"a\n1\n")

    def test_first_rows_come_at_once(self):
        """A query that never ends has rows that can be read."""
        with self.server.client() as client:
            client.request(query(FOREVER), Accept_Encoding="gzip")
            client.until(b"\r\n\r\n")
            size = int(client.until(b"\r\n"), 16)
            text = zlib.decompressobj(31).decompress(client.exactly(size))
            self.assertTrue(text.startswith(b"i,text\n1,some text"))
            self.assertTrue(text.endswith(b"buffers with\n"))

    def test_a_client_that_leaves_in_the_middle(self):
        before = self.server.stats()["queries"]["cancelled"]
        for coding in "gzip", "zstd", "gzip", "zstd":
            with self.server.client() as client:
                client.request(query(FOREVER), Accept_Encoding=coding)
                client.until(b"\r\n\r\n")
                client.exactly(1000)
        stats = self.server.wait(
            lambda stats: stats["queries"]["cancelled"] == before + 4)
        self.server.wait(lambda stats: stats["runtime"]["streams"] == 0)
        self.assertEqual(stats["queries"]["running"], [])

    def test_a_client_that_does_not_read_stops_its_query(self):
        with self.server.client() as client:
            client.request(query(FOREVER.replace(
                "'some text to fill the buffers with'",
                "hex(randomblob(500))")), Accept_Encoding="zstd")
            client.until(b"\r\n\r\n")
            stats = self.server.wait(lambda stats: any(
                query["paused"] for query in stats["queries"]["running"]))
            rows = stats["queries"]["running"][0]["rows"]
            self.assertGreater(rows, 0)
            # it goes on once it is read
            client.exactly(1 << 20)
        self.server.wait(lambda stats: not stats["queries"]["running"])

    def test_a_cut_answer_has_no_end(self):
        for coding in "gzip", "zstd":
            answer = self.server.ask(query(LATE_ERROR), Accept_Encoding=coding)
            self.assertEqual((answer.status, answer.is_whole), (200, False))
        answer = self.server.ask(query(LATE_ERROR), Accept_Encoding="gzip")
        decoder = zlib.decompressobj(31)
        self.assertTrue(decoder.decompress(answer.body).endswith(b"\n"))
        self.assertFalse(decoder.eof)


if __name__ == "__main__":
    main()
