# SPDX-License-Identifier: Apache-2.0
"""Turns the figures of figures.py into a section of docs/benchmarks.md."""
import os

from layout import medians, wrapped
from report import number, table

HEAD = """One process with one event loop of asyncio's, 50 tasks that share 8
connections, and each figure of a new process. The small query reads one row of a
table by its key, with a text of SQL, or with a parameter. Times are from the call
to the rows, with what a task waits for a connection: uvarrow's rows are a batch
of Arrow, and those of its peers objects of Python. Beside a big result means that one
more task reads a million rows of three columns through the same pool, again and
again; peers read them by a cursor, 5,000 at a time. A new pool of uvarrow's opens
the database first, in which the driver reads the catalog of all types. The ingest
is of a million rows of three columns, from a table of Arrow, and from a list of
tuples by COPY. `bench/postgresql/client.py` has it all."""

TIMES = """Of {code}. {medians}, on {processor}, {cores} cores, with the
least and the most in brackets; load average when they ended: {load}. PostgreSQL
{server} on the same machine, through a socket of Unix; {versions}. `cmake
--preset bench && cmake --build --preset bench --target postgresql_figures`
measures again and writes this."""

WHO = "uvarrow", "asyncpg", "psycopg"
TITLES = "`uvarrow.adbc`", "asyncpg", "psycopg_pool"
LOADS = ("small", "Small queries"), ("bound", "... with a parameter"), (
    "beside", "... beside a big result")
PARTS = ("p50", "ms"), ("p99", "ms"), ("p99.9", "ms")


def cell(figures, name, unit):
    if name not in figures:
        return ""
    middle, *ends = figures[name]
    text = f"{number(middle)} {unit}".strip()
    return text + (f" ({number(ends[0])} to {number(ends[1])})" if ends else "")


def row(figures, title, case, part, unit):
    return [title, *(cell(figures, f"{case}/{who}/{part}", unit) for who in WHO)]


def rows(figures):
    for case, title in LOADS:
        yield row(figures, f"{title}: a second", case, "rate", "")
        for part, unit in PARTS:
            yield row(figures, f"... {part}", case, part, unit)
    yield row(figures, "... rows of the big result, a second", "beside", "rows", "")
    yield row(figures, "A new pool: one query", "cold", "one", "ms")
    yield row(figures, "... eight at once", "cold", "eight", "ms")
    yield row(figures, "Ingest of 1,000,000 rows", "ingest", "seconds", "s")


def reset_rows(figures):
    """The cost of the reset of a connection after its query"""
    for part, title, unit in ("rate", "Small queries: a second", ""), (
            "p50", "... p50", "ms"), ("p99", "... p99", "ms"):
        yield [title, *(cell(figures, f"small/{who}/{part}", unit) for who in
                        ("uvarrow", "uvarrow-kept", "asyncpg", "asyncpg-kept"))]


def versions():
    """The parties of the comparison"""
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)),
                        "requirements.txt")
    with open(path, encoding="utf-8") as file:
        found = dict(line.strip().split("==") for line in file if "==" in line)
    return ", ".join(f"{name} {found[name]}"
                     for name in ("asyncpg", "psycopg", "psycopg-pool"))


def lines(kept):
    figures = kept["figures"]
    yield from wrapped(HEAD)
    yield ""
    yield from wrapped(TIMES, medians=medians(kept["rounds"]), server=kept["server"],
                       versions=versions(), **kept["machine"])
    yield ""
    yield from table(["", *TITLES], rows(figures))
    yield ""
    yield from table(["Resets", "`uvarrow.adbc`", "... `keeps_session`", "asyncpg",
                      "... no reset"], reset_rows(figures))
