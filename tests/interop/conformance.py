#!/usr/bin/env python3
"""Writes docs/conformance.md: how uvarrow, Arrow C++ and the streams of other
implementations hold each clause, by the results of `uvarrow tck` for their
subjects. Or checks that it is up to date.

Usage: conformance.py [--check] [--runs N] [--stream NAME=FILE.so...]
                      [--go FILE.so] TOOL RESULTS [ARROW.so...]

TOOL is the command uvarrow, RESULTS the folder with the JUnit files of the
tests tck/, ARROW.so the subjects of Arrow C++; FILE.so@ROLE:CLAUSE is one for a
clause only. Those are run here, N times (2; with --check: 1), because results
vary; memory they free is overwritten, so that its use shows. With --check
no file is written: the rows and the column of uvarrow must be as in the file
(unless RESULTS is "-"), and so must the verdicts of this run.

FILE.so is the subject of the peer NAME of stream_peers.py. The blocking streams
of these peers have a column each in a table of their own. Where the peer is
missing, FILE is "-"; a check then ends with 77. --go names the subject that was
made of arrow_go/, which has a table that is not checked: alone, without ARROW.so and
--stream, it is the only one that is written. Without ARROW.so only these tables are
written, and without --go the table of arrow-go stays.

Arrow's verdicts may depend on thread timing. A verdict that varied between the
runs may vary again. A clause that differs from the file is run again, alone and
with a longer timeout. It is an error if the file's verdict never occurs, and
only reported if it does.
"""
import argparse
import importlib.metadata
import itertools
import os
import re
import subprocess
import sys
import tempfile
import textwrap
import xml.etree.ElementTree as ET

from stream_peers import PEERS, Absent

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.join(HERE, "../..")
REPORT = os.path.join(ROOT, "docs/conformance.md")
CATALOGUE = os.path.join(ROOT, "docs/clauses.md")
RULES = os.path.join(ROOT, "runtime/protocol/clauses.h")
TUNABLES = "glibc.malloc.perturb=165:glibc.malloc.tcache_count=0"
LINES = 16  # lines of a transcript
SKIP = 77   # the exit status of a test that was not played
AGAIN = 6   # how often a clause that differs from the report is run again
WAIT = "UVA_TCK_WAIT_MS"
LONG = 5000  # the least wait when a clause is run again, alone

GROUPS = {
    "AB": "Layout and ABI", "DA": "Device arrays", "EV": "Events",
    "DS": "Blocking streams", "AT": "Tasks", "AP": "Producers",
    "AH": "Handlers", "TH": "Threads", "MD": "Metadata",
    "LC": "Lifetimes", "ER": "Errors",
}
ROLES = ["producer", "handler", "stream"]

# The words for verdicts. A clause gets the first one of its cases.
FAILS, WEAK, HOLDS, UNDECIDED, CANNOT, NEVER = range(6)
WORDS = {FAILS: "**fails**", WEAK: "*falls short*", HOLDS: "holds",
         UNDECIDED: "undecided", CANNOT: "not played", NEVER: "–"}

STREAMS = "## Blocking streams of other implementations"
GO = "## arrow-go"
DATA = "## Arrow IPC and C streams of other implementations"  # scripts/peers
GO_RUNS = 5  # its verdicts vary more than those of Arrow C++
# Clauses about the members that an adapter adds to streams
ADDED = ("DA-03", "DA-05", "DA-08", "EV-04", "DS-03", "DS-05")

INTRO = """\
# Conformance

How two implementations keep each clause of the catalogue: uvarrow {uvarrow}
and Arrow C++ {arrow}, the copy in pyarrow's wheel. [Another
table](#blocking-streams-of-other-implementations) has implementations that give
blocking streams only. Written by `tests/interop/conformance.py` from runs of
`uvarrow tck`, never by hand.

- **holds**: all cases about the clause hold, in every role that was tested.
- **fails**: a required case does not hold. If a process crashed or hung in it,
  the cause may be another clause; the transcript names the broken ones.
- *falls short*: a case that is only recommended does not hold.
- undecided: the case could not be finished, because another clause is broken;
  the remark names it.
- not played: the implementation does not support the needs of the case.
- –: the suite has no case; the remark gives the reason.

uvarrow plays the producer with each of its sources and with stages after them,
the handler with its foreign source, the blocking stream with its adapter:
{ours}.

Arrow C++ plays the producer twice: with batches that are ready when they are
requested (`arrow_subject`), and with batches made on its thread pool
(`arrow_subject_pooled`). Its importer plays the handler, with a queue of 5 and,
for AP-08, also with a queue of 0 (`arrow_subject_unqueued`); its exporter of readers
plays the blocking stream. It was run {runs} times; one failure counts as
failed. Its freed memory was overwritten, so that a use of it is detected
(GLIBC_TUNABLES=
{tunables}).
If its producer object is freed too early (LC-13), that is taken as the cause of
a crash, a hang or invalid contents of that object, and the case counts as
undecided.

| | uvarrow | Arrow C++ |
|---|---|---|
{tally}

arrow-go, which implements the asynchronous interface, too, has [a table of its
own](#arrow-go).
"""

