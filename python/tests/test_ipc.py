# SPDX-License-Identifier: Apache-2.0
"""Arrow IPC: that other libraries can read it, and that no data is copied."""
import errno
import gc

import anyio
import pyarrow as pa
import pytest

import uvarrow
from conftest import read_cancelled


def rows(size=100000):
    return pa.table({"n": pa.array(range(size)), "t": ["text"] * size})


async def chunks_of(table, **options):
    return [chunk async for chunk in uvarrow.ipc(uvarrow.stream(table),
                                                 **options)]


@pytest.mark.parametrize("compression", [None, "lz4", "zstd"])
def test_pyarrow_reads_it(run, compression):
    chunks = run(lambda: chunks_of(rows(), compression=compression))
    assert all(isinstance(chunk, memoryview) for chunk in chunks)
    assert pa.ipc.open_stream(b"".join(chunks)).read_all() == rows()


def test_bytes_on_request(run):
    chunks = run(lambda: chunks_of(rows(), as_bytes=True))
    assert {type(chunk) for chunk in chunks} == {bytes}
    assert pa.ipc.open_stream(b"".join(chunks)).read_all() == rows()


def test_columns_are_not_copied(run):
    table = rows()
    address = table.column("n").chunk(0).buffers()[1].address
    chunks = run(lambda: chunks_of(table))
    addresses = [pa.py_buffer(chunk).address for chunk in chunks
                 if len(chunk) >= 800000]
    assert address in addresses


def test_chunks_outlive_the_stream(run):
    chunks = run(lambda: chunks_of(rows()))
    gc.collect()
    assert pa.ipc.open_stream(b"".join(chunks)).read_all() == rows()


def test_short_messages_are_one_chunk(run):
    chunks = run(lambda: chunks_of(rows(5)))
    assert len(chunks) == 2  # the schema and the batch, and the end
    assert pa.ipc.open_stream(b"".join(chunks)).read_all() == rows(5)


def test_a_stream_that_was_read_from_is_refused(run):
    async def main():
        rows_left = uvarrow.stream(rows(5))
        async with rows_left:
            await rows_left.schema()
            with pytest.raises(uvarrow.Error) as caught:
                uvarrow.ipc(rows_left)
        return caught.value.errno

    assert run(main) == errno.EBUSY


def test_a_query_that_fails_has_no_chunk(run):
    def source():
        raise KeyError("mine")

    async def main():
        with pytest.raises(KeyError, match="mine"):
            await anext(uvarrow.ipc(uvarrow.stream(source)))

    run(main)


def test_dictionaries(run):
    table = pa.table({"d": pa.array(["a", "b", "a"]).dictionary_encode()})
    chunks = run(lambda: chunks_of(table))
    assert pa.ipc.open_stream(b"".join(chunks)).read_all() == table


def test_a_step_that_is_cancelled_loses_no_chunk(run, gate):
    """Not the first one and not a later one, and the end is a whole end."""
    table = pa.table({"n": range(100)})
    source = gate(table.to_batches(max_chunksize=10), before=5)

    async def main():
        return await read_cancelled(uvarrow.ipc(uvarrow.stream(source)), source)

    assert pa.ipc.open_stream(run(main)).read_all() == table


def test_an_error_ends_the_chunks(run):
    def source():
        yield pa.record_batch({"n": [1]})
        raise KeyError("mine")

    async def main():
        chunks = uvarrow.ipc(uvarrow.stream(source))
        with pytest.raises(KeyError, match="mine"):
            async for _ in chunks:
                pass
        async for _ in chunks:
            raise AssertionError("a chunk behind the end")

    run(main)


def test_two_tasks_do_not_share_the_chunks(run, gate):
    source = gate([pa.record_batch({"n": [1]})])

    async def main():
        chunks = uvarrow.ipc(uvarrow.stream(source))
        async with anyio.create_task_group() as group:
            group.start_soon(anext, chunks)
            await source.wait_entered()
            with pytest.raises(RuntimeError, match="another task"):
                await anext(chunks)
            source.opened.set()
        with pytest.raises(KeyError):
            await chunks.athrow(KeyError("mine"))

    run(main)


def test_chunks_are_not_closed_while_a_task_waits(run, gate):
    """As in a generator: the task would see a whole end."""
    table = pa.table({"n": range(100)})
    source = gate(table.to_batches(max_chunksize=10), before=5)
    got = []

    async def read(chunks):
        async for chunk in chunks:
            got.append(bytes(chunk))

    async def main():
        chunks = uvarrow.ipc(uvarrow.stream(source))
        async with anyio.create_task_group() as group:
            group.start_soon(read, chunks)
            await source.wait_entered()
            with pytest.raises(RuntimeError, match="another task"):
                await chunks.aclose()
            with pytest.raises(RuntimeError, match="another task"):
                await chunks.athrow(KeyError("mine"))
            source.opened.set()

    run(main)
    assert pa.ipc.open_stream(b"".join(got)).read_all() == table


async def closed(rows):
    await rows.aclose()


async def failed(rows):
    """The first step after it raises the reason, which is caught here."""
    rows.cancel()
    with pytest.raises(uvarrow.Error):
        await rows.read_all()


@pytest.mark.parametrize("end", [closed, failed])
@pytest.mark.parametrize("steps", [0, 1, 3])
def test_a_closed_stream_has_no_whole_end(run, end, steps):
    async def main():
        rows_left = uvarrow.stream(rows(1000).to_batches(max_chunksize=1))
        chunks = uvarrow.ipc(rows_left)
        for _ in range(steps):
            await anext(chunks)
        await end(rows_left)
        with pytest.raises(uvarrow.Error) as caught:
            async for _ in chunks:
                pass
        return caught.value.errno

    assert run(main) == errno.ECANCELED


def test_closing_the_stream_ends_a_waiting_step(run, gate):
    source = gate(rows(10).to_batches(max_chunksize=1), before=5)

    async def main():
        rows_left = uvarrow.stream(source, interrupt=source.interrupt)
        async with anyio.create_task_group() as group:
            async def close():
                await source.wait_entered()
                await rows_left.aclose()

            group.start_soon(close)
            with pytest.raises(uvarrow.Error, match="before its end"):
                async for _ in uvarrow.ipc(rows_left):
                    pass

    run(main)


def test_leaving_early_closes_the_source(run, gate):
    source = gate([pa.record_batch({"n": [i]}) for i in range(100)], before=5)

    async def main():
        chunks = uvarrow.ipc(uvarrow.stream(source,
                                            interrupt=source.interrupt))
        await anext(chunks)
        await anext(chunks)
        await chunks.aclose()
        await source.wait_closed()

    run(main)


def test_an_unknown_compression_is_refused(run):
    async def main():
        rows_left = uvarrow.stream(rows(5))
        with pytest.raises(ValueError, match="gzip"):
            await anext(uvarrow.ipc(rows_left, compression="gzip"))

    run(main)
