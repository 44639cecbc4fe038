# SPDX-License-Identifier: Apache-2.0
"""How transactions and statements of a connection end: by commits, exceptions,
cancels, limits of time, and databases that do not answer."""
import asyncio
import errno
import gc
import os
import time
import warnings

import anyio
import pytest

import uvarrow
import uvarrow.adbc
from test_connection import COUNT, make, numbers
from test_session import SLOW

Operational = uvarrow.adbc.OperationalError
# executes for ever, before its first row
STUCK = {"sqlite": f"SELECT count(*) FROM ({SLOW['sqlite']})",
         "duckdb": "SELECT count(*) FROM range(1000000000000)",
         "postgresql": "SELECT pg_sleep(10000)"}


async def insert(connection, n):
    await connection.execute(f"INSERT INTO t VALUES ({n}, '')")


def used_by_others():
    """Seconds of CPU of all threads but this."""
    return time.process_time() - time.thread_time()


async def begun(cursor):
    """Returns when its statement has the connection."""
    while cursor._stream is None or \
            cursor._stream.stats()[0].waiting == "permit":
        await anyio.sleep(0)


async def running(cursor, kind):
    """Returns when its statement has the connection, and where the database is
    in this process, when it computes."""
    await begun(cursor)
    enough = used_by_others() + 0.05
    while kind in ("sqlite", "duckdb") and used_by_others() < enough:
        await anyio.sleep(0)


async def cancel_running(scope, cursor, kind):
    await running(cursor, kind)
    scope.cancel()


async def seen(connect):
    """The table as another connection sees it."""
    async with connect(autocommit=True) as other:
        return await numbers(other)


# ---- commits and roll-backs -------------------------------------------------

def test_a_connection_commits_at_its_end(run, link):
    _, connect = link

    async def main():
        async with connect() as connection:
            await make(connection)
            await insert(connection, 1)
            assert await seen(connect) == []
        return await seen(connect)

    assert run(main) == [1]


def test_it_is_rolled_back_after_an_exception(run, link):
    _, connect = link

    async def main():
        with pytest.raises(KeyError, match="mine"):
            async with connect() as connection:
                await make(connection)
                await insert(connection, 1)
                raise KeyError("mine")
        assert connection.closed
        return await seen(connect)

    assert run(main) == []


def test_a_close_rolls_back(run, link):
    _, connect = link

    async def main():
        connection = await connect().__aenter__()
        await make(connection)
        await insert(connection, 1)
        await connection.close()
        async with connect() as other: # no lock is left
            await insert(other, 2)
            await other.close()
        return await seen(connect)

    assert run(main) == []


def test_commits_and_rollbacks_in_between(run, link):
    _, connect = link

    async def main():
        async with connect() as connection:
            await connection.commit()
            await connection.rollback()
            await make(connection)
            await insert(connection, 1)
            await connection.commit()
            await insert(connection, 2)
            await connection.rollback()
            await insert(connection, 3)
        return await seen(connect)

    assert run(main) == [1, 3]


def test_with_autocommit_each_statement_is_a_transaction(run, link):
    _, connect = link

    async def main():
        async with connect(autocommit=True) as connection:
            await make(connection)
            await insert(connection, 1)
            await connection.rollback()
            assert await seen(connect) == [1]
            await connection.execute("BEGIN")
            await insert(connection, 2)
            await connection.execute("ROLLBACK")
            await connection.commit()
        return await seen(connect)

    assert run(main) == [1]


def test_sql_ends_no_transaction_of_a_connection(run, link):
    _, connect = link

    async def main():
        async with connect() as connection:
            for sql in "BEGIN", "COMMIT", "/* a */ rollback":
                with pytest.raises(uvarrow.adbc.ProgrammingError,
                                   match="transaction"):
                    await connection.execute(sql)

    run(main)


def test_after_a_query_that_fails_there_is_rollback(run, link):
    kind, connect = link

    async def main():
        async with connect() as connection:
            await make(connection, 1)
            await insert(connection, 2)
            with pytest.raises(uvarrow.adbc.IntegrityError):
                await insert(connection, 1)
            if kind != "sqlite": # whose transaction goes on
                with pytest.raises(uvarrow.adbc.DatabaseError):
                    await connection.commit()
            await connection.rollback()
            await insert(connection, 3)
        return await seen(connect)

    assert run(main) == [1, 3]


# ---- transaction() ----------------------------------------------------------

async def values(pool):
    return [n for batch in await pool.query("SELECT n FROM t ORDER BY n").read_all()
            for n in batch.to_pyarrow().column(0).to_pylist()]


