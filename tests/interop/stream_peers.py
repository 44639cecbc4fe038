"""Other implementations that give blocking streams: how the report
docs/conformance.md names each, and the server that some of them need.

A peer is played by the subject stream_NAME.
"""
import contextlib
import importlib.metadata
import os
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.append(os.path.join(HERE, "../support"))
import postgresql_server  # noqa: E402

FLIGHT_SERVER = os.path.join(HERE, "../support/flight_server.py")
URI = "UVA_SUBJECT_URI"
STARTING = 600  # seconds that a server has to start


class Absent(Exception):
    """The needs of a peer are not on this machine"""


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


@contextlib.contextmanager
def postgresql():
    """Runs a server of PostgreSQL without a port; gives its address."""
    try:
        server = postgresql_server.Server()
    except postgresql_server.Absent as error:
        raise Absent(str(error)) from error
    with server:
        yield server.uri


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
        """Gives the subject's environment."""
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
        postgresql),
    "flightsql": Peer(
        "ADBC Flight SQL VERSION", "adbc_driver_flightsql", "plain_stream",
        "the stream that the driver gives for a query to a server in Python. "
        "The driver is written in Go: the functions of the stream are its own, "
        "and arrow-go, which is inside its library, exports the schema and the "
        "batches", flight_server),
}
