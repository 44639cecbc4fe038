#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fails when a section of docs/decisions.md does not state a context, a decision and
a consequence, in this order and once each, or the index lacks it.
Usage: check_decisions.py [--write] [ROOT] | --self-test; --write writes the index.
"""
import os
import re
import sys

PAGE = "docs/decisions.md"
BEGIN = "<!-- written by tests/check_decisions.py --write -->\n"
END = "<!-- end -->\n"
PARTS = ["Context", "Decision", "Consequence"]
PART = re.compile(r"\*\*(Context|Decision|Consequence):\*\*")
AREAS = re.compile(r"^## ", re.M)
SECTIONS = re.compile(r"^### ", re.M)


def anchor(title):
    """The anchor of a heading, as GitHub makes it"""
    return re.sub(r"[^\w\- ]", "", title.replace("`", "").lower()).replace(" ", "-")


def areas(text):
    """Yields the title of each area, and its sections: title and text."""
    for area in AREAS.split(text)[1:]:
        title, _, rest = area.partition("\n")
        if title != "Index":
            first, *sections = SECTIONS.split(rest)
            yield title, first.strip(), [
                section.partition("\n")[::2] for section in sections]


def index_of(text):
    lines = []
    for title, _, sections in areas(text):
        lines.append(f"- [{title}](#{anchor(title)})\n")
        lines += [f"  - [{name}](#{anchor(name)})\n" for name, _ in sections]
    return BEGIN + "\n" + "".join(lines) + "\n" + END


def with_index(text):
    begin, end = text.index(BEGIN), text.index(END) + len(END)
    return text[:begin] + index_of(text) + text[end:]


def faults(text):
    for title, first, sections in areas(text):
        if first:
            yield f"{title}: has text outside of its sections"
        for name, body in sections:
            if PART.findall(body) != PARTS or not body.strip().startswith("**"):
                yield f"{name}: does not state {', '.join(PARTS)}, in this order"
    if with_index(text) != text:
        yield "the index differs: run tests/check_decisions.py --write"


def self_test():
    whole = " ".join(f"**{part}:** x." for part in PARTS)
    text = with_index(f"# D\n\n## Index\n\n{BEGIN}{END}\n## A\n\n### B `c()`\n\n{whole}\n")
    wrong = text.replace("**Decision:** x. ", "").replace("## A\n", "## A\n\nText.\n")
    found = [len(list(faults(each)))
             for each in (text, wrong, text.replace("(#b-c)", "(#b)"))]
    if found != [0, 2, 1]:
        return f"found {found}"
    print("a missing part, text outside and a wrong index are found")
    return 0


def main(arguments):
    if arguments == ["--self-test"]:
        return self_test()
    root = next((word for word in arguments if word != "--write"), ".")
    path = os.path.join(root, PAGE)
    with open(path, encoding="utf-8") as file:
        text = file.read()
    if "--write" in arguments:
        text = with_index(text)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
    bad = list(faults(text))
    count = sum(len(sections) for _, _, sections in areas(text))
    if count < 100:
        bad.append(f"only {count} decisions were found")
    print("\n".join(bad) or f"{count} decisions are whole, and in the index")
    return bool(bad)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