async def table(pool):
    await pool.execute("DROP TABLE IF EXISTS t")
    await pool.execute("CREATE TABLE t (n BIGINT PRIMARY KEY, x TEXT)")


async def read_slowly(one, kind, scope):
    """Cancels the task in the midst of a result."""
    if isinstance(one, uvarrow.adbc.Session):
        async with one.query(SLOW[kind]) as rows:
            async for _ in rows:
                scope.cancel()
    else:
        async for _ in await one.execute(SLOW[kind]):
            scope.cancel()


KINDS_OF = pytest.mark.parametrize("of", ["connection", "session"])
COMMITS = pytest.mark.parametrize("autocommit", [False, True])


@KINDS_OF
@COMMITS
def test_a_transaction_commits_or_rolls_back(run, database, of, autocommit):
    _, pool = database

    async def main():
        await table(pool)
        async with getattr(pool, of)(autocommit=autocommit) as one:
            async with one.transaction():
                await insert(one, 1)
                assert await values(pool) == []
            assert await values(pool) == [1]
            with pytest.raises(KeyError, match="mine"):
                async with one.transaction():
                    await insert(one, 2)
                    raise KeyError("mine")
            async with one.transaction():
                await insert(one, 3)
            assert await values(pool) == [1, 3]
            await insert(one, 4)
        return await values(pool)

    assert run(main) == [1, 3, 4]


@KINDS_OF
@COMMITS
def test_a_transaction_in_a_transaction_is_a_savepoint(run, database, of,
                                                       autocommit):
    kind, pool = database

    async def main():
        await table(pool)
        async with getattr(pool, of)(autocommit=autocommit) as one:
            async with one.transaction():
                await insert(one, 1)
                async with one.transaction():
                    await insert(one, 2)
                assert await values(pool) == []
                with pytest.raises(KeyError):
                    async with one.transaction():
                        await insert(one, 3)
                        async with one.transaction():
                            await insert(one, 4)
                        raise KeyError
                await insert(one, 5)
            assert await values(pool) == [1, 2, 5]
            with pytest.raises(KeyError):
                async with one.transaction(), one.transaction():
                    await insert(one, 6)
                    raise KeyError
        return await values(pool)

    if kind == "duckdb":
        with pytest.raises(uvarrow.adbc.DatabaseError, match="SAVEPOINT"):
            run(main)
    else:
        assert run(main) == [1, 2, 5]


@KINDS_OF
def test_a_transaction_within_begun_work_is_a_savepoint(run, database, of):
    kind, pool = database
    if kind == "duckdb":
        pytest.skip("DuckDB has no savepoints")

    async def main():
        await table(pool)
        async with getattr(pool, of)() as one:
            await insert(one, 1)
            with pytest.raises(KeyError):
                async with one.transaction():
                    await insert(one, 2)
                    raise KeyError
            async with one.transaction():
                await insert(one, 3)
            assert await values(pool) == []
            await one.commit()
            async with one.transaction():
                await insert(one, 4)
            assert await values(pool) == [1, 3, 4]

    run(main)


@KINDS_OF
@COMMITS
def test_a_cancelled_transaction_is_rolled_back(run, database, of, autocommit):
    """While no statement runs, and while one does."""
    kind, pool = database

    async def main():
        await table(pool)
        for reads in False, True:
            async with getattr(pool, of)(autocommit=autocommit) as one:
                with anyio.CancelScope() as scope:
                    async with one.transaction():
                        await insert(one, 1)
                        if reads:
                            await read_slowly(one, kind, scope)
                        scope.cancel()
                        await anyio.sleep_forever()
                assert scope.cancelled_caught
                if not reads: # it goes on
                    async with one.transaction():
                        await insert(one, 2)
                elif of == "connection":
                    await one.rollback()
                    await insert(one, 3)
                else:
                    with pytest.raises(uvarrow.Error) as caught:
                        await insert(one, 4)
                    assert caught.value.errno == errno.ECONNABORTED
                    one._begun = False # there is nothing to commit
        return await values(pool)

    assert run(main) == ([2, 3] if of == "connection" else [2])


@KINDS_OF
def test_a_savepoint_is_gone_after_a_cancel(run, database, of):
    kind, pool = database
    if kind == "duckdb":
        pytest.skip("DuckDB has no savepoints")

    async def main():
        await table(pool)
        async with getattr(pool, of)() as one:
            await insert(one, 1)
            with anyio.CancelScope() as scope:
                async with one.transaction():
                    await insert(one, 2)
                    scope.cancel()
                    await anyio.sleep_forever()
            await insert(one, 3)
        return await values(pool)

    assert run(main) == [1, 3]


