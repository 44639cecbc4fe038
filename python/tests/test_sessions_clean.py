# SPDX-License-Identifier: Apache-2.0
"""The state that a query leaves in its session never meets the next one: each
way in which one user may leave state, as seen by another user of the same
connection. Each is seen with `keeps_session`, so that a test may fail, and not
without."""
import asyncio
import os
import subprocess
import sys
import textwrap

import pytest

import uvarrow
import uvarrow.adbc

# tables that both users see in the database
SETUP = {
    "sqlite": ["create table flights (n int)",
               "insert into flights values (1)"],
    "duckdb": ["create table flights (n int)",
               "insert into flights values (1)",
               "create schema evil", "create table evil.flights (n int)",
               "insert into evil.flights values (666)"],
    "postgresql": [
        "drop schema if exists evil cascade",
        "drop table if exists flights", "create table flights (n int)",
        "insert into flights values (1)",
        "drop sequence if exists numbers", "create sequence numbers",
        "create schema evil",
        "create function evil.lower(text) returns text language sql "
        "as 'select ''evil''::text'",
        "do $$ begin create role nobody_else; "
        "exception when duplicate_object then null; end $$"]}

FLIGHTS = "select min(n) as v from flights"
COUNT = "select count(*) as v from flights"
# hides from a pool a statement that it refuses: the text goes on behind the
# comment, where it still has escapes
MOMENT = "select e'' --\n'\\''; "
SPACE = "\u00a0"  # one for DuckDB alone


def _setting(name, value):
    return (f"set {name} = {value}",
            f"select current_setting('{name}')::text as v")


def _pragma(name, value):
    return f"pragma {name} = {value}", f"pragma {name}"


# (statements of one user, the look of the other one)
ATTACKS = {
    "sqlite": [
        ("create temp view flights as select 666 as n", FLIGHTS),
        ("create temp table flights as select 666 as n", FLIGHTS),
        ("/* select */ create temp view flights as select 7 as n", FLIGHTS),
        ("create temp trigger evil after insert on flights begin "
         "delete from flights; end", "select count(*) from temp.sqlite_master"),
        ("attach ':memory:' as other",
         "select count(*) from pragma_database_list where name = 'other'"),
        ("insert into flights values (2)", "select last_insert_rowid()"),
        ("with a as (select 2 as n) insert into flights select n from a",
         "select total_changes()"),
        ("\ufeffbegin", "\ufeffrollback"),
        _pragma("case_sensitive_like", 1)[:1] + ("select 'A' like 'a'",),
        _pragma("foreign_keys", 1), _pragma("recursive_triggers", 1),
        _pragma("query_only", 1), _pragma("ignore_check_constraints", 1),
        _pragma("cache_size", 77), _pragma("temp_store", 2),
        _pragma("reverse_unordered_selects", 1), _pragma("busy_timeout", 777),
        _pragma("synchronous", 0), _pragma("locking_mode", "exclusive"),
        _pragma("trusted_schema", 0), _pragma("writable_schema", 1),
        _pragma("automatic_index", 0), _pragma("cell_size_check", 1),
        _pragma("journal_size_limit", 777), _pragma("analysis_limit", 77),
        _pragma("cache_spill", 0)],
    "duckdb": [
        ("create temp view flights as select 666 as n", FLIGHTS),
        ("create temp table flights as select 666 as n", FLIGHTS),
        ("create temp macro lower(x) as 'evil'", "select lower('ABC') as v"),
        ("create temp macro flights() as table select 666 as n",
         "select n from flights()"),
        ("create temp sequence own start 7", "select nextval('own') as v"),
        ("create temp type mood as enum ('a')", "select 'a'::mood as v"),
        ("set variable x = 666", "select getvariable('x') as v"),
        ("use evil", FLIGHTS), ("set schema = 'evil'", FLIGHTS),
        ("set search_path = 'evil'", FLIGHTS),
        ("prepare p as select 666 as v", "execute p"),
        (SPACE + "begin; insert into flights values (2)", COUNT),
        (SPACE + "begin", SPACE + "rollback"),
        (SPACE + "start transaction read only", SPACE + "rollback"),
        ("pragma enable_profiling", "select current_setting("
         "'enable_profiling')::text as v"),
        _setting("integer_division", "true"),
        _setting("ieee_floating_point_ops", "false"),
        _setting("errors_as_json", "true"),
        _setting("scalar_subquery_error_on_multiple_rows", "false"),
        _setting("order_by_non_integer_literal", "true"),
        _setting("file_search_path", "'/nowhere'"),
        _setting("home_directory", "'/nowhere'"),
        _setting("preserve_identifier_case", "false"),
        _setting("enable_progress_bar", "true")],
    "postgresql": [
        ("create temp view flights as select 666 as n", FLIGHTS),
        ("create temp table flights as select 666 as n", FLIGHTS),
        ("set search_path = evil, pg_catalog", "select lower('ABC') as v"),
        ("select set_config('search_path', 'evil, pg_catalog', false)",
         "select lower('ABC') as v"),
        ("set role nobody_else", "select current_user::text as v"),
        ("set session authorization nobody_else",
         "select session_user::text as v"),
        ("select pg_advisory_lock(7)",
         "select count(*) as v from pg_locks where locktype = 'advisory'"),
        ("prepare p as select 1",
         "select count(*) as v from pg_prepared_statements "
         "where name <> ''"),
        ("listen news", "select count(*) as v from pg_listening_channels()"),
        ("declare c cursor with hold for select 1",
         "select count(*) as v from pg_cursors where name = 'c'"),
        ("create temp sequence own",
         "select count(*) as v from pg_class where relname = 'own'"),
        ("select nextval('numbers')", "select currval('numbers') as v"),
        ("select nextval('numbers')", "select lastval() as v"),
        (MOMENT + "begin; insert into flights values (2)", COUNT),
        (MOMENT + "commit; begin isolation level repeatable read; select 1",
         "select current_setting('transaction_isolation') as v"),
        (MOMENT + "begin read only; select 1",
         "select current_setting('transaction_read_only') as v"),
        (MOMENT + "begin; lock table flights in access exclusive mode",
         "select count(*) as v from pg_locks "
         "where mode = 'AccessExclusiveLock'"),
        ("set session characteristics as transaction isolation level "
         "serializable",
         "select current_setting('default_transaction_isolation') as v"),
        ("select set_config('my.secret', 'x', false)",
         "select coalesce(current_setting('my.secret', true), '') as v"),
        _setting("timezone", "'Asia/Tokyo'"),
        _setting("statement_timeout", "7000"),
        _setting("default_transaction_read_only", "on"),
        _setting("session_replication_role", "replica"),
        _setting("datestyle", "'German'"), _setting("work_mem", "'77MB'"),
        _setting("client_encoding", "'LATIN1'"),
        _setting("row_security", "off")]}


