# SPDX-License-Identifier: Apache-2.0
"""Rows that are written into real databases: all rows or no row, however an
ingest ends. The pools have one connection: a query that comes next has waited
until the one before was closed."""
import re
import threading

import anyio
import pyarrow as pa
import pytest

import databases
import uvarrow
import uvarrow.adbc

SCHEMA = pa.schema({"n": pa.int64()})
MODES = "create", "append", "replace", "create_append"


@pytest.fixture(params=databases.KINDS)
def pool(request, tmp_path):
    with databases.pool_of(request.param, request, tmp_path,
                           connections=1) as pool:
        yield pool


def batch(i):
    return pa.record_batch({"n": range(1000 * i, 1000 * i + 1000)},
                           schema=SCHEMA)


async def fill(pool, mode):
    """Makes the table as it is before an ingest: with one row, or not there."""
    await pool.execute("DROP TABLE IF EXISTS t", update=False)
    if mode != "create":
        await pool.execute("CREATE TABLE t (n BIGINT)", update=False)
        await pool.execute("INSERT INTO t VALUES (-7)")


async def rows_of(pool, table="t"):
    """The rows of the table; None: no such table."""
    try:
        rows = pool.query(f"SELECT n FROM {table} ORDER BY n")
        async with rows:
            return [n for b in [b async for b in rows]
                    for n in b.to_pyarrow().column(0).to_pylist()]
    except uvarrow.Error as error:
        assert re.search("no such table|not exist", error.strerror), error
        return None


async def check_as_before(pool, mode, tenth=None):
    """The table has the rows that fill() gave it."""
    rows = await rows_of(pool)
    assert rows == (None if mode == "create" else [-7]), (mode, tenth)


@pytest.mark.parametrize("mode", MODES)
def test_all_rows_are_written(run, pool, mode):
    async def main():
        await fill(pool, mode)
        await pool.ingest("t", pa.Table.from_batches([batch(0), batch(1)]),
                          mode=mode).read_all()
        before = [-7] if "append" in mode else []
        assert await rows_of(pool) == before + list(range(2000))

    run(main)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("is_async", [False, True])
def test_a_source_that_raises_writes_nothing(run, pool, mode, is_async):
    def rows():
        yield from map(batch, range(5))
        raise ValueError("in the middle")

    async def source():
        for each in rows():
            yield each

    async def main():
        await fill(pool, mode)
        data = (uvarrow.to_reader(source(), SCHEMA) if is_async else
                pa.RecordBatchReader.from_batches(SCHEMA, rows()))
        with pytest.raises((uvarrow.Error, ValueError), match="in the middle"):
            await pool.ingest("t", data, mode=mode).read_all()
        await check_as_before(pool, mode)

    run(main)


@pytest.mark.parametrize("waits", [False, True])
def test_an_ingest_cancelled_at_each_tenth_writes_nothing(run, pool, waits):
    """The source gives so many batches; then it waits, or gives more without an
    end. It is closed."""
    async def cancel_at(tenth, mode):
        reached, closed = anyio.Event(), anyio.Event()

        async def source():
            try:
                for i in range(10 ** 9):
                    if i == tenth:
                        reached.set()
                        if waits:
                            await anyio.sleep_forever()
                    yield batch(i)
                    await anyio.sleep(0)
            finally:
                closed.set()

        async def load():
            await pool.ingest("t", uvarrow.to_reader(source(), SCHEMA),
                              mode=mode).read_all()

        async with anyio.create_task_group() as group:
            group.start_soon(load)
            await reached.wait()
            group.cancel_scope.cancel()
        await closed.wait()

    async def main():
        for tenth in range(1, 11):
            mode = MODES[tenth % len(MODES)]
            await fill(pool, mode)
            await cancel_at(tenth, mode)
            await check_as_before(pool, mode, tenth)

    run(main)


def test_a_source_that_blocks_keeps_no_connection(run, pool):
    """It cannot be woken, and is closed when it goes on."""
    entered, opened, closed = (threading.Event() for _ in range(3))

    def rows():
        try:
            yield batch(0)
            entered.set()
            opened.wait()
            yield batch(1)
        finally:
            closed.set()

    async def load():
        data = pa.RecordBatchReader.from_batches(SCHEMA, rows())
        await pool.ingest("t", data).read_all()

    async def main():
        await fill(pool, "append")
        async with anyio.create_task_group() as group:
            group.start_soon(load)
            await anyio.to_thread.run_sync(entered.wait)
            group.cancel_scope.cancel()
        await check_as_before(pool, "append")
        assert not closed.is_set()
        opened.set()
        await anyio.to_thread.run_sync(closed.wait)

    try:
        run(main)
    finally:
        opened.set()


