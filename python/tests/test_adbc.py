# SPDX-License-Identifier: Apache-2.0
"""Databases: queries of a pool, parameters, ingests, errors, cancels."""
import os
import re

import anyio
import pyarrow as pa
import pytest

import uvarrow
import uvarrow.adbc

pytest.importorskip("adbc_driver_sqlite")

COUNT = """WITH RECURSIVE numbers(n) AS (
    SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < {})
    SELECT n FROM numbers"""


@pytest.fixture
def pool(tmp_path):
    with uvarrow.adbc.Pool("sqlite", uri=str(tmp_path / "rows.db"),
                           connections=4) as pool:
        yield pool


async def table_of(rows):
    async with rows:
        return pa.Table.from_batches([b.to_pyarrow() async for b in rows])


def test_a_query(run, pool):
    async def main():
        return await table_of(pool.query(COUNT.format(5000)))

    assert run(main).column("n").to_pylist() == list(range(1, 5001))


@pytest.mark.parametrize("parameters", [
    [3, "x"], (3, "x"), pa.record_batch({"0": [3], "1": ["x"]}),
    pa.table({"0": [3], "1": ["x"]})])
def test_parameters(run, pool, parameters):
    async def main():
        return await table_of(pool.query("SELECT ?1 + 1 AS a, ?2 AS b",
                                         parameters))

    assert run(main).to_pylist() == [{"a": 4, "b": "x"}]


def test_ingest_and_execute(run, pool):
    async def main():
        data = pa.table({"n": range(1000)})
        rows = pool.ingest("numbers", data, mode="create")
        async with rows:
            assert [batch async for batch in rows] == []
            assert rows.metadata["adbc.rows_affected"] == "1000"
        # this driver counts only without a result
        assert await pool.execute("DELETE FROM numbers WHERE n >= 500",
                                  update=False) == -1
        assert await pool.execute("DELETE FROM numbers WHERE n >= 10") == 490
        return await table_of(pool.query("SELECT sum(n) AS s FROM numbers"))

    assert run(main).to_pylist() == [{"s": 45}]


def test_many_queries_at_once(run, pool):
    async def main():
        totals = []

        async def one(i):
            table = await table_of(pool.query("SELECT ? AS n", [i]))
            totals.append(table.column("n")[0].as_py())

        async with anyio.create_task_group() as group:
            for i in range(50):
                group.start_soon(one, i)
        return totals

    assert sorted(run(main)) == list(range(50))


def test_an_error_has_the_drivers_details(run, pool):
    async def main():
        with pytest.raises(uvarrow.Error) as info:
            await pool.query("SELECT * FROM no_such_table").read_all()
        return info.value

    error = run(main)
    assert "no_such_table" in error.strerror
    assert error.errno > 0
    assert "adbc.status" in error.metadata


def test_a_query_without_an_end_is_cancelled(run, pool):
    async def main():
        endless = COUNT.replace(" WHERE n < {}", "")
        async with pool.query(endless) as rows:
            assert len(await anext(rows)) > 0
        async with pool.query(endless + " LIMIT -1 OFFSET 1000000000") as rows:
            with pytest.raises(TimeoutError):
                with anyio.fail_after(0.001):
                    await rows.schema()
        return await table_of(pool.query("SELECT 1 AS n"))

    assert run(main).num_rows == 1


@pytest.mark.parametrize("limits", [{"first": 0.001}, {"between": 0.001}])
def test_a_limit_of_the_first_batch_counts_while_a_query_executes(
        run, pool, limits):
    """This driver executes before it has the schema."""
    longest = COUNT.format(300000).replace("SELECT n FROM", "SELECT max(n) FROM")

    async def main():
        with pytest.raises(TimeoutError, match="within 1 ms"):
            await table_of(pool.query(longest).timeout(**limits))

    run(main)


