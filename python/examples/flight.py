# SPDX-License-Identifier: Apache-2.0
"""Beyond one machine: tables of several Arrow Flight servers, merged as they
come. Usage: flight.py TICKET LOCATION...

    python flight.py rows grpc://one:8815 grpc://two:8815

A client that stops reading must stop its servers. gRPC does so only with two
options: by default it measures the connection (BDP probes) and grows its window
up to hundreds of megabytes, which it holds for a client that does not read.
With `grpc.http2.bdp_probe=0` and a look-ahead of 1 MiB, a server is ahead of
its client by that much, besides the window of the stream.
"""
import asyncio
import sys

import pyarrow.flight

import uvarrow

OPTIONS = [("grpc.http2.bdp_probe", 0),
           ("grpc.http2.lookahead_bytes", 1 << 20)]


class Source:
    """One ticket of one server, which is asked for it on a worker thread."""

    def __init__(self, location, ticket):
        self._location = location
        self._ticket = pyarrow.flight.Ticket(ticket)
        self._reader = None

    def open(self):
        client = pyarrow.flight.connect(self._location, generic_options=OPTIONS)
        self._reader = client.do_get(self._ticket)
        return self._reader.to_reader()

    def interrupt(self):
        """Stops the server, and the call that waits for it."""
        if self._reader is not None:
            self._reader.cancel()


def stream(location, ticket, **options):
    """A stream of the rows that a server has for a ticket."""
    source = Source(location, ticket)
    return uvarrow.stream(source.open, interrupt=source.interrupt, **options)


def merged(locations, ticket, *, window=4):
    """A stream of the rows that all the servers have for a ticket."""
    return uvarrow.merge(*(stream(location, ticket, window=window,
                                  max_bytes=8 << 20).name(location)
                           for location in locations))


async def main(ticket, *locations):
    total = 0
    async with merged(locations, ticket.encode()) as rows:
        async for batch in rows:
            total += len(batch)
    print(f"{total:,} rows of {len(locations)} servers")


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
