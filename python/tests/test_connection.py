# SPDX-License-Identifier: Apache-2.0
"""Connections and cursors with the names of PEP 249, on real databases."""
import datetime
import decimal
import sys
import threading

import pyarrow as pa
import pytest

import uvarrow
import uvarrow.adbc

# The numbers from 1 to {}
COUNT = {"sqlite": """WITH RECURSIVE numbers(n) AS (
             SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < {})
             SELECT n FROM numbers""",
         "duckdb": "SELECT n FROM range(1, {} + 1) r (n)",
         "postgresql": "SELECT generate_series(1, {}::bigint) AS n"}


def place(kind, i=1):
    return f"${i}" if kind == "postgresql" else "?"


async def make(connection, *values):
    await connection.execute("DROP TABLE IF EXISTS t")
    await connection.execute("CREATE TABLE t (n BIGINT PRIMARY KEY, x TEXT)")
    for value in values:
        await connection.execute(f"INSERT INTO t VALUES ({value}, 'x{value}')")
    await connection.commit()


async def numbers(connection):
    cursor = await connection.execute("SELECT n FROM t ORDER BY n")
    return [n for n, in await cursor.fetchall()]


# ---- rows -------------------------------------------------------------------

def test_rows_are_fetched_as_in_pep_249(run, link):
    kind, connect = link

    async def main():
        async with connect() as connection:
            await make(connection, 1, 2, 3, 4, 5)
            async with connection.cursor() as cursor:
                assert (cursor.description, cursor.rownumber) == (None, None)
                same = await cursor.execute("SELECT n, x FROM t ORDER BY n")
                assert same is cursor and cursor.connection is connection
                assert cursor.description == [
                    ("n", pa.int64(), None, None, None, None, None),
                    ("x", pa.string(), None, None, None, None, None)]
                assert await cursor.fetchone() == (1, "x1")
                assert cursor.rownumber == 1
                assert await cursor.fetchmany() == [(2, "x2")]
                cursor.arraysize = 2
                assert await cursor.fetchmany() == [(3, "x3"), (4, "x4")]
                assert await cursor.fetchmany(0) == []
                assert await cursor.fetchall() == [(5, "x5")]
                assert await cursor.fetchone() is None
                assert await cursor.fetchmany(3) == []
                assert await cursor.fetchall() == []
                assert cursor.rownumber == 5

    run(main)


def test_a_cursor_is_iterated_by_rows(run, link):
    kind, connect = link

    async def main():
        async with connect() as connection:
            cursor = await connection.execute(COUNT[kind].format(10000))
            rows = [row async for row in cursor]
            assert rows == [(i,) for i in range(1, 10001)]
            cursor = await connection.execute(COUNT[kind].format(10000))
            return len(await cursor.fetchall())

    assert run(main) == 10000


def test_arrow_is_what_rows_have_left(run, link):
    kind, connect = link

    async def main():
        async with connect() as connection:
            cursor = await connection.execute(COUNT[kind].format(5000))
            assert await cursor.fetchone() == (1,)
            table = await cursor.fetch_arrow_table()
            assert table.column("n").to_pylist() == list(range(2, 5001))
            assert cursor.rownumber == 5000
            assert (await cursor.fetch_arrow_table()).num_rows == 0
            await cursor.execute(COUNT[kind].format(5000))
            assert await cursor.fetchmany(2) == [(1,), (2,)]
            batches = [batch async for batch in cursor.fetch_record_batch()]
            assert all(type(one) is pa.RecordBatch for one in batches)
            assert [n for one in batches for n in one.column(0).to_pylist()] \
                == list(range(3, 5001))
            await cursor.execute("SELECT 1 AS n WHERE 1 = 0")
            table = await cursor.fetchallarrow()
            assert (table.num_rows, table.column_names) == (0, ["n"])

    run(main)