GO_INTRO = """
{title}

arrow-go {version}, in both roles: its exporter of asynchronous streams is the
producer, its importer with a queue of 5 the handler. It was run {runs} times.

The tests do not check this table, as they do the rest of this page: where a process
crashes, the runs differ. The subject is `tests/interop/arrow_go`, made by
`go build -buildmode=c-shared`; `tests/interop/conformance.py --go FILE.so TOOL -`
writes this table alone, the target `conformance` with `-DUVA_ARROW_GO=FILE.so`
the whole page.

A crash inside Go ends with SIGQUIT or SIGABRT. Where a case crashed after a
breach of LC-13, that is named as the cause. It may also be AT-04, as most cases
have a scenario in which all tasks are extracted to NULL.

| | arrow-go |
|---|---|
{tally}

| Clause | Rule | arrow-go | Observation |
|---|---|---|---|
"""

STREAMS_INTRO = """
{title}

Implementations from their wheels, which play the blocking stream. Where one
gives plain streams, `tests/interop/plain_stream.c` adds the members of a device
stream; clauses about these are left out (–). Not played are cases that need a plan
that a stream cannot follow.

{notes}

| | {titles} |
{rule}
{tally}
"""


def die(text):
    sys.exit(f"conformance.py: {text}")


# ---- cases ------------------------------------------------------------------

class Case:
    """One case of the suite, with its results in all runs."""

    def __init__(self, role, name):
        self.role, self.name = role, name
        self.level, clause, self.sentence = name.split("_", 2)
        self.clause = f"{clause[:2]}-{clause[2:]}"
        self.verdicts = []    # one for each run
        self.of = []          # the subject of each verdict
        self.subjects = []    # subjects that failed it, in order
        self.complaints = []  # (message, transcript), cleaned
        self.reason = ""      # why it was not run
        self.culprits = set()  # other clauses that made it fail

    def verdict(self):
        return min(self.verdicts, default=NEVER)

    def is_unstable(self):
        return any(len(set(of)) > 1 for of in self.by_subject().values())

    def has_hung(self):
        return any("hung" in message for message, _ in self.complaints)

    def by_subject(self):
        found = {}
        for subject, verdict in zip(self.of, self.verdicts):
            found.setdefault(subject, []).append(verdict)
        return found


def listed(tool):
    """Returns all cases, by (role, name), with the reason if there is no test."""
    out = subprocess.run([tool, "tck", "--list"], check=True, text=True,
                         stdout=subprocess.PIPE).stdout
    cases = {}
    for line in out.splitlines():
        found = re.match(r"(\w+)\s+(\w+)(?:: skipped, (.*))?$", line)
        case = Case(found[1], found[2])
        case.reason = found[3] or ""
        cases[case.role, case.name] = case
    return cases


def known(results):
    """Yields (name, file) of uvarrow's own results."""
    try:
        files = sorted(os.listdir(results))
    except OSError as error:
        die(str(error))
    found = [(name.removesuffix(".xml"), os.path.join(results, name))
             for name in files
             if re.match(r"(producer_|handler|stream_).*\.xml$", name)]
    if not found:
        die(f"{results}: no results; run the tests tck/ first")
    return found


def parts_of(subject):
    """Returns the file of a subject, its only role and clause, or ""."""
    file, _, rest = subject.partition("@")
    role, _, clause = rest.partition(":")
    return file, role, clause


