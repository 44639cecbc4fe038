# SPDX-License-Identifier: Apache-2.0
"""What a database has, and partitions of a result. Partitions have only a
driver of the tests, in C, which the build makes."""
import os

import pyarrow as pa
import pytest

import uvarrow
from uvarrow.adbc import Pool, Table

pytest.importorskip("adbc_driver_sqlite")
FAKE = os.environ.get("UVA_TEST_FAKE_DRIVER")
needs_fake = pytest.mark.skipif(not FAKE, reason="no driver with partitions")


@pytest.fixture
def pool(tmp_path):
    with Pool("sqlite", uri=str(tmp_path / "flights.db")) as made:
        yield made


async def fill(pool):
    await pool.ingest("flights", pa.table({"day": [1], "carrier": ["UA"]}),
                      mode="create").read_all()
    await pool.execute("CREATE VIEW days AS SELECT day FROM flights")


def test_tables(run, pool):
    async def main():
        await fill(pool)
        assert await pool.tables() == [Table("main", "", "flights", "table"),
                                       Table("main", "", "days", "view")]
        assert [one.name for one in await pool.tables(types=["view"])] == ["days"]
        assert [one.name for one in await pool.tables(table="f%")] == ["flights"]
        assert await pool.tables(catalog="x", schema=None) == []

    run(main)


def test_objects(run, pool):
    async def main():
        await fill(pool)
        async with pool.objects(table="flights", busy=30.0) as rows:
            found = [one for batch in await rows.read_all()
                     for one in batch.to_pyarrow().to_pylist()]
        table, = found[0]["catalog_db_schemas"][0]["db_schema_tables"]
        assert [one["column_name"] for one in table["table_columns"]] == [
            "day", "carrier"]
        for depth, expected in (("catalogs", None), ("schemas", [None])):
            rows = pool.objects(depth=depth)
            of = (await rows.read_all())[0].to_pyarrow().to_pylist()[0]
            schemas = of["catalog_db_schemas"]
            assert (schemas if expected is None else
                    [one["db_schema_tables"] for one in schemas]) == expected

    run(main)


def test_table_schema(run, pool):
    async def main():
        await fill(pool)
        schema = await pool.table_schema("flights")
        assert schema.names == ["day", "carrier"]
        with pytest.raises(uvarrow.Error, match="no such table: main.x"):
            await pool.table_schema("x")
        async with pool.session(autocommit=True) as session:
            await session.execute("CREATE TEMPORARY TABLE mine (a INTEGER)")
            assert (await session.table_schema("mine", catalog="temp")).names == [
                "a"]
            assert [one.catalog for one in await session.tables()][-1] == "temp"

    run(main)


def test_what_is_refused(run, pool):
    async def main():
        for call, text in (
                (lambda: pool.objects(depth="rows"), "depth must be"),
                (lambda: pool.objects(types="view"), "types must be a list"),
                (lambda: pool.objects(types=[1]), "an item of types must be"),
                (lambda: pool.objects(table=1), "table must be a str"),
                (lambda: pool.objects(schema="\0"), "schema has a NUL"),
                (lambda: pool.objects(busy=-1), "busy is negative"),
                (lambda: uvarrow.partition(pool, "x"), "partition must be bytes"),
                (lambda: uvarrow.partition(5, b"x"), "pool must be a Pool"),
                (lambda: uvarrow.partition(pool, b"x", window="x"), "window")):
            with pytest.raises((TypeError, ValueError), match=text):
                call()
        for call, text in ((lambda: pool.table_schema(5), "table must be"),
                           (lambda: pool.query_partitions(5), "sql must be")):
            with pytest.raises(TypeError, match=text):
                await call()
        with pytest.raises(uvarrow.Error, match="cannot be partitioned"):
            await pool.query_partitions("SELECT 1")
        with pytest.raises(uvarrow.Error):
            await uvarrow.partition(pool, b"x").read_all()
        pool.close()
        for call in (pool.objects, lambda: uvarrow.partition(pool, b"x")):
            with pytest.raises(RuntimeError, match="the pool is closed"):
                call()

    run(main)


@needs_fake
def test_partitions_are_read_by_another_pool(run):
    async def main():
        with Pool(FAKE) as pool, Pool(FAKE) as other:
            parts = await pool.query_partitions("partitions 3")
            assert parts == [b"rows 1", b"rows 2", b"rows 3"]
            rows = uvarrow.merge(*(uvarrow.partition(other, one)
                                   for one in parts))
            assert sum(map(len, await rows.read_all())) == 6
            rows = uvarrow.partition(other, memoryview(parts[2]), window=1)
            assert sum(map(len, await rows.read_all())) == 3
            assert await pool.query_partitions("partitions 0") == []

    run(main)


@needs_fake
def test_partitions_are_read_together_and_again(run):
    async def main():
        with Pool(FAKE, connections=2) as pool:
            parts = await pool.query_partitions("partitions 5")
            rows = uvarrow.partitions(pool, parts, retries=2, open=10, between=10)
            assert sum(map(len, await rows.read_all())) == 15
            assert [one.stream for one in rows.stats()[:2]] == [
                "partition 1 of 5", "partition 1 of 5"]
            assert await uvarrow.partitions(pool, []).read_all() == []
            rows = uvarrow.partitions(pool, (b"rows 2", b"batch 1 fails", b"rows 3"),
                                      keep_going=True)
            got = []
            with pytest.raises(uvarrow.Error, match=r"\] partition 2 of 3: "):
                async for batch in rows:
                    got.append(batch)
            assert len(got) == 2 + 1 + 3

    run(main)


def test_partitions_are_checked(pool):
    for call, text in (
            (lambda: uvarrow.partitions(5, []), "pool must be a Pool"),
            (lambda: uvarrow.partitions(pool, b"x"), "partitions must be a list"),
            (lambda: uvarrow.partitions(pool, ["x"]), "an item of partitions"),
            (lambda: uvarrow.partitions(pool, [], retries=-1), "retries"),
            (lambda: uvarrow.partitions(pool, [], between="x"), "between")):
        with pytest.raises((TypeError, ValueError), match=text):
            call()


@needs_fake
def test_a_partition_that_fails(run):
    async def main():
        with Pool(FAKE) as pool:
            with pytest.raises(uvarrow.Error):
                await uvarrow.partition(pool, b"execute fails").read_all()
            with pytest.raises(uvarrow.Error):
                await pool.query_partitions("hollow1")

    run(main)
