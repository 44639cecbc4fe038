# SPDX-License-Identifier: Apache-2.0
"""Every way in which a stream ends early: the task is free while the source is
still blocked, which the gate proves, and the source is released later."""
import asyncio
import errno
import gc
import warnings

import anyio
import pyarrow as pa
import pytest

import uvarrow

BATCHES = [pa.record_batch({"n": [i]}) for i in range(100)]


def test_aclose_while_the_source_blocks(run, gate):
    source = gate(BATCHES)

    async def main():
        rows = uvarrow.stream(source)
        async with anyio.create_task_group() as group:
            group.start_soon(read_closed, rows)
            await source.wait_entered()
            await rows.aclose()
        assert not source.closed.is_set()
        source.opened.set()
        await source.wait_closed()

    run(main)


async def read_closed(rows):
    async for _ in rows:
        raise AssertionError("a batch of a blocked source")


def test_leaving_async_with_while_the_source_blocks(run, gate):
    source = gate(BATCHES, before=1)

    async def main():
        async with uvarrow.stream(source) as rows:
            assert len(await anext(rows)) == 1
            await source.wait_entered()
        assert not source.opened.is_set()

    run(main)


def test_aclose_waits_for_the_source_if_asked(run, gate):
    source = gate(BATCHES)

    async def main():
        async with uvarrow.stream(source, interrupt=source.interrupt) as rows:
            async with anyio.create_task_group() as group:
                group.start_soon(read_closed, rows)
                await source.wait_entered()
                await rows.aclose(seconds=None)
        assert source.closed.is_set()
        assert source.interrupts > 0

    run(main)


def test_a_cancelled_task_is_free(run, gate):
    source = gate(BATCHES)

    async def main():
        async with anyio.create_task_group() as group:
            group.start_soon(read_all, source)
            await source.wait_entered()
            group.cancel_scope.cancel()
        assert not source.opened.is_set()

    run(main)


async def read_all(source):
    async with uvarrow.stream(source) as rows:
        async for _ in rows:
            raise AssertionError("a batch of a blocked source")


def test_a_cancel_interrupts_the_source(run, gate):
    source = gate(BATCHES)

    async def main():
        async with uvarrow.stream(source, interrupt=source.interrupt) as rows:
            async with anyio.create_task_group() as group:
                group.start_soon(read_cancelled, rows)
                await source.wait_entered()
                rows.cancel("enough")
        await source.wait_closed()

    run(main)
    assert source.interrupts > 0


async def read_cancelled(rows):
    with pytest.raises(uvarrow.Error, match="enough") as info:
        async for _ in rows:
            raise AssertionError("a batch of a blocked source")
    assert info.value.errno == errno.ECANCELED
    async for _ in rows:
        raise AssertionError("a batch behind the end")


def test_the_stream_goes_on_after_a_timeout(run, gate):
    source = gate(BATCHES, before=1)

    async def main():
        async with uvarrow.stream(source) as rows:
            assert (await anext(rows)).ordinal == 0
            for _ in range(3):
                with pytest.raises(TimeoutError):
                    with anyio.fail_after(0.001):
                        await anext(rows)
            source.opened.set()
            return [batch.ordinal async for batch in rows]

    assert run(main) == list(range(1, 100))


@pytest.mark.parametrize("kind", ["asyncio", "uvloop"])
def test_wait_for_loses_no_batch(kind):
    from conftest import run_on

    async def main():
        got = []
        async with uvarrow.stream(BATCHES, window=2) as rows:
            while len(got) < 100:
                try: # it may time out, in whatever moment
                    got.append(await asyncio.wait_for(rows.__anext__(), 1e-9))
                except TimeoutError:
                    got.append(await anext(rows))
        return [batch.ordinal for batch in got]

    assert run_on(kind, main) == list(range(100))


def test_dropping_warns_and_cancels(run, gate):
    source = gate(BATCHES, before=1)

    async def main():
        rows = uvarrow.stream(source, interrupt=source.interrupt)
        await anext(rows)
        await source.wait_entered()
        with pytest.warns(ResourceWarning, match="unclosed <uvarrow.Stream"):
            del rows
            gc.collect()
        await source.wait_closed()

    run(main)


def test_dropping_what_was_not_read_is_silent(run):
    async def main():
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            uvarrow.stream(BATCHES)
            rows = uvarrow.stream(BATCHES)
            await rows.aclose()
            async for _ in rows:
                raise AssertionError("a batch of a closed stream")
            with pytest.raises(uvarrow.Error, match="closed"):
                rows.limit(5)

    run(main)


def test_break_inside_async_with(run):
    released = []

    class Source:
        def __iter__(self):
            try:
                yield from BATCHES
            finally:
                released.append(True)

    async def main():
        async with uvarrow.stream(Source()) as rows:
            async for batch in rows:
                if batch.ordinal == 3:
                    break
            await rows.aclose(seconds=None)
        assert released

    run(main)


def test_an_exception_of_the_consumer_closes_the_source(run, gate):
    source = gate(BATCHES, before=50)

    async def main():
        with pytest.raises(KeyError, match="mine"):
            async with uvarrow.stream(
                    source, interrupt=source.interrupt) as rows:
                async for _ in rows:
                    raise KeyError("mine")
        await source.wait_closed()

    run(main)


def test_the_loop_ends_while_a_source_blocks(run, gate):
    source = gate(BATCHES)

    async def main():
        task_of_nothing.append(uvarrow.stream(source))
        async with anyio.create_task_group() as group:
            group.start_soon(wait_for_schema, task_of_nothing[0])
            await source.wait_entered()
            group.cancel_scope.cancel()

    task_of_nothing = []
    run(main)
    with pytest.warns(ResourceWarning):
        task_of_nothing.clear()
        gc.collect() # a task that was cancelled may refer to it


async def wait_for_schema(rows):
    await rows.schema()


def test_a_stream_of_a_closed_loop_is_over(run):
    async def main():
        rows = uvarrow.stream(BATCHES)
        await anext(rows)
        return rows

    rows = run(main)

    async def again():
        with pytest.raises((uvarrow.Error, StopAsyncIteration)):
            while True:
                await anext(rows)
        await rows.aclose()

    run(again)


def test_an_interrupt_that_raises_is_ignored(run, gate, capfd):
    source = gate(BATCHES)

    def interrupt():
        source.opened.set()
        raise KeyError("not printed")

    async def main():
        async with uvarrow.stream(source, interrupt=interrupt) as rows:
            async with anyio.create_task_group() as group:
                group.start_soon(read_closed, rows)
                await source.wait_entered()
                await rows.aclose(seconds=None)

    run(main)
    assert capfd.readouterr() == ("", "")
