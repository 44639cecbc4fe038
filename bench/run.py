#!/usr/bin/env python3
"""Runs the programs of the bench, round after round, and prints the results.

Usage: run.py FOLDER [--rounds N] [--passes N] [--scale F] [--results FILE]
              [--page FILE]
       run.py --count FOLDER [--library NAME=FOLDER ...] [--results FILE]
       run.py --from FILE [--page FILE | --check FILE]

FOLDER holds the programs. Each round runs every program, and each program goes
through its cases three times, so that figures to be compared are measured
within a second; some do that with each shape of batches (shapes.py). The median,
least and most of each figure are written to FILE as JSON (report.py); --from reads
them from there instead of running anything. The page is docs/benchmarks.md; --check
fails if it differs. A run fails if a program fails, or if a required target has no
figure. bench/measure does all of it.

On one core, figures are the CPU time of the process; on two cores, each thread
has its own core, and the time is the clock's. Instructions are counted by
callgrind, as the difference between a short and a longer run; other programs on the
machine do not change them. --count counts them alone, also for programs that are
linked with the other libraries of shapes.py, and writes docs/benchmarks_counts.json,
which the page has beside the times. The measurements of serve/figures.py,
postgresql/figures.py, database/figures.py, node/figures.py and values/figures.py are
copied to the page from their own results, and the measurements of scripts/gpu_report as well.
"""
import argparse
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile

import database.table
import gpu_table
import node.table
import postgresql.table
import report
import shapes
import serve.table
import values.table

# program: modes
PROGRAMS = {
    "drive": ("one", "two"), "lane": ("one", "two"), "outlet": ("one", "two"),
    "arrow": ("one", "two"), "check_hop": ("one",), "many": ("one",),
    "decode": ("two",), "ipc": ("one",), "formats": ("one",),
    "heartbeat": ("two",), "steady": ("one",), "stages": ("one",),
    "merge": ("one",), "rebatch": ("one",), "branches": ("one",),
    "take": ("one",),
    "events": ("one", "two"), "opencl": ("one", "two"), "cuda": ("two",),
    "beside": ("two",), "open": ("one", "two"), "scaling": ("one",),
}
DOCS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "docs")
# The measurements of other programs: results, title, lines
SECTIONS = (("benchmarks_serve.json", "`uvarrow serve` beside other servers",
             serve.table.lines),
            ("benchmarks_postgresql.json", "`uvarrow.adbc` beside asyncpg and "
             "psycopg_pool", postgresql.table.lines),
            ("benchmarks_database.json", "A table read by a program of asyncio",
             database.table.lines),
            ("benchmarks_node.json", "A program of Node.js", node.table.lines),
            ("benchmarks_values.json", "Values as text, beside pyarrow, polars and "
             "DuckDB", values.table.lines))
PASSES = 3
SCALE = 0.2  # scale of a round; cases that run only once are run at full length
MODES = {"one": (["taskset", "-c", "0"], ["--cpu"]), "two": ([], ["--apart"])}
# Cases to count instructions of: program, case, batches of the short and of the
# longer run, and the function that is counted. Those in PROFILED are also
# broken down by function.
COUNTED = [
    *(("drive", f"drive/{case}", 4096, 20480, None)
      for case in ("get_next", "64/hand", "64/hand-built",
                   "64/uvarrow-building", "64/uvarrow-on-loop", "1/hand",
                   "1/hand-built")),
    *(("drive", f"drive/{window}/uvarrow{maps}", 4096, 20480, "host_run")
      for window in (64, 1) for maps in ("", "-1-map", "-4-maps")),
    *(("stages", f"stages/{stage}", 4096, 20480, "host_run")
      for stage in ("none", *report.STAGES)),
    *((program, f"{program}/{window}/{who}", batches, 5 * batches, None)
      for program in ("lane", "outlet")
      for window, batches in ((1, 1000), (8, 2000), (64, 4000), (512, 8000))
      for who in ("ring", "uvarrow")),
    *(("lane", f"lane/{window}/queue_work", 1000, 5000, None)
      for window in (1, 8, 64)),
    *(("arrow", f"arrow/64/{who}", 1000, 5000, None)
      for who in ("producer", "consumer", "both", "producer-to-uvarrow",
                  "uvarrow-to-consumer")),
    *(("open", f"open/{window}/{who}", 1000, 5000, None)
      for window in (1, 64) for who in ("queue_work", "uvarrow")),
    *(("check_hop", f"check_hop/{who}", 1000, 5000, None)
      for who in ("unchecked", "checked", "checked-children")),
    *(("take", f"take/loop/64/{who}", 4000, 20000, None)
      for who in ("for_each", "take")),
    # beyond the filling of the windows, of 16 batches a stream
    *(("merge", f"merge/{n}", 40000, 60000, None) for n in (2, 10, 100, 1000)),
    *(("branches", f"branches/{n}/uvarrow", 4000, 20000, None) for n in (1, 3)),
    *(("rebatch", f"rebatch/shape/{who}", 4096, 12288, None)
      for who in ("split", "join")),
]
# With the flights all of these that run with them are counted, with the other
# shapes these.
WIDE = re.compile(r"(lane|outlet)/64/uvarrow|drive/64/uvarrow(-on-loop)?|stages/.*"
                  r"|take/loop/64/.*|branches/.*|merge/2|rebatch/.*")

