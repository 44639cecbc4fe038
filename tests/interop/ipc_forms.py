#!/usr/bin/env python3
"""Random tables of every Arrow type in the forms that others write: metadata V4,
the framing before Arrow 0.15, footers of any version, empty buffers as Java
compresses them.

    ipc_forms.py MODULE [SEED [TABLES]]

Arrow C++ writes the tables, some forms are made of its bytes here, and the
decoder has the rows that must be in them. A failure prints the seed of its
table.
"""

import ctypes
import io
import struct
import sys

import pyarrow as pa

from ipc_tables import FILE, OURS, STREAM, Tables, compare, decode

V4 = pa.ipc.MetadataVersion.V4
SCHEMA, DICTIONARY, BATCH = 1, 2, 3
END = b"\xff\xff\xff\xff\0\0\0\0"


def write(schema, batches, form=STREAM, **options):
    """The bytes that Arrow C++ writes."""
    file = io.BytesIO()
    new = pa.ipc.new_stream if form == STREAM else pa.ipc.new_file
    with new(file, schema, options=pa.ipc.IpcWriteOptions(
            emit_dictionary_deltas=True, **options)) as writer:
        for batch in batches:
            writer.write_batch(batch)
    return file.getvalue()


# ---- FlatBuffers --------------------------------------------------------


def number(data, at, form="<i"):
    return struct.unpack_from(form, data, at)[0]


class Flat:
    """A table in a buffer, of which the members can be changed in place."""

    def __init__(self, data, at):
        self.data, self.at = data, at
        self.slots = at - number(data, at)

    @staticmethod
    def root(data):
        return Flat(data, number(data, 0))

    def find(self, slot):
        """Where a member lies; 0: nowhere."""
        if 4 + 2 * slot >= number(self.data, self.slots, "<H"):
            return 0
        offset = number(self.data, self.slots + 4 + 2 * slot, "<H")
        return self.at + offset if offset else 0

    def get(self, slot, form, default=0):
        at = self.find(slot)
        return number(self.data, at, form) if at else default

    def child(self, slot):
        at = self.find(slot)
        return Flat(self.data, at + number(self.data, at)) if at else None

    def vector(self, slot):
        """Where the items lie, and their number."""
        at = self.find(slot)
        if not at:
            return 0, 0
        at += number(self.data, at)
        return at + 4, number(self.data, at)


class Message:
    def __init__(self, head, body):
        self.head, self.body = bytearray(head), body
        self.root = Flat.root(self.head)
        self.kind = self.root.get(1, "<B")

    def batch(self):
        table = self.root.child(2)
        return table.child(1) if self.kind == DICTIONARY else table

    def buffers(self):
        at, count = self.batch().vector(2)
        places = [struct.unpack_from("<qq", self.head, at + 16 * i)
                  for i in range(count)]
        return [self.body[at:at + size] for at, size in places]

    def set_buffers(self, buffers):
        """Makes a new body."""
        at, _ = self.batch().vector(2)
        self.body = b""
        for i, buffer in enumerate(buffers):
            struct.pack_into("<qq", self.head, at + 16 * i, len(self.body),
                             len(buffer))
            self.body += buffer + bytes(-len(buffer) % 8)
        if self.body:
            struct.pack_into("<q", self.head, self.root.find(3), len(self.body))

    def bytes(self):
        return END[:4] + struct.pack("<i", len(self.head)) + self.head + self.body


def split(data):
    """The messages of a stream."""
    at = 0
    while data[at:at + 8] != END:
        size = number(data, at + 4)
        head = data[at + 8:at + 8 + size]
        at += 8 + size
        body = Flat.root(head).get(3, "<q")
        yield Message(head, data[at:at + body])
        at += body


def join(messages):
    return b"".join(message.bytes() for message in messages) + END


# ---- other forms --------------------------------------------------------


def as_java(data):
    """Compressed bodies with a size of 0 where nothing is."""
    out = []
    for message in split(data):
        if message.kind != SCHEMA and message.root.find(3):
            message.set_buffers([buffer or bytes(8)
                                 for buffer in message.buffers()])
        out.append(message)
    return join(out)


