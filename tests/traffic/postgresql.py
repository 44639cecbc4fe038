#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Mixed traffic on a pool, while the server, of PostgreSQL, has trouble.

Usage: postgresql.py [--seconds 60] [--seed 1] [--within 2]

Queries, with and without parameters, big results, ingests, transactions, cancels
and statements that leave state in their session run beside each other, while
the server is restarted, its backends are terminated, the whole server stands
still for a while, or it ends idle sessions; sometimes without other events.
Then:

- only queries fail that were in flight while the server had trouble;
- a query that starts when the server is well again succeeds WITHIN seconds;
- no session is given out that is not clean;
- each ingest and transaction that succeeded is there, once and whole, and no
part of any
  other one, unless its outcome was not known;
- the process does not grow, and leaves no connection to the server.

Exit code: 0; 1: a rule of these does not hold, and is printed; 77: no server
or driver of PostgreSQL is here.
"""
import argparse
import asyncio
import contextlib
import gc
import os
import random
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests", "support"))
import postgresql_server  # noqa: E402

try:
    import adbc_driver_postgresql  # noqa: F401
    import pyarrow as pa
    from pyarrow import compute
    import uvarrow.adbc
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)

CONNECTIONS = 8
POINTS = 10000
BIG = 200000
WRITTEN = 5000  # rows of an ingest
PAUSE = 1.5  # seconds between two kinds of trouble
PATIENCE = 60  # seconds until begun work ends
GROWTH = 64 << 20  # bytes that the process may grow after its first third

# State that statements leave in a session, and how the next user would see it
LEAVINGS = ("set application_name = 'mine'", "create temporary table mine(n int)",
            "set role pg_monitor", "set search_path = pg_catalog", "listen mine",
            "prepare mine as select 1",
            "declare mine cursor with hold for select 1",
            "do $$ begin perform pg_advisory_lock_shared(1); end $$")
SESSION = """
select concat_ws(' ', current_setting('application_name'), to_regclass('pg_temp.mine'),
    current_role, current_setting('search_path'),
    (select string_agg(c, ' ') from pg_listening_channels() c),
    (select string_agg(name, ' ') from pg_prepared_statements),
    (select string_agg(name, ' ') from pg_cursors where is_holdable),
    (select string_agg(locktype, ' ') from pg_locks
     where locktype = 'advisory' and pid = pg_backend_pid()))
"""
CLEAN = 'uvarrow postgres "$user", public'

TABLES = f"""
create table points as
    select n, 'point ' || n as text from generate_series(0, {POINTS - 1}) n;
