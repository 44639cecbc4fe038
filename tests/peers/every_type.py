"""A document for every type of the columnar format, from one seed.

documents(SEED) gives {name: document in JSON}; each has two columns of a type,
with nulls and without, in batches of 7, 0, and 12 rows, and the values of
floats are exact in a few digits, as the JSON asks.
"""

import random

ROWS = 7, 0, 12
INTS = [(bits, signed) for bits in (8, 16, 32, 64) for signed in (True, False)]
UNITS = "SECOND", "MILLISECOND", "MICROSECOND", "NANOSECOND"
TEXTS = ["", "a", "Grüße", "zwölf Bytes", "𝄞 above U+FFFF", "x" * 40,
         "twelve bytes", "a text that is longer than a view holds"]


def kind(name, **more):
    return {"name": name, **more}


def integer(bits=32, signed=True):
    return kind("int", bitWidth=bits, isSigned=signed)


def field(type_, *children, name="v", nullable=True, **more):
    return {"name": name, "type": type_, "nullable": nullable,
            "children": list(children), **more}


INT32, UTF8 = integer(), kind("utf8")
ITEM = field(INT32, name="item")
RUN_ENDS = {bits: field(integer(bits), name="run_ends", nullable=False)
            for bits in (16, 32, 64)}


def entries(value):
    return field(kind("struct"), field(UTF8, name="key", nullable=False),
                 {**value, "name": "value"}, name="entries", nullable=False)


def dictionary(type_, *children, index=INT32, ordered=False, number=0, **more):
    return field(type_, *children, dictionary={
        "id": number, "indexType": index, "isOrdered": ordered}, **more)


def scalars():
    yield "null", field(kind("null"))
    yield "bool", field(kind("bool"))
    for bits, signed in INTS:
        yield f"{'' if signed else 'u'}int{bits}", field(integer(bits, signed))
    for precision in "HALF", "SINGLE", "DOUBLE":
        yield (f"float_{precision.lower()}",
               field(kind("floatingpoint", precision=precision)))
    for name in ("utf8", "largeutf8", "utf8view", "binary", "largebinary",
                 "binaryview"):
        yield name, field(kind(name))
    yield "fixedsizebinary", field(kind("fixedsizebinary", byteWidth=5))
    for bits, precision in (32, 7), (64, 15), (128, 30), (256, 70):
        yield f"decimal{bits}", field(kind("decimal", precision=precision,
                                           scale=2, bitWidth=bits))
    yield "decimal_negative_scale", field(
        kind("decimal", precision=10, scale=-3, bitWidth=128))


def times():
    for unit in "DAY", "MILLISECOND":
        yield f"date_{unit.lower()}", field(kind("date", unit=unit))
    for unit in UNITS:
        name, bits = unit.lower(), 32 if unit in UNITS[:2] else 64
        yield f"time_{name}", field(kind("time", unit=unit, bitWidth=bits))
        yield f"timestamp_{name}", field(kind("timestamp", unit=unit))
        yield f"duration_{name}", field(kind("duration", unit=unit))
    yield "timestamp_zone", field(
        kind("timestamp", unit="MICROSECOND", timezone="Europe/Paris"))
    for unit in "YEAR_MONTH", "DAY_TIME", "MONTH_DAY_NANO":
        yield f"interval_{unit.lower()}", field(kind("interval", unit=unit))


def nested():
    both = (field(INT32, name="a"), field(UTF8, name="b", nullable=False))
    for name in "list", "largelist", "listview", "largelistview":
        yield name, field(kind(name), ITEM)
    yield "fixedsizelist", field(kind("fixedsizelist", listSize=3), ITEM)
    yield "struct", field(kind("struct"), *both)
    yield "map", field(kind("map", keysSorted=False), entries(ITEM))
    yield "map_sorted", field(kind("map", keysSorted=True), entries(ITEM))
    for mode in "SPARSE", "DENSE":
        for name, ids in (("", [0, 1]), ("_ids", [100, 5])):
            yield f"union_{mode.lower()}{name}", field(
                kind("union", mode=mode, typeIds=ids), *both)
    for bits, ends in RUN_ENDS.items():
        yield f"runendencoded{bits}", field(
            kind("runendencoded"), ends, field(UTF8, name="values"))
    yield "list_of_struct", field(kind("list"), field(
        kind("struct"), field(kind("list"), ITEM, name="c"), *both,
        name="item"))
    yield "list_of_view", field(kind("list"), field(kind("utf8view"),
                                                   name="item"))
    yield "struct_of_decimal", field(kind("struct"), field(
        kind("decimal", precision=30, scale=2, bitWidth=128), name="d"))
    yield "map_of_map", field(kind("map", keysSorted=False), entries(
        field(kind("map", keysSorted=False), entries(ITEM))))
    yield "fixedsizelist_of_list", field(
        kind("fixedsizelist", listSize=2), field(kind("list"), ITEM,
                                                 name="item"))


