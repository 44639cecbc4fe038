#!/usr/bin/env python3
"""Casts between all types that have one, and of random tables.

    cast_tables.py MODULE [SEED [TABLES]]

The values that each type holds are known here exactly; Arrow C++ makes the
arrays, checks each result in full, and casts as well: a value that it casts
safely, and back to the same one, is cast to that here, too.
"""

import ctypes
import math
import struct
import sys

import pyarrow as pa

from random_tables import LEAVES, Tables

EOVERFLOW, EINVAL = "[Errno 75]", "[Errno 22]"


class Caster:
    """Casts of a library that is loaded."""

    def __init__(self, path):
        self.module = ctypes.CDLL(path)
        self.module.cast_open.restype = ctypes.c_void_p
        self.runtime = ctypes.c_void_p(self.module.cast_open())

    def close(self):
        self.module.cast_close(self.runtime)

    def batches(self, batches, schema, target):
        given, taken = (ctypes.create_string_buffer(40) for _ in range(2))
        wanted = ctypes.create_string_buffer(72)
        reader = pa.RecordBatchReader.from_batches(schema, batches)
        reader._export_to_c(ctypes.addressof(given))
        target._export_to_c(ctypes.addressof(wanted))
        code = self.module.cast_play(self.runtime, given, wanted, taken)
        assert code == 0, code
        result = pa.RecordBatchReader._import_from_c(ctypes.addressof(taken))
        assert result.schema.equals(target, check_metadata=True), result.schema
        result = list(result)
        if not schema.equals(target):  # an empty slice is not valid there
            for batch in result:
                batch.validate(full=True)
        return result

    def array(self, array, kind):
        """One array; its failure is the text."""
        batch = pa.RecordBatch.from_arrays([array], ["x"])
        try:
            return self.batches([batch], batch.schema,
                                pa.schema([pa.field("x", kind)]))[0].column(0)
        except (pa.ArrowException, OSError, ValueError) as error:
            return str(error)


# ---- the values of each type ------------------------------------------------

INTEGERS = [pa.int8(), pa.int16(), pa.int32(), pa.int64(),
            pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()]
FLOATS = {pa.float16(): "e", pa.float32(): "f", pa.float64(): "d"}
NUMBERS = [*INTEGERS, *FLOATS, pa.bool_()]
TEXTS = [pa.string(), pa.large_string(), pa.string_view()]
BYTES = [pa.binary(), pa.large_binary(), pa.binary_view(), pa.binary(13)]
UNITS = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
TIMES = [
    [pa.time32("s"), pa.time32("ms"), pa.time64("us"), pa.time64("ns")],
    [pa.timestamp(unit) for unit in UNITS],
    [pa.timestamp(unit, "UTC") for unit in UNITS],
    [pa.duration(unit) for unit in UNITS],
    [pa.date32(), pa.date64()],
]


def bounds(kind):
    """The least and the largest integer."""
    if kind == pa.bool_():
        return 0, 1
    bits = kind.bit_width
    if pa.types.is_unsigned_integer(kind):
        return 0, 2**bits - 1
    return -(2**(bits - 1)), 2**(bits - 1) - 1


def in_float(value, kind):
    """The value that a type of floating point has in place of it; or None."""
    try:
        return struct.unpack(FLOATS[kind], struct.pack(FLOATS[kind], value))[0]
    except (OverflowError, struct.error):
        return None


def holds(kind, value):
    """Whether a type of numbers has the value."""
    if kind in FLOATS:
        if isinstance(value, float) and not math.isfinite(value):
            return True
        # a large integer has no double that is equal to it
        return in_float(value, kind) == value
    return (math.isfinite(value) and value == int(value)
            and bounds(kind)[0] <= value <= bounds(kind)[1])


def edges():
    """Numbers at the limits of the types."""
    found = {0, 1, -1, 2, 3, 100}
    for kind in INTEGERS:
        for bound in bounds(kind):
            found |= {bound - 1, bound, bound + 1}
    for bits in (11, 24, 53, 63, 64):
        for by in (-2048, -1024, -2, -1, 0, 1, 2, 1024, 2048):
            found |= {2**bits + by, -(2**bits) + by}
    floats = {0.5, 1.5, -0.5, 65504.0, 65519.0, 65520.0, 2.0**-24, 2.0**-25,
              2.0**-14, 1.5 * 2.0**-24, 3.4028234663852886e38, 3.4028235e38, 1e39,
              2.0**-149, 2.0**-150, 5e-324, 1e308, math.inf, -math.inf, 2.0**63,
              2.0**64, -2.0**63, 1023 * 2.0**-24, 1e300, 0.1}
    return sorted(found, key=float), sorted(floats)


