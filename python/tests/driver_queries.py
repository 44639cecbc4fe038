# SPDX-License-Identifier: Apache-2.0
"""The validation queries of ADBC's driver manager, asked through the pool: what
each driver answers, as cells of the table in docs/adbc.md. `scripts/drivers` runs
all and writes the table, test_driver_queries.py compares.

A check is a coroutine function of a Tried, whose cell is what it returns; a failure
is the cell of its error. "–" stands where the driver's language has no such query."""
import asyncio
import dataclasses
import datetime
import decimal
import errno
import importlib.metadata
import pathlib
import re

import pyarrow as pa

import uvarrow
import uvarrow.adbc

NONE = "–"
SQL = ("sqlite", "postgresql", "duckdb", "flightsql")
LONG = {
    "sqlite": "WITH RECURSIVE n(a) AS (SELECT 1 UNION ALL SELECT a + 1 FROM n) "
              "SELECT max(a) FROM n",
    "postgresql": "SELECT pg_sleep(10000)",
    "duckdb": "SELECT count(*) FROM range(1000000000000)",
    "flightsql": "endless",
    "rust": "block",
}
MANY = {
    "sqlite": "WITH RECURSIVE n(a) AS (SELECT 1 UNION ALL SELECT a + 1 FROM n) "
              "SELECT a FROM n",
    "postgresql": "SELECT generate_series(1, 1000000000), repeat('x', 1000)",
    "duckdb": "SELECT range FROM range(1000000000000)",
    "flightsql": "endless",
    "rust": "endless",
}


@dataclasses.dataclass
class Tried:
    """A driver, with a pool of two connections to a database without tables."""
    kind: str
    pool: uvarrow.adbc.Pool
    queries: int = 0  # of the pool, before the check

    @property
    def mark(self):
        return "$1" if self.kind == "postgresql" else "?"

    async def rows(self, sql, *given, on=None, **options):
        """All rows, as one table."""
        batches = await (on or self.pool).query(sql, *given, **options).read_all()
        tables = [pa.Table.from_batches([batch.to_pyarrow()])
                  for batch in batches]
        return pa.concat_tables(tables) if tables else None

    async def count(self, table, on=None):
        found = await self.rows(f"SELECT * FROM {table}", on=on)
        return 0 if found is None else len(found)

    async def ingest(self, table, rows, on=None, **options):
        return await (on or self.pool).ingest(table, rows, **options).read_all()


def told(error):
    """The cell of an error."""
    status = error.metadata.get("adbc.status")
    name = errno.errorcode[error.errno]
    return f"{name} (`{status}`)" if status else name


async def cell(check, tried):
    try:
        return await check(tried)
    except uvarrow.Error as error:
        return told(error)


async def asked(label, kind, pool):
    """The cell of a check, for a driver."""
    check, kinds = CHECKS[label]
    if kind not in kinds:
        return NONE
    for table in ("t", '"a ""b"" c"') if kind != "rust" else ():
        await pool.execute(f"DROP TABLE IF EXISTS {table}")
    return str(await cell(check, Tried(kind, pool, pool.stats()["queries"])))


def counted(rows):
    return f"{rows} row" if rows == 1 else f"{rows} rows"


def numbers(*values):
    return pa.table({"n": pa.array(values, pa.int64())})


CHECKS = {}  # label -> (check, the kinds that it is for)


def check(label, kinds=(*SQL, "rust")):
    def add(function):
        CHECKS[label] = function, kinds
        return function
    return add


# ---- queries ----------------------------------------------------------------

def selects(label, sql):
    """A query of one value: its type, and the value."""
    async def run(tried):
        column = (await tried.rows(sql)).column(0)
        return f"{column.type}: `{column[0].as_py()}`"
    CHECKS[label] = run, SQL


selects("`SELECT 42`", "SELECT 42")
selects("`SELECT CAST(1.5 AS FLOAT)`", "SELECT CAST(1.5 AS FLOAT)")
selects("`SELECT 'SaShiSuSeSo'`", "SELECT 'SaShiSuSeSo'")
selects("`SELECT NULL`", "SELECT NULL")
selects("A query with a semicolon at its end", "SELECT 1;")
selects("A query with three", "SELECT 1;;;")


