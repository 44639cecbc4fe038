#!/usr/bin/env python3
"""The golden files of Arrow, read as Arrow C++ reads them.

    golden_files.py MODULE

UVA_ARROW_TESTING names a copy of the repository apache/arrow-testing; without
one this is skipped. Each stream and each file is read from a file and through a
pipe, and has the schema and the values that Arrow C++ reads.
"""

import ctypes
import os
import pathlib
import sys

import pyarrow as pa

from ipc_tables import decode

SKIPPED = 77
FOLDER = "data/arrow-ipc-stream/integration"


def by_arrow(path):
    data = path.read_bytes()
    if path.suffix == ".stream":
        with pa.ipc.open_stream(data) as reader:
            return reader.schema, list(reader)
    with pa.ipc.open_file(data) as reader:
        return reader.schema, [reader.get_batch(i)
                               for i in range(reader.num_record_batches)]


def check(module, path):
    schema, batches = by_arrow(path)
    for piped, mapped in (False, False), (False, True), (True, False):
        with decode(module, path.read_bytes(), piped=piped,
                    mapped=mapped) as read:
            assert read.schema.equals(schema, check_metadata=True), read.schema
            found = list(read)
        assert len(found) == len(batches), len(found)
        for batch, expected in zip(found, batches):
            batch.validate()  # not in full: some decimals have too many digits
            assert batch.equals(expected), expected.schema


def main():
    if "UVA_ARROW_TESTING" not in os.environ:
        print("UVA_ARROW_TESTING is not set")
        sys.exit(SKIPPED)
    module = ctypes.CDLL(sys.argv[1])
    folder = pathlib.Path(os.environ["UVA_ARROW_TESTING"]) / FOLDER
    paths = [path for path in sorted(folder.glob("*/*"))
             if path.suffix in (".stream", ".arrow_file")]
    for path in paths:
        try:
            check(module, path)
        except BaseException:
            print(f"{path} is read wrongly", file=sys.stderr)
            raise
    print(f"{len(paths)} files are read")
    assert len(paths) > 100, folder


if __name__ == "__main__":
    main()
