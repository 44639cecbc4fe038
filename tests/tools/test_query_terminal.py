#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`uvarrow query` in a terminal: the table, its width and its colours, the line
of progress, and Ctrl-C. Environment variables as for test_serve_query.py.
"""
import datetime
import decimal
import os
import re
import sys
import unicodedata
import unittest

sys.dont_write_bytecode = True
from command import (Terminal, environment, on_terminal, path_of,  # noqa: E402
                     query, sqlite)

try:
    import pyarrow
except ImportError:
    pyarrow = None

COUNT = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n{}) "
ROWS = COUNT.format(" WHERE i < {}") + "SELECT i, 'row ' || i AS text FROM n"
ENDLESS = COUNT.format("") + "SELECT i, 'row ' || i AS text FROM n"
NEVER = COUNT.format("") + "SELECT count(*) FROM n"
PLAIN = environment(NO_COLOR="1")
ESCAPES = re.compile("\x1b\\[[0-9;]*m")


def width(text):
    """The columns of a text by Python's tables."""
    return sum(0 if unicodedata.combining(letter) else
               2 if unicodedata.east_asian_width(letter) in "WF" else 1
               for letter in text)


class Table(unittest.TestCase):
    maxDiff = None

    def test_a_table_has_names_types_and_rows(self):
        sql = ("SELECT 1 AS n, 'UA' AS carrier, 2.5 AS delay, NULL AS none "
               "UNION ALL SELECT 58665, '', NULL, NULL")
        lines, _ = on_terminal(":memory:", sql, env=PLAIN)
        self.assertEqual(lines, [
            "     n │ carrier │   delay │  none",
            " int64 │ text    │ float64 │ int64",
            "───────┼─────────┼─────────┼───────",
            "     1 │ UA      │     2.5 │  NULL",
            " 58665 │         │    NULL │  NULL"])

    def test_a_pipe_and_a_format_have_no_table(self):
        sql = "SELECT 1 AS n"
        self.assertEqual(query(":memory:", sql).stdout, "n\n1\n")
        for words in (("--format", "csv"), ("--no-header",), ("--null", "-"),
                      ("--delimiter", ";")):
            lines, _ = on_terminal(":memory:", sql, *words)
            self.assertEqual(lines[-1], "1")
            self.assertNotIn(" int64", lines)
        out = path_of("out.csv")
        self.addCleanup(os.remove, out)
        self.assertEqual(on_terminal(":memory:", sql, "--output", out)[0], [])
        with open(out, encoding="utf-8") as file:
            self.assertEqual(file.read(), "n\n1\n")

    def test_a_table_may_be_asked_for_in_a_pipe(self):
        done = query(":memory:", "SELECT 1 AS n", "--format=table", "--quiet")
        self.assertEqual(done.stdout, "     n\n int64\n───────\n     1\n")
        wide = "SELECT '" + 300 * "x" + "' AS a"
        done = query(":memory:", wide, "--format=table", "--quiet")
        self.assertEqual(done.stdout.split("\n")[3], " " + 300 * "x")
        done = query(":memory:", wide, "--format=table", "--quiet",
                     env=environment(COLUMNS="40"))
        self.assertEqual(done.stdout.split("\n")[3], " " + 37 * "x" + "…")
        for columns in ("x", "-3", "100000"):
            done = query(":memory:", wide, "--format=table", "--quiet",
                         env=environment(COLUMNS=columns))
            self.assertEqual(len(done.stdout.split("\n")[3]), 301)

    def test_without_unicode_it_is_of_ascii(self):
        for env in ({"LANG": "C"}, {"LC_ALL": "C"}, {"LC_CTYPE": "POSIX"},
                    {"LANG": ""}):
            done = query(":memory:", "SELECT 1 AS n, 'a' AS b", "--quiet",
                         "--format=table", env=environment(**env))
            self.assertEqual(done.stdout, "     n | b\n int64 | text\n"
                             "-------+------\n     1 | a\n")
        lines, _ = on_terminal(":memory:", "SELECT 'abcdefghijklmn' AS b",
                               columns=10, env=environment(LANG="C"))
        self.assertEqual(ESCAPES.sub("", lines[-1]), " abcdefg~")

    def test_long_results_have_a_head_and_a_tail(self):
        for count in (40, 41, 1023, 1024, 1025, 1044, 5000):
            with self.subTest(count=count):
                lines, _ = on_terminal(":memory:", ROWS.format(count),
                                       env=PLAIN)
                rows = [line.split("│")[0].strip() for line in lines[3:]]
                if count == 40:
                    self.assertEqual(rows, [str(i) for i in range(1, 41)])
                    continue
                self.assertEqual(
                    rows, [str(i) for i in range(1, 21)] + ["⋮"] +
                    [str(i) for i in range(count - 19, count + 1)] +
                    [f"{count:,} rows, 40 shown; 2 columns"])

    def test_small_batches_are_let_go(self):
        lines, _ = on_terminal(":memory:", ROWS.format(300), "--batch-bytes",
                               "256", env=PLAIN)
        self.assertEqual(lines[22].split(), ["20", "│", "row", "20"])
        self.assertEqual(lines[24].split(), ["281", "│", "row", "281"])

    def test_no_rows_are_a_head(self):
        lines, terminal = on_terminal(":memory:", "SELECT 1 AS n WHERE 0",
                                      env=PLAIN)
        self.assertEqual(lines, ["     n", " int64", "───────"])
        self.assertIn("complete: 0 rows", terminal.seen)

    def test_a_change_is_no_table(self):
        path = sqlite("change.db", "CREATE TABLE t (x INT)")
        self.addCleanup(os.remove, path)
        lines, terminal = on_terminal(path, "INSERT INTO t VALUES (1), (2)")
        self.assertEqual(lines, [])
        self.assertIn("2 rows changed", terminal.seen)