def check_numbers(caster):
    """Each value of each type, in place of row 3."""
    integers, floats = edges()
    casts = 0
    for source in NUMBERS:
        make = float if source in FLOATS else bool if source == pa.bool_() else int
        values = [make(value) for value in integers + floats
                  if holds(source, value)]
        for target in NUMBERS:
            fit = [value for value in values if holds(target, value)]
            fit += fit[:1] + [None] + fit
            for array in (pa.array(fit, source), pa.array(fit, source)[3:]):
                result = caster.array(array, target)
                assert not isinstance(result, str), (source, target, result)
                assert result.to_pylist() == array.to_pylist(), (source, target)
            for value in values:
                if holds(target, value):
                    continue
                result = caster.array(
                    pa.array([make(0), None, make(1), value, value, None], source),
                    target)
                assert f"column x, row 3: " in result, (source, target, value,
                                                        result)
                assert " is no " in result
                casts += 1
            check_against_arrow(caster, values, source, target)
    nan = caster.array(pa.array([math.nan], pa.float64()), pa.float16())
    assert math.isnan(nan[0].as_py())
    assert "row 0: nan is no int8" in caster.array(pa.array([math.nan]),
                                                   pa.int8())
    return casts


def check_against_arrow(caster, values, source, target):
    """What Arrow C++ casts there and back without a change is cast here."""
    for value in values:
        array = pa.array([value], source)
        try:
            other = array.cast(target, safe=True)
            back = other.cast(source, safe=True)
        except (pa.ArrowException, ValueError):
            continue
        if back.equals(array) and other.to_pylist() == array.to_pylist():
            assert caster.array(array, target).equals(other), (value, target)


def of_integers(numbers, kind):
    width = pa.int32() if kind.bit_width == 32 else pa.int64()
    return pa.array(numbers, width).view(kind)


def to_integers(array):
    width = pa.int32() if array.type.bit_width == 32 else pa.int64()
    return array.view(width).to_pylist()


def per_day(kind):
    if pa.types.is_date(kind):
        return 1 if kind == pa.date32() else 86400000
    return UNITS[kind.unit] * 86400


def check_times(caster):
    casts = 0
    for family in TIMES:
        for source in family:
            for target in family:
                if source != target:
                    check_time(caster, source, target)
                    casts += 1
    for source in (family[0] for family in TIMES):
        for target in (family[1] for family in TIMES):
            if (source, target) in [(f[0], f[1]) for f in TIMES]:
                continue
            text = caster.array(of_integers([0], source), target)
            assert f"column x cannot be cast from" in text, text
    return casts


def check_time(caster, source, target):
    low, high = bounds(pa.int32() if source.bit_width == 32 else pa.int64())
    to_low, to_high = bounds(
        pa.int32() if target.bit_width == 32 else pa.int64())
    up, down = per_day(target), per_day(source)
    limit = to_high * down // up
    for number in (0, 1, -1, 999, 1000, -1000, 10**6, 10**9, 86400000, high, low,
                   limit, limit + 1, limit - 1, -limit, -limit - 2):
        if not low <= number <= high or (
                pa.types.is_time(source) and not 0 <= number < down):
            continue
        result = caster.array(of_integers([None, number], source), target)
        value, rest = divmod(number * up, down)
        if rest == 0 and to_low <= value <= to_high:
            assert not isinstance(result, str), (source, target, number, result)
            assert to_integers(result) == [None, value], (source, target, number)
        else:
            assert "column x, row 1: " in result, (source, target, number,
                                                   result)


def check_bytes(caster):
    text = ["", "a", "x" * 12, "y" * 13, None, "z" * 13, "äöü" * 9, "w" * 5000]
    casts = 0
    for family, values in ((TEXTS, text),
                           (BYTES, [None if v is None else v.encode()
                                    for v in text])):
        for source in family:
            for target in family:
                fixed = pa.binary(13) in (source, target)
                some = ([v for v in values if v is None or len(v) == 13]
                        if fixed else values)
                for array in (pa.array(some, source), pa.array(some, source)[1:],
                              pa.array(some, source)[:0]):
                    result = caster.array(array, target)
                    assert not isinstance(result, str), (source, target, result)
                    assert result.to_pylist() == array.to_pylist()
                    assert result.type == target
                    casts += 1
    wrong = caster.array(pa.array([b"y" * 13, None, b"1234"]), pa.binary(13))
    assert "column x, row 2: a value of 4 bytes is no fixed_size_binary[13]" \
        in wrong, wrong
    assert "cannot be cast from utf8 to binary" in caster.array(
        pa.array(["a"]), pa.binary())
    return casts


# ---- random tables ----------------------------------------------------------

def family_of(kind):
    for family in (*TIMES, TEXTS, BYTES[:3]):
        if kind in family:
            return family
    return None


