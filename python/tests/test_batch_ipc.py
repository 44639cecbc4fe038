# SPDX-License-Identifier: Apache-2.0
"""One batch as bytes of Arrow IPC."""
import pyarrow as pa
import pytest

import uvarrow


def batches(run, table, build=lambda rows: rows):
    async def main():
        return await build(uvarrow.stream(table)).read_all()

    return run(main)


def read(data):
    return pa.ipc.open_stream(data).read_all()


@pytest.mark.parametrize("compression", [None, "lz4", "zstd"])
def test_pyarrow_reads_it(run, compression):
    table = pa.table({"n": range(10000), "t": ["text"] * 10000,
                      "d": pa.array(["a", "b"] * 5000).dictionary_encode()})
    [batch] = batches(run, table)
    data = batch.ipc(compression=compression)
    assert type(data) is bytes
    assert read(data) == table
    assert read(batch.ipc()) == table # the batch is as it was
    assert (len(data) < len(batch.ipc())) == (compression is not None)


def test_of_a_slice_its_rows_alone(run):
    table = pa.table({"n": range(100000), "b": [True, False] * 50000})
    found = batches(run, table, lambda rows: rows.rebatch(rows=999).limit(1500))
    assert [len(read(batch.ipc())) for batch in found] == [999, 501]
    assert read(found[1].ipc()) == table.slice(999, 501)
    assert len(found[1].ipc()) < 10000


def test_bytes_outlive_the_batch(run):
    [batch] = batches(run, pa.table({"n": [1, 2]}))
    data = batch.ipc()
    batch.close()
    assert read(data).column("n").to_pylist() == [1, 2]
    with pytest.raises(ValueError, match="the batch is closed"):
        batch.ipc()


def test_without_rows(run):
    empty = pa.record_batch({"n": pa.array([], pa.int64())})
    [batch] = batches(run, [empty])
    assert read(batch.ipc()) == pa.Table.from_batches([empty])


@pytest.mark.parametrize("compression, error, text", [
    ("gzip", ValueError, "compression must be 'lz4' or 'zstd', not 'gzip'"),
    (1, TypeError, "compression must be 'lz4' or 'zstd', not int"),
    (b"lz4", TypeError, "compression must be 'lz4' or 'zstd', not bytes"),
])
def test_another_compression_is_refused(run, compression, error, text):
    [batch] = batches(run, pa.table({"n": [1]}))
    with pytest.raises(error, match=text):
        batch.ipc(compression=compression)


def test_rows_that_are_null_cannot_be_written(run):
    rows = pa.StructArray.from_arrays([pa.array([1, 2])], ["n"],
                                      mask=pa.array([False, True]))

    class Rows:
        def __arrow_c_array__(self, requested_schema=None):
            return rows.__arrow_c_array__()

    [batch] = batches(run, [Rows()])
    with pytest.raises(uvarrow.Error, match="null"):
        batch.ipc()
