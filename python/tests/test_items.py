# SPDX-License-Identifier: Apache-2.0
"""Sources that are iterables of streams: tables, frames and readers, each of
which is read to its end; and arrays without rows."""
import asyncio
import ctypes
import gc

import nanoarrow
import numpy as np
import pyarrow as pa
import pytest

import uvarrow
from conftest import run_on
from device_stream import DeviceStream

CHUNKS = [pa.record_batch({"n": [i, i + 1]}) for i in range(0, 6, 2)]
TABLE = pa.Table.from_batches(CHUNKS)
EMPTY = TABLE.schema.empty_table()
NO_CHUNKS = pa.Table.from_batches([], TABLE.schema)


def polars_frames():
    polars = pytest.importorskip("polars")
    return [polars.DataFrame(TABLE.slice(0, 4)), polars.DataFrame(TABLE.slice(4))]


def pandas_frames():
    pytest.importorskip("pandas")
    return [TABLE.slice(0, 4).to_pandas(), TABLE.slice(4).to_pandas()]


def duckdb_relations():
    duckdb = pytest.importorskip("duckdb")
    connection = duckdb.connect()
    return [connection.sql("SELECT * FROM range(0, 4) t(n)"),
            connection.sql("SELECT * FROM range(4, 6) t(n)")]


SOURCES = {
    "tables": lambda: [TABLE.slice(0, 3), TABLE.slice(3)],
    "readers": lambda: [TABLE.slice(0, 3).to_reader(),
                        TABLE.slice(3).to_reader()],
    "a generator": lambda: (TABLE.slice(i, 1) for i in range(6)),
    "in a function": lambda: lambda: iter([TABLE]),
    "batches among them": lambda: [CHUNKS[0], TABLE.slice(2, 2), CHUNKS[2]],
    "an empty one first": lambda: iter([EMPTY, TABLE]),
    "one without batches first": lambda: iter([NO_CHUNKS, TABLE, NO_CHUNKS]),
    "device streams": lambda: [DeviceStream(TABLE.schema, CHUNKS[:1]),
                               DeviceStream(TABLE.schema, CHUNKS[1:])],
    "polars": polars_frames,
    "pandas": pandas_frames,
    "duckdb": duckdb_relations,
    "streams of uvarrow": lambda: [uvarrow.stream(part).to_reader()
                                   for part in CHUNKS],
}


async def values(source, **how):
    async with uvarrow.stream(source, **how) as rows:
        found = [batch.to_pyarrow().column(0).to_pylist()
                 async for batch in rows]
        await rows.aclose(seconds=None)
    return [value for batch in found for value in batch]


@pytest.mark.parametrize("make", SOURCES.values(), ids=SOURCES)
def test_each_item_is_read_to_its_end(run, make):
    async def main():
        return await values(make())

    assert run(main) == list(range(6))


class Both:
    """Has rows as a stream, and as an array only if they are of one piece."""

    def __init__(self, table):
        self._table = table

    def __arrow_c_stream__(self, requested_schema=None):
        return self._table.__arrow_c_stream__()

    def __arrow_c_array__(self, requested_schema=None):
        if self._table.column(0).num_chunks > 1:
            raise NotImplementedError("more than one piece")
        return self._table.to_batches()[0].__arrow_c_array__()


@pytest.mark.parametrize("make", [
    lambda: Both(TABLE), lambda: [Both(TABLE)],
    lambda: [Both(TABLE.slice(0, 1)), Both(TABLE.slice(1))]])
def test_what_has_no_array_now_is_read_as_a_stream(run, make):
    async def main():
        return await values(make())

    assert run(main) == list(range(6))


def test_an_array_that_cannot_be_had_is_reported(run):
    class Broken:
        def __arrow_c_array__(self, requested_schema=None):
            raise KeyError("mine")

    async def main():
        await values([CHUNKS[0], Broken()])

    with pytest.raises(KeyError, match="mine"):
        run(main)


def test_items_are_read_as_device_streams_where_these_are_expected(run):
    async def main():
        return await values([DeviceStream(TABLE.schema, CHUNKS[:2]),
                             TABLE.slice(4)], device_type=1)

    assert run(main) == list(range(6))


