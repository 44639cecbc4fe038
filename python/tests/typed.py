# SPDX-License-Identifier: Apache-2.0
"""A program that uses every public name as its types allow: checked by
test_types.py, and never run."""
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing
from typing import Any, assert_type

import pyarrow as pa

import uvarrow
import uvarrow.adbc
import uvarrow.gevent


def batches() -> list[pa.RecordBatch]:
    return []


async def read(table: pa.Table) -> int:
    total = 0
    async with uvarrow.stream(table, window=16, max_bytes=1 << 20) as rows:
        assert_type(rows, uvarrow.Stream)
        assert_type(await rows.schema(), uvarrow.Schema)
        async for batch in rows:
            assert_type(batch, uvarrow.Batch)
            total += len(batch)
    async with uvarrow.stream(batches, device_type=2) as there:
        assert_type(there, uvarrow.Stream)
        assert_type(there.to_device_reader(), uvarrow.DeviceReader)
    first = await anext(uvarrow.stream([batch for batch in batches()]))
    assert_type(first, uvarrow.Batch)
    return total


def pass_on(batch: uvarrow.Batch) -> uvarrow.Batch:
    column = batch.column("n")
    assert_type(column, uvarrow.Column)
    assert_type(batch.column(0), uvarrow.Column)
    assert_type(len(column), int)
    assert_type(column.__dlpack_device__(), tuple[int, int])
    return uvarrow.from_dlpack(column, name="n")


def double(batch: uvarrow.Batch) -> pa.RecordBatch:
    return batch.to_pyarrow()


async def build(table: pa.Table) -> list[uvarrow.StageStats]:
    rows = (uvarrow.stream(lambda: table, interrupt=lambda: None)
            .map(double).filter(lambda batch: len(batch) > 1).cast(table.schema)
            .limit(10).rebatch(rows=5).timeout(total=1.0).parallel(2)
            .trace(lambda kind, count, code, seconds: print(kind.upper()))
            .name("rows"))
    try:
        await uvarrow.merge(rows, uvarrow.stream(table)).read_all()
    except uvarrow.Error as error:
        assert_type(error.metadata, dict[str, str])
    return rows.stats()


def shown(batch: uvarrow.Batch, rows: uvarrow.Stream) -> uvarrow.Stream:
    assert_type(batch.num_rows + batch.num_columns, int)
    assert_type(batch.column_names, list[str])
    print(pa.table(batch), batch.to_pandas(), batch.to_polars())
    return uvarrow.stream(batch.select(pa.array([True]))) and rows.progress("n")


async def later(batch: uvarrow.Batch) -> pa.RecordBatch:
    return batch.to_pyarrow()


def halves(batch: uvarrow.Batch) -> Iterator[pa.RecordBatch]:
    yield batch.to_pyarrow()


async def more(table: pa.Table) -> None:
    uvarrow.configure(memory_bytes=1 << 30, measure=True)
    rows = (uvarrow.stream(table).map(later, concurrency=4, ordered=False)
            .transform(halves).throttle(batches=100).priority(1)
            .retry(lambda failure: uvarrow.stream(table) if failure.rows else None))
    branch = rows.tee(slow="drop_old")
    assert_type(branch, uvarrow.Stream)
    rows.pause()
    rows.resume()
    both = uvarrow.concat(rows, uvarrow.stream(table), schema=table.schema)
    assert_type(both.stats()[0].busy, float)
    assert_type(uvarrow.stats(), uvarrow.RuntimeStats)
    with uvarrow.adbc.Pool("sqlite") as pool:
        assert_type(await pool.tables(), list[uvarrow.adbc.Table])
        assert_type(await pool.table_schema("t"), uvarrow.Schema)
        parts = await pool.partitions("SELECT 1")
        uvarrow.merge(*[pool.partition(part, retry=5) for part in parts])
        pool.partition(parts, parallel=2, timeout={"open": 5, "between": 30.5})
        pool.query("SELECT 1", parallel=8, retry=5, timeout=30)
    await uvarrow.drain(5.0)


