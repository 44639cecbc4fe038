#!/usr/bin/env python3
"""Random tables of every Arrow type, put through the stages that choose rows.

    random_tables.py MODULE [SEED [TABLES]]

Arrow C++ makes the tables, checks each batch that comes out in full, and has
the rows that must be in it. A failure prints the seed of its table.
"""

import ctypes
import datetime
import decimal
import random
import sys

import pyarrow as pa

LEAVES = [
    pa.int8(), pa.uint16(), pa.int32(), pa.int64(), pa.float32(), pa.float64(),
    pa.bool_(), pa.string(), pa.large_string(), pa.binary(), pa.large_binary(),
    pa.string_view(), pa.binary_view(), pa.binary(5), pa.decimal128(20, 3),
    pa.decimal256(50, 2), pa.date32(), pa.timestamp("us", "UTC"),
    pa.duration("ns"), pa.null(), pa.month_day_nano_interval(),
]
NUMBERS = [
    pa.int8(), pa.int32(), pa.int64(), pa.float64(), pa.binary(5), pa.date32(),
]
INDICES = [pa.int8(), pa.uint8(), pa.int16(), pa.int32(), pa.int64()]
VALUES = [pa.string(), pa.string_view(), pa.int32(), pa.list_(pa.int8())]
ENDS = [pa.int16(), pa.int32(), pa.int64()]
TEXTS = [pa.string(), pa.large_string(), pa.string_view()]


class Stages(ctypes.Structure):
    """struct rows_stages of rows_module.c."""

    _fields_ = [(name, ctypes.c_int64)
                for name in ("rows", "bytes", "limit", "modulus")]
    _fields_ += [("place", ctypes.c_int32), ("window", ctypes.c_int32),
                 ("flat", ctypes.c_int32)]


class Array(ctypes.Structure):
    """struct ArrowArray."""


Array._fields_ = [(name, ctypes.c_int64) for name in (
    "length", "null_count", "offset", "n_buffers", "n_children")] + [
    ("buffers", ctypes.c_void_p),
    ("children", ctypes.POINTER(ctypes.POINTER(Array))),
    ("dictionary", ctypes.POINTER(Array)),
    ("release", ctypes.c_void_p), ("private_data", ctypes.c_void_p)]


