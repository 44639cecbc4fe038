"""Documents as the structs of Arrow's C data interface, by Python alone.

export_stream() gives a document as an ArrowArrayStream, import_stream() reads
one; alive() is the number of structs that were exported and not yet released.
"""

import ctypes
import errno
import struct

from columns import (BINARY, BITS, DENSE, FIXED, FIXED_LIST, LIST, LIST_VIEW,
                     NULL, RUNS, SPARSE, STRUCT, UNITS, VIEW, Column, Document,
                     Field, bitmap, layout, packed)

I64, VOID = ctypes.c_int64, ctypes.c_void_p


class Schema(ctypes.Structure):
    pass


class Array(ctypes.Structure):
    pass


class Stream(ctypes.Structure):
    pass


RELEASE = ctypes.CFUNCTYPE(None, VOID)
GET = ctypes.CFUNCTYPE(ctypes.c_int, VOID, VOID)
TEXT = ctypes.CFUNCTYPE(VOID, VOID)

Schema._fields_ = [
    ("format", ctypes.c_char_p), ("name", ctypes.c_char_p), ("metadata", VOID),
    ("flags", I64), ("n_children", I64),
    ("children", ctypes.POINTER(ctypes.POINTER(Schema))),
    ("dictionary", ctypes.POINTER(Schema)), ("release", RELEASE),
    ("private_data", VOID)]
Array._fields_ = [
    ("length", I64), ("null_count", I64), ("offset", I64), ("n_buffers", I64),
    ("n_children", I64), ("buffers", ctypes.POINTER(VOID)),
    ("children", ctypes.POINTER(ctypes.POINTER(Array))),
    ("dictionary", ctypes.POINTER(Array)), ("release", RELEASE),
    ("private_data", VOID)]
Stream._fields_ = [("get_schema", GET), ("get_next", GET), ("get_text", TEXT),
                   ("release", RELEASE), ("private_data", VOID)]


class DeviceStream(ctypes.Structure):
    _fields_ = [("device_type", ctypes.c_int32), *Stream._fields_]


ORDERED, NULLABLE, SORTED = 1, 2, 4

# ---- formats ----------------------------------------------------------------

PLAIN = {"null": "n", "bool": "b", "utf8": "u", "largeutf8": "U",
         "utf8view": "vu", "binary": "z", "largebinary": "Z",
         "binaryview": "vz", "list": "+l", "largelist": "+L",
         "listview": "+vl", "largelistview": "+vL", "struct": "+s",
         "map": "+m", "runendencoded": "+r"}
NAMES = {text: name for name, text in PLAIN.items()}
INTS = {(8, True): "c", (8, False): "C", (16, True): "s", (16, False): "S",
        (32, True): "i", (32, False): "I", (64, True): "l", (64, False): "L"}
FLOATS = {"HALF": "e", "SINGLE": "f", "DOUBLE": "g"}
INTERVALS = {"YEAR_MONTH": "tiM", "DAY_TIME": "tiD", "MONTH_DAY_NANO": "tin"}


def format_of(kind):
    name = kind["name"]
    if name in PLAIN:
        return PLAIN[name]
    if name == "int":
        return INTS[kind["bitWidth"], kind["isSigned"]]
    if name == "floatingpoint":
        return FLOATS[kind["precision"]]
    if name == "fixedsizebinary":
        return f"w:{kind['byteWidth']}"
    if name == "fixedsizelist":
        return f"+w:{kind['listSize']}"
    if name == "decimal":
        bits = kind.get("bitWidth", 128)
        return (f"d:{kind['precision']},{kind['scale']}" +
                (f",{bits}" if bits != 128 else ""))
    if name == "date":
        return "tdD" if kind["unit"] == "DAY" else "tdm"
    if name == "interval":
        return INTERVALS[kind["unit"]]
    if name == "union":
        ids = ",".join(map(str, kind["typeIds"]))
        return f"+u{kind['mode'][0].lower()}:{ids}"
    unit = UNITS[kind["unit"]]
    if name == "timestamp":
        return f"ts{unit}:{kind.get('timezone') or ''}"
    return {"time": "tt", "duration": "tD"}[name] + unit


def key_of(table, value):
    return next(key for key, other in table.items() if other == value)


