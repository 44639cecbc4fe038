#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a replica of Ray Serve holds beside a client that asks for rows without an
end, and then reads none; and an actor with a server of its own, as that of
python/examples/ray_server.py. Each makes batches of 1 MiB, as fast as it may, until
20 seconds are over, or it holds 6 GB. Usage: serve.py [--results FILE]

Exit code: 0; 1: the actor's memory grew, too; 77: a package is missing (ray[serve]).
"""
import argparse
import os
import resource
import socket
import sys
import time

import outcome

SECONDS = 20
MOST = 6 << 30  # bytes; a replica cannot have more than 2 GB above that
GROWTH = 128 << 20  # of the actor: what it imports, and the buffers of its socket
PAGE = os.sysconf("SC_PAGE_SIZE")
PORT = 8011
os.environ["RAY_AUTH_MODE"] = "disabled"  # no token in the folder of the user
os.environ.setdefault("RAY_SERVE_PROXY_READY_CHECK_TIMEOUT_S", "60")  # if it is busy


def resident(pid):
    with open(f"/proc/{pid}/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * PAGE


class Endless:
    """Gives batches without an end, and counts them."""

    def __init__(self):
        resource.setrlimit(resource.RLIMIT_DATA, (MOST + (2 << 30),) * 2)
        import pyarrow  # noqa: F401
        import uvarrow  # noqa: F401 (before its memory is looked at)
        self.made = 0

    def batches(self):
        import pyarrow
        batch = pyarrow.record_batch({"n": pyarrow.array([7] * (1 << 17))})
        while True:
            self.made += 1
            yield batch

    async def chunks(self):
        import uvarrow
        async for chunk in uvarrow.ipc(uvarrow.stream(self.batches, window=4)):
            yield bytes(chunk)

    async def answer(self, request):
        from starlette.responses import StreamingResponse
        return StreamingResponse(self.chunks())

    async def state(self):
        return os.getpid(), self.made


class Replica(Endless):
    """Of Ray Serve"""

    async def __call__(self, request):
        return await self.answer(request)


class Actor(Endless):
    """With a server of its own"""

    async def start(self):
        import asyncio

        import uvicorn
        from starlette.applications import Starlette
        from starlette.routing import Route
        self.server = uvicorn.Server(uvicorn.Config(
            Starlette(routes=[Route("/", self.answer)]), host="127.0.0.1",
            port=PORT + 1, lifespan="off", log_level="warning"))
        self.task = asyncio.create_task(self.server.serve())
        while not self.server.started:
            await asyncio.sleep(0.01)


def watch(name, port, state):
    """Asks, reads nothing, and looks at the process that answers."""
    pid, _ = state()
    before = resident(pid)
    with socket.socket() as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 18)
        client.connect(("127.0.0.1", port))
        client.sendall(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        head = client.recv(1 << 10, socket.MSG_WAITALL)  # the batches have begun
        if b" 200 OK" not in head:
            sys.exit(f"{name}: {head}")
        begin = time.monotonic()
        while time.monotonic() - begin < SECONDS and resident(pid) < MOST:
            time.sleep(0.05)
        seconds, after = time.monotonic() - begin, resident(pid)
        made = state()[1] if after < MOST else None
    row = {"name": name, "seconds": round(seconds, 1),
           "grown_mb": (after - before) >> 20, "made": made}
    print(row, flush=True)
    return row


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--results")
    how = parser.parse_args()
    try:
        import ray
        import uvicorn  # noqa: F401
        from ray import serve
    except ImportError as error:
        outcome.skip(str(error))
    ray.init(num_cpus=4, object_store_memory=1 << 28, include_dashboard=False,
             logging_level="error", log_to_driver=False)
    actor = ray.remote(num_cpus=0)(Actor).remote()
    ray.get(actor.start.remote())
    rows = [watch("an actor with a server of its own", PORT + 1,
                  lambda: ray.get(actor.state.remote()))]
    serve.start(http_options={"host": "127.0.0.1", "port": PORT})
    handle = serve.run(serve.deployment(Replica).bind())
    rows.append(watch("a replica of Ray Serve", PORT,
                      lambda: handle.state.remote().result()))
    ray.shutdown()  # its processes end at once; Serve's would wait for the client
    outcome.keep(rows, how.results)
    sys.exit(1 if rows[0]["grown_mb"] << 20 > GROWTH else 0)


if __name__ == "__main__":
    main()
