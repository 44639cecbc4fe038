#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`uvarrow query --from URL`: against `uvarrow serve`, by HTTP and HTTPS, and
against servers with wrong answers. Environment variables as for
test_serve_query.py.
"""
import json
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import unittest
from urllib.parse import quote

sys.dont_write_bytecode = True
from server import FOREVER, PATIENCE, ROWS, Server, folder, main  # noqa: E402

TOKEN = "a token of more than sixteen letters"[:34].replace(" ", "-")
CUT = b"the answer was cut, and rows are missing"
TYPE = b"Content-Type: application/vnd.apache.arrow.stream\r\n"
HEAD = b"HTTP/1.1 200 OK\r\n" + TYPE


def start(*arguments, **pipes):
    return subprocess.Popen([os.environ["UVA_TEST_TOOL"], "query", *arguments],
                            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, **pipes)


def query(*arguments, env=None):
    return subprocess.run([os.environ["UVA_TEST_TOOL"], "query", *arguments],
                          stdin=subprocess.DEVNULL, capture_output=True,
                          timeout=PATIENCE, check=False,
                          env={**os.environ, **(env or {})})


def encoded(rows, form="arrow"):
    """The command's output for a query with `rows` rows."""
    done = query("--driver", os.environ["UVA_TEST_DRIVER"], "--uri", ":memory:",
                 "--quiet", "--format", form, f"{FOREVER} LIMIT {rows}")
    assert done.returncode == 0, done.stderr
    return done.stdout


def chunks(body, size=1000):
    """The body in chunks, without the last one."""
    parts = [body[at:at + size] for at in range(0, len(body), size)]
    return b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in parts)


class Fake:
    """A server that gives one answer to each connection, and closes it."""

    def __init__(self, *pieces, waits=True):
        self.pieces, self.requests, self.waits = pieces, [], waits
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.socket.getsockname()[1]}"
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.shutdown(socket.SHUT_RDWR)
        self.thread.join()
        self.socket.close()

    def run(self):
        while True:
            try:
                connection, _ = self.socket.accept()
            except OSError:
                return
            with connection:
                connection.settimeout(PATIENCE)
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                try:
                    self.answer(connection)
                except OSError:
                    pass  # the client has left

    def answer(self, connection):
        request = b""
        while self.waits and b"\r\n\r\n" not in request:
            part = connection.recv(1 << 16)
            if part == b"":
                return
            request += part
        self.requests.append(request)
        for piece in self.pieces:
            connection.sendall(piece)
        connection.shutdown(socket.SHUT_WR)
        while connection.recv(1 << 16):  # so that the connection is not reset
            pass


class Client(unittest.TestCase):
    def assert_fails(self, done, code, *parts):
        text = done.stderr.decode("utf-8", "replace")
        self.assertEqual(done.returncode, code, text)
        for part in parts:
            self.assertIn(part if isinstance(part, str) else part.decode(), text)
        self.assertTrue(text.startswith("uvarrow: "), text)


