"""Arrow arrays, as the JSON of Arrow's integration tests has them.

A Document is a schema and its batches; a Field is a column's type, a Column its
buffers, in the order of the columnar format and without an offset. from_json()
and to_json() convert, Document.rows() gives the values of Python that are
compared. Only Python is used, so that the library is not its own judge.
"""

import dataclasses
import decimal
import gzip
import json
import struct

NULL, BITS, FIXED, BINARY, VIEW, LIST, LIST_VIEW, FIXED_LIST, STRUCT, SPARSE, \
    DENSE, RUNS = range(12)
UNITS = {"SECOND": "s", "MILLISECOND": "m", "MICROSECOND": "u",
         "NANOSECOND": "n"}


class Inexpressible(Exception):
    """The JSON has no words for the data"""


# ---- types ------------------------------------------------------------------

def layout(kind):
    """(layout, bytes of a value or an offset) of a type of the JSON."""
    name = kind["name"]
    simple = {
        "null": (NULL, 0), "bool": (BITS, 0), "utf8": (BINARY, 4),
        "binary": (BINARY, 4), "largeutf8": (BINARY, 8),
        "largebinary": (BINARY, 8), "utf8view": (VIEW, 16),
        "binaryview": (VIEW, 16), "list": (LIST, 4), "map": (LIST, 4),
        "largelist": (LIST, 8), "listview": (LIST_VIEW, 4),
        "largelistview": (LIST_VIEW, 8), "struct": (STRUCT, 0),
        "runendencoded": (RUNS, 0)}
    if name in simple:
        return simple[name]
    if name == "fixedsizelist":
        return FIXED_LIST, kind["listSize"]
    if name == "union":
        return (SPARSE if kind["mode"] == "SPARSE" else DENSE), 0
    if name == "fixedsizebinary":
        return FIXED, kind["byteWidth"]
    if name == "decimal":
        return FIXED, kind.get("bitWidth", 128) // 8
    return FIXED, struct.calcsize("<" + packing(kind))


def packing(kind):
    """How `struct` packs a value."""
    name = kind["name"]
    if name == "int":
        code = {8: "b", 16: "h", 32: "i", 64: "q"}[kind["bitWidth"]]
        return code if kind["isSigned"] else code.upper()
    if name == "floatingpoint":
        return {"HALF": "e", "SINGLE": "f", "DOUBLE": "d"}[kind["precision"]]
    if name == "date":
        return "i" if kind["unit"] == "DAY" else "q"
    if name == "time":
        return "i" if kind["bitWidth"] == 32 else "q"
    if name in ("timestamp", "duration"):
        return "q"
    if name == "interval":
        return {"YEAR_MONTH": "i", "DAY_TIME": "ii",
                "MONTH_DAY_NANO": "iiq"}[kind["unit"]]
    raise Inexpressible(f"the type {name}")


PARTS = {"DAY_TIME": ("days", "milliseconds"),
         "MONTH_DAY_NANO": ("months", "days", "nanoseconds")}


def pack(kind, value):
    """A fixed value of the JSON as bytes."""
    name = kind["name"]
    if name == "fixedsizebinary":
        return bytes.fromhex(value)
    if name == "decimal":
        return int(value).to_bytes(layout(kind)[1], "little", signed=True)
    if name == "interval" and kind["unit"] in PARTS:
        value = [int(value[part]) for part in PARTS[kind["unit"]]]
        return struct.pack("<" + packing(kind), *value)
    convert = float if name == "floatingpoint" else int
    return struct.pack("<" + packing(kind), convert(value))


def unpack(kind, data):
    """The reverse; 64 bits become a text."""
    name = kind["name"]
    if name == "fixedsizebinary":
        return data.hex().upper()
    if name == "decimal":
        return str(int.from_bytes(data, "little", signed=True))
    values = struct.unpack("<" + packing(kind), data)
    if name == "interval" and kind["unit"] in PARTS:
        return dict(zip(PARTS[kind["unit"]], values))
    if name != "floatingpoint" and len(data) == 8:
        return str(values[0])
    return values[0]


