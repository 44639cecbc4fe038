# SPDX-License-Identifier: Apache-2.0
"""Databases on an event loop: a pool of connections of any ADBC driver.

    pool = uvarrow.adbc.Pool("sqlite", uri="flights.db")
    async with pool.query("SELECT * FROM flights WHERE day = ?", [3]) as rows:
        async for batch in rows:
            ...

Connecting, executing and fetching run on worker threads, in C, without the
GIL. A query that is cancelled is cancelled in the database.
"""
import contextlib
import weakref
from collections.abc import AsyncIterable, Generator, Iterator, Mapping, Sequence

from . import _catalog, _check, _core, _driver, _host, _parts, _show
from ._catalog import Table
from ._connection import Connecting, Connection
from ._cursor import Cursor, Named
from ._dberror import (DatabaseError, DataError, IntegrityError, InterfaceError,
                       InternalError, NotSupportedError, OperationalError,
                       ProgrammingError, Warning)
from ._error import Error
from ._transaction import Transaction
from ._stream import _BYTES, _WINDOW, Stream, _feed, _half
from ._stream import stream as _stream

__all__ = ["Connecting", "Connection", "Cursor", "DataError", "DatabaseError",
           "Error", "IntegrityError", "InterfaceError", "InternalError",
           "NotSupportedError", "OperationalError", "Pool", "ProgrammingError",
           "Session", "Table", "Transaction", "Warning", "apilevel", "connect",
           "paramstyle", "threadsafety"]

# of PEP 249, but that methods are awaited
apilevel = "2.0"
threadsafety = 1
paramstyle = "qmark"

_STATS = "used", "idle", "stuck", "waiting", "connections", "queries"

_END_SECONDS = 1.0
_BATCH_ROWS = 1024 # of dicts
_MODES = "create", "append", "replace", "create_append"


def _made_again(kind, given):
    return kind(**given)


