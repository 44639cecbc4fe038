#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The page of `uvarrow serve` in a headless Chromium: buttons are pressed, and
both sides are looked at. UVA_TEST_IMAGE names a file for a screenshot. Other
environment variables as for test_serve_query.py. Skips where no Chromium is
installed.
"""
import base64
import json
import os
import sys
import time
import unittest

sys.dont_write_bytecode = True
import browser  # noqa: E402
from server import FOREVER, PATIENCE, Server, folder, main  # noqa: E402

EVIL = "</td><img src=x onerror='window.broken = 1'><script>broken = 1</script>"
TOKEN = "0123456789abcdef0123456789abcdef"

# The texts of the first cells of all rows that a person sees whole: no other
# element is drawn over any corner of them.
SEEN = """
(() => {
  const scroller = document.getElementById('scroller');
  scroller.scrollIntoView({ block: 'end' });
  const box = scroller.getBoundingClientRect();
  const bottom = box.top + scroller.clientTop + scroller.clientHeight;
  return [...document.querySelectorAll('#body tr')].map((row) => row.cells[0])
    .filter((cell) => {
      const { left, right, top, bottom: low } = cell.getBoundingClientRect();
      return low <= bottom + 0.5 && low - top > 15 &&
        [top + 2, low - 2].every((y) => [left + 1, right - 1].every((x) =>
          document.elementFromPoint(x, y) === cell));
    }).map((cell) => cell.textContent);
})()
"""


def running(stats):
    return stats["queries"]["running"]


class Page(unittest.TestCase):
    browser = server = None

    @classmethod
    def setUpClass(cls):
        cls.server = Server(name="page")
        cls.browser = browser.Browser(browser.find())

    @classmethod
    def tearDownClass(cls):
        cls.browser.close()
        assert cls.server.stop() == 0, cls.server.errors

    def setUp(self):
        self.browser.open(f"http://127.0.0.1:{self.server.port}/")
        self.wait("#tables", "numbers")  # so that no other query runs

    def evaluate(self, expression):
        return self.browser.evaluate(expression)

    def text(self, selector):
        return self.evaluate(
            f"document.querySelector({json.dumps(selector)}).innerText")

    def press(self, button):
        self.assertFalse(self.evaluate(
            f"document.getElementById('{button}').disabled"), button)
        self.evaluate(f"document.getElementById('{button}').click()")

    def run_query(self, sql, parameters=""):
        for name, value in (("sql", sql), ("parameters", parameters)):
            self.evaluate(f"document.getElementById('{name}').value = "
                          + json.dumps(value))
        self.press("run")

    def wait(self, selector, text):
        """Waits until an element has a text; returns its whole text."""
        end = time.monotonic() + PATIENCE
        while text not in (found := self.text(selector)):
            if time.monotonic() > end:
                self.fail(f"{selector} is still {found!r}")
            time.sleep(0.02)
        return found

    def drawn(self):
        """Waits until the page is drawn as it is now."""
        self.evaluate("new Promise((done) => { draw(); requestAnimationFrame("
                      "() => requestAnimationFrame(done)); })")

    def table(self):
        self.drawn()
        return self.evaluate("[...document.querySelectorAll('#table tr')].map("
                             "(row) => [...row.cells].map((c) => c.textContent))")


class Rows(Page):
    def test_rows_nulls_and_quotes(self):
        self.run_query("SELECT ? AS a, ? AS \"b,\"\"c\", NULL AS c, '' AS d, "
                       "'x' || char(10) || '\"y\"' AS e",
                       '[1.5, "tëxt"]')
        self.wait("#state", "Complete: 1 row.")
        self.assertEqual(self.table(), [
            ["#", "a", 'b,"c', "c", "d", "e"],
            ["1", "1.5", "tëxt", "null", "", 'x↵"y"']])

    def test_what_comes_is_text(self):
        for sql, parameters in ((f'SELECT ? AS "{EVIL}"', json.dumps([EVIL])),
                                (f"SELECT '{EVIL.replace(chr(39), '')}' FROM "
                                 f"nowhere", "")):
            self.run_query(sql, parameters)
            self.wait("#state", "Complete" if parameters else "no such table")
            self.drawn()
        self.assertIsNone(self.evaluate("window.broken"))
        self.assertEqual(self.evaluate("document.images.length"), 0)

    def test_a_million_rows_stay_light(self):
        self.run_query(FOREVER.replace("FROM n)", "FROM n WHERE i < 1000000)"))
        self.wait("#state", "Complete: 1,000,000 rows.")
        self.drawn()
        self.assertLess(self.evaluate("document.querySelectorAll('*').length"),
                        400)
        self.evaluate("document.getElementById('scroller').scrollTop = 1e9")
        self.drawn()
        self.assertEqual(self.table()[-1][:2], ["1,000,000", "1000000"])
        self.evaluate("document.getElementById('scroller').scrollTop /= 2")
        middle = int(self.table()[1][1])
        self.assertTrue(480000 < middle < 520000, middle)
        self.assertEqual(self.evaluate("[plot.rows, plot.low[0], Math.max("
                                       "...plot.high)]"), [1000000, 1, 1000000])

    def test_a_column_is_plotted(self):
        self.run_query("SELECT text, i, -i AS minus, NULL AS n FROM numbers")
        self.wait("#state", "Complete: 1,000 rows.")
        self.assertEqual(self.evaluate("[...document.getElementById('column')"
                                       ".options].map((o) => o.text)"),
                         ["i", "minus"])
        self.evaluate("(() => { const column = document.getElementById('column'"
                      "); column.value = '2'; column.dispatchEvent("
                      "new Event('change')); })()")
        self.drawn()
        self.assertEqual(self.evaluate("[Math.min(...plot.low), plot.rows]"),
                         [-999, 1000])
        for name in ("plot", "timeline"):
            self.assertTrue(self.evaluate(
                f"[...document.getElementById('{name}').getContext('2d')"
                ".getImageData(0, 0, 300, 90).data].some((byte) => byte > 0)"))

    def test_errors_are_shown(self):
        self.run_query("SELECT 1 1")
        self.assertIn("syntax error", self.wait("#state", "SELECT 1 1"))
        self.run_query("SELECT 1", "[")
        self.wait("#state", "no array of JSON")
        self.run_query("SELECT ?", '[{}]')
        self.wait("#state", "a parameter is")

    def test_a_cut_answer_is_called_incomplete(self):
        self.run_query(FOREVER.replace("FROM n)", "FROM n WHERE i < 200000)") +
                       " WHERE i < 199999 OR abs(-9223372036854775808 + 0 * i)")
        text = self.wait("#state", "cut after")
        self.assertIn("incomplete: ", text)
        self.assertIn("integer overflow", text)

    def asked(self, parameters):
        """Returns the text that the server gets for the parameter."""
        self.run_query("SELECT CAST(? AS TEXT) AS a", parameters)
        self.wait("#state", "Complete: 1 row.")
        return self.table()[1][1]

    def test_parameters_are_sent_as_they_were_written(self):
        for number in ("9007199254740993", "-9007199254740993",
                       "9223372036854775807", "-9223372036854775808", "-0",
                       "1"):
            with self.subTest(number):
                self.assertEqual(self.asked(f" [{number}] "), str(int(number)))
        self.assertEqual(self.asked('["9007199254740993"]'),
                         "9007199254740993")
        self.run_query("SELECT ?", '[1]}, "sql": "SELECT 2", "parameters": [1]')
        self.wait("#state", "no array of JSON")
        for beyond in ("[9223372036854775808]", "[1e400]"):
            self.run_query("SELECT ?", beyond)
            self.wait("#state", "a number is beyond the range of 64 bits")

    def test_the_plot_says_that_it_rounds(self):
        self.assertEqual(self.evaluate(
            "[2 ** 53 + 2, -(2 ** 53) - 2, 2 ** 53 - 1, -1.5].map((value) => "
            "plot.label(value))"),
            ["≈ 9007199254740994", "≈ -9007199254740994", "9007199254740991",
             "-1.5"])


class Sight(Page):
    """The rows as a person sees them; the elements alone do not show it."""

    SCREENS = ((1100, 900, 1), (780, 493, 1), (1100, 900, 2), (880, 720, 1.25),
               (733, 600, 1.5), (629, 700, 1.75), (1375, 1125, 0.8),
               (1222, 1000, 0.9), (2200, 1800, 0.5), (400, 700, 3))

    def tearDown(self):
        self.browser.call("Emulation.clearDeviceMetricsOverride")
        self.browser.call("Emulation.setScrollbarsHidden", hidden=True)

    def on_each_screen(self, check):
        for width, height, scale in self.SCREENS:
            with self.subTest(width=width, height=height, scale=scale):
                self.browser.call("Emulation.setDeviceMetricsOverride",
                                  width=width, height=height, mobile=False,
                                  deviceScaleFactor=scale)
                self.drawn()
                check()

    def seen(self, scroll):
        """Returns the numbers of the rows in sight once it is scrolled."""
        self.evaluate("document.getElementById('scroller').scrollTop" + scroll)
        self.drawn()
        return [int(text.replace(",", "")) for text in self.evaluate(SEEN)]

    def check_ends(self, count):
        def check():
            first, last = self.seen(" = 0"), self.seen(" = 1e9")
            self.assertEqual(first, [*range(1, len(first) + 1)])
            self.assertEqual(last, [*range(count - len(last) + 1, count + 1)])
            for rows in first, last:
                self.assertGreater(len(rows), 3)

        self.on_each_screen(check)

    def test_the_last_row_is_in_sight_at_the_end(self):
        for count in 300, 5000, 1000000:
            self.run_query(FOREVER.replace("n)", f"n WHERE i < {count})"))
            self.wait("#state", f"Complete: {count:,} rows.")
            self.check_ends(count)

    def test_each_row_comes_into_sight(self):
        self.run_query("SELECT i FROM numbers WHERE i < 100")
        self.wait("#state", "Complete: 100 rows.")

        def check():
            rows = set(self.seen(" = 0"))
            while (more := set(self.seen(" += 40"))) - rows:
                rows |= more
            self.assertEqual(rows, {*range(1, 101)})

        self.on_each_screen(check)

    def test_high_and_wide_values_are_one_line(self):
        self.run_query(
            "SELECT i, CASE i % 4 WHEN 0 THEN 'a' || char(13, 10) || 'b' WHEN 1 "
            "THEN '\u0f04\U0001f600' || char(8232, 11, 12, 133) WHEN 2 THEN "
            "replace(hex(zeroblob(400)), '0', 'wide ') END AS \"a\nb\", "
            "replace(hex(zeroblob(40)), '0', 'w ') AS b FROM numbers")
        self.wait("#state", "Complete: 1,000 rows.")
        self.browser.call("Emulation.setScrollbarsHidden", hidden=False)
        self.check_ends(1000)
        self.assertEqual(self.table()[0][2], "a↵b")
        self.assertIn("a↵b", [row[2] for row in self.table()])

    def test_other_fonts_of_the_user(self):
        self.run_query("SELECT i FROM numbers")
        self.wait("#state", "Complete: 1,000 rows.")
        self.evaluate("(() => { const style = new CSSStyleSheet(); "
                      "style.replaceSync('table { font-size: 26px; "
                      "line-height: 33.3px !important; }'); "
                      "document.adoptedStyleSheets = [style]; "
                      "window.dispatchEvent(new Event('resize')); })()")
        self.check_ends(1000)


class Buttons(Page):
    def test_pause_holds_the_query_and_continue_goes_on(self):
        self.run_query(FOREVER)
        self.wait("#state", "Running")
        self.press("pause")
        self.wait("#state", "stands still on the server")
        rows = running(self.server.wait(
            lambda stats: running(stats)[0]["paused"]))[0]["rows"]
        self.drawn()
        self.assertEqual(self.text("#pause"), "Continue")
        image = os.environ.get("UVA_TEST_IMAGE")
        if image:
            with open(image, "wb") as file:
                file.write(base64.b64decode(self.browser.screenshot()))
        self.assertEqual(self.evaluate("timeline.pauses.length"), 1)
        self.press("pause")
        self.server.wait(lambda stats: running(stats)[0]["rows"] > rows)
        self.press("stop")
        self.wait("#state", "Stopped after")
        states = self.states()
        self.assertEqual(states[:2], ["waits", "runs"])
        self.assertIn("still", states)
        self.assertNotIn("over", states)  # it was stopped before

    def states(self):
        """The timeline's states of the query, in order."""
        return self.evaluate("timeline.states.map((state) => state[1])")

    def test_the_timeline_shows_what_the_query_does(self):
        self.run_query("SELECT 1 1")
        self.wait("#state", "syntax error")
        self.assertEqual(self.states(), ["waits"])
        # It is over for the server, but the page has not read its rows: it is
        # paused before it can do anything else.
        self.evaluate("document.getElementById('sql').value = "
                      + json.dumps("SELECT 7 AS a"))
        self.evaluate("for (const button of ['run', 'pause'])"
                      "  document.getElementById(button).click()")
        end = time.monotonic() + PATIENCE
        while "over" not in (states := self.states()):
            self.assertLess(time.monotonic(), end, states)
            time.sleep(0.02)
        self.assertEqual(states, ["waits", "runs", "over"])
        self.press("pause")
        self.wait("#state", "Complete: 1 row.")
        times = self.evaluate("[timeline.begin, ...timeline.states.map((state) "
                              "=> state[0]), timeline.end]")
        self.assertEqual(times, sorted(times))

    def test_stop_cancels_the_query(self):
        before = self.server.stats()["queries"]["cancelled"]
        for paused in (False, True):
            self.run_query(FOREVER)
            self.wait("#state", "Running")
            self.server.wait(lambda stats: running(stats) and
                             running(stats)[0]["begun"])
            if paused:
                self.press("pause")
                self.wait("#state", "Paused")
            self.press("stop")
            self.wait("#state", "Stopped after")
            self.server.wait(lambda stats: not running(stats) and
                             stats["runtime"]["streams"] == 0)
        self.assertEqual(self.server.stats()["queries"]["cancelled"],
                         before + 2)
        self.run_query("SELECT 1 AS a")
        self.wait("#state", "Complete: 1 row.")

    def test_a_closed_page_cancels_its_query(self):
        self.run_query(FOREVER)
        self.server.wait(lambda stats: len(running(stats)) == 1)
        self.browser.open("about:blank")
        self.server.wait(lambda stats: not running(stats))

    def test_keys_run_it(self):
        self.evaluate("document.getElementById('sql').value = 'SELECT 7 AS a';"
                      "document.getElementById('sql').dispatchEvent("
                      "new KeyboardEvent('keydown', {key: 'Enter', ctrlKey: "
                      "true}))")
        self.wait("#state", "Complete: 1 row.")


