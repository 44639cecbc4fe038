# SPDX-License-Identifier: Apache-2.0
"""Answers of ASGI, by messages: the choice of a format, what comes before the
head, and every end."""
import errno
import json

import anyio
import pyarrow as pa
import pytest

import uvarrow
from uvarrow import asgi

TABLE = pa.table({"n": range(6), "t": list("abcdef")})
TYPES = asgi.FORMATS


class Client:
    """One request, as a server of ASGI makes it."""

    def __init__(self, accept=None, method="GET"):
        lines = [accept] if isinstance(accept, str) else accept or []
        self.scope = {"type": "http", "method": method, "path": "/",
                      "headers": [(b"accept", line.encode()) for line in lines]}
        self.messages = []
        self.gone = anyio.Event()
        self.leaves = None # the number of messages after which it has left
        self.stalls = self.stays = False # then its socket takes no more
        self.raises = None # what send() raises then
        self.requests = [{"type": "http.request", "body": b"x"}] * 2

    async def receive(self):
        if self.requests:
            return self.requests.pop()
        await self.gone.wait()
        return {"type": "http.disconnect"}

    async def send(self, message):
        self.messages.append(dict(message))
        if self.leaves is not None and len(self.messages) >= self.leaves:
            if self.raises is not None:
                raise self.raises
            if not self.stays:
                self.gone.set()
            if self.stalls:
                await anyio.sleep_forever()
        await anyio.lowlevel.checkpoint()

    async def ask(self, rows, **options):
        await asgi.response(rows, self.scope, **options)(
            self.scope, self.receive, self.send)
        return self

    @property
    def status(self):
        return self.messages[0]["status"] if self.messages else None

    @property
    def headers(self):
        return dict(self.messages[0]["headers"])

    @property
    def kind(self):
        return self.headers[b"content-type"].decode()

    @property
    def body(self):
        return b"".join(message["body"] for message in self.messages[1:])

    @property
    def is_whole(self):
        return bool(self.messages) and not self.messages[-1].get("more_body", True)


def stream():
    return uvarrow.stream(TABLE.to_batches(max_chunksize=2))


async def ask(make=stream, accept=None, method="GET", **options):
    return await Client(accept, method).ask(make(), **options)


def message(client):
    error = json.loads(client.body)["error"]
    assert error["status"] == client.status and client.is_whole
    return error["message"]


def read(kind, body):
    if kind == TYPES["arrow"]:
        return pa.ipc.open_stream(body).read_all().to_pylist()
    if kind == TYPES["json"]:
        return [json.loads(line) for line in body.splitlines()]
    if kind == TYPES["json-array"]:
        return json.loads(body)
    lines = [line.split(",") for line in body.decode().splitlines()]
    return [{"n": int(n), "t": t} for n, t in lines[1:]]


# ---- formats ----------------------------------------------------------------

@pytest.mark.parametrize("name", TYPES)
def test_each_format(run, name):
    client = run(ask, stream, TYPES[name])
    assert client.status == 200 and client.is_whole
    assert client.kind.startswith(TYPES[name])
    assert client.headers[b"vary"] == b"accept"
    assert read(client.kind, client.body) == TABLE.to_pylist()


@pytest.mark.parametrize("accept, name", [
    (None, "arrow"), ("", "arrow"), ("*/*", "arrow"),
    ("text/html, */*;q=0.8", "arrow"), ("text/*", "csv"),
    ("TEXT/CSV", "csv"), ("text/csv;charset=utf-8", "csv"),
    ("application/*;q=0.5, text/csv", "csv"),
    ("application/json;q=0.4, application/x-ndjson;q=0.6", "json"),
    ("application/json ; q=0.7 , application/x-ndjson;q=0.6", "json-array"),
    (["application/json;q=0.2", "text/csv;q=0.3"], "csv"),
    ("*/*, application/vnd.apache.arrow.stream;q=0", "csv"),
    ("text/csv;q=x, application/json;q=0.1", "json-array"),
    ("text/csv;q=2, application/json;q=0.1", "json-array"),
    ("image/png", None), ("text/csv;q=0", None), ("text/csvx", None),
    ("*/json", None)])
