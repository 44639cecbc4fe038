# SPDX-License-Identifier: Apache-2.0
"""One runtime for each running event loop: made when it is first needed, and
closed with the loop. The loop only watches its descriptor, so that any loop of
asyncio does (uvloop), and trio. The host for gevent is in gevent.py.

A host waits in two steps: the waiter is noted in a tap (`_wait`), and is woken
when the tap has news: a future of asyncio, or an object with `wake()`.
"""
import asyncio
import atexit
import contextvars
import functools
import gc
import io
import math
import os
import sys
import time
import weakref

from . import _core, _options

# The running loop, trio's token or the hub of gevent -> its host
_hosts = weakref.WeakKeyDictionary()
_every = weakref.WeakSet() # also those without their loop
_left = False


class AsyncioHost(_core.Host):
    """The runtime of a loop of asyncio."""

    def __init__(self, loop):
        self._loop = weakref.ref(loop)
        self._set_loop(loop)
        self._tasks = set()
        fd = self.fileno()
        # A loop finishes its asynchronous generators before it is closed: this
        # one is started, waits for that, and then closes the runtime. The loop
        # alone keeps it, as an argument of the callback: it refers to the loop.
        end = _until_shutdown(weakref.ref(self), self._loop, fd)
        try:
            end.asend(None).send(None)
        except StopIteration:
            pass
        loop.add_reader(fd, self.turn, end, _Closed(self, loop))

    async def wait(self, tap):
        """Returns when `tap` has something new."""
        future = self._loop().create_future()
        tap._wait(future)
        try:
            await future
        finally:
            tap._unwait(future)

    async def wait_briefly(self, tap, seconds):
        """Returns false if `tap` had no news for so long."""
        future = self._loop().create_future()
        tap._wait(future)
        timer = self._loop().call_later(seconds, _give_up, future)
        try:
            return await future is None
        finally:
            timer.cancel()
            tap._unwait(future)

    def runs(self):
        """Whether the loop runs, on whatever thread."""
        loop = self._loop()
        return loop is not None and loop.is_running()

    async def checkpoint(self):
        """Lets the loop run once."""
        await asyncio.sleep(0)

    async def call(self, function):
        """The result of a function that may block, on another thread."""
        return await self._loop().run_in_executor(None, function)

    def scope(self):
        """A block of this task, which cancel() ends from another task."""
        return _AsyncioScope()

    def guard(self, writer):
        """Something that reads an iterable until `writer` is closed."""
        return _AsyncioGuard(self._loop(), writer)

    def spawn(self, function):
        """Runs a coroutine function beside the caller."""
        task = self._loop().create_task(function())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def send(self, sock, data):
        """Writes all bytes to a socket that does not block."""
        await self._loop().sock_sendall(sock, data)

    def starter(self):
        """A function that makes a task of a coroutine, in a copy of the context
        of now, and returns an object with cancel()."""
        return functools.partial(contextvars.copy_context().run,
                                 self._loop().create_task)


def _give_up(future):
    if not future.done():
        future.set_result(False)


class _Closed:
    """Goes with the callback, when a loop is closed, or dropped, that has not
    finished its asynchronous generators. Waiters on that loop wait for
    ever."""

    def __init__(self, host, loop):
        self._host = weakref.ref(host)
        self._loop = weakref.ref(loop)

    def __del__(self):
        host, loop = self._host(), self._loop()
        if host is not None and (loop is None or loop.is_closed()):
            if loop is not None:
                _hosts.pop(loop, None)
            host.abandon(loop is None)


class _AsyncioScope:
    """As trio.CancelScope."""

    def __enter__(self):
        self._task = asyncio.current_task()
        self._before = self._task.cancelling()
        self._cancels = self._is_over = False
        return self

    def cancel(self):
        if not self._cancels and not self._is_over:
            self._cancels = True
            self._task.cancel()

    def __exit__(self, kind, value, traceback):
        self._is_over = True
        return (self._cancels and self._task.uncancel() <= self._before
                and kind is asyncio.CancelledError)