def plain(kind):
    """A type without what is a default."""
    kind = {key: value for key, value in kind.items()
            if value not in (None, "")}
    if kind["name"] == "decimal":
        kind.setdefault("bitWidth", 128)
    if kind["name"] == "map":
        kind.setdefault("keysSorted", False)
    if kind["name"] == "time":
        small = kind["unit"] in ("SECOND", "MILLISECOND")
        kind.setdefault("bitWidth", 32 if small else 64)
    return kind


@dataclasses.dataclass
class Field:
    name: str
    type: dict
    nullable: bool = True
    children: list = dataclasses.field(default_factory=list)
    index: dict = None  # of a dictionary: the type of its indices
    ordered: bool = False
    metadata: list = dataclasses.field(default_factory=list)  # (key, value)
    id: int = None      # of the dictionary, in the JSON

    def shape(self, name=None):
        """What must be equal. The format does not enforce names inside of maps."""
        names = [None] * len(self.children)
        if self.type["name"] == "map":
            names = ["entries"]
        elif name == "entries":
            names = ["key", "value"]
        return (name or self.name, plain(self.type), self.nullable,
                [child.shape(its) for child, its in zip(self.children, names)],
                self.index and plain(self.index), self.ordered,
                sorted(self.metadata))


def pairs(metadata):
    return [(pair["key"], pair["value"]) for pair in metadata or ()]


def field_from_json(given):
    found = given.get("dictionary") or {}
    return Field(given["name"] or "", given["type"], given["nullable"],
                 [field_from_json(child) for child in given["children"] or ()],
                 found.get("indexType"), found.get("isOrdered", False),
                 pairs(given.get("metadata")), found.get("id"))


def field_to_json(field):
    made = {"name": field.name, "nullable": field.nullable, "type": field.type,
            "children": [field_to_json(child) for child in field.children]}
    if field.index:
        made["dictionary"] = {"id": field.id, "indexType": field.index,
                              "isOrdered": field.ordered}
    if field.metadata:
        made["metadata"] = [{"key": key, "value": value}
                            for key, value in field.metadata]
    return made


# ---- columns ----------------------------------------------------------------

