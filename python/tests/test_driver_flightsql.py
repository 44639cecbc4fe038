# SPDX-License-Identifier: Apache-2.0
"""The statements of docs/adbc.md on the driver of Flight SQL are true, with a
server that reads the little that these queries take."""
import os
import subprocess
import sys

import pytest

import driver_page as page
import uvarrow.adbc

KIND = "flightsql"
pytest.importorskip("adbc_driver_flightsql")
pytest.importorskip("pyarrow.flight")
SERVER = os.path.join(os.path.dirname(os.path.abspath(__file__)),
                      "../../tests/support/flight_server.py")


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """Its URI; it ends with its standard input."""
    folder = tmp_path_factory.mktemp("flight")
    os.mkfifo(folder / "port.new")
    with subprocess.Popen([sys.executable, SERVER, str(folder)],
                          stdin=subprocess.PIPE) as process:
        with open(folder / "port.new", encoding="ascii") as file:
            port = file.read()
        yield f"grpc://127.0.0.1:{port}"
        process.stdin.close()


@pytest.fixture
def pool(server):
    with uvarrow.adbc.Pool(KIND, uri=server, connections=2) as pool:
        yield pool


@pytest.mark.parametrize("label, cell", page.cells_of_driver(KIND))
def test_a_row(pool, label, cell):
    page.check_cell(KIND, pool, label, cell)


@pytest.mark.parametrize("row", page.rows_of_driver(
    KIND, "query", "status", "errno", "detail"))
def test_an_error(pool, row):
    page.check_error(pool, row)
