# SPDX-License-Identifier: Apache-2.0
"""The statements of docs/adbc.md on the driver of Flight SQL are true, with a
server that reads the little that these queries take."""
import pytest

import driver_page as page
import uvarrow.adbc

KIND = "flightsql"
pytest.importorskip("adbc_driver_flightsql")
pytest.importorskip("pyarrow.flight")


@pytest.fixture
def pool(flightsql):
    with uvarrow.adbc.Pool(KIND, uri=flightsql, connections=2) as pool:
        yield pool


@pytest.mark.parametrize("label, cell", page.cells_of_driver(KIND))
def test_a_row(pool, label, cell):
    page.check_cell(KIND, pool, label, cell)


@pytest.mark.parametrize("row", page.rows_of_driver(
    KIND, "query", "status", "errno", "detail"))
def test_an_error(pool, row):
    page.check_error(pool, row)
