# SPDX-License-Identifier: Apache-2.0
"""docs/python-tasks.md is executed: its Python, as it would be typed into
`python -m asyncio`, with the output that the page shows, and its server as one of
ASGI calls it."""
import asyncio
import os
import re

import pytest

from test_page_fastapi import ask
from test_page_postgresql import run_python

PAGE = os.path.join(os.path.dirname(os.path.abspath(__file__)),
                    "../../docs/python-tasks.md")
BLOCK = re.compile(r"^```(python|sh)\n(.*?)^```$(?:\n\n^```\n(.*?)^```$)?",
                   re.M | re.S)


async def served(app, command):
    """The answer to a command of curl, by the server's own interface"""
    accept, path, query = re.fullmatch(
        r"curl -H 'Accept: (\S+)' 'http://localhost:8000(/\w+)\?(\S+)'\n",
        command).groups()
    assert path == "/flights"
    async with app.router.lifespan_context(app):
        status, body = await ask(app, query.encode(), accept.encode())
    assert status == 200
    return body.decode()


def test_the_page_is_what_happens(tmp_path, monkeypatch):
    for name in ("adbc_driver_sqlite", "fastapi", "polars", "pyarrow"):
        pytest.importorskip(name)
    monkeypatch.chdir(tmp_path)
    with open(PAGE, encoding="utf-8") as file:
        blocks = BLOCK.findall(file.read())
    assert len(blocks) == 8

    async def main():
        names = {"__name__": "page"}
        for kind, text, output in blocks:
            if kind == "python":
                assert await run_python(text, names) == output
            else:
                assert await served(names["app"], text) == output

    asyncio.run(main())
