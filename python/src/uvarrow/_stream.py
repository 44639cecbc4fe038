# SPDX-License-Identifier: Apache-2.0
"""Streams: asynchronous iterators over batches, and the objects made of
them."""
import errno
import functools
import os
import warnings
import weakref
from typing import NamedTuple

from . import _check, _core, _host, _progress, _show
from ._error import metadata_dict

_WINDOW = 64
_BYTES = 32 << 20
_CLOSE_SECONDS = 0.002
_FEED = 8
_CONCURRENCY = 8
_SLOW = "wait", "drop_new", "drop_old", "fail"


class StageStats(NamedTuple):
    """The progress of one stage of a stream. `next` is the number of the stage
    it passes to, -1: the consumer. `rows_expected` and `bytes_expected` are what
    a source will give in all, 0 where that is not known; `bytes` is -1 where
    they are not measured; `requested` is 2 ** 63 - 1 without a limit. Times are
    seconds, and 0 without `configure(measure=True)`: in functions of the source
    or of the stage (`busy`), while a request waited (`starved`), while a batch
    waited (`idle`), and until a thread was free (`worker_wait`). It waits for
    "source", "consumer", "worker", "device", "memory", "permit" or "time"; empty,
    it works in a function of the source or of yours, which may be stuck; "over",
    it has ended. `stream` is the name of its stream, of an input of `merge()` the
    input's own."""

    name: str
    waiting: str
    batches: int
    rows: int
    queued: int
    dropped: int
    next: int
    rows_expected: int
    bytes_expected: int
    requested: int
    bytes: int
    queued_bytes: int
    queued_max: int
    queued_bytes_max: int
    busy: float
    busy_max: float
    starved: float
    idle: float
    worker_wait: float
    wakeups: int
    stream: str


class Failure(NamedTuple):
    """Why a stream is opened again: the exception, the number of the attempt,
    from 1, and the batches and rows that were passed on before."""

    error: BaseException
    attempt: int
    batches: int
    rows: int


