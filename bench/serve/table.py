# SPDX-License-Identifier: Apache-2.0
"""Turns the figures of figures.py into a section of a page, which stands between
two marks, and compares them with the targets."""
from layout import medians, wrapped
from report import number, table

BEGIN = "<!-- bench/serve/figures.py: begin -->\n"
END = "<!-- bench/serve/figures.py: end -->\n"

HEAD = """The database has the 336,776 flights of the demo. The small query gives
1,850 of them ({small_arrow} as Arrow, {small_csv} as CSV), the whole one all
({whole_arrow} and {whole_csv}). The other server is uvicorn with uvloop and
httptools, Starlette, pyarrow's writers and the same driver, written for speed
(`bench/serve/peer.py`). datasette has CSV of SQLite alone, and gives the whole
table as the stream of its pages of rows. All run 8 queries at once. DuckDB's
server of HTTP is an extension of its community (`httpserver`), which could not be
had as a package: it was not tried. CPU is what the
server's process used for a request, in user and system mode. Beside other
programs it is valid within about a tenth after several rounds, but only within a
third after one; instructions are exact. `driver alone` is a loop that runs the same query and ignores its rows:
no server can be below it. The database is SQLite unless another is named. Of the
memory with many queries at once, the server's own part is what `memory_held` states,
98 MiB for 200 slow readers; the rest is mostly the pages that
SQLite keeps, 2 MB a connection."""

TIMES = """Of {code}{counted}. {medians}, on {processor}, {cores} cores, with
least and most in brackets; load average when they ended: {load}. `cmake --preset
bench && cmake --build --preset bench --target serve_figures` measures again and
writes this."""

CASES = (("sqlite/small/1", "small, 1 client"),
         ("sqlite/small/100", "small, 100 clients"),
         ("sqlite/small/1000", "small, 1,000 clients"),
         ("sqlite/whole/1", "whole, 1 client"),
         ("duckdb/whole/1", "whole, 1 client, DuckDB"))
FORMATS = (("arrow", "Arrow"), ("csv", "CSV"))
SERVERS = ("uvarrow", "peer", "datasette")
SLOW = (("slow/sqlite/8/arrow/{}", "200 slow readers, 8 queries at once"),
        ("slow/sqlite/8/csv/{}", "the same, CSV"),
        ("slow/duckdb/8/arrow/{}", "the same, DuckDB"),
        ("slow/sqlite/50/arrow/{}", "200 slow readers, 50 queries at once"),
        ("slow/sqlite/200/arrow/{}", "200 slow readers, 200 queries at once"))
PINGS = (("ping/small/100/csv/{}", "100 clients, small, CSV"),
         ("ping/whole/8/csv/{}", "8 clients, whole, CSV"),
         *((f"{name}/ping", title) for name, title in SLOW))
MEMORY = (("sqlite/small/1000/arrow/{}/memory", "1,000 clients, small, Arrow"),
          ("sqlite/small/1000/csv/{}/memory", "1,000 clients, small, CSV"),
          *((f"{name}/memory", title) for name, title in SLOW))
# The most memory of slow readers, in MiB
SLOW_MOST = (("slow/sqlite/8/arrow/uvarrow/memory", "8 queries at once", 42),
             ("slow/sqlite/8/csv/uvarrow/memory", "the same, CSV", 73),
             ("slow/sqlite/200/arrow/uvarrow/memory", "200 at once", 196))


def text(figures, name):
    if name not in figures:
        return ""
    unit, middle, *ends = figures[name]
    line = f"{number(middle)} {unit}"
    return line + (f" ({number(ends[0])} to {number(ends[1])})" if ends else "")


def size(figures, name):
    middle = figures[name][1] if name in figures else 0
    return f"{middle / 1e6:.1f} MB" if middle >= 1e6 else \
        f"{middle / 1e3:.0f} KB"


def cpu_rows(figures):
    for case, title in CASES:
        for form, label in FORMATS:
            yield [f"{title}: {label}",
                   *(text(figures, f"{case}/{form}/{what}") for what in
                     ("uvarrow/cpu", "peer/cpu", "ratio", "driver",
                      "datasette/cpu"))]


