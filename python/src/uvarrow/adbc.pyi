from collections.abc import (
    AsyncIterable, AsyncIterator, Generator, Iterable, Iterator, Mapping,
    Sequence,
)
from os import PathLike
from typing import Any, Final, Literal, NamedTuple, Self, TypeAlias, final

import pyarrow as pa

from . import ArrowArray, ArrowStream, Error as Error, Schema, Stream

__all__ = ["Connecting", "Connection", "Cursor", "DataError", "DatabaseError",
           "Error", "IntegrityError", "InterfaceError", "InternalError",
           "NotSupportedError", "OperationalError", "Pool", "ProgrammingError",
           "Session", "Table", "Transaction", "Warning", "apilevel", "connect",
           "paramstyle", "threadsafety"]

apilevel: Final[str]
threadsafety: Final[int]
paramstyle: Final[str]

class Warning(Exception): ...
class InterfaceError(Error): ...
class DatabaseError(Error): ...
class DataError(DatabaseError): ...
class OperationalError(DatabaseError): ...
class IntegrityError(DatabaseError): ...
class InternalError(DatabaseError): ...
class ProgrammingError(DatabaseError): ...
class NotSupportedError(DatabaseError): ...

_Option: TypeAlias = str | int | float | PathLike[str]
_Bytes: TypeAlias = bytes | bytearray | memoryview
_Limit: TypeAlias = Literal["open", "first", "between", "total"]
_Rows: TypeAlias = ArrowStream | ArrowArray | Mapping[str, Any]

class Table(NamedTuple):
    catalog: str
    schema: str
    name: str
    type: str

class _Catalog:
    def objects(
        self,
        *,
        depth: Literal["columns", "catalogs", "schemas", "tables"] = "columns",
        catalog: str | None = None,
        schema: str | None = None,
        table: str | None = None,
        column: str | None = None,
        types: list[str] | tuple[str, ...] = (),
        busy: float | None = None,
    ) -> Stream: ...
    async def tables(
        self,
        *,
        catalog: str | None = None,
        schema: str | None = None,
        table: str | None = None,
        types: list[str] | tuple[str, ...] = (),
        busy: float | None = None,
    ) -> list[Table]: ...
    async def table_schema(
        self, table: str, *, catalog: str | None = None, schema: str | None = None
    ) -> Schema: ...
    async def partitions(
        self,
        sql: str,
        parameters: Any = None,
        *,
        options: Mapping[str, _Option] | None = None,
        by_name: bool = False,
        busy: float | None = None,
    ) -> list[bytes]: ...
    def partition(
        self,
        descriptors: _Bytes | Sequence[_Bytes],
        *,
        parallel: int | None = None,
        retry: int = 0,
        timeout: float | Mapping[_Limit, float] | None = None,
        keep_going: bool = False,
        window: int = 64,
        max_bytes: int = 33554432,
    ) -> Stream: ...

class Pool(_Catalog):
    def __init__(
        self,
        driver: str | None = None,
        *,
        uri: str | None = None,
        entrypoint: str | None = None,
        options: Mapping[str, _Option] | None = None,
        connection_options: Mapping[str, _Option] | None = None,
        connections: int = 8,
        idle: float = 60.0,
        wait: float = 30.0,
        max_age: float = 3600.0,
        connect: float = 10.0,
        lock: float | None = None,
        stuck: int | None = None,
        batch_bytes: int | None = None,
        keeps_session: bool = False,
    ) -> None: ...
    def query(
        self,
        sql: str,
        parameters: ArrowStream | ArrowArray | Sequence[Any]
        | Mapping[str, Any] | Iterator[_Rows] | AsyncIterable[_Rows]
        | None = None,
        *,
        options: Mapping[str, _Option] | None = None,
        update: bool = False,
        by_name: bool = False,
        busy: float | None = None,
        batch_bytes: int | None = None,
        parallel: int | None = None,
        retry: int = 0,
        timeout: float | Mapping[_Limit, float] | None = None,
        window: int = 64,
        max_bytes: int = 33554432,
    ) -> Stream: ...
    def ingest(
        self,
        table: str,
        data: ArrowStream | ArrowArray | Iterable[_Rows] | AsyncIterable[_Rows],
        *,
        mode: Literal["create", "append", "replace", "create_append"] = "append",
        options: Mapping[str, _Option] | None = None,
        busy: float | None = None,
    ) -> Stream: ...
    async def execute(
        self,
        sql: str,
        parameters: ArrowStream | ArrowArray | Sequence[Any]
        | Mapping[str, Any] | Iterator[_Rows] | AsyncIterable[_Rows]
        | None = None,
        *,
        options: Mapping[str, _Option] | None = None,
        update: bool = True,
        by_name: bool = False,
        busy: float | None = None,
    ) -> int: ...
    def session(
        self,
        *,
        autocommit: bool = False,
        options: Mapping[str, _Option] | None = None,
    ) -> Session: ...
    def connection(
        self,
        *,
        autocommit: bool = False,
        options: Mapping[str, _Option] | None = None,
        timeout: float | None = None,
    ) -> Connection: ...
    def close(self) -> None: ...
    async def aclose(self, *, seconds: float | None = 1.0) -> None: ...
    def stats(self) -> dict[str, int]: ...
    def __enter__(self) -> Self: ...
    def __exit__(self, *exc_info: object) -> None: ...
    async def __aenter__(self) -> Self: ...
    async def __aexit__(self, *exc_info: object) -> None: ...

