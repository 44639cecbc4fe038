# SPDX-License-Identifier: Apache-2.0
"""The tables of docs/adbc.md on drivers, and the code that tries them: for
each row and driver a cell is made from the outcome. Files test_driver_*.py
compare."""
import asyncio
import errno
import os
import re

import pyarrow as pa
import pytest

import uvarrow
import uvarrow.adbc

PAGE = os.path.join(os.path.dirname(os.path.abspath(__file__)),
                    "../../docs/adbc.md")
NAMES = {"sqlite": "SQLite", "postgresql": "PostgreSQL", "duckdb": "DuckDB",
         "flightsql": "Flight SQL"}
SERVER = "the server's rule"
BATCH_OPTIONS = ("adbc.sqlite.query.batch_rows",
                 "adbc.postgresql.batch_size_hint_bytes")


# ---- the page ----------------------------------------------------------------

def table(*heads):
    """The rows of the table with these heads, as dicts of cells."""
    with open(PAGE, encoding="utf-8") as file:
        text = file.read()
    begin = text.index("| " + " | ".join(heads) + " |\n")
    lines = text[begin:].split("\n\n")[0].splitlines()[2:]
    return [dict(zip(heads, (cell.strip().replace("\\|", "|") for cell in
                             re.split(r"(?<!\\)\|", line)[1:-1]), strict=True))
            for line in lines]


def rows_of_driver(kind, *heads):
    """The rows of one driver, of a table that has "driver" as its first head."""
    rows = [row for row in table("driver", *heads)
            if row["driver"] == NAMES[kind]]
    assert rows
    return [pytest.param(row, id=row[heads[0]]) for row in rows]


def cells_of_driver(kind):
    """(label, cell) of each row of the first table."""
    rows = table("property", *NAMES.values())
    assert {row["property"] for row in rows} == set(CELLS)
    return [pytest.param(row["property"], row[NAMES[kind]], id=row["property"])
            for row in rows]


def code(cell):
    """The text in a cell that is code."""
    assert re.fullmatch(r"`[^`]+`", cell), cell
    return cell[1:-1]


# ---- queries -----------------------------------------------------------------

async def ask(pool, *arguments, **options):
    """The batches of a query."""
    return [batch.to_pyarrow() for batch in
            await pool.query(*arguments, **options).read_all()]


async def values(pool, *arguments, **options):
    """The values of the first column."""
    return [value for batch in await ask(pool, *arguments, **options)
            for value in batch.column(0).to_pylist()]


async def failure(pool, *arguments, **options):
    """(status, errno, SQLSTATE or DuckDB's type, text) of a query: the first
    three are cells."""
    try:
        await ask(pool, *arguments, **options)
    except uvarrow.Error as error:
        detail = error.metadata.get("adbc.sqlstate") or \
            error.metadata.get("adbc.detail.duckdb:error_type")
        return (f"`{error.metadata['adbc.status']}`",
                errno.errorcode[error.errno],
                f"`{detail}`" if detail else "", error.strerror)
    return None


async def value(pool, sql):
    """The type and the value of one value, or the error, as a cell."""
    try:
        column = (await ask(pool, sql))[0].column(0)
    except uvarrow.Error as error:
        return errno.errorcode[error.errno]
    if isinstance(column.type, pa.OpaqueType):
        return f"bytes: `{column.storage[0].as_py().hex()}`" \
            if pa.types.is_binary(column.storage.type) else \
            f"text: `{column.storage[0]}`"
    if pa.types.is_temporal(column.type) and \
            not pa.types.is_time(column.type):
        return f"{column.type}: `{column.view(integer_like(column.type))[0]}`"
    if pa.types.is_binary(column.type):
        return f"bytes: `{column[0].as_py().hex()}`"
    return f"{column.type}: `{column[0].as_py()}`"


def integer_like(kind):
    return pa.int32() if kind.bit_width == 32 else pa.int64()


# ---- the first table ---------------------------------------------------------

MANY_ROWS = {
    "sqlite": "WITH RECURSIVE n(a) AS (SELECT 1 UNION ALL SELECT a + 1 FROM n "
              "WHERE a < 5000) SELECT a FROM n",
    "postgresql": "SELECT repeat('x', 1000) AS a FROM "
                  "generate_series(1, 40000)",
    "duckdb": "SELECT range AS a FROM range(10000)",
    "flightsql": "rows 3",
}
LONG = {
    "sqlite": "WITH RECURSIVE n(a) AS (SELECT 1 UNION ALL SELECT a + 1 FROM n) "
              "SELECT max(a) FROM n",
    "postgresql": "SELECT pg_sleep(10000)",
    "duckdb": "SELECT count(*) FROM range(1000000000000)",
    "flightsql": "endless",
}


async def batches(kind, pool):
    first = (await ask(pool, MANY_ROWS[kind]))[0]
    return batch_size(kind, first)


def batch_size(kind, first):
    if kind == "postgresql":
        return f"{round(first.nbytes / 2**16) * 64} KiB"
    return f"{len(first):,} rows" if kind != "flightsql" else SERVER


async def batches_of_64_kib(kind, pool):
    first = (await ask(pool, MANY_ROWS[kind], batch_bytes=2**16))[0]
    return batch_size(kind, first)


async def batch_option(kind, pool):
    found = []
    for option in BATCH_OPTIONS:
        try:
            batches = await ask(pool, MANY_ROWS[kind], options={option: "100"})
        except uvarrow.Error as error:
            assert option in error.strerror
        else:
            assert len(batches[0]) <= 100
            found.append(f"`{option}`")
    return " ".join(found) or "none"


