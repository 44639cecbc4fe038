# SPDX-License-Identifier: Apache-2.0
"""Every way in which a stream ends early: the task is free while the source is
still blocked, which the gate proves, and the source is released later."""
import asyncio
import errno
import gc
import itertools
import threading
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


@pytest.fixture
def late():
    """late(): by the clock of all streams, more than a millisecond passes."""
    _core = uvarrow._core
    times = itertools.count(0, 2000000)
    _core._set_clock(next(times))
    yield lambda: _core._set_clock(next(times))
    _core._set_clock(-1)


async def all_queued():
    """A stream of which all 100 batches wait on the loop."""
    rows = uvarrow.stream(BATCHES, window=128)
    await rows.schema()
    while rows.stats()[-1].batches < 100:
        await anyio.lowlevel.checkpoint()
    return rows


def test_steps_that_are_all_cancelled_get_on(run, late):
    """Each step has to let the loop run, and is cancelled meanwhile."""
    async def main():
        ordinals, steps = [], 0
        async with await all_queued() as rows:
            while len(ordinals) < 100:
                late()
                steps += 1
                with anyio.CancelScope() as scope:
                    scope.cancel()
                    ordinals.append((await anext(rows)).ordinal)
                assert steps <= 2 * len(ordinals) + 2
        return ordinals

    assert run(main) == list(range(100))


@pytest.mark.parametrize("kind", ["asyncio", "uvloop"])
def test_tasks_that_are_cancelled_in_the_next_pass_get_on(kind, late):
    from conftest import run_on

    async def main():
        ordinals, steps = [], 0
        async with await all_queued() as rows:
            while len(ordinals) < 100:
                late()
                steps += 1
                step = asyncio.ensure_future(rows.__anext__())
                await asyncio.sleep(0)
                step.cancel()
                try:
                    ordinals.append((await step).ordinal)
                except asyncio.CancelledError:
                    pass
                assert steps <= 2 * len(ordinals) + 2
        return ordinals

    assert run_on(kind, main) == list(range(100))


def test_a_schema_that_is_asked_for_again_and_again_comes(run):
    async def main():
        async with uvarrow.stream(BATCHES) as rows:
            while True:
                with anyio.CancelScope() as scope:
                    scope.cancel()
                    return (await rows.schema()).names
                await anyio.lowlevel.checkpoint()

    assert run(main) == ["n"]


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


def test_read_all_of_a_closed_stream_fails(run):
    """It has no batch at all."""
    async def main():
        rows = uvarrow.stream(BATCHES)
        await anext(rows)
        await rows.aclose()
        with pytest.raises(uvarrow.Error, match="before its end"):
            await rows.read_all()
        rows = uvarrow.stream(BATCHES)
        await rows.aclose()
        with pytest.raises(uvarrow.Error, match="before its end"):
            await rows.read_all()
        async with uvarrow.stream(BATCHES) as rows:
            assert len(await rows.read_all()) == len(BATCHES)
            assert await rows.read_all() == [] # that was all
        assert await rows.read_all() == []

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


def test_closing_waits_for_the_sources_of_all_parts(run, gate):
    """The last source to be released belongs to a part."""
    source = gate(BATCHES, before=1)

    async def main():
        rows = uvarrow.merge(uvarrow.stream(BATCHES[:1]),
                             uvarrow.stream(source))
        async with rows:
            await anext(rows)
            await source.wait_entered()
            async with anyio.create_task_group() as group:
                group.start_soon(rows.aclose)
                await anyio.lowlevel.checkpoint()
                source.opened.set()
                await rows.aclose(seconds=None)
        assert source.closed.is_set()

    run(main)


def test_what_was_closed_before_it_was_read_stays_closed(run):
    async def main():
        rows = uvarrow.stream(BATCHES)
        for _ in range(3):
            await rows.aclose()
        rows.cancel("again")
        rows.stats()
        assert rows.metadata == {}
        with pytest.raises(uvarrow.Error):
            await rows.schema()
        with pytest.raises(StopAsyncIteration):
            await anext(rows)
        with pytest.raises(uvarrow.Error, match="closed"):
            rows.to_reader()

    run(main)


def test_what_is_cancelled_before_it_is_read_fails(run):
    async def main():
        rows = uvarrow.stream(BATCHES)
        rows.cancel("why")
        for read in (rows.schema, rows.__anext__):
            with pytest.raises(uvarrow.Error, match="why") as info:
                await read()
            assert info.value.errno == errno.ECANCELED
        await rows.aclose()

    run(main)


def test_a_function_that_looks_on_may_cancel_and_drop(run):
    async def main():
        box = []

        def drop(kind, *_):
            if kind == "batch":
                box.clear()

        def cancel(kind, *_):
            if kind == "batch":
                rows.cancel("while looking on")

        box.append(uvarrow.stream(BATCHES).trace(drop))
        step = box[0].__anext__()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ResourceWarning)
            await step
            del step
        rows = uvarrow.stream(BATCHES).trace(cancel)
        with pytest.raises(uvarrow.Error, match="while looking on"):
            await rows.read_all()

    run(main)


def test_dropping_on_another_thread(run, gate):
    source = gate(BATCHES, before=1)

    async def main():
        box = [uvarrow.stream(source, interrupt=source.interrupt)]
        await anext(box[0])
        await source.wait_entered()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ResourceWarning)
            await anyio.to_thread.run_sync(box.clear)
        await source.wait_closed()

    run(main)


def test_tasks_share_a_stream(run):
    async def main():
        seen = []
        async with uvarrow.stream(BATCHES, window=2) as rows:
            async def read():
                async for batch in rows:
                    seen.append(batch.ordinal)

            async with anyio.create_task_group() as group:
                for _ in range(7):
                    group.start_soon(read)
        return seen

    assert sorted(run(main)) == list(range(100))


@pytest.mark.parametrize("kind", ["asyncio", "uvloop", "trio"])
def test_generators_that_are_left_open_end_with_the_loop(kind):
    """They close their streams while the loop ends, before or after the
    runtime."""
    from conftest import run_on

    async def chunks():
        async with uvarrow.stream(BATCHES) as rows:
            async for batch in rows:
                yield batch

    async def main():
        kept = chunks(), uvarrow.ipc(uvarrow.stream(BATCHES))
        for one in kept:
            await anext(one)
        return kept

    with warnings.catch_warnings():
        warnings.simplefilter("ignore") # trio complains of such generators
        for _ in range(10):
            run_on(kind, main)
        gc.collect()


def test_the_interrupt_of_a_driver_ends_its_query(run):
    """The query would take weeks, and its thread is waited for."""
    duckdb = pytest.importorskip("duckdb")
    connection = duckdb.connect()
    entered = threading.Event()

    def query():
        entered.set()
        return connection.sql("SELECT sum(sqrt(a.range * b.range)) AS s FROM "
                              "range(1000000000) a, range(1000000000) b")

    async def main():
        async with uvarrow.stream(
                query, interrupt=connection.interrupt) as rows:
            async with anyio.create_task_group() as group:
                group.start_soon(read_closed, rows)
                await anyio.to_thread.run_sync(entered.wait)
                await rows.aclose(seconds=None)

    run(main)
    connection.close()
