# SPDX-License-Identifier: Apache-2.0
"""The inputs of a query of a pool: values by name and in order, rows, or no values."""
import errno

import pyarrow as pa
import pytest

import uvarrow
import uvarrow.adbc

NO_ROWS = {
    "a batch": pa.record_batch({"a": pa.array([], pa.int32())}),
    "a table": pa.table({"a": pa.array([], pa.int32())}),
    "no batch": pa.table({"a": pa.chunked_array([], pa.int32())}),
    "no column": pa.table({}),
}


async def rows_of(pool, *query, **options):
    async with pool.query(*query, **options) as rows:
        return [row async for batch in rows
                for row in batch.to_pyarrow().to_pylist()]


def sql(kind, text):
    """The same parameters in the words of each database."""
    return text.replace("?", "$1") if kind == "postgresql" else text


# ---- by name ----------------------------------------------------------------

@pytest.mark.parametrize("sign", ":@$")
@pytest.mark.parametrize("values", [
    {"b": 2, "a": 1}, {"a": 1, "b": 2}, [{"a": 1, "b": 2}]])
def test_a_dict_is_bound_by_name(run, tmp_path, sign, values):
    pytest.importorskip("adbc_driver_sqlite")
    with uvarrow.adbc.Pool("sqlite", uri=str(tmp_path / "a.db")) as pool:
        assert run(rows_of, pool, f"SELECT {sign}b AS b, {sign}a AS a",
                   values) == [{"b": 2, "a": 1}]


def test_dicts_are_rows(run, tmp_path):
    pytest.importorskip("adbc_driver_sqlite")

    async def main(pool):
        await pool.execute("CREATE TABLE t (a, b)")
        assert await pool.execute("INSERT INTO t VALUES (:a, :b)", [
            {"a": 1, "b": "x"}, {"b": "y", "a": 2}]) == 2
        return await rows_of(pool, "SELECT * FROM t")

    with uvarrow.adbc.Pool("sqlite", uri=str(tmp_path / "a.db")) as pool:
        assert run(main, pool) == [{"a": 1, "b": "x"}, {"a": 2, "b": "y"}]


@pytest.mark.parametrize("by_name", [False, True])
def test_arrow_data_is_bound_by_name_on_request(run, tmp_path, by_name):
    pytest.importorskip("adbc_driver_sqlite")
    data = pa.table({"a": [1, 3], "b": [2, 4]})
    with uvarrow.adbc.Pool("sqlite", uri=str(tmp_path / "a.db")) as pool:
        assert run(lambda: rows_of(pool, "SELECT :b AS b, :a AS a", data,
                                   by_name=by_name)) == (
            [{"b": 2, "a": 1}, {"b": 4, "a": 3}] if by_name
            else [{"b": 1, "a": 2}, {"b": 3, "a": 4}])


def test_names_that_are_not_those_of_the_query_are_refused(run, tmp_path):
    pytest.importorskip("adbc_driver_sqlite")

    async def main(pool):
        for values in ({"a": 1, "x": 2}, {"a": 1}, {"a": 1, "b": 2, "c": 3},
                       {"a": 1, ":a": 2}):
            with pytest.raises(uvarrow.Error, match="parameter"):
                await rows_of(pool, "SELECT :b AS b, :a AS a", values)

    with uvarrow.adbc.Pool("sqlite", uri=str(tmp_path / "a.db")) as pool:
        run(main, pool)


def test_a_driver_that_binds_in_order_refuses_names(run, database):
    kind, pool = database
    if kind == "sqlite":
        pytest.skip("this one binds by name")
    text = {"duckdb": "SELECT $b AS b, $a AS a",
            "postgresql": "SELECT $1::int AS b, $2::int AS a"}[kind]

    async def main():
        for values in ({"b": 2, "a": 1}, [{"a": 1, "b": 2}]):
            with pytest.raises(uvarrow.Error, match="by_name") as info:
                await rows_of(pool, text, values)
            assert info.value.errno == errno.ENOTSUP
        return await rows_of(pool, text, [2, 1])

    assert run(main) == [{"b": 2, "a": 1}]