def test_accept_chooses(accept, name):
    async def main():
        return await ask(accept=accept)

    client = anyio.run(main)
    if name is None:
        assert client.status == 406 and "text/csv" in message(client)
    else:
        assert client.status == 200
        assert client.kind.partition(";")[0] == TYPES[name]


def test_formats_of_the_program(run):
    async def main():
        for accept, name in [(None, "json-array"), ("*/*", "json-array"),
                             ("text/csv", "csv"), (TYPES["arrow"], None)]:
            client = await Client(accept).ask(stream(),
                                              formats=["json-array", "csv"])
            assert client.status == (200 if name else 406)
            assert name is None or client.kind.startswith(TYPES[name])

    run(main)


def test_headers_of_the_program(run):
    client = run(lambda: ask(headers={"Cache-Control": "no"}))
    assert client.headers[b"cache-control"] == b"no"


def test_the_head_alone(run):
    client = run(lambda: ask(method="HEAD"))
    assert client.status == 200 and client.is_whole and client.body == b""


def test_no_rows(run):
    async def main():
        empty = TABLE.slice(0, 0)
        return [await Client(TYPES[name]).ask(uvarrow.stream(empty))
                for name in TYPES]

    for client in run(main):
        assert client.status == 200 and client.is_whole
        assert read(client.kind, client.body) == []


# ---- before the head --------------------------------------------------------

def test_a_query_that_fails(run):
    async def main():
        async with uvarrow.adbc.Pool("sqlite", uri=":memory:") as pool:
            return await Client().ask(pool.query("SELECT * FROM no_such_table"))

    client = run(main)
    assert client.status == 400 and client.is_whole
    assert client.kind == "application/json"
    assert client.headers[b"content-length"] == str(len(client.body)).encode()
    assert "no_such_table" in message(client)


def test_a_query_that_takes_too_long(run, gate):
    source = gate(TABLE.to_batches())

    async def main():
        rows = uvarrow.stream(source, interrupt=source.interrupt)
        return await Client().ask(rows.timeout(first=0.01))

    client = run(main)
    assert client.status == 504 and message(client)


@pytest.mark.parametrize("metadata, status", [
    ({"adbc.status": "IO", "adbc.sqlstate": "08006"}, 503),
    ({"adbc.status": "IO", "adbc.step": "connect"}, 503),
    ({"adbc.status": "UNAUTHORIZED", "adbc.sqlstate": "42501"}, 403),
    ({"adbc.status": "CANCELLED", "adbc.sqlstate": "57014"}, 504),
    ({"adbc.status": "INVALID_ARGUMENT", "adbc.sqlstate": "42P01"}, 400),
    ({"adbc.status": "INVALID_ARGUMENT"}, 400)])
def test_errors_of_databases(run, metadata, status):
    def source():
        error = uvarrow.Error(errno.EIO, "on host db.example")
        error.metadata = metadata
        raise error

    client = run(ask, lambda: uvarrow.stream(source))
    assert client.status == status
    assert ("db.example" in message(client)) == (status != 503)


@pytest.mark.parametrize("error", [
    KeyError("mine"), OSError(5, "mine"), uvarrow.Error(5, "mine")])
def test_other_errors_are_the_servers(run, error):
    def source():
        raise error

    async def main():
        client = Client()
        with pytest.raises(type(error), match="mine"):
            await client.ask(uvarrow.stream(source))
        return client

    assert run(main).messages == []


def test_nothing_is_sent_before_the_first_rows(run, gate):
    source = gate(TABLE.to_batches())

    async def main():
        client = Client()
        async with anyio.create_task_group() as group:
            group.start_soon(client.ask, uvarrow.stream(source))
            await source.wait_entered()
            assert client.messages == []
            source.opened.set()
        assert client.status == 200 and client.is_whole

    run(main)


# ---- ends -------------------------------------------------------------------

@pytest.mark.parametrize("name", TYPES)
def test_an_error_mid_stream_has_no_end(run, name):
    def source():
        yield from TABLE.to_batches()
        raise KeyError("mine")

    async def main():
        client = Client(TYPES[name])
        with pytest.raises(KeyError, match="mine"):
            await client.ask(uvarrow.stream(source))
        return client

    client = run(main)
    assert client.status == 200
    assert not client.is_whole


