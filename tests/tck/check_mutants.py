#!/usr/bin/env python3
"""Runs the suite on every mutant: a subject that breaks one clause must fail a
case of that clause, and every case must have a mutant that it catches. The
mutants of SOLE are caught by one case only, of all cases of their role. Usage:
check_mutants.py TOOL SUBJECT SOURCE [--part I/N] [--only TEXT] [--write]

UNPROVEN has the cases without a mutant, each with the reason. An unexpected
outcome is played again with more time, as a busy machine may have caused it.

A whole run compares the score with the one in docs/tck.md; with --write it
replaces that, and the time that the suite takes.
"""
import concurrent.futures
import os
import re
import resource
import subprocess
import sys
import time

MUTANT = re.compile(r'(?:\{|M\()\s*"([A-Z]{2}-\d\d)",\s*"(\w*)",\s*(true|false)?')
FILES = {"producer": ("tests/support/producer_mutants.c",
                      "tests/tck/producer_extras.c"),
         "handler": ("tests/support/consumer_mutants.c",
                     "tests/tck/handler_extras.c"),
         "stream": ("tests/support/stream_mutants.c",
                    "tests/tck/stream_extras.c")}

PATIENT = {"wait_ms": 5000, "quiet_ms": 500}
SCORE = re.compile(r"(<!-- score: begin -->\n).*?(<!-- score: end -->)", re.S)

# Mutants that no case of their clause can catch, with the reason.
UNSEEN = {
    "producer AB-19.": "it is a note only, and no breach",
    "producer EV-09.": "it needs a device that is not the CPU",
    "stream EV-09.": "likewise",
    "producer AP-05.": "the window of a refused stream is too short to be hit",
}
# Mutants with a delay of 60 ms and more, which a busy machine causes, too. The
# suite may or may not accept them; each clause has a slower mutant.
SLOW = ("producer AT-09.", "producer AP-28.", "handler TH-12.")
# Cases that no mutant fails, with the reason.
UNPROVEN = {}
# Mutants that exactly one case of their role detects.
SOLE = {
    "producer AT-23.beside":
        "required_AT23_no_callback_inside_an_extraction_by_another_thread",
    "producer AP-02.brim":
        "required_AP02_requests_for_two_to_the_64_do_not_wrap",
    "producer AP-26.all": "required_AP26_batches_come_before_a_failure",
    "producer AP-26.last": "required_AP26_batches_come_before_a_failure",
    "stream DS-02.all": "required_DS02_batches_come_before_a_failure",
    "stream DS-02.last": "required_DS02_batches_come_before_a_failure",
    "producer AP-14.failed":
        "required_AP14_release_follows_a_cancel_behind_a_failed_extraction",
    "producer AH-22.failed":
        "required_AH22_nothing_follows_release_if_an_extraction_fails_late",
    "producer TH-06.cancel":
        "required_TH06_no_lock_is_held_over_the_error_of_a_cancel",
    "producer LC-22.stuck":
        "recommended_LC22_a_cancel_frees_what_was_read_of_a_stuck_source",
    "producer LC-22.late":
        "required_LC22_nothing_is_left_after_a_cancel_of_a_busy_source",
    "producer ER-05.hurries":
        "recommended_ER05_a_failed_extraction_behind_the_end_is_reported_twice",
    "producer ER-05.late":
        "recommended_ER05_a_failed_extraction_behind_the_end_is_reported_twice",
    "producer ER-09.last":
        "required_ER09_a_failed_last_extraction_is_never_reported_as_an_end",
    "handler AT-21.waiting":
        "required_AT21_tasks_that_wait_at_a_cancel_are_extracted",
    "handler AP-13.locks": "required_AP13_an_error_may_come_inside_cancel",
    "handler AH-03.reads": "recommended_AH03_an_early_error_needs_no_producer",
}


def mutants(source):
    """Yields (role, clause, variant)."""
    for role, (path, extras) in FILES.items():
        with open(f"{source}/{path}", encoding="utf-8") as file:
            text = file.read()
        with open(f"{source}/{extras}", encoding="utf-8") as file:
            text += file.read()
        for clause, variant, of_reader in MUTANT.findall(text):
            slow = f"{role} {clause}.{variant}" in SLOW
            if of_reader != "true" and not slow:
                yield role, clause, variant


def play(tool, subject, role, mutant, *options, wait_ms=700, quiet_ms=30):
    """Returns the names of the results that are broken, and the output."""
    done = subprocess.run(
        [tool, "tck", "--role", role, *options, subject],
        env={**os.environ, "UVA_SUBJECT_MUTANT": mutant, "UVA_TCK_JOBS": "2",
             "UVA_TCK_WAIT_MS": str(wait_ms), "UVA_TCK_QUIET_MS": str(quiet_ms)},
        capture_output=True, text=True, check=False)
    return (re.findall(r"^(?:BROKEN|weak)\s+\w+\s+(\w+):", done.stdout, re.M),
            done.stdout + done.stderr)


