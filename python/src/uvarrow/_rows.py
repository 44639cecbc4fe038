# SPDX-License-Identifier: Apache-2.0
"""The result of a statement: batches that come from the database, or that are
kept, as the connection was needed; and the same as rows of Python.

Happy path:  the stream is read, as rows or batches -> its end.

Another statement on the connection: the rest of the stream is kept in memory.

On cancel:   of the reading task: the statement is cancelled, and later reads
             fail."""
import contextlib
import errno
import time
from collections import deque

from ._dberror import DataError, OperationalError, of_database
from ._error import Error

_CHUNK = 1024 # rows that are made at a time


class Rows:
    """What a cursor reads from."""

    def __init__(self, host, stream, schema):
        self.schema = schema
        self.number = 0 # of the next row
        self._host = host
        self._stream = stream # None: it was read to its end
        self._kept = deque() # batches that no one has read
        self._failure = None # raised after them
        self.was_cancelled = False
        self._batch = None # of pyarrow, of which rows are given
        self._at = 0 # its first row that is not given
        self._ready = deque() # the rows from there on that are made

    @property
    def is_open(self):
        """Whether the database has more of it."""
        return self._stream is not None

    # ---- the stream ---------------------------------------------------------

    @contextlib.contextmanager
    def _step(self):
        """Around a step of the stream: notes its end."""
        try:
            yield
        except StopAsyncIteration:
            self._stream = None
        except Error as error:
            self._stream, self._failure = None, of_database(error)
        except BaseException:
            self.cancel()
            raise

    async def _read(self):
        """Reads a batch, or the end."""
        with self._step():
            self._kept.append(await anext(self._stream))

    async def begin(self):
        """Waits for the first batch: some drivers execute a query then."""
        await self._read()
        if self._failure is not None:
            raise self._failure

    async def _read_before(self, end):
        """As _read(), or cancels at that time."""
        left = end - time.monotonic()
        if left <= 0:
            self.cancel()
            return
        with self._step():
            batch = self._stream._take()
            if batch is not None:
                self._kept.append(batch)
                await self._host.checkpoint()
            elif not await self._host.wait_briefly(self._stream, left):
                self.cancel()

    async def keep(self, seconds=None):
        """Reads the rest into memory. What does not come within so many seconds
        is cancelled."""
        end = None if seconds is None else time.monotonic() + seconds
        while self.is_open:
            if end is None:
                await self._read()
            else:
                await self._read_before(end)

    async def drop(self, seconds=None):
        """Reads the rest, or as much as comes in so many seconds, and forgets
        all rows."""
        self._batch = None
        self._ready.clear()
        await self.keep(seconds)
        self._kept.clear()
        self._failure = None

    def cancel(self, reason="the statement was cancelled"):
        """Ends the statement in the database."""
        if self.is_open:
            self.was_cancelled = True
            self._stream._close()
            self._stream = None
            self._failure = OperationalError(errno.ECANCELED,
                                             f"uvarrow: {reason}")

    # ---- batches ------------------------------------------------------------

    async def batch(self):
        """The next Batch; None: there is no other one."""
        while not self._kept and self.is_open:
            await self._read()
        if self._kept:
            return self._kept.popleft()
        if self._failure is not None:
            raise self._failure.with_traceback(None)
        return None

    async def record_batch(self):
        """The next batch of pyarrow, of rows that were not given; None at the
        end."""
        result, self._batch = self._batch, None
        self._ready.clear()
        if result is not None and self._at < len(result):
            result = result.slice(self._at)
        else:
            batch = await self.batch()
            if batch is None:
                return None
            result = batch.to_pyarrow()
        self.number += len(result)
        return result

    # ---- rows ---------------------------------------------------------------

    async def take(self, most):
        """The next rows, at most so many, or as many as are ready; none at the
        end."""
        while not self._ready:
            if self._batch is None or self._at == len(self._batch):
                batch = await self.batch()
                if batch is None:
                    return []
                self._batch, self._at = batch.to_pyarrow(), 0
            if len(self._batch):
                self._ready.extend(_tuples(self._batch.slice(self._at, _CHUNK)))
                await self._rest()
        count = min(most, len(self._ready))
        rows = [self._ready.popleft() for _ in range(count)]
        self._at += count
        self.number += count
        return rows

    async def _rest(self):
        """Lets the loop run, as rows take time to make."""
        try:
            await self._host.checkpoint()
        except BaseException:
            self.cancel()
            raise


def _tuples(batch):
    import pyarrow
    try:
        return zip(*(column.to_pylist() for column in batch.columns))
    except (ValueError, OverflowError, pyarrow.ArrowException) as error:
        raise DataError(errno.ERANGE, "uvarrow: a value has no type of Python: "
                        f"{error}; fetch_arrow_table() has it") from error