@pytest.mark.parametrize("name", TYPES)
@pytest.mark.parametrize("stalls", [False, True])
def test_a_client_that_leaves(run, gate, name, stalls):
    """While the source blocks, or the socket takes no more."""
    source = gate(TABLE.to_batches(max_chunksize=1) * 100, before=5)

    async def main():
        client = Client(TYPES[name])
        client.leaves, client.stalls = 2, stalls
        await client.ask(uvarrow.stream(source, interrupt=source.interrupt))
        await source.wait_closed()
        return client

    assert not run(main).is_whole


def test_a_client_that_leaves_before_the_head(run, gate):
    source = gate(TABLE.to_batches())

    async def main():
        client = Client()
        async with anyio.create_task_group() as group:
            group.start_soon(client.ask, uvarrow.stream(
                source, interrupt=source.interrupt))
            await source.wait_entered()
            client.gone.set()
        await source.wait_closed()
        return client

    assert run(main).messages == []


def test_a_send_that_fails(run, gate):
    """As ASGI 2.4 tells that a client has left."""
    source = gate(TABLE.to_batches(max_chunksize=1) * 100, before=5)

    async def main():
        client = Client()
        client.leaves, client.raises = 2, ConnectionResetError()
        await client.ask(uvarrow.stream(source, interrupt=source.interrupt))
        await source.wait_closed()

    run(main)


def test_a_receive_that_fails(run, gate):
    source = gate(TABLE.to_batches())

    async def receive():
        await source.wait_entered()
        raise ZeroDivisionError

    async def main():
        client = Client()
        rows = uvarrow.stream(source, interrupt=source.interrupt)
        answer = asgi.response(rows, client.scope)
        with pytest.raises(ZeroDivisionError):
            await answer(client.scope, receive, client.send)
        await source.wait_closed()

    run(main)


def test_the_answer_is_cancelled(run, gate):
    """By the server, which is not a client that leaves."""
    source = gate(TABLE.to_batches())

    async def main():
        client = Client()
        with anyio.CancelScope() as scope:
            async with anyio.create_task_group() as group:
                group.start_soon(client.ask, uvarrow.stream(
                    source, interrupt=source.interrupt))
                await source.wait_entered()
                scope.cancel()
        assert scope.cancelled_caught
        await source.wait_closed()

    run(main)


def test_a_task_of_the_server_goes_on(run):
    """A client that leaves cancels the answer alone."""
    async def main():
        for _ in range(3):
            client = Client()
            client.leaves, client.stalls = 2, True
            await client.ask(uvarrow.stream(TABLE.to_batches() * 100))
            await anyio.sleep(0)
        assert (await Client().ask(stream())).is_whole

    run(main)


def test_a_slow_client_slows_the_source(run):
    taken = 0

    def source():
        nonlocal taken
        for _ in range(1000):
            taken += 1
            yield TABLE.to_batches()[0]

    async def main():
        client = Client()
        client.leaves, client.stalls, client.stays = 3, True, True
        rows = uvarrow.stream(source, window=4)
        async with anyio.create_task_group() as group:
            group.start_soon(client.ask, rows)
            before = -1
            while len(client.messages) < 3 or before != taken:
                before = taken
                for _ in range(100):
                    await anyio.to_thread.run_sync(lambda: None)
            group.cancel_scope.cancel()
        assert 3 <= taken < 30

    run(main)


def test_an_answer_that_is_never_sent(run, gate):
    source = gate(TABLE.to_batches())

    async def main():
        asgi.response(uvarrow.stream(source), Client().scope)

    run(main)


# ---- arguments --------------------------------------------------------------

@pytest.mark.parametrize("options, kind, text", [
    ({"formats": ["arrow", "parquet"]}, ValueError, "a name of formats"),
    ({"formats": ()}, TypeError, "formats must be"),
    ({"headers": {"a": "b\nc"}}, ValueError, "headers"),
    ({"headers": {"a\r": "b"}}, ValueError, "a name of headers"),
    ({"headers": 5}, TypeError, "headers")])
def test_options_that_do_not_fit(run, options, kind, text):
    async def main():
        async with stream() as rows:
            with pytest.raises(kind, match=text):
                asgi.response(rows, Client().scope, **options)

    run(main)
