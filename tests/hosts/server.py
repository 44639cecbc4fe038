# SPDX-License-Identifier: Apache-2.0
"""A server of Flight SQL with several endpoints: a fixture, as no package has one.

Usage: server.py HOST:PORT [LOCATION...]

A query is a text such as

    parts=3 batches=400 rows=1000 pause=0.01 replicas=2

Its result has an endpoint for each part. Part i is at location i, and its replicas
at the locations after that one. A part has two columns: `part`, its number, and
`n`, which counts its rows from 0. `pause` is in seconds, before each batch.

Each line of standard input is answered by one of output, so that a host that is
cut off can be asked, too: the number of batches made and of open streams, and the
resident bytes, as JSON. A line with a number makes each further batch take so many
seconds more. The server ends with its input.
"""
import json
import os
import re
import sys
import threading
import time

import numpy
import pyarrow
import pyarrow.flight as flight

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                "../support"))
from flight_server import query_of  # noqa: E402

SCHEMA = pyarrow.schema([("part", pyarrow.int32()), ("n", pyarrow.int64())])
PAGE = os.sysconf("SC_PAGE_SIZE")


def wishes(text):
    return {name: float(value) if "." in value else int(value)
            for name, value in re.findall(r"(\w+)=([\d.]+)", text)}


def batch(part, number, rows):
    return pyarrow.record_batch(
        [numpy.full(rows, part, numpy.int32),
         numpy.arange(number * rows, (number + 1) * rows)], schema=SCHEMA)


class Server(flight.FlightServerBase):
    def __init__(self, where, locations):
        super().__init__("grpc://" + where)
        self.locations = locations
        self.lock = threading.Lock()
        self.made = self.open = 0
        self.more = 0.0

    def places(self, part, count):
        return [self.locations[(part + i) % len(self.locations)]
                for i in range(count if self.locations else 0)]

    def get_flight_info(self, context, descriptor):
        query = query_of(descriptor.command)
        wish = wishes(query)
        return flight.FlightInfo(
            SCHEMA, descriptor,
            [flight.FlightEndpoint(f"{part} {query}".encode(),
                                   self.places(part, wish.get("replicas", 1)))
             for part in range(wish.get("parts", 1))], -1, -1)

    def do_get(self, context, ticket):
        part, _, query = ticket.ticket.decode().partition(" ")
        return flight.GeneratorStream(SCHEMA,
                                      self.batches(int(part), wishes(query)))

    def count(self, made=0, opened=0):
        with self.lock:
            self.made += made
            self.open += opened

    def batches(self, part, wish):
        self.count(opened=1)
        try:
            for number in range(wish.get("batches", 10)):
                if wish.get("pause", 0) + self.more > 0:
                    time.sleep(wish.get("pause", 0) + self.more)
                self.count(made=1)
                yield batch(part, number, wish.get("rows", 1000))
        finally:
            self.count(opened=-1)

    def state(self):
        with open("/proc/self/statm", encoding="ascii") as file:
            resident = int(file.read().split()[1]) * PAGE
        return json.dumps({"made": self.made, "open": self.open,
                           "resident": resident})


def main(where, *locations):
    server = Server(where, locations)
    threading.Thread(target=server.serve, daemon=True).start()
    print(server.port, flush=True)
    for line in sys.stdin:
        if line.strip():
            server.more = float(line)
        print(server.state(), flush=True)
    os._exit(0)


if __name__ == "__main__":
    main(*sys.argv[1:])
