# SPDX-License-Identifier: Apache-2.0
"""`uvarrow query` as people start it: with an environment of their own, in a
pipe or on a terminal. Tests wait for events, never for a time.
"""
import os
import sqlite3
import subprocess

PATIENCE = 600  # seconds, after which a test that hangs fails
VENV = os.path.dirname(os.path.dirname(os.environ["UVA_TEST_PYTHON"]))


def folder():
    path = os.path.join(os.environ["UVA_TEST_BUILD"], "query")
    os.makedirs(path, exist_ok=True)
    return path


def path_of(name):
    """The path of a file of this test, which is removed."""
    path = os.path.join(folder(), f"{os.getpid()}-{name}")
    if os.path.exists(path):
        os.remove(path)
    return path


def environment(**variables):
    """That of a person who has the drivers in a virtual environment alone.
    What the build needs to run the command stays."""
    kept = {name: value for name, value in os.environ.items()
            if name.startswith(("ASAN_", "UBSAN_", "LSAN_", "TSAN_", "GCOV_"))}
    return {**kept, "PATH": "/nonexistent", "HOME": "/nonexistent",
            "TERM": "xterm", "LANG": "C.UTF-8", "VIRTUAL_ENV": VENV,
            **variables}


def query(*words, env=None, command="query", **options):
    """Runs the command; its output is text."""
    done = subprocess.run(
        [os.environ["UVA_TEST_TOOL"], command, *words], timeout=PATIENCE,
        stdin=subprocess.DEVNULL, capture_output=True, check=False,
        env=environment() if env is None else env, **options)
    done.stdout, done.stderr = done.stdout.decode(), done.stderr.decode()
    return done


def sqlite(name, *statements):
    """Makes a database of SQLite; returns its path."""
    path = path_of(name)
    connection = sqlite3.connect(path)
    for statement in statements:
        connection.execute(statement)
    connection.commit()
    connection.close()
    return path
