# SPDX-License-Identifier: Apache-2.0
"""The examples: the server as Starlette calls it, and the progress script."""
import asyncio
import importlib.util
import os
import subprocess
import sys
import urllib.parse

import pyarrow as pa
import pyarrow.parquet
import pytest

HERE = os.path.dirname(os.path.abspath(__file__))
EXAMPLES = os.path.join(os.path.dirname(HERE), "examples")
ENDLESS = ("WITH RECURSIVE numbers(n) AS (SELECT 1 UNION ALL SELECT n + 1 "
           "FROM numbers) SELECT n FROM numbers")


@pytest.fixture
def app():
    pytest.importorskip("starlette")
    spec = importlib.util.spec_from_file_location(
        "server", os.path.join(EXAMPLES, "server.py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.app


class Client:
    """One request, as an ASGI server makes it."""

    def __init__(self, sql):
        self.scope = {
            "type": "http", "asgi": {"version": "3.0", "spec_version": "2.3"},
            "http_version": "1.1", "method": "GET", "path": "/query",
            "raw_path": b"/query", "root_path": "", "scheme": "http",
            "query_string": urllib.parse.urlencode({"sql": sql}).encode(),
            "headers": [], "client": None, "server": None}
        self.status = None
        self.body = b""
        self.gone = asyncio.Event()
        self.leave_behind = None # bytes after which it disconnects
        self.stalls = False

    async def receive(self):
        await self.gone.wait()
        return {"type": "http.disconnect"}

    async def send(self, message):
        if message["type"] == "http.response.start":
            self.status = message["status"]
            return
        self.body += message["body"]
        if self.leave_behind is not None and (
                len(self.body) >= self.leave_behind):
            self.gone.set()
            if self.stalls: # a socket that takes no more
                await asyncio.Event().wait()


def test_a_query_as_arrow_ipc(app):
    async def main():
        client = Client("SELECT 1 AS one UNION ALL SELECT 2")
        await app(client.scope, client.receive, client.send)
        return client

    client = asyncio.run(main())
    assert client.status == 200
    assert pa.ipc.open_stream(client.body).read_all().to_pydict() == {
        "one": [1, 2]}


def test_an_error_of_the_query(app):
    async def main():
        client = Client("SELECT * FROM no_such_table")
        await app(client.scope, client.receive, client.send)
        return client

    client = asyncio.run(main())
    assert client.status == 400
    assert b"no_such_table" in client.body


@pytest.mark.parametrize("stalls", [False, True])
def test_a_disconnect_ends_the_query(app, stalls):
    async def main():
        for _ in range(20): # more than the pool has connections
            client = Client(ENDLESS)
            client.leave_behind, client.stalls = 1000, stalls
            await app(client.scope, client.receive, client.send)
            assert client.status == 200

    asyncio.run(main())


def test_progress(tmp_path):
    path = tmp_path / "rows.parquet"
    pa.parquet.write_table(pa.table({"n": range(100000)}), path)
    result = subprocess.run(
        [sys.executable, os.path.join(EXAMPLES, "progress.py"), path],
        capture_output=True, text=True, check=True)
    assert "100,000 rows, 0.8 MB in" in result.stdout
