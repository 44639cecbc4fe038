# SPDX-License-Identifier: Apache-2.0
"""Errors of databases are the exceptions of PEP 249, in pools, sessions and
connections."""
import copy
import errno
import pickle

import pytest

import uvarrow
from uvarrow import _dberror, adbc

# "Statuses differ, also for the same mistake": docs/adbc.md
MISTAKES = {
    "SELEC 1": adbc.ProgrammingError,
    "SELECT * FROM missing": adbc.ProgrammingError,
    "SELECT missing FROM t": adbc.ProgrammingError,
    "CREATE TABLE t (a INT)": adbc.ProgrammingError,
    "INSERT INTO t VALUES (1, 1), (1, 2)": adbc.IntegrityError,
    "INSERT INTO t VALUES (1, NULL)": adbc.IntegrityError,
}
BY_KIND = {
    "sqlite": {"SELECT ?": adbc.ProgrammingError},
    "duckdb": {"SELECT ?": adbc.ProgrammingError,
               "SELECT 'x'::INT": adbc.DataError},
    "postgresql": {"SELECT $1::int": adbc.ProgrammingError,
                   "SELECT 1 / 0": adbc.DataError,
                   "SELECT 'x'::int": adbc.DataError,
                   "SELECT pg_cancel_backend(pg_backend_pid())":
                       adbc.OperationalError},
}


def test_a_mistake_has_its_class(run, database):
    kind, pool = database

    async def main():
        await pool.execute("DROP TABLE IF EXISTS t")
        await pool.execute("CREATE TABLE t (a INT PRIMARY KEY, b INT NOT NULL)")
        for sql, expected in {**MISTAKES, **BY_KIND[kind]}.items():
            with pytest.raises(adbc.DatabaseError) as of_pool:
                await pool.query(sql).read_all()
            async with pool.connection(autocommit=True) as connection:
                with pytest.raises(adbc.DatabaseError) as of_connection:
                    await (await connection.execute(sql)).fetchall()
            assert type(of_pool.value) is expected, sql
            assert type(of_connection.value) is expected, sql
            assert of_connection.value.metadata["adbc.status"]

    run(main)


@pytest.mark.parametrize("code, text, metadata, expected", [
    (errno.EIO, "a", {"adbc.status": "INTEGRITY"}, adbc.IntegrityError),
    (errno.EIO, "a", {"adbc.status": "INVALID_DATA"}, adbc.DataError),
    (errno.EIO, "a", {"adbc.status": "INTERNAL"}, adbc.InternalError),
    (errno.EIO, "a", {"adbc.status": "LATER"}, adbc.DatabaseError),
    (errno.ENOTSUP, "a", {"adbc.status": "NOT_IMPLEMENTED"},
     adbc.NotSupportedError),
    (errno.EACCES, "a", {"adbc.status": "UNAUTHORIZED"}, adbc.ProgrammingError),
    (errno.EIO, "a", {"adbc.status": "IO", "adbc.sqlstate": "40001"},
     adbc.OperationalError),
    (errno.EIO, "a", {"adbc.status": "IO", "adbc.sqlstate": "99000"},
     adbc.OperationalError),
    (errno.EIO, "q: Odd Error: b", {"adbc.status": "INTERNAL"},
     adbc.InternalError),
    (errno.EINVAL, "a", {}, adbc.ProgrammingError),
    (errno.ENOTSUP, "a", {}, adbc.NotSupportedError),
    (errno.ECONNABORTED, "a", {}, adbc.OperationalError),
])
def test_the_class_of_a_report(code, text, metadata, expected):
    assert _dberror.class_of(code, text, metadata) is expected


@pytest.mark.parametrize("status, kind", [
    ("INTEGRITY", adbc.IntegrityError), ("TIMEOUT", adbc.OperationalError)])
def test_they_are_copied_and_pickled(status, kind):
    code = errno.ETIMEDOUT if status == "TIMEOUT" else errno.EIO
    error = uvarrow.Error._of(code, "text", [(b"adbc.status", status.encode())])
    for same in (copy.copy(error), pickle.loads(pickle.dumps(error))):
        assert type(same) is type(error) and isinstance(same, kind)
        assert (same.errno, same.strerror) == (code, "text")
        assert same.metadata == {"adbc.status": status}
        assert isinstance(same, TimeoutError) == (code == errno.ETIMEDOUT)


def test_other_errors_are_no_errors_of_a_database():
    error = uvarrow.Error._of(errno.EIO, "text", [(b"key", b"value")])
    assert type(error) is uvarrow.Error
    assert _dberror.of_database(error).metadata == {"key": "value"}
    same = adbc.DataError(errno.EIO, "text")
    assert _dberror.of_database(same) is same
