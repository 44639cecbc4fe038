#!/usr/bin/env python3
"""Random tables of every Arrow type, encoded as Arrow IPC and read again.

    ipc_tables.py MODULE [SEED [TABLES]]

The encoder writes them as a stream and as a file, plain and compressed. Arrow
C++ reads both, checks each batch in full, and has the rows that must be in it;
so does the decoder, which also reads them as Arrow C++ writes them; nanoarrow
reads the streams of its types, if it is installed. A failure prints the seed
of its table.
"""

import contextlib
import ctypes
import decimal
import errno
import io
import itertools
import os
import sys
import tempfile
import threading

import pyarrow as pa

import random_tables

try:
    import nanoarrow.ipc
    from nanoarrow._utils import NanoarrowException
except ImportError:
    nanoarrow = None

STREAM, FILE, OURS = 0, 1, 2
PLAIN, LZ4, ZSTD = 0, 1, 2
MORE = [
    pa.int16(), pa.uint8(), pa.uint32(), pa.uint64(), pa.float16(),
    pa.date64(), pa.time32("s"), pa.time32("ms"), pa.time64("us"),
    pa.time64("ns"), pa.timestamp("s"), pa.timestamp("ns", "Europe/Paris"),
    pa.duration("s"), pa.decimal32(7, 2), pa.decimal64(15, -1), pa.binary(0),
]


class Tables(random_tables.Tables):
    """Adds types, metadata, and dictionaries that grow or stay."""

    def type(self, depth):
        if self.some(8) == 0:
            return self.random.choice(MORE)
        if depth > 0 and self.some(12) == 0:  # a dictionary of dictionaries
            return pa.dictionary(pa.int8(), pa.struct(self.fields(2, 1)))
        if depth > 0 and self.some(12) == 0:
            return pa.struct(self.marked(self.fields(2, depth - 1)))
        return super().type(depth)

    def marked(self, fields):
        """Some have metadata."""
        return [field.with_metadata({"key": field.name, "": "\0"})
                if self.some(5) == 0 else field for field in fields]

    def array(self, kind, count, nulls=True):
        made = super().array(kind, count + self.some(2) * 11, nulls)
        return made.slice(len(made) - count)  # begins anywhere in a byte

    def value(self, kind):
        if pa.types.is_time(kind) or pa.types.is_date64(kind):
            return self.some(80) * (86400000 if kind == pa.date64() else 1000)
        if pa.types.is_timestamp(kind) and kind.unit == "s":
            return self.some(1 << 30)
        if pa.types.is_decimal(kind):
            return decimal.Decimal(self.some(1000) * 10)
        return super().value(kind)

    def dictionary(self, kind, count, mask):
        """Sometimes a dictionary of before, sometimes with more values."""
        before = getattr(self, "before", None)
        if before is None:
            before = self.before = {}
        values = before.get(str(kind))
        if values is None or self.some(4) == 0:
            values = self.array(kind.value_type, 1 + self.some(5), False)
        elif self.some(2) == 0 and not nests_dictionary(kind.value_type):
            values = self.more(values)
        before[str(kind)] = values
        return pa.DictionaryArray.from_arrays(
            pa.array([None if null else self.some(len(values))
                      for null in mask], kind.index_type), values)

    def more(self, values):
        try:
            return pa.concat_arrays(
                [values, self.array(values.type, self.some(4), False)])
        except (NotImplementedError, pa.ArrowInvalid):
            return values

    def schema(self):
        schema = pa.schema(self.marked(self.fields(1 + self.some(4), 3)))
        if self.some(3) == 0:
            schema = schema.with_metadata({"of": "the schema", "empty": ""})
        return schema

    def table(self):
        schema = self.schema()
        return schema, [self.batch(schema) for _ in range(self.some(8))]


def nests_dictionary(kind):
    return pa.types.is_dictionary(kind) or any(
        nests_dictionary(kind.field(i).type) for i in range(kind.num_fields))


def encode(module, schema, batches, form, codec):
    """The bytes that the encoder writes."""
    given = ctypes.create_string_buffer(40)
    text = ctypes.create_string_buffer(1024)
    reader = pa.RecordBatchReader.from_batches(schema, batches)
    reader._export_to_c(ctypes.addressof(given))
    with tempfile.TemporaryFile() as file:
        code = module.ipc_encode(given, form, codec, file.fileno(), text,
                                 len(text))
        if code != 0:
            raise OSError(code, text.value.decode())
        file.seek(0)
        return file.read()


MAPPED = itertools.cycle((False, True))


def decode(module, data, need_end_mark=False, piped=False, mapped=None):
    """The reader of these bytes: from a file, which is mapped or not, or in turn;
    or through a pipe."""
    given = ctypes.create_string_buffer(40)
    text = ctypes.create_string_buffer(1024)
    with contextlib.ExitStack() as stack:
        if piped:
            fd, end = os.pipe()
            stack.callback(os.close, fd)
            threading.Thread(target=feed, args=(end, data)).start()
        else:
            file = stack.enter_context(tempfile.TemporaryFile())
            file.write(data)
            file.seek(0)
            fd = file.fileno()
            mapped = next(MAPPED) if mapped is None else mapped
        code = module.ipc_decode(fd, need_end_mark, bool(mapped), given, text,
                                 len(text))
    if code != 0:
        raise OSError(code, text.value.decode())
    return pa.RecordBatchReader._import_from_c(ctypes.addressof(given))


