# SPDX-License-Identifier: Apache-2.0
"""A cursor of PEP 249, whose methods are awaited."""
import contextlib
import errno
import functools
from collections.abc import AsyncIterable, Mapping, Sequence
from typing import NamedTuple

from . import _check, _core, _named
from ._dberror import InterfaceError, NotSupportedError, ProgrammingError
from ._rows import Rows

_MOST = 2 ** 62
_SOON = 0.1 # seconds in which a result is read whose cursor has failed
_MANY = "seq_of_parameters"
_ARROW = "__arrow_c_stream__", "__arrow_c_array__"
_MODES = "create", "append", "replace", "create_append"


class Named(NamedTuple):
    """Parameters with the name of the argument that they come from."""

    name: str
    parameters: object


def _listed(rows):
    """On a worker: the rows of an iterable."""
    return list(_check.iterator(rows, _MANY))


def _many(rows, names, by_name, alone):
    """On a worker: rows of parameters as a batch, or as batches of one row for a
    driver that takes these `alone`. `names` are those of dicts, in the order of
    the places."""
    import pyarrow
    from .adbc import _batch
    kind = Sequence if names is None else Mapping
    for i, row in enumerate(rows):
        if not _check.is_a(row, kind) or _check.is_a(row, (str, bytes)):
            raise _check.refuse(_core.sync(row, _MANY), f"an item of {_MANY}",
                                "a sequence or a dict, as the first")
        if len(row) != len(rows[0]) or names and row.keys() != rows[0].keys():
            raise ValueError(f"uvarrow: {_MANY}: number {i} has other "
                             f"{'values' if names is None else 'names'} than "
                             "the first")
    keys = range(len(rows[0])) if names is None else names
    batch = _batch(pyarrow, {str(key): [row[key] for row in rows]
                             for key in keys}, _MANY)
    if not by_name: # a name may come twice
        batch = pyarrow.RecordBatch.from_arrays(
            batch.columns, [str(i) for i in range(len(keys))])
    if not alone:
        yield batch
        return
    for i in range(len(rows)):
        yield batch.slice(i, 1)


