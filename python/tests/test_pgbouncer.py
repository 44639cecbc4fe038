# SPDX-License-Identifier: Apache-2.0
"""PostgreSQL with pgbouncer: queries that would get the rows of another one
are refused, and the others are right."""
import errno

import anyio
import pyarrow as pa
import pytest

import uvarrow
import uvarrow.adbc

AT_ONCE = {"adbc.postgresql.use_copy": "false"}
MANY = 200


async def rows_of(pool, *arguments, **options):
    return [row for batch in
            await pool.query(*arguments, **options).read_all()
            for row in batch.to_pyarrow().to_pylist()]


def test_queries_behind_a_pooler_of_transactions_are_refused(run, pgbouncer):
    async def main():
        with uvarrow.adbc.Pool("postgresql",
                               uri=pgbouncer("transaction")) as pool:
            for arguments, options in [
                    (("SELECT 1",), {}), (("SELECT $1::int", [1]), {}),
                    (("SELECT $1::int", [1]), AT_ONCE)]:
                with pytest.raises(uvarrow.Error,
                                   match="pool_mode=session") as caught:
                    await rows_of(pool, *arguments, options=options)
                assert caught.value.errno == errno.ENOTSUP

    run(main)


def test_plain_queries_behind_it_get_their_own_rows(run, pgbouncer):
    async def main():
        with uvarrow.adbc.Pool("postgresql", connections=16,
                               uri=pgbouncer("transaction")) as pool:
            async def one(i):
                assert await rows_of(pool, f"SELECT {i} AS c{i}",
                                     options=AT_ONCE) == [{f"c{i}": i}]

            async with anyio.create_task_group() as group:
                for i in range(MANY):
                    group.start_soon(one, i)

    run(main)


def test_ingests_behind_it_write_their_rows(run, pgbouncer):
    async def main():
        with uvarrow.adbc.Pool("postgresql",
                               uri=pgbouncer("transaction")) as pool:
            await pool.ingest("behind", pa.table({"n": range(MANY)}),
                              mode="replace").read_all()
            return await rows_of(pool, "SELECT sum(n)::int AS s FROM behind",
                                 options=AT_ONCE)

    assert run(main) == [{"s": sum(range(MANY))}]


def test_sessions_behind_it_get_their_own_rows(run, pgbouncer):
    """A transaction keeps its backend to its end."""
    async def main():
        with uvarrow.adbc.Pool("postgresql", connections=16,
                               uri=pgbouncer("transaction")) as pool:
            async def one(i):
                async with pool.session() as session:
                    for n in range(5):
                        assert await rows_of(session, f"SELECT $1::int AS c{i}",
                                             [n]) == [{f"c{i}": n}]

            async with anyio.create_task_group() as group:
                for i in range(MANY // 10):
                    group.start_soon(one, i)

    run(main)


@pytest.mark.parametrize("form", ["uri", "list"])
def test_behind_a_pooler_of_sessions_all_is_as_without_it(run, pgbouncer, form):
    uri = pgbouncer("session")
    if form == "list":
        host = uri.split("host=")[1].split("&")[0]
        uri = f"host={host} port=6432 user=postgres dbname=session"

    async def main():
        with uvarrow.adbc.Pool("postgresql", uri=uri, connections=2) as pool:
            async def one(i):
                assert await rows_of(pool, f"SELECT $1::int AS c{i}",
                                     [i]) == [{f"c{i}": i}]

            async with anyio.create_task_group() as group:
                for i in range(MANY):
                    group.start_soon(one, i)

    run(main)


def test_the_server_knows_the_name_of_its_client(run, postgresql):
    async def main():
        sql = "SELECT current_setting('application_name') AS name"
        names = []
        for uri in (postgresql, postgresql + "&application_name=mine",
                    postgresql + "&fallback_application_name=other"):
            with uvarrow.adbc.Pool("postgresql", uri=uri) as pool:
                names += await rows_of(pool, sql)
        return [row["name"] for row in names]

    assert run(main) == ["uvarrow", "mine", "other"]
