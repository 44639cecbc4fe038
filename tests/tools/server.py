# SPDX-License-Identifier: Apache-2.0
"""`uvarrow serve` on a free port, and clients of it that speak byte by byte.
Tests wait for events, never for a time.
"""
import json
import os
import signal
import socket
import sqlite3
import ssl
import subprocess
import sys
import threading
import time
import unittest

# Seconds, after which a test that hangs fails; sanitizers take several times
# longer.
PATIENCE = 600  # seconds
ROWS = 1000
FOREVER = ("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) "
           "SELECT i, 'some text to fill the buffers with' AS text FROM n")


def main():
    """Runs the tests of the script; skips them all if the command was built
    without a server."""
    result = subprocess.run([os.environ["UVA_TEST_TOOL"], "help"],
                            capture_output=True, text=True, check=True)
    if "  serve " not in result.stdout:
        print("there is no uvarrow serve")
        sys.exit(77)
    unittest.main()


def folder():
    path = os.path.join(os.environ["UVA_TEST_BUILD"], "serve")
    os.makedirs(path, exist_ok=True)
    return path


def database(name):
    """Makes a database of ROWS rows; returns its path."""
    path = os.path.join(folder(), f"{name}-{os.getpid()}.db")
    if os.path.exists(path):
        os.remove(path)
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE numbers (i INTEGER, text TEXT)")
    connection.executemany("INSERT INTO numbers VALUES (?, ?)",
                           [(i, f"row {i}") for i in range(ROWS)])
    connection.commit()
    connection.close()
    return path


class Answer:
    def __init__(self, head, body, is_whole):
        lines = head.decode("latin-1").split("\r\n")
        self.status = int(lines[0].split(" ")[1])
        self.headers = {}
        for line in lines[1:]:
            name, value = line.split(": ", 1)
            self.headers[name.lower()] = value
        self.body, self.is_whole = body, is_whole

    def json(self):
        return json.loads(self.body)

    def message(self):
        return self.json()["error"]["message"]


class Client:
    """A connection."""

    def __init__(self, port, tls=None, address="127.0.0.1"):
        self.socket = socket.create_connection((address, port), PATIENCE)
        if tls is not None:
            self.socket = tls.wrap_socket(self.socket,
                                          server_hostname="localhost")
        self.port, self.buffer = port, b""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def send(self, data):
        self.socket.sendall(data if isinstance(data, bytes)
                            else data.encode("latin-1"))

    def request(self, path, method="GET", body=None, host=None, **headers):
        lines = [f"{method} {path} HTTP/1.1",
                 f"Host: {host or f'127.0.0.1:{self.port}'}"]
        lines += [f"{name.replace('_', '-')}: {value}"
                  for name, value in headers.items()]
        if body is not None:
            lines.append(f"Content-Length: {len(body)}")
        self.send("\r\n".join(lines) + "\r\n\r\n")
        if body is not None:
            self.send(body)

    def ask(self, path, **options):
        self.request(path, **options)
        return self.answer(options.get("method"))

    def receive(self):
        """Returns whether bytes came; otherwise the connection has ended."""
        try:
            part = self.socket.recv(1 << 16)
        except (ConnectionResetError, BrokenPipeError, ssl.SSLError):
            part = b""
        self.buffer += part
        return part != b""

    def until(self, mark):
        while mark not in self.buffer:
            if not self.receive():
                return None
        part, self.buffer = self.buffer.split(mark, 1)
        return part

    def exactly(self, size):
        while len(self.buffer) < size:
            if not self.receive():
                return None
        part, self.buffer = self.buffer[:size], self.buffer[size:]
        return part

    def chunks(self):
        """Returns the body, and whether its last chunk came."""
        body = bytearray()
        while (line := self.until(b"\r\n")) is not None:
            size = int(line, 16)
            part = self.exactly(size + 2)
            if part is None:
                break
            if size == 0:
                return bytes(body), True
            body += part[:-2]
        return bytes(body), False

    def answer(self, method=None):
        """Returns the next answer, or None if the connection has ended."""
        head = self.until(b"\r\n\r\n")
        if head is None:
            return None
        answer = Answer(head, b"", True)
        if method == "HEAD" or answer.status in (100, 204):
            return answer
        if answer.headers.get("transfer-encoding") == "chunked":
            answer.body, answer.is_whole = self.chunks()
        elif "content-length" in answer.headers:
            answer.body = self.exactly(int(answer.headers["content-length"]))
        else:
            while self.receive():
                pass
            answer.body, self.buffer = self.buffer, b""
        return answer

    def has_ended(self):
        """Returns, when the connection has ended, whether no more bytes
        came."""
        before = len(self.buffer)
        while self.receive():
            pass
        return len(self.buffer) == before


class Server:
    """`driver` is "" if the URI names it."""

    def __init__(self, *options, name="numbers", path=None, own=None, env=None,
                 listen="127.0.0.1:0", begin=None, driver=None):
        driver = os.environ["UVA_TEST_DRIVER"] if driver is None else driver
        self.own = path is None if own is None else own
        self.path = database(name) if self.own else path
        self.log = os.path.join(folder(), f"{name}-{os.getpid()}.log")
        if os.path.exists(self.log):
            os.remove(self.log)
        self.process = subprocess.Popen(
            [os.environ["UVA_TEST_TOOL"], "serve", "--listen", listen, "--log",
             self.log, *(["--driver", driver] if driver else []), *options, *([self.path] if self.path else [])],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE, env={**os.environ, **(env or {})},
            preexec_fn=begin)
        line = self.process.stderr.readline().decode()
        if "listening at" not in line:
            with self.process:
                line += self.process.stderr.read().decode()
            if self.own:
                os.remove(self.path)
            error = RuntimeError(line)
            error.code = self.process.returncode
            raise error
        self.port = int(line.rsplit(":", 1)[1])
        self.errors = []
        self.is_ending = False  # it was asked to end
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def _read(self):
        for line in self.process.stderr:
            self.errors.append(line.decode().rstrip("\n"))

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        code = self.stop()
        if kind is None and code != 0:
            raise AssertionError(f"exit code {code}: " + "\n".join(self.errors))

    def terminate(self):
        self.is_ending = True
        self.process.send_signal(signal.SIGTERM)

    def stop(self):
        """Ends it as a service manager does. Returns its exit code."""
        if not self.is_ending and self.process.poll() is None:
            self.terminate()
        try:
            code = self.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self.process.kill()
            code = self.process.wait()
        self.reader.join()
        self.process.stderr.close()
        if self.own and os.path.exists(self.path):
            os.remove(self.path)
        return code

    def client(self, tls=None):
        return Client(self.port, tls)

    def ask(self, path, **options):
        """One request on a separate connection."""
        with self.client() as client:
            return client.ask(path, **options)

    def post(self, sql, path="/query?format=csv"):
        """Asks as only a request can that may change the database."""
        return self.ask(path, method="POST", body=sql.encode(),
                        Content_Type="text/plain")

    def stats(self):
        return self.ask("/stats").json()

    def wait(self, condition):
        """Returns the statistics once they satisfy the condition."""
        end = time.monotonic() + PATIENCE
        while not condition(stats := self.stats()):
            if time.monotonic() > end:
                raise AssertionError(f"still {stats}")
            time.sleep(0.02)
        return stats

    def lines(self):
        with open(self.log, encoding="utf-8") as file:
            return file.read().splitlines()
