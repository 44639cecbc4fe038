# SPDX-License-Identifier: Apache-2.0
"""The statements of docs/adbc.md on the driver of DuckDB are true."""
import asyncio
import contextlib
import os
import resource

import pytest

import driver_page as page
import uvarrow.adbc

KIND = "duckdb"
pytest.importorskip("adbc_driver_duckdb")


@pytest.fixture
def pool(tmp_path):
    with uvarrow.adbc.Pool(KIND, uri=str(tmp_path / "a.db"),
                           connections=2) as pool:
        pool.test_path = str(tmp_path / "a.db")
        yield pool


@pytest.mark.parametrize("label, cell", page.cells_of_driver(KIND))
def test_a_row(pool, label, cell):
    page.check_cell(KIND, pool, label, cell)


@pytest.mark.parametrize("row", page.rows_of_driver(
    KIND, "query", "status", "errno", "detail"))
def test_an_error(pool, row):
    page.check_error(pool, row)


@pytest.mark.parametrize("row", page.rows_of_driver(KIND, "value", "arrives as"))
def test_a_value(pool, row):
    page.check_value(pool, row)


@contextlib.contextmanager
def full_disk(path):
    """No file of this process gets longer than that one is."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (os.path.getsize(path), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_fatal_error_is_over_once_its_cause_is(pool):
    """DuckDB refuses all later queries, until the file is opened again."""
    async def main():
        await pool.execute("CREATE TABLE numbers AS SELECT 1 AS n")
        with full_disk(pool.test_path):
            assert await page.failure(
                pool, "INSERT INTO numbers SELECT range FROM range(1000000)")
            failure = await page.failure(pool, "CHECKPOINT")
        assert failure[3].startswith("query: the query fails: FATAL Error")
        await pool.execute("INSERT INTO numbers VALUES (2)")
        return await page.values(pool, "SELECT n FROM numbers ORDER BY n")

    assert asyncio.run(main()) == [1, 2]