@check("A result without rows")
async def no_rows(tried):
    await tried.ingest("t", numbers(1), mode="create")
    await tried.pool.execute("DELETE FROM t")
    stream = tried.pool.query("SELECT * FROM t")
    schema = pa.schema(await stream.schema())
    return f"no batch, {schema.field(0).type}" \
        if not await stream.read_all() else "a batch"


@check("An error in the midst of rows")
async def failing(tried):
    query = {
        "sqlite": "SELECT abs(CASE WHEN a = 5000 THEN -9223372036854775808 ELSE a "
                  "END) FROM (WITH RECURSIVE n(a) AS (SELECT 1 UNION ALL SELECT "
                  "a + 1 FROM n WHERE a < 6000) SELECT a FROM n)",
        "postgresql": "SELECT 1 / (200000 - a), repeat('x', 100) FROM "
                      "generate_series(1, 300000) a",
        "duckdb": "SELECT CAST(CASE WHEN range = 5000000 THEN 'x' ELSE '1' END "
                  "AS INT) FROM range(6000000)",
        "flightsql": "fails 2", "rust": "fails 2"}[tried.kind]
    stream = tried.pool.query(query)
    came = 0
    try:
        async for _ in stream:
            came += 1
    except uvarrow.Error as error:
        return f"{'after' if came else 'without'} rows, {told(error)}"
    return "no error"


# ---- parameters -------------------------------------------------------------

@check("A parameter of a `SELECT`", SQL)
async def parameter(tried):
    column = (await tried.rows(f"SELECT {tried.mark}", [42])).column(0)
    return f"{column.type}: `{column[0].as_py()}`"


@check("A null as a parameter", SQL)
async def null_parameter(tried):
    column = (await tried.rows(f"SELECT {tried.mark}", [None])).column(0)
    return f"`{column[0].as_py()}`"


@check("Three rows of parameters of a `SELECT`", SQL[:3])
async def parameters(tried):
    found = await tried.rows(f"SELECT {tried.mark}", numbers(1, 2, 3))
    return f"rows for {len(found)} of 3"


@check("More values than parameters", SQL)
async def too_many(tried):
    await tried.rows(f"SELECT {tried.mark}", [1, 2])
    return "ignored"


@check("Fewer values than parameters", SQL)
async def too_few(tried):
    second = "$2" if tried.kind == "postgresql" else "?"
    found = await tried.rows(f"SELECT {tried.mark}, {second}", [1])
    return f"taken as `{found.column(1)[0].as_py()}`"


@check("Rows that a `DELETE` of three has affected")
async def affected(tried):
    await tried.ingest("t", numbers(1, 2, 3), mode="create")
    return str(await tried.pool.execute("DELETE FROM t"))


# ---- ingest: modes ----------------------------------------------------------

def ingests(label, mode, before, rows=None, **options):
    async def run(tried):
        if before is not None:
            await tried.ingest("t", before, mode="create")
        await tried.ingest("t", numbers(7) if rows is None else rows,
                           mode=mode, **options)
        return counted(await tried.count("t"))
    CHECKS[label] = run, (*SQL, "rust")


ingests("Ingest, `create`: 1 row", "create", None)
ingests("The same, where the table is", "create", numbers(1, 2))
ingests("Ingest, `append` of 1 row to 2", "append", numbers(1, 2))
ingests("The same, where no table is", "append", None)
ingests("Ingest, `replace` of 2 rows by 1", "replace", numbers(1, 2))
ingests("Ingest, `create_append` of 1 row to 2", "create_append", numbers(1, 2))
ingests("Ingest of another column", "append", numbers(1, 2),
        pa.table({"other": [1]}))
ingests("Ingest without batches", "create", None,
        pa.RecordBatchReader.from_batches(numbers().schema, []))