def test_frames_are_made_of_a_result(run, link):
    pytest.importorskip("pandas")
    pytest.importorskip("polars")
    kind, connect = link

    async def main():
        async with connect() as connection:
            cursor = await connection.execute("SELECT 1 AS n")
            assert (await cursor.fetch_df())["n"].tolist() == [1]
            await cursor.execute("SELECT 2 AS n")
            return (await cursor.fetch_polars())["n"].to_list()

    assert run(main) == [2]


def test_values_are_those_of_python(run, link):
    kind, connect = link
    if kind == "sqlite":
        pytest.skip("it has no such types")

    async def main():
        async with connect() as connection:
            cursor = await connection.execute(
                "SELECT DATE '2020-02-03', TIMESTAMP '2020-02-03 04:05:06', "
                "TRUE, 1.5::double precision, NULL::int, 'x'")
            return await cursor.fetchone()

    assert run(main) == (datetime.date(2020, 2, 3),
                         datetime.datetime(2020, 2, 3, 4, 5, 6), True, 1.5,
                         None, "x")


def test_a_value_that_python_lacks_is_a_data_error(run, link):
    kind, connect = link
    if kind == "sqlite":
        pytest.skip("it has no such types")

    async def main():
        async with connect() as connection:
            cursor = await connection.execute("SELECT 'infinity'::date AS d")
            for _ in range(2):
                with pytest.raises(uvarrow.adbc.DataError,
                                   match="no type of Python"):
                    await cursor.fetchone()
            return (await cursor.fetch_arrow_table()).num_rows

    assert run(main) == 1


# ---- statements -------------------------------------------------------------

def test_changes_are_counted(run, link):
    kind, connect = link

    async def main():
        async with connect() as connection:
            await make(connection)
            cursor = connection.cursor()
            assert cursor.rowcount == -1
            await cursor.execute(" -- a\nINSERT INTO t VALUES (1, 'a'), (2, 'b')")
            assert (cursor.rowcount, cursor.description) == (2, None)
            await cursor.execute("UPDATE t SET x = 'c'")
            assert cursor.rowcount == 2
            await cursor.execute("DELETE FROM t WHERE n = 7")
            assert cursor.rowcount == 0
            await cursor.execute("CREATE TABLE IF NOT EXISTS t (n INT)")
            assert (cursor.rowcount, cursor.description) == (-1, None)
            await cursor.execute("INSERT INTO t VALUES (3, 'd') RETURNING n")
            return await cursor.fetchall()

    assert run(main) == [(3,)]


def test_parameters_are_in_order_or_have_names(run, link):
    kind, connect = link

    async def main():
        async with connect() as connection:
            await make(connection)
            cursor = connection.cursor()
            await cursor.execute(f"INSERT INTO t VALUES ({place(kind)}, "
                                 f"{place(kind, 2)})", (1, "it's"))
            await cursor.execute("INSERT INTO t VALUES (:n, :x)",
                                 {"x": ":n", "n": 2})
            assert cursor.rowcount == 1
            await cursor.execute("SELECT n FROM t WHERE x = :x AND ':n' <> 'n' "
                                 "AND n < :n OR n = :n -- :x",
                                 {"x": "it's", "n": 2})
            assert sorted(await cursor.fetchall()) == [(1,), (2,)]
            await cursor.execute(f"SELECT x FROM t WHERE n = {place(kind)}",
                                 pa.table({"n": [2]}))
            assert await cursor.fetchall() == [(":n",)]
            for nothing in [], (), {}, None:
                await cursor.execute("SELECT 1", nothing)
                assert await cursor.fetchall() == [(1,)]
            with pytest.raises(uvarrow.adbc.DatabaseError, match="parameter"):
                await cursor.execute("SELECT x FROM t WHERE n = :n",
                                     {"n": 1, "m": 2})

    run(main)


@pytest.mark.parametrize("rows", [
    [(1, "a"), (2, None)], ((1, "a"), [2, None]),
    [{"n": 1, "x": "a"}, {"x": None, "n": 2}],
    pa.table({"n": [1, 2], "x": ["a", None]}).to_batches()[0]],
    ids=["tuples", "lists", "dicts", "Arrow"])
