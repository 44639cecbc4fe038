#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the programs in Python and for Node.js with which pages begin, on the
flights of the demo. The last comment in a program is what it prints.

Usage: run_pages.py [NODE ADDON] | --self-test; without a package for Node.js its
programs are left out.

Environment variables give the paths: UVA_TEST_SOURCE and UVA_TEST_BUILD the
folders, UVA_TEST_TOOL the command, UVA_TEST_DRIVER the ADBC driver for SQLite,
UVA_TEST_FLIGHTS flights.csv.zip. PATIENCE only ends a program that hangs.
"""
import os
import re
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "tools"))
import flights  # noqa: E402

PATIENCE = 600  # seconds
PAGES = (("README.md", "python"), ("README.md", "js"), ("node/README.md", "js"),
         ("docs/node.md", "js"))
COMMENT = re.compile(r"(?:\#|//)\ (.*)$", re.M)


def first_block(page, text, kind):
    """Returns a program, and what it prints."""
    found = re.search(rf"^```{kind}\n(.*?)^```$", text, re.M | re.S)
    comments = COMMENT.findall(found.group(1)) if found else []
    if not comments:
        sys.exit(f"{page}: no {kind} with a comment")
    return found.group(1), comments[-1] + "\n"


def fault_of(command, environment, folder, wanted):
    """Returns what is wrong with the output of a program, or None."""
    result = subprocess.run(command, cwd=folder, env=environment, text=True,
                            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                            stderr=subprocess.STDOUT, timeout=PATIENCE)
    if (result.returncode, result.stdout) == (0, wanted):
        return None
    return (f"exit {result.returncode}, printed:\n{result.stdout}"
            f"wanted:\n{wanted}")


def make_flights(folder):
    """What the demo leaves: flights.db and flights.csv"""
    database = os.path.join(folder, "flights.db")
    flights.build(os.environ["UVA_TEST_FLIGHTS"], database)
    subprocess.run([os.environ["UVA_TEST_TOOL"], "query", "--driver",
                    os.environ["UVA_TEST_DRIVER"], "--uri", "file:" + database,
                    "--output", os.path.join(folder, "flights.csv"),
                    "SELECT * FROM flights"], check=True, capture_output=True)


def main(node="", addon=""):
    root = os.environ["UVA_TEST_SOURCE"]
    environment = {**os.environ, "UVARROW_ADDON": addon,
                   "ADBC_DRIVER_PATH": os.path.dirname(
                       os.environ["UVA_TEST_DRIVER"])}
    commands = {"python": [sys.executable], "js": [node]}
    faults = []
    with tempfile.TemporaryDirectory() as folder:
        make_flights(folder)
        os.mkdir(os.path.join(folder, "node_modules"))
        os.symlink(os.path.join(root, "node"),
                   os.path.join(folder, "node_modules", "uvarrow"))
        for page, kind in PAGES:
            with open(os.path.join(root, page), encoding="utf-8") as file:
                text, wanted = first_block(page, file.read(), kind)
            if kind == "js" and not node:
                print(f"{page}: {kind} is not run: no package for Node.js")
                continue
            program = os.path.join(folder, "a.py" if kind == "python" else "a.mjs")
            with open(program, "w", encoding="utf-8") as file:
                file.write(text)
            fault = fault_of([*commands[kind], program], environment, folder,
                             wanted)
            faults += [f"{page}: {fault}"] if fault else []
            print(f"{page}: {kind} {'FAILED' if fault else 'prints what it says'}")
    print("\n".join(faults))
    return bool(faults)


def self_test():
    text, wanted = first_block("a", "```js\nf(); // 1\ng();\n// 2\n```\n", "js")
    fault = fault_of([sys.executable, "-c", "print(2)"], None, ".", wanted)
    wrong = fault_of([sys.executable, "-c", "print(1)"], None, ".", wanted)
    if (text, wanted, fault) != ("f(); // 1\ng();\n// 2\n", "2\n", None) or not wrong:
        return f"{text!r}, {wanted!r}, {fault}, {wrong}"
    print("another output is found")
    return 0


if __name__ == "__main__":
    sys.exit(self_test() if sys.argv[1:] == ["--self-test"]
             else main(*sys.argv[1:]))
