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

The last line is the result, as JSON. It also ends with 0 if the stream failed.
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

    def __init__(self):
        self.next = {}
        self.batches = 0
        self.wrong = 0
        self.longest = 0.0  # seconds between two batches
        self.at = None
        self.listed = 0.0  # seconds until the parts were known

    def take(self, batch):
        now = time.monotonic()
        if self.at is not None:
            self.longest = max(self.longest, now - self.at)
        self.at = now
        batch = batch.to_pyarrow()
        part = batch.column(0)[0].as_py()
        first = self.next.get(part, 0)
        right = (numpy.all(batch.column(0).to_numpy() == part) and
                 numpy.array_equal(batch.column(1).to_numpy(),
                                   numpy.arange(first, first + len(batch))))
        self.wrong += not right
        self.next[part] = first + len(batch)
        self.batches += 1


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


async def main(how):
    seen, text = Seen(), ""
    try:
        end = await (read_example if "parts" in how else read_query)(how, seen)
    except Exception as error:
        end, text = "error", "; ".join([str(error),
                                        *getattr(error, "__notes__", [])])
    print(json.dumps({"end": end, "text": text, "rows": sum(seen.next.values()),
                      "wrong": seen.wrong, "longest": seen.longest,
                      "listed": seen.listed}), flush=True)


if __name__ == "__main__":
    asyncio.run(main(json.loads(sys.argv[1])))
