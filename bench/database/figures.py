#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures how a program of asyncio reads a table of PostgreSQL and of SQLite:
by uvarrow, and by asyncpg, psycopg, aiosqlite, connectorx and ADBC's dbapi in a
thread.

Usage: figures.py MODULE VENV FLIGHTS FOLDER [--rounds N] [--rows N]
                  [--batches N] [--alone] [--results FILE]
       figures.py --from FILE

MODULE is the folder of the package uvarrow that was built, VENV the environment
of scripts/bootstrap, with the drivers, pyarrow and uvloop, FLIGHTS the file
flights.csv.zip. FOLDER gets an environment with the packages of requirements.txt
and the database of SQLite; the server of PostgreSQL is started in a folder of its
own. Each figure is of a new process (client.py). A round runs each way once on
each loop, one after the other. --alone leaves the packages of requirements.txt
out.

Prints the section of docs/benchmarks.md. --results keeps the median, least and
most of each figure as JSON, which bench/run.py turns into that section.
"""
import contextlib
import glob
import itertools
import json
import os
import socket
import subprocess
import sys
import zipfile

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
BENCH = os.path.dirname(HERE)
ROOT = os.path.dirname(BENCH)
sys.path += [BENCH, os.path.join(ROOT, "tests", "support"),
             os.path.join(ROOT, "tools")]
import flights  # noqa: E402
import postgresql_server  # noqa: E402
import run as suite  # noqa: E402
from database import table  # noqa: E402
from environment import environment  # noqa: E402
from report import spread  # noqa: E402

TABLE = """
create table flights (year int, month int, day int, dep_time int,
    sched_dep_time int, dep_delay int, arr_time int, sched_arr_time int,
    arr_delay int, carrier text, flight int, tailnum text, origin text,
    dest text, air_time int, distance int, hour int, minute int,
    time_hour text);
copy flights from '{path}' (format csv, header, null 'NA');
analyze flights
"""
OWN = "uvarrow", "driver_alone", "dbapi_table", "dbapi_batches"


def free_port():
    with contextlib.closing(socket.socket()) as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


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

    def source(self):
        """The flights, or the first ones"""
        if self.how.rows >= flights.ROWS:
            return self.how.flights
        path = os.path.join(self.how.folder, f"flights-{self.how.rows}.zip")
        with zipfile.ZipFile(self.how.flights) as whole, \
                whole.open("flights.csv") as lines, \
                zipfile.ZipFile(path, "w") as part:
            part.writestr("flights.csv", b"".join(
                itertools.islice(lines, self.how.rows + 1)))
        return path

    def sqlite(self, source):
        path = os.path.join(self.how.folder, f"flights-{self.how.rows}.db")
        flights.build(source, path)
        return os.path.abspath(path)

    @staticmethod
    def fill(server, source):
        with zipfile.ZipFile(source) as box:
            path = box.extract("flights.csv", server.folder)
        os.chmod(path, 0o644)
        server.query(TABLE.format(path=path))
        os.remove(path)

    def measure(self, way, engine, loop, place, count):
        done = subprocess.run(
            [self.python, os.path.join(HERE, "client.py"), way, engine, loop,
             place, str(count)], env=self.environment, check=True,
            stdout=subprocess.PIPE, text=True)
        for name, value in json.loads(done.stdout).items():
            self.figures.setdefault(f"{engine}/{way}/{loop}/{name}",
                                    []).append(value)

    def round(self, title, places):
        for engine, way, loop in self.cases():
            print(f"\r{title}: {engine}, {way}, {loop}            ", end="",
                  file=sys.stderr, flush=True)
            self.measure(way, engine, loop, *places[engine])

    def cases(self):
        for engine, ways in table.WAYS.items():
            for way in ways:
                if not self.how.alone or engine == "none" or way in OWN:
                    yield engine, way, "asyncio"
                if not self.how.alone and way != "driver_alone":
                    yield engine, way, "uvloop"
        if self.how.alone:
            yield "sqlite", "uvarrow", "uvloop"

    def run(self):
        port = free_port()
        os.environ["PGPORT"] = str(port)
        with postgresql_server.Server(listen_addresses="127.0.0.1", port=port,
                                      shared_buffers="256MB") as server:
            source = self.source()
            self.fill(server, source)
            places = {
                "postgresql": (f"postgresql://postgres@127.0.0.1:{port}/postgres",
                               self.how.rows),
                "sqlite": (self.sqlite(source), self.how.rows),
                "none": ("", self.how.batches)}
            version = server.query("show server_version").split()[0]
            for number in range(self.how.rounds):
                self.round(f"round {number + 1} of {self.how.rounds}", places)
        print(file=sys.stderr)
        return {"machine": suite.machine(), "rounds": self.how.rounds,
                "rows": self.how.rows, "batches": self.how.batches,
                "server": version,
                "figures": {name: spread(values)
                            for name, values in self.figures.items()}}


def arguments():
    parser = suite.parser_of(("module", "venv", "flights", "folder"), 3)
    parser.add_argument("--rows", type=int, default=flights.ROWS)
    parser.add_argument("--batches", type=int, default=20000)
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
