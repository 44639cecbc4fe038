# SPDX-License-Identifier: Apache-2.0
"""Databases on an event loop: a pool of connections of any ADBC driver.

    pool = uvarrow.adbc.Pool("sqlite", uri="flights.db")
    async with pool.query("SELECT * FROM flights WHERE day = ?", [3]) as rows:
        async for batch in rows:
            ...

Connecting, executing and fetching run on worker threads, in C, without the
GIL. A query that is cancelled is cancelled in the database.
"""
import importlib.util
import weakref

from . import _core, _host
from ._stream import _BYTES, _WINDOW, Stream, _half, _ms, _window

__all__ = ["Pool"]


class Pool:
    """Connections to a database, each of which serves one query at a time.

    `driver` is a driver's name ("sqlite", "postgresql", "flightsql"), or the
    path of its library; None: the scheme of the `uri`. A package
    `adbc_driver_<name>` is found by itself. `options` and `connection_options`
    are the driver's. At most `connections` are open; one that was idle for
    `idle` seconds is closed. A query waits for a connection, at most `wait`
    seconds.

    Nothing is connected before the first query. A pool may be used by several
    event loops, each of which has connections of its own.
    """

    def __init__(self, driver=None, *, uri=None, entrypoint=None, options=None,
                 connection_options=None, connections=8, idle=60.0, wait=30.0):
        options = dict(options or {})
        if uri is not None:
            options["uri"] = uri
        self._how = (_library(driver), entrypoint, _pairs(options),
                     _pairs(connection_options or {}), connections, _ms(idle),
                     _ms(wait))
        self._pools = weakref.WeakKeyDictionary()
        self._closed = False

    def query(self, sql, parameters=None, *, options=None, window=_WINDOW,
              max_bytes=_BYTES):
        """Returns a Stream of the rows of a query. It is executed when the
        stream is first read. `parameters` are rows of Arrow data, for each of
        which the query is executed; or a list, a tuple or a dict of values, for
        which pyarrow is needed."""
        return self._stream(sql, parameters, options, None, window, max_bytes)

    def ingest(self, table, data, *, mode="append", options=None):
        """Returns a Stream that writes the rows of `data` into a table when it
        is read, and has no rows itself. `mode` is "create", "append",
        "replace" or "create_append"."""
        options = {"adbc.ingest.mode": f"adbc.ingest.mode.{mode}",
                   **(options or {})}
        return self._stream(None, data, options, table, _WINDOW, _BYTES)

    async def execute(self, sql, parameters=None, *, options=None):
        """Executes a statement, and returns the number of rows that it has
        affected, or -1 if the driver reports none."""
        async with self.query(sql, parameters, options=options) as rows:
            async for _ in rows:
                pass
            return int(rows.metadata.get("adbc.rows_affected", -1))

    def close(self):
        """Closes idle connections now, and others when their queries end."""
        self._closed = True
        for pool in list(self._pools.values()):
            pool.close()

    def __enter__(self):
        return self

    def __exit__(self, *exc_info):
        self.close()

    def _stream(self, sql, parameters, options, table, window, max_bytes):
        if self._closed:
            raise RuntimeError("uvarrow: the pool is closed")
        host = _host.current()
        pool = self._pools.get(host)
        if pool is None:
            pool = self._pools[host] = _core.Pool(host, *self._how)
        capsule = None if parameters is None else _rows(parameters)
        result = Stream()
        result._query((host, pool, sql, capsule, _pairs(options or {}), table,
                       _window(window), _half(max_bytes)),
                      window, _half(max_bytes))
        return result


def _pairs(options):
    return [str(text) for pair in options.items() for text in pair]


def _library(driver):
    """The library of a driver that is a package of Python."""
    name = f"adbc_driver_{driver}"
    if driver is None or not name.isidentifier():
        return driver
    if importlib.util.find_spec(name) is None:
        return driver
    module = importlib.import_module(name)
    find = getattr(module, "_driver_path", None)
    return find() if find is not None else driver


def _rows(parameters):
    """Parameters as a capsule with a stream."""
    if hasattr(parameters, "__arrow_c_stream__"):
        return parameters.__arrow_c_stream__()
    import pyarrow
    if not hasattr(parameters, "__arrow_c_array__"):
        if not isinstance(parameters, dict):
            parameters = {str(i): value for i, value in enumerate(parameters)}
        parameters = pyarrow.RecordBatch.from_pydict(
            {name: [value] for name, value in parameters.items()})
    return pyarrow.Table.from_batches(
        [pyarrow.record_batch(parameters)]).__arrow_c_stream__()
