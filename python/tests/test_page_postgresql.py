# SPDX-License-Identifier: Apache-2.0
"""docs/postgresql.md is executed: its Python, as it would be typed into `python -m
asyncio`, and its SQL, with the output that the page shows."""
import ast
import asyncio
import contextlib
import getpass
import inspect
import io
import os
import re
import shlex
import shutil
import subprocess
import sys

import pytest

import uvarrow.adbc

from databases import pooler

pytest.importorskip("adbc_driver_postgresql")
HERE = os.path.dirname(os.path.abspath(__file__))
PAGE = os.path.join(HERE, "../../docs/postgresql.md")
BLOCK = re.compile(r"^```(python|sql|sh)\n(.*?)^```$(?:\n\n^```\n(.*?)^```$)?",
                   re.M | re.S)


@pytest.fixture
def server(postgresql, tmp_path, monkeypatch):
    """Has the database flights. The page's URIs find it by the environment of
    libpq, and `pg_ctl` by the shell's: it refuses to be root."""
    folder = postgresql.split("host=")[1]
    monkeypatch.setenv("PGHOST", folder)
    monkeypatch.setenv("PGUSER", "postgres")
    control = shlex.join(["/usr/lib/postgresql/15/bin/pg_ctl", "-D",
                          folder + "/db", "-l", folder + "/log"]) + ' "$@"'
    if getpass.getuser() == "root":
        control = f"exec setpriv --reuid=postgres --clear-groups {control}"
    program = tmp_path / "pg_ctl"
    program.write_text(f"#!/bin/sh\nunset LD_PRELOAD\n{control}\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")


async def run_sql(text):
    with uvarrow.adbc.Pool("postgresql", uri="postgresql:///flights") as pool:
        await pool.execute(text)


async def run_python(text, names):
    """Runs a block with `await` in it; returns its output."""
    whole = compile(text, "docs/postgresql.md", "exec",
                    flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    output = io.StringIO()
    with contextlib.redirect_stdout(output):
        result = eval(whole, names) # a coroutine, if there is an await
        if inspect.isawaitable(result):
            await result
    return output.getvalue()


def serve(texts, output):
    """Runs the command as the first text does, on another port, and returns
    the part of its output that the second text has. Without the command, or
    curl, it is skipped."""
    tool = os.path.join(os.path.dirname(uvarrow.__file__),
                        "../../tools/uvarrow")
    if not os.path.exists(tool) or not shutil.which("curl"):
        return
    environment = {name: value for name, value in os.environ.items()
                   if name != "LD_PRELOAD"}
    environment["PATH"] = os.pathsep.join(
        [os.path.dirname(sys.executable), os.environ["PATH"]])
    command = texts[0].replace("uvarrow serve",
                               f"exec {tool} serve --listen 127.0.0.1:0")
    with subprocess.Popen(command, shell=True, stderr=subprocess.PIPE,
                          text=True, env=environment) as process:
        place = process.stderr.readline().split()[-1]
        shown = subprocess.run(
            texts[1].replace("http://127.0.0.1:8080", place), shell=True,
            check=True, stdout=subprocess.PIPE, text=True,
            env=environment).stdout
        process.terminate()
    assert shown.strip() == output.strip()


def test_the_page_is_what_happens(server):
    with open(PAGE, encoding="utf-8") as file:
        blocks = BLOCK.findall(file.read())
    shell = [block for block in blocks if block[0] == "sh"][-2:]
    blocks = [block for block in blocks if block[0] != "sh"]

    async def main():
        with uvarrow.adbc.Pool("postgresql",
                               uri="postgresql:///postgres") as pool:
            await pool.execute("CREATE DATABASE flights")
        names = {}
        for language, text, output in blocks:
            if language == "sql":
                await run_sql(text)
            else:
                assert await run_python(text, names) == output, text

    asyncio.run(main())
    assert len(blocks) >= 10
    serve([text for _, text, _ in shell], shell[-1][2])


def test_its_pgbouncer_lets_all_queries_through(postgresql):
    """With another folder and another port than the page has."""
    with open(PAGE, encoding="utf-8") as file:
        ini, = re.findall(r"^```ini\n(.*?)^```$", file.read(), re.M | re.S)

    def settings(folder):
        users = os.path.join(folder, "users")
        with open(users, "w", encoding="utf-8") as file:
            file.write('"postgres" ""\n')
        changed = {"/var/run/postgresql": postgresql.split("host=")[1] +
                   " dbname=postgres", "127.0.0.1": "",
                   "/etc/pgbouncer/userlist.txt": users}
        text = ini
        for old, new in changed.items():
            assert old in text
            text = text.replace(old, new)
        return f"{text}unix_socket_dir = {folder}\n"

    async def main(folder):
        uri = f"postgresql://postgres@/flights?host={folder}&port=6432" \
            "&options=-c%20statement_timeout%3D30s"
        with uvarrow.adbc.Pool("postgresql", uri=uri) as pool:
            batches = await pool.query("SELECT $1::int AS n", [7]).read_all()
            return batches[0].to_pyarrow().to_pylist()

    with pooler(settings) as folder:
        assert asyncio.run(main(folder)) == [{"n": 7}]