class Pool:
    """Connections to a database, each of which serves one query at a time.

    `driver` is a driver's name ("sqlite", "postgresql", "duckdb", "flightsql"),
    or the path of its library; by default the scheme of the `uri`. A package
    `adbc_driver_<name>` is found by itself, such as that in the wheel of
    DuckDB. `options` and `connection_options`
    are the driver's. At most `connections` are open; an idle one is closed
    after `idle` seconds (0: each is closed after its query), and one older
    than `max_age` seconds after its query. A connect takes at most `connect`
    seconds, and a query waits for a connection, whatever is in its way, a
    connect too, at most `wait` seconds. Each of these times is at least a
    millisecond, also if 0 is given. `lock` is how many seconds a query waits
    for a lock of another program, with SQLite, which else fails at once; by
    default as the driver has it. A connection whose driver does not return from a
    connect, or from a query that was cancelled, is replaced, up to `stuck` of
    them; by default as many as `connections`. `batch_bytes` is for queries
    without their own; by default 256 KiB.

    The state that a query leaves in its session (settings, temporary tables,
    locks, a transaction) is gone for the next one: a connection is reset after
    its query, which costs the query no time, or closed. With `keeps_session`
    it is not.

    No connection is made before the first query. A pool may be used by several
    event loops, each of which has its own connections. As a pickle it is its
    arguments, with their passwords: elsewhere it is another pool.
    """

    def __init__(self, driver=None, *, uri=None, entrypoint=None, options=None,
                 connection_options=None, connections=8, idle=60.0, wait=30.0,
                 max_age=3600.0, connect=10.0, lock=None,
                 stuck=None, batch_bytes=None, keeps_session=False):
        self._given = {
            "driver": driver, "uri": uri, "entrypoint": entrypoint,
            "options": options, "connection_options": connection_options,
            "connections": connections, "idle": idle, "wait": wait,
            "max_age": max_age, "connect": connect, "lock": lock,
            "stuck": stuck, "batch_bytes": batch_bytes,
            "keeps_session": keeps_session}
        options = _check.options(options, "options")
        self._given["options"] = dict(options)
        if uri is not None:
            if "uri" in options:
                raise ValueError("uvarrow: uri is given twice: options has it, "
                                 "too")
            options["uri"] = _check.text(uri, "uri")
        driver, options, self._driver = _driver.find(
            _check.optional(_check.text, driver, "driver"), options)
        self._how = (driver,
                     _check.optional(_check.text, entrypoint, "entrypoint"),
                     _pairs(options),
                     _pairs(_check.options(connection_options,
                                           "connection_options")),
                     _check.count(connections, "connections", least=1),
                     max(_check.ms(idle, "idle", bits=32), 1), # 0: C's default
                     max(_check.ms(wait, "wait"), 1),
                     max(_check.ms(max_age, "max_age", bits=32), 1),
                     max(_check.ms(connect, "connect", bits=32), 1),
                     0 if lock is None
                     else max(_check.ms(lock, "lock", bits=32), 1),
                     0 if stuck is None
                     else _check.count(stuck, "stuck", least=1),
                     0 if batch_bytes is None
                     else _check.count(batch_bytes, "batch_bytes", bits=64),
                     _check.flag(keeps_session, "keeps_session"))
        self._pools = weakref.WeakKeyDictionary()
        self._closed = False

    def __reduce__(self):
        return _made_again, (type(self), self._given)

    def query(self, sql, parameters=None, *, options=None, update=False,
              by_name=False, busy=None, batch_bytes=None, parallel=None,
              retry=0, timeout=None, window=_WINDOW, max_bytes=_BYTES):
        """Returns a Stream of the rows of a query. It is executed when the
        stream is first read.

        `parameters` are a list or a tuple of values, in the order of the query;
        a dict of values by name, or a list of such dicts, for each of which the
        query is executed; or rows of Arrow data, for each of which it is
        executed, too, which are bound in order, or with `by_name` by the names
        of their columns; or an iterator or an asynchronous iterable over such
        data, with `by_name` also over dicts, as for `ingest()`. Not every driver
        can bind by name: then the stream fails with ENOTSUP. A list, tuple or
        dict without values is the same as None; with Arrow data without rows
        the query is not executed. A dict among values is refused. Values need
        pyarrow. With `update` the stream has no rows; how many rows were
        changed, which several drivers count only then, is in `metadata`.

        `busy` is how many seconds the driver may spend in calls for the query;
        then it is cancelled, and fails with a TimeoutError; 0 and None are no
        limit. The time of a slow consumer does not count. `batch_bytes` is about
        how large a batch should be, for drivers that know such a size, such as
        PostgreSQL's and SQLite's; by default the pool's.

        With `parallel` the result is read in parts, so many at one time: Error
        with ENOTSUP if the driver has no partitions. `retry` and `timeout` are for
        each of these, as for `partition()`, and `timeout` for the wait for them,
        too; the query itself is never repeated."""
        in_parts = parallel is not None
        if _check.flag(update, "update") and in_parts:
            raise ValueError("uvarrow: parallel is for rows, not for an update")
        wanted = _parts.how(parallel, retry, timeout)
        if not in_parts and any(wanted):
            raise ValueError("uvarrow: retry and timeout are for a query with "
                             "parallel; Stream.timeout() is for any")
        rows = self._stream(_check.text(sql, "sql"), parameters, options, None,
                            _parts.PARTITIONS if in_parts else update,
                            _check.flag(by_name, "by_name"), busy, window,
                            max_bytes, batch_bytes)
        return rows if not in_parts else _parts.in_parts(
            self, rows, wanted, window, max_bytes)

    def ingest(self, table, data, *, mode="append", options=None, busy=None):
        """Returns a Stream that writes the rows of `data` into a table when it
        is read, and has no rows itself. `mode` is "create", "append", "replace"
        or "create_append". All rows are written, or no row: a failure or a
        cancel leaves the table as it was (docs/adbc.md: where a driver
        cannot). A generator, and an asynchronous iterator with `aclose()`, is
        closed then, too; a generator that no worker has begun to read is left
        as it was. Of `busy`, as for `query()`, the time in which `data` is
        awaited is a part.

        `data` is Arrow data, or an iterable, also an asynchronous one such as a
        Stream, of Arrow data and dicts, of one schema. A worker reads an
        iterable, and the event loop an asynchronous one, from the call on, a
        few batches ahead. 1,024 dicts are a batch; the first such batch has the
        types of the whole, and they need pyarrow. Exceptions of an iterable
        are raised by the Stream."""
        mode = _check.one_of(mode, "mode", _MODES)
        options = {"adbc.ingest.mode": f"adbc.ingest.mode.{mode}",
                   **_check.options(options, "options")}
        return self._stream(None, data, options, _check.text(table, "table"),
                            False, False, busy, _WINDOW, _BYTES)

    async def execute(self, sql, parameters=None, *, options=None, update=True,
                      by_name=False, busy=None):
        """Executes a statement, without its rows, and returns how many rows it
        has changed, or -1 if the driver reports no number. `update` is false for
        drivers that execute a statement with a result only if that is wanted;
        `parameters`, `options`, `by_name` and `busy` are as for `query()`."""
        async with self.query(sql, parameters, options=options, update=update,
                              by_name=by_name, busy=busy) as rows:
            async for _ in rows:
                pass
            return int(rows.metadata.get("adbc.rows_affected", -1))

    def session(self, *, autocommit=False, options=None):
        """Returns a Session: one connection for queries that belong together,
        `async with pool.session() as session`. They are a transaction, which is
        committed at the end, and rolled back after an exception. With
        `autocommit` each query is one, unless `begin()` is called. `options`
        are ADBC's options of a connection, such as its isolation level; a
        session with some closes its connection."""
        return Session(self, _check.flag(autocommit, "autocommit"),
                       _pairs(_check.options(options, "options")))

    def connection(self, *, autocommit=False, options=None, timeout=None):
        """Returns a Connection with the names of PEP 249, `async with
        pool.connection() as connection`: one of the pool's, to which it goes
        back. `autocommit` and `options` are as for `session()`; `timeout` is the
        limit of each statement, as for `Cursor.execute()`."""
        return Connection(self, False, _check.flag(autocommit, "autocommit"),
                          _check.options(options, "options"),
                          _check.optional(_check.seconds, timeout, "timeout"))

    def close(self):
        """Closes idle connections now, and others when their queries end."""
        self._closed = True
        for pool in list(self._pools.values()):
            pool.close()

    def stats(self):
        """Returns a dict of counts of now, of the event loop that runs: the
        connections "used" by queries, "idle" and "stuck", which are in a call
        that does not return; "connections" is the most there may be, with the
        stuck ones. Queries that are "waiting" for a connection, and "queries"
        that got one so far. While as many are stuck as there may be
        connections, no query can run."""
        pool = self._pools.get(_host.current())
        return (pool.stats() if pool is not None
                else dict.fromkeys(_STATS, 0))

    def __enter__(self):
        return self

    def __exit__(self, *exc_info):
        self.close()

    async def aclose(self, *, seconds=_END_SECONDS):
        """As close(), and waits until the connections of this event loop and the
        database are closed: at most for `seconds`, None: without a limit."""
        _check.optional(_check.seconds, seconds, "seconds")
        host = _host.current()
        pool = self._pools.get(host)
        if pool is not None:
            pool.close_and_tell(host)
        self.close()
        while pool is not None and not pool.is_closed():
            if seconds is None:
                await host.wait(pool)
            elif not await host.wait_briefly(pool, seconds):
                break

    async def __aenter__(self):
        return self

    async def __aexit__(self, *exc_info):
        kind = exc_info[0]
        if kind is not None and not issubclass(kind, Exception):
            self.close() # a cancelled task waits for nothing
        else:
            await self.aclose()

    def _opened(self):
        """The host of the loop that runs, and the pool of it."""
        if self._closed:
            raise RuntimeError("uvarrow: the pool is closed")
        host = _host.current()
        pool = self._pools.get(host)
        if pool is None:
            pool = self._pools[host] = _core.Pool(host, *self._how)
        return host, pool

    def _stream(self, sql, parameters, options, table, update, by_name, busy,
                window, max_bytes, batch_bytes=None):
        host, pool = self._opened()
        options = _pairs(_check.options(options, "options"))
        window = _check.count(window, "window")
        busy = 0 if busy is None else _check.ms(busy, "busy")
        size = (0 if batch_bytes is None else
                _check.count(batch_bytes, "batch_bytes", bits=64))
        half = _half(max_bytes)
        result = Stream()
        rows, has_names, start = _rows(host, result, parameters, by_name, table)
        result._query((host, pool, sql, rows, options, table, update, has_names,
                       busy, size, window, half), window, half)
        if start is not None:
            start()
        return result