def run(tool, subject, clause=None, more=None):
    """Returns the <testcase>s of one run of the suite, or of one clause alone.
    `more` is added to the environment."""
    env = dict(os.environ, GLIBC_TUNABLES=TUNABLES, **more or {})
    if clause:
        env["UVA_TCK_JOBS"] = "1"
        env[WAIT] = str(max(int(env.get(WAIT, LONG)), LONG))
    subject, role, own = parts_of(subject)
    if own and clause not in (own, None):
        return []
    only = ["--filter", own or clause] if own or clause else []
    only += ["--role", role] if role else []
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "junit.xml")
        done = subprocess.run([tool, "tck", *only, "--junit", path, subject],
                              env=env, stdout=subprocess.DEVNULL,
                              stderr=subprocess.PIPE, text=True)
        if done.returncode not in (0, 1):
            die(f"{subject}: {done.stderr.strip()}")
        return [found for found in ET.parse(path).iter("testcase")
                if not own or own.replace("-", "") in found.get("name")]


def judge(case, found):
    """Returns the verdict of one <testcase>, and its complaint."""
    failure, skipped = found.find("failure"), found.find("skipped")
    output = found.findtext("system-out")
    if failure is None and skipped is None:
        return HOLDS, None
    message = (skipped if failure is None else failure).get("message")
    if output is None:
        if case.reason:
            return NEVER, None
        culprit = re.search(r"\b([A-Z]{2}-\d\d)\b", message)
        if culprit and culprit[1] != case.clause:
            case.culprits.add(culprit[1])
            return UNDECIDED, None
        return CANNOT, None
    message = message.removeprefix("only recommended: ")
    culprit = re.match(r"([A-Z]{2}-\d\d): ", message)
    if culprit and culprit[1] != case.clause:
        case.culprits.add(culprit[1])
        return UNDECIDED, None
    return (WEAK if failure is None else FAILS), (message, output)


def excuse(case, message, output):
    """Returns the clause that caused this complaint by being broken, or None. A
    producer object that was freed contains anything, and calls into it do
    anything."""
    fell = re.search("crashed|hung|did not come", message)
    story = output[max(output.rfind("-- produce("), 0):]
    if case.clause in ("LC-13", "AP-22"):
        return None
    if case.clause in ("AP-01", "AP-19", "AP-20") and case.role == "producer":
        last = re.findall(r"  ([STNER])\b", story)
        return "LC-13" if last and last[-1] in "NER" else None
    return "LC-13" if fell and "LC-13 broken" in output else None


def find(cases, found):
    """Returns the case of a <testcase>. The suite adds one for each clause that
    was broken in cases about other clauses only."""
    key = found.get("classname"), found.get("name")
    return cases.setdefault(key, Case(*key))


def note(case, name, found):
    """Adds one <testcase> of subject `name` to its case."""
    verdict, complaint = judge(case, found)
    culprit = excuse(case, *complaint) if complaint else None
    if culprit:
        case.culprits.add(culprit)
        verdict, complaint = UNDECIDED, None
    case.of.append(name)
    case.verdicts.append(verdict)
    if complaint:
        case.complaints.append((clean(complaint[0]), shorten(complaint[1])))
        if name not in case.subjects:
            case.subjects.append(name)


def excuse_the_unstable(cases):
    """If the producer object is freed too early, occasional crashes and hangs
    in cases about something else are attributed to that."""
    lost = any(case.clause == "LC-13" and case.verdict() == FAILS
               for case in cases.values())
    for case in cases.values() if lost else ():
        if case.role == "producer" and case.is_unstable() and all(
                re.search("crashed|hung|did not come", message)
                for message, _ in case.complaints):
            case.culprits.add("LC-13")
            case.verdicts = [UNDECIDED if verdict in (FAILS, WEAK) else verdict
                             for verdict in case.verdicts]
            case.complaints = []


def of_uvarrow(tool, results):
    """Returns all cases, after uvarrow's own runs."""
    cases = listed(tool)
    for name, path in known(results) if results != "-" else ():
        for found in ET.parse(path).iter("testcase"):
            note(find(cases, found), name, found)
    return cases


def name_of(subject):
    return os.path.basename(parts_of(subject)[0]).removesuffix(".so")


