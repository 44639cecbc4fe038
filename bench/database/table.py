# SPDX-License-Identifier: Apache-2.0
"""Turns the figures of figures.py into a section of docs/benchmarks.md, and compares
them with the targets."""
import os

from layout import medians, wrapped
from report import number, table

HEAD = """A program of asyncio reads {rows:,} flights, 19 columns of integers and texts,
by one query on one connection, and looks at each batch or row once. Each figure is
of a new process, in which the packages were imported before. Times are from the
query on, on a connection that is open; only connectorx connects in the call. CPU
is that of the process, user and system, and the memory its peak (VmHWM), imports
included. Late is a timer of 5 ms on the same loop, its 99th percentile and its
worst. The driver alone is ADBC's driver, read on the thread of the loop, which stands
meanwhile: no way that uses this driver can be below its CPU time.
`bench/database/client.py` has it all."""

TIMES = """Of {code}. {medians}, on {processor}, {cores} cores, with the
least and the most in brackets; load average when they ended: {load}. PostgreSQL
{server} on the same machine, by TCP; {versions}. `cmake --preset bench && cmake
--build --preset bench --target database_figures` measures again and writes this."""

MAPS = """And an async function for each of {batches:,} batches, 64 at a time and in order,
in microseconds of CPU time a batch: the whole stream with `rows.map()`, and a task
for each batch by hand, whose reader blocks the loop."""

LOOPS = "asyncio", "uvloop" # the driver alone needs no loop: on the first
ARROW = {"uvarrow": "`uvarrow.adbc`", "driver_alone": "the driver alone",
         "dbapi_table": "dbapi in a thread, a table",
         "dbapi_batches": "dbapi in a thread, batch by batch",
         "connectorx_table": "connectorx in a thread, a table",
         "asyncpg_batches": "asyncpg, rows made batches"}
ROWS = {"asyncpg_rows": "asyncpg, rows of a cursor",
        "psycopg_rows": "psycopg, rows of a cursor",
        "aiosqlite_rows": "aiosqlite, rows"}
CALLS = {"map_none": "the stream, without a function",
         "map_at_once": "`rows.map()`, it returns at once",
         "map_one_turn": "... it waits once, by `sleep(0)`",
         "hand_at_once": "by hand, it returns at once",
         "hand_one_turn": "... it waits once"}
WAYS = {"postgresql": ("uvarrow", "driver_alone", "dbapi_table", "dbapi_batches",
                       "connectorx_table", "asyncpg_batches", "asyncpg_rows",
                       "psycopg_rows"),
        "sqlite": ("uvarrow", "driver_alone", "dbapi_table", "dbapi_batches",
                   "connectorx_table", "aiosqlite_rows"),
        "none": tuple(CALLS)}
ENGINES = {"postgresql": "PostgreSQL", "sqlite": "SQLite"}
PARTS = (("seconds", "s"), ("cpu", "s"), ("first", "ms"), ("memory", "MiB"))
FIRST_MS, CPU_RATIO, MAP_US = 20, 1.05, 6


def cell(figures, name, unit):
    if name not in figures:
        return ""
    middle, *ends = figures[name]
    text = f"{number(middle)} {unit}".strip()
    return text + (f" ({number(ends[0])} to {number(ends[1])})" if ends else "")


def median(figures, *name):
    return figures["/".join(name)][0]


def rows(figures, engine):
    for loop in LOOPS:
        for way in WAYS[engine]:
            name = f"{engine}/{way}/{loop}"
            if f"{name}/cpu" not in figures:
                continue
            where = "" if way == "driver_alone" else f", {loop}"
            yield [(ARROW | ROWS)[way] + where,
                   *(cell(figures, f"{name}/{part}", unit)
                     for part, unit in PARTS),
                   " / ".join(number(figures[f"{name}/{part}"][0])
                              for part in ("late", "latest")) + " ms",
                   cell(figures, f"{name}/connect", "ms")]