def test_an_item_on_another_device_is_refused(run):
    class Elsewhere(DeviceStream):
        def _get_next(self, stream, out):
            code = super()._get_next(stream, out)
            ctypes.c_int32.from_address(out + 88).value = 2
            return code

    async def main():
        await values([Elsewhere(TABLE.schema, CHUNKS)])

    with pytest.raises(ValueError, match="type 2, where type 1"):
        run(main)


class NotFilled(DeviceStream):
    """Its schema is released, and so it is left."""

    def _spoil(self, out):
        pa.Schema._import_from_c(out)
        ctypes.memset(out, 0, 72)
        return 0


class NoFormat(DeviceStream):
    """Its field has no format."""

    def _spoil(self, out):
        children = ctypes.c_void_p.from_address(out + 40).value
        child = ctypes.c_void_p.from_address(children).value
        ctypes.c_void_p.from_address(child).value = None
        return 0


@pytest.mark.parametrize("kind", [NotFilled, NoFormat])
@pytest.mark.parametrize("front", [[], [CHUNKS[0]]])
def test_a_schema_that_is_not_filled_in_is_refused(run, kind, front):
    async def main():
        await values([*front, kind(TABLE.schema, CHUNKS)])

    with pytest.raises(ValueError, match="schema of an item of source was not"):
        run(main)


@pytest.mark.parametrize("kind", [NotFilled, NoFormat])
def test_a_source_without_a_schema_is_refused(run, kind):
    async def main():
        await values(kind(TABLE.schema, CHUNKS))

    with pytest.raises(ValueError, match="schema of source was not filled in"):
        run(main)


@pytest.mark.parametrize("kind", [NotFilled, NoFormat])
def test_a_reader_without_a_schema_has_none(kind):
    stream = kind(TABLE.schema, CHUNKS)
    reader = uvarrow.DeviceReader(stream.__arrow_c_device_stream__())
    with pytest.raises(ValueError, match="schema of capsule was not filled in"):
        reader.__arrow_c_schema__()


def test_only_empty_items_have_a_schema(run):
    async def main():
        async with uvarrow.stream([NO_CHUNKS, NO_CHUNKS]) as rows:
            assert (await rows.schema()).names == ["n"]
            assert [batch async for batch in rows] == []

    run(main)


@pytest.mark.parametrize("items", [
    [TABLE, pa.table({"m": [1]})],
    [pa.table({"m": [1]}), CHUNKS[0]], [CHUNKS[0], pa.table({"n": ["a"]})],
    [NO_CHUNKS, pa.table({"n": ["a"]})]], ids=range(4))
def test_an_item_of_another_schema_is_refused(run, items):
    async def main():
        await values(items)

    with pytest.raises(ValueError, match="an item of source has another schema"):
        run(main)


def test_a_failure_of_an_item_arrives(run):
    def failing():
        yield CHUNKS[0]
        raise KeyError("mine")

    async def main():
        rows = uvarrow.stream([TABLE, pa.RecordBatchReader.from_batches(
            TABLE.schema, failing()), TABLE])
        got = []
        with pytest.raises(uvarrow.Error, match="mine"):
            async for batch in rows:
                got.append(len(batch))
        await rows.aclose(seconds=None)
        return got

    assert run(main) == [2, 2, 2, 2]


def test_what_is_closed_early_releases_its_item(run):
    gc.collect()
    before = pa.total_allocated_bytes()

    async def main():
        source = (DeviceStream(TABLE.schema, CHUNKS) for _ in range(3))
        items = list(source)
        async with uvarrow.stream(iter(items), window=1) as rows:
            await anext(rows)
            await rows.aclose(seconds=None)
        return [item.released for item in items]

    released = run(main)
    assert released[0] == 1 and released[2] == 0
    gc.collect()
    assert pa.total_allocated_bytes() == before


# ---- arrays without rows ----------------------------------------------------

@pytest.mark.parametrize("source", [
    lambda: pa.array([1, 2]), lambda: pa.chunked_array([[1], [2]]),
    lambda: [pa.array([1])], lambda: [pa.chunked_array([[1]])],
    lambda: lambda: pa.array([1]),
    lambda: pa.chunked_array([[1]]).__arrow_c_stream__(),
    lambda: nanoarrow.Array([1, 2], nanoarrow.int64())], ids=range(7))
def test_an_array_that_is_none_of_rows_is_refused(run, source):
    async def main():
        await uvarrow.stream(source()).read_all()

    with pytest.raises(TypeError, match="source must have rows.*pyarrow.table"):
        run(main)


