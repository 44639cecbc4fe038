# SPDX-License-Identifier: Apache-2.0
"""Slices that pyarrow makes have the size of their rows: for every type, at
random, their sizes add up to the size of the array that they were cut from."""
import random

import pyarrow as pa
import pytest

import uvarrow
from conftest import run_on

ROWS = 400


def maybe(rng, make):
    return None if rng.random() < 0.1 else make()


def text(rng):
    return "x" * rng.choice([0, 1, 5, 12, 13, 40])


def a_list(rng, make):
    return [make(rng) for _ in range(rng.randrange(5))]


def number(rng):
    return rng.randrange(100)


def row(rng):
    return {"a": maybe(rng, lambda: number(rng)), "b": text(rng)}


def column(type_, make):
    def build(rng):
        return pa.array([maybe(rng, lambda: make(rng)) for _ in range(ROWS)],
                        type_)

    return build


def lists_of(type_, make):
    return column(type_, lambda rng: a_list(rng, make))


def dense_union(rng):
    ids = [rng.randrange(2) for _ in range(ROWS)]
    offsets, count = [], [0, 0]
    for i in ids:
        offsets.append(count[i])
        count[i] += 1
    return pa.UnionArray.from_dense(
        pa.array(ids, pa.int8()), pa.array(offsets, pa.int32()),
        [pa.array([number(rng) for _ in range(count[0])], pa.int64()),
         pa.array([text(rng) for _ in range(count[1])])])


def sparse_union(rng):
    return pa.UnionArray.from_sparse(
        pa.array([rng.randrange(2) for _ in range(ROWS)], pa.int8()),
        [column(pa.int64(), number)(rng), column(pa.string(), text)(rng)])


def runs(rng):
    ends, values = [], []
    while not ends or ends[-1] < ROWS:
        ends.append(min(ROWS, (ends or [0])[-1] + 1 + rng.randrange(9)))
        values.append(text(rng))
    return pa.RunEndEncodedArray.from_arrays(pa.array(ends, pa.int32()),
                                             pa.array(values))


def list_views(rng):
    items = column(pa.string(), text)(rng)
    offsets = [rng.randrange(ROWS - 5) for _ in range(ROWS)]
    return pa.ListViewArray.from_arrays(
        pa.array(offsets, pa.int32()),
        pa.array([rng.randrange(5) for _ in range(ROWS)], pa.int32()), items)


STRUCT = pa.struct([("a", pa.int32()), ("b", pa.string())])
PLAIN = {
    "null": lambda rng: pa.nulls(ROWS),
    "bool": column(pa.bool_(), lambda rng: rng.random() < 0.5),
    "int8": column(pa.int8(), number),
    "int64": column(pa.int64(), number),
    "decimal": column(pa.decimal128(19, 2), number),
    "decimal256": column(pa.decimal256(60, 2), number),
    "fixed binary": column(pa.binary(3), lambda rng: b"abc"),
    "date": column(pa.date32(), number),
    "string": column(pa.string(), text),
    "large binary": column(pa.large_binary(), lambda rng: text(rng).encode()),
    "list": lists_of(pa.list_(pa.string()), text),
    "large list": lists_of(pa.large_list(pa.int64()), number),
    "list of lists": column(
        pa.list_(pa.list_(pa.string())),
        lambda rng: a_list(rng, lambda rng: a_list(rng, text))),
    "fixed list": column(pa.list_(pa.string(), 2),
                         lambda rng: [text(rng), text(rng)]),
    "struct": column(STRUCT, row),
    "list of structs": lists_of(pa.list_(STRUCT), row),
    "map": column(pa.map_(pa.string(), pa.int32()),
                  lambda rng: [(text(rng), number(rng))]),
    "sparse union": sparse_union,
    "dense union": dense_union,
}
SHARING = {
    "string view": column(pa.string_view(), text),
    "runs": runs,
    "list views": list_views,
    "dictionary": lambda rng: column(pa.string(), text)(
        rng).dictionary_encode(),
    "list of dictionaries": lambda rng: pa.ListArray.from_arrays(
        pa.array(range(ROWS + 1), pa.int32()),
        column(pa.string(), text)(rng).dictionary_encode()),
}