class Width(unittest.TestCase):
    def test_a_table_fits_each_width(self):
        names = ", ".join(f"'{'x' * (i * i % 23)}' AS column_{i}"
                          for i in range(12))
        for columns in (1, 2, 5, 9, 10, 11, 25, 40, 79, 80, 120, 132, 400):
            with self.subTest(columns=columns):
                lines, _ = on_terminal(":memory:", "SELECT " + names,
                                       columns=columns, env=PLAIN)
                table = [line for line in lines if "column" not in line[-20:]
                         or "│" in line]
                self.assertLessEqual(max(map(width, table)), max(columns, 7))
                if columns == 400:
                    self.assertIn(" column_11", lines[0])
                    self.assertEqual(len(lines), 4)
                if columns == 80:
                    self.assertIn("│ … │", lines[0])
                    self.assertIn("┼───┼", lines[2])
                    self.assertIn("; 12 columns, ", lines[-1])

    def test_wide_characters_have_their_width(self):
        values = ("日本語", "ab", "e\u0301té", "🚀", "ｆｕｌｌ", "ä", "한국어")
        sql = " UNION ALL ".join(f"SELECT '{value}' AS a, 'x' AS b"
                                 for value in values)
        for env in (PLAIN, environment(NO_COLOR="1", LC_ALL="de_DE.utf8")):
            lines, _ = on_terminal(":memory:", sql, env=env)
            self.assertEqual({width(line.split("│")[0]) for line in lines
                              if "│" in line}, {10})
            self.assertEqual([line.split("│")[0].strip() for line in lines[3:]],
                             list(values))

    def test_wide_characters_are_cut_whole(self):
        lines, _ = on_terminal(":memory:", "SELECT '日本語日本語' AS a, 1 AS b",
                               columns=18, env=PLAIN)
        self.assertEqual(lines[3], " 日本語…  │     1")

    def test_what_would_move_the_cursor_is_written_out(self):
        sql = ("SELECT 'a' || char(10, 9, 13, 27, 127, 133, 8238, 65279) || "
               "CAST(x'c328' AS TEXT) AS a")
        lines, terminal = on_terminal(":memory:", sql, env=PLAIN)
        self.assertEqual(lines[3], " a\\n\\t\\r\\x1b\\x7f\\u0085\\u202e\\ufeff\\xc3(")
        self.assertNotIn("\u202e", terminal.seen)
        lines, _ = on_terminal(":memory:", 'SELECT 1 AS "a\n\x1b[31m"',
                               env=PLAIN)
        self.assertEqual(lines[0], " a\\n\\x1b[31m")

    def test_quotes_and_odd_texts_are_as_they_are(self):
        values = ('"', 'a"b""c', '"a"', "a,b", "\x1e", "a\x1fb", "")
        sql = " UNION ALL ".join("SELECT '" + value + "' AS a"
                                 for value in values)
        lines, _ = on_terminal(":memory:", sql + " UNION ALL SELECT NULL",
                               env=PLAIN)
        self.assertEqual(
            lines[3:], [' "', ' a"b""c', ' "a"', " a,b", " \\x1e",
                        " a\\x1fb", " ", " NULL"])


