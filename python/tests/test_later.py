# SPDX-License-Identifier: Apache-2.0
"""Coroutine functions as stages: each call is a task of the event loop."""
import asyncio
import contextvars
import functools
import gc
import weakref

import anyio
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import uvarrow
from conftest import run_on


def numbers(rows=1000, size=10):
    table = pa.table({"n": range(rows)})
    return pa.Table.from_batches(table.to_batches(max_chunksize=size))


def collect(run, build):
    async def main():
        async with build() as rows:
            return pa.Table.from_batches([b.to_pyarrow() async for b in rows])

    return run(main)


async def double(batch):
    await anyio.lowlevel.checkpoint()
    batch = batch.to_pyarrow()
    return pa.record_batch({"n": pc.multiply(batch.column("n"), 2)})


async def keep(batch):
    return batch


class Many:
    """Counts the calls that run at one time; each waits until all are there."""

    def __init__(self, wanted):
        self.now = self.most = 0
        self._wanted = wanted
        self._all = anyio.Event()

    async def __call__(self, batch):
        self.now += 1
        self.most = max(self.most, self.now)
        if self.now == self._wanted:
            self._all.set()
        await self._all.wait()
        self.now -= 1
        return batch


@pytest.mark.parametrize("concurrency", [None, 1, 64])
def test_map(run, concurrency):
    table = collect(run, lambda: uvarrow.stream(numbers()).map(
        double, concurrency=concurrency))
    assert table.column("n").to_pylist() == list(range(0, 2000, 2))


def test_a_function_that_does_not_wait(run):
    assert collect(run, lambda: uvarrow.stream(numbers()).map(keep)) == numbers()


@pytest.mark.parametrize("concurrency", [1, 5, 64])
def test_so_many_run_at_one_time(run, concurrency):
    async def main():
        many = Many(concurrency)
        rows = uvarrow.stream(numbers()).map(many, concurrency=concurrency)
        assert len(await rows.read_all()) == 100
        return many.most

    assert run(main) == concurrency


def test_the_order_is_kept_or_not(run):
    async def ordinals(ordered):
        first, last = anyio.Event(), anyio.Event()

        async def later(batch):
            if batch.ordinal == 0 and not ordered:
                await last.wait()
            if batch.ordinal == 0:
                first.set()
            elif ordered:
                await first.wait()
            if batch.ordinal == 4:
                last.set()
            return batch

        rows = uvarrow.stream(numbers(50)).map(later, concurrency=5,
                                               ordered=ordered)
        return [batch.ordinal for batch in await rows.read_all()]

    assert run(ordinals, True) == [0, 1, 2, 3, 4]
    assert sorted(run(ordinals, False)) == [0, 1, 2, 3, 4]
    assert run(ordinals, False)[-1] == 0


def test_another_schema(run):
    schema = pa.schema([pa.field("text", pa.string())])

    async def text(batch):
        return pa.record_batch([batch.to_pyarrow().column("n").cast("string")],
                               schema=schema)

    table = collect(run, lambda: uvarrow.stream(numbers(20)).map(text, schema))
    assert table.column("text").to_pylist() == [str(i) for i in range(20)]
    with pytest.raises(ValueError, match="result of the function of map"):
        collect(run, lambda: uvarrow.stream(numbers(20)).map(text))


def test_other_awaitables_with_concurrency(run):
    class Awaitable:
        def __init__(self, batch):
            self._batch = batch

        def __await__(self):
            return double(self._batch).__await__()

    for function in (Awaitable, lambda batch: double(batch),
                     functools.partial(double)):
        table = collect(run, lambda: uvarrow.stream(numbers(20)).map(
            function, concurrency=2))
        assert table.column("n").to_pylist() == list(range(0, 40, 2))


def test_a_future_of_asyncio():
    async def main():
        loop = asyncio.get_running_loop()

        def begin(batch):
            future = loop.create_future()
            loop.call_soon(future.set_result, batch)
            return future

        return len(await uvarrow.stream(numbers()).map(
            begin, concurrency=9).read_all())

    assert run_on("asyncio", main) == 100