def with_footer(data, version):
    """A file of which the footer has another version: 0 is V1."""
    data = bytearray(data)
    size = number(data, len(data) - 10)
    footer = Flat.root(data[-10 - size:-10])
    struct.pack_into("<H", data, len(data) - 10 - size + footer.find(0), version)
    return bytes(data)


def forms(tables, schema, batches):
    """Each form, and whether it is a file."""
    codec = tables.random.choice(["lz4", "zstd"])
    for form in STREAM, FILE:
        for options in ({"metadata_version": V4}, {"use_legacy_format": True},
                        {"metadata_version": V4, "use_legacy_format": True,
                         "compression": tables.random.choice([None, codec])}):
            yield f"{form} {options}", lambda form=form, options=options: write(
                schema, batches, form, **options)
    yield "Java", lambda: as_java(write(schema, batches, compression=codec))
    for version in range(4):
        yield f"footer V{version + 1}", lambda version=version: with_footer(
            write(schema, batches, FILE), version)


def check(module, seed, done):
    tables = Tables(seed)
    schema, batches = tables.table()
    for name, make in forms(tables, schema, batches):
        try:
            data = make()
        except pa.ArrowException:  # a file without replacements; nested deltas
            done["not written"] += 1
            continue
        try:
            read = decode(module, data, piped=tables.some(2) == 0)
            compare(schema, batches, read, OURS)
        except OSError as error:
            if "built without" not in str(error):
                raise OSError(f"{name}: {error}") from error
        except AssertionError as error:
            raise AssertionError(name) from error
        done["read"] += 1


# ---- what is refused ----------------------------------------------------


def refused(module, data, text, ways=(False, True)):
    """From a file and through a pipe."""
    for piped in ways:
        try:
            list(decode(module, data, piped=piped))
        except (OSError, pa.ArrowException) as error:
            assert text in str(error), error
        else:
            assert False, text


def with_nulls(data, bits):
    """The last batch with nulls in its only column, a union of V4 or run ends,
    and a bitmap; None: without one."""
    *messages, batch = split(data)
    nodes, _ = batch.batch().vector(1)
    struct.pack_into("<q", batch.head, nodes + 8, 1)
    buffers = batch.buffers()
    assert buffers[0] == b""
    batch.set_buffers([bits or b""] + buffers[1:])
    return join([*messages, batch])


def check_nulls(module):
    """Until V4 unions may have nulls of their own, which arrays cannot."""
    number = pa.array([7, 8, 9])
    for column in (
            pa.UnionArray.from_sparse(pa.array([0, 0, 0], "i1"), [number]),
            pa.UnionArray.from_dense(pa.array([0, 0, 0], "i1"),
                                     pa.array([0, 1, 2], "i4"), [number]),
            pa.RunEndEncodedArray.from_arrays(pa.array([1, 2, 3], "i4"),
                                              number)):
        batch = pa.record_batch([column], names=["c"])
        data = write(batch.schema, [batch], metadata_version=V4)
        compare(batch.schema, [batch],
                decode(module, with_nulls(data, b"\7")), OURS)
        refused(module, with_nulls(data, b"\5"), "nulls of its own")
        refused(module, with_nulls(data, None), "the bitmap is too short")


def check_versions(module):
    """What V6 changes is not known."""
    schema, batches = Tables(2).table()
    data = write(schema, batches, FILE)
    refused(module, with_footer(data, 5), "version 6", ways=[False])
    compare(schema, batches, decode(module, with_footer(data, 5), piped=True),
            OURS)


def main():
    module = ctypes.CDLL(sys.argv[1])
    first = int(sys.argv[2]) if len(sys.argv) > 2 else 1
    count = int(sys.argv[3]) if len(sys.argv) > 3 else 200
    done = dict.fromkeys(("read", "not written"), 0)
    for seed in range(first, first + count):
        try:
            check(module, seed, done)
        except BaseException:
            print(f"the table of seed {seed} is wrong", file=sys.stderr)
            raise
    check_nulls(module)
    check_versions(module)
    print(f"{count} tables:", done)
    assert done["read"] > 8 * count, "hardly any was read"


if __name__ == "__main__":
    main()