class Cursor:
    """Executes statements on a connection, and reads the rows of one at a time.
    `connection.cursor()` makes one.

    `async for row in cursor` gives rows, as tuples; `fetch_record_batch()` gives
    batches. A result is read from the database as its rows are fetched. If
    another statement needs the connection meanwhile, the rest is read into
    memory. A cursor that is closed, or executes again, reads the rest, and drops
    it; one that is left by an exception cancels it, if it takes long."""

    def __init__(self, connection, options, timeout):
        self._connection = connection
        self._how = options
        self._timeout = timeout
        self._rows = None
        self._stream = None # of the statement that is executed
        self._closed = False
        self.arraysize = 1
        self.rowcount = -1

    # ---- properties ---------------------------------------------------------

    @property
    def connection(self):
        """The connection of the cursor."""
        return self._connection

    @property
    def description(self):
        """The columns of the result, as tuples of seven: the name, the type of
        pyarrow, and None; None without a result."""
        if self._rows is None:
            return None
        return [(field.name, field.type, None, None, None, None, None)
                for field in self._rows.schema.to_pyarrow()]

    @property
    def rownumber(self):
        """The number of the next row, from 0 on; None without a result."""
        return None if self._rows is None else self._rows.number

    # ---- executing ----------------------------------------------------------

    async def execute(self, operation, parameters=None, *, timeout=None):
        """Executes a statement. `parameters` are a sequence, in order; a dict, by
        name: `:name` in the text; or Arrow data, for each row of which the
        statement is executed. With drivers that cannot bind by name `:name`,
        `@name` and `$name` become places in the text. `timeout` is how many
        seconds the driver may spend on it, also while rows are fetched; then it
        is cancelled, and fails with OperationalError, which is a TimeoutError.
        Returns the cursor."""
        timeout = self._limit(timeout)
        async with self._ready():
            sql = _check.text(operation, "operation")
            kind = _named.outcome(sql)
            if _check.is_a(parameters, Mapping) and parameters:
                await self._by_name(sql, list(parameters), kind, timeout,
                                    lambda names: [parameters[name]
                                                   for name in names],
                                    lambda: parameters)
            else:
                await self._run(sql, parameters, kind, timeout)
        return self

    async def executemany(self, operation, seq_of_parameters, *, timeout=None):
        """Executes a statement for each row of `seq_of_parameters`: an iterable of
        sequences or of dicts, which a worker reads, or Arrow data. `rowcount` is
        how many rows all of them have changed; there is no result."""
        timeout = self._limit(timeout)
        async with self._ready():
            sql = _check.text(operation, "operation")
            rows = seq_of_parameters
            if _check.is_a(rows, AsyncIterable) or any(
                    _check.method(rows, one, _MANY) for one in _ARROW):
                await self._run(sql, Named(_MANY, rows), "count", timeout)
                return
            if not _check.is_iterable(rows):
                raise _check.refuse(rows, _MANY, "an iterable of sequences or "
                                    "dicts, or Arrow data")
            if not _check.is_a(rows, (list, tuple)):
                rows = await self._connection._call(
                    functools.partial(_listed, rows))
            if not rows:
                self.rowcount = 0
            elif _check.is_a(rows[0], Mapping):
                await self._by_name(sql, list(rows[0]), "count", timeout,
                                    lambda names: self._many(rows, names, False),
                                    lambda: self._many(rows, list(rows[0]), True))
            else:
                await self._run(sql, self._many(rows, None, False), "count",
                                timeout)
            if self._connection._takes_one_row and len(rows) > 1:
                self.rowcount = -1 # it counts the last one

    async def adbc_ingest(self, table_name, data, mode="create", *,
                          catalog_name=None, db_schema_name=None,
                          temporary=False, timeout=None):
        """Writes the rows of `data` into a table; all rows, or no row. `data` is
        as for `Pool.ingest()`: Arrow data, or an iterable, also an asynchronous
        one, of Arrow data and dicts. Returns how many rows, or -1 if the driver
        reports no number."""
        options = {
            "adbc.ingest.mode":
                f"adbc.ingest.mode.{_check.one_of(mode, 'mode', _MODES)}",
            "adbc.ingest.target_catalog":
                _check.optional(_check.text, catalog_name, "catalog_name"),
            "adbc.ingest.target_db_schema":
                _check.optional(_check.text, db_schema_name, "db_schema_name"),
            "adbc.ingest.temporary":
                "true" if _check.flag(temporary, "temporary") else None}
        table = _check.text(table_name, "table_name")
        timeout = self._limit(timeout)
        async with self._ready():
            with self._connection._errors():
                session = self._connection._session_now()
                self._stream = session._stream(
                    None, data, {**self._how, **{
                        key: value for key, value in options.items()
                        if value is not None}},
                    table, False, False, timeout, 64, 32 << 20)
                await self._finish()
        return self.rowcount

    def adbc_cancel(self):
        """Cancels the statement that is executed or read, in the database: the
        task that waits for it gets an OperationalError. May be called by any
        task of the loop."""
        if self._stream is not None:
            self._stream.cancel("adbc_cancel() was called")
        if self._rows is not None:
            self._rows.cancel("adbc_cancel() was called")

    def _limit(self, timeout):
        return self._timeout if timeout is None else _check.seconds(timeout,
                                                                    "timeout")

    @contextlib.asynccontextmanager
    async def _ready(self):
        """Around a statement: the connection is free for it."""
        self._check_open()
        with self._connection._use(self):
            rows, self._rows = self._rows, None
            self.rowcount = -1
            with self._connection._errors():
                if rows is not None:
                    await rows.drop()
                await self._connection._keep()
            yield

    async def _by_name(self, sql, names, kind, timeout, ordered, named):
        """Executes with parameters by name, as the driver can."""
        for name in names:
            _check.text(name, "a name of parameters")
        connection = self._connection
        if connection._binds_names:
            try:
                await self._run(sql, named(), kind, timeout, by_name=True)
                return
            except NotSupportedError as error:
                if "by_name" not in error.strerror:
                    raise
                connection._binds_names = False
        try:
            sql, order = _named.in_order(sql, names, connection._is_numbered)
        except ValueError as error:
            raise ProgrammingError(errno.EINVAL, str(error)) from None
        await self._run(sql, ordered(order), kind, timeout)

    def _many(self, rows, names, by_name):
        return _many(rows, names, by_name, self._connection._takes_one_row)

    async def _run(self, sql, parameters, kind, timeout, by_name=False):
        connection = self._connection
        with connection._errors():
            self._stream = connection._session_now().query(
                sql, parameters, options=self._how, update=kind != "rows",
                by_name=by_name, busy=timeout)
            if kind == "rows":
                await self._open()
            else:
                await self._finish()
            if kind == "none":
                self.rowcount = -1

    async def _open(self):
        """Until the statement is executed."""
        stream = self._stream
        try:
            schema = await stream.schema()
        except BaseException:
            self._end()
            raise
        if len(schema) == 0:
            await self._finish()
            return
        rows = Rows(self._connection._host, stream, schema)
        try:
            await rows.begin()
        finally:
            self._stream = None
        self.rowcount = int(stream.metadata.get("adbc.rows_affected", -1))
        self._rows = rows
        self._connection._note(self, rows)

    async def _finish(self):
        """To the end of a statement without a result."""
        try:
            async for _ in self._stream:
                pass
            self.rowcount = int(self._stream.metadata.get("adbc.rows_affected",
                                                          -1))
        finally:
            self._end()

    def _end(self):
        self._stream._close()
        self._stream = None

    # ---- reading ------------------------------------------------------------

    async def fetchone(self):
        """The next row, a tuple; None: there is no other one."""
        with self._reading("fetchone") as rows:
            taken = await rows.take(1)
        return taken[0] if taken else None

    async def fetchmany(self, size=None):
        """The next rows, at most `size`, by default `arraysize`."""
        size = (self.arraysize if size is None else
                _check.count(size, "size", bits=64))
        result = []
        with self._reading("fetchmany") as rows:
            while len(result) < size:
                taken = await rows.take(size - len(result))
                if not taken:
                    break
                result += taken
        return result

    async def fetchall(self):
        """All further rows."""
        return await self.fetchmany(_MOST)

    async def fetch_arrow_table(self):
        """All further rows, as a table of pyarrow."""
        import pyarrow
        batches = []
        with self._reading("fetch_arrow_table") as rows:
            while (batch := await rows.record_batch()) is not None:
                batches.append(batch)
            return pyarrow.Table.from_batches(batches, rows.schema.to_pyarrow())

    fetchallarrow = fetch_arrow_table

    async def fetch_df(self):
        """All further rows, as a frame of pandas, which is made on a worker."""
        table = await self.fetch_arrow_table()
        return await self._connection._call(table.to_pandas)

    async def fetch_polars(self):
        """All further rows, as a frame of polars, which is made on a worker."""
        def frame():
            import polars
            return polars.from_arrow(table)

        table = await self.fetch_arrow_table()
        return await self._connection._call(frame)

    async def fetch_record_batch(self):
        """Yields the further rows as batches of pyarrow: `async for batch in
        cursor.fetch_record_batch()`."""
        while True:
            with self._reading("fetch_record_batch") as rows:
                batch = await rows.record_batch()
            if batch is None:
                return
            yield batch

    def __aiter__(self):
        return self

    async def __anext__(self):
        row = await self.fetchone()
        if row is None:
            raise StopAsyncIteration
        return row

    @contextlib.contextmanager
    def _reading(self, method):
        """Around a read: gives the result."""
        self._check_open()
        if self._rows is None:
            raise ProgrammingError(errno.EINVAL, f"uvarrow: {method}(): there "
                                   "is no result: execute a query first")
        with self._connection._use(self), self._connection._errors():
            yield self._rows

    # ---- the end ------------------------------------------------------------

    async def close(self):
        """Closes the cursor, and reads what its result has left, so that the
        connection can go on; `adbc_cancel()` before ends it in the database,
        and with it the connection."""
        if not self._closed:
            self._closed = True
            await self._drop(None)

    async def _drop(self, seconds):
        rows, self._rows = self._rows, None
        if rows is not None:
            with self._connection._use(self), self._connection._errors():
                await rows.drop(seconds)
            self._connection._is_lost |= rows.was_cancelled

    async def __aenter__(self):
        return self

    async def __aexit__(self, *exc_info):
        kind = exc_info[0]
        if kind is None:
            await self.close()
            return
        self._closed = True
        if issubclass(kind, Exception):
            await self._drop(_SOON)
        elif self._rows is not None: # a cancelled task waits for nothing
            self._rows.cancel()
            self._connection._is_lost |= self._rows.was_cancelled

    # ---- the rest of PEP 249 ------------------------------------------------

    async def callproc(self, procname, parameters=()):
        """Is not supported: execute the words of the database for that."""
        raise NotSupportedError(errno.ENOTSUP, "uvarrow: callproc() is not "
                                "supported")

    def setinputsizes(self, sizes):
        """Has no effect."""

    def setoutputsize(self, size, column=None):
        """Has no effect."""

    def _check_open(self):
        if self._closed:
            raise InterfaceError(errno.EBADF, "uvarrow: the cursor is closed")
        self._connection._check_open()
