#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Plays as play.py does, with engines on the hosts instead of servers of Flight SQL:
Dask, Ray, Sail and Spark (engine.py), of build/engines and build/spark, which
.ci/nightly makes. Servers of Flight SQL are played, too, for the line of the table that
compares them.

Usage: play_engines.py [--engine NAME] [--only NAME] [--results FILE]

Exit code: as of play.py.
"""
import argparse
import collections
import copy
import os
import signal
import subprocess
import sys
import tempfile
import time

import network
import outcome
import play
from play import BAD, HOSTS, Play, cut, cut_and_mend, kill, none, restart, slow

BUILD = os.path.join(play.HERE, "../../build")
ENGINES = os.path.join(BUILD, "engines/bin/python")
SPARK = os.path.join(BUILD, "spark")  # pyspark, instead of pyspark-client
MB = 1 << 16  # rows of a batch of three quarters of a megabyte
CONNECT = "Sail", "Spark"
READY = "ready", "Ray runtime started."  # what a host prints


class Node:
    """An engine on a host, as play.Server"""

    def __init__(self, engine, host, log):
        self.engine, self.host, self.log, self.process = engine, host, log, None

    def start(self):
        where = [] if self.host == "c" else ["ip", "netns", "exec", self.host]
        self.process = subprocess.Popen(
            [*where, ENGINES, os.path.join(play.HERE, "engine.py"), self.engine,
             self.host], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            text=True, env={**os.environ, "UVA_HOSTS_HOST": self.host,
                            "PYTHONUNBUFFERED": "1"})

    def ready(self):
        for line in self.process.stdout:
            if line.strip() in READY:
                return
        raise play.Wrong(f"{self.engine} does not start on host {self.host}")

    def kill(self):
        for pid in ([self.process.pid] if self.host == "c" else
                    network.processes(self.host)):
            os.kill(pid, signal.SIGKILL)
        self.process.wait()
        self.process = None

    def slow(self):
        raise play.Wrong("the kernel cannot make a network slow")

    def heal(self):
        self.kill()  # an engine may have given the host up: it starts anew

    def words(self):
        """The words that living processes of the host have written"""
        living = set(network.processes(self.host))
        with open(self.log, encoding="ascii") as file:
            lines = [line.split() for line in file]
        return collections.Counter(word for host, pid, word in lines
                                   if host == self.host and int(pid) in living)

    def state(self):
        words = self.words()
        return {"made": words["made"], "open": words["open"] - words["shut"],
                "resident": sum(map(proportional, network.processes(self.host)))}


class Busy(Node):
    """A server whose queries cannot be seen: it works, or it does not."""
    LOOKS = 10

    def works(self):
        time.sleep(0.02)
        return any(map(runs, network.processes(self.host)))

    def state(self):
        busy = sum(self.works() for _ in range(self.LOOKS))
        return {**super().state(), "made": sum(map(cpu, network.processes(self.host))),
                "open": busy > self.LOOKS // 2}


def runs(pid):
    """Whether one of its threads runs, or waits for a processor"""
    try:
        for thread in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{thread}/stat", encoding="ascii") as file:
                if file.read().rpartition(") ")[2].startswith("R"):
                    return True
    except OSError:  # it has ended
        pass
    return False


def proportional(pid):
    """The bytes of a process, and its share of those that it shares"""
    try:
        with open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as file:
            return sum(int(line.split()[1]) << 10 for line in file
                       if line.startswith("Pss:"))
    except OSError:  # it has ended
        return 0


def cpu(pid):
    """The hundredths of a second that it has run"""
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii") as file:
            return sum(map(int, file.read().rpartition(")")[2].split()[11:13]))
    except OSError:
        return 0


class EnginePlay(Play):
    python = ENGINES

    def __init__(self, *what, options=None, **how):
        super().__init__(*what, **how)
        self.options = options or {}

    def how(self):
        return {**super().how(), "engine": self.engine, "parts": self.parts,
                "batches": self.batches, "rows": self.rows, "work": self.pause,
                "options": self.options}


def slow_reader(make, **how):
    return make("a slow reader", none, "left", 40, **{
        "batches": 4000, "pause": 0.0, "rows": MB, "tell": 40, "leave": 180,
        "wait": 0.1, "steady": True, **how})


def cost(make, **how):
    return make("nothing", none, "complete", 180, **{
        "batches": 200, "pause": 0.0, "rows": MB, "unchecked": True, **how})


CUT = {"first": 30.0, "between": 5.0}
FLIGHT = [one for one in play.PLAYS if one.name in (
    "killed", "killed, with a replica", "cut off", "cut off, with a replica",
    "a slow reader", "left, 40 parts")] + [
    cost(Play, limits={"window": 4, "max_bytes": 4 << 20})]
FEW = {"batches": 70}  # of each of three hosts
DASK = [
    cost(EnginePlay),
    EnginePlay("killed", kill, "complete", 60, **FEW),
    EnginePlay("restarted", restart, "complete", 60, **FEW),
    EnginePlay("cut off", cut, "complete", 60, **FEW),
    EnginePlay("cut off for 3 s", cut_and_mend, "complete", 60, **FEW),
    EnginePlay("slow", slow, "complete", 60, rows=5000, **FEW),
    EnginePlay("not there", cut, "complete", 60, tell=0, **FEW),
    slow_reader(EnginePlay, least=sum),
    # The tasks that are not dropped would last longer than they may
    EnginePlay("left", none, "left", 2, batches=4000, pause=0.3, tell=6, leave=6,
               options={"ahead": 60}),
]
AGAIN = {"max_restarts": -1, "max_task_retries": -1}
RAY = [
    cost(EnginePlay),
    EnginePlay("killed", kill, "error", 60),
    EnginePlay("restarted", restart, "error", 60),
    EnginePlay("restarted, with retries", restart, "complete", 60, options=AGAIN),
    EnginePlay("cut off", cut, "error", 100),
    EnginePlay("cut off, with a limit", cut, "error", 40, limits=CUT),
    EnginePlay("cut off for 3 s", cut_and_mend, "complete", 60),
    EnginePlay("slow", slow, "complete", 30, rows=5000),
    EnginePlay("not there, with a limit", cut, "error", 30, tell=0,
               limits={"first": 10.0}),
    slow_reader(EnginePlay, cannot=("steady",)),  # a node has ten processes
    EnginePlay("left", none, "left", 2, batches=4000, tell=60, leave=60),
]
# Its batches have so many rows
SAIL_ROWS = {"parts": 1, "batches": 400, "rows": 1 << 13}
SAIL = [
    cost(EnginePlay, parts=1, batches=1000, rows=1 << 13),
    EnginePlay("killed", kill, "error", 20, **SAIL_ROWS),
    EnginePlay("restarted", restart, "error", 60, cannot=("names",), **SAIL_ROWS),
    EnginePlay("cut off, with a limit", cut, "error", 40, limits=CUT, **SAIL_ROWS),
    EnginePlay("cut off for 3 s", cut_and_mend, "complete", 60, **SAIL_ROWS),
    EnginePlay("slow", slow, "complete", 60, **{**SAIL_ROWS, "batches": 200}),
    slow_reader(EnginePlay, parts=1, batches=20000, rows=1 << 13),
    EnginePlay("left", none, "left", 2, tell=60, leave=60, **SAIL_ROWS),
    EnginePlay("a long query, with a limit", none, "error", 20, tell=0,
               limits={"first": 5.0}, options={"long": True}, **SAIL_ROWS),
]
SPARK_PLAYS = [copy.copy(one) for one in SAIL]
for one in SPARK_PLAYS:
    one.batches //= 3  # it is slower by that much
    one.cannot = "names", "quiet", "steady"
PLAYS = {"Flight SQL": FLIGHT, "Dask": DASK, "Ray": RAY, "Sail": SAIL,
         "Spark": SPARK_PLAYS}


def hosts_of(engine, log):
    """The hosts that can have trouble, and those that cannot"""
    if engine == "Flight SQL":
        return {host: play.Server(host) for host in HOSTS}, []
    if engine in CONNECT:
        return {BAD: Busy(engine, BAD, log)}, []
    return {host: Node(engine, host, log) for host in HOSTS}, [Node(engine, "c", log)]


def play_engine(engine, only, log):
    servers, heads = hosts_of(engine, log)
    for head in heads:
        head.start()
        head.ready()
    plays = [one for one in PLAYS[engine] if only in (None, one.name)]
    for one in plays:
        one.engine = engine
    failed, rows = play.play_all(plays, servers)
    for head in heads:
        head.kill()
    for row in rows:
        if engine in CONNECT and "ahead" in row:
            row["ahead"] = None  # nothing counts what a server has made
    return failed, [{"engine": engine, **row} for row in rows]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--engine", choices=PLAYS)
    parser.add_argument("--only")
    parser.add_argument("--results")
    how = parser.parse_args()
    engines = [how.engine] if how.engine else list(PLAYS)
    for path in ENGINES, SPARK:
        if not os.path.exists(path):
            outcome.skip(f"there is no {path}: see .ci/nightly")
    network.enter()
    network.up(HOSTS)
    failed, rows = 0, []
    with tempfile.TemporaryDirectory() as folder:
        log = os.path.join(folder, "log")
        open(log, "x").close()
        os.environ.update(UVA_HOSTS_LOG=log, DASK_TEMPORARY_DIRECTORY=folder,
                          RAY_AUTH_MODE="disabled")  # nobody else is in this network
        path = [os.environ["PYTHONPATH"], play.HERE]
        for engine in engines:
            os.environ["PYTHONPATH"] = os.pathsep.join(
                [SPARK, *path] if engine == "Spark" else path)
            more, new = play_engine(engine, how.only, log)
            failed, rows = failed + more, rows + new
    play.end(failed, rows, how.results)


if __name__ == "__main__":
    main()
