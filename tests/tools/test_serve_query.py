#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`uvarrow serve` with SQLite: the answer of each path, in which format, the
answer to a query that fails or stands still, and the end of the server.

Environment variables give the paths: UVA_TEST_TOOL the command,
UVA_TEST_DRIVER the driver, UVA_TEST_BUILD a folder for files.
"""
import json
import os
import shutil
import resource
import signal
import socket
import sqlite3
import subprocess
import sys
import time
import unittest
from urllib.parse import quote

import pyarrow
import pyarrow.ipc

sys.dont_write_bytecode = True
from server import (FOREVER, PATIENCE, ROWS, Client, Server,  # noqa: E402
                    database, folder, main)

ARROW = "application/vnd.apache.arrow.stream"
END = b"\xff\xff\xff\xff\0\0\0\0"  # of a stream of Arrow IPC
NEVER = FOREVER.replace("SELECT i,", "SELECT sum(i),")  # has no row
ENDLESS = "/query?format=csv&sql=" + quote(FOREVER)


def query(sql, format="csv", parameters=None):
    path = f"/query?format={format}&sql={quote(sql)}"
    if parameters is not None:
        path += "&parameters=" + quote(json.dumps(parameters))
    return path


def running(stats):
    return stats["queries"]["running"]


def is_quiet(stats):
    """Whether no query runs, and no stream is left of one."""
    return not running(stats) and stats["runtime"]["streams"] == 0


class Paths(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server(name="paths")

    @classmethod
    def tearDownClass(cls):
        assert cls.server.stop() == 0, cls.server.errors

    def fails(self, status, path, **options):
        answer = self.server.ask(path, **options)
        self.assertEqual(answer.status, status, answer.body)
        self.assertEqual(answer.json()["error"]["status"], status)
        return answer

    def test_health(self):
        answer = self.server.ask("/health")
        self.assertEqual(answer.json(), {"status": "ok"})
        self.assertEqual(answer.headers["cache-control"], "no-store")
        self.assertEqual(answer.headers["x-content-type-options"], "nosniff")
        head = self.server.ask("/health", method="HEAD")
        self.assertEqual(head.headers["content-length"], str(len(answer.body)))

    def test_paths_and_methods(self):
        self.fails(404, "/nowhere")
        self.fails(404, "/health/")
        self.assertEqual(self.server.ask("/he%61lth").status, 200)
        self.fails(405, "/health", method="POST", body=b"")
        for method in ("PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"):
            answer = self.fails(405, "/query", method=method)
            self.assertEqual(answer.headers["allow"], "GET, HEAD, POST")
        for path in ("/query?sql=%", "/query?sql=%0", "/query?sql=%zz",
                     "/query?sql=%00", "/query?sql=1&sql=2", "/%00",
                     "/query?" + "&".join(f"a{i}=1" for i in range(17)),
                     "/query?sql=SELECT+%3F&parameter=[1]", "/tables?x=1",
                     "/query?sql=SELECT+1&table=x", "/tables?sql=SELECT+1"):
            self.fails(400, path)

    def test_csv(self):
        answer = self.server.ask(query("SELECT i, text FROM numbers WHERE i < 2"))
        self.assertEqual(answer.headers["content-type"], "text/csv")
        self.assertEqual(answer.body, b"i,text\n0,row 0\n1,row 1\n")
        self.assertGreater(int(answer.headers["x-query-id"]), 0)

    def test_json_lines(self):
        for headers, name in (({}, "&format=json"),
                              ({"Accept": "application/x-ndjson"}, "")):
            answer = self.server.ask(
                "/query?sql=SELECT+i,+text,+NULL+AS+n+FROM+numbers" + name,
                **headers)
            self.assertEqual(answer.headers["content-type"],
                             "application/x-ndjson")
            rows = [json.loads(line) for line in answer.body.splitlines()]
            self.assertEqual(len(rows), ROWS)
            self.assertEqual(rows[7], {"i": 7, "text": "row 7", "n": None})
        empty = self.server.ask(query("SELECT 1 AS a WHERE 0", "json"))
        self.assertEqual((empty.body, empty.is_whole), (b"", True))

    def test_arrow(self):
        for headers in ({}, {"Accept": "*/*"}, {"Accept": ARROW}):
            answer = self.server.ask("/query?sql=SELECT+*+FROM+numbers",
                                     **headers)
            self.assertEqual(answer.headers["content-type"], ARROW)
            self.assertTrue(answer.is_whole)
            self.assertTrue(answer.body.startswith(END[:4]))
            self.assertTrue(answer.body.endswith(END))
            self.assertIn(b"row 999", answer.body)

    def test_pyarrow_reads_it(self):
        python = os.environ.get("UVA_TEST_PYTHON", "")
        if not os.path.exists(python):
            self.skipTest("no pyarrow")
        answer = self.server.ask("/query?sql=SELECT+*+FROM+numbers")
        result = subprocess.run(
            [python, "-c", "import pyarrow, sys\n"
             "table = pyarrow.ipc.open_stream(sys.stdin.buffer).read_all()\n"
             "table.validate(full=True)\n"
             "print(table.num_rows, table['text'][999])"],
            input=answer.body, capture_output=True, timeout=PATIENCE)
        self.assertEqual(result.stdout, b"1000 row 999\n", result.stderr)

    def test_tables(self):
        answer = self.server.ask("/tables?format=csv")
        self.assertEqual(answer.status, 200, answer.body)
        self.assertTrue(answer.body.startswith(b"catalog_name,"))
        self.assertIn(b"numbers", answer.body)
        self.assertNotIn(b"column_name\"\":\"\"i", answer.body)
        self.assertEqual(self.server.ask("/tables").headers["content-type"],
                         ARROW)
        columns = self.server.ask("/tables?format=csv&table=numb%25").body
        self.assertRegex(columns, b'column_name"*: *"*text')
        none = self.server.ask("/tables?format=csv&table=nothing").body
        self.assertNotIn(b"numbers", none)
        self.fails(400, "/tables?format=xml")
        self.fails(406, "/tables", Accept="text/html")
        self.fails(405, "/tables", method="POST", body=b"")

    def test_accept(self):
        for accept, kind in (("text/csv", "text/csv"),
                             ("text/csv;q=0.5, " + ARROW, ARROW),
                             (f"{ARROW};q=0.5,text/csv;q=0.6", "text/csv"),
                             ("text/*", "text/csv"),
                             ("text/html, */*;q=0.1", ARROW),
                             (f"*/*, {ARROW};q=0", "text/csv")):
            answer = self.server.ask("/query?sql=SELECT+1", Accept=accept)
            self.assertEqual(answer.headers["content-type"], kind, accept)
        for accept in ("text/html", "image/*", ARROW + ";q=0", "text/csv;q=0"):
            self.fails(406, "/query?sql=SELECT+1", Accept=accept)
        self.fails(400, "/query?sql=SELECT+1&format=xml")

    def test_head(self):
        with self.server.client() as client:
            answer = client.ask(query("SELECT 7"), method="HEAD")
            self.assertEqual(answer.headers["content-type"], "text/csv")
            self.assertEqual(client.ask(query("SELECT 7")).body, b"7\n7\n")
            answer = client.ask(ENDLESS, method="HEAD")  # needs no rows
            self.assertEqual(answer.status, 200)
            self.assertEqual(client.ask(query("SELECT 7")).body, b"7\n7\n")

    def test_bodies(self):
        def post(body, kind="application/json", path="/query", **headers):
            if not isinstance(body, bytes):
                body = json.dumps(body).encode()
            return self.server.ask(path, method="POST", body=body,
                                   Content_Type=kind, **headers)

        ask = {"sql": "SELECT ? AS a, ? AS b", "parameters": [1, "two"],
               "format": "csv"}
        self.assertEqual(post(ask).body, b"a,b\n1,two\n")
        self.assertEqual(post(ask, Content_Encoding="identity").status, 200)
        self.assertEqual(post(b"SELECT 7", "application/sql; x=y",
                              "/query?format=csv").body, b"7\n7\n")
        for status, body, kind in (
                (400, b"", "application/json"), (400, b"{", "application/json"),
                (400, [], "application/json"), (400, {}, "application/json"),
                (400, {"sql": 1}, "application/json"),
                (400, {"sql": ""}, "application/json"),
                (400, {"sql": "SELECT 1", "format": 1}, "application/json"),
                (400, {"sql": "SELECT 1", "SQL": 1}, "application/json"),
                (400, b'{"sql": "SELECT 1", "sql": "SELECT 2"}',
                 "application/json"),
                (400, b'{"sql": "SELECT\\u0000"}', "application/json"),
                (400, b'{"sql": "\xff"}', "application/json"),
                (400, b"[" * 100000, "application/json"),
                (400, b"SELECT\0 1", "text/plain"), (400, b"", "text/plain"),
                (415, b"sql=SELECT+1", "application/x-www-form-urlencoded"),
                (415, b"SELECT 1", "application/sqlx")):
            answer = post(body, kind)
            self.assertEqual(answer.status, status, (str(body)[:40], answer.body))
        self.assertEqual(post(ask, Content_Encoding="gzip").status, 415)
        self.assertEqual(post(ask, path="/query?sql=SELECT+2").status, 400)
        self.fails(400, "/query?sql=SELECT+1", body=b"x")

    def test_parameters(self):
        values = [1, -2**63, 2**63 - 1, 2.5, "tëxt,\"x\"", None, True, ""]
        marks = ", ".join(f"typeof(?{i})" for i in range(1, len(values) + 1))
        answer = self.server.ask(query("SELECT " + marks, parameters=values))
        self.assertEqual(answer.body.splitlines()[1].decode(),
                         "integer,integer,integer,real,text,null,integer,text")
        answer = self.server.ask(query("SELECT ?1 AS a, ?2 AS b",
                                       parameters=values[3:5]))
        self.assertEqual(answer.body.decode(), 'a,b\n2.5,"tëxt,""x"""\n')
        self.assertEqual(self.server.ask(
            query("SELECT 1 AS a", parameters=[])).body, b"a\n1\n")
        for bad in ({}, "x", 1, [[1]], [{}], [1] * 1001):
            self.fails(400, query("SELECT ?", parameters=bad))
        self.fails(400, "/query?sql=SELECT+1&parameters=[1e999]")
        self.fails(400, "/query?sql=SELECT+1&parameters=[99999999999999999999]")
        self.fails(400, "/query?sql=SELECT+1&parameters=")

    def test_errors(self):
        self.fails(400, query("SELECT abs(-9223372036854775808)"))
        error = self.fails(400, query("SELECT <b>")).json()["error"]
        self.assertIn("SELECT <b>", error["message"])
        self.assertEqual(error["status_name"], "INVALID_ARGUMENT")
        self.assertNotIn(b"<", self.fails(400, query("SELECT <b>")).body)
        self.fails(400, "/query")
        self.fails(400, "/query?sql=")

    def test_the_text_of_an_error_is_whole(self):
        for size in 10, 900, 2000, 5000:
            error = self.fails(400, query(f"SELECT {'x' * size}"))
            self.assertIn(f"no such column: {'x' * size}",
                          error.json()["error"]["message"])

    def test_an_error_after_rows_cuts_the_body(self):
        # 2 batches' worth of rows, then an overflow
        sql = (FOREVER.replace("FROM n)", "FROM n WHERE i < 200000)")
               + " WHERE i < 199999 OR abs(-9223372036854775808 + 0 * i)")
        for format in ("csv", "arrow", "json"):
            answer = self.server.ask(query(sql, format))
            self.assertEqual(answer.status, 200)
            self.assertFalse(answer.is_whole)
            self.assertIn(b"some text", answer.body)
            self.assertFalse(answer.body.endswith(END))

    def test_an_error_after_rows_resets_old_clients(self):
        sql = (FOREVER.replace("FROM n)", "FROM n WHERE i < 200000)")
               + " WHERE i < 199999 OR abs(-9223372036854775808 + 0 * i)")
        with self.server.client() as client:
            client.send(f"GET {query(sql)} HTTP/1.0\r\n\r\n")
            with self.assertRaises(ConnectionResetError):
                while client.socket.recv(1 << 16):
                    pass

    def test_nothing_is_changed(self):
        self.fails(403, query("WITH x AS (SELECT 1) "
                              "INSERT INTO numbers SELECT 1, 'x' FROM x"))
        other = os.path.join(folder(), f"other-{os.getpid()}.db")
        attach = f"ATTACH '{other}' AS other"
        for sql in ("INSERT INTO numbers VALUES (1, 'x')", "DROP TABLE numbers",
                    attach, attach.lower(), f"/* a */ -- b\n\t{attach}",
                    f"; {attach}", f"\ufeff{attach}", f"\ufeff;{attach}", f"/* SELECT */{attach}",
                    f"--\r SELECT\n{attach}", f"/*/ SELECT */ {attach}",
                    f"VACUUM INTO '{other}'", "CREATE TEMP TABLE x (i INT)",
                    "PRAGMA case_sensitive_like = 1",
                    "REPLACE INTO numbers VALUES (1, 'x')"):
            self.fails(403, query(sql))
        for sql in ("SELECTED", "selct 1", "-- only", ";", "\ufeff", " \n"):
            message = self.fails(400, query(sql)).message()
            self.assertNotIn("only read", message)
        self.fails(403, query("PRAGMA case_sensitive_like = ?", parameters=[1]))
        answer = self.fails(400, query(f"SELECT 1 AS a; {attach}"))
        self.assertIn("several statements", answer.message())
        for sql in ("select 1 AS a", ";select 1 AS a", "\ufeffselect 1 AS a",
                    "\ufeff ;; select 1 AS a", "-- x\n/* y */ SELECT 1 AS a",
                    "WITH x AS (SELECT 1 AS a) SELECT a FROM x"):
            self.assertEqual(self.server.ask(query(sql)).body, b"a\n1\n")
        self.assertEqual(self.server.ask(query("VALUES (1)")).status, 200)
        self.assertEqual(self.server.ask(query("EXPLAIN SELECT 1")).status, 200)
        self.assertFalse(os.path.exists(other))
        answer = self.server.ask(query("SELECT count(*) AS n FROM numbers"))
        self.assertEqual(answer.body, f"n\n{ROWS}\n".encode())


