#!/usr/bin/env python3
"""Random tables of every Arrow type, written as CSV and JSON lines, read again.

    text_tables.py MODULE [SEED [TABLES]]

Each value that is read must be the written one, to the last digit. JSON is
read by Python's parser; CSV by a strict one below, which distinguishes a field
in quotes from one without, and by Python's. Tables of plain columns are also
read by Arrow C++. A failure prints the seed of its table.
"""

import csv
import ctypes
import datetime
import decimal
import io
import json
import math
import struct
import sys
import tempfile

import pyarrow as pa
import pyarrow.csv
import pyarrow.json

import random_tables

CSV, JSON = 2, 3
DIGITS = {"s": 0, "ms": 3, "us": 6, "ns": 9}
MORE = [
    pa.int16(), pa.uint8(), pa.uint32(), pa.uint64(), pa.float16(),
    pa.date64(), pa.time32("s"), pa.time32("ms"), pa.time64("us"),
    pa.time64("ns"), pa.timestamp("s"), pa.timestamp("ms"),
    pa.timestamp("ns", "Europe/Paris"), pa.timestamp("us", "+05:30"),
    pa.duration("s"), pa.duration("ms"), pa.decimal32(7, 2),
    pa.decimal64(15, -1), pa.binary(0), pa.float32(), pa.float64(),
]
# The types that Arrow C++ reads back by itself.
PLAIN = [pa.int8(), pa.int64(), pa.uint64(), pa.float32(), pa.float64(),
         pa.bool_(), pa.string(), pa.large_string(), pa.date32()]
PLAIN_CSV = PLAIN + [pa.decimal128(20, 3), pa.timestamp("us", "UTC"),
                     pa.timestamp("ns")]
LETTERS = "ab ,;|\t.:\"'\\\r\n\x01\x7fNUL0-1näö☃\u2028🚀{}[]"
REALS = [0.0, -0.0, math.nan, math.inf, -math.inf, 5e-324, 1e16, 0.1, 1 / 3,
         1.7976931348623157e308, 123456.789]


class Style(ctypes.Structure):
    """struct uva_csv."""

    _fields_ = [("delimiter", ctypes.c_char), ("rows_only", ctypes.c_bool),
                ("crlf", ctypes.c_bool), ("null_text", ctypes.c_char_p),
                ("reserved", ctypes.c_void_p * 2)]

    def separator(self):
        return (self.delimiter if self.delimiter != b"\0" else b",").decode()

    def null(self):
        return (self.null_text or b"").decode()


class Tables(random_tables.Tables):
    """Adds types, and values at the ends of their ranges."""

    def type(self, depth):
        return (self.random.choice(MORE) if self.some(6) == 0
                else super().type(depth))

    def integer(self, bits, signed):
        value = self.random.getrandbits(self.random.choice([1, 7, bits]))
        value &= (1 << bits) - 1
        return value - (1 << (bits - 1)) if signed else value

    def text(self, letters):
        return "".join(self.random.choice(letters)
                       for _ in range(self.random.choice([0, 1, 3, 12, 13])))

    def real(self, kind):
        if self.some(4) == 0:
            return self.random.choice(REALS)
        if self.some(2) == 0:
            return self.some(10**6) / 100
        sizes = {"halffloat": "e", "float": "f", "double": "d"}
        size = sizes[str(kind)]
        return struct.unpack(
            size, self.random.randbytes(struct.calcsize(size)))[0]

    def value(self, kind):
        if pa.types.is_floating(kind):
            value = self.real(kind)
            if str(kind) == "float" and math.isfinite(value):
                value = math.copysign(min(abs(value), 3e38), value)
            return value
        if pa.types.is_integer(kind):
            return self.integer(kind.bit_width,
                                pa.types.is_signed_integer(kind))
        if pa.types.is_date64(kind):
            return (self.some(1 << 16) - 9999) * 86400000
        if pa.types.is_time(kind):
            return self.some(86400 * 10**DIGITS[kind.unit])
        if pa.types.is_timestamp(kind) or pa.types.is_duration(kind):
            return self.integer(31, True) * 10**DIGITS[kind.unit] + self.some(9)
        if pa.types.is_interval(kind):
            return tuple(self.integer(20, True) for _ in range(3))
        if pa.types.is_decimal(kind):
            return decimal.Decimal(self.some(20000) - 9000) * (
                10 if kind.scale < 0 else decimal.Decimal(10)**-kind.scale)
        if kind in random_tables.TEXTS:
            return self.text(LETTERS)
        if pa.types.is_fixed_size_binary(kind):
            return self.random.randbytes(kind.byte_width)
        if pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or (
                kind == pa.binary_view()):
            return self.random.randbytes(self.some(14))
        return super().value(kind)

    def style(self):
        return Style(
            delimiter=self.random.choice([b"\0", b",", b";", b"\t", b".", b"1"]),
            rows_only=self.some(4) == 0, crlf=self.some(2) == 0,
            null_text=self.random.choice([None, None, b"NULL", b"\\N", b"0"]))

    def names(self, fields):
        """Some have names that need quotes."""
        return [pa.field(f"{i}{self.text(LETTERS)}" if self.some(4) == 0
                         else field.name, field.type)
                for i, field in enumerate(fields)]

    def table(self):
        schema = pa.schema(self.names(self.fields(1 + self.some(4), 3)))
        return schema, [self.batch(schema) for _ in range(self.some(6))]

    def plain(self, kinds):
        schema = pa.schema([(f"f{i}", self.random.choice(kinds))
                            for i in range(1 + self.some(5))])
        return schema, [self.batch(schema) for _ in range(1 + self.some(3))]