class Stream(_core.Stream):
    """An asynchronous iterator over the batches of a source, made by
    `uvarrow.stream()`.

    `async with` ends it in any case; so do its end, an error, `aclose()`, and
    dropping it. It belongs to the event loop in which it was made. Stages are
    added before it is read, and change it in place.
    """

    __slots__ = ("__weakref__", "_label")

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
        """Returns the schema, once the source is open. Raises the exception of
        an iteration if the source cannot be opened."""
        schema = self._peek()
        while schema is None:
            await self._host.wait(self)
            schema = self._peek()
        return schema

    @property
    def metadata(self):
        """The metadata of the source's schema, as a dict of strings, such as
        the key `adbc.rows_affected` of a database; empty before."""
        return metadata_dict(self._metadata())

    async def read_all(self):
        """Returns all batches as a list. A cancel closes the stream. Raises
        Error with ECANCELED if the stream was closed before its end."""
        async with self:
            batches = [batch async for batch in self]
            self._check_end()
            return batches

    # ---- the end ------------------------------------------------------------

    def cancel(self, reason=None):
        """Ends the stream: iteration raises Error with ECANCELED. Returns at
        once; a source that blocks is interrupted if it can be."""
        self._cancel(0, _check.optional(_check.text, reason, "reason"))

    async def aclose(self, *, seconds=_CLOSE_SECONDS):
        """Ends the stream, and waits until its source is released: at most for
        `seconds`, None: without a limit. A source that blocks for longer stays
        on its thread, and is released when it returns."""
        _check.optional(_check.seconds, seconds, "seconds")
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
        return _show.stream_text(self, getattr(self, "_label", None))

    # ---- stages -------------------------------------------------------------

    def map(self, function, schema=None, *, concurrency=None, ordered=True):
        """Calls `function` with each Batch, on a worker thread with the GIL;
        it returns a Batch, or any object with `__arrow_c_array__`. `schema` is
        the schema of the results, if it changes: any object with
        `__arrow_c_schema__`. Returns the stream.

        A coroutine function is called on the event loop, in a task for each
        batch, of which up to `concurrency` (8) run at one time; its results are
        passed on in the order of their batches, or with `ordered=False` as they
        come. With `concurrency` any function that returns an awaitable is. When
        the stream ends early the tasks are cancelled."""
        capsule = _check.optional(_check.schema, schema, "schema")
        if _check.coroutine_function(function, "function", concurrency):
            self._tasks(function, capsule, concurrency, ordered, False)
        else:
            _check.flag(ordered, "ordered")
            self._map(function, capsule)
        return self

    def filter(self, function, *, concurrency=None, ordered=True):
        """Keeps the rows that `function` selects: it is called with each Batch, and
        returns a mask, an array of booleans of Arrow or of numpy with a value for
        each row, of which a null selects no row. Or it decides about the whole
        batch, by a bool, a number, or a Batch, which is true if it has rows;
        anything else is a TypeError. A batch without selected rows is left out. It
        is called in order, on a worker thread; or, a coroutine function, as by
        `map()`. Returns the stream."""
        if _check.coroutine_function(function, "function", concurrency):
            self._tasks(function, None, concurrency, ordered, True)
        else:
            _check.flag(ordered, "ordered")
            self._filter(function)
        return self

    def _tasks(self, function, schema, concurrency, ordered, filters):
        self._later(function, schema, self._host.starter(),
                    _CONCURRENCY if concurrency is None
                    else _check.count(concurrency, "concurrency", least=1),
                    not _check.flag(ordered, "ordered"), filters)

    def transform(self, function, schema=None, *, finish=None):
        """Calls `function` with each Batch, in order, on a worker thread with the
        GIL: it yields any number of batches for it, or returns a list of them.
        `finish` is called after the last one, without an argument, and yields
        the batches that are left. Batches are as for `map()`, with `schema` if
        it changes. A generator rests while the consumer is slow, and is closed
        when the stream ends early. Returns the stream."""
        self._transform(_check.function(function, "function"),
                        _check.optional(_check.schema, schema, "schema"),
                        _check.optional(_check.function, finish, "finish"))
        return self

    def cast(self, schema):
        """Gives the batches another schema, any object with
        `__arrow_c_schema__`: columns are found by their names, and those that
        `schema` lacks are dropped. No value changes, or the stream fails and
        names the column and the row. Returns the stream."""
        self._cast(_check.schema(schema, "schema"))
        return self

    def limit(self, rows):
        """Ends the stream after so many rows. Returns the stream."""
        self._limit(_check.count(rows, "rows", bits=64))
        return self

    def rebatch(self, *, rows=0, bytes=0, wait=0.0, window=0, max_bytes=0):
        """Joins small batches and splits large ones: batches of `rows` rows, of
        at most `bytes` bytes. A row that has waited for `wait` seconds is
        passed on. Up to `window` batches, of at most `max_bytes` bytes (0: 32
        MiB), are read ahead. Returns the stream."""
        self._rebatch(_check.count(rows, "rows", bits=64),
                      _check.count(bytes, "bytes", bits=64),
                      _check.ms(wait, "wait"),
                      _check.count(window, "window"), _bytes(max_bytes))
        return self

    def without_offsets(self):
        """Copies columns with an offset, as slices have it, for readers that
        do not look at it, such as Java's; other columns are passed on as they
        are. Returns the stream."""
        self._without_offsets()
        return self

    def timeout(self, *, open=0.0, first=0.0, between=0.0, total=0.0):
        """Fails with TimeoutError if opening takes longer than `open` seconds,
        opening and the first batch longer than `first`, another batch than
        `between`, or all than `total`. Time of the consumer counts for `total`
        alone. Returns the stream."""
        self._timeout(_check.ms(open, "open"), _check.ms(first, "first"),
                      _check.ms(between, "between"), _check.ms(total, "total"))
        return self

    def parallel(self, workers=0, *, unordered=False, window=0, max_bytes=0):
        """Decodes, and runs the functions added so far, on up to `workers`
        threads (0: one for each core). Python functions take the GIL one after
        the other, unless they give it away, as Arrow's do. Up to `window`
        batches (0: 64), of at most `max_bytes` bytes (0: 32 MiB), are under
        way. Returns the stream."""
        self._parallel(_check.count(workers, "workers"),
                       _check.flag(unordered, "unordered"),
                       _check.count(window, "window"), _bytes(max_bytes))
        return self

    def throttle(self, *, batches=0, bytes=0):
        """Passes on at most so many `batches` and `bytes` a second, in bursts of
        at most a tenth of that; 0: no limit, but not both. Returns the
        stream."""
        self._throttle(_check.count(batches, "batches", bits=64),
                       _check.count(bytes, "bytes", bits=64))
        return self

    def retry(self, function, *, times=3, delay=0.1, delay_max=10.0,
              resume=False):
        """Opens the stream again after a failure: `function` is called with a
        Failure, on the event loop, and returns the Stream to go on with, or
        None to give up; an exception of it ends the stream. That is
        tried `times` times (None: without a limit), after `delay` seconds,
        which are doubled each time, up to `delay_max`. Only failures before the
        first batch count, unless the new stream goes on after the batches that
        were passed on: `resume`. Returns the stream."""
        delay_ms = max(_check.ms(delay, "delay"), 1)
        most_ms = max(_check.ms(delay_max, "delay_max"), 1)
        if delay_ms > most_ms:
            raise ValueError("uvarrow: delay is more than delay_max")
        times = -1 if times is None else _check.count(times, "times", least=1)
        self._retry(functools.partial(_again, _check.function(function, "function")),
                    times, delay_ms, most_ms, _check.flag(resume, "resume"))
        return self

    def tee(self, *, slow="wait", window=0, max_bytes=0, first_window=0,
            first_bytes=0):
        """Returns a second Stream with the same batches, which share their data;
        this one goes on as the first branch. `slow` is what becomes of the new
        branch when it does not keep up: "wait" holds up the other ones,
        "drop_new" and "drop_old" lose batches, "fail" ends it with EOVERFLOW.
        Up to `window` batches (0: 64), of at most `max_bytes` bytes (0: 32
        MiB), wait for the new branch, and `first_window` and `first_bytes` for
        the first. Stages that are added to one branch do not affect the other,
        and so does its end."""
        branch = Stream()
        branch._tee(self, _SLOW.index(_check.one_of(slow, "slow", _SLOW)),
                    _check.count(window, "window"), _bytes(max_bytes),
                    _check.count(first_window, "first_window"),
                    _check.count(first_bytes, "first_bytes", bits=64))
        return branch

    def priority(self, number):
        """Has the work of this stream done before (a positive `number`) or after
        (a negative one) the work of other streams; only the sign counts.
        Returns the stream."""
        self._set_priority(_check.whole(number, "number"))
        return self

    def trace(self, function):
        """Calls `function(kind, count, code, seconds)` for each step at this
        place of the stream: "schema", "request", "batch", "cancel", "end". It
        runs on the event loop. Returns the stream."""
        self._trace(_check.function(function, "function"))
        return self

    def name(self, text):
        """Sets the name of the stream in error texts and traces. A stream that is
        merged later is an input of that name, and a name set after that is in
        front of it. Returns the stream."""
        self._set_name(_check.text(text, "text"))
        self._label = text
        return self

    def progress(self, text="", *, file=None):
        """Shows a bar with the rows so far, and their part of the total if the
        source knows that: in a notebook, or in the terminal of `file`, by
        default standard error; elsewhere nothing is written. `text` stands
        before it. Returns the stream."""
        _check.text(text, "text")
        if file is not None and _check.method(file, "write", "file") is None:
            raise _check.refuse(file, "file", "a file that is written to")
        where = _progress.shows_on(file)
        if where is not None:
            self._trace(_progress.Bar(self, text, where))
        return self

    def stats(self):
        """Returns a list of StageStats, from the source to the consumer."""
        return [StageStats(*row) for row in self._stats()]

    # ---- the other way ------------------------------------------------------

    def to_reader(self, *, window=_WINDOW, max_bytes=_BYTES):
        """Starts the stream for a thread that reads it: returns an object with
        `__arrow_c_stream__`, for one reader, which must not run on the event
        loop's thread."""
        return Reader(self._reader(_check.count(window, "window"),
                                   _bytes(max_bytes)))

    def to_device_reader(self, *, window=_WINDOW, max_bytes=_BYTES):
        """As to_reader(), for data on a device: returns an object with
        `__arrow_c_device_stream__`."""
        return DeviceReader(self._device_reader(
            _check.count(window, "window"), _bytes(max_bytes)))