class Life(unittest.TestCase):
    def test_a_writable_database_is_changed_by_post_alone(self):
        with Server("--writable", name="writable") as server:
            sql = "INSERT INTO numbers VALUES (?, 'new')"
            with_sql = ("WITH x AS (SELECT 7778) INSERT INTO numbers SELECT *, "
                        "'new' FROM x")
            for text in (sql, with_sql, "DELETE FROM numbers",
                         with_sql.replace("INSERT INTO", "insert/**/into"),
                         with_sql.replace("INSERT", "REPLACE"),
                         "with x as (select 1) update numbers set i = 0",
                         "with x as (select 1) delete from numbers"):
                for method in ("GET", "HEAD"):
                    answer = server.ask(query(text), method=method)
                    self.assertEqual(answer.status, 403, text)
            self.assertIn("needs POST", server.ask(query(sql)).message())
            for text in ("SELECT count(*) AS n FROM numbers",
                         "WITH x AS (SELECT replace('1000', 'a', 'b') AS n) "
                         "SELECT * FROM x"):
                self.assertEqual(server.ask(query(text)).body, b"n\n1000\n")
            answer = server.ask(query(sql, parameters=[7777]), method="POST",
                                body=b"", Content_Type="text/plain")
            self.assertEqual(answer.status, 400)  # there is another text
            for text in (sql.replace("?", "7777"), with_sql):
                answer = server.post(text)
                self.assertEqual(answer.status, 200, answer.body)
            answer = server.ask(query("SELECT i FROM numbers WHERE i > 7000"))
            self.assertEqual(answer.body, b"i\n7777\n7778\n")
            sql = "DELETE FROM numbers; DELETE FROM numbers"
            for sent in (sql, "SELECT 1; " + sql):
                self.assertEqual(server.post(sent).status, 400)
            answer = server.ask(query("SELECT i FROM numbers WHERE i > 7000"))
            self.assertEqual(answer.body, b"i\n7777\n7778\n")

    def test_a_driver_of_another_name_is_asked_who_it_is(self):
        path, base = database("asked"), os.path.join(folder(), "asked-drivers")
        os.makedirs(base, exist_ok=True)
        insert = query("WITH x AS (SELECT 1) "
                       "INSERT INTO numbers SELECT 1, 'x' FROM x")
        library = os.path.join(base, "libmydata.so")
        shutil.copy(os.environ["UVA_TEST_DRIVER"], library)
        with open(os.path.join(base, "mydata.toml"), "w",
                  encoding="ascii") as file:
            file.write('manifest_version = 1\nname = "x"\n[Driver]\n'
                       f'shared = "{library}"\n')
        env = {"ADBC_DRIVER_PATH": base}
        for driver, options, name in (
                (library, (), path), ("mydata", (), path),
                (library, ("--option", f"uri={path}"), None),
                ("", (), "mydata:" + path)):
            with Server(*options, path=name, own=False, env=env, driver=driver,
                        name="asked") as server:
                self.assertEqual(server.ask(insert).status, 403, driver)
                self.assertEqual(server.post("ATTACH 'x' AS y").status, 403)
                answer = server.post("INSERT INTO numbers VALUES (1, 'x')")
                self.assertEqual(answer.status, 403, driver)
                answer = server.ask(query("SELECT count(*) AS n FROM numbers"))
                self.assertEqual(answer.body, f"n\n{ROWS}\n".encode())
        with Server("--writable", path=path, own=False, driver=library,
                    name="asked") as server:
            answer = server.ask(query("SELECT count(*) AS n FROM numbers"))
            self.assertEqual(answer.body, f"n\n{ROWS}\n".encode())
            self.assertEqual(server.ask(insert).status, 403)
        os.remove(path)
        shutil.rmtree(base)

    def test_batches_have_the_size_that_is_asked_for(self):
        rows = "SELECT i FROM numbers LIMIT 1000"
        own = "--statement-option", "adbc.sqlite.query.batch_rows=500"
        for options, batches in ((("--batch-bytes", "25600"), 10), ((), 1),
                                 (("--batch-bytes", "25600", *own), 2)):
            with Server(*options, name="batches") as server:
                body = server.ask(query(rows, "arrow")).body
                with pyarrow.ipc.open_stream(body) as reader:
                    self.assertEqual(len(list(reader)), batches)
        with Server("--statement-option", "odd=1", name="odd") as server:
            self.assertIn("the option odd of the statement", server.ask(
                query(rows)).message())

    def test_a_database_that_is_named_otherwise_is_only_read(self):
        path = database("uri")
        insert = query("WITH x AS (SELECT 1) "
                       "INSERT INTO numbers SELECT 1, 'x' FROM x")
        for options, name in (((), f"file:{path}"),
                              ((), f"file:{path}?mode=rwc"),
                              (("--option", f"uri={path}"), None)):
            with Server(*options, path=name, own=False, name="uri") as server:
                self.assertEqual(server.ask(insert).status, 403, name)
                answer = server.ask(query("SELECT count(*) AS n FROM numbers"))
                self.assertEqual(answer.body, f"n\n{ROWS}\n".encode())
        os.remove(path)

    def test_a_client_that_leaves_cancels_its_query(self):
        with Server(name="leaves") as server:
            for sql in (FOREVER, FOREVER.replace("SELECT i,", "SELECT sum(i),")
                        .replace("'some text to fill the buffers with'", "1")):
                with server.client() as client:
                    client.request(query(sql))
                    server.wait(lambda stats: len(running(stats)) == 1)
                server.wait(is_quiet)
            self.assertEqual(server.stats()["queries"]["cancelled"], 2)
            self.assertEqual(server.ask(query("SELECT 1 AS a")).body, b"a\n1\n")

    def test_endless_queries_of_clients_that_left_end(self):
        with Server("--max-queries", "2", name="abandoned") as server:
            for i in range(1, 7):
                with server.client() as client:
                    client.request(query(NEVER))
                    server.wait(lambda stats:
                                stats["database"]["queries"] == i + 1)
            server.wait(lambda stats: is_quiet(stats) and
                        not stats["database"]["used"] and
                        not stats["database"]["stuck"])
            self.assertEqual(server.ask(query("SELECT 1 AS a")).body, b"a\n1\n")
            self.assertEqual(server.ask("/health").status, 200)

    def late(self, server, path, ms, **options):
        answer = server.ask(path, **options)
        self.assertEqual(answer.status, 504, answer.body)
        self.assertEqual(answer.message(),
                         f"the query took longer than {ms} ms")

    def test_a_query_has_a_limit_of_time(self):
        with Server("--query-ms", "50", name="late") as server:
            self.late(server, query(NEVER), 50)
            self.late(server, query(NEVER) + "&timeout=20", 20)
            self.late(server, "/query", 10, method="POST",
                      body=json.dumps({"sql": NEVER, "timeout": 10}).encode(),
                      Content_Type="application/json")
            late = 3
            while (answer := server.ask(ENDLESS)).status == 504:
                late += 1  # a busy machine gave it no row in time
            self.assertEqual((answer.status, answer.is_whole), (200, False))
            for bad in ("0", "51", "-1", "x", "", "1x", "1.5", "1e1",
                        "99999999999999999999"):
                answer = server.ask(query("SELECT 1") + "&timeout=" + bad)
                self.assertEqual(answer.status, 400, bad)
                self.assertIn("timeout is a number", answer.message())
            for bad in (0, 51, -1, 1.5, "1", None, True, []):
                answer = server.ask(
                    "/query", method="POST", Content_Type="application/json",
                    body=json.dumps({"sql": NEVER, "timeout": bad}).encode())
                self.assertEqual(answer.status, 400, bad)
                self.assertIn("timeout is a number", answer.message())
            stats = server.wait(lambda stats: not stats["database"]["used"])
            self.assertEqual(stats["queries"]["timed_out"], late + 1)
            self.assertEqual(stats["database"]["stuck"], 0)

    def test_connections_that_replace_stuck_ones(self):
        for options, most in (((), 6), (("--stuck", "1"), 4)):
            with Server("--max-queries", "3", *options,
                        name="replaced") as server:
                self.assertEqual(server.stats()["database"]["max"], most)

    def test_a_client_that_is_not_read_from_is_missed(self):
        never = FOREVER.replace("SELECT i,", "SELECT sum(i),")
        with Server(name="missed") as server:
            with server.client() as client:
                client.request(query(never))
                server.wait(lambda stats: len(running(stats)) == 1)
                client.socket.setblocking(False)
                sent = 0
                while sent < 150000:  # more than is kept; it is not answered
                    try:
                        sent += client.socket.send(b"GET /" + b"x" * 4096)
                    except BlockingIOError:
                        break
                server.wait(lambda stats: len(running(stats)) == 1)
            server.wait(is_quiet)
            self.assertEqual(server.stats()["queries"]["cancelled"], 1)

    def test_a_client_that_ended_its_side_before_its_query_is_gone(self):
        with Server(name="before") as server, server.client() as client:
            host = f"Host: 127.0.0.1:{server.port}\r\n\r\n"
            # the pages fill all buffers, so that the query waits for the client
            client.send(f"GET / HTTP/1.1\r\n{host}" * 1000 +
                        f"GET {ENDLESS} HTTP/1.1\r\n{host}")
            client.socket.shutdown(socket.SHUT_WR)
            for _ in range(1000):
                self.assertEqual(client.answer().status, 200)
            self.assertIsNone(client.until(b"\r\n"))  # no answer begins
            server.wait(is_quiet)
            self.assertEqual(server.stats()["queries"]["cancelled"], 1)

    def test_a_client_that_does_not_read_holds_its_query(self):
        with Server(name="holds") as server, server.client() as client:
            client.request(ENDLESS)
            stats = server.wait(
                lambda stats: any(q["paused"] for q in running(stats)))
            rows = running(stats)[0]["rows"]
            self.assertTrue(client.receive())
            self.assertEqual(server.ask("/health").status, 200)
            self.assertEqual(running(server.stats())[0]["id"], 1)
            while len(client.buffer) < 20 << 20:  # it goes on
                self.assertTrue(client.receive())
            self.assertGreater(running(server.stats())[0]["rows"], rows)

    def test_a_client_that_takes_nothing_is_closed(self):
        with Server("--write-ms", "200", name="nothing") as server:
            with server.client() as client:
                client.request(ENDLESS)
                stats = server.wait(lambda s: s["http"]["timed_out"] == 1)
                server.wait(is_quiet)
                self.assertEqual(stats["queries"]["complete"], 0)
                while client.receive():
                    pass
                self.assertNotIn(b"\r\n0\r\n\r\n", client.buffer)

    def test_one_value_does_not_take_any_memory(self):
        with Server(name="large") as server:
            for format in ("csv", "json", "arrow"):
                answer = server.ask(query("SELECT zeroblob(100000000) AS a",
                                          format))
                self.assertEqual(answer.status, 400, format)
                self.assertIn("--max-batch-bytes is 67108864", answer.message())
                server.wait(is_quiet)  # its memory is free
            if not os.environ.get("UVA_TEST_SANITIZE"):
                with open(f"/proc/{server.process.pid}/status",
                          encoding="ascii") as file:
                    most = [line for line in file if "VmHWM" in line][0]
                # the driver's own copies; the text would be 200 MB more
                self.assertLess(int(most.split()[1]), 380000)
        with Server("--max-batch-bytes", "8000", name="batch") as server:
            answer = server.ask(query("SELECT zeroblob(4000) AS a"))
            self.assertEqual(len(answer.body), 8003)
            answer = server.ask(query("SELECT zeroblob(8000) AS a"))
            self.assertEqual(answer.status, 400)
            # behind rows it is cut
            answer = server.ask(query(
                "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM "
                "n WHERE i < 2000) SELECT zeroblob(CASE WHEN i < 2000 THEN 1 "
                "ELSE 9000 END) AS a FROM n"))
            self.assertEqual((answer.status, answer.is_whole), (200, False))

    def test_too_many_queries(self):
        with Server("--max-queries", "2", "--max-waiting", "1",
                    name="waiting") as server:
            clients = [server.client() for _ in range(3)]
            for client in clients:
                client.request(ENDLESS)
            server.wait(lambda stats: len(running(stats)) == 3)
            answer = server.ask(query("SELECT 1"))
            self.assertEqual(answer.status, 503)
            self.assertEqual(answer.headers["retry-after"], "1")
            self.assertEqual(server.stats()["queries"]["refused"], 1)
            for client in clients:
                client.socket.close()
            server.wait(is_quiet)
            self.assertEqual(server.ask(query("SELECT 1")).status, 200)

    def test_a_wait_that_is_too_long(self):
        with Server("--max-queries", "1", "--wait-ms", "100",
                    name="wait") as server, server.client() as client:
            client.request(ENDLESS)
            server.wait(lambda s: running(s) and running(s)[0]["begun"])
            answer = server.ask(query("SELECT 1"))
            self.assertEqual(answer.status, 503, answer.body)
            self.assertEqual(answer.headers["retry-after"], "1")

    def test_a_lock_of_another_program_is_waited_for(self):
        with Server("--lock-ms", str(PATIENCE * 1000), name="lock") as server:
            other = sqlite3.connect(server.path, isolation_level=None)
            self.addCleanup(other.close)
            other.execute("BEGIN EXCLUSIVE")
            with server.client() as client:
                client.request(query("SELECT count(*) AS n FROM numbers"))
                server.wait(lambda s: s["queries"]["failed"] or
                            s["database"]["used"] == 1)
                other.execute("COMMIT")
                answer = client.answer()
            self.assertEqual(answer.status, 200, answer.body)
            self.assertEqual(answer.body, f"n\n{ROWS}\n".encode())

    def test_a_lock_of_another_program_that_stays_is_503(self):
        with Server("--lock-ms", "1", name="locked") as server:
            other = sqlite3.connect(server.path, isolation_level=None)
            self.addCleanup(other.close)
            other.execute("BEGIN EXCLUSIVE")
            answer = server.ask(query("SELECT count(*) AS n FROM numbers"))
            self.assertEqual(answer.status, 503, answer.body)
            self.assertEqual(answer.headers["retry-after"], "1")

    def test_a_file_that_was_replaced_is_opened_anew(self):
        for i, form in enumerate(("{}", "file:{}?cache=private")):
            path, other = database(f"old{i}"), database("new")
            self.addCleanup(os.remove, path)
            change = sqlite3.connect(other)
            change.execute("DELETE FROM numbers WHERE i > 6")
            change.commit()
            change.close()
            count = query("SELECT count(*) AS n FROM numbers")
            with Server(name="replaced", path=form.format(path)) as server:
                self.assertEqual(server.ask(count).body,
                                 f"n\n{ROWS}\n".encode())
                os.replace(other, path)
                end = time.monotonic() + PATIENCE
                while server.ask(count).body != b"n\n7\n":
                    self.assertLess(time.monotonic(), end)
            self.assertEqual([line for line in server.errors
                              if "was replaced" in line],
                             ["uvarrow: the file of the database was replaced, "
                              "and is opened anew"])

    def test_a_log_goes_on_when_there_is_space_again(self):
        most = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
        with Server(name="full", begin=lambda: resource.setrlimit(
                resource.RLIMIT_FSIZE, (200, most))) as server:
            server.wait(lambda _: any("access log:" in line
                                      for line in server.errors))
            resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE,
                             (most, most))
            server.wait(lambda _: server.ask("/kept") and
                        any("/kept" in line for line in server.lines()))
        self.assertEqual(sum("access log:" in line for line in server.errors),
                         1, server.errors)

    def test_queries_behind_each_other_on_one_connection(self):
        with Server(name="behind") as server, server.client() as client:
            for i in range(50):
                client.request(query(f"SELECT {i} AS i"))
            for i in range(50):
                self.assertEqual(client.answer().body, f"i\n{i}\n".encode())

    def test_1000_clients(self):
        with Server("--max-waiting", "1000", name="clients") as server:
            clients = [server.client() for _ in range(1000)]
            for client in clients:
                client.request(query("SELECT * FROM numbers", "arrow"))
            for client in clients:
                answer = client.answer()
                self.assertEqual(answer.status, 200, answer.body)
                self.assertTrue(answer.body.endswith(END))
            self.assertEqual(server.stats()["http"]["connections"], 1001)
            for client in clients:
                client.socket.close()

    def test_200_slow_readers_that_abort(self):
        with Server("--max-waiting", "200", name="abort") as server:
            clients = [server.client() for _ in range(200)]
            for client in clients:
                client.request(ENDLESS)
            server.wait(lambda stats: len(running(stats)) == 200 and
                        sum(q["paused"] for q in running(stats)) == 8)
            for client in clients:  # a reset
                client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER,
                                         b"\1\0\0\0\0\0\0\0")
                client.socket.close()
            stats = server.wait(is_quiet)
            self.assertEqual(stats["queries"]["cancelled"], 200)
            server.wait(lambda stats: stats["runtime"]["streams_held"] == 0)
            self.assertEqual(server.ask(query("SELECT 1")).status, 200)


