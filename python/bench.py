# SPDX-License-Identifier: Apache-2.0
"""The cost of a batch that a blocking reader gives to an event loop: CPU time
of the process, in microseconds a batch, for uvarrow and for code written by
hand. Usage: bench.py [BATCHES [ROUNDS]]

Every way reads the same reader in one run, and the rounds take turns. Printed
are the least time, which other programs disturb least, the median, and the
least as a multiple of uvarrow's. The reader alone is the first row, and is part
of all. The last rows have the two threads on a core each, wherever the system
would have them.
"""
import asyncio
import os
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


def keep_on(here, others):
    """Keeps this thread on the cores `here`, and all other ones on `others`."""
    for thread in map(int, os.listdir("/proc/self/task")):
        is_here = thread == threading.get_native_id()
        try:
            os.sched_setaffinity(thread, here if is_here else others)
        except ProcessLookupError:
            pass # it has ended


def split_cores():
    """As on a machine with idle cores, until the way has ended."""
    keep_on(*({core} for core in sorted(CORES)[:2]))


async def own_apart(table):
    count = 0
    async with uvarrow.stream(table, window=64) as rows:
        async for _ in rows:
            if count == 0:
                split_cores()
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


async def to_thread_apart(table):
    reader, count = table.to_reader(), 0
    while await asyncio.to_thread(read_one, reader) is not None:
        if count == 0:
            split_cores()
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
ON_TWO_CORES = {
    "uvarrow, window 64, on two cores": own_apart,
    "to_thread, on two cores": to_thread_apart,
}
CORES = os.sched_getaffinity(0)


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


def measure(ways, batches, rounds):
    """Seconds for each way and round."""
    table = make_table(batches)
    times = {name: [] for name in ways}
    for _ in range(rounds):
        for name, way in ways.items():
            begin = time.process_time()
            assert asyncio.run(way(table)) == batches
            times[name].append(time.process_time() - begin)
            keep_on(CORES, CORES)
    return times


def main(batches=10000, rounds=7):
    times = measure(WAYS, batches, rounds)
    if len(CORES) > 1: # last, as threads stay where they were put
        times |= measure(ON_TWO_CORES, batches, rounds)
    print(f"{f'CPU us a batch, {rounds} rounds':34}{'least':>8}"
          f"{'median':>8}{'times uvarrow':>15}")
    own_us = min(times["uvarrow, window 64"])
    for name, values in times.items():
        least, median = min(values), statistics.median(values)
        print(f"{name:34}{least / batches * 1e6:8.1f}"
              f"{median / batches * 1e6:8.1f}{least / own_us:15.1f}")
    median, longest = asyncio.run(free_after_cancel())
    print(f"\ntask free after a cancel, source blocked: median {median:.1f} ms, "
          f"longest {longest:.1f} ms")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