class Session:
    """One connection of a pool, for queries that belong together: a transaction,
    or with autocommit temporary tables and settings. `pool.session()` makes one.

    Its queries run one after the other, in the order in which they are first
    read. After a failed query the transaction goes on, or not, as the database
    has it: then `commit()` fails, too. After a query that was cancelled, or
    not read to its end, all others fail with ECONNABORTED, and the transaction
    is rolled back. The connection is taken by the first query, and goes back
    to the pool at the end."""

    def __init__(self, pool, autocommit, options):
        self._of = pool
        self._autocommit = autocommit
        self._how = autocommit, options
        self._host = self._pool = None
        self._begun = not autocommit
        self._has_run = False # a query, since the last commit
        self._blocks = 0 # transaction() that are open
        self._over = False

    query = Pool.query
    ingest = Pool.ingest
    execute = Pool.execute

    def _stream(self, *how):
        stream = Pool._stream(self, *how)
        self._has_run = True
        return stream

    def transaction(self):
        """Returns a Transaction, `async with session.transaction()`: what is
        executed inside is committed at its end, and rolled back when it is left
        by an exception. In a transaction that has begun, a savepoint."""
        self._opened()
        return Transaction(self)

    async def begin(self):
        """Begins a transaction, in a session with autocommit."""
        self._opened()
        if self._begun:
            raise RuntimeError("uvarrow: the session is in a transaction")
        self._begun = True
        try:
            await _finish(self._transact("BEGIN"))
        except Exception:
            self._begun = False
            raise

    async def commit(self):
        """Commits; the next query begins another transaction, or with autocommit
        `begin()` does. If it fails the transaction is rolled back, unless it
        got no permit (TimeoutError)."""
        self._refuse_blocks()
        await self._end("COMMIT")

    async def rollback(self):
        """Rolls back, as `commit()` commits."""
        self._refuse_blocks()
        await self._end("ROLLBACK")

    def _refuse_blocks(self):
        if self._blocks:
            raise RuntimeError("uvarrow: the session is inside `async with "
                               "session.transaction()`, which ends it")

    async def __aenter__(self):
        self._enter()
        return self

    def _enter(self):
        if self._pool is not None or self._over:
            raise RuntimeError("uvarrow: a session is entered once")
        self._host, pool = self._of._opened()
        self._pool = pool.session(*self._how)

    async def __aexit__(self, *exc_info):
        kind = exc_info[0]
        self._over = True
        with contextlib.suppress(*(() if kind is None else (Error,))):
            end = self._leave(kind)
            if end is not None:
                await _finish(end)

    def _leave(self, kind):
        """Closes the session. Returns the Stream that ends its transaction, or
        None: the close rolls back, too."""
        end = None
        try:
            if self._begun and (kind is None or issubclass(kind, Exception)):
                end = self._transact("COMMIT" if kind is None else "ROLLBACK")
                end._peek() # starts it: later queries are lost
        finally:
            self._pool.close()
        return end

    async def _end(self, sql):
        self._opened()
        if not self._begun:
            raise RuntimeError("uvarrow: the session is in no transaction: see "
                               "begin()")
        try:
            await _finish(self._transact(sql))
        except Error as error:
            if not isinstance(error, TimeoutError): # it has had its permit
                self._has_run = False
                if self._autocommit:
                    await self._give_up()
            raise
        self._has_run = False
        self._begun = not self._autocommit

    # ---- for Transaction ----

    def _is_inside(self):
        return self._blocks > 0 or self._begun and (self._autocommit
                                                    or self._has_run)

    async def _open_block(self):
        if self._autocommit:
            await self.begin()

    async def _tell(self, sql):
        await self.execute(sql)

    def _do_later(self, texts):
        """Starts to execute these, before any later query, and waits for
        nothing."""
        if self._over:
            return # that rolls back, too
        streams = [self._transact(text) if text == "ROLLBACK" else
                   self.query(text, update=True) for text in texts]
        if texts == ["ROLLBACK"]:
            self._has_run = False
            self._begun = not self._autocommit
        for stream in streams:
            with contextlib.suppress(Error):
                stream._peek()
        self._host.spawn(lambda: _finish_all(streams))

    async def _give_up(self):
        """Rolls back after a failure: some databases keep the transaction."""
        with contextlib.suppress(Error):
            await _finish(self._transact("ROLLBACK"))
        self._begun = False

    def _transact(self, sql):
        """The Stream that begins or ends a transaction, of a session that is
        over, too."""
        stream = Stream()
        half = _half(_BYTES)
        if self._autocommit:
            stream._query((self._host, self._pool, sql, None, [], None, False,
                           False, 0, 0, _WINDOW, half), _WINDOW, half)
        else:
            stream._ending((self._host, self._pool, sql == "COMMIT"), _WINDOW,
                           half)
        return stream

    def _opened(self):
        if self._over:
            raise RuntimeError("uvarrow: the session is over")
        if self._pool is None:
            raise RuntimeError("uvarrow: a session is used with `async with`")
        if self._host is not _host.current():
            raise RuntimeError("uvarrow: the session belongs to another loop")
        return self._host, self._pool


