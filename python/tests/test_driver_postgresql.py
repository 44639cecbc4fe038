# SPDX-License-Identifier: Apache-2.0
"""The statements of docs/adbc.md on the driver of PostgreSQL are true."""
import asyncio

import pyarrow as pa
import pytest

import driver_page as page
import uvarrow.adbc

KIND = "postgresql"
pytest.importorskip("adbc_driver_postgresql")
GIVEN = {"double": pa.float64(), "int64": pa.int64(), "int32": pa.int32(),
         "timestamp[us]": pa.timestamp("us"), "string": pa.string()}


@pytest.fixture
def pool(postgresql):
    with uvarrow.adbc.Pool(KIND, uri=postgresql, connections=2) as pool:
        yield pool


@pytest.mark.parametrize("label, cell", page.cells_of_driver(KIND))
def test_a_row(pool, label, cell):
    page.check_cell(KIND, pool, label, cell)


@pytest.mark.parametrize("row", page.rows_of_driver(
    KIND, "query", "status", "errno", "detail"))
def test_an_error(pool, row):
    page.check_error(pool, row)


@pytest.mark.parametrize("row", page.rows_of_driver(KIND, "value", "arrives as"))
def test_a_value(pool, row):
    page.check_value(pool, row)


@pytest.mark.parametrize("row", page.table(
    "column", "given", "as", "in the table"))
def test_an_append(pool, row):
    kind = GIVEN[row["as"]]
    given = page.code(row["given"])
    value = given if kind == pa.string() else \
        float(given) if kind == pa.float64() else int(given)

    async def main():
        await pool.execute("DROP TABLE IF EXISTS appended")
        await pool.execute(
            f"CREATE TABLE appended (a {page.code(row['column'])})")
        try:
            await pool.ingest("appended", pa.table(
                {"a": pa.array([value], kind)})).read_all()
        except uvarrow.Error as error:
            return f"it fails: {page.errno.errorcode[error.errno]}"
        stored, = await page.values(pool, "SELECT a::text FROM appended")
        return f"`{stored}`"

    assert asyncio.run(main()) == row["in the table"]


@pytest.mark.parametrize("encoding", ["LATIN1", "SQL_ASCII"])
def test_texts_are_utf8_whatever_the_database_has(pool, postgresql, encoding):
    uri = postgresql.replace("/postgres?", f"/{encoding.lower()}?")

    async def main():
        await pool.execute(f"CREATE DATABASE {encoding.lower()} ENCODING "
                           f"'{encoding}' TEMPLATE template0 LC_COLLATE 'C' "
                           "LC_CTYPE 'C'")
        with uvarrow.adbc.Pool(KIND, uri=uri) as other:
            return await page.values(
                other, "SELECT convert_from('\\xc3a9', 'UTF8')")

    assert asyncio.run(main()) == ["\u00e9"]


@pytest.mark.parametrize("sql", ["SHOW application_name",
                                 "EXPLAIN SELECT 1"])
def test_what_copy_lacks_is_executed_without_it(pool, sql):
    async def main():
        return await page.values(pool, sql, options={
            "adbc.postgresql.use_copy": "false"})

    assert asyncio.run(main())[0] in ("uvarrow",
                                      "Result  (cost=0.00..0.01 rows=1 width=4)")


@pytest.mark.parametrize("setting, end", [
    ("statement_timeout", ("`CANCELLED`", "ECANCELED", "`57014`")),
    ("lock_timeout", ("`INVALID_STATE`", "EBUSY", "`55P03`"))])
def test_settings_of_the_uri_end_queries(pool, postgresql, setting, end):
    uri = f"{postgresql}&options=-c%20{setting}%3D5"

    async def main():
        await pool.execute("CREATE TABLE IF NOT EXISTS locked (a INT)")
        locked = "LOCK TABLE locked; SELECT pg_sleep(10000)"
        holder = asyncio.ensure_future(pool.execute(locked))
        held = "SELECT 1 FROM pg_locks WHERE relation = 'locked'::regclass " \
            "AND granted"
        while not await page.values(pool, held):
            pass
        with uvarrow.adbc.Pool(KIND, uri=uri) as other:
            failure = await page.failure(other, "SELECT * FROM locked")
        holder.cancel()
        return failure

    assert asyncio.run(main())[:3] == end


def test_a_connection_that_is_lost_has_no_sqlstate(postgresql, tmp_path):
    """Through a server that passes bytes on, until it ends both sides."""
    host = postgresql.split("host=")[1]
    writers, asked = [], asyncio.Event()

    async def copy(reader, writer):
        while data := await reader.read(1 << 16):
            if b"COPY (SELECT pg_sleep" in data: # it is prepared
                asked.set()
            writer.write(data)
        writer.close()

    async def accept(reader, writer):
        server_reader, server = await asyncio.open_unix_connection(
            host + "/.s.PGSQL.5432")
        writers.extend((writer, server))
        await asyncio.gather(copy(reader, server), copy(server_reader, writer))

    async def main():
        async with await asyncio.start_unix_server(
                accept, tmp_path / ".s.PGSQL.5432"):
            with uvarrow.adbc.Pool(KIND, uri=postgresql.replace(
                    host, str(tmp_path))) as pool:
                failure = asyncio.ensure_future(
                    page.failure(pool, "SELECT pg_sleep(10000)"))
                await asked.wait()
                for writer in writers:
                    writer.close()
                return await failure

    assert asyncio.run(main())[:3] == ("`IO`", "EIO", "")