# ---- the command ------------------------------------------------------------

def encode(module, schema, batches, form, style):
    given = ctypes.create_string_buffer(40)
    text = ctypes.create_string_buffer(1024)
    reader = pa.RecordBatchReader.from_batches(schema, batches)
    reader._export_to_c(ctypes.addressof(given))
    with tempfile.TemporaryFile() as file:
        code = module.text_encode(given, form, ctypes.byref(style),
                                  file.fileno(), text, len(text))
        assert code == 0, (code, text.value.decode())
        file.seek(0)
        return file.read().decode()


# ---- expected values --------------------------------------------------------

class Number(str):
    """A number of JSON, by its text."""


def fraction(count, unit):
    """The text after the seconds of a count that is not negative."""
    digits = DIGITS[unit]
    rest = count % 10**digits
    return f".{rest:0{digits}d}" if digits else ""


def clock(count, unit):
    seconds = count // 10**DIGITS[unit]
    return (f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"
            + fraction(count, unit))


def moment(count, kind):
    zone = {None: "", "+05:30": "+05:30"}.get(kind.tz, "Z")
    ahead = 19800 if kind.tz == "+05:30" else 0
    seconds = count // 10**DIGITS[kind.unit] + ahead
    day = datetime.date(1970, 1, 1) + datetime.timedelta(seconds // 86400)
    return (day.isoformat() + "T" + clock(seconds % 86400, "s")
            + fraction(count, kind.unit) + zone)


def seconds(count, unit):
    return (f"T{'-' if count < 0 else ''}{abs(count) // 10**DIGITS[unit]}"
            f"{fraction(abs(count), unit)}S")


def interval(value):
    months = f"{value.months}M" if value.months else ""
    return f"P{months}{value.days}D{seconds(value.nanoseconds, 'ns')}"


def leaf_text(scalar):
    """The text of a value that is a string in JSON."""
    kind = scalar.type
    if kind in random_tables.TEXTS:
        return scalar.as_py()
    if pa.types.is_date(kind):
        return scalar.as_py().isoformat()
    if pa.types.is_time(kind):
        return clock(scalar.value, kind.unit)
    if pa.types.is_timestamp(kind):
        return moment(scalar.value, kind)
    if pa.types.is_duration(kind):
        return "P" + seconds(scalar.value, kind.unit)
    if pa.types.is_interval(kind):
        return interval(scalar.as_py())
    return scalar.as_py().hex()


def is_real(text, scalar):
    """Whether a text is a real number, and the shortest that reads back."""
    value = scalar.as_py()
    if value != value:
        return text == "nan"
    size = {pa.float16(): "e", pa.float32(): "f"}.get(scalar.type, "d")
    if math.isinf(value):
        return text == str(value)
    if struct.pack(size, float(text)) != struct.pack(size, value):
        return False
    return size != "d" or text == repr(float(value))


def is_number(text, scalar):
    kind = scalar.type
    if pa.types.is_floating(kind):
        return is_real(text, scalar)
    if pa.types.is_decimal(kind):
        return (decimal.Decimal(text) == scalar.as_py()
                and -decimal.Decimal(text).as_tuple().exponent ==
                max(kind.scale, 0))
    return text == str(scalar.as_py())


def resolve(scalar):
    """The value through dictionaries, runs and unions."""
    while scalar is not None and scalar.is_valid and (
            pa.types.is_dictionary(scalar.type)
            or pa.types.is_union(scalar.type)
            or pa.types.is_run_end_encoded(scalar.type)):
        scalar = scalar.value
    return scalar if scalar is not None and scalar.is_valid else None


def is_json(value, scalar):
    """Whether a parsed value is the right one for a scalar in JSON."""
    scalar = resolve(scalar)
    if scalar is None:
        return value is None
    kind = scalar.type
    if pa.types.is_boolean(kind):
        return value is scalar.as_py()
    if pa.types.is_struct(kind):
        return (isinstance(value, list) and
                [name for name, _ in value] ==
                [kind.field(i).name for i in range(kind.num_fields)]
                and all(is_json(part, scalar[i])
                        for i, (_, part) in enumerate(value)))
    if hasattr(scalar, "values") and pa.types.is_nested(kind):
        values = scalar.values
        return (isinstance(value, tuple) and len(value) == len(values)
                and all(map(is_json, value, values)))
    if pa.types.is_integer(kind) or pa.types.is_decimal(kind):
        return isinstance(value, Number) and is_number(value, scalar)
    if pa.types.is_floating(kind):
        return is_number(value, scalar) and (
            isinstance(value, Number) == math.isfinite(scalar.as_py()))
    return type(value) is str and value == leaf_text(scalar)


class Pairs(list):
    """An object as its pairs: names may occur twice."""


def parse(text):
    def freeze(value):
        if isinstance(value, Pairs):
            return [(name, freeze(part)) for name, part in value]
        if isinstance(value, list):
            return tuple(map(freeze, value))
        return value

    return freeze(json.loads(text, parse_int=Number, parse_float=Number,
                             parse_constant=None, object_pairs_hook=Pairs))


def is_csv(field, scalar, style):
    """Whether a field (text, in quotes) is the right one for a scalar in
    CSV."""
    text, quoted = field
    scalar = resolve(scalar)
    if scalar is None:
        return text == style.null() and not quoted
    if text in ("", style.null()) and not quoted:
        return False
    kind = scalar.type
    if pa.types.is_nested(kind):
        return is_json(parse(text), scalar)
    if pa.types.is_boolean(kind):
        return text == str(scalar.as_py()).lower()
    if (pa.types.is_integer(kind) or pa.types.is_decimal(kind)
            or pa.types.is_floating(kind)):
        return is_number(text, scalar)
    return text == leaf_text(scalar)


# ---- CSV --------------------------------------------------------------------

def csv_lines(text, style):
    """Lists of (text, in quotes); strictly RFC 4180."""
    end = "\r\n" if style.crlf else "\n"
    at, line = 0, []
    while at < len(text):
        quoted = text[at] == '"'
        value = ""
        if quoted:
            at += 1
            while text[at] != '"' or text[at:at + 2] == '""':
                value += text[at]
                at += 2 if text[at] == '"' else 1
            at += 1
        else:
            begin = at
            while text[at] not in style.separator() + '\r\n"':
                at += 1
            value = text[begin:at]
        line.append((value, quoted))
        if text[at] == style.separator():
            at += 1
            continue
        assert text[at:at + len(end)] == end, text[at:at + 9]
        at += len(end)
        yield line
        line = []
    assert not line


def check_csv(module, tables, schema, batches):
    style = tables.style()
    text = encode(module, schema, batches, CSV, style)
    rows = list(csv_lines(text, style))
    assert [[field for field, _ in row] for row in rows] == [
        row or [""] for row in csv.reader(
            io.StringIO(text, newline=""), delimiter=style.separator(),
            strict=True)]
    if not style.rows_only:
        assert [name for name, _ in rows.pop(0)] == schema.names
    for batch in batches:
        for i in range(batch.num_rows):
            for field, column in zip(rows.pop(0), batch.columns, strict=True):
                assert is_csv(field, column[i], style), (
                    column.type, column[i], field, style.separator(),
                    style.null())
    assert not rows


def check_json(module, schema, batches):
    text = encode(module, schema, batches, JSON, Style())
    lines = text.split("\n")
    assert lines.pop() == ""
    for batch in batches:
        for i in range(batch.num_rows):
            row = parse(lines.pop(0))
            assert [name for name, _ in row] == schema.names
            for (_, value), column in zip(row, batch.columns, strict=True):
                assert is_json(value, column[i]), (column.type, column[i],
                                                   value)
    assert not lines


# ---- Arrow C++ --------------------------------------------------------------

def same(a, b):
    """Whether two values are equal, also if they are NaN."""
    return a == b or (a != a and b != b)


def column_values(table, name):
    column = table.column(name)
    if pa.types.is_timestamp(column.type):
        column = column.cast(pa.int64())
    return column.to_pylist()


def compare_rows(read, schema, batches):
    wanted = pa.Table.from_batches(batches, schema)
    assert read.schema.types == schema.types
    for name in schema.names:
        a, b = column_values(read, name), column_values(wanted, name)
        assert len(a) == len(b) and all(map(same, a, b)), (name, a, b)


def check_arrow_csv(module, tables):
    schema, batches = tables.plain(PLAIN_CSV)
    text = encode(module, schema, batches, CSV, Style(null_text=b"NULL"))
    compare_rows(pa.csv.read_csv(
        io.BytesIO(text.encode()),
        parse_options=pa.csv.ParseOptions(newlines_in_values=True),
        convert_options=pa.csv.ConvertOptions(
            column_types=schema, null_values=["NULL"],
            strings_can_be_null=True, quoted_strings_can_be_null=False)),
        schema, batches)


def check_arrow_json(module, tables):
    schema, batches = tables.plain([k for k in PLAIN
                                    if not pa.types.is_floating(k)
                                    and not pa.types.is_date(k)])
    if sum(batch.num_rows for batch in batches) == 0:
        return
    text = encode(module, schema, batches, JSON, Style())
    compare_rows(pa.json.read_json(
        io.BytesIO(text.encode()), parse_options=pa.json.ParseOptions(
            explicit_schema=schema)), schema, batches)


# ---- half floats ------------------------------------------------------------

def least_digits(bits):
    """How many digits the shortest decimal has that reads back."""
    value = decimal.Decimal(struct.unpack("<e", bits)[0])
    for digits in range(1, 6):
        least = value.scaleb(digits - 1 - value.adjusted()).to_integral_value(
            decimal.ROUND_FLOOR)
        for whole in least, least + 1:
            number = float(whole.scaleb(1 - digits + value.adjusted()))
            if number < 65520 and struct.pack("<e", number) == bits:
                return digits
    raise AssertionError(value)


def check_halves(module):
    """Each one is the shortest text that reads back, in JSON and CSV."""
    halves = [struct.pack("<H", i) for i in range(0x7c00)]
    column = pa.array([struct.unpack("<e", half)[0] for half in halves],
                      pa.float16())
    batch = pa.record_batch({"x": column})
    lines = encode(module, batch.schema, [batch], JSON, Style()).splitlines()
    texts = [line.removeprefix('{"x":').removesuffix("}") for line in lines]
    assert encode(module, batch.schema, [batch], CSV,
                  Style(rows_only=True)).splitlines() == texts
    assert len(texts) == len(halves)
    for text, half in zip(texts, halves):
        assert struct.pack("<e", float(text)) == half, text
        digits = text.split("e")[0].replace(".", "").strip("0")
        assert half == halves[0] or len(digits) == least_digits(half), text


def check(module, seed):
    tables = Tables(seed)
    schema, batches = tables.table()
    check_json(module, schema, batches)
    check_csv(module, tables, schema, batches)
    check_arrow_csv(module, tables)
    check_arrow_json(module, tables)
    return sum(batch.num_rows for batch in batches)


def main():
    module = ctypes.CDLL(sys.argv[1])
    first = int(sys.argv[2]) if len(sys.argv) > 2 else 1
    tables = int(sys.argv[3]) if len(sys.argv) > 3 else 200
    csv.field_size_limit(1 << 30)
    check_halves(module)
    rows = 0
    for seed in range(first, first + tables):
        try:
            rows += check(module, seed)
        except BaseException:
            print(f"the table of seed {seed} is wrong", file=sys.stderr)
            raise
    assert rows > tables, "hardly any row was written"
    print(f"{tables} tables, {rows} rows")


main()