def of_subjects(tool, subjects, runs, clause=None, more=None):
    """Returns all cases, after all runs of all subjects; or the cases of a
    clause."""
    cases = listed(tool)
    for subject in subjects:
        name = name_of(subject)
        for _ in range(runs):
            for found in run(tool, subject, clause, more):
                note(find(cases, found), name, found)
        for case in cases.values():  # seen in some runs only
            if name in case.subjects:
                missing = runs - case.of.count(name)
                case.of += [name] * missing
                case.verdicts += [HOLDS] * missing
    excuse_the_unstable(cases)
    return cases


# ---- texts that do not vary -------------------------------------------------

def clean(text):
    """Removes addresses, and numbers that memory held by chance."""
    text = re.sub(r"\b0x[0-9a-f]{5,}\b", "0x…", text)
    text = text.replace(str(2**63 - 1), "INT64_MAX")
    return re.sub(r"(?<![\w.])-?\d{7,}\b", "…", text)


def shorten(transcript):
    """Returns the end of the transcript, as (line, ...): without times, threads
    as letters, repetitions left out."""
    lines, remarks = [], set()
    for line in transcript.strip().splitlines():
        found = re.match(r"\s*\d+ ms\s+([0-9a-f]+)  (.*)$", line)
        thread, text = found.groups() if found else ("", line.rstrip())
        text = clean(text)
        if text.startswith("!!") or text.lstrip().startswith("("):
            if text in remarks:
                continue
            remarks.add(text)
        if not lines or lines[-1] != (thread, text):
            lines.append((thread, text))
    lines = lines[-LINES:]
    letters = {}
    for thread, _ in lines:
        letters.setdefault(thread, chr(ord("a") + len(letters) % 26)
                           if thread else " ")
    return tuple(f"{letters[thread]}  {text}" for thread, text in lines)


# ---- the report -------------------------------------------------------------

def rules():
    """Returns the catalogue: {"AP-06": its rule in one line, or ""}."""
    with open(CATALOGUE, encoding="utf-8") as file:
        clauses = re.findall(r"^\| ([A-Z]{2}-\d\d) \|", file.read(), re.M)
    with open(RULES, encoding="utf-8") as file:
        told = dict(re.findall(
            r'X\(\w{5}, "([A-Z]{2}-\d\d)",[^"]*"([^"]*)"', file.read()))
    return {clause: told.get(clause, "") for clause in clauses}


def cell(cases):
    """Returns the cell for one clause, from its cases."""
    worst = min((case.verdict() for case in cases), default=NEVER)
    text = WORDS[worst]
    if worst in (FAILS, WEAK):
        bad = [case for case in cases if case.verdict() == worst]
        roles = [r for r in ROLES if any(case.role == r for case in bad)]
        text += " as " + " and ".join(roles)
        if all(case.is_unstable() for case in bad):
            text += ", not in every run"
    return text


def remark(both):
    """Returns why a clause is not decided, if it is not."""
    reasons = sorted({case.reason for case in both if case.reason})
    if not both:
        return "the suite has no case"
    played = any(case.verdict() < UNDECIDED for case in both)
    culprits = sorted({c for case in both for c in case.culprits
                       if case.verdict() == UNDECIDED})
    if culprits and any(case.verdict() == UNDECIDED for case in both):
        return "needs " + " and ".join(culprits)
    return "" if played else "; ".join(reasons)


def of_clause(cases, clause):
    return [case for case in cases.values() if case.clause == clause]


def rows(ours, arrow):
    """Yields (clause, rule, uvarrow, Arrow C++, remark) for each clause."""
    order = list(GROUPS)
    for clause, rule in sorted(rules().items(),
                               key=lambda r: (order.index(r[0][:2]), r)):
        mine, theirs = of_clause(ours, clause), of_clause(arrow, clause)
        if not rule and mine:
            rule = mine[0].sentence.replace("_", " ")
        yield clause, rule, cell(mine), cell(theirs), remark(mine + theirs)


def tables(all_rows):
    group = None
    for row in all_rows:
        if row[0][:2] != group:
            group = row[0][:2]
            yield f"\n## {GROUPS[group]}\n"
            yield "| Clause | Rule | uvarrow | Arrow C++ | Remark |"
            yield "|---|---|---|---|---|"
        yield "| " + " | ".join(row) + " |"


def tally(all_rows):
    def count(column, word):
        return sum(row[column].startswith(word) for row in all_rows)

    for word in WORDS.values():
        yield f"| {word} | {count(2, word)} | {count(3, word)} |"


