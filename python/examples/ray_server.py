# SPDX-License-Identifier: Apache-2.0
"""Actors of Ray that answer queries as Arrow IPC, CSV or JSON, each by a server of
its own, at the pace of each client; a client that leaves cancels its query.

    pip install 'ray' starlette uvicorn adbc-driver-sqlite
    python ray_server.py sqlite flights.db 2
    curl -H 'Accept: text/csv' 'localhost:PORT/query?sql=SELECT+1+AS+one'

Not by Ray Serve: it queues what its clients do not read, without a limit. Beside a
client that stood still a replica came to hold 4.8 GB after 20 s (Ray 2.60).
"""
import asyncio
import sys

import ray
import uvicorn
from starlette.applications import Starlette
from starlette.routing import Route

import uvarrow


@ray.remote(num_cpus=0.5)
class Server:
    """Its methods are asynchronous, so that they share one event loop with the
    server, and none of them keeps a client waiting."""

    def __init__(self, pool): # a pickle of a pool is its arguments
        self._pool = pool

    async def start(self, host="127.0.0.1", port=0):
        """Returns its URL."""
        app = Starlette(routes=[Route("/query", self._query)])
        self._server = uvicorn.Server(uvicorn.Config(
            app, host=host, port=port, lifespan="off", log_level="warning"))
        self._task = asyncio.create_task(self._server.serve())
        while not self._server.started:
            if self._task.done(): # the port is in use
                raise OSError(f"no server on {host}:{port}")
            await asyncio.sleep(0.01)
        host, port = self._server.servers[0].sockets[0].getsockname()[:2]
        return f"http://{host}:{port}"

    async def _query(self, request):
        rows = self._pool.query(request.query_params["sql"])
        return uvarrow.asgi.response(rows.timeout(first=30), request)

    async def stats(self):
        return self._pool.stats()

    async def stop(self):
        self._server.should_exit = True
        await self._task
        await self._pool.aclose()


def main(driver, uri, actors="1"):
    pool = uvarrow.adbc.Pool(driver, uri=uri)
    servers = [Server.remote(pool) for _ in range(int(actors))]
    print(*ray.get([one.start.remote() for one in servers]), flush=True)
    input("Enter ends them. ")
    ray.get([one.stop.remote() for one in servers])


if __name__ == "__main__":
    main(*sys.argv[1:])
