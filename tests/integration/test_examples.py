#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The programs of examples/ on real data must print the same as Python reads.

Environment variables give the paths: UVA_TEST_DRIVER the ADBC driver for
SQLite, UVA_TEST_FLIGHTS flights.csv.zip, UVA_TEST_BUILD the folder with the
built examples, where files may be written.

The tests do not wait for a time to pass. PATIENCE only ends a test that hangs.
"""
import csv
import http.client
import os
import resource
import signal
import socket
import sqlite3
import subprocess
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(HERE, "..", "..", "tools"))
import flights  # noqa: E402

PATIENCE = 600  # seconds
JANUARY = "SELECT * FROM flights WHERE month = 1"
JANUARY_ROWS = 27004
ENDLESS = ("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) "
           "SELECT i, 'row ' || i AS name FROM n")
MANY = 1000000  # more rows than the buffers of a connection hold
NEVER_A_ROW = ENDLESS.split(") SELECT")[0] + ") SELECT count(*) FROM n"


class Examples(unittest.TestCase):
    driver = zipped = build = None

    @classmethod
    def setUpClass(cls):
        folder = os.path.join(cls.build, "test_examples")
        os.makedirs(folder, exist_ok=True)
        cls.database = os.path.join(folder, "flights.db")
        flights.build(cls.zipped, cls.database)

    def command(self, name, *arguments):
        program = os.path.join(self.build, "examples", "example_" + name)
        if not os.path.exists(program):
            self.skipTest(f"{program} was not built")
        return [program, *arguments]

    def run_example(self, name, *arguments, code=0):
        """Returns its output and its error output."""
        result = subprocess.run(self.command(name, *arguments), text=True,
                                capture_output=True, timeout=PATIENCE)
        self.assertEqual(result.returncode, code, result.stderr)
        return result.stdout, result.stderr

    def query(self, name, sql, *rest, code=0):
        return self.run_example(name, self.driver, "file:" + self.database,
                                sql, *rest, code=code)

    def text_of(self, sql, names=True):
        """Returns the output of rows_write() for the rows that sqlite3
        reads."""
        rows = sqlite3.connect(self.database).execute(sql)
        lines = [[column[0] for column in rows.description]] if names else []
        lines += ([("" if value is None else f"{value:.17g}"
                    if isinstance(value, float) else str(value))
                   for value in row] for row in rows)
        return "".join("\t".join(line) + "\n" for line in lines)


class Databases(Examples):
    def test_rows_are_printed_as_python_reads_them(self):
        text, _ = self.query("print_rows", JANUARY)
        self.assertEqual(text.count("\n"), JANUARY_ROWS + 1)
        self.assertEqual(text, self.text_of(JANUARY))

    def test_a_mistake_is_told(self):
        text, error = self.query("print_rows", "SELEC 1", code=1)
        self.assertEqual(text, "")
        self.assertIn("syntax error", error)

    def test_no_driver_is_told(self):
        _, error = self.run_example("print_rows", "/nowhere.so", "x", "SELECT 1",
                                    code=1)
        self.assertIn("/nowhere.so", error)

    def test_glib_hosts_it(self):
        text, _ = self.query("host_glib", "SELECT * FROM flights")
        self.assertEqual(text, f"{flights.ROWS} rows\n")
        _, error = self.query("host_glib", "SELEC 1", code=1)
        self.assertIn("syntax error", error)

    def test_a_thread_hosts_it_to_the_end(self):
        text, _ = self.query("host_thread", JANUARY, "1000000")
        self.assertEqual(text, "complete\n")

    def test_a_thread_hosts_it_until_there_is_enough(self):
        text, _ = self.query("host_thread", ENDLESS, "100000")
        self.assertEqual(text, "so many rows are enough\n")


class Pipelines(Examples):
    """Merged and saved rows, of databases that are locked, fail or never end."""

    def make(self, number, definition):
        """Makes a database, and returns its connection."""
        path = self.path(f"{number}.db")
        if os.path.exists(path):
            os.remove(path)
        database = sqlite3.connect(path, isolation_level=None)
        self.addCleanup(database.close)
        database.execute(definition)
        return database

    def path(self, name):
        return os.path.join(self.build, "test_examples", f"{self.id()}.{name}")

    def start(self, name, *arguments):
        program = subprocess.Popen(
            self.command(name, self.driver, *arguments),
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(program.stdout.close)
        self.addCleanup(program.stderr.close)
        self.addCleanup(program.wait)
        self.addCleanup(program.kill)
        return program

    def test_rows_of_two_databases_are_merged(self):
        sql = "SELECT flight, carrier FROM flights WHERE month "
        uri = "file:" + self.database
        text, _ = self.run_example("merge_databases", self.driver, uri,
                                   sql + "<= 6", uri, sql + "> 6")
        names, *rows = csv.reader(text.splitlines())
        wanted = sqlite3.connect(self.database).execute(
            "SELECT flight, carrier FROM flights")
        self.assertEqual(names, ["flight", "carrier"])
        self.assertEqual(sorted(rows), sorted([str(a), b] for a, b in wanted))

    def test_a_database_that_fails_ends_the_merge(self):
        self.make(1, "CREATE TABLE flights (carrier TEXT)")
        self.make(2, "CREATE VIEW flights AS " + ENDLESS)
        one, two = ("file:" + self.path(f"{i}.db") for i in (1, 2))
        _, error = self.run_example("merge_databases", self.driver, two,
                                    "SELECT i FROM flights", one,
                                    "SELECT i FROM flights", code=1)
        self.assertIn("no such column: i", error)

    def test_a_locked_database_is_tried_again(self):
        locked = self.make(1, "CREATE TABLE fruit AS SELECT 'pear' AS name")
        locked.execute("BEGIN EXCLUSIVE")
        program = self.start("retry_locked", "file:" + self.path("1.db"),
                             "SELECT name FROM fruit")
        self.assertIn("attempt 2, as this failed: ",
                      program.stderr.readline())
        locked.execute("ROLLBACK")
        text, _ = program.communicate(timeout=PATIENCE)
        self.assertEqual((program.returncode, text), (0, "name\npear\n"))

    def test_other_failures_are_not_tried_again(self):
        _, error = self.query("retry_locked", "SELEC 1", code=1)
        self.assertIn("syntax error", error)
        self.assertNotIn("attempt", error)

    def test_a_driver_without_partitions_is_told(self):
        text, error = self.query("partitions", "SELECT 1", code=1)
        self.assertEqual(text, "")
        self.assertIn("cannot be partitioned", error)

    def test_rows_are_saved_and_the_first_are_shown(self):
        path = self.path("arrow")
        text, _ = self.query("save_and_show", "SELECT flight FROM flights",
                             path)
        wanted = sqlite3.connect(self.database).execute(
            "SELECT flight FROM flights LIMIT 5").fetchall()
        self.assertEqual(text, "".join(f'{{"flight":{row[0]}}}\n'
                                       for row in wanted))
        rows, _ = self.run_example("copy_progress", path, path + ".csv",
                                   str(10 ** 9))
        self.assertEqual(rows, f"{flights.ROWS} rows\n")

    def test_ctrl_c_cancels_every_branch(self):
        program = self.start("save_and_show", ":memory:", ENDLESS,
                             self.path("arrow"))
        for _ in range(5):
            self.assertIn('"name":"row ', program.stdout.readline())
        program.send_signal(signal.SIGINT)
        text, error = program.communicate(timeout=PATIENCE)
        self.assertEqual((program.returncode, text), (1, ""))
        self.assertEqual(error.count("\n"), 1)
        self.assertIn("interrupted", error)


class Server(Examples):
    """A server on a port that the system chose; Ctrl-C ends it."""

    def start(self, sql):
        server = subprocess.Popen(
            self.command("graceful_end", self.driver, "file:" + self.database,
                         sql, "0"),
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(server.stdout.close)
        self.addCleanup(server.stderr.close)
        self.addCleanup(server.wait)
        self.addCleanup(server.kill)
        self.port = int(server.stdout.readline().split()[-1])
        return server

    def ask(self):
        """Returns the answer to a request; may raise ConnectionRefusedError."""
        client = http.client.HTTPConnection("127.0.0.1", self.port, PATIENCE)
        self.addCleanup(client.close)
        client.request("GET", "/")
        return client

    def answer(self):
        answer = self.ask().getresponse()
        self.assertEqual(answer.status, 200)
        return answer

    def stop(self, server):
        server.send_signal(signal.SIGINT)
        self.assertEqual((server.wait(PATIENCE), server.stderr.read()), (0, ""))

    def test_each_client_gets_all_rows(self):
        sql = "SELECT flight, carrier FROM flights WHERE month = 1"
        server = self.start(sql)
        wanted = self.text_of(sql).replace("\t", ",")
        for answer in [self.answer(), self.answer()]:
            self.assertEqual(answer.read().decode(), wanted)
        self.stop(server)

    def test_a_client_that_leaves_hurts_nobody(self):
        server = self.start(ENDLESS)
        leaving, staying = self.answer(), self.answer()
        self.assertEqual(leaving.readline() + leaving.readline(),
                         b"i,name\n1,row 1\n")
        leaving.close()
        self.assertEqual(staying.readline(), b"i,name\n")
        for i in range(1, 50000):
            self.assertEqual(staying.readline(), f"{i},row {i}\n".encode())
        self.stop(server)

    def test_clients_that_wait_do_not_keep_a_server_from_ending(self):
        server = self.start(NEVER_A_ROW)
        waiting = self.ask()
        idle = socket.create_connection(("127.0.0.1", self.port), PATIENCE)
        self.addCleanup(idle.close)
        self.stop(server)
        self.assertEqual(idle.recv(1000), b"")
        waiting.close()

    def terminate(self, server):
        """Returns when the server has begun to end."""
        server.send_signal(signal.SIGTERM)
        while server.poll() is None:
            try:
                socket.create_connection(("127.0.0.1", self.port),
                                         PATIENCE).close()
            except (ConnectionRefusedError, ConnectionResetError):
                return

    def test_a_graceful_end_cuts_nothing_short(self):
        wanted = "i,name\n" + "".join(f"{i},row {i}\n"
                                      for i in range(1, MANY + 1))
        server = self.start(f"{ENDLESS} LIMIT {MANY}")
        answers = [self.answer(), self.answer()]
        begins = [answer.readline() for answer in answers]  # far from the end
        self.terminate(server)
        for begin, answer in zip(begins, answers):
            self.assertTrue((begin + answer.read()).decode() == wanted)
        self.assertEqual((server.wait(PATIENCE), server.stderr.read()),
                         (0, ""))

    def test_a_graceful_end_without_clients_is_quick(self):
        server = self.start(NEVER_A_ROW)
        self.terminate(server)
        self.assertEqual((server.wait(PATIENCE), server.stderr.read()),
                         (0, ""))

    def test_a_graceful_end_can_be_cut_short(self):
        server = self.start(ENDLESS)
        answer = self.answer()
        self.assertEqual(answer.readline(), b"i,name\n")
        self.terminate(server)
        server.send_signal(signal.SIGTERM)  # has no effect
        self.assertEqual(answer.readline(), b"1,row 1\n")
        self.stop(server)
        with self.assertRaises(http.client.IncompleteRead):
            answer.read()

    def test_a_port_that_is_taken_is_told(self):
        self.start(JANUARY)
        _, error = self.query("graceful_end", JANUARY, str(self.port), code=1)
        self.assertIn("address already in use", error)


class HttpServer(Examples):
    END = b"\xff\xff\xff\xff\0\0\0\0"  # of a stream of Arrow IPC

    def start(self, sql):
        server = subprocess.Popen(
            self.command("server", self.driver, "file:" + self.database, sql,
                         "0"), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            text=True)
        self.addCleanup(server.stdout.close)
        self.addCleanup(server.stderr.close)
        self.addCleanup(server.wait)
        self.addCleanup(server.kill)
        return server, int(server.stdout.readline().split()[-1])

    def test_each_request_gets_all_rows(self):
        _, port = self.start(JANUARY)
        for _ in range(2):
            client = http.client.HTTPConnection("127.0.0.1", port, PATIENCE)
            client.request("GET", "/")
            answer = client.getresponse()
            self.assertEqual(answer.headers["Content-Type"],
                             "application/vnd.apache.arrow.stream")
            data = answer.read()  # raises if the last chunk is missing
            client.close()
            self.assertGreater(len(data), JANUARY_ROWS * 8)
            self.assertTrue(data.endswith(self.END))

    def test_csv(self):
        _, port = self.start("SELECT 7 AS a, 'x,y' AS b")
        client = http.client.HTTPConnection("127.0.0.1", port, PATIENCE)
        client.request("GET", "/csv")
        answer = client.getresponse()
        self.assertEqual(answer.headers["Content-Type"], "text/csv")
        self.assertEqual(answer.read(), b'a,b\n7,"x,y"\n')
        client.close()

    def test_clients_above_the_limit_wait_for_others_to_leave(self):
        _, port = self.start("SELECT 7 AS a")
        silent = [socket.create_connection(("127.0.0.1", port), PATIENCE)
                  for _ in range(256)]
        waiting = [http.client.HTTPConnection("127.0.0.1", port, PATIENCE)
                   for _ in range(3)]
        for client in waiting:
            client.request("GET", "/csv")
        silent.pop().close()
        for client in waiting:  # the end of each makes room for the next one
            self.assertEqual(client.getresponse().read(), b"a\n7\n")
            client.close()
        for client in silent:
            client.close()

    def test_without_descriptors_clients_are_answered(self):
        server, port = self.start("SELECT 1 AS a")
        clients = [http.client.HTTPConnection("127.0.0.1", port, PATIENCE)
                   for _ in range(3)]
        clients[0].request("GET", "/")  # opens the database
        self.assertEqual(clients[0].getresponse().status, 200)
        clients[1].connect()
        clients[2].request("GET", "/")  # the one before is accepted, too
        self.assertEqual(clients[2].getresponse().status, 200)
        before = resource.prlimit(server.pid, resource.RLIMIT_NOFILE)
        resource.prlimit(server.pid, resource.RLIMIT_NOFILE, (3, before[1]))
        waiting = socket.create_connection(("127.0.0.1", port))
        clients[1].request("GET", "/")
        status = clients[1].getresponse().status  # or no file can be opened
        self.assertIn(status, (200, 400))
        waiting.close()
        resource.prlimit(server.pid, resource.RLIMIT_NOFILE, before)
        for client in clients:
            client.close()

    def test_a_query_that_is_refused_is_400(self):
        server, port = self.start("SELECT i FROM nowhere")
        client = http.client.HTTPConnection("127.0.0.1", port, PATIENCE)
        client.request("GET", "/")
        self.assertEqual(client.getresponse().status, 400)
        client.close()
        self.assertIn("no such table", server.stderr.readline())

    def test_the_answer_to_a_refused_query_is_its_text(self):
        _, port = self.start("SELECT i FROM nowhere")
        client = http.client.HTTPConnection("127.0.0.1", port, PATIENCE)
        client.request("GET", "/csv")
        answer = client.getresponse()
        self.assertEqual(answer.headers["Content-Type"], "text/plain")
        self.assertIn(b"no such table: nowhere", answer.read())
        client.close()

    def test_a_query_without_a_row_in_time_is_504(self):
        server, port = self.start(NEVER_A_ROW)
        client = http.client.HTTPConnection("127.0.0.1", port, PATIENCE)
        client.request("GET", "/")
        self.assertEqual(client.getresponse().status, 504)
        client.close()
        self.assertIn("within 2000 ms", server.stderr.readline())

    def test_a_query_without_rows_is_200(self):
        _, port = self.start("SELECT 7 AS a WHERE 1 = 0")
        client = http.client.HTTPConnection("127.0.0.1", port, PATIENCE)
        client.request("GET", "/csv")
        answer = client.getresponse()
        self.assertEqual((answer.status, answer.read()), (200, b"a\n"))
        client.close()

    def test_a_query_that_fails_has_no_last_chunk(self):
        server, port = self.start(
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n "
            "WHERE i < 5000) SELECT abs(CASE WHEN i < 5000 THEN i ELSE "
            "-9223372036854775807 - 1 END) AS a FROM n")
        client = http.client.HTTPConnection("127.0.0.1", port, PATIENCE)
        client.request("GET", "/")
        with self.assertRaises(http.client.IncompleteRead):
            client.getresponse().read()
        client.close()
        self.assertIn("integer overflow", server.stderr.readline())

    def test_a_client_that_leaves_does_not_stop_it(self):
        _, port = self.start(ENDLESS)
        for _ in range(10):  # more than the pool has connections
            with socket.create_connection(("127.0.0.1", port), PATIENCE) as one:
                one.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
                text = b""
                while b"row 1" not in text:
                    self.assertNotEqual(part := one.recv(1 << 16), b"")
                    text += part


if __name__ == "__main__":
    names = ("DRIVER", "FLIGHTS", "BUILD")
    paths = [os.environ.get("UVA_TEST_" + name, "") for name in names]
    if not all(map(os.path.exists, [*paths, paths[-1] + "/examples"])):
        print("skipped: one of", ", ".join("UVA_TEST_" + n for n in names),
              "is not there; run scripts/bootstrap and build", __doc__)
        sys.exit(77)
    Examples.driver, Examples.zipped, Examples.build = paths
    unittest.main()
