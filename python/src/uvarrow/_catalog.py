# SPDX-License-Identifier: Apache-2.0
"""What a database has: methods of pools and sessions."""
from typing import NamedTuple

from . import _check
from ._stream import _BYTES, _WINDOW, Stream, _half

_DEPTHS = "columns", "catalogs", "schemas", "tables"


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


def add_to(*classes):
    """Makes the functions methods of pools and sessions."""
    for one in classes:
        for function in (objects, tables, table_schema):
            setattr(one, function.__name__, function)


Table.__module__ = "uvarrow.adbc"