def feed(fd, data):
    try:
        with open(fd, "wb", buffering=0) as file:
            while data:
                data = data[file.write(data):]
    except BrokenPipeError:
        pass


def compare(schema, batches, read, what):
    assert read.schema.equals(schema, check_metadata=True), (what, read.schema)
    found = list(read) if what != FILE else [
        read.get_batch(i) for i in range(read.num_record_batches)]
    assert len(found) == len(batches), (what, len(found), len(batches))
    for batch, expected in zip(found, batches):
        batch.validate(full=True)
        assert batch.to_pylist() == expected.to_pylist(), (
            what, schema, batch.to_pylist(), expected.to_pylist())


def by_arrow(schema, batches, form=STREAM, codec=None):
    """The bytes that Arrow C++ writes."""
    file = io.BytesIO()
    options = pa.ipc.IpcWriteOptions(emit_dictionary_deltas=True,
                                     compression=codec)
    new = pa.ipc.new_stream if form == STREAM else pa.ipc.new_file
    with new(file, schema, options=options) as writer:
        for batch in batches:
            writer.write_batch(batch)
    return file.getvalue()


def read_by_nano(data):
    stream = nanoarrow.ipc.InputStream.from_readable(io.BytesIO(data))
    return pa.table(nanoarrow.ArrayStream(stream)).to_pylist()


def compare_nano(schema, batches, data):
    """Whether nanoarrow reads the rows. It may fail only with files that it
    cannot read from Arrow C++ either."""
    rows = pa.Table.from_batches(batches, schema).to_pylist()
    try:
        read = read_by_nano(data)
    except (NanoarrowException, pa.ArrowException, OSError):
        read = None
    if read == rows:
        return True
    try:
        read = read_by_nano(by_arrow(schema, batches))
    except (NanoarrowException, pa.ArrowException, OSError):
        return False
    assert read != rows, schema
    return False


def check(module, seed, done):
    tables = Tables(seed)
    schema, batches = tables.table()
    for form in STREAM, FILE:
        codec = tables.random.choice([PLAIN, PLAIN, LZ4, ZSTD])
        try:
            data = encode(module, schema, batches, form, codec)
        except OSError as error:
            if "file cannot express" in error.strerror and form == FILE:
                done["replaced"] += 1
                continue
            if error.errno == errno.ENOTSUP and "built without" in error.strerror:
                continue
            raise
        opened = (pa.ipc.open_stream if form == STREAM
                  else pa.ipc.open_file)(data)
        compare(schema, batches, opened, form)
        compare(schema, batches,
                decode(module, data, piped=tables.some(2) == 0), OURS)
        done["read"] += 1
        if form == STREAM:
            stats = opened.stats
            done["deltas"] += stats.num_dictionary_deltas
            done["dictionaries"] += stats.num_dictionary_batches
            done["replacements"] += stats.num_replaced_dictionaries
        if form == STREAM and codec == PLAIN and nanoarrow:
            done["nanoarrow"] += compare_nano(schema, batches, data)


def check_theirs(module, seed, done):
    """The decoder reads the output of Arrow C++."""
    tables = Tables(seed)
    schema, batches = tables.table()
    for form in STREAM, FILE:
        codec = tables.random.choice([None, None, "lz4", "zstd"])
        try:
            data = by_arrow(schema, batches, form, codec)
        except pa.ArrowException:  # a file without replacements; nested deltas
            done["replaced"] += 1
            continue
        try:
            compare(schema, batches,
                    decode(module, data, piped=tables.some(2) == 0), OURS)
        except OSError as error:
            if "built without" not in str(error):
                raise
        done["theirs"] += 1


def check_cut(module):
    """Every cut of a stream is reported, a cut of its marker only if it is
    needed."""
    schema, batches = Tables(7).table()
    data = by_arrow(schema, batches)
    for size in range(0, len(data), 7):
        try:
            list(decode(module, data[:size], need_end_mark=True))
        except (OSError, pa.ArrowException) as error:
            assert "the input ends" in str(error), error
        else:
            assert False, size
    found = list(decode(module, data[:-8]))
    assert len(found) == len(batches)


def main():
    module = ctypes.CDLL(sys.argv[1])
    first = int(sys.argv[2]) if len(sys.argv) > 2 else 1
    tables = int(sys.argv[3]) if len(sys.argv) > 3 else 400
    done = dict.fromkeys(("read", "replaced", "deltas", "dictionaries",
                          "replacements", "nanoarrow", "theirs"), 0)
    for seed in range(first, first + tables):
        try:
            check(module, seed, done)
            check_theirs(module, seed, done)
        except BaseException:
            print(f"the table of seed {seed} is wrong", file=sys.stderr)
            raise
    check_cut(module)
    print(f"{tables} tables:", done)
    assert done["read"] > tables, "hardly any was read"
    assert tables < 400 or (done["deltas"] and done["replacements"])


if __name__ == "__main__":
    main()
