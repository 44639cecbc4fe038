# SPDX-License-Identifier: Apache-2.0
"""Iteration: the batches, their order, and that other tasks run."""
import asyncio
import errno
import threading
import types

import anyio
import pyarrow as pa
import pytest

import uvarrow
from conftest import in_thread
from uvarrow import _core


def numbers(rows=1000, size=10):
    table = pa.table({"n": range(rows), "t": [str(i) for i in range(rows)]})
    return pa.Table.from_batches(table.to_batches(max_chunksize=size))


def test_all_batches_arrive_in_order(run):
    table = numbers()

    async def main():
        async with uvarrow.stream(table) as rows:
            return [batch async for batch in rows]

    batches = run(main)
    assert [batch.ordinal for batch in batches] == list(range(100))
    assert pa.Table.from_batches(
        [batch.to_pyarrow() for batch in batches]) == table


def test_schema_is_known_before_the_first_batch(run):
    async def main():
        async with uvarrow.stream(numbers()) as rows:
            schema = await rows.schema()
            assert await rows.schema() is schema
            first = await anext(rows)
            assert first.schema is schema
            return schema

    schema = run(main)
    assert schema.names == ["n", "t"]
    assert schema.to_pyarrow() == numbers().schema
    assert str(schema) == "n: int64\nt: string"
    assert len(schema) == 2


@pytest.mark.parametrize("window", [1, 2, 16, 64])
def test_any_window_gives_everything(run, window):
    async def main():
        async with uvarrow.stream(numbers(), window=window,
                                  max_bytes=1) as rows:
            return sum([len(batch) async for batch in rows])

    assert run(main) == 1000


def test_no_more_is_read_ahead_than_the_window(run, gate):
    read = []

    def source():
        for i in range(100):
            read.append(i)
            yield pa.record_batch({"n": [i]})

    async def main():
        async with uvarrow.stream(source(), window=2) as rows:
            for i in range(20):
                await anext(rows)
                await anyio.lowlevel.checkpoint()
                assert len(read) <= i + 1 + 2 + 2 + 2

    run(main)


def test_a_batch_is_exported_more_than_once(run):
    async def main():
        async with uvarrow.stream(numbers(10)) as rows:
            batch = await anext(rows)
        assert pa.record_batch(batch) == batch.to_pyarrow()
        assert pa.record_batch(batch).num_rows == len(batch) == 10
        schema, array = batch.__arrow_c_device_array__()
        assert "arrow_device_array" in repr(array)
        assert "arrow_schema" in repr(schema)
        assert batch.nbytes == 10 * 8 + 11 * 4 + 10
        assert batch.device == (1, -1)
        batch.close()
        with pytest.raises(ValueError, match="closed"):
            batch.to_pyarrow()

    run(main)


def test_a_batch_outlives_its_stream_and_its_loop(run):
    async def main():
        async with uvarrow.stream(numbers(10)) as rows:
            return await anext(rows)

    assert run(main).to_pyarrow().column("n").to_pylist() == list(range(10))


def test_the_end_is_sticky(run):
    async def main():
        async with uvarrow.stream(numbers(10)) as rows:
            await anext(rows)
            for _ in range(3):
                with pytest.raises(StopAsyncIteration):
                    await anext(rows)

    run(main)


def test_a_fast_source_does_not_starve_other_tasks(run):
    async def main():
        beats = 0
        done = anyio.Event()

        async def beat():
            nonlocal beats
            while not done.is_set():
                beats += 1
                await anyio.lowlevel.checkpoint()

        async with anyio.create_task_group() as group:
            group.start_soon(beat)
            async with uvarrow.stream(numbers(6400, 1)) as rows:
                count = 0
                async for _ in rows:
                    count += 1
            done.set()
        assert count == 6400
        return beats

    assert run(main) >= 6400 // 64


@pytest.fixture
def clock():
    """clock(ns) sets the clock of all streams."""
    _core._set_clock(0)
    yield _core._set_clock
    _core._set_clock(-1)


@types.coroutine
def does_yield(step):
    """Awaits `step`; returns whether the loop ran meanwhile."""
    inner = step.__await__()
    has_yielded, answer = False, None
    while True:
        try:
            trap = inner.send(answer)
        except StopIteration:
            return has_yielded
        has_yielded = True
        answer = yield trap


async def ready(rows, batches):
    """Returns when so many batches are queued on the loop."""
    await rows.schema()
    while rows.stats()[0].batches < batches:
        await anyio.lowlevel.checkpoint()


def test_the_loop_runs_behind_64_batches(run, clock):
    """A count for each step of the iteration, whatever is ready."""
    async def main():
        async with uvarrow.stream(numbers(300, 1), window=400) as rows:
            await ready(rows, 300)
            return [i for i in range(300) if await does_yield(anext(rows))]

    assert run(main) == [64, 128, 192, 256]


def test_the_loop_runs_behind_a_millisecond(run, clock):
    async def main():
        async with uvarrow.stream(numbers(100, 1), window=200) as rows:
            await ready(rows, 100)
            assert not await does_yield(anext(rows))
            clock(999_999)
            assert not await does_yield(anext(rows))
            clock(1_000_000)
            assert await does_yield(anext(rows))
            clock(1_999_999)
            assert not await does_yield(anext(rows))
            clock(5_000_000)
            assert await does_yield(anext(rows))
            assert not await does_yield(anext(rows))

    run(main)


