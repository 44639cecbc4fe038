#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The trace that `uvarrow query --trace` writes of a real SQLite file: it is
JSON, its spans lie within each other, and the arrows lead each batch from the
source over its threads to the consumer.

Environment variables give the paths: UVA_TEST_TOOL the command,
UVA_TEST_DRIVER the ADBC driver for SQLite, UVA_TEST_FLIGHTS flights.csv.zip,
UVA_TEST_BUILD a folder for files.
"""
import collections
import json
import os
import subprocess
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(HERE, "..", "..", "tools"))
import flights  # noqa: E402

PATIENCE = 600  # seconds
BATCHES = 329   # of all flights, as the driver makes them


class Trace(unittest.TestCase):
    uvarrow = driver = zipped = folder = None

    @classmethod
    def setUpClass(cls):
        os.makedirs(cls.folder, exist_ok=True)
        cls.flights = os.path.join(cls.folder, "flights.db")
        cls.path = os.path.join(cls.folder, "trace.json")
        flights.build(cls.zipped, cls.flights)

    def query(self, *options, **variables):
        return subprocess.run(
            [self.uvarrow, "query", "--quiet", "--driver", self.driver, "--uri",
             "file:" + self.flights, *options, "SELECT * FROM flights"],
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
            timeout=PATIENCE, env={**os.environ, **variables})

    def events(self):
        with open(self.path, encoding="utf-8") as file:
            return json.load(file)


class Flights(Trace):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        result = cls.query(cls, "--trace", cls.path)
        assert (result.returncode, result.stderr) == (0, ""), result
        cls.trace = cls.events(cls)

    def of(self, phase, name=None):
        return [event for event in self.trace if event["ph"] == phase
                and name in (None, event["name"])]

    def test_every_batch_has_its_spans(self):
        for name, count in (("get_next", BATCHES), ("map", BATCHES),
                            ("transform", BATCHES), ("on_batch", BATCHES)):
            batches = [event["args"]["batch"] for event in self.of("X", name)
                       if "batch" in event["args"]]  # the read of the end
            self.assertEqual(sorted(batches), list(range(count)), name)

    def test_every_thread_has_a_name(self):
        named = {event["tid"]: event["args"]["name"]
                 for event in self.of("M", "thread_name")}
        for event in self.of("X"):
            self.assertIn(event["tid"], named)
        self.assertRegex(" ".join(named.values()), r"\buva-b[01]\b")

    def test_spans_of_a_thread_nest(self):
        lanes = collections.defaultdict(list)
        for event in self.of("X"):
            begin = round(event["ts"] * 1000)
            lanes[event["tid"]].append(
                (begin, begin + round(event["dur"] * 1000)))
        for spans in lanes.values():
            stack = []
            for begin, end in sorted(spans, key=lambda s: (s[0], -s[1])):
                while stack and stack[-1] <= begin:
                    stack.pop()
                self.assertTrue(not stack or end <= stack[-1], (begin, end))
                stack.append(end)

    def test_arrows_lead_from_the_source_to_the_consumer(self):
        """The transform numbers batches anew: an arrow ends there, and another
        one leads to the consumer."""
        spans = {(event["tid"], event["ts"]): event for event in self.of("X")}
        flows = collections.defaultdict(list)
        for event in self.trace:
            if event["ph"] in "stf":
                flows[event["id"]].append(event)
        found = collections.Counter()
        for points in flows.values():
            points.sort(key=lambda point: point["ts"])
            self.assertRegex("".join(point["ph"] for point in points),
                             "^st*f?$")
            bound = [spans[point["tid"], point["ts"]] for point in points]
            names = tuple(span["name"] for span in bound)
            found[names] += 1
            if names[0] == "get_next":
                self.assertEqual(
                    len({(span["args"]["stream"], span["args"]["batch"])
                         for span in bound}), 1)
                self.assertGreater(len({span["tid"] for span in bound}), 1)
        self.assertEqual(found, {("get_next", "map", "transform"): BATCHES,
                                 ("map", "on_batch"): BATCHES})

    def test_queues_are_counted(self):
        names = {event["name"] for event in self.of("C")}
        self.assertTrue(any(name.startswith("batches in query (0) of ")
                            for name in names), names)
        for event in self.of("C"):
            self.assertGreaterEqual(min(event["args"].values()), 0)

    def test_every_wait_ends(self):
        begun = {event["id"]: event["ts"] for event in self.of("b")}
        ended = {event["id"]: event["ts"] for event in self.of("e")}
        self.assertEqual(begun.keys(), ended.keys())
        for number, begin in begun.items():
            self.assertLessEqual(begin, ended[number])

    def test_the_timeline_shows_it(self):
        result = subprocess.run([self.uvarrow, "timeline", self.path],
                                capture_output=True, timeout=PATIENCE)
        self.assertEqual((result.returncode, result.stderr), (0, b""))


class WhereItGoes(Trace):
    def test_the_environment_gives_the_path(self):
        result = self.query(UVA_TRACE=self.path)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.assertGreater(len(self.events()), BATCHES)

    def test_without_either_nothing_is_written(self):
        os.unlink(self.path) if os.path.exists(self.path) else None
        self.assertEqual(self.query().returncode, 0)
        self.assertFalse(os.path.exists(self.path))

    def test_a_path_that_cannot_be_written(self):
        result = self.query("--trace", "/no/trace.json")
        self.assertEqual((result.returncode, result.stderr), (
            2, "uvarrow: cannot write the trace /no/trace.json: No such file "
            "or directory\n"))
        result = self.query(UVA_TRACE="/no/trace.json")
        self.assertEqual((result.returncode, result.stderr), (
            0, "uvarrow: warn: UVA_TRACE: cannot write to /no/trace.json: No "
            "such file or directory\n"))


if __name__ == "__main__":
    names = ("TOOL", "DRIVER", "FLIGHTS", "BUILD")
    paths = [os.environ.get("UVA_TEST_" + name, "") for name in names]
    if not all(map(os.path.exists, paths)):
        print("skipped: one of", ", ".join("UVA_TEST_" + n for n in names),
              "is not there; run scripts/bootstrap and build", __doc__)
        sys.exit(77)
    Trace.uvarrow, Trace.driver, Trace.zipped, build = paths
    Trace.folder = os.path.join(build, "test_trace_file")
    unittest.main()