def test_a_statement_is_executed_for_each_row(run, link, rows):
    kind, connect = link
    if kind == "duckdb" and isinstance(rows, pa.RecordBatch):
        pytest.skip("it takes one row of a batch")
    sql = ("INSERT INTO t VALUES (:n, :x)"
           if isinstance(rows, list) and isinstance(rows[0], dict) else
           f"INSERT INTO t VALUES ({place(kind)}, {place(kind, 2)})")

    async def main():
        async with connect() as connection:
            await make(connection)
            cursor = connection.cursor()
            assert await cursor.executemany(sql, rows) is None
            assert cursor.rowcount == (-1 if kind == "duckdb" else 2)
            assert cursor.description is None
            await cursor.executemany(sql, [])
            assert cursor.rowcount == 0
            await cursor.execute("DELETE FROM t WHERE x = 'b'")
            await cursor.execute("SELECT * FROM t ORDER BY n")
            return await cursor.fetchall()

    assert run(main) == [(1, "a"), (2, None)]


def test_rows_of_parameters_may_be_any_iterable(run, link):
    kind, connect = link

    async def main():
        async with connect() as connection:
            await make(connection)
            cursor = connection.cursor()
            await cursor.executemany(
                f"INSERT INTO t VALUES ({place(kind)}, {place(kind, 2)})",
                ((i, str(i)) for i in range(100)))
            return await numbers(connection)

    assert run(main) == list(range(100))


def test_unlike_rows_of_parameters_are_refused(run, link):
    kind, connect = link

    async def main():
        async with connect() as connection:
            await make(connection)
            cursor = connection.cursor()
            sql = f"INSERT INTO t VALUES ({place(kind)}, {place(kind, 2)})"
            with pytest.raises(ValueError, match="number 1 has other values"):
                await cursor.executemany(sql, [(1, "a"), (2,)])
            with pytest.raises(ValueError, match="number 1 has other names"):
                await cursor.executemany("INSERT INTO t VALUES (:n, :x)",
                                         [{"n": 1, "x": "a"}, {"n": 2}])
            with pytest.raises(TypeError, match="seq_of_parameters must be"):
                await cursor.executemany(sql, 5)
            await connection.rollback()
            return await numbers(connection)

    assert run(main) == []


def test_data_is_written_into_a_table(run, link):
    kind, connect = link

    async def later():
        yield {"n": 3}
        yield {"n": 4}

    async def main():
        async with connect() as connection:
            await connection.execute("DROP TABLE IF EXISTS made")
            cursor = connection.cursor()
            count = await cursor.adbc_ingest("made", pa.table({"n": [1, 2]}))
            assert count == cursor.rowcount and count in (2, -1)
            await cursor.adbc_ingest("made", later(), "append")
            await cursor.adbc_ingest("made", [{"n": 5}], mode="append")
            await cursor.execute("SELECT n FROM made ORDER BY n")
            assert await cursor.fetchall() == [(i,) for i in range(1, 6)]
            with pytest.raises(ValueError, match="mode must be"):
                await cursor.adbc_ingest("made", [{"n": 5}], mode="upsert")
            with pytest.raises(uvarrow.adbc.DatabaseError):
                await cursor.adbc_ingest("made", [{"n": 5}])
            await connection.rollback()
        async with connect() as connection:
            await connection.execute("DROP TABLE IF EXISTS made")

    run(main)


def test_a_temporary_table_is_the_connection_s(run, link):
    kind, connect = link

    async def main():
        async with connect() as connection:
            cursor = connection.cursor()
            await cursor.adbc_ingest("mine", [{"n": 1}], temporary=True)
            await cursor.execute("SELECT n FROM mine")
            assert await cursor.fetchall() == [(1,)]
            await connection.commit()
            async with connect(autocommit=True) as other:
                with pytest.raises(uvarrow.adbc.DatabaseError, match="mine"):
                    await other.execute("SELECT n FROM mine")

    run(main)


