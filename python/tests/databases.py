# SPDX-License-Identifier: Apache-2.0
"""Pools of real databases: SQLite, DuckDB, and servers of PostgreSQL and pgbouncer,
each in its own folder. Missing packages are skipped."""
import contextlib
import getpass
import os
import shutil
import subprocess
import sys
import tempfile

import pytest

import uvarrow.adbc

KINDS = ("sqlite", "duckdb", "postgresql")
_BIN = "/usr/lib/postgresql/15/bin/"
_PGBOUNCER = "/usr/sbin/pgbouncer"
_SUPPORT = os.path.join(os.path.dirname(os.path.abspath(__file__)),
                        "../../tests/support")
_INI = """
[databases]
transaction = host={server} dbname=postgres user=postgres pool_mode=transaction
session = host={server} dbname=postgres user=postgres pool_mode=session
[pgbouncer]
unix_socket_dir = {folder}
auth_type = any
default_pool_size = 3
log_connections = 0
log_disconnections = 0
log_stats = 0
"""


def _server(*command):
    """Runs a program of the server, which refuses to be root. A library that
    is loaded first into Python under a sanitizer is not for it."""
    if getpass.getuser() == "root":
        command = ("su", "postgres", "-s", "/bin/sh", "-c", " ".join(
            f"'{word}'" for word in command))
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL,
                   env=_environment())


def _environment():
    return {name: value for name, value in os.environ.items()
            if name != "LD_PRELOAD"}


def _folder():
    """A folder that the server may write to."""
    folder = tempfile.mkdtemp(prefix="uva_pg_")
    if getpass.getuser() == "root":
        shutil.chown(folder, "postgres")
    return folder


@pytest.fixture(scope="session")
def postgresql():
    """The URI of a server, which ends with the tests."""
    pytest.importorskip("adbc_driver_postgresql")
    if not os.access(_BIN + "initdb", os.X_OK):
        pytest.skip("PostgreSQL is not installed")
    folder = _folder()
    _server(_BIN + "initdb", "-D", folder + "/db", "-A", "trust", "-U",
            "postgres", "--no-sync")
    _server(_BIN + "pg_ctl", "-D", folder + "/db", "-l", folder + "/log", "-w",
            "-o", f"-k {folder} -c listen_addresses=", "start")
    yield f"postgresql://postgres@/postgres?host={folder}"
    _server(_BIN + "pg_ctl", "-D", folder + "/db", "-m", "immediate", "-w",
            "stop")
    shutil.rmtree(folder)


@pytest.fixture(scope="session")
def pgbouncer(postgresql):
    """uri(mode) of a pooler in front of it, with three backends in each mode:
    "transaction" or "session"."""
    with pooler(lambda folder: _INI.format(
            folder=folder, server=postgresql.split("=")[1])) as folder:
        yield lambda mode: f"postgresql://postgres@/{mode}?host={folder}&port=6432"


@pytest.fixture(scope="session")
def flightsql(tmp_path_factory):
    """The URI of a server of Flight SQL, which reads the little that queries of
    the tests take."""
    with flight_server(tmp_path_factory.mktemp("flight")) as uri:
        yield uri


@pytest.fixture(scope="session")
def flight_database(tmp_path_factory):
    """The URI of one that has a database."""
    pytest.importorskip("duckdb")
    with flight_server(tmp_path_factory.mktemp("flight"),
                       program="flight_database.py") as uri:
        yield uri


@contextlib.contextmanager
def flight_server(folder, *arguments, program="flight_server.py"):
    """Runs a server of Flight SQL, which ends with its standard input; gives its
    URI."""
    pytest.importorskip("adbc_driver_flightsql")
    pytest.importorskip("pyarrow.flight")
    os.mkfifo(folder / "port.new")
    with subprocess.Popen([sys.executable, os.path.join(_SUPPORT, program),
                           str(folder), *arguments],
                          stdin=subprocess.PIPE) as process:
        with open(folder / "port.new", encoding="ascii") as file:
            port = file.read()
        yield f"grpc://127.0.0.1:{port}"
        process.stdin.close()


@contextlib.contextmanager
def pooler(settings):
    """Runs pgbouncer with settings(folder); gives its folder."""
    if not os.access(_PGBOUNCER, os.X_OK):
        pytest.skip("pgbouncer is not installed")
    folder = _folder()
    ini = os.path.join(folder, "pgbouncer.ini")
    with open(ini, "w", encoding="utf-8") as file:
        file.write(settings(folder))
    user = "postgres" if getpass.getuser() == "root" else None
    with subprocess.Popen([_PGBOUNCER, ini], user=user, env=_environment(),
                          stderr=subprocess.PIPE, text=True) as process:
        log = []
        for line in process.stderr:
            log.append(line)
            if "process up" in line:
                break
        assert process.poll() is None, "".join(log)
        yield folder
        process.terminate()
        process.communicate()
    shutil.rmtree(folder)


def pool_of(kind, request, tmp_path, **how):
    pytest.importorskip(f"adbc_driver_{kind}")
    uri = (request.getfixturevalue("postgresql") if kind == "postgresql" else
           str(tmp_path / "rows.db"))
    return uvarrow.adbc.Pool(kind, uri=uri, **how)


@pytest.fixture(params=KINDS)
def link(request, tmp_path):
    """(kind, connect), of each kind: connect(**how) connects to one database. A
    file of DuckDB is open once, so there it is that of a pool."""
    kind = request.param
    pytest.importorskip(f"adbc_driver_{kind}")
    if kind == "duckdb":
        with pool_of(kind, request, tmp_path) as pool:
            yield kind, pool.connection
        return
    uri = (request.getfixturevalue("postgresql") if kind == "postgresql" else
           f"sqlite:{tmp_path / 'rows.db'}")

    def connect(**how):
        return uvarrow.adbc.connect(
            uri, lock=20.0 if kind == "sqlite" else None, **how)

    yield kind, connect


@pytest.fixture(params=KINDS)
def database(request, tmp_path):
    """(kind, pool), of each kind."""
    with pool_of(request.param, request, tmp_path) as pool:
        yield request.param, pool