@KINDS_OF
def test_a_transaction_is_used_as_documented(run, database, of):
    _, pool = database

    async def main():
        async with getattr(pool, of)() as one:
            block = one.transaction()
            async with block:
                for method in one.commit, one.rollback:
                    with pytest.raises((RuntimeError, uvarrow.Error),
                                       match="which ends it"):
                        await method()
            with pytest.raises(RuntimeError, match="entered once"):
                async with block:
                    pass
        with pytest.raises((RuntimeError, uvarrow.Error), match="over|closed"):
            one.transaction()

    run(main)


def test_a_commit_that_fails_is_raised_by_the_transaction(run, postgresql):
    async def main():
        async with uvarrow.adbc.connect(postgresql) as connection:
            await connection.execute("DROP TABLE IF EXISTS late")
            await connection.execute("CREATE TABLE late (n INT UNIQUE DEFERRABLE "
                                     "INITIALLY DEFERRED)")
            await connection.commit()
            with pytest.raises(uvarrow.adbc.IntegrityError):
                async with connection.transaction():
                    await connection.execute("INSERT INTO late VALUES (1), (1)")
            async with connection.transaction():
                await connection.execute("INSERT INTO late VALUES (2)")
            cursor = await connection.execute("SELECT n FROM late")
            return await cursor.fetchall()

    assert run(main) == [(2,)]


# ---- cancels and limits of time ---------------------------------------------

async def go_on(connect, connection, may_be_early=False):
    """All statements fail until a roll-back, after which it works; unless the
    statement was cancelled before the database got it."""
    if not may_be_early:
        for _ in range(2):
            with pytest.raises(Operational, match=r"rollback\(\)") as caught:
                await connection.execute("SELECT 1")
            assert caught.value.errno == errno.ECONNABORTED
    if not connection.autocommit and not may_be_early:
        with pytest.raises(Operational):
            await connection.commit()
    await connection.rollback()
    assert await numbers(connection) == ([1] if connection.autocommit else [])
    await insert(connection, 5)
    await connection.commit()
    assert 5 in await seen(connect)


@pytest.mark.parametrize("how, autocommit", [
    ("execute", False), ("execute", True), ("fetch", False), ("arrow", True)])
def test_a_cancelled_task_cancels_its_statement(run, link, how, autocommit):
    kind, connect = link

    async def wait(connection, scope, group):
        cursor = connection.cursor()
        if how == "execute":
            group.start_soon(cancel_running, scope, cursor, kind)
            await cursor.execute(STUCK[kind])
        await cursor.execute(SLOW[kind])
        scope.cancel()
        await (cursor.fetchall() if how == "fetch" else
               cursor.fetch_arrow_table())

    async def main():
        async with connect(autocommit=autocommit) as connection:
            await make(connection)
            await insert(connection, 1)
            with anyio.CancelScope() as scope:
                async with anyio.create_task_group() as group:
                    await wait(connection, scope, group)
            assert scope.cancelled_caught
            await go_on(connect, connection, how == "execute")

    run(main)


@pytest.mark.parametrize("turns", range(0, 60, 12))
def test_a_cancel_before_the_database_has_begun_is_not_lost(run, link, turns):
    """A database may forget it. It is in the rollback alone, which would wait
    for half a minute, that this is seen."""
    kind, connect = link

    async def cancel(scope, cursor):
        await begun(cursor)
        for _ in range(turns):
            await anyio.sleep(0)
        scope.cancel()

    async def main():
        async with connect() as connection:
            with anyio.CancelScope() as scope:
                async with anyio.create_task_group() as group:
                    cursor = connection.cursor()
                    group.start_soon(cancel, scope, cursor)
                    await cursor.execute(STUCK[kind])
            assert scope.cancelled_caught
            await connection.rollback()

    run(main)


@pytest.mark.parametrize("where, autocommit", [
    ("execute", False), ("execute", True), ("cursor", False),
    ("connection", False), ("many", False)])
