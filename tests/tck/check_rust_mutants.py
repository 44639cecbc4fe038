#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the suite on an implementation that shares no code with the library, and on
mutants of it: examples/tck/rust, and rust_mutants.txt. The implementation must hold,
and a case must fail for each mutant, except for those of UNSEEN. Usage:
check_rust_mutants.py TOOL [--part I/N] [--only REGEX] [--where]

A mutant plays the cases of its clause, and all of its role if these hold. --where
tells what failed. Exits with 77 without a compiler of Rust.
"""
import concurrent.futures
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
SOURCE = HERE.parent.parent / "examples/tck/rust/src"
HEAD = re.compile(r"(producer|handler) ([A-Z]{2}-\d\d) (\w+): ")

# Mutants that no case can catch, with the reason.
UNSEEN = {
    "producer AT-20 reads_again": "whether a consumer may spoil the struct of a task "
                                  "that it refuses is open, and Arrow C++ reads it",
    "handler MD-04 aligned": "this processor reads at any address",
}


class Mutant:
    def __init__(self, text):
        head, *parts = text.split("\n@ ")
        self.role, self.clause, self.name = HEAD.match(head).groups()
        self.edits = []
        for part in parts:
            file, *lines = part.splitlines()
            self.edits.append([file] + [
                "\n".join(line[2:] for line in lines if line[0] == mark)
                for mark in "<>"])

    def __str__(self):
        return f"{self.role} {self.clause} {self.name}"


def mutants():
    text = (HERE / "rust_mutants.txt").read_text(encoding="utf-8")
    return [Mutant(block) for block in text.split("\n\n") if HEAD.match(block)]


def replaced(text, old, new):
    """The text with what must occur once in it replaced, whatever the spaces."""
    pattern = r"\s+".join(map(re.escape, old.split()))
    found = re.findall(pattern, text)
    if len(found) != 1:
        raise ValueError(f"{len(found)} times: {old}")
    return re.sub(pattern, lambda _: new, text)


def build(folder, mutant=None):
    """Compiles the implementation, or a mutant of it, in the folder. Returns the
    shared object."""
    source = folder / "src"
    shutil.copytree(SOURCE, source)
    for file, old, new in mutant.edits if mutant else ():
        path = source / file
        path.write_text(replaced(path.read_text(), old, new))
    out = folder / "libsubject.so"
    subprocess.run(["rustc", "--edition", "2021", "--crate-type", "cdylib",
                    "--cap-lints", "allow", "-o", out, source / "lib.rs"],
                   check=True, capture_output=True, text=True)
    return out


def play(tool, subject, role, *options, wait_ms=1500, quiet_ms=50):
    """Returns the names of the results that are broken."""
    done = subprocess.run(
        [tool, "tck", "--role", role, *options, subject], text=True,
        env={**os.environ, "UVA_TCK_JOBS": "4", "UVA_TCK_WAIT_MS": str(wait_ms),
             "UVA_TCK_QUIET_MS": str(quiet_ms)},
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    if not re.search(r"^\d+ held, ", done.stdout, re.M):
        raise ValueError(f"no result: {done.stdout}")
    return re.findall(r"^(?:BROKEN|weak)\s+\w+\s+(\w+):", done.stdout, re.M)


def caught(tool, mutant):
    """Returns what failed for a mutant: of its clause, or else of all."""
    with tempfile.TemporaryDirectory() as temp:
        subject = build(pathlib.Path(temp), mutant)
        return play(tool, subject, mutant.role, "--filter", mutant.clause) or \
            play(tool, subject, mutant.role, wait_ms=3000, quiet_ms=200)


def tried(tool, mutant):
    try:
        return caught(tool, mutant), None
    except subprocess.CalledProcessError as error:
        return [], f"does not compile: {error.stderr}"
    except ValueError as error:
        return [], str(error)


def holds(tool):
    """Returns what the implementation itself breaks."""
    with tempfile.TemporaryDirectory() as temp:
        subject = build(pathlib.Path(temp))
        return [name for role in ("producer", "handler")
                for name in play(tool, subject, role, wait_ms=30000)]


def main(tool, *options):
    if shutil.which("rustc") is None:
        print("no compiler of Rust")
        return 77
    where = "--where" in options
    options = [option for option in options if option != "--where"]
    given = dict(zip(options[::2], options[1::2]))
    part, parts = map(int, given.get("--part", "0/1").split("/"))
    todo = [mutant for i, mutant in enumerate(mutants())
            if i % parts == part and re.search(given.get("--only", ""), str(mutant))]
    bad = []
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        itself = pool.submit(holds, tool)
        results = pool.map(lambda mutant: tried(tool, mutant), todo)
        for mutant, (failed, fault) in zip(todo, results):
            if where:
                print(f"{mutant}: {' '.join(failed) or 'nothing failed'}", flush=True)
            if fault is not None:
                bad.append(f"{mutant}: {fault}")
            elif not failed and str(mutant) not in UNSEEN:
                bad.append(f"{mutant}: no case fails")
            elif failed and str(mutant) in UNSEEN:
                bad.append(f"{mutant}: {failed[0]} fails: take it off the list")
        bad += [f"the implementation: {name}" for name in itself.result()]
    print("\n".join(bad) or f"{len(todo)} mutants are caught or explained")
    return bool(bad)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