class End(unittest.TestCase):
    def test_running_answers_are_finished(self):
        sql = FOREVER.replace("FROM n)", "FROM n WHERE i < 500000)")
        server = Server("--drain-ms", "600000", name="drain")
        with server.client() as client, server.client() as idle:
            self.assertEqual(idle.ask("/health").status, 200)
            client.request(query(sql))
            client.request("/health")
            server.wait(lambda stats: any(q["paused"] for q in running(stats)))
            server.terminate()
            self.assertTrue(idle.has_ended())
            with self.assertRaises(ConnectionRefusedError):
                server.client()
            answer = client.answer()
            self.assertTrue(answer.is_whole)
            self.assertEqual(answer.body.count(b"\n"), 500001)
            self.assertTrue(client.has_ended())  # the other one has no answer
        self.assertEqual(server.stop(), 0, server.errors)

    def test_a_client_that_stands_still_does_not_hold_it(self):
        """Neither one that does not read its answer, nor one that does not
        close its side."""
        server = Server("--drain-ms", "86400000", "--write-ms", "86400000",
                        "--linger-ms", "86400000", name="still")
        with server.client() as running_one, server.client() as idle:
            self.assertEqual(idle.ask("/health").status, 200)
            running_one.request(ENDLESS)
            server.wait(lambda stats: any(q["paused"] for q in running(stats)))
            server.terminate()
            self.assertEqual(server.process.wait(PATIENCE), 0)
            self.assertFalse(running_one.answer().is_whole)
        self.assertEqual(server.stop(), 0, server.errors)

    def test_a_log_that_is_read_is_refused(self):
        path = database("log")
        token = os.path.join(folder(), f"token-{os.getpid()}")
        with open(token, "w", encoding="ascii") as file:
            file.write("a-token-of-20-bytes.\n")
        for log, words in ((path, ["file:" + path]),
                           (path, ["--option", "uri=" + path]),
                           (token, ["--token-file", token, path])):
            with open(log, "rb") as file:
                before = file.read()
            done = subprocess.run(
                [os.environ["UVA_TEST_TOOL"], "serve", "--driver",
                 os.environ["UVA_TEST_DRIVER"], "--listen", "127.0.0.1:0",
                 "--log", log, *words], stdin=subprocess.DEVNULL,
                capture_output=True, timeout=PATIENCE)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn(b"which it would destroy", done.stderr)
            with open(log, "rb") as file:
                self.assertEqual(file.read(), before)
        os.remove(token)
        os.remove(path)

    def test_the_access_log(self):
        with Server(name="log") as server:
            server.ask("/health")
            server.ask("/a%0ab\"\\?secret=1")
            server.ask(query("SELECT 1 AS a"))
            with server.client() as client:
                client.ask(query("SELECT 1 AS a"))
                client.request(query(NEVER))
                server.wait(lambda stats: len(running(stats)) == 1)
            server.wait(is_quiet)
        one, two, three = server.lines()[:3]
        left = [line for line in server.lines() if " 499 " in line]
        self.assertEqual(len(left), 1)
        self.assertIn(" GET /query 499 0 ", left[0])
        self.assertRegex(one, r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ 127\.0\.0\.1 "
                              r"GET /health 200 16 \d+\.\d{3} whole -$")
        self.assertIn(' GET /a%0ab\\x22\\x5c 404 ', two)
        self.assertIn(" GET /query 200 4 ", three)
        self.assertRegex(three, " whole [0-9]+$")
        self.assertRegex(left[0], " cut [0-9]+$")

    def test_why_an_answer_was_cut_is_stated(self):
        # 64-bit integers overflow after the first batch
        sql = ("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n "
               "WHERE i < 5000) SELECT abs(CASE WHEN i < 5000 THEN i ELSE "
               "-9223372036854775807 - 1 END) AS a FROM n")
        with Server(name="why") as server:
            answer = server.ask(query(sql))
            self.assertEqual((answer.status, answer.is_whole), (200, False))
            number = int(answer.headers["x-query-id"])
            [cut] = server.stats()["queries"]["cut"]
            self.assertEqual(cut["id"], number)
            self.assertIn("integer overflow", cut["error"])
            for _ in range(20):  # the oldest ones are forgotten
                server.ask(query(sql))
            cuts = [c["id"] for c in server.stats()["queries"]["cut"]]
            self.assertEqual((len(cuts), cuts), (16, sorted(cuts)))
        [line] = [line for line in server.lines()
                  if f" cut {number} " in line]
        self.assertRegex(line, r' cut \d+ "[^"]*integer overflow[^"]*"$')

    def test_the_log_is_appended_to_and_opened_again(self):
        with Server(name="again") as server:
            server.ask("/health")
            moved = server.log + ".1"
            server.wait(lambda _: server.lines())
            os.rename(server.log, moved)
            server.process.send_signal(signal.SIGHUP)
            server.wait(lambda _: os.path.exists(server.log))
            server.ask("/nowhere")
            server.wait(lambda _: any("/nowhere" in line
                                      for line in server.lines()))
            with open(moved, encoding="utf-8") as file:
                self.assertNotIn("/nowhere", file.read())
            os.remove(server.log)
            os.mkdir(server.log)  # which is no log
            server.process.send_signal(signal.SIGHUP)
            server.wait(lambda _: server.stats())
        self.assertIn("cannot reopen", "".join(server.errors))
        os.rmdir(server.log)
        path = database("appended")
        for i in range(2):
            process = subprocess.Popen(
                [os.environ["UVA_TEST_TOOL"], "serve", "--driver",
                 os.environ["UVA_TEST_DRIVER"], "--listen", "127.0.0.1:0",
                 "--log", moved, path], stderr=subprocess.PIPE)
            with process:
                port = int(process.stderr.readline().decode().rsplit(":", 1)[1])
                with Client(port) as client:
                    self.assertEqual(client.ask(f"/{i}").status, 404)
                process.terminate()
        with open(moved, encoding="utf-8") as file:
            text = file.read()
        for mark in (" /health 200", " /0 404", " /1 404"):
            self.assertIn(mark, text)
        os.remove(moved)
        os.remove(path)