class _AsyncioGuard:
    """Reads an iterable for a writer. If it has no reader any more, the wait
    for the iterable ends."""

    def __init__(self, loop, writer):
        self._loop = loop
        self._writer = writer
        self._task = asyncio.current_task()
        self._waits = self._cancels = False
        self._arm()

    def _arm(self):
        self._future = self._loop.create_future()
        self._future.add_done_callback(self._woken)
        self._writer._wait(self._future)

    def _woken(self, _):
        if not self._writer.is_closed():
            self._arm()
        elif self._waits:
            self._cancels = True
            self._task.cancel()

    async def next(self, iterator):
        if self._writer.is_closed():
            raise StopAsyncIteration
        self._waits = True
        try:
            return await iterator.__anext__()
        except asyncio.CancelledError:
            if not self._cancels or self._task.uncancel() > 0:
                raise
            raise StopAsyncIteration from None
        finally:
            self._waits = False

    def end(self):
        self._future.remove_done_callback(self._woken)
        self._writer._unwait(self._future)


async def _until_shutdown(host, loop, fd):
    try:
        yield
    finally:
        host, loop = host(), loop()
        if host is not None and loop is not None:
            _hosts.pop(loop, None)
            if not loop.is_closed():
                loop.remove_reader(fd)
            host.finish(False)


class TrioHost(_core.Host):
    """The runtime of a run of trio."""

    def __init__(self, token):
        import trio
        self._trio = trio
        self._token = weakref.ref(token)
        trio.lowlevel.spawn_system_task(self._watch, name="uvarrow")

    async def _watch(self):
        wait_readable = self._trio.lowlevel.wait_readable
        fd = self.fileno()
        try:
            while True:
                await wait_readable(fd)
                self.turn()
        finally: # trio cancels its system tasks after the user's
            token = self._token()
            if token is not None:
                _hosts.pop(token, None)
            self.finish(False)

    async def wait(self, tap):
        await _TrioWaiter(self._trio.lowlevel, tap).wait()

    async def wait_briefly(self, tap, seconds):
        with self._trio.move_on_after(seconds) as scope:
            await self.wait(tap)
        return not scope.cancelled_caught

    def runs(self):
        return True # it has no host before or after that

    async def call(self, function):
        return await self._trio.to_thread.run_sync(function,
                                                   abandon_on_cancel=True)

    def scope(self):
        return self._trio.CancelScope()

    def guard(self, writer):
        return Guard(self._trio.CancelScope, writer)

    async def checkpoint(self):
        await self._trio.lowlevel.checkpoint()

    def spawn(self, function):
        self._trio.lowlevel.spawn_system_task(function)

    async def send(self, sock, data):
        rest = memoryview(data).cast("B")
        while rest:
            try:
                rest = rest[sock.send(rest):]
            except BlockingIOError:
                await self._trio.lowlevel.wait_writable(sock)

    def starter(self):
        context = contextvars.copy_context()

        def start(call):
            scope = self._trio.CancelScope()
            self._trio.lowlevel.spawn_system_task(
                _in_scope, scope, call, name="uvarrow", context=context.copy())
            return scope

        return start


async def _in_scope(scope, call):
    with scope:
        await call


class _TrioWaiter:
    """A task that waits for a tap, and is woken once."""

    def __init__(self, lowlevel, tap):
        self._lowlevel = lowlevel
        self._tap = tap
        self._task = lowlevel.current_task()

    def wake(self):
        if self._task is not None:
            self._lowlevel.reschedule(self._task)
            self._task = None

    async def wait(self):
        def abort(_):
            self._task = None
            return self._lowlevel.Abort.SUCCEEDED

        self._tap._wait(self)
        try:
            await self._lowlevel.wait_task_rescheduled(abort)
        finally:
            self._tap._unwait(self)


class Guard:
    """As _AsyncioGuard, by the scopes of another loop."""

    def __init__(self, new_scope, writer):
        self._new_scope = new_scope
        self._writer = writer
        self._scope = None
        writer._wait(self)

    def wake(self):
        if not self._writer.is_closed():
            self._writer._wait(self)
        elif self._scope is not None:
            self._scope.cancel()

    async def next(self, iterator):
        if self._writer.is_closed():
            raise StopAsyncIteration
        with self._new_scope() as self._scope:
            try:
                return await iterator.__anext__()
            finally:
                self._scope = None
        raise StopAsyncIteration

    def end(self):
        self._writer._unwait(self)