async def out(batches: AsyncIterator[uvarrow.Batch], schema: pa.Schema) -> None:
    reader = uvarrow.to_reader(batches, schema)
    assert_type(reader, uvarrow.Reader)
    async for chunk in uvarrow.ipc(uvarrow.stream(reader), compression="lz4"):
        assert_type(chunk, memoryview)
    async with aclosing(uvarrow.ipc(uvarrow.stream(reader))) as chunks:
        assert_type(await anext(chunks), memoryview)


async def texts(rows: uvarrow.Stream, other: uvarrow.Stream) -> None:
    async for chunk in uvarrow.csv(rows, delimiter=";", header=False, null="NA"):
        assert_type(chunk, memoryview)
    async for data in uvarrow.json(other, array=True, as_bytes=True):
        assert_type(data, bytes)
    assert_type(await anext(uvarrow.ipc(rows, file=True)), memoryview)


class Request:
    scope: dict[str, Any] = {}


def greenlets(rows: uvarrow.Stream) -> None:
    assert_type(uvarrow.gevent.run(rows.read_all()), list[uvarrow.Batch])
    for chunk in uvarrow.gevent.each(uvarrow.csv(rows)):
        assert_type(chunk, memoryview)
    uvarrow.gevent.close()


async def serve(rows: uvarrow.Stream, request: Request) -> uvarrow.asgi.Response:
    answer = uvarrow.asgi.response(rows, request, formats=["csv", "json"])
    assert_type(answer.status_code, int)
    return uvarrow.asgi.response(rows, {"headers": []}, headers={"a": "b"})


async def query(batch: pa.RecordBatch) -> int:
    with uvarrow.adbc.Pool("sqlite", uri=":memory:") as pool:
        async with pool.query("SELECT ?", [1]) as rows:
            print(rows.metadata)
        await pool.ingest("t", [batch, {"a": 1}]).read_all()
        await pool.ingest("t", pool.query("SELECT 1")).read_all()
        await pool.execute("SELECT ?", iter([batch]))
        return await pool.execute("SELECT 1")


async def transact(batch: pa.RecordBatch) -> None:
    async with uvarrow.adbc.Pool("sqlite", uri=":memory:") as pool:
        async with pool.session() as session, session.transaction():
            await session.execute("SELECT 1")
        async with pool.connection(autocommit=True, timeout=1.5) as other:
            assert_type(other, uvarrow.adbc.Connection)
    waiting = uvarrow.adbc.connect("sqlite:x.db", lock=1.0, timeout=5)
    connection = await waiting
    assert_type(connection, uvarrow.adbc.Connection)
    async with uvarrow.adbc.connect(driver="sqlite") as connection:
        async with connection.transaction(), connection.cursor() as cursor:
            assert_type(cursor, uvarrow.adbc.Cursor)
            assert_type(await cursor.execute("SELECT ?", [1], timeout=1),
                        uvarrow.adbc.Cursor)
            await cursor.execute("SELECT :a", {"a": 1})
            await cursor.executemany("SELECT ?", ((i,) for i in range(3)))
            await cursor.executemany("SELECT :a", [{"a": 1}])
            await cursor.executemany("SELECT ?", batch)
            assert_type(await cursor.fetchone(), tuple[Any, ...] | None)
            assert_type(await cursor.fetchmany(3), list[tuple[Any, ...]])
            async for row in cursor:
                assert_type(row, tuple[Any, ...])
            async for one in cursor.fetch_record_batch():
                print(one.num_rows)
            print(await cursor.fetch_arrow_table(), cursor.description)
            assert_type(await cursor.adbc_ingest("t", [{"a": 1}]), int)
            cursor.arraysize = 5
            assert_type(cursor.rowcount, int)
        try:
            await connection.commit()
        except uvarrow.adbc.IntegrityError as error:
            assert_type(error.metadata, dict[str, str])
        except connection.OperationalError:
            connection.adbc_cancel()
        await connection.rollback()
