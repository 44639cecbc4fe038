#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures how values of several types become text: by the command uvarrow, and
by pyarrow, polars and DuckDB.

Usage: figures.py UVARROW VENV FOLDER [--rounds N] [--rows N] [--alone]
                  [--results FILE]
       figures.py --from FILE

UVARROW is the command, VENV the environment of scripts/bootstrap, with the
peers. FOLDER gets the tables and their texts. Each figure is of a new process,
which reads a table of four columns from a file of Arrow IPC and writes a file:
its CPU time with that of the kernel, its peak of memory, and the CPU time a
value beyond that for a table without rows. A round runs each shape with one
program after the other. --alone leaves the peers out.

Prints the section of docs/benchmarks.md. --results keeps the median, least and
most of each figure as JSON, which bench/run.py turns into that section.
"""
import os
import subprocess
import sys

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
BENCH = os.path.dirname(HERE)
sys.path += [BENCH]
import run as suite  # noqa: E402
from report import spread  # noqa: E402
from values import table  # noqa: E402

COLUMNS = 4
TABLES = """
import decimal, random, sys
import pyarrow as pa
folder, rows = sys.argv[1], int(sys.argv[2])
rnd = random.Random(1)
def cents(): return decimal.Decimal(rnd.randrange(-10**10, 10**10)).scaleb(-2)
SHAPES = {
    "double": (pa.float64(), lambda: rnd.random() * 1000),
    "price": (pa.float64(), lambda: rnd.randrange(100000) / 100),
    "float": (pa.float32(), lambda: rnd.random() * 1000),
    "decimal": (pa.decimal128(18, 2), cents),
    "timestamp": (pa.timestamp("us", "UTC"),
                  lambda: 10**15 + rnd.randrange(10**15)),
    "quoted": (pa.utf8(), lambda: 'say "hello, world"'),
    "integer": (pa.int64(), lambda: rnd.randrange(10000)),
    "text": (pa.utf8(), lambda: rnd.choice(["UA", "N14228", "IAH", "EWR"])),
}
for shape, (kind, value) in SHAPES.items():
    schema = pa.schema([(f"column_{i}", kind) for i in range(%d)])
    batch = pa.record_batch([pa.array([value() for _ in range(16384)], kind)
                             for _ in schema], schema=schema)
    for name, count in (shape, rows), (shape + "-none", 0):
        with pa.ipc.new_stream(f"{folder}/{name}.arrows", schema) as writer:
            for begin in range(0, count, 16384):
                writer.write_batch(batch.slice(0, count - begin))
""" % COLUMNS
PEERS = {
    "pyarrow": """
import pyarrow as pa, pyarrow.csv as csv
reader = pa.ipc.open_stream({origin!r})
with csv.CSVWriter({output!r}, reader.schema) as writer:
    for batch in reader:
        writer.write_batch(batch)
""",
    "polars": """
import polars
polars.read_ipc_stream({origin!r}).write_csv({output!r})
""",
    "duckdb": """
import duckdb, pyarrow as pa
reader = pa.ipc.open_stream({origin!r})
duckdb.sql("copy (from reader) to '{output}' (format csv)")
""",
}


class Bench:
    def __init__(self, how):
        self.how = how
        self.figures = {}
        self.python = f"{how.venv}/bin/python"
        os.makedirs(how.folder, exist_ok=True)

    def command(self, who, shape):
        origin = f"{self.how.folder}/{shape}.arrows"
        output = f"{self.how.folder}/output.csv"
        if who == "uvarrow":
            return [self.how.uvarrow, "query", "--quiet", "--from", origin,
                    "--output", output]
        return [self.python, "-c",
                PEERS[who].format(origin=origin, output=output)]

    def usage(self, who, shape):
        """CPU seconds and MiB of a process."""
        process = subprocess.Popen(self.command(who, shape))
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode != 0:
            sys.exit(f"{who} failed with {shape}")
        return used.ru_utime + used.ru_stime, used.ru_maxrss / 1024

    def measure(self, who, shape):
        nothing, _ = self.usage(who, shape + "-none")
        cpu, memory = self.usage(who, shape)
        value = (cpu - nothing) / (self.how.rows * COLUMNS) * 1e9
        for name, figure in ("cpu", cpu), ("memory", memory), ("value", value):
            self.figures.setdefault(f"{shape}/{who}/{name}", []).append(figure)

    def run(self):
        subprocess.run([self.python, "-c", TABLES, self.how.folder,
                        str(self.how.rows)], check=True)
        for number in range(self.how.rounds):
            for shape in table.SHAPES:
                for who in table.WHO[:1 if self.how.alone else None]:
                    print(f"\rround {number + 1} of {self.how.rounds}: {shape}, "
                          f"{who}        ", end="", file=sys.stderr, flush=True)
                    self.measure(who, shape)
        print(file=sys.stderr)
        return {"machine": suite.machine(), "rounds": self.how.rounds,
                "rows": self.how.rows, "commit": self.commit(),
                "versions": self.versions(),
                "figures": {name: spread(values)
                            for name, values in self.figures.items()}}

    @staticmethod
    def commit():
        return subprocess.run(["git", "-C", HERE, "rev-parse", "--short", "HEAD"],
                              stdout=subprocess.PIPE, text=True,
                              check=False).stdout.strip()

    def versions(self):
        return subprocess.run(
            [self.python, "-c", "import duckdb, polars, pyarrow\n"
             "for m in (pyarrow, polars, duckdb):\n"
             "    print(m.__name__, m.__version__)"],
            stdout=subprocess.PIPE, text=True, check=True).stdout.splitlines()


def arguments():
    parser = suite.parser_of(("uvarrow", "venv", "folder"), 5)
    parser.add_argument("--rows", type=int, default=500000)
    return parser.parse_args()


def main():
    how = arguments()
    kept = suite.kept(how, lambda: Bench(how).run())
    print("\n".join(table.lines(kept)))


if __name__ == "__main__":
    main()
