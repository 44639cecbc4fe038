# SPDX-License-Identifier: Apache-2.0
"""Columns as tensors of numpy and JAX, and tensors as batches: that no data is
copied, how long the memory lives, and which columns are refused."""
import gc
import random

import numpy as np
import pyarrow as pa
import pytest

import uvarrow
from conftest import run_on

jax = pytest.importorskip("jax")
jax.config.update("jax_enable_x64", True)

KINDS = [np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64,
         np.uint64, np.float16, np.float32, np.float64]
LISTS = pa.FixedSizeListArray.from_arrays(pa.array(range(12)), 3)


def batch_of(run, **columns):
    """The columns as a Batch."""
    table = pa.record_batch(columns)

    async def main():
        async with uvarrow.stream([table]) as rows:
            return await anext(rows)

    return run(main)


@pytest.mark.parametrize("kind", KINDS)
def test_numpy_takes_a_column_of_each_number(run, kind):
    numbers = np.arange(5, dtype=kind)
    batch = batch_of(run, t=["x"] * 5, n=pa.array(numbers))
    array = np.from_dlpack(batch.column("n"))
    assert array.dtype == kind and array.tolist() == numbers.tolist()
    assert not array.flags.writeable
    assert np.shares_memory(array, np.from_dlpack(batch.column(1)))


@pytest.mark.parametrize("kind", KINDS)
def test_jax_takes_a_column_of_each_number(run, kind):
    batch = batch_of(run, n=pa.array(np.arange(5, dtype=kind)))
    array = jax.dlpack.from_dlpack(batch.column("n"))
    assert array.dtype == kind and array.tolist() == [0, 1, 2, 3, 4]


def test_lists_of_a_fixed_size_are_a_matrix(run):
    column = batch_of(run, n=LISTS).column("n")
    assert len(column) == 4
    assert column.__dlpack_device__() == (1, 0)
    assert np.from_dlpack(column).tolist() == LISTS.to_pylist()
    assert jax.dlpack.from_dlpack(column).tolist() == LISTS.to_pylist()


def test_a_slice_of_a_batch_is_a_slice_of_its_columns(run):
    rows = pa.record_batch({"n": range(10), "l": LISTS.take([0] * 10)})

    class Sliced: # pyarrow slices each column instead
        def __arrow_c_array__(self, requested_schema=None):
            return pa.StructArray.from_arrays(
                rows.columns, rows.schema.names
            ).slice(3, 4).__arrow_c_array__()

    async def main():
        async with uvarrow.stream([Sliced()]) as source:
            return await anext(source)

    batch = run(main)
    assert np.from_dlpack(batch.column("n")).tolist() == [3, 4, 5, 6]
    assert np.from_dlpack(batch.column("l")).tolist() == [[0, 1, 2]] * 4


class Rows:
    """Gives the rows of an array of structs as a batch."""

    def __init__(self, array):
        self._array = array

    def __arrow_c_array__(self, requested_schema=None):
        return self._array.__arrow_c_array__(requested_schema)


def first_batch(run, source, *stages):
    async def main():
        async with uvarrow.stream(source) as rows:
            for stage in stages:
                stage(rows)
            return await anext(rows)

    return run(main)


def with_null_row():
    """Row 1 is null, though its columns have values there."""
    return pa.StructArray.from_arrays(
        [pa.array([1, 2, 3]), LISTS.slice(0, 3)], names=["n", "l"],
        mask=pa.array([False, True, False]))


@pytest.mark.parametrize("name", ["n", "l"])
@pytest.mark.parametrize("stage", [
    lambda rows: rows, lambda rows: rows.rebatch(rows=2),
    lambda rows: rows.limit(rows=2), lambda rows: rows.map(lambda b: b),
    lambda rows: rows.filter(lambda b: True)],
    ids=["none", "rebatch", "limit", "map", "filter"])
def test_a_null_row_of_the_batch_is_no_value(run, name, stage):
    for source in ([Rows(with_null_row())] * 2,
                   pa.chunked_array([with_null_row()])):
        batch = first_batch(run, source, stage)
        assert pa.array(batch).to_pylist()[:2] == [
            {"n": 1, "l": [0, 1, 2]}, None]
        with pytest.raises(BufferError, match="rows of the batch are null"):
            np.from_dlpack(batch.column(name))


def test_null_rows_in_front_and_behind_do_not_count(run):
    array = pa.concat_arrays([with_null_row(), with_null_row()])
    batch = first_batch(run, [Rows(array.slice(2, 2))])
    assert np.from_dlpack(batch.column("n")).tolist() == [3, 1]
    assert np.from_dlpack(batch.column("l")).tolist() == [[6, 7, 8], [0, 1, 2]]


