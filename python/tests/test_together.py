# SPDX-License-Identifier: Apache-2.0
"""Several streams, and one that is read twice or opened again: concat, tee,
retry; and transform, throttle, pause."""
import threading

import anyio
import pyarrow as pa
import pytest

import uvarrow


def numbers(rows=1000, size=10, name="n"):
    table = pa.table({name: range(rows)})
    return pa.Table.from_batches(table.to_batches(max_chunksize=size))


async def values(rows):
    return [value for batch in await rows.read_all()
            for value in batch.to_pyarrow().column(0).to_pylist()]


def refuses(run, text, build):
    async def main():
        with pytest.raises((TypeError, ValueError, uvarrow.Error), match=text):
            build(uvarrow.stream(numbers()))

    run(main)


# ---- concat, merge ----------------------------------------------------------

def test_concat_keeps_the_order(run):
    async def main(**options):
        parts = [uvarrow.stream(numbers(30)) for _ in range(3)]
        return await values(uvarrow.concat(*parts, **options))

    assert run(main) == list(range(30)) * 3
    assert run(lambda: main(open_at_once=3)) == list(range(30)) * 3


def test_concat_opens_a_source_when_its_turn_has_come(run, gate):
    async def main():
        opened = []
        first = gate(numbers(30).to_batches(), before=1)

        def opens():
            opened.append(True)
            return numbers(10)

        async with uvarrow.concat(uvarrow.stream(first),
                                  uvarrow.stream(opens)) as rows:
            await anext(rows)
            await first.wait_entered()
            assert opened == []
            first.opened.set()
            assert len(await rows.read_all()) == 3
        assert opened == [True]

    run(main)


@pytest.mark.parametrize("put", [uvarrow.concat, uvarrow.merge])
def test_all_are_cast_to_a_schema(run, put):
    schema = pa.schema([("n", pa.int32())])

    async def main():
        rows = put(uvarrow.stream(numbers(5)),
                   uvarrow.stream(pa.table({"n": pa.array([7], pa.uint8())})),
                   schema=schema)
        assert (await rows.schema()).to_pyarrow() == schema
        return sorted(await values(rows))

    assert run(main) == [0, 1, 2, 3, 4, 7]


def test_concat_casts_to_the_first(run):
    async def main():
        wide = uvarrow.stream(pa.table({"n": pa.array([5_000_000_000])}))
        narrow = uvarrow.stream(pa.table({"n": pa.array([1], pa.int32())}))
        return await values(uvarrow.concat(narrow, wide, cast=True))

    with pytest.raises(uvarrow.Error, match="column n, row 0: 5000000000"):
        run(main)


def test_an_exception_of_a_part_is_itself(run):
    def fails():
        raise KeyError("second")

    async def main():
        seen = []
        async with uvarrow.concat(uvarrow.stream(numbers(30)),
                                  uvarrow.stream(fails)) as rows:
            with pytest.raises(KeyError, match="second"):
                async for batch in rows:
                    seen.append(batch)
        return len(seen)

    assert run(main) == 3


def test_what_cannot_be_concatenated(run):
    for build, text in (
            (lambda s: uvarrow.concat(5), "first must be a Stream, not int"),
            (lambda s: uvarrow.concat(s, [s]), "others must be a Stream"),
            (lambda s: uvarrow.concat(s, s), "with itself"),
            (lambda s: uvarrow.concat(s, schema=5), "schema must be"),
            (lambda s: uvarrow.concat(s, cast=1), "cast must be a bool"),
            (lambda s: uvarrow.merge(s, schema=pa.int64()), "schema"),
            (lambda s: uvarrow.concat(s, open_at_once=-1), "open_at_once")):
        refuses(run, text, build)


# ---- tee --------------------------------------------------------------------

def test_both_branches_have_all(run):
    async def main():
        first = uvarrow.stream(numbers())
        second = first.tee()
        second.filter(lambda batch: batch.ordinal < 2)
        found = {}

        async def read(name, rows):
            found[name] = await values(rows)

        async with anyio.create_task_group() as group:
            group.start_soon(read, "first", first)
            group.start_soon(read, "second", second)
        return found

    assert run(main) == {"first": list(range(1000)), "second": list(range(20))}


