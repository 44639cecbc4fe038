#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fails if a recipe in cmake/packaging names another version than the headers do,
an option that CMakeLists.txt lacks, or is not well formed as Python or JSON.
Usage: check_packaging.py | --self-test
"""
import ast
import json
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
VERSIONS = {  # where a recipe names its version
    "conda/meta.yaml": r'^  version: "(.*)"$',
    "nix/default.nix": r'^  version = "(.*)";$',
    "rpm/uvarrow.spec": r"^Version: *(.*)$",
    "vcpkg/vcpkg.json": r'^  "version": "(.*)",$',
}


def faults_of(name, text, version, options):
    """Yields the faults of one recipe."""
    if name in VERSIONS:
        found = re.findall(VERSIONS[name], text, re.MULTILINE)
        if found != [version]:
            yield f"{name}: version {found}, and the headers have {version}"
    for option in re.findall(r"-D(UVA_\w+)=", text):
        if option not in options:
            yield f"{name}: no option {option}"
    try:
        if name.endswith(".py"):
            ast.parse(text)
        elif name.endswith(".json"):
            json.loads(text)
    except (SyntaxError, ValueError) as error:
        yield f"{name}: {error}"


def self_test():
    good = "Version:  1.2.3\n-DUVA_A=OFF"
    for count, name, text in (
            (0, "rpm/uvarrow.spec", good),
            (1, "rpm/uvarrow.spec", good.replace("2", "3")),
            (1, "rpm/uvarrow.spec", good.replace("UVA_A", "UVA_B")),
            (1, "rpm/uvarrow.spec", "-DUVA_A=OFF"),
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
    folder = ROOT / "cmake/packaging"
    recipes = {str(path.relative_to(folder)): path.read_text()
               for path in sorted(folder.rglob("*")) if path.is_file()
               and "__pycache__" not in path.parts}
    bad = [f"{name}: is not there" for name in VERSIONS if name not in recipes]
    for name, text in recipes.items():
        bad += faults_of(name, text, version, options)
    print("\n".join(bad) or f"{len(recipes)} files of recipes hold")
    return bool(bad)


if __name__ == "__main__":
    sys.exit(main())