@pytest.mark.parametrize("values", [
    pa.array([1, None, 3, 4, None]), LISTS.take([0, None, 1, 2, None]),
    pa.array([[1], None, [3], [4], None], pa.list_(pa.int64(), 1))])
def test_nulls_in_front_and_behind_do_not_count(run, values):
    rows = pa.StructArray.from_arrays([values], names=["n"])
    batch = first_batch(run, [Rows(rows.slice(2, 2))])
    assert np.from_dlpack(batch.column("n")).tolist() == \
        values.slice(2, 2).to_pylist()
    batch = first_batch(run, [Rows(rows.slice(1, 2))])
    with pytest.raises(BufferError, match="nulls"):
        np.from_dlpack(batch.column("n"))


def test_other_libraries_see_the_rows_of_a_slice_alone(run):
    rows = pa.StructArray.from_arrays([pa.array(range(9))], names=["n"])
    for part in (rows.slice(3, 4), rows.slice(0, 4), rows.slice(9)):
        batch = first_batch(run, [Rows(part)])
        expected = part.field(0).to_pylist()
        assert batch.to_pyarrow().column(0).to_pylist() == expected
        assert pa.record_batch(batch).column(0).to_pylist() == expected
        assert pa.array(batch).field(0).to_pylist() == expected
        assert np.from_dlpack(batch.column(0)).tolist() == expected
    batch = first_batch(run, [Rows(with_null_row())],
                        lambda rows: rows.limit(rows=1))
    assert batch.to_pyarrow().to_pydict() == {"n": [1], "l": [[0, 1, 2]]}


def test_a_tensor_outlives_its_batch(run):
    batch = batch_of(run, n=range(1000))
    column = batch.column("n")
    array = np.from_dlpack(column)
    batch.close()
    del batch, column
    gc.collect()
    assert array.tolist() == list(range(1000))


def test_a_capsule_that_nothing_takes_releases_the_column(run):
    before = pa.total_allocated_bytes()
    column = batch_of(run, n=range(100000)).column("n")
    for version in (None, (0, 8), (1, 0)):
        del version
        assert "dltensor" in repr(column.__dlpack__())
        assert "dltensor_versioned" in repr(column.__dlpack__(
            max_version=(1, 0)))
    del column
    gc.collect()
    assert pa.total_allocated_bytes() == before


@pytest.mark.parametrize("data,why", [
    (pa.array([1, None]), "nulls"), (pa.array(["x"]), "format \"u\""),
    (pa.array([True]), "format \"b\""),
    (pa.array(["x"]).dictionary_encode(), "dictionary")])
def test_what_is_no_tensor_is_refused(run, data, why):
    column = batch_of(run, n=data).column("n")
    with pytest.raises(BufferError, match=why):
        np.from_dlpack(column)


def test_a_column_stays_where_it_is(run):
    column = batch_of(run, n=[1]).column("n")
    assert "dltensor" in repr(column.__dlpack__(dl_device=(1, 0), copy=False))
    for wrong in ({"dl_device": (2, 0)}, {"copy": True}):
        with pytest.raises(BufferError, match="not copied"):
            column.__dlpack__(**wrong)
    for wrong in ({"stream": "x"}, {"max_version": 1}, {"max_version": "x"}):
        with pytest.raises(TypeError):
            column.__dlpack__(**wrong)
    with pytest.raises(BufferError, match="no stream"):
        column.__dlpack__(stream=-2)


def test_columns_have_names_and_numbers(run):
    batch = batch_of(run, n=[1], t=["x"])
    for wrong in ("x", 2, -1):
        with pytest.raises((KeyError, IndexError)):
            batch.column(wrong)
    with pytest.raises(TypeError):
        batch.column(1.5)
    batch.close()
    with pytest.raises(ValueError, match="closed"):
        batch.column(0)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("make", [np.asarray, jax.numpy.asarray],
                         ids=["numpy", "jax"])
def test_a_tensor_is_a_batch(kind, make):
    tensor = make(np.arange(6, dtype=kind).reshape(3, 2))
    batch = uvarrow.from_dlpack(tensor, name="n")
    del tensor
    gc.collect()
    assert batch.schema.names == ["n"] and len(batch) == 3
    column = batch.to_pyarrow().column("n")
    assert column.type == pa.list_(pa.from_numpy_dtype(kind), 2)
    assert column.to_pylist() == [[0, 1], [2, 3], [4, 5]]


