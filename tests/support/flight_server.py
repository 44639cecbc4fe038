#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A Flight SQL server for tests. The text of a query states its acts:

    rows N         N batches with one row each, the column n
    parts N        N partitions; number i has i rows
    parts N WORD VALUE ...   N partitions, which are read from 0 on: number i has
                   batches with one row each, which count from 1000 * i. Words:
                   rows, how many; breaks, after how many of them a read fails,
                   with "unavailable"; times, how often each does (1); dies,
                   after how many of them a mortal server ends; as, a name, with which
                   these are counted; at, locations with commas between
    endless        batches without an end
    fails          an error in the first call
    fails N        an error after N batches
    count PLAN N   a plan of the test suite for implementations: whole, endless,
                   slow or fails, in batches of three rows that count from 0

Usage: flight_server.py FOLDER [mortal]: writes the port into FOLDER/port, and creates
FOLDER/stopped when an endless query was stopped by its client.

The action "asked", with a name, tells how many partitions of it were read.

Of Flight SQL it knows the messages that a driver sends for a query, which are
two fields of protocol buffers each.
"""
import collections
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


def words(query):
    """The words behind the first two, and their values."""
    rest = query.split()[2:]
    return dict(zip(rest[::2], rest[1::2]))


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
        self.lock = threading.Lock()
        self.asked = collections.Counter() # partitions, by name
        self.broken = collections.Counter() # by ticket

    def get_flight_info(self, context, descriptor):
        query = query_of(descriptor.command)
        if query == "fails":
            raise flight.FlightServerError("division by zero")
        parts = re.fullmatch(r"parts (\d+)(.*)", query)
        locations = []
        if not parts:
            tickets = [query]
        elif not parts[2]:
            tickets = [f"rows {i + 1}" for i in range(int(parts[1]))]
        else:
            tickets = [f"part {i}{parts[2]}" for i in range(int(parts[1]))]
            locations = [one for one in words(query).get("at", "").split(",")
                         if one]
        return flight.FlightInfo(
            SCHEMA, descriptor,
            [flight.FlightEndpoint(ticket.encode(), locations)
             for ticket in tickets], -1, -1)

    def do_get(self, context, ticket):
        query = ticket.ticket.decode()
        word, *plan = query.split()
        if word == "count":
            return flight.GeneratorStream(SCHEMA,
                                          planned(plan[0], int(plan[1])))
        if word == "part":
            return flight.GeneratorStream(SCHEMA, self.part(query))
        return flight.GeneratorStream(SCHEMA, self.batches(context, query))

    def do_action(self, context, action):
        if action.type != "asked": # it is one of Flight SQL
            raise NotImplementedError
        name = action.body.to_pybytes().decode()
        yield flight.Result(str(self.asked[name]).encode())

    def part(self, query):
        plan = words(query)
        with self.lock:
            self.asked[plan.get("as")] += 1
            breaks = ("breaks" in plan
                      and self.broken[query] < int(plan.get("times", 1)))
            self.broken[query] += breaks
        for k in range(int(plan["rows"])):
            if breaks and k == int(plan["breaks"]):
                raise flight.FlightUnavailableError("connection reset")
            if "mortal" in sys.argv and k == int(plan.get("dies", -1)):
                os._exit(1)
            yield pyarrow.record_batch(
                [pyarrow.array([1000 * int(query.split()[1]) + k],
                               pyarrow.int64())], SCHEMA)

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
