# SPDX-License-Identifier: Apache-2.0
"""Streams and databases in greenlets of gevent: the coroutines of this package run to
their end in the greenlet that calls `run()`, and `each()` iterates where an `async
for` cannot stand. While one waits, the hub runs other greenlets.

    import uvarrow.gevent

    async def count(sql):
        async with pool.query(sql) as rows:
            return sum([len(batch) async for batch in rows])

    jobs = [gevent.spawn(uvarrow.gevent.run, count(sql)) for sql in queries]

    def application(environ, start_response):  # of WSGI
        start_response("200 OK", [("content-type", "text/csv")])
        return uvarrow.gevent.each(uvarrow.csv(pool.query(sql), as_bytes=True))
"""
import contextvars
import os
import weakref
from collections.abc import AsyncIterable

import gevent
import gevent.event
import gevent.socket
from gevent import get_hub as hub

from . import _check, _core, _host

__all__ = ["close", "each", "run"]


def run(awaitable):
    """Returns the result of a coroutine, or of another awaitable, of this package or
    made of its coroutines. This greenlet waits meanwhile, and may be killed, or be
    ended by a Timeout, as in any wait of gevent. What belongs to another event loop,
    such as a future of asyncio, is a RuntimeError there."""
    if not hasattr(type(awaitable), "__await__"):
        raise _check.refuse(awaitable, "awaitable", "an awaitable")
    steps = awaitable.__await__()
    try:
        next(steps)
    except StopIteration as stop:
        return stop.value
    try:
        steps.throw(RuntimeError("uvarrow: gevent cannot wait for an object of "
                                 "another event loop"))
    except StopIteration as stop:
        return stop.value
    steps.close() # it yields on
    raise RuntimeError("uvarrow: gevent cannot wait for an object of another event "
                       "loop")


def each(iterable):
    """Yields the items of an asynchronous iterable, such as a Stream, or chunks of
    `uvarrow.csv()`; it is closed at the end, however that comes about."""
    if not _check.is_a(iterable, AsyncIterable):
        raise _check.refuse(iterable, "iterable", "an asynchronous iterable")
    return _each(aiter(iterable))


def _each(iterator):
    try:
        while True:
            try:
                item = run(anext(iterator))
            except StopAsyncIteration:
                return
            yield item
    finally:
        end = getattr(iterator, "aclose", None)
        if end is not None:
            run(end())


def close():
    """Ends the streams of this thread's hub, as the end of an event loop does.
    Needed only before the `destroy()` of a hub; the exit of the process does that."""
    host = _host._hosts.get(hub())
    if host is not None:
        host.finish(False)


class GeventHost(_core.Host):
    """The runtime of a hub."""

    def __init__(self, hub):
        self._hub = weakref.ref(hub)
        self._pid = os.getpid()
        self._waits = 0
        # Only a wait counts as something that the hub is waiting for.
        self._watcher = hub.loop.io(self.fileno(), 1, ref=False)
        self._watcher.start(self._turn)

    def _turn(self):
        if os.getpid() == self._pid:
            self.turn()
        else: # a forked child has streams of its own
            self._watcher.stop()

    def finish(self, is_gone):
        hub = self._hub()
        if hub is not None and self.is_here():
            self._watcher.stop() # before its descriptor is closed
            _host._hosts.pop(hub, None)
        super().finish(is_gone)

    async def wait(self, tap):
        self._wait_in(tap, None)

    async def wait_briefly(self, tap, seconds):
        return self._wait_in(tap, seconds)

    def _wait_in(self, tap, seconds):
        waiter = _Waiter()
        tap._wait(waiter)
        self._waits += 1
        self._watcher.ref = True
        try:
            return waiter.wait(seconds)
        finally:
            self._waits -= 1
            self._watcher.ref = self._waits > 0
            tap._unwait(waiter)

    def runs(self):
        return not self.is_here() # this thread's hub does not, at the exit

    async def checkpoint(self):
        gevent.sleep(0)

    async def call(self, function):
        return self._hub().threadpool.apply(function)

    def scope(self):
        return _Scope(self._hub())

    def guard(self, writer):
        return _host.Guard(self.scope, writer)

    def spawn(self, function):
        self.starter()(function())

    async def send(self, sock, data):
        rest = memoryview(data).cast("B")
        while rest:
            try:
                rest = rest[sock.send(rest):]
            except BlockingIOError:
                gevent.socket.wait_write(sock.fileno())

    def starter(self):
        context = contextvars.copy_context()

        def start(call):
            task = _Task(run, call)
            task.gr_context = context.copy()
            task.rawlink(lambda _: call.close()) # it may not have begun
            task.start()
            return task

        return start


class _Waiter(gevent.event.Event):
    """A greenlet that waits for a tap."""

    def wake(self):
        self.set()


class _Task(gevent.Greenlet):
    def cancel(self):
        self.kill(block=False)


class _Cancelled(BaseException):
    """Ends the block of a scope."""


class _Scope:
    """As trio.CancelScope."""

    def __init__(self, hub):
        self._hub = hub

    def __enter__(self):
        self._greenlet = gevent.getcurrent()
        self._reason = None
        self._is_over = False
        return self

    def cancel(self):
        if self._reason is None and not self._is_over:
            self._reason = _Cancelled()
            self._hub.loop.run_callback(self._throw)

    def _throw(self):
        if not self._is_over:
            self._greenlet.throw(self._reason)

    def __exit__(self, kind, value, traceback):
        self._is_over = True
        return value is not None and value is self._reason
