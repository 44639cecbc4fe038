# SPDX-License-Identifier: Apache-2.0
"""The common part of the tests of the Python package: loops, gates and
sources."""
import asyncio
import gc
import os
import subprocess
import sys
import textwrap
import threading
import warnings

import pytest

import uvarrow
from databases import (database, flight_database, # fixtures of all tests
                       flightsql, link, pgbouncer, postgresql)

__all__ = ["database", "flight_database", "flightsql", "link", "pgbouncer",
           "postgresql"]
LOOPS = ("asyncio", "uvloop", "trio")


def run_on(kind, function, *args):
    """Runs a coroutine function on a new loop of one kind."""
    if kind == "asyncio":
        return asyncio.run(function(*args))
    if kind == "uvloop":
        import uvloop
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            return runner.run(function(*args))
    if kind == "gevent":
        import uvarrow.gevent
        try:
            return uvarrow.gevent.run(function(*args))
        finally:
            uvarrow.gevent.close()
    import trio
    return trio.run(function, *args)


@pytest.fixture(params=LOOPS)
def run(request):
    """run(function, *args), on each kind of loop."""
    return lambda function, *args: run_on(request.param, function, *args)


class Gate:
    """A source that blocks until the test opens it. The test can wait for its
    steps."""

    def __init__(self, batches, before=0):
        self.entered = threading.Event()
        self.opened = threading.Event()
        self.closed = threading.Event()
        self.interrupts = 0
        self._batches = batches
        self._before = before

    def __iter__(self):
        try:
            for i, batch in enumerate(self._batches):
                if i == self._before:
                    self.entered.set()
                    self.opened.wait()
                yield batch
        finally:
            self.closed.set()

    def interrupt(self):
        self.interrupts += 1
        self.opened.set()

    async def wait_entered(self):
        await in_thread(self.entered.wait)

    async def wait_closed(self):
        await in_thread(self.closed.wait)


async def in_thread(function):
    """Makes a blocking call, on whatever loop."""
    host = uvarrow._host.current()
    if isinstance(host, getattr(sys.modules.get("uvarrow.gevent"), "GeventHost", ())):
        await host.call(function)
        return
    import anyio
    await anyio.to_thread.run_sync(function)


async def read_cancelled(chunks, gate):
    """Reads all chunks of the gate's batches; each step is cancelled until the
    gate was entered, and is opened then."""
    import anyio
    got = []
    while True:
        with anyio.CancelScope() as scope:
            if not gate.opened.is_set():
                scope.cancel()
            try:
                got.append(bytes(await anext(chunks)))
            except StopAsyncIteration:
                return b"".join(got)
        if scope.cancelled_caught and gate.entered.is_set():
            gate.opened.set()
        await anyio.lowlevel.checkpoint()


@pytest.fixture
def gate():
    gates = []

    def make(batches, before=0):
        gates.append(Gate(batches, before))
        return gates[-1]

    yield make
    for one in gates:
        one.opened.set()


@pytest.fixture(autouse=True)
def nothing_is_left():
    """No test leaves a stream unclosed, or a runtime open."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", ResourceWarning)
        yield
    if uvarrow._host._hosts: # a loop may be part of a cycle
        gc.collect()
    assert not uvarrow._host._hosts


BEGIN = """
import asyncio, os, sys, threading, time
import pyarrow as pa
import uvarrow

ONE = pa.record_batch({"n": [1]})
entered, opened = threading.Event(), threading.Event()

def stuck():
    yield ONE
    entered.set()
    opened.wait()
    yield ONE
"""


def run_script(text, *arguments, seconds="0.2", before="", **options):
    """Runs a program to its exit, after the lines above; `before` stands
    before the import of uvarrow."""
    path = os.path.dirname(os.path.dirname(uvarrow.__file__))
    return subprocess.run(
        [sys.executable, "-X", "faulthandler", "-c",
         before + BEGIN + textwrap.dedent(text), *arguments],
        env={**os.environ, "PYTHONPATH": path,
             "UVARROW_EXIT_SECONDS": seconds},
        capture_output=True, text=True, check=False, **options)
