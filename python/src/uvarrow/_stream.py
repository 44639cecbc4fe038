# SPDX-License-Identifier: Apache-2.0
"""Streams: asynchronous iterators over batches, and what is made of them."""
import errno
import os
import warnings
from collections import deque
from collections.abc import AsyncGenerator
from typing import NamedTuple

from . import _core, _host
from ._error import metadata_dict

_WINDOW = 64
_BYTES = 32 << 20
_CLOSE_SECONDS = 0.002


class StageStats(NamedTuple):
    """What one stage of a stream has done so far."""

    name: str
    waiting: str
    batches: int
    rows: int
    queued: int
    dropped: int
    next: int


class Stream(_core.Stream):
    """An asynchronous iterator over the batches of a source, made by
    `uvarrow.stream()`.

    `async with` ends it in any case; so do its end, an error, `aclose()`, and
    dropping it. It belongs to the event loop in which it was made. Stages are
    added before it is read, and change it in place.
    """

    __slots__ = ("__weakref__",)

    # ---- reading ------------------------------------------------------------

    async def _next(self):
        # the part of `__anext__` that waits, but on asyncio
        host = self._host
        if self._due():
            await self._rest(host.checkpoint())
        batch = self._take()
        while batch is None:
            await self._rest(host.wait(self))
            batch = self._take()
        return batch

    async def _rest(self, pause):
        try:
            await pause
        finally: # the loop has run, also if this step was cancelled
            self._fresh()

    async def schema(self):
        """Returns the schema, once the source is open. Raises what iteration
        would raise if the source cannot be opened."""
        schema = self._peek()
        while schema is None:
            await self._host.wait(self)
            schema = self._peek()
        return schema

    @property
    def metadata(self):
        """What the source has sent with its schema, as a dict of strings, such
        as the key `adbc.rows_affected` of a database; empty before."""
        return metadata_dict(self._metadata())

    async def read_all(self):
        """Returns all batches as a list. A cancel closes the stream."""
        async with self:
            return [batch async for batch in self]

    # ---- the end ------------------------------------------------------------

    def cancel(self, reason=None):
        """Ends the stream: iteration raises Error with ECANCELED. Returns at
        once; a source that blocks is interrupted if it can be."""
        self._cancel(0, reason)

    async def aclose(self, *, seconds=_CLOSE_SECONDS):
        """Ends the stream, and waits until its source is released: at most for
        `seconds`, None: without a limit. A source that blocks for longer stays
        on its thread, and is released when it returns."""
        host = self._host
        while not self._close():
            if seconds is None:
                await host.wait(self)
            elif not await host.wait_briefly(self, seconds):
                break

    async def __aenter__(self):
        return self

    async def __aexit__(self, *exc_info):
        await self.aclose()

    def __del__(self):
        if self._drop():
            warnings.warn(f"unclosed {self!r}: use `async with`",
                          ResourceWarning, stacklevel=2, source=self)

    def __repr__(self):
        return f"<uvarrow.Stream at {id(self):#x}>"

    # ---- stages -------------------------------------------------------------

    def map(self, function, schema=None):
        """Calls `function` with each Batch, on a worker thread with the GIL;
        it returns a Batch, or any object with `__arrow_c_array__`. `schema` is
        that of the results, if it changes: any object with
        `__arrow_c_schema__`. Returns the stream."""
        self._map(_callable(function), schema)
        return self

    def filter(self, function):
        """Keeps the batches for which `function` returns true; it is called in
        order, on a worker thread. Returns the stream."""
        self._filter(_callable(function))
        return self

    def limit(self, rows=None, *, batches=None):
        """Ends the stream behind so many rows, or batches. Returns the
        stream."""
        if rows is None and batches is None:
            raise TypeError("limit() needs rows or batches")
        self._limit(_count(rows, "rows"), _count(batches, "batches"))
        return self

    def rebatch(self, *, rows=0, bytes=0, wait=0.0):
        """Joins small batches and splits large ones: batches of `rows` rows, of
        at most `bytes` bytes. A row that has waited for `wait` seconds is
        passed on. Returns the stream."""
        self._rebatch(rows, bytes, _ms(wait))
        return self

    def timeout(self, *, open=0.0, first=0.0, between=0.0, total=0.0):
        """Fails with TimeoutError if opening takes longer than `open` seconds,
        opening and the first batch longer than `first` (with `open`, the batch
        alone), another batch than `between`, or all than `total`. Time of the
        consumer counts for `total` alone. Returns the stream."""
        self._timeout(_ms(open), _ms(first), _ms(between), _ms(total))
        return self

    def parallel(self, workers=0, *, unordered=False):
        """Decodes, and runs the functions added so far, on up to `workers`
        threads (0: one for each core). Python functions take the GIL one after
        the other, unless they give it away, as those of Arrow do. Returns the
        stream."""
        self._parallel(workers, unordered)
        return self

    def trace(self, function):
        """Calls `function(kind, count, code, seconds)` for what passes this
        place of the stream: "schema", "request", "batch", "cancel", "end". It
        runs on the event loop. Returns the stream."""
        self._trace(_callable(function))
        return self

    def name(self, text):
        """Sets the name of the stream in error texts and traces. Returns the
        stream."""
        self._set_name(text)
        return self

    def stats(self):
        """Returns a list of StageStats, from the source to the consumer."""
        return [StageStats(*row) for row in self._stats()]

    # ---- the other way ------------------------------------------------------

    def to_reader(self, *, window=_WINDOW, max_bytes=_BYTES):
        """Starts the stream for a thread that reads it: returns an object with
        `__arrow_c_stream__`, for one reader, which must not run on the event
        loop's thread."""
        return Reader(self._reader(_window(window), max_bytes))

    def to_device_reader(self, *, window=_WINDOW, max_bytes=_BYTES):
        """As to_reader(), for data on a device: returns an object with
        `__arrow_c_device_stream__`."""
        return DeviceReader(self._device_reader(_window(window), max_bytes))