def test_a_statement_has_a_limit_of_time(run, link, where, autocommit):
    kind, connect = link
    if where == "many" and kind != "postgresql":
        pytest.skip("it has no statement that writes for ever")

    async def main():
        async with connect(autocommit=autocommit, timeout=1.0 if
                           where == "connection" else None) as connection:
            await make(connection)
            await insert(connection, 1)
            cursor = connection.cursor(timeout=0.05 if where == "cursor" else None)
            with pytest.raises(TimeoutError) as caught:
                if where == "many":
                    await cursor.executemany(
                        "INSERT INTO t SELECT 7, pg_sleep($1)::text", [(1e4,)],
                        timeout=0.05)
                elif where == "execute":
                    await cursor.execute(STUCK[kind], timeout=0.05)
                else:
                    await cursor.execute(STUCK[kind])
            assert type(caught.value).__name__ == "OperationalError"
            assert isinstance(caught.value, Operational)
            await go_on(connect, connection)

    run(main)


@pytest.mark.parametrize("of, when", [
    ("cursor", "execute"), ("connection", "execute"), ("connection", "fetch"),
    ("cursor", "between")])
def test_adbc_cancel_ends_a_statement(run, link, of, when):
    kind, connect = link

    async def cancel(one, cursor):
        if when == "execute":
            await running(cursor, kind)
        one.adbc_cancel()

    async def main():
        async with connect() as connection, anyio.create_task_group() as group:
            await make(connection)
            await insert(connection, 1)
            cursor = connection.cursor()
            one = cursor if of == "cursor" else connection
            one.adbc_cancel() # there is nothing to cancel
            if when != "execute":
                await cursor.execute(SLOW[kind])
                await cursor.fetchone()
            if when == "between":
                one.adbc_cancel()
            group.start_soon(cancel, one, cursor)
            with pytest.raises(Operational) as caught:
                await (cursor.execute(STUCK[kind]) if when == "execute" else
                       cursor.fetchall())
            assert caught.value.errno == errno.ECANCELED
            await go_on(connect, connection, when == "execute")

    run(main)


def test_an_exception_of_a_reader_ends_its_statement(run, link):
    """Which it need not read to its end; a short one leaves the connection as it
    was."""
    kind, connect = link

    async def main():
        async with connect() as connection:
            await make(connection)
            for sql, is_lost in (COUNT[kind].format(3), False), (SLOW[kind], True):
                await insert(connection, 1)
                with pytest.raises(KeyError, match="mine"):
                    async with connection.cursor() as cursor:
                        await cursor.execute(sql)
                        async for _ in cursor:
                            raise KeyError("mine")
                if is_lost:
                    with pytest.raises(Operational, match=r"rollback\(\)"):
                        await connection.execute("SELECT 1")
                else:
                    assert await numbers(connection) == [1]
                await connection.rollback()
            assert await numbers(connection) == []

    run(main)


def test_a_rollback_waits_for_no_result(run, link):
    kind, connect = link

    async def main():
        async with connect() as connection:
            await make(connection)
            await insert(connection, 1)
            cursor = await connection.execute(SLOW[kind])
            short = await cursor.fetchmany(2)
            await connection.rollback()
            with pytest.raises(Operational, match="cancelled"):
                await cursor.fetchall()
            assert await numbers(connection) == []
        return short

    assert len(run(main)) == 2


def test_a_source_that_raises_undoes_an_ingest(run, link):
    kind, connect = link

    def rows():
        yield {"n": 1, "x": "a"}
        raise KeyError("mine")

    async def later():
        yield {"n": 1, "x": "a"}
        raise KeyError("mine")

    async def main():
        async with connect() as connection:
            await make(connection)
            for data in rows(), later():
                with pytest.raises(KeyError, match="mine"):
                    await connection.cursor().adbc_ingest("t", data, "append")
                await connection.rollback()
            with pytest.raises(KeyError, match="mine"):
                await connection.cursor().executemany("INSERT INTO t VALUES (1)",
                                                      rows())
            return await numbers(connection)

    assert run(main) == []


def test_a_source_that_never_yields_is_cancelled(run, link):
    kind, connect = link

    async def never(scope):
        scope.cancel()
        await anyio.sleep_forever()
        yield {"n": 1}

    async def main():
        async with connect() as connection:
            await make(connection)
            with anyio.CancelScope() as scope:
                await connection.cursor().adbc_ingest("t", never(scope), "append")
            assert scope.cancelled_caught
            await connection.rollback()
            return await numbers(connection)

    assert run(main) == []


def test_a_cancelled_connection_is_rolled_back(run, link):
    kind, connect = link

    async def main():
        async with connect() as connection:
            await make(connection)
        for is_stuck in True, False:
            with anyio.CancelScope() as scope:
                async with connect() as connection, \
                        anyio.create_task_group() as group:
                    await insert(connection, 1)
                    cursor = connection.cursor()
                    if is_stuck:
                        group.start_soon(cancel_running, scope, cursor, kind)
                        await cursor.execute(STUCK[kind])
                    await read_slowly(connection, kind, scope)
            assert scope.cancelled_caught and connection.closed
        async with connect() as connection:
            await insert(connection, 2) # workers end the lost ones
        return await seen(connect)

    assert run(main) == [2]


