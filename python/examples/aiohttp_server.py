# SPDX-License-Identifier: Apache-2.0
"""The server of server.py with aiohttp, which has no ASGI: answer() gives it the
messages of an answer.

    pip install aiohttp adbc-driver-sqlite
    DATABASE=flights.db python aiohttp_server.py
    curl -H 'Accept: text/csv' 'localhost:8080/query?sql=SELECT+1+AS+one'
"""
import asyncio
import os

from aiohttp import web

import uvarrow


async def answer(request, rows):
    """Sends a stream, in the format that the client asks for. The task of a client
    that leaves has to be cancelled: `handler_cancellation=True`."""
    scope = {"type": "http", "method": request.method,
             "headers": request.raw_headers}
    response = None

    async def receive():
        await asyncio.Event().wait()

    async def send(message):
        nonlocal response
        if response is None:
            response = web.StreamResponse(status=message["status"], headers={
                key.decode(): value.decode() for key, value in message["headers"]})
            await response.prepare(request)
            return
        if message["body"]:
            await response.write(message["body"])
        if not message["more_body"]:
            await response.write_eof()

    await uvarrow.asgi.response(rows, scope)(scope, receive, send)
    return response


async def query(request):
    return await answer(request, request.app["pool"].query(request.query["sql"]))


def main():
    app = web.Application()
    app["pool"] = uvarrow.adbc.Pool(os.environ.get("DRIVER", "sqlite"),
                                    uri=os.environ.get("DATABASE", ":memory:"))
    app.router.add_get("/query", query)
    web.run_app(app, handler_cancellation=True)


if __name__ == "__main__":
    main()