def test_a_pool_serves_one_loop_after_another(run, pool):
    async def main():
        return await table_of(pool.query("SELECT 1 AS n"))

    for _ in range(3):
        assert run(main).num_rows == 1


def test_a_closed_pool_is_refused(run, pool):
    pool.close()

    async def main():
        with pytest.raises(RuntimeError, match="closed"):
            pool.query("SELECT 1")

    run(main)


def test_a_driver_that_is_not_there(run):
    async def main():
        pool = uvarrow.adbc.Pool("no_such_driver", uri="x")
        with pytest.raises(uvarrow.Error, match="no_such_driver"):
            await pool.query("SELECT 1").read_all()
        with pytest.raises(ValueError, match="connections"):
            uvarrow.adbc.Pool("sqlite", connections=-1)

    run(main)


@pytest.mark.parametrize("scheme", ["sqlite", "duckdb"])
def test_a_driver_that_is_a_package_is_found_by_its_name(run, tmp_path, scheme):
    pytest.importorskip(f"adbc_driver_{scheme}")

    async def main(**names):
        with uvarrow.adbc.Pool(**names) as pool:
            await pool.execute("CREATE TABLE t AS SELECT 1 AS n")
            return await table_of(pool.query("SELECT * FROM t"))

    for i, names in enumerate([
            {"driver": scheme, "uri": f"{tmp_path}/0"},
            {"uri": f"{scheme}:{tmp_path}/1"},
            {"options": {"uri": f"{scheme}:{tmp_path}/2"}}]):
        assert run(lambda: main(**names)).to_pylist() == [{"n": 1}]
        assert (tmp_path / str(i)).exists()


@pytest.mark.parametrize("scheme", ["sqlite", "duckdb"])
@pytest.mark.parametrize("names", [
    lambda uri: {"uri": uri}, lambda uri: {"options": {"uri": uri}}])
def test_a_uri_without_a_colon_names_no_driver(run, scheme, names):
    """It is no scheme, after which an empty name opened an empty database."""
    pytest.importorskip(f"adbc_driver_{scheme}")

    async def main():
        with uvarrow.adbc.Pool(**names(scheme)) as pool:
            with pytest.raises(uvarrow.Error) as caught:
                await pool.query("SELECT 1").read_all()
        return caught.value.strerror

    assert "whose scheme names one" in run(main)


def test_a_uri_is_given_once():
    with pytest.raises(ValueError, match="^uvarrow: uri is given twice"):
        uvarrow.adbc.Pool("sqlite", uri="a.db", options={"uri": "b.db"})


def test_schemes_are_those_of_the_library():
    path = os.path.join(os.path.dirname(__file__), "../../runtime/adbc/uri.c")
    with open(path) as file:
        pairs = re.findall(r'\{"([a-z+]+)", "([a-z]+)"\}', file.read())
    assert dict(pairs) == uvarrow._driver.SCHEMES


def test_a_pool_with_stages(run, pool):
    async def main():
        rows = uvarrow.merge(*(pool.query(COUNT.format(100))
                               for _ in range(3))).limit(250)
        return await table_of(rows)

    assert run(main).num_rows == 250


# ---- rows that drivers read in their columns alone --------------------------

STRUCTS = pa.StructArray.from_arrays(
    [pa.array([1, 2, 3, 4]), pa.array(["a", "b", "c", "d"])], names=["x", "t"],
    mask=pa.array([False, True, False, False]))


@pytest.fixture(params=["sqlite", "duckdb"])
def database(request, tmp_path):
    pytest.importorskip(request.param) if request.param == "duckdb" else None
    options = {"uri": str(tmp_path / "a.db")} if request.param == "sqlite" \
        else {"options": {"path": str(tmp_path / "a.duckdb")}}
    with uvarrow.adbc.Pool(request.param, connections=1, **options) as one:
        yield one


@pytest.mark.parametrize("array", [
    STRUCTS.slice(2, 2), STRUCTS.slice(2, 1), STRUCTS.slice(3),
    STRUCTS.slice(0, 1)], ids=range(4))
