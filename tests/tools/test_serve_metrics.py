#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The metrics of `uvarrow serve`, read as strictly as Prometheus reads them.
Environment variables as for test_serve_query.py.
"""
import os
import re
import sys
import unittest
from urllib.parse import quote

sys.dont_write_bytecode = True
from server import FOREVER, Server, folder, main  # noqa: E402

HELP = re.compile(r"# HELP ([a-z_]+) [A-Z][^\\]*\.")
TYPE = re.compile(r"# TYPE ([a-z_]+) (counter|gauge)")
SAMPLE = re.compile(r'([a-z_]+)(?:\{([a-z_]+)="([a-z_]+)"\})? ([0-9.]+)')


def query(sql, **more):
    return "/query?format=csv&sql=" + quote(sql) + "".join(
        f"&{name}={value}" for name, value in more.items())


def parse(text):
    """The values by (name, label)."""
    values, described = {}, set()
    assert text.endswith("\n")
    lines = text[:-1].split("\n")
    while lines:
        name = HELP.fullmatch(lines.pop(0))[1]
        kind = TYPE.fullmatch(lines.pop(0))
        assert kind[1] == name and name not in described, name
        assert (kind[2] == "counter") == name.endswith("_total"), name
        described.add(name)
        count = len(values)
        while lines and not lines[0].startswith("#"):
            sample = SAMPLE.fullmatch(lines.pop(0))
            assert sample[1] == name and (name, sample[3]) not in values
            values[name, sample[3]] = float(sample[4])
        assert len(values) > count, name
    return values


class Metrics(unittest.TestCase):
    def setUp(self):
        self.server = Server("--query-ms", "60000", "--memory-bytes",
                             "1000000", name="metrics")

    def tearDown(self):
        self.assertEqual(self.server.stop(), 0)

    def read(self):
        answer = self.server.ask("/metrics")
        self.assertEqual(answer.status, 200)
        self.assertEqual(answer.headers["content-type"],
                         "text/plain; version=0.0.4; charset=utf-8")
        return parse(answer.body.decode("ascii"))

    def outcomes(self):
        return {label: count for (name, label), count in self.read().items()
                if name == "uvarrow_queries_total"}

    def test_queries_by_outcome(self):
        none = dict.fromkeys(("complete", "failed", "timed_out", "cancelled",
                              "ended", "refused"), 0)
        self.assertEqual(self.outcomes(), none)
        self.server.ask(query("SELECT 1"))
        self.server.ask(query("SELECT 1"))
        self.server.ask(query("SELECT nothing"))
        silent = FOREVER.replace("SELECT i, ", "SELECT count(*), ")
        self.assertEqual(self.server.ask(query(silent, timeout=50)).status, 504)
        self.server.wait(lambda stats: stats["database"]["used"] == 0)
        with self.server.client() as client:
            client.request(query(FOREVER))
            client.until(b"\r\n\r\n")
            values = self.read()
            self.assertEqual(values["uvarrow_queries_running", None], 1)
            self.assertEqual(values["uvarrow_http_connections", None], 2)
            self.assertGreater(values["uvarrow_memory_held_bytes", None], 0)
            self.assertEqual(values["uvarrow_database_connections", "used"], 1)
        self.server.wait(lambda stats: not stats["queries"]["running"])
        with self.server.client() as client:
            client.request(query(silent))
            running = self.server.wait(
                lambda stats: stats["queries"]["running"])["queries"]["running"]
            self.server.ask(f"/queries/{running[0]['id']}", method="DELETE")
        self.assertEqual(self.outcomes(), {
            **none, "complete": 2, "failed": 1, "timed_out": 1, "cancelled": 1,
            "ended": 1})

    def test_rows_and_bytes(self):
        body = self.server.ask(query("SELECT * FROM numbers")).body
        coded = self.server.ask(query("SELECT * FROM numbers"),
                                Accept_Encoding="gzip").body
        values = self.read()
        self.assertEqual(values["uvarrow_rows_total", None], 2000)
        self.assertEqual(values["uvarrow_bytes_total", None],
                         len(body) + len(coded))

    def test_the_rest(self):
        values = self.read()
        self.assertEqual(values["uvarrow_memory_limit_bytes", None], 1000000)
        self.assertEqual(values["uvarrow_calls_stuck", None], 0)
        self.assertGreater(values["uvarrow_loop_delay_max_seconds", None], 0)
        self.assertGreater(values["uvarrow_database_connections_max", None], 8)
        before = values["uvarrow_http_requests_total", None]
        self.assertEqual(self.read()["uvarrow_http_requests_total", None],
                         before + 1)
        self.assertEqual(self.server.ask("/metrics?a=b").status, 200)

    def test_the_token_is_needed(self):
        path = os.path.join(folder(), f"metrics-{os.getpid()}.token")
        with open(path, "w", encoding="utf-8") as file:
            file.write("a-token-of-some-length\n")
        try:
            with Server("--token-file", path, name="metrics-token") as server:
                self.assertEqual(server.ask("/metrics").status, 401)
                self.assertEqual(server.ask(
                    "/metrics", Authorization="Bearer a-token-of-some-length"
                ).status, 200)
        finally:
            os.remove(path)


if __name__ == "__main__":
    main()