# ---- several cursors --------------------------------------------------------

def test_a_cursor_reads_while_another_writes(run, link):
    """The rest of its result is kept, as the connection has one at a time."""
    kind, connect = link

    async def main():
        async with connect() as connection:
            await make(connection)
            read, write = connection.cursor(), connection.cursor()
            await read.execute(COUNT[kind].format(20000))
            seen = 0
            async for n, in read:
                seen += 1
                if n % 4000 == 0:
                    await write.execute(f"INSERT INTO t VALUES ({n}, '')")
                    await connection.commit()
            return seen, await numbers(connection)

    assert run(main) == (20000, [4000, 8000, 12000, 16000, 20000])


def test_a_result_that_is_not_read_is_in_no_one_s_way(run, link):
    kind, connect = link

    async def main():
        async with connect() as connection:
            await make(connection)
            for _ in range(3):
                assert await (await connection.execute(
                    COUNT[kind].format(300000))).fetchone() == (1,)
            async with connection.cursor() as cursor:
                await cursor.execute(COUNT[kind].format(300000))
                await cursor.execute("INSERT INTO t VALUES (1, '')")
                await cursor.execute(COUNT[kind].format(300000))
            await connection.commit()
            return await numbers(connection)

    assert run(main) == [1]


def test_a_result_fails_where_its_query_does(run, link):
    """Also if its rest was kept."""
    kind, connect = link
    text = {"sqlite": "SELECT abs(CASE n WHEN 20000 THEN -9223372036854775808 "
                      "ELSE n END) FROM ({})",
            "duckdb": "SELECT CASE n WHEN 20000 THEN error('mine') ELSE 'x' END "
                      "FROM ({}) q",
            "postgresql": "SELECT 1 / (n - 20000) FROM ({}) q"}[kind].format(
                COUNT[kind].format(20000))

    async def main():
        async with connect(autocommit=True, batch_bytes=4096) as connection:
            for keeps in False, True:
                cursor = await connection.execute(text)
                assert await cursor.fetchone() is not None
                if keeps:
                    await connection.execute("SELECT 1")
                with pytest.raises(uvarrow.adbc.DatabaseError):
                    await cursor.fetchall()

    if kind == "duckdb":
        pytest.skip("it executes before it gives rows")
    run(main)


# ---- how it is used ---------------------------------------------------------

def test_a_connection_is_awaited_or_entered(run, link):
    kind, connect = link

    async def main():
        connection = connect()
        if kind != "duckdb": # of a pool
            connection = await connection
        assert (connection.closed, connection.autocommit) == (False, False)
        async with connection:
            await make(connection, 1)
        assert connection.closed
        await connection.close()
        with pytest.raises(uvarrow.adbc.InterfaceError, match="is closed"):
            connection.cursor()
        with pytest.raises(uvarrow.adbc.InterfaceError, match="is closed"):
            await connection.commit()
        with pytest.raises(uvarrow.adbc.InterfaceError, match="is closed"):
            await connection.rollback()

    run(main)


def test_a_cursor_is_used_as_documented(run, link):
    kind, connect = link
    errors = uvarrow.adbc

    async def main():
        async with connect() as connection:
            cursor = connection.cursor()
            for fetch in (cursor.fetchone, cursor.fetchmany, cursor.fetchall,
                          cursor.fetch_arrow_table, cursor.fetch_df):
                with pytest.raises(errors.ProgrammingError, match="no result"):
                    await fetch()
            with pytest.raises(errors.NotSupportedError):
                await cursor.callproc("f")
            cursor.setinputsizes([1])
            cursor.setoutputsize(1)
            with pytest.raises(TypeError, match="operation must be a str"):
                await cursor.execute(b"SELECT 1")
            with pytest.raises(ValueError, match="timeout is negative"):
                await cursor.execute("SELECT 1", timeout=-1)
            with pytest.raises(TypeError, match="options must be a mapping"):
                connection.cursor(options=5)
            await cursor.execute("SELECT 1")
            await cursor.close()
            await cursor.close()
            with pytest.raises(errors.InterfaceError, match="cursor is closed"):
                await cursor.fetchone()
            with pytest.raises(errors.InterfaceError, match="cursor is closed"):
                await cursor.execute("SELECT 1")
            assert connection.ProgrammingError is errors.ProgrammingError
            assert "Connection at" in repr(connection)

    run(main)


