# SPDX-License-Identifier: Apache-2.0
"""The other way: batches that the event loop makes or reads, for a thread."""
import ctypes
import threading

import anyio
import pyarrow as pa
import pytest

import uvarrow
from conftest import in_thread

SCHEMA = pa.schema([("n", pa.int64())])


def batch_of(*values):
    return pa.record_batch({"n": pa.array(values, pa.int64())})


async def numbers(count):
    for i in range(count):
        yield batch_of(i)


async def read(reader, function):
    """The thread's results of the reader."""
    results = []
    await in_thread(lambda: results.append(function(reader)))
    return results[0]


def test_pyarrow_reads_an_asynchronous_iterable(run):
    async def main():
        return await read(uvarrow.to_reader(numbers(100), SCHEMA), pa.table)

    assert run(main).column("n").to_pylist() == list(range(100))


def duckdb_scan(connection, reader):
    return connection.execute("SELECT sum(n) FROM reader")


def duckdb_register(connection, reader):
    connection.register("given", reader)
    return connection.execute("SELECT sum(n) FROM given")


def duckdb_from_arrow(connection, reader):
    return connection.from_arrow(reader).aggregate("sum(n)")


@pytest.mark.parametrize("way", [duckdb_scan, duckdb_register,
                                 duckdb_from_arrow])
def test_duckdb_reads_each_kind_of_reader(run, way):
    """It asks for the schema first, and then for the stream."""
    duckdb = pytest.importorskip("duckdb")

    def query(reader):
        with duckdb.connect() as connection:
            return way(connection, reader).fetchall()[0][0]

    async def main():
        async with uvarrow.stream([batch_of(1, 2), batch_of(3)]) as rows:
            return (await read(uvarrow.to_reader(numbers(100), SCHEMA), query),
                    await read(rows.to_reader(), query))

    assert run(main) == (4950, 6)


def rows_of_nanoarrow(reader):
    return pytest.importorskip("nanoarrow").ArrayStream(reader).read_all()


def rows_of_pandas(reader):
    return pytest.importorskip("pandas").DataFrame.from_arrow(reader)


def rows_of_dataset(reader):
    dataset = pytest.importorskip("pyarrow.dataset")
    return dataset.Scanner.from_batches(reader).to_table()


@pytest.mark.parametrize("way", [
    pa.table, pa.RecordBatchReader.from_stream, rows_of_nanoarrow,
    rows_of_pandas, rows_of_dataset])
def test_libraries_read_a_reader(run, way):
    def count(reader):
        rows = way(reader)
        return len(rows.read_all() if isinstance(rows, pa.RecordBatchReader)
                   else rows)

    async def main():
        async with uvarrow.stream([batch_of(1, 2), batch_of(3)]) as rows:
            return await read(rows.to_reader(), count)

    assert run(main) == 3


def test_a_closed_stream_is_no_end_for_a_reader(run):
    """Not if it is the iterable, and not if it is read itself."""
    def refused(reader):
        with pytest.raises(OSError) as caught:
            pa.table(reader)
        return str(caught.value)

    async def main():
        rows = uvarrow.stream([batch_of(1), batch_of(2)])
        await anext(rows)
        await rows.aclose()
        with pytest.raises(uvarrow.Error, match="closed"):
            rows.to_reader()
        given = await read(uvarrow.to_reader(rows, SCHEMA), refused)
        async with uvarrow.stream([batch_of(1), batch_of(2)]) as rows:
            reader = rows.to_reader()
        return given, await read(reader, refused)

    given, itself = run(main)
    assert "before its end" in given
    assert "closed" in itself


def test_the_schema_of_a_reader_leaves_it_to_be_read(run):
    def both(reader):
        first, again = pa.schema(reader), pa.schema(reader)
        table = pa.table(reader)
        assert first == again == table.schema == pa.schema(reader) == SCHEMA
        return table.num_rows

    async def main():
        async with uvarrow.stream([batch_of(1, 2)]) as rows:
            return await read(rows.to_reader(), both)

    assert run(main) == 2


