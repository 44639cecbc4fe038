#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures the pool of uvarrow.adbc beside asyncpg and psycopg_pool, on a server
of PostgreSQL in a separate folder.

Usage: figures.py MODULE VENV FOLDER [--rounds N] [--seconds S] [--alone]
                  [--results FILE]
       figures.py --from FILE

MODULE is the folder of the package uvarrow that was built, VENV the environment
of scripts/bootstrap, with the driver and pyarrow. FOLDER gets an environment with
the packages of requirements.txt. Each figure is of a new process (client.py). A
round measures each case with one pool after the other, so the cells of a row
were measured within a minute. --alone leaves the peers out.

Prints the section of docs/benchmarks.md. --results keeps the median, least and
most of each figure as JSON, which bench/run.py turns into that section.
"""
import glob
import json
import os
import subprocess
import sys

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
BENCH = os.path.dirname(HERE)
sys.path += [BENCH, os.path.join(os.path.dirname(BENCH), "tests", "support")]
import postgresql_server  # noqa: E402
import run as suite  # noqa: E402
from environment import environment  # noqa: E402
from postgresql import table  # noqa: E402
from report import spread  # noqa: E402

TABLES = """
create table points as
    select n, 'point ' || n as text from generate_series(0, 9999) n;
alter table points add primary key (n);
create table target(n bigint, half float8, text text);
analyze
"""
WHO = "uvarrow", "asyncpg", "psycopg"
KEPT = "uvarrow-kept", "asyncpg-kept" # without resets
CASES = {"small": WHO + KEPT, "bound": WHO, "beside": WHO, "cold": WHO,
         "ingest": WHO}


class Bench:
    def __init__(self, how):
        self.how = how
        self.figures = {}
        os.makedirs(how.folder, exist_ok=True)
        site = glob.glob(f"{how.venv}/lib/python3*/site-packages")[-1]
        self.environment = {**os.environ, "PYTHONPATH": os.pathsep.join(
            [os.path.abspath(how.module), os.path.abspath(site)])}
        self.python = f"{how.venv}/bin/python" if how.alone else environment(
            how.venv, how.folder, os.path.join(HERE, "requirements.txt"))

    def measure(self, server, who, case):
        server.query("truncate target; checkpoint")
        done = subprocess.run(
            [self.python, os.path.join(HERE, "client.py"), who, case, server.uri,
             str(self.how.seconds)], env=self.environment, check=True,
            stdout=subprocess.PIPE, text=True)
        for name, value in json.loads(done.stdout).items():
            self.figures.setdefault(f"{case}/{who}/{name}", []).append(value)

    def run(self):
        with postgresql_server.Server(max_connections=60,
                                      shared_buffers="256MB") as server:
            server.query(TABLES)
            version = server.query("show server_version").split()[0]
            for number in range(self.how.rounds):
                for case, clients in CASES.items():
                    for who in clients:
                        if self.how.alone and not who.startswith("uvarrow"):
                            continue
                        print(f"\rround {number + 1} of {self.how.rounds}: "
                              f"{case}, {who}        ", end="", file=sys.stderr,
                              flush=True)
                        self.measure(server, who, case)
        print(file=sys.stderr)
        return {"machine": suite.machine(), "rounds": self.how.rounds,
                "server": version,
                "figures": {name: spread(values)
                            for name, values in self.figures.items()}}


def arguments():
    parser = suite.parser_of(("module", "venv", "folder"), 5)
    parser.add_argument("--seconds", type=float, default=10)
    return parser.parse_args()


def main():
    how = arguments()
    kept = suite.kept(how, lambda: Bench(how).run())
    print("\n".join(table.lines(kept)))


if __name__ == "__main__":
    try:
        main()
    except postgresql_server.Absent as absent:
        print(f"skipped: {absent} is not installed")
        sys.exit(77)
