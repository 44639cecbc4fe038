#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fails when a program or a session on a page differs from the example that it
shows. Usage: check_tutorial.py [--write] [ROOT]

A page shows an example below <!-- show: examples/NAME -->: its text as a block, of
which the first comment is left out; below <!-- run: examples/NAME --> the session
in that comment. The sessions are run by tests/install/examples. --write puts them
into the page.
"""
import os
import re
import sys

PAGES = ("docs/tutorial.md",)
LINES = 60  # of a program, without its first comment
PLACE = re.compile(r"(<!-- (show|run): (examples/\S+) -->\n```(\w+)\n)(.*?)(^```$)",
                   re.M | re.S)


def program_of(text):
    """Returns an example without its first two comments."""
    return re.sub(r"\A/\*.*?\*/\n/\*.*?\*/\n", "", text, flags=re.S).lstrip("\n")


def session_of(text):
    comment = re.findall(r"/\*.*?\*/", text, re.S)[1]
    lines = re.findall(r"^ \* {5}(.*)$", comment, re.M)
    return "".join(line + "\n" for line in lines)


def shown(path, kind):
    with open(path, encoding="utf-8") as file:
        text = file.read()
    return program_of(text) if kind == "show" else session_of(text)


def main(arguments):
    write = "--write" in arguments
    root = next((word for word in arguments if word != "--write"), ".")
    bad, count = [], 0
    for page in PAGES:
        with open(os.path.join(root, page), encoding="utf-8") as file:
            text = file.read()
        for before, kind, path, _, block, after in PLACE.findall(text):
            wanted = shown(os.path.join(root, path), kind)
            count += 1
            if wanted.count("\n") > LINES:
                bad.append(f"{path}: has {wanted.count(chr(10))} lines, {LINES} "
                           "at most")
            if write:
                text = text.replace(before + block + after, before + wanted + after)
            elif block != wanted:
                bad.append(f"{page}: differs from {path}: run "
                           "tests/check_tutorial.py --write")
        if write:
            with open(os.path.join(root, page), "w", encoding="utf-8") as file:
                file.write(text)
    if count < 12:
        bad.append(f"only {count} blocks were found")
    print("\n".join(bad) or f"{count} blocks are those of the examples")
    return bool(bad)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