def test_a_reader_that_was_read_gives_no_schema(run):
    def used(reader):
        pa.table(reader)
        with pytest.raises(ValueError, match="has been used"):
            reader.__arrow_c_schema__()

    async def main():
        async with uvarrow.stream([batch_of(1, 2)]) as rows:
            await read(rows.to_reader(), used)

    run(main)


def test_a_schema_that_does_not_come_is_reported(run):
    def fails():
        raise ValueError("no such file")

    def ask(reader):
        for _ in range(2):
            with pytest.raises(uvarrow.Error, match="no such file"):
                reader.__arrow_c_schema__()

    async def main():
        async with uvarrow.stream(fails) as rows:
            await read(rows.to_reader(), ask)

    run(main)


def test_what_is_no_capsule_of_a_stream_has_no_schema():
    capsule = SCHEMA.__arrow_c_schema__()
    for wrong in (capsule, 3):
        with pytest.raises(TypeError):
            uvarrow.Reader(wrong).__arrow_c_schema__()
    used = pa.table({"n": [1]}).__arrow_c_stream__()
    pa.RecordBatchReader._import_from_c_capsule(used)
    with pytest.raises(ValueError, match="has been used"):
        uvarrow.Reader(used).__arrow_c_schema__()


def test_polars_reads_without_a_deadlock(run):
    """Its import holds the GIL, which the writing loop needs."""
    polars = pytest.importorskip("polars")

    async def main():
        return await read(uvarrow.to_reader(numbers(100), SCHEMA, window=2),
                          polars.DataFrame)

    assert run(main)["n"].to_list() == list(range(100))


class Stream(ctypes.Structure):
    """struct ArrowArrayStream; its functions are called with the GIL held."""
    _fields_ = [("get_schema", ctypes.c_void_p),
                ("get_next", ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p,
                                               ctypes.c_void_p)),
                ("get_last_error", ctypes.c_void_p),
                ("release", ctypes.c_void_p),
                ("private_data", ctypes.c_void_p)]


def test_a_consumer_that_holds_the_gil_does_not_block_the_loop(run):
    def hold(reader):
        capsule = reader.__arrow_c_stream__()
        address = ctypes.pythonapi.PyCapsule_GetPointer
        address.restype = ctypes.c_void_p
        address.argtypes = ctypes.py_object, ctypes.c_char_p
        stream = Stream.from_address(address(capsule, b"arrow_array_stream"))
        array = ctypes.create_string_buffer(80)
        assert stream.get_next(ctypes.addressof(stream),
                               ctypes.addressof(array)) == 0
        batch = pa.RecordBatch._import_from_c(ctypes.addressof(array), SCHEMA)
        return batch.to_pydict()

    async def source(event):
        await event.wait()
        yield batch_of(1)

    async def main():
        event = anyio.Event()
        started = threading.Event()

        def begin(reader):
            started.set()
            return hold(reader)

        async with anyio.create_task_group() as group:
            async def set_when_started():
                await in_thread(started.wait)
                event.set()

            group.start_soon(set_when_started)
            return await read(uvarrow.to_reader(source(event), SCHEMA), begin)

    assert run(main) == {"n": [1]}


def test_adbc_ingests_an_asynchronous_iterable(run):
    dbapi = pytest.importorskip("adbc_driver_sqlite.dbapi")

    def ingest(reader):
        with dbapi.connect() as connection, connection.cursor() as cursor:
            cursor.adbc_ingest("rows", pa.RecordBatchReader.from_stream(reader))
            cursor.execute("SELECT sum(n) FROM rows")
            return cursor.fetchone()[0]

    async def main():
        return await read(uvarrow.to_reader(numbers(100), SCHEMA), ingest)

    assert run(main) == 4950


def test_a_stream_as_a_reader(run):
    async def main():
        stream = uvarrow.stream(batch_of(i) for i in range(50))
        stream.filter(lambda batch: batch.ordinal % 2 == 0)
        return await read(stream.to_reader(), pa.table)

    assert run(main).num_rows == 25


