# SPDX-License-Identifier: Apache-2.0
"""The shapes of batches that the bench runs with, the libraries that it counts
instructions of, and the sizes for which it shows how cost grows: which runs they
need, and their tables."""
from layout import cell, number, table

# The shapes in the order of the page, as batch.h has them. A figure of "number"
# has no suffix.
SHAPES = {"flights": "the flights", "": "one `int64`", "mixed": "64 mixed",
          "numbers": "1,000 numbers"}
# Programs that run with each shape, and the part of their cases for which each is
# run, on one core: lanes of 64 stand for all others.
SHAPED = {
    "drive": {"flights": "drive", "mixed": "drive/64", "numbers": "drive/64"},
    "lane": {"flights": "lane", "mixed": "lane/64", "numbers": "lane/64"},
    "outlet": {"flights": "outlet", "mixed": "outlet/64",
               "numbers": "outlet/64"},
    "arrow": dict.fromkeys(("flights", "mixed", "numbers"), "arrow/64"),
    "take": {"flights": "take", "mixed": "take/loop/64",
             "numbers": "take/loop/64"},
    "rebatch": dict.fromkeys(("flights", "mixed", "numbers"), "rebatch/shape"),
    **dict.fromkeys(("stages", "merge", "branches"),
                    {"flights": "", "mixed": "", "numbers": ""}),
}
TWO_CORES = ("lane", "outlet") # that run with the flights on two cores, too

LIBRARIES = {"gcc-static": "static, gcc", "gcc-shared": "shared, gcc",
             "clang-static": "static, clang", "clang-shared": "shared, clang"}
# Cases that are counted with each library, and their short run.
COMPARED = {"lane/64/uvarrow": 4000, "lane/512/uvarrow": 8000,
            "outlet/64/uvarrow": 4000, "outlet/512/uvarrow": 8000,
            "drive/64/uvarrow": 4096, "drive/64/uvarrow-on-loop": 4096,
            "drive/64/uvarrow-4-maps": 4096, "stages/filter": 4096,
            "take/loop/64/take": 4000, "branches/3/uvarrow": 4000}
LIMIT = 1.05 # of the instructions, against the static library of gcc


def named(case, shape):
    """The name of a figure of that shape"""
    return f"{case}@{shape}" if shape else case


def runs(program, mode):
    """(options, ...) of each run of a program"""
    yield ()
    for shape, only in SHAPED.get(program, {}).items():
        if mode == "one" or (shape == "flights" and program in TWO_CORES):
            yield ("--shape", shape, *(("--only", only) if only else ()))


# ---- tables of programs -----------------------------------------------------

def cases_of(figures, program):
    """The cases of a program, whatever the shape"""
    return dict.fromkeys(name.split("@")[0]
                         for mode in figures.values() for name in mode
                         if name.split("/")[0] == program)


def shaped_rows(cases, shown):
    for case in cases:
        row = [shown(named(case, shape)) for shape in SHAPES]
        if any(row):
            yield [f"`{case}`", *row]


def program_lines(figures, counts, program):
    """The tables of a program that runs with each shape"""
    cases = cases_of(figures, program)
    for title, shown in (
            ("One core", lambda name: cell(figures, "one", name)),
            ("Two cores", lambda name: cell(figures, "two", name)),
            ("Instructions", lambda name: f"{counts[name]:,}"
             if name in counts else "")):
        rows = list(shaped_rows(cases, shown))
        if rows:
            yield from table([title, *SHAPES.values()], rows)
            yield ""


# ---- libraries --------------------------------------------------------------

def compared():
    for case, short in COMPARED.items():
        for shape in ("flights", ""):
            yield case, shape, short


def library_rows(counts):
    main = counts.get("gcc-static", {})
    for case, shape, _ in compared():
        name = named(case, shape)
        if name not in main:
            continue
        row = [f"`{case}`, {SHAPES[shape]}", f"{main[name]:,}"]
        for library in list(LIBRARIES)[1:]:
            count = counts.get(library, {}).get(name)
            ratio = count / main[name] if count else 0
            text = f"{count:,} ({number(ratio)} x)" if count else ""
            row.append(f"**{text}**" if ratio > LIMIT else text)
        yield row


