#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fails if a file names another version than the headers do, or if a recipe in
cmake/packaging names an option that CMakeLists.txt lacks, or is not well formed as
Python or JSON. Usage: check_packaging.py | --self-test
"""
import ast
import json
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
RECIPES = "cmake/packaging"
VERSIONS = {  # which files name the version, and how, at least once
    "CHANGELOG.md": r"\A# [^#]*\n## ([^,\n]*)",
    "cmake/packaging/conda/recipe.yaml": r'^  version: "(.*)"$',
    "cmake/packaging/homebrew/uvarrow.rb": r"uvarrow-(\d[\d.]*\d)\.tar",
    "cmake/packaging/meson/uvarrow.wrap": r"uvarrow-(\d[\d.]*\d)",
    "cmake/packaging/nix/default.nix": r'^  version = "(.*)";$',
    "cmake/packaging/rpm/uvarrow.spec": r"^Version: *(.*)$",
    "cmake/packaging/vcpkg/vcpkg.json": r'^  "version": "(.*)",$',
    "docs/node.md": r"uvarrow-(?:linux-\w+-)?(\d[\d.]*)\.tgz",
    "docs/python.md": r"uvarrow-(\d[\d.]*)-cp",
    "node/package.json": r'^ +"(?:version|@uvarrow/[\w-]+)": "(.*?)",?$',
}
SONAMES = {"docs/install.md": r"`libuvarrow[a-z-]*(\d[\d.]*)`"}


def faults_of(name, text, version, options):
    """Yields the faults of one file."""
    major, minor, _ = version.split(".")
    soname = f"0.{minor}" if major == "0" else major
    for patterns, wanted in ((VERSIONS, version), (SONAMES, soname)):
        if name not in patterns:
            continue
        found = set(re.findall(patterns[name], text, re.MULTILINE))
        if found != {wanted}:
            yield (f"{name}: has the version {', '.join(sorted(found)) or 'nowhere'}"
                   f", and the headers {wanted}")
    for option in re.findall(r"-D(UVA_\w+)=", text):
        if name.startswith(RECIPES) and option not in options:
            yield f"{name}: no option {option}"
    try:
        if name.endswith(".py"):
            ast.parse(text)
        elif name.endswith(".json"):
            json.loads(text)
    except (SyntaxError, ValueError) as error:
        yield f"{name}: {error}"


def self_test():
    spec = "cmake/packaging/rpm/uvarrow.spec"
    good = "Version:  1.2.3\n-DUVA_A=OFF"
    npm = '{\n  "version": "1.2.3",\n    "@uvarrow/a-b": "1.2.3"\n}'
    log = "# Log\n\nText.\n\n## 1.2.3, never\n\n## 1.2.2, never\n"
    docs = "`libuvarrow1`, `libuvarrow-io1`"
    for count, name, text in (
            (0, spec, good), (1, spec, good.replace("2", "3")),
            (1, spec, good.replace("UVA_A", "UVA_B")),
            (1, spec, "-DUVA_A=OFF"),
            (0, "node/package.json", npm),
            (1, "node/package.json", npm.replace('3"\n', '4"\n')),
            (0, "CHANGELOG.md", log), (1, "CHANGELOG.md", log.replace("3", "4")),
            (0, "docs/install.md", docs),
            (1, "docs/install.md", docs.replace("io1", "io2")),
            (1, "a.py", "def"), (1, "a.json", "{,}"), (0, "a.json", "{}")):
        found = list(faults_of(name, text, "1.2.3", {"UVA_A"}))
        assert len(found) == count, (name, text, found)
    print("each fault is found")


def main():
    if sys.argv[1:] == ["--self-test"]:
        return self_test()
    header = (ROOT / "include/uvarrow/base.h").read_text()
    version = ".".join(re.findall(
        r"#define UVA_VERSION_(?:MAJOR|MINOR|PATCH) (\d+)", header))
    options = set(re.findall(r"option\((UVA_\w+)",
                             (ROOT / "CMakeLists.txt").read_text()))
    paths = [path for path in sorted((ROOT / RECIPES).rglob("*"))
             if path.is_file() and "__pycache__" not in path.parts]
    named = [ROOT / name for name in (VERSIONS | SONAMES)
             if not name.startswith(RECIPES)]
    files = {str(path.relative_to(ROOT)): path.read_text()
             for path in paths + named if path.exists()}
    bad = [f"{name}: is not there" for name in VERSIONS | SONAMES
           if name not in files]
    for name, text in files.items():
        bad += faults_of(name, text, version, options)
    print("\n".join(bad) or f"{len(files)} files agree")
    return bool(bad)


if __name__ == "__main__":
    sys.exit(main())
