# SPDX-License-Identifier: Apache-2.0
"""The types refuse these: each line that ends in `wrong` is an error to a type
checker, and no other line is. Checked by test_types.py, and never run."""
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa

import uvarrow
import uvarrow.adbc
import uvarrow.gevent


async def later(batch: uvarrow.Batch) -> bool:
    return True


async def later_batch(batch: uvarrow.Batch) -> uvarrow.Batch:
    return batch


async def double_later(batch: uvarrow.Batch) -> int:
    return 5


async def later_text(batch: uvarrow.Batch) -> str:
    return "text"


async def later_items() -> AsyncIterator[uvarrow.Batch]:
    async for batch in uvarrow.stream([]):
        yield batch


async def later_bytes() -> AsyncIterator[bytes]:
    yield b""


async def later_numbers() -> AsyncIterator[int]:
    yield 5


async def open_later() -> uvarrow.Reader:
    return uvarrow.stream([]).to_reader()


def wrong(batch: uvarrow.Batch, rows: uvarrow.Stream) -> None:
    uvarrow.stream(42) # wrong
    uvarrow.stream(None) # wrong
    uvarrow.stream("x.parquet") # wrong
    uvarrow.stream(Path("x.parquet")) # wrong
    uvarrow.stream(b"x") # wrong
    uvarrow.stream(open("x", "rb")) # wrong
    uvarrow.stream(open("x")) # wrong
    uvarrow.stream([1, 2]) # wrong
    uvarrow.stream(["x.parquet"]) # wrong
    uvarrow.stream({"n": [1]}) # wrong
    uvarrow.stream(object()) # wrong
    uvarrow.stream(lambda: 42) # wrong
    uvarrow.stream([batch], window="x") # wrong
    uvarrow.stream(later_numbers()) # wrong
    uvarrow.stream(later_numbers) # wrong
    uvarrow.stream(double_later) # wrong
    uvarrow.stream([later_items(), 5]) # wrong
    uvarrow.file(5) # wrong
    uvarrow.file("x", format="xml") # wrong
    uvarrow.ipc_reader(5) # wrong
    uvarrow.ipc_reader(later_items()) # wrong
    uvarrow.stream([batch], interrupt=5) # wrong
    rows.map(5) # wrong
    rows.map(later) # wrong
    rows.map(double_later) # wrong
    rows.map(lambda batch: batch, concurrency=2) # wrong
    rows.map(later_batch, concurrency="x") # wrong
    rows.map(later_batch, ordered=None) # wrong
    rows.map(lambda batch: 5) # wrong
    rows.map(lambda batch: batch, 5) # wrong
    rows.filter(5) # wrong
    rows.filter(later_text) # wrong
    rows.filter(lambda batch: True, concurrency=2) # wrong
    rows.transform(5) # wrong
    rows.transform(lambda batch: batch) # wrong
    rows.transform(later_items) # wrong
    rows.throttle(batches="x") # wrong
    rows.retry(lambda: None) # wrong
    rows.retry(lambda failure: 5) # wrong
    rows.retry(lambda failure: batch) # wrong
    rows.tee(slow="quick") # wrong
    rows.priority("x") # wrong
    uvarrow.concat(rows, [batch]) # wrong
    uvarrow.merge(rows, schema=5) # wrong
    uvarrow.configure(memory_bytes="x") # wrong
    uvarrow.adbc.Pool("sqlite").partition([5]) # wrong
    uvarrow.adbc.Pool("sqlite").partition(b"x", timeout={"never": 5}) # wrong
    uvarrow.adbc.Pool("sqlite").query("SELECT 1", parallel="x") # wrong
    uvarrow.adbc.Pool("sqlite").objects(depth="rows") # wrong
    rows.filter(lambda batch: "text") # wrong
    rows.filter(lambda batch: [batch]) # wrong
    rows.filter(lambda batch: None) # wrong
    rows.filter(print) # wrong
    rows.cast(5) # wrong
    batch.ipc(compression="gzip") # wrong
    batch.select([True]) # wrong
    batch.num_rows = 5 # wrong
    rows.progress(5) # wrong
    rows.progress(file=5) # wrong
    rows.limit("x") # wrong
    rows.name(5) # wrong
    rows.parallel(2, unordered="no") # wrong
    rows.timeout(first="x") # wrong
    uvarrow.merge(rows, [batch]) # wrong
    uvarrow.ipc([batch]) # wrong
    uvarrow.ipc(rows, compression="gzip") # wrong
    uvarrow.asgi.response(rows, 5) # wrong
    uvarrow.asgi.response(rows, {}, formats=["xml"]) # wrong
    uvarrow.gevent.run(5) # wrong
    uvarrow.gevent.each([batch]) # wrong
    uvarrow.csv([batch]) # wrong
    uvarrow.csv(rows, delimiter=44) # wrong
    uvarrow.json(rows, array="yes") # wrong
    uvarrow.to_reader([batch], batch) # wrong
    uvarrow.to_reader(later_items, batch) # wrong
    uvarrow.to_reader(later_items(), 5) # wrong
    uvarrow.from_dlpack(5) # wrong
    uvarrow.Reader(5) # wrong
    uvarrow.adbc.Pool(5) # wrong
    uvarrow.adbc.Pool("sqlite", options={"a": None}) # wrong
    uvarrow.adbc.Pool("sqlite").ingest("t", [1]) # wrong
    uvarrow.adbc.Pool("sqlite").ingest("t", {"a": [1]}) # wrong

    uvarrow.adbc.connect(5) # wrong
    uvarrow.adbc.connect("sqlite:x").cursor() # wrong
    with uvarrow.adbc.connect("sqlite:x"): # wrong
        pass
    uvarrow.adbc.Pool("sqlite").connection(autocommit="yes") # wrong

    uvarrow.stream(open_later)
    uvarrow.stream(later_items)
    uvarrow.stream(later_items())
    uvarrow.stream([later_items(), batch, lambda: batch, rows])
    uvarrow.stream([uvarrow.file(Path("x")), uvarrow.file("y", format="csv")])
    uvarrow.file(open("x", "rb"))
    uvarrow.ipc_reader(later_bytes())
    rows.map(later_batch).map(partial(later_batch)).map(later_batch, concurrency=4)
    rows.map(lambda batch: later_batch(batch), concurrency=4, ordered=False)
    rows.filter(later).filter(lambda batch: later(batch), concurrency=2)
    rows.transform(lambda batch: [batch], finish=lambda: iter([batch]))
    rows.retry(lambda failure: rows.tee() if failure.rows else None)
    uvarrow.stream([uvarrow.stream(batch).to_reader(), batch])
    uvarrow.stream(lambda: iter([uvarrow.stream(batch).to_reader()]))
    uvarrow.stream(uvarrow.stream(batch).to_reader())
    rows.filter(lambda batch: batch).filter(len).filter(lambda batch: True)
    rows.filter(lambda batch: 0.5).filter(lambda batch: np.bool_(True))
    rows.filter(lambda batch: pa.scalar(True).as_py())
    rows.filter(lambda batch: np.ones(3, bool)).filter(lambda batch: pa.array([True]))
    uvarrow.to_reader(later_items(), batch)
    uvarrow.adbc.Pool("sqlite", options={"a": 1, "b": Path("x"), "c": True})


async def wrong_cursor(cursor: uvarrow.adbc.Cursor) -> None:
    await cursor.execute(b"SELECT 1") # wrong
    await cursor.execute("SELECT ?", 1) # wrong
    await cursor.execute("SELECT 1", timeout="x") # wrong
    await cursor.executemany("SELECT ?", [1]) # wrong
    await cursor.executemany("SELECT ?", 5) # wrong
    await cursor.adbc_ingest("t", [{"a": 1}], "upsert") # wrong
    for row in cursor: # wrong
        pass
    async with cursor.connection.transaction() as transaction:
        transaction.commit() # wrong

    await cursor.execute("SELECT ?", ["x"])
    await cursor.executemany("SELECT ?", ([i] for i in range(3)))
