# SPDX-License-Identifier: Apache-2.0
"""What a database has, and parts of a result: methods of pools and sessions."""
from typing import NamedTuple

from . import _check, _core
from ._stream import _BYTES, _WINDOW, Stream, _half

_DEPTHS = "columns", "catalogs", "schemas", "tables"
_PARTITIONS = 2


class Table(NamedTuple):
    """A table or view of a database; without a catalog or a schema, these are
    empty."""

    catalog: str
    schema: str
    name: str
    type: str


def _made(pool, method, *args):
    """A stream that a method of Stream makes of a pool or a session."""
    host, made = pool._opened()
    stream, half = Stream(), _half(_BYTES)
    getattr(stream, method)((host, made, *args), _WINDOW, half)
    return stream


def objects(self, *, depth="columns", catalog=None, schema=None, table=None,
            column=None, types=(), busy=None):
    """Returns a Stream of what the database has: catalogs, with their schemas,
    tables, columns and constraints in nested columns, as ADBC defines them for
    GetObjects; down to "catalogs", "schemas", "tables" or "columns". Texts are
    patterns as for LIKE, None: any. `types` are the types of tables, such as
    "table" and "view", as the database names them; none: all. `busy` is as for
    `query()`."""
    patterns = [_check.optional(_check.text, value, name) for value, name in (
        (catalog, "catalog"), (schema, "schema"), (table, "table"),
        (column, "column"))]
    if not _check.is_a(types, (list, tuple)):
        raise _check.refuse(types, "types", "a list of texts")
    types = [_check.text(one, "an item of types") for one in types]
    number = _DEPTHS.index(_check.one_of(depth, "depth", _DEPTHS))
    return _made(self, "_objects", number, *patterns, types,
                 0 if busy is None else _check.ms(busy, "busy"), _WINDOW,
                 _half(_BYTES))


async def tables(self, *, catalog=None, schema=None, table=None, types=(),
                 busy=None):
    """Returns a list of the tables and views, each a Table with its catalog,
    schema, name and type. The arguments are as for `objects()`. Needs
    pyarrow."""
    rows = self.objects(depth="tables", catalog=catalog, schema=schema,
                        table=table, types=types, busy=busy)
    return [Table(of["catalog_name"] or "", inner["db_schema_name"] or "",
                  one["table_name"], one["table_type"])
            for batch in await rows.read_all()
            for of in batch.to_pyarrow().to_pylist()
            for inner in of["catalog_db_schemas"] or ()
            for one in inner["db_schema_tables"] or ()]


async def table_schema(self, table, *, catalog=None, schema=None):
    """Returns the Schema of a table. Error with ENOENT if the driver reports that
    there is no such table."""
    rows = _made(self, "_table_schema",
                 _check.optional(_check.text, catalog, "catalog"),
                 _check.optional(_check.text, schema, "schema"),
                 _check.text(table, "table"))
    async with rows:
        found = await rows.schema()
        async for _ in rows:
            pass
    return found


async def query_partitions(self, sql, parameters=None, *, options=None,
                           by_name=False, busy=None):
    """Executes a query for the partitions of its result, and returns them as a
    list of bytes: `uvarrow.partition()` reads one, also in another process.
    The arguments are as for `query()`. Error with ENOTSUP if the driver has no
    partitions."""
    rows = self._stream(_check.text(sql, "sql"), parameters, options, None,
                        _PARTITIONS, _check.flag(by_name, "by_name"), busy,
                        _WINDOW, _BYTES)
    return [one for batch in await rows.read_all()
            for one in _core.partitions(batch)]


def partition(pool, partition, *, window=_WINDOW, max_bytes=_BYTES):
    """Returns a Stream of the rows of one partition of a result, of those that
    `Pool.query_partitions()` gave. `pool` is a Pool of the same database.
    `merge()` reads several at one time:

        parts = await pool.query_partitions("SELECT * FROM flights")
        rows = uvarrow.merge(*[uvarrow.partition(pool, one) for one in parts])
    """
    if not hasattr(type(pool), "query_partitions"):
        raise _check.refuse(pool, "pool", "a Pool or a Session")
    if not _check.is_a(partition, (bytes, bytearray, memoryview)):
        raise _check.refuse(partition, "partition", "bytes")
    host, made = pool._opened()
    stream, half = Stream(), _half(max_bytes)
    window = _check.count(window, "window")
    stream._partition((host, made, bytes(partition), window, half), window, half)
    return stream


def partitions(pool, partitions, *, retries=0, keep_going=False, open=0.0,
               first=0.0, between=0.0, total=0.0, window=_WINDOW, max_bytes=_BYTES):
    """Returns a Stream of the rows of several partitions of a result, the list
    that `Pool.query_partitions()` gave or a part of it: as many at one time as
    `pool`, of the same database, has connections, in the order in which batches
    come.

    Each is named, as "partition 3 of 12 (host)", in texts of errors and in
    statistics. One that fails is read again up to `retries` times, without the
    rows that came before: right if the database gives them in the same order each
    time. It then begins with the next location, if it is a partition of Flight SQL
    that has several. `open`, `first`, `between` and `total` are limits of time, as
    for `Stream.timeout()`, of each and each time that it is read. With
    `keep_going` the others are finished when one fails.

        parts = await pool.query_partitions("SELECT * FROM flights")
        rows = uvarrow.partitions(pool, parts, retries=5, open=5, between=30)
    """
    if not hasattr(type(pool), "query_partitions"):
        raise _check.refuse(pool, "pool", "a Pool or a Session")
    if not _check.is_a(partitions, (list, tuple)):
        raise _check.refuse(partitions, "partitions", "a list of bytes")
    for one in partitions:
        if not _check.is_a(one, (bytes, bytearray, memoryview)):
            raise _check.refuse(one, "an item of partitions", "bytes")
    retries = _check.count(retries, "retries")
    _check.flag(keep_going, "keep_going")
    limits = [_check.ms(value, name) for value, name in (
        (open, "open"), (first, "first"), (between, "between"), (total, "total"))]
    window, half = _check.count(window, "window"), _half(max_bytes)
    host, made = pool._opened()
    stream = Stream()
    stream._partitions((host, made, [bytes(one) for one in partitions], retries,
                        keep_going, *limits, window, half), window, half)
    return stream


def add_to(*classes):
    """Makes the functions methods of pools and sessions."""
    for one in classes:
        for function in (objects, tables, table_schema, query_partitions):
            setattr(one, function.__name__, function)


Table.__module__ = "uvarrow.adbc"
partition.__module__ = partitions.__module__ = "uvarrow"
