# SPDX-License-Identifier: Apache-2.0
"""Streams as chunks of bytes: Arrow IPC, CSV and JSON of the encoders in C, which
run on workers, as far ahead as the window of the stream allows. A chunk is a
memoryview that owns its bytes: it is valid for as long as it is kept, also after
the end of the stream and of the loop."""
from collections import deque
from collections.abc import AsyncGenerator

from . import _check, _core
from ._stream import Stream

_CODECS = {None: 0, "lz4": 1, "zstd": 2}
_ARROW, _FILE, _CSV, _JSON = range(4)


def ipc(source, *, compression=None, file=False, as_bytes=False):
    """Yields the chunks of an Arrow IPC stream, or with `file` of a file, as
    memoryviews: columns are not copied. `source` is a Stream that was not read
    from, which is closed at the end; `compression` is None, "lz4" or "zstd". The
    schema comes with the first batch. A chunk has at most 1 MiB, and is valid
    for as long as it is kept. With `as_bytes` chunks are bytes, which copies
    them: for servers that take only bytes, such as Litestar. A step that is
    cancelled loses no chunk. If `source` is closed before its end, the next step
    raises Error with ECANCELED.

        return StreamingResponse(
            uvarrow.ipc(stream),
            media_type="application/vnd.apache.arrow.stream")
    """
    _check.optional(_check.one_of, compression, "compression", ("lz4", "zstd"))
    kind = _FILE if _check.flag(file, "file") else _ARROW
    return _chunks(source, as_bytes, kind, compression=_CODECS.get(compression))


def csv(source, *, delimiter=",", header=True, null="", crlf=False,
        as_stored=False, as_bytes=False):
    """Yields the chunks of a stream as CSV (RFC 4180, text/csv) in UTF-8, as
    memoryviews. The first line has the names of the columns, unless `header` is
    False; a null is an empty field, or the text `null`; lines end with a line
    feed, or with CR LF if `crlf`. UUIDs and JSON are written as texts, or with
    `as_stored` as their storage.

    Batches become text on workers, several at once. The rest is as for ipc().
    """
    _check.character(delimiter, "delimiter")
    _check.field(null, "null", delimiter)
    return _chunks(source, as_bytes, _CSV, delimiter=ord(delimiter),
                   header=_check.flag(header, "header"),
                   crlf=_check.flag(crlf, "crlf"), null=null or None,
                   as_stored=_check.flag(as_stored, "as_stored"))


def json(source, *, array=False, as_stored=False, as_bytes=False):
    """Yields the chunks of a stream as lines of JSON, an object for each row
    (application/x-ndjson), or with `array` as one array of these
    (application/json), as memoryviews. UUIDs and JSON are written as what they
    are, or with `as_stored` as their storage. A stream without rows has no line,
    and so no chunk, or an empty array.

    Batches become text on workers, several at once. The rest is as for ipc().
    """
    kind = _Array if _check.flag(array, "array") else _Chunks
    return _chunks(source, as_bytes, _JSON, kind=kind,
                   as_stored=_check.flag(as_stored, "as_stored"))


def _chunks(source, as_bytes, form, *, kind=None, compression=0, delimiter=0,
            header=True, crlf=False, null=None, as_stored=False):
    if not _check.is_a(source, Stream):
        raise _check.refuse(source, "source", "a Stream")
    result = (kind or _Chunks)(source, _check.flag(as_bytes, "as_bytes"))
    source._encode(form, compression, delimiter, header, crlf, null, as_stored)
    return result


class _Chunks(AsyncGenerator):
    """The chunks of a stream: not a generator of Python, as that ends when a step
    is cancelled, which looks to a reader like the end of the data."""

    def __init__(self, source, as_bytes):
        self._source = source
        self._as_bytes = as_bytes
        self._ready = deque()
        self._is_running = self._is_over = False

    async def asend(self, value):
        """The next chunk; `value` is not used."""
        self._refuse_another()
        self._is_running = True
        try:
            while not self._ready and not self._is_over:
                await self._encode()
        except Exception:
            await self._close()
            raise
        finally:
            self._is_running = False
        if self._ready:
            chunk = self._ready.popleft()
            return bytes(chunk) if self._as_bytes else chunk
        await self._close()
        raise StopAsyncIteration

    async def _encode(self):
        try:
            part = await self._source.__anext__()
        except StopAsyncIteration:
            self._source._check_end()
            self._is_over = True
            self._ready.extend(self._last())
        else:
            self._ready.extend(self._of(part))

    def _of(self, part):
        """The chunks of a batch."""
        return _core.chunks(part, None)

    def _last(self):
        """The chunks after those of the last batch."""
        return ()

    async def athrow(self, kind, value=None, traceback=None):
        """Closes the stream, and raises the exception."""
        await self.aclose()
        raise kind if value is None else value

    async def aclose(self):
        """Closes the stream; a RuntimeError while a task waits for a chunk."""
        self._refuse_another()
        await self._close()

    def _refuse_another(self):
        if self._is_running:
            raise RuntimeError("uvarrow: another task waits for the next chunk")

    async def _close(self):
        self._ready.clear()
        self._is_over = True
        await self._source.aclose()

    def __del__(self):
        if not self._is_over:
            self._source._close()


class _Array(_Chunks):
    """Lines of JSON as the items of one array."""

    _before = b"[" # what stands before the next item

    def _of(self, part):
        before, self._before = self._before, b",\n"
        return _core.chunks(part, before)

    def _last(self):
        return (memoryview(b"[]\n" if self._before == b"[" else b"]\n"),)


for _public in (ipc, csv, json):
    _public.__module__ = "uvarrow"