def test_a_slow_branch_loses_batches(run):
    async def main(slow):
        first = uvarrow.stream(numbers())
        branch = first.tee(slow=slow, window=2)
        assert branch._take() is None # it has started
        assert len(await first.read_all()) == 100
        async with branch:
            seen = [batch.ordinal async for batch in branch]
        assert len(seen) < 100
        assert sum(stage.dropped for stage in branch.stats()) > 0
        return seen

    assert run(main, "drop_new")[0] == 0
    assert run(main, "drop_old")[-1] == 99


def test_a_slow_branch_fails(run):
    async def main():
        first = uvarrow.stream(numbers())
        branch = first.tee(slow="fail", window=2)
        assert branch._take() is None
        assert len(await first.read_all()) == 100
        with pytest.raises(uvarrow.Error):
            await branch.read_all()

    run(main)


def test_branches_end_alone(run):
    async def main():
        first = uvarrow.stream(numbers())
        second = first.tee()
        async with second:
            await anext(second)
        left = len(await first.read_all())
        third = uvarrow.stream(numbers())
        other = third.tee()
        await third.aclose()
        return left, len(await other.read_all())

    assert run(main) == (100, 100)


def test_both_branches_raise_the_exception_itself(run):
    def source():
        yield numbers(10)
        raise KeyError("source")

    async def main():
        first = uvarrow.stream(source)
        branches = [first, first.tee(), first.tee()]
        raised = []

        async def read(rows):
            with pytest.raises(KeyError, match="source") as error:
                await rows.read_all()
            raised.append(error.value)

        async with anyio.create_task_group() as group:
            for one in branches:
                group.start_soon(read, one)
        return raised

    raised = run(main)
    assert len(raised) == 3 and len(set(map(id, raised))) == 1


def test_a_branch_outlives_its_stream(run):
    async def main():
        first = uvarrow.stream(numbers())
        second = first.tee()
        del first
        return len(await second.read_all())

    assert run(main) == 100


def test_tee_refuses(run):
    for build, text in (
            (lambda s: s.tee(slow="quick"), "slow must be 'wait' or"),
            (lambda s: s.tee(slow=1), "slow must be"),
            (lambda s: s.tee(window=-1), "window is negative"),
            (lambda s: s.tee(max_bytes="x"), "max_bytes must be"),
            (lambda s: s.tee(first_window=-1), "first_window is negative"),
            (lambda s: s.tee(first_bytes=-1), "first_bytes is negative")):
        refuses(run, text, build)

    async def started():
        async with uvarrow.stream(numbers()) as rows:
            await anext(rows)
            with pytest.raises(uvarrow.Error, match="started"):
                rows.tee()

    run(started)


# ---- retry ------------------------------------------------------------------

def test_a_source_is_opened_again(run):
    failures = []

    def fails():
        raise KeyError("no such file")

    def again(failure):
        failures.append(failure)
        return uvarrow.stream(numbers(20) if failure.attempt == 2 else fails)

    async def main():
        return await values(uvarrow.stream(fails).retry(again, delay=0.001))

    assert run(main) == list(range(20))
    assert [one.attempt for one in failures] == [1, 2]
    assert [str(one.error) for one in failures] == ["'no such file'"] * 2
    assert failures[0].rows == failures[0].batches == 0


def test_retry_resumes(run):
    def source(begin):
        for i, batch in enumerate(numbers(100).to_batches()):
            if i == begin + 4:
                raise OSError("lost")
            if i >= begin:
                yield batch

    async def main():
        rows = uvarrow.stream(lambda: source(0)).retry(
            lambda failure: uvarrow.stream(lambda: source(failure.batches)),
            delay=0.001, resume=True, times=None)
        return await values(rows)

    assert run(main) == list(range(100))


@pytest.mark.parametrize("times", [1, 3])
def test_the_last_failure_is_raised(run, times):
    calls = []

    def fails():
        calls.append(1)
        raise KeyError(len(calls))

    async def main():
        await uvarrow.stream(fails).retry(lambda failure: uvarrow.stream(fails),
                                          times=times,
                                          delay=0.001).read_all()

    with pytest.raises(KeyError, match=str(times + 1)):
        run(main)


