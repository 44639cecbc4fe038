#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Plays what happens between one program and the hosts that it reads from: three
servers of Flight SQL, each on a host of its own (network.py), of which one is
killed, cut off, slow, or not there.

Usage: play.py [--all] [--only NAME] [--results FILE]

Each play is a process that reads the parts of a query (reader.py). It must end
within the limit of the play, with the right rows or an error that names the right
host, with exit status 0, and no server that can be reached may have an open stream
a second later. Without --all, the plays that take no more than a few seconds run.

Exit code: 0; 1: a play went otherwise; 77: no right to network namespaces, or a
package is missing.
"""
import argparse
import json
import os
import re
import signal
import subprocess
import sys
import time

import network
import outcome

HERE = os.path.dirname(os.path.abspath(__file__))
PORT = 8815
HOSTS = ("1", "2", "3")
BAD = "2"  # the host that has trouble
PATIENCE = 120  # seconds for anything that has no limit of its own
SETTLE = 1.0  # seconds until no stream is open
GROWTH = 5 << 20  # bytes that a server may grow beside a slow reader
SLOW_SECONDS = 10
ROWS = 1000
PACKAGES = ("adbc_driver_flightsql", "numpy", "pyarrow.flight", "uvarrow")


class Wrong(Exception):
    """A play that went otherwise than it should"""


def expect(holds, text):
    if not holds:
        raise Wrong(text)


def within(seconds, holds):
    """Whether it holds before so many seconds are over"""
    end = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True


# ---- processes --------------------------------------------------------------

class Server:
    """The server of a host, which can be killed and started again"""

    def __init__(self, host):
        self.host = host
        self.process = None

    def start(self):
        places = [location(host) for host in HOSTS]
        self.process = subprocess.Popen(
            ["ip", "netns", "exec", self.host, sys.executable,
             os.path.join(HERE, "server.py"), place(self.host), *places],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ready(self):
        expect(self.process.stdout.readline().strip() == str(PORT),
               f"server {self.host} does not start")

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()
        self.process = None

    def slow(self):
        self.state(0.05)

    def heal(self):
        self.state(0.0)

    def state(self, more=""):
        """What it says of itself; `more` seconds for each batch from now on"""
        print(more, file=self.process.stdin, flush=True)
        return json.loads(self.process.stdout.readline())


class Reader:
    """The process that reads"""

    def __init__(self, how, python):
        self.changed = time.monotonic()
        self.process = subprocess.Popen(
            [python, os.path.join(HERE, "reader.py"), json.dumps(how)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def line(self):
        """Its next line; engines print others between them"""
        return next((line for line in self.process.stdout
                     if line == "reached\n" or line.startswith("{")), "")

    def reached(self):
        line = self.line()
        expect(line == "reached\n", f"it ends before the trouble: {line}")
        self.changed = time.monotonic()

    def result(self):
        """What it says in the end, and how long after the trouble"""
        line = self.line()
        seconds = time.monotonic() - self.changed
        expect(line.startswith("{"), f"no result: {line}")
        return json.loads(line), seconds

    def status(self):
        self.process.stdin.close()
        try:
            return self.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise Wrong("it does not exit")


def place(host):
    return f"{network.address(host)}:{PORT}"


def location(host):
    return f"grpc://{place(host)}"


# ---- the trouble ------------------------------------------------------------

def kill(servers):
    servers[BAD].kill()


def restart(servers):
    servers[BAD].kill()
    servers[BAD].start()
    servers[BAD].ready()


def cut(servers):
    network.cut(BAD)


def cut_and_mend(servers):
    network.cut(BAD)
    time.sleep(3)
    network.mend(BAD)


def slow(servers):
    """By the network, or by the server where the kernel cannot do that"""
    if not network.slow(BAD, "8mbit"):
        servers[BAD].slow()


def none(servers):
    pass


# ---- the plays --------------------------------------------------------------

class Play:
    """`trouble` comes when the reader has `tell` batches; before it begins, if that
    is 0. `end` is complete, left or error; an error names host 2. `limit` is in
    seconds from the trouble to the end, for a busy machine. `cannot` has what of
    "names", "quiet" and "steady" an engine does not do. `least` is sum where the
    engine decides which host makes a batch."""
    python = sys.executable

    def __init__(self, name, trouble, end, limit, *, parts=3, batches=200,
                 pause=0.01, rows=ROWS, replicas=1, tell=30, connections=8,
                 leave=0, limits=None, long=False, example=False, wait=0.0,
                 steady=False, unchecked=False, cannot=(), least=min):
        self.name, self.trouble, self.end, self.limit = name, trouble, end, limit
        self.parts, self.batches, self.rows = parts, batches, rows
        self.pause, self.replicas, self.least = pause, replicas, least
        self.tell, self.connections, self.leave = tell, connections, leave
        self.limits, self.unchecked, self.cannot = limits or {}, unchecked, cannot
        self.long, self.example, self.wait, self.steady = (long, example, wait,
                                                           steady)

    def query(self):
        return (f"parts={self.parts} batches={self.batches} rows={self.rows} "
                f"pause={self.pause} replicas={self.replicas}")

    def how(self):
        how = {"uri": location("1"), "sql": self.query(), "limits": self.limits,
               "connections": self.connections, "tell": self.tell,
               "leave": self.leave, "pause": self.wait,
               "unchecked": self.unchecked}
        if self.example:
            how["parts"] = [
                ([location(HOSTS[(part + i) % 3]) for i in range(self.replicas)],
                 f"{part} {self.query()}") for part in range(self.parts)]
        return how


AGAIN = {"retry": 5, "timeout": {"between": 1.5, "open": 1.5}}
PLAYS = (
    Play("no trouble", none, "complete", 10, long=True),
    Play("killed", kill, "error", 2),
    Play("killed, keep_going", kill, "error", 5,
         limits={"keep_going": True}, long=True),
    Play("killed, with a replica", kill, "complete", 8, replicas=2,
         limits=AGAIN),
    Play("restarted", restart, "complete", 12, limits={**AGAIN, "retry": 30}),
    Play("cut off", cut, "error", 4, limits={"timeout": 2}),
    Play("cut off, with a replica", cut, "complete", 12, replicas=2,
         limits=AGAIN),
    Play("cut off for 3 s", cut_and_mend, "complete", 25, long=True),
    Play("slow", slow, "complete", 20, batches=100, rows=5000),
    Play("not there", cut, "error", 4, tell=0, limits={"timeout": 2}),
    Play("not there, with a replica", cut, "complete", 10, tell=0, replicas=2,
         limits=AGAIN),
    Play("a slow reader", none, "left", 30, batches=4000, pause=0.0, rows=1 << 16,
         tell=40, leave=180, wait=0.1, steady=True,
         limits={"window": 4, "max_bytes": 4 << 20}),
    Play("left, 40 parts", none, "left", 2, parts=40, connections=40, batches=4000,
         tell=200, leave=200),
    Play("left, 40 parts, a host cut off", cut, "left", 4, parts=40,
         connections=40, batches=4000, tell=200, leave=1000),
    Play("example: killed, with a replica", kill, "complete", 10, replicas=2,
         example=True, long=True),
    Play("example: cut off, with a replica", cut, "complete", 40, replicas=2,
         example=True, long=True),
    Play("example: cut off", cut, "error", 25, example=True, long=True),
    Play("example: not there", cut, "error", 40, tell=0, example=True, long=True),
)


def check_rows(play, result):
    whole = play.parts * play.batches * play.rows
    expect(result["wrong"] == 0, f"rows are wrong: {result}")
    if play.end == "complete":
        expect(result["rows"] == whole, f"rows: {result['rows']} of {whole}")
    else:
        expect(result["rows"] < whole, "there was no trouble")


def check_names(play, result):
    """Of the hosts, the error names the one that failed."""
    if play.end == "error":
        named = hosts_in(result["text"])
        demand(play, "names", named == {BAD},
               f"the error names {sorted(named)}: {result['text']}")


def hosts_in(text):
    return set(re.findall(r"10\.77\.0\.(\d+)", text))


def demand(play, what, holds, text):
    """That it holds, unless an engine cannot: then the row of the table says so."""
    expect(holds or what in play.cannot, text)


def check_quiet(play, servers):
    """No server that can be reached has an open stream a second later. Returns
    after how many seconds."""
    begin = time.monotonic()
    reached = [server for server in servers.values() if server.process and
               not (play.trouble is cut and server.host == BAD)]
    quiet = within(PATIENCE if "quiet" in play.cannot else SETTLE,
                   lambda: not any(s.state()["open"] for s in reached))
    demand(play, "quiet", quiet, "open streams")
    return round(time.monotonic() - begin, 1) if quiet else None


def watch_steady(play, servers):
    """Beside a slow reader the servers do not grow. Returns by how many bytes, and
    their states in the end."""
    before = states(servers)
    time.sleep(SLOW_SECONDS)
    after = states(servers)
    grown = [after[host]["resident"] - before[host]["resident"] for host in servers]
    made = [after[host]["made"] - before[host]["made"] for host in servers]
    expect(play.least(made) > 0, f"they stand still: {made}")
    demand(play, "steady", max(grown) <= GROWTH, f"servers grew by {grown} bytes")
    return max(grown), after


def states(servers):
    return {host: server.state() for host, server in servers.items()}


def held_back(before, grown, after, ended, result):
    """What servers did beside a slow reader: by how much they grew since it began,
    and in the last seconds, and how many batches none has read"""
    held = max(after[host]["resident"] - before[host]["resident"] for host in before)
    made = sum(ended[host]["made"] - before[host]["made"] for host in before)
    return {"grown": round(grown / (1 << 20), 1), "held": held >> 20,
            "ahead": made - result["batches"],
            "note": f"servers grew by {grown / (1 << 20):.1f} MB in {SLOW_SECONDS} s"}


def run(play, servers):
    """Plays it; returns its row of the table."""
    before = states(servers) if play.steady else None
    if play.tell == 0:
        play.trouble(servers)
    reader = Reader(play.how(), play.python)
    try:
        reader.reached()
        if play.tell > 0:
            play.trouble(servers)
        if play.steady:
            grown, after = watch_steady(play, servers)
        result, seconds = reader.result()
        expect(result["end"] == play.end, f"it ends otherwise: {result}")
        quiet = check_quiet(play, servers)
        ended = states(servers) if play.steady else None
        check_rows(play, result)
        check_names(play, result)
        expect(seconds <= play.limit, f"it took {seconds:.1f} s")
        status = reader.status()
        expect(status == 0, f"exit status {status}")
    finally:
        reader.process.kill()
        reader.process.wait()
    row = {"name": play.name, "end": result["end"], "seconds": round(seconds, 1),
           "limit": play.limit, "gap": round(result["longest"], 1),
           "text": result["text"], "named": sorted(hosts_in(result["text"])),
           "quiet": quiet, "note": ""}
    if play.steady:
        row.update(held_back(before, grown, after, ended, result))
    if play.unchecked:
        row.update(cost(result))
    return row


def cost(result):
    """Of a stream that nothing disturbs"""
    return {"mb_s": round(result["bytes"] / 1e6 / result["clock"]),
            "cpu_us": round(result["cpu"] / (result["batches"] - 1) * 1e6),
            "batch_kb": round(result["bytes"] / 1000 / (result["batches"] - 1))}


def heal(play, servers):
    """Ends the trouble."""
    network.mend(BAD)
    network.fast(BAD)
    if servers[BAD].process is not None and play.trouble is not none:
        servers[BAD].heal()
    if servers[BAD].process is None:
        servers[BAD].start()
        servers[BAD].ready()
    expect(within(PATIENCE, lambda: not any(s.state()["open"]
                                            for s in servers.values())),
           "streams stay open")


def attempt(play, servers, rows):
    """Plays it, and ends the trouble; returns whether it went as it should."""
    try:
        try:
            rows.append(run(play, servers))
            print(f"{play.name}: {rows[-1]}", flush=True)
        finally:
            heal(play, servers)
    except Wrong as error:
        print(f"{play.name}: {error}", flush=True)
        return False
    return True


def play_all(plays, servers):
    rows = []
    for server in servers.values():
        server.start()
        server.ready()
    failed = sum(not attempt(play, servers, rows) for play in plays)
    for server in servers.values():
        server.kill()
    return failed, rows


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--only")
    parser.add_argument("--results")
    how = parser.parse_args()
    for package in PACKAGES:
        try:
            __import__(package)
        except ImportError as error:
            outcome.skip(str(error))
    network.enter()
    network.up(HOSTS)
    end(*play_all([play for play in PLAYS if (
        play.name == how.only if how.only else how.all or not play.long)],
        {host: Server(host) for host in HOSTS}), how.results)


def end(failed, rows, path):
    outcome.keep(rows, path)
    print(f"{len(rows)} plays passed, {failed} failed")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
