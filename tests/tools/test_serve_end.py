#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The end of `uvarrow serve` in good order, whatever stands still. Environment
variables as for test_serve_query.py.
"""
import os
import signal
import subprocess
import sys
import unittest

sys.dont_write_bytecode = True
from server import PATIENCE, Client, Server, database, main  # noqa: E402
from test_serve_query import ENDLESS, running  # noqa: E402


class End(unittest.TestCase):
    def ends(self, scenario, *words):
        """A scenario gives the exit code of a server, which is 0. It is run
        again if the server was ended by its guard, 0.8 s after it was to end at
        once: a busy machine may hold it up for so long."""
        for _ in range(50):
            code = scenario(*words)
            if code not in (128 + signal.SIGTERM, 128 + signal.SIGINT):
                break
        self.assertEqual(code, 0, words)

    def cut_by_deadline(self):
        server = Server("--drain-ms", "100", name="deadline")
        with server.client() as client:
            client.request(ENDLESS)
            server.wait(lambda stats: any(q["paused"] for q in running(stats)))
            server.terminate()
            code = server.process.wait(PATIENCE)
            if code == 0:
                self.assertFalse(client.answer().is_whole)
        server.stop()
        return code

    def test_a_deadline_ends_it(self):
        self.ends(self.cut_by_deadline)

    def log_unread(self, path, signals):
        process = subprocess.Popen(
            [os.environ["UVA_TEST_TOOL"], "serve", "--driver",
             os.environ["UVA_TEST_DRIVER"], "--listen", "127.0.0.1:0",
             "--drain-ms", "100" if signals == 1 else "1000000", path],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE)
        with process:
            line = process.stderr.readline().decode()
            port = int(line.rsplit(":", 1)[1])
            text = f"GET /health HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n"
            with Client(port) as client:
                for _ in range(50):  # a pipe has 64 KiB
                    client.send(text * 100)
                    for _ in range(100):
                        self.assertEqual(client.answer().status, 200)
                process.terminate()
                self.assertTrue(client.has_ended())
            if signals == 2:
                process.terminate()
            code = process.wait(PATIENCE)
            if code == 0:
                self.assertIn(b"access log", process.stderr.read())
            return code

    def test_a_log_that_nothing_reads_does_not_hold_it(self):
        path = database("unread")
        for signals in (1, 2):
            self.ends(self.log_unread, path, signals)
        os.remove(path)

    def signalled_twice(self):
        server = Server(name="second")
        with server.client() as client, server.client() as idle:
            self.assertEqual(idle.ask("/health").status, 200)
            client.request(ENDLESS)
            server.wait(lambda stats: any(q["paused"] for q in running(stats)))
            server.terminate()
            self.assertTrue(idle.has_ended())  # the first one has arrived
            server.terminate()
            server.process.wait(PATIENCE)
        return server.stop()

    def test_a_second_signal_ends_it(self):
        self.ends(self.signalled_twice)

    def signalled_by_manager(self, number):
        server = Server(name="signals")
        with server.client() as client:
            server.process.send_signal(signal.SIGUSR1)
            client.request(ENDLESS)
            server.wait(lambda s: running(s) and running(s)[0]["begun"])
            server.is_ending = True
            server.process.send_signal(number)
            server.process.send_signal(number)
            return server.stop()

    def test_signals_of_service_managers(self):
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGQUIT):
            self.ends(self.signalled_by_manager, number)


if __name__ == "__main__":
    main()
