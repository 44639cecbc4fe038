# SPDX-License-Identifier: Apache-2.0
"""Reads a Parquet file or dataset and prints how far it is, while another task
runs. Usage: progress.py PATH"""
import asyncio
import sys
import time

import pyarrow.dataset

import uvarrow


async def report(rows, every=0.2):
    """Prints rows, and rows a second, until it is cancelled."""
    begin, before = time.perf_counter(), 0
    while True:
        await asyncio.sleep(every)
        seconds = time.perf_counter() - begin
        read = rows.stats()[0].rows
        print(f"\r{read:>14,} rows  {(read - before) / every:>14,.0f} rows/s  "
              f"{seconds:5.1f} s", end="", file=sys.stderr)
        before = read


async def main(path):
    begin, total, size = time.perf_counter(), 0, 0
    scanner = pyarrow.dataset.dataset(path).scanner
    async with uvarrow.stream(lambda: scanner().to_reader()) as rows:
        progress = asyncio.create_task(report(rows))
        async for batch in rows:
            total += len(batch)
            size += batch.nbytes
        progress.cancel()
    seconds = time.perf_counter() - begin
    print(f"\r{total:,} rows, {size / 1e6:,.1f} MB in {seconds:.2f} s, "
          f"{total / seconds:,.0f} rows/s")


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
