# SPDX-License-Identifier: Apache-2.0
"""One runtime for each running event loop: made when it is first needed, and
closed with the loop. The loop watches its descriptor; nothing else of the loop
is touched, so that any loop of asyncio does (uvloop), and trio.

A host waits in two steps: what waits is noted in a tap (`_wait`), and is woken
when the tap has something new: a future of asyncio, or an object with `wake()`.
"""
import asyncio
import atexit
import os
import sys
import time
import weakref

from . import _core

# The running loop or trio's token -> its host
_hosts = weakref.WeakKeyDictionary()
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
        """Returns false if `tap` had nothing new for so long."""
        future = self._loop().create_future()
        tap._wait(future)
        timer = self._loop().call_later(seconds, _give_up, future)
        try:
            return await future is None
        finally:
            timer.cancel()
            tap._unwait(future)

    async def checkpoint(self):
        """Lets the loop run once."""
        await asyncio.sleep(0)

    def guard(self, writer):
        """Something that reads an iterable until `writer` is closed."""
        return _AsyncioGuard(self._loop(), writer)

    def spawn(self, function):
        """Runs a coroutine function beside the caller."""
        task = self._loop().create_task(function())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def _give_up(future):
    if not future.done():
        future.set_result(False)


class _Closed:
    """Goes with the callback, when a loop is closed that has not finished its
    asynchronous generators. What waits on that loop waits for ever."""

    def __init__(self, host, loop):
        self._host = weakref.ref(host)
        self._loop = weakref.ref(loop)

    def __del__(self):
        host, loop = self._host(), self._loop()
        if host is not None and loop is not None and loop.is_closed():
            _hosts.pop(loop, None)
            host.abandon()


class _AsyncioGuard:
    """Reads an iterable for a writer. If nothing reads that any more, the wait
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
            host.finish()


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
        finally: # trio cancels its system tasks behind all of the user's
            token = self._token()
            if token is not None:
                _hosts.pop(token, None)
            self.finish()

    async def wait(self, tap):
        await _TrioWaiter(self._trio.lowlevel, tap).wait()

    async def wait_briefly(self, tap, seconds):
        with self._trio.move_on_after(seconds) as scope:
            await self.wait(tap)
        return not scope.cancelled_caught

    def guard(self, writer):
        return _TrioGuard(self._trio, writer)

    async def checkpoint(self):
        await self._trio.lowlevel.checkpoint()

    def spawn(self, function):
        self._trio.lowlevel.spawn_system_task(function)


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


class _TrioGuard:
    """As _AsyncioGuard."""

    def __init__(self, trio, writer):
        self._trio = trio
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
        with self._trio.CancelScope() as self._scope:
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
        host = _hosts[key] = kind(key)
    if not host.is_here():
        raise RuntimeError("uvarrow: this event loop has run on another thread "
                           "before")
    return host


def _running():
    """The running loop or trio's token, and the kind of host for it."""
    loop = asyncio._get_running_loop()
    if loop is not None:
        return loop, AsyncioHost
    trio = sys.modules.get("trio")
    if trio is not None:
        try:
            return trio.lowlevel.current_trio_token(), TrioHost
        except RuntimeError:
            pass
    raise RuntimeError("uvarrow: there is no running event loop: call this "
                       "inside a coroutine of asyncio or trio")


# ---- the ends ---------------------------------------------------------------

EXIT_STUCK = 70
EXIT_SECONDS = 5.0


def _all():
    """The hosts of all threads, which may add some meanwhile."""
    while True:
        try:
            return list(_hosts.values())
        except RuntimeError:
            pass


@atexit.register
def _leave():
    """Closes what is open, and waits for threads that are inside Python: at
    most EXIT_SECONDS, or as many as UVARROW_EXIT_SECONDS has. CPython aborts a
    process in which such a thread goes on while the interpreter ends, so behind
    that limit the process is left by os._exit(EXIT_STUCK)."""
    global _left
    _left = True
    for host in _all():
        host.finish()
    try:
        seconds = float(os.environ.get("UVARROW_EXIT_SECONDS", EXIT_SECONDS))
    except ValueError:
        seconds = EXIT_SECONDS
    begin = time.monotonic()
    try:
        is_free = _core.leave(seconds * 1000)
    except KeyboardInterrupt: # it waits no longer
        is_free = _core.leave(0)
    if is_free:
        return
    try:
        print("uvarrow: a source did not return within "
              f"{time.monotonic() - begin:.1f} s; leaving with status "
              f"{EXIT_STUCK}", file=sys.stderr)
        sys.stdout.flush()
        sys.stderr.flush()
    finally: # also if both are closed
        os._exit(EXIT_STUCK)


def _forget():
    """A forked child has neither the loops nor the threads of its parent."""
    _parents.extend(_all())
    _hosts.clear()


_parents = []  # never freed: what they refer to is the parent's
os.register_at_fork(after_in_child=_forget)