class Colors(unittest.TestCase):
    def test_a_terminal_has_colors(self):
        lines, _ = on_terminal(":memory:", "SELECT 1 AS n, NULL AS a")
        self.assertIn("\x1b[1mn\x1b[0m", lines[0])
        self.assertIn("\x1b[2mint64\x1b[0m", lines[1])
        self.assertIn("\x1b[2mNULL\x1b[0m", lines[3])
        self.assertEqual(ESCAPES.sub("", lines[3]), "     1 │  NULL")

    def test_colors_can_be_turned_off(self):
        for env in ({"NO_COLOR": "1"}, {"TERM": "dumb"}, {"TERM": ""}):
            lines, _ = on_terminal(":memory:", "SELECT 1 AS n",
                                   env=environment(**env))
            self.assertIsNone(ESCAPES.search("".join(lines)), env)
        lines, _ = on_terminal(":memory:", "SELECT 1 AS n",
                               env=environment(NO_COLOR=""))
        self.assertIsNotNone(ESCAPES.search("".join(lines)))

    def test_a_pipe_has_none(self):
        done = query(":memory:", "SELECT 1 AS n", "--format", "table")
        self.assertNotIn("\x1b", done.stdout + done.stderr)


class Progress(unittest.TestCase):
    def test_it_is_there_from_the_first_moment(self):
        terminal = Terminal(":memory:", NEVER)
        terminal.until("\r\x1b[K0.0 s  waits for the database")
        terminal.until("\r\x1b[K0.1 s  waits for the database")
        terminal.press(b"\x03")
        self.assertEqual(terminal.end(), 130)
        self.assertIn("uvarrow: interrupted: 0 rows", terminal.seen)

    def test_it_shows_rows_bytes_and_rates(self):
        terminal = Terminal(":memory:", ENDLESS)
        terminal.until(" MB/s")
        self.assertRegex(terminal.seen, r"\d\.\d s  [\d,]+ rows  \d+\.\d MB  "
                                        r"[\d,]+ rows/s  \d+\.\d MB/s")
        terminal.press(b"\x03")
        self.assertEqual(terminal.end(), 130)

    def test_it_fits_a_narrow_terminal(self):
        terminal = Terminal(":memory:", ENDLESS, columns=20)
        terminal.until(" rows")
        terminal.press(b"\x03")
        terminal.end()
        for line in re.findall(r"\r\x1b\[K([^\r\n]*)", terminal.seen):
            if not line.startswith("uvarrow") and "│" not in line:
                self.assertLess(len(line.replace("^C", "")), 20)

    def test_it_goes_on_while_a_pipe_has_the_rows(self):
        ours, other = os.pipe()
        terminal = Terminal(":memory:", ENDLESS, stdout=other)
        os.close(other)
        terminal.until("waits for its reader")
        os.close(ours)
        self.assertEqual(terminal.end(), 0)
        self.assertIn("the reader stopped", terminal.seen)

    def test_quiet_has_none(self):
        lines, terminal = on_terminal(":memory:", "SELECT 1 AS n", "--quiet",
                                      env=PLAIN)
        self.assertEqual(lines, ["     n", " int64", "───────", "     1"])
        self.assertNotIn("\x1b[K", terminal.seen)

    def test_rows_on_the_terminal_end_it(self):
        terminal = Terminal(":memory:", ROWS.format(3), "--format", "csv")
        self.assertEqual(terminal.end(), 0)
        self.assertIn("\r\x1b[Ki,text\r\n1,row 1\r\n", terminal.seen)

    def test_a_file_says_of_how_many(self):
        path = path_of("rows.arrow")
        self.addCleanup(os.remove, path)
        done = query(":memory:", ROWS.format(600000), "--output", path)
        self.assertEqual(done.returncode, 0, done.stderr)
        ours, other = os.pipe()
        terminal = Terminal("--from", path, "--format", "csv", stdout=other)
        os.close(other)
        terminal.until(" of 600,000 rows  ")
        os.close(ours)
        terminal.end()


