#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The programs of examples/ on real data must print the same as Python reads.

Environment variables give the paths: UVA_TEST_DRIVER the ADBC driver for
SQLite, UVA_TEST_FLIGHTS flights.csv.zip, UVA_TEST_BUILD the folder with the
built examples, where files may be written.

The tests do not wait for a time to pass. PATIENCE only ends a test that hangs.
"""
import collections
import csv
import http.client
import os
import re
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


class Pipeline(Examples):
    """Two databases and some flights in memory, those late by five hours."""
    IN_MEMORY = ("ZZ", 1, 'Bar, "ME"', 100, 12)
    ENDLESS = ("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 "
               "FROM n) SELECT 'AA' AS carrier, i AS flight, 'BOS' AS dest, "
               "500 AS distance, 300 AS dep_delay FROM n")

    def setUp(self):
        folder = os.path.join(self.build, "test_examples")
        self.file = os.path.join(folder, f"{self.id()}.csv")
        self.halves = [os.path.join(folder, f"{self.id()}.{i}.db")
                       for i in (1, 2)]

    def split(self):
        """Makes the two databases, of half a year each."""
        whole = sqlite3.connect(self.database)
        for half, months in zip(self.halves, ("month <= 6", "month > 6")):
            if os.path.exists(half):
                os.remove(half)
            whole.execute("ATTACH ? AS half", (half,))
            whole.execute("CREATE TABLE half.flights AS "
                          f"SELECT * FROM flights WHERE {months}")
            whole.commit()
            whole.execute("DETACH half")
        whole.close()

    def make(self, half, definition):
        if os.path.exists(half):
            os.remove(half)
        database = sqlite3.connect(half, isolation_level=None)
        self.addCleanup(database.close)
        database.execute(definition)
        return database

    def start(self, driver=None):
        program = subprocess.Popen(
            self.command("pipeline", driver or self.driver,
                         *("file:" + half for half in self.halves), self.file),
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(program.stdout.close)
        self.addCleanup(program.stderr.close)
        self.addCleanup(program.wait)
        self.addCleanup(program.kill)
        return program

    def check(self, program, database):
        """Compares the output and the file with sqlite3's rows."""
        text, error = program.communicate(timeout=PATIENCE)
        self.assertEqual(program.returncode, 0, error)
        wanted = sqlite3.connect(database).execute(
            "SELECT carrier, flight, dest, distance, dep_delay / 60 "
            "FROM flights WHERE dep_delay >= 300").fetchall()
        wanted.append(self.IN_MEMORY)
        with open(self.file, encoding="utf-8", newline="") as file:
            names, *rows = csv.reader(file)
        self.assertEqual(names, ["carrier", "flight", "dest", "distance",
                                 "late"])
        self.assertEqual(sorted(rows),
                         sorted([str(value) for value in row]
                                for row in wanted))

        lines = text.splitlines()
        late = {f"{row[0]} {row[1]} was late by {row[4]} hours"
                for row in wanted}
        printed = [line for line in lines if " was late " in line]
        self.assertEqual(len(printed), min(5, len(wanted)))
        self.assertLessEqual(set(printed), late)
        totals = collections.defaultdict(lambda: [0, 0])
        for row in wanted:
            totals[row[0]][0] += 1
            totals[row[0]][1] += row[4]
        self.assertEqual(sorted(line for line in lines if ": " in line),
                         sorted(f"{name}: {count} flights, {hours} hours"
                                for name, (count, hours) in totals.items()))
        last = re.fullmatch(r"(\d+) batches had one, (\d+) bytes are in the "
                            "file", lines[-1])
        self.assertIsNotNone(last, lines[-1])
        self.assertIn(int(last[1]), range(1, len(wanted) + 1))
        self.assertEqual(int(last[2]), os.path.getsize(self.file))
        return len(wanted), error

    def test_the_late_flights_are_written_printed_and_added_up(self):
        self.split()
        count, error = self.check(self.start(), self.database)
        self.assertEqual((count, error), (615, ""))

    def test_a_locked_database_is_tried_again(self):
        one = ("CREATE TABLE flights AS SELECT 'AA' AS carrier, 7 AS flight, "
               "'BOS' AS dest, 500 AS distance, 400 AS dep_delay")
        self.make(self.halves[1], one.replace("400", "NULL"))
        locked = self.make(self.halves[0], one)
        locked.execute("BEGIN EXCLUSIVE")
        program = self.start()
        self.assertIn("first: attempt 2, as this failed: ",
                      program.stderr.readline())
        locked.execute("ROLLBACK")
        count, _ = self.check(program, self.halves[0])
        self.assertEqual(count, 2)

    def test_a_database_that_fails_ends_every_branch(self):
        self.make(self.halves[0], "CREATE TABLE flights (carrier TEXT)")
        self.make(self.halves[1], "CREATE VIEW flights AS " + self.ENDLESS)
        program = self.start()
        _, error = program.communicate(timeout=PATIENCE)
        self.assertEqual(program.returncode, 1)
        self.assertIn("no such column: flight", error)
        self.assertNotIn("attempt", error)
        self.assertRegex(error, "(?m)^flights: ")

    def test_ctrl_c_cancels_every_branch(self):
        for half in self.halves:
            self.make(half, "CREATE VIEW flights AS " + self.ENDLESS)
        program = self.start()
        for _ in range(5):
            self.assertIn(" was late by ", program.stdout.readline())
        program.send_signal(signal.SIGINT)
        text, error = program.communicate(timeout=PATIENCE)
        self.assertEqual((program.returncode, text), (1, ""))
        self.assertEqual(error.count("\n"), 1)
        self.assertRegex(error, "^([a-z]+: )?interrupted\n")

    def test_without_a_driver_it_is_skipped(self):
        program = self.start("/nowhere.so")
        _, error = program.communicate(timeout=PATIENCE)
        self.assertEqual(program.returncode, 77)
        self.assertEqual(error, "skipped: /nowhere.so, the driver, is not "
                                "there\n")


