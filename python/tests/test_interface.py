# SPDX-License-Identifier: Apache-2.0
"""The table of docs/python.md names each function of the C headers, with a
Python name that is there, or with a reason."""
import functools
import glob
import os
import re

import uvarrow

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.abspath(__file__))))


def exported():
    """The functions that the headers export."""
    found = set()
    for header in glob.glob(os.path.join(ROOT, "include", "uvarrow", "*.h")):
        with open(header, encoding="utf-8") as file:
            text = re.sub(r"/\*.*?\*/", "", file.read(), flags=re.DOTALL)
        found |= set(re.findall(r"UVA_API\b[^;]*?\b(uva_\w+)\s*\(", text))
    return found


def rows():
    with open(os.path.join(ROOT, "docs", "python.md"),
              encoding="utf-8") as file:
        section = file.read().partition("\n## The C interface\n")[2]
    for line in section.partition("\n## ")[0].splitlines():
        cells = [cell.strip() for cell in line.strip("|").split(" | ")]
        if line.startswith("| `uva_"):
            yield re.findall(r"`(uva_\w+)\(\)`", cells[0]), cells[1]


def test_the_headers_are_read():
    assert {"uva_stream_map", "uva_stream_from_query", "uva_version",
            "uva_stream_retry"} <= exported()
    assert len(exported()) > 120


def test_each_function_has_one_row():
    named = [name for names, _ in rows() for name in names]
    assert sorted(set(named)) == sorted(named), "a function is there twice"
    assert set(named) == exported()


def test_the_names_of_python_are_there():
    owners = {"Pool": uvarrow.adbc, "Session": uvarrow.adbc}
    for functions, text in rows():
        names = re.findall(r"`([A-Za-z_.]+)(?:\(\))?`", text)
        if text.startswith("no: "):
            assert len(text) > 10, functions
            continue
        assert names, functions
        for name in names:
            owner = owners.get(name.split(".")[0], uvarrow)
            assert functools.reduce(getattr, name.split("."), owner), name