def _again(function, *failure):
    return function(Failure(*failure))


def _bytes(max_bytes):
    return _check.count(max_bytes, "max_bytes", bits=64)


# ---- sources ----------------------------------------------------------------

def stream(source, *, window=_WINDOW, max_bytes=_BYTES, interrupt=None,
           close=None, own_thread=False, device_type=None):
    """Makes a stream of Arrow data.

    `source` is an object with `__arrow_c_stream__` or
    `__arrow_c_device_stream__`, a capsule of such a stream, an object with
    `__arrow_c_array__`, an iterable of objects with one of these methods, each
    of which is read to its end, or a function that returns such an object;
    with `device_type`, with `__arrow_c_device_array__`. It is opened and read
    by worker threads, one after the other, and may block. With `own_thread` one
    thread makes all of its calls, for objects that are bound to a thread, such as
    connections of Python's sqlite3. Its schema has columns: an array that has no
    rows of columns is refused.

    Up to `window` batches are read ahead by the worker, and as many wait for
    the loop; together they have at most `max_bytes` bytes, or one batch more.
    `interrupt` is a function that makes a blocked call of the source return
    soon, also the call that opens it, such as `connection.interrupt` of DuckDB; a worker thread calls it,
    until that call has returned. `close` is a function that is called once, on a
    thread, when a source that was opened is not used any more, also if no call of
    it was under way: it ends what goes on elsewhere. `device_type` is Arrow's number for the
    device of the data, if that is not the CPU's: 2 for CUDA. A batch comes
    when its event is complete.

    Or `source` is an asynchronous iterable of objects with `__arrow_c_array__` or
    `__arrow_c_stream__`, of one schema, or an `async` function that returns one
    or any other source: it is read on the event loop, and closed with the
    stream. A list of sources, among them a Stream, is one after the other; of
    one schema, too.

    Returns a Stream. It is opened when it is first read.
    """
    if _check.is_a(source, Stream):
        return source
    if _source.is_async(source):
        _check.optional(_source.refuse, interrupt, "interrupt")
        _check.optional(_source.refuse, device_type, "device_type")
        _check.optional(_source.refuse, close, "close")
        if _check.flag(own_thread, "own_thread"):
            _source.refuse(own_thread, "own_thread")
        return _source.read_async(source, _check.count(window, "window"),
                                  _half(max_bytes))
    if _source.is_several(source):
        return concat(*[stream(one, window=window, max_bytes=max_bytes,
                               interrupt=interrupt, close=close,
                               own_thread=own_thread, device_type=device_type)
                        for one in source])
    _check.optional(_check.function, interrupt, "interrupt")
    _check.optional(_check.function, close, "close")
    device = -1
    if device_type is not None:
        device = _check.count(device_type, "device_type", least=1)
    _check.source(source, device > 0)
    if (device < 0 and _check.stream_method(source, "source")
            == "__arrow_c_device_stream__"):
        device = 1
    if _check.flag(own_thread, "own_thread") and device > 0:
        raise ValueError("uvarrow: own_thread is for data of the CPU")
    result = Stream()
    window = _check.count(window, "window")
    result._open(_host.current(), (source, _open, interrupt, window,
                                   _half(max_bytes), device, own_thread,
                                   close),
                 window, _half(max_bytes))
    return result


