#!/usr/bin/env python3
"""Fails when files that are installed for building programs name a file of a
Debian package on which libuvarrow-dev does not depend: in includes of headers,
in requirements and libraries of .pc files, and in the targets of CMake. Usage:
check_depends.py PREFIX DEPENDS

PREFIX: where the files lie. DEPENDS: the package's field of that name. Owners
are looked up on this machine, with dpkg.
"""
import glob
import os
import re
import subprocess
import sys

# A compiler brings these.
ALWAYS = re.compile(r"libc6-dev|linux-libc-dev|libstdc\+\+-\d+-dev|libgcc-.*"
                    r"|(lib)?clang-.*|llvm-.*")


def output(*command):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE,
                          text=True).stdout.strip()


def owners(paths):
    """The package of each file that belongs to one. A command may lie in a part
    of its package."""
    found = subprocess.run(["dpkg", "-S", *paths], text=True,
                           capture_output=True, check=False).stdout
    return {path: package.split(",")[0].split(":")[0].removesuffix("-bin")
            for package, path in re.findall(r"^(.*): (/.*)$", found, re.M)}


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def included(prefix):
    """The files that each header includes, as C++, which includes most"""
    folder = os.path.join(prefix, "include")
    for header in glob.glob(os.path.join(folder, "uvarrow", "*.h*")):
        rule = output("c++", "-x", "c++", "-std=c++20", "-M", "-I", folder,
                      header)
        for path in rule.replace("\\\n", " ").split()[1:]:
            yield os.path.basename(header), os.path.normpath(path)


def module(name):
    """The .pc file of a module that is not ours"""
    return os.path.join(output("pkg-config", "--variable=pcfiledir", name),
                        name + ".pc")


def library(name):
    """The shared library; of a part of the C library the archive"""
    path = output("cc", f"-print-file-name=lib{name}.so")
    if not os.path.isabs(path):
        path = output("cc", f"-print-file-name=lib{name}.a")
    return os.path.normpath(path)


def required(prefix):
    """The requirements and libraries of .pc files, except for each other"""
    for path in found(prefix, "*.pc"):
        name, text = os.path.basename(path), read(path)
        for words in re.findall(r"^Requires.*?: *(.*)", text, re.M):
            for word in re.findall(r"[a-z][\w+.-]*", words):
                if not word.startswith("uvarrow"):
                    yield name, module(word)
        for word in re.findall(r"(?<=-l)[\w+-]+", text):
            if not word.startswith("uvarrow"):
                yield name, library(word)


def linked(prefix):
    """The packages that the files of CMake find: pkg-config, and by it
    modules"""
    for path in found(prefix, "uvarrow-*.cmake"):
        name, text = os.path.basename(path), read(path)
        if "find_dependency(PkgConfig)" in text:
            yield name, output("which", "pkg-config")
        for word in sorted(set(re.findall(r"PkgConfig::(\w+)", text))):
            yield name, module("lib" + word.lower().removeprefix("lib"))


def found(prefix, pattern):
    return glob.glob(os.path.join(prefix, "**", pattern), recursive=True)


def main(prefix, depends):
    alternatives = [re.sub(r"\(.*?\)", "", word).strip()
                    for word in re.split("[,|]", depends)]
    named = sorted({*included(prefix), *required(prefix), *linked(prefix)})
    packages = owners(sorted({path for _, path in named}))
    missing = [f"{name} needs {packages[path]}, for {path}"
               for name, path in named if path in packages
               and not ALWAYS.fullmatch(packages[path])
               and packages[path] not in alternatives]
    print("\n".join(missing) or f"libuvarrow-dev depends on the packages of "
          f"all {len(packages)} files that its own name")
    return bool(missing) or not packages


sys.exit(main(*sys.argv[1:]))