def wrapped(names):
    return textwrap.fill(", ".join(f"`{name}`" for name in names), 80)


def transcripts(title, cases):
    """Writes a section about broken clauses, with one transcript for each
    case."""
    bad = [case for case in cases.values() if case.complaints]
    if not bad:
        return
    yield f"\n## Where {title} does not hold\n"
    yield ("Each line of a transcript begins with its thread. S, T, N, E, R "
           "are on_schema,\non_next_task, its NULL, on_error, release; !! is a "
           "breach that was detected.")
    for case in sorted(bad, key=lambda c: (c.clause, ROLES.index(c.role))):
        message, lines = min(case.complaints,
                             key=lambda c: (len(c[1]), c[0], c[1]))
        yield (f"\n### {case.clause}, {case.role}: "
               f"{case.sentence.replace('_', ' ')}\n")
        yield message[0].upper() + message[1:] + "."
        if case.level != "required":
            yield "This is only recommended."
        if case.is_unstable():
            yield "Not in every run."
        spared = [name for name, verdicts in case.by_subject().items()
                  if HOLDS in verdicts and name not in case.subjects]
        if spared:
            yield f"Not so in {', '.join(f'`{name}`' for name in spared)}."
        yield "\n```text"
        yield from lines
        yield "```"


# ---- arrow-go ----------------------------------------------------------------

def go_version():
    with open(os.path.join(HERE, "arrow_go/go.mod"), encoding="utf-8") as file:
        return re.search(r"arrow-go/v\d+ v([\d.]+)", file.read())[1]


def reason(message, lines):
    """Returns a complaint, with Go's output when it crashed."""
    panics = [re.sub(r"^\W*", "", line) for line in lines
              if re.search(r"\b(panic|fatal error): |\[signal ", line)]
    return ": ".join([message, *panics[:1]])


def go_cases(args):
    return of_subjects(args.tool, [args.go], GO_RUNS,
                       more={"GOTRACEBACK": "none"})


def go_rows(cases):
    """Yields (clause, rule, cell, observation) for each clause of a case."""
    of_rule = rules()
    order = list(GROUPS)
    clauses = {case.clause for case in cases.values()
               if case.verdict() <= UNDECIDED}
    for clause in sorted(clauses, key=lambda c: (order.index(c[:2]), c)):
        own = of_clause(cases, clause)
        seen = sorted({reason(*complaint) for case in own
                       for complaint in case.complaints})
        seen = seen[0] if seen else remark(own)
        yield (clause,
               of_rule.get(clause) or own[0].sentence.replace("_", " "),
               cell(own), seen.removeprefix(f"{clause}: "))


def go_report(args):
    cases = go_cases(args)
    found = list(go_rows(cases))
    counts = "\n".join(f"| {word} | "
                       f"{sum(row[2].startswith(word) for row in found)} |"
                       for word in list(WORDS.values())[:CANNOT])
    yield GO_INTRO.format(title=GO, version=go_version(), runs=GO_RUNS,
                          tally=counts).rstrip("\n")
    for row in found:
        yield "| " + " | ".join(row) + " |"


def section(title):
    """Returns a section of the report as it is, or ""."""
    with open(REPORT, encoding="utf-8") as file:
        _, found, rest = file.read().partition("\n" + title + "\n")
    return (found + re.split(r"\n(?=## )", rest)[0]).rstrip("\n")


# ---- streams of other implementations ----------------------------------------

class Column:
    """The verdicts on the streams of one peer."""

    def __init__(self, tool, name, subject):
        self.peer = PEERS[name]
        if subject == "-":
            raise Absent(f"the wheel of {self.peer.package}")
        self.title = self.peer.title()
        self.tool, self.subject = tool, subject
        self.cases = {}
        self.play()
        # a machine that stands still for a while makes a case hang
        for clause in sorted({case.clause for case in self.cases.values()
                              if case.has_hung()}):
            self.play(clause)

    def play(self, clause=None):
        """Runs the suite; or one clause again, in place of its cases."""
        with self.peer.environment() as more:
            found = of_subjects(self.tool, [self.subject], 1, clause, more)
        self.cases = {key: case for key, case in self.cases.items()
                      if case.clause != clause}
        self.cases |= {key: case for key, case in found.items()
                       if case.role == "stream"
                       and clause in (None, case.clause)}

    def cell(self, clause):
        cases = of_clause(self.cases, clause)
        if self.peer.adapter and clause in ADDED:
            return WORDS[NEVER]
        return WORDS[min((case.verdict() for case in cases), default=NEVER)]


