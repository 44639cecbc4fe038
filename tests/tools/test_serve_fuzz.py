#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Connections to `uvarrow serve` that send changed and mixed requests, in random
pieces, and end in every way. The server must answer afterwards, hold no
connection, and exit without an error of a sanitizer. 20,000 connections with a
fixed seed; UVA_FUZZ_CONNECTIONS and UVA_FUZZ_SEED choose another number and
another seed. Environment variables as for test_serve_query.py.
"""
import os
import random
import select
import socket
import sys
import unittest

sys.dont_write_bytecode = True
from server import Server, main  # noqa: E402
from test_serve_http import malformed  # noqa: E402

SEED = int(os.environ.get("UVA_FUZZ_SEED", "1"))
CONNECTIONS = int(os.environ.get("UVA_FUZZ_CONNECTIONS", "20000"))
AT_ONCE = 64


def valid(host):
    sql = "SELECT+i,text+FROM+numbers+WHERE+i<9"
    body = '{"sql": "SELECT ?", "parameters": [1], "format": "csv"}'
    return [text.encode() for text in (
        f"GET /health HTTP/1.1\r\nHost: {host}\r\n\r\n",
        f"HEAD /stats HTTP/1.1\r\nHost: {host}\r\nAccept: */*\r\n\r\n",
        f"GET /query?format=csv&sql={sql} HTTP/1.1\r\nHost: {host}\r\n\r\n",
        f"GET /query?sql={sql} HTTP/1.0\r\n\r\n",
        f"POST /query HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json"
        f"\r\nContent-Length: {len(body)}\r\n\r\n{body}",
        f"POST /query HTTP/1.1\r\nHost: {host}\r\nContent-Type: text/plain\r\n"
        "Transfer-Encoding: chunked\r\n\r\n7\r\nSELECT \r\n1\r\n1\r\n0\r\n\r\n",
        f"OPTIONS /query HTTP/1.1\r\nHost: {host}\r\nOrigin: http://a\r\n\r\n",
    )]


def change(random_, data, corpus):
    data = bytearray(data)
    for _ in range(random_.choice((0, 0, 1, 1, 2, 5))):
        at = random_.randrange(len(data) + 1)
        kind = random_.randrange(6)
        if kind == 0:
            data[at:at + 1] = bytes([random_.randrange(256)])
        elif kind == 1:
            del data[at:at + random_.choice((1, 2, 20))]
        elif kind == 2:
            data[at:at] = random_.choice((b"\r\n", b"\n", b"\0", b" ", b":",
                                          b"\t", b"%", b"0", b"x" * 9000))
        elif kind == 3:
            other = random_.choice(corpus)
            begin = random_.randrange(len(other))
            data[at:at] = other[begin:begin + random_.randrange(1, 60)]
        elif kind == 4:
            data += random_.choice(corpus)
        else:
            del data[at:]
    return bytes(data)


class Attack:
    """One connection: pieces to send, then an end."""

    def __init__(self, random_, port, data):
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.setblocking(False)
        cuts = sorted(random_.randrange(len(data) + 1)
                      for _ in range(random_.choice((0, 0, 1, 3))))
        self.pieces = [part for part in (
            data[a:b] for a, b in zip([0, *cuts], [*cuts, len(data)])) if part]
        self.end = random_.choice(("half", "half", "half", "close", "reset"))

    def step(self):
        """Returns whether it has ended."""
        try:
            if self.pieces:
                sent = self.socket.send(self.pieces[0])
                self.pieces[0] = self.pieces[0][sent:]
                if not self.pieces[0]:
                    self.pieces.pop(0)
                return False
            if self.end == "half":
                self.socket.shutdown(socket.SHUT_WR)
                self.end = "read"
            if self.end == "read" and self.socket.recv(1 << 16):
                return False
        except BlockingIOError:
            return False
        except OSError:
            pass  # the server has closed it
        if self.end == "reset":
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER,
                                   b"\1\0\0\0\0\0\0\0")
        self.socket.close()
        return True


class Fuzz(unittest.TestCase):
    def test_connections(self):
        random_ = random.Random(SEED)
        with Server("--linger-ms", "50", "--head-ms", "500", "--idle-ms", "500",
                    "--body-ms", "500", name="fuzz") as server:
            host = f"127.0.0.1:{server.port}"
            corpus = valid(host)
            corpus += [data.replace(b"localhost", host.encode())
                       for _, data, _ in malformed() if len(data) < 4096]
            attacks, begun = [], 0
            while attacks or begun < CONNECTIONS:
                while len(attacks) < AT_ONCE and begun < CONNECTIONS:
                    data = change(random_, random_.choice(corpus), corpus)
                    attacks.append(Attack(random_, server.port, data))
                    begun += 1
                attacks = [a for a in attacks if not a.step()]
                waiting = [a.socket for a in attacks if a.end == "read"]
                if len(waiting) == len(attacks) == AT_ONCE:
                    select.select(waiting, [], [], 1)
            stats = server.wait(lambda s: s["http"]["connections"] == 1 and
                                not s["queries"]["running"] and
                                s["runtime"]["streams"] == 0)
            self.assertGreaterEqual(stats["http"]["accepted"], CONNECTIONS)
            self.assertGreater(stats["http"]["malformed"], 0)
            # most clients leave before a slow build has the first row
            queries = stats["queries"]
            self.assertGreater(queries["complete"] + queries["cancelled"], 0)
            answer = server.ask("/query?format=csv&sql=SELECT+1+AS+one")
            self.assertEqual((answer.status, answer.body), (200, b"one\n1\n"))
            server.wait(lambda s: s["queries"]["complete"] >
                        queries["complete"])


if __name__ == "__main__":
    main()
