# SPDX-License-Identifier: Apache-2.0
"""uvarrow.ray with Ray, as test_engines.py starts it. Each test runs in this one
process, which ends well, also while a task of Ray is stuck."""
import asyncio
import os
import sys
import time
import urllib.parse
import urllib.request

import pyarrow as pa
import ray

import uvarrow
import uvarrow.ray
from uvarrow.adbc import Pool

ROWS = 1 << 17
STREAMING = {"num_returns": "streaming", "_generator_backpressure_num_objects": 2}


@ray.remote(num_cpus=0.2)
class Slice:
    def __init__(self):
        self.made, self.end = 0, None

    async def state(self):
        return self.made, self.end

    async def batches(self, count):
        try:
            for number in range(count):
                self.made += 1
                yield pa.record_batch({"n": pa.array([number] * ROWS)})
                await asyncio.sleep(0)
            self.end = "complete"
        except BaseException as error:
            self.end = type(error).__name__
            raise

    async def fails(self):
        yield pa.table({"n": [1]})
        raise ValueError("the slice is broken")


@ray.remote(num_cpus=0.2)
class Stuck:
    def batches(self):
        yield pa.record_batch({"n": [1]})
        time.sleep(1000)


def memory_of(batch):
    """The line of the mapping in which a batch lies."""
    address = batch.to_pyarrow().column(0).buffers()[1].address
    with open("/proc/self/maps", encoding="ascii") as file:
        for line in file:
            first, last = (int(one, 16) for one in line.split()[0].split("-"))
            if first <= address < last:
                return line
    return ""


async def rows_come_without_a_copy():
    slices = [Slice.remote() for _ in range(2)]
    streams = [uvarrow.ray.stream(one.batches.options(**STREAMING).remote(10))
               for one in slices]
    count, where = 0, set()
    async with uvarrow.merge(*streams) as rows:
        async for batch in rows:
            count += len(batch)
            where.add("/dev/shm/plasma" in memory_of(batch))
    assert count == 20 * ROWS, count
    assert where == {True}, where


async def a_slow_reader_holds_its_task_back():
    one = Slice.remote()
    generator = one.batches.options(**STREAMING).remote(1000)
    async with uvarrow.ray.stream(generator, window=2) as rows:
        await anext(rows)
        before = -1
        while before != (before := (await one.state.remote())[0]):
            await asyncio.sleep(0.5) # until it makes no more
        assert before < 20, before
    while (await one.state.remote())[1] is None: # the task is cancelled
        await asyncio.sleep(0.05)
    made, end = await one.state.remote()
    assert made < 1000 and end != "complete", (made, end)


async def an_error_arrives():
    one = Slice.remote()
    got = []
    try:
        async for batch in uvarrow.ray.stream(
                one.fails.options(**STREAMING).remote()):
            got.append(len(batch))
    except ValueError as error: # Ray makes a class of both
        assert "the slice is broken" in str(error)
    else:
        raise AssertionError("no error")
    assert got == [1], got


def part(number, of, path=sys.argv[1]):
    def make():
        pool = Pool("sqlite", uri=path)
        return pool.query(f"SELECT n FROM t WHERE n % {of} = {number}")

    return make


async def a_dataset_is_made_of_streams():
    async with Pool("sqlite", uri=sys.argv[1]) as pool:
        await pool.ingest("t", pa.table({"n": range(10000)}),
                          mode="create").read_all()
    dataset = ray.data.read_datasource(
        uvarrow.ray.datasource([part(i, 3) for i in range(3)]))
    async with uvarrow.ray.stream(dataset) as rows:
        values = [one for batch in await rows.read_all()
                  for one in batch.to_pyarrow().column(0).to_pylist()]
    assert sorted(values) == list(range(10000))
    halves = dataset.streaming_split(2)
    async with uvarrow.merge(*map(uvarrow.ray.stream, halves)) as rows:
        assert sum(map(len, await rows.read_all())) == 10000
    async with uvarrow.ray.stream(dataset) as rows: # left early
        await anext(rows)


async def a_datasource_fails():
    for function, text in ((lambda: 5, "must be a Stream"),
                           (part("x", 2), "no such column")):
        try:
            ray.data.read_datasource(uvarrow.ray.datasource([function])).take_all()
        except Exception as error:
            assert text in str(error), error
        else:
            raise AssertionError("no error")


async def a_task_that_is_stuck_does_not_keep_this_process():
    stuck = Stuck.remote()
    rows = uvarrow.ray.stream(stuck.batches.options(**STREAMING).remote())
    assert len(await anext(rows)) == 1
    await rows.aclose(seconds=None)
    await uvarrow.ray.stream(stuck.batches.options(**STREAMING).remote()).aclose()


async def actors_serve():
    """The actor of the example, which is loaded as a part of this program, as
    others are not found by Ray's processes."""
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)),
                        "../examples/ray_server.py")
    names = {"__name__": "ray_server"}
    with open(path, encoding="utf-8") as file:
        exec(compile(file.read(), path, "exec"), names)
    server = names["Server"].remote(Pool("sqlite", uri=sys.argv[1]))
    url = await server.start.remote()

    def ask(sql):
        return urllib.request.urlopen(
            f"{url}/query?" + urllib.parse.urlencode({"sql": sql}))

    with ask("SELECT n FROM t") as answer:
        table = pa.ipc.open_stream(await asyncio.to_thread(answer.read)).read_all()
    assert table.num_rows == 10000
    with ask("WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) "
             "SELECT x FROM c") as answer:
        assert answer.read(1000)
        assert (await server.stats.remote())["used"] == 1
    while (await server.stats.remote())["used"]: # the client has left
        await asyncio.sleep(0.05)
    await server.stop.remote()


async def ray_is_shut_down():
    """Neither a stream that is read nor one that is left starts another Ray."""
    one = Slice.remote()
    generator = one.batches.options(**STREAMING).remote(1000)
    rows = uvarrow.ray.stream(generator, window=1)
    assert len(await anext(rows)) == ROWS
    ray.shutdown()
    try:
        async for _ in rows:
            pass
    except Exception as error:
        print(f"    {type(error).__name__}: {str(error)[:80]}")
    else:
        raise AssertionError("no error")
    rows = uvarrow.ray.stream(generator)
    try:
        await rows.read_all()
    except RuntimeError as error:
        assert "shut down" in str(error)
    else:
        raise AssertionError("no error")
    assert not ray.is_initialized()


def main():
    ray.init(num_cpus=2, object_store_memory=1 << 28, include_dashboard=False,
             logging_level="error", log_to_driver=False)
    ray.data.DataContext.get_current().enable_progress_bars = False
    for test in (rows_come_without_a_copy, a_slow_reader_holds_its_task_back,
                 an_error_arrives, a_dataset_is_made_of_streams,
                 a_datasource_fails, actors_serve,
                 a_task_that_is_stuck_does_not_keep_this_process,
                 ray_is_shut_down):
        begin = time.monotonic()
        asyncio.run(test())
        print(f"{test.__name__}: {time.monotonic() - begin:.1f} s", flush=True)
    print("all of them", flush=True)


main()