def run(tool, subject, role, clause, variant, **waits):
    """Returns the broken results of the mutant's clause, and the output."""
    mutant = f"{clause}.{variant}" if variant else clause
    failed, text = play(tool, subject, role, mutant, "--filter", clause,
                        **waits)
    own = f"_{clause.replace('-', '')}_"
    return [name for name in failed if own in name], text


def run_alone(tool, subject, mutant):
    """Returns the cases, of the whole role, that a mutant of SOLE fails."""
    for waits in {"wait_ms": 2000}, PATIENT:
        failed, _ = play(tool, subject, *mutant.split(" "), **waits)
        failed = [name for name in failed
                  if not name.endswith("_in_all_cases")]
        if failed == [SOLE[mutant]]:
            break
    return failed


def cases(tool, role):
    out = subprocess.run([tool, "tck", "--list", "--role", role], check=True,
                         capture_output=True, text=True).stdout
    return [line.split()[1] for line in out.splitlines()
            if ": skipped" not in line]


def run_patiently(tool, subject, role, clause, variant):
    """As run(), and with more time again without a failure: a busy machine may
    have the mutant act after the case has ended."""
    failed, text = run(tool, subject, role, clause, variant)
    if not failed and f"{role} {clause}.{variant}" not in UNSEEN:
        failed, text = run(tool, subject, role, clause, variant, **PATIENT)
    return failed, text


def score(tool, todo, missed):
    """Returns the table of docs/tck.md."""
    lines = ["| role | cases | mutants | detected |", "|---|--:|--:|--:|"]
    for role in FILES:
        own = [m for m in todo if m[0] == role]
        lines.append(f"| {role} | {len(cases(tool, role))} | {len(own)} | "
                     f"{len(own) - sum(m in missed for m in own)} |")
    return "\n".join(lines) + "\n"


def taken(tool, subject):
    """Returns a sentence on the time of a run for the producer without a
    breach."""
    def used():
        usage = resource.getrusage(resource.RUSAGE_CHILDREN)
        return usage.ru_utime + usage.ru_stime

    before, begin = used(), time.monotonic()
    subprocess.run([tool, "tck", "--role", "producer", subject], check=True,
                   stdout=subprocess.DEVNULL)
    wall, busy = time.monotonic() - begin, used() - before
    return (f"\nA run for the producer without a fault took {wall:.0f} s on "
            f"{os.cpu_count()} cores that other programs\nused, too, and "
            f"{busy:.1f} s of CPU time. The rest is waiting for what must not "
            "come.\n")


def check_score(tool, subject, source, table, write):
    """Compares the table with the one in docs/tck.md, or replaces that. Returns
    the complaints."""
    path = f"{source}/docs/tck.md"
    with open(path, encoding="utf-8") as file:
        text = file.read()
    there = SCORE.search(text)
    if write:
        text = SCORE.sub(lambda m: m[1] + table + taken(tool, subject) + m[2],
                         text)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
    elif there is None or table not in there[0]:
        return [f"docs/tck.md has another score; --write has it as\n{table}"]
    return []


def main(tool, subject, source, *options):
    part, parts, only = 0, 1, ""
    write = "--write" in options
    options = [option for option in options if option != "--write"]
    for option, value in zip(options[::2], options[1::2]):
        if option == "--part":
            part, parts = (int(n) for n in value.split("/"))
        else:
            only = value
    todo = [m for i, m in enumerate(mutants(source))
            if i % parts == part and only in f"{m[1]}.{m[2]}"]
    bad, missed, caught = [], [], {role: set() for role in FILES}
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        results = pool.map(lambda m: run_patiently(tool, subject, *m), todo)
        for mutant, (failed, text) in zip(todo, results):
            key = "{} {}.{}".format(*mutant)
            caught[mutant[0]] |= set(failed)
            missed += [] if failed else [mutant]
            if not failed and key not in UNSEEN:
                last = text.strip().splitlines()[-1:]
                bad.append(f"{key}: no case of it fails: {last}")
            elif failed and key in UNSEEN:
                bad.append(f"{key}: a case catches it: take it off the list")
    alone = [m for i, m in enumerate(SOLE) if i % parts == part and only in m]
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        found = pool.map(lambda m: run_alone(tool, subject, m), alone)
        bad += [f"{mutant}: fails {', '.join(failed)}, not {SOLE[mutant]}"
                for mutant, failed in zip(alone, found)
                if failed != [SOLE[mutant]]]
    if parts == 1 and not only:
        for role in FILES:
            bad += [f"{role} {name}: no mutant fails it"
                    for name in cases(tool, role)
                    if name not in caught[role] | set(UNPROVEN)]
        bad += check_score(tool, subject, source, score(tool, todo, missed),
                           write)
    print("\n".join(bad) or f"{len(todo)} mutants are caught")
    return bool(bad)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
