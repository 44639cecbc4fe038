# SPDX-License-Identifier: Apache-2.0
"""A result in parts: partitions of a driver of the tests, in C, which the build
makes, and of a server of Flight SQL whose parts fail on the way, with and without
replicas. Every row comes once."""
import itertools
import os

import pytest

import uvarrow
from conftest import in_thread, run_on
from databases import flight_server
from uvarrow.adbc import Pool

FAKE = os.environ.get("UVA_TEST_FAKE_DRIVER")
needs_fake = pytest.mark.skipif(not FAKE, reason="no driver with partitions")
numbers = itertools.count()


def values(batches):
    return sorted(one for batch in batches
                  for one in batch.to_pyarrow().column(0).to_pylist())


def expected(parts, rows):
    return [1000 * part + row for part in range(parts) for row in range(rows)]


async def asked(uri, name):
    """How many partitions of that name a server was asked for."""
    import pyarrow.flight as flight
    counts = []

    def ask():
        with flight.connect(uri) as client:
            counts.extend(int(one.body.to_pybytes()) for one in client.do_action(
                flight.Action("asked", name.encode())))

    await in_thread(ask)
    return counts[0]


# ---- the driver of the tests ------------------------------------------------

@needs_fake
def test_they_are_read_by_another_pool(run):
    async def main():
        with Pool(FAKE) as pool, Pool(FAKE) as other:
            parts = await pool.partitions("partitions 3")
            assert parts == [b"rows 1", b"rows 2", b"rows 3"]
            rows = uvarrow.merge(*(other.partition(one) for one in parts))
            assert sum(map(len, await rows.read_all())) == 6
            rows = other.partition(memoryview(parts[2]), window=1)
            assert sum(map(len, await rows.read_all())) == 3
            assert await pool.partitions("partitions 0") == []

    run(main)


@needs_fake
def test_they_are_read_together(run):
    async def main():
        with Pool(FAKE, connections=2) as pool:
            parts = await pool.partitions("partitions 5")
            rows = pool.partition(parts, retry=2, timeout={"open": 10,
                                                           "between": 10})
            assert sum(map(len, await rows.read_all())) == 15
            assert [one.stream for one in rows.stats()[:2]] == [
                "partition 1 of 5", "partition 1 of 5"]
            assert await pool.partition([]).read_all() == []
            rows = pool.partition((b"rows 2", b"batch 1 fails", b"rows 3"),
                                  keep_going=True)
            got = []
            with pytest.raises(uvarrow.Error, match=r"\] partition 2 of 3: "):
                async for batch in rows:
                    got.append(batch)
            assert len(got) == 2 + 1 + 3

    run(main)


@needs_fake
def test_a_partition_that_fails(run):
    async def main():
        with Pool(FAKE) as pool:
            with pytest.raises(uvarrow.Error):
                await pool.partition(b"execute fails").read_all()
            with pytest.raises(uvarrow.Error):
                await pool.partitions("hollow1")

    run(main)


@needs_fake
def test_a_query_in_parts(run):
    async def main():
        with Pool(FAKE) as pool:
            rows = pool.query("partitions 4", parallel=2)
            assert (await rows.schema()).names
            assert sum(map(len, await rows.read_all())) == 1 + 2 + 3 + 4
            rows = pool.query("partitions 0", parallel=2)
            assert await rows.read_all() == []
            async with pool.session() as session:
                rows = session.query("partitions 2", parallel=8)
                assert sum(map(len, await rows.read_all())) == 1 + 2

    run(main)


@needs_fake
def test_a_query_in_parts_that_fails(run):
    async def main():
        with Pool(FAKE) as pool:
            for sql in "fails", "hollow1":
                rows = pool.query(sql, parallel=2, retry=5)
                with pytest.raises(uvarrow.Error) as caught:
                    await rows.read_all()
                assert "partitions are known" not in str(caught.value)

    run(main)


@needs_fake
def test_a_query_in_parts_is_left_at_any_time(run):
    async def main():
        with Pool(FAKE) as pool:
            rows = pool.query("partitions 8", parallel=2)
            await rows.aclose() # it was not begun
            del rows
            async with pool.query("blocks", parallel=2) as rows:
                assert not rows._take() # it begins
            async with pool.query("partitions 8", parallel=2) as rows:
                await anext(rows)
            pool.query("partitions 8", parallel=2) # dropped
            await pool.aclose(seconds=None)

    run(main)


@needs_fake
def test_a_limit_of_time_counts_for_the_partitions_too():
    async def main():
        with Pool(FAKE) as pool:
            with pytest.raises(TimeoutError):
                await pool.query("blocks", parallel=2, timeout=0.05).read_all()
            with pytest.raises(TimeoutError, match="partition 1 of 1"):
                await pool.partition(b"batch 1 blocks", timeout=0.05).read_all()

    run_on("asyncio", main)


