#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The page of `uvarrow serve` as a person meets it who comes for the first time,
in a headless Chromium: what is in sight, by mouse and by keyboard, in the light
and in the dark, in a narrow window, and by the rules of axe-core. Otherwise as
test_serve_page.py.
"""
import json
import os
import sqlite3
import sys
import time
import unittest

sys.dont_write_bytecode = True
import browser  # noqa: E402
from server import FOREVER, PATIENCE, Server, folder, main  # noqa: E402
from test_serve_page import SEEN, Page  # noqa: E402

MARKUP = "<img src=x onerror='window.broken = 1'>\n\"b\" it's"
WIDTHS = ((780, 493), (400, 700), (1280, 900))

# Whether a person sees an element: its middle is in the window, and nothing
# else is drawn over it.
IN_SIGHT = """
((element) => {
  if (!element) return false;
  const { left, right, top, bottom } = element.getBoundingClientRect();
  const [x, y] = [(left + right) / 2, (top + bottom) / 2];
  const seen = document.elementFromPoint(x, y);
  return bottom > top && top >= 0 && bottom <= innerHeight && left >= 0 &&
    right <= innerWidth + 0.5 && seen !== null && element.contains(seen);
})
"""
AXE = """
axe.run(document, { resultTypes: ['violations'] }).then((result) =>
  result.violations.map(({ id, nodes }) => id + ': ' +
    nodes.map((node) => node.html.slice(0, 120)).join(' | ')))