def _half(max_bytes):
    """For each of two windows: the batches read ahead, and the delivered
    ones."""
    return (_bytes(max_bytes) + 1) // 2


def _open(source, device):
    """On a worker: gives a capsule, or an iterator over batches."""
    name = "source"
    if _check.is_called(source, name):
        source, name = source(), "the result of source()"
    if _check.is_capsule(source):
        return _check.capsule(source, device, name)
    method = _check.stream_method(source, name, device)
    if method is not None and ("device" in method) == device:
        return _check.stream(source, method, name)
    if _check.has_arrays(source, name):
        return iter((source,))
    if _check.is_iterable(source):
        return _check.iterator(source, name)
    raise _check.refuse_source(_core.sync(source, name), name)


def merge(first, *others, schema=None, keep_going=False, cast=False,
          open_at_once=0, window=0, max_bytes=0):
    """Merges streams of one schema: their batches come as they are ready.

    With `schema` all of them are cast to it, and with `cast` the others to the
    schema of `first`: no value changes, or the stream fails and names the column
    and the row.

    When one fails the other streams are cancelled, or, with `keep_going`,
    finished first. `open_at_once` of them run at one time (0: all). Up to
    `window` batches, of at most `max_bytes` bytes, are requested of each ahead
    (0: 64 batches and 32 MiB, divided among them).

    Returns `first`, of which the other streams are a part from then on."""
    _streams(first, others)
    first._merge(others, _check.optional(_check.schema, schema, "schema"),
                 _check.flag(keep_going, "keep_going"),
                 _check.flag(cast, "cast"),
                 _check.count(open_at_once, "open_at_once"),
                 _check.count(window, "window"), _bytes(max_bytes))
    return first


