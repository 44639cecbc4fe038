#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the tables of docs/distributed.md, from docs/distributed.json, which has
what play.py, scale.py and uvarrow-sim-cluster have printed. Usage: table.py [--check]

With --check it fails if the page has other tables.
"""
import json
import os
import re
import sys

DOCS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../docs")
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


def main():
    path = os.path.join(DOCS, "distributed.md")
    with open(os.path.join(DOCS, "distributed.json"), encoding="utf-8") as file:
        figures = json.load(file)
    with open(path, encoding="utf-8") as file:
        page = file.read()
    kinds = {"plays": plays, "scale": scale, "cluster": cluster}
    new = MARK.sub(lambda found: found[1] + kinds[found[2]](figures[found[2]]) +
                   found[3], page)
    if "--check" in sys.argv[1:]:
        sys.exit("docs/distributed.md is not what the record says: run "
                 "tests/hosts/table.py" if new != page else 0)
    with open(path, "w", encoding="utf-8") as file:
        file.write(new)


if __name__ == "__main__":
    main()
