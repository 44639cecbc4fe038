# SPDX-License-Identifier: Apache-2.0
"""Masks: the rows that a function of filter() selects."""
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import uvarrow


def numbers(rows=100, size=10):
    table = pa.table({"n": range(rows), "t": [str(i) for i in range(rows)]})
    return pa.Table.from_batches(table.to_batches(max_chunksize=size))


def filtered(run, function, source=None):
    async def main():
        batches = await uvarrow.stream(
            numbers() if source is None else source).filter(function).read_all()
        return [batch.to_pyarrow() for batch in batches]

    return run(main)


def of(batches):
    return [value for batch in batches for value in batch.column("n").to_pylist()]


@pytest.mark.parametrize("mask", [
    lambda n: pc.equal(pc.bit_wise_and(n, 1), 1),
    lambda n: n.to_numpy() % 2 == 1,
    lambda n: memoryview(n.to_numpy() % 2 == 1),
    lambda n: np.repeat(n.to_numpy() % 2 == 1, 3)[::3], # with strides
    lambda n: pa.concat_arrays([pa.array([True] * 5), pc.equal(
        pc.bit_wise_and(n, 1), 1)])[5:], # with an offset
])
def test_a_mask_selects_rows(run, mask):
    batches = filtered(run, lambda batch: mask(batch.to_pyarrow().column("n")))
    assert of(batches) == list(range(1, 100, 2))
    assert batches[0].column("t").to_pylist() == ["1", "3", "5", "7", "9"]


def test_a_null_selects_no_row(run):
    batches = filtered(run, lambda batch: pa.array([True, None, False] * 3 + [None]))
    assert of(batches) == [i for i in range(100) if i % 10 in (0, 3, 6)]


def test_a_batch_without_selected_rows_is_left_out(run):
    batches = filtered(run, lambda batch: np.full(10, batch.ordinal == 3))
    assert len(batches) == 1
    assert of(batches) == list(range(30, 40))


def test_rows_that_follow_one_another_are_not_copied(run):
    table = numbers(100, 100)
    address = table.column("n").chunk(0).buffers()[1].address
    batches = filtered(run, lambda batch: np.arange(100) >= 40, table)
    assert of(batches) == list(range(40, 100))
    assert batches[0].column("n").buffers()[1].address == address


def test_a_batch_without_rows(run):
    empty = numbers().slice(0, 0).to_batches() or [
        pa.record_batch({"n": pa.array([], pa.int64())})]
    assert filtered(run, lambda batch: np.zeros(0, bool), empty) == []


def test_numbers_of_numpy_decide_about_the_batch(run):
    batches = filtered(run, lambda batch: np.bool_(batch.ordinal < 2))
    assert of(batches) == list(range(20))


def test_a_stage_of_rows_follows(run):
    async def main():
        rows = uvarrow.stream(numbers()).filter(
            lambda batch: np.arange(10) < 3).rebatch(rows=30).limit(25)
        return [len(batch) for batch in await rows.read_all()]

    assert run(main) == [25]


class Malformed:
    """An array of booleans without its buffer of values."""

    def __arrow_c_array__(self, requested_schema=None):
        return pa.array([None, None], pa.null()).__arrow_c_array__()


@pytest.mark.parametrize("mask, error, text", [
    (lambda: np.ones(9, bool), ValueError, "has 9 values, and the batch 10 rows"),
    (lambda: pa.array([True] * 11), ValueError, "has 11 values"),
    (lambda: np.ones(10, np.uint8), TypeError, "one dimension, of booleans"),
    (lambda: np.ones((2, 5), bool), TypeError, "one dimension, of booleans"),
    (lambda: b"0123456789", TypeError, "one dimension, of booleans"),
    (lambda: pa.array([1] * 10), TypeError, "booleans, not of the format 'l'"),
    (lambda: pa.array([True] * 10).dictionary_encode(), TypeError, "booleans"),
    (lambda: pa.record_batch({"n": [True] * 10}), TypeError, "booleans"),
    (Malformed, TypeError, "booleans, not of the format 'n'"),
    (lambda: [True] * 10, TypeError, "a bool, a number, a Batch or a mask"),
])
def test_another_mask_is_an_error(run, mask, error, text):
    with pytest.raises(error, match=text) as caught:
        filtered(run, lambda batch: mask())
    assert "the result of the function of filter()" in str(caught.value)


def test_a_closed_batch_has_no_rows(run):
    def function(batch):
        batch.close()
        return np.ones(10, bool)

    with pytest.raises(ValueError, match="the batch is closed"):
        filtered(run, function)
