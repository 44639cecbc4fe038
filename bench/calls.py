#!/usr/bin/env python3
"""Prints the system calls of one more batch of a case, by name and in all.

Usage: calls.py PROGRAM CASE [BATCHES]     (calls.py bench_open open/1/uvarrow)

strace counts the calls of all threads, on one core, in a run of BATCHES (1000)
and in one that is three times as long; the difference is divided by the
batches. strace slows calls down, so that more of them find the other thread
awake or asleep than without it: compare cases that were counted in one way.
"""
import subprocess
import sys
import tempfile


def counted(program, case, batches):
    """{name: calls} of one run"""
    with tempfile.NamedTemporaryFile("r") as out:
        subprocess.run(["taskset", "-c", "0", "strace", "-f", "-c", "-o", out.name,
                        program, "--only", case, "--batches", str(batches),
                        "--cold"], check=True, stdout=subprocess.DEVNULL)
        rows = [line.split() for line in out]
    return {row[-1]: int(row[3]) for row in rows
            if len(row) >= 5 and row[0][0].isdigit() and row[-1] != "total"}


def main():
    program, case = sys.argv[1:3]
    batches = int(sys.argv[3]) if len(sys.argv) > 3 else 1000
    less, more = (counted(program, case, n) for n in (batches, 3 * batches))
    each = {name: (count - less.get(name, 0)) / (2 * batches)
            for name, count in more.items()}
    for name, count in sorted(each.items(), key=lambda entry: -entry[1]):
        if abs(count) >= 0.005:
            print(f"{name}\t{count:.2f}")
    print(f"in all\t{sum(each.values()):.2f}")


if __name__ == "__main__":
    main()
