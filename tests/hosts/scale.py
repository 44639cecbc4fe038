#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""One program reads a result of many partitions, all on one server: the seconds
until it has their list, and to read them, and the most threads and resident memory
of the program. Usage: scale.py [--results FILE]

Exit code: 0; 1: rows are missing; 77: a package is missing.
"""
import argparse
import json
import os
import subprocess
import sys
import threading
import time

import outcome

HERE = os.path.dirname(os.path.abspath(__file__))
PAGE = os.sysconf("SC_PAGE_SIZE")
BATCHES, ROWS = 2, 1000  # of each partition
CASES = ((10, 8), (100, 8), (1000, 8), (10000, 8), (100, 64), (1000, 64),
         (10000, 64), (1000, 1000))


def watch(process, most, ended):
    """Keeps the most threads and resident bytes of the process."""
    folder = f"/proc/{process.pid}"
    while not ended.wait(0.02):
        try:
            with open(f"{folder}/statm", encoding="ascii") as file:
                resident = int(file.read().split()[1]) * PAGE
            threads = len(os.listdir(f"{folder}/task"))
        except OSError:
            return
        most["threads"] = max(most["threads"], threads)
        most["resident"] = max(most["resident"], resident)


def measure(uri, partitions, connections):
    how = {"uri": uri, "connections": connections, "limits": {}, "tell": 0,
           "leave": 0, "pause": 0,
           "sql": f"parts={partitions} batches={BATCHES} rows={ROWS}"}
    most, ended = {"threads": 0, "resident": 0}, threading.Event()
    with subprocess.Popen(
            [sys.executable, os.path.join(HERE, "reader.py"), json.dumps(how)],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            text=True) as process:
        watcher = threading.Thread(target=watch, args=(process, most, ended))
        watcher.start()
        process.stdout.readline()
        begin = time.monotonic()
        result = json.loads(process.stdout.readline())
        seconds = time.monotonic() - begin
        ended.set()
        watcher.join()
    if (result["rows"] != partitions * BATCHES * ROWS or result["wrong"]
            or process.returncode != 0):
        sys.exit(f"{partitions} partitions: {process.returncode}, {result}")
    return {"partitions": partitions, "connections": connections,
            "listed": round(result["listed"], 1),
            "read": round(seconds - result["listed"], 1),
            "threads": most["threads"], "megabytes": most["resident"] >> 20}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--results")
    how = parser.parse_args()
    try:
        import adbc_driver_flightsql  # noqa: F401
        import pyarrow.flight  # noqa: F401
        import uvarrow  # noqa: F401
    except ImportError as error:
        outcome.skip(str(error))
    rows = []
    with subprocess.Popen(
            [sys.executable, os.path.join(HERE, "server.py"), "127.0.0.1:0"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        uri = f"grpc://127.0.0.1:{int(server.stdout.readline())}"
        try:
            for partitions, connections in CASES:
                rows.append(measure(uri, partitions, connections))
                print(rows[-1], flush=True)
        finally:
            server.kill()
    outcome.keep(rows, how.results)


if __name__ == "__main__":
    main()