class Interrupt(unittest.TestCase):
    def test_the_rows_that_came_are_shown_and_counted(self):
        terminal = Terminal(":memory:", ENDLESS, env=PLAIN)
        terminal.until(" MB/s")
        terminal.press(b"\x03")
        self.assertEqual(terminal.end(), 130)
        lines = terminal.screen()
        count = re.search(r"interrupted: ([\d,]+) rows", terminal.seen)[1]
        self.assertNotEqual(count, "0")
        self.assertIn(f" {count} rows, 40 shown; 2 columns", lines)

    def test_a_failure_shows_the_rows_before_it(self):
        sql = ("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n "
               "WHERE i < 3000) SELECT abs(CASE i WHEN 2500 THEN "
               "-9223372036854775808 ELSE i END) AS x FROM n")
        terminal = Terminal(":memory:", sql, env=PLAIN)
        self.assertEqual(terminal.end(), 1)
        self.assertIn("overflow", terminal.seen)
        self.assertIn("rows, 40 shown; 1 columns", terminal.seen)


@unittest.skipIf(pyarrow is None, "there is no pyarrow")
class Types(unittest.TestCase):
    def test_types_are_named(self):
        pa = pyarrow
        one = pa.array([1])
        columns = {
            "float16": pa.array([None], pa.float16()),
            "uint8": one.cast(pa.uint8()), "date": pa.array(
                [datetime.date(2013, 1, 1)]),
            "timestamp[us, UTC]": pa.array([0], pa.timestamp("us", "UTC")),
            "timestamp[ms]": pa.array([0], pa.timestamp("ms")),
            "time[us]": pa.array([0], pa.time64("us")),
            "decimal(10, 2)": pa.array([decimal.Decimal("1.50")],
                                       pa.decimal128(10, 2)),
            "decimal(40, 0)": pa.array([None], pa.decimal256(40, 0)),
            "list<int64>": pa.array([[1, 2]]),
            "list<text>": pa.array([["a"]], pa.list_(pa.string_view(), 1)),
            "struct": pa.array([{"a": 1}]),
            "map": pa.array([[("a", 1)]], pa.map_(pa.string(), pa.int64())),
            "text": pa.array(["a"]).dictionary_encode(),
            "int64": pa.RunEndEncodedArray.from_arrays([1], [7]),
            "binary": pa.array([b"ab"], pa.binary(2)),
            "uuid": pa.ExtensionArray.from_storage(
                pa.uuid(), pa.array([b"0123456789abcdef"], pa.binary(16))),
            "union": pa.UnionArray.from_sparse(
                pa.array([0], pa.int8()), [pa.array([1])]),
            "bool": pa.array([True]), "null": pa.nulls(1),
            "own.type": pa.ExtensionArray.from_storage(
                type("Own", (pa.ExtensionType,), {
                    "__arrow_ext_serialize__": lambda self: b"",
                    "__init__": lambda self: pa.ExtensionType.__init__(
                        self, pa.int64(), "own.type")})(), one),
        }
        path = path_of("types.arrows")
        self.addCleanup(os.remove, path)
        table = pa.table(list(columns.values()),
                         names=[f"c{i}" for i in range(len(columns))])
        with pa.ipc.new_stream(path, table.schema) as writer:
            writer.write_table(table)
        done = query("--from", path, "--format", "table", "--quiet")
        self.assertEqual(done.returncode, 0, done.stderr)
        lines = [[cell.strip() for cell in line.split("│")]
                 for line in done.stdout.split("\n")]
        self.assertEqual(lines[1], list(columns))
        self.assertEqual(lines[3][:8], [
            "NULL", "1", "2013-01-01", "1970-01-01T00:00:00.000000Z",
            "1970-01-01T00:00:00.000", "00:00:00.000000", "1.50", "NULL"])
        self.assertEqual(lines[3][8:11], ["[1,2]", '["a"]', '{"a":1}'])
        self.assertEqual(lines[3][15], "30313233-3435-3637-3839-616263646566")
        done = query("--from", path, "--format", "table", "--as-stored")
        self.assertIn("30313233343536373839616263646566", done.stdout)


class Refused(unittest.TestCase):
    def test_options_of_csv_are_not_for_a_table(self):
        for option in ("--no-header", "--null=x", "--delimiter=;"):
            done = query(":memory:", "SELECT 1", "--format", "table", option)
            self.assertEqual((done.returncode, done.stdout), (2, ""))
            self.assertEqual(done.stderr, f"uvarrow: {option.split('=')[0]} "
                                          "is for CSV alone\n")


if __name__ == "__main__":
    unittest.main()
