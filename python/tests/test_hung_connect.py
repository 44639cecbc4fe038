# SPDX-License-Identifier: Apache-2.0
"""A server that accepts and never answers ends no pool."""
import os
import socket

import pytest

import uvarrow.adbc


def test_a_connect_that_hangs_frees_its_place(run, postgresql, tmp_path):
    name = ".s.PGSQL.5432"
    path = tmp_path / name

    async def main():
        with socket.socket(socket.AF_UNIX) as silent, uvarrow.adbc.Pool(
                "postgresql", uri=f"postgresql://postgres@/postgres?host={tmp_path}",
                connections=1, connect=1.5) as pool:
            silent.bind(str(path))
            silent.listen()
            with pytest.raises(TimeoutError):
                await pool.execute("select 1")
            path.unlink()
            path.symlink_to(os.path.join(postgresql.split("=")[1], name))
            assert await pool.query("select 1 as n").read_all()

    run(main)


@pytest.mark.parametrize("limit", ["wait", "connect"])
def test_a_time_of_0_is_a_short_one(run, tmp_path, limit):
    """It is no default, which has seconds."""
    pytest.importorskip("adbc_driver_postgresql")

    async def main():
        with socket.socket(socket.AF_UNIX) as silent, uvarrow.adbc.Pool(
                "postgresql", uri=f"postgresql://postgres@/postgres?host={tmp_path}",
                **{limit: 0}) as pool:
            silent.bind(str(tmp_path / ".s.PGSQL.5432"))
            silent.listen()
            with pytest.raises(TimeoutError, match=r"within [01] ms"):
                await pool.execute("select 1")

    run(main)