def columns_of(args):
    """Returns the columns in the order of PEERS."""
    named = [stream.split("=", 1) for stream in args.stream]
    return [Column(args.tool, name, subject) for name, subject in
            sorted(named, key=lambda pair: list(PEERS).index(pair[0]))]


def played_clauses(columns):
    """Returns (clause, rule) of each clause that some peer has played."""
    of_rule = rules()
    order = list(GROUPS)
    found = {case.clause: case.sentence.replace("_", " ")
             for column in columns for case in column.cases.values()
             if case.verdict() < UNDECIDED}
    return [(clause, of_rule.get(clause) or found[clause]) for clause in
            sorted(found, key=lambda c: (order.index(c[:2]), c))]


def stream_tally(columns, clauses):
    for word in WORDS.values():
        counts = [sum(column.cell(clause) == word for clause, _ in clauses)
                  for column in columns]
        yield f"| {word} | " + " | ".join(map(str, counts)) + " |"


def stream_report(columns):
    clauses = played_clauses(columns)
    titles = " | ".join(column.title for column in columns)
    notes = [textwrap.fill(f"- {column.title}: {column.peer.note}.", 80,
                           subsequent_indent="  ") for column in columns]
    yield STREAMS_INTRO.format(
        title=STREAMS, notes="\n".join(notes), titles=titles,
        rule="|---" * (len(columns) + 1) + "|",
        tally="\n".join(stream_tally(columns, clauses)))
    yield f"| Clause | Rule | {titles} |\n" + "|---" * (len(columns) + 2) + "|"
    for clause, rule in clauses:
        cells = [column.cell(clause) for column in columns]
        yield f"| {clause} | {rule} | " + " | ".join(cells) + " |"
    for column in columns:
        yield from transcripts(column.title, {
            key: case for key, case in column.cases.items()
            if column.cell(case.clause) != WORDS[NEVER]})


def more_tables(args):
    """Yields the tables that follow the table of uvarrow and Arrow C++."""
    yield from go_report(args) if args.go else [section(GO)]
    if args.stream:
        yield from stream_report(columns_of(args))
    yield section(DATA)


def report(args, ours, arrow):
    all_rows = list(rows(ours, arrow))
    yield INTRO.format(uvarrow=version(args.tool),
                       arrow=importlib.metadata.version("pyarrow"),
                       ours=wrapped(name for name, _ in known(args.results)),
                       runs=args.runs, tunables=TUNABLES,
                       tally="\n".join(tally(all_rows))).rstrip("\n")
    yield from tables(all_rows)
    yield from transcripts("uvarrow", ours)
    yield from transcripts("Arrow C++", arrow)
    yield from more_tables(args)


def version(tool):
    out = subprocess.run([tool, "--version"], check=True, text=True,
                         stdout=subprocess.PIPE).stdout
    return re.search(r"\d+(?:\.\d+)+", out)[0]


# ---- writing and checking ---------------------------------------------------

def stands():
    """Returns the rows of the current report: {clause: row}."""
    try:
        with open(REPORT, encoding="utf-8") as file:
            lines = re.split(f"\n(?=(?:{GO}|{STREAMS})\n)",
                             file.read())[0].splitlines()
    except OSError as error:
        die(str(error))
    cells = [[c.strip() for c in line.strip("|").split("|")]
             for line in lines if re.match(r"\| [A-Z]{2}-\d\d ", line)]
    return {row[0]: row for row in cells}


def agree(there, now):
    """Returns whether a cell of the report and a cell of today agree."""
    chance = ", not in every run"
    plain = now.replace(chance, "")
    if there.replace(chance, "") == plain:
        return True
    if chance not in there:
        return False
    word, _, roles = plain.partition(" as ")
    return word in (WORDS[HOLDS], WORDS[UNDECIDED]) or (
        there.startswith(word) and
        all(role in there for role in roles.split(" and ")))


def differing(ours, arrow, columns):
    """Yields (clause, column, cell in the report, cell today) for each
    difference."""
    old = stands()
    for row in rows(ours, arrow):
        there = old.pop(row[0], None) or ["not there"] * len(row)
        for column in columns:
            if not agree(there[column], row[column]):
                yield row[0], column, there[column], row[column]
    for clause in old:
        yield clause, 0, clause, "no clause"


