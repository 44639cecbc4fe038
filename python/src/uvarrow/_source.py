# SPDX-License-Identifier: Apache-2.0
"""Sources that the event loop reads, asynchronous iterables and readers of bytes;
and files."""
import contextlib
import functools
import os
import socket
import weakref
from collections.abc import AsyncIterable

from . import _check, _core, _host
from . import _stream
from ._stream import _BYTES, _WINDOW, Stream, _half

_CHUNK = 1 << 16
_FORMATS = "arrow", "parquet", "csv", "json", "orc"
_ENDINGS = {".parquet": "parquet", ".csv": "csv", ".json": "json",
            ".jsonl": "json", ".ndjson": "json", ".orc": "orc"}


# ---- asynchronous iterables -------------------------------------------------

def _is_arrow(source, name="source"):
    return (_check.is_capsule(source)
            or _check.stream_method(source, name) is not None
            or _check.has_arrays(source, name))


def is_async(source, name="source"):
    """Whether the event loop reads a source."""
    if _is_arrow(source, name):
        return False
    return (getattr(type(source), "__aiter__", None) is not None
            or callable(source) and _check.is_async(source))


def is_several(source):
    """Whether a source is a list that no worker can read as an iterable."""
    name = "an item of source"
    return _check.is_a(source, (list, tuple)) and any(
        _check.is_a(one, (Stream, list, tuple))
        or is_async(one, name)
        or callable(one) and not _is_arrow(one, name) for one in source)


def refuse(value, name):
    raise ValueError(f"uvarrow: {name} is for sources that a worker reads, not "
                     "for asynchronous ones")


def read_async(source, window, half):
    """The Stream of an asynchronous source. It is read once a batch is
    requested."""
    host = _host.current()
    result = Stream()
    writer = result._push(host, "source", window, half)
    result._watch(functools.partial(_begin, host, writer, source), None)
    return result


def _begin(host, writer, source):
    host.spawn(lambda: _stream._pump(host, writer, _Flat(source), writer.note))


class _Flat:
    """The batches of an asynchronous source."""

    def __init__(self, source):
        self._batches = _flat(source)

    def __aiter__(self):
        return self._batches


async def _flat(source):
    name = "source"
    if getattr(type(source), "__aiter__", None) is None:
        source, name = source(), "the result of source()"
        if hasattr(type(source), "__await__"):
            source = await source
    if not is_async(source):
        async with _inner(source, name) as batches:
            async for batch in batches:
                yield batch
        return
    iterator = _check.Items(source, name)
    try:
        while True:
            try:
                item = await iterator.__anext__()
            except StopAsyncIteration:
                break
            if _check.has_arrays(item, f"an item of {name}"):
                yield item
                continue
            async with _inner(item, f"an item of {name}") as batches:
                async for batch in batches:
                    yield batch
        if _check.is_a(source, Stream): # it may have been closed
            source._check_end()
    finally:
        await iterator.aclose()


def _inner(source, name):
    """The Stream of a source that is a part of another one."""
    if _check.is_a(source, Stream):
        return source
    if not _is_arrow(source) and not name.startswith("the result"):
        raise _check.refuse(_core.sync(source, name), name, "an object with "
                            "__arrow_c_array__ or __arrow_c_stream__")
    _check.source(_core.sync(source, name), False, name)
    return _stream.stream(source)


# ---- files ------------------------------------------------------------------

def file(path, *, format=None, mmap=False, window=_WINDOW, max_bytes=_BYTES):
    """Returns a Stream of the rows of a file, a path or an open file with
    `fileno()`, such as a pipe. `format` is "arrow", the stream or the file format
    of Arrow IPC, which is told by its content, and also Feather; or "parquet",
    "csv", "json" (a line for each object) and "orc", which pyarrow reads, also a
    folder of such files. None: by the ending of the path, otherwise "arrow". The
    name of the stream is the name of the file.

    With `mmap` the batches of Arrow IPC borrow the pages of the file, without a
    copy. Only for a file that no one changes until the last of them is freed: if it
    becomes shorter, the process may end by SIGBUS, and bytes that change are not
    checked again. A pipe is read.
    """
    _check.optional(_check.one_of, format, "format", _FORMATS)
    _check.flag(mmap, "mmap")
    window, half = _check.count(window, "window"), _half(max_bytes)
    if not _check.is_a(path, (str, os.PathLike)):
        return _open_file(path, format, mmap, window, half)
    path = os.fspath(path)
    if not _check.text(path, "path"):
        raise ValueError("uvarrow: path is empty")
    name = os.fsdecode(os.path.basename(path))
    if format is None:
        format = _ENDINGS.get(os.path.splitext(name)[1].lower(), "arrow")
    if format == "arrow":
        result = Stream()
        result._file(_host.current(), os.fsencode(path), 0, window, half, False,
                     mmap)
    elif mmap:
        raise ValueError(f"uvarrow: mmap is for Arrow IPC, not for format {format!r}")
    else:
        result = _stream.stream(
            functools.partial(_dataset, os.fsdecode(path), format),
            window=window, max_bytes=max_bytes)
    return result.name(name.encode(errors="replace")[:63].decode(errors="ignore")
                       or "file")


