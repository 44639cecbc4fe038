# SPDX-License-Identifier: Apache-2.0
"""Popular sources: each is read whole and compared, closed early, failed where
it can fail, and dropped."""
import decimal
import gc
import warnings

import pyarrow as pa
import pyarrow.csv
import pyarrow.dataset
import pyarrow.parquet
import pytest

import uvarrow
from device_stream import DeviceStream

ROWS = 5000
TABLE = pa.table({
    "n": pa.array(range(ROWS), pa.int64()),
    "t": pa.array([f"row {i}" for i in range(ROWS)]),
    "f": pa.array([i / 4 for i in range(ROWS)], pa.float64()),
})


class Case:
    """How to make a source, and its content; made anew for each use."""

    def __init__(self, tmp_path):
        self.path = tmp_path
        self.interrupt = None
        self.close = lambda: None


def chunked(case):
    return pa.Table.from_batches(TABLE.to_batches(max_chunksize=100))


def reader(case):
    return chunked(case).to_reader()


def parquet(case):
    path = case.path / "rows.parquet"
    pa.parquet.write_table(TABLE, path, row_group_size=500)
    return lambda: pa.dataset.dataset(path).scanner(
        batch_size=200).to_reader()


def dataset(case):
    path = case.path / "rows"
    pa.dataset.write_dataset(TABLE, path, format="parquet",
                             max_rows_per_file=1000, max_rows_per_group=1000)
    return lambda: pa.dataset.dataset(path).scanner(
        batch_size=100, fragment_readahead=1).to_reader()


def csv(case):
    path = case.path / "rows.csv"
    pa.csv.write_csv(TABLE, path)
    return lambda: pa.csv.open_csv(
        path, read_options=pa.csv.ReadOptions(block_size=4096))


def duckdb(case):
    duckdb = pytest.importorskip("duckdb")
    connection = duckdb.connect()
    case.interrupt = connection.interrupt
    case.close = connection.close
    connection.register("given", TABLE)
    return connection.sql("SELECT * FROM given ORDER BY n")


def duckdb_query(case):
    """As docs/python.md has it."""
    connection = pytest.importorskip("duckdb").connect()
    case.interrupt = connection.interrupt
    case.close = connection.close
    connection.register("given", TABLE)
    return lambda: connection.execute(
        "SELECT * FROM given ORDER BY n").to_arrow_reader()


def polars(case):
    return pytest.importorskip("polars").from_arrow(TABLE)


def pandas(case):
    return pytest.importorskip("pandas").DataFrame(TABLE.to_pydict())


def adbc(case):
    dbapi = pytest.importorskip("adbc_driver_sqlite.dbapi")
    path = case.path / "rows.db"
    with dbapi.connect(str(path)) as connection:
        with connection.cursor() as cursor:
            cursor.adbc_ingest("rows", TABLE)
        connection.commit()
    connection = dbapi.connect(str(path))
    cursor = connection.cursor()
    case.interrupt = cursor.adbc_cancel

    def close():
        cursor.close()
        connection.close()

    case.close = close

    def source():
        cursor.execute("SELECT * FROM rows ORDER BY n")
        return cursor.fetch_record_batch()

    return source


def generator(case):
    return (batch for batch in TABLE.to_batches(max_chunksize=100))


def iterable(case):
    return TABLE.to_batches(max_chunksize=100)


def capsule(case):
    return chunked(case).__arrow_c_stream__()


def device(case):
    return DeviceStream(TABLE.schema, TABLE.to_batches(max_chunksize=100))


SOURCES = [chunked, reader, parquet, dataset, csv, duckdb, duckdb_query, polars,
           pandas, adbc, generator, iterable, capsule, device]


@pytest.fixture(params=SOURCES, ids=lambda source: source.__name__)
def case(request, tmp_path):
    one = Case(tmp_path)
    one.source = request.param(one)
    yield one
    one.source = None
    one.close()


def to_table(batches):
    table = pa.Table.from_batches([b.to_pyarrow() for b in batches])
    return table.cast(TABLE.schema)


def test_read_whole(run, case):
    async def main():
        async with uvarrow.stream(case.source,
                                  interrupt=case.interrupt) as rows:
            batches = [batch async for batch in rows]
            await rows.aclose(seconds=None)
        return batches

    assert to_table(run(main)).equals(TABLE)


def test_closed_behind_the_first_batch(run, case):
    async def main():
        async with uvarrow.stream(case.source, interrupt=case.interrupt,
                                  window=1) as rows:
            first = await anext(rows)
            await rows.aclose(seconds=None)
        return first

    first = to_table([run(main)])
    assert first.equals(TABLE.slice(0, first.num_rows))