def _callable(function):
    if not callable(function):
        raise TypeError(f"{function!r} cannot be called")
    return function


def _count(value, name):
    if value is None:
        return -1
    if value < 0:
        raise ValueError(f"{name} is negative")
    return value


def _ms(seconds):
    """Milliseconds, rounded up, so that a short time is not none."""
    return -int(-seconds * 1000 // 1)


# ---- sources ----------------------------------------------------------------

def stream(source, *, window=_WINDOW, max_bytes=_BYTES, interrupt=None,
           device_type=None):
    """Makes a stream of Arrow data.

    `source` is an object with `__arrow_c_stream__` or
    `__arrow_c_device_stream__`, a capsule of such a stream, a function that
    returns one of these, or an object with `__arrow_c_array__`, or an iterable
    of such; with `device_type`, with `__arrow_c_device_array__`. All of it is opened and read by a worker thread, and may block.

    Up to `window` batches are read ahead by the worker, and as many wait for
    the loop; all of these have at most `max_bytes` bytes, or one batch more.
    `interrupt` is a function that makes a blocked call of the source return
    soon, such as `connection.interrupt` of DuckDB; a worker thread calls it,
    until that call has returned. `device_type` is Arrow's number for the device
    of the data, if that is not the CPU's: 2 for CUDA. A batch comes when its
    event is complete.

    Returns a Stream. It is opened when it is first read.
    """
    if interrupt is not None:
        _callable(interrupt)
    device = -1 if device_type is None else device_type
    if (device < 0 and hasattr(source, "__arrow_c_device_stream__")
            and not hasattr(source, "__arrow_c_stream__")):
        device = 1
    if not _can_open(source):
        raise TypeError(f"uvarrow.stream() cannot read {type(source)!r}: it "
                        "has no __arrow_c_stream__, and cannot be called or "
                        "iterated")
    result = Stream()
    result._open(_host.current(), (source, _open, interrupt, _window(window),
                                   _half(max_bytes), device),
                 window, _half(max_bytes))
    return result


def _window(batches):
    if batches < 0:
        raise ValueError("window is negative")
    return batches


def _half(max_bytes):
    """For each of two windows: what is read ahead, and what was delivered."""
    if max_bytes < 0:
        raise ValueError("max_bytes is negative")
    return (max_bytes + 1) // 2


def _is_capsule(source):
    return type(source).__name__ == "PyCapsule"


def _can_open(source):
    return (hasattr(source, "__arrow_c_stream__")
            or hasattr(source, "__arrow_c_device_stream__")
            or _is_capsule(source) or callable(source)
            or _has_array(source) or hasattr(source, "__iter__"))


def _has_array(source):
    return (hasattr(source, "__arrow_c_array__")
            or hasattr(source, "__arrow_c_device_array__"))


def _open(source, device):
    """On a worker: gives a capsule, or an iterator over batches."""
    if (callable(source) and not hasattr(source, "__arrow_c_stream__")
            and not hasattr(source, "__arrow_c_device_stream__")):
        source = source()
    if _is_capsule(source):
        return source
    if device and hasattr(source, "__arrow_c_device_stream__"):
        return source.__arrow_c_device_stream__()
    if not device and hasattr(source, "__arrow_c_stream__"):
        return source.__arrow_c_stream__()
    if _has_array(source):
        return iter((source,))
    if hasattr(source, "__iter__"):
        return iter(source)
    raise TypeError(f"uvarrow.stream() cannot read {type(source)!r}")


def merge(first, *others):
    """Merges streams of one schema: their batches come as they are ready.
    Returns `first`, of which the other streams are a part from then on."""
    for other in others:
        first._merge(other)
    return first


# ---- out --------------------------------------------------------------------

class _Once:
    """A capsule with a stream of ours, for one reader."""

    def __init__(self, capsule):
        self._capsule = capsule
        self._schema = None

    def _take(self):
        capsule, self._capsule = self._capsule, None
        if capsule is None:
            raise ValueError("uvarrow: this reader has been used")
        return capsule

    def __arrow_c_schema__(self):
        """The schema as a capsule, which leaves the stream to be read. Waits for
        it, as the stream does."""
        if self._schema is None:
            capsule = self._take() # nothing else reads meanwhile
            try:
                self._schema = _core.stream_schema(capsule)
            finally:
                self._capsule = capsule
        return self._schema.__arrow_c_schema__()


class Reader(_Once):
    """A stream for one thread that blocks: pass it to whatever takes an object
    with `__arrow_c_stream__` (DuckDB, polars, pyarrow, an ADBC ingest), on
    another thread than the event loop's. The GIL is not held while it waits."""

    def __arrow_c_stream__(self, requested_schema=None):
        """The stream as a capsule; once."""
        return self._take()


class DeviceReader(_Once):
    """A stream for one thread that blocks, as Reader, of data on a device: for
    what takes an object with `__arrow_c_device_stream__`."""

    def __arrow_c_device_stream__(self, requested_schema=None, **kwargs):
        """The stream as a capsule; once."""
        return self._take()


def to_reader(iterable, schema, *, window=8, max_bytes=_BYTES):
    """Gives the batches of an asynchronous iterable to a thread.

    `iterable` yields objects with `__arrow_c_array__` of `schema`, which has
    `__arrow_c_schema__`. It is iterated in the running event loop, at most
    twice `window` batches, and `max_bytes` bytes, ahead of the reader. What it
    raises, the reader reports as its error. When the reader is released, a wait
    for the iterable ends, and it is closed. Returns a Reader.
    """
    host = _host.current()
    writer = _core.Writer(host, schema.__arrow_c_schema__(), _window(window),
                          _half(max_bytes))
    reader = Reader(writer.reader(window, _half(max_bytes)))
    host.spawn(lambda: _pump(host, writer, iterable))
    return reader


async def _pump(host, writer, iterable):
    try:
        await _push_all(host, writer, iterable.__aiter__())
    except Exception as exception: # the reader reports it
        writer.close(errno.EIO, f"{type(exception).__name__}: {exception}")
    except BaseException:
        writer.close(errno.ECANCELED, "the writing task was cancelled")
        raise
    else:
        writer.close(0, None)


async def _push_all(host, writer, iterator):
    guard = host.guard(writer)
    try:
        while True:
            try:
                batch = await guard.next(iterator)
            except StopAsyncIteration:
                break
            code = writer.push(batch)
            while code == errno.EAGAIN:
                await host.wait(writer)
                code = writer.push(batch)
            if code == errno.EPIPE:
                break
            if code != 0:
                raise OSError(code, os.strerror(code))
    finally:
        guard.end()
        if hasattr(iterator, "aclose"):
            await iterator.aclose()


def ipc(source, *, compression=None):
    """Yields the chunks of an Arrow IPC stream, as memoryviews: columns are not
    copied. `source` is a Stream, which is closed at the end; `compression` is
    None, "lz4" or "zstd". A step that is cancelled loses no chunk.

        return StreamingResponse(
            uvarrow.ipc(stream),
            media_type="application/vnd.apache.arrow.stream")
    """
    codecs = {None: 0, "lz4": 1, "zstd": 2}
    if compression not in codecs:
        raise ValueError(f"unknown compression: {compression!r}")
    return _Chunks(source, codecs[compression])


class _Chunks(AsyncGenerator):
    """What ipc() returns: not a generator of Python, as that ends when a step
    is cancelled, which looks to a reader like the end of the data."""

    def __init__(self, source, codec):
        self._source = source
        self._codec = codec
        self._encoder = None
        self._ready = deque()
        self._is_running = self._is_over = False

    async def asend(self, value):
        """The next chunk; `value` is not used."""
        if self._is_running:
            raise RuntimeError("uvarrow: another task waits for the next chunk")
        self._is_running = True
        try:
            while not self._ready and not self._is_over:
                await self._encode()
        except Exception:
            await self.aclose()
            raise
        finally:
            self._is_running = False
        if self._ready:
            return self._ready.popleft()
        await self.aclose()
        raise StopAsyncIteration

    async def _encode(self):
        if self._encoder is None:
            encoder = _core.Encoder(await self._source.schema(), self._codec)
            self._ready.extend(encoder.begin())
            self._encoder = encoder
            return
        try:
            batch = await self._source.__anext__()
        except StopAsyncIteration:
            self._ready.extend(self._encoder.end())
            self._is_over = True
        else:
            self._ready.extend(self._encoder.batch(batch))

    async def athrow(self, kind, value=None, traceback=None):
        """Closes the stream, and raises the exception."""
        await self.aclose()
        raise kind if value is None else value

    async def aclose(self):
        """Closes the stream."""
        self._ready.clear()
        self._is_over = True
        await self._source.aclose()

    def __del__(self):
        if not self._is_over:
            self._source._close()


for _public in (Stream, StageStats, Reader, DeviceReader, stream, merge,
                to_reader, ipc):
    _public.__module__ = "uvarrow"