def _dataset(path, format):
    import pyarrow.dataset
    return pyarrow.dataset.dataset(path, format=format).scanner().to_reader()


def _descriptor(value, name, expected):
    get = _check.method(value, "fileno", name)
    if get is None or _check.is_a(value, type):
        raise _check.refuse(value, name, expected)
    try:
        what = f"the result of fileno() of {name}"
        return _check.count(_core.sync(get(), what), what)
    except (OSError, ValueError) as error:
        raise ValueError(f"uvarrow: {name} has no descriptor: {error}") from error


def _open_file(path, format, mmap, window, half):
    if format not in (None, "arrow"):
        raise ValueError(f"uvarrow: format {format!r} is read from a path, not "
                         "from an open file")
    fd = _descriptor(path, "path", "a path or an open file")
    result = Stream()
    result._file(_host.current(), b"", fd, window, half, False, mmap)
    return result.name("file")


# ---- readers of bytes -------------------------------------------------------

def ipc_reader(reader, *, window=_WINDOW, max_bytes=_BYTES):
    """Returns a Stream of the Arrow IPC stream that arrives in bytes: from a
    socket of Python, a StreamReader of asyncio or aiohttp, a stream of trio or
    anyio, or an asynchronous iterable of bytes, such as `response.aiter_bytes()`
    of httpx. Nothing else reads there meanwhile. It is read once the stream is,
    and no further than its end, but for a block of bytes. A stream that is cut off
    fails. An asynchronous iterable is closed with the stream; a socket is not."""
    window, half = _check.count(window, "window"), _half(max_bytes)
    host, result = _host.current(), Stream()
    if _check.is_a(reader, socket.socket):
        fd = _descriptor(reader, "reader", "a socket")
        result._file(host, b"", fd, window, half, True, False)
        return result.name("socket")
    read = _reads(reader)
    ours, theirs = socket.socketpair()
    with theirs:
        ours.setblocking(False)
        result._file(host, b"", theirs.fileno(), window, half, True, False)
    result.name("reader")
    bytes_of = _Bytes(host, weakref.ref(result), ours, reader, read)
    result._watch(bytes_of.begin, bytes_of.end)
    return result


def _reads(reader):
    """A function without an argument that gives the next bytes; none at the end."""
    for attribute in "receive_some", "read", "receive":
        method = _check.method(reader, attribute, "reader")
        if method is not None and _check.is_async(method):
            return functools.partial(method, _CHUNK)
    if getattr(type(reader), "__aiter__", None) is None:
        raise _check.refuse(reader, "reader", "a socket, a StreamReader or an "
                            "asynchronous iterable of bytes")
    return _check.Items(reader, "reader").__anext__


class _Bytes:
    """Passes bytes on to the library, by a socket."""

    def __init__(self, host, stream, sock, reader, read):
        self._host, self._stream, self._socket = host, stream, sock
        self._reader, self._read = reader, read
        self._task = None

    def begin(self):
        self._task = self._host.starter()(self._run())

    def end(self):
        if self._task is not None:
            self._task.cancel()

    def __del__(self):
        self._socket.close() # it was never read

    async def _run(self):
        try:
            with self._socket: # its end, too, would fail the stream: comes later
                await self._tell_errors()
        finally:
            close = getattr(self._reader, "aclose", None)
            if close is not None and _check.is_a(self._reader, AsyncIterable):
                await close()

    async def _tell_errors(self):
        try:
            await self._pass_on()
        except Exception as error: # the stream raises it
            stream = self._stream()
            if stream is not None:
                stream._cancel(*stream._note(error))

    async def _pass_on(self):
        while True:
            try:
                chunk = await self._read()
            except StopAsyncIteration:
                return
            except Exception as error:
                if type(error).__name__ == "EndOfStream": # of anyio
                    return
                raise
            if not _check.is_a(chunk, (bytes, bytearray, memoryview)):
                name = "an item of reader"
                raise _check.refuse(_core.sync(chunk, name), name, "bytes")
            if not chunk:
                return
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                await self._host.send(self._socket, chunk)


for _public in (file, ipc_reader):
    _public.__module__ = "uvarrow"