def test_dropped_behind_the_first_batch(run, case):
    async def main():
        rows = uvarrow.stream(case.source, interrupt=case.interrupt, window=1)
        first = await anext(rows)
        case.source = None
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ResourceWarning)
            del rows
            gc.collect()
        return len(first)

    assert run(main) > 0


def test_dropped_without_a_start(run, case):
    async def main():
        uvarrow.stream(case.source, interrupt=case.interrupt)

    run(main)


# ---- failures ---------------------------------------------------------------

def bad_csv(case):
    path = case.path / "bad.csv"
    path.write_text("n\n" + "\n".join(map(str, range(20000))) + "\nbad,row\n")
    return lambda: pa.csv.open_csv(
        path, read_options=pa.csv.ReadOptions(block_size=4096)), OSError


def bad_parquet(case):
    path = case.path / "bad.parquet"
    pa.parquet.write_table(TABLE, path)
    path.write_bytes(path.read_bytes()[:1000])
    return lambda: pa.dataset.dataset(path).scanner().to_reader(), Exception


def bad_duckdb(case):
    connection = pytest.importorskip("duckdb").connect()
    case.close = connection.close
    return lambda: connection.sql("SELECT no_such_column FROM range(5)"), \
        Exception


def bad_adbc(case):
    dbapi = pytest.importorskip("adbc_driver_sqlite.dbapi")
    connection = dbapi.connect()
    cursor = connection.cursor()

    def close():
        cursor.close()
        connection.close()

    case.close = close

    def source():
        cursor.execute("SELECT * FROM no_such_table")
        return cursor.fetch_record_batch()

    return source, dbapi.Error


def bad_polars(case):
    polars = pytest.importorskip("polars")
    lazy = polars.LazyFrame({"t": ["1", "x"]}).cast({"t": polars.Int64})
    return lazy.collect, polars.exceptions.PolarsError


def bad_pandas(case):
    pandas = pytest.importorskip("pandas")
    return lambda: pandas.DataFrame({"mixed": [1, "x"]}), Exception


@pytest.mark.parametrize("make", [bad_csv, bad_parquet, bad_duckdb, bad_adbc,
                                  bad_polars, bad_pandas],
                         ids=lambda make: make.__name__)
def test_a_failure_arrives(run, tmp_path, make):
    case = Case(tmp_path)
    source, kind = make(case)

    async def main():
        with pytest.raises(kind) as info:
            async with uvarrow.stream(source) as rows:
                async for _ in rows:
                    pass
        assert str(info.value)

    run(main)
    case.close()


# ---- types ------------------------------------------------------------------

def test_types_arrive_as_they_are(run):
    table = pa.table({
        "list": pa.array([[1, 2], None, []], pa.list_(pa.int32())),
        "struct": pa.array([{"a": 1, "b": "x"}, None, {"a": 3, "b": None}]),
        "dict": pa.array(["x", "y", "x"]).dictionary_encode(),
        "decimal": pa.array([decimal.Decimal("1.5")] * 3,
                            pa.decimal128(10, 2)),
        "time": pa.array([1, 2, None], pa.timestamp("us", "Europe/Berlin")),
        "map": pa.array([[("k", 1)], None, []], pa.map_(pa.string(),
                                                        pa.int64())),
        "view": pa.array(["a", "b" * 20, None], pa.string_view()),
        "bool": pa.array([True, None, False]),
        "null": pa.array([None] * 3),
        "run": pa.array([1, 1, 2]),
        "binary": pa.array([b"1234"] * 3, pa.binary(4)),
    }).replace_schema_metadata({"key": "value"})

    async def main():
        async with uvarrow.stream(table) as rows:
            schema = await rows.schema()
            batches = [batch.to_pyarrow() async for batch in rows]
        return str(schema), schema.to_pyarrow(), batches

    text, schema, batches = run(main)
    assert schema.equals(table.schema, check_metadata=True)
    assert pa.Table.from_batches(batches).equals(table)
    assert "time: timestamp[us, Europe/Berlin]" in text
    assert "list: list<" in text
    assert "dict: dictionary<string>" in text
    assert "binary: fixed_size_binary(4)" in text


def test_an_empty_source(run):
    async def main():
        assert await uvarrow.stream([]).read_all() == []
        for table in TABLE.slice(0, 0), TABLE.schema.empty_table():
            async with uvarrow.stream(table) as rows:
                assert (await rows.schema()).names == ["n", "t", "f"]
                assert sum([len(batch) async for batch in rows]) == 0

    run(main)
