# SPDX-License-Identifier: Apache-2.0
"""A process that figures.py measures: a program of asyncio that reads a table of
flights by one way, or maps batches by an async function.

Usage: client.py WAY ENGINE LOOP PLACE [COUNT]

WAY is the name of a function below, LOOP "asyncio" or "uvloop". ENGINE is
"postgresql" or "sqlite", and PLACE its URI or file; of the ways that map, ENGINE
is "none", and COUNT the number of batches. Prints a line of JSON: the figures by
their names. The imports were made before, as in a server.
"""
import asyncio
import collections
import importlib
import json
import resource
import sys
import threading
import time

SQL = "SELECT * FROM flights"
AHEAD = 64 # calls of an async function at a time
TICK = 0.005 # seconds of the timer


class Clock:
    """What passes from connected() to last(), beside a timer."""

    def __init__(self):
        self._begun = self._opened = self._first = self._last = None
        self._late = []
        self.start = time.perf_counter()

    def connected(self):
        self._begun = resource.getrusage(resource.RUSAGE_SELF)
        self._late.clear()
        self._opened = time.perf_counter()

    def first(self):
        if self._first is None:
            self._first = time.perf_counter()

    def last(self):
        self._last = time.perf_counter()
        self._ended = resource.getrusage(resource.RUSAGE_SELF)

    async def tick(self):
        while True:
            begun = time.perf_counter()
            await asyncio.sleep(TICK)
            self._late.append(time.perf_counter() - begun - TICK)

    def figures(self):
        user, system = (getattr(self._ended, name) - getattr(self._begun, name)
                        for name in ("ru_utime", "ru_stime"))
        late = sorted(self._late) or [0]
        return {"connect": (self._opened - self.start) * 1e3,
                "first": (self._first - self._opened) * 1e3,
                "seconds": self._last - self._opened, "cpu": user + system,
                "user": user, "late": late[len(late) * 99 // 100] * 1e3,
                "latest": late[-1] * 1e3}


def memory():
    """The most memory that the process has had, in MiB"""
    with open("/proc/self/status", encoding="ascii") as file:
        for line in file:
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) / 1024
    raise OSError("no VmHWM")


# ---- ways that give Arrow ---------------------------------------------------

async def uvarrow(engine, place, clock):
    import pyarrow
    import uvarrow.adbc
    rows = 0
    async with uvarrow.adbc.Pool(engine, uri=place) as pool:
        await pool.query("SELECT 1").read_all()
        clock.connected()
        async for batch in pool.query(SQL):
            rows += pyarrow.record_batch(batch).num_rows
            clock.first()
        clock.last()
    return rows


def driver_of(engine):
    return importlib.import_module(f"adbc_driver_{engine}.dbapi")


async def driver_alone(engine, place, clock):
    """On the thread of the loop, which stands: the floor of the ways that use
    this driver."""
    rows = 0
    with driver_of(engine).connect(place) as connection:
        with connection.cursor() as cursor:
            clock.connected()
            cursor.execute(SQL)
            for batch in cursor.fetch_record_batch():
                rows += batch.num_rows
                clock.first()
            clock.last()
    return rows


async def dbapi_table(engine, place, clock):
    connection = await asyncio.to_thread(driver_of(engine).connect, place)
    cursor = connection.cursor()

    def read():
        cursor.execute(SQL)
        return cursor.fetch_arrow_table()

    clock.connected()
    table = await asyncio.to_thread(read)
    clock.first()
    clock.last()
    cursor.close()
    connection.close()
    return table.num_rows


def next_of(reader):
    try:
        return reader.read_next_batch()
    except StopIteration:
        return None


async def dbapi_batches(engine, place, clock):
    rows = 0
    connection = await asyncio.to_thread(driver_of(engine).connect, place)
    cursor = connection.cursor()
    clock.connected()
    await asyncio.to_thread(cursor.execute, SQL)
    reader = cursor.fetch_record_batch()
    while (batch := await asyncio.to_thread(next_of, reader)) is not None:
        rows += batch.num_rows
        clock.first()
    clock.last()
    cursor.close()
    connection.close()
    return rows


async def connectorx_table(engine, place, clock):
    """It connects in each call."""
    import connectorx
    uri = place if engine == "postgresql" else f"sqlite://{place}"
    clock.connected()
    table = await asyncio.to_thread(connectorx.read_sql, uri, SQL,
                                    return_type="arrow")
    clock.first()
    clock.last()
    return table.num_rows