@check("Names with quotes, of a table and of a column")
async def quoted_names(tried):
    await tried.ingest('a "b" c', pa.table({'x "y" z': [1]}), mode="create")
    if tried.kind == "rust":
        return NONE
    found = await tried.rows('SELECT * FROM "a ""b"" c"')
    return "as they are" if found.column_names == ['x "y" z'] else "changed"


@check("Ingest, `adbc.ingest.temporary`, in a session")
async def temporary(tried):
    async with tried.pool.session() as session:
        await tried.ingest("t", numbers(1), on=session, mode="create",
                           options={"adbc.ingest.temporary": "true"})
        found = await tried.count("t", on=session)
        await session.rollback()
    return counted(found)


@check("Ingest, `adbc.ingest.target_db_schema` = `public` or `main`")
async def into_schema(tried):
    name = "public" if tried.kind == "postgresql" else "main"
    await tried.ingest("t", numbers(1), mode="create",
                       options={"adbc.ingest.target_db_schema": name})
    return counted(await tried.count("t"))


@check("Ingest, `adbc.ingest.target_catalog`")
async def into_catalog(tried):
    name = {"postgresql": "postgres", "duckdb": "rows",
            "flightsql": "memory"}.get(tried.kind, "main")
    await tried.ingest("t", numbers(1), mode="create",
                       options={"adbc.ingest.target_catalog": name})
    return counted(await tried.count("t"))


# ---- ingest: types ----------------------------------------------------------

def day(*given):
    return datetime.datetime(2023, 5, 17, *given)


MONTHS = pa.MonthDayNano([1, 15, 3000])
UTC = datetime.timezone.utc
TYPES = [
    (pa.bool_(), True), (pa.int8(), -128), (pa.int16(), -32768),
    (pa.int32(), -2**31), (pa.int64(), -2**63), (pa.uint8(), 255),
    (pa.uint16(), 65535), (pa.uint32(), 2**32 - 1), (pa.uint64(), 2**63),
    (pa.float16(), 1.5), (pa.float32(), 1.5), (pa.float64(), 1.5),
    (pa.string(), "ü"), (pa.large_string(), "ü"), (pa.string_view(), "ü" * 9),
    (pa.binary(), b"\0\1"), (pa.large_binary(), b"\0\1"),
    (pa.binary_view(), b"\0" * 13), (pa.binary(2), b"\0\1"),
    (pa.date32(), day().date()), (pa.date64(), day().date()),
    (pa.time32("s"), datetime.time(12, 30)),
    (pa.time64("us"), datetime.time(12, 30, 0, 5)),
    (pa.timestamp("s"), day(1)), (pa.timestamp("us"), day(1, 2, 3, 4)),
    (pa.timestamp("ns"), day(1, 2, 3, 4)),
    (pa.timestamp("us", "UTC"), day(1, 2, 3, 4).replace(tzinfo=UTC)),
    (pa.duration("us"), datetime.timedelta(seconds=90)),
    (pa.month_day_nano_interval(), MONTHS),
    (pa.decimal128(10, 2), decimal.Decimal("12345.67")),
    (pa.dictionary(pa.int32(), pa.string()), "a"),
    (pa.list_(pa.int32()), [1, 2]), (pa.list_(pa.string()), ["a", None]),
    (pa.struct([("a", pa.int32())]), {"a": 1}),
]


def plain(column):
    """The values, comparably: of nanoseconds the number."""
    kind = column.type
    if pa.types.is_timestamp(kind) or pa.types.is_duration(kind):
        unit = {"s": 10**9, "ms": 10**6, "us": 1000, "ns": 1}[kind.unit]
        return [None if value is None else value * unit
                for value in column.cast(pa.int64()).to_pylist()]
    return column.to_pylist()


def names_type(kind):
    return str(kind).replace("<item: ", "<").replace("fixed_size_", "")


def short(values):
    return ", ".join(f"`{value!r}`" for value in values)