class Server(Examples):
    """A server on a port that the system chose; Ctrl-C ends it."""

    def start(self, sql):
        server = subprocess.Popen(
            self.command("row_server", self.driver, "file:" + self.database,
                         sql, "0"),
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(server.stdout.close)
        self.addCleanup(server.stderr.close)
        self.addCleanup(server.wait)
        self.addCleanup(server.kill)
        self.port = int(server.stdout.readline().split()[-1])
        return server

    def connect(self):
        client = socket.create_connection(("127.0.0.1", self.port), PATIENCE)
        self.addCleanup(client.close)
        return client

    def connect_again(self):
        """As connect(), to a server that may listen a moment later."""
        while True:
            try:
                return self.connect()
            except ConnectionRefusedError:
                pass

    def stop(self, server):
        server.send_signal(signal.SIGINT)
        self.assertEqual((server.wait(PATIENCE), server.stderr.read()), (0, ""))

    def test_each_client_gets_all_rows(self):
        server = self.start(JANUARY)
        wanted = self.text_of(JANUARY)
        for client in [self.connect(), self.connect()]:
            with client.makefile(encoding="utf-8", newline="\n") as text:
                self.assertEqual(text.read(), wanted)
        self.stop(server)

    def test_a_client_that_leaves_hurts_nobody(self):
        server = self.start(ENDLESS)
        leaving, staying = self.connect(), self.connect()
        with leaving, leaving.makefile(encoding="utf-8") as text:
            self.assertEqual(next(text) + next(text), "i\tname\n1\trow 1\n")
        with staying.makefile(encoding="utf-8") as text:
            self.assertEqual(next(text), "i\tname\n")
            for i in range(1, 50000):
                self.assertEqual(next(text), f"{i}\trow {i}\n")
        self.stop(server)

    def test_without_descriptors_clients_get_their_rows(self):
        server = self.start(ENDLESS)
        client = self.connect()
        with client.makefile(encoding="utf-8") as text:
            self.assertEqual(next(text), "i\tname\n")
            before = resource.prlimit(server.pid, resource.RLIMIT_NOFILE)
            resource.prlimit(server.pid, resource.RLIMIT_NOFILE,
                             (3, before[1]))
            waiting = socket.create_connection(("127.0.0.1", self.port))
            for i in range(1, 50000):
                self.assertEqual(next(text), f"{i}\trow {i}\n")
        waiting.close()
        resource.prlimit(server.pid, resource.RLIMIT_NOFILE, before)
        with self.connect_again().makefile(encoding="utf-8") as text:
            self.assertEqual(next(text), "i\tname\n")
        self.stop(server)

    def test_clients_that_wait_do_not_keep_a_server_from_ending(self):
        server = self.start(NEVER_A_ROW)
        self.connect()
        reader = self.connect()
        self.stop(server)
        self.assertEqual(reader.recv(1000), b"")

    def terminate(self, server):
        """Returns when the server has begun to end."""
        server.send_signal(signal.SIGTERM)
        self.assertEqual(server.stdout.readline(), "draining\n")

    def test_a_graceful_end_cuts_nothing_short(self):
        wanted = "i\tname\n" + "".join(f"{i}\trow {i}\n"
                                       for i in range(1, MANY + 1))
        server = self.start(f"{ENDLESS} LIMIT {MANY}")
        clients = [self.connect().makefile(encoding="utf-8", newline="\n")
                   for _ in range(2)]
        texts = [next(client) for client in clients]  # far from the end
        self.terminate(server)
        with self.assertRaises(ConnectionRefusedError):
            self.connect()
        for text, client in zip(texts, clients):
            with client:
                self.assertTrue(text + client.read() == wanted)
        self.assertEqual((server.wait(PATIENCE), server.stderr.read()),
                         (0, ""))

    def test_a_graceful_end_without_clients_is_quick(self):
        server = self.start(NEVER_A_ROW)
        self.terminate(server)
        self.assertEqual((server.wait(PATIENCE), server.stderr.read()),
                         (0, ""))

    def test_a_graceful_end_can_be_cut_short(self):
        server = self.start(ENDLESS)
        with self.connect().makefile(encoding="utf-8") as text:
            self.assertEqual(next(text), "i\tname\n")
            self.terminate(server)
            server.send_signal(signal.SIGTERM)  # has no effect
            self.assertEqual(next(text), "1\trow 1\n")
            self.stop(server)
            self.assertIn("\trow ", text.read())

    def test_a_port_that_is_taken_is_told(self):
        self.start(JANUARY)
        _, error = self.query("row_server", JANUARY, str(self.port), code=1)
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