def test_a_wait_counts_as_a_run_of_the_loop(run, clock, gate):
    source = gate([pa.record_batch({"n": [i]}) for i in range(9)], before=1)

    async def open_gate():
        source.opened.set()

    async def main():
        async with uvarrow.stream(source) as rows:
            await anext(rows)
            clock(500_000)
            async with anyio.create_task_group() as group:
                group.start_soon(open_gate)
                assert await does_yield(anext(rows))
            await ready(rows, 9)
            clock(1_499_999)
            assert not await does_yield(anext(rows))

    run(main)


def test_two_streams_share_a_runtime(run):
    async def main():
        totals = []

        async def read():
            async with uvarrow.stream(numbers()) as rows:
                totals.append(sum([len(batch) async for batch in rows]))

        async with anyio.create_task_group() as group:
            for _ in range(5):
                group.start_soon(read)
        assert len(uvarrow._host._hosts) == 1
        return totals

    assert run(main) == [1000] * 5


def test_read_all(run):
    async def main():
        return await uvarrow.stream(numbers()).read_all()

    assert sum(map(len, run(main))) == 1000


def test_a_stream_needs_a_running_loop():
    with pytest.raises(RuntimeError, match="no running event loop"):
        uvarrow.stream(numbers())


def test_what_cannot_be_read_is_refused(run):
    async def main():
        with pytest.raises(TypeError, match="cannot read"):
            uvarrow.stream(5)
        with pytest.raises(TypeError):
            uvarrow.stream(numbers(), interrupt=5)
        with pytest.raises(ValueError):
            uvarrow.stream(numbers(), window=-1)
        with pytest.raises(uvarrow.Error) as info:
            await uvarrow.stream(numbers(), window=1 << 24).read_all()
        assert info.value.errno == errno.EINVAL
        with pytest.raises(RuntimeError, match="is made by"):
            await anext(uvarrow.Stream())

    run(main)


def test_another_thread_may_not_read(run):
    async def main():
        async with uvarrow.stream(numbers()) as rows:
            await anext(rows)

            def read():
                with pytest.raises(uvarrow.Error) as info:
                    rows._take()
                assert info.value.errno == errno.EPERM

            await in_thread(read)
            assert len(await anext(rows)) == 10

    run(main)


def test_awaitables_keep_to_the_protocol():
    async def main():
        async with uvarrow.stream(numbers(20)) as rows:
            await rows.schema()
            first = await asyncio.wait_for(rows.__anext__(), 600)
            second = await asyncio.ensure_future(rows.__anext__())
            assert (first.ordinal, second.ordinal) == (0, 1)
            awaitable = rows.__anext__()
            with pytest.raises(KeyError):
                awaitable.throw(KeyError("x"))
            awaitable.close()

    asyncio.run(main())


def test_many_loops_in_threads(run):
    def work():
        async def main():
            async with uvarrow.stream(numbers()) as rows:
                return sum([len(batch) async for batch in rows])

        return run(main)

    async def main():
        results = []

        async def one():
            results.append(await anyio.to_thread.run_sync(work))

        async with anyio.create_task_group() as group:
            for _ in range(4):
                group.start_soon(one)
        return results

    assert run(main) == [1000] * 4


def test_a_stream_stays_with_its_loop():
    """A loop on a thread inside a task, which has a loop, too."""
    async def main():
        unread = uvarrow.stream(numbers())
        async with uvarrow.stream(numbers()) as rows:
            loop = asyncio.get_running_loop()
            asyncio._set_running_loop(None)
            other = asyncio.new_event_loop()
            try:
                for step in (rows.__anext__, rows.schema):
                    with pytest.raises(RuntimeError, match="another|different"):
                        other.run_until_complete(asyncio.wait_for(step(), 600))
                with pytest.raises(RuntimeError, match="two event loops"):
                    other.run_until_complete(merge(unread))
            finally:
                other.close()
                asyncio._set_running_loop(loop)

    async def merge(rows):
        uvarrow.merge(uvarrow.stream(numbers()), uvarrow.stream(numbers()))
        uvarrow.merge(uvarrow.stream(numbers()), rows)

    asyncio.run(main())


def test_a_loop_that_has_moved_to_another_thread_is_refused():
    loop = asyncio.new_event_loop()

    async def main():
        return len(await uvarrow.stream(numbers()).read_all())

    def elsewhere():
        with pytest.raises(RuntimeError, match="another thread"):
            loop.run_until_complete(main())

    assert loop.run_until_complete(main()) == 100
    thread = threading.Thread(target=elsewhere)
    thread.start()
    thread.join()
    assert loop.run_until_complete(main()) == 100
    loop.close()


def test_what_was_not_opened_raises():
    rows = uvarrow.Stream()
    for call in (lambda: rows._wait(None), lambda: rows._unwait(None),
                 rows._take, rows._peek, lambda: rows._merge((rows,), None, 0, 0, 0, 1, 1),
                 lambda: rows._reader(1, 1), lambda: rows._set_name("x")):
        with pytest.raises(RuntimeError, match="is made by"):
            call()
    assert rows._close()
    assert rows._stats() == rows._metadata() == []
    rows._cancel(0, None)
