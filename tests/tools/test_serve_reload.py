#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`uvarrow serve` at SIGHUP: a new certificate, token and log, files that are
none, signals at the wrong time, and options that have changed. Environment
variables as for test_serve_query.py.
"""
import os
import pty
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from urllib.parse import quote

sys.dont_write_bytecode = True
from server import (Client, FOREVER, PATIENCE, Server, database, folder,  # noqa: E402
                    main)

TOKENS = [str(i) * 32 for i in range(5)]
ROWS = FOREVER.replace("FROM n)", "FROM n WHERE i < 300000)")


def until(condition):
    """Waits for an effect that can only be looked for."""
    end = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > end:
            raise AssertionError("it does not happen")
        time.sleep(0.01)


def put(path, text):
    """Replaces a file at once, as programs that renew certificates do."""
    fresh = path + ".new"
    with open(os.open(fresh, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600), "w",
              encoding="ascii") as file:
        file.write(text)
    os.rename(fresh, path)


def reloads(server):
    return sum("SIGHUP: loaded" in line for line in server.errors)


def reload(server):
    """Sends SIGHUP, and waits for the end of its effect. Returns the lines."""
    before, count = len(server.errors), reloads(server)
    server.process.send_signal(signal.SIGHUP)
    until(lambda: reloads(server) > count)
    return "\n".join(server.errors[before:])


class Files(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(dir=folder())
        self.token = os.path.join(self.folder, "token")
        put(self.token, TOKENS[0])

    def tearDown(self):
        shutil.rmtree(self.folder)

    def ask(self, server, token):
        return server.ask("/stats", Authorization=f"Bearer {token}").status


class Token(Files):
    def test_a_new_token_is_taken(self):
        with Server("--token-file", self.token, name="token") as server:
            with server.client() as client:
                def ask(token, path="/stats"):
                    return client.ask(path, Authorization=f"Bearer {token}")
                self.assertEqual(ask(TOKENS[0]).status, 200)
                client.request("/query?format=csv&sql=" + quote(ROWS),
                               Authorization=f"Bearer {TOKENS[0]}")
                until(lambda: client.receive())
                put(self.token, TOKENS[1])
                lines = reload(server)
                self.assertIn("SIGHUP: loaded the token", lines)
                # the answer under way is whole
                answer = client.answer()
                self.assertEqual((answer.status, answer.is_whole), (200, True))
                self.assertEqual(answer.body.count(b"\n"), 300001)
                self.assertEqual(ask(TOKENS[0]).status, 401)
                self.assertEqual(ask(TOKENS[1]).status, 200)

    def test_a_file_without_a_token_changes_nothing(self):
        with Server("--token-file", self.token, name="bad-token") as server:
            for text in ("", "short", "with blanks in it " * 3, None):
                if text is None:
                    os.remove(self.token)
                else:
                    put(self.token, text)
                lines = reload(server)
                self.assertIn("SIGHUP: the token is as before: ", lines)
                self.assertIn("SIGHUP: loaded no file", lines)
                self.assertEqual(self.ask(server, TOKENS[0]), 200)
            put(self.token, TOKENS[2])
            os.chmod(self.token, 0o644)
            self.assertIn("can read or change", reload(server))
            self.assertEqual(self.ask(server, TOKENS[2]), 200)


class Times(Files):
    """The file of the token is a pipe, so that the test decides when a load
    goes on."""

    def setUp(self):
        super().setUp()
        os.remove(self.token)
        os.mkfifo(self.token, 0o600)

    def give(self, token, begun=lambda: None):
        """Waits until the server reads the file, and gives it the token."""
        with open(self.token, "w", encoding="ascii") as pipe:
            begun()
            pipe.write(token)

    def test_a_signal_before_the_server_is_ready(self):
        ours, theirs = os.pipe()

        def early():
            pid = int(os.read(ours, 20))
            os.kill(pid, signal.SIGHUP)
        first = threading.Thread(target=self.give, args=(TOKENS[0], early))
        first.start()
        with Server("--token-file", self.token, name="early", begin=lambda:
                    os.write(theirs, str(os.getpid()).encode())) as server:
            first.join()
            self.give(TOKENS[1])
            until(lambda: reloads(server) == 1)
            self.assertEqual(self.ask(server, TOKENS[0]), 401)
            self.assertEqual(self.ask(server, TOKENS[1]), 200)
        os.close(ours)
        os.close(theirs)

    def test_signals_during_a_load_are_one_more(self):
        first = threading.Thread(target=self.give, args=(TOKENS[0],))
        first.start()
        with Server("--token-file", self.token, name="again") as server:
            first.join()

            def hang_up():
                """The log is opened again at once, which shows the signal."""
                os.rename(server.log, server.log + ".1")
                server.process.send_signal(signal.SIGHUP)
                until(lambda: os.path.exists(server.log))

            def during():
                # the server answers meanwhile, with the old token
                self.assertEqual(self.ask(server, TOKENS[0]), 200)
                hang_up()
                hang_up()
            hang_up()
            self.give(TOKENS[1], during)
            until(lambda: reloads(server) == 1)
            self.give(TOKENS[2])
            until(lambda: reloads(server) == 2)
            self.assertEqual(self.ask(server, TOKENS[1]), 401)
            self.assertEqual(self.ask(server, TOKENS[2]), 200)
            hang_up()
            self.give(TOKENS[3])  # to the third one: there was no other
            until(lambda: reloads(server) == 3)
            self.assertEqual(self.ask(server, TOKENS[3]), 200)
            os.remove(server.log + ".1")

    def test_the_end_during_a_load(self):
        first = threading.Thread(target=self.give, args=(TOKENS[0],))
        first.start()
        with Server("--token-file", self.token, name="end") as server:
            first.join()
            server.process.send_signal(signal.SIGHUP)
            self.give(TOKENS[1], server.terminate)


class Certificate(Files):
    def setUp(self):
        super().setUp()
        self.pems = [self.make(i) for i in range(2)]
        self.certificate, self.key = (os.path.join(self.folder, name)
                                      for name in ("cert.pem", "key.pem"))
        self.use(0, 0)

    def make(self, number):
        paths = [os.path.join(self.folder, f"{kind}{number}.pem")
                 for kind in ("cert", "key")]
        subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
             "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj",
             "/CN=localhost", "-addext", "subjectAltName=DNS:localhost",
             "-out", paths[0], "-keyout", paths[1]],
            check=True, capture_output=True)
        texts = []
        for path in paths:
            with open(path, encoding="ascii") as file:
                texts.append(file.read())
        return texts

    def use(self, certificate, key):
        put(self.certificate, self.pems[certificate][0])
        put(self.key, self.pems[key][1])

    def client(self, server, number, session=None):
        """A client that trusts one of the certificates alone."""
        context = ssl.create_default_context(cadata=self.pems[number][0])
        if session is None:
            return Client(server.port, context)
        client = Client(server.port)
        client.socket = session.context.wrap_socket(
            client.socket, server_hostname="localhost", session=session.session)
        return client

    def test_a_new_certificate_is_shown_to_new_clients(self):
        with Server("--tls-cert", self.certificate, "--tls-key", self.key,
                    name="reload-tls") as server:
            server.client = lambda: self.client(server, 0)
            with self.client(server, 0) as old:
                self.assertEqual(old.ask("/health").status, 200)
                session = old.socket
                old.request("/query?format=csv&sql=" + quote(ROWS))
                until(lambda: old.receive())
                self.use(1, 1)
                self.assertIn("SIGHUP: loaded the certificate", reload(server))
                with self.client(server, 1) as new:
                    self.assertEqual(new.ask("/health").status, 200)
                    self.assertEqual(
                        ssl.DER_cert_to_PEM_cert(new.socket.getpeercert(True)),
                        self.pems[1][0])
                with self.assertRaises(ssl.SSLCertVerificationError):
                    self.client(server, 0)
                # a session of before the reload is not taken up
                with self.assertRaises(ssl.SSLCertVerificationError):
                    self.client(server, 0, session)
                answer = old.answer()
                self.assertEqual((answer.status, answer.is_whole), (200, True))
                self.assertEqual(answer.body.count(b"\n"), 300001)
                self.assertEqual(old.ask("/health").status, 200)
            server.client = lambda: self.client(server, 1)

    def test_a_bad_certificate_changes_nothing(self):
        with Server("--tls-cert", self.certificate, "--tls-key", self.key,
                    "--token-file", self.token, name="bad-tls") as server:
            server.client = lambda: self.client(server, 0)
            put(self.token, TOKENS[1])
            self.use(1, 0)  # half of a new pair
            lines = reload(server)
            self.assertIn("SIGHUP: the certificate is as before: cannot use",
                          lines)
            self.assertIn("SIGHUP: loaded the token", lines)  # by itself
            self.assertEqual(self.ask(server, TOKENS[1]), 200)
            for text in ("", "no certificate", self.pems[0][1]):
                put(self.certificate, text)
                self.assertIn("the certificate is as before", reload(server))
                self.assertEqual(self.ask(server, TOKENS[1]), 200)
            os.remove(self.key)
            self.assertIn("the certificate is as before", reload(server))
            self.assertEqual(server.ask("/health").status, 200)
            self.use(1, 1)
            self.assertIn("SIGHUP: loaded the token and the certificate",
                          reload(server))
            server.client = lambda: self.client(server, 1)
            self.assertEqual(server.ask("/health").status, 200)


class Log(unittest.TestCase):
    def test_a_rotation_loses_no_line(self):
        with Server(name="rotation") as server, server.client() as client:
            moved = []
            for turn in range(5):
                for i in range(100):
                    client.request(f"/{turn}-{i}")
                moved.append(f"{server.log}.{turn}")
                os.rename(server.log, moved[-1])
                server.process.send_signal(signal.SIGHUP)
                for _ in range(100):
                    self.assertEqual(client.answer().status, 404)
                until(lambda: os.path.exists(server.log))
        lines = []
        for path in [*moved, server.log]:
            with open(path, encoding="utf-8") as file:
                lines += [line.split(" ")[3] for line in file]
            os.remove(path)
        self.assertEqual(lines, [f"/{turn}-{i}" for turn in range(5)
                                 for i in range(100)])


class Options(unittest.TestCase):
    def test_changed_options_are_named(self):
        path = os.path.join(folder(), f"reload-{os.getpid()}.conf")
        some = database("reload")
        text = (f"driver = {os.environ['UVA_TEST_DRIVER']}\n"
                f"database = {some}\nmax-url = 100\n")
        put(path, text)
        with Server("--config", path, name="options", path="",
                    driver="") as server:
            self.assertNotIn("have changed", reload(server))
            put(path, text.replace("= 100", "= 200") + "host = a.example\n")
            self.assertIn("SIGHUP: these options have changed, and need a "
                          "restart: host, max-url", reload(server))
            self.assertEqual(server.ask("/" + "x" * 150).status, 414)
            put(path, text + "nonsense\n")
            self.assertIn(f"SIGHUP: options are as before: {path}:4: no "
                          "setting", reload(server))
            os.remove(path)
            self.assertIn("options are as before: cannot open", reload(server))
            put(path, text)
            self.assertNotIn("options", reload(server))
            self.assertEqual(server.ask("/health").status, 200)
        os.remove(path)
        os.remove(some)


class Hangup(unittest.TestCase):
    """What is no wish to load something."""

    def start(self, path, **options):
        return subprocess.Popen(
            [os.environ["UVA_TEST_TOOL"], "serve", "--driver",
             os.environ["UVA_TEST_DRIVER"], "--listen", "127.0.0.1:0",
             *options.pop("more"), path], stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, **options)

    def test_without_files_it_is_the_end(self):
        path = database("hangup")
        with self.start(path, more=["--quiet"],
                        stderr=subprocess.PIPE) as process:
            self.assertIn(b"listening", process.stderr.readline())
            process.send_signal(signal.SIGHUP)
            self.assertEqual(process.wait(PATIENCE), -signal.SIGHUP)
        os.remove(path)

    def test_a_terminal_that_is_closed_is_the_end(self):
        path, token = database("terminal"), os.path.join(
            folder(), f"terminal-{os.getpid()}")
        put(token, TOKENS[0])
        ours, theirs = pty.openpty()
        with self.start(path, more=["--token-file", token], stderr=theirs,
                        start_new_session=True, preexec_fn=lambda: os.close(
                            os.open(os.ttyname(2), os.O_RDWR))) as process:
            os.close(theirs)
            seen = b""
            while b"listening" not in seen:
                seen += os.read(ours, 1 << 16)
            process.send_signal(signal.SIGHUP)  # it is open: files are loaded
            while b"SIGHUP: loaded the token" not in seen:
                seen += os.read(ours, 1 << 16)
            os.close(ours)
            self.assertEqual(process.wait(PATIENCE), 0)
        os.remove(path)
        os.remove(token)


if __name__ == "__main__":
    main()
