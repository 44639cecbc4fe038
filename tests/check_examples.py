#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fails when no example and no command calls a public function, when an example has
more than 80 lines, when examples/README.md lacks one, or when a document names one
that does not exist. Usage: check_examples.py [--list] [ROOT] | --self-test

--list prints each function with the files of examples/ and tools/ that call it. A
name in a comment or a text is no call; the definition of a function that programs
define (uva_subject_...) is one, and so is a function passed as a callback. The
functions of the C++ classes are shown in C.
"""
import glob
import os
import re
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                "abi"))
import interface  # noqa: E402

LINES = 80

# Functions that are not shown, and why
UNSHOWN = {}

NO_CODE = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:[^"\\\n]|\\.)*"', re.S)
NAME = re.compile(r"\buva_\w+")


def public_functions(root):
    found = interface.parsed(os.path.join(root, "include"))
    return sorted(name for name in found.functions
                  if not interface.NOT_EXPORTED.search(name) or
                  name.startswith("uva_subject_"))


def calls_of(text):
    return set(NAME.findall(NO_CODE.sub(" ", text)))


def sources(root):
    """Yields each file of an example or of the command, and its text."""
    for folder, pattern in (("examples", "*"), ("tools", "*"), ("tools", "*/*")):
        for path in sorted(glob.glob(os.path.join(root, folder, pattern))):
            if path.endswith((".c", ".cc", ".h")):
                with open(path, encoding="utf-8") as file:
                    yield os.path.relpath(path, root), file.read()


def faults(functions, files, unshown):
    """Yields the faults of `files`, pairs of a path and its text."""
    shown = {name: [] for name in functions}
    for path, text in files:
        for name in calls_of(text) & set(shown):
            shown[name].append(path)
        lines = text.count("\n")
        if path.startswith("examples/") and lines > LINES:
            yield f"{path}: has {lines} lines, {LINES} at most"
    for name, paths in shown.items():
        if not paths and name not in unshown:
            yield f"{name}: no example and no command calls it"
        elif paths and name in unshown:
            yield f"{name}: {paths[0]} shows it: remove it from UNSHOWN"
    for name in sorted(set(unshown) - set(shown)):
        yield f"{name}: is in UNSHOWN, and no public function"


def faults_of_names(files, documents):
    """Yields the examples that README.md lacks, and names without a file."""
    known = {path for path, _ in files if path.startswith("examples/")}
    listed = set()
    for path, text in documents:
        named = set(re.findall(r"\bexamples/\w+\.(?:cc?|h)\b", text))
        if path == "examples/README.md":
            listed = {"examples/" + name for name in
                      re.findall(r"`(\w+\.(?:cc?|h))`", text)}
            named |= listed
        for name in sorted(named - known):
            yield f"{path}: names {name}, which does not exist"
    for name in sorted(known - listed):
        if not name.endswith(".h"):
            yield f"examples/README.md: does not list {name}"


def documents_of(root):
    for pattern in ("README.md", "docs/*.md", "examples/*.md"):
        for path in sorted(glob.glob(os.path.join(root, pattern))):
            with open(path, encoding="utf-8") as file:
                yield os.path.relpath(path, root), file.read()


def self_test():
    short, long = "uva_a();\n", "uva_b();\n" * 81
    cases = (
        ([("examples/a.c", short)], {}, 1),  # uva_b is not shown
        ([("examples/a.c", short), ("tools/b.c", long)], {}, 0),
        ([("examples/a.c", short + long)], {}, 1),
        ([("examples/a.c", short)], {"uva_b": "why"}, 0),
        ([("examples/a.c", short)], {"uva_a": "why", "uva_b": "why"}, 1),
        ([("examples/a.c", short)], {"uva_b": "why", "uva_c": "why"}, 1),
        ([("examples/a.c", short + "/* uva_b() */ f(\"uva_b()\");\n")], {}, 1))
    for i, (files, unshown, wanted) in enumerate(cases):
        found = list(faults(["uva_a", "uva_b"], files, unshown))
        if len(found) != wanted:
            print(f"case {i}: {wanted} faults wanted, found {found}")
            return True
    found = list(faults_of_names(
        [("examples/a.c", ""), ("examples/b.c", ""), ("examples/b.h", "")],
        [("examples/README.md", "| `a.c`, `c.c` |"),
         ("docs/x.md", "see `examples/b.c` and `examples/d.cc`")]))
    if len(found) != 3:  # c, d; b is not listed
        print(f"names: 3 faults wanted, found {found}")
        return True
    print(f"{len(cases) + 1} cases")
    return False


def main(arguments):
    if arguments == ["--self-test"]:
        return self_test()
    listed = "--list" in arguments
    root = next((word for word in arguments if word != "--list"), ".")
    functions, files = public_functions(root), list(sources(root))
    for name in functions if listed else ():
        users = [path for path, text in files if name in calls_of(text)]
        print(f"{name}: {' '.join(users) or UNSHOWN.get(name, 'nowhere')}")
    bad = list(faults(functions, files, UNSHOWN))
    bad += faults_of_names(files, documents_of(root))
    count = sum(path.startswith("examples/") for path, _ in files)
    if len(functions) < 130 or count < 20:
        bad.append(f"only {len(functions)} functions, {count} files were found")
    print("\n".join(bad) or f"{len(functions) - len(UNSHOWN)} functions are "
          f"shown, {len(UNSHOWN)} are not; {count} files are short")
    return bool(bad)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
