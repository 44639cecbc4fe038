# SPDX-License-Identifier: Apache-2.0
"""Sessions on real databases: transactions of several tasks on one pool, and
how they end."""
import errno

import anyio
import pyarrow as pa
import pytest

import uvarrow
import uvarrow.adbc

SLOW = {"sqlite": """WITH RECURSIVE numbers(n) AS (
            SELECT 1 UNION ALL SELECT n + 1 FROM numbers)
            SELECT n FROM numbers""",
        "duckdb": "SELECT n FROM range(1000000000000) r (n)",
        "postgresql": "SELECT generate_series(1, 1000000000000) AS n"}


async def numbers(of):
    async with of.query("SELECT n FROM t ORDER BY n") as rows:
        return [n for batch in [b.to_pyarrow() async for b in rows]
                for n in batch.column(0).to_pylist()]


async def make(pool, *values):
    await pool.execute("DROP TABLE IF EXISTS t")
    await pool.execute("CREATE TABLE t (n BIGINT PRIMARY KEY)")
    for value in values:
        await insert(pool, value)


async def insert(of, n):
    await of.execute(f"INSERT INTO t VALUES ({n})")


async def read_all(rows):
    async with rows:
        async for _ in rows:
            pass


def test_a_session_commits_at_its_end(run, database):
    async def main():
        _, pool = database
        await make(pool)
        async with pool.session() as session:
            await insert(session, 1)
            await read_all(session.ingest("t", pa.table({"n": [2, 3]})))
            assert await numbers(session) == [1, 2, 3]
            assert await numbers(pool) == []
        return await numbers(pool)

    assert run(main) == [1, 2, 3]


def test_what_is_read_behind_a_session_is_refused(run, database):
    """It would be rolled back, though it reported success."""
    async def main():
        _, pool = database
        await make(pool)
        async with pool.session() as session:
            await insert(session, 1)
            late = [session.query("INSERT INTO t VALUES (2)"),
                    session.ingest("t", pa.table({"n": [3]}))]
        for stream in late:
            with pytest.raises(uvarrow.Error, match="is over") as caught:
                await stream.read_all()
            assert caught.value.errno == errno.ECANCELED
        return await numbers(pool)

    assert run(main) == [1]


@pytest.mark.parametrize("autocommit", [False, True])
def test_no_query_comes_behind_the_last_commit(run, database, autocommit):
    """All tasks that saw success are in the table."""
    async def write(session, n, ready):
        stream = (session.query(f"INSERT INTO t VALUES ({n})") if n % 2
                  else None)
        await ready.wait()
        try:
            if stream is None:
                await insert(session, n)
            else:
                await stream.read_all()
            told.append(n)
        except (RuntimeError, uvarrow.Error) as error:
            assert "is over" in str(error)
            refused.append(n)

    async def main():
        _, pool = database
        await make(pool)
        ready = anyio.Event()
        async with anyio.create_task_group() as group:
            async with pool.session(autocommit=autocommit) as session:
                if autocommit:
                    await session.begin()
                await insert(session, 0)
                for n in 1, 2:
                    group.start_soon(write, session, n, ready)
                await anyio.sleep(0)
                await anyio.sleep(0)
                ready.set() # they run while the session commits
        assert sorted(told + refused) == [1, 2] and refused
        return await numbers(pool)

    told, refused = [], []
    assert run(main) == sorted([0, *told])


def test_a_session_is_rolled_back_after_an_exception(run, database):
    async def main():
        _, pool = database
        await make(pool, 1)
        with pytest.raises(KeyError, match="mine"):
            async with pool.session() as session:
                await insert(session, 2)
                raise KeyError("mine")
        return await numbers(pool)

    assert run(main) == [1]


def test_a_session_commits_and_rolls_back_in_between(run, database):
    async def main():
        _, pool = database
        await make(pool)
        async with pool.session() as session:
            await insert(session, 1)
            await session.commit()
            await insert(session, 2)
            await session.rollback()
            await insert(session, 3)
            await session.commit()
            await session.rollback()
        return await numbers(pool)

    assert run(main) == [1, 3]