async def by_name(kind, pool):
    mark = {"duckdb": "$a", "postgresql": "$1"}.get(kind, ":a")
    try:
        await ask(pool, f"SELECT {mark}", {"a": 1})
    except uvarrow.Error as error:
        assert error.errno == errno.ENOTSUP
        return "no"
    return "yes"


async def many_parameters(kind, pool):
    if kind == "flightsql":
        return SERVER
    await pool.execute("CREATE TABLE many (a INT)")
    mark = "$1" if kind == "postgresql" else "?"
    try:
        await pool.execute(f"INSERT INTO many VALUES ({mark})",
                           pa.table({"0": [1, 2, 3]}))
    except uvarrow.Error as error:
        return errno.errorcode[error.errno]
    count, = await values(pool, "SELECT count(*) FROM many")
    return "executed for each" if count == 3 else f"{count} rows"


async def several_statements(kind, pool):
    if kind == "flightsql":
        return SERVER
    plain, update = [await statements_of_one(pool, update)
                     for update in (False, True)]
    return plain if plain == update else f"{plain}; with `update`, {update}"


async def statements_of_one(pool, update):
    names = [f"{name}{update}" for name in ("first", "second")]
    try:
        await pool.execute("; ".join(f"CREATE TABLE {name} (a INT)"
                                     for name in names), update=update)
    except uvarrow.Error as error:
        return errno.errorcode[error.errno]
    made = [not await failure(pool, f"SELECT * FROM {name}") for name in names]
    return {(True, True): "all are executed",
            (True, False): "the first is executed"}[tuple(made)]


async def rows_affected(kind, pool):
    if kind == "flightsql":
        return SERVER
    await pool.execute("CREATE TABLE changed (a INT)")
    counts = [await pool.execute("INSERT INTO changed VALUES (1)",
                                 update=update) for update in (True, False)]
    return {(1, 1): "counted", (1, -1): "counted with `update`"}[tuple(counts)]


async def cancelled(kind, pool):
    """The statement ends only when it is stopped."""
    rows = pool.query(LONG[kind])
    task = asyncio.ensure_future(rows.schema())
    if kind == "duckdb":  # which forgets a cancel before its query has begun
        await asyncio.sleep(0)
    while kind != "duckdb" and not pool.stats()["queries"]:
        await asyncio.sleep(0)
    task.cancel()
    await rows.aclose(seconds=None)
    while kind != "duckdb" and ((now := pool.stats())["used"]
                                or now["stuck"]):
        await asyncio.sleep(0)
    return "stops it"


async def rows_of_failed(kind, pool):
    """Of an ingest that fails after its first batch."""
    if kind == "flightsql":
        return SERVER

    def batches():
        yield pa.record_batch({"a": [1]})
        raise KeyError("mine")

    await pool.execute("CREATE TABLE failing (a BIGINT)")
    with pytest.raises((uvarrow.Error, KeyError), match="mine"):
        await pool.ingest("failing", pa.RecordBatchReader.from_batches(
            pa.schema({"a": pa.int64()}), batches())).read_all()
    count, = await values(pool, "SELECT count(*) FROM failing")
    return "none" if count == 0 else str(count)


async def rows_before_failing(kind, pool):
    """Of parameters that were executed before a row that fails."""
    if kind == "flightsql":
        return SERVER
    await pool.execute("CREATE TABLE twice (a BIGINT PRIMARY KEY)")
    mark = "$1" if kind == "postgresql" else "?"
    with pytest.raises(uvarrow.Error):
        await pool.execute(f"INSERT INTO twice VALUES ({mark})",
                           pa.table({"0": [1, 2, 1]}))
    count, = await values(pool, "SELECT count(*) FROM twice")
    return "none" if count == 0 else str(count)


async def begin(kind, pool):
    with pytest.raises(uvarrow.Error, match="session") as caught:
        await pool.execute("BEGIN")
    return errno.errorcode[caught.value.errno]


async def left_over(kind, pool):
    """The state that a query has left in its session, for the next one."""
    if kind == "flightsql":
        return SERVER
    for _ in range(3): # as many as there are connections, and one more
        await pool.execute("CREATE TEMPORARY TABLE left_over (a INT)")
    end = await failure(pool, "SELECT * FROM left_over")
    return "gone" if end else "there"


CELLS = {
    "Rows come in batches of": batches,
    "With `batch_bytes` of 64 KiB": batches_of_64_kib,
    "Option of a statement for that": batch_option,
    "Parameters are bound by name": by_name,
    "Several rows of parameters": many_parameters,
    "Several statements in one text": several_statements,
    "Rows that an update has affected": rows_affected,
    "A cancel of a statement that executes": cancelled,
    "Rows of an ingest that fails": rows_of_failed,
    "Rows of parameters before one that fails": rows_before_failing,
    "`BEGIN` on a pool": begin,
    "A temporary table, for the next query": left_over,
}


def check_cell(kind, pool, label, cell):
    """Whether the page has the true outcome."""
    assert asyncio.run(CELLS[label](kind, pool)) == cell


def check_error(pool, row):
    async def main():
        if row["driver"] != NAMES["flightsql"]:
            await pool.execute("DROP TABLE IF EXISTS t")
            await pool.execute(
                "CREATE TABLE t (a INT PRIMARY KEY, b INT NOT NULL)")
        return await failure(pool, code(row["query"]))

    assert asyncio.run(main())[:3] == (row["status"], row["errno"],
                                       row["detail"])


def check_value(pool, row):
    assert asyncio.run(value(pool, f"SELECT {code(row['value'])}")) == \
        row["arrives as"]
