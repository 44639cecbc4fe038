#!/usr/bin/env python3
"""Fails when the shared library shows a name that the public headers do not
declare, or needs a library beyond libuv and the C library (AB-18).
Usage: check_symbols.py INCLUDE LIBRARY [--no-libuv]
"""
import glob
import re
import subprocess
import sys

MAY_NEED = r"lib(uv|c|pthread|dl|rt|m)\.so|ld-linux|lib(a|t|ub|l)san\.so|libgcc_s"


def output(*command):
    return subprocess.run(command, check=True, capture_output=True,
                          text=True).stdout


def main(include, library, *options):
    declared = set()
    for path in glob.glob(f"{include}/uvarrow/*.h"):
        with open(path, encoding="utf-8") as file:
            text = re.sub(r"/\*.*?\*/", "", file.read(), flags=re.S)
        declared |= set(re.findall(r"UVA_API\b[^;{]*?(\w+)\(", text))
    shown = {line.split()[-1].split("@")[0] for line in
             output("nm", "-D", "--defined-only", library).splitlines()}
    needed = re.findall(r"NEEDED.*\[(.*)\]",
                        output("readelf", "-d", library))
    bad = [f"shows {name}, which no public header declares"
           for name in sorted(shown - declared)]
    bad += [f"needs {name}" for name in needed
            if not re.match(MAY_NEED, name)
            or (options and name.startswith("libuv."))]
    print("\n".join(bad) or f"{len(shown)} of {len(declared)} declared "
          f"functions are there, nothing else is shown; needs {needed}")
    return bool(bad)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