def type_of(text, flags):
    """The type of a format."""
    head, _, tail = text.partition(":")
    if text == "+m":
        return {"name": "map", "keysSorted": bool(flags & SORTED)}
    if text in NAMES:
        return {"name": NAMES[text]}
    if text in INTS.values():
        bits, signed = key_of(INTS, text)
        return {"name": "int", "bitWidth": bits, "isSigned": signed}
    if text in FLOATS.values():
        return {"name": "floatingpoint", "precision": key_of(FLOATS, text)}
    if head == "w":
        return {"name": "fixedsizebinary", "byteWidth": int(tail)}
    if head == "+w":
        return {"name": "fixedsizelist", "listSize": int(tail)}
    if head == "d":
        numbers = [int(number) for number in tail.split(",")] + [128]
        return {"name": "decimal", "precision": numbers[0],
                "scale": numbers[1], "bitWidth": numbers[2]}
    if head in ("+ud", "+us"):
        return {"name": "union", "mode": "DENSE" if head == "+ud" else "SPARSE",
                "typeIds": [int(number) for number in tail.split(",")]}
    return time_type_of(text, head, tail)


def time_type_of(text, head, tail):
    if text in ("tdD", "tdm"):
        return {"name": "date", "unit": "DAY" if text == "tdD"
                else "MILLISECOND"}
    if text in INTERVALS.values():
        return {"name": "interval", "unit": key_of(INTERVALS, text)}
    unit = key_of(UNITS, head[2])
    if head[:2] == "ts":
        return {"name": "timestamp", "unit": unit, "timezone": tail}
    if head[:2] == "tt":
        return {"name": "time", "unit": unit,
                "bitWidth": 32 if head[2] in "sm" else 64}
    return {"name": "duration", "unit": unit}


# ---- export -----------------------------------------------------------------

kept = {}  # what a struct needs, by its private_data
numbers = iter(range(1, 1 << 62))


def alive():
    return len(kept)


def drop(struct_type, address):
    """Releases a struct of ours, with the children that were not moved."""
    self = struct_type.from_address(address)
    for i in range(self.n_children):
        child = self.children[i].contents
        if child.release:
            child.release(ctypes.addressof(child))
    if self.dictionary and self.dictionary.contents.release:
        self.dictionary.contents.release(
            ctypes.addressof(self.dictionary.contents))
    kept.pop(self.private_data)
    self.release = RELEASE()


drop_schema = RELEASE(lambda address: drop(Schema, address))
drop_array = RELEASE(lambda address: drop(Array, address))


def keep(self, release, *objects):
    number = next(numbers)
    kept[number] = objects
    self.private_data = number
    self.release = release


def metadata_bytes(pairs):
    data = struct.pack("<i", len(pairs))
    for pair in pairs:
        for text in pair:
            text = text.encode()
            data += struct.pack("<i", len(text)) + text
    return data


def pointers(struct_type, children):
    made = (ctypes.POINTER(struct_type) * max(len(children), 1))()
    for i, child in enumerate(children):
        made[i] = ctypes.pointer(child)
    return made


def cleared(self):
    ctypes.memset(ctypes.addressof(self), 0, ctypes.sizeof(self))


def export_schema(field, self):
    cleared(self)
    children = [Schema() for _ in (() if field.index else field.children)]
    for child, part in zip(field.children, children):
        export_schema(child, part)
    self.format = format_of(field.index or field.type).encode()
    self.name = field.name.encode()
    self.flags = (NULLABLE if field.nullable else 0) | (
        ORDERED if field.ordered else 0) | (
        SORTED if field.type.get("keysSorted") and not field.index else 0)
    self.n_children = len(children)
    self.children = pointers(Schema, children)
    metadata = ctypes.create_string_buffer(metadata_bytes(field.metadata))
    if field.metadata:
        self.metadata = ctypes.addressof(metadata)
    words = None
    if field.index:
        words = Schema()
        export_schema(Field("", field.type, True, field.children), words)
        self.dictionary = ctypes.pointer(words)
    keep(self, drop_schema, children, metadata, words, self.children)


def aligned(data):
    """The buffer, and an address in it that all values may have."""
    made = ctypes.create_string_buffer(len(data) + 64)
    address = (ctypes.addressof(made) + 63) & ~63
    ctypes.memmove(address, data, len(data))
    return made, address


