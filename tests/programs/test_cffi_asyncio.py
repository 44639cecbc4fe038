#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Python through CFFI: `async for batch in stream` on asyncio, one add_reader,
no thread of Python's.

The declarations come from the headers themselves (see cdef_of). CFFI releases
the GIL around every call and takes it again in callbacks. That makes two
cases work: a callback on the loop thread, which is Python's own, that says that a
batch can be taken, and a map that runs on a worker.

Environment variables: UVA_TEST_SOURCE: the repository, UVA_TEST_BUILD: a folder
for the extension, UVA_TEST_LIBRARY: the shared library, UVA_TEST_SANITIZE: the
sanitizers in it (then no test can run here).
"""
import asyncio
import errno
import gc
import os
import re
import subprocess
import sys
import tempfile
import unittest

try:
    import cffi
except ImportError:
    cffi = None

HEADERS = "arrow_abi base arrow trace runtime stream sources stages".split()
BATCHES, ROWS = 20, 1000  # as support/world.h has them
PATIENCE = 600  # time limit of a test, in seconds
ffi = lib = None
kept = {}  # functions that the library holds a handle of


def cdef_of(include):
    """Converts the headers for CFFI: preprocessed, without system headers,
    function bodies or attributes."""
    text = ""
    for name in HEADERS:
        with open(f"{include}/uvarrow/{name}.h", encoding="utf-8") as header:
            text += header.read()
    text = re.sub(r"^#\s*include.*$", "", text, flags=re.M)
    text = subprocess.run(
        ["gcc", "-E", "-P", "-U__GNUC__", "-DUVA_STATIC", "-"], input=text,
        capture_output=True, text=True, check=True).stdout
    return re.sub(r"static inline ([^{;]*?)\{(?:[^{}]|\{[^{}]*\})*\}", r"\1;",
                  text)


def build(source, library, folder):
    """Builds the extension and loads it."""
    builder = cffi.FFI()
    builder.cdef(cdef_of(f"{source}/include") + """
        int db_scan(const char *, struct ArrowArrayStream *);
        extern "Python" {
            void py_ready(void *);
            int py_map(void *, struct uva_batch *, struct ArrowDeviceArray *,
                       struct uva_error *);
            void py_free(void *);
        }
    """)
    tests = f"{source}/tests"
    where = os.path.dirname(library)
    builder.set_source(
        "_uva", '#include "uvarrow/uvarrow.h"\n#include "support/world.h"\n',
        include_dirs=[f"{source}/include", tests], library_dirs=[where],
        libraries=["uvarrow"], runtime_library_dirs=[where],
        sources=[f"{tests}/support/world.c"])
    builder.compile(tmpdir=folder)
    sys.path.insert(0, folder)
    import _uva
    return _uva.ffi, _uva.lib


# ---- the binding ------------------------------------------------------------

class UvaError(Exception):
    def __init__(self, code, error):
        super().__init__(ffi.string(error.message).decode())
        self.code = code


class Runtime:
    """A runtime on asyncio's loop, by one descriptor."""

    def __init__(self):
        out = ffi.new("struct uva_runtime **")
        error = ffi.new("struct uva_error *")
        code = lib.uva_runtime_open_turned(ffi.NULL, ffi.NULL, ffi.NULL, out,
                                           error)
        if code:
            raise UvaError(code, error)
        self.rt, self.loop = out[0], asyncio.get_running_loop()
        self.gone = self.loop.create_future()
        self.fd = lib.uva_runtime_fd(self.rt)
        self.loop.add_reader(self.fd, self.turn)

    def turn(self):
        if not lib.uva_runtime_turn(self.rt):
            self.loop.remove_reader(self.fd)
            self.gone.set_result(None)

    async def aclose(self):
        lib.uva_runtime_close(self.rt, 0, ffi.NULL, ffi.NULL)
        await self.gone


class Waiter:
    """State of the callback, separate from Stream, so that no cycle keeps a
    stream alive."""
    future = None


class Stream:
    """Holds one reference; dropping it in __del__ is safe because asyncio's
    thread is the loop thread."""

    def __init__(self, runtime, stream):
        self.runtime, self.s, self.waiter = runtime, stream, Waiter()
        self.ctx = ffi.new_handle(self.waiter)  # no callback after __del__
        self.started = False

    def map(self, function):
        handle = ffi.new_handle(function)
        kept[handle] = function  # until py_free
        lib.uva_stream_map(self.s, ffi.new("struct uva_map *", {
            "batch": lib.py_map, "free_ctx": lib.py_free, "ctx": handle}))
        return self

    def __aiter__(self):
        return self

    async def __anext__(self):
        if not self.started:
            self.start()
        batch = ffi.new("struct uva_batch *")
        outcome = ffi.new("struct uva_outcome *")
        while True:
            code = lib.uva_stream_take(self.s, batch, outcome)
            if code == 0:
                owned = ffi.gc(ffi.new("struct ArrowDeviceArray *"),
                               lib.uva_array_release)
                lib.uva_array_move(ffi.addressof(batch, "data"), owned)
                return owned
            if code == errno.ENOENT:
                break
            assert code == errno.EAGAIN
            await self.wait()
        if outcome.error.code:
            raise UvaError(outcome.error.code, outcome.error)
        raise StopAsyncIteration

    def start(self):
        error = ffi.new("struct uva_error *")
        code = lib.uva_stream_start_take(self.s, ffi.NULL, lib.py_ready,
                                         self.ctx, error)
        if code:
            raise UvaError(code, error)
        self.started = True

    async def wait(self):
        self.waiter.future = self.runtime.loop.create_future()
        try:
            await self.waiter.future
        except asyncio.CancelledError:
            lib.uva_stream_cancel(self.s, 0, b"the task was cancelled")
            raise
        finally:
            self.waiter.future = None

    def __del__(self):
        lib.uva_stream_drop(self.s)