class Safety(Page):
    def test_the_policy(self):
        self.evaluate("(() => { const script = document.createElement('script')"
                      "; script.textContent = 'window.broken = 1';"
                      "document.body.append(script); })()")
        self.assertIsNone(self.evaluate("window.broken"))
        self.assertEqual(self.evaluate(
            f"fetch('http://localhost:{self.server.port}/health')"
            ".catch(() => 'refused')"), "refused")
        policy = self.server.ask("/").headers["content-security-policy"]
        self.assertIn("frame-ancestors 'none'", policy)
        self.assertIn("default-src 'none'", policy)
        self.assertNotIn("unsafe", policy)

    def test_it_loads_nothing_else_and_reports_nothing(self):
        self.run_query("SELECT 1 AS a")
        self.wait("#state", "Complete")
        urls = {event["request"]["url"].split("/", 3)[3] for event in
                self.browser.seen("Network.requestWillBeSent")}
        self.assertLessEqual(urls, {"", "query", "stats", "database",
                                    "tables", "tables?table=numbers"})
        self.assertEqual(self.browser.seen("Runtime.exceptionThrown"), [])
        self.assertEqual(self.browser.seen("Log.entryAdded"), [])

    def test_a_page_of_another_site_gets_nothing(self):
        self.wait("#tables", "INTEGER")
        before = self.server.wait(lambda stats: not stats["queries"][
            "running"])["queries"]["complete"]
        self.browser.open("data:text/html,<title>other</title>")
        for path in ("/query?sql=SELECT+1", "/stats"):
            url = f"http://127.0.0.1:{self.server.port}{path}"
            self.assertEqual(self.evaluate(
                f"fetch('{url}').then((r) => r.text()).catch(() => 'refused')"),
                "refused")
            self.assertEqual(self.evaluate(
                "new Promise((done) => { const image = new Image();"
                "image.onload = () => done('loaded');"
                f"image.onerror = () => done('refused'); image.src = '{url}';"
                "})"), "refused")
        self.assertEqual(self.server.stats()["queries"]["complete"], before)

    def test_a_token(self):
        path = os.path.join(folder(), f"page-token-{os.getpid()}")
        with open(path, "w", encoding="ascii") as file:
            file.write(TOKEN)
        with Server("--token-file", path, name="page-token") as server:
            self.browser.open(f"http://127.0.0.1:{server.port}/")
            self.run_query("SELECT 1 AS a")
            self.wait("#state", "the token is missing or wrong")
            self.evaluate(f"document.getElementById('token').value = '{TOKEN}'")
            self.run_query("SELECT 1 AS a")
            self.wait("#state", "Complete: 1 row.")
            self.wait("#tables", "numbers")
            self.wait("#tables", "INTEGER")
        os.remove(path)


if __name__ == "__main__":
    if browser.find() is None:
        print("skipped: no Chromium is installed; scripts/bootstrap does that")
        sys.exit(77)
    main()
