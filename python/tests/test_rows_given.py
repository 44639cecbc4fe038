# SPDX-License-Identifier: Apache-2.0
"""Rows for a database that come one after the other: lists, generators,
asynchronous generators, of batches, tables and dicts."""
import asyncio
import contextlib
import inspect
import itertools
import threading

import anyio
import pyarrow as pa
import pytest

import uvarrow
import uvarrow.adbc
from conftest import in_thread

ONE = pa.record_batch({"a": [1, 2], "b": ["x", "y"]})
TWO = pa.table({"a": [3], "b": ["z"]})
DICTS = [{"a": 1, "b": "x"}, {"b": "y", "a": 2}, {"a": 3, "b": "z"}]
ROWS = [{"a": 1, "b": "x"}, {"a": 2, "b": "y"}, {"a": 3, "b": "z"}]


async def later(items):
    for item in items:
        await anyio.lowlevel.checkpoint()
        yield item


class Items:
    """No generator."""

    def __init__(self, items):
        self._items = iter(items)

    def __aiter__(self):
        return self

    async def __anext__(self):
        await anyio.lowlevel.checkpoint()
        for item in self._items:
            return item
        raise StopAsyncIteration


GIVEN = {"list": list, "tuple": tuple, "iterator": iter,
         "generator": lambda items: (item for item in items),
         "asynchronous generator": later, "asynchronous iterator": Items}


@pytest.fixture(params=GIVEN)
def given(request):
    return GIVEN[request.param]


@pytest.fixture
def small(tmp_path):
    """A pool of SQLite."""
    pytest.importorskip("adbc_driver_sqlite")
    with uvarrow.adbc.Pool("sqlite", uri=str(tmp_path / "a.db")) as pool:
        yield pool


async def rows_of(pool, *query, **options):
    async with pool.query(*query, **options) as rows:
        return [row async for batch in rows
                for row in batch.to_pyarrow().to_pylist()]


async def ingested(pool, data, mode="replace"):
    async with pool.ingest("given", data, mode=mode) as rows:
        assert [batch async for batch in rows] == []
    return await rows_of(pool, "SELECT * FROM given ORDER BY a")


@pytest.mark.parametrize("items", [
    [ONE, TWO], [TWO, ONE], DICTS, [ONE, {"a": 3, "b": "z"}],
    [{"a": 3, "b": "z"}, ONE]], ids=range(5))
def test_rows_are_ingested(run, small, given, items):
    assert run(lambda: ingested(small, given(items))) == ROWS


def test_each_database_ingests_them(run, database, given):
    assert run(lambda: ingested(database[1], given([ONE, TWO]),
                                mode="create_append")) == ROWS
    run(lambda: database[1].execute("DROP TABLE given"))


def test_dicts_become_batches_of_many_rows(run, small, given):
    async def main():
        rows = given([{"a": i, "b": None if i % 2 else i / 2}
                      for i in range(2500)])
        return await ingested(small, rows)

    assert run(main) == [{"a": i, "b": None if i % 2 else i / 2}
                         for i in range(2500)]


def test_a_dict_may_be_used_again(run, small):
    def rows():
        row = {}
        for i in range(3):
            row["a"] = i
            yield row

    assert run(lambda: ingested(small, rows())) == [
        {"a": 0}, {"a": 1}, {"a": 2}]


def test_a_stream_of_another_pool_is_ingested(run, small):
    async def main():
        rows = small.query("SELECT 1 AS a UNION ALL SELECT 2 ORDER BY a")
        return await ingested(small, rows)

    assert run(main) == [{"a": 1}, {"a": 2}]


def test_rows_are_parameters(run, small):
    async def main():
        await small.execute("CREATE TABLE t (a, b)")
        for given in (iter, later):
            assert await small.execute("INSERT INTO t VALUES (?, ?)",
                                       given([ONE, TWO])) == 3
            assert await small.execute("INSERT INTO t VALUES (:b, :a)",
                                       given(DICTS), by_name=True) == 3
        return await rows_of(small, "SELECT sum(a) AS a, sum(b) AS b FROM t")

    assert run(main) == [{"a": 12.0, "b": 12.0}]


# ---- impossible rows --------------------------------------------------------

class Mine(Exception):
    pass


@pytest.mark.parametrize("kind", ["generator", "asynchronous generator"])
@pytest.mark.parametrize("text", ["", "x" * 5000, "é" * 5000])
@pytest.mark.parametrize("before", [[], [ONE], [ONE] * 20, DICTS])
def test_what_the_source_raises_is_raised(run, database, before, text, kind):
    error = Mine(text)

    def failing():
        yield from before
        raise error

    async def failing_later():
        for item in before:
            yield item
        raise error

    async def main():
        rows = failing() if kind == "generator" else failing_later()
        with pytest.raises(Mine) as info:
            await ingested(database[1], rows, mode="create_append")
        assert info.value is error
        assert info.traceback[-1].name.startswith("failing")

    run(main)