# ---- no parameters ----------------------------------------------------------

@pytest.mark.parametrize("nothing", [[], (), {}, None])
def test_no_values_are_no_parameters(run, database, nothing):
    assert run(rows_of, database[1], "SELECT 1 AS v", nothing) == [{"v": 1}]


@pytest.mark.parametrize("rows", NO_ROWS)
def test_no_rows_execute_nothing(run, database, rows):
    kind, pool = database
    data = NO_ROWS[rows]

    async def main():
        await pool.execute("DROP TABLE IF EXISTS t")
        await pool.execute("CREATE TABLE t (a INTEGER)")
        for update in (True, False):
            assert await pool.execute(sql(kind, "INSERT INTO t VALUES (?)"),
                                      data, update=update) == 0
        assert await rows_of(pool, "SELECT * FROM t") == []
        assert await rows_of(pool, "SELECT 1 AS v", data) == []

    run(main)


def test_batches_without_rows_are_left_out(run, database):
    kind, pool = database
    data = pa.table({"a": pa.chunked_array(
        [pa.array(rows, pa.int32()) for rows in ([], [5], [], [6], [7], [])])})

    async def main():
        await pool.execute("DROP TABLE IF EXISTS t")
        await pool.execute("CREATE TABLE t (a INTEGER)")
        await pool.execute(sql(kind, "INSERT INTO t VALUES (?)"), data)
        return await rows_of(pool, "SELECT a FROM t ORDER BY a")

    assert run(main) == [{"a": 5}, {"a": 6}, {"a": 7}]


@pytest.mark.parametrize("mode", ["create", "append", "replace",
                                  "create_append"])
@pytest.mark.parametrize("rows", ["a batch", "a table", "no batch"])
def test_an_ingest_of_no_rows_has_a_table(run, database, mode, rows):
    pool = database[1]

    async def main():
        await pool.execute("DROP TABLE IF EXISTS t")
        if mode == "append":
            await pool.execute("CREATE TABLE t (a INTEGER)")
        await pool.ingest("t", NO_ROWS[rows], mode=mode).read_all()
        return await rows_of(pool, "SELECT * FROM t")

    assert run(main) == []


# ---- unsuitable parameters --------------------------------------------------

@pytest.mark.parametrize("parameters, error, text", [
    ("abc", TypeError, "parameters must be a list"),
    (b"abc", TypeError, "parameters must be a list"),
    (3, TypeError, "parameters must be a list"),
    ({1, 2}, TypeError, "parameters must be a list"),
    ({1: 2}, TypeError, "^uvarrow: parameters: a dict has texts"),
    ([{}], TypeError, "^uvarrow: parameters: a dict has texts"),
    ([{"a": 1}, 2], TypeError, "^uvarrow: parameters .* number 1 is no dict"),
    ((1, 2, {"a": 1}), TypeError, "^uvarrow: parameters .* number 2 is a dict"),
    ([{"a": 1}, {"b": 1}], ValueError, "^uvarrow: .* number 1 has other names"),
    ({"a\0b": 1}, ValueError, "a name of parameters has a NUL"),
    ([{"a": 1, "a\0": 1}], ValueError, "a name of parameters has a NUL"),
    ([{"a": 1}, {"a": 1, "b": 1}], ValueError, "number 1 has other names"),
])
def test_what_is_no_parameter_is_refused(run, tmp_path, parameters, error,
                                         text):
    async def main(pool):
        with pytest.raises(error, match=text):
            pool.query("SELECT 1", parameters)

    with uvarrow.adbc.Pool("sqlite", uri=str(tmp_path / "a.db")) as pool:
        run(main, pool)


def test_values_without_names_are_not_bound_by_name(run, tmp_path):
    async def main(pool):
        with pytest.raises(ValueError, match="^uvarrow: by_name: the parameters"):
            pool.query("SELECT ?", [1], by_name=True)
        with pytest.raises(TypeError, match="data must be Arrow data"):
            pool.ingest("t", {"a": [1]})

    with uvarrow.adbc.Pool("sqlite", uri=str(tmp_path / "a.db")) as pool:
        run(main, pool)