def test_the_module_is_one_of_pep_249():
    module = uvarrow.adbc
    assert (module.apilevel, module.threadsafety, module.paramstyle) == (
        "2.0", 1, "qmark")
    assert module.Error is uvarrow.Error
    assert issubclass(module.InterfaceError, module.Error)
    for name in ("DataError", "OperationalError", "IntegrityError",
                 "InternalError", "ProgrammingError", "NotSupportedError"):
        assert issubclass(getattr(module, name), module.DatabaseError)
        assert getattr(module.Connection, name) is getattr(module, name)
    assert issubclass(module.Warning, Exception)
    with pytest.raises(TypeError, match="autocommit"):
        module.connect("sqlite:x", autocommit=1)
    with pytest.raises(ValueError, match="timeout is negative"):
        module.connect("sqlite:x", timeout=-1)


def test_a_database_that_is_not_there(run, tmp_path):
    async def main():
        for uri in (f"sqlite:{tmp_path}/no/folder.db", "nothing:x", "x",
                    f"postgresql://nobody@/x?host={tmp_path}"):
            with pytest.raises(uvarrow.adbc.DatabaseError):
                await uvarrow.adbc.connect(uri)
            with pytest.raises(uvarrow.adbc.DatabaseError):
                async with uvarrow.adbc.connect(uri):
                    pass

    run(main)


def test_a_pool_has_connections(run, database):
    kind, pool = database

    async def main():
        with pytest.raises(uvarrow.adbc.InterfaceError, match="async with"):
            pool.connection().cursor()
        for i in range(10): # of 8 connections
            async with pool.connection() as connection:
                if i == 0:
                    await make(connection)
                await connection.execute(f"INSERT INTO t VALUES ({i}, '')")
        async with pool.connection(autocommit=True) as connection:
            return await numbers(connection)

    assert run(main) == list(range(10))


def test_flight_sql_has_cursors(run, flightsql):
    async def main():
        async with uvarrow.adbc.connect(flightsql, autocommit=True) as connection:
            cursor = await connection.execute("rows 3")
            assert cursor.description[0][:2] == ("n", pa.int64())
            assert await cursor.fetchall() == [(0,), (10,), (20,)]
            with pytest.raises(uvarrow.adbc.OperationalError):
                await cursor.execute("fails")
            cursor = await connection.execute("fails 1")
            with pytest.raises(uvarrow.adbc.OperationalError):
                await cursor.fetchall()
            cursor = await connection.execute("endless", timeout=0.2)
            with pytest.raises(TimeoutError):
                async for _ in cursor:
                    pass
            await connection.rollback()
            cursor = await connection.execute("rows 1")
            return await cursor.fetchall()

    assert run(main) == [(0,)]


def test_pyarrow_is_loaded_by_another_thread(run, monkeypatch):
    """Its import would hold the loop."""
    pytest.importorskip("adbc_driver_sqlite")
    threads = []

    def note(name):
        threads.append((name, threading.current_thread()))
        raise ImportError(name)

    async def main():
        async with uvarrow.adbc.connect("sqlite::memory:"):
            pass

    with monkeypatch.context() as patched:
        patched.delitem(sys.modules, "pyarrow")
        patched.setattr(uvarrow._connection.importlib, "import_module", note)
        run(main)
    assert [name for name, _ in threads] == ["pyarrow"]
    assert threads[0][1] is not threading.main_thread()
