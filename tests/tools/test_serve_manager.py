#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`uvarrow serve` under a service manager, which the test plays: the messages of
sd_notify(3), and the unit of systemd. Environment variables as for
test_serve_query.py.
"""
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest

sys.dont_write_bytecode = True
from server import PATIENCE, Server, folder, main  # noqa: E402

UNIT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..",
                    "tools", "serve", "uvarrow-serve@.service.in")


class Manager:
    """The socket that messages come to."""

    def __init__(self, address):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.settimeout(PATIENCE)
        self.socket.bind(address)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def next(self):
        """The next message, as a dictionary; its lines are in order."""
        text = self.socket.recv(4096).decode()
        return dict(line.split("=", 1) for line in text.splitlines())

    def is_empty(self):
        self.socket.setblocking(False)
        try:
            self.socket.recv(4096)
        except BlockingIOError:
            return True
        return False


class Messages(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp()  # a short path
        self.path = os.path.join(self.folder, "notify")

    def tearDown(self):
        shutil.rmtree(self.folder)

    def test_the_life_of_a_server(self):
        for address, name in ((self.path, self.path),
                              (f"\0uvarrow-{os.getpid()}",
                               f"@uvarrow-{os.getpid()}")):
            with Manager(address) as manager:
                with Server(name="notify",
                            env={"NOTIFY_SOCKET": name}) as server:
                    where = f"listening at http://127.0.0.1:{server.port}"
                    self.assertEqual(manager.next(),
                                     {"READY": "1", "STATUS": where})
                    self.assertEqual(server.ask("/health").status, 200)
                    before = time.monotonic_ns() // 1000
                    server.process.send_signal(signal.SIGHUP)
                    message = manager.next()
                    self.assertEqual(message["RELOADING"], "1")
                    self.assertLessEqual(before, int(message["MONOTONIC_USEC"]))
                    self.assertLessEqual(int(message["MONOTONIC_USEC"]),
                                         time.monotonic_ns() // 1000)
                    self.assertEqual(manager.next(),
                                     {"READY": "1", "STATUS": where})
                    server.terminate()
                    message = manager.next()
                    self.assertEqual(message["STOPPING"], "1")
                    self.assertEqual(message["STATUS"],
                                     "ends after the running answers")
                    server.process.wait(PATIENCE)
                self.assertTrue(manager.is_empty())

    def test_a_server_that_cannot_start_is_never_ready(self):
        path = os.path.join(self.folder, "x.db")
        with open(path, "wb") as file:
            file.write(b"no database at all" * 100)
        with Manager(self.path) as manager:
            with self.assertRaisesRegex(RuntimeError, "is not a database"):
                Server(name="unready", path=path,
                       env={"NOTIFY_SOCKET": self.path})
            message = manager.next()
            self.assertEqual(message["STOPPING"], "1")
            self.assertIn("is not a database", message["STATUS"])
            self.assertTrue(manager.is_empty())

    def test_a_manager_that_is_not_there(self):
        for name, reason in ((self.path, "No such file"),
                             ("relative", "Invalid argument"),
                             ("/" + "x" * 200, "Invalid argument"),
                             ("@nobody", "Connection refused")):
            with Server(name="nobody", env={"NOTIFY_SOCKET": name}) as server:
                self.assertEqual(server.ask("/health").status, 200)
            errors = "\n".join(server.errors)
            self.assertIn(f"cannot notify {name}: {reason}", errors)

    def test_without_a_manager_no_message_is_tried(self):
        for env in ({}, {"NOTIFY_SOCKET": ""}):
            with Server(name="alone", env=env) as server:
                self.assertEqual(server.ask("/health").status, 200)
            self.assertNotIn("notify", "\n".join(server.errors))


class Unit(unittest.TestCase):
    def setUp(self):
        with open(UNIT, encoding="utf-8") as file:
            self.text = file.read()
        self.folder = tempfile.mkdtemp(dir=folder())
        self.path = os.path.join(self.folder, "uvarrow-serve@.service")
        with open(self.path, "w", encoding="utf-8") as file:
            file.write(self.text.replace("@UVA_UVARROW@",
                                         os.environ["UVA_TEST_TOOL"]))

    def tearDown(self):
        shutil.rmtree(self.folder)

    def analyze(self, *arguments):
        if shutil.which("systemd-analyze") is None:
            self.skipTest("no systemd-analyze")
        return subprocess.run(["systemd-analyze", *arguments], text=True,
                              capture_output=True, timeout=PATIENCE,
                              check=False)

    def test_systemd_knows_each_line(self):
        done = self.analyze("verify", "--man=no",
                            self.path.replace("@", "@flights"))
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_the_sandbox_is_tight(self):
        done = self.analyze("security", "--offline=yes", "--threshold=13",
                            self.path)
        self.assertEqual(done.returncode, 0, done.stdout[-2000:])

    def test_it_fits_the_options(self):
        command = re.search(r"^ExecStart=(.*)", self.text, re.M)[1]
        self.assertEqual(command, "@UVA_UVARROW@ serve --config "
                         "/etc/uvarrow/%i.conf")
        stop_s = int(re.search(r"^TimeoutStopSec=(\d+)", self.text, re.M)[1])
        text = subprocess.run([os.environ["UVA_TEST_TOOL"], "serve", "--help"],
                              capture_output=True, text=True, check=True).stdout
        drain_ms = int(re.search(r"--drain-ms (\d+)", text)[1])
        self.assertGreater(stop_s, drain_ms / 1000 + 5)


if __name__ == "__main__":
    main()