def test_an_ingest_that_is_left_writes_nothing(run, pool):
    async def main():
        reached, closed = anyio.Event(), anyio.Event()

        async def source():
            try:
                for i in range(10 ** 9):
                    if i == 5:
                        reached.set()
                    yield batch(i)
                    await anyio.sleep(0)
            finally:
                closed.set()

        async def read(rows):
            with pytest.raises((uvarrow.Error, StopAsyncIteration)):
                await anext(rows)

        await fill(pool, "replace")
        async with anyio.create_task_group() as group:
            async with pool.ingest("t", uvarrow.to_reader(source(), SCHEMA),
                                   mode="replace") as rows:
                group.start_soon(read, rows)
                await reached.wait()
        await closed.wait()
        await check_as_before(pool, "replace")

    run(main)


def test_a_limit_ends_an_ingest(run, pool):
    async def source():
        for i in range(10 ** 9):
            yield batch(i)
            await anyio.sleep(0)

    async def main():
        await fill(pool, "append")
        with pytest.raises(TimeoutError):
            await pool.ingest("t", uvarrow.to_reader(source(), SCHEMA)).timeout(
                total=0.1).read_all()
        await check_as_before(pool, "append")

    run(main)


LONG = {
    "sqlite": "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r) "
              "SELECT max(n) FROM r",
    "duckdb": "SELECT sum(a.i * b.i) FROM range(1000000) a(i), "
              "range(1000000) b(i)",
    "postgresql": "SELECT pg_sleep(1000)"}


@pytest.mark.parametrize("limit", ["first", "between", "total", "busy"])
def test_a_limit_ends_a_query_whose_first_row_is_late(run, database, limit):
    kind, pool = database

    async def main():
        with pytest.raises(TimeoutError, match=limit):
            if limit == "busy":
                await pool.query(LONG[kind], busy=0.01).read_all()
            else:
                await pool.query(LONG[kind]).timeout(
                    **{limit: 0.01}).read_all()

    run(main)


@pytest.mark.parametrize("how, least", [
    ({}, 30), ({"batch_bytes": 2**24}, 1), ({"batch_bytes": 2**16}, 150),
    ({"options": {"adbc.postgresql.batch_size_hint_bytes": "65536"}}, 150)])
def test_batches_have_the_size_that_is_wanted(run, postgresql, how, least):
    async def main():
        with uvarrow.adbc.Pool("postgresql", uri=postgresql) as pool:
            batches = await pool.query(
                "SELECT g FROM generate_series(1::bigint, 1000000) g",
                **how).read_all()
            assert sum(len(b) for b in batches) == 1000000
            assert least <= len(batches) < 2 * least + 2

    run(main)


def test_a_size_of_batches_is_a_number(run, pool):
    async def main():
        for size in -1, 1.5, "1":
            with pytest.raises((TypeError, ValueError), match="batch_bytes"):
                pool.query("SELECT 1", batch_bytes=size)

    run(main)


@pytest.mark.parametrize("busy", [-1, "1", float("nan")])
def test_a_limit_is_a_time(run, pool, busy):
    async def main():
        with pytest.raises((TypeError, ValueError), match="busy"):
            pool.query("SELECT 1", busy=busy)
        with pytest.raises((TypeError, ValueError), match="busy"):
            pool.ingest("t", batch(0), busy=busy)
        with pytest.raises((TypeError, ValueError), match="busy"):
            await pool.execute("SELECT 1", busy=busy)

    run(main)


def test_rows_of_parameters_are_all_written_or_none(run, pool):
    """In batches of one row, which alone DuckDB's driver takes."""
    def values(*numbers):
        return pa.Table.from_batches(
            [pa.record_batch({"n": [n]}, schema=SCHEMA) for n in numbers])

    async def main():
        await pool.execute("DROP TABLE IF EXISTS u", update=False)
        await pool.execute("CREATE TABLE u (n BIGINT PRIMARY KEY)",
                           update=False)
        insert = "INSERT INTO u VALUES ($1)"
        with pytest.raises(uvarrow.Error):
            await pool.execute(insert, values(1, 2, 1))
        await pool.execute(insert, values(3, 4))
        await pool.execute(insert, [5])
        return await rows_of(pool, "u")

    assert run(main) == [3, 4, 5]
