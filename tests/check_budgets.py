#!/usr/bin/env python3
"""Fails when a function is too long or too complex, a line too wide, a struct
has too many booleans, or a file does not state its purpose or has an odd name.
Usage: check_budgets.py [ROOT]

Functions: at most 60 lines and, where lizard is installed, a cyclomatic
complexity of at most 15. Lines: 80 columns. A file has no limit, because a file
is an object; its first line is the SPDX mark, and a comment after it states
its purpose. Public headers: the comment of every function names its thread.
Structs, but for those of tests: at most six booleans, with the structs inside.
Names of files that are in the repository, of whatever kind: a shell needs no quotes
for them, as it does for what a test leaves by a wrong option or path.
"""
import os
import re
import subprocess
import sys

try:
    import lizard
except ImportError:
    lizard = None

TOPS = ("include", "runtime", "tck", "tools", "examples", "bench", "tests",
        "python", "node")
TESTS = ("tests/", "python/tests/", "node/tests/")
FUNCTION_LINES, COMPLEXITY, COLUMNS, BOOLEANS = 60, 15, 80, 6
SPDX = "/* SPDX-License-Identifier: Apache-2.0 */"
NAME = re.compile(r"[\w.][\w.@+-]*")
FUNCTION = re.compile(
    r"(?:/\*\*((?:[^*]|\*(?!/))*)\*/\s*)?(?:UVA_MUST_CHECK\s+)?"
    r"(?:UVA_API|UVA_INLINE|static inline)\s[^;{]*?(\w+)\(")


def files(root):
    for top in TOPS:
        for folder, _, names in os.walk(os.path.join(root, top)):
            for name in sorted(names):
                if name.endswith((".c", ".h")):
                    yield os.path.relpath(os.path.join(folder, name), root)


def functions(path, text):
    """(name, first line, number of lines, complexity or 0)"""
    if lizard:
        for f in lizard.analyze_file.analyze_source_code(path,
                                                         text).function_list:
            yield (f.name, f.start_line, f.end_line - f.start_line + 1,
                   f.cyclomatic_complexity)
        return
    # In this style the body of a function lies between { and } in the first
    # column, and its head begins after the last blank line before the body.
    head = start = 0
    name = None
    for number, line in enumerate(text.splitlines(), 1):
        if line == "{":
            start, name = head, name or "?"
        elif line == "}" and start:
            yield name, start, number - start + 1, 0
            start, name = 0, None
        elif not start:
            if not line.strip() or line.startswith(("/*", " *", "#")):
                head, name = number + 1, None
            elif name is None and (found := re.search(r"(\w+)\(", line)):
                name = found.group(1)


def structs(text):
    """(name, first line, number of booleans) of each struct with a body"""
    blank = re.compile(r"/\*.*?\*/|//[^\n]*|\"(?:\\.|[^\"\\])*\"", re.S)
    text = blank.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), text)
    for struct in re.finditer(r"\bstruct\s+(\w*)\s*\{", text):
        depth, end = 1, struct.end()
        while depth and end < len(text):
            depth += {"{": 1, "}": -1}.get(text[end], 0)
            end += 1
        members = re.findall(r"(?<=[;{}])\s*(?:const\s+)?bool\s+([^;()]*);",
                             re.sub(";", ";;", text[struct.end() - 1:end]))
        yield (struct[1] or "a struct", text.count("\n", 0, struct.start()) + 1,
               sum(1 + names.count(",") for names in members))


def faults_of(path, text):
    lines = text.splitlines()
    for number, line in enumerate(lines, 1):
        if len(line) > COLUMNS:
            yield f"{path}:{number}: {len(line)} columns"
    if not lines or lines[0] != SPDX:
        yield f"{path}: the first line is not {SPDX}"
    elif len(lines) < 2 or not lines[1].startswith("/*"):
        yield f"{path}: no comment after the first line states its purpose"
    for name, start, size, complexity in functions(path, text):
        if size > FUNCTION_LINES:
            yield f"{path}:{start}: {name} is {size} lines long"
        if complexity > COMPLEXITY:
            yield f"{path}:{start}: {name} has a complexity of {complexity}"
    for name, start, count in structs(text):
        if count > BOOLEANS and not path.startswith(TESTS):
            yield f"{path}:{start}: {name} has {count} booleans"
    if path.startswith("include/"):
        plain = re.sub(r"^#.*(?:\\\n.*)*$", "", text, flags=re.M)
        for comment, name in FUNCTION.findall(plain):
            if "Thread:" not in comment:
                yield f"{path}: the comment of {name} names no thread"


def odd_names(root):
    tracked = subprocess.run(["git", "-C", root, "ls-files", "-z"], check=False,
                             stdout=subprocess.PIPE, text=True).stdout
    for path in filter(None, tracked.split("\0")):
        if not all(map(NAME.fullmatch, path.split("/"))):
            yield f"{path}: an odd name"


def main(root):
    bad, count = list(odd_names(root)), 0
    for path in files(root):
        with open(os.path.join(root, path), encoding="utf-8") as file:
            bad += faults_of(path, file.read())
        count += 1
    print("\n".join(bad) or f"budgets hold in {count} files"
          + ("" if lizard else " (lizard is not installed: no complexities)"))
    return bool(bad)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1] if len(sys.argv) > 1 else "."))