def ingests_type(kind, value):
    async def run(tried):
        given = pa.array([value, None], kind)
        await tried.ingest("t", pa.table({"a": given}), mode="create")
        found = (await tried.rows("SELECT * FROM t")).column(0)
        if isinstance(found.type, pa.BaseExtensionType):
            return f"bytes of `{found.type.type_name}`" \
                if isinstance(found.type, pa.OpaqueType) else str(found.type)
        if plain(found) == plain(given):
            return "=" if found.type == kind else names_type(found.type)
        return f"{names_type(found.type)}: {short(found.to_pylist())}"
    CHECKS[f"Ingest of {names_type(kind)}"] = run, (*SQL, "rust")


for _kind, _value in TYPES:
    ingests_type(_kind, _value)


# ---- transactions -----------------------------------------------------------

@check("An ingest in a session that is rolled back")
async def rolled_back(tried):
    await tried.ingest("t", numbers(1), mode="create")
    async with tried.pool.session() as session:
        await tried.ingest("t", numbers(2), on=session, mode="append")
        await session.rollback()
    return "undone" if await tried.count("t") == 1 else "stored"


@check("A `DELETE` in a session that is rolled back")
async def rolled_back_delete(tried):
    await tried.ingest("t", numbers(1), mode="create")
    async with tried.pool.session() as session:
        await session.execute("DELETE FROM t")
        await session.rollback()
    return "undone" if await tried.count("t") == 1 else "stored"


@check("An ingest in a session that is committed")
async def committed(tried):
    await tried.ingest("t", numbers(1), mode="create")
    async with tried.pool.session() as session:
        await tried.ingest("t", numbers(2), on=session, mode="append")
        await session.commit()
    return "stored" if await tried.count("t") == 2 else "lost"


@check("Rows of an ingest before the commit: in the session, and beside it")
async def isolated(tried):
    await tried.ingest("t", numbers(1), mode="create")
    async with tried.pool.session() as session:
        await tried.ingest("t", numbers(2), on=session, mode="append")
        inside = await tried.count("t", on=session)
        beside = await cell(lambda tried: tried.count("t"), tried)
        await session.rollback()
    return f"{inside}, {beside}"


@check("A table that an ingest makes in a session that is rolled back")
async def undone_table(tried):
    async with tried.pool.session() as session:
        await tried.ingest("t", numbers(1), on=session, mode="create")
        await session.rollback()
    try:
        await tried.count("t")
    except uvarrow.Error:
        return "gone"
    return "there"


@check("A query of a session after one that failed")
async def after_failure(tried):
    await tried.ingest("t", numbers(1), mode="create")
    async with tried.pool.session() as session:
        await tried.ingest("t", numbers(2), on=session, mode="append")
        try:
            await tried.count("missing", on=session)
        except uvarrow.Error:
            pass
        found = await cell(lambda tried: tried.count("t", on=session), tried)
        await session.rollback()
    return counted(found) if isinstance(found, int) else found


@check("Isolation level `serializable` of a session")
async def isolation(tried):
    key = "adbc.connection.transaction.isolation"
    async with tried.pool.session(options={
            key + "_level": key + ".serializable"}) as session:
        await tried.rows("rows 1" if tried.kind in ("rust", "flightsql")
                         else "SELECT 1", on=session)
        await session.rollback()
    return "taken"


# ---- cancel and limits of time ----------------------------------------------

async def settled(tried):
    """Whether no connection is in use, or stuck, any more."""
    while True:
        now = tried.pool.stats()
        if not now["used"] and not now["stuck"]:
            return
        await asyncio.sleep(0)


async def begun(tried):
    while tried.pool.stats()["queries"] == tried.queries:
        await asyncio.sleep(0)


@check("A cancel of a query that executes")
async def cancelled(tried):
    stream = tried.pool.query(LONG[tried.kind])
    task = asyncio.ensure_future(stream.schema() if tried.kind != "flightsql"
                                 else stream.read_all())
    await begun(tried)
    task.cancel()
    await stream.aclose(seconds=None)
    await settled(tried)
    return "stops it"


@check("A cancel between batches")
async def cancelled_later(tried):
    stream = tried.pool.query(MANY[tried.kind])
    async for _ in stream:
        break
    await stream.aclose(seconds=None)
    await settled(tried)
    return "stops it"


