#!/usr/bin/env python3
"""Runs the suite on every mutant: a subject that breaks one clause must fail a
case of that clause, and every case must have a mutant that it catches.
Usage: check_mutants.py TOOL SUBJECT SOURCE [--part I/N] [--only TEXT]

UNPROVEN has the cases without a mutant, each with the reason.
"""
import concurrent.futures
import os
import re
import subprocess
import sys

MUTANT = re.compile(r'(?:\{|M\()\s*"([A-Z]{2}-\d\d)",\s*"(\w*)",\s*(true|false)?')
FILES = {"producer": ("tests/support/producer_mutants.c",
                      "tests/tck/producer_extras.c"),
         "handler": ("tests/support/consumer_mutants.c",
                     "tests/tck/handler_extras.c"),
         "stream": ("tests/support/stream_mutants.c",
                    "tests/tck/stream_extras.c")}

# Mutants that no case of their clause can catch, with the reason.
UNSEEN = {
    "producer AB-19.": "it is a note only, and no breach",
    "producer EV-09.": "it needs a device that is not the CPU",
    "stream EV-09.": "likewise",
    "producer AP-05.": "the window of a refused stream is too short to be hit",
}
# Mutants with a delay of 60 ms and more, which a busy machine causes, too. The
# suite may or may not accept them; each clause has a slower mutant.
SLOW = ("producer AT-09.", "producer AP-28.", "handler TH-12.")
# Cases that no mutant fails, with the reason.
UNPROVEN = {}


def mutants(source):
    """Yields (role, clause, variant)."""
    for role, (path, extras) in FILES.items():
        with open(f"{source}/{path}", encoding="utf-8") as file:
            text = file.read()
        with open(f"{source}/{extras}", encoding="utf-8") as file:
            text += file.read()
        for clause, variant, of_reader in MUTANT.findall(text):
            slow = f"{role} {clause}.{variant}" in SLOW
            if of_reader != "true" and not slow:
                yield role, clause, variant


def run(tool, subject, role, clause, variant):
    """Returns the names of the failing cases."""
    name = f"{clause}.{variant}" if variant else clause
    done = subprocess.run(
        [tool, "tck", "--role", role, "--filter", clause, subject],
        env={**os.environ, "UVA_SUBJECT_MUTANT": name, "UVA_TCK_JOBS": "2",
             "UVA_TCK_WAIT_MS": "700", "UVA_TCK_QUIET_MS": "30"},
        capture_output=True, text=True, check=False)
    failed = re.findall(r"^(?:BROKEN|weak)\s+\w+\s+(\w+):", done.stdout, re.M)
    own = f"_{clause.replace('-', '')}_"
    return ([name for name in failed if own in name],
            done.stdout + done.stderr)


def cases(tool, role):
    out = subprocess.run([tool, "tck", "--list", "--role", role], check=True,
                         capture_output=True, text=True).stdout
    return [line.split()[1] for line in out.splitlines()
            if ": skipped" not in line]


def main(tool, subject, source, *options):
    part, parts, only = 0, 1, ""
    for option, value in zip(options[::2], options[1::2]):
        if option == "--part":
            part, parts = (int(n) for n in value.split("/"))
        else:
            only = value
    todo = [m for i, m in enumerate(mutants(source))
            if i % parts == part and only in f"{m[1]}.{m[2]}"]
    bad, caught = [], {role: set() for role in FILES}
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        results = pool.map(lambda m: run(tool, subject, *m), todo)
        for (role, clause, variant), (failed, text) in zip(todo, results):
            caught[role] |= set(failed)
            key = f"{role} {clause}.{variant}"
            if not failed and key not in UNSEEN:
                last = text.strip().splitlines()[-1:]
                bad.append(f"{key}: no case of it fails: {last}")
            elif failed and key in UNSEEN:
                bad.append(f"{key}: a case catches it: take it off the list")
    if parts == 1 and not only:
        for role in FILES:
            bad += [f"{role} {name}: no mutant fails it"
                    for name in cases(tool, role)
                    if name not in caught[role] | set(UNPROVEN)]
    print("\n".join(bad) or f"{len(todo)} mutants are caught")
    return bool(bad)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