def test_rows_behind_an_offset_are_those_that_are_written(run, database, array):
    async def main():
        await database.ingest("t", pa.chunked_array([array]),
                              mode="create").read_all()
        written = await table_of(database.query("SELECT * FROM t"))
        bound = await table_of(database.query(
            "SELECT ? AS x, ? AS t", pa.chunked_array([array.slice(0, 1)])))
        return written.to_pylist(), list(bound.to_pylist()[0].values())

    written, bound = run(main)
    assert written == array.to_pylist()
    assert bound[-1] == array[0].as_py()["t"]


def test_null_rows_are_not_written(run, database):
    async def main():
        rows = pa.chunked_array([STRUCTS.slice(0, 1), STRUCTS.slice(1, 2)])
        with pytest.raises(uvarrow.Error, match="row 0 of a batch is null"):
            await database.ingest("t", rows, mode="create").read_all()
        with pytest.raises(uvarrow.Error, match="row 1 of a batch is null"):
            await database.query("SELECT ?, ?",
                                 pa.chunked_array([STRUCTS])).read_all()

    run(main)


def test_rows_that_fail_fail_the_ingest(run, database):
    def rows():
        yield pa.record_batch({"x": [1]})
        raise KeyError("mine")

    async def main():
        reader = pa.RecordBatchReader.from_batches(
            pa.schema({"x": pa.int64()}), rows())
        with pytest.raises(uvarrow.Error, match="mine"):
            await database.ingest("t", reader, mode="create").read_all()

    run(main)


def test_arrays_that_are_none_of_rows_are_no_parameters(run, database):
    async def main():
        for array in pa.array([1]), pa.chunked_array([[1]]):
            with pytest.raises((TypeError, ValueError, uvarrow.Error),
                               match="rows|struct"):
                await database.query("SELECT ?", array).read_all()
            with pytest.raises((TypeError, ValueError, uvarrow.Error),
                               match="rows|struct"):
                await database.ingest("t", array, mode="create").read_all()

    run(main)


def test_counts_of_a_pool(run):
    async def body():
        with uvarrow.adbc.Pool("sqlite", connections=2, stuck=3) as pool:
            assert set(pool.stats().values()) == {0}
            async with pool.query(COUNT.format(10**9), window=1) as rows:
                async for _ in rows:
                    assert pool.stats()["used"] == 1
                    break
            now = pool.stats()
        assert now["connections"] == 5
        assert now["queries"] == 1
        assert now["waiting"] == 0
    run(body)


def test_no_connection_is_kept(run):
    """Temporary state ends with each connection."""
    async def body():
        with uvarrow.adbc.Pool("sqlite", uri=":memory:", connections=1,
                               idle=0, keeps_session=True) as pool:
            await pool.execute("CREATE TEMP TABLE t (n INTEGER)")
            with pytest.raises(uvarrow.Error, match="no such table"):
                await pool.execute("INSERT INTO t VALUES (1)")
    run(body)


@pytest.mark.parametrize("uri", [":memory:", "file::memory:"])
def test_memory_is_one_database_of_all_connections(run, uri):
    async def body():
        with uvarrow.adbc.Pool("sqlite", uri=uri) as pool, \
                uvarrow.adbc.Pool("sqlite", uri=uri) as other:
            await pool.execute("CREATE TABLE t (n INTEGER)")
            await pool.execute("INSERT INTO t VALUES (1)")
            with pytest.raises(uvarrow.Error, match="no such column"):
                await pool.execute("SELECT m FROM t")
            with pytest.raises(uvarrow.Error, match="no such table"):
                await other.execute("SELECT n FROM t")
            rows = [pool.query("SELECT n FROM t") for _ in range(4)]
            for each in rows: # each has its own connection
                await each.schema()
            return [(await table_of(each)).to_pylist() for each in rows]
    assert run(body) == [[{"n": 1}]] * 4
