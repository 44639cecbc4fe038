# SPDX-License-Identifier: Apache-2.0
"""Sources that the event loop reads: asynchronous iterables, readers of bytes;
files; and lists of sources of any kind."""
import asyncio
import gc
import io
import os
import socket
import weakref

import anyio
import pyarrow as pa
import pyarrow.parquet
import pytest

import uvarrow
from conftest import in_thread, run_on

TABLE = pa.table({"n": range(100)})
BATCHES = TABLE.to_batches(max_chunksize=10)


async def items(parts=BATCHES, then=None):
    for one in parts:
        await anyio.lowlevel.checkpoint()
        yield one
    if then is not None:
        raise then


async def values(rows):
    return [value for batch in await rows.read_all()
            for value in batch.to_pyarrow().column(0).to_pylist()]


def ipc_bytes():
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, TABLE.schema) as writer:
        for batch in BATCHES:
            writer.write_batch(batch)
    return sink.getvalue()


# ---- asynchronous iterables -------------------------------------------------

@pytest.mark.parametrize("source", [
    items, lambda: items(), items, lambda: items([TABLE]),
    lambda: items([TABLE.to_reader()]),
    lambda: items([TABLE.slice(0, 50), *TABLE.slice(50).to_batches()])],
    ids=["function", "lambda", "generator", "table", "reader", "both"])
def test_an_asynchronous_iterable(run, source):
    async def main():
        made = source if source is items else source()
        return await values(uvarrow.stream(made))

    assert run(main) == list(range(100))


def test_an_async_function_gives_any_source(run):
    async def opens(source):
        await anyio.lowlevel.checkpoint()
        return source

    async def main():
        import functools
        for source in (TABLE, BATCHES, TABLE.to_reader(), items(),
                       lambda: TABLE, uvarrow.stream(TABLE)):
            assert await values(uvarrow.stream(
                functools.partial(opens, source))) == list(range(100))
        with pytest.raises(TypeError, match="cannot read the result of source"):
            await uvarrow.stream(functools.partial(opens, 5)).read_all()

    run(main)


def test_an_empty_one_has_no_columns(run):
    async def main():
        rows = uvarrow.stream(items([]))
        assert (await rows.schema()).names == []
        return await rows.read_all()

    assert run(main) == []


def test_it_begins_when_the_stream_is_read(run):
    async def main():
        begun = []

        async def source():
            begun.append(True)
            yield BATCHES[0]

        rows = uvarrow.stream(source())
        for _ in range(5):
            await anyio.lowlevel.checkpoint()
        assert begun == []
        assert len(await rows.read_all()) == 1
        unread = uvarrow.stream(source)
        await unread.aclose(seconds=None)
        assert begun == [True]

    run(main)


@pytest.mark.parametrize("window", [1, 4])
def test_it_is_read_so_far_ahead(run, window):
    read = []

    async def source():
        while True:
            read.append(True)
            yield BATCHES[0]

    async def main():
        async with uvarrow.stream(source(), window=window) as rows:
            for i in range(50):
                await anext(rows)
                assert len(read) <= i + 1 + 2 * window + 2

    run(main)


def test_it_is_closed_with_the_stream(run):
    async def main():
        closed = []

        async def source():
            try:
                while True:
                    await anyio.lowlevel.checkpoint()
                    yield BATCHES[0]
            finally:
                closed.append("endless")

        async def stuck():
            try:
                yield BATCHES[0]
                await anyio.sleep_forever()
            finally:
                closed.append("stuck")

        for one in source, stuck:
            async with uvarrow.stream(one()) as rows:
                await anext(rows)
            await rows.aclose(seconds=None)
        return closed

    assert run(main) == ["endless", "stuck"]


def test_its_exception_is_raised_itself(run):
    async def main():
        for merged in False, True:
            rows = uvarrow.stream(items(then=KeyError("why")))
            if merged:
                rows = uvarrow.concat(uvarrow.stream(TABLE), rows)
            seen = []
            async with rows:
                with pytest.raises(KeyError, match="why"):
                    async for batch in rows:
                        seen.append(batch)
            assert len(seen) >= 10

    run(main)


@pytest.mark.parametrize("item", [5, "text", None, {"n": 1}, pa.array([1])])
def test_an_item_that_is_no_rows(run, item):
    async def main():
        await uvarrow.stream(items([item])).read_all()

    with pytest.raises(TypeError, match="an item of source"):
        run(main)


def test_items_of_two_schemas(run):
    async def main():
        await uvarrow.stream(items([BATCHES[0], pa.table({"m": [1]})])).read_all()

    with pytest.raises(ValueError, match="an item of source"):
        run(main)


def test_an_iterable_that_raises_a_cancel():
    async def main():
        async def source():
            yield BATCHES[0]
            raise asyncio.CancelledError

        with pytest.raises(uvarrow.Error, match="cancel"):
            await uvarrow.stream(source()).read_all()

    run_on("asyncio", main)