def test_retry_gives_up(run):
    def fails():
        raise KeyError("first")

    async def main():
        await uvarrow.stream(fails).retry(lambda failure: None).read_all()

    with pytest.raises(KeyError, match="first"):
        run(main)


@pytest.mark.parametrize("result, kind, text", [
    (5, TypeError, "result of the function of retry"),
    ("a.parquet", TypeError, "result of the function of retry"),
    (ValueError("again"), ValueError, "again"),
])
def test_a_function_of_retry_that_fails(run, result, kind, text):
    def fails():
        raise KeyError("first")

    def again(failure):
        if isinstance(result, Exception):
            raise result
        return result

    async def main():
        await uvarrow.stream(fails).retry(again, delay=0.001).read_all()

    with pytest.raises(kind, match=text):
        run(main)


def test_a_started_stream_is_no_answer(run):
    def fails():
        raise KeyError("first")

    async def main():
        async with uvarrow.stream(numbers()) as other:
            await anext(other)
            with pytest.raises(uvarrow.Error, match="started"):
                await uvarrow.stream(fails).retry(lambda failure: other,
                                                  delay=0.001).read_all()

    run(main)


def test_a_cancel_ends_the_delay(run):
    called = threading.Event()

    def fails():
        called.set()
        raise KeyError("first")

    async def main():
        rows = uvarrow.stream(fails).retry(lambda failure: None, delay=3000,
                                           delay_max=3000)
        async with rows:
            assert rows._take() is None
            await anyio.to_thread.run_sync(called.wait)
            rows.cancel()
            with pytest.raises(uvarrow.Error, match="cancel"):
                await anext(rows)

    run(main)


def test_retry_refuses(run):
    async def later(failure):
        return None

    for build, text in (
            (lambda s: s.retry(5), "function must be a function"),
            (lambda s: s.retry(later), "function is `async`"),
            (lambda s: s.retry(print, times=0), "times"),
            (lambda s: s.retry(print, times="x"), "times must be"),
            (lambda s: s.retry(print, delay=-1), "delay is negative"),
            (lambda s: s.retry(print, delay=2, delay_max=1), "delay_max"),
            (lambda s: s.retry(print, resume=1), "resume must be a bool")):
        refuses(run, text, build)


# ---- transform --------------------------------------------------------------

def test_transform_yields_any_number(run):
    def halves(batch):
        table = batch.to_pyarrow()
        if batch.ordinal % 2 == 0:
            yield table.slice(0, 5)
            yield table.slice(5)

    async def main(**options):
        return await uvarrow.stream(numbers(), **options).transform(
            halves).read_all()

    batches = run(main)
    assert [len(batch) for batch in batches] == [5] * 100
    assert len(run(lambda: main(window=1))) == 100


def test_transform_has_a_memory(run):
    class Sum:
        total = 0

        def add(self, batch):
            self.total += sum(batch.to_pyarrow().column("n").to_pylist())
            return []

        def end(self):
            yield pa.record_batch({"total": [self.total]})

    async def main():
        total = Sum()
        rows = uvarrow.stream(numbers()).transform(
            total.add, pa.schema([("total", pa.int64())]), finish=total.end)
        return await values(rows)

    assert run(main) == [499500]


def test_finish_without_a_batch(run):
    async def main():
        rows = uvarrow.stream(pa.table({"n": pa.array([], "int64")})).transform(
            lambda batch: [], finish=lambda: [numbers(10).to_batches()[0]])
        return await values(rows)

    assert run(main) == list(range(10))


def test_a_generator_is_closed_when_the_stream_is_left(run):
    closed = threading.Event()

    def endless(batch):
        try:
            while True:
                yield batch
        finally:
            closed.set()

    async def main():
        async with uvarrow.stream(numbers(10), window=1).transform(
                endless) as rows:
            for _ in range(100):
                await anext(rows)
        await anyio.to_thread.run_sync(closed.wait)

    run(main)