class Tables:
    """Draws types and arrays from a seed."""

    def __init__(self, seed):
        self.random = random.Random(seed)

    def some(self, below):
        return self.random.randrange(below)

    def nulls(self, count):
        return [self.random.random() < 0.2 for _ in range(count)]

    # ---- types ----------------------------------------------------------

    def type(self, depth):
        """A type that nests at most `depth` levels."""
        if depth == 0 or self.random.random() < 0.3:
            return self.random.choice(LEAVES)
        below = lambda: self.type(depth - 1)
        return self.random.choice([
            lambda: pa.list_(below()),
            lambda: pa.large_list(below()),
            lambda: pa.list_view(below()),
            lambda: pa.large_list_view(below()),
            lambda: pa.list_(below(), 1 + self.some(3)),
            lambda: pa.struct(self.fields(self.some(4), depth - 1)),
            lambda: pa.map_(pa.string(), below()),
            lambda: pa.sparse_union(self.fields(1 + self.some(3), depth - 1)),
            lambda: self.dense_union(depth - 1),
            lambda: pa.dictionary(self.random.choice(INDICES),
                                  self.random.choice(VALUES)),
            lambda: pa.run_end_encoded(self.random.choice(ENDS),
                                       self.random.choice(LEAVES)),
        ])()

    def fields(self, count, depth):
        return [pa.field(f"f{i}", self.type(depth)) for i in range(count)]

    def dense_union(self, depth):
        count = 1 + self.some(3)
        return pa.dense_union(self.fields(count, depth),
                              self.random.sample(range(127), count))

    # ---- arrays ---------------------------------------------------------

    def array(self, kind, count, nulls=True):
        """An array of `count` random values."""
        mask = self.nulls(count) if nulls else [False] * count
        for test, make in (
                (pa.types.is_null, lambda *_: pa.nulls(count)),
                (pa.types.is_dictionary, self.dictionary),
                (pa.types.is_run_end_encoded, self.runs),
                (pa.types.is_union, self.union),
                (pa.types.is_struct, self.struct),
                (pa.types.is_map, self.map),
                (pa.types.is_fixed_size_list, self.fixed_list),
                (pa.types.is_list, self.list),
                (pa.types.is_large_list, self.list),
                (pa.types.is_list_view, self.view),
                (pa.types.is_large_list_view, self.view)):
            if test(kind):
                return make(kind, count, mask)
        return pa.array([None if null else self.value(kind) for null in mask],
                        kind)

    def dictionary(self, kind, count, mask):
        size = 1 + self.some(5)
        return pa.DictionaryArray.from_arrays(
            pa.array([None if null else self.some(size) for null in mask],
                     kind.index_type),
            self.array(kind.value_type, size, False))

    def runs(self, kind, count, _mask):
        ends = []
        while not ends or ends[-1] < count:
            if count == 0:
                break
            last = ends[-1] if ends else 0
            ends.append(min(count, last + 1 + self.some(4)))
        return pa.RunEndEncodedArray.from_arrays(
            pa.array(ends, kind.run_end_type),
            self.array(kind.value_type, len(ends)))

    def union(self, kind, count, _mask):
        codes, members = list(kind.type_codes), range(kind.num_fields)
        chosen = [self.some(len(codes)) for _ in range(count)]
        ids = pa.array([codes[i] for i in chosen], pa.int8())
        names = [kind.field(i).name for i in members]
        if kind.mode == "sparse":
            return pa.UnionArray.from_sparse(
                ids, [self.array(kind.field(i).type, count) for i in members],
                names, codes)
        offsets = [chosen[:at].count(i) for at, i in enumerate(chosen)]
        return pa.UnionArray.from_dense(
            ids, pa.array(offsets, pa.int32()),
            [self.array(kind.field(i).type, chosen.count(i) + self.some(2))
             for i in members], names, codes)

    def struct(self, kind, count, mask):
        fields = [kind.field(i) for i in range(kind.num_fields)]
        if not fields:
            return pa.array([None if null else {} for null in mask], kind)
        return pa.StructArray.from_arrays(
            [self.array(field.type, count) for field in fields],
            fields=fields, mask=pa.array(mask, pa.bool_()))

    def offsets(self, mask, first):
        """Offsets of lists; None marks a null."""
        ends = [first]
        for _ in mask:
            ends.append(ends[-1] + self.some(4))
        return ends[-1], [None if null else end
                          for null, end in zip(mask + [False], ends)]

    def map(self, kind, count, mask):
        size, offsets = self.offsets(mask, 0)
        return pa.MapArray.from_arrays(
            pa.array(offsets, pa.int32()),
            self.array(kind.key_type, size, False),
            self.array(kind.item_type, size), type=kind)

    def list(self, kind, count, mask):
        wide = pa.types.is_large_list(kind)
        size, offsets = self.offsets(mask, self.some(2))
        return (pa.LargeListArray if wide else pa.ListArray).from_arrays(
            pa.array(offsets, pa.int64() if wide else pa.int32()),
            self.array(kind.value_type, size), type=kind)

    def fixed_list(self, kind, count, mask):
        return pa.FixedSizeListArray.from_arrays(
            self.array(kind.value_type, count * kind.list_size), type=kind,
            mask=pa.array(mask, pa.bool_()))

    def view(self, kind, count, mask):
        wide = pa.types.is_large_list_view(kind)
        number = pa.int64() if wide else pa.int32()
        total = 4 + self.some(6)
        sizes = [self.some(4) for _ in mask]
        offsets = [self.some(total - size + 1) for size in sizes]
        return (pa.LargeListViewArray if wide else pa.ListViewArray).from_arrays(
            pa.array(offsets, number), pa.array(sizes, number),
            self.array(kind.value_type, total), type=kind,
            mask=pa.array(mask, pa.bool_()))

    def value(self, kind):
        """A value of a type that does not nest."""
        if pa.types.is_boolean(kind):
            return self.random.random() < 0.5
        if pa.types.is_floating(kind):
            return float(self.some(1000))
        if pa.types.is_date(kind):
            return datetime.date.fromordinal(700000 + self.some(30000))
        if pa.types.is_timestamp(kind) or pa.types.is_duration(kind):
            return self.some(1 << 30) * 1000
        if pa.types.is_interval(kind):
            return (self.some(9), self.some(9), self.some(9))
        if pa.types.is_decimal(kind):
            return decimal.Decimal(self.some(10**9)) / 100
        if pa.types.is_integer(kind):
            return self.some(100)
        if pa.types.is_fixed_size_binary(kind):
            return self.random.randbytes(kind.byte_width)
        text = "".join(self.random.choice("abcxyz")
                       for _ in range(self.random.choice([0, 1, 12, 13, 40])))
        return text if kind in TEXTS else text.encode()

    # ---- tables ---------------------------------------------------------

    def batch(self, schema, nulls=True):
        count = self.some(25)
        batch = pa.RecordBatch.from_arrays(
            [self.array(field.type, count, nulls) for field in schema],
            schema=schema)
        batch.validate(full=True)
        return batch.slice(self.some(count + 1)) if self.some(3) == 0 else batch

    def numbers(self):
        """A table of numbers, of which few batches have nulls."""
        schema = pa.schema([pa.field(f"n{i}", self.random.choice(NUMBERS))
                            for i in range(1 + self.some(4))])
        often = self.some(2) == 0
        return schema, [self.batch(schema, often and self.some(4) == 0)
                        for _ in range(self.some(12))]

    def table(self):
        if self.some(4) == 0:
            return self.numbers()
        schema = pa.schema(self.fields(1 + self.some(3), 3))
        batches = [self.batch(schema) for _ in range(self.some(12))]
        if batches and self.some(4) == 0:  # one dictionary for all
            batches = batches[:1] * len(batches)
        return schema, batches

    def stages(self):
        choice = self.random.choice
        return Stages(rows=choice([0, 1, 3, 7, 10, 50, 1000]),
                      bytes=choice([0, 0, 50, 500, 5000]),
                      limit=choice([-1, -1, 5, 40]),
                      modulus=choice([0, 0, 2, 3]),
                      place=choice([0, 1, 2]), window=choice([0, 1, 2]),
                      flat=self.some(2))