def export_array(column, self):
    cleared(self)
    children = [Array() for _ in column.children]
    for child, part in zip(column.children, children):
        export_array(child, part)
    form, _ = layout(column.kind())
    data = list(column.buffers)
    if form == VIEW:
        data.append(packed([len(part) for part in data[2:]], 8))
    held = [None if part is None else aligned(part) for part in data]
    buffers = (VOID * max(len(held), 1))()
    for i, part in enumerate(held):
        buffers[i] = part and part[1]
    self.length = column.count
    self.null_count = column.count if form == NULL else (
        0 if form in (SPARSE, DENSE, RUNS) else column.valid().count(False))
    self.n_buffers, self.buffers = len(held), buffers
    self.n_children, self.children = len(children), pointers(Array, children)
    words = None
    if column.dictionary is not None:
        words = Array()
        export_array(column.dictionary, words)
        self.dictionary = ctypes.pointer(words)
    keep(self, drop_array, children, held, buffers, words, self.children)


class Given:
    """A document as a stream; after `fail` batches it fails."""

    def __init__(self, document, fail=None):
        self.document, self.fail, self.at = document, fail, 0
        self.text = ctypes.create_string_buffer("it broke: ü".encode())
        self.calls = (GET(self.get_schema), GET(self.get_next),
                      TEXT(lambda _: ctypes.addressof(self.text)),
                      RELEASE(self.release))

    def get_schema(self, _, out):
        export_schema(Field("", {"name": "struct"}, False, self.document.fields,
                            metadata=self.document.metadata),
                      Schema.from_address(out))
        return 0

    def get_next(self, _, out):
        array = Array.from_address(out)
        if self.at == self.fail:
            return errno.EIO
        if self.at == len(self.document.batches):
            array.release = RELEASE()
            return 0
        count, columns = self.document.batches[self.at]
        self.at += 1
        export_array(Column(Field("", {"name": "struct"}), count, [None],
                            columns), array)
        return 0

    def release(self, address):
        stream = Stream.from_address(address)
        released.append(kept.pop(stream.private_data))
        del released[:-8]  # a callback is not freed while it runs
        stream.release = RELEASE()


released = []


def export_stream(document, fail=None):
    given, self = Given(document, fail), Stream()
    self.get_schema, self.get_next, self.get_text = given.calls[:3]
    keep(self, given.calls[3], given)
    return self


# ---- import -----------------------------------------------------------------

def metadata_pairs(address):
    if not address:
        return []

    def number():
        nonlocal address
        value, = struct.unpack("<i", ctypes.string_at(address, 4))
        address += 4
        return value

    def text():
        nonlocal address
        size = number()
        value = ctypes.string_at(address, size).decode()
        address += size
        return value

    return [(text(), text()) for _ in range(number())]


def import_schema(self):
    children = [import_schema(self.children[i].contents)
                for i in range(self.n_children)]
    kind = type_of(self.format.decode(), self.flags)
    field = Field((self.name or b"").decode(), kind,
                  bool(self.flags & NULLABLE), children,
                  metadata=metadata_pairs(self.metadata))
    if self.dictionary:
        words = import_schema(self.dictionary.contents)
        field.index, field.type = kind, words.type
        field.children = words.children
        field.ordered = bool(self.flags & ORDERED)
    return field


def part_of(address, begin, size):
    return ctypes.string_at(address + begin, size) if size else b""