def call_rows(figures, count):
    for way, title in CALLS.items():
        found = [figures.get(f"none/{way}/{loop}/cpu") for loop in LOOPS]
        if None not in found:
            yield [title, *(" ".join(
                (number(middle / count * 1e6),
                 *(f"({number(ends[0] / count * 1e6)} to "
                   f"{number(ends[1] / count * 1e6)})" for ends in [ends] if ends)))
                for middle, *ends in found)]


# ---- targets ----------------------------------------------------------------

def verdict(title, value, limit, unit):
    past = value - limit
    by = number(past) if past >= 0.005 else "less than 0.01"
    return [title, f"{number(value)}{unit}", f"at most {number(limit)}{unit}",
            "met" if past <= 0 else f"**missed by {by}{unit}**"]


def others(figures, engine, loop, part):
    """{way: figure} of the other ways that give Arrow, and leave the loop to
    others"""
    return {way: median(figures, engine, way, loop, part) for way in WAYS[engine]
            if way in ARROW and way not in ("uvarrow", "driver_alone")
            and f"{engine}/{way}/{loop}/{part}" in figures}


def shares(figures, engine, loop, best):
    """Whose the CPU time is, where another way takes less."""
    own = median(figures, engine, "uvarrow", loop, "cpu")
    driver = median(figures, engine, "driver_alone", LOOPS[0], "cpu")
    return (f"; of {number(own)} s are {number(min(driver, own))} s the driver's "
            f"alone, {number(max(0, own - driver))} s uvarrow's; the least is "
            f"{ARROW[best]}")


def target_rows(figures, count):
    for engine, title in ENGINES.items():
        for loop in LOOPS:
            if f"{engine}/dbapi_table/{loop}/cpu" not in figures:
                continue

            def own(part, engine=engine, loop=loop):
                return median(figures, engine, "uvarrow", loop, part)

            yield verdict(f"{title}, {loop}: first row", own("first"), FIRST_MS,
                          " ms")
            least = others(figures, engine, loop, "memory")
            yield verdict("... memory, against the least of the others that give "
                          "Arrow", own("memory") / min(least.values()), 1, " x")
            least = others(figures, engine, loop, "cpu")
            best = min(least, key=least.get)
            row = verdict("... CPU, against the least of those",
                          own("cpu") / least[best], CPU_RATIO, " x")
            if row[-1] != "met":
                row[-1] += shares(figures, engine, loop, best)
            yield row
    for loop in LOOPS:
        name = f"none/map_at_once/{loop}/cpu"
        if name in figures:
            yield verdict(f"`rows.map()` of an async function, {loop}: a batch",
                          figures[name][0] / count * 1e6, MAP_US, " us")


# ---- the page ---------------------------------------------------------------

def versions():
    """The parties of the comparison"""
    folder = os.path.dirname(os.path.abspath(__file__))
    found = {}
    for path in ("../../scripts/requirements.txt", "requirements.txt"):
        with open(os.path.join(folder, path), encoding="utf-8") as file:
            found |= dict(line.strip().split("==") for line in file
                          if "==" in line)
    return ", ".join(f"{name} {found[name]}" for name in (
        "adbc-driver-postgresql", "adbc-driver-sqlite", "asyncpg", "psycopg",
        "aiosqlite", "connectorx", "uvloop"))


def lines(kept):
    figures, count = kept["figures"], kept["batches"]
    yield from wrapped(HEAD, rows=kept["rows"])
    yield ""
    yield from wrapped(TIMES, medians=medians(kept["rounds"]), server=kept["server"],
                       versions=versions(), **kept["machine"])
    for engine, title in ENGINES.items():
        yield ""
        yield from table([title, "all", "CPU", "first row", "memory", "late",
                          "connect"], rows(figures, engine))
    yield ""
    yield from wrapped(MAPS, batches=count)
    yield ""
    yield from table(["CPU, us a batch", *LOOPS], call_rows(figures, count))
    yield ""
    yield from table(["", "Measured", "Target", ""], target_rows(figures, count))
