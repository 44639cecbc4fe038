#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A Flight SQL server for tests that has a database: DuckDB in memory, with
prepared statements, transactions and ingests. It answers the queries of
flight_server.py, too.

Usage: flight_database.py FOLDER, as flight_server.py
"""
import itertools
import threading
import warnings

import duckdb
import pyarrow as pa
import pyarrow.flight as flight

import flight_server
from flight_server import varint

PREFIX = b"type.googleapis.com/arrow.flight.protocol.sql."
TRANSACTIONS = 8  # FLIGHT_SQL_SERVER_TRANSACTION
NO_ROWS = pa.table({"Count": pa.array([], pa.int64())})


# ---- messages ---------------------------------------------------------------

def message(data):
    """The fields of a message of protocol buffers: number -> bytes or int"""
    at, found = 0, {}
    while at < len(data):
        key, at = varint(data, at)
        value, at = varint(data, at)
        if key & 7 == 2:
            at += value
            value = bytes(data[at - value:at])
        found[key >> 3] = value
    return found


def packed(number):
    made = b""
    while number > 127:
        made += bytes([number & 127 | 128])
        number >>= 7
    return made + bytes([number])


def field(number, data):
    return packed(number << 3 | 2) + packed(len(data)) + data


def any_of(name, data):
    return field(1, PREFIX + name.encode()) + field(2, data)


def unpacked(data):
    """The name and the fields of a message inside an Any"""
    outer = message(data)
    return (outer.get(1, b"").rpartition(b".")[2].decode(),
            message(outer.get(2, b"")))


def changed(count):
    """A DoPutUpdateResult"""
    return pa.py_buffer(packed(1 << 3) + packed(count))


def info_of_transactions():
    """What GetSqlInfo says: there are transactions"""
    empty = [pa.array([], kind) for kind in (
        pa.string(), pa.bool_(), pa.int64(), pa.int32(), pa.list_(pa.string()),
        pa.map_(pa.int32(), pa.list_(pa.int32())))]
    empty[3] = pa.array([1], pa.int32())
    value = pa.UnionArray.from_dense(pa.array([3], pa.int8()),
                                     pa.array([0], pa.int32()), empty)
    return pa.table({"info_name": pa.array([TRANSACTIONS], pa.uint32()),
                     "value": value})


def quoted(name):
    return '"' + name.decode().replace('"', '""') + '"'


# ---- the server -------------------------------------------------------------

class Database(flight_server.Server):
    def __init__(self, folder):
        super().__init__(folder)
        self.base = duckdb.connect()
        self.transactions, self.prepared, self.results = {}, {}, {}
        self.numbers = map(str, itertools.count(1))
        self.lock = threading.Lock()

    def kept(self, things, thing):
        with self.lock:
            number = next(self.numbers).encode()
        things[number] = thing
        return number

    def cursor(self, transaction=b""):
        return self.transactions.get(transaction) or self.base.cursor()

    @staticmethod
    def rows_of(cursor, sql, rows):
        """The result of the last of the rows of parameters"""
        try:
            for row in rows or [None]:
                found = cursor.execute(sql, row)
            return found.to_arrow_table() if found.description else NO_ROWS
        except duckdb.Error as error:
            raise flight.FlightServerError(str(error)) from error

    def get_flight_info(self, context, descriptor):
        name, fields = unpacked(descriptor.command)
        sql = fields.get(1, b"").decode() if 1 in fields and \
            isinstance(fields[1], bytes) else ""
        if name == "CommandGetSqlInfo":
            table = info_of_transactions()
        elif name == "CommandPreparedStatementQuery":
            sql, transaction, rows = self.prepared[fields[1]]
            if plain(sql):
                return super().get_flight_info(
                    context, flight.FlightDescriptor.for_command(
                        any_of("CommandStatementQuery", field(1, sql.encode()))))
            table = self.rows_of(self.cursor(transaction), sql, rows)
        elif name == "CommandStatementQuery" and not plain(sql):
            table = self.rows_of(self.cursor(fields.get(2, b"")), sql, None)
        else:
            return super().get_flight_info(context, descriptor)
        ticket = b"result " + self.kept(self.results, table)
        return flight.FlightInfo(table.schema, descriptor,
                                 [flight.FlightEndpoint(ticket, [])], -1, -1)

    def do_get(self, context, ticket):
        word, _, number = ticket.ticket.partition(b" ")
        if word == b"result":
            return flight.RecordBatchStream(self.results.pop(number))
        return super().do_get(context, ticket)

    def do_put(self, context, descriptor, reader, writer):
        name, fields = unpacked(descriptor.command)
        if name == "CommandStatementUpdate":
            table = self.rows_of(self.cursor(fields.get(2, b"")),
                                 fields[1].decode(), None)
            writer.write(changed(sum(table.column(0).to_pylist()
                                     if table.column_names == ["Count"]
                                     else [])))
        elif name == "CommandStatementIngest":
            writer.write(changed(self.ingest(fields, reader)))
        elif name == "CommandPreparedStatementUpdate":
            sql, transaction, _ = self.prepared[fields[1]]
            rows = [list(row.values()) for row in reader.read_all().to_pylist()]
            cursor, count = self.cursor(transaction), 0
            for row in rows or [None]:
                table = self.rows_of(cursor, sql, [row])
                count += sum(table.column(0).to_pylist()
                             if table.column_names == ["Count"] else [])
            writer.write(changed(count))
        else:  # CommandPreparedStatementQuery: its parameters
            self.prepared[fields[1]][2] = [
                list(row.values()) for row in reader.read_all().to_pylist()]
            writer.write(pa.py_buffer(field(1, fields[1])))

    def ingest(self, fields, reader):
        """Writes rows into a table. What is there and what is not decides"""
        how = message(fields.get(1, b""))
        schema = quoted(fields[3]) + "." if fields.get(3) else ""
        name = schema + quoted(fields[2])
        cursor = self.cursor(fields.get(6, b""))
        rows = reader.read_all()
        cursor.register("given", rows)
        try:
            there = bool(cursor.execute(
                "SELECT 1 FROM duckdb_tables() WHERE table_name = ?",
                [fields[2].decode()]).fetchall())
            if there and how.get(2) == 1 or not there and how.get(1) == 2:
                raise flight.FlightServerError(
                    "the table is there" if there else "there is no table")
            if there and how.get(2) == 3:
                cursor.execute(f"DROP TABLE {name}")
            if not there or how.get(2) == 3:
                word = "TEMPORARY" if fields.get(5) else ""
                cursor.execute(f"CREATE {word} TABLE {name} AS "
                               "SELECT * FROM given LIMIT 0")
            cursor.execute(f"INSERT INTO {name} SELECT * FROM given")
        except duckdb.Error as error:
            raise flight.FlightServerError(str(error)) from error
        finally:
            cursor.unregister("given")
        return len(rows)

    def do_action(self, context, action):
        name, fields = unpacked(action.body.to_pybytes())
        if action.type == "CreatePreparedStatement":
            made = self.kept(self.prepared, [fields[1].decode(),
                                             fields.get(2, b""), None])
            yield flight.Result(pa.py_buffer(any_of(
                "ActionCreatePreparedStatementResult", field(1, made))))
        elif action.type == "ClosePreparedStatement":
            self.prepared.pop(fields[1], None)
        elif action.type == "BeginTransaction":
            cursor = self.base.cursor()
            cursor.begin()
            yield flight.Result(pa.py_buffer(any_of(
                "ActionBeginTransactionResult",
                field(1, self.kept(self.transactions, cursor)))))
        elif action.type == "EndTransaction":
            cursor = self.transactions.pop(fields[1])
            try:
                (cursor.commit if fields[2] == 1 else cursor.rollback)()
            except duckdb.Error as error:
                raise flight.FlightServerError(str(error)) from error
        else:
            raise NotImplementedError(f"{action.type}, {name}")


def plain(sql):
    """Whether it is a query of flight_server.py"""
    return sql.split(" ")[0] in ("rows", "parts", "endless", "fails", "count")


if __name__ == "__main__":
    warnings.filterwarnings("ignore", "Arrow output")  # of a copy
    flight_server.main(Database)