_catalog.add_to(Pool, Session)
_parts.add_to(Pool, Session)
Pool.__repr__ = _show.pool_text


def connect(uri=None, *, driver=None, entrypoint=None, options=None,
            connection_options=None, autocommit=False, connect=10.0, lock=None,
            timeout=None, batch_bytes=None):
    """Connects to a database: `async with connect(uri) as connection`, or `await
    connect(uri)`. Returns a Connection, with the names of PEP 249.

    The scheme of `uri` is the driver's name, unless there is a `driver`, and
    `timeout` the limit of each statement, as for `Cursor.execute()`. With
    `autocommit` each statement is a transaction. The others are as for
    `Pool`."""
    autocommit = _check.flag(autocommit, "autocommit")
    timeout = _check.optional(_check.seconds, timeout, "timeout")
    pool = Pool(driver, uri=uri, entrypoint=entrypoint, options=options,
                connection_options=connection_options, connections=1,
                connect=connect, lock=lock, batch_bytes=batch_bytes,
                keeps_session=True)
    return Connecting(pool, autocommit, {}, timeout)


async def _finish(stream):
    async with stream:
        async for _ in stream:
            pass


async def _finish_all(streams):
    """Reads them to their ends; no one waits for their outcome."""
    for stream in streams:
        with contextlib.suppress(Error):
            await _finish(stream)