def bits_of(address, begin, count):
    if not address:
        return None
    data = part_of(address, begin // 8, (begin % 8 + count + 7) // 8)
    return bitmap([data[i // 8] >> i % 8 & 1
                   for i in range(begin % 8, begin % 8 + count)])


def import_array(self, field, start=0, count=None):
    """`count` values from `start` on, which are a column without an offset."""
    count = self.length if count is None else count
    begin = self.offset + start
    form, width = layout(field.index or field.type)
    column = Column(field, count, [])
    if form not in (NULL, SPARSE, DENSE, RUNS):
        column.buffers.append(bits_of(self.buffers[0], begin, count))
    IMPORTERS[form](self, column, begin, width)
    if field.index:
        column.dictionary = import_array(
            self.dictionary.contents, Field("", field.type, True,
                                            field.children))
    elif form in (STRUCT, SPARSE):
        import_children(self, column, begin, count)
    elif form == FIXED_LIST:
        import_children(self, column, begin * width, count * width)
    elif form in (LIST, LIST_VIEW, DENSE):
        import_children(self, column)
    return column


def import_children(self, column, start=0, count=None):
    column.children = [
        import_array(self.children[i].contents, field, start, count)
        for i, field in enumerate(column.field.children)]


def import_fixed(self, column, begin, width):
    column.buffers.append(
        part_of(self.buffers[1], begin * width, column.count * width))


def import_offsets(self, column, begin, width):
    if not self.buffers[1]:  # allowed for an array without values
        column.buffers.append(bytes(width))
        return
    column.buffers.append(
        part_of(self.buffers[1], begin * width, (column.count + 1) * width))


def import_binary(self, column, begin, width):
    import_offsets(self, column, begin, width)
    ends = column.ints(1, width)
    column.buffers[1] = packed([end - ends[0] for end in ends], width)
    column.buffers.append(
        part_of(self.buffers[2], ends[0], ends[-1] - ends[0]))


def import_view(self, column, begin, width):
    import_fixed(self, column, begin, width)
    count = self.n_buffers - 3
    sizes = struct.unpack(f"<{count}q", part_of(
        self.buffers[self.n_buffers - 1], 0, 8 * count))
    column.buffers += [part_of(self.buffers[2 + i], 0, size)
                       for i, size in enumerate(sizes)]


def import_list_view(self, column, begin, width):
    for buffer in 1, 2:
        column.buffers.append(part_of(self.buffers[buffer], begin * width,
                                      column.count * width))


def import_union(self, column, begin, _):
    column.buffers.append(part_of(self.buffers[0], begin, column.count))
    if column.field.type["mode"] == "DENSE":
        column.buffers.append(
            part_of(self.buffers[1], begin * 4, column.count * 4))


def import_runs(self, column, begin, _):
    """Cuts the runs to those of the column."""
    ends, values = column.field.children
    array = import_array(self.children[0].contents, ends)
    all_ends = [int(end) for end in array.values()]
    found = [i for i, end in enumerate(all_ends) if end > begin and (
        i == 0 or all_ends[i - 1] < begin + column.count)]
    cut = [min(all_ends[i] - begin, column.count) for i in found]
    width = layout(ends.type)[1]
    code = {2: "h", 4: "i", 8: "q"}[width]
    column.children = [
        Column(ends, len(cut), [None, struct.pack(f"<{len(cut)}{code}", *cut)]),
        import_array(self.children[1].contents, values,
                     found[0] if found else 0, len(found))]


IMPORTERS = {
    NULL: lambda *_: None, STRUCT: lambda *_: None, FIXED_LIST: lambda *_: None,
    BITS: lambda self, column, begin, _: column.buffers.append(
        bits_of(self.buffers[1], begin, column.count) or b""),
    FIXED: import_fixed, BINARY: import_binary, VIEW: import_view,
    LIST: import_offsets, LIST_VIEW: import_list_view, SPARSE: import_union,
    DENSE: import_union, RUNS: import_runs}


class Failed(Exception):
    """A stream failed: the code, and its text"""


def taken(stream, call, struct_type):
    """What a call of a stream gives."""
    made = struct_type()
    address = ctypes.addressof(stream)
    code = call(address, ctypes.addressof(made))
    if code != 0:
        text = stream.get_text(address)
        raise Failed(code, ctypes.string_at(text).decode() if text else "")
    return made


def import_stream(stream, most=None):
    """Reads a stream, or its first batches, and releases it."""
    try:
        schema = taken(stream, stream.get_schema, Schema)
        top = import_schema(schema)
        schema.release(ctypes.addressof(schema))
        document = Document(top.children, [], top.metadata)
        while most is None or len(document.batches) < most:
            array = taken(stream, stream.get_next, Array)
            if not array.release:
                break
            column = import_array(array, top)
            document.batches.append((column.count, column.children))
            array.release(ctypes.addressof(array))
        return document
    finally:
        stream.release(ctypes.addressof(stream))