class Targets:
    """Draws types to which random arrays can be cast."""

    def __init__(self, tables):
        self.choice = tables.random.choice

    def field(self, field):
        return field.with_type(self.type(field.type))

    def type(self, kind):
        if pa.types.is_dictionary(kind) or pa.types.is_run_end_encoded(kind):
            if self.choice([True, False]):
                return kind
            return self.type(kind.value_type)
        if pa.types.is_null(kind):
            return self.choice(LEAVES + [
                pa.list_(pa.int8()), pa.struct([("a", pa.string_view())]),
                pa.list_(pa.int8(), 3), pa.large_list_view(pa.utf8()),
                pa.map_(pa.utf8(), pa.int8()), pa.dictionary(pa.int8(), pa.utf8()),
                pa.dense_union([pa.field("a", pa.int8())]),
                pa.sparse_union([pa.field("a", pa.int8())], [7]),
                pa.run_end_encoded(pa.int16(), pa.utf8())])
        if family_of(kind):
            return self.time_or_bytes(kind)
        return self.number(kind) if kind in NUMBERS else self.nested(kind)

    def time_or_bytes(self, kind):
        finer = family_of(kind)
        if kind not in TEXTS + BYTES:
            finer = finer[finer.index(kind):]
        return self.choice(finer)

    def number(self, kind):
        """The values are integers below 1000, and bytes below 100."""
        if pa.types.is_boolean(kind):
            return self.choice(NUMBERS)
        return self.choice([t for t in NUMBERS if t != pa.bool_() and not (
            kind in FLOATS and t in (pa.int8(), pa.uint8()))])

    def nested(self, kind):
        if pa.types.is_struct(kind):
            fields = [self.field(field) for field in kind
                      if self.choice([True, True, False])]
            return pa.struct(fields[::self.choice([1, -1])])
        if pa.types.is_map(kind):
            return pa.map_(self.type(kind.key_type), self.type(kind.item_type))
        if pa.types.is_fixed_size_list(kind):
            return pa.list_(self.field(kind.value_field), kind.list_size)
        if pa.types.is_union(kind):
            make = pa.sparse_union if kind.mode == "sparse" else pa.dense_union
            return make([self.field(kind.field(i))
                         for i in range(kind.num_fields)],
                        list(kind.type_codes))
        if hasattr(kind, "value_field"):
            return self.choice([pa.list_, pa.large_list, pa.list_view,
                                pa.large_list_view])(
                                    self.field(kind.value_field))
        return kind


def narrowed(value, kind):
    """A value of Python as the target type has it: structs lack fields."""
    if value is None:
        return None
    if pa.types.is_struct(kind):
        return {f.name: narrowed(value[f.name], f.type) for f in kind}
    if pa.types.is_map(kind):
        return [(narrowed(k, kind.key_type), narrowed(v, kind.item_type))
                for k, v in value]
    if hasattr(kind, "value_field"):
        return [narrowed(item, kind.value_field.type) for item in value]
    return value


def has_struct_in_union(kind, inside=False):
    """Whether fields may be dropped where no type states which."""
    if pa.types.is_struct(kind) and inside:
        return True
    if pa.types.is_dictionary(kind) or pa.types.is_run_end_encoded(kind):
        return has_struct_in_union(kind.value_type, inside)
    inside = inside or pa.types.is_union(kind)
    return any(has_struct_in_union(kind.field(i).type, inside)
               for i in range(kind.num_fields))


def check_table(caster, seed):
    tables = Tables(seed)
    schema, batches = tables.table()
    targets = Targets(tables)
    wanted = [targets.field(field) for field in schema]
    tables.random.shuffle(wanted)
    if len(wanted) > 1 and tables.some(2):
        wanted.pop()
    target = pa.schema(wanted, {"of": "the target"})
    result = caster.batches(batches, schema, target)
    assert len(result) == len(batches)
    for before, after in zip(batches, result):
        assert after.num_rows == before.num_rows
        for field in target:
            if has_struct_in_union(field.type):
                continue
            rows = before.column(schema.get_field_index(field.name)).to_pylist()
            expected = [narrowed(row, field.type) for row in rows]
            found = after.column(target.get_field_index(field.name)).to_pylist()
            assert found == expected, (schema, field)
    return sum(field.type != schema.field(field.name).type for field in target)


def main():
    caster = Caster(sys.argv[1])
    first = int(sys.argv[2]) if len(sys.argv) > 2 else 1
    tables = int(sys.argv[3]) if len(sys.argv) > 3 else 400
    refused = check_numbers(caster)
    times, texts = check_times(caster), check_bytes(caster)
    casts = 0
    for seed in range(first, first + tables):
        try:
            casts += check_table(caster, seed)
        except Exception:
            print(f"the table of seed {seed} is wrong", file=sys.stderr)
            raise
    caster.close()
    assert refused > 500 and casts > tables, "hardly any cast was tried"
    print(f"{refused} numbers refused, {times} casts of times, {texts} of bytes, "
          f"{casts} in {tables} tables")


if __name__ == "__main__":
    main()