PROFILED = ("drive/64/uvarrow", "drive/64/uvarrow-4-maps", "lane/64/uvarrow",
            "outlet/64/uvarrow")


PATIENCE = 3000  # seconds, for a program that hangs; on a slow machine they take long


def run(command):
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}: {done.returncode}\n{done.stderr}")
    return done


def figures_of(output):
    for line in output.splitlines():
        name, value, unit = line.split("\t")
        yield name, float(value), unit


def measured_by(program, mode, how):
    """The figures of each run of a program in one mode"""
    before, after = MODES[mode]
    once = os.path.basename(program) == "bench_steady"
    for options in shapes.runs(os.path.basename(program)[len("bench_"):], mode):
        done = run([*before, program, "--passes", str(how.passes), "--scale",
                    str(how.scale / SCALE if once else how.scale), *after,
                    *options])
        yield from figures_of(done.stdout)


def measure(how):
    """{mode: {name: {"unit": unit, "rounds": [value, ...]}}}"""
    figures = {mode: {} for mode in MODES}
    for number in range(how.rounds):
        print(f"round {number + 1} of {how.rounds}", file=sys.stderr, flush=True)
        for program, modes in PROGRAMS.items():
            path = os.path.join(how.folder, f"bench_{program}")
            once = program == "steady"
            if not os.path.exists(path) or (number and once):
                continue
            for mode in modes:
                for name, value, unit in measured_by(path, mode, how):
                    figures[mode].setdefault(
                        name, {"unit": unit, "rounds": []}
                    )["rounds"].append(value)
    return figures


def annotated(out):
    """{function: instructions}"""
    text = run(["callgrind_annotate", "--threshold=100", "--auto=no",
                out]).stdout
    counts = {}
    for count, name in re.findall(r"^ *([\d,]+) .*?:([\w.]+) \[", text, re.M):
        name = name.split(".")[0]  # suffix that compilers add to static functions
        counts[name] = counts.get(name, 0) + int(count.replace(",", ""))
    return counts


def collected(path, case, batches, within):
    """Returns the instructions of one run, in total and by function."""
    case, *shape = case.split("@")
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, "out")
        done = run(["valgrind", "--tool=callgrind", "--fair-sched=yes",
                    f"--callgrind-out-file={out}",
                    *([f"--toggle-collect={within}"] if within else []),
                    path, "--only", case, "--batches", str(batches), "--cold",
                    *(("--shape", *shape) if shape else ())])
        return (int(re.search(r"Collected : (\d+)", done.stderr).group(1)),
                annotated(out) if case in PROFILED else {})


def counted_cases():
    """All that are counted with the first library"""
    yield from COUNTED
    for shape in list(shapes.SHAPES):
        for program, case, *how in COUNTED:
            if shape and program in shapes.SHAPED and (
                    shape == "flights" or WIDE.fullmatch(case)):
                yield (program, shapes.named(case, shape), *how)
    for case, (short, long) in shapes.GROWN.items():
        yield "scaling", case, short, long, None


def compared_cases():
    """All that are counted with each other library"""
    within = {case: how for _, case, *how in COUNTED}
    for case, shape, short in shapes.compared():
        yield (case.split("/")[0], shapes.named(case, shape),
               *within.get(case, (short, 5 * short, None)))


def instructions(folder, cases):
    """Returns the cost of one more batch: {case: total} and {case: [[function,
    share]]}."""
    counts, profiles = {}, {}
    cases = list(cases)
    if not shutil.which("valgrind"):
        return counts, profiles
    for number, (program, case, short, long, within) in enumerate(cases):
        path = os.path.join(folder, f"bench_{program}")
        if not os.path.exists(path):
            continue
        print(f"\rinstructions {number + 1} of {len(cases)}: {case}        ",
              end="", file=sys.stderr, flush=True)
        less, by_less = collected(path, case, short, within)
        more, by_more = collected(path, case, long, within)
        if more == less:
            sys.exit(f"{case}: no count, {within} is never called")
        counts[case] = round((more - less) / (long - short))
        shares = [[name, round((n - by_less.get(name, 0)) / (long - short))]
                  for name, n in by_more.items()]
        if shares:
            profiles[case] = sorted((s for s in shares if s[1] > 0),
                                    key=lambda s: (-s[1], s[0]))
    print(file=sys.stderr)
    return counts, profiles