@dataclasses.dataclass
class Column:
    field: Field
    count: int
    buffers: list          # bytes, or None for a bitmap that is not there
    children: list = dataclasses.field(default_factory=list)
    dictionary: object = None

    def kind(self):
        return self.field.index or self.field.type

    def ints(self, buffer, width):
        code = {1: "b", 4: "i", 8: "q"}[width]
        data = self.buffers[buffer]
        return struct.unpack(f"<{len(data) // width}{code}", data)

    def valid(self):
        bits = self.buffers[0]
        if bits is None:
            return [True] * self.count
        return [bits[i // 8] >> i % 8 & 1 == 1 for i in range(self.count)]

    def values(self):
        """The values, of which null is None."""
        form, width = layout(self.kind())
        values = READERS[form](self, width)
        if form not in (NULL, SPARSE, DENSE, RUNS):
            values = [value if valid else None
                      for value, valid in zip(values, self.valid())]
        if self.dictionary is not None:
            words = self.dictionary.values()
            values = [None if value is None else words[int(value)]
                      for value in values]
        return values


def read_fixed(column, width):
    data = column.buffers[1]
    return [unpack(column.kind(), data[i * width:(i + 1) * width])
            for i in range(column.count)]


def text_or_hex(kind, data):
    return data.decode() if "utf8" in kind["name"] else data.hex().upper()


def read_binary(column, width):
    ends, data = column.ints(1, width), column.buffers[2]
    valid = column.valid()
    return [text_or_hex(column.kind(), data[ends[i]:ends[i + 1]])
            if valid[i] else None for i in range(column.count)]


def view_bytes(column, i):
    view = column.buffers[1][16 * i:16 * i + 16]
    size, = struct.unpack_from("<i", view)
    if size <= 12:
        return view[4:4 + size]
    buffer, offset = struct.unpack_from("<ii", view, 8)
    data = column.buffers[2 + buffer][offset:offset + size]
    assert data[:4] == view[4:8], "a view's prefix is not its text's"
    return data


def read_view(column, _):
    valid = column.valid()
    return [text_or_hex(column.kind(), view_bytes(column, i))
            if valid[i] else None for i in range(column.count)]


def read_list(column, width):
    ends, items = column.ints(1, width), column.children[0].values()
    return [items[ends[i]:ends[i + 1]] for i in range(column.count)]


def read_list_view(column, width):
    items = column.children[0].values()
    return [items[begin:begin + size] for begin, size in
            zip(column.ints(1, width), column.ints(2, width))]


def read_fixed_list(column, size):
    items = column.children[0].values()
    return [items[i * size:(i + 1) * size] for i in range(column.count)]


def read_struct(column, _):
    members = [child.values() for child in column.children]
    return [[member[i] for member in members] for i in range(column.count)]


def read_union(column, _):
    ids = column.kind()["typeIds"]
    which = column.ints(0, 1)
    members = [child.values() for child in column.children]
    places = (column.ints(1, 4) if column.kind()["mode"] == "DENSE"
              else range(column.count))
    return [(which[i], members[ids.index(which[i])][places[i]])
            for i in range(column.count)]


def read_runs(column, _):
    ends, values = [child.values() for child in column.children]
    found, begin = [], 0
    for end, value in zip(ends, values):
        found += [value] * (int(end) - begin)
        begin = int(end)
    assert len(found) >= column.count, "runs end before the array"
    return found[:column.count]


READERS = {
    NULL: lambda column, _: [None] * column.count,
    BITS: lambda column, _: [column.buffers[1][i // 8] >> i % 8 & 1
                             for i in range(column.count)],
    FIXED: read_fixed, BINARY: read_binary, VIEW: read_view, LIST: read_list,
    LIST_VIEW: read_list_view, FIXED_LIST: read_fixed_list, STRUCT: read_struct,
    SPARSE: read_union, DENSE: read_union, RUNS: read_runs}


# ---- columns as JSON --------------------------------------------------------

def bitmap(bits):
    data = bytearray((len(bits) + 7) // 8)
    for i, bit in enumerate(bits):
        data[i // 8] |= (int(bit) & 1) << i % 8
    return bytes(data)


def packed(values, width):
    code = {1: "b", 4: "i", 8: "q"}[width]
    return struct.pack(f"<{len(values)}{code}", *map(int, values))


def text_bytes(kind, value):
    return (value.encode() if "utf8" in kind["name"] else bytes.fromhex(value))


def view_from_json(kind, view):
    if view["SIZE"] <= 12:
        return struct.pack("<i12s", view["SIZE"],
                           text_bytes(kind, view["INLINED"]))
    return struct.pack("<i4sii", view["SIZE"],
                       bytes.fromhex(view["PREFIX_HEX"]),
                       view["BUFFER_INDEX"], view["OFFSET"])


def offsets_from_json(given, width):
    """Some writers leave out the one offset of an empty array."""
    return packed(given.get("OFFSET") or [0], width)


def buffers_from_json(kind, given):
    form, width = layout(kind)
    if form in (NULL, RUNS):
        return []
    if form in (SPARSE, DENSE):
        buffers = [packed(given["TYPE_ID"], 1)]
        return buffers + ([packed(given["OFFSET"], 4)] if form == DENSE else [])
    buffers = [bitmap(given["VALIDITY"]) if "VALIDITY" in given else None]
    if form == BITS:
        buffers += [bitmap(given["DATA"])]
    elif form == FIXED:
        buffers += [b"".join(pack(kind, value) for value in given["DATA"])]
    elif form == BINARY:
        buffers += [offsets_from_json(given, width),
                    b"".join(text_bytes(kind, value)
                             for value in given["DATA"])]
    elif form == VIEW:
        buffers += [b"".join(view_from_json(kind, view)
                             for view in given["VIEWS"])]
        buffers += map(bytes.fromhex, given["VARIADIC_DATA_BUFFERS"])
    elif form == LIST:
        buffers += [offsets_from_json(given, width)]
    elif form == LIST_VIEW:
        buffers += [packed(given["OFFSET"], width),
                    packed(given["SIZE"], width)]
    return buffers


def column_from_json(field, given, dictionaries):
    kind = field.index or field.type
    if field.index:
        return Column(field, given["count"], buffers_from_json(kind, given), [],
                      dictionaries(field))
    return Column(field, given["count"], buffers_from_json(kind, given),
                  [column_from_json(child, part, dictionaries) for child, part
                   in zip(field.children, given.get("children", ()))])


def view_to_json(column, i):
    view = column.buffers[1][16 * i:16 * i + 16]
    size, = struct.unpack_from("<i", view)
    if not column.valid()[i]:
        return {"SIZE": 0, "INLINED": ""}
    if size <= 12:
        return {"SIZE": size,
                "INLINED": text_or_hex(column.kind(), view_bytes(column, i))}
    buffer, offset = struct.unpack_from("<ii", view, 8)
    return {"SIZE": size, "PREFIX_HEX": view[4:8].hex().upper(),
            "BUFFER_INDEX": buffer, "OFFSET": offset}


def offsets_to_json(column, buffer, width):
    values = column.ints(buffer, width)
    return list(values) if width == 4 else [str(value) for value in values]


def buffers_to_json(column):
    kind = column.kind()
    form, width = layout(kind)
    made = {}
    if form in (SPARSE, DENSE):
        made["TYPE_ID"] = list(column.ints(0, 1))
    elif form not in (NULL, RUNS):
        made["VALIDITY"] = [int(valid) for valid in column.valid()]
    if form == DENSE:
        made["OFFSET"] = list(column.ints(1, 4))
    if form in (BINARY, LIST, LIST_VIEW):
        made["OFFSET"] = offsets_to_json(column, 1, width)
    if form == LIST_VIEW:
        made["SIZE"] = offsets_to_json(column, 2, width)
    if form == VIEW:
        made["VIEWS"] = [view_to_json(column, i) for i in range(column.count)]
        made["VARIADIC_DATA_BUFFERS"] = [data.hex().upper()
                                         for data in column.buffers[2:]]
    if form in (BITS, FIXED):
        made["DATA"] = READERS[form](column, width)
    if form == BINARY:
        made["DATA"] = [value or "" for value in read_binary(column, width)]
        ends = column.ints(1, width)
        if any(ends[i] != ends[i + 1] and not valid
               for i, valid in enumerate(column.valid())):
            raise Inexpressible("a null with a text")
    return made


def column_to_json(column):
    made = {"name": column.field.name, "count": column.count,
            **buffers_to_json(column)}
    if column.children:
        made["children"] = [column_to_json(child) for child in column.children]
    return made


# ---- documents --------------------------------------------------------------

@dataclasses.dataclass
class Document:
    fields: list
    batches: list  # (rows, columns)
    metadata: list = dataclasses.field(default_factory=list)

    def shape(self):
        return ([field.shape() for field in self.fields],
                sorted(self.metadata))

    def rows(self):
        """The values of each column of each batch."""
        return [(count, [column.values() for column in columns])
                for count, columns in self.batches]


def from_json(given):
    fields = [field_from_json(field) for field in given["schema"]["fields"]]
    parts = {part["id"]: part["data"]
             for part in given.get("dictionaries") or ()}
    made = {}

    def dictionary(field):
        """The same one for each batch."""
        key = id(field)
        if key not in made:
            values = dataclasses.replace(field, index=None, nullable=True)
            made[key] = column_from_json(
                values, parts[field.id]["columns"][0], dictionary)
        return made[key]

    return Document(fields, [
        (batch["count"], [column_from_json(field, column, dictionary)
                          for field, column in zip(fields, batch["columns"])])
        for batch in given["batches"]], pairs(given["schema"].get("metadata")))


class Dictionaries:
    """The dictionaries of a document: the JSON has one for each id."""

    def __init__(self):
        self.fields, self.found = {}, {}

    def number(self, field):
        """Gives each field that has one an id."""
        for child in field.children:
            self.number(child)
        if field.index:
            field.id = self.fields.setdefault(id(field), len(self.fields))

    def collect(self, column):
        for child in column.children:
            self.collect(child)
        if column.dictionary is None:
            return
        self.collect(column.dictionary)
        known = self.found.setdefault(column.field.id, column.dictionary)
        old, new = known.values(), column.dictionary.values()
        if old[:len(new)] == new:
            return
        if new[:len(old)] != old:
            raise Inexpressible("a dictionary that is replaced")
        self.found[column.field.id] = column.dictionary

    def to_json(self):
        return [{"id": number, "data": {
            "count": column.count, "columns": [column_to_json(column)]}}
                for number, column in sorted(self.found.items())]


def to_json(document):
    dictionaries = Dictionaries()
    for field in document.fields:
        dictionaries.number(field)
    for _, columns in document.batches:
        for column in columns:
            dictionaries.collect(column)
    made = {"schema": {"fields": [field_to_json(field)
                                  for field in document.fields]}}
    if document.metadata:
        made["schema"]["metadata"] = [{"key": key, "value": value}
                                      for key, value in document.metadata]
    if dictionaries.found:  # before the batches: some readers need them there
        made["dictionaries"] = dictionaries.to_json()
    made["batches"] = [{"count": count, "columns": [
        column_to_json(column) for column in columns]}
                       for count, columns in document.batches]
    return made


def load(path):
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "rt", encoding="utf-8") as file:
        return from_json(json.load(file))


def difference(expected, found):
    """What is first different between two documents, or None."""
    if expected.shape() != found.shape():
        return f"schema: {found.shape()}, not {expected.shape()}"
    old, new = expected.rows(), found.rows()
    if len(old) != len(new):
        return f"{len(new)} batches, not {len(old)}"
    for number, (a, b) in enumerate(zip(old, new)):
        if repr(a) != repr(b):  # in which a NaN is like another one
            return f"batch {number}: {b}, not {a}"
    return None


# ---- values alone -----------------------------------------------------------

NANOSECONDS = {"SECOND": 10**9, "MILLISECOND": 10**6, "MICROSECOND": 1000,
               "NANOSECOND": 1, "DAY": 86400 * 10**9}
MOMENTS = "date", "time", "timestamp", "duration"
LISTS = "list", "largelist", "listview", "largelistview", "fixedsizelist", "map"


def meant(field, value):
    """What a value means, in whatever type it is: times in nanoseconds, decimals
    without their width, a member of a union or of a run by itself."""
    kind = field.type
    name = kind["name"]
    if value is None:
        return None
    if name in ("int", "bool"):
        return int(value)
    if name == "decimal":
        return decimal.Decimal(int(value)).scaleb(-kind["scale"]).normalize()
    if name in MOMENTS:
        return int(value) * NANOSECONDS[kind["unit"]]
    if name == "interval":
        parts = value if isinstance(value, dict) else {"months": value}
        return (int(parts.get("months", 0)), int(parts.get("days", 0)),
                int(parts.get("nanoseconds", 0)) +
                int(parts.get("milliseconds", 0)) * 10**6)
    if name in LISTS:
        return [meant(field.children[0], item) for item in value]
    if name == "struct":
        return [meant(child, item)
                for child, item in zip(field.children, value)]
    if name == "union":
        child = field.children[kind["typeIds"].index(value[0])]
        return meant(child, value[1])
    if name == "runendencoded":
        return meant(field.children[1], value)
    return value


def meanings(document):
    """The values of each column, over all batches."""
    return [[meant(field, value) for _, columns in document.batches
             for value in columns[place].values()]
            for place, field in enumerate(document.fields)]


def difference_of_values(expected, found):
    """As difference(), for peers that have types of their own: names, rows and
    what the values mean."""
    names = [[field.name for field in document.fields]
             for document in (expected, found)]
    if names[0] != names[1]:
        return f"names: {names[1]}, not {names[0]}"
    rows = [sum(count for count, _ in document.batches)
            for document in (expected, found)]
    if rows[0] != rows[1]:
        return f"{rows[1]} rows, not {rows[0]}"
    for field, old, new in zip(found.fields, meanings(expected),
                               meanings(found)):
        if repr(old) != repr(new):
            return f"column {field.name} of {field.type}: {new}, not {old}"
    return None