def own_ratio(figures, form):
    """The ratio of the servers' additions to the driver's instructions"""
    ours, theirs, driver = (figures[f"instructions/{what}"][1] for what in
                            (f"{form}/uvarrow", f"{form}/peer", "driver"))
    return max(0, ours - driver) / (theirs - driver)


def instruction_rows(figures):
    for form, label in FORMATS:
        if f"instructions/{form}/peer" in figures:
            yield [f"small: {label}",
                   *(text(figures, f"instructions/{what}") for what in
                     (f"{form}/uvarrow", f"{form}/peer", "driver")),
                   f"{number(own_ratio(figures, form))} x"]


def each_rows(figures, cases):
    for name, title in cases:
        yield [title, *(text(figures, name.format(who)) for who in SERVERS)]


# ---- targets ----------------------------------------------------------------

def verdict(title, value, limit, unit):
    past = value - limit
    return [title, f"{number(value)} {unit}", f"at most {number(limit)} {unit}",
            "met" if past <= 0 else f"**missed by {number(past)} {unit}**"]


def target_rows(figures):
    def worst(names):
        return max((figures[name][1] for name in names if name in figures),
                   default=None)

    for form, label, limit in (("csv", "CSV", 1 / 2), ("arrow", "Arrow", 1 / 3)):
        for driver, name in (("sqlite", "SQLite"), ("duckdb", "DuckDB")):
            value = worst([f"{case}/{form}/ratio" for case, _ in CASES
                           if case.startswith(driver)])
            if value is not None:
                yield verdict(f"CPU against the other server's, {label}, "
                              f"{name}, worst case", value, limit, "x")
        if f"instructions/{form}/peer" in figures:
            yield verdict(f"... instructions beyond the driver's, {label}, "
                          "SQLite", own_ratio(figures, form), limit, "x")
    for names, title, limit, unit in (
            ([name.format("uvarrow") for name, _ in MEMORY[:2]],
             "peak RSS, 1,000 clients, `--memory-bytes` 128 MiB", 300, "MiB"),
            ([name.format("uvarrow") for name, _ in PINGS],
             "p50 of `/health` beside any of these loads", 10, "ms")):
        value = worst(names)
        if value is not None:
            yield verdict(title, value, limit, unit)
    for name, title, limit in SLOW_MOST:
        if name in figures:
            yield verdict(f"peak RSS, 200 slow readers, {title}",
                          figures[name][1], limit, "MiB")


# ---- the page ---------------------------------------------------------------

def lines(kept):
    figures = kept["figures"]
    sizes = {f"{query}_{form}":
             size(figures, f"sqlite/{query}/{clients}/{form}/uvarrow/bytes")
             for query, clients in (("small", 100), ("whole", 1))
             for form, _ in FORMATS}
    heads = "`uvarrow serve`", "uvicorn + Starlette"
    yield from wrapped(HEAD, **sizes)
    yield ""
    code = kept["machine"]["code"]
    counted = kept.get("counted", code)
    yield from wrapped(
        TIMES, medians=medians(kept["rounds"]), **kept["machine"],
        counted="" if counted == code else f"; instructions: {counted}")
    yield ""
    yield from table(["CPU of a request", *heads, "ratio", "driver alone",
                      "datasette"],
                     cpu_rows(figures))
    yield ""
    yield from table(["Millions of instructions of a request, in user mode",
                      *heads, "driver alone", "ratio without the driver"],
                     instruction_rows(figures))
    yield ""
    yield from table(["Most memory of the process (RSS)", *heads, "datasette"],
                     each_rows(figures, MEMORY))
    yield ""
    yield from table(["p50 of `/health`, asked every 10 ms meanwhile", *heads,
                      "datasette"],
                     each_rows(figures, PINGS))
    yield ""
    yield from table(["", "Measured", "Target", ""], target_rows(figures))


def section(kept):
    return "\n".join([*lines(kept), ""])


def split(path):
    with open(path, encoding="utf-8") as file:
        before, rest = file.read().split(BEGIN)
    return before, *rest.split(END)


def put(path, kept):
    before, _, behind = split(path)
    with open(path, "w", encoding="utf-8") as file:
        file.write(before + BEGIN + section(kept) + END + behind)


def has(path, kept):
    return split(path)[1] == section(kept)
