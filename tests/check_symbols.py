#!/usr/bin/env python3
"""Fails when a shared library exports a name that the public headers do not
declare or the committed list of its symbols does not have; when it lacks a name
of the list; when the headers declare a name that no list has; when its SONAME
does not fit the version; or when it needs a library beyond libuv and the C
library (AB-18). Fails too when the static library beside it defines a global
name that does not begin with uva_, which might belong to another library.
Usage: check_symbols.py INCLUDE LIBRARY LIST [--no-libuv] [--write]

LIST has one name a line, and is for one library. A name that leaves it breaks
programs already built: so it leaves only together with a new SONAME, and the
change of LIST shows it. --write writes the list anew.
"""
import glob
import os
import re
import subprocess
import sys

MAY_NEED = r"lib(uv|c|pthread|dl|rt|m)\.so|ld-linux|lib(a|t|ub|l)san\.so|libgcc_s"
# Further needs of libraries beside the runtime.
MAY_NEED_BESIDE = {"libuvarrow-io": r"lib(uvarrow|lz4|zstd)\.so",
                   "libuvarrow-adbc": r"libuvarrow\.so"}


def output(*command):
    return subprocess.run(command, check=True, capture_output=True,
                          text=True).stdout


def text_of(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def declared_in(include):
    names = set()
    for path in glob.glob(f"{include}/uvarrow/*.h"):
        text = re.sub(r"/\*.*?\*/", "", text_of(path), flags=re.S)
        names |= set(re.findall(r"UVA_API\b[^;{]*?(uva_\w+)\(", text))
    return names


def soname_version(include):
    text = text_of(f"{include}/uvarrow/base.h")
    major, minor = (re.search(rf"VERSION_{part} (\d+)", text).group(1)
                    for part in ("MAJOR", "MINOR"))
    return f"0.{minor}" if major == "0" else major


def faults(include, library, names, no_libuv):
    wanted = set(text_of(names).split())
    listed = set()
    for path in glob.glob(os.path.join(os.path.dirname(names), "*.txt")):
        listed |= set(text_of(path).split())
    declared = declared_in(include)
    shown = {line.split()[-1].split("@")[0] for line in
             output("nm", "-D", "--defined-only", library).splitlines()}
    dynamic = output("readelf", "-d", library)
    beside = MAY_NEED_BESIDE.get(os.path.basename(library).split(".")[0], "$.")
    soname = re.search(r"SONAME.*\[(.*)\]", dynamic).group(1)
    for name in sorted(shown - declared):
        yield f"shows {name}, which no public header declares"
    for name in sorted(declared - listed):
        yield f"lacks {name}, which is declared, as does every list"
    for name in sorted(shown - wanted):
        yield f"shows {name}, which is not in the list"
    for name in sorted(wanted - shown):
        yield f"does not show {name}, which is in the list"
    for name in re.findall(r"NEEDED.*\[(.*)\]", dynamic):
        if (not re.match(f"{MAY_NEED}|{beside}", name)
                or (no_libuv and name.startswith("libuv."))):
            yield f"needs {name}"
    for line in output("nm", "-g", "--defined-only",
                       re.sub(r"\.so.*", ".a", library)).splitlines():
        words = line.split()
        if len(words) == 3 and not words[2].lower().startswith("uva_"):
            yield f"has {words[2]} in the static library"
    if not soname.endswith(".so." + soname_version(include)):
        yield f"is called {soname}, the version is {soname_version(include)}"


def main(include, library, names, *options):
    if "--write" in options:
        shown = output("nm", "-D", "--defined-only", library).splitlines()
        with open(names, "w", encoding="utf-8") as file:
            file.writelines(sorted(line.split()[-1] + "\n" for line in shown))
    bad = list(faults(include, library, names, "--no-libuv" in options))
    print("\n".join(bad) or f"{names} is what {library} shows, no more")
    return bool(bad)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