def test_a_tensor_shares_its_data():
    tensor = np.arange(6)
    batch = uvarrow.from_dlpack(tensor)
    tensor[0] = 7
    assert np.shares_memory(tensor, np.from_dlpack(batch.column("")))
    assert batch.to_pyarrow().column(0).to_pylist() == [7, 1, 2, 3, 4, 5]


def test_tensors_go_through_a_stream(run):
    async def main():
        batches = [uvarrow.from_dlpack(np.full(3, i), "n") for i in range(4)]
        async with uvarrow.stream(batches).rebatch(rows=6) as rows:
            return [batch.to_pyarrow().column(0).to_pylist()
                    async for batch in rows]

    assert run(main) == [[0, 0, 0, 1, 1, 1], [2, 2, 2, 3, 3, 3]]


class Older:
    """Knows DLPack without versions, and may be on another device."""

    def __init__(self, tensor, device=(1, 0)):
        self._tensor = tensor
        self._device = device

    def __dlpack_device__(self):
        return self._device

    def __dlpack__(self):
        return self._tensor.__dlpack__()


def test_an_older_producer_is_understood():
    batch = uvarrow.from_dlpack(Older(np.arange(3)))
    assert batch.to_pyarrow().column(0).to_pylist() == [0, 1, 2]


@pytest.mark.parametrize("tensor,error", [
    (np.arange(6).reshape(3, 2).T, BufferError),
    (np.array([1j]), BufferError), (np.array(1), BufferError),
    (Older(np.arange(3), (2, 0)), BufferError), (object(), TypeError)])
def test_what_is_no_column_is_refused(tensor, error):
    with pytest.raises(error):
        uvarrow.from_dlpack(tensor)


def test_what_is_no_tensor_is_no_batch():
    for wrong in (object(), np.arange(3).__dlpack_device__()):
        with pytest.raises(TypeError, match="dltensor"):
            uvarrow._core.from_dlpack(wrong, "n")
    capsule = np.arange(3).__dlpack__()
    uvarrow._core.from_dlpack(capsule, "n")
    with pytest.raises(ValueError):
        uvarrow._core.from_dlpack(capsule, "n")


# ---- every way that moves rows of a batch with a bitmap ---------------------

WAYS = {
    "none": lambda rows: rows, "map": lambda rows: rows.map(lambda b: b),
    "filter": lambda rows: rows.filter(lambda b: True),
    "one by one": lambda rows: rows.rebatch(rows=1),
    "joined": lambda rows: rows.rebatch(rows=5),
    "limit": lambda rows: rows.limit(1000),
    "parallel": lambda rows: rows.map(lambda b: b).parallel(2),
    "reader": lambda rows: uvarrow.stream(rows.to_reader()),
}


def random_rows(seed):
    """Arrays of structs with offsets, some of which have a null row."""
    chance = random.Random(seed)
    size = 24
    inner = pa.StructArray.from_arrays(
        [pa.array(range(size))], names=["z"],
        mask=pa.array([chance.random() < 0.3 for _ in range(size)]))
    whole = pa.StructArray.from_arrays(
        [pa.array(range(size)), pa.array([f"text {i}" for i in range(size)]),
         inner], names=["n", "t", "s"],
        mask=pa.array([chance.random() < 0.15 for _ in range(size)]))
    parts = []
    for _ in range(4):
        at = chance.randrange(size)
        parts.append(whole.slice(at, chance.randrange(6)))
        if chance.random() < 0.5:
            parts[-1].null_count # which is exported then, in place of -1
    return pa.chunked_array(parts, whole.type)


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_null_rows_are_those_of_the_source_in_every_way(way):
    async def main(rows):
        async with way(uvarrow.stream(rows)) as stream:
            return [batch async for batch in stream]

    for seed in range(40):
        rows = random_rows(seed)
        expected = rows.to_pylist()
        for batch in run_on("asyncio", main, rows):
            given, expected = expected[:len(batch)], expected[len(batch):]
            assert pa.array(batch).to_pylist() == given, seed
            if None in given:
                with pytest.raises(BufferError):
                    np.from_dlpack(batch.column("n"))
                with pytest.raises(pa.ArrowInvalid, match="null"):
                    batch.to_pyarrow()
            else:
                assert np.from_dlpack(batch.column("n")).tolist() == [
                    row["n"] for row in given]
                assert batch.to_pyarrow().to_pylist() == given
        assert expected == []
