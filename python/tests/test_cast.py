# SPDX-License-Identifier: Apache-2.0
"""Streams with another schema."""
import errno

import pyarrow as pa
import pytest

import uvarrow

TABLE = pa.table({"n": pa.array([1, 2, 3], pa.int64()), "t": ["a", "b", "c"],
                  "x": [0.5, 1.5, 2.5]})


def cast(run, schema, table=TABLE):
    async def main():
        batches = await uvarrow.stream(table).cast(schema).read_all()
        return pa.Table.from_batches([batch.to_pyarrow() for batch in batches])

    return run(main)


def test_columns_are_cast_by_name(run):
    schema = pa.schema({"x": pa.float32(), "n": pa.int16()})
    assert cast(run, schema) == TABLE.select(["x", "n"]).cast(schema)


def test_the_schema_of_a_stream_is_a_target(run):
    async def main():
        first = uvarrow.stream(pa.table({"n": pa.array([1], pa.uint8())}))
        async with first:
            second = uvarrow.stream(TABLE).cast(await first.schema())
            async with second:
                return (await second.schema()).to_pyarrow()

    assert run(main) == pa.schema({"n": pa.uint8()})


def test_a_schema_is_used_again(run):
    schema = pa.schema({"n": pa.int8()})
    for _ in range(2):
        assert cast(run, schema).column("n").to_pylist() == [1, 2, 3]


def test_no_value_changes(run):
    table = pa.table({"n": [1, 300]})
    with pytest.raises(uvarrow.Error, match="column n, row 1: 300 is no int8") as caught:
        cast(run, pa.schema({"n": pa.int8()}), table)
    assert caught.value.errno == errno.EOVERFLOW


@pytest.mark.parametrize("schema, text", [
    (pa.schema({"y": pa.int8()}), "y"), # no such column
    (pa.schema({"t": pa.int8()}), "t"), # no such cast
])
def test_what_cannot_be_cast_is_an_error(run, schema, text):
    with pytest.raises(uvarrow.Error, match=text) as caught:
        cast(run, schema)
    assert caught.value.errno == errno.EINVAL


def test_a_type_is_no_schema(run):
    async def main():
        with pytest.raises(TypeError, match="schema"):
            uvarrow.stream(TABLE).cast(pa.int8())

    run(main)


def test_a_stream_that_runs_is_not_cast(run):
    async def main():
        async with uvarrow.stream(TABLE) as rows:
            await anext(rows)
            with pytest.raises(uvarrow.Error, match="started"):
                rows.cast(TABLE.schema)

    run(main)
