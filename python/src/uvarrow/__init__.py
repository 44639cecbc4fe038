# SPDX-License-Identifier: Apache-2.0
"""Arrow data for event loops: `async for` over anything that blocks.

    async with uvarrow.stream(reader) as rows:
        print(await rows.schema())
        async for batch in rows:
            print(len(batch), batch.to_pyarrow())

`stream()` reads any object with `__arrow_c_stream__` (a pyarrow reader or
table, a DuckDB relation, a polars frame, an ADBC cursor) on a worker thread,
with back-pressure, and delivers its batches on the running event loop: asyncio,
uvloop, trio, anyio, and by `uvarrow.gevent` in greenlets. A batch has
`__arrow_c_array__`, so any library takes it without a copy. `to_reader()` is the
other way, `ipc()`, `csv()` and `json()` make bytes for a network, and `uvarrow.adbc`
queries databases.
"""
from sys import abiflags as _abiflags

if "t" in _abiflags: # its module would be searched for in vain
    raise ImportError("uvarrow needs the GIL, and this Python is free-threaded: "
                      "use the ordinary build of the same version")

from . import _core, _pickle
from ._dlpack import from_dlpack
from ._error import Error
from ._host import EXIT_STUCK
from ._options import configure
from ._runtime import RuntimeStats, drain, stats
from ._source import file, ipc_reader
from ._stream import (DeviceReader, Failure, Reader, StageStats, Stream, concat,
                      merge, stream, to_reader)
from ._chunks import csv, ipc, json
from . import adbc, asgi

Batch = _core.Batch
Column = _core.Column
Schema = _core.Schema

__all__ = ["Batch", "Column", "DeviceReader", "EXIT_STUCK", "Error", "Failure",
           "Reader", "RuntimeStats", "Schema", "StageStats", "Stream", "adbc",
           "asgi",
           "concat", "configure", "csv", "drain", "file", "from_dlpack", "ipc",
           "ipc_reader", "json", "merge", "stats", "stream", "to_reader"]
__version__ = _core.version
