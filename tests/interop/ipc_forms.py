#!/usr/bin/env python3
"""Random tables of every Arrow type in the forms that others write: metadata V4,
the framing before Arrow 0.15, numbers of the other byte order, footers of any
version, empty buffers as Java compresses them, no end mark.

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

    def tables(self, slot):
        at, count = self.vector(slot)
        return [Flat(self.data, at + 4 * i + number(self.data, at + 4 * i))
                for i in range(count)]


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


# ---- the other byte order -----------------------------------------------


def widths(kind):
    """How each buffer of a type is turned, as they follow each other: the
    sizes of its numbers, 0 for bytes, VIEW for views."""
    types = pa.types
    if isinstance(kind, pa.ExtensionType):
        return widths(kind.storage_type)
    if types.is_null(kind):
        return []
    if types.is_dictionary(kind):
        return widths(kind.index_type)
    if types.is_union(kind):
        dense = [(4,)] if kind.mode == "dense" else []
        return [(), *dense, *below(kind)]
    if types.is_run_end_encoded(kind):
        return widths(kind.run_end_type) + widths(kind.value_type)
    if types.is_struct(kind):
        return [(), *below(kind)]
    if types.is_fixed_size_list(kind):
        return [(), *widths(kind.value_type)]
    if types.is_map(kind):
        return [(), (4,), (), *widths(kind.key_type), *widths(kind.item_type)]
    if types.is_list(kind) or types.is_large_list(kind):
        width = 8 if types.is_large_list(kind) else 4
        return [(), (width,), *widths(kind.value_type)]
    if types.is_list_view(kind) or types.is_large_list_view(kind):
        width = 8 if types.is_large_list_view(kind) else 4
        return [(), (width,), (width,), *widths(kind.value_type)]
    if types.is_string_view(kind) or types.is_binary_view(kind):
        return [(), VIEW]
    if types.is_string(kind) or types.is_binary(kind):
        return [(), (4,), ()]
    if types.is_large_string(kind) or types.is_large_binary(kind):
        return [(), (8,), ()]
    if types.is_fixed_size_binary(kind) or types.is_boolean(kind):
        return [(), ()]
    if types.is_interval(kind):
        return [(), (4, 4, 8)]
    return [(), (kind.bit_width // 8,)]


VIEW = object()


def below(kind):
    return [width for i in range(kind.num_fields)
            for width in widths(kind.field(i).type)]


def turned(buffer, sizes):
    out = bytearray(buffer)
    at = 0
    while sizes and at + sum(sizes) <= len(out):
        for size in sizes:
            out[at:at + size] = out[at:at + size][::-1]
            at += size
    return bytes(out)


def turned_views(buffer):
    """Of a long view, the number of a buffer and a place in it, too."""
    out = bytearray(buffer)
    for at in range(0, len(buffer) - 15, 16):
        long = number(buffer, at) > 12
        for part in (at, at + 8, at + 12) if long else (at,):
            out[part:part + 4] = out[part:part + 4][::-1]
    return bytes(out)


def turn_buffers(message, kinds, codec):
    """Turns the buffers of a batch."""
    at, _ = message.batch().vector(4)
    buffers = iter(message.buffers())
    out = []
    for sizes in kinds:
        out.append(through(codec, next(buffers),
                           turned_views if sizes is VIEW else
                           lambda raw, sizes=sizes: turned(raw, sizes)))
        if sizes is VIEW:
            for _ in range(number(message.head, at, "<q")):
                out.append(next(buffers))
            at += 8
    assert next(buffers, None) is None
    message.set_buffers(out)


def through(codec, buffer, change):
    """Changes a buffer that may be compressed."""
    if codec is None or len(buffer) == 0:
        return change(buffer)
    size = number(buffer, 0, "<q")
    if size == -1:
        return buffer[:8] + change(buffer[8:])
    raw = pa.Codec(codec).decompress(buffer[8:], size, asbytes=True)
    return buffer[:8] + pa.Codec(codec).compress(change(raw), asbytes=True)


def turn_schema(message):
    """Puts a new Message and a new Schema in front: the old one has no place
    for the byte order."""
    root, old = message.root, message.root.child(2)
    front = bytearray(80)
    struct.pack_into("<i", front, 0, 16)
    struct.pack_into("<6H", front, 4, 10, 12, 4, 6, 8, 0)  # slots of Message
    struct.pack_into("<iHBxi", front, 16, 12, root.get(0, "<H"), SCHEMA, 24)
    struct.pack_into("<6H", front, 32, 10, 16, 4, 8, 12, 0)  # slots of Schema
    struct.pack_into("<iHxx", front, 48, 16, 1)
    for slot, at in (1, 56), (2, 60):
        items, _ = old.vector(slot)
        if items:
            struct.pack_into("<i", front, at, len(front) + items - 4 - at)
        else:
            struct.pack_into("<H", front, 36 + 2 * slot, 0)
    return Message(front + message.head, message.body)


def dictionaries(fields, types, found):
    """The type of the values of each dictionary, by its id."""
    for field, kind in zip(fields, types):
        if isinstance(kind, pa.ExtensionType):
            kind = kind.storage_type
        encoding = field.child(4)
        if encoding:
            kind = kind.value_type
            found[encoding.get(0, "<q")] = kind
        dictionaries(field.tables(5), children(kind), found)
    return found


def children(kind):
    if pa.types.is_map(kind):
        return [pa.struct([kind.key_field, kind.item_field])]
    if pa.types.is_run_end_encoded(kind):
        return [kind.run_end_type, kind.value_type]
    return [kind.field(i).type for i in range(kind.num_fields)]


def turn(schema, data, codec=None):
    """The stream as a machine of the other byte order writes it."""
    out = []
    for message in split(data):
        if message.kind == SCHEMA:
            values = dictionaries(message.root.child(2).tables(1), schema.types,
                                  {})
            out.append(turn_schema(message))
            continue
        if message.kind == BATCH:
            kinds = [width for kind in schema.types for width in widths(kind)]
        else:
            kinds = widths(values[message.root.child(2).get(0, "<q")])
        turn_buffers(message, kinds, codec)
        out.append(message)
    return join(out)


# ---- other forms --------------------------------------------------------


def as_java(data):
    """Compressed bodies with a size of 0 where they are empty."""
    out = []
    for message in split(data):
        if message.kind != SCHEMA and message.root.find(3):
            message.set_buffers([buffer or bytes(8)
                                 for buffer in message.buffers()])
        out.append(message)
    return join(out)


def footer_of(data):
    """It can be changed, and where it lies."""
    size = number(data, len(data) - 10)
    return Flat.root(data[-10 - size:-10]), len(data) - 10 - size


def with_footer(data, version):
    """A file of which the footer has another version: 0 is V1."""
    data = bytearray(data)
    footer, at = footer_of(data)
    struct.pack_into("<H", data, at + footer.find(0), version)
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
    yield "big-endian", lambda: turn(schema, write(schema, batches))
    yield "big-endian, compressed", lambda: turn(
        schema, write(schema, batches, compression=codec), codec)
    yield "Java", lambda: as_java(write(schema, batches, compression=codec))
    for version in range(4):
        yield f"footer V{version + 1}", lambda version=version: with_footer(
            write(schema, batches, FILE), version)
    yield "no end mark", lambda: write(schema, batches)[:-8]


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


# ---- refused files ------------------------------------------------------


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
    and a bitmap or None."""
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


