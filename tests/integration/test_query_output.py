#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Where `uvarrow query` writes: files that it replaces, files that it must not
replace, and readers that stand still when a signal comes.

UVA_TEST_TOOL is the path of the command, UVA_TEST_DRIVER the path of the
driver for SQLite. The tests do not wait for a time to pass; PATIENCE only ends
a test that hangs.
"""
import os
import pty
import resource
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
from test_query_tool import ENDLESS_ROWS, Terminal  # noqa: E402

PATIENCE = 100  # seconds
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
HALF_WAY = ("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n "
            "WHERE i < 5000) SELECT CASE WHEN i < 4000 THEN i ELSE "
            "abs(-9223372036854775808) END AS x FROM n")


class Output(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)

    def path(self, name):
        return os.path.join(self.folder, name)

    def write(self, name, data=b"old\n"):
        with open(self.path(name), "wb") as file:
            file.write(data)
        return self.path(name)

    def read(self, name):
        with open(self.path(name), "rb") as file:
            return file.read()

    def command(self, *words):
        return [os.environ["UVA_TEST_TOOL"], "query", *words]

    def query(self, sql, *words):
        return self.command("--driver", os.environ["UVA_TEST_DRIVER"], *words,
                            ":memory:", sql)

    def run_tool(self, words, **how):
        how.setdefault("stdout", subprocess.PIPE)
        return subprocess.run(words, stderr=subprocess.PIPE, timeout=PATIENCE,
                              check=False, **how)

    def start(self, words, **how):
        process = subprocess.Popen(words, **how)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def arrow(self, name):
        """Makes a file of Arrow IPC."""
        done = self.run_tool(self.query("SELECT 1 AS one", "--format", "arrow"))
        return self.write(name, done.stdout)

    def assert_refused(self, done, part):
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertEqual(done.stderr.count(b"\n"), 1, done.stderr)
        self.assertIn(part.encode(), done.stderr)


class WhatIsAlsoRead(Output):
    """An output that is an input is refused, and as it was."""

    def setUp(self):
        super().setUp()
        self.source = self.arrow("in.arrows")
        os.link(self.source, self.path("hard.arrows"))
        os.symlink("in.arrows", self.path("soft.arrows"))
        self.before = self.read("in.arrows")

    def check(self, words, part, **how):
        files = sorted(os.listdir(self.folder))
        self.assert_refused(self.run_tool(self.command(*words), **how), part)
        self.assertEqual(self.read("in.arrows"), self.before)
        self.assertEqual(sorted(os.listdir(self.folder)), files)

    def test_a_path_or_link_to_the_input(self):
        for name in ("in.arrows", "hard.arrows", "soft.arrows", "./in.arrows"):
            for more in ([], ["--in-place"]):
                with self.subTest(name=name, more=more):
                    self.check(["--from", self.source, "--output",
                                self.path(name), *more], "is also the input")
        self.check(["--from", self.path("soft.arrows"), "--output",
                    self.path("hard.arrows")], "is also the input")

    def test_standard_input(self):
        for source in ("-", "/dev/stdin"):
            with self.subTest(source=source), open(self.source, "rb") as file:
                self.check(["--from", source, "--output",
                            self.path("hard.arrows")], "is also the input",
                           stdin=file)

    def test_standard_output(self):
        with open(self.source, "ab") as file:
            self.check(["--from", self.path("hard.arrows")],
                       "standard output is also the input", stdout=file)

    def test_the_trace(self):
        self.check(["--from", self.source, "--trace", self.path("hard.arrows")],
                   "is also the input")
        same = self.path("new.csv")
        self.check(["--from", self.source, "--trace", same, "--output", same],
                   "cannot be both --output and --trace")
        self.write("old.csv")
        os.link(self.path("old.csv"), self.path("trace.json"))
        self.check(["--from", self.source, "--output", self.path("old.csv"),
                    "--trace", self.path("trace.json")], "is also the trace")
        self.assertEqual(self.read("old.csv"), b"old\n")

    def test_files_beside_the_query(self):
        driver = os.environ["UVA_TEST_DRIVER"]
        sql = self.write("a.sql", b"SELECT 1")
        self.check(["--driver", driver, ":memory:", "--file", sql, "--output",
                    sql, "--format", "csv"], "is also the file of the query")
        with open(sql, "rb") as file:
            self.check(["--driver", driver, ":memory:", "-", "--output", sql,
                        "--format", "csv"], "is also the file of the query",
                       stdin=file)
        for option in ("--token-file", "--tls-ca"):
            self.check(["--from", "https://localhost:1/", option, sql,
                        "--output", sql, "--format", "csv"], "is also the file")
        fake = self.write("driver.so")
        self.check(["--driver", fake, "SELECT 1", "--output", fake,
                    "--format=csv"], "is also the driver")
        self.assertEqual(self.read("a.sql"), b"SELECT 1")

    def test_the_database(self):
        path = self.path("a b.db")
        database = sqlite3.connect(path)
        database.execute("CREATE TABLE t (i INTEGER)")
        database.commit()
        database.close()
        before = self.read("a b.db")
        encoded = path.replace(" ", "%20")
        for words in ([path], ["file:" + path], ["file:" + encoded],
                      ["--uri", "file://localhost" + encoded + "?mode=rw"],
                      ["sqlite:" + path], ["sqlite:file:" + encoded + "#a"],
                      ["--option", "uri=" + path],
                      ["--option=path=file:" + path]):
            with self.subTest(words=words):
                self.check(["--driver", os.environ["UVA_TEST_DRIVER"], *words,
                            "SELECT 1", "--format", "csv", "--output", path],
                           "is also the database")
                self.assertEqual(self.read("a b.db"), before)

    def test_a_device_may_be_both(self):
        with open("/dev/null", "r+b") as null:
            done = self.run_tool(self.command("--from", "-"), stdin=null,
                                 stdout=null)
        self.assertNotIn(b"is also", done.stderr)


class WhatIsReplaced(Output):
    def test_the_old_file_is_there_until_the_end(self):
        """The new rows wait in a pipe that feeds the query."""
        old = self.write("out.csv")
        data = self.read(os.path.basename(self.arrow("in.arrows")))
        os.remove(self.path("in.arrows"))
        process = self.start(self.command("--from", "-", "--quiet", "--output",
                                          old), stdin=subprocess.PIPE)
        process.stdin.write(data[:-8])
        process.stdin.flush()
        self.assertEqual(self.read("out.csv"), b"old\n")
        process.stdin.write(data[-8:])
        process.stdin.close()
        self.assertEqual(process.wait(PATIENCE), 0)
        self.assertEqual(self.read("out.csv"), b"one\n1\n")
        self.assertEqual(os.listdir(self.folder), ["out.csv"])

    def test_a_failure_leaves_the_old_file_alone(self):
        for name in ("old.csv", "none.csv"):
            self.write("old.csv")
            done = self.run_tool(self.query(HALF_WAY, "--output",
                                            self.path(name)))
            self.assertEqual(done.returncode, 1, done.stderr)
            self.assertEqual(self.read("old.csv"), b"old\n")
            self.assertEqual(os.listdir(self.folder), ["old.csv"])

    def test_a_limit_of_the_files_size_leaves_it_alone(self):
        old = self.write("old.csv")
        done = self.run_tool(
            self.query(ENDLESS_ROWS, "--output", old),
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE,
                                                  (1 << 20, 1 << 20)))
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn(b"file too large", done.stderr.lower())
        self.assertEqual(self.read("old.csv"), b"old\n")
        self.assertEqual(os.listdir(self.folder), ["old.csv"])

    def test_a_signal_leaves_the_old_file_alone(self):
        for number in SIGNALS:
            old = self.write("old.csv")
            ours, other = pty.openpty()
            process = self.start(self.query(ENDLESS_ROWS, "--output", old),
                                 stderr=other)
            os.close(other)
            terminal = Terminal(ours)
            self.addCleanup(terminal.close)
            while terminal.megabytes() == 0.0:
                pass
            process.send_signal(number)
            while terminal.megabytes() is not None:
                pass
            self.assertEqual(process.wait(PATIENCE), 128 + number)
            self.assertEqual(self.read("old.csv"), b"old\n")
            self.assertEqual(os.listdir(self.folder), ["old.csv"])

    def replace(self, name, *more):
        done = self.run_tool(self.query("SELECT 1 AS one", "--quiet",
                                        "--output", self.path(name), *more))
        self.assertEqual((done.returncode, done.stderr), (0, b""))
        return os.stat(self.path(name))

    def test_mode_and_owner_are_kept(self):
        for mode in (0o600, 0o644, 0o4751):
            path = self.write("out.csv")
            os.chmod(path, mode)
            if os.geteuid() == 0:
                os.chown(path, 1234, 4321)
                os.chmod(path, mode)
            before = os.stat(path)
            after = self.replace("out.csv")
            self.assertEqual((after.st_mode, after.st_uid, after.st_gid),
                             (before.st_mode, before.st_uid, before.st_gid))
            self.assertNotEqual(after.st_ino, before.st_ino)
            self.assertEqual(self.read("out.csv"), b"one\n1\n")

    def test_a_new_file_has_the_mode_of_new_files(self):
        old = os.umask(0o027)
        self.addCleanup(os.umask, old)
        self.assertEqual(self.replace("out.csv").st_mode & 0o7777, 0o640)

    def test_links_stay_links(self):
        self.write("file.csv")
        os.mkdir(self.path("sub"))
        os.symlink("../file.csv", self.path("sub/b.csv"))
        os.symlink("sub/b.csv", self.path("a.csv"))
        os.symlink(self.path("new.csv"), self.path("dangling.csv"))
        os.symlink("loop.csv", self.path("loop.csv"))
        self.replace("a.csv")
        self.assertEqual(self.read("file.csv"), b"one\n1\n")
        self.replace("dangling.csv")
        self.assertEqual(self.read("new.csv"), b"one\n1\n")
        self.assertTrue(os.path.islink(self.path("a.csv")) and
                        os.path.islink(self.path("sub/b.csv")) and
                        os.path.islink(self.path("dangling.csv")))
        done = self.run_tool(self.query("SELECT 1", "--output",
                                        self.path("loop.csv")))
        self.assert_refused(done, "loop.csv")

    def test_in_place(self):
        before = os.stat(self.write("out.csv", b"a much longer old text\n"))
        os.link(self.path("out.csv"), self.path("hard.csv"))
        self.assertEqual(self.replace("out.csv", "--in-place").st_ino,
                         before.st_ino)
        self.assertEqual(self.read("hard.csv"), b"one\n1\n")
        self.assert_refused(self.run_tool(self.query("SELECT 1", "--in-place")),
                            "--in-place is for --output")

    def test_what_is_no_plain_file_is_written_to(self):
        done = self.run_tool(self.query("SELECT 1 AS one", "--output",
                                        "/dev/stdout", "--quiet"))
        self.assertEqual((done.returncode, done.stdout), (0, b"one\n1\n"))
        with open(self.path("seen"), "wb") as file:
            self.run_tool(self.query("SELECT 1 AS one", "--output",
                                     "/dev/stdout", "--quiet"), stdout=file)
            self.assertEqual(os.fstat(file.fileno()).st_nlink, 1)
        self.assertEqual(self.read("seen"), b"one\n1\n")
        os.mkfifo(self.path("pipe"))
        process = self.start(self.query("SELECT 1 AS one", "--output",
                                        self.path("pipe"), "--quiet"))
        self.assertEqual(self.read("pipe"), b"one\n1\n")
        self.assertEqual(process.wait(PATIENCE), 0)

    def test_a_folder_that_takes_no_file(self):
        done = self.run_tool(self.query("SELECT 1", "--output",
                                        "/proc/self/none.csv"))
        self.assert_refused(done, "/proc/self/none.csv")

    @unittest.skipIf(os.geteuid() == 0, "root may write to any file")
    def test_a_file_that_is_only_read(self):
        os.chmod(self.write("old.csv"), 0o444)
        done = self.run_tool(self.query("SELECT 1", "--output",
                                        self.path("old.csv")))
        self.assert_refused(done, "ermission denied")
        self.assertEqual(self.read("old.csv"), b"old\n")


class WhichFormat(Output):
    def begin(self, name, *more):
        done = self.run_tool(self.query("SELECT 1 AS one", "--quiet",
                                        "--output", self.path(name), *more))
        self.assertEqual((done.returncode, done.stderr), (0, b""))
        return self.read(name)

    def test_the_ending_is_the_format(self):
        for name in ("a.json", "a.jsonl", "a.b.NDJSON"):
            self.assertEqual(self.begin(name), b'{"one":1}\n')
        for name in ("a.csv", "a.CSV", "none", ".hidden"):
            self.assertEqual(self.begin(name), b"one\n1\n")
        for name in ("a.arrow", "a.feather"):
            data = self.begin(name)
            self.assertEqual((data[:6], data[-6:]), (b"ARROW1", b"ARROW1"))
        self.assertEqual(self.begin("a.arrows")[:4], b"\xff\xff\xff\xff")

    def test_the_option_is_stronger(self):
        self.assertEqual(self.begin("a.parquet", "--format", "csv"),
                         b"one\n1\n")
        self.assertEqual(self.begin("a.csv", "--format=json"), b'{"one":1}\n')
        self.assertEqual(self.begin("a.arrow", "--format=arrow")[:4],
                         b"\xff\xff\xff\xff")
        self.assertEqual(self.begin("a.csv", "--format=arrow-file")[:6],
                         b"ARROW1")

    def test_other_endings_are_refused(self):
        for name in ("a.parquet", "a.csv.gz", "a.txt", "a.arrow.", "a."):
            done = self.run_tool(self.query("SELECT 1", "--output",
                                            self.path(name)))
            self.assert_refused(done, "name one with --format")
        self.assertEqual(os.listdir(self.folder), [])
        done = self.run_tool(self.query("SELECT 1", "--output",
                                        self.path("a.json"), "--no-header"))
        self.assert_refused(done, "--no-header is for CSV alone")


class WhatIsCounted(Output):
    def test_rows_that_were_not_written_are_not_counted(self):
        with open("/dev/full", "wb") as full:
            done = self.run_tool(self.query("SELECT 1 AS one"), stdout=full)
        self.assertEqual(done.returncode, 1)
        self.assertIn(b"failed: 0 rows in 0 batches, 0.0 MB", done.stderr)

    def test_rows_behind_a_limit_are_not_counted(self):
        path = self.path("out.csv")
        done = self.run_tool(
            self.query(ENDLESS_ROWS, "--output", path, "--in-place"),
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE,
                                                  (100000, 100000)))
        self.assertEqual(done.returncode, 1, done.stderr)
        rows = int(done.stderr.split(b"failed: ")[1].split()[0]
                   .replace(b",", b""))
        lines = self.read("out.csv").count(b"\n") - 1
        self.assertTrue(0 < rows <= lines, (rows, lines))


class WhoStandsStill(Output):
    """A signal ends the command, whatever is not read."""

    def end(self, number, **how):
        ours, other = pty.openpty()
        process = self.start(self.query(ENDLESS_ROWS), stderr=other, **how)
        os.close(other)
        terminal = Terminal(ours)
        self.addCleanup(terminal.close)
        while terminal.megabytes() == 0.0:
            pass
        process.send_signal(number)
        while terminal.megabytes() is not None:
            pass
        self.assertEqual(process.wait(PATIENCE), 128 + number)

    def test_a_pipe(self):
        for number in SIGNALS:
            read, write = os.pipe()
            self.end(number, stdout=write)
            self.assertTrue(os.get_blocking(write))
            os.close(read)
            os.close(write)

    def test_sockets(self):
        server = socket.create_server(("127.0.0.1", 0))
        near = socket.create_connection(server.getsockname())
        far, _ = server.accept()
        for a, b in (socket.socketpair(), (near, far)):
            self.end(signal.SIGTERM, stdout=a)
            a.close()
            b.close()
        server.close()

    def test_a_terminal(self):
        read, write = pty.openpty()
        process = self.start(self.query(
            "SELECT hex(zeroblob(2000000)) AS x", "--no-header"), stdout=write,
            stderr=subprocess.DEVNULL)
        os.close(write)
        self.assertEqual(os.read(read, 1), b"0")
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(PATIENCE), 128 + signal.SIGTERM)
        os.close(read)

    @unittest.skipIf("thread" in os.environ.get("UVA_TEST_SANITIZE", ""),
                     "its _exit() waits for standard error")
    def test_standard_error(self):
        """The summary cannot be written: its pipe is full."""
        read, write = os.pipe()
        os.set_blocking(write, False)
        try:
            while True:
                os.write(write, b"x" * 4096)
        except BlockingIOError:
            os.set_blocking(write, True)
        process = self.start(self.query(ENDLESS_ROWS), stdout=subprocess.PIPE,
                             stderr=write)
        self.addCleanup(process.stdout.close)
        self.assertEqual(process.stdout.readline(), b"i,name\n")
        process.send_signal(signal.SIGTERM)
        while process.stdout.read(1 << 16):
            pass
        self.assertEqual(process.wait(PATIENCE), 128 + signal.SIGTERM)
        os.close(read)
        os.close(write)

    def test_a_hangup_that_is_ignored(self):
        """As nohup does it."""
        process = self.start(
            self.query(ENDLESS_ROWS), stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
        self.addCleanup(process.stdout.close)
        self.assertEqual(process.stdout.readline(), b"i,name\n")
        process.send_signal(signal.SIGHUP)
        process.send_signal(signal.SIGTERM)
        while process.stdout.read(1 << 16):
            pass
        self.assertEqual(process.wait(PATIENCE), 128 + signal.SIGTERM)


if __name__ == "__main__":
    if not all(os.path.exists(os.environ.get("UVA_TEST_" + name, ""))
               for name in ("TOOL", "DRIVER")):
        print("skipped: UVA_TEST_TOOL or UVA_TEST_DRIVER is not there")
        sys.exit(77)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    unittest.main()