def dictionaries():
    for bits, signed in INTS:
        yield (f"dictionary_{'' if signed else 'u'}int{bits}",
               dictionary(UTF8, index=integer(bits, signed)))
    yield "dictionary_ordered", dictionary(UTF8, ordered=True)
    for name in "int", "utf8view", "binary", "floatingpoint":
        type_ = {"int": integer(64), "floatingpoint": kind(
            name, precision="DOUBLE")}.get(name, kind(name))
        yield f"dictionary_of_{name}", dictionary(type_)
    yield "dictionary_of_struct", dictionary(
        kind("struct"), field(INT32, name="a"), field(UTF8, name="b"))
    yield "dictionary_of_list", dictionary(kind("list"), ITEM)
    yield "list_of_dictionary", field(kind("list"), dictionary(UTF8,
                                                               name="item"))
    yield "struct_of_dictionaries", field(
        kind("struct"), dictionary(UTF8, name="a"),
        dictionary(INT32, number=1, name="b", index=integer(8)))
    yield "dictionary_of_dictionary", dictionary(
        kind("struct"), dictionary(UTF8, number=1, name="a"))


def extensions():
    def marked(name, text, field_):
        return {**field_, "metadata": [
            {"key": "ARROW:extension:name", "value": name},
            {"key": "ARROW:extension:metadata", "value": text}]}

    yield "extension_unknown", marked("peers.none", "{\"a\": 1}", field(INT32))
    yield "extension_uuid", marked("arrow.uuid", "", field(
        kind("fixedsizebinary", byteWidth=16)))
    yield "extension_json", marked("arrow.json", "", field(UTF8))


FAMILIES = scalars, times, nested, dictionaries, extensions


# ---- values -----------------------------------------------------------------