def _pairs(options):
    return [text for pair in options.items() for text in pair]


def _rows(host, stream, parameters, by_name, table):
    """The input of a query: None, a capsule, or an object and its opener; then
    whether it is bound by name, and the function that starts an asynchronous
    iterable."""
    name = "data" if table is not None else "parameters"
    if type(parameters) is Named: # as the caller's argument
        name, parameters = parameters
    method = _check.stream_method(parameters, name)
    if method == "__arrow_c_stream__":
        return _check.stream(parameters, method, name), by_name, None
    if _check.method(parameters, "__arrow_c_array__", name) is not None:
        return _capsule(_check.Array(parameters, name)), by_name, None
    if _check.is_a(parameters, AsyncIterable):
        items = _AsyncItems(parameters, name, by_name or table is not None)
        capsule, start = _feed(host, stream, items, name)
        return capsule, by_name, start
    if table is not None:
        return (_checked_data(parameters), _open_items), False, None
    if _check.is_a(parameters, Iterator):
        return (_Items(parameters, name, by_name), _open_items), by_name, None
    return *_values(parameters, by_name), None


def _checked_data(data):
    """Rows to be written that are no Arrow data: an iterable of it, or of
    dicts."""
    if not _check.is_iterable(data):
        hint = ": make a table of it" if _check.is_a(data, Mapping) else ""
        raise _check.refuse(data, "data", "Arrow data, which has "
                            "__arrow_c_stream__ or __arrow_c_array__, or an "
                            f"iterable of that, or of dicts{hint}")
    items = _Items(data, "data", True)
    for item in data[:1] if _check.is_a(data, (list, tuple)) else ():
        items.check(item) # further ones as they are read
    return items