class Session(_Catalog):
    def query(
        self,
        sql: str,
        parameters: ArrowStream | ArrowArray | Sequence[Any]
        | Mapping[str, Any] | Iterator[_Rows] | AsyncIterable[_Rows]
        | None = None,
        *,
        options: Mapping[str, _Option] | None = None,
        update: bool = False,
        by_name: bool = False,
        busy: float | None = None,
        batch_bytes: int | None = None,
        parallel: int | None = None,
        retry: int = 0,
        timeout: float | Mapping[_Limit, float] | None = None,
        window: int = 64,
        max_bytes: int = 33554432,
    ) -> Stream: ...
    def ingest(
        self,
        table: str,
        data: ArrowStream | ArrowArray | Iterable[_Rows] | AsyncIterable[_Rows],
        *,
        mode: Literal["create", "append", "replace", "create_append"] = "append",
        options: Mapping[str, _Option] | None = None,
        busy: float | None = None,
    ) -> Stream: ...
    async def execute(
        self,
        sql: str,
        parameters: ArrowStream | ArrowArray | Sequence[Any]
        | Mapping[str, Any] | Iterator[_Rows] | AsyncIterable[_Rows]
        | None = None,
        *,
        options: Mapping[str, _Option] | None = None,
        update: bool = True,
        by_name: bool = False,
        busy: float | None = None,
    ) -> int: ...
    def transaction(self) -> Transaction: ...
    async def begin(self) -> None: ...
    async def commit(self) -> None: ...
    async def rollback(self) -> None: ...
    async def __aenter__(self) -> Self: ...
    async def __aexit__(self, *exc_info: object) -> None: ...

@final
class Transaction:
    async def __aenter__(self) -> Self: ...
    async def __aexit__(self, *exc_info: object) -> None: ...

_Values: TypeAlias = Sequence[Any] | Mapping[str, Any]
_Column: TypeAlias = tuple[str, pa.DataType, None, None, None, None, None]

def connect(
    uri: str | None = None,
    *,
    driver: str | None = None,
    entrypoint: str | None = None,
    options: Mapping[str, _Option] | None = None,
    connection_options: Mapping[str, _Option] | None = None,
    autocommit: bool = False,
    connect: float = 10.0,
    lock: float | None = None,
    timeout: float | None = None,
    batch_bytes: int | None = None,
) -> Connecting: ...

@final
class Connecting:
    def __await__(self) -> Generator[Any, Any, Connection]: ...
    async def __aenter__(self) -> Connection: ...
    async def __aexit__(self, *exc_info: object) -> None: ...

class Connection:
    Warning: Final[type[Warning]]
    Error: Final[type[Error]]
    InterfaceError: Final[type[InterfaceError]]
    DatabaseError: Final[type[DatabaseError]]
    DataError: Final[type[DataError]]
    OperationalError: Final[type[OperationalError]]
    IntegrityError: Final[type[IntegrityError]]
    InternalError: Final[type[InternalError]]
    ProgrammingError: Final[type[ProgrammingError]]
    NotSupportedError: Final[type[NotSupportedError]]
    @property
    def autocommit(self) -> bool: ...
    @property
    def closed(self) -> bool: ...
    def cursor(
        self,
        *,
        options: Mapping[str, _Option] | None = None,
        timeout: float | None = None,
    ) -> Cursor: ...
    async def execute(
        self,
        operation: str,
        parameters: ArrowStream | ArrowArray | _Values | None = None,
        *,
        timeout: float | None = None,
    ) -> Cursor: ...
    def adbc_cancel(self) -> None: ...
    def transaction(self) -> Transaction: ...
    async def commit(self) -> None: ...
    async def rollback(self) -> None: ...
    async def close(self) -> None: ...
    async def __aenter__(self) -> Self: ...
    async def __aexit__(self, *exc_info: object) -> None: ...

class Cursor:
    arraysize: int
    rowcount: int
    @property
    def connection(self) -> Connection: ...
    @property
    def description(self) -> list[_Column] | None: ...
    @property
    def rownumber(self) -> int | None: ...
    async def execute(
        self,
        operation: str,
        parameters: ArrowStream | ArrowArray | _Values | None = None,
        *,
        timeout: float | None = None,
    ) -> Self: ...
    async def executemany(
        self,
        operation: str,
        seq_of_parameters: ArrowStream | ArrowArray | Iterable[_Values]
        | AsyncIterable[ArrowStream | ArrowArray],
        *,
        timeout: float | None = None,
    ) -> None: ...
    async def adbc_ingest(
        self,
        table_name: str,
        data: ArrowStream | ArrowArray | Iterable[_Rows] | AsyncIterable[_Rows],
        mode: Literal["create", "append", "replace", "create_append"] = "create",
        *,
        catalog_name: str | None = None,
        db_schema_name: str | None = None,
        temporary: bool = False,
        timeout: float | None = None,
    ) -> int: ...
    def adbc_cancel(self) -> None: ...
    async def fetchone(self) -> tuple[Any, ...] | None: ...
    async def fetchmany(self, size: int | None = None) -> list[tuple[Any, ...]]: ...
    async def fetchall(self) -> list[tuple[Any, ...]]: ...
    async def fetch_arrow_table(self) -> pa.Table: ...
    async def fetchallarrow(self) -> pa.Table: ...
    async def fetch_df(self) -> Any: ...
    async def fetch_polars(self) -> Any: ...
    def fetch_record_batch(self) -> AsyncIterator[pa.RecordBatch]: ...
    def __aiter__(self) -> Self: ...
    async def __anext__(self) -> tuple[Any, ...]: ...
    async def close(self) -> None: ...
    async def __aenter__(self) -> Self: ...
    async def __aexit__(self, *exc_info: object) -> None: ...
    async def callproc(
        self, procname: str, parameters: Sequence[Any] = ()
    ) -> None: ...
    def setinputsizes(self, sizes: Sequence[Any]) -> None: ...
    def setoutputsize(self, size: int, column: int | None = None) -> None: ...