# ---- tasks, loops and the end -----------------------------------------------

def test_a_connection_serves_one_task_at_a_time(run, link):
    kind, connect = link

    async def main():
        async with connect() as connection:
            async with anyio.create_task_group() as group:
                with pytest.raises(uvarrow.adbc.InterfaceError,
                                   match="another task"):
                    cursor = connection.cursor()
                    group.start_soon(stick, cursor)
                    await running(cursor, kind)
                    await connection.execute("SELECT 1")
                with pytest.raises(uvarrow.adbc.InterfaceError,
                                   match="another task"):
                    await connection.commit()
                await connection.close() # ends that statement
            return caught[0].errno

    async def stick(cursor):
        try:
            await cursor.execute(STUCK[kind])
        except uvarrow.Error as error:
            caught.append(error)

    caught = []
    assert run(main) == errno.ECANCELED


def test_a_connection_belongs_to_a_loop(tmp_path):
    pytest.importorskip("adbc_driver_sqlite")

    async def begin():
        connection = await uvarrow.adbc.connect("sqlite::memory:")
        await connection.execute("SELECT 1")
        return connection

    async def use(connection):
        with pytest.raises(uvarrow.adbc.InterfaceError, match="another loop"):
            await connection.execute("SELECT 1")

    connection = asyncio.run(begin())
    asyncio.run(use(connection))
    connection._shut()


def test_a_database_is_closed_when_its_connection_is(run, tmp_path):
    """A file of DuckDB can be opened again at once, which failed now and then:
    its log was gone."""
    pytest.importorskip("adbc_driver_duckdb")
    uri = f"duckdb:{tmp_path / 'a.db'}"

    async def main():
        for i in range(10):
            async with uvarrow.adbc.connect(uri) as connection:
                if i == 0:
                    await make(connection)
                await insert(connection, i)
            assert not (tmp_path / "a.db.wal").exists() # it is checkpointed
            assert files_open(tmp_path) == []
            if i % 2:
                async with uvarrow.adbc.Pool(uri=uri) as pool:
                    assert await values(pool) == list(range(i + 1))
                assert files_open(tmp_path) == []

    run(main)


def files_open(folder):
    paths = [os.path.join("/proc/self/fd", one) for one in os.listdir("/proc/self/fd")]
    return [os.readlink(path) for path in paths if os.path.islink(path)
            and os.readlink(path).startswith(str(folder))]


def test_a_close_waits_for_a_query_but_briefly(run):
    pytest.importorskip("adbc_driver_sqlite")

    async def main():
        pool = uvarrow.adbc.Pool("sqlite", uri=":memory:")
        await pool.aclose(seconds=None) # it was never used
        pool = uvarrow.adbc.Pool("sqlite", uri=":memory:")
        async with pool.query(SLOW["sqlite"]) as rows:
            await anext(rows)
            await pool.aclose(seconds=0.01)
            with pytest.raises(RuntimeError, match="closed"):
                pool.query("SELECT 1")
            assert len(await anext(rows)) > 0
        await pool.aclose(seconds=None)
        await pool.aclose()

    run(main)


def test_a_connection_that_is_dropped_warns(run, link):
    kind, connect = link

    async def main():
        connection = await connect().__aenter__()
        await make(connection)
        await insert(connection, 1)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            del connection
            gc.collect()
        assert [str(one.message).split(" at ")[0] for one in caught] == [
            "unclosed <uvarrow.adbc.Connection"]
        async with connect() as other: # a worker rolls back
            await insert(other, 2)
        return await seen(connect)

    assert run(main) == [2]


def test_a_lost_server_is_found_again(run, postgresql):
    async def main():
        async with uvarrow.adbc.connect(postgresql) as connection:
            await connection.execute("CREATE TEMP TABLE mine (n INT)")
            with pytest.raises(Operational):
                await connection.execute(
                    "SELECT pg_terminate_backend(pg_backend_pid())")
            with pytest.raises(uvarrow.adbc.DatabaseError):
                await connection.execute("SELECT 1")
            await connection.rollback()
            cursor = await connection.execute("SELECT 2")
            return await cursor.fetchall()

    assert run(main) == [(2,)]