class CommandLine(unittest.TestCase):
    def run_with(self, *options):
        return subprocess.run(
            [os.environ["UVA_TEST_TOOL"], "serve", *options],
            capture_output=True, text=True, timeout=PATIENCE, check=False)

    def refused(self, text, *options):
        result = self.run_with(*options)
        self.assertEqual(result.returncode, 2, result.stderr)
        self.assertIn(text, result.stderr)

    def test_help_names_every_limit_with_its_default(self):
        result = self.run_with("--help")
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        for text in ("--max-head 16384", "--max-url 8192", "--max-body 1048576",
                     "--max-connections 1024", "--head-ms 10000",
                     "--idle-ms 130000", "--query-ms 300000", "--stuck 0",
                     "--write-ms 60000"):
            self.assertIn(text, result.stdout)

    def test_wrong_options(self):
        some = ("--driver", "sqlite", "x.db")
        self.refused("no database", "--listen", "127.0.0.1:0")
        self.refused("there is no option '--nothing'", "--nothing", *some)
        self.refused("there is no option '-x'", "-x", *some)
        self.refused("--driver needs a value", "--driver")
        self.refused("--head-ms needs a value", "--head-ms")
        self.refused("more than one database", *some, "y.db")
        for value in ("", "0", "-1", "x", "1x", "99999999999999999999"):
            self.refused("--head-ms takes a number from 1 to",
                         "--head-ms=" + value, *some)
        self.refused("--query-ms takes a number from 1 to", "--query-ms=0",
                     *some)
        self.refused("--stuck takes a number from 0 to", "--stuck=-1", *some)
        for address in ("", "127.0.0.1", "127.0.0.1:", "127.0.0.1:65536",
                        "127.0.0.1:-1", "127.0.0.1:1x", "localhost:1", "[::1]",
                        "[::1:1", "::1:1", ":80", "1" * 100 + ":1"):
            self.refused("not an address and port", "--listen", address, *some)
        for address in ("0.0.0.0:0", "[::]:0", "[::ffff:127.0.0.1]:0"):
            self.refused("needs --token-file", "--listen", address, *some)
        self.refused("go together", "--tls-cert", "x", *some)
        self.refused("is not an option; write it as", "--option", "x", *some)
        self.refused("is not an option; write it as", "--connection-option", "=x",
                     *some)
        self.refused("is not an option; write it as", "--statement-option", "x",
                     *some)
        self.refused("--batch-bytes takes a number from 1 to",
                     "--batch-bytes=0", *some)
        self.refused("is no NAME or NAME:PORT", "--host", "http://x", *some)
        self.refused("is not an origin", "--allow-origin", "*", *some)
        self.refused("is not an origin", "--allow-origin", "http://a/b", *some)
        self.refused("contradict", "--quiet", "--log", "x", *some)

    def test_tokens_that_are_none(self):
        path = os.path.join(folder(), f"bad-token-{os.getpid()}")
        for text in ("", "\n0123456789abcdef", "short", "0123456789 abcdef",
                     "x" * 5000, "0123456789abcdef\0and more",
                     "0123456789abcdef\0\n"):
            with open(path, "w", encoding="ascii") as file:
                file.write(text)
            self.refused("is not a token", "--token-file", path, "--driver",
                         "sqlite", "x.db")
        os.remove(path)
        self.refused("cannot open", "--token-file", path, "--driver", "sqlite",
                     "x.db")

    def test_an_address_that_is_taken(self):
        with Server(name="taken") as server:
            self.refused("cannot listen", "--listen", f"127.0.0.1:{server.port}",
                         "--driver", "sqlite", "x.db")
        self.refused("cannot write to", "--listen", "127.0.0.1:0", "--log",
                     "/nowhere/x", "--driver", "sqlite", "x.db")

    def test_a_driver_or_a_database_that_is_not_there(self):
        base = os.path.join(folder(), f"wrong-{os.getpid()}")
        os.makedirs(base)
        driver, some = os.environ["UVA_TEST_DRIVER"], database("wrong")
        no_database = os.path.join(base, "x.db")
        with open(no_database, "wb") as file:
            file.write(b"no database at all" * 100)
        other = os.path.join(base, "libduckdb.so")  # which is SQLite's
        shutil.copy(driver, other)
        listen = ("--listen", "127.0.0.1:0", "--quiet")
        for writable in ((), ("--writable",)):
            for text, *options in (
                    ("no driver 'nosuch'", "--driver", "nosuch", some),
                    ("nowhere/x.db", "--driver", driver, "/nowhere/x.db"),
                    ("is not a database", "--driver", driver, no_database),
                    ("is no ADBC driver", "--driver", os.environ[
                        "UVA_TEST_LIBRARY"], some)):
                self.refused(text, *listen, *writable, *options)
        self.refused("is not a database of SQLite or DuckDB", *listen, no_database)
        self.refused("there is no file /nowhere/x", *listen, "/nowhere/x")
        self.refused("lock_configuration", *listen, "--driver", other)
        self.refused("none of SQLite, DuckDB and PostgreSQL", *listen,
                     "--driver", os.environ["UVA_TEST_LIBRARY"], some)
        os.remove(some)
        shutil.rmtree(base)


if __name__ == "__main__":
    main()
