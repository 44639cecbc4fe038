# SPDX-License-Identifier: Apache-2.0
"""Beyond one machine: the parts of a result on several Arrow Flight servers,
merged as they come. Usage: flight.py TICKET LOCATION[,REPLICA...]...

    python flight.py rows grpc://one:8815,grpc://two:8815 grpc://three:8815

A part may be read from any of its replicas. If a server breaks, is cut off or
cannot be reached, its part goes on from the next replica, behind the rows that
came: each replica must have the same rows in the same order. A part fails when all
of its replicas have failed, one after the other, and no row came in between. A server
that is stopped, whose host goes on, is noticed by `rows.timeout(between=)` alone.
"""
import asyncio
import functools
import itertools
import sys
import threading

import pyarrow.flight as flight

import uvarrow

OPTIONS = [
    # a client that stops reading must stop its servers; by default gRPC measures
    # the connection, and grows its window to hundreds of megabytes
    ("grpc.http2.bdp_probe", 0), ("grpc.http2.lookahead_bytes", 1 << 20),
    # a host that is cut off sends nothing, not even an end: without these gRPC
    # waits for it for ever
    ("grpc.keepalive_time_ms", 10_000), ("grpc.keepalive_timeout_ms", 5_000),
    ("grpc.http2.max_pings_without_data", 0)]
GONE = flight.FlightUnavailableError, flight.FlightTimedOutError


@functools.lru_cache(maxsize=None)
def connected(location):
    """One channel to each server, for all of its streams."""
    return flight.connect(location, generic_options=OPTIONS)


class Part:
    """The rows of a ticket, which a thread reads from one replica after the
    other."""

    def __init__(self, locations, ticket):
        self._locations = list(locations)
        self._ticket = flight.Ticket(ticket)
        self._left = threading.Event()
        self._reader = None

    def _read(self, location, skip):
        self._reader = connected(location).do_get(self._ticket)
        for chunk in self._reader:
            batch = chunk.data
            if skip < len(batch):
                yield batch[skip:] if skip else batch
            skip = max(0, skip - len(batch))

    def batches(self):
        passed = failures = 0
        for location in itertools.cycle(self._locations):
            before = passed
            try:
                for batch in self._read(location, passed):
                    passed += len(batch)
                    yield batch
                return
            except Exception as error:
                error.add_note(f"{location}, behind {passed} rows")
                failures = 1 if passed > before else failures + 1
                if (not isinstance(error, GONE) or self._left.is_set()
                        or failures == len(self._locations)):
                    raise

    def interrupt(self):
        """Stops the server, and the call that waits for it."""
        self._left.set()
        if self._reader is not None:
            self._reader.cancel()


def stream(locations, ticket, **options):
    """A stream of the rows that each of these replicas has for a ticket."""
    part = Part(locations, ticket)
    return uvarrow.stream(part.batches, interrupt=part.interrupt,
                          close=part.interrupt,
                          **options).name(" or ".join(locations))


def merged(parts, ticket, *, window=4):
    """A stream of the rows that all the servers, lists of replicas, have for a
    ticket."""
    return uvarrow.merge(*(stream(locations, ticket, window=window,
                                  max_bytes=8 << 20) for locations in parts))


async def main(ticket, *parts):
    total = 0
    async with merged([part.split(",") for part in parts],
                      ticket.encode()) as rows:
        async for batch in rows:
            total += len(batch)
    print(f"{total:,} rows of {len(parts)} servers")


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
