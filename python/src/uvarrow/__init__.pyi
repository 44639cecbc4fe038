# The types of the public names. tests/test_types.py checks them.
from collections.abc import (AsyncGenerator, AsyncIterable, Awaitable, Callable,
                             Coroutine, Iterable, Iterator, Sequence)
from os import PathLike
from socket import socket
from typing import Any, Final, Literal, NamedTuple, Protocol, Self, TypeAlias, final, overload

import pyarrow as pa
from typing_extensions import Buffer, CapsuleType

from . import adbc as adbc
from . import asgi as asgi

__all__ = ["Batch", "Column", "DeviceReader", "EXIT_STUCK", "Error", "Failure",
           "Reader", "RuntimeStats", "Schema", "StageStats", "Stream", "adbc",
           "asgi",
           "concat", "configure", "csv", "drain", "file", "from_dlpack", "ipc",
           "ipc_reader", "json", "merge",
           "stats", "stream", "to_reader"]
__version__: Final[str]
EXIT_STUCK: Final[int]

class ArrowSchema(Protocol):
    def __arrow_c_schema__(self) -> object: ...

class ArrowArray(Protocol):
    def __arrow_c_array__(
        self, requested_schema: object | None = None
    ) -> tuple[object, object]: ...

class ArrowDeviceArray(Protocol):
    def __arrow_c_device_array__(
        self, requested_schema: object | None = None, **kwargs: Any
    ) -> tuple[object, object]: ...

class ArrowStream(Protocol):
    def __arrow_c_stream__(
        self, requested_schema: object | None = None
    ) -> object: ...

class ArrowDeviceStream(Protocol):
    def __arrow_c_device_stream__(
        self, requested_schema: object | None = None, **kwargs: Any
    ) -> object: ...

_Array: TypeAlias = ArrowArray | ArrowDeviceArray
_Stream: TypeAlias = ArrowStream | ArrowDeviceStream
_Source: TypeAlias = (
    _Stream | _Array | CapsuleType | Iterable[_Stream | _Array]
)

_AsyncSource: TypeAlias = (
    AsyncIterable[_Stream | _Array]
    | Callable[[], AsyncIterable[_Stream | _Array]]
    | Callable[[], Coroutine[Any, Any, _Source | AsyncIterable[_Stream | _Array]]]
)

# A number, such as a bool, also one of numpy: `__bool__` alone fits None, too
class Truth(Protocol):
    def __bool__(self) -> bool: ...
    def __float__(self) -> float: ...

class Error(OSError):
    metadata: dict[str, str]

@final
class Schema:
    @property
    def names(self) -> list[str]: ...
    def to_pyarrow(self) -> pa.Schema: ...
    def __arrow_c_schema__(self) -> object: ...
    def __len__(self) -> int: ...

@final
class Batch:
    @property
    def schema(self) -> Schema: ...
    @property
    def ordinal(self) -> int: ...
    @property
    def nbytes(self) -> int: ...
    @property
    def num_rows(self) -> int: ...
    @property
    def num_columns(self) -> int: ...
    @property
    def column_names(self) -> list[str]: ...
    def select(self, mask: ArrowArray | Buffer, /) -> Batch: ...
    def to_pandas(self) -> Any: ...
    def to_polars(self) -> Any: ...
    def _repr_html_(self) -> str: ...
    def __arrow_c_stream__(
        self, requested_schema: object | None = None
    ) -> object: ...
    def get_total_buffer_size(self) -> int: ...
    @property
    def device(self) -> tuple[int, int]: ...
    def to_pyarrow(self) -> pa.RecordBatch: ...
    def ipc(
        self, *, compression: Literal["lz4", "zstd"] | None = None
    ) -> bytes: ...
    def column(self, which: int | str, /) -> Column: ...
    def close(self) -> None: ...
    def __arrow_c_array__(
        self, requested_schema: object | None = None
    ) -> tuple[object, object]: ...
    def __arrow_c_device_array__(
        self, requested_schema: object | None = None, **kwargs: Any
    ) -> tuple[object, object]: ...
    def __arrow_c_schema__(self) -> object: ...
    def __len__(self) -> int: ...

