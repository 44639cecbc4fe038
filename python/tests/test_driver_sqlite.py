# SPDX-License-Identifier: Apache-2.0
"""The statements of docs/adbc.md on the driver of SQLite are true."""
import pytest

import driver_page as page
import uvarrow.adbc

KIND = "sqlite"
pytest.importorskip("adbc_driver_sqlite")


@pytest.fixture
def pool(tmp_path):
    with uvarrow.adbc.Pool(KIND, uri=str(tmp_path / "a.db"),
                           connections=2) as pool:
        yield pool


@pytest.mark.parametrize("label, cell", page.cells_of_driver(KIND))
def test_a_row(pool, label, cell):
    page.check_cell(KIND, pool, label, cell)


@pytest.mark.parametrize("row", page.rows_of_driver(
    KIND, "query", "status", "errno", "detail"))
def test_an_error(pool, row):
    page.check_error(pool, row)
