#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the tables of docs/distributed.md, from docs/distributed.json, which has
what play.py, play_engines.py, scale.py and uvarrow-sim-cluster have printed.

Usage: table.py [--check] [--plays FILE] [--engines FILE] [--scale FILE]

A FILE has the --results of play.py --all, of play_engines.py or of scale.py, which
take the place of those in the record. With --check it fails if the page has other
tables.
"""
import argparse
import json
import os
import re
import sys

DOCS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../docs")
RECORD = os.path.join(DOCS, "distributed.json")
RUNS = "plays", "engines", "scale"  # kinds of rows that a program writes as a file
MARK = re.compile(r"(<!-- table: (\w+) -->\n).*?(<!-- end -->\n)", re.S)


def table(head, rows):
    lines = [head, ["---"] + ["--:"] * (len(head) - 1), *rows]
    return "".join(f"| {' | '.join(str(cell) for cell in line)} |\n" for line in lines)


def plays(rows):
    return table(["what happens to one of three hosts", "the stream", "seconds",
                  "limit"],
                 [[row["name"], row["end"], row["seconds"], row["limit"]]
                  for row in rows])


def scale(rows):
    return table(["partitions", "connections", "s to list", "s to read", "threads",
                  "MB"],
                 [[f"{row['partitions']:,}", f"{row['connections']:,}", row["listed"],
                   row["read"], f"{row['threads']:,}", row["megabytes"]]
                  for row in rows])


def cluster(rows):
    return table(["hosts", "s", "at least", "lost", "retries", "MB of batches",
                  "MB of the library"],
                 [[row["title"], f"{row['seconds']:,}", f"{row['least']:,}",
                   f"{row['lost']:,}", f"{row['retries']:,}", f"{row['held_mb']:,}",
                   row["heap_mb"]] for row in rows])


def engine_plays(rows):
    return table(["engine", "what happens to one of three hosts", "the stream",
                  "seconds", "limit", "the error names"],
                 [[row["engine"], row["name"], row["end"], row["seconds"],
                   row["limit"], "the host" if row["named"] else
                   "no host" if row["end"] == "error" else ""]
                  for row in rows if row["engine"] != "Flight SQL"])


def ends(rows, trouble):
    """How the plays of a trouble end, in one cell"""
    return "<br>".join(
        f"{row['end']}, {row['seconds']} s {how}".rstrip() for row in rows
        for name, _, how in [row["name"].partition(", ")] if name == trouble)


def engines(rows):
    """One line for each engine, of its plays"""
    lines = []
    for engine in dict.fromkeys(row["engine"] for row in rows):
        own = [row for row in rows if row["engine"] == engine]
        plays = {row["name"].partition(",")[0]: row for row in own}
        cost, slow = plays["nothing"], plays["a slow reader"]
        quiet = max(row["quiet"] for row in own
                    if row["name"].startswith(("left", "a long query")))
        lines.append([
            engine, "" if slow["ahead"] is None else slow["ahead"], slow["held"],
            slow["grown"], quiet, ends(own, "killed"), ends(own, "cut off"),
            cost["mb_s"], cost["batch_kb"], f"{cost['cpu_us']:,}"])
    return table(["", "batches ahead of a slow reader", "MB that a host holds",
                  "MB more 10 s later",
                  "s until all is quiet", "a host is killed", "a host is cut off",
                  "MB/s", "KB a batch", "us of CPU a batch"], lines)


TABLES = (("plays", "plays", plays), ("scale", "scale", scale),
          ("cluster", "cluster", cluster), ("engines", "engines", engines),
          ("engine_plays", "engines", engine_plays))


def take(figures, kind, path):
    """Takes the rows of a run, without what no table shows"""
    with open(path, encoding="utf-8") as file:
        rows = json.load(file)
    figures[kind] = [{key: value for key, value in row.items()
                      if key not in ("text", "note", "gap")} for row in rows]


def as_text(figures):
    """A row a line, so that a change is seen"""
    kinds = (f' "{kind}": [\n  ' + ",\n  ".join(map(json.dumps, rows)) + "\n ]"
             for kind, rows in figures.items())
    return "{\n" + ",\n".join(kinds) + "\n}\n"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--check", action="store_true")
    for kind in RUNS:
        parser.add_argument(f"--{kind}")
    how = parser.parse_args()
    path = os.path.join(DOCS, "distributed.md")
    with open(RECORD, encoding="utf-8") as file:
        figures = json.load(file)
    for kind in RUNS:
        if getattr(how, kind):
            take(figures, kind, getattr(how, kind))
    with open(path, encoding="utf-8") as file:
        page = file.read()
    tables = {name: write(figures[kind]) for name, kind, write in TABLES}
    new = MARK.sub(lambda found: found[1] + tables[found[2]] + found[3], page)
    if how.check:
        sys.exit("docs/distributed.md is not what the record says: run "
                 "tests/hosts/table.py" if new != page else 0)
    for name, text in (RECORD, as_text(figures)), (path, new):
        with open(name, "w", encoding="utf-8") as file:
            file.write(text)


if __name__ == "__main__":
    main()