def test_filter(run):
    async def even(batch):
        await anyio.lowlevel.checkpoint()
        return batch.ordinal % 2 == 0

    async def small(batch):
        return pc.less(batch.to_pyarrow().column("n"), 15)

    async def numpy_mask(batch):
        return np.array(batch.to_pyarrow().column("n")) % 3 == 0

    assert collect(run, lambda: uvarrow.stream(numbers()).filter(
        even)).column("n").to_pylist()[8:12] == [8, 9, 20, 21]
    assert collect(run, lambda: uvarrow.stream(numbers()).filter(
        small, concurrency=3)).column("n").to_pylist() == list(range(15))
    assert sorted(collect(run, lambda: uvarrow.stream(numbers(30)).filter(
        numpy_mask, ordered=False)).column("n").to_pylist()) == list(
            range(0, 30, 3))


@pytest.mark.parametrize("result, kind, text", [
    (None, TypeError, "result of the function of filter"),
    ("text", TypeError, "result of the function of filter"),
    (pa.array([True]), ValueError, "filter"),
])
def test_a_filter_that_returns_nonsense(run, result, kind, text):
    async def nonsense(batch):
        return result

    with pytest.raises(kind, match=text):
        collect(run, lambda: uvarrow.stream(numbers()).filter(nonsense))


@pytest.mark.parametrize("result", [None, 5, "text", pa.array([1])])
def test_a_map_that_returns_nonsense(run, result):
    async def nonsense(batch):
        return result

    with pytest.raises((TypeError, ValueError),
                       match="the result of the function of map"):
        collect(run, lambda: uvarrow.stream(numbers()).map(nonsense))


def test_what_cannot_be_awaited(run):
    with pytest.raises(TypeError, match=r"function of map\(\) must be awaitable"):
        collect(run, lambda: uvarrow.stream(numbers()).map(
            lambda batch: batch, concurrency=2))


def test_an_exception_is_raised_after_the_batches_before(run):
    async def fails(batch):
        await anyio.lowlevel.checkpoint()
        if batch.ordinal == 7:
            raise KeyError("seven")
        return batch

    async def main():
        seen = []
        async with uvarrow.stream(numbers()).map(fails, concurrency=20) as rows:
            with pytest.raises(KeyError, match="seven") as raised:
                async for batch in rows:
                    seen.append(batch.ordinal)
        assert raised.traceback[-1].name == "fails"
        return seen

    assert run(main) == list(range(7))


def test_an_exception_before_the_first_wait(run):
    def fails(batch):
        raise KeyError("at once")

    with pytest.raises(KeyError, match="at once"):
        collect(run, lambda: uvarrow.stream(numbers()).map(fails,
                                                           concurrency=3))


def test_stop_iteration_of_a_function(run):
    def fails(batch):
        raise StopIteration

    with pytest.raises((RuntimeError, StopIteration, uvarrow.Error)):
        collect(run, lambda: uvarrow.stream(numbers()).map(fails,
                                                           concurrency=3))


class Stuck:
    """Calls that never return by themselves; counts the cancelled ones."""

    def __init__(self, wanted=1):
        self.entered = anyio.Event()
        self.begun = self.cancelled = 0
        self._wanted = wanted

    async def __call__(self, batch):
        self.begun += 1
        if self.begun == self._wanted:
            self.entered.set()
        try:
            await anyio.sleep_forever()
        except BaseException:
            self.cancelled += 1
            raise


@pytest.mark.parametrize("end", ["leave", "cancel", "fail"])
def test_tasks_are_cancelled_with_their_stream(run, end):
    async def main():
        stuck = Stuck(5)
        rows = uvarrow.stream(numbers()).map(stuck, concurrency=5)
        async with anyio.create_task_group() as group:
            async with rows:
                group.start_soon(ended_of, rows)
                await stuck.entered.wait()
                if end == "cancel":
                    rows.cancel("enough")
                elif end == "fail":
                    group.cancel_scope.cancel()
        with anyio.fail_after(10):
            while stuck.cancelled < stuck.begun:
                await anyio.lowlevel.checkpoint()
        return stuck.begun

    assert run(main) == 5


async def ended_of(rows):
    try:
        await anext(rows)
    except (uvarrow.Error, StopAsyncIteration):
        pass


def test_a_task_that_is_cancelled_ends_the_stream():
    async def main():
        async def cancels(batch):
            if batch.ordinal == 3:
                asyncio.current_task().cancel()
            await asyncio.sleep(0)
            return batch

        with pytest.raises(uvarrow.Error, match="ended by CancelledError"):
            await uvarrow.stream(numbers()).map(cancels).read_all()

    run_on("asyncio", main)
    run_on("uvloop", main)