"""


def made():
    path = os.path.join(folder(), f"visit-{os.getpid()}.db")
    if os.path.exists(path):
        os.remove(path)
    connection = sqlite3.connect(path, isolation_level=None)
    markup = MARKUP.replace('"', '""')
    for statement in (
            "BEGIN", "CREATE TABLE numbers (i INTEGER, text VARCHAR(9), "
            "wide REAL)",
            "WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n "
            "WHERE i < 999) INSERT INTO numbers SELECT i, iif(i % 4 = 0, NULL, "
            "'row ' || (i % 10)), i / 2.0 FROM n",
            f"CREATE TABLE \"{markup}\" (\"{markup}\" INT)",
            f"INSERT INTO \"{markup}\" VALUES (7)",
            "CREATE VIEW few AS SELECT i FROM numbers WHERE i < 3", "COMMIT"):
        connection.execute(statement)
    connection.close()
    return path


class Visit(Page):
    """Of a window of 780 x 493, unless a test has another one."""

    @classmethod
    def setUpClass(cls):
        cls.server = Server(path=made())
        cls.browser = browser.Browser(browser.find())

    @classmethod
    def tearDownClass(cls):
        super().tearDownClass()
        os.remove(cls.server.path)

    def setUp(self):
        self.window(780, 493)
        self.evaluate("try { localStorage.clear() } catch (error) { }")
        self.open()

    def open(self):
        self.browser.open(f"http://127.0.0.1:{self.server.port}/")
        self.until("catalog.columns.size > 0 && "
                   "![...catalog.columns.values()].includes('Loading.')")

    def tearDown(self):
        self.browser.call("Emulation.clearDeviceMetricsOverride")
        self.browser.call("Emulation.setEmulatedMedia", features=[])
        self.assertEqual(self.browser.seen("Runtime.exceptionThrown"), [])

    def window(self, width, height):
        self.browser.call("Emulation.setDeviceMetricsOverride", width=width,
                          height=height, mobile=False, deviceScaleFactor=1)

    def is_seen(self, element):
        return self.evaluate(f"{IN_SIGHT}({element})")

    def check_seen(self, element):
        self.assertTrue(self.is_seen(element), element)

    def click(self, element):
        """Presses the mouse in the middle of an element that is in sight."""
        self.drawn()
        self.check_seen(element)
        x, y = self.evaluate(
            "(({ left, right, top, bottom }) => [(left + right) / 2, (top + "
            f"bottom) / 2])({element}.getBoundingClientRect())")
        for kind in "mousePressed", "mouseReleased":
            self.browser.call("Input.dispatchMouseEvent", type=kind, x=x, y=y,
                              button="left", clickCount=1)

    def key(self, key, code, modifiers=0, text=""):
        for kind in "rawKeyDown", "char" if text else "", "keyUp":
            if kind:
                self.browser.call("Input.dispatchKeyEvent", type=kind, key=key,
                                  code=key, windowsVirtualKeyCode=code,
                                  modifiers=modifiers, text=text)

    def enter(self):
        self.key("Enter", 13, text="\r")

    def type(self, text):
        self.browser.call("Input.insertText", text=text)

    def until(self, condition):
        """Waits until an expression is true."""
        end = time.monotonic() + PATIENCE
        while not (value := self.evaluate(condition)):
            self.assertLess(time.monotonic(), end, condition)
            time.sleep(0.02)
        return value

    def named(self, name):
        """An expression for the button of a table."""
        return ("[...document.querySelectorAll('#tables .table')].find((button)"
                f" => button.textContent === {json.dumps(name)})")

    def first_rows(self, name):
        """The rows in sight, once the table was pressed."""
        self.click(self.named(name))
        self.wait("#state", "Complete")
        return self.table()[1:]

    def column(self, at):
        self.drawn()
        return self.evaluate("[...document.querySelectorAll('#body tr')].map("
                             f"(row) => row.cells[{at}].textContent)")

    def wait_column(self, at, texts):
        """Waits until a column begins with these texts."""
        end = time.monotonic() + PATIENCE
        while (found := self.column(at)[:len(texts)]) != texts:
            if time.monotonic() > end:
                self.assertEqual(found, texts)


class Sight(Visit):
    def test_the_database_its_tables_and_their_columns(self):
        self.assertEqual(self.text("h1"), os.path.basename(self.server.path))
        self.check_seen("document.getElementById('name')")
        self.assertIn("SQLite, only read", self.text("#about"))
        for name in "numbers", "few", MARKUP.replace("\n", "↵"):
            self.check_seen(self.named(name))
        self.wait("#tables", "VARCHAR(9)")
        self.assertEqual(self.text("#tables .columns").split(),
                         ["i", "INTEGER", "text", "VARCHAR(9)", "wide", "REAL"])
        self.check_seen("document.querySelector('#tables .columns .type')")

    def test_a_table_is_pressed_for_its_first_rows(self):
        rows = self.first_rows("numbers")
        self.assertEqual(rows[1][1:], ["1", "row 1", "0.5"])
        self.assertEqual(self.text("#state"), "Complete: 100 rows.")
        self.assertEqual(self.evaluate("document.getElementById('sql').value"),
                         'SELECT * FROM "numbers" LIMIT 100')

    def test_a_table_with_any_name(self):
        self.assertEqual(self.first_rows(MARKUP.replace("\n", "↵")),
                         [["1", "7"]])
        self.assertEqual(self.table()[0][1], MARKUP.replace("\n", "↵"))
        self.wait("#tables", "INT")
        self.assertIsNone(self.evaluate("window.broken"))
        self.assertEqual(self.evaluate("document.images.length"), 0)

    def test_a_pressed_table_ends_the_query_before(self):
        self.run_query(FOREVER)
        self.wait("#state", "Running")
        self.assertEqual(len(self.first_rows("few")), 3)
        self.server.wait(lambda stats: not stats["queries"]["running"])

    def test_a_first_query_is_there(self):
        self.click("document.getElementById('run')")
        self.wait("#state", "Complete: 100 rows.")

    def test_rows_are_in_sight_and_the_plots_follow(self):
        self.first_rows("numbers")
        self.drawn()
        self.assertEqual(self.evaluate("scrollY"), 0)
        seen = self.evaluate(
            "[...document.querySelectorAll('#body tr')].map((row) => "
            f"row.cells[1]).filter({IN_SIGHT}).map((cell) => cell.textContent)")
        self.assertEqual(seen, [str(i) for i in range(len(seen))])
        self.assertGreater(len(seen), 5)
        self.assertTrue(self.evaluate(
            "document.getElementById('plot').getBoundingClientRect().top >= "
            "document.getElementById('scroller').getBoundingClientRect()"
            ".bottom"))

    def test_a_narrow_window(self):
        self.window(400, 700)
        self.open()
        self.check_seen("document.getElementById('run')")
        self.assertFalse(self.is_seen(self.named("numbers")))
        self.click("document.querySelector('#catalog summary')")
        self.evaluate("document.activeElement.blur()")
        self.first_rows("numbers")
        self.drawn()
        self.assertEqual(self.evaluate("document.documentElement.scrollWidth"),
                         400)
        self.click("document.querySelector('#catalog summary')")
        self.drawn()
        self.assertGreater(len(self.evaluate(SEEN)), 5)

    def test_in_the_dark(self):
        def light(element):
            color = self.evaluate(f"getComputedStyle(document.querySelector("
                                  f"'{element}')).backgroundColor")
            return sum(map(int, color[4:-1].split(",")))

        for element in "body", "#sql", "header":
            self.assertGreater(light(element), 3 * 200)
        self.browser.call("Emulation.setEmulatedMedia", features=[
            {"name": "prefers-color-scheme", "value": "dark"}])
        for element in "body", "#sql", "header":
            self.assertLess(light(element), 3 * 60)

    def test_the_plot_is_of_a_column_that_varies(self):
        self.run_query("SELECT 2013 AS year, i FROM numbers")
        self.wait("#state", "Complete")
        self.assertEqual(self.evaluate("[plot.column, document.getElementById("
                                       "'column').selectedOptions[0].text]"),
                         [1, "i"])


class Readers(Visit):
    def check_rules(self):
        with open(os.path.join(os.path.dirname(os.path.dirname(
                os.environ["UVA_TEST_PYTHON"])), "axe", "axe.min.js"),
                encoding="utf-8") as file:
            self.evaluate("if (!window.axe) {" + file.read() + "}\n0")
        self.assertEqual(self.evaluate(AXE), [])

    def test_the_rules_of_axe(self):
        for scheme in "light", "dark":
            for width, height in WIDTHS:
                with self.subTest(scheme=scheme, width=width):
                    self.browser.call("Emulation.setEmulatedMedia", features=[
                        {"name": "prefers-color-scheme", "value": scheme}])
                    self.window(width, height)
                    self.open()
                    self.check_rules()
                    self.run_query("SELECT * FROM numbers")
                    self.wait("#state", "Complete")
                    self.evaluate("for (const box of document.querySelectorAll("
                                  "'details')) box.open = true; view.sort(1)")
                    self.wait("#summary-state", "Of 1,000 rows.")
                    self.check_rules()
                    self.run_query("SELECT 1 1")
                    self.wait("#state", "syntax error")
                    self.check_rules()

    def test_the_rules_see_a_fault(self):
        self.evaluate("document.getElementById('sql').labels[0].remove()")
        with self.assertRaisesRegex(AssertionError, "label"):
            self.check_rules()

    def test_what_is_told(self):
        self.first_rows("few")
        self.assertEqual(self.evaluate(
            "[document.getElementById('state').getAttribute('role'), "
            "document.getElementById('table').getAttribute('aria-rowcount'), "
            "document.querySelector('#body tr').getAttribute('aria-rowindex')]"),
            ["status", "4", "2"])


class Keys(Visit):
    def focused(self):
        return self.evaluate("document.activeElement.id || "
                             "document.activeElement.textContent")

    def tab_to(self, name):
        for _ in range(60):
            self.key("Tab", 9)
            if self.focused() == name:
                return
        self.fail(f"Tab does not reach {name}")

    def test_all_by_keys(self):
        self.wait("#tables", "VARCHAR(9)")
        self.key("Tab", 9)
        self.assertEqual(self.focused(), "skip")
        self.check_seen("document.getElementById('skip')")
        self.enter()
        self.assertEqual(self.focused(), "sql")
        self.key("a", 65, modifiers=2)
        self.evaluate("document.getElementById('sql').select()")
        self.type("SELECT i FROM numbers WHERE i < 20")
        self.key("Enter", 13, modifiers=2)
        self.wait("#state", "Complete: 20 rows.")
        self.tab_to("filter")
        self.type("1")
        self.wait("#shown", "11 of 20 rows fit.")
        self.tab_to("scroller")
        self.tab_to("i")
        self.enter()
        self.enter()
        self.wait_column(1, ["19", "18"])

    def test_a_table_by_keys(self):
        self.wait("#tables", "VARCHAR(9)")
        self.tab_to("few")
        self.enter()
        self.wait("#state", "Complete: 3 rows.")
        self.wait("#tables", "INTEGER")
        self.assertEqual(self.focused(), "few")


class Kept(Visit):
    def test_each_format_as_a_file(self):
        target = os.path.join(folder(), f"downloads-{os.getpid()}")
        self.browser.call("Browser.setDownloadBehavior", behavior="allow",
                          downloadPath=target, eventsEnabled=True)
        self.run_query("SELECT i, ? AS t FROM numbers", '["é"]')
        self.wait("#state", "Complete")
        names = self.evaluate("[...document.querySelectorAll('#downloads "
                              "button')].map((button) => button.textContent)")
        self.assertEqual(names, ["Arrow", "CSV", "JSON lines", "JSON"])
        for at, (name, format_) in enumerate((("result.arrows", "arrow"),
                                              ("result.csv", "csv"),
                                              ("result.ndjson", "json"),
                                              ("result.json", "json-array"))):
            self.evaluate("document.getElementById('sql').value = 'SELECT 1'")
            self.click("document.querySelectorAll('#downloads button')"
                       f"[{at}]")
            self.wait("#shown", f"{name} is complete.")
            path = os.path.join(target, name)
            end = time.monotonic() + PATIENCE
            while not os.path.exists(path):
                self.assertLess(time.monotonic(), end)
                time.sleep(0.02)
            with open(path, "rb") as file:
                content = file.read()
            os.remove(path)
            self.assertEqual(content, self.server.ask(
                "/query?sql=SELECT+i,+?1+AS+t+FROM+numbers&parameters="
                f"[%22%C3%A9%22]&format={format_}").body)
        os.rmdir(target)

    def test_a_file_that_is_cut(self):
        self.run_query("SELECT i FROM numbers")
        self.wait("#state", "Complete")
        self.evaluate("query.asked.sql = " + json.dumps(
            FOREVER.replace("FROM n)", "FROM n WHERE i < 200000)") +
            " WHERE i < 199999 OR abs(-9223372036854775808 + 0 * i)"))
        self.click("document.querySelectorAll('#downloads button')[1]")
        self.wait("#shown", "There is no result.csv: the answer was cut: ")
        self.wait("#shown", "integer overflow")

    def test_a_file_that_is_stopped(self):
        self.run_query("SELECT i FROM numbers")
        self.wait("#state", "Complete")
        self.evaluate(f"query.asked.sql = {json.dumps(FOREVER)}")
        self.click("document.querySelectorAll('#downloads button')[1]")
        self.server.wait(lambda stats: stats["queries"]["running"])
        self.click("document.getElementById('stop')")
        self.wait("#shown", "result.csv was stopped.")
        self.server.wait(lambda stats: not stats["queries"]["running"])

    def test_a_link_holds_the_query(self):
        self.run_query("SELECT ? AS \"a&b#\"", '["x + y % é"]')
        self.wait("#state", "Complete")
        link = self.evaluate("document.getElementById('link').href")
        self.assertEqual(link, self.evaluate("location.href"))
        self.browser.open("about:blank")
        self.browser.open(link)
        self.wait("#state", "Complete: 1 row.")
        self.assertEqual(self.table(), [["#", "a&b#"], ["1", "x + y % é"]])
        self.assertNotIn("#", "".join(self.server.lines()))

    def test_a_link_does_not_change_a_database(self):
        with Server("--writable", name="visit-writable") as server:
            self.browser.open(f"http://127.0.0.1:{server.port}/#sql="
                              "DELETE+FROM+numbers")
            self.wait("#about", "may be changed")
            self.until("document.getElementById('sql').value.startsWith('DEL')")
            self.drawn()
            self.assertEqual(self.text("#state"), "Nothing has run so far.")
            self.assertIn(b"1000", server.ask(
                "/query?format=csv&sql=SELECT+count(*)+FROM+numbers").body)
            self.evaluate("document.getElementById('run').click()")
            self.wait("#state", "Complete")
            count = server.ask("/query?format=csv&sql=SELECT+count(*)+AS+n+"
                               "FROM+numbers").body
            self.assertEqual(count, b"n\n0\n")
            # A file is asked for in a way that changes nothing.
            self.evaluate("document.querySelectorAll('#downloads button')[1]"
                          ".click()")
            self.wait("#shown", "There is no result.csv")
            self.evaluate("localStorage.clear()")

    def test_a_history(self):
        for sql in "SELECT 1 AS one", "SELECT ? AS two", "SELECT 1 AS one":
            self.run_query(sql, "[2]" if "?" in sql else "")
            self.wait("#state", "Complete")
        self.open()
        self.click("document.querySelector('#history-box summary')")
        self.assertEqual(self.text("#history").split("\n"),
                         ["SELECT 1 AS one", "SELECT ? AS two"])
        self.click("document.querySelectorAll('#history button')[1]")
        self.click("document.getElementById('run')")
        self.wait("#state", "Complete: 1 row.")
        self.assertEqual(self.table()[1], ["1", "2"])
        self.evaluate("document.getElementById('forget').click()")
        self.open()
        self.assertEqual(self.evaluate("document.querySelectorAll('#history "
                                       "button').length"), 0)


    def stored(self, text):
        """Opens the page with such a history in the storage of the browser."""
        self.open()
        self.evaluate("localStorage.setItem('uvarrow-history', "
                      f"{json.dumps(text)})")
        self.open()
        self.click("document.querySelector('#history-box summary')")
        return self.evaluate("[...document.querySelectorAll('#history button')]"
                             ".map((button) => button.textContent)")

    def test_a_history_that_is_no_list_is_empty(self):
        for text in '{"a": 1}', "7", "null", '"x"', "[", "":
            with self.subTest(text=text):
                self.assertEqual(self.stored(text), [])
                self.assertIn("Queries that have run are here",
                              self.text("#history-state"))
                self.run_query("SELECT 1 AS one", "")
                self.wait("#state", "Complete")
                self.assertEqual(self.text("#history"), "SELECT 1 AS one")
        self.evaluate("localStorage.clear()")

    def test_entries_that_are_none_are_left_out(self):
        database = os.path.basename(self.server.path)
        own = {"sql": "SELECT 2 AS two", "parameters": "", "database": database}
        self.assertEqual(self.stored(json.dumps(
            [None, 7, "x", [], {}, {"database": database},
             {**own, "sql": 7}, {**own, "parameters": None},
             {**own, "database": "another.db"}, own])), ["SELECT 2 AS two"])
        self.click("document.querySelector('#history button')")
        self.click("document.getElementById('run')")
        self.wait("#state", "Complete: 1 row.")
        self.assertEqual(self.table()[1], ["1", "2"])
        self.evaluate("localStorage.clear()")


class Loaded(Visit):
    """Of the rows that were loaded."""

    def sort(self, name):
        self.click("[...document.querySelectorAll('#names button')].find("
                   f"(button) => button.textContent === '{name}')")

    def sorted(self):
        return self.evaluate("[...document.querySelectorAll('#names th')].map("
                             "(head) => head.getAttribute('aria-sort'))")

    def test_they_are_sorted(self):
        self.run_query("SELECT i, text FROM numbers WHERE i < 12")
        self.wait("#state", "Complete")
        self.sort("i")
        self.wait_column(1, ["0", "1", "2"])
        self.assertEqual(self.sorted(), [None, "ascending", None])
        self.sort("i")
        self.wait_column(1, ["11", "10", "9"])
        self.assertEqual(self.column(0)[0], "12")
        self.assertEqual(self.sorted(), [None, "descending", None])
        self.sort("text")  # of equal ones the first comes first; nulls are last
        self.wait_column(1, ["10", "1", "11", "2"])
        self.evaluate("document.getElementById('scroller').scrollTop = 1e9")
        self.wait_column(0, self.column(0))
        self.assertEqual(self.column(2)[-3:], ["null"] * 3)
        self.sort("text")
        self.wait_column(2, ["row 9", "row 7"])
        self.sort("text")
        self.wait_column(1, ["0", "1", "2"])
        self.assertEqual(self.sorted(), [None] * 3)

    def test_numbers_beyond_2_53_are_sorted(self):
        self.run_query("VALUES (9007199254740993), (9007199254740992), "
                       "(9007199254740995), ('b'), (-3), (NULL), ('a')")
        self.wait("#state", "Complete")
        self.sort("column1")
        self.wait_column(1, ["-3", "9007199254740992", "9007199254740993",
                             "9007199254740995", "a", "b", "null"])

    def filter(self, text):
        self.evaluate("(() => { const filter = document.getElementById('filter'"
                      f"); filter.value = {json.dumps(text)}; "
                      "filter.dispatchEvent(new Event('input')); })()")

    def test_they_are_filtered(self):
        self.run_query("SELECT i, text FROM numbers")
        self.wait("#state", "Complete")
        self.filter("ROW 7")
        self.wait("#shown", "100 of 1,000 rows fit.")
        self.wait_column(1, ["7", "17"])
        self.evaluate("(() => { const within = document.getElementById('within'"
                      "); within.value = '0'; within.dispatchEvent("
                      "new Event('change')); })()")
        self.wait("#shown", "0 of 1,000 rows fit.")
        self.assertEqual(self.column(0), [])
        self.filter("99")
        self.wait_column(1, ["99", "199"])
        self.filter("")
        self.wait_column(1, ["0", "1"])

    def test_what_came_later_is_sorted_at_the_end(self):
        self.run_query(FOREVER.replace("FROM n)", "FROM n WHERE i < 300000)"))
        self.until("rows.count > 0")
        self.evaluate("pause(true)")
        self.sort("i")
        self.sort("i")
        self.until("view.order !== null && view.descending")
        self.assertLess(self.evaluate("view.of"), 300000)
        self.evaluate("pause(false)")
        self.wait("#state", "Complete: 300,000 rows.")
        self.wait_column(1, ["300000", "299999"])

    def summaries(self):
        return self.evaluate("[...document.querySelectorAll('#summaries > li')]"
                             ".map((card) => card.innerText.replace("
                             "/\\n+/g, '\\n'))")

    def test_summaries_of_columns(self):
        self.evaluate("window.workers = 0; window.Worker = class extends Worker"
                      "{ constructor(url) { super(url); workers++; } };"
                      "Column.prototype.take = null; 0")  # in the page itself
        self.run_query("SELECT i, text, wide FROM numbers")
        self.wait("#state", "Complete")
        self.assertEqual(self.evaluate("workers"), 0)
        self.evaluate("document.querySelector('#summary-box summary')"
                      ".scrollIntoView()")
        self.click("document.querySelector('#summary-box summary')")
        self.wait("#summary-state", "Of 1,000 rows.")
        self.assertEqual(self.evaluate("workers"), 1)
        i, text, wide = self.summaries()
        self.assertEqual(i.split("\n"), ["i", "nulls 0, distinct 1,000",
                                         "0 to 999, mean 499.5"])
        self.assertEqual(text.split("\n")[:3],
                         ["text", "nulls 250 (25.0 %), distinct 10",
                          "row 0 to row 9"])
        self.assertIn("row 1\n100", text)
        self.assertEqual(self.evaluate(
            "[...document.querySelectorAll('#summaries .bars')].map((bars) => "
            "[...bars.children].map((bar) => bar.title.split(' ')[0]).join())"),
            [",".join(["50"] * 20)] * 2)
        self.assertEqual(self.evaluate(
            "document.querySelector('.bars span').getBoundingClientRect()"
            ".height > 30"), True)
        self.run_query("SELECT 1 AS one")
        self.wait("#summaries", "distinct 1")
        self.assertEqual(len(self.summaries()), 1)

    def test_odd_columns(self):
        result = self.evaluate("""
        (() => {
          const counts = [];
          for (const values of [[null, null], ['', 'a', null], ['1', 'x'],
                                ['5', '5'], ['-1e308', '1e308']]) {
            const column = new Column();
            for (const value of values) column.take(value, 1e6);
            column.begin();
            for (const value of values) column.place(value);
            const { nulls, distinct, bars, top, numeric } = column.end();
            counts.push([nulls, distinct, bars.reduce((a, b) => a + b, 0),
                         top.length, numeric]);
          }
          const many = new Column();
          for (let i = 0; i < 100005; i++) many.take(String(i), 1e6);
          const { distinct, isMore } = many.end();
          return [...counts, distinct, isMore];
        })()""")
        self.assertEqual(result, [[2, 0, 0, 0, False], [1, 2, 0, 2, False],
                                  [0, 2, 0, 2, False], [0, 1, 2, 0, True],
                                  [0, 2, 2, 0, True], 100000, True])


class Catalogs(Visit):
    """Of other databases: what the page makes of an answer of /tables."""

    def listed(self, catalogs):
        """Has the page list these: {catalog: {schema: [names]}}."""
        lines = "\n".join(json.dumps({
            "catalog_name": catalog, "catalog_db_schemas": [
                {"db_schema_name": schema, "db_schema_tables": [
                    {"table_name": name, "table_type": "BASE TABLE",
                     "table_columns": None} for name in names]}
                for schema, names in schemas.items()]})
            for catalog, schemas in catalogs.items())
        self.evaluate("(() => { catalog.columns.clear(); catalog.tables = "
                      f"tablesOf({json.dumps(lines)}); "
                      "catalog.draw(); })()")

    def references(self):
        return self.evaluate("catalog.tables.map((table) => "
                             "catalog.reference(table))")

    def test_names_have_what_the_database_would_not_guess(self):
        self.listed({"main": {"": ['a"b']}})
        self.assertEqual(self.references(), ['"a""b"'])
        self.listed({"db": {"public": ["t"], "other": ["t"]}})
        self.assertEqual(self.references(), ['"t"', '"other"."t"'])
        self.assertIn("db.other", self.text("#tables"))
        self.listed({"a": {"main": ["t"]}, "b": {"main": ["t"]}})
        self.assertEqual(self.references(), ['"a"."main"."t"',
                                             '"b"."main"."t"'])

    def test_100000_tables(self):
        self.listed({"main": {"": [f"table {i}" for i in range(100000)]}})
        self.assertLess(self.evaluate("document.querySelectorAll('*').length"),
                        2000)
        self.assertIn("200 of 100,000 tables", self.text("#catalog-state"))
        self.evaluate("(() => { const find = document.getElementById('find'); "
                      "find.hidden = false; find.value = 'table 99999'; "
                      "find.dispatchEvent(new Event('input')); })()")
        self.check_seen(self.named("table 99999"))
        self.assertEqual(self.text("#catalog-state"), "")

    def test_100000_columns(self):
        self.evaluate("catalog.columns.set(catalog.key(catalog.tables[0]), "
                      "Array.from({ length: 100000 }, (_, i) => ({ column_name: "
                      "'c' + i, xdbc_type_name: 'INT' }))); catalog.draw()")
        self.assertLess(self.evaluate("document.querySelectorAll('*').length"),
                        2000)
        self.assertIn("and 99,500 more", self.text("#tables"))

    def test_a_database_without_a_catalog(self):
        driver = os.path.join(os.environ["UVA_TEST_BUILD"], "tests",
                              "libadbc_driver_nocatalog.so")
        with Server("--writable", name="visit-none", driver=driver) as server:
            self.browser.open(f"http://127.0.0.1:{server.port}/")
            self.wait("#catalog-state", "There is no list: ")
            self.run_query("SELECT 7 AS a")
            self.wait("#state", "Complete: 1 row.")
            self.evaluate("localStorage.clear()")

    def test_a_token_is_asked_for_only_where_it_is_needed(self):
        self.assertFalse(self.is_seen("document.getElementById('token')"))
        path = os.path.join(folder(), f"visit-token-{os.getpid()}")
        with open(path, "w", encoding="ascii") as file:
            file.write("0123456789abcdef")
        with Server("--token-file", path, name="visit-token") as server:
            self.browser.open(f"http://127.0.0.1:{server.port}/")
            self.wait("#catalog-state", "The server wants a token.")
            self.click("document.getElementById('token')")
            self.type("0123456789abcdef")
            self.enter()
            self.wait("#tables", "numbers")
            self.wait("#tables", "INTEGER")
        os.remove(path)


class Policy(Visit):
    def test_workers_are_of_the_page_alone(self):
        policy = self.server.ask("/").headers["content-security-policy"]
        self.assertIn("worker-src blob:;", policy)
        self.assertEqual(policy.count("blob:"), 1)
        self.assertEqual(self.evaluate(
            "new Promise((done) => { try { const worker = new Worker("
            "'/query?sql=SELECT+1'); worker.onerror = () => done('refused'); "
            "worker.onmessage = done; } catch (error) { done('refused'); } })"),
            "refused")

    def test_no_byte_from_elsewhere(self):
        self.first_rows("numbers")
        self.evaluate("document.getElementById('summary-box').open = true")
        self.wait("#summary-state", "Of 100 rows.")
        origin = f"http://127.0.0.1:{self.server.port}/"
        for event in self.browser.seen("Network.requestWillBeSent"):
            url = event["request"]["url"]
            self.assertTrue(url.startswith((origin, "blob:" + origin)), url)
        self.assertEqual(self.browser.seen("Log.entryAdded"), [])


if __name__ == "__main__":
    if browser.find() is None:
        print("skipped: no Chromium is installed; scripts/bootstrap does that")
        sys.exit(77)
    main()