def test_under_other_stages(run):
    async def main():
        both = uvarrow.merge(uvarrow.stream(items()), uvarrow.stream(TABLE))
        assert sorted(await values(both)) == sorted([*range(100)] * 2)
        first = uvarrow.stream(items())
        second = first.tee()
        await first.aclose()
        del first
        gc.collect()
        assert await values(second) == list(range(100))
        reader = uvarrow.stream(items()).to_reader()
        found = []
        await in_thread(lambda: found.append(pa.table(reader)))
        assert found[0] == TABLE

        def fails():
            raise KeyError("first")

        again = uvarrow.stream(fails).retry(
            lambda failure: uvarrow.stream(items()), delay=0.001)
        assert await values(again) == list(range(100))

    run(main)


def test_an_unread_one_is_freed(run):
    class Source:
        def __aiter__(self):
            return items()

    async def main():
        source = Source()
        found = weakref.ref(source)
        rows = uvarrow.stream(source)
        branch = rows.tee()
        merged = uvarrow.merge(uvarrow.stream(TABLE), uvarrow.stream(source))
        del source, rows, branch, merged
        gc.collect()
        return found() is None

    assert run(main)


def test_options_of_other_sources(run):
    async def main():
        for options, text in (({"interrupt": print}, "interrupt is for"),
                              ({"device_type": 2}, "device_type is for"),
                              ({"window": -1}, "window is negative"),
                              ({"max_bytes": "x"}, "max_bytes must")):
            with pytest.raises((TypeError, ValueError), match=text):
                uvarrow.stream(items(), **options)
        with pytest.raises(TypeError, match="result of source.* awaited"):
            await uvarrow.stream(lambda: items()).read_all()

    run(main)


# ---- lists ------------------------------------------------------------------

def test_a_list_of_sources_is_one_after_the_other(run):
    async def main():
        rows = uvarrow.stream([items(), TABLE, lambda: TABLE, items,
                               uvarrow.stream(TABLE), [TABLE, BATCHES[0]]])
        return await values(rows)

    assert run(main) == [*range(100)] * 6 + [*range(10)]


def test_a_list_with_something_else(run):
    async def main():
        for source in [items(), 5], [[5]], [lambda: TABLE, "a.parquet"]:
            with pytest.raises(TypeError, match="source"):
                await uvarrow.stream(source).read_all()

    run(main)


def test_a_stream_is_given_back(run):
    async def main():
        rows = uvarrow.stream(TABLE)
        assert uvarrow.stream(rows) is rows
        return await values(rows)

    assert run(main) == list(range(100))


# ---- files ------------------------------------------------------------------

@pytest.fixture
def folder(tmp_path):
    for name, new in ("a.arrow", pa.ipc.new_file), ("a.arrows", pa.ipc.new_stream):
        with pa.OSFile(str(tmp_path / name), "wb") as file:
            with new(file, TABLE.schema) as writer:
                writer.write_table(TABLE)
    pyarrow.parquet.write_table(TABLE, tmp_path / "a.parquet")
    (tmp_path / "a.csv").write_text("n\n" + "\n".join(map(str, range(100))))
    (tmp_path / "a.jsonl").write_text(
        "\n".join(f'{{"n": {i}}}' for i in range(100)))
    return tmp_path


@pytest.mark.parametrize("name", ["a.arrow", "a.arrows", "a.parquet", "a.csv",
                                  "a.jsonl"])
def test_a_file(run, folder, name):
    async def main():
        assert await values(uvarrow.file(folder / name)) == list(range(100))
        return await values(uvarrow.file(str(folder / name), window=2))

    assert run(main) == list(range(100))


def test_a_format_and_an_open_file(run, folder):
    async def main():
        os.rename(folder / "a.parquet", folder / "b")
        assert await values(uvarrow.file(folder / "b", format="parquet")) == list(
            range(100))
        with open(folder / "a.arrow", "rb") as file:
            rows = uvarrow.file(file)
        return await values(rows)

    assert run(main) == list(range(100))


@pytest.mark.parametrize("name", ["a.arrow", "a.arrows"])
def test_a_mapped_file(run, folder, name):
    async def main():
        with open(folder / name, "rb") as file:
            assert await values(uvarrow.file(file, mmap=True)) == list(range(100))
        return await uvarrow.file(folder / name, mmap=True).read_all()

    [batch] = run(main)
    (folder / name).unlink()
    assert batch.to_pyarrow().column(0).to_pylist() == list(range(100))
    with pytest.raises(ValueError, match="mmap is for Arrow IPC, not for format"):
        uvarrow.file(folder / "a.parquet", mmap=True)


