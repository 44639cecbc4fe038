#!/usr/bin/env python3
"""Holds three things together: the catalogue (docs/clauses.md), the checker's
table (runtime/protocol/clauses.h) and the mutants of the reference peers. Prints
the clauses without a mutant, and why. Usage: check_clauses.py [ROOT]

Fails when a clause lacks both a mutant and a reason in the catalogue, or has
both; when a mutant's clause is in no table, or binds the other side; when the
two tables differ in the side that is bound or in the severity of a breach;
when a reason "reported as" names an id without a mutant.
"""
import glob
import os
import re
import sys

CATALOGUE, TABLE = "docs/clauses.md", "runtime/protocol/clauses.h"
MUTANTS = {  # the side of each file's mutants; None: their rows name it
    "tests/support/producer_mutants.c": "P",
    "tests/support/consumer_mutants.c": "C",
    "tests/support/stream_mutants.c": None,
    "tests/unit/check/test_mutants_array.c": "P",
}
REASONS = ("reported as ", "compiler: ", "suite: ", "sanitizer: ", "device: ",
           "undetectable: ", "allowed")
SEVERITY = {"N": "note", "W": "warning", "E": "error", "F": "fatal"}
ID = r"[A-Z]{2}-\d\d"


def read(root, path):
    with open(os.path.join(root, path), encoding="utf-8") as file:
        return file.read()


def catalogue(root):
    """id -> (side, reported as, seen by)"""
    rows = {}
    for line in read(root, CATALOGUE).splitlines():
        cells = [cell.strip() for cell in line.strip("|").split(" | ")]
        if re.fullmatch(ID, cells[0]) and len(cells) == 6:
            rows[cells[0]] = (cells[1], cells[3], cells[5])
    return rows


def table(root):
    """id -> (side, reported as)"""
    rows = re.findall(r'X\(\w{5}, "(%s)", (\w), (\w),[ \\\n]*"' % ID,
                      read(root, TABLE))
    return {clause: (who, SEVERITY[how]) for clause, who, how in rows}


def mutants(root):
    """(id, side, where)"""
    for path, side in MUTANTS.items():
        text = read(root, path)
        for clause, rest in re.findall(r'"(%s)",([^}]*)' % ID, text):
            of_reader = re.match(r'\s*"\w*",\s*true', rest)
            yield clause, side or ("C" if of_reader else "P"), path


def faults(rows, told, found):
    have = {clause for clause, _, _ in found}
    for clause, side, path in found:
        if clause not in rows or clause not in told:
            yield f"{path}: {clause} is in no table"
        elif told[clause][0] not in (side, "B"):
            yield f"{path}: {clause} binds the other side"
    for clause, row in told.items():
        if clause not in rows:
            yield f"{TABLE}: {clause} is not in {CATALOGUE}"
        elif rows[clause][:2] != row:
            yield f"{clause}: {TABLE} has {row}, {CATALOGUE} {rows[clause][:2]}"
    for clause, (_, how, seen) in rows.items():
        if clause not in told and how != "–":
            yield f"{clause}: reported as {how}, and not in {TABLE}"
        if (seen == "check") != (clause in have):
            yield (f"{clause}: {'has a' if clause in have else 'no'} mutant, "
                   f"and {CATALOGUE} says '{seen}'")
        elif seen != "check" and not seen.startswith(REASONS):
            yield f"{clause}: '{seen}' is no reason"
        if seen.startswith("reported as "):
            for other in re.findall(ID, seen):
                if other not in have:
                    yield f"{clause}: reported as {other}, which has no mutant"


def used(root):
    """Ids in the checker's code, and ids that have a text for a breach."""
    for path in glob.glob(os.path.join(root, "runtime/check/*.[ch]")):
        if path.endswith("/clauses.h"):
            rows = read(root, TABLE).split(" X(")
            yield from (re.search(ID, row)[0] for row in rows
                        if ".breach =" in row)
        else:
            yield from re.findall('"(%s)"' % ID, read(root, path))


def main(root):
    rows, told, found = catalogue(root), table(root), list(mutants(root))
    bad = list(faults(rows, told, found))
    have = {clause for clause, _, _ in found}
    bad += [f"{clause}: the checker tells of it, and it has no mutant"
            for clause in sorted(set(used(root)) - have)]
    for clause, (_, _, seen) in rows.items():
        if clause not in have:
            print(f"no mutant: {clause}  {seen}")
    print("\n".join(bad) or f"{len(rows)} clauses, {len(have)} of them with "
          f"{len(found)} mutants")
    return bool(bad)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1] if len(sys.argv) > 1 else "."))