@pytest.mark.parametrize("items, error, text", [
    ([1], TypeError, "an item of data must be Arrow data.* not int"),
    ([None], TypeError, "an item of data must be Arrow data.* not NoneType"),
    (["abc"], TypeError, "an item of data must be Arrow data.* not str"),
    ([ONE, 1], TypeError, "an item of data must be Arrow data.* not int"),
    ([ONE, pa.record_batch({"a": [1]})], ValueError, "an item of data.*schema"),
    ([ONE, {"a": 1, "b": 1}], ValueError, "schema"),
    ([pa.array([1])], TypeError, "an item of data.*rows"),
    ([{}], TypeError, "^uvarrow: data: a dict has texts as names"),
    ([{1: 2}], TypeError, "^uvarrow: data: a dict has texts as names"),
    ([{"a\0": 2}], ValueError, "a name of data has a NUL"),
    ([{"a": 1}, {"b": 1}], ValueError, "other names than the first"),
    ([{"a": 1}, {"a": 1, "b": 1}], ValueError, "other names than the first"),
    ([{"a": 1}, {"a": "x"}], TypeError, "data that Arrow has no type for"),
    ([{"a": object()}], TypeError, "data that Arrow has no type for"),
    ([], ValueError, "data is empty"),
])
def test_items_that_are_no_rows_are_refused(run, small, given, items, error,
                                            text):
    async def main():
        with pytest.raises(error, match=text):
            await ingested(small, given(items))

    run(main)


@pytest.mark.parametrize("data, hint", [
    (3, "not int"), ("abc", "not str"), (b"abc", "not bytes"), (None, "NoneType"),
    ({"a": [1]}, "make a table of it"), (later, "not function"),
    ([1], "an item of data"), ((None,), "an item of data")])
def test_what_is_no_data_is_refused_in_the_call(run, small, data, hint):
    async def main():
        with pytest.raises(TypeError, match=hint):
            small.ingest("given", data)

    run(main)


def test_items_of_parameters_are_refused(run, small):
    async def main():
        for given in (iter, later):
            for items, text in (([1], "an item of parameters must be Arrow"),
                                ([{"a": 1}], "by_name=True")):
                with pytest.raises(TypeError, match=text):
                    await rows_of(small, "SELECT ?", given(items))

    run(main)


# ---- the end --------------------------------------------------------------

def test_an_ingest_that_is_not_read_closes_its_source(run, small):
    class Closed(Items):
        def __init__(self, items):
            super().__init__(items)
            self.closed = anyio.Event()

        async def aclose(self):
            self.closed.set()

    async def main():
        one, other = Closed([ONE]), Closed([ONE])
        async with small.ingest("given", one):
            pass
        await one.closed.wait()
        small.ingest("given", other)
        await other.closed.wait()

    run(main)


async def is_closed_with(rows, source, read):
    """Whether a generator that is kept is closed with its reader."""
    async with rows:
        await read(rows)
        await rows.aclose(seconds=None)
    return inspect.getgeneratorstate(source) == inspect.GEN_CLOSED


@pytest.mark.parametrize("items", [[ONE, 1], [ONE, pa.table({"a": [1]}), TWO]])
def test_a_generator_is_closed_with_an_ingest_that_fails(run, small, items):
    async def read(rows):
        with pytest.raises((TypeError, ValueError), match="an item of data"):
            await rows.read_all()

    async def main():
        source = (item for item in [*items, ONE])
        rows = small.ingest("given", source, mode="create")
        assert await is_closed_with(rows, source, read)

    run(main)


@pytest.mark.parametrize("start", [
    lambda pool, rows: pool.ingest("given", rows, mode="create"),
    lambda pool, rows: pool.query("SELECT ?, ?", rows)],
    ids=["data", "parameters"])
def test_a_generator_is_closed_with_what_is_cancelled(run, small, start):
    async def main():
        entered = threading.Event()

        def endless():
            for _ in itertools.count():
                yield ONE
                entered.set()

        async def take(rows):
            with contextlib.suppress(uvarrow.Error):
                async for _ in rows:
                    pass

        async def read(rows):
            group.start_soon(take, rows)
            await in_thread(entered.wait)
            rows.cancel()

        source = endless()
        async with anyio.create_task_group() as group:
            assert await is_closed_with(start(small, source), source, read)

    run(main)


def test_a_generator_that_no_worker_has_read_is_left(run, small):
    async def main():
        source = (item for item in [ONE, TWO])
        async with small.ingest("given", source):
            pass
        assert await ingested(small, source) == ROWS

    run(main)


def test_an_item_that_is_refused_leaves_no_generator_open(run, small,
                                                          monkeypatch):
    """trio warns of each that is."""
    reported = []
    monkeypatch.setattr("sys.unraisablehook",
                        lambda it: reported.append(str(it.exc_value)))

    async def main():
        with pytest.raises(TypeError, match="an item of data.*rows"):
            await ingested(small, later([pa.array([1])]))

    run(main)
    assert not reported


def test_a_source_that_waits_is_closed_with_the_ingest(run, small):
    async def main():
        waits, closed = anyio.Event(), anyio.Event()

        async def rows():
            try:
                yield ONE
                waits.set()
                await anyio.sleep_forever()
            finally:
                closed.set()

        async with anyio.create_task_group() as group:
            group.start_soon(ingested, small, rows())
            await waits.wait()
            group.cancel_scope.cancel()
        await closed.wait()

    run(main)


def test_a_loop_that_ends_closes_the_source(small):
    async def rows():
        yield ONE
        await asyncio.sleep(3600)

    async def main():
        task = asyncio.create_task(ingested(small, rows()))
        await asyncio.sleep(0)
        return task

    assert asyncio.run(main()).cancelled()