def counted(folder, libraries):
    """What docs/benchmarks_counts.json holds"""
    counts, profiles = instructions(folder, counted_cases())
    for case in profiles:
        profiles[case] = profiles[case][:report.PROFILE_ROWS]
    counts = {"gcc-static": counts}
    for library in libraries:
        name, _, other = library.partition("=")
        counts[name], _ = instructions(other, compared_cases())
    return {"code": code(), "counts": counts, "profiles": profiles}


def counts_of():
    """The last counts, or none"""
    path = os.path.join(DOCS, "benchmarks_counts.json")
    if not os.path.exists(path):
        return {"code": "no code so far", "counts": {}, "profiles": {}}
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def code():
    """The version and the commit that are measured"""
    root = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
    with open(os.path.join(root, "include/uvarrow/base.h"),
              encoding="utf-8") as header:
        numbers = re.findall(r"define UVA_VERSION_(?:MAJOR|MINOR|PATCH)\s+(\d+)",
                             header.read())
    try:
        commit = subprocess.run(
            ["git", "-C", root, "log", "-1", "--format=%h of %cs"],
            capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError): # no clone
        commit = "unknown"
    return f"version {'.'.join(numbers)}, commit {commit}"


def machine():
    with open("/proc/cpuinfo", encoding="ascii") as info:
        model = re.search(r"model name\s*: (.*)", info.read())
    return {"code": code(),
            "processor": model.group(1) if model else platform.machine(),
            "cores": os.cpu_count(), "system": platform.system(),
            "kernel": platform.release(),
            "load": round(os.getloadavg()[0], 1)}


def written(value, depth=3, indent=1):
    """JSON with a line for each entry, down to that depth"""
    space = "\n" + " " * indent
    if isinstance(value, dict) and depth:
        rows = [f"{json.dumps(key)}: {written(entry, depth - 1, indent + 1)}"
                for key, entry in value.items()]
    elif isinstance(value, list) and value and isinstance(value[0], list):
        rows = [json.dumps(entry, ensure_ascii=False) for entry in value]
    else:
        return json.dumps(value, ensure_ascii=False)
    ends = "{}" if isinstance(value, dict) else "[]"
    return ends[0] + space + ("," + space).join(rows) + space[:-1] + ends[1]


def parser_of(places, rounds):
    """The arguments that the programs of figures have in common: the places that
    they are given, and what becomes of the results."""
    parser = argparse.ArgumentParser()
    for name in places:
        parser.add_argument(name, nargs="?")
    parser.add_argument("--rounds", type=int, default=rounds)
    parser.add_argument("--alone", action="store_true")
    parser.add_argument("--results")
    parser.add_argument("--from", dest="origin")
    return parser


def kept(how, measured):
    """The figures of the file --from, or measured; written to --results, too"""
    if how.origin:
        with open(how.origin, encoding="utf-8") as file:
            figures = json.load(file)
    else:
        figures = measured()
    if how.results:
        with open(how.results, "w", encoding="utf-8") as file:
            file.write(written(figures) + "\n")
    return figures


def sections():
    """The measurements of other programs"""
    text = ""
    for name, title, lines in SECTIONS:
        path = os.path.join(DOCS, name)
        if os.path.exists(path):
            with open(path, encoding="utf-8") as file:
                text += "\n".join(["", f"## {title}", "",
                                   *lines(json.load(file)), ""])
    return text


def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", nargs="?")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--passes", type=int, default=PASSES)
    parser.add_argument("--scale", type=float, default=SCALE)
    parser.add_argument("--count")
    parser.add_argument("--library", action="append", default=[])
    parser.add_argument("--results")
    parser.add_argument("--page")
    parser.add_argument("--from", dest="origin")
    parser.add_argument("--check")
    return parser.parse_args()


def measured(how):
    return {"machine": machine(), "rounds": how.rounds, "passes": how.passes, "figures": measure(how)}


def main():
    how = arguments()
    if how.count:
        kept(how, lambda: counted(how.count, how.library))
        return
    results = None if how.origin else measured(how)
    figures = kept(how, lambda: report.summary(results))
    page = report.page(figures, counts_of()) + sections() + "\n" + \
        gpu_table.section()
    if how.page:
        with open(how.page, "w", encoding="utf-8") as file:
            file.write(page)
    if how.check:
        with open(how.check, encoding="utf-8") as file:
            if file.read() != page:
                sys.exit(f"{how.check} is not what {how.origin} says")
        return
    print(page)
    missing = [] if how.origin else report.missing(results)
    if missing:
        sys.exit("nothing to judge by: " + "; ".join(missing))


if __name__ == "__main__":
    main()