def current():
    """The host of the running event loop."""
    if _left:
        raise RuntimeError("uvarrow: the interpreter is ending")
    key, kind = _running()
    host = _hosts.get(key)
    if host is None:
        _options.choose()
        host = _hosts[key] = kind(key)
        _every.add(host)
    if not host.is_here():
        raise RuntimeError("uvarrow: this event loop has run on another thread "
                           "before")
    return host


def _running():
    """The running loop, trio's token or the hub of gevent, and the kind of host for
    it."""
    loop = asyncio._get_running_loop()
    if loop is not None:
        return loop, AsyncioHost
    trio = sys.modules.get("trio")
    if trio is not None:
        try:
            return trio.lowlevel.current_trio_token(), TrioHost
        except RuntimeError:
            pass
    gevent = sys.modules.get("uvarrow.gevent")
    if gevent is not None: # each thread has a hub, which runs in any wait
        return gevent.hub(), gevent.GeventHost
    raise RuntimeError("uvarrow: there is no running event loop: call this "
                       "inside a coroutine of asyncio or trio")


# ---- the ends ---------------------------------------------------------------

EXIT_STUCK = _core.EXIT_STUCK
EXIT_SECONDS = 5.0
_LOOP_SECONDS = 1.0


def _all():
    """The hosts of all threads, which may add some meanwhile."""
    while True:
        try:
            return list(_every)
        except RuntimeError:
            pass


def _leave(last):
    """Closes open streams, and waits for threads that are inside Python: at
    most EXIT_SECONDS, or the seconds in UVARROW_EXIT_SECONDS. CPython aborts a
    process in which such a thread goes on while the interpreter ends, so
    after that limit `last` leaves it, when the other exit handlers have
    run."""
    global _left
    _left = True
    begin = time.monotonic()
    try:
        is_free = _wait_out(_exit_seconds())
    except KeyboardInterrupt: # it waits no longer
        is_free = _core.wait_out(0)
    if is_free:
        return
    last.is_stuck = True
    _core.leave(max(_exit_seconds(), _LOOP_SECONDS) * 1000)
    try:
        print("uvarrow: a source did not return within "
              f"{time.monotonic() - begin:.1f} s; leaving with status "
              f"{EXIT_STUCK}", file=sys.stderr)
    except (OSError, ValueError, AttributeError):
        pass # it is closed


def _exit_seconds():
    try:
        seconds = float(os.environ.get("UVARROW_EXIT_SECONDS", EXIT_SECONDS))
    except ValueError:
        return EXIT_SECONDS
    return seconds if 0 <= seconds < math.inf else EXIT_SECONDS # not nan


def _wait_out(seconds):
    """Closes all runtimes, and waits. A loop that runs, on another thread,
    closes its own; if it does not soon, it never turns."""
    hosts = _all()
    for host in hosts:
        host.finish(not host.runs())
    soon = min(seconds, _LOOP_SECONDS)
    if _core.wait_out(soon * 1000):
        return True
    for host in hosts:
        host.finish(True)
    return _core.wait_out((seconds - soon) * 1000)


class _Last:
    """An argument of the exit handler, which goes when all handlers have run,
    also handlers registered before this one: the last moment in which no
    thread is ended by CPython."""

    is_stuck = False

    def __del__(self):
        if not self.is_stuck:
            return
        try:
            _flush_files()
        finally:
            os._exit(EXIT_STUCK)


def _flush_files():
    """Writes the buffers of open files of Python, as the end of the
    interpreter would. If a write blocks, _core.leave() ends the process."""
    for file in gc.get_objects():
        if issubclass(type(file), io.IOBase):
            try:
                file.flush()
            except Exception: # it is closed, or cannot be written
                pass


atexit.register(_leave, _Last())


def _forget():
    """A forked child lacks the loops and the threads of its parent."""
    _parents.extend(_all())
    _hosts.clear()
    _every.clear()


_parents = []  # never freed: they refer to objects of the parent
os.register_at_fork(after_in_child=_forget)