@pytest.mark.parametrize("function, kind, text", [
    (lambda batch: None, TypeError, r"of transform\(\) must be an iterator"),
    (lambda batch: batch, TypeError, r"must be an iterator"),
    (lambda batch: [5], TypeError, r"a batch of the function of transform\(\)"),
    (lambda batch: [numbers(1, name="m").to_batches()[0]], ValueError,
     "another schema"),
    (lambda batch: 1 / 0, ZeroDivisionError, "division"),
    (lambda batch: (1 / 0 for _ in range(2)), ZeroDivisionError, "division"),
    (lambda batch: anyio.sleep(1), TypeError, "awaited"),
])
def test_a_transform_that_fails(run, function, kind, text):
    async def main():
        await uvarrow.stream(numbers()).transform(function).read_all()

    with pytest.raises(kind, match=text):
        run(main)

    async def at_the_end():
        await uvarrow.stream(numbers()).transform(
            lambda batch: [batch], finish=lambda: function(None)).read_all()

    with pytest.raises((kind, TypeError), match="finish|batch|schema|division|"
                       "awaited"):
        run(at_the_end)


def test_an_exception_after_batches_of_a_generator(run):
    def two(batch):
        yield batch
        raise KeyError("two")

    async def main():
        async with uvarrow.stream(numbers()).transform(two) as rows:
            await anext(rows)
            with pytest.raises(KeyError, match="two"):
                await anext(rows)

    run(main)


def test_transform_refuses(run):
    async def generates(batch):
        yield batch

    for build, text in (
            (lambda s: s.transform(5), "function must be a function"),
            (lambda s: s.transform(generates), "function is `async`"),
            (lambda s: s.transform(list, 5), "schema must be"),
            (lambda s: s.transform(list, finish=5), "finish must be")):
        refuses(run, text, build)


# ---- pace -------------------------------------------------------------------

def test_throttle_and_priority(run):
    async def main():
        rows = uvarrow.stream(numbers()).throttle(
            batches=100_000, bytes=1 << 40).priority(-1)
        return await values(rows)

    assert run(main) == list(range(1000))
    for build, text in (
            (lambda s: s.throttle(), "rate|batches|limit"),
            (lambda s: s.throttle(batches=-1), "batches is negative"),
            (lambda s: s.throttle(bytes="x"), "bytes must be"),
            (lambda s: s.priority("x"), "number must be an integer"),
            (lambda s: s.priority(1 << 40), "number is out of range")):
        refuses(run, text, build)


def test_a_pause_holds_batches_back(run):
    async def main():
        seen = []
        async with uvarrow.stream(numbers()) as rows:
            seen.append((await anext(rows)).ordinal)
            rows.pause()
            with anyio.move_on_after(0.02) as scope:
                await anext(rows)
            assert scope.cancelled_caught
            async with anyio.create_task_group() as group:
                async def read():
                    seen.append((await anext(rows)).ordinal)

                group.start_soon(read)
                for _ in range(5):
                    await anyio.lowlevel.checkpoint()
                assert seen == [0]
                rows.resume()
            rows.resume() # no effect
            seen.append((await anext(rows)).ordinal)
        return seen

    assert run(main) == [0, 1, 2]


@pytest.mark.parametrize("end", ["cancel", "_close"])
def test_the_end_ends_a_pause(run, end):
    async def main():
        async with uvarrow.stream(numbers()) as rows:
            await anext(rows)
            rows.pause()
            async with anyio.create_task_group() as group:
                async def read():
                    with pytest.raises((uvarrow.Error, StopAsyncIteration)):
                        await anext(rows)

                group.start_soon(read)
                for _ in range(5):
                    await anyio.lowlevel.checkpoint()
                getattr(rows, end)()
            rows.pause() # no effect any more
            with pytest.raises((uvarrow.Error, StopAsyncIteration)):
                await anext(rows)

    run(main)


def test_a_loop_that_ends_while_a_stream_is_paused(run):
    async def main():
        async with uvarrow.stream(numbers()) as rows:
            await anext(rows)
            rows.pause()
            with anyio.move_on_after(0.01):
                await anext(rows)

    run(main)
