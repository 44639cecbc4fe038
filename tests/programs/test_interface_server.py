#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""interface/02_server.c answers over HTTP: rows, failures with a status of their
own, its health while queries run, clients that leave, and SIGTERM.

Environment variables give the paths: UVA_TEST_BUILD the folder of the build,
UVA_TEST_DRIVER the ADBC driver for SQLite. PATIENCE only ends a test that hangs.
"""
import http.client
import os
import signal
import socket
import subprocess
import sys
import time
import unittest

PATIENCE = 600  # seconds
CONNECTIONS = 8  # of a pool, by default
ENDLESS = 10**12  # rows


class Server(unittest.TestCase):
    program = driver = None

    def setUp(self):
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        self.process = subprocess.Popen(
            [self.program, self.driver, ":memory:", str(self.port)])
        self.addCleanup(self.end)
        self.await_server()

    def end(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()

    def await_server(self):
        while True:
            try:
                socket.create_connection(("127.0.0.1", self.port)).close()
                return
            except ConnectionRefusedError:
                self.assertIsNone(self.process.poll())
                time.sleep(0.01)

    def asked(self, path):
        """A connection with a request that may not be answered yet."""
        client = http.client.HTTPConnection("127.0.0.1", self.port,
                                            timeout=PATIENCE)
        self.addCleanup(client.close)
        client.request("GET", path)
        return client

    def get(self, path):
        response = self.asked(path).getresponse()
        return response.status, response.read().decode()

    def terminate(self):
        self.process.send_signal(signal.SIGTERM)

    def ended(self):
        return self.process.wait(timeout=PATIENCE)

    def test_rows(self):
        self.assertEqual(self.get("/3"), (200, "n\n1\n2\n3\n"))
        self.assertEqual(self.get("/0"), (200, "n\n"))
        status, text = self.get("/100000")
        self.assertEqual((status, text.count("\n")), (200, 100001))

    def test_sql_that_does_not_prepare(self):
        status, text = self.get("/nope")
        self.assertEqual(status, 400)
        self.assertIn("no such column: nope", text)

    def test_a_time_limit_and_the_health_meanwhile(self):
        slow = self.asked("/slow")
        status, text = self.get("/health")
        self.assertEqual(status, 200)
        self.assertRegex(text, r"^\d of 16 connections are stuck\n$")
        response = slow.getresponse()
        self.assertEqual(response.status, 504)
        self.assertIn("2000 ms", response.read().decode())
        self.assertEqual(self.get("/1"), (200, "n\n1\n"))

    def test_clients_that_leave_hold_no_connection(self):
        """Each has the head and reads no further, until it leaves: then the
        connections of the pool are free, within the time limit of a query."""
        responses = [self.asked(f"/{ENDLESS}").getresponse()
                     for _ in range(CONNECTIONS)]
        self.assertEqual({one.status for one in responses}, {200})
        for response in responses:
            response.close()
        self.assertEqual(self.get("/2"), (200, "n\n1\n2\n"))

    def test_sigterm_ends_it(self):
        self.terminate()
        self.assertEqual(self.ended(), 0)

    def test_sigterm_lets_a_query_end(self):
        response = self.asked("/300000").getresponse()
        self.terminate()
        self.assertEqual(response.read().count(b"\n"), 300001)
        self.assertEqual(self.ended(), 0)

    def test_sigterm_does_not_wait_for_a_client_that_left(self):
        response = self.asked(f"/{ENDLESS}").getresponse()
        response.close()
        self.terminate()
        self.assertEqual(self.ended(), 0)


if __name__ == "__main__":
    Server.driver = os.environ["UVA_TEST_DRIVER"]
    Server.program = os.path.join(os.environ["UVA_TEST_BUILD"], "tests",
                                  "interface_02_server")
    if not os.path.exists(Server.driver):
        print(f"skipped: there is no driver {Server.driver}")
        sys.exit(77)
    unittest.main()
