# SPDX-License-Identifier: Apache-2.0
"""A Starlette application that streams queries as Arrow IPC: its rows are never
in memory as a whole, columns are not copied, and a client that disconnects
cancels its query in the database.

    pip install starlette uvicorn adbc-driver-sqlite
    DATABASE=flights.db uvicorn server:app
    curl -s 'localhost:8000/query?sql=SELECT+1+AS+one' | python -c \\
        'import sys, pyarrow as pa; print(pa.ipc.open_stream(sys.stdin.buffer).read_all())'
"""
import os

from starlette.applications import Starlette
from starlette.responses import PlainTextResponse, StreamingResponse
from starlette.routing import Route

import uvarrow
import uvarrow.adbc

pool = uvarrow.adbc.Pool(os.environ.get("DRIVER", "sqlite"),
                         uri=os.environ.get("DATABASE", ":memory:"))


class RowsResponse(StreamingResponse):
    """Arrow IPC of a stream, which is closed however the response ends: if a
    client disconnects while it does not read, Starlette drops the iterator,
    and the stream would go on until that is collected."""

    def __init__(self, rows, first, chunks):
        super().__init__(self._body(first, chunks),
                         media_type="application/vnd.apache.arrow.stream")
        self._rows = rows

    async def _body(self, first, chunks):
        yield first
        del first # its columns are sent
        async for chunk in chunks:
            yield chunk

    async def __call__(self, scope, receive, send):
        async with self._rows:
            await super().__call__(scope, receive, send)


async def query(request):
    rows = pool.query(request.query_params["sql"])
    chunks = uvarrow.ipc(rows)
    try:
        first = await anext(chunks) # an error of the query is known by then
    except uvarrow.Error as error:
        return PlainTextResponse(error.strerror, status_code=400)
    return RowsResponse(rows, first, chunks)


app = Starlette(routes=[Route("/query", query)])