def test_the_iterable_waits_for_the_reader(run):
    made = []

    async def source():
        for i in range(100):
            made.append(i)
            yield batch_of(i)

    async def main():
        reader = pa.RecordBatchReader.from_stream(
            uvarrow.to_reader(source(), SCHEMA, window=4))
        for i in range(100):
            assert (await read(reader, next)).column(0)[0].as_py() == i
            assert len(made) <= i + 1 + 4 + 4 + 2

    run(main)


def test_the_reader_waits_for_the_iterable(run):
    async def source(event):
        await event.wait()
        yield batch_of(1)

    async def main():
        event = anyio.Event()
        started = threading.Event()
        reader = uvarrow.to_reader(source(event), SCHEMA)

        def wait(reader):
            started.set()
            return pa.table(reader)

        async with anyio.create_task_group() as group:
            async def set_when_started():
                await in_thread(started.wait)
                event.set()

            group.start_soon(set_when_started)
            return (await read(reader, wait)).num_rows

    assert run(main) == 1


def test_an_exception_of_the_iterable_reaches_the_reader(run):
    async def source():
        yield batch_of(1)
        raise KeyError("mine")

    def fail(reader):
        with pytest.raises(OSError, match="KeyError: 'mine'"):
            pa.table(reader)

    async def main():
        await read(uvarrow.to_reader(source(), SCHEMA), fail)

    run(main)


def test_a_batch_of_another_schema_reaches_the_reader_as_an_error(run):
    async def source():
        yield pa.record_batch({"n": ["text"]})

    def fail(reader):
        with pytest.raises(OSError, match="another schema"):
            pa.table(reader)

    async def main():
        await read(uvarrow.to_reader(source(), SCHEMA), fail)

    run(main)


def test_releasing_the_reader_closes_the_iterable(run):
    closed = []

    async def main():
        event = anyio.Event()

        async def source():
            try:
                for i in range(1000000):
                    yield batch_of(i)
            finally:
                closed.append(True)
                event.set()

        reader = pa.RecordBatchReader.from_stream(
            uvarrow.to_reader(source(), SCHEMA))
        await read(reader, next)
        reader.close()
        del reader
        await event.wait()

    run(main)
    assert closed


def test_reading_on_the_loop_fails_instead_of_waiting(run):
    async def main():
        with pytest.raises(OSError):
            pa.table(uvarrow.to_reader(numbers(3), SCHEMA))
        with pytest.raises(OSError):
            pa.table(uvarrow.stream([batch_of(1)]).to_reader())

    run(main)


def test_releasing_the_reader_ends_a_wait_of_the_iterable(run):
    """It may wait for something that never comes."""
    waits, closed = threading.Event(), threading.Event()

    async def source():
        try:
            yield batch_of(1)
            waits.set()
            await anyio.sleep_forever()
        finally:
            closed.set()

    async def main():
        reader = pa.RecordBatchReader.from_stream(
            uvarrow.to_reader(source(), SCHEMA))
        await read(reader, next)
        await in_thread(waits.wait)
        await in_thread(reader.close)
        del reader
        await in_thread(closed.wait)

    run(main)


def test_cancelling_the_writing_task_of_a_reader(run):
    """The loop ends, while a thread reads."""
    results = []

    async def source():
        yield batch_of(1)
        await anyio.sleep_forever()

    def wait(reader, started):
        reader = pa.RecordBatchReader.from_stream(reader)
        next(reader)
        started.set()
        with pytest.raises(OSError):
            next(reader)
        results.append(True)

    async def main():
        started = threading.Event()
        threads.append(threading.Thread(
            target=wait,
            args=(uvarrow.to_reader(source(), SCHEMA), started)))
        threads[0].start()
        await in_thread(started.wait)

    threads = []
    run(main)
    threads[0].join()
    assert results == [True]