class OfServe(Client):
    def test_rows_are_those_of_the_database(self):
        with Server(name="from") as server:
            url = f"http://127.0.0.1:{server.port}"
            wanted = "i,text\n" + "".join(f"{i},row {i}\n" for i in range(ROWS))
            for arguments in (
                    (url, "SELECT * FROM numbers"),
                    (url + "/", "SELECT * FROM numbers"),
                    (url + "/query", "SELECT * FROM numbers"),
                    (f"http://localhost:{server.port}", "SELECT * FROM numbers"),
                    (url + "/query?sql=SELECT+*+FROM+numbers",),
                    (url.replace("http", "HTTP") + "/query?sql="
                     + quote("SELECT * FROM numbers"),)):
                with self.subTest(arguments=arguments):
                    done = query("--from", *arguments)
                    self.assertEqual(done.returncode, 0, done.stderr)
                    self.assertEqual(done.stdout.decode(), wanted)
                    self.assertIn(b"complete: 1,000 rows in", done.stderr)
            done = query("--from", url, "--format", "json",
                         "SELECT * FROM numbers WHERE i < 0")
            self.assertEqual((done.returncode, done.stdout), (0, b""))

    def test_large_answers_are_whole(self):
        with Server(name="from-large") as server:
            done = query("--from", f"http://127.0.0.1:{server.port}", "--quiet",
                         f"{FOREVER} LIMIT 200000")
            self.assertEqual((done.returncode, done.stderr), (0, b""))
            self.assertEqual(done.stdout, encoded(200000, "csv"))

    def test_the_query_comes_from_a_file_and_has_parameters(self):
        sql = "SELECT i, ? AS a, ? AS b, ? AS c, ? AS d FROM numbers WHERE i < ?"
        with Server(name="from-file") as server, \
                tempfile.NamedTemporaryFile("w", suffix=".sql") as file:
            file.write(sql)
            file.flush()
            done = query("--from", f"http://127.0.0.1:{server.port}", "--file",
                         file.name, "--format", "json", "--param", "1.5",
                         "--param", "null", "--param", "\u2603\"", "--param",
                         '"7"', "--param", "2")
            self.assertEqual(done.returncode, 0, done.stderr)
            rows = [json.loads(line) for line in done.stdout.splitlines()]
            self.assertEqual(rows, [{"i": i, "a": 1.5, "b": None, "c": "\u2603\"",
                                     "d": "7"} for i in range(2)])

    def test_errors_are_those_of_the_server(self):
        with Server("--max-body", "2000", name="from-errors") as server:
            url = f"http://127.0.0.1:{server.port}"
            for arguments, parts in (
                    ((url, "SELECT nothing FROM numbers"),
                     ("the server answers 400: ", "near \"nothing\"")),
                    ((url + "/nowhere",), ("the server answers 404: ",)),
                    ((url + "/query",), ("the server answers 400: ",)),
                    ((url, "DELETE FROM numbers"),
                     ("the server answers 403: ",)),
                    ((url, "SELECT 1 -- " + "x" * 4000),
                     ("the server answers 413: the body is too long",)),
                    ((url + "/query?format=csv", "SELECT 1"),
                     ("the answer is text/csv", "not a stream of Arrow IPC")),
                    ((url + "/health",), ("the answer is application/json",))):
                with self.subTest(arguments=arguments):
                    done = query("--from", *arguments)
                    self.assert_fails(done, 2, *parts)
                    self.assertEqual(done.stdout, b"")

    def test_a_query_that_fails_half_way_fails_here(self):
        sql = (FOREVER.replace("FROM n)", "FROM n WHERE i < 200000)")
               + " WHERE i < 199999 OR abs(-9223372036854775808 + 0 * i)")
        with Server(name="from-fails") as server:
            done = query("--from", f"http://127.0.0.1:{server.port}", sql)
            self.assert_fails(done, 1, CUT)
            self.assertTrue(encoded(200000, "csv").startswith(done.stdout))
            self.assertTrue(done.stdout.endswith(b"\n"))

    def test_a_server_that_dies_is_noticed(self):
        server = Server(name="from-dies")
        process = start("--from", f"http://127.0.0.1:{server.port}", FOREVER)
        with process:
            self.assertEqual(process.stdout.readline(), b"i,text\n")
            server.process.kill()
            rest = process.stdout.read()
            text = process.stderr.read()
        server.stop()
        self.assertEqual(process.returncode, 1, text)
        self.assertIn(CUT, text)
        self.assertIn(rest[-1:], (b"", b"\n"))

    def test_a_reader_that_waits_holds_the_server(self):
        with Server(name="from-waits") as server:
            with start("--from", f"http://127.0.0.1:{server.port}",
                       FOREVER) as process:
                before, now = None, 0
                while now == 0 or now != before:
                    stats = server.wait(lambda s: any(
                        q["paused"] for q in s["queries"]["running"]))
                    before, now = now, stats["queries"]["running"][0]["rows"]
                self.assertLess(now, 5000000)  # the query has no end
                for _ in range(1000):
                    process.stdout.readline()
                process.stdout.close()
                text = process.stderr.read()
            self.assertEqual(process.returncode, 0, text)
            self.assertIn(b"the reader stopped", text)
            server.wait(lambda s: not s["queries"]["running"])
            self.assertEqual(server.stats()["queries"]["cancelled"], 1)

    def test_an_interrupt_leaves_the_server(self):
        with Server(name="from-leaves") as server:
            with start("--from", f"http://127.0.0.1:{server.port}",
                       FOREVER) as process:
                process.stdout.readline()
                process.send_signal(signal.SIGINT)
                process.stdout.read()
                text = process.stderr.read()
            self.assertEqual(process.returncode, 130, text)
            server.wait(lambda s: not s["queries"]["running"]
                        and s["runtime"]["streams"] == 0)

    def test_a_token_is_sent(self):
        with tempfile.TemporaryDirectory() as place:
            path, other = (os.path.join(place, name) for name in "ab")
            for name, text in (path, TOKEN), (other, TOKEN[::-1]):
                with open(name, "w", encoding="ascii") as file:
                    file.write(text + "\nand more\n")
            with Server("--token-file", path, name="from-token") as server:
                url = f"http://127.0.0.1:{server.port}"
                for options, code, part in (
                        (["--token-file", path], 0, "1 row in"),
                        ([], 2, "the server answers 401: "),
                        (["--token-file", other], 2, "answers 401: "),
                        (["--token-file", place], 2, "is not a token"),
                        (["--token-file", "/nowhere"], 2, "/nowhere")):
                    with self.subTest(options=options):
                        done = query("--from", url, *options, "SELECT 1")
                        self.assert_fails(done, code, part)


