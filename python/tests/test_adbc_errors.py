# SPDX-License-Identifier: Apache-2.0
"""Errors of databases: their codes, and their whole text."""
import errno
import pickle

import pytest

import uvarrow

COUNT = """WITH RECURSIVE numbers(n) AS (
    SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 5000)
    SELECT abs(CASE WHEN n > 4000 THEN -9223372036854775807 - 1 ELSE n END)
    FROM numbers"""


@pytest.mark.parametrize("size", [10, 900, 1100, 100000])
def test_an_error_has_the_whole_text_of_the_driver(run, database, size):
    kind, pool = database
    name = "é" * size if kind == "duckdb" else "x" * size
    text = f'SELECT * FROM "{name}"' if kind == "sqlite" else (
        f"SELECT CAST('{name}' AS INTEGER)")

    async def main():
        with pytest.raises(uvarrow.Error) as info:
            await pool.query(text).read_all()
        return info.value

    error = run(main)
    assert name in error.strerror
    assert error.strerror.startswith("query: the query")
    assert pickle.loads(pickle.dumps(error)).strerror == error.strerror


def test_errors_in_the_midst_of_rows_have_their_codes(run, database):
    kind, pool = database
    sql = {"sqlite": COUNT,
           "duckdb": "SELECT error('late') FROM range(3)",
           "postgresql": "SELECT 1 / (9999 - n) "
                         "FROM generate_series(1, 99999) AS s(n)"}[kind]

    async def main():
        with pytest.raises(uvarrow.Error) as info:
            await pool.query(sql).read_all()
        return info.value

    assert run(main).errno == errno.EIO
