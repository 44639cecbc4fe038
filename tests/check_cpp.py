#!/usr/bin/env python3
"""Fails when a compiler warns in a user's C++ of the public headers: when they
are included, and when a struct of options is initialised by one member. Usage:
check_cpp.py ROOT

tests/abi/run compiles each header for C alone, and by itself; check_docs.py the
C++ of the documents.
"""
import glob
import itertools
import os
import re
import subprocess
import sys
import tempfile

COMPILERS = ("g++", "clang++")
FLAGS = ("-fsyntax-only", "-Wall", "-Wextra", "-Wpedantic", "-Wshadow",
         "-Wconversion", "-Werror")
# Parameters that a caller fills in, and members that are such structs.
FILLED = re.compile(r"\bconst struct (uva_\w+) \*(?:options|source|consumer|"
                    r"query|objects|target|allocator|log)\b")
STRUCT = re.compile(r"^struct (uva_\w+) \{\n(.*?)^\};", re.M | re.S)
MEMBER = re.compile(r"\(\*(\w+)\)|(\w+)(?:\[\d+\])?\s*(?:UVA_0)?;")


def first_members(text):
    """The struct and its first member, of each struct of options"""
    filled = set(FILLED.findall(text))
    for name, body in STRUCT.findall(re.sub(r"/\*.*?\*/", "", text,
                                            flags=re.S)):
        if name in filled or "UVA_0" in body:
            yield name, next(filter(None, MEMBER.search(body).groups()))


def sources(root):
    """A name, a program and the versions of C++ that it is for"""
    headers = sorted(glob.glob(os.path.join(root, "include/uvarrow/*.h*")))
    text = ""
    for path in headers:
        name = "uvarrow/" + os.path.basename(path)
        yield name, f"#include <{name}>\n" * 2, ("c++17", "c++20", "c++2b")
        if not name.endswith("_abi.h"):
            with open(path, encoding="utf-8") as file:
                text += file.read()
    program = "".join(f"#include <uvarrow/{name}>\n" for name in (
        "uvarrow.h", "adbc.h", "io.h", "tck.h"))
    structs = list(first_members(text))
    for name, member in structs:
        program += f"extern {name} a_{name};\n"
        program += f"{name} a_{name} = {{.{member} = {{}}}};\n"
    yield f"{len(structs)} structs of options", program, ("c++20", "c++2b")


def main(root):
    count, bad = 0, []
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "source.cc")
        for name, program, versions in sources(root):
            with open(path, "w", encoding="utf-8") as file:
                file.write(program)
            for compiler, version in itertools.product(COMPILERS, versions):
                done = subprocess.run(
                    [compiler, f"-std={version}", *FLAGS, "-I",
                     os.path.join(root, "include"), path],
                    stderr=subprocess.PIPE, text=True, check=False)
                count += 1
                if done.returncode != 0:
                    bad.append(f"{name}, {compiler} {version}:\n{done.stderr}")
    print("\n".join(bad) or f"no warning in {count} compilations, the last ones "
          f"of {name}")
    return bool(bad)


sys.exit(main(sys.argv[1] if len(sys.argv) > 1 else "."))