def test_a_session_with_autocommit_begins(run, database):
    async def main():
        _, pool = database
        await make(pool)
        async with pool.session(autocommit=True) as session:
            await session.execute("CREATE TEMPORARY TABLE mine (n BIGINT)")
            await session.execute("INSERT INTO mine VALUES (7)")
            await session.begin()
            await session.execute("INSERT INTO t SELECT n FROM mine")
            await session.rollback()
            await session.begin()
            await insert(session, 1)
            await read_all(session.ingest("t", pa.table({"n": [2, 3]})))
            await session.commit()
            await insert(session, 4)
            with pytest.raises(RuntimeError, match="no transaction"):
                await session.commit()
            await session.begin()
            with pytest.raises(RuntimeError, match="is in a transaction"):
                await session.begin()
            await insert(session, 5)
        return await numbers(pool)

    assert run(main) == [1, 2, 3, 4, 5]


def test_an_ingest_is_part_of_a_transaction_that_was_begun(run, database):
    async def main():
        _, pool = database
        await make(pool)
        async with pool.session(autocommit=True) as session:
            await session.begin()
            await read_all(session.ingest("t", pa.table({"n": [2, 3]})))
            await session.rollback()
        return await numbers(pool)

    assert run(main) == []


# Ten tasks: each inserts two rows and either commits or does not. On a pool
# their transactions mixed.
def test_transactions_of_several_tasks_do_not_mix(run, database):
    async def work(pool, task):
        try:
            async with pool.session() as session:
                await insert(session, 10 * task)
                await insert(session, 10 * task + 1)
                if task % 2:
                    raise KeyError
        except KeyError:
            pass

    async def main():
        kind, pool = database
        await make(pool)
        if kind == "sqlite": # which has one writer at a time
            for task in range(10):
                await work(pool, task)
        else:
            async with anyio.create_task_group() as group:
                for task in range(10):
                    group.start_soon(work, pool, task)
        return await numbers(pool)

    assert run(main) == [n for task in range(0, 10, 2)
                         for n in (10 * task, 10 * task + 1)]


@pytest.mark.parametrize("sql", ["begin", "/* a */ START transaction", "Commit;",
                                 "rollback", "-- b\nsavepoint a"])
def test_a_pool_has_no_transactions(run, database, sql):
    async def main():
        _, pool = database
        with pytest.raises(uvarrow.Error, match=r"pool\.session\(\)") as caught:
            await pool.execute(sql)
        return caught.value.errno, pool.stats()["queries"]

    assert run(main) == (errno.EINVAL, 0)


def test_the_transaction_of_a_session_has_its_own_ends(run, database):
    async def main():
        _, pool = database
        await make(pool)
        async with pool.session() as session:
            for sql, text in (("begin", "is in a transaction"),
                              ("commit", r"session\.commit\(\)"),
                              ("rollback", r"session\.rollback\(\)")):
                with pytest.raises(uvarrow.Error, match=text) as caught:
                    await session.execute(sql)
                assert caught.value.errno == errno.EINVAL
            await insert(session, 1)
        return await numbers(pool)

    assert run(main) == [1]


def test_a_commit_after_a_failure_states_what_happened(run, database):
    """PostgreSQL and DuckDB end the transaction, SQLite does not: the report
    of `commit()` is true in any case."""
    async def main():
        _, pool = database
        await make(pool, 1)
        committed = True
        async with pool.session() as session:
            await insert(session, 2)
            with pytest.raises(uvarrow.Error):
                await insert(session, 1)
            try:
                await session.commit()
            except uvarrow.Error:
                committed = False
            await insert(session, 3) # in the next transaction
        return committed, await numbers(pool)

    committed, rows = run(main)
    assert rows == ([1, 2, 3] if committed else [1, 3])