@final
class Column:
    def __dlpack__(
        self,
        *,
        stream: int | None = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any: ...
    def __dlpack_device__(self) -> tuple[int, int]: ...
    def __len__(self) -> int: ...

class Tensor(Protocol):
    def __dlpack__(self) -> object: ...
    def __dlpack_device__(self) -> tuple[int, int]: ...

class _Writes(Protocol):
    def write(self, text: str, /) -> object: ...

class StageStats(NamedTuple):
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

class RuntimeStats(NamedTuple):
    streams_open: int
    streams_held: int
    threads_compute: int
    threads_blocking: int
    threads_stuck: int
    calls_stuck: int
    peer_breaches: int
    late_calls: int
    turns: int
    memory_held: int
    memory_excess: int
    tasks_revoked: int
    hold_max: float
    hold_max_cpu: float

class Failure(NamedTuple):
    error: BaseException
    attempt: int
    batches: int
    rows: int

_Kept: TypeAlias = Truth | Batch | ArrowArray | Buffer

class Stream:
    def __aiter__(self) -> Self: ...
    def __anext__(self) -> Awaitable[Batch]: ...
    async def __aenter__(self) -> Self: ...
    async def __aexit__(self, *exc_info: object) -> None: ...
    async def schema(self) -> Schema: ...
    @property
    def metadata(self) -> dict[str, str]: ...
    async def read_all(self) -> list[Batch]: ...
    def cancel(self, reason: str | None = None) -> None: ...
    async def aclose(self, *, seconds: float | None = 0.002) -> None: ...
    @overload
    def map(
        self,
        function: Callable[[Batch], Coroutine[Any, Any, _Array]],
        schema: ArrowSchema | None = None,
        *,
        concurrency: None = None,
        ordered: bool = True,
    ) -> Self: ...
    @overload
    def map(
        self,
        function: Callable[[Batch], Awaitable[_Array]],
        schema: ArrowSchema | None = None,
        *,
        concurrency: int,
        ordered: bool = True,
    ) -> Self: ...
    @overload
    def map(
        self,
        function: Callable[[Batch], _Array],
        schema: ArrowSchema | None = None,
        *,
        concurrency: None = None,
        ordered: bool = True,
    ) -> Self: ...
    @overload
    def filter(
        self,
        function: Callable[[Batch], Coroutine[Any, Any, _Kept]],
        *,
        concurrency: None = None,
        ordered: bool = True,
    ) -> Self: ...
    @overload
    def filter(
        self,
        function: Callable[[Batch], Awaitable[_Kept]],
        *,
        concurrency: int,
        ordered: bool = True,
    ) -> Self: ...
    @overload
    def filter(
        self,
        function: Callable[[Batch], _Kept],
        *,
        concurrency: None = None,
        ordered: bool = True,
    ) -> Self: ...
    def transform(
        self,
        function: Callable[[Batch], Iterator[_Array] | list[Any]],
        schema: ArrowSchema | None = None,
        *,
        finish: Callable[[], Iterator[_Array] | list[Any]] | None = None,
    ) -> Self: ...
    def cast(self, schema: ArrowSchema) -> Self: ...
    def limit(self, rows: int) -> Self: ...
    def rebatch(
        self,
        *,
        rows: int = 0,
        bytes: int = 0,
        wait: float = 0.0,
        window: int = 0,
        max_bytes: int = 0,
    ) -> Self: ...
    def without_offsets(self) -> Self: ...
    def timeout(
        self,
        *,
        open: float = 0.0,
        first: float = 0.0,
        between: float = 0.0,
        total: float = 0.0,
    ) -> Self: ...
    def parallel(
        self,
        workers: int = 0,
        *,
        unordered: bool = False,
        window: int = 0,
        max_bytes: int = 0,
    ) -> Self: ...
    def throttle(self, *, batches: int = 0, bytes: int = 0) -> Self: ...
    def retry(
        self,
        function: Callable[[Failure], Stream | None],
        *,
        times: int | None = 3,
        delay: float = 0.1,
        delay_max: float = 10.0,
        resume: bool = False,
    ) -> Self: ...
    def tee(
        self,
        *,
        slow: Literal["wait", "drop_new", "drop_old", "fail"] = "wait",
        window: int = 0,
        max_bytes: int = 0,
        first_window: int = 0,
        first_bytes: int = 0,
    ) -> Stream: ...
    def priority(self, number: int) -> Self: ...
    def pause(self) -> None: ...
    def resume(self) -> None: ...
    def trace(
        self, function: Callable[[str, int, int, float], object]
    ) -> Self: ...
    def name(self, text: str) -> Self: ...
    def progress(self, text: str = "", *, file: _Writes | None = None) -> Self: ...
    def stats(self) -> list[StageStats]: ...
    def to_reader(
        self, *, window: int = 64, max_bytes: int = 33554432
    ) -> Reader: ...
    def to_device_reader(
        self, *, window: int = 64, max_bytes: int = 33554432
    ) -> DeviceReader: ...

class DeviceReader:
    def __init__(self, capsule: CapsuleType) -> None: ...
    def __arrow_c_device_stream__(
        self, requested_schema: object | None = None, **kwargs: Any
    ) -> object: ...
    def __arrow_c_schema__(self) -> object: ...

class Reader:
    def __init__(self, capsule: CapsuleType) -> None: ...
    def __arrow_c_stream__(
        self, requested_schema: object | None = None
    ) -> object: ...
    def __arrow_c_schema__(self) -> object: ...

_Mixed: TypeAlias = Stream | _AsyncSource | _Stream | _Array | Callable[[], _Source]

@overload
def stream(
    source: Sequence[_Mixed],
    *,
    window: int = 64,
    max_bytes: int = 33554432,
    interrupt: Callable[[], object] | None = None,
    close: Callable[[], object] | None = None,
    own_thread: bool = False,
    device_type: int | None = None,
) -> Stream: ...
@overload
def stream(
    source: Stream | _AsyncSource | Callable[[], _Source] | _Source,
    *,
    window: int = 64,
    max_bytes: int = 33554432,
    interrupt: Callable[[], object] | None = None,
    close: Callable[[], object] | None = None,
    own_thread: bool = False,
    device_type: int | None = None,
) -> Stream: ...
class _HasFileno(Protocol):
    def fileno(self) -> int: ...

class _Reads(Protocol):
    async def read(self, n: int, /) -> bytes: ...

class _ReceivesSome(Protocol):
    async def receive_some(self, n: int, /) -> bytes: ...

class _Receives(Protocol):
    async def receive(self, n: int, /) -> bytes: ...

def file(
    path: str | PathLike[str] | _HasFileno,
    *,
    format: Literal["arrow", "parquet", "csv", "json", "orc"] | None = None,
    mmap: bool = False,
    window: int = 64,
    max_bytes: int = 33554432,
) -> Stream: ...
def ipc_reader(
    reader: socket | _Reads | _ReceivesSome | _Receives | AsyncIterable[bytes],
    *,
    window: int = 64,
    max_bytes: int = 33554432,
) -> Stream: ...
def merge(
    first: Stream,
    *others: Stream,
    schema: ArrowSchema | None = None,
    keep_going: bool = False,
    cast: bool = False,
    open_at_once: int = 0,
    window: int = 0,
    max_bytes: int = 0,
) -> Stream: ...
def concat(
    first: Stream,
    *others: Stream,
    schema: ArrowSchema | None = None,
    cast: bool = False,
    open_at_once: int = 0,
) -> Stream: ...
def configure(
    *,
    memory_bytes: int | None = None,
    measure: bool | None = None,
    check: bool | None = None,
    threads: int | None = None,
) -> None: ...
def stats() -> RuntimeStats: ...
async def drain(seconds: float | None = None) -> None: ...
def to_reader(
    iterable: AsyncIterable[ArrowArray],
    schema: ArrowSchema,
    *,
    window: int = 8,
    max_bytes: int = 33554432,
) -> Reader: ...
@overload
def ipc(
    source: Stream, *, compression: Literal["lz4", "zstd"] | None = None,
    file: bool = False, as_bytes: Literal[False] = False,
) -> AsyncGenerator[memoryview, None]: ...
@overload
def ipc(
    source: Stream, *, compression: Literal["lz4", "zstd"] | None = None,
    file: bool = False, as_bytes: Literal[True],
) -> AsyncGenerator[bytes, None]: ...
@overload
def csv(
    source: Stream, *, delimiter: str = ",", header: bool = True, null: str = "",
    crlf: bool = False, as_stored: bool = False, as_bytes: Literal[False] = False,
) -> AsyncGenerator[memoryview, None]: ...
@overload
def csv(
    source: Stream, *, delimiter: str = ",", header: bool = True, null: str = "",
    crlf: bool = False, as_stored: bool = False, as_bytes: Literal[True],
) -> AsyncGenerator[bytes, None]: ...
@overload
def json(
    source: Stream, *, array: bool = False, as_stored: bool = False, as_bytes: Literal[False] = False,
) -> AsyncGenerator[memoryview, None]: ...
@overload
def json(
    source: Stream, *, array: bool = False, as_stored: bool = False, as_bytes: Literal[True],
) -> AsyncGenerator[bytes, None]: ...
def from_dlpack(tensor: Tensor, /, name: str = "") -> Batch: ...
