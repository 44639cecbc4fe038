#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The page of `uvarrow timeline` in a headless Chromium: its summary of a
trace with known times, how it is used with keys, and that it runs only its own
script.

Environment variables give the paths: UVA_TEST_TOOL the command, UVA_TEST_BUILD
a folder for files. Skips where no Chromium is installed.
"""
import json
import os
import subprocess
import sys
import unittest

sys.dont_write_bytecode = True
import browser  # noqa: E402
from made_trace import made  # noqa: E402

PATIENCE = 600  # seconds


class Page(unittest.TestCase):
    uvarrow = folder = browser = None

    def show(self, trace):
        """Opens the page of a trace."""
        source, page = (os.path.join(self.folder, "trace." + kind)
                        for kind in ("json", "html"))
        with open(source, "w", encoding="utf-8") as file:
            file.write(trace if isinstance(trace, str) else trace.text())
        with open(page, "wb") as file:
            subprocess.run([self.uvarrow, "timeline", source], stdout=file,
                           check=True, timeout=PATIENCE)
        self.browser.open(page)

    def text(self, selector):
        return self.browser.evaluate(
            f"document.querySelector({json.dumps(selector)}).innerText")

    def rows(self, selector):
        """Returns the cells of each row of a table."""
        return self.browser.evaluate(
            f"[...document.querySelectorAll({json.dumps(selector)} + ' tr')]"
            ".map((row) => [...row.cells].map((cell) => cell.innerText))")

    def detail(self):
        return self.text("#detail")


def setUpModule():
    os.makedirs(Page.folder, exist_ok=True)
    Page.browser = browser.Browser(browser.find())


def tearDownModule():
    Page.browser.close()


class Summary(Page):
    def test_it_says_where_the_time_went(self):
        self.show(made(100))
        self.assertEqual(self.text("#facts"),
                         "904 events on 3 threads in 10.00 ms, 1 stream.")
        self.assertEqual(self.text("#summary h3"), "flights #1, 10.00 ms")
        head, source, stage, consumer = self.rows("#summary table")
        self.assertEqual(head, ["Part", "", "Busy", "Waiting for a worker",
                                "Starved", "Idle", "Calls", "Longest"])
        self.assertEqual(source, ["arrow_stream", "", "60 %", "0 %", "0 %",
                                  "40 %", "100", "60.00 µs"])
        self.assertEqual(stage, ["map", "", "30 %", "0 %", "60 %", "10 %",
                                 "100", "30.00 µs"])
        self.assertEqual(consumer, ["consumer", "", "10 %", "0 %", "90 %",
                                    "0 %", "100", "10.00 µs"])
        self.assertTrue(self.text(".verdict").startswith(
            "The time went into arrow_stream, which was busy 60 % of it."))

    def test_a_wait_for_a_worker_counts_for_its_stage(self):
        trace = made(10)
        trace.wait(0, 60, 1)
        trace.wait(30, 90, 2)  # 30 of it while the stage was busy
        self.show(trace)
        self.assertEqual(self.rows("#summary table")[2][2:6],
                         ["30 %", "6.0 %", "54 %", "10 %"])

    def test_time_without_a_request_is_idle(self):
        trace = made(1)
        trace.batch(1, 900)  # requested only then
        self.show(trace)
        self.assertEqual(self.rows("#summary table")[3][2:6],
                         ["2.0 %", "0 %", "18 %", "80 %"])

    def test_a_consumer_that_is_busy_is_named(self):
        trace = made(1)
        trace.span(7, 100, 900, "on_batch", (2, "consumer"), 1)
        self.show(trace)
        self.assertIn("Batches wait for the consumer", self.text(".verdict"))

    def test_each_stream_has_its_table(self):
        trace = made(2, "second #2")
        trace.events += made(3).events
        self.show(trace)
        self.assertEqual(self.browser.evaluate(
            "[...document.querySelectorAll('h3')].map((h) => h.innerText)"),
            ["flights #1, 300.0 µs", "second #2, 200.0 µs"])

    def test_calls_are_counted_by_function(self):
        self.show(made(100))
        self.assertEqual(self.rows("#functions table")[1:], [
            ["get_next", "arrow_stream", "100", "6.000 ms", "60.00 µs",
             "60.00 µs", "1"],
            ["map", "map", "100", "3.000 ms", "30.00 µs", "30.00 µs", "1"],
            ["on_batch", "consumer", "100", "1.000 ms", "10.00 µs",
             "10.00 µs", "1"]])

    def test_lost_events_are_shown(self):
        trace = made(2)
        trace.events.append(trace.event("i", 7, 150, s="g", name="events lost",
                                        args={"value": 12}))
        self.show(trace)
        self.assertIn("12 events came too fast to be written and are missing.",
                      self.text("#facts"))

    def test_a_trace_of_another_program_is_drawn_too(self):
        self.show('{"traceEvents":[{"ph":"B","pid":1,"tid":1,"ts":1,"name":"a"}'
                  ',{"ph":"E","pid":1,"tid":1,"ts":3},{"ph":"Z"},{},'
                  '{"ph":"X","name":"b","pid":1,"tid":1},{"ph":"I","name":"c"},'
                  '{"ph":"C","name":"d","args":{"x":"y"}},{"ph":"e","id":1}]}')
        self.assertEqual(self.browser.seen("Runtime.exceptionThrown"), [])
        self.assertIn("no event of a stream", self.text("#summary"))
        self.assertEqual(self.rows("#functions table")[1][0], "a")


class Lanes(Page):
    def setUp(self):
        self.show(made(100))
        self.browser.evaluate("document.getElementById('lanes').focus()")

    def shown(self):
        return self.browser.evaluate("[page.from, page.to].map(Math.round)")

    def test_the_longest_span_is_selected_first(self):
        self.assertEqual(
            self.detail(), "get_next of arrow_stream, flights #1, "
            "batch 0: 60.00 µs, from 0 ns on, on uva-b0 (8)")

    def test_a_batch_is_followed_over_its_threads(self):
        for name in ("map", "on_batch", "get_next"):
            self.browser.press("f", "f")
            self.assertTrue(self.detail().startswith(name), self.detail())
            self.assertIn("batch 0:", self.detail())

    def test_keys_move_zoom_and_select(self):
        self.assertEqual(self.shown(), [0, 10000])
        self.browser.press("+", "+")
        self.assertEqual(self.shown(), [0, 5000])
        self.browser.press("ArrowRight")
        self.assertEqual(self.shown(), [1000, 6000])
        self.browser.press("ArrowLeft")
        self.browser.press("ArrowLeft")
        self.assertEqual(self.shown(), [0, 5000])
        self.browser.press("-", "-")
        self.assertEqual(self.shown(), [0, 10000])
        self.browser.press("n", "n")
        self.assertIn("batch 1:", self.detail())
        self.browser.press("p", "p")
        self.assertIn("batch 0:", self.detail())
        self.browser.press("ArrowDown")
        self.assertTrue(self.detail().startswith("map"), self.detail())
        self.browser.press("ArrowUp")
        self.browser.press("Enter", "\r")
        self.assertEqual(self.shown(), [40, 220])
        self.browser.press("0", "0")
        self.assertEqual(self.shown(), [0, 10000])
        self.browser.press("Escape")
        self.assertIn("Select a span", self.detail())

    def test_a_click_selects(self):
        x, y = self.browser.evaluate(
            "(() => { const box = document.getElementById('lanes')"
            ".getBoundingClientRect(); const lane = page.trace.lanes[1];"
            "return [box.left + xOf(page.trace.lanes[1].spans[3].at + 15),"
            " box.top + lane.y + 9]; })()")
        for kind in ("mousePressed", "mouseReleased"):
            self.browser.call("Input.dispatchMouseEvent", type=kind, x=x, y=y,
                              button="left", clickCount=1)
        self.assertRegex(self.detail(), r"^map, flights #1, batch 3:")

    def test_every_control_is_reached_by_the_tab_key(self):
        self.browser.evaluate("document.activeElement.blur()")
        reached = []
        for _ in range(9):
            self.browser.press("Tab")
            reached.append(self.browser.evaluate(
                "document.activeElement.id || document.activeElement.tagName"))
        for wanted in ("zoom-in", "zoom-out", "zoom-all", "before", "after",
                       "along", "lanes", "SUMMARY"):
            self.assertIn(wanted, reached)

    def test_something_is_drawn(self):
        colors = self.browser.evaluate(
            "(() => { const canvas = document.getElementById('lanes');"
            "const data = canvas.getContext('2d').getImageData(0, 0,"
            " canvas.width, canvas.height).data; const seen = new Set();"
            "for (let i = 0; i < data.length; i += 4)"
            " seen.add(data.slice(i, i + 3).join()); return seen.size; })()")
        self.assertGreater(colors, 5)

    def test_both_color_schemes_are_drawn(self):
        papers = set()
        for scheme in ("light", "dark"):
            self.browser.call("Emulation.setEmulatedMedia", features=[
                {"name": "prefers-color-scheme", "value": scheme}])
            papers.add(self.browser.evaluate(
                "new Promise((done) => requestAnimationFrame(() =>"
                " requestAnimationFrame(() => done(page.colors.paper))))"))
        self.assertEqual(len(papers), 2)


class Safety(Page):
    NAME = ("</script><script>window.broken = 1</script>"
            "<img src=x onerror='window.broken = 1'><!-- ]]> & \u2028 ä🚀")

    def test_a_name_is_text_wherever_it_stands(self):
        self.show(made(3, self.NAME + " #1"))
        self.assertIsNone(self.browser.evaluate("window.broken"))
        self.assertEqual(self.browser.evaluate("document.images.length"), 0)
        self.assertEqual(self.browser.evaluate(
            "document.querySelector('#summary h3').textContent"),
            self.NAME + " #1, 300.0 µs")

    def test_the_policy_refuses_other_scripts_and_addresses(self):
        self.show(made(3))
        self.browser.evaluate(
            "(() => { const script = document.createElement('script');"
            "script.textContent = 'window.broken = 1';"
            "document.body.append(script); })()")
        self.assertIsNone(self.browser.evaluate("window.broken"))
        self.assertEqual("refused", self.browser.evaluate(
            "fetch('https://example.com/').catch(() => 'refused')"))

    def test_the_page_loads_nothing_and_reports_nothing(self):
        self.show(made(3))
        urls = [event["request"]["url"] for event in
                self.browser.seen("Network.requestWillBeSent")]
        self.assertEqual([url.split(":")[0] for url in urls], ["file"])
        self.assertEqual(self.browser.seen("Log.entryAdded"), [])
        self.assertEqual(self.browser.seen("Runtime.exceptionThrown"), [])


class Size(Page):
    def test_two_hundred_thousand_events_are_drawn(self):
        self.show(made(22222))
        self.assertTrue(self.text("#facts").startswith("200,002 events"))
        self.browser.evaluate("document.getElementById('lanes').focus()")
        for key in "++++--0nnf":
            self.browser.press(key, key)
        frames = self.browser.evaluate(
            "(() => { const begin = performance.now(); draw(); draw(); draw();"
            "return (performance.now() - begin) / 3; })()")
        print(f"200,002 events: {frames:.1f} ms for a frame")
        self.assertIn("batch", self.detail())


if __name__ == "__main__":
    Page.uvarrow = os.environ.get("UVA_TEST_TOOL", "")
    build = os.environ.get("UVA_TEST_BUILD", "")
    if not os.path.exists(Page.uvarrow):
        print("skipped: UVA_TEST_TOOL is not there; build it", __doc__)
        sys.exit(77)
    if browser.find() is None:
        print("skipped: no Chromium is installed; scripts/bootstrap does that")
        sys.exit(77)
    Page.folder = os.path.join(build, "test_timeline_page")
    unittest.main()