async def measured(batches):
    async with uvarrow.stream(batches) as rows:
        return [(batch.nbytes, batch.get_total_buffer_size())
                async for batch in rows]


def cut(rng, batch, depth=2):
    """Slices of a batch, and of some of these again, in order."""
    at = 0
    while at < len(batch):
        count = min(len(batch) - at, 1 + rng.randrange(rng.choice([1, 8, 99])))
        slice_ = batch.slice(at, count)
        if depth > 0 and rng.random() < 0.5:
            yield from cut(rng, slice_, depth - 1)
        else:
            yield slice_
        at += count


def columns_in(type_):
    return 1 + sum(columns_in(type_.field(i).type)
                   for i in range(type_.num_fields))


@pytest.mark.parametrize("offset", [0, 7])
@pytest.mark.parametrize("name", [*PLAIN, *SHARING])
def test_slices_add_up_to_their_batch(run, name, offset):
    async def main():
        rng = random.Random(f"{name} {offset}")
        array = (PLAIN | SHARING)[name](rng).slice(offset)
        whole = pa.record_batch([array], ["x"])
        allowed = 64 * columns_in(array.type)
        [(size, memory)] = await measured(
            pa.RecordBatchReader.from_batches(whole.schema, [whole]))
        parts = list(cut(rng, whole))
        assert len(parts) > 8
        sizes = await measured(
            pa.RecordBatchReader.from_batches(whole.schema, parts))
        total = sum(size for size, _ in sizes)
        assert abs(total - size) <= size / 100 + allowed
        assert max(memory for _, memory in sizes) <= memory
        if name in PLAIN:
            assert abs(size - whole.nbytes) <= size / 100 + allowed
        if name in PLAIN and offset == 0:
            assert size <= memory

    run(main)


@pytest.mark.parametrize("most", [100, 1000])
@pytest.mark.parametrize("name", [*PLAIN, *SHARING])
def test_a_batch_has_no_more_bytes_than_rebatch_was_told(name, most):
    async def main():
        rng = random.Random(f"{name} {most}")
        array = (PLAIN | SHARING)[name](rng)
        whole = pa.record_batch([array], ["x"])
        parts = [whole, *cut(rng, whole), whole.slice(3)]
        reader = pa.RecordBatchReader.from_batches(whole.schema, parts)
        got = 0
        async with uvarrow.stream(reader).rebatch(bytes=most) as rows:
            async for batch in rows:
                got += len(batch)
                assert batch.nbytes <= most or len(batch) == 1
        assert got == sum(len(part) for part in parts)

    run_on("asyncio", main)


@pytest.mark.parametrize("most", [50, 500])
@pytest.mark.parametrize("name", [*PLAIN, *SHARING])
def test_rebatch_cuts_a_batch_as_seldom_as_it_can(run, name, most):
    """Also where a dictionary, which only the first row has, is larger than a
    batch may be."""
    async def main():
        array = (PLAIN | SHARING)[name](random.Random(name))
        reader = pa.RecordBatchReader.from_batches(
            pa.schema([("x", array.type)]), [pa.record_batch([array], ["x"])])
        async with uvarrow.stream(reader).rebatch(bytes=most) as rows:
            sizes = [batch.nbytes async for batch in rows]
        assert all(a + b > most for a, b in zip(sizes, sizes[1:]))

    run(main)


def test_a_bitmap_without_nulls_takes_what_it_takes(run):
    async def main():
        array = pa.array([None, *range(47)]).slice(8)
        whole = pa.record_batch([array], ["x"])
        reader = pa.RecordBatchReader.from_batches(whole.schema, [whole])
        async with uvarrow.stream(reader).rebatch(bytes=40) as rows:
            sizes = [(len(batch), batch.nbytes) async for batch in rows]
        assert sum(count for count, _ in sizes) == len(array)
        assert max(size for _, size in sizes) <= 40

    run(main)
