# SPDX-License-Identifier: Apache-2.0
"""A process that figures.py measures: one pool of connections to PostgreSQL, on
asyncio's own loop.

Usage: client.py CLIENT CASE URI SECONDS

CLIENT is a name of CLIENTS, CASE a function case_CASE(). Prints a line of
JSON: the figures by their names.
"""
import asyncio
import json
import sys
import time

CONNECTIONS, TASKS = 8, 50
COLD = 20 # pools that connect once
ROWS = 1000000 # of an ingest, and of the big result
SMALL = "select text from points where n = 4711"
BOUND = "select text from points where n = {}"
BIG = ("select n, n * 0.5::float8 as half, 'row ' || n as text "
       f"from generate_series(1, {ROWS}) n")
COLUMNS = "n", "half", "text"


# ---- the pools --------------------------------------------------------------

class Uvarrow:
    """Rows arrive as batches of Arrow."""

    def __init__(self, uri, connections=CONNECTIONS, **options):
        import uvarrow.adbc
        self.pool = uvarrow.adbc.Pool("postgresql", uri=uri,
                                      connections=connections, **options)

    async def __aenter__(self):
        return self

    async def __aexit__(self, *exc_info):
        self.pool.close()

    async def small(self):
        return [batch async for batch in self.pool.query(SMALL)]

    async def bound(self, n):
        return [batch async for batch in self.pool.query(BOUND.format("$1"), [n])]

    async def big(self):
        async with self.pool.query(BIG) as stream:
            async for _ in stream:
                pass

    @staticmethod
    def made():
        import pyarrow as pa
        return pa.table(dict(zip(COLUMNS, columns())))

    async def ingest(self, rows):
        await self.pool.ingest("target", rows).read_all()


class UvarrowKept(Uvarrow):
    """Sessions are not reset."""

    def __init__(self, uri, connections=CONNECTIONS):
        super().__init__(uri, connections, keeps_session=True)


class Asyncpg:
    """Rows arrive as objects of Python. The big result is read by a cursor."""

    def __init__(self, uri, connections=CONNECTIONS, **options):
        import asyncpg
        self.making = asyncpg.create_pool(uri, min_size=0, max_size=connections,
                                          **options)

    async def __aenter__(self):
        self.pool = await self.making
        return self

    async def __aexit__(self, *exc_info):
        await self.pool.close()

    async def small(self):
        return await self.pool.fetch(SMALL)

    async def bound(self, n):
        return await self.pool.fetch(BOUND.format("$1"), n)

    async def big(self):
        async with self.pool.acquire() as connection, connection.transaction():
            async for _ in connection.cursor(BIG, prefetch=5000):
                pass

    @staticmethod
    def made():
        return list(zip(*columns()))

    async def ingest(self, rows):
        async with self.pool.acquire() as connection:
            await connection.copy_records_to_table("target", records=rows,
                                                   columns=COLUMNS)


class AsyncpgKept(Asyncpg):
    """Sessions are not reset."""

    def __init__(self, uri, connections=CONNECTIONS):
        async def nothing(_):
            pass
        super().__init__(uri, connections, reset=nothing)


class Psycopg:
    """Rows arrive as objects of Python. The big result is read by a cursor of the
    server."""

    def __init__(self, uri, connections=CONNECTIONS):
        import psycopg_pool
        self.pool = psycopg_pool.AsyncConnectionPool(
            uri, min_size=0, max_size=connections, open=False, timeout=60)

    async def __aenter__(self):
        await self.pool.open()
        return self

    async def __aexit__(self, *exc_info):
        await self.pool.close()

    async def small(self):
        async with self.pool.connection() as connection:
            return await (await connection.execute(SMALL)).fetchall()

    async def bound(self, n):
        async with self.pool.connection() as connection:
            done = await connection.execute(BOUND.format("%s"), [n])
            return await done.fetchall()

    async def big(self):
        async with (self.pool.connection() as connection,
                    connection.cursor(name="big") as cursor):
            cursor.itersize = 5000
            await cursor.execute(BIG)
            async for _ in cursor:
                pass

    @staticmethod
    def made():
        return list(zip(*columns()))

    async def ingest(self, rows):
        async with (self.pool.connection() as connection,
                    connection.cursor() as cursor,
                    cursor.copy(f"copy target ({', '.join(COLUMNS)}) from stdin "
                                "(format binary)") as copy):
            copy.set_types(["int8", "float8", "text"])
            for row in rows:
                await copy.write_row(row)


CLIENTS = {"uvarrow": Uvarrow, "asyncpg": Asyncpg, "psycopg": Psycopg,
           "uvarrow-kept": UvarrowKept, "asyncpg-kept": AsyncpgKept}


def columns():
    numbers = range(1, ROWS + 1)
    return (list(numbers), [n * 0.5 for n in numbers],
            [f"row {n}" for n in numbers])


# ---- the cases --------------------------------------------------------------

def figures(times, seconds):
    """`times`: seconds of each query that ended in that time"""
    times.sort()

    def part(share):
        return times[min(len(times) - 1, int(len(times) * share))] * 1e3

    return {"rate": len(times) / seconds, "p50": part(0.5), "p99": part(0.99),
            "p99.9": part(0.999)}


async def load(query, seconds):
    """Runs as many queries as TASKS can, one after the other each."""
    times = []
    until = time.perf_counter() + seconds

    async def task():
        while (begun := time.perf_counter()) < until:
            await query()
            times.append(time.perf_counter() - begun)

    begun = time.perf_counter()
    await asyncio.gather(*(task() for _ in range(TASKS)))
    return figures(times, time.perf_counter() - begun)


async def case_small(client, uri, seconds):
    async with client(uri) as pool:
        await load(pool.small, seconds / 5) # connects
        return await load(pool.small, seconds)


async def case_bound(client, uri, seconds):
    async with client(uri) as pool:
        await load(lambda: pool.bound(1), seconds / 5)
        return await load(lambda: pool.bound(4711), seconds)


async def case_beside(client, uri, seconds):
    """Small queries beside one big result after the other, in the same pool"""
    async with client(uri) as pool:
        await load(pool.small, seconds / 5)
        done = 0

        async def stream():
            nonlocal done
            while True:
                await pool.big()
                done += 1

        begun = time.perf_counter()
        streaming = asyncio.ensure_future(stream())
        found = await load(pool.small, seconds)
        while done == 0: # at least one
            await asyncio.sleep(0.01)
        rows = done * ROWS / (time.perf_counter() - begun)
        streaming.cancel()
        await asyncio.wait([streaming])
        return {**found, "rows": rows}


async def case_cold(client, uri, _):
    """From a new pool to the end of its first query; and of eight at one time"""
    one, eight = [], []
    for times, queries in (one, 1), (eight, CONNECTIONS):
        for _ in range(COLD):
            async with client(uri) as pool:
                begun = time.perf_counter()
                await asyncio.gather(*(pool.small() for _ in range(queries)))
                times.append(time.perf_counter() - begun)
        times.sort()
    return {"one": one[COLD // 2] * 1e3, "eight": eight[COLD // 2] * 1e3}


async def case_ingest(client, uri, _):
    rows = client.made()
    async with client(uri) as pool:
        await pool.small()
        begun = time.perf_counter()
        await pool.ingest(rows)
        return {"seconds": time.perf_counter() - begun}


def main(who, case, uri, seconds):
    found = asyncio.run(globals()[f"case_{case}"](CLIENTS[who], uri,
                                                  float(seconds)))
    print(json.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
