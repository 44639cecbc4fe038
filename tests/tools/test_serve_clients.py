#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`uvarrow serve` and its clients one by one: the limits of each, and who it is
behind a proxy, also if the proxy's client lies. Environment variables as for
test_serve_query.py.
"""
import os
import socket
import ssl
import subprocess
import sys
import unittest
from urllib.parse import quote

sys.dont_write_bytecode = True
from server import Client, FOREVER, PATIENCE, Server, folder, main  # noqa: E402

SLOW = "/query?format=csv&sql=" + quote(FOREVER)
ONE = "/query?format=csv&sql=SELECT+7"


class From(Client):
    """A client with another address of this machine."""

    def __init__(self, port, source):
        self.socket = socket.create_connection(("127.0.0.1", port), PATIENCE,
                                               (source, 0))
        self.port, self.buffer = port, b""


def logged(server, path):
    """The clients of the requests of a path, in order."""
    return [line.split(" ")[1] for line in server.lines()
            if f" {path} " in line]


class Limits(unittest.TestCase):
    def test_connections_of_one_client(self):
        with Server("--max-client-connections", "2", name="places") as server:
            clients = [From(server.port, "127.0.0.2") for _ in range(2)]
            for client in clients:
                self.assertEqual(client.ask("/health").status, 200)
            with From(server.port, "127.0.0.2") as third:
                answer = third.answer()
                self.assertEqual(answer.status, 429)
                self.assertEqual(answer.headers["retry-after"], "1")
                self.assertTrue(third.has_ended())
            with From(server.port, "127.0.0.3") as other:
                self.assertEqual(other.ask(ONE).body, b"7\n7\n")
            clients.pop().socket.close()
            server.wait(lambda stats: stats["http"]["connections"] == 2)
            with From(server.port, "127.0.0.2") as again:
                self.assertEqual(again.ask(ONE).body, b"7\n7\n")
            self.assertEqual(server.stats()["http"]["limited"], 1)
            self.assertEqual(server.stats()["http"]["refused"], 0)
            text = server.ask("/metrics").body.decode()
            self.assertIn("\nuvarrow_http_limited_total 1\n", text)
            clients.pop().socket.close()

    def test_connections_under_tls_are_closed(self):
        certificate, key = (os.path.join(folder(), f"clients-{name}.pem")
                            for name in ("cert", "key"))
        subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
             "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj",
             "/CN=localhost", "-addext", "subjectAltName=DNS:localhost",
             "-out", certificate, "-keyout", key],
            check=True, capture_output=True)
        context = ssl.create_default_context(cafile=certificate)
        with Server("--tls-cert", certificate, "--tls-key", key,
                    "--max-client-connections", "1", name="places-tls") as server:
            with Client(server.port, context) as client:
                self.assertEqual(client.ask("/health").status, 200)
                with self.assertRaises((ssl.SSLError, ConnectionResetError)):
                    Client(server.port, context)
                self.assertEqual(client.ask("/health").status, 200)
        os.remove(certificate)
        os.remove(key)

    def test_queries_of_one_client(self):
        with Server("--max-client-queries", "1", name="asking") as server:
            with server.client() as slow, server.client() as client:
                slow.request(SLOW)
                server.wait(lambda stats: stats["queries"]["running"])
                for path in (ONE, "/tables"):
                    answer = client.ask(path)
                    self.assertEqual(answer.status, 429)
                    self.assertEqual(answer.headers["retry-after"], "1")
                    self.assertEqual(answer.headers["connection"], "keep-alive")
                    self.assertIn("--max-client-queries", answer.message())
                # the others do not ask the database
                self.assertEqual(client.ask("/health").status, 200)
                self.assertEqual(client.ask("/queries").status, 200)
                with From(server.port, "127.0.0.2") as other:
                    self.assertEqual(other.ask(ONE).status, 200)
                self.assertEqual(server.stats()["http"]["limited"], 2)
            server.wait(lambda stats: not stats["queries"]["running"])
            with server.client() as client:
                for _ in range(3):  # each is over before the next
                    self.assertEqual(client.ask(ONE).body, b"7\n7\n")
                # one that fails is over, too, however it fails
                for path in ("/query?sql=selct", "/query?x=1", "/query",
                             "/tables?x=1", "/query?format=x&sql=SELECT+1"):
                    self.assertEqual(client.ask(path).status, 400, path)
                self.assertEqual(client.ask(ONE, method="HEAD").status, 200)
                self.assertEqual(client.ask(ONE).body, b"7\n7\n")

    def test_pipelined_queries_are_one_after_the_other(self):
        with Server("--max-client-queries", "1", name="pipe") as server:
            with server.client() as client:
                for _ in range(50):
                    client.request(ONE)
                for _ in range(50):
                    self.assertEqual(client.answer().body, b"7\n7\n")

    def test_a_body_that_comes_slowly_counts(self):
        head = ("POST /query?format=csv HTTP/1.1\r\nHost: 127.0.0.1:{}\r\n"
                "Content-Type: text/plain\r\nExpect: 100-continue\r\n"
                "Content-Length: 8\r\n\r\n")
        with Server("--max-client-queries", "1", name="uploads") as server:
            with server.client() as first, server.client() as second:
                first.send(head.format(server.port))
                self.assertEqual(first.answer().status, 100)
                second.send(head.format(server.port))
                answer = second.answer()
                self.assertEqual(answer.status, 429)
                self.assertEqual(answer.headers["connection"], "close")
                first.send("SELECT 7")
                self.assertEqual(first.answer().body, b"7\n7\n")
                first.send(head.format(server.port))
                self.assertEqual(first.answer().status, 100)
            # it has left with its body
            server.wait(lambda stats: stats["http"]["connections"] == 1)
            self.assertEqual(server.ask(ONE).status, 200)

    def test_many_clients_come_and_go(self):
        with Server("--max-client-connections", "3", "--max-client-queries",
                    "3", name="crowd") as server:
            for turn in range(3):
                clients = [From(server.port, f"127.1.{turn}.{i // 3 + 1}")
                           for i in range(300)]
                for client in clients:
                    client.request(ONE)
                for client in clients:
                    self.assertIn(client.answer().status, (200, 503))
                for client in clients:
                    client.socket.close()
            stats = server.wait(lambda s: s["http"]["connections"] == 1)
            self.assertEqual(stats["http"]["limited"], 0)

    def test_nonsense(self):
        for option in ("--max-client-connections", "--max-client-queries"):
            for value in ("-1", "x", ""):
                with self.assertRaisesRegex(RuntimeError, "takes a number from 0"):
                    Server(f"{option}={value}", name="nonsense")
        for value in ("", "x", "10.0.0.0/33", "10.0.0.0/8,10.1.0.0/16"):
            with self.assertRaisesRegex(RuntimeError, "is neither an address nor"
                                        ) as caught:
                Server("--trusted-proxy", value, name="nonsense")
            self.assertEqual(caught.exception.code, 2)
            self.assertEqual(str(caught.exception).count("\n"), 1)


class Proxies(unittest.TestCase):
    def test_the_client_behind_a_proxy(self):
        with Server("--trusted-proxy", "127.0.0.1", "--trusted-proxy",
                    "10.0.0.0/8", name="proxied") as server:
            with server.client() as proxy:
                proxy.ask("/0", X_Forwarded_For="192.0.2.1")
                proxy.ask("/1")  # its own, and not that of the one before
                proxy.ask("/2", X_Forwarded_For="8.8.8.8, 2001:DB8::1, 10.1.1.1")
                proxy.ask("/3", X_Forwarded_For="1.2.3.4, unknown")
                proxy.ask("/4", X_Forwarded_For="1.2.3.4, unknown, 10.2.2.2")
                proxy.ask("/5", X_Forwarded_For="x" * 10000)
                proxy.ask("/6", X_Forwarded_For=", ".join(["10.0.0.1"] * 1000))
                proxy.ask("/7", X_Forwarded_For='192.0.2.1"\\x00')
                proxy.send(f"GET /8 HTTP/1.1\r\nHost: 127.0.0.1:{server.port}"
                           "\r\nX-Forwarded-For: 8.8.8.8\r\n"
                           "x-forwarded-for: 192.0.2.8\r\n\r\n")
                self.assertEqual(proxy.answer().status, 404)
                # refused by the parser, with a client that is not settled
                proxy.send(f"GET /9 HTTP/1.1\r\nHost: 127.0.0.1:{server.port}"
                           "\r\nX-Forwarded-For: 192.0.2.1\r\na b: c\r\n\r\n")
                self.assertEqual(proxy.answer().status, 400)
            with From(server.port, "127.0.0.2") as liar:
                liar.ask("/a", X_Forwarded_For="192.0.2.1")
        for path, client in (
                ("/0", "192.0.2.1"), ("/1", "127.0.0.1"), ("/2", "2001:db8::1"),
                ("/3", "127.0.0.1"), ("/4", "10.2.2.2"), ("/5", "127.0.0.1"),
                ("/6", "10.0.0.1"), ("/7", "127.0.0.1"), ("/8", "192.0.2.8"),
                ("/9", "127.0.0.1"), ("/a", "127.0.0.2")):
            self.assertEqual(logged(server, path), [client], path)

    def test_without_the_option_the_header_has_no_effect(self):
        with Server("--max-client-queries", "1", name="unproxied") as server:
            with server.client() as slow:
                slow.request(SLOW, X_Forwarded_For="192.0.2.1")
                server.wait(lambda stats: stats["queries"]["running"])
                [query] = server.ask("/queries").json()["queries"]
                self.assertEqual(query["client"], "127.0.0.1")
                answer = server.ask(ONE, X_Forwarded_For="192.0.2.2")
                self.assertEqual(answer.status, 429)

    def test_the_limits_are_those_of_the_client(self):
        with Server("--max-client-queries", "1", "--max-client-connections",
                    "1", "--trusted-proxy", "127.0.0.1",
                    name="limited") as server:
            # the connections of a proxy are not counted
            with server.client() as slow, server.client() as proxy:
                slow.request(SLOW, X_Forwarded_For="2001:db8::1")
                server.wait(lambda stats: stats["queries"]["running"])
                [query] = server.ask("/queries").json()["queries"]
                self.assertEqual(query["client"], "2001:db8::1")
                for status, client in ((429, "2001:db8::1"),
                                       (429, "2001:db8::ffff:1"),
                                       (429, "8.8.8.8, 2001:db8::2"),
                                       (200, "2001:db8:0:1::1"),
                                       (200, "192.0.2.1")):
                    answer = proxy.ask(ONE, X_Forwarded_For=client)
                    self.assertEqual(answer.status, status, client)
            server.wait(lambda stats: not stats["queries"]["running"])
            answer = server.ask(ONE, X_Forwarded_For="2001:db8::ffff:1")
            self.assertEqual(answer.status, 200)
            with From(server.port, "127.0.0.2") as client:
                self.assertEqual(client.ask("/health").status, 200)
                with From(server.port, "127.0.0.2") as other:
                    self.assertEqual(other.answer().status, 429)


if __name__ == "__main__":
    main()
