#!/usr/bin/env python3
"""Fails when a shared library exports a name that the public headers do not
declare or the committed list of its symbols does not have; when it lacks a name
of the list, or has it with another version; when the headers declare a name that
no list has; when its SONAME does not fit the version; or when it needs a library
beyond libuv and the C library (AB-18). Fails too when the static library beside
it defines a global name that does not begin with uva_, which might belong to
another library.
Usage: check_symbols.py INCLUDE LIBRARY LIST [--no-libuv] [--write]

LIST has one name a line, and is for one library, which exports these names and
no other (cmake/UvaSymbols.cmake). After the name stands the version in which it
came, unless that is the first one with the present SONAME. A name that leaves
LIST breaks programs already built: so it leaves only together with a new SONAME,
and the change of LIST shows it. --write writes LIST anew: what the headers
declare and the static library has.
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
        names |= set(re.findall(r"UVA_(?:API|INLINE)\b[^;{]*?(uva_\w+)\(", text))
    return names


def soname_version(include):
    text = text_of(f"{include}/uvarrow/base.h")
    major, minor = (re.search(rf"VERSION_{part} (\d+)", text).group(1)
                    for part in ("MAJOR", "MINOR"))
    return f"0.{minor}" if major == "0" else major


def first_version(include):
    """The version of names that have none in a list"""
    soname = soname_version(include)
    return soname if "." in soname else f"{soname}.0"


def this_version(include):
    text = text_of(f"{include}/uvarrow/base.h")
    return ".".join(re.search(rf"VERSION_{part} (\d+)", text).group(1)
                    for part in ("MAJOR", "MINOR"))


def versions_in(names, first):
    """Of each name of a list: its version"""
    lines = [line.split() for line in text_of(names).splitlines()]
    return {line[0]: line[1] if line[1:] else first for line in lines if line}


def versions_of(library):
    """Of each name that a shared library exports: its version, or None"""
    shown = {}
    for line in output("nm", "-D", "--defined-only", library).splitlines():
        kind, name = line.split()[-2:]
        if kind != "A": # the name of a version
            name, _, version = name.partition("@@")
            shown[name] = version.removeprefix("UVARROW_") or None
    return shown


def static_names(library):
    """The global names of the static library beside a shared one"""
    lines = output("nm", "-g", "--defined-only",
                   re.sub(r"\.so.*", ".a", library)).splitlines()
    return {line.split()[2] for line in lines if len(line.split()) == 3}


def write(include, library, names):
    first, now = first_version(include), this_version(include)
    old = versions_in(names, first)
    with open(names, "w", encoding="utf-8") as file:
        for name in sorted(declared_in(include) & static_names(library)):
            version = old.get(name, now)
            file.write(name + (f" {version}\n" if version != first else "\n"))


def faults(include, library, names, no_libuv):
    first = first_version(include)
    wanted = versions_in(names, first)
    listed = set()
    for path in glob.glob(os.path.join(os.path.dirname(names), "*.txt")):
        listed |= set(versions_in(path, first))
    declared = declared_in(include)
    versions = versions_of(library)
    shown = set(versions)
    dynamic = output("readelf", "-d", library)
    beside = MAY_NEED_BESIDE.get(os.path.basename(library).split(".")[0], "$.")
    soname = re.search(r"SONAME.*\[(.*)\]", dynamic).group(1)
    for name in sorted(shown - declared):
        yield f"shows {name}, which no public header declares"
    for name in sorted(declared - listed):
        yield f"lacks {name}, which is declared, as does every list (--write)"
    for name in sorted(shown - set(wanted)):
        yield f"shows {name}, which is not in the list"
    for name in sorted(set(wanted) - shown):
        yield f"does not show {name}, which is in the list"
    for name in sorted(shown & set(wanted)):
        if versions[name] != wanted[name]:
            yield f"shows {name} of {versions[name]}, the list {wanted[name]}"
    for name in re.findall(r"NEEDED.*\[(.*)\]", dynamic):
        if (not re.match(f"{MAY_NEED}|{beside}", name)
                or (no_libuv and name.startswith("libuv."))):
            yield f"needs {name}"
    for name in sorted(static_names(library)):
        if not name.lower().startswith("uva_"):
            yield f"has {name} in the static library"
    if not soname.endswith(".so." + soname_version(include)):
        yield f"is called {soname}, the version is {soname_version(include)}"


def main(include, library, names, *options):
    if "--write" in options:
        write(include, library, names)
    bad = list(faults(include, library, names, "--no-libuv" in options))
    print("\n".join(bad) or f"{names} is what {library} shows, no more")
    return bool(bad)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