def tell(cases):
    """Prints the complaints."""
    for case in cases:
        for message, lines in case.complaints:
            print(f"{case.role} {case.name}: {message}", *lines, sep="\n  ")


def comes(args, arrow, clause, there):
    """Runs the clause again; returns whether Arrow's cell occurs as in the
    report."""
    players = {name for case in of_clause(arrow, clause) for name in case.of}
    subjects = [file for file in args.arrow if name_of(file) in players]
    for _ in range(AGAIN):
        cases = of_clause(of_subjects(args.tool, subjects, 1, clause), clause)
        if agree(there, cell(cases)):
            return True
    return False


def stream_table():
    """Returns the cells of the table of streams: {title: {clause: cell}}."""
    with open(REPORT, encoding="utf-8") as file:
        lines = file.read().partition(STREAMS)[2].splitlines()
    lines = list(itertools.dropwhile(
        lambda line: not line.startswith("| Clause |"), lines))
    table = [[cell.strip() for cell in line.strip("|").split("|")]
             for line in itertools.takewhile(lambda line: line, lines)]
    return {title: {row[0]: row[number] for row in table[2:]}
            for number, title in enumerate(table[0]) if number > 1}


def stream_differing(column, there):
    """Yields (clause, cell in the report, cell today) for each difference."""
    clauses = {clause for clause, _ in played_clauses([column])} | set(there)
    for clause in sorted(clauses):
        was, now = there.get(clause, "no row"), column.cell(clause)
        if was != now:
            yield clause, was, now


def stream_agrees(column):
    """Reports each cell of a peer that is not as in the report, and plays its
    clause again. Returns whether all agree then."""
    there = stream_table().get(column.title)
    if there is None:
        print(f"{column.title} is not in the report")
        return False
    for clause, was, now in list(stream_differing(column, there)):
        print(f"{clause}, {column.title}: is '{now}', not '{was}'")
        tell(of_clause(column.cases, clause))
        column.play(clause)
    return not list(stream_differing(column, there))


def check(args, ours, arrow):
    """Reports each cell that differs from the report."""
    columns = columns_of(args)
    wrong = not all([stream_agrees(column) for column in columns])
    names = {} if columns else {0: "clause", 1: "rule"}
    if args.results != "-":
        names[2] = "uvarrow"
    if args.arrow:
        names[3] = "Arrow C++"
    tell(ours.values())
    for clause, column, there, now in differing(ours, arrow, names):
        print(f"{clause}, {names[column]}: is '{now}', not '{there}'")
        if column == 3:
            tell(of_clause(arrow, clause))
        if column == 3 and comes(args, arrow, clause, there):
            print(f"{clause}: '{there}' when it was played again")
        else:
            wrong = True
    if wrong:
        die("docs/conformance.md is not up to date; the target `conformance` "
            "writes it")
    print("the report is up to date")


def main(argv):
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--runs", type=int)
    parser.add_argument("--stream", action="append", default=[])
    parser.add_argument("--go")
    parser.add_argument("tool")
    parser.add_argument("results")
    parser.add_argument("arrow", nargs="*")
    args = parser.parse_args(argv)
    args.runs = args.runs or (1 if args.check else 2)
    ours = of_uvarrow(args.tool, args.results)
    arrow = of_subjects(args.tool, args.arrow, args.runs)
    if args.check:
        try:
            return check(args, ours, arrow)
        except Absent as what:
            print(f"not played, as this is missing: {what}")
            return SKIP
    if args.arrow:
        text = "\n".join(report(args, ours, arrow)) + "\n"
    elif args.stream:
        with open(REPORT, encoding="utf-8") as file:
            text = re.split(f"\n(?=(?:{GO}|{STREAMS})\n)", file.read())[0]
        text += "\n".join(more_tables(args)) + "\n"
    elif args.go:
        with open(REPORT, encoding="utf-8") as file:
            text = file.read().replace(section(GO).lstrip("\n"), "\n".join(
                go_report(args)).strip("\n"))
    else:
        die("the report cannot be written without Arrow C++")
    with open(REPORT, "w", encoding="utf-8") as file:
        file.write(text)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