def library_lines(kept):
    rows = list(library_rows(kept["counts"]))
    if not rows:
        return
    yield from ("", "## The library as it is installed", "",
                "Instructions of one more batch, with each library that an "
                "installation has, by each\ncompiler; more than "
                f"{number((LIMIT - 1) * 100)} % above the first column is bold. "
                "All other figures of this page are of\nthe static library by "
                "gcc.", "")
    yield from table(["Case", *LIBRARIES.values()], rows)


# ---- growth -----------------------------------------------------------------

# What grows: the title, the figure for each size, and the work of one of that
# size in the unit of its figure.
GROWTHS = (
    ("streams that are open: a batch", "many/{}/uvarrow",
     (1, 100, 1000, 10000, 100000), 0),
    ("streams that are merged: a batch", "merge/{}",
     (2, 10, 100, 1000), 0),
    ("columns of numbers: a column", "scaling/numbers/{}",
     (1, 16, 256, 4096), 1),
    ("columns of texts: a column", "scaling/texts/{}", (1, 16, 256, 4096), 1),
    ("mixed columns: a column", "scaling/mixed/{}", (1, 16, 256, 4096), 1),
    ("rows of a batch of the flights: a batch", "scaling/rows/{}",
     (1, 1024, 32768, 1048576), 0),
    ("millions of rows of a table of 20 columns: a million", "scaling/table/{}",
     (1, 10), 1),
    ("tasks that a handler holds: a task", "scaling/held/{}",
     (1000, 10000, 100000, 1000000), 0),
    ("... extracted in a turn each: a task", "scaling/held-turns/{}",
     (1000, 10000, 100000), 0),
    ("batches that are collected: a batch", "scaling/collected/{}",
     (1000, 10000, 100000, 1000000), 0),
    ("stages of a stream: a stage", "scaling/stages/{}", (1, 4, 16, 64), 1),
    ("branches of a tee: a branch", "scaling/branches/{}", (1, 4, 16, 64), 1),
)
# Of these instructions are counted: batches of the short and of the longer run.
GROWN = {
    **{f"scaling/{kind}/{n}": (short, 3 * short)
       for kind in ("numbers", "texts", "mixed")
       for n, short in ((1, 2000), (16, 2000), (256, 200), (4096, 20))},
    **{f"scaling/rows/{n}": (1000, 3000) for n in (1, 1024, 32768)},
    **{f"scaling/held/{n}": (n, 3 * n) for n in (1000, 10000, 100000)},
    **{f"scaling/held-turns/{n}": (n, 3 * n) for n in (1000, 10000)},
    **{f"scaling/collected/{n}": (n, 3 * n) for n in (1000, 10000, 100000)},
    **{f"scaling/stages/{n}": (1000, 3000) for n in (1, 4, 16)},
    **{f"scaling/branches/{n}": (1000, 3000) for n in (1, 4, 16)},
}


def growth_rows(value, unit):
    for title, name, sizes, each in GROWTHS:
        values = [(n, value(name.format(n)) / (n if each else 1))
                  for n in sizes if value(name.format(n)) is not None]
        if len(values) > 1:
            least = min(v for _, v in values[:-1])
            yield [title, "; ".join(f"{n:,}: {number(v)}{unit}"
                                    for n, v in values),
                   f"{number(values[-1][1] / least)} x"]


def growth_lines(figures, counts):
    time = list(growth_rows(lambda name: figures["one"].get(name, [0, None])[1],
                            " ns"))
    instructions = list(growth_rows(counts.get, ""))
    if not time and not instructions:
        return
    yield from ("", "## How cost grows", "",
                "The cost of a unit of work, for several sizes; and how many "
                "times the least of the others\nthe cost at the largest size is: "
                "above 1, a unit costs more where there are more of them. Where\n"
                "its instructions stay and its time grows, memory has left the "
                "caches of the core.", "")
    for title, rows in ("CPU time", time), ("Instructions", instructions):
        if rows:
            yield from table([title, "Size: cost", "Largest"], rows)
            yield ""
