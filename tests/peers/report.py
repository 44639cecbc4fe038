"""The tables of docs/conformance.md about formats and interfaces, one a peer."""

import collections
import pathlib
import re

REPORT = pathlib.Path(__file__).resolve().parents[2] / "docs/conformance.md"
TITLE = "## Arrow IPC and C streams of other implementations"
WIDTH = 80


def counted(results):
    """{check: (those that went well, all)}"""
    table = collections.OrderedDict()
    for result in results:
        good, every = table.get(result.check, (0, 0))
        table[result.check] = good + (not result.text), every + 1
    return table


WORDS = {"reads": "reads what uvarrow wrote", "writes": "uvarrow reads it",
         "command": "and so does `uvarrow query --from`, which writes it again"}


def table(results):
    yield "| | | equal |"
    yield "|---|---|--:|"
    for check, (good, every) in counted(results).items():
        head, _, rest = check.partition(" ")
        words = WORDS.get(head)
        first, second = (words, rest.replace(" none", "")) if words else (
            check, "")
        yield f"| {first} | {second} | {good} of {every} |"


def differences(lines, results):
    """What differs, and why."""
    for line in lines:
        found = sorted({result.document for result in results
                        if result.text and line.explains(result)})
        checks = line.check.replace(" *", "").replace("; ", ", ")
        yield (f"| {checks} | {', '.join(found)} "
               f"| {line.why} |")


def section(peer, results, lines):
    yield f"### {peer.name} {peer.version}"
    yield ""
    yield from table(results)
    found = list(differences(lines, results))
    if found:
        yield ""
        yield "| what | documents | why |"
        yield "|---|---|---|"
        yield from found


def stands(language, peer, results, lines, write):
    """Whether the report has the table; writes it."""
    made = "\n".join(section(peer, results, lines)) + "\n"
    text = REPORT.read_text(encoding="utf-8")
    if made in text:
        return True
    if not write:
        return False
    pattern = re.compile(rf"### {re.escape(peer.name)} [\d.]+\n.*?(?=\n### |\n## |\Z)",
                         re.DOTALL)
    head, title, rest = text.partition(TITLE)
    if pattern.search(rest):
        rest = pattern.sub(lambda _: made, rest, count=1)
    else:
        rest = rest.rstrip("\n") + "\n\n" + made
    REPORT.write_text(head + title + rest, encoding="utf-8")
    return True
