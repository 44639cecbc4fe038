# SPDX-License-Identifier: Apache-2.0
"""Turns the figures of figures.py into a section of docs/benchmarks.md."""
import json
import os

from layout import medians, wrapped
from report import number, table

HEAD = """A program of Node.js reads {rows:,} flights, 19 columns of integers and
texts, by one query, and looks at each batch or row once. Each figure is of a new
process. Times are from the query on, of SQLite's driver alone with its connect. CPU is
that of the process, user and system, and the memory its peak (VmHWM), Node.js
included. Late is a timer of 5 ms on the loop, its 99th percentile and its worst. The
driver alone is ADBC's, read on the loop, which stands meanwhile;
`napi_create_async_work` reads each of its batches in the pool of Node.js, for a
promise. Both count the rows, and make no object of a batch. The worker is one of
`worker_threads` with better-sqlite3, and posts 1,000 rows at a time. Ways that give
rows make an object of each. The package of arrow-adbc is not on npm.
`bench/node/client.js` has it all."""

TIMES = """Of {code}. {medians}, on {processor}, {cores} cores, with
the least and the most in brackets; load average when they ended: {load}.{loaded}
Node.js {node}; {versions}. `cmake --preset bench && cmake --build --preset bench
--target node_figures` measures again and writes this."""

LOADED = (" **Measured on a loaded machine:** compare figures of one table, CPU "
          "before times; all of them are less on a quiet one.")
LOADED_FROM = 3 # the load average with one program of two threads is below it

BATCHES = """And {batches:,} batches of one column and 8 KB, which a source in C makes,
in microseconds a batch. The source alone is called on the loop; all of them include
it."""

BLOCKED = """And `fs.readFile()` of a small file, beside four reads that each block for
half a second:"""

HTTP = """And a server of HTTP that sends {megabytes:,} MB to one client on the same
machine, from batches of 800 KB; then the flights as JSON lines, by which the loop
stands where a driver is synchronous. The figures are those of the server."""

TABLES = {
    "SQLite": {
        "sqlite_uvarrow": "uvarrow, batches",
        "sqlite_closed": "... each closed when it was read",
        "sqlite_driver": "the driver alone, on the loop",
        "sqlite_async_work": "`napi_create_async_work`, batches",
        "sqlite_worker": "`worker_threads` with better-sqlite3, rows",
        "sqlite_better": "better-sqlite3 on the loop, rows",
        "sqlite_node": "`node:sqlite` on the loop, rows"},
    "DuckDB": {
        "duckdb_uvarrow": "uvarrow, batches",
        "duckdb_closed": "... each closed when it was read",
        "duckdb_node": "@duckdb/node-api, chunks"}}
COUNTS = {
    "batches_source": "the source alone, on the loop",
    "batches_uvarrow": "uvarrow, `for await`",
    "batches_data": "... and `batch.data`, the buffers",
    "batches_async_work": "`napi_create_async_work`, a promise each",
    "batches_worker": "`worker_threads`, 8 KB transferred each"}
WAITS = {"blocked_uvarrow": "uvarrow",
         "blocked_async_work": "`napi_create_async_work`"}
ANSWERS = {
    "http_pipe": "Arrow IPC: `stream.pipeTo(response)`",
    "http_readable": "... `pipeline(stream.toIPC(), response)`",
    "http_web": "... `pipeline(stream.toWeb(), response)`",
    "http_copied": "... `response.write(batch.toIPC())`, a copy",
    "json_uvarrow": "JSON lines: `pool.query(sql).pipeTo(response)`",
    "json_better": "... better-sqlite3 and `JSON.stringify()`",
    "json_node": "... `node:sqlite` and `JSON.stringify()`"}
WAYS = [way for ways in (*TABLES.values(), COUNTS, WAITS, ANSWERS) for way in ways]
OWN = [way for way in WAYS if not way.startswith("duckdb") and way not in (
    "sqlite_worker", "sqlite_better", "sqlite_node", "json_better", "json_node")]


def cell(figures, name, unit, scale=1):
    if name not in figures:
        return ""
    middle, *ends = (value * scale for value in figures[name])
    text = f"{number(middle)} {unit}".strip()
    return text + (f" ({number(ends[0])} to {number(ends[1])})" if ends else "")


def late(figures, way):
    return " / ".join(number(figures[f"{way}/{part}"][0])
                      for part in ("late", "latest")) + " ms"


def rows(figures, ways, *parts):
    """(part, unit, scale) of each, and how late the timer was"""
    for way, title in ways.items():
        if f"{way}/cpu" in figures:
            yield [title, *(cell(figures, f"{way}/{part}", unit, scale)
                            for part, unit, scale in parts),
                   late(figures, way)]


def versions():
    """The parties of the comparison"""
    folder = os.path.dirname(os.path.abspath(__file__))
    with open(os.path.join(folder, "package.json"), encoding="utf-8") as file:
        found = json.load(file)["dependencies"]
    with open(os.path.join(folder, "../../scripts/requirements.txt"),
              encoding="utf-8") as file:
        found |= dict(line.strip().split("==") for line in file
                      if line.startswith("adbc-driver-sqlite=="))
    return ", ".join(f"{name} {version}"
                     for name, version in sorted(found.items()))


def lines(kept):
    figures, machine = kept["figures"], kept["machine"]
    yield from wrapped(HEAD, rows=kept["rows"])
    yield ""
    yield from wrapped(
        TIMES, medians=medians(kept["rounds"]), node=kept["node"], versions=versions(),
        loaded=LOADED if machine["load"] >= LOADED_FROM else "", **machine)
    for title, ways in TABLES.items():
        found = list(rows(figures, ways, ("seconds", "s", 1), ("cpu", "s", 1),
                          ("first", "ms", 1), ("memory", "MiB", 1)))
        if found:
            yield ""
            yield from table([title, "all", "CPU", "first row", "memory", "late"],
                             found)
    yield ""
    yield from wrapped(BATCHES, batches=kept["batches"])
    yield ""
    scale = 1e6 / kept["batches"]
    yield from table(["us a batch", "CPU", "all", "late"], rows(
        figures, COUNTS, ("cpu", "", scale), ("seconds", "", scale)))
    yield ""
    yield from wrapped(BLOCKED)
    yield ""
    yield from table(["`fs.readFile()` beside", "time"], (
        [title, cell(figures, f"{way}/first", "ms")]
        for way, title in WAITS.items()))
    yield ""
    yield from wrapped(HTTP, megabytes=kept["large"] * 800 // 1000)
    yield ""
    yield from table(["An answer", "all", "CPU", "memory", "late"], rows(
        figures, ANSWERS, ("seconds", "s", 1), ("cpu", "s", 1),
        ("memory", "MiB", 1)))
