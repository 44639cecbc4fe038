from collections.abc import AsyncIterable, Iterable, Iterator, Mapping, Sequence
from os import PathLike
from typing import Any, Literal, NamedTuple, Self, TypeAlias

from . import ArrowArray, ArrowStream, Schema, Stream

__all__ = ["Pool", "Session", "Table"]

_Option: TypeAlias = str | int | float | PathLike[str]
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
    async def query_partitions(
        self,
        sql: str,
        parameters: Any = None,
        *,
        options: Mapping[str, _Option] | None = None,
        by_name: bool = False,
        busy: float | None = None,
    ) -> list[bytes]: ...

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
    def close(self) -> None: ...
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
    async def begin(self) -> None: ...
    async def commit(self) -> None: ...
    async def rollback(self) -> None: ...
    async def __aenter__(self) -> Self: ...
    async def __aexit__(self, *exc_info: object) -> None: ...