def _values(parameters, by_name):
    """Values as a capsule, or None, and whether they are bound by name."""
    if parameters is None or (_holds_values(parameters) and not parameters):
        return None, False
    if _check.is_a(parameters, Mapping):
        return _capsule(_columns([parameters])), True
    if not _holds_values(parameters):
        raise _check.refuse(parameters, "parameters", "a list, a tuple, a dict, "
                            "Arrow data, which has __arrow_c_stream__, or an "
                            "iterator over that")
    are_dicts = [_check.is_a(row, Mapping) for row in parameters]
    if all(are_dicts):
        return _capsule(_columns(parameters)), True
    if any(are_dicts):
        i = are_dicts.index(not are_dicts[0])
        raise TypeError("uvarrow: parameters are values, or dicts, not both: "
                        f"number {i} is {'a' if are_dicts[i] else 'no'} dict, "
                        "other than the first")
    if by_name:
        raise ValueError("uvarrow: by_name: the parameters are values without "
                         "names")
    return _capsule({str(i): [value]
                     for i, value in enumerate(parameters)}), False


# ---- rows that come one after the other -------------------------------------

class _Items:
    """Items that a worker, or the loop, reads: Arrow data, or dicts, of which
    batches are made."""

    def __init__(self, items, name, takes_dicts):
        self.items = items
        self.name = name
        self._takes_dicts = takes_dicts
        self._columns = {} # of the dicts that no batch has
        self._rows = 0
        self._schema = None
        self._is_empty = True

    def check(self, item):
        name = f"an item of {self.name}"
        if not _check.is_a(item, Mapping):
            if not (_check.has_arrays(item, name)
                    or _check.stream_method(item, name)):
                raise _check.refuse(_core.sync(item, name), name, "Arrow data, "
                                    "which has __arrow_c_array__ or "
                                    "__arrow_c_stream__, or a dict")
        elif not self._takes_dicts:
            raise TypeError(f"uvarrow: {name} is a dict: with by_name=True it is "
                            "bound by its names")

    def add(self, item):
        """Gives an item as a readable object: a batch of dicts, Arrow data."""
        self.check(item)
        self._is_empty = False
        if not _check.is_a(item, Mapping):
            yield from self.rest()
            yield item
            return
        if not self._columns:
            self._columns = {one: [] for one in _names(item, self.name)}
        if item.keys() != self._columns.keys():
            raise ValueError(f"uvarrow: an item of {self.name} has other names "
                             "than the first")
        for one, values in self._columns.items():
            values.append(item[one])
        self._rows += 1
        if self._rows == _BATCH_ROWS:
            yield from self.rest()

    def rest(self):
        """Gives the dicts that no batch has."""
        if self._rows:
            import pyarrow
            batch = _batch(pyarrow, self._columns, self.name, self._schema)
            self._schema = batch.schema
            self._columns = {one: [] for one in self._columns}
            self._rows = 0
            yield batch

    def end(self):
        yield from self.rest()
        if self._is_empty:
            raise ValueError(f"uvarrow: {self.name} is empty, so that its "
                             "columns are not known: pass a table without rows")


