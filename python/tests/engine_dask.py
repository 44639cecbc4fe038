# SPDX-License-Identifier: Apache-2.0
"""uvarrow.dask with Dask, as test_engines.py starts it: a cluster of two workers,
which are processes of their own."""
import asyncio
import os
import time

import dask
import pyarrow as pa
from distributed import Client, LocalCluster

import uvarrow
import uvarrow.dask

TASKS = 40


def made(number):
    return pa.table({"n": [number] * 1000})


def breaks(number):
    if number == 5:
        raise ValueError("the task is broken")
    return made(number)


def sleeps(number):
    if number == 1:
        time.sleep(20)
    return made(number)


def dies(number, path):
    if number == 7 and not os.path.exists(path):
        with open(path, "w", encoding="ascii"):
            pass
        os._exit(1)
    return made(number)


async def numbers(rows):
    async with rows:
        return [batch.to_pyarrow().column(0)[0].as_py() async for batch in rows]


async def rows_come_in_order(client):
    tasks = [(made, number) for number in range(TASKS)]
    assert await numbers(uvarrow.dask.stream(client, tasks)) == list(range(TASKS))
    delayed = (dask.delayed(made)(number) for number in range(TASKS))
    assert await numbers(
        uvarrow.dask.stream(client, delayed, ahead=8)) == list(range(TASKS))
    assert await numbers(uvarrow.dask.stream(client, [])) == []


async def so_many_are_computed_ahead(client):
    asked = []

    def tasks():
        for number in range(1000):
            asked.append(number)
            yield made, number

    async with uvarrow.dask.stream(client, tasks(), ahead=3, window=1) as rows:
        await anext(rows)
        before = -1
        while before != (before := len(asked)):
            await asyncio.sleep(0.3) # until no more are
        assert before < 12, before


async def an_error_arrives(client):
    tasks = [(breaks, number) for number in range(TASKS)]
    try:
        await numbers(uvarrow.dask.stream(client, tasks))
    except ValueError as error:
        assert str(error) == "the task is broken"
    else:
        raise AssertionError("no error")


async def a_lost_worker_loses_no_row(client):
    path = os.path.join(os.environ["UVA_ENGINE_FOLDER"], "died")
    tasks = [(dies, number, path) for number in range(TASKS)]
    assert await numbers(uvarrow.dask.stream(client, tasks)) == list(range(TASKS))
    assert os.path.exists(path)


async def a_stream_is_left_while_a_task_runs(client):
    tasks = [(sleeps, number) for number in range(TASKS)]
    begin = time.monotonic()
    async with uvarrow.dask.stream(client, tasks) as rows:
        await anext(rows)
        await rows.aclose(seconds=None)
    assert time.monotonic() - begin < 15
    while client.futures:
        await asyncio.sleep(0.05) # Dask frees them


def main():
    with (LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None,
                       memory_limit=0) as cluster, Client(cluster) as client):
        for test in (rows_come_in_order, so_many_are_computed_ahead,
                     an_error_arrives, a_lost_worker_loses_no_row,
                     a_stream_is_left_while_a_task_runs):
            begin = time.monotonic()
            asyncio.run(test(client))
            print(f"{test.__name__}: {time.monotonic() - begin:.1f} s", flush=True)
    print("all of them", flush=True)


if __name__ == "__main__": # its workers import this file
    main()
