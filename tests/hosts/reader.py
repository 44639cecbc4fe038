# SPDX-License-Identifier: Apache-2.0
"""The program that the plays watch: reads the partitions of a query, and checks
that each row comes once and in order. Its argument is a dict as JSON:

    uri, sql        of the query
    connections     of the pool
    limits          arguments of Pool.partition()
    tell            batches after which it prints "reached"; 0: when it begins
    leave           batches after which it leaves the stream
    pause           seconds that it waits after each batch
    parts           locations and tickets of the parts, instead of a query: read
                    by python/examples/flight.py
    engine          a class of engine.py, which gives the stream instead
    unchecked       true: the values of the rows are not looked at, so that the
                    seconds are those of the stream

The last line is the result, as JSON. Then it waits for the end of its input, so that
what a stream leaves behind is not ended by the end of the process. It also ends with
0 if the stream failed.
"""
import asyncio
import importlib.util
import json
import os
import sys
import time

import numpy

import uvarrow
import uvarrow.adbc

HERE = os.path.dirname(os.path.abspath(__file__))
EXAMPLE = os.path.join(HERE, "../../python/examples/flight.py")


class Seen:
    """The rows of each part so far"""

    def __init__(self, unchecked):
        self.unchecked = unchecked
        self.next = {}
        self.batches = 0
        self.wrong = 0
        self.longest = 0.0  # seconds between two batches
        self.at = None
        self.listed = 0.0  # seconds until the parts were known
        self.begin = None  # at the first batch: seconds, and those of CPU
        self.bytes = 0  # after it

    def take(self, batch):
        now = time.monotonic()
        if self.at is not None:
            self.longest = max(self.longest, now - self.at)
        self.at = now
        if self.begin is None:
            self.begin = now, time.process_time()
        else:
            self.bytes += batch.nbytes
        self.batches += 1
        if self.unchecked:
            self.next[0] = self.next.get(0, 0) + len(batch)
        else:
            self.check(batch.to_pyarrow())

    def check(self, batch):
        part = batch.column(0)[0].as_py()
        first = self.next.get(part, 0)
        right = (numpy.all(batch.column(0).to_numpy() == part) and
                 numpy.array_equal(batch.column(1).to_numpy(),
                                   numpy.arange(first, first + len(batch))))
        self.wrong += not right
        self.next[part] = first + len(batch)

    def cost(self):
        """Of the batches after the first: bytes, and seconds by the clock and of
        CPU, of all threads"""
        if self.begin is None:
            return {}
        return {"bytes": self.bytes, "batches": self.batches,
                "clock": self.at - self.begin[0],
                "cpu": time.process_time() - self.begin[1]}


async def read(rows, how, seen):
    async with rows:
        async for batch in rows:
            seen.take(batch)
            if seen.batches == how["tell"]:
                print("reached", flush=True)
            if seen.batches == how["leave"]:
                return "left"
            if how["pause"] > 0:
                await asyncio.sleep(how["pause"])
    return "complete"


def begun(how):
    if how["tell"] == 0:
        print("reached", flush=True)


async def read_query(how, seen):
    with uvarrow.adbc.Pool("flightsql", uri=how["uri"],
                           connections=how["connections"]) as pool:
        begun(how)
        begin = time.monotonic()
        parts = await pool.partitions(how["sql"])
        seen.listed = time.monotonic() - begin
        return await read(pool.partition(parts, **how["limits"]), how, seen)


async def read_example(how, seen):
    spec = importlib.util.spec_from_file_location("flight", EXAMPLE)
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    begun(how)
    return await read(
        uvarrow.merge(*(example.stream(locations, ticket.encode(), window=4,
                                       max_bytes=8 << 20)
                        for locations, ticket in how["parts"])), how, seen)


async def read_engine(how, seen):
    begun(how)
    return await read(how["session"].rows(), how, seen)


def kind(how):
    if "session" in how:
        return read_engine
    return read_example if "parts" in how else read_query


async def main(how):
    seen, text = Seen(how.get("unchecked")), ""
    try:
        end = await kind(how)(how, seen)
    except Exception as error:
        end, text = "error", "; ".join([str(error),
                                        *getattr(error, "__notes__", [])])
    print(json.dumps({"end": end, "text": text, "rows": sum(seen.next.values()),
                      "wrong": seen.wrong, "longest": seen.longest,
                      "listed": seen.listed, **seen.cost()}), flush=True)
    await asyncio.to_thread(sys.stdin.read)


def start(how):
    if "engine" not in how:
        asyncio.run(main(how))
        return
    import engine
    session = getattr(engine, how["engine"])(how)
    asyncio.run(main({**how, "session": session}))
    session.close()


if __name__ == "__main__":
    start(json.loads(sys.argv[1]))
