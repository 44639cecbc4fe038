#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The command `uvarrow query` on real SQLite files: its output and its end.

Environment variables give the paths: UVA_TEST_TOOL the command,
UVA_TEST_DRIVER the ADBC driver for SQLite, UVA_TEST_FLIGHTS flights.csv.zip,
UVA_TEST_BUILD a folder for files.

The tests do not wait for a time to pass: they follow the command's output in
its pipes. PATIENCE only ends a test that hangs.
"""
import fcntl
import json
import os
import pty
import random
import re
import resource
import signal
import sqlite3
import struct
import subprocess
import sys
import unittest

try:
    import pyarrow
    import pyarrow.ipc
except ImportError:
    pyarrow = None

HERE = os.path.dirname(os.path.abspath(__file__))
sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(HERE, "..", "..", "tools"))
import flights  # noqa: E402

PATIENCE = 600  # seconds
ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) "
ENDLESS_ROWS = ENDLESS + "SELECT i, 'row ' || i AS name FROM n"
NEVER_A_ROW = ENDLESS + "SELECT count(*) FROM n"


def as_csv(value):
    """Returns a value as the command writes it."""
    if value is None:
        return ""
    if isinstance(value, bytes):
        return value.hex() or '""'
    if isinstance(value, float):
        return repr(value)
    text = str(value)
    if text == "" or set(text) & set(',"\r\n'):
        return '"' + text.replace('"', '""') + '"'
    return text


def random_real(source):
    bits = source.getrandbits(64)
    real = struct.unpack("d", struct.pack("Q", bits))[0]
    return 0.5 if real != real else real


def random_text(source):
    letters = "abc ,;\"'\r\n\t\\äöü☃🚀\u0000"[:-1]
    return "".join(source.choice(letters) for _ in range(source.randrange(9)))


def odd_rows(count):
    """Returns rows with unusual values: nulls, quotes, extremes, bytes."""
    source = random.Random(20130101)
    yield 0, 0.5, "first", b"\x00"
    for number in range(1, count):
        yield (None if number % 7 == 0 else source.getrandbits(63) - 2**62,
               None if number % 5 == 0 else random_real(source),
               None if number % 3 == 0 else random_text(source),
               None if number % 4 == 0 else source.randbytes(number % 40))


class Terminal:
    """A terminal on which the command shows its progress."""

    def __init__(self, descriptor):
        self.file = os.fdopen(descriptor, "rb", buffering=0)
        self.seen = b""

    def megabytes(self):
        """Returns the number in the next line of progress; or None."""
        while not (found := re.search(rb"([0-9.]+) MB .*?MB/s", self.seen)):
            try:
                self.seen += self.file.read(1000)
            except OSError:  # the other end is closed
                return None
        self.seen = self.seen[found.end():]
        return float(found[1])

    def until(self, text):
        while text not in self.seen:
            self.seen += self.file.read(1000)

    def close(self):
        self.file.close()


class Query(unittest.TestCase):
    uvarrow = driver = zipped = folder = None

    @classmethod
    def setUpClass(cls):
        os.makedirs(cls.folder, exist_ok=True)
        cls.flights = os.path.join(cls.folder, "flights.db")
        flights.build(cls.zipped, cls.flights)

    def command(self, sql, *options, database=None, driver=None):
        return [self.uvarrow, "query", "--driver", driver or self.driver,
                "--uri", "file:" + (database or self.flights), *options, sql]

    def run_query(self, sql, *options, **where):
        return subprocess.run(self.command(sql, *options, **where),
                              capture_output=True, timeout=PATIENCE)

    def start(self, sql, *options, **pipes):
        process = subprocess.Popen(self.command(sql, *options),
                                   stdout=subprocess.PIPE, **pipes)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def start_on_terminal(self, sql):
        """Starts the command with a terminal as its standard error."""
        ours, other = pty.openpty()
        process = self.start(sql, stderr=other)
        os.close(other)
        terminal = Terminal(ours)
        self.addCleanup(terminal.close)
        return process, terminal

    def assert_lines(self, count, result, code, part):
        text = result.stderr.decode()
        self.assertEqual(result.returncode, code, text)
        self.assertEqual(result.stdout, b"")
        self.assertEqual(text.count("\n"), count, text)
        self.assertTrue(text.startswith("uvarrow: "), text)
        self.assertIn(part, text)

    def assert_one_line(self, result, code, part):
        self.assert_lines(1, result, code, part)


class WhatIsWritten(Query):
    def test_the_flights_are_those_that_python_reads(self):
        result = self.run_query("SELECT * FROM flights")
        self.assertEqual(result.returncode, 0, result.stderr)
        lines = result.stdout.decode().splitlines(keepends=True)
        same, difference = flights.differences(lines, self.flights,
                                               "SELECT * FROM flights")
        self.assertIsNone(difference)
        self.assertEqual(same, flights.ROWS)
        self.assertIn("336,776 rows", result.stderr.decode())

    def test_odd_values_are_written_to_the_byte(self):
        path = os.path.join(self.folder, f"odd.{os.getpid()}.db")
        self.addCleanup(os.remove, path)
        database = sqlite3.connect(path)
        database.execute("CREATE TABLE odd (i INTEGER, r REAL, t TEXT, b BLOB)")
        database.executemany("INSERT INTO odd VALUES (?, ?, ?, ?)",
                             odd_rows(20000))
        database.commit()
        wanted = "i,r,t,b\n" + "".join(
            ",".join(as_csv(value) for value in row) + "\n"
            for row in database.execute("SELECT * FROM odd"))
        result = self.run_query("SELECT * FROM odd", database=path)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(result.stdout.decode(), wanted)

    def test_no_rows_are_a_header(self):
        result = self.run_query("SELECT carrier, 1 AS \"a,b\" FROM flights "
                                "WHERE 0")
        self.assertEqual(result.stdout, b'carrier,"a,b"\n')
        self.assertEqual(result.returncode, 0)

    def test_a_file_is_replaced_by_what_is_written(self):
        path = os.path.join(self.folder, f"out.{os.getpid()}.csv")
        self.addCleanup(os.remove, path)
        with open(path, "w", encoding="utf-8") as file:
            file.write("old " * 1000)
        result = self.run_query("SELECT 1 AS one", "--output", path, "--quiet")
        self.assertEqual((result.returncode, result.stdout, result.stderr),
                         (0, b"", b""))
        with open(path, encoding="utf-8") as file:
            self.assertEqual(file.read(), "one\n1\n")

    def test_a_failing_query_leaves_the_file_alone(self):
        path = os.path.join(self.folder, f"kept.{os.getpid()}.csv")
        self.addCleanup(os.remove, path)
        with open(path, "w", encoding="utf-8") as file:
            file.write("kept")
        result = self.run_query("SELECT nothing", "--output", path)
        self.assertEqual(result.returncode, 2)
        with open(path, encoding="utf-8") as file:
            self.assertEqual(file.read(), "kept")

    def test_standard_output_that_is_a_file_is_appended_to(self):
        path = os.path.join(self.folder, f"both.{os.getpid()}.csv")
        self.addCleanup(os.remove, path)
        with open(path, "ab") as file:
            for _ in range(2):
                subprocess.run(self.command("SELECT 1 AS one", "--quiet"),
                               stdout=file, check=True, timeout=PATIENCE)
        with open(path, encoding="utf-8") as file:
            self.assertEqual(file.read(), "one\n1\none\n1\n")

    def test_json_is_an_object_a_line(self):
        result = self.run_query("SELECT 1 AS one, NULL AS \"a\"\"b\", 'x' AS x "
                                "UNION ALL SELECT 2, 3, '\u2603'",
                                "--format", "json")
        self.assertEqual(result.returncode, 0, result.stderr)
        rows = [json.loads(line) for line in result.stdout.splitlines()]
        self.assertEqual(rows, [{"one": 1, 'a"b': None, "x": "x"},
                                {"one": 2, 'a"b': 3, "x": "\u2603"}])

    def test_arrow_is_a_stream_that_pyarrow_reads(self):
        path = os.path.join(self.folder, f"flights.{os.getpid()}.arrows")
        self.addCleanup(lambda: os.path.exists(path) and os.remove(path))
        result = self.run_query("SELECT * FROM flights", "--format", "arrow",
                                "--output", path)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("336,776 rows in ", result.stderr.decode())
        again = self.run_query("SELECT * FROM flights", "--format=arrow",
                               "--quiet")
        with open(path, "rb") as file:
            self.assertEqual(file.read(), again.stdout)
        if pyarrow is None:
            return
        table = pyarrow.ipc.open_stream(again.stdout).read_all()
        table.validate(full=True)
        database = sqlite3.connect(self.flights)
        cursor = database.execute("SELECT * FROM flights")
        names = [column[0] for column in cursor.description]
        self.assertEqual(table.schema.names, names)
        columns = [table[name].to_pylist() for name in names]
        for row, wanted in zip(zip(*columns), cursor, strict=True):
            self.assertEqual(row, wanted)
        database.close()

    def test_csv_as_it_is_wanted(self):
        result = self.run_query("SELECT 'a;b' AS x, NULL AS y, 'NULL' AS z",
                                "--no-header", "--null", "NULL",
                                "--delimiter", ";")
        self.assertEqual(result.stdout, b'"a;b";NULL;"NULL"\n')
        result = self.run_query("SELECT 1 AS x, 'b' AS y", "--delimiter",
                                "\\t")
        self.assertEqual(result.stdout, b"x\ty\n1\tb\n")
        for option, text in (("--null=a,b", "null_text"),
                             ("--delimiter=\"", "delimiter")):
            result = self.run_query("SELECT 1", option)
            self.assert_one_line(result, 2, text)

    def test_the_query_is_read_from_a_file_or_standard_input(self):
        path = os.path.join(self.folder, f"query.{os.getpid()}.sql")
        self.addCleanup(os.remove, path)
        with open(path, "w", encoding="utf-8") as file:
            file.write("SELECT 1\n   AS one -- a remark\n")
        command = self.command("-")[:-1] + ["--quiet"]
        for words, given in ((["--file", path], b""),
                             (["--file", "-"], b"SELECT 1 AS one"),
                             (["-"], b"SELECT 1 AS one")):
            result = subprocess.run(command + words, input=given,
                                    capture_output=True, timeout=PATIENCE)
            self.assertEqual((result.stdout, result.stderr),
                             (b"one\n1\n", b""))
        result = subprocess.run(command + ["-"], input=b" \n",
                                capture_output=True, timeout=PATIENCE)
        self.assert_one_line(result, 2, "standard input")

    def test_the_summary_is_one_line_or_two(self):
        result = self.run_query("SELECT 1 AS one")
        self.assertRegex(result.stderr.decode(),
                         r"^uvarrow: complete: 1 row in 1 batch, 0\.0 MB in "
                         r"[0-9.]+ s \([0-9,]+ rows/s, [0-9.]+ MB/s\)\n$")
        result = self.run_query("SELECT 1 AS one", "--verbose")
        self.assertEqual(result.stderr.count(b"\n"), 2)
        self.assertIn(b"\nuvarrow: the stream held up the loop for ",
                      result.stderr)

    def test_settings_reach_the_statement(self):
        result = self.run_query("SELECT flight FROM flights LIMIT 1000",
                                "--statement-option",
                                "adbc.sqlite.query.batch_rows=100")
        self.assertIn("1,000 rows in 10 batches", result.stderr.decode())

    def test_batches_have_the_size_that_is_asked_for(self):
        own = ["--statement-option", "adbc.sqlite.query.batch_rows=500"]
        for options, batches in ((["--batch-bytes", "25600"], "10 batches"),
                                 (["--batch-bytes=1"], "1,000 batches"),
                                 ([], "1 batch"),
                                 (["--batch-bytes", "1", *own], "2 batches")):
            result = self.run_query("SELECT flight FROM flights LIMIT 1000",
                                    *options)
            self.assertIn(f"1,000 rows in {batches},", result.stderr.decode())
        self.assert_one_line(self.run_query("SELECT 1", "--batch-bytes", "0"),
                             2, "--batch-bytes takes a number of bytes")

    def test_parameters_are_bound_with_their_types(self):
        result = self.run_query(
            "SELECT ? AS a, typeof(?1) AS ta, ? AS b, typeof(?2) AS tb, ? AS c,"
            " typeof(?3) AS tc, ? AS d, typeof(?4) AS td, ? AS e, typeof(?5)"
            " AS te", "--param", "-7", "--param=1.5", "--param", "9E",
            "--param", "null", "--param", '"1\\u2603"', "--no-header")
        self.assertEqual(result.stdout.decode(),
                         "-7,integer,1.5,real,9E,text,,null,1\u2603,text\n")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assert_one_line(self.run_query("SELECT ?"), 2, "parameter")
        self.assert_one_line(self.run_query("SELECT 1", "--param", "1"), 2,
                             "parameter")
        self.assert_one_line(self.run_query("SELECT ?", "--param", "1e999"), 2,
                             "the number 1e999 is too large")

    def test_rows_that_change_are_counted(self):
        path = os.path.join(self.folder, f"changed.{os.getpid()}.db")
        self.addCleanup(os.remove, path)
        for sql, options, wanted in (
                ("CREATE TABLE t (i INTEGER, s TEXT)", [], "complete: 0 rows in"),
                ("INSERT INTO t VALUES (1, ?)", ["--param", "a"],
                 "complete: 1 row changed in"),
                ("INSERT INTO t SELECT i + 1, s FROM t UNION SELECT 5, 'b'",
                 [], "complete: 2 rows changed in"),
                ("/* all of them */ UPDATE t SET s = 'c'", [],
                 "complete: 3 rows changed in"),
                ("DELETE FROM t WHERE i > ?", ["--param", "9"],
                 "complete: 0 rows changed in"),
                ("SELECT i FROM t WHERE i > 9", [], "complete: 0 rows in"),
                ("UPDATE t SET s = 'd' RETURNING s", [],
                 "complete: 3 rows in")):
            with self.subTest(sql=sql):
                result = self.run_query(sql, *options, database=path)
                self.assertEqual(result.returncode, 0, result.stderr)
                self.assertIn(wanted, result.stderr.decode())
        result = self.run_query("SELECT * FROM t", database=path)
        self.assertEqual(result.stdout, b"i,s\n1,d\n2,d\n5,d\n")

    def test_several_statements_are_executed(self):
        path = os.path.join(self.folder, f"several.{os.getpid()}.db")
        self.addCleanup(os.remove, path)
        self.run_query("CREATE TABLE t (i INTEGER)", database=path)
        self.assert_one_line(
            self.run_query("INSERT INTO t VALUES (1); INSERT INTO t VALUES (2)",
                           database=path), 0, "complete: 2 rows changed")
        result = self.run_query("SELECT count(*) AS n FROM t", database=path)
        self.assertEqual(result.stdout, b"n\n2\n")

    def test_one_row_is_not_rows(self):
        result = self.run_query("SELECT 1 AS one")
        self.assertIn("1 row in 1 batch,", result.stderr.decode())


class HelpIsGiven(Query):
    def run_words(self, *words):
        return subprocess.run([self.uvarrow, *words], capture_output=True,
                              timeout=PATIENCE)

    def test_help_on_the_program(self):
        for words in (["--help"], ["-h"], ["help"], ["help", "-h"],
                      ["help", "--help"]):
            with self.subTest(words=words):
                result = self.run_words(*words)
                self.assertEqual((result.returncode, result.stderr), (0, b""))
                self.assertTrue(
                    result.stdout.startswith(b"Usage: uvarrow COMMAND"))

    def test_the_version_is_that_of_the_header(self):
        header = os.path.join(os.environ["UVA_TEST_SOURCE"],
                              "include/uvarrow/base.h")
        with open(header, encoding="utf-8") as file:
            parts = re.findall(r"#define UVA_VERSION_[A-Z]+ (\d+)", file.read())
        result = self.run_words("--version")
        self.assertEqual((result.returncode, result.stderr), (0, b""))
        self.assertEqual(result.stdout.decode(),
                         f"uvarrow {'.'.join(parts[:3])}\n")

    def test_help_on_a_command(self):
        for name in ("devices", "query", "stall", "tck"):
            for words in ([name, "--help"], [name, "-h"], ["help", name]):
                with self.subTest(words=words):
                    result = self.run_words(*words)
                    self.assertEqual((result.returncode, result.stderr),
                                     (0, b""))
                    self.assertTrue(result.stdout.startswith(
                        b"Usage: uvarrow " + name.encode()))

    def test_help_on_no_command_is_refused(self):
        for words in (["help", "nothing"], ["-hx"], ["query", "-hx"],
                      ["query", "-h=1"]):
            with self.subTest(words=words):
                self.assert_one_line(self.run_words(*words), 2, words[-1])


class HowItEnds(Query):
    def test_a_reader_that_stops_stops_the_query(self):
        process = self.start(ENDLESS_ROWS, stderr=subprocess.PIPE)
        self.addCleanup(process.stderr.close)
        self.assertEqual(process.stdout.readline(), b"i,name\n")
        self.assertEqual(process.stdout.readline(), b"1,row 1\n")
        process.stdout.close()
        said = process.stderr.read().decode()
        self.assertEqual(process.wait(PATIENCE), 0)
        self.assertIn("the reader stopped", said)

    def test_a_batch_that_was_read_in_part_counts(self):
        wide = ENDLESS + "SELECT hex(zeroblob(50000)) AS zeros FROM n"
        process = self.start(wide, "--batch-bytes=400000",
                             stderr=subprocess.PIPE)
        self.addCleanup(process.stderr.close)
        self.assertEqual(process.stdout.readline(), b"zeros\n")
        process.stdout.close()  # the pipe has no room for a batch
        said = process.stderr.read().decode()
        self.assertEqual(process.wait(PATIENCE), 0)
        self.assertRegex(said, "the reader stopped: [1-9].* rows in [1-9]")

    def test_a_reader_that_goes_stops_a_query_without_a_row(self):
        process = self.start(NEVER_A_ROW, "--quiet")
        process.stdout.close()
        self.assertEqual(process.wait(PATIENCE), 0)

    def test_a_reader_that_waits_holds_the_query(self):
        """An endless query makes only as many rows as fit into the pipe
        (64 KiB), the sink (4 MiB and a batch) and the stream (64 batches)."""
        process, terminal = self.start_on_terminal(ENDLESS_ROWS)
        before, now = None, 0.0
        while now == 0.0 or now != before:
            before, now = now, terminal.megabytes()
        self.assertLess(now, 20)
        process.stdout.close()
        self.assertEqual(process.wait(PATIENCE), 0)

    def test_an_interrupt_leaves_whole_lines(self):
        process = self.start(ENDLESS_ROWS, stderr=subprocess.PIPE)
        self.addCleanup(process.stderr.close)
        begin = process.stdout.readline() + process.stdout.readline()
        process.send_signal(signal.SIGINT)
        lines = (begin + process.stdout.read()).decode().split("\n")
        said = process.stderr.read().decode()
        self.assertEqual(process.wait(PATIENCE), 130)
        self.assertEqual(lines[0], "i,name")
        self.assertEqual(lines[-1], "")
        for number, line in enumerate(lines[1:-1], 1):
            self.assertEqual(line, f"{number},row {number}")
        self.assertIn("interrupted", said)

    def test_an_interrupt_leaves_whole_messages(self):
        process = self.start(ENDLESS_ROWS, "--format", "arrow",
                             stderr=subprocess.DEVNULL)
        begin = process.stdout.read(1000)
        process.send_signal(signal.SIGINT)
        data = begin + process.stdout.read()
        self.assertEqual(process.wait(PATIENCE), 130)
        if pyarrow is None:
            return
        with pyarrow.ipc.open_stream(data) as reader:
            rows = [i for batch in reader for i in batch["i"].to_pylist()]
        self.assertEqual(rows, list(range(1, len(rows) + 1)))

    def test_a_reader_that_stops_stops_a_query_of_json(self):
        process = self.start(ENDLESS_ROWS, "--format", "json", "--quiet")
        self.assertEqual(process.stdout.readline(),
                         b'{"i":1,"name":"row 1"}\n')
        process.stdout.close()
        self.assertEqual(process.wait(PATIENCE), 0)

    def test_an_interrupt_does_not_wait_for_the_driver(self):
        """The driver is inside one call that never returns."""
        process, terminal = self.start_on_terminal(NEVER_A_ROW)
        terminal.until(b"waits for the database")
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(PATIENCE), 130)
        self.assertEqual(process.stdout.read(), b"")

    def test_a_second_interrupt_waits_for_nothing(self):
        """The pipe is not read, so the first interrupt leaves it full."""
        process, terminal = self.start_on_terminal(ENDLESS_ROWS)
        while terminal.megabytes() == 0.0:
            pass
        process.send_signal(signal.SIGINT)
        while terminal.megabytes() is not None:
            process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(PATIENCE), 130)

    def test_a_shared_pipe_is_left_as_it_was(self):
        read, write = os.pipe()
        process = subprocess.Popen(self.command("SELECT 1 AS one", "--quiet"),
                                   stdout=write)
        self.assertEqual(process.wait(PATIENCE), 0)
        flags = fcntl.fcntl(write, fcntl.F_GETFL)
        os.close(write)
        with os.fdopen(read, "rb") as pipe:
            self.assertEqual(pipe.read(), b"one\n1\n")
        self.assertEqual(flags & os.O_NONBLOCK, 0)

    def test_a_full_disk_is_a_failure_half_way(self):
        with open("/dev/full", "wb") as full:
            result = subprocess.run(self.command("SELECT 1", "--quiet"),
                                    stdout=full, stderr=subprocess.PIPE,
                                    timeout=PATIENCE)
        self.assertEqual(result.returncode, 1)
        self.assertEqual(result.stderr.count(b"\n"), 1)
        self.assertIn(b"no space left", result.stderr)

    def test_a_query_may_fail_half_way(self):
        """SQLite reports a number that is too large when it reaches it."""
        result = self.run_query(
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n "
            "WHERE i < 5000) SELECT CASE WHEN i < 4000 THEN i ELSE "
            "abs(-9223372036854775808) END AS x FROM n", "--quiet")
        self.assertEqual(result.returncode, 1)
        self.assertEqual(result.stderr.count(b"\n"), 1)
        self.assertIn(b"overflow", result.stderr)
        self.assertTrue(result.stdout.startswith(b"x\n1\n2\n"))


class WhatIsAsked(Query):
    """The ways to name a driver and a database."""

    def ask(self, *words):
        return subprocess.run(
            [self.uvarrow, "query", "--quiet", *words,
             "SELECT count(*) AS n FROM flights"],
            capture_output=True, timeout=PATIENCE, env={
                **os.environ,
                "ADBC_DRIVER_PATH": os.path.dirname(self.driver)})

    def test_a_driver_is_found_by_its_name(self):
        result = self.ask("--driver", "sqlite", self.flights)
        self.assertEqual((result.stdout, result.stderr), (b"n\n336776\n", b""))

    def test_a_uri_picks_the_driver(self):
        result = self.ask("sqlite:" + self.flights)
        self.assertEqual((result.stdout, result.stderr), (b"n\n336776\n", b""))
        result = self.ask("--uri", "sqlite:file:" + self.flights)
        self.assertEqual((result.stdout, result.stderr), (b"n\n336776\n", b""))

    def test_a_scheme_without_a_driver_is_named(self):
        result = self.ask("nosuch://localhost")
        self.assert_one_line(result, 2, "there is no driver 'nosuch'")


class WhatIsRefused(Query):
    def test_a_driver_that_is_not_there(self):
        result = self.run_query("SELECT 1", driver="/nowhere/driver.so")
        self.assert_one_line(result, 2, "cannot load the driver")

    def test_a_name_that_no_driver_has(self):
        result = self.run_query("SELECT 1", driver="nowhere")
        self.assert_one_line(result, 2, "there is no driver 'nowhere'")

    def test_a_library_that_is_no_driver(self):
        result = self.run_query("SELECT 1", driver="libc.so.6")
        self.assert_one_line(result, 2, "is no ADBC driver")

    def test_a_file_that_is_no_library(self):
        result = self.run_query("SELECT 1", driver=os.path.abspath(__file__))
        self.assert_one_line(result, 2, "cannot load")

    def test_another_entry_point(self):
        result = self.run_query("SELECT 1 AS one", "--quiet", "--entrypoint",
                                "AdbcDriverSqliteInit")
        self.assertEqual(result.stdout, b"one\n1\n")
        result = self.run_query("SELECT 1", "--entrypoint", "Nothing")
        self.assert_one_line(result, 2, "Nothing")

    def test_a_query_with_a_mistake(self):
        """The driver adds the query, on a separate line."""
        self.assert_lines(2, self.run_query("SELEC 1"), 2,
                          "syntax error\nquery: SELEC 1\n")
        self.assert_lines(2, self.run_query("SELECT * FROM nowhere"), 2,
                          "no such table: nowhere\nquery: ")

    def test_a_message_of_several_lines_keeps_them(self):
        result = self.run_query('SELECT * FROM "no\n\twhere\a\n"')
        self.assertEqual(result.returncode, 2)
        self.assertIn(b"no such table: no\n\twhere \n", result.stderr)
        self.assertFalse(result.stderr.endswith(b"\n\n"), result.stderr)

    def test_a_database_that_cannot_be_opened(self):
        result = self.run_query("SELECT 1", database="/nowhere/flights.db")
        self.assert_one_line(result, 2, "/nowhere/flights.db")

    def test_a_setting_the_driver_does_not_know(self):
        result = self.run_query("SELECT 1", "--option", "no.such=1")
        self.assert_one_line(result, 2, "option no.such")

    def test_an_output_that_cannot_be_opened(self):
        result = self.run_query("SELECT 1", "--output", "/nowhere/out.csv")
        self.assert_one_line(result, 2, "/nowhere/out.csv")

    def test_a_command_line_with_a_mistake(self):
        for words in ([], ["nothing"], ["query"], ["query", "--driver"],
                      ["query", "--driver", "x"], ["query", "--sync", "x"],
                      ["query", "--quiet=1", "x"],
                      ["query", "--driver", "x", "--option", "y", "z"],
                      ["query", "--driver", "x", "SELECT", "1"]):
            with self.subTest(words=words):
                result = subprocess.run([self.uvarrow, *words],
                                        capture_output=True, timeout=PATIENCE)
                self.assert_one_line(result, 2, "")

    def test_a_standard_output_that_is_closed(self):
        result = subprocess.run(self.command("SELECT 1", "--quiet"),
                                stderr=subprocess.PIPE, timeout=PATIENCE,
                                preexec_fn=lambda: os.close(1))
        self.assertNotEqual(result.returncode, 0)
        self.assertEqual(result.stderr.count(b"\n"), 1, result.stderr)


class WhatIsMeasured(Query):
    def stall(self, *ways):
        result = subprocess.run(
            [self.uvarrow, "stall", *ways, "--driver", self.driver, "--uri",
             "file:" + self.flights, "SELECT * FROM flights LIMIT 50000"],
            capture_output=True, timeout=PATIENCE)
        self.assertEqual((result.returncode, result.stderr), (0, b""))
        return result.stdout.decode().splitlines()

    def test_both_ways_read_all_rows(self):
        for ways in ((), ("--sync", "--async")):
            lines = self.stall(*ways)
            self.assertEqual(len(lines), 3)
            self.assertIn("late max", lines[0])
            self.assertRegex(lines[1], r"^on the loop thread +50,000 ")
            self.assertRegex(lines[2], r"^through uvarrow +50,000 ")

    def test_one_way_alone(self):
        for way, name in (("--sync", "on the loop thread"),
                          ("--async", "through uvarrow")):
            lines = self.stall(way)
            self.assertEqual(len(lines), 2)
            self.assertIn("late max", lines[0])
            self.assertRegex(lines[1], rf"^{name} +50,000 ")

    def test_a_mistake_is_reported_once(self):
        for way in ("--sync", "--async"):
            result = subprocess.run(
                [self.uvarrow, "stall", way, "--driver", self.driver, "--uri",
                 "file:" + self.flights, "SELEC 1"],
                capture_output=True, timeout=PATIENCE)
            self.assert_lines(2, result, 2, "syntax error\nquery: SELEC 1\n")


if __name__ == "__main__":
    names = ("TOOL", "DRIVER", "FLIGHTS", "BUILD")
    paths = [os.environ.get("UVA_TEST_" + name, "") for name in names]
    if not all(map(os.path.exists, paths)):
        print("skipped: one of", ", ".join("UVA_TEST_" + n for n in names),
              "is not there; run scripts/bootstrap and build", __doc__)
        sys.exit(77)
    Query.uvarrow, Query.driver, Query.zipped, build = paths
    Query.folder = os.path.join(build, "test_query_tool")
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    unittest.main()
