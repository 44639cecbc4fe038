# SPDX-License-Identifier: Apache-2.0
"""The peer of `uvarrow serve`: GET /query, answered by Starlette on uvicorn,
with the same driver and the same number of connections.

It is written to be fast: one connection of a pool for a request, rows read and
written by threads while the loop serves other requests, a quarter of a mebibyte
for each turn of a thread, the writers of Arrow, and an answer that fits in one
turn is sent in one piece. It never holds more than one piece for each request.

Usage: peer.py PORT CONNECTIONS LIBRARY ENTRYPOINT KEY DATABASE
"""
import asyncio
import sys

import anyio.to_thread
import pyarrow
import pyarrow.csv
import uvicorn
import uvloop
from adbc_driver_manager import AdbcConnection, AdbcDatabase, AdbcStatement
from starlette.applications import Starlette
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

PIECE = 1 << 18  # bytes that a thread makes in one turn
END = b"\xff\xff\xff\xff\0\0\0\0"  # of a stream of Arrow IPC
NO_HEADER = pyarrow.csv.WriteOptions(include_header=False)
TYPES = {"arrow": "application/vnd.apache.arrow.stream", "csv": "text/csv"}


class Pool:
    """Connections to the database, each for one request at a time."""

    def __init__(self, count, options):
        self.database = AdbcDatabase(**options)
        self.idle = [AdbcConnection(self.database) for _ in range(count)]
        self.free = asyncio.Semaphore(count)
        self.limiter = anyio.CapacityLimiter(count)

    async def take(self):
        await self.free.acquire()
        return self.idle.pop()

    def put(self, connection):
        self.idle.append(connection)
        self.free.release()

    async def run(self, function, *args):
        return await anyio.to_thread.run_sync(function, *args,
                                              limiter=self.limiter)


class Rows:
    """The rows of one query, in pieces. All methods are called in threads."""

    def __init__(self, connection, sql, name):
        self.statement = AdbcStatement(connection)
        self.statement.set_sql_query(sql)
        self.reader = None
        self.name = name
        self.has_ended = False

    def begin(self):
        handle, _ = self.statement.execute_query()
        self.reader = pyarrow.RecordBatchReader._import_from_c(handle.address)
        schema = self.reader.schema
        if self.name == "arrow":
            return bytes(schema.serialize())
        return ",".join(f'"{name}"' for name in schema.names).encode() + b"\n"

    def encode(self, batch):
        if self.name == "arrow":
            return batch.serialize()
        sink = pyarrow.BufferOutputStream()
        pyarrow.csv.write_csv(batch, sink, NO_HEADER)
        return sink.getvalue()

    def piece(self):
        """The next bytes; has_ended is set with the last ones."""
        parts, size = [], 0
        if self.reader is None:
            parts.append(self.begin())
        while size < PIECE:
            try:
                part = self.encode(self.reader.read_next_batch())
            except StopIteration:
                self.has_ended = True
                parts.append(END if self.name == "arrow" else b"")
                self.close()
                break
            parts.append(part)
            size += len(part)
        return b"".join(parts)

    def close(self):
        if self.reader is not None:
            self.reader.close()
        self.statement.close()


async def pieces(pool, connection, rows, piece):
    """Yields the rest after the first piece."""
    try:
        yield piece
        while not rows.has_ended:
            yield await pool.run(rows.piece)
    finally:
        with anyio.CancelScope(shield=True):
            if not rows.has_ended:
                await pool.run(rows.close)
            pool.put(connection)


async def query(request):
    pool = request.app.state.pool
    name = request.query_params.get("format", "arrow")
    connection = await pool.take()
    rows = None
    try:
        rows = Rows(connection, request.query_params["sql"], name)
        piece = await pool.run(rows.piece)
    except Exception as error:
        if rows is not None:
            await pool.run(rows.close)
        pool.put(connection)
        return JSONResponse({"error": str(error)}, status_code=400)
    if rows.has_ended:
        pool.put(connection)
        return Response(piece, media_type=TYPES[name])
    return StreamingResponse(pieces(pool, connection, rows, piece),
                             media_type=TYPES[name])


async def health(_):
    return Response(b'{"status":"ok"}\n', media_type="application/json")


async def serve(port, count, options):
    app = Starlette(routes=[Route("/query", query), Route("/health", health)])
    app.state.pool = Pool(count, options)
    await uvicorn.Server(uvicorn.Config(
        app, host="127.0.0.1", port=port, http="httptools", lifespan="off",
        access_log=False, log_level="warning", backlog=1024)).serve()


def main(port, count, library, entrypoint, key, path):
    options = {"driver": library, key: path}
    if entrypoint:
        options["entrypoint"] = entrypoint
    uvloop.run(serve(int(port), int(count), options))


if __name__ == "__main__":
    main(*sys.argv[1:])
