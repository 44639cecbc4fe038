# SPDX-License-Identifier: Apache-2.0
"""The program for FastAPI in docs/python.md, as a server of ASGI calls it."""
import asyncio
import json
import os
import sqlite3

import pytest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.abspath(__file__))))


def program():
    with open(os.path.join(ROOT, "docs", "python.md"),
              encoding="utf-8") as file:
        section = file.read().partition("\n## Stream a query from FastAPI\n")[2]
    return section.partition("```python\n")[2].partition("```")[0]


@pytest.fixture
def app(tmp_path, monkeypatch):
    pytest.importorskip("fastapi")
    monkeypatch.chdir(tmp_path)
    with sqlite3.connect("flights.db") as database:
        database.execute("CREATE TABLE flights (day INTEGER, carrier TEXT)")
        database.execute("INSERT INTO flights VALUES (1, 'UA'), (2, 'AA')")
    database.close()
    names = {"__name__": "page"}
    exec(compile(program(), "python.md", "exec"), names) # pylint: disable=W0122
    return names["app"]


async def ask(app, query, accept):
    """The status and the body of an answer."""
    messages, requests = [], [{"type": "http.request", "body": b""}]

    async def receive():
        if requests:
            return requests.pop()
        await asyncio.Event().wait()

    async def send(message):
        messages.append(message)

    await app({"type": "http", "asgi": {"version": "3.0"}, "method": "GET",
               "http_version": "1.1", "scheme": "http", "path": "/flights",
               "raw_path": b"/flights", "query_string": query, "root_path": "",
               "headers": [(b"accept", accept)], "client": ("127.0.0.1", 1),
               "server": ("127.0.0.1", 80)}, receive, send)
    return (messages[0]["status"],
            b"".join(message["body"] for message in messages[1:]))


def test_the_program_serves(app):
    async def main():
        async with app.router.lifespan_context(app):
            return (await ask(app, b"day=1", b"text/csv"),
                    await ask(app, b"day=2", b"application/json"),
                    await ask(app, b"day=1", b"image/png"))

    lines, array, refused = asyncio.run(main())
    assert lines == (200, b"day,carrier\n1,UA\n")
    assert array == (200, b'[{"day":2,"carrier":"AA"}]\n')
    assert refused[0] == json.loads(refused[1])["error"]["status"] == 406


def test_a_table_that_is_not_there(app):
    with sqlite3.connect("flights.db") as database:
        database.execute("DROP TABLE flights")
    database.close()

    async def main():
        async with app.router.lifespan_context(app):
            return await ask(app, b"day=1", b"*/*")

    status, body = asyncio.run(main())
    assert status == 400 and b"flights" in body