def test_files_that_cannot_be_read(run, folder):
    async def main():
        with pytest.raises(uvarrow.Error, match="^.*none.arrow: "):
            await uvarrow.file(folder / "none.arrow").read_all()
        with pytest.raises(FileNotFoundError, match="none.parquet"):
            await uvarrow.file(folder / "none.parquet").read_all()
        (folder / "bad.arrow").write_bytes(b"no Arrow at all")
        with pytest.raises(uvarrow.Error, match="bad.arrow"):
            await uvarrow.file(folder / "bad.arrow").read_all()
        closed = open(folder / "a.arrow", "rb")
        closed.close()
        for path, options, text in (
                (5, {}, "path must be a path or an open file, not int"),
                ("", {}, "path is empty"), ("a\0", {}, "path has a NUL"),
                (io.BytesIO(), {}, "path has no descriptor"),
                (closed, {}, "path has no descriptor"),
                ("x", {"format": "xml"}, "format must be"),
                ("x", {"window": -1}, "window is negative")):
            with pytest.raises((TypeError, ValueError), match=text):
                uvarrow.file(path, **options)
        with open(folder / "a.csv") as file:
            with pytest.raises(ValueError, match="format 'csv' is read from a"):
                uvarrow.file(file, format="csv")

    run(main)


# ---- readers of bytes -------------------------------------------------------

async def pieces(size=100, data=None):
    data = ipc_bytes() if data is None else data
    for i in range(0, len(data), size):
        await anyio.lowlevel.checkpoint()
        yield data[i:i + size]


class Receives:
    """As a stream of trio, or of anyio."""

    def __init__(self, name, end):
        self._data = ipc_bytes()
        setattr(self, name, self._take)
        self._end = end

    async def _take(self, most):
        await anyio.lowlevel.checkpoint()
        part, self._data = self._data[:most], self._data[most:]
        if not part and self._end is not None:
            raise self._end
        return part


@pytest.mark.parametrize("reader", [
    lambda: pieces(), lambda: pieces(7), lambda: Receives("receive_some", None),
    lambda: Receives("receive", anyio.EndOfStream()),
    lambda: Receives("read", None)])
def test_a_reader(run, reader):
    async def main():
        return await values(uvarrow.ipc_reader(reader()))

    assert run(main) == list(range(100))


@pytest.mark.parametrize("kind", ["asyncio", "uvloop"])
def test_a_stream_reader(kind):
    async def main():
        async def serve(reader, writer):
            writer.write(ipc_bytes())
            await writer.drain()
            writer.close()

        server = await asyncio.start_server(serve, "127.0.0.1")
        reader, writer = await asyncio.open_connection(
            *server.sockets[0].getsockname())
        found = await values(uvarrow.ipc_reader(reader))
        writer.close()
        server.close()
        await server.wait_closed()
        return found

    assert run_on(kind, main) == list(range(100))


def test_a_socket(run):
    async def main():
        ours, theirs = socket.socketpair()
        with ours, theirs:
            ours.sendall(ipc_bytes() + b"more")
            found = await values(uvarrow.ipc_reader(theirs))
            assert theirs.fileno() >= 0
        return found

    assert run(main) == list(range(100))


def test_a_reader_that_fails(run):
    async def fails():
        yield ipc_bytes()[:300]
        raise KeyError("lost")

    async def main():
        with pytest.raises(KeyError, match="lost"):
            await uvarrow.ipc_reader(fails()).read_all()
        with pytest.raises(uvarrow.Error, match="reader"):
            await uvarrow.ipc_reader(pieces(data=ipc_bytes()[:-9])).read_all()
        for item in "text", 5, None:
            with pytest.raises(TypeError, match="an item of reader must be bytes"):
                await uvarrow.ipc_reader(items([item])).read_all()
        for wrong in 5, "text", [b"x"], io.BytesIO():
            with pytest.raises(TypeError, match="reader must be a socket"):
                uvarrow.ipc_reader(wrong)

    run(main)


def test_the_error_of_a_reader_comes_before_its_end(run, monkeypatch):
    pairs, was_open, make = [], [], socket.socketpair

    class Lost(Exception):
        def __str__(self): # the stream keeps the text when it is told
            was_open.append(pairs[-1][0].fileno() >= 0)
            return "lost"

    async def fails():
        raise Lost
        yield

    async def main():
        with pytest.raises(Lost):
            await uvarrow.ipc_reader(fails()).read_all()

    monkeypatch.setattr(socket, "socketpair",
                        lambda: pairs.append(make()) or pairs[-1])
    run(main)
    assert was_open[0]


def test_a_reader_that_stands_still(run):
    async def main():
        closed = []

        async def stuck():
            try:
                yield ipc_bytes()[:-300]
                await anyio.sleep_forever()
            finally:
                closed.append(True)

        async with uvarrow.ipc_reader(stuck()) as rows:
            await anext(rows)
        with anyio.fail_after(10):
            while not closed:
                await anyio.lowlevel.checkpoint()

    run(main)


def test_an_unread_reader(run):
    async def main():
        rows = uvarrow.ipc_reader(pieces())
        await rows.aclose(seconds=None)
        del rows
        gc.collect()

    run(main)
