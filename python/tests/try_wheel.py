# SPDX-License-Identifier: Apache-2.0
"""The duties of a wheel in an otherwise empty environment: with the standard
library alone a stream of made-up batches is read on asyncio, and becomes Arrow
IPC, compressed by each library inside the wheel, and text. Prints one line."""
import asyncio
import ctypes
import os
import sys

import uvarrow
import uvarrow.adbc

SCHEMA = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class Schema(ctypes.Structure):
    _fields_ = [("format", ctypes.c_char_p), ("name", ctypes.c_char_p),
                ("metadata", ctypes.c_char_p), ("flags", ctypes.c_int64),
                ("n_children", ctypes.c_int64), ("children", ctypes.c_void_p),
                ("dictionary", ctypes.c_void_p), ("release", SCHEMA),
                ("private_data", ctypes.c_void_p)]


class Array(ctypes.Structure):
    _fields_ = [("length", ctypes.c_int64), ("null_count", ctypes.c_int64),
                ("offset", ctypes.c_int64), ("n_buffers", ctypes.c_int64),
                ("n_children", ctypes.c_int64),
                ("buffers", ctypes.POINTER(ctypes.c_void_p)),
                ("children", ctypes.c_void_p), ("dictionary", ctypes.c_void_p),
                ("release", SCHEMA), ("private_data", ctypes.c_void_p)]


released = []


@SCHEMA
def release_schema(address):
    Schema.from_address(address).release = SCHEMA()


@SCHEMA
def release_array(address):
    Array.from_address(address).release = SCHEMA()
    released.append(address)


def capsule(struct, name):
    new = ctypes.pythonapi.PyCapsule_New
    new.restype = ctypes.py_object
    new.argtypes = ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p
    return new(ctypes.addressof(struct), name, None)


class Rows:
    """Rows without columns."""

    def __init__(self, rows):
        self._nothing = (ctypes.c_void_p * 1)(None)
        self._schema = Schema(b"+s", b"", None, 0, 0, None, None,
                              release_schema, None)
        self._array = Array(rows, 0, 0, 1, 0, self._nothing, None, None,
                            release_array, None)

    def __arrow_c_array__(self, requested_schema=None):
        return (capsule(self._schema, b"arrow_schema"),
                capsule(self._array, b"arrow_array"))


async def main():
    kept = [Rows(i) for i in range(100)]
    async with uvarrow.stream(kept).limit(sum(range(90))) as rows:
        assert [len(batch) async for batch in rows] == list(range(90))
        await rows.aclose(seconds=None)
    for compression in None, "lz4", "zstd":
        chunks = uvarrow.ipc(uvarrow.stream([Rows(3)]), compression=compression)
        whole = b"".join([bytes(chunk) async for chunk in chunks])
        assert whole[:4] == b"\xff\xff\xff\xff"
    lines = uvarrow.json(uvarrow.stream([Rows(3)]))
    assert b"".join([bytes(line) async for line in lines]) == b"{}\n" * 3
    try:
        await uvarrow.adbc.Pool("no_such_driver").execute("SELECT 1")
    except uvarrow.Error as error:
        assert "no_such_driver" in str(error)
    assert "pyarrow" not in sys.modules
    assert [file for file in os.listdir(os.path.dirname(uvarrow.__file__))
            if file.startswith("libuvarrow-sqlite.so.")]


asyncio.run(main())
assert len(released) > 90
print("python", sys.version.split()[0], "uvarrow", uvarrow.__version__, "works")