def play(module, runtime, schema, batches, stages):
    """The batches that come out."""
    given, taken = ctypes.create_string_buffer(40), ctypes.create_string_buffer(40)
    reader = pa.RecordBatchReader.from_batches(schema, batches)
    reader._export_to_c(ctypes.addressof(given))
    code = module.rows_play(ctypes.c_void_p(runtime), given,
                            ctypes.byref(stages), taken)
    assert code == 0, code
    return list(pa.RecordBatchReader._import_from_c(ctypes.addressof(taken)))


def offsets_of(array):
    """Those at every level."""
    yield array.offset
    for i in range(array.n_children):
        yield from offsets_of(array.children[i].contents)
    if array.dictionary:
        yield from offsets_of(array.dictionary.contents)


def has_offset(batch):
    """Whether there is one in it."""
    array, schema = Array(), ctypes.create_string_buffer(72)
    batch._export_to_c(ctypes.addressof(array), ctypes.addressof(schema))
    found = any(offsets_of(array))
    pa.RecordBatch._import_from_c(ctypes.addressof(array),
                                  ctypes.addressof(schema))
    return found


def check(module, runtime, seed):
    tables = Tables(seed)
    schema, batches = tables.table()
    stages = tables.stages()
    expected = []
    for ordinal, batch in enumerate(batches):
        if stages.modulus == 0 or ordinal % stages.modulus == 0:
            expected += batch.to_pylist()
    if stages.limit >= 0:
        expected = expected[:stages.limit]
    result = play(module, runtime, schema, batches, stages)
    for batch in result:
        batch.validate(full=True)
        assert stages.flat == 0 or not has_offset(batch), schema
    rows = [row for batch in result for row in batch.to_pylist()]
    assert rows == expected, schema
    if stages.rows > 0:
        sizes = [batch.num_rows for batch in result]
        assert all(size <= stages.rows for size in sizes), sizes
        if stages.bytes == 0 and stages.limit < 0:
            assert all(size == stages.rows for size in sizes[:-1]), sizes
    return len(result), sum(map(has_offset, result))


def main():
    module = ctypes.CDLL(sys.argv[1])
    first = int(sys.argv[2]) if len(sys.argv) > 2 else 1
    tables = int(sys.argv[3]) if len(sys.argv) > 3 else 400
    module.rows_open.restype = ctypes.c_void_p
    runtime = module.rows_open()
    batches = offsets = 0
    for seed in range(first, first + tables):
        try:
            count, others = check(module, runtime, seed)
            batches, offsets = batches + count, offsets + others
        except Exception:
            print(f"the table of seed {seed} is wrong", file=sys.stderr)
            raise
    module.rows_close(ctypes.c_void_p(runtime))
    assert batches > tables, "hardly any batch came out"
    assert tables < 400 or offsets > tables, "hardly any had an offset"
    print(f"{tables} tables, {batches} batches, {offsets} with offsets")


if __name__ == "__main__":
    main()
