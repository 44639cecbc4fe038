#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`uvarrow serve` over TLS: whole and cut answers, requests without TLS, and
invalid certificates. Environment variables as for test_serve_query.py.
"""
import os
import shutil
import socket
import ssl
import subprocess
import sys
import tempfile
import unittest
from urllib.parse import quote

sys.dont_write_bytecode = True
from server import Client, FOREVER, PATIENCE, Server, folder, main  # noqa: E402


class Tls(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(dir=folder())
        cls.certificate, cls.key = (os.path.join(cls.folder, name)
                                    for name in ("cert.pem", "key.pem"))
        subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
             "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj",
             "/CN=localhost", "-addext", "subjectAltName=DNS:localhost",
             "-out", cls.certificate, "-keyout", cls.key],
            check=True, capture_output=True)
        cls.context = ssl.create_default_context(cafile=cls.certificate)

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.folder)

    def server(self, *options, **named):
        server = Server("--tls-cert", self.certificate, "--tls-key", self.key,
                        *options, **named)
        server.client = lambda: Client(server.port, self.context)
        return server

    def test_answers(self):
        with self.server(name="tls") as server, server.client() as client:
            self.assertEqual(client.ask("/health").json(), {"status": "ok"})
            sql = quote(FOREVER.replace("FROM n)", "FROM n WHERE i < 300000)"))
            for format in ("csv", "arrow"):
                answer = client.ask(f"/query?format={format}&sql={sql}")
                self.assertTrue(answer.is_whole)
                self.assertGreater(len(answer.body), 10 << 20)
            own = f"https://127.0.0.1:{server.port}"
            self.assertEqual(client.ask("/stats", Origin=own).status, 200)
            self.assertEqual(client.ask("/stats", Origin=own.replace(
                "https", "http")).status, 403)

    def test_an_idle_connection_holds_nothing_of_its_last_answer(self):
        path = "/query?format=csv&sql=" + quote(
            "SELECT hex(zeroblob(20000000)) AS text")  # a batch of 40 MB
        with self.server("--idle-ms", "600000", name="tls-idle") as server:
            # sanitizers keep memory, and take long for the bytes
            measured = not os.environ.get("UVA_TEST_SANITIZE")
            clients = []
            for _ in range(10 if measured else 2):
                client = server.client()
                clients.append(client)
                client.request(path)
                size, end = 0, b""
                while end != b"\r\n0\r\n\r\n":
                    part = client.socket.recv(1 << 20)
                    self.assertNotEqual(part, b"")
                    size, end = size + len(part), (end + part)[-7:]
                self.assertGreater(size, 40000000)
            server.wait(lambda s: s["runtime"]["streams"] == 0)
            with open(f"/proc/{server.process.pid}/statm",
                      encoding="ascii") as file:
                pages = int(file.read().split()[1])
            if measured:
                self.assertLess(pages * os.sysconf("SC_PAGE_SIZE"), 250 << 20)
            for client in clients:
                client.socket.close()

    def test_requests_behind_each_other_and_in_pieces(self):
        with self.server(name="tls-many") as server, server.client() as client:
            for _ in range(500):
                client.request("/health")
            for _ in range(500):
                self.assertEqual(client.answer().status, 200)
            for byte in f"GET /health HTTP/1.1\r\nHost: 127.0.0.1:{server.port}":
                client.send(byte)
            client.send("\r\n\r\n")
            self.assertEqual(client.answer().status, 200)

    def test_a_cut_answer_is_seen_as_cut(self):
        sql = (FOREVER.replace("FROM n)", "FROM n WHERE i < 200000)")
               + " WHERE i < 199999 OR abs(-9223372036854775808 + 0 * i)")
        with self.server(name="tls-cut") as server, server.client() as client:
            answer = client.ask("/query?format=csv&sql=" + quote(sql))
            self.assertEqual(answer.status, 200)
            self.assertFalse(answer.is_whole)

    def test_a_client_that_leaves_or_stands_still(self):
        with self.server(name="tls-leave") as server:
            with server.client() as client:
                client.request("/query?sql=" + quote(FOREVER))
                server.wait(lambda stats: any(
                    q["paused"] for q in stats["queries"]["running"]))
            server.wait(lambda stats: not stats["queries"]["running"] and
                        stats["runtime"]["streams"] == 0)

    def test_what_is_no_tls_is_closed(self):
        with self.server("--linger-ms", "100", name="tls-plain") as server:
            for data in (b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n",
                         b"\x16\x03\x01\x00\x05hello", b"\0" * 1000):
                with Client(server.port) as client:
                    client.send(data)
                    client.has_ended()
                    self.assertNotIn(b"HTTP/1.1 200", client.buffer)
            old = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            old.check_hostname, old.verify_mode = False, ssl.CERT_NONE
            old.minimum_version = ssl.TLSVersion.TLSv1
            old.maximum_version = ssl.TLSVersion.TLSv1_1
            old.set_ciphers("ALL:@SECLEVEL=0")
            with self.assertRaises((ssl.SSLError, ConnectionResetError)):
                Client(server.port, old)
            self.assertEqual(server.ask("/health").status, 200)

    def test_only_forward_secret_ciphers_are_spoken(self):
        # a key of RSA could speak older ciphers, too
        certificate, key = (os.path.join(self.folder, name)
                            for name in ("rsa.pem", "rsa-key.pem"))
        subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes",
             "-days", "2", "-subj", "/CN=localhost", "-out", certificate,
             "-keyout", key], check=True, capture_output=True)

        def client(ciphers):
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
            context.maximum_version = ssl.TLSVersion.TLSv1_2
            context.set_ciphers(ciphers + ":@SECLEVEL=0")
            return Client(server.port, context)

        with Server("--tls-cert", certificate, "--tls-key", key,
                    name="tls-ciphers") as server:
            for cipher in ("AES128-SHA", "AES128-GCM-SHA256", "AES256-SHA256",
                           "ECDHE-RSA-AES128-SHA", "ECDHE-RSA-AES256-SHA384"):
                with self.assertRaises((ssl.SSLError, ConnectionResetError)):
                    client(cipher)
            for cipher in ("ECDHE-RSA-AES128-GCM-SHA256",
                           "ECDHE-RSA-AES256-GCM-SHA384",
                           "ECDHE-RSA-CHACHA20-POLY1305"):
                with client(cipher) as one:
                    self.assertEqual(one.ask("/health").status, 200, cipher)
            server.client = lambda: Client(server.port)

    def test_a_slow_handshake_ends(self):
        with self.server("--head-ms", "200", name="tls-slow") as server:
            with socket.create_connection(("127.0.0.1", server.port),
                                          PATIENCE) as slow:
                slow.sendall(b"\x16\x03\x01")
                self.assertEqual(slow.recv(1), b"")

    def test_files_that_are_none(self):
        for certificate, key in (("/nowhere/x", self.key),
                                 (self.certificate, "/nowhere/x"),
                                 (self.key, self.key),
                                 (self.certificate, self.certificate)):
            with self.assertRaisesRegex(RuntimeError, "cannot use"):
                Server("--tls-cert", certificate, "--tls-key", key,
                       name="tls-none")


if __name__ == "__main__":
    main()