@check("A cancel of an ingest that waits for its second batch")
async def cancelled_ingest(tried):
    given = asyncio.Event()

    async def rows():
        yield numbers(2).to_batches()[0]
        given.set()
        await asyncio.Event().wait()

    await tried.ingest("t", numbers(1), mode="create")
    stream = tried.pool.ingest("t", rows(), mode="append")
    task = asyncio.ensure_future(stream.read_all())
    await given.wait()
    task.cancel()
    await stream.aclose(seconds=None)
    await settled(tried)
    return "undone" if await tried.count("t") == 1 else "1 row is stored"


@check("`busy` of a query that executes")
async def too_long(tried):
    try:
        await tried.rows(LONG[tried.kind], busy=0.1)
    except uvarrow.Error as error:
        await settled(tried)
        return f"{errno.errorcode[error.errno]}, stops it"
    return "no limit"


@check("`busy` of an ingest that waits for rows")
async def ingest_too_long(tried):
    async def rows():
        await asyncio.Event().wait()
        yield numbers(2).to_batches()[0]

    await tried.ingest("t", numbers(1), mode="create")
    try:
        await tried.ingest("t", rows(), mode="append", busy=0.1)
    except uvarrow.Error as error:
        await settled(tried)
        return f"{errno.errorcode[error.errno]}, " + \
            ("undone" if await tried.count("t") == 1 else "stored")
    return "no limit"


# ---- partitions and the catalog ---------------------------------------------

@check("Partitions")
async def partitions(tried):
    await tried.ingest("t", numbers(1), mode="create")
    sql = "parts 3" if tried.kind in ("flightsql", "rust") else "SELECT * FROM t"
    parts = await tried.pool.partitions(sql)
    read = tried.pool.partition(parts)
    rows = sum(len(batch) for batch in await read.read_all())
    return f"{len(parts)} with {rows} rows"


@check("The schema of a table", (*SQL[:3], "rust"))
async def table_schema(tried):
    await tried.ingest("t", numbers(1), mode="create")
    schema = pa.schema(await tried.pool.table_schema("t"))
    return f"{schema.field(0).name}: {schema.field(0).type}"


@check("The schema of a table that is not there", (*SQL[:3], "rust"))
async def no_schema(tried):
    await tried.pool.table_schema("missing")
    return "an empty one"


@check("Tables of the catalog", (*SQL[:3], "rust"))
async def tables(tried):
    await tried.ingest("t", numbers(1), mode="create")
    found = [table for table in await tried.pool.tables()
             if table.name == "t"]
    return f"`{found[0].type}`" if found else "none"


# ---- the table --------------------------------------------------------------

KINDS = (*SQL, "rust")
HEADS = {"sqlite": "SQLite", "postgresql": "PostgreSQL", "duckdb": "DuckDB",
         "flightsql": "Flight SQL", "rust": "Rust, adbc_ffi"}
PINS = pathlib.Path(__file__).resolve().parents[2] / "tests/drivers/rust"


def version(kind):
    """The version of the driver; of Rust's that of its framework."""
    if kind == "rust":
        return re.search('adbc_ffi = "=([^"]+)"',
                         (PINS / "Cargo.toml").read_text(encoding="utf-8"))[1]
    return importlib.metadata.version(
        "duckdb" if kind == "duckdb" else f"adbc-driver-{kind}")


def head(kind):
    return f"{HEADS[kind]} {version(kind)}"


def is_type(label):
    return label.startswith("Ingest of ") and "column" not in label


def tables_of(cells):
    """The lines of the two tables, of {kind: {label: cell}}."""
    for first, which in (("", False), ("ingest of", True)):
        yield f"| {first} | " + " | ".join(map(head, KINDS)) + " |"
        yield "|---|" + "---|" * len(KINDS)
        for label in CHECKS:
            if is_type(label) == which:
                name = label.removeprefix("Ingest of ") if which else label
                yield (f"| {name} | " + " | ".join(
                    cells[kind][label].replace("|", "\\|")
                    for kind in KINDS) + " |")
        yield ""