class Tls(Client):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(dir=folder())
        for name in "server", "other":
            subprocess.run(
                ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
                 "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj",
                 "/CN=localhost", "-addext",
                 "subjectAltName=DNS:localhost,IP:127.0.0.1", "-out",
                 f"{cls.folder}/{name}.pem", "-keyout", f"{cls.folder}/{name}.key"],
                check=True, capture_output=True)

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.folder)

    def test_answers(self):
        own = f"{self.folder}/server.pem"
        with Server("--tls-cert", own, "--tls-key", f"{self.folder}/server.key",
                    name="from-tls") as server:
            urls = [f"https://{host}:{server.port}"
                    for host in ("localhost", "127.0.0.1")]
            for url in urls:
                done = query("--from", url, "--tls-ca", own, "--quiet",
                             f"{FOREVER} LIMIT 100000")
                self.assertEqual((done.returncode, done.stderr), (0, b""))
                self.assertEqual(done.stdout, encoded(100000, "csv"))
            done = query("--from", urls[0], "SELECT 1 AS one",
                         env={"SSL_CERT_FILE": own})
            self.assertEqual((done.returncode, done.stdout), (0, b"one\n1\n"),
                             done.stderr)
            for arguments, part in (
                    ((urls[0],), "self-signed certificate"),
                    ((urls[0], "--tls-ca", f"{self.folder}/other.pem"),
                     "certificate"),
                    ((urls[0], "--tls-ca", "/nowhere"), "/nowhere"),
                    ((f"https://ip6-localhost:{server.port}", "--tls-ca", own),
                     "cannot"),
                    ((f"https://127.0.0.2:{server.port}", "--tls-ca", own),
                     "cannot connect to 127.0.0.2"),
                    ((urls[0].replace("https", "http"),), "uvarrow: ")):
                with self.subTest(arguments=arguments):
                    done = query("--from", *arguments, "SELECT 1")
                    self.assert_fails(done, 2, part)

    def test_certificates_of_other_hosts_are_refused(self):
        path = f"{self.folder}/name"
        subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
             "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj",
             "/CN=localhost", "-addext", "subjectAltName=DNS:elsewhere",
             "-out", path + ".pem", "-keyout", path + ".key"],
            check=True, capture_output=True)
        with Server("--tls-cert", path + ".pem", "--tls-key", path + ".key",
                    name="from-tls-name") as server:
            for host, part in (("localhost", "hostname mismatch"),
                               ("127.0.0.1", "IP address mismatch")):
                done = query("--from", f"https://{host}:{server.port}",
                             "--tls-ca", path + ".pem", "SELECT 1")
                self.assert_fails(done, 2, part)

    def test_what_is_no_tls(self):
        with Fake(b"HTTP/1.1 400 No\r\n\r\n", waits=False) as fake:
            done = query("--from", fake.url.replace("http", "https"), "SELECT 1")
            self.assert_fails(done, 2, "by TLS: ")


