# SPDX-License-Identifier: Apache-2.0
"""Turns the figures of figures.py into a section of docs/benchmarks.md."""

from layout import medians, wrapped
from report import number, table

HEAD = """A table of {rows:,} rows and four columns of one type is read from a file
of Arrow IPC, in batches of 16,384 rows, all alike, and written as CSV to another file, both
in memory: by `uvarrow query`, and by programs of Python. A figure is the CPU time
of a whole process for a value, without the time for a table that has no rows;
then the CPU time and the peak of memory of the process, imports included."""

TIMES = """{medians}, on {processor}, {cores} cores, with the
least and the most in brackets; load average when they ended: {load}. Commit
{commit}; {versions}. `cmake --preset bench && cmake --build --preset bench
--target values_figures` measures again and writes this."""

WHO = "uvarrow", "pyarrow", "polars", "duckdb"
TITLES = "`uvarrow query`", "pyarrow", "polars", "DuckDB"
SHAPES = {
    "double": "doubles, random",
    "price": "doubles with two decimals",
    "float": "floats, random",
    "decimal": "`decimal(18, 2)`",
    "timestamp": "timestamps, microseconds, UTC",
    "quoted": "texts that need quotes",
    "integer": "integers below 10,000",
    "text": "short texts",
}


def cell(figures, name, unit):
    if name not in figures:
        return ""
    middle, *ends = figures[name]
    text = f"{number(middle)} {unit}"
    return text + (f" ({number(ends[0])} to {number(ends[1])})" if ends else "")


def process(figures, case):
    if f"{case}/cpu" not in figures:
        return ""
    return (f"{number(figures[f'{case}/cpu'][0])} s, "
            f"{number(figures[f'{case}/memory'][0])} MiB")


def rows(figures):
    for shape, title in SHAPES.items():
        yield [f"{title}: a value", *(cell(figures, f"{shape}/{who}/value", "ns")
                                      for who in WHO)]
        yield ["... the process", *(process(figures, f"{shape}/{who}")
                                    for who in WHO)]


def faster(figures):
    """The shapes in which a peer takes less time a value."""
    for shape, title in SHAPES.items():
        times = {who: figures[f"{shape}/{who}/value"][0] for who in WHO
                 if f"{shape}/{who}/value" in figures}
        best = min(times, key=times.get)
        if best != "uvarrow":
            yield (f"{title}: {TITLES[WHO.index(best)]}, "
                   f"{number(times[best])} ns, {number(times['uvarrow'])} ns here")


def lines(kept):
    figures = kept["figures"]
    yield from wrapped(HEAD, rows=kept["rows"])
    yield ""
    yield from wrapped(TIMES, medians=medians(kept["rounds"]), commit=kept["commit"],
                       versions=", ".join(kept["versions"]), **kept["machine"])
    yield ""
    yield from table(["", *TITLES], rows(figures))
    yield ""
    found = "; ".join(faster(figures))
    yield from wrapped(f"Another program is faster in: {found}." if found
                       else "No other program is faster in any row.")
