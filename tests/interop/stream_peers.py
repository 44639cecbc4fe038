"""Other implementations that give blocking streams: how the report
docs/conformance.md names each, and the server that some of them need.

A peer is played by the subject stream_NAME.
"""
import contextlib
import glob
import importlib.metadata
import os
import pwd
import shutil
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
FLIGHT_SERVER = os.path.join(HERE, "../support/flight_server.py")
URI = "UVA_SUBJECT_URI"
STARTING = 600  # seconds that a server has to start


class Absent(Exception):
    """What a peer needs is not on this machine"""


# ---- servers ----------------------------------------------------------------

@contextlib.contextmanager
def flight_server():
    """Runs a server of Flight SQL; gives its address."""
    try:
        importlib.metadata.version("pyarrow")
    except importlib.metadata.PackageNotFoundError as error:
        raise Absent("the wheel of pyarrow, for a server") from error
    with tempfile.TemporaryDirectory(prefix="uva_flight_") as folder:
        with subprocess.Popen([sys.executable, FLIGHT_SERVER, folder],
                              stdin=subprocess.PIPE) as server:
            port = os.path.join(folder, "port")
            until = time.monotonic() + STARTING
            while not os.path.exists(port):
                if server.poll() is not None or time.monotonic() > until:
                    server.kill()
                    raise RuntimeError("the server of Flight SQL did not start")
                time.sleep(0.02)
            with open(port, encoding="ascii") as file:
                yield f"grpc://127.0.0.1:{file.read()}"
            server.stdin.close()  # ends it


def as_postgres(*command):
    """Runs a program of the server, which refuses to be root."""
    user = "postgres" if os.geteuid() == 0 else None
    subprocess.run(command, check=True, user=user, cwd="/",
                   stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                   stderr=subprocess.DEVNULL)


@contextlib.contextmanager
def postgresql_server():
    """Runs a server of PostgreSQL without a port; gives its address."""
    programs = sorted(glob.glob("/usr/lib/postgresql/*/bin/initdb"))
    if not programs:
        raise Absent("the server of PostgreSQL")
    at = os.path.dirname(programs[-1])
    folder = tempfile.mkdtemp(prefix="uva_pg_")
    if os.geteuid() == 0:
        os.chown(folder, pwd.getpwnam("postgres").pw_uid, -1)
    control = [f"{at}/pg_ctl", "-D", f"{folder}/db", "-w"]
    try:
        as_postgres(f"{at}/initdb", "-D", f"{folder}/db", "-A", "trust", "-U",
                    "postgres")
        as_postgres(*control, "-l", f"{folder}/log", "-o",
                    f"-k {folder} -c listen_addresses=", "start")
        try:
            yield f"postgresql://postgres@/postgres?host={folder}"
        finally:
            as_postgres(*control, "-m", "immediate", "stop")
    finally:
        shutil.rmtree(folder)


# ---- the peers --------------------------------------------------------------

class Peer:
    """A column of the table. The file `adapter` adds the members of a device
    stream; "": the peer gives device streams."""

    def __init__(self, name, package, adapter, note, server=None):
        self.name, self.package, self.adapter = name, package, adapter
        self.note = note
        self.server = server

    def title(self):
        try:
            version = importlib.metadata.version(self.package)
        except importlib.metadata.PackageNotFoundError as error:
            raise Absent(f"the wheel of {self.package}") from error
        return self.name.replace("VERSION", version)

    @contextlib.contextmanager
    def environment(self):
        """Gives what the subject needs in its environment."""
        if self.server is None:
            yield {}
            return
        with self.server() as uri:
            yield {URI: uri}


PEERS = {
    "nanoarrow": Peer(
        "nanoarrow VERSION, IPC", "nanoarrow", "",
        "its device stream over its reader of Arrow IPC"),
    "nanoarrow_arrays": Peer(
        "nanoarrow VERSION, arrays", "nanoarrow", "",
        "its device stream over its stream of arrays, which has them all from "
        "the start and cannot fail"),
    "duckdb": Peer(
        "DuckDB VERSION", "duckdb", "plain_stream",
        "the stream that its Python package gives for a query"),
    "sqlite": Peer(
        "ADBC SQLite VERSION", "adbc_driver_sqlite", "plain_stream",
        "the stream that the driver gives for a query"),
    "postgresql": Peer(
        "ADBC PostgreSQL VERSION", "adbc_driver_postgresql", "plain_stream",
        "the stream that the driver gives for a query to a server of Debian's",
        postgresql_server),
    "flightsql": Peer(
        "ADBC Flight SQL VERSION", "adbc_driver_flightsql", "plain_stream",
        "the stream that the driver gives for a query to a server in Python. "
        "The driver is written in Go: the functions of the stream are its own, "
        "and arrow-go, which is inside its library, exports the schema and the "
        "batches", flight_server),
}