class OfOthers(Client):
    @classmethod
    def setUpClass(cls):
        cls.rows = 3000
        cls.body = encoded(cls.rows)
        cls.csv = encoded(cls.rows, "csv")

    def ask(self, *pieces):
        with Fake(*pieces) as fake:
            return query("--from", fake.url + "/rows")

    def test_bodies_of_every_kind(self):
        body = self.body
        chunked = (HEAD + b"Transfer-Encoding: chunked\r\n\r\n" + chunks(body)
                   + b"0\r\n\r\n")
        for name, pieces in (
                ("chunks", [chunked]),
                ("chunks of one byte", [HEAD, b"Transfer-Encoding: chunked\r\n"
                                        b"\r\n", chunks(body, 1), b"0\r\n\r\n"]),
                ("extensions, and trailers", [
                    chunked.replace(b"3e8\r\n", b"3e8;a=\"b\"\r\n")[:-2]
                    + b"Content-Type: text/html\r\nX: y\r\n\r\n"]),
                ("a length", [HEAD + b"Content-Length: %d\r\n\r\n" % len(body),
                              body]),
                ("until the connection ends", [HEAD + b"\r\n" + body]),
                ("HTTP/1.0", [HEAD.replace(b"1.1", b"1.0") + b"\r\n" + body]),
                ("in single bytes", [chunked[i:i + 1] for i in range(4000)]
                 + [chunked[4000:]]),
                ("behind others", [b"HTTP/1.1 100 Continue\r\n\r\n"
                                   b"HTTP/1.1 103 Early Hints\r\nContent-Type: "
                                   b"text/html\r\n\r\n" + chunked]),
                ("with more behind it", [chunked + b"HTTP/1.1 400 No\r\n\r\n"]),
                ("behind an empty header", [
                    chunked.replace(b"Content-T", b"X-Empty:\r\nContent-T")]),
                ("with blanks", [chunked.replace(b"stream\r\n",
                                                 b"stream ;a=b \t\r\n")]),
                ("another type", [chunked.replace(
                    TYPE, b"content-type: APPLICATION/octet-stream\r\n"
                          b"Content-Encoding: identity \r\n")]),
                ("no type", [chunked.replace(TYPE, b"")])):
            with self.subTest(name=name):
                done = self.ask(*pieces)
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertEqual(done.stdout, self.csv)

    def test_answers_that_are_cut(self):
        body, length = self.body, len(self.body)
        chunked = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"
        sized = HEAD + b"Content-Length: %d\r\n\r\n" % length
        for name, pieces, code, part in (
                ("the last chunk", [chunked + chunks(body)], 1, CUT),
                ("half of the last chunk", [chunked + chunks(body) + b"0\r\n"], 1,
                 CUT),
                ("a chunk", [chunked + chunks(body)[:-700]], 1, CUT),
                ("the last byte", [sized, body[:-1]], 1, CUT),
                ("half", [sized, body[:length // 2]], 1, CUT),
                ("of an unknown length", [HEAD + b"\r\n" + body[:-1]], 1,
                 "the input ends at byte"),
                ("the mark of Arrow", [chunked + chunks(body[:-8]) +
                                       b"0\r\n\r\n"], 1, "the input ends"),
                ("all", [chunked], 2, CUT),
                ("half of a head", [HEAD], 2, "ended before an answer"),
                ("the whole answer", [], 2, "ended before an answer"),
                ("behind 100", [b"HTTP/1.1 100 Continue\r\n\r\n"], 2,
                 "ended before an answer")):
            with self.subTest(name=name):
                done = self.ask(*pieces)
                self.assert_fails(done, code, part)
                self.assertTrue(self.csv.startswith(done.stdout))

    def test_rows_are_not_the_end_of_an_answer(self):
        """The rows come, with their end mark, before the connection is cut."""
        with socket.create_server(("127.0.0.1", 0)) as listener, \
                start("--from", f"http://127.0.0.1:{listener.getsockname()[1]}"
                      ) as process:
            connection, _ = listener.accept()
            with connection:
                connection.settimeout(PATIENCE)
                connection.recv(1 << 16)
                connection.sendall(HEAD + b"Transfer-Encoding: chunked\r\n\r\n"
                                   + chunks(self.body))
                got = process.stdout.read(len(self.csv))
                self.assertEqual(got, self.csv)
            self.assertEqual(process.stdout.read(), b"")
            self.assertIn(CUT, process.stderr.read())
            self.assertEqual(process.wait(PATIENCE), 1)

    def test_answers_that_are_malformed(self):
        chunked = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"
        both = (HEAD + b"Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n")
        for name, pieces, part in (
                ("SSH", [b"SSH-2.0-OpenSSH_9.2\r\n" * 10], "malformed"),
                ("nothing known", [b"\0" * 1000], "malformed"),
                ("HTTP/2", [HEAD.replace(b"1.1", b"2.0") + b"\r\n"],
                 "does not speak HTTP/1"),
                ("a length and chunks", [both + chunks(self.body)], "malformed"),
                ("two lengths", [HEAD + b"Content-Length: 1\r\nContent-Length: 2"
                                 b"\r\n\r\n"], "malformed"),
                ("a length that is none", [HEAD + b"Content-Length: -1\r\n\r\n"],
                 "malformed"),
                ("a chunk of no size", [chunked + b"x\r\n"], "malformed"),
                ("a huge chunk", [chunked + b"fffffffffffffffff\r\n"],
                 "malformed"),
                ("a bare line feed", [HEAD.replace(b"\r\n", b"\n") + b"\n"],
                 "malformed"),
                ("two types", [HEAD + TYPE + b"\r\n"],
                 "the answer has content-type twice"),
                ("codings", [HEAD + b"Transfer-Encoding: gzip, chunked\r\n\r\n"],
                 "transfer coding gzip, chunked"),
                ("gzip", [HEAD + b"Content-Encoding: gzip\r\n\r\n"],
                 "encoded: gzip"),
                ("HTML", [HEAD.replace(b"application/vnd.apache.arrow.stream",
                                       b"text/html; charset=utf-8") + b"\r\n"],
                 "the answer is text/html"),
                ("a long head", [HEAD + b"X: " + b"y" * 70000 + b"\r\n\r\n"],
                 "the head of the answer is too long"),
                ("a head without an end", [HEAD, b"X: y\r\n" * 40000],
                 "the head of the answer is too long"),
                ("heads without an end", [HEAD.replace(b"200", b"103") + b"\r\n"
                                          ] * 2000,
                 "the head of the answer is too long"),
                ("trailers without an end", [chunked + b"0\r\n",
                                             b"X: y\r\n" * 40000],
                 "the head of the answer is too long"),
                ("another protocol", [b"HTTP/1.1 101 Switching\r\nUpgrade: h2c"
                                      b"\r\nConnection: upgrade\r\n\r\n"],
                 "the server answers 101: Switching"),
                ("no Arrow", [HEAD + b"\r\nid,name\r\n1,one\r\n"],
                 "it begins with 69 64 2c 6e"),
                ("nothing", [HEAD + b"Content-Length: 0\r\n\r\n"],
                 "the input ends")):
            with self.subTest(name=name):
                done = self.ask(*pieces)
                self.assert_fails(done, 2, part)
                self.assertEqual(done.stdout, b"")

    def test_a_reason_is_shown(self):
        error = json.dumps({"error": {"message": "no \u2603\x1b[31m"}}).encode()
        length = b"Content-Length: %d\r\n\r\n"
        for name, pieces, text in (
                ("JSON", [b"HTTP/1.1 500 Internal\r\n", length % len(error),
                          error], b"500: no \xe2\x98\x83 [31m"),
                ("JSON until the end", [b"HTTP/1.1 500 Internal\r\n\r\n", error],
                 b"500: no \xe2\x98\x83 [31m"),
                ("JSON that is cut", [b"HTTP/1.1 500 Internal\r\n",
                                      length % (len(error) + 1), error[:-1]],
                 b"500: Internal"),
                ("other JSON", [b"HTTP/1.1 404 Not Found\r\n", length % 2, b"[]"],
                 b"404: Not Found"),
                ("HTML", [b"HTTP/1.1 502 Bad Gateway\r\n\r\n",
                          b"<html>" * 100000], b"502: Bad Gateway"),
                ("nothing", [b"HTTP/1.1 204 \r\n\r\n"], b"204"),
                ("another place", [b"HTTP/1.1 302 Found\r\nLocation: /\r\n",
                                   length % 0], b"302: Found")):
            with self.subTest(name=name):
                done = self.ask(*pieces)
                self.assert_fails(done, 2)
                self.assertEqual(done.stderr,
                                 b"uvarrow: the server answers " + text + b"\n")

    def test_what_is_asked(self):
        with Fake(b"HTTP/1.1 500 No\r\n\r\n") as fake:
            host = fake.url.removeprefix("http://")
            query("--from", fake.url + "?a=%20b")
            query("--from", fake.url, 'SELECT "a"', "--param", "1")
            query("--from", fake.url + "/rows?x", "S")
        first, second, third = (request.decode() for request in fake.requests)
        self.assertTrue(first.startswith(
            f"GET /?a=%20b HTTP/1.1\r\nHost: {host}\r\n"), first)
        self.assertIn("\r\nAccept: application/vnd.apache.arrow.stream\r\n", first)
        self.assertNotIn("Content-", first)
        self.assertTrue(second.startswith("POST /query HTTP/1.1\r\n"), second)
        head, body = second.split("\r\n\r\n")
        self.assertEqual(json.loads(body), {"sql": 'SELECT "a"',
                                            "parameters": [1]})
        self.assertIn(f"\r\nContent-Length: {len(body)}", head)
        self.assertTrue(third.startswith("POST /rows?x HTTP/1.1\r\n"), third)

    def test_urls_that_are_none(self):
        for url, part in (
                ("http://", "there is no host"),
                ("http://:80/", "there is no host"),
                ("http://a:b@c/", "use --token-file"),
                ("http://a:/", "the port is not a number"),
                ("http://a:x/", "the port is not a number"),
                ("http://a:0/", "from 1 to 65535"),
                ("http://a:65536/", "from 1 to 65535"),
                ("http://a:123456/", "the port is not a number"),
                ("http://a/b c", "written as %XX"),
                ("http://a/\u00e4", "written as %XX"),
                ("http://a/\r\nX: y", "written as %XX"),
                ("http://a/#b", "no fragment"),
                ("http://[::1", "in brackets"),
                ("http://[x]/", "in brackets"),
                ("http://[::1]x/", "the host is malformed"),
                ("http://a*b/", "the name of the host is malformed")):
            with self.subTest(url=url):
                self.assert_fails(query("--from", url), 2, part)

    def test_mistakes(self):
        url = "http://127.0.0.1:1"
        for arguments, part in (
                (("--from", url, "--driver", "d", "S"), "no driver"),
                (("--from", url, "d", "S"), "no driver and no database"),
                (("--from", url, "--option", "a=b", "S"), "no driver"),
                (("--from", url, "--param", "1"), "--param is for a query"),
                (("--from", "x", "--token-file", "y"),
                 "--token-file is for --from with a URL"),
                (("--driver", "x", "--tls-ca", "y", "S"),
                 "--tls-ca is for --from with a URL"),
                (("--from", url, "--tls-ca", "y", "S"), "--tls-ca is for https"),
                (("--from", url, b"SELECT '\xff'"), "the query is not UTF-8"),
                (("--from", url, "S", "--param", b"\xff"),
                 "parameter 1 is not UTF-8"),
                (("--from", url, "S"),
                 "cannot connect to 127.0.0.1, port 1: connection refused"),
                (("--from", "http://[::1]:1", "S"), "cannot connect to ::1"),
                (("--from", "http://nowhere.invalid", "S"),
                 "cannot find the host nowhere.invalid")):
            with self.subTest(arguments=arguments):
                self.assert_fails(query(*arguments), 2, part)

    def test_random_answers(self):
        source = random.Random(20130101)
        whole = (HEAD + b"Transfer-Encoding: chunked\r\n\r\n"
                 + chunks(self.body, 20000) + b"0\r\n\r\n")
        for number in range(100):
            answer = bytearray(whole)
            for _ in range(source.randrange(1, 5)):
                at = source.randrange(source.choice((300, len(answer))))
                what = source.randrange(4)
                if what == 0:
                    answer[at] = source.randrange(256)
                elif what == 1:
                    del answer[at:at + source.randrange(1, 50)]
                elif what == 2:
                    answer[at:at] = answer[at:at + source.randrange(1, 50)]
                else:
                    del answer[at:]
                    break
            with self.subTest(number=number):
                done = self.ask(bytes(answer))
                self.assertIn(done.returncode, (0, 1, 2), done.stderr)
                if done.returncode != 0:
                    self.assert_fails(done, done.returncode)


if __name__ == "__main__":
    main()