def _open_items(items, device):
    """On a worker: the iterator over readable objects. It closes a generator,
    which its caller may keep."""
    def arrays():
        iterator = _check.iterator(items.items, items.name)
        try:
            for item in iterator:
                yield from items.add(item)
            yield from items.end()
        finally:
            if _check.is_a(iterator, Generator):
                iterator.close()

    return arrays()


class _AsyncItems:
    """As _open_items(), on the loop: yields objects with __arrow_c_array__."""

    def __init__(self, iterable, name, takes_dicts):
        self._iterable = iterable
        self._iterator = _check.Items(iterable, name)
        self._arrays = self._read(_Items(iterable, name, takes_dicts))

    def __aiter__(self):
        return self

    def __anext__(self):
        return self._arrays.__anext__()

    async def aclose(self):
        try:
            await self._arrays.aclose()
        finally: # also if no item was read
            await self._iterator.aclose()

    async def _read(self, items):
        while True:
            try:
                item = await self._iterator.__anext__()
            except StopAsyncIteration:
                break
            for one in items.add(item):
                async with contextlib.aclosing(
                        _arrays(one, items.name)) as batches:
                    async for batch in batches:
                        yield batch
        if _check.is_a(self._iterable, Stream): # it may have been closed
            self._iterable._check_end()
        for one in items.end():
            yield one


async def _arrays(item, name):
    """An item, or the batches of an item with a stream, which may block."""
    name = f"an item of {name}"
    if _check.has_arrays(item, name):
        yield item
        return
    method = _check.stream_method(item, name)
    async with _stream(_check.stream(item, method, name)) as batches:
        async for batch in batches:
            yield batch


def _holds_values(parameters):
    return (_check.is_a(parameters, (Mapping, Sequence)) and
            not _check.is_a(parameters, (str, bytes, bytearray, memoryview)))


def _names(row, name):
    """The names of a dict's values."""
    names = row.keys()
    if not names or not all(_check.is_a(one, str) for one in names):
        raise TypeError(f"uvarrow: {name}: a dict has texts as names, at least "
                        "one")
    for one in names: # Arrow's end at a NUL
        _check.text(one, f"a name of {name}")
    return names


def _columns(rows):
    """The values of dicts, which have the same names, by name."""
    names = _names(rows[0], "parameters")
    for i, row in enumerate(rows):
        if row.keys() != names:
            raise ValueError(f"uvarrow: parameters: number {i} has other names "
                             "than the first")
    return {name: [row[name] for row in rows] for name in names}


def _capsule(rows):
    """Rows as a capsule with a stream: lists of values by name, or an object
    with `__arrow_c_array__`."""
    import pyarrow
    if isinstance(rows, dict):
        rows = _batch(pyarrow, rows, "parameters")
    return pyarrow.Table.from_batches(
        [pyarrow.record_batch(rows)]).__arrow_c_stream__()


def _batch(pyarrow, values, name, schema=None):
    try:
        return pyarrow.RecordBatch.from_pydict(values, schema)
    except (TypeError, pyarrow.ArrowException) as error:
        raise TypeError(f"uvarrow: {name} that Arrow has no type for: "
                        f"{error}") from error
