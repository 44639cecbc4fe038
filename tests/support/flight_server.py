#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A Flight SQL server for tests. The text of a query states its acts:

    rows N         N batches with one row each, the column n
    parts N        N partitions; number i has i rows
    endless        batches without an end
    fails          an error in the first call
    fails N        an error after N batches
    count PLAN N   a plan of the test suite for implementations: whole, endless,
                   slow or fails, in batches of three rows that count from 0

Usage: flight_server.py FOLDER: writes the port into FOLDER/port, and creates
FOLDER/stopped when an endless query was stopped by its client.

Of Flight SQL it knows the messages that a driver sends for a query, which are
two fields of protocol buffers each.
"""
import os
import re
import sys
import threading
import time

import pyarrow
import pyarrow.flight as flight

SCHEMA = pyarrow.schema([("n", pyarrow.int64())])


def varint(data, at):
    value = shift = 0
    while True:
        value |= (data[at] & 127) << shift
        at += 1
        shift += 7
        if data[at - 1] < 128:
            return value, at


def fields(data):
    """The fields of a message that have a length: by their number"""
    at, found = 0, {}
    while at < len(data):
        key, at = varint(data, at)
        size, at = varint(data, at)
        if key & 7 == 2:
            found[key >> 3] = data[at:at + size]
            at += size
    return found


def query_of(command):
    """The text of a CommandStatementQuery inside an Any"""
    outer = fields(command)
    if not outer.get(1, b"").endswith(b".CommandStatementQuery"):
        raise flight.FlightUnavailableError(f"no such command: {outer.get(1)}")
    return fields(outer[2]).get(1, b"").decode()


def batch(number):
    return pyarrow.record_batch([pyarrow.array([number * 10],
                                               pyarrow.int64())], SCHEMA)


def planned(plan, batches):
    """The batches of a plan of the test suite, as include/uvarrow/tck.h has it"""
    number = 0
    while plan == "endless" or number < batches:
        if plan == "slow":
            time.sleep(0.005)
        yield pyarrow.record_batch(
            [pyarrow.array(range(3 * number, 3 * number + 3),
                           pyarrow.int64())], SCHEMA)
        number += 1
    if plan == "fails":
        raise flight.FlightServerError("connection reset")


class Server(flight.FlightServerBase):
    def __init__(self, folder):
        super().__init__("grpc://127.0.0.1:0")
        self.folder = folder

    def get_flight_info(self, context, descriptor):
        query = query_of(descriptor.command)
        if query == "fails":
            raise flight.FlightServerError("division by zero")
        parts = re.fullmatch(r"parts (\d+)", query)
        tickets = ([f"rows {i + 1}" for i in range(int(parts[1]))] if parts
                   else [query])
        return flight.FlightInfo(
            SCHEMA, descriptor,
            [flight.FlightEndpoint(ticket.encode(), []) for ticket in tickets],
            -1, -1)

    def do_get(self, context, ticket):
        query = ticket.ticket.decode()
        word, *plan = query.split()
        if word == "count":
            return flight.GeneratorStream(SCHEMA,
                                          planned(plan[0], int(plan[1])))
        return flight.GeneratorStream(SCHEMA, self.batches(context, query))

    def batches(self, context, query):
        word, _, count = query.partition(" ")
        number = 0
        try:
            while word == "endless" or number < int(count):
                if context.is_cancelled():
                    break
                yield batch(number)
                number += 1
        finally:
            if word == "endless":
                with open(os.path.join(self.folder, "stopped"), "w",
                          encoding="ascii"):
                    pass
        if word == "fails":
            raise flight.FlightServerError("connection reset")


def main(kind):
    server = kind(sys.argv[1])
    path = os.path.join(sys.argv[1], "port")
    with open(path + ".new", "w", encoding="ascii") as file:
        file.write(str(server.port))
    os.rename(path + ".new", path)
    # ends with the test that started it
    threading.Thread(target=lambda: (sys.stdin.read(), os._exit(0)),
                     daemon=True).start()
    server.serve()


if __name__ == "__main__":
    main(Server)