def test_a_time_limit_inside_a_function(run):
    async def slow(batch):
        with anyio.fail_after(0.001):
            await anyio.sleep_forever()

    with pytest.raises(TimeoutError):
        collect(run, lambda: uvarrow.stream(numbers()).map(slow))


def test_a_function_that_refuses_its_cancel(run):
    """It goes on beside the next streams, and its result is dropped."""
    async def main():
        entered, opened, left = anyio.Event(), anyio.Event(), anyio.Event()

        async def refuses(batch):
            entered.set()
            with anyio.CancelScope(shield=True):
                try:
                    await opened.wait()
                except asyncio.CancelledError: # no shield holds on asyncio
                    await opened.wait()
            left.set()
            return batch

        async with anyio.create_task_group() as group:
            async with uvarrow.stream(numbers()).map(refuses,
                                                     concurrency=1) as rows:
                group.start_soon(ended_of, rows)
                await entered.wait()
        assert len(await uvarrow.stream(numbers()).read_all()) == 100
        opened.set()
        await left.wait()

    run(main)


def test_a_loop_that_ends_before_the_function(run):
    async def main():
        stuck = Stuck()
        rows = uvarrow.stream(numbers()).map(stuck, concurrency=2)
        assert rows._take() is None
        await stuck.entered.wait()
        rows._close()
        return stuck

    stuck = run(main)
    assert stuck.cancelled == stuck.begun > 0


def test_a_dropped_stream_cancels_its_tasks(run):
    async def main():
        stuck = Stuck()
        rows = uvarrow.stream(numbers()).map(stuck, concurrency=2)
        assert rows._take() is None
        await stuck.entered.wait()
        with pytest.warns(ResourceWarning):
            del rows
            gc.collect()
        with anyio.fail_after(10):
            while stuck.cancelled < stuck.begun:
                await anyio.lowlevel.checkpoint()

    run(main)


def test_a_function_is_freed_with_its_stream(run):
    class Function:
        async def __call__(self, batch):
            return batch

    async def main():
        function = Function()
        async with uvarrow.stream(numbers()).map(function) as rows:
            await rows.read_all()
        freed = weakref.ref(function)
        del function, rows
        gc.collect()
        return freed() is None

    assert run(main)


def test_a_cycle_of_an_unread_stream_is_found(run):
    async def main():
        async def function(batch):
            return rows

        rows = uvarrow.stream(numbers()).map(function)
        found = weakref.ref(rows)
        del rows, function
        gc.collect()
        return found() is None

    assert run(main)


def test_a_function_has_the_context_of_its_stage(run):
    name = contextvars.ContextVar("name", default="no")

    async def main():
        seen = []

        async def sets(batch):
            seen.append(name.get())
            name.set("changed")
            return batch

        name.set("request 7")
        rows = uvarrow.stream(numbers(30)).map(sets)
        name.set("later")
        await rows.read_all()
        return seen

    assert run(main) == ["request 7"] * 3


def test_a_function_may_use_streams(run):
    async def first(batch):
        async with uvarrow.stream(numbers(30)).limit(1) as rows:
            return await anext(rows)

    table = collect(run, lambda: uvarrow.stream(numbers(50)).map(first))
    assert table.column("n").to_pylist() == [0] * 5


def test_stages_around_it(run):
    table = collect(run, lambda: uvarrow.stream(numbers()).filter(
        lambda batch: batch.ordinal % 2 == 0).map(double).map(
            lambda batch: batch).limit(25).rebatch(rows=10))
    assert table.column("n").to_pylist()[:12] == [*range(0, 20, 2), 40, 42]
    assert table.num_rows == 25


def test_arguments(run):
    async def generates(batch):
        yield batch

    async def main():
        rows = uvarrow.stream(numbers())
        for build, text in (
                (lambda: rows.map(5), "function must be a function"),
                (lambda: rows.map(generates), "function is an asynchronous gen"),
                (lambda: rows.filter(generates), "function is an async"),
                (lambda: rows.map(keep, concurrency=0), "concurrency"),
                (lambda: rows.map(keep, concurrency="x"), "concurrency must"),
                (lambda: rows.map(keep, ordered=1), "ordered must be a bool"),
                (lambda: rows.filter(keep, ordered=1), "ordered must be a bool"),
                (lambda: rows.map(keep, 5), "schema must be"),
                (lambda: rows.map(keep, concurrency=1 << 20), "at_once|concurrency")):
            with pytest.raises((TypeError, ValueError, uvarrow.Error),
                               match=text):
                build()

    run(main)