def test_a_type_is_no_schema(run):
    async def items():
        yield CHUNKS[0]

    async def main():
        with pytest.raises(TypeError, match="schema must have rows"):
            uvarrow.stream([TABLE]).map(lambda batch: batch, pa.int64())
        with pytest.raises(TypeError, match="schema must have rows"):
            uvarrow.to_reader(items(), pa.int64())

    run(main)


def test_an_array_of_structs_is_rows(run):
    array = pa.StructArray.from_arrays([pa.array([1, 2])], names=["n"])

    async def main():
        assert await values(array) == [1, 2]
        assert await values(pa.chunked_array([array, array])) == [1, 2, 1, 2]
        assert await values([array, TABLE.slice(0, 1)]) == [1, 2, 0]

    run(main)


# ---- objects that are no source ---------------------------------------------

@pytest.mark.parametrize("source,hint", [
    (42, "needs __arrow_c_stream__"), (None, "needs __arrow_c_stream__"),
    ("x.parquet", r"uvarrow.file\(path\)"), (b"x", "pyarrow.ipc.open_stream"),
    (memoryview(b"x"), "pyarrow.ipc.open_stream"),
    ({"n": [1]}, "pyarrow.table"), ([1], "an item of source must be"),
    (("x",), "an item of source must be")], ids=range(8))
def test_what_is_no_source_is_refused_with_what_to_do(run, source, hint):
    async def main():
        with pytest.raises(TypeError, match=hint) as info:
            uvarrow.stream(source)
        assert "source" in str(info.value)

    run(main)


def test_files_are_no_sources(tmp_path):
    path = tmp_path / "x.arrow"
    path.write_bytes(b"x")

    async def main():
        with pytest.raises(TypeError, match=r"uvarrow.file\(path\)"):
            uvarrow.stream(path)
        for mode in "r", "rb":
            with open(path, mode) as file:
                with pytest.raises(TypeError, match=r"uvarrow.file\(file\)"):
                    uvarrow.stream(file)

    run_on("asyncio", main)


async def wanted(batch):
    return True


@pytest.mark.parametrize("stage", ["map", "filter"])
def test_a_stage_that_gets_a_coroutine_fails(run, stage, recwarn):
    async def main():
        rows = uvarrow.stream(CHUNKS)
        await getattr(rows, stage)(lambda batch: wanted(batch)).read_all()

    with pytest.raises(TypeError, match="function of .* coroutine.*awaited"):
        run(main)
    gc.collect()
    assert [str(w.message) for w in recwarn if "never" in str(w.message)] == []


@pytest.mark.parametrize("result,kept", [
    (True, 6), (False, 0), (1, 6), (0, 0), (0.0, 0), (np.bool_(True), 6),
    (np.bool_(False), 0)], ids=range(7))
def test_what_a_filter_may_give(run, result, kept):
    async def main():
        rows = uvarrow.stream(CHUNKS).filter(lambda batch: result)
        return sum([len(batch) async for batch in rows])

    assert run(main) == kept


def test_a_coroutine_of_a_trace_is_reported(monkeypatch, recwarn):
    reported = []
    monkeypatch.setattr("sys.unraisablehook",
                        lambda it: reported.append(str(it.exc_value)))

    async def main():
        await uvarrow.stream(CHUNKS).trace(
            lambda *event: wanted(event)).read_all()

    asyncio.run(main())
    gc.collect()
    assert reported and all("function of trace()" in one for one in reported)
    assert [str(w.message) for w in recwarn if "never" in str(w.message)] == []


def test_a_coroutine_of_an_interrupt_is_reported_once(monkeypatch, gate,
                                                     recwarn):
    reported = []
    monkeypatch.setattr("sys.unraisablehook",
                        lambda it: reported.append(str(it.exc_value)))
    source = gate(CHUNKS)
    calls = []

    def interrupt():
        calls.append(1)
        if len(calls) == 3:
            source.opened.set()
        return wanted(None)

    async def main():
        async with uvarrow.stream(source, interrupt=interrupt) as rows:
            waits = asyncio.ensure_future(rows.schema())
            await source.wait_entered()
            rows.cancel()
            with pytest.raises(uvarrow.Error):
                await waits
            await rows.aclose(seconds=None)

    asyncio.run(main())
    gc.collect()
    assert len(reported) == 1 and "interrupt()" in reported[0]
    assert [str(w.message) for w in recwarn if "never" in str(w.message)] == []
