# SPDX-License-Identifier: Apache-2.0
"""Pools of real databases: SQLite, DuckDB, and a server of PostgreSQL in a
folder of its own. What is not installed is skipped."""
import getpass
import os
import shutil
import subprocess
import tempfile

import pytest

import uvarrow.adbc

KINDS = ("sqlite", "duckdb", "postgresql")
_BIN = "/usr/lib/postgresql/15/bin/"


def _server(*command):
    """Runs a program of the server, which refuses to be root. What is loaded
    first into Python under a sanitizer is not for it."""
    if getpass.getuser() == "root":
        command = ("su", "postgres", "-s", "/bin/sh", "-c", " ".join(
            f"'{word}'" for word in command))
    environment = {name: value for name, value in os.environ.items()
                   if name != "LD_PRELOAD"}
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL,
                   env=environment)


@pytest.fixture(scope="session")
def postgresql():
    """The URI of a server, which ends with the tests."""
    pytest.importorskip("adbc_driver_postgresql")
    if not os.access(_BIN + "initdb", os.X_OK):
        pytest.skip("PostgreSQL is not installed")
    folder = tempfile.mkdtemp(prefix="uva_pg_")
    if getpass.getuser() == "root":
        shutil.chown(folder, "postgres")
    _server(_BIN + "initdb", "-D", folder + "/db", "-A", "trust", "-U",
            "postgres", "--no-sync")
    _server(_BIN + "pg_ctl", "-D", folder + "/db", "-l", folder + "/log", "-w",
            "-o", f"-k {folder} -c listen_addresses=", "start")
    yield f"postgresql://postgres@/postgres?host={folder}"
    _server(_BIN + "pg_ctl", "-D", folder + "/db", "-m", "immediate", "-w",
            "stop")
    shutil.rmtree(folder)


@pytest.fixture(params=KINDS)
def database(request, tmp_path):
    """(kind, pool), of each kind."""
    kind = request.param
    pytest.importorskip(f"adbc_driver_{kind}")
    if kind == "postgresql":
        pool = uvarrow.adbc.Pool(kind,
                                 uri=request.getfixturevalue("postgresql"))
    else:
        pool = uvarrow.adbc.Pool(kind, uri=str(tmp_path / "rows.db"))
    with pool:
        yield kind, pool
