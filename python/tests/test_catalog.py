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
                (lambda: pool.objects(busy=-1), "busy is negative")):
            with pytest.raises((TypeError, ValueError), match=text):
                call()
        with pytest.raises(TypeError, match="table must be"):
            await pool.table_schema(5)
        pool.close()
        with pytest.raises(RuntimeError, match="the pool is closed"):
            pool.objects()

    run(main)
