# SPDX-License-Identifier: Apache-2.0
"""What a batch costs that a blocking reader gives to an event loop: CPU time of
the process, in microseconds a batch, for uvarrow and for what is written by
hand. Usage: bench.py [BATCHES [ROUNDS]]

Every way reads the same reader in one run, and the rounds take turns; printed
are medians. Time of the reader alone is the first row, and is part of all.
"""
import asyncio
import queue
import statistics
import sys
import threading
import time

import pyarrow

import uvarrow


def make_table(batches):
    rows = pyarrow.record_batch({"a": pyarrow.array(range(1000)),
                                 "b": pyarrow.array([0.5] * 1000)})
    return pyarrow.Table.from_batches([rows] * batches)


async def alone(table):
    count = 0
    for _ in table.to_reader():
        count += 1
    return count


async def own(table, window=64, **options):
    count = 0
    async with uvarrow.stream(table, window=window, **options) as rows:
        async for _ in rows:
            count += 1
    return count


async def one_ahead(table):
    return await own(table, 1)


async def as_pyarrow(table):
    count = 0
    async with uvarrow.stream(table, window=64) as rows:
        async for batch in rows:
            batch.to_pyarrow()
            count += 1
    return count


def read_one(reader):
    try:
        return reader.read_next_batch()
    except StopIteration:
        return None


async def to_thread(table):
    reader, count = table.to_reader(), 0
    while await asyncio.to_thread(read_one, reader) is not None:
        count += 1
    return count


async def run_in_executor(table):
    reader, count = table.to_reader(), 0
    loop = asyncio.get_running_loop()
    while await loop.run_in_executor(None, read_one, reader) is not None:
        count += 1
    return count


async def thread_and_queue(table):
    """A thread, a bounded queue, and a wake-up for each batch."""
    reader, count = table.to_reader(), 0
    loop = asyncio.get_running_loop()
    ready, room = asyncio.Queue(), threading.Semaphore(64)

    def read():
        batch = True
        while batch is not None:
            room.acquire()
            batch = read_one(reader)
            loop.call_soon_threadsafe(ready.put_nowait, batch)

    thread = threading.Thread(target=read)
    thread.start()
    while await ready.get() is not None:
        room.release()
        count += 1
    thread.join()
    return count


WAYS = {
    "the reader alone, on the loop": alone,
    "uvarrow, window 64": own,
    "uvarrow, window 64, to_pyarrow()": as_pyarrow,
    "uvarrow, window 1": one_ahead,
    "a thread and a queue": thread_and_queue,
    "run_in_executor": run_in_executor,
    "to_thread": to_thread,
}


async def free_after_cancel(tries=100):
    """Milliseconds from the cancel of a task until it has left `async with`,
    while its source blocks: the median and the longest."""
    times = []
    for _ in range(tries):
        entered, opened = threading.Event(), threading.Event()

        def blocked():
            entered.set()
            opened.wait()
            yield pyarrow.record_batch({"n": [1]})

        async def read():
            async with uvarrow.stream(blocked) as rows:
                await anext(rows)

        task = asyncio.create_task(read())
        while not entered.is_set():
            await asyncio.sleep(0)
        begin = time.perf_counter()
        task.cancel()
        try:
            await task
        except asyncio.CancelledError:
            times.append((time.perf_counter() - begin) * 1e3)
        opened.set()
    return statistics.median(times), max(times)


def main(batches=10000, rounds=7):
    table = make_table(batches)
    times = {name: [] for name in WAYS}
    for _ in range(rounds):
        for name, way in WAYS.items():
            begin = time.process_time()
            assert asyncio.run(way(table)) == batches
            times[name].append(time.process_time() - begin)
    print(f"{'CPU us a batch, medians of ' + str(rounds):42}"
          f"{'':>6}  times uvarrow")
    own_us = statistics.median(times["uvarrow, window 64"]) / batches * 1e6
    for name, values in times.items():
        us = statistics.median(values) / batches * 1e6
        print(f"{name:42}{us:6.1f}  {us / own_us:6.1f}")
    median, longest = asyncio.run(free_after_cancel())
    print(f"\ntask free after a cancel, source blocked: median {median:.1f} ms, "
          f"longest {longest:.1f} ms")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
