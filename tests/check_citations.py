#!/usr/bin/env python3
"""Fails when a comment of the library cites a clause inside a sentence, or a
number that no document of the repository explains.
Usage: check_citations.py [ROOT] | --self-test

Ids of clauses stand together at the end of a comment, as in `Clauses: AP-08,
AP-09.`
"""
import os
import re
import sys
import tempfile

TOPS = ("include", "runtime", "tck")
COMMENT = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"'
                     r"|'(?:\\.|[^'\\\n])*'", re.S)
ID = r"\b[A-Z]{1,2}-\d\d\b"
CLOSING = re.compile(r"\bClauses:(?:(?:[\s*]|,|\band\b|\bto\b)*%s)+" % ID)
UNEXPLAINED = re.compile(r"(?<![\w.-])(?:[RP]\d{1,2}|\d{2}\.\d{1,2})"
                         r"(?![\w.-]*\w)(?!\s*(?:%|ns|ms|us|s|x|MiB)\b)")


def blank(match):
    return re.sub(r"[^\n]", " ", match.group(0))


def faults_of(text):
    """(line, kind, citation) of each"""
    for comment in COMMENT.finditer(text):
        if not comment.group(0).startswith("/"):
            continue # a string
        prose = re.sub(r"`[^`\n]*`", blank, comment.group(0))
        first = text.count("\n", 0, comment.start()) + 1
        for kind, pattern, where in (
                ("clause in a sentence", ID, CLOSING.sub(blank, prose)),
                ("unexplained number", UNEXPLAINED, prose)):
            for found in re.finditer(pattern, where):
                yield (first + where.count("\n", 0, found.start()), kind,
                       found.group(0))


def files(root):
    for top in TOPS:
        for folder, _, names in os.walk(os.path.join(root, top)):
            for name in sorted(names):
                if name.endswith((".c", ".h")):
                    yield os.path.join(folder, name)


def main(root="."):
    count = 0
    for path in files(root):
        with open(path, encoding="utf-8") as file:
            for line, kind, citation in sorted(faults_of(file.read())):
                print(f"{os.path.relpath(path, root)}:{line}: {kind}: "
                      f"{citation}")
                count += 1
    print(f"{count} citations to move" if count else
          "clauses are cited at the ends of comments")
    return bool(count)


def self_test():
    with tempfile.TemporaryDirectory() as root:
        os.mkdir(os.path.join(root, "runtime"))
        path = os.path.join(root, "runtime", "a.c")
        with open(path, "w", encoding="utf-8") as file:
            file.write('const char *s = "AP-01";\n'
                       "/* AP-08 rules this. Clauses: AP-08,\n * AP-09. */\n"
                       "/* See `AP-07`, R05\n * and 12.8, in 10.5 ms. */\n")
        with open(path, encoding="utf-8") as file:
            found = list(faults_of(file.read()))
        expected = [(2, "clause in a sentence", "AP-08"),
                    (4, "unexplained number", "R05"),
                    (5, "unexplained number", "12.8")]
        if found != expected or not main(root):
            return f"found {found}"
    print("each kind of citation is found, in comments only")
    return 0


if __name__ == "__main__":
    if sys.argv[1:] == ["--self-test"]:
        sys.exit(self_test())
    sys.exit(main(*sys.argv[1:]))
