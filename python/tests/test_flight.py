# SPDX-License-Identifier: Apache-2.0
"""Several machines: servers in processes of their own, and the example that
reads them. A server is never far ahead of its client."""
import importlib.util
import os
import subprocess
import sys
import threading
import weakref

import pytest

import uvarrow
from conftest import in_thread, run_script

flight = pytest.importorskip("pyarrow.flight")
HERE = os.path.dirname(os.path.abspath(__file__))


def load(name):
    path = os.path.join(os.path.dirname(HERE), "examples", name + ".py")
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


example = load("flight")


def served(*arguments):
    """A process of a server, and its location."""
    process = subprocess.Popen(
        [sys.executable, os.path.join(HERE, "flight_server.py"), *arguments],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    return process, f"grpc://127.0.0.1:{int(process.stdout.readline())}"


@pytest.fixture(scope="module")
def servers():
    processes, locations = zip(*(served() for _ in range(2)))
    yield locations
    for one in processes:
        one.communicate()
        assert one.returncode == 0


async def made(location):
    counts = []

    def ask():
        with flight.connect(location) as client:
            for result in client.do_action("made"):
                counts.append(int(result.body.to_pybytes()))

    await in_thread(ask)
    return counts[0]


def test_two_servers_are_merged(run, servers):
    async def main():
        async with example.merged([[one] for one in servers], b"20") as rows:
            batches = [batch async for batch in rows]
        assert len(batches) == 40
        assert all(batch.nbytes == 1 << 20 for batch in batches)

    run(main)


def test_a_server_is_not_far_ahead_of_its_client(run, servers):
    async def main():
        before = await made(servers[0])
        async with example.stream(servers[:1], b"400", window=4,
                                  max_bytes=4 << 20) as rows:
            for taken in range(1, 61):
                await anext(rows)
                if taken % 10 == 0:
                    assert await made(servers[0]) - before - taken < 64
        assert await made(servers[0]) - before < 60 + 64

    run(main)


def test_dropping_a_stream_lets_go_of_its_server(run, servers):
    released = threading.Event()

    def make():
        part = example.Part(servers[:1], b"400")
        weakref.finalize(part, released.set)
        return uvarrow.stream(part.batches, interrupt=part.interrupt, window=1)

    async def main():
        released.clear()
        rows = make()
        await anext(rows)
        with pytest.warns(ResourceWarning):
            del rows
        await in_thread(released.wait)

    run(main)


def test_an_error_of_a_server_arrives(run, servers):
    async def main():
        with pytest.raises(Exception, match="no such rows"):
            await example.merged([[one] for one in servers], b"fail").read_all()

    run(main)


def test_a_part_goes_on_from_its_replica(run, servers):
    async def main():
        process, location = served()
        try:
            rows = example.stream([location, servers[0]], b"60", window=1)
            async with rows:
                count = len(await anext(rows))
                process.kill()
                async for batch in rows:
                    count += len(batch)
        finally:
            process.kill()
            process.communicate()
        assert count == 60 * (1 << 17)

    run(main)


def test_a_part_comes_back_to_a_replica(run):
    async def main():
        processes, locations = zip(served("odd"), served("even"))
        try:
            rows = example.stream(locations, b"30 breaks 4", window=1)
            count = sum(map(len, await rows.read_all()))
        finally:
            for one in processes:
                one.communicate()
        assert count == 30 * (1 << 17)

    run(main)


def test_leaving_a_host_that_does_not_answer():
    """Its queue of connections is full, so that it drops what asks for another: the
    end of the process waits for the attempt to connect, which has a limit."""
    done = run_script("""
        import importlib.util, socket
        spec = importlib.util.spec_from_file_location("flight", sys.argv[1])
        example = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(example)

        full = socket.create_server(("127.0.0.1", 0), backlog=0)
        address = full.getsockname()
        others = [socket.socket() for _ in range(4)]
        for one in others:
            one.setblocking(False)
            one.connect_ex(address)

        async def main():
            async with example.stream([f"grpc://127.0.0.1:{address[1]}"],
                                      b"1") as rows:
                try:
                    async with asyncio.timeout(0.5):
                        await anext(rows)
                except TimeoutError:
                    print("left")

        asyncio.run(main())
        """, example.__file__, seconds="12")
    assert (done.returncode, done.stdout) == (0, "left\n"), done.stderr


def test_an_error_names_the_server_and_the_rows(run, servers):
    async def main():
        with pytest.raises(flight.FlightUnavailableError) as caught:
            await example.merged([servers[:1], ["grpc://127.0.0.1:1"]],
                                 b"1").read_all()
        assert caught.value.__notes__ == [
            "grpc://127.0.0.1:1, behind 0 rows",
            "uvarrow: in the stream 'grpc://127.0.0.1:1'"]

    run(main)


def test_a_server_that_is_not_there(run):
    async def main():
        with pytest.raises((uvarrow.Error, OSError, flight.FlightError)):
            await example.stream(["grpc://127.0.0.1:1"], b"1").read_all()

    run(main)
