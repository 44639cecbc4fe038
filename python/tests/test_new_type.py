# SPDX-License-Identifier: Apache-2.0
"""A pool notices types that were made after its first query."""
import pyarrow as pa

import uvarrow.adbc


def test_a_type_that_was_made_later_becomes_known(run, postgresql):
    async def main():
        with uvarrow.adbc.Pool("postgresql", uri=postgresql) as pool:
            await pool.execute("drop type if exists mood")
            await pool.execute("create type mood as enum ('well')")
            for _ in range(2): # the first query that meets it has the pool look anew
                async with pool.query("select 'well'::mood as m") as stream:
                    batches = await stream.read_all()
            assert pa.record_batch(batches[0]).column(0).type == pa.string()
            await pool.execute("drop type mood")

    run(main)