def callbacks():
    """Gives the extension the functions it declared."""
    @ffi.def_extern()
    def py_ready(ctx):
        future = ffi.from_handle(ctx).future
        if future is not None and not future.done():  # or it was cancelled
            future.set_result(None)

    @ffi.def_extern(error=5)  # EIO, if it raises an exception
    def py_map(ctx, batch, out, error):
        ffi.from_handle(ctx)(batch)
        lib.uva_array_move(ffi.addressof(batch, "data"), out)
        return 0

    @ffi.def_extern()
    def py_free(ctx):
        kept.pop(ctx)


# ---- the tests --------------------------------------------------------------

def query(runtime):
    rows = ffi.new("struct ArrowArrayStream *")
    assert lib.db_scan(b"flights.db", rows) == 0
    return Stream(runtime, lib.uva_stream_from_arrow_stream(runtime.rt, rows,
                                                            ffi.NULL))


def numbers(batch):
    column = batch.array.children[0]
    return list(ffi.cast("int64_t *", column.buffers[1])[0:column.length])


class Asyncio(unittest.IsolatedAsyncioTestCase):
    async def asyncSetUp(self):
        self.runtime = Runtime()

    async def asyncTearDown(self):
        gc.collect()
        await asyncio.wait_for(self.runtime.aclose(), PATIENCE)
        self.assertEqual(kept, {})

    async def test_all_batches_come_in_order(self):
        seen = []
        async for batch in query(self.runtime):
            seen += numbers(batch)
        self.assertEqual(seen, list(range(BATCHES * ROWS)))

    async def test_a_function_of_python_runs_on_a_worker(self):
        mapped = []
        seen = 0
        async for batch in query(self.runtime).map(
                lambda batch: mapped.append(batch.data.array.length)):
            seen += batch.array.length
        self.assertEqual(mapped, [ROWS] * BATCHES)
        self.assertEqual(seen, ROWS * BATCHES)

    async def test_a_function_that_raises_ends_the_stream(self):
        stderr, sys.stderr = sys.stderr, open(os.devnull, "w", encoding="utf-8")
        try:
            with self.assertRaises(UvaError) as raised:
                async for _ in query(self.runtime).map(lambda batch: 1 / 0):
                    self.fail("a batch came")
        finally:
            sys.stderr.close()
            sys.stderr = stderr
        self.assertEqual(raised.exception.code, 5)

    async def test_other_tasks_run_meanwhile(self):
        beats = 0

        async def heartbeat():
            nonlocal beats
            while True:
                await asyncio.sleep(0)
                beats += 1

        task = asyncio.ensure_future(heartbeat())
        async for batch in query(self.runtime):
            while beats < 5:  # the loop is free between two batches
                await asyncio.sleep(0)
            beats = 0
        task.cancel()

    async def test_a_stream_that_is_left_early_goes(self):
        async for _ in query(self.runtime):
            break

    async def test_a_task_that_is_cancelled_cancels_its_stream(self):
        first, stream = asyncio.Event(), query(self.runtime)

        async def read():
            async for _ in stream:
                first.set()
                await asyncio.get_running_loop().create_future()

        task = asyncio.ensure_future(read())
        await asyncio.wait_for(first.wait(), PATIENCE)
        task.cancel()
        with self.assertRaises(asyncio.CancelledError):
            await task

    async def test_a_waiting_next_that_is_cancelled_cancels_its_stream(self):
        stream = query(self.runtime)
        task = asyncio.ensure_future(stream.__anext__())
        await asyncio.sleep(0)  # it waits, and cannot have a batch so early
        task.cancel()
        with self.assertRaises(asyncio.CancelledError):
            await task
        with self.assertRaises(UvaError) as raised:
            while True:
                await stream.__anext__()
        self.assertEqual(str(raised.exception), "the task was cancelled")


def main():
    global ffi, lib
    names = ("SOURCE", "BUILD", "LIBRARY")
    paths = [os.environ.get("UVA_TEST_" + name, "") for name in names]
    if (cffi is None or os.environ.get("UVA_TEST_SANITIZE")
            or not all(map(os.path.exists, paths))):
        print("skipped: no cffi, or a sanitizer's build, or one of",
              ", ".join("UVA_TEST_" + name for name in names), "is not there")
        sys.exit(77)
    source, build_folder, library = paths
    with tempfile.TemporaryDirectory(dir=build_folder) as folder:
        ffi, lib = build(source, library, folder)
        callbacks()
        unittest.main()


if __name__ == "__main__":
    main()