def _cases():
    return [pytest.param(kind, *attack, id=f"{kind}-{i}")
            for kind, attacks in ATTACKS.items()
            for i, attack in enumerate(attacks)]


async def see(pool, sql):
    """A user's view: values, or how the query fails."""
    try:
        batches = await pool.query(
            sql, update="rollback" in sql).read_all()
    except OSError as error:
        return str(error)[:120]
    return [batch.to_pyarrow().columns[0].to_pylist() for batch in batches]


@pytest.fixture
def open_pool(request, tmp_path):
    """open_pool(kind, **options) of one database of each kind."""
    def make(kind, **options):
        pytest.importorskip(f"adbc_driver_{kind}")
        uri = (request.getfixturevalue("postgresql")
               if kind == "postgresql" else str(tmp_path / "rows.db"))
        return uvarrow.adbc.Pool(kind, uri=uri, connections=1, **options)
    return make


async def set_up(pool, kind):
    for sql in SETUP[kind]:
        await pool.execute(sql)


@pytest.mark.parametrize("keeps", [True, False])
@pytest.mark.parametrize(("kind", "leaves", "sees"), _cases())
def test_another_user_sees_nothing(open_pool, kind, leaves, sees, keeps):
    async def main():
        with open_pool(kind, keeps_session=keeps) as pool:
            await set_up(pool, kind)
            before = await see(pool, sees)
            await pool.execute(leaves)
            after = await see(pool, sees)
        return before, after

    before, after = asyncio.run(main())
    assert (before != after) == keeps, (before, after)


# ---- state that stays
# --------------------------------------------------------

def _value(batches):
    return [row for b in batches
            for row in b.to_pyarrow().columns[0].to_pylist()]


