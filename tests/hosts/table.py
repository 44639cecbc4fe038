#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the tables of docs/distributed.md, from docs/distributed.json, which has
what play.py, play_engines.py, scale.py and uvarrow-sim-cluster have printed. Usage: table.py [--check]

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
            engine, "" if slow["ahead"] is None else slow["ahead"], slow["held"], slow["grown"],
            quiet,
            ends(own, "killed"), ends(own, "cut off"), cost["mb_s"],
            cost["batch_kb"], f"{cost['cpu_us']:,}"])
    return table(["", "batches ahead of a slow reader", "MB that a host holds",
                  "MB more 10 s later",
                  "s until all is quiet", "a host is killed", "a host is cut off",
                  "MB/s", "KB a batch", "us of CPU a batch"], lines)


def main():
    path = os.path.join(DOCS, "distributed.md")
    with open(os.path.join(DOCS, "distributed.json"), encoding="utf-8") as file:
        figures = json.load(file)
    with open(path, encoding="utf-8") as file:
        page = file.read()
    kinds = {"plays": plays, "scale": scale, "cluster": cluster}
    tables = {name: kind(figures[name]) for name, kind in kinds.items()}
    tables["engines"] = engines(figures["engines"])
    tables["engine_plays"] = engine_plays(figures["engines"])
    new = MARK.sub(lambda found: found[1] + tables[found[2]] + found[3], page)
    if "--check" in sys.argv[1:]:
        sys.exit("docs/distributed.md is not what the record says: run "
                 "tests/hosts/table.py" if new != page else 0)
    with open(path, "w", encoding="utf-8") as file:
        file.write(new)


if __name__ == "__main__":
    main()