alter table points add primary key (n);
create table written(run bigint, n bigint);
create table pairs(run bigint, side int);
"""
# Until they are gone, which a backend that is busy is not at once
TERMINATE = """
select pg_terminate_backend(pid, 10000) from pg_stat_activity
where pid <> pg_backend_pid() and usename = 'postgres'
"""


class Trouble:
    """When the server had trouble, on the clock of the loop."""

    def __init__(self):
        self.begun = self.over = 0.0
        self.is_on = False

    @contextlib.contextmanager
    def on(self):
        self.begun, self.is_on = time.monotonic(), True
        yield
        self.over, self.is_on = time.monotonic(), False

    def excuses(self, start):
        """Whether a query may fail now that was started then"""
        return self.is_on or start <= self.over


class Traffic:
    """The users of the pool, and the known outcomes."""

    def __init__(self, server, pool, how):
        self.server, self.pool, self.how = server, pool, how
        self.trouble = Trouble()
        self.is_over = False
        self.goes_on = asyncio.Event()
        self.goes_on.set()
        self.busy = 0  # pieces that have begun
        self.runs = 0
        self.faults = []  # that the server's trouble does not explain
        self.count = {}
        self.whole, self.unknown = {"written": set(), "pairs": set()}, set()

    def random(self, name):
        return random.Random(f"{self.how.seed} {name}")

    def note(self, what):
        self.count[what] = self.count.get(what, 0) + 1

    def fault(self, text):
        print(f"fault: {text}", flush=True)
        self.faults.append(text)

    def run(self):
        self.runs += 1
        return self.runs

    # -- one piece of traffic each. Returns; or raises the pool's exception --

    async def point(self, luck):
        n = luck.randrange(POINTS)
        rows = await self.rows(f"select text from points where n = {n}")
        if rows != [f"point {n}"]:
            self.fault(f"point {n} is {rows}")

    async def parameter(self, luck):
        n = luck.randrange(POINTS)
        rows = await self.rows("select text from points where n = $1", [n])
        if rows != [f"point {n}"]:
            self.fault(f"point {n} is {rows}")

    async def big(self, luck):
        """A big result, of which some are left early."""
        leaves = luck.random() < 0.3
        rows = total = 0
        async with self.pool.query(
                f"select n, n % 7 as m from generate_series(1, {BIG}) n") as stream:
            async for batch in stream:
                n = pa.record_batch(batch).column("n")
                rows += len(n)
                total += compute.sum(n).as_py()
                if leaves:
                    return
        if (rows, total) != (BIG, BIG * (BIG + 1) // 2):
            self.fault(f"a big result has {rows} rows, sum {total}")

    async def late(self, luck):
        """A query that is cancelled."""
        task = asyncio.ensure_future(self.rows("select pg_sleep(60)"))
        await asyncio.sleep(luck.random() / 5)
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task

    async def ingest(self, luck):
        """Some are cancelled: then all rows are there, or no row."""
        run = self.run()

        def batches():
            for first in range(0, WRITTEN, 500):
                yield pa.record_batch({"run": [run] * 500,
                                       "n": list(range(first, first + 500))})

        data = pa.RecordBatchReader.from_batches(
            pa.schema({"run": pa.int64(), "n": pa.int64()}), batches())
        task = asyncio.ensure_future(self.rest(
            self.pool.ingest("written", data)))
        self.unknown.add(run)
        if luck.random() < 0.2:
            await asyncio.sleep(luck.random() / 20)
            task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
            self.unknown.discard(run)
            self.whole["written"].add(run)

    async def transaction(self, luck):
        """Two rows that are there together, or rolled back. Settings and temporary
        tables of a session are its own."""
        run, is_kept = self.run(), luck.random() < 0.7
        self.unknown.add(run)
        async with self.pool.session() as session:
            await session.execute(luck.choice(LEAVINGS[:2]))
            for side in 0, 1:
                await session.execute(f"insert into pairs values ({run}, {side})")
            if is_kept:
                await session.commit()
            else:
                await session.rollback()
        self.unknown.discard(run)
        if is_kept:
            self.whole["pairs"].add(run)

    async def leave(self, luck):
        """Leaves something in a session."""
        await self.pool.execute(luck.choice(LEAVINGS))

    async def clean(self, _):
        """No session has anything of its last user."""
        rows = await self.rows(SESSION)
        if rows != [CLEAN]:
            self.fault(f"a connection that was given out is not clean: {rows}")

    # -- calls of the pool --

    async def rows(self, sql, parameters=None):
        found = []
        async with self.pool.query(sql, parameters) as stream:
            async for batch in stream:
                found += pa.record_batch(batch).column(0).to_pylist()
        return found

    async def rest(self, stream):
        async with stream:
            async for _ in stream:
                pass

    # -- tasks --

    async def repeat(self, name, piece):
        luck = self.random(name)
        while not self.is_over:
            await self.goes_on.wait()
            start = time.monotonic()
            self.busy += 1
            try:
                await piece(luck)
                self.note(name.split()[0])
            except OSError as error:
                self.note("failed")
                if not self.trouble.excuses(start):
                    self.fault(f"{name} failed after {time.monotonic() - start:.2f}"
                               f" s, begun {start - self.trouble.over:.2f} s after "
                               f"the trouble: {error}")
            except Exception as error:
                self.fault(f"{name}: {error!r}")
                raise
            finally:
                self.busy -= 1

    async def cause(self, luck):
        kinds = [self.restart_immediate, self.restart_fast, self.terminate,
                 self.freeze, self.idle_limit]
        while not self.is_over:
            await asyncio.sleep(PAUSE)
            kind = luck.choice(kinds)
            print(f"{time.monotonic() - self.begun:6.1f} s: {kind.__name__}; so far "
                  f"{self.count}", flush=True)
            if luck.random() < 0.5:
                await self.calm()
            with self.trouble.on():
                await kind(luck)
            self.goes_on.set()
            await self.prove(kind.__name__)

    async def calm(self):
        """All connections are idle."""
        self.goes_on.clear()
        while self.busy > 0:
            await asyncio.sleep(0.01)

    async def prove(self, kind):
        """The server is well: so is the pool, soon."""
        start = time.monotonic()
        try:
            async with asyncio.timeout(PATIENCE):
                await self.rows("select 1")
        except (OSError, TimeoutError) as error:
            self.fault(f"behind {kind}: {error!r}")
        took = time.monotonic() - start
        if took > self.how.within:
            self.fault(f"behind {kind} the pool was well after {took:.1f} s")

    # -- kinds of trouble --

    async def restart_immediate(self, _):
        await asyncio.to_thread(self.restart, "immediate")

    async def restart_fast(self, _):
        await asyncio.to_thread(self.restart, "fast")

    def restart(self, mode):
        self.server.stop(mode)
        self.server.start()

    async def terminate(self, _):
        await asyncio.to_thread(self.server.query, TERMINATE)

    async def freeze(self, luck):
        self.server.freeze()
        await asyncio.sleep(0.5 + 2.5 * luck.random())
        self.server.thaw()

    async def idle_limit(self, _):
        for limit, pause in ("200ms", 1), ("0", 0):
            await asyncio.to_thread(self.server.query, "alter system set "
                                    f"idle_session_timeout = '{limit}'")
            await asyncio.to_thread(self.server.query, "select pg_reload_conf()")
            await asyncio.sleep(pause)

    # -- the whole --

    async def flow(self):
        self.begun = time.monotonic()
        pieces = {"point": (self.point, 8), "parameter": (self.parameter, 4),
                  "big": (self.big, 2), "late": (self.late, 2),
                  "ingest": (self.ingest, 2), "leave": (self.leave, 1),
                  "clean": (self.clean, 1)}
        if hasattr(self.pool, "session"):
            pieces["transaction"] = self.transaction, 3
        tasks = [asyncio.ensure_future(self.repeat(f"{name} {i}", piece))
                 for name, (piece, count) in pieces.items() for i in range(count)]
        cause = asyncio.ensure_future(self.cause(self.random("trouble")))
        await asyncio.sleep(self.how.seconds / 3)
        before = memory()
        await asyncio.sleep(self.how.seconds * 2 / 3)
        self.is_over = True
        await self.ended([cause])
        await self.ended(tasks)
        gc.collect()
        if memory() - before > GROWTH:
            self.fault(f"the process grew from {before >> 20} to "
                       f"{memory() >> 20} MiB")

    async def ended(self, tasks):
        done, stuck = await asyncio.wait(tasks, timeout=PATIENCE)
        if stuck:
            self.fault(f"{len(stuck)} tasks are stuck: {stuck}")
        for task in done:
            task.result()

    def check(self):
        """The rows that are there"""
        for table, rows in ("written", WRITTEN), ("pairs", 2):
            text = self.server.query(
                f"select run, count(*), count(distinct {table}) from {table} "
                "group by run")
            found = {int(run): (int(count), int(distinct)) for run, count, distinct
                     in (line.split("|") for line in text.splitlines())}
            for run, counts in found.items():
                if counts != (rows, rows):
                    self.fault(f"{table} {run} has {counts} rows of {rows}")
                if run not in self.whole[table] | self.unknown:
                    self.fault(f"{table} {run} is there, though rolled back")
            for run in self.whole[table] - set(found):
                self.fault(f"{table} {run} is lost")

    def check_closed(self):
        for _ in range(100):
            left = self.server.query("select count(*) from pg_stat_activity where "
                                     "backend_type = 'client backend'").strip()
            if left == "1":
                return
            time.sleep(0.05)
        self.fault(f"{int(left) - 1} connections are left")


def memory():
    """RSS, in bytes"""
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--within", type=float, default=2)
    return parser.parse_args()


def main():
    how = arguments()
    print(f"seed {how.seed}")
    with postgresql_server.Server(max_connections=40) as server:
        server.query(TABLES)
        with uvarrow.adbc.Pool("postgresql", uri=server.uri,
                               connections=CONNECTIONS) as pool:
            traffic = Traffic(server, pool, how)
            asyncio.run(traffic.flow())
        traffic.check()
        traffic.check_closed()
    print(f"{traffic.count}, {memory() >> 20} MiB, {len(traffic.faults)} faults")
    return 1 if traffic.faults else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except postgresql_server.Absent as absent:
        print(f"skipped: {absent} is not installed")
        sys.exit(77)
