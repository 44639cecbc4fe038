# SPDX-License-Identifier: Apache-2.0
"""docs/python-database.md is executed: its Python, as it would be typed into
`python -m asyncio`, with the output that the page shows."""
import os
import re

import pytest

import uvarrow
from test_page_postgresql import run_python
from uvarrow import _dberror

PAGE = os.path.join(os.path.dirname(os.path.abspath(__file__)),
                    "../../docs/python-database.md")
BLOCK = re.compile(r"^```python\n(.*?)^```$(?:\n\n^```\n(.*?)^```$)?", re.M | re.S)


def text():
    with open(PAGE, encoding="utf-8") as file:
        return file.read()


def test_the_page_is_what_happens(run, tmp_path, monkeypatch):
    pytest.importorskip("adbc_driver_sqlite")
    monkeypatch.chdir(tmp_path)
    blocks = BLOCK.findall(text())
    assert len(blocks) == 6

    async def main():
        names = {}
        for program, output in blocks:
            if "asyncio.timeout" in program and not on_asyncio():
                continue
            assert await run_python(program, names) == output

    run(main)


def on_asyncio():
    import asyncio
    return asyncio._get_running_loop() is not None


def test_the_classes_of_statuses_are_those_of_the_page():
    rows = re.findall(r"^\| `(\w+Error)` \| (.*) \|$", text(), re.M)
    assert len(rows) == 7
    for name, cell in rows:
        kind = getattr(uvarrow.adbc, name)
        statuses = re.findall(r"`([A-Z_]+)`", cell)
        assert statuses == [] or sorted(statuses) == sorted(
            status for status, one in _dberror._OF_STATUS.items() if one is kind)
        states = re.search(r"SQLSTATE ([\dA-Z, ]+)", cell)
        assert (sorted(states[1].split(", ")) if states else []) == sorted(
            state for state, one in _dberror._OF_SQLSTATE.items() if one is kind)