def test_options_of_a_connection_are_set_again(postgresql):
    """Settings that the driver makes by statements, and settings of the
    URI."""
    async def main():
        options = {"adbc.connection.db_schema": "pg_temp",
                   "adbc.connection.transaction.isolation_level":
                       "adbc.connection.transaction.isolation.serializable"}
        look = ("select current_setting('search_path') || ' ' || "
                "current_setting('default_transaction_isolation') || ' ' || "
                "current_setting('work_mem') || ' ' || pg_backend_pid()")
        with uvarrow.adbc.Pool(
                "postgresql", connections=1, connection_options=options,
                uri=postgresql + "&options=-c%20work_mem%3D77MB") as pool:
            before = _value(await pool.query(look).read_all())
            await pool.execute("set work_mem = '1MB'; set search_path = evil")
            return before, _value(await pool.query(look).read_all())

    before, after = asyncio.run(main())
    assert before == after
    assert before[0].startswith("pg_temp serializable 77MB ")


@pytest.mark.parametrize("kind", ["duckdb", "postgresql"])
def test_without_autocommit_each_query_is_rolled_back(open_pool, kind):
    async def main():
        with open_pool(kind, connection_options={
                "adbc.connection.autocommit": "false"}) as pool:
            await pool.execute("create table lost (n int)")
            return await see(pool, "select * from lost")

    assert "lost" in asyncio.run(main())


def test_reading_keeps_a_connection_of_sqlite(open_pool):
    """Its own count of changes ends with it."""
    async def main():
        with open_pool("sqlite") as pool:
            await set_up(pool, "sqlite")
            await pool.query("select * from flights").read_all()
            return _value(await pool.query(
                "values (total_changes())").read_all())

    assert asyncio.run(main()) == [0]


# ---- a forgotten transaction --------------------------------------------------

FORGETS = [("sqlite", "\ufeffbegin"), ("duckdb", "select 1;" + SPACE + "begin"),
           ("duckdb", SPACE + "begin"), ("postgresql", MOMENT + "begin")]


@pytest.mark.parametrize("kind, text", FORGETS)
def test_a_forgotten_transaction_is_in_the_log(request, tmp_path, kind, text):
    pytest.importorskip(f"adbc_driver_{kind}")
    uri = (request.getfixturevalue("postgresql")
           if kind == "postgresql" else str(tmp_path / "rows.db"))
    program = textwrap.dedent("""
        import asyncio, sys, uvarrow.adbc
        async def main(kind, uri, forgets):
            with uvarrow.adbc.Pool(kind, uri=uri, connections=1) as pool:
                await pool.execute("select 'no begin'")
                await pool.execute(forgets)
                await pool.execute("select 1")
        asyncio.run(main(*sys.argv[1:]))
    """)
    done = subprocess.run(
        [sys.executable, "-c", program, kind, uri, text], check=True,
        env={**os.environ, "UVA_LOG": "warn"}, capture_output=True, text=True,
        encoding="utf-8")
    lines = [line for line in done.stderr.splitlines() if "left open" in line]
    assert len(lines) == 1
    assert lines[0].endswith(
        "share connections: " + text.replace("\n", " "))


def test_transactions_of_tasks_do_not_mix(postgresql):
    async def main():
        with uvarrow.adbc.Pool("postgresql", uri=postgresql,
                               connections=2) as pool:
            await pool.execute("drop table if exists tx_mix; "
                               "create table tx_mix (who text)")

            async def undo(i):
                await pool.execute(MOMENT + "begin; insert into tx_mix "
                                   f"values ('undo{i}')")

            async def keep(i):
                await pool.execute("insert into tx_mix values ($1)",
                                   [f"keep{i}"])

            await asyncio.gather(*(task(i) for i in range(20)
                                   for task in (undo, keep)))
            rows = _value(await pool.query(
                "select who from tx_mix order by who").read_all())
            # Each connection is cleaned before it is given out.
            async with pool.session(autocommit=True) as session, \
                    pool.session(autocommit=True) as other:
                await other.execute("select 1")
                open_ones = _value(await session.query(
                    "select count(*) from pg_stat_activity "
                    "where state like 'idle in%'").read_all())
            return rows, open_ones

    rows, open_ones = asyncio.run(main())
    assert rows == sorted(f"keep{i}" for i in range(20))
    assert open_ones == [0]
