#!/usr/bin/env python3
"""Streams and files of other writers, and faults of form that put no value at
risk: read with the values that Arrow C++ finds.

    ipc_written.py MODULE

The folder `written` has, each as its writer made it:

go_two_dictionaries.arrows  arrow-go 18.8: two fields with dictionaries and
                            equal metadata. Its FlatBuffers builder shares lists
                            of offsets between tables of different sizes.
go_types.arrows, .arrow     arrow-go 18.8: a column of most types, some with
                            metadata.
rust_v4_run_ends.arrows     arrow-rs 60.1: a run-end encoded column in metadata
                            V4, where it has a bitmap.
rust_v4_types.arrows, .arrow  arrow-rs 60.1: columns of numbers, texts, bools,
                            nulls, both unions, run ends, a dictionary, lists, a
                            struct with a union, and a map, in metadata V4.
"""

import ctypes
import io
import pathlib
import struct
import sys

import pyarrow as pa

import ipc_tables

WRITTEN = pathlib.Path(__file__).parent / "written"


def expect(module, data, rows, what):
    """Both ways of reading give these rows."""
    for piped in False, True:
        read = ipc_tables.decode(module, data, piped=piped).read_all()
        read.validate()
        assert read.schema.equals(rows.schema, check_metadata=True), (
            what, read.schema, rows.schema)
        assert read.to_pylist() == rows.to_pylist(), (what, read, rows)


def by_arrow(data):
    is_file = data[:6] == b"ARROW1"
    return (pa.ipc.open_file if is_file else pa.ipc.open_stream)(
        data).read_all()


def check_written(module):
    paths = sorted(WRITTEN.iterdir())
    assert len(paths) == 6
    for path in paths:
        data = path.read_bytes()
        expect(module, data, by_arrow(data), path.name)


def write(column, new=pa.ipc.new_stream):
    """A stream, or a file, with that column, and its rows."""
    batch = pa.record_batch({"x": column})
    file = io.BytesIO()
    with new(file, batch.schema) as writer:
        writer.write_batch(batch)
    return file.getvalue(), pa.table(batch)


def change(data, before, after, count=1):
    """Changes the only numbers like these, or the first of `count`: nodes or
    buffers of a header."""
    before, after = (struct.pack(f"<{len(numbers)}q", *numbers)
                     for numbers in (before, after))
    found = [i for i in range(0, len(data), 8)
             if data.startswith(before, i)]
    assert len(found) == count, found
    return data[:found[0]] + after + data[found[0] + len(after):]


def empty_buffer():
    """It lies nowhere."""
    data, rows = write(pa.array([1, 2, 3], pa.int32()))
    return change(data, (0, 0, 0, 12), (1 << 40 | 3, 0, 0, 12)), rows


def short_bitmap():
    """Without nulls it is not needed."""
    data, rows = write(pa.array(range(20), pa.int8()))
    return change(data, (0, 0, 0, 20), (0, 1, 0, 20)), rows


def nulls_of_union():
    """There is no bitmap that could have them."""
    union = pa.UnionArray.from_sparse(
        pa.array([0] * 5, pa.int8()), [pa.array(range(7, 12), pa.int8())])
    data, rows = write(union)
    return change(data, (5, 0), (5, 9), 2), rows


def length_of_dictionary():
    """The length of its only column is the same statement."""
    data, rows = write(pa.array([17, 18, 19, 18, 17, 16, 15]).dictionary_encode())
    at = [i for i in range(0, len(data) - 16, 8)
          if struct.unpack_from("<q", data, i) == (5,)
          and struct.unpack_from("<q", data, i + 8) != (0,)]
    assert len(at) == 1, at
    return data[:at[0]] + struct.pack("<q", 4) + data[at[0] + 8:], rows


def bytes_behind_magic():
    data, rows = write(pa.array([1]), pa.ipc.new_file)
    return data[:6] + b"\1\2" + data[8:], rows


def order_of_union():
    """The items of one child are not in order."""
    return write(pa.UnionArray.from_dense(
        pa.array([0, 1, 0], pa.int8()), pa.array([1, 0, 0], pa.int32()),
        [pa.array([5, 6]), pa.array(["x"])]))


def odd_place():
    """Which Arrow C++ refuses; arrow-rs and arrow-go read it."""
    numbers = pa.array([11, 12, 13], pa.int32())
    data, rows = write(numbers)
    body = numbers.buffers()[1].to_pybytes()[:12]
    at = data.rindex(body)
    data = data[:at] + bytes(4) + body + data[at + 16:]
    return change(data, (0, 12), (4, 12)), rows


def check_forms(module):
    for make in (empty_buffer, short_bitmap, nulls_of_union,
                 length_of_dictionary, bytes_behind_magic, order_of_union):
        data, rows = make()
        assert by_arrow(data).to_pylist() == rows.to_pylist(), make
        expect(module, data, rows, make.__name__)
    data, rows = odd_place()
    expect(module, data, rows, "odd_place")


def main():
    module = ctypes.CDLL(sys.argv[1])
    check_written(module)
    check_forms(module)


main()