# ---- what is refused --------------------------------------------------------

@pytest.fixture
def sqlite(tmp_path):
    pytest.importorskip("adbc_driver_sqlite")
    with Pool("sqlite", uri=str(tmp_path / "flights.db")) as pool:
        yield pool


REFUSED = {
    "descriptors must be bytes, or a list": lambda pool: pool.partition("x"),
    "an item of descriptors must be bytes": lambda pool: pool.partition(["x"]),
    "retry is negative": lambda pool: pool.partition(b"x", retry=-1),
    "parallel is out of range": lambda pool: pool.query("x", parallel=0),
    "timeout must be a number": lambda pool: pool.partition(b"x", timeout="x"),
    "a name of timeout must be 'open'": lambda pool: pool.partition(
        b"x", timeout={"never": 5}),
    r"timeout\['between'\] is negative": lambda pool: pool.partition(
        b"x", timeout={"between": -5}),
    "window must be an integer": lambda pool: pool.partition(b"x", window="x"),
    "retry and timeout are for a query with parallel":
        lambda pool: pool.query("x", retry=5),
    "are for a query with": lambda pool: pool.query("x", timeout=5),
    "parallel is for rows": lambda pool: pool.query("x", parallel=2, update=True),
}


@pytest.mark.parametrize("text", REFUSED)
def test_arguments_are_checked(sqlite, text):
    with pytest.raises((TypeError, ValueError), match=text):
        REFUSED[text](sqlite)


def test_a_driver_without_partitions(run, sqlite):
    async def main():
        for call in (sqlite.partitions("SELECT 1"),
                     sqlite.partition(b"x").read_all(),
                     sqlite.query("SELECT 1", parallel=8).read_all()):
            with pytest.raises(uvarrow.Error):
                await call
        with pytest.raises(TypeError, match="sql must be"):
            await sqlite.partitions(5)
        sqlite.close()
        for call in (lambda: sqlite.partition(b"x"),
                     lambda: sqlite.query("SELECT 1", parallel=8)):
            with pytest.raises(RuntimeError, match="the pool is closed"):
                call()

    run(main)


# ---- Flight SQL -------------------------------------------------------------

@pytest.fixture(scope="module")
def replicas(tmp_path_factory):
    """The URIs of two servers."""
    with (flight_server(tmp_path_factory.mktemp("one")) as one,
          flight_server(tmp_path_factory.mktemp("two")) as two):
        yield one, two


@pytest.fixture
def name():
    return f"n{next(numbers)}"


def read(run, uri, sql, **how):
    """The values of a query in parts."""
    got = []

    async def main():
        with Pool("flightsql", uri=uri) as pool:
            async with pool.query(sql, **how) as rows:
                got.extend(values([batch async for batch in rows]))

    run(main)
    return got


def test_parts_that_fail_go_on_behind_their_rows(run, replicas, name):
    sql = f"parts 6 rows 20 breaks 7 times 2 as {name}"
    assert read(run, replicas[0], sql, parallel=3, retry=2) == expected(6, 20)


def test_a_part_fails_without_a_retry(replicas, name):
    for times, retry in (1, 0), (3, 2):
        with pytest.raises(uvarrow.Error, match="partition 1 of 1: .*reset"):
            read(lambda main: run_on("asyncio", main), replicas[0],
                 f"parts 1 rows 20 breaks 7 times {times} as {name}{retry}",
                 parallel=8, retry=retry)


def test_parts_go_on_from_their_replicas(replicas, name):
    async def main():
        with Pool("flightsql", uri=replicas[0]) as pool:
            sql = f"parts 4 rows 20 breaks 7 as {name} at {','.join(replicas)}"
            rows = pool.query(sql, parallel=4, retry=2)
            assert values(await rows.read_all()) == expected(4, 20)
            # the first fails, so does the second, then the first is whole
            assert await asked(replicas[0], name) == 8
            assert await asked(replicas[1], name) == 4

    run_on("asyncio", main)


@pytest.mark.parametrize("has_replica", (False, True))
def test_a_server_that_ends(replicas, tmp_path, name, has_replica):
    async def main(mortal):
        at = f"{mortal},{replicas[0]}" if has_replica else mortal
        with Pool("flightsql", uri=replicas[1]) as pool:
            rows = pool.query(f"parts 3 rows 20 dies 9 as {name} at {at}",
                              parallel=3, retry=1, timeout=10)
            if has_replica:
                assert values(await rows.read_all()) == expected(3, 20)
                return
            with pytest.raises(uvarrow.Error, match="partition . of 3") as caught:
                await rows.read_all()
            assert mortal.removeprefix("grpc://") in str(caught.value)

    with flight_server(tmp_path, "mortal") as mortal:
        run_on("asyncio", main, mortal)