async def asyncpg_batches(_, place, clock):
    """The rows of a cursor, made batches of Arrow"""
    import asyncpg
    import pyarrow
    rows = 0
    connection = await asyncpg.connect(place)
    clock.connected()
    async with connection.transaction():
        cursor = await connection.cursor(SQL)
        while found := await cursor.fetch(4096):
            rows += pyarrow.record_batch(
                [pyarrow.array(column) for column in zip(*found)],
                names=list(found[0].keys())).num_rows
            clock.first()
        clock.last()
    await connection.close()
    return rows


# ---- ways that give rows, objects of Python -----------------------------------

async def each(cursor, clock):
    rows = 0
    async for _ in cursor:
        if rows == 0:
            clock.first()
        rows += 1
    clock.last()
    return rows


async def asyncpg_rows(_, place, clock):
    import asyncpg
    connection = await asyncpg.connect(place)
    clock.connected()
    async with connection.transaction():
        rows = await each(connection.cursor(SQL, prefetch=1000), clock)
    await connection.close()
    return rows


async def psycopg_rows(_, place, clock):
    import psycopg
    async with await psycopg.AsyncConnection.connect(place) as connection:
        async with connection.cursor(name="flights") as cursor:
            clock.connected()
            cursor.itersize = 1000
            await cursor.execute(SQL)
            return await each(cursor, clock)


async def aiosqlite_rows(_, place, clock):
    import aiosqlite
    async with aiosqlite.connect(place) as connection:
        clock.connected()
        async with connection.execute(SQL) as cursor:
            return await each(cursor, clock)


# ---- an async function for each batch ---------------------------------------

def batches(count):
    import pyarrow
    batch = pyarrow.record_batch({"n": list(range(100))})
    return pyarrow.RecordBatchReader.from_batches(batch.schema,
                                                  (batch for _ in range(count)))


async def at_once(batch):
    return batch


async def one_turn(batch):
    await asyncio.sleep(0)
    return batch


async def mapped(count, clock, function):
    import uvarrow
    rows = uvarrow.stream(batches(count))
    if function is not None:
        rows = rows.map(function, concurrency=AHEAD)
    clock.connected()
    async with rows:
        return await each(rows, clock)


async def by_hand(count, clock, function):
    """A task for each batch, in order; the reader blocks the loop."""
    tasks, done = collections.deque(), 0
    clock.connected()
    for batch in batches(count):
        tasks.append(asyncio.ensure_future(function(batch)))
        if len(tasks) == AHEAD:
            await tasks.popleft()
            clock.first()
            done += 1
    while tasks:
        await tasks.popleft()
        done += 1
    clock.last()
    return done


MAPS = {"map_none": (mapped, None), "map_at_once": (mapped, at_once),
        "map_one_turn": (mapped, one_turn), "hand_at_once": (by_hand, at_once),
        "hand_one_turn": (by_hand, one_turn)}
NEEDS = {"uvarrow": ["uvarrow.adbc", "pyarrow"], "driver": ["pyarrow"],
         "dbapi": ["pyarrow"], "connectorx": ["connectorx", "pyarrow"],
         "asyncpg": ["asyncpg"], "psycopg": ["psycopg"],
         "aiosqlite": ["aiosqlite"], "map": ["uvarrow", "pyarrow"],
         "hand": ["pyarrow"]}


async def main(way, engine, place, count):
    clock = Clock()
    ticking = asyncio.ensure_future(clock.tick())
    await asyncio.sleep(0.02)
    clock.start = time.perf_counter()
    if way in MAPS:
        how, function = MAPS[way]
        done = await how(count, clock, function)
    else:
        done = await globals()[way](engine, place, clock)
    if done != count:
        raise AssertionError(f"{way}: {done} instead of {count}")
    await asyncio.sleep(2 * TICK) # the last one
    ticking.cancel()
    print(json.dumps({**clock.figures(), "memory": memory(),
                      "threads": threading.active_count()}))


if __name__ == "__main__":
    WAY, ENGINE, LOOP, PLACE, COUNT = sys.argv[1:]
    for name in NEEDS[WAY.split("_", maxsplit=1)[0]]:
        importlib.import_module(name)
    if WAY.startswith(("dbapi", "driver")):
        driver_of(ENGINE)
    if LOOP == "uvloop":
        import uvloop
        FACTORY = uvloop.new_event_loop
    else:
        FACTORY = asyncio.new_event_loop
    with asyncio.Runner(loop_factory=FACTORY) as runner:
        runner.run(main(WAY, ENGINE, PLACE, int(COUNT)))
