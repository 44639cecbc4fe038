#!/usr/bin/env python3
"""What abidw reads of the libraries' debug information: types and functions as
they were compiled. tests/abi/VERSION/ has it of each library, and abidiff
compares. Nothing is suppressed: a suppression for members that come in place of
`reserved` would hide a struct that grows beyond them, too. tests/abi/interface.py
knows that difference, and what the libraries do not have: macros.
Usage: dump.py check BUILD     compares the libraries of a build without LTO
       dump.py record BUILD    writes the files of tests/abi/VERSION/
Ends with 77, a skip, without abidw and abidiff (Debian: abigail-tools).
"""
import glob
import os
import re
import shutil
import subprocess
import sys

LIBRARIES = {"uvarrow": "runtime", "uvarrow-io": "runtime/io",
             "uvarrow-adbc": "runtime/adbc", "uvarrow-tck": "tck"}
# Without the first option, the second one writes files on which abidiff 2.2
# aborts. abidiff itself sees no difference of structs with these options. The ids
# of types are hashes, so that a new type does not change those of others.
OPTIONS = ["--exported-interfaces-only", "--drop-private-types",
           "--no-corpus-path", "--no-comp-dir-path", "--no-show-locs",
           "--type-id-style", "hash"]


def write(library, include, file):
    text = subprocess.run(
        ["abidw", *OPTIONS, "--headers-dir", include, library], check=True,
        stdout=subprocess.PIPE, text=True).stdout
    with open(file, "w", encoding="utf-8") as out: # without this folder's name
        out.write(text.replace(os.getcwd() + "/", ""))


def difference(file, library):
    """What abidiff says, or "" without a difference; new functions are none"""
    done = subprocess.run(
        ["abidiff", "--no-added-syms", "--no-default-suppression", file,
         library], capture_output=True, text=True)
    if done.returncode == 0:
        return ""
    return done.stdout + done.stderr or f"abidiff ended with {done.returncode}"


def can_run():
    for tool in ("abidw", "abidiff"):
        if shutil.which(tool) is None:
            print(f"{tool} is not installed (Debian: abigail-tools): "
                  "run scripts/bootstrap")
            return False
    return True


def version():
    with open("include/uvarrow/base.h", encoding="utf-8") as file:
        text = file.read()
    return ".".join(re.search(rf"VERSION_{part} (\d+)", text).group(1)
                    for part in ("MAJOR", "MINOR"))


def files(build):
    for name, folder in LIBRARIES.items():
        yield (f"tests/abi/{version()}/{name}.abi",
               f"{build}/{folder}/lib{name}.so")


def check(build):
    bad = False
    for file, library in files(build):
        said = (difference(file, library) if os.path.exists(file)
                else f"{file} is not there\n")
        if said:
            print(f"{library} differs from {file}:\n{said}")
            bad = True
    print(f"If that is meant: `tests/abi/record {build}` records it "
          "(docs/abi.md)" if bad else "the libraries are the recorded ones")
    return bad


def record(build):
    for folder in glob.glob("tests/abi/0.*/"):
        shutil.rmtree(folder)
    os.makedirs(f"tests/abi/{version()}", exist_ok=True)
    for file, library in files(build):
        write(library, "include", file)
        print(f"{file} has {os.path.getsize(file) // 1024} KiB")
    return False


if __name__ == "__main__":
    sys.exit({"check": check, "record": record}[sys.argv[1]](sys.argv[2])
             if can_run() else 77)
