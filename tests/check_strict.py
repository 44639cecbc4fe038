#!/usr/bin/env python3
"""Fails when a file of the library is no strict C11: each is compiled as the
build folder does it, but with -std=c11 -pedantic-errors and without an output.
Usage: check_strict.py ROOT BUILD | --self-test CC

--self-test proves that a GNU extension is found.
"""
import concurrent.futures
import json
import os
import shlex
import subprocess
import sys
import tempfile

FOLDERS = ("runtime/", "tck/")
STRICT = ["-std=c11", "-pedantic-errors", "-fsyntax-only"]
EXTENSION = "int f(void)\n{\n    return ({ 1; });\n}\n"


def commands(root, build):
    """The command of each file, once, by its path below `root`. Tests compile
    some of the files again, without extensions being off."""
    with open(os.path.join(build, "compile_commands.json"),
              encoding="utf-8") as entries:
        found = {os.path.relpath(entry["file"], root): entry
                 for entry in json.load(entries)
                 if " -std=c" in entry["command"]}
    return {path: (shlex.split(entry["command"]), entry["directory"])
            for path, entry in found.items()
            if path.startswith(FOLDERS) and path.endswith(".c")}


def complaint(command, folder):
    """The errors of the compiler; empty if it compiles."""
    output = command.index("-o")
    words = [word for word in command[:output] + command[output + 2:]
             if not word.startswith("-std=")]
    return subprocess.run(words + STRICT, cwd=folder, stderr=subprocess.PIPE,
                          text=True, check=False).stderr


def self_test(compiler):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "extension.c")
        with open(path, "w", encoding="utf-8") as source:
            source.write(EXTENSION)
        if not complaint([compiler, "-o", "extension.o", "-c", path], folder):
            sys.exit("a GNU extension was not found")
    print("a GNU extension is found")


def main():
    if sys.argv[1] == "--self-test":
        self_test(sys.argv[2])
        return
    files = commands(os.path.abspath(sys.argv[1]), sys.argv[2])
    if not files:
        sys.exit("no file of the library is built here")
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        said = list(pool.map(lambda item: complaint(*item), files.values()))
    print("".join(said), end="")
    if any(said):
        sys.exit(1)
    print(f"{len(files)} files are strict C11")


main()
