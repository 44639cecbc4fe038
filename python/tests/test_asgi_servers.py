# SPDX-License-Identifier: Apache-2.0
"""Answers of ASGI through uvicorn and hypercorn, on asyncio and trio, and through
the example for aiohttp, to clients of HTTP/1.1 on a socket: whole ones, errors,
and clients that leave."""
import asyncio
import functools
import importlib.util
import json
import os
import socket
import threading

import anyio
import pyarrow as pa
import pytest

import uvarrow
from uvarrow import asgi

HERE = os.path.dirname(os.path.abspath(__file__))
ROWS = [{"n": i, "t": "x" * 1000} for i in range(2000)]
TABLE = pa.Table.from_pylist(ROWS)


class Site:
    """An application, as a program has it: /rows, /error, /fails and /endless."""

    def __init__(self):
        self.released = threading.Event()
        self.first = threading.Event()

    async def __call__(self, scope, receive, send):
        if scope["type"] == "lifespan":
            for kind in ("startup", "shutdown"):
                await receive()
                await send({"type": f"lifespan.{kind}.complete"})
            return
        rows = uvarrow.stream(getattr(self, scope["path"][1:]))
        await asgi.response(rows, scope)(scope, receive, send)

    def rows(self):
        yield from TABLE.to_batches(max_chunksize=100)

    def error(self):
        error = uvarrow.Error(22, "no such table")
        error.metadata = {"adbc.status": "INVALID_ARGUMENT"}
        raise error

    def fails(self):
        yield from TABLE.to_batches(max_chunksize=1000)
        raise KeyError("mine")

    def endless(self):
        try:
            while True:
                yield from self.rows()
                self.first.set()
        finally:
            self.released.set()


async def by_uvicorn(site, listener, use):
    uvicorn = pytest.importorskip("uvicorn")
    config = uvicorn.Config(site, log_level="critical", http="h11", ws="none")
    server = uvicorn.Server(config)
    server.install_signal_handlers = lambda: None
    task = asyncio.create_task(server._serve([listener]))
    try:
        await use()
    finally:
        server.should_exit = True
        await task


async def by_hypercorn(site, listener, use, loop="asyncio"):
    serve = pytest.importorskip(f"hypercorn.{loop}").serve
    config = pytest.importorskip("hypercorn.config").Config()
    config.bind = [f"fd://{listener.detach()}"]
    config.accesslog = config.errorlog = None
    config.graceful_timeout = 0.1
    over = anyio.Event()
    async with anyio.create_task_group() as group:
        group.start_soon(functools.partial(serve, site, config,
                                           shutdown_trigger=over.wait))
        try:
            await use()
        finally:
            over.set()


async def by_hypercorn_on_trio(site, listener, use):
    await by_hypercorn(site, listener, use, "trio")


async def by_aiohttp(site, listener, use):
    web = pytest.importorskip("aiohttp.web")
    spec = importlib.util.spec_from_file_location("aiohttp_server", os.path.join(
        os.path.dirname(HERE), "examples", "aiohttp_server.py"))
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)

    async def rows(request):
        return await example.answer(
            request, uvarrow.stream(getattr(site, request.path[1:])))

    app = web.Application()
    app.router.add_get("/{path}", rows)
    runner = web.AppRunner(app, handler_cancellation=True, access_log=None)
    await runner.setup()
    await web.SockSite(runner, listener).start()
    try:
        await use()
    finally:
        await runner.cleanup()


SERVERS = {"uvicorn": by_uvicorn, "hypercorn": by_hypercorn,
           "hypercorn on trio": by_hypercorn_on_trio, "aiohttp": by_aiohttp}


@pytest.fixture(params=SERVERS)
def serve(request):
    """serve(site, client): calls client(port) on a thread while a server runs."""
    def run(site, client):
        listener = socket.create_server(("127.0.0.1", 0))
        port = listener.getsockname()[1]
        got = []

        async def use():
            got.append(await anyio.to_thread.run_sync(client, port))

        async def main():
            await SERVERS[request.param](site, listener, use)

        anyio.run(main, backend="trio" if "trio" in request.param else "asyncio")
        return got[0]

    return run


def connect(port, path, accept):
    sock = socket.create_connection(("127.0.0.1", port))
    sock.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\nAccept: {accept}\r\n"
                 "\r\n".encode())
    return sock


class Answer:
    """Reads an answer, of which `is_whole` tells whether it has its end."""

    def __init__(self, sock):
        file = sock.makefile("rb")
        self.status = int(file.readline().split()[1])
        self.headers = dict(iter(lambda: self._header(file), None))
        self.body, self.is_whole = b"", False
        try:
            if "content-length" in self.headers:
                self.body = file.read(int(self.headers["content-length"]))
                self.is_whole = True
            else:
                self._chunks(file)
        except OSError: # the connection was reset
            pass

    @staticmethod
    def _header(file):
        name, _, value = file.readline().decode().strip().partition(": ")
        return (name.lower(), value) if name else None

    def _chunks(self, file):
        assert self.headers["transfer-encoding"] == "chunked"
        while line := file.readline():
            chunk = file.read(int(line, 16) + 2)
            self.body += chunk[:-2]
            if chunk == b"\r\n":
                self.is_whole = True
                return


def ask(path, accept="*/*"):
    def client(port):
        with connect(port, path, accept) as sock:
            return Answer(sock)

    return client


def test_a_whole_answer(serve):
    answer = serve(Site(), ask("/rows", "application/json"))
    assert answer.status == 200 and answer.is_whole
    assert answer.headers["content-type"] == "application/json"
    assert json.loads(answer.body) == ROWS


def test_arrow(serve):
    answer = serve(Site(), ask("/rows"))
    assert answer.is_whole
    assert pa.ipc.open_stream(answer.body).read_all() == TABLE


def test_an_error_before_the_head(serve):
    answer = serve(Site(), ask("/error"))
    assert answer.status == 400 and answer.is_whole
    assert json.loads(answer.body)["error"]["message"] == "no such table"


@pytest.mark.parametrize("accept", asgi.FORMATS.values())
def test_an_error_behind_the_head_cuts_the_answer(serve, accept):
    answer = serve(Site(), ask("/fails", accept))
    assert answer.status == 200 and not answer.is_whole


@pytest.mark.parametrize("reads", [0, 100000])
def test_a_client_that_leaves(serve, reads):
    """At once, or while the answer waits as it reads no more."""
    site = Site()

    def client(port):
        with connect(port, "/endless", "text/csv") as sock:
            left = reads
            while left > 0:
                left -= len(sock.recv(left))
            site.first.wait()
        site.released.wait()

    serve(site, client)
    assert site.released.is_set()
