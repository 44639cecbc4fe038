# SPDX-License-Identifier: Apache-2.0
"""Pickles, as programs of several processes send them: of batches and schemas,
without a copy of the buffers, and of pools, which are their arguments."""
import pickle

import pyarrow as pa
import pytest

import uvarrow

TABLE = pa.table({
    "n": pa.array([1, None, 3]), "t": ["a", "bb", None],
    "d": pa.array(["x", "y", "x"]).dictionary_encode(),
    "l": [[1, 2], None, []]}).replace_schema_metadata({"k": "v"})


async def batches(table, rows=None):
    return await uvarrow.stream(pa.Table.from_batches(
        table.to_batches(max_chunksize=rows))).read_all()


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_batches_and_schemas(run, protocol):
    async def main():
        for batch in await batches(TABLE, 2):
            again = pickle.loads(pickle.dumps(batch, protocol))
            assert type(again) is uvarrow.Batch
            assert again.to_pyarrow().equals(batch.to_pyarrow(), check_metadata=True)
            assert again.ordinal == batch.ordinal
        rows = uvarrow.stream(TABLE)
        async with rows:
            schema = await rows.schema()
            again = pickle.loads(pickle.dumps(schema, protocol))
        assert type(again) is uvarrow.Schema
        assert again.to_pyarrow().equals(TABLE.schema, check_metadata=True)

    run(main)


def test_buffers_are_passed_on_without_a_copy(run):
    async def main():
        values = pa.array(range(100_000), pa.int64())
        batch, = await batches(pa.table({"n": values}))
        buffers = []
        text = pickle.dumps(batch, 5, buffer_callback=buffers.append)
        assert len(text) < 10_000
        assert sum(one.raw().nbytes for one in buffers) >= 800_000
        column = pickle.loads(text, buffers=buffers).to_pyarrow().column(0)
        assert column.buffers()[1].address == values.buffers()[1].address

    run(main)


def test_a_slice_brings_its_own_rows(run):
    async def main():
        table = pa.table({"n": range(100_000), "d": pa.array(
            ["a", "b"] * 50_000).dictionary_encode()})
        first, *_ = await batches(table, 10)
        text = pickle.dumps(first, 5)
        assert len(text) < 10_000
        assert pickle.loads(text).to_pyarrow().equals(
            table.slice(0, 10).combine_chunks().to_batches()[0])

    run(main)


def test_a_pool_is_its_arguments(run, database):
    async def main():
        async with uvarrow.adbc.Pool("sqlite", uri=":memory:", connections=3,
                                     wait=2.5) as pool:
            await pool.query("SELECT 1").read_all()
            again = pickle.loads(pickle.dumps(pool))
        async with again:
            assert again._given == pool._given
            rows = await again.query("SELECT 2 AS n").read_all()
            assert rows[0].to_pyarrow().to_pydict() == {"n": [2]}

    run(main)


def test_streams_are_not_pickled(run):
    async def main():
        async with uvarrow.stream(TABLE) as rows:
            with pytest.raises(TypeError):
                pickle.dumps(rows)

    run(main)