def test_a_commit_that_fails_is_rolled_back(run, database):
    """With autocommit, too: SQLite would keep the transaction open."""
    async def main():
        kind, pool = database
        if kind == "duckdb":
            pytest.skip("DuckDB has no constraints that a commit checks")
        await make(pool, 1)
        async with pool.session(autocommit=True) as session:
            if kind == "sqlite":
                await session.execute("PRAGMA foreign_keys = ON")
            await session.execute(
                "CREATE TEMPORARY TABLE a (n BIGINT PRIMARY KEY)")
            await session.execute("CREATE TEMPORARY TABLE b (n BIGINT REFERENCES "
                                  "a (n) DEFERRABLE INITIALLY DEFERRED)")
            await session.begin()
            await insert(session, 2)
            await session.execute("INSERT INTO b VALUES (7)")
            with pytest.raises(uvarrow.Error):
                await session.commit()
            await insert(session, 3)
            await session.begin()
            await insert(session, 4)
        return await numbers(pool)

    assert run(main) == [1, 3, 4]


def test_one_task_begins(run, database):
    """The other one fails at once, not by the database."""
    async def main():
        _, pool = database
        await make(pool)
        async with pool.session(autocommit=True) as session:
            async with anyio.create_task_group() as group:
                for _ in range(2):
                    group.start_soon(begin, session)
            await insert(session, 1)
        return await numbers(pool)

    async def begin(session):
        try:
            await session.begin()
        except RuntimeError as error:
            refused.append(str(error))

    refused = []
    assert run(main) == [1]
    assert len(refused) == 1 and "is in a transaction" in refused[0]


def test_savepoints_are_inside_a_transaction(run, database):
    async def main():
        kind, pool = database
        if kind == "duckdb":
            pytest.skip("DuckDB has no savepoints")
        await make(pool, 1)
        async with pool.session() as session:
            await session.execute("SAVEPOINT a")
            await insert(session, 3)
            await session.execute("ROLLBACK TO SAVEPOINT a")
            await insert(session, 2)
        return await numbers(pool)

    assert run(main) == [1, 2]


def test_a_cancelled_query_ends_the_session(run, database):
    async def main():
        kind, pool = database
        await make(pool)
        with pytest.raises(uvarrow.Error, match="cancelled") as caught:
            async with pool.session() as session:
                await insert(session, 1)
                async with session.query(SLOW[kind]) as rows:
                    async for _ in rows:
                        break
                await session.commit()
        return caught.value.errno, await numbers(pool)

    assert run(main) == (errno.ECONNABORTED, [])


def test_a_cancelled_task_is_rolled_back(run, database):
    async def main():
        kind, pool = database
        await make(pool)
        with anyio.move_on_after(60) as scope:
            async with pool.session() as session:
                await insert(session, 1)
                async with session.query(SLOW[kind]) as rows:
                    async for _ in rows:
                        scope.cancel()
        return await numbers(pool)

    assert run(main) == []


def test_the_connection_goes_back(run, request, database):
    async def main():
        _, pool = database
        await make(pool)
        for _ in range(30): # of 8 connections
            async with pool.session() as session:
                assert await numbers(session) == []
            with pytest.raises(KeyError):
                async with pool.session() as session:
                    await insert(session, 1)
                    raise KeyError
        return await numbers(pool)

    assert run(main) == []


def test_a_session_is_used_as_documented(run, database):
    async def main():
        _, pool = database
        session = pool.session()
        with pytest.raises(RuntimeError, match="async with"):
            session.query("SELECT 1")
        async with session:
            with pytest.raises(RuntimeError, match="entered once"):
                await session.__aenter__()
        with pytest.raises(RuntimeError, match="is over"):
            session.query("SELECT 1")
        with pytest.raises(RuntimeError, match="is over"):
            await session.commit()
        with pytest.raises(TypeError, match="autocommit"):
            pool.session(autocommit=1)
        with pytest.raises(TypeError, match="options"):
            pool.session(options=[1])

    run(main)