class Maker:
    def __init__(self, seed):
        self.random = random.Random(seed)
        self.words = {}  # dictionaries, by number

    def some(self, count):
        return self.random.randrange(count)

    def validity(self, field_, count):
        return [int(not field_["nullable"] or self.some(4) > 0)
                for _ in range(count)]

    def column(self, field_, count):
        given = field_.get("dictionary")
        if given:
            return self.indices(field_, given, count)
        name = field_["type"]["name"]
        make = getattr(self, name, self.fixed)
        made = {"name": field_["name"], "count": count}
        if name not in ("null", "union", "runendencoded"):
            made["VALIDITY"] = self.validity(field_, count)
        make(made, field_, count)
        return made

    def indices(self, field_, given, count):
        if given["id"] not in self.words:
            words = {key: value for key, value in field_.items()
                     if key != "dictionary"}
            self.words[given["id"]] = self.column({**words, "nullable": False},
                                                  6)
        wide = given["indexType"]["bitWidth"] == 64
        values = [self.some(6) for _ in range(count)]
        return {"name": field_["name"], "count": count,
                "VALIDITY": self.validity(field_, count),
                "DATA": [str(value) if wide else value for value in values]}

    # ---- values of a fixed size

    def fixed(self, made, field_, count):
        type_ = field_["type"]
        made["DATA"] = [self.value(type_) if valid else self.zero(type_)
                        for valid in made["VALIDITY"]]

    def zero(self, type_):
        value = self.value(type_)
        if isinstance(value, dict):
            return dict.fromkeys(value, 0)
        if type_["name"] == "fixedsizebinary":
            return "0" * len(value)
        return "0" if isinstance(value, str) else 0

    def value(self, type_):
        return getattr(self, "of_" + type_["name"])(type_)

    def of_int(self, type_):
        bits = type_["bitWidth"]
        low = -(1 << bits - 1) if type_["isSigned"] else 0
        value = self.random.choice([low, low + (1 << bits) - 1, 0, 1,
                                    low + self.some(1 << bits)])
        return str(value) if bits == 64 else value

    def of_bool(self, _):
        return self.some(2)

    def of_floatingpoint(self, _):
        return (self.some(2001) - 1000) / 8

    def of_fixedsizebinary(self, type_):
        return self.random.randbytes(type_["byteWidth"]).hex().upper()

    def of_decimal(self, type_):
        most = 10 ** type_["precision"]
        return str(self.random.choice([1 - most, most - 1, 0,
                                       self.some(most)]))

    def of_date(self, type_):
        day = self.some(40000) - 10000
        return day if type_["unit"] == "DAY" else str(day * 86400000)

    def of_time(self, type_):
        second = 1000 ** UNITS.index(type_["unit"])
        value = self.some(86400) * second
        return str(value) if type_["bitWidth"] == 64 else value

    def of_timestamp(self, type_):
        second = 1000 ** UNITS.index(type_["unit"])
        return str((self.some(1 << 31) - (1 << 29)) * second)

    def of_duration(self, _):
        return str(self.some(1 << 62) - (1 << 61))

    def of_interval(self, type_):
        some = self.some(4000) - 2000
        if type_["unit"] == "YEAR_MONTH":
            return some
        if type_["unit"] == "DAY_TIME":
            return {"days": some, "milliseconds": self.some(86400000)}
        return {"months": some, "days": -some,
                "nanoseconds": self.some(1 << 50)}

    # ---- values of a variable size

    def texts(self, made):
        return [self.random.choice(TEXTS) if valid else ""
                for valid in made["VALIDITY"]]

    def written(self, made, name):
        """Texts, or such bytes in hexadecimal."""
        texts = self.texts(made)
        if "utf8" in name:
            return texts, [len(text.encode()) for text in texts]
        texts = [text.encode()[::-1].hex().upper() for text in texts]
        return texts, [len(text) // 2 for text in texts]

    def utf8(self, made, field_, _):
        name = field_["type"]["name"]
        made["DATA"], sizes = self.written(made, name)
        self.offsets(made, sizes, name.startswith("large"))

    largeutf8 = binary = largebinary = utf8

    @staticmethod
    def offsets(made, sizes, large):
        ends = [sum(sizes[:i]) for i in range(len(sizes) + 1)]
        made["OFFSET"] = [str(end) for end in ends] if large else ends
        return ends[-1]

    def utf8view(self, made, field_, _):
        texts, sizes = self.written(made, field_["type"]["name"])
        buffers = [b"", b""]
        made["VIEWS"] = []
        for text, size in zip(texts, sizes):
            if size <= 12:
                made["VIEWS"].append({"SIZE": size, "INLINED": text})
                continue
            data = (text.encode() if "utf8" in field_["type"]["name"]
                    else bytes.fromhex(text))
            which = self.some(2)
            made["VIEWS"].append({
                "SIZE": size, "PREFIX_HEX": data[:4].hex().upper(),
                "BUFFER_INDEX": which, "OFFSET": len(buffers[which])})
            buffers[which] += data
        made["VARIADIC_DATA_BUFFERS"] = [data.hex().upper()
                                         for data in buffers]

    binaryview = utf8view

    # ---- nested values

    def children(self, made, field_, *counts):
        made["children"] = [self.column(child, count) for child, count
                            in zip(field_["children"], counts)]

    def null(self, made, field_, count):
        pass

    def list(self, made, field_, _):
        sizes = [self.some(4) if valid else 0 for valid in made["VALIDITY"]]
        large = field_["type"]["name"].startswith("large")
        self.children(made, field_, self.offsets(made, sizes, large))

    map = largelist = list

    def listview(self, made, field_, count):
        """Views out of order, which overlap."""
        items = 2 * count
        large = field_["type"]["name"].startswith("large")
        write = str if large else int
        begins = [self.some(items) for _ in range(count)]
        made["SIZE"] = [
            write(min(self.some(4), items - begin) if valid else 0)
            for begin, valid in zip(begins, made["VALIDITY"])]
        made["OFFSET"] = [write(begin) for begin in begins]
        self.children(made, field_, items)

    largelistview = listview

    def fixedsizelist(self, made, field_, count):
        self.children(made, field_, count * field_["type"]["listSize"])

    def struct(self, made, field_, count):
        self.children(made, field_, *[count] * len(field_["children"]))

    def union(self, made, field_, count):
        type_ = field_["type"]
        which = [self.some(2) for _ in range(count)]
        made["TYPE_ID"] = [type_["typeIds"][i] for i in which]
        if type_["mode"] == "SPARSE":
            return self.struct(made, field_, count)
        made["OFFSET"] = [which[:i].count(which[i]) for i in range(count)]
        return self.children(made, field_, which.count(0), which.count(1))

    def runendencoded(self, made, field_, count):
        ends = sorted(self.random.sample(range(1, count), min(3, count - 1))
                      + [count]) if count else []
        wide = field_["children"][0]["type"]["bitWidth"] == 64
        self.children(made, field_, 0, len(ends))
        made["children"][0] = {
            "name": "run_ends", "count": len(ends), "VALIDITY": [1] * len(ends),
            "DATA": [str(end) if wide else end for end in ends]}


# ---- documents --------------------------------------------------------------

def columns_of(field_):
    """With nulls, and without."""
    nullable = dict(field_)
    if field_["type"]["name"] in ("null", "union", "runendencoded"):
        return [nullable]
    return [nullable, {**field_, "name": "n", "nullable": False}]


def document(fields, seed, rows=ROWS, metadata=None):
    maker = Maker(seed)
    made = {"schema": {"fields": fields}, "batches": [
        {"count": count, "columns": [maker.column(field_, count)
                                     for field_ in fields]}
        for count in rows]}
    if metadata:
        made["schema"]["metadata"] = metadata
    if maker.words:
        made["dictionaries"] = [
            {"id": number, "data": {"count": 6, "columns": [words]}}
            for number, words in sorted(maker.words.items())]
    return made


def documents(seed):
    made = {}
    for family in FAMILIES:
        for name, field_ in family():
            made[name] = document(columns_of(field_), f"{seed} {name}")
    made["no_columns"] = document([], seed)
    made["no_batches"] = document([field(UTF8)], seed, ())
    made["metadata"] = document(
        [field(INT32, metadata=[{"key": "of", "value": "the field: ü"}])], seed,
        metadata=[{"key": "of", "value": "the schema"},
                  {"key": "empty", "value": ""}])
    made["shared_dictionary"] = document(
        [dictionary(UTF8, name="a"), dictionary(UTF8, name="b")], seed)
    return made