def dictionary_twice():
    """A file of two columns, of which the second has the dictionary of the
    first, and another dictionary has come for that."""
    values = ["red", "blue"], ["lion", "mouse"]
    batch = pa.record_batch([pa.array(texts).dictionary_encode()
                             for texts in values], names=["c", "d"])
    data = bytearray(write(batch.schema, [batch], FILE))
    footer, at = footer_of(data)
    places, count = footer.vector(2)
    assert count == 2
    for start, table in ((at, footer.child(1)),
                         (16, Flat.root(data[16:]).child(2))):
        encoding = table.tables(1)[1].child(4)
        struct.pack_into("<q", data, start + encoding.find(0), 0)
    start = number(footer.data, places + 24, "<q") + 8
    header = Flat.root(data[start:]).child(2)
    struct.pack_into("<q", data, start + header.find(0), 0)
    return bytes(data)


def check_dictionaries(module):
    """A file has each dictionary once, and deltas after it."""
    refused(module, dictionary_twice(), "dictionary 0 comes twice")
    batches = [pa.record_batch([pa.DictionaryArray.from_arrays(
        pa.array([len(texts) - 1], "i1"), pa.array(texts))], names=["c"])
               for texts in (["a"], ["a", "b"])]
    data = bytearray(write(batches[0].schema, batches, FILE))
    compare(batches[0].schema, batches, decode(module, data), OURS)
    footer, at = footer_of(data)
    places, _ = footer.vector(2)
    at += places
    data[at:at + 48] = data[at + 24:at + 48] + data[at:at + 24]
    refused(module, data, "dictionary 0 comes twice", ways=[False])


def check_versions(module):
    """The changes of V6 are not known."""
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
    check_dictionaries(module)
    print(f"{count} tables:", done)
    assert done["read"] > 10 * count, "hardly any was read"


if __name__ == "__main__":
    main()