def concat(first, *others, schema=None, cast=False, open_at_once=0):
    """Puts streams of one schema one after the other: each is opened when the
    one before it has ended, or with `open_at_once` so many streams run at one
    time, which hides the time that the next ones need to open. `schema` and
    `cast` are as for merge().

    Returns `first`, of which the other streams are a part from then on."""
    _streams(first, others)
    first._concat(others, _check.optional(_check.schema, schema, "schema"),
                  _check.flag(cast, "cast"),
                  _check.count(open_at_once, "open_at_once"))
    return first


def _streams(first, others):
    for one in (first, *others):
        if not _check.is_a(one, Stream):
            raise _check.refuse(one, "first" if one is first else "others",
                                "a Stream")


# ---- out --------------------------------------------------------------------

class _Once:
    """A capsule with a stream of the library, for one reader."""

    _is_device = False

    def __init__(self, capsule):
        self._capsule = _check.capsule(capsule, self._is_device, "capsule")
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
            capsule = self._take() # no one else reads meanwhile
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
        _check.requested_schema(requested_schema)
        return self._take()


class DeviceReader(_Once):
    """A stream for one thread that blocks, as Reader, of data on a device: for
    consumers that take an object with `__arrow_c_device_stream__`."""

    _is_device = True

    def __arrow_c_device_stream__(self, requested_schema=None, **kwargs):
        """The stream as a capsule; once."""
        _check.requested_schema(requested_schema)
        _check.no_others(kwargs)
        return self._take()


def to_reader(iterable, schema, *, window=8, max_bytes=_BYTES):
    """Gives the batches of an asynchronous iterable to a thread.

    `iterable` yields objects with `__arrow_c_array__` of `schema`, which has
    `__arrow_c_schema__`. It is iterated in the running event loop, at most
    twice `window` batches, and `max_bytes` bytes, ahead of the reader. Its
    exceptions are the reader's errors. When the reader is released, a wait for
    the iterable ends, and it is closed. Returns a Reader.
    """
    host = _host.current()
    _check.async_iterable(iterable, "iterable")
    window = _check.count(window, "window")
    writer = _core.Writer(host, _check.schema(schema, "schema"), window,
                          _half(max_bytes), "iterable")
    reader = Reader(writer.reader(window, _half(max_bytes)))
    host.spawn(lambda: _pump(host, writer, iterable))
    return reader


def _described(exception):
    return errno.EIO, f"{type(exception).__name__}: {exception}"


async def _pump(host, writer, iterable, noted=_described):
    """Pushes the items of an iterable. `noted` gives the errno and the text of
    its exception."""
    try:
        await _push_all(host, writer, iterable)
    except Exception as exception: # the reader reports it
        writer.close(*noted(exception))
    except BaseException:
        writer.close(errno.ECANCELED, "the writing task was cancelled")
        raise
    else:
        writer.close(0, None)


async def _push_all(host, writer, iterable):
    iterator = _check.Items(iterable, "iterable")
    guard = host.guard(writer)
    try:
        while True:
            try:
                batch = await guard.next(iterator)
            except StopAsyncIteration:
                if _check.is_a(iterable, Stream): # it may have been closed
                    iterable._check_end()
                break
            code = writer.push(batch)
            if code == errno.EPIPE:
                break
            if code == errno.EAGAIN: # pushed; there is no room for the next
                await host.wait(writer)
            elif code != 0:
                raise OSError(code, os.strerror(code))
    finally:
        guard.end()
        await iterator.aclose()


def _feed(host, stream, iterable, name):
    """Gives a capsule with the items of an asynchronous iterable, and a
    function that starts it. Its exceptions are raised by `stream`, which reads
    the capsule."""
    window, half = _FEED, _half(_BYTES)
    writer = _core.Writer(host, None, window, half, name)
    reads = weakref.ref(stream)

    def noted(exception):
        stream = reads()
        return _described(exception) if stream is None else stream._note(exception)

    return writer.reader(window, half), lambda: host.spawn(
        lambda: _pump(host, writer, iterable, noted))


for _public in (Stream, StageStats, Failure, Reader, DeviceReader, stream, merge,
                concat, to_reader):
    _public.__module__ = "uvarrow"

from . import _source # it needs the names above
