# SPDX-License-Identifier: Apache-2.0
"""Stages: functions of Python on workers, and stages of the library."""
import threading

import anyio
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import uvarrow


def numbers(rows=1000, size=10):
    table = pa.table({"n": range(rows)})
    return pa.Table.from_batches(table.to_batches(max_chunksize=size))


def collect(run, build):
    async def main():
        async with build() as rows:
            return pa.Table.from_batches([b.to_pyarrow() async for b in rows])

    return run(main)


def double(batch):
    batch = batch.to_pyarrow()
    return pa.record_batch({"n": pc.multiply(batch.column("n"), 2)})


def test_map(run):
    table = collect(run, lambda: uvarrow.stream(numbers()).map(double))
    assert table.column("n").to_pylist() == list(range(0, 2000, 2))


def test_map_runs_on_workers(run):
    threads = set()

    def function(batch):
        threads.add(threading.get_ident())
        return batch

    table = collect(run, lambda: uvarrow.stream(numbers()).map(function))
    assert table == numbers()
    assert threading.get_ident() not in threads


def test_map_to_another_schema(run):
    schema = pa.schema([pa.field("text", pa.string())])

    def function(batch):
        return pa.record_batch([batch.to_pyarrow().column("n").cast("string")],
                               schema=schema)

    table = collect(run,
                    lambda: uvarrow.stream(numbers(20)).map(function, schema))
    assert table.column("text").to_pylist() == [str(i) for i in range(20)]


def test_filter(run):
    table = collect(run, lambda: uvarrow.stream(numbers()).filter(
        lambda batch: batch.ordinal % 2 == 0))
    assert table.num_rows == 500
    assert table.column("n").to_pylist()[8:12] == [8, 9, 20, 21]


@pytest.mark.parametrize("stage, result", [
    ("map", lambda batch: batch), ("filter", lambda batch: batch),
    ("filter", lambda batch: True)])
def test_a_function_that_closes_its_batch_fails(run, stage, result):
    def function(batch):
        batch.close()
        return result(batch)

    async def main():
        await getattr(uvarrow.stream(numbers()), stage)(function).read_all()

    with pytest.raises(ValueError, match="the batch is closed"):
        run(main)


@pytest.mark.parametrize("build", [
    lambda rows: rows.map(lambda batch: batch),
    lambda rows: rows.filter(lambda batch: True),
    lambda rows: rows.map(double).filter(lambda batch: True).map(double),
], ids=["map", "filter", "three"])
def test_a_window_of_one_holds_behind_functions(run, build):
    """One batch waits for the loop, and each place in front of it has one."""
    read = []

    def source():
        for batch in numbers(5000).to_batches():
            read.append(batch)
            yield batch

    async def main():
        taken = 0
        async with build(uvarrow.stream(source(), window=1)) as rows:
            async for _ in rows:
                taken += 1
                assert len(read) <= taken + 3
        return taken

    assert run(main) == 500


def test_without_offsets(run):
    def build(flat):
        rows = uvarrow.stream(pa.table({"n": range(100), "t": ["x"] * 100}))
        rows = rows.rebatch(rows=30)
        return rows.without_offsets() if flat else rows

    for flat in False, True:
        table = collect(run, lambda: build(flat))
        offsets = [chunk.offset for column in table.columns
                   for chunk in column.chunks]
        assert any(offsets) is not flat, offsets
        assert table.column("n").to_pylist() == list(range(100))
        assert table.column("t").to_pylist() == ["x"] * 100


def test_limit(run):
    assert collect(run, lambda: uvarrow.stream(numbers()).limit(
        25)).num_rows == 25
    async def none():
        async with uvarrow.stream(numbers()).limit(rows=0) as rows:
            return [batch async for batch in rows]

    async def main():
        rows = uvarrow.stream(numbers())
        with pytest.raises(TypeError):
            rows.limit()
        with pytest.raises(ValueError):
            rows.limit(-1)

    assert run(none) == []
    run(main)


def test_rebatch(run):
    async def main():
        async with uvarrow.stream(numbers()).rebatch(rows=256) as rows:
            return [len(batch) async for batch in rows]

    assert run(main) == [256, 256, 256, 232]


def test_parallel_keeps_the_order(run):
    table = collect(run, lambda: uvarrow.stream(numbers()).map(double).parallel(
        4))
    assert table.column("n").to_pylist() == list(range(0, 2000, 2))


def test_parallel_unordered(run):
    table = collect(run, lambda: uvarrow.stream(numbers()).parallel(
        4, unordered=True))
    assert sorted(table.column("n").to_pylist()) == list(range(1000))


def test_parallel_functions_run_at_once(run):
    both = threading.Barrier(2)

    def function(batch):
        both.wait()
        return batch

    table = collect(run, lambda: uvarrow.stream(numbers(20)).map(
        function).parallel(2))
    assert table.num_rows == 20


def test_merge(run):
    async def main():
        parts = [uvarrow.stream(numbers()) for _ in range(3)]
        async with uvarrow.merge(*parts) as rows:
            table = pa.Table.from_batches([b.to_pyarrow() async for b in rows])
        with pytest.raises(uvarrow.Error):
            parts[1].limit(1)
        with pytest.raises(TypeError):
            uvarrow.merge(uvarrow.stream(numbers()), numbers())
        again = uvarrow.stream(numbers())
        with pytest.raises(uvarrow.Error):
            uvarrow.merge(again, again)
        return table

    assert sorted(run(main).column("n").to_pylist()) == sorted(
        list(range(1000)) * 3)


def test_a_stream_is_merged_once(run):
    async def main():
        first, other = (uvarrow.stream(numbers()) for _ in range(2))
        with pytest.raises(uvarrow.Error, match="with itself"):
            uvarrow.merge(first, other, other)
        async with uvarrow.merge(uvarrow.merge(first), other) as rows:
            return len(await rows.read_all())

    assert run(main) == 200


def test_merge_casts_to_the_first_schema(run):
    narrow = pa.table({"n": pa.array([1, 2], pa.int32())})

    def merged(value):
        wide = pa.table({"n": pa.array([3, value], pa.int64())})
        return uvarrow.merge(uvarrow.stream(narrow), uvarrow.stream(wide), cast=True)

    table = collect(run, lambda: merged(4))
    assert table.schema == narrow.schema
    assert sorted(table.column("n").to_pylist()) == [1, 2, 3, 4]
    with pytest.raises(uvarrow.Error, match="column n, row 1: 5000000000 is no int32"):
        collect(run, lambda: merged(5_000_000_000))


@pytest.mark.parametrize("keep_going", [False, True])
def test_merge_goes_on_behind_a_failure_if_it_shall(run, keep_going):
    def fails():
        raise ValueError("no such file")

    async def main():
        parts = [uvarrow.stream(fails), uvarrow.stream(numbers())]
        rows = 0
        async with uvarrow.merge(*parts, keep_going=keep_going,
                                 open_at_once=1) as merged:
            with pytest.raises((uvarrow.Error, ValueError),
                               match="no such file"):
                async for batch in merged:
                    rows += len(batch)
        return rows

    assert run(main) == (1000 if keep_going else 0)


def test_open_at_once_limits_the_sources(run):
    opened = []

    async def main():
        def opens(i):
            opened.append(i)
            return numbers()

        parts = [uvarrow.stream(lambda i=i: opens(i)) for i in range(3)]
        async with uvarrow.merge(*parts, open_at_once=1, window=1) as rows:
            await anext(rows)
            first = len(opened)
            return first, len(await rows.read_all())

    assert run(main) == (1, 299)
    assert sorted(opened) == [0, 1, 2]


def test_a_window_limits_what_is_under_way(run):
    table = collect(run, lambda: uvarrow.stream(numbers()).parallel(
        2, window=1).rebatch(rows=30, window=1, max_bytes=1))
    assert table.column("n").to_pylist() == list(range(1000))


def test_stats_and_trace(run):
    events = []

    async def main():
        rows = uvarrow.stream(numbers()).name("numbers").trace(
            lambda *event: events.append(event)).map(double)
        async with rows:
            async for _ in rows:
                pass
            return rows.stats()

    stats = run(main)
    assert [row.name for row in stats[:2]] == ["arrow_stream", "map"]
    assert stats[0].batches == 100
    assert stats[0].rows == 1000
    kinds = [kind for kind, *_ in events]
    assert kinds[0] in ("schema", "request")
    assert kinds.count("batch") == 100
    assert kinds[-1] == "end"
    assert events[-1][2] == 0


def test_options_are_checked(run):
    async def main():
        for build in (lambda s: s.map(5), lambda s: s.filter(None),
                      lambda s: s.trace(""), lambda s: s.map(double, 5),
                      lambda s: s.rebatch(), lambda s: s.rebatch(rows=-1),
                      lambda s: s.timeout(total=-1),
                      lambda s: s.parallel(-1)):
            with pytest.raises((TypeError, ValueError, uvarrow.Error)):
                build(uvarrow.stream(numbers()))

    run(main)


def test_no_stage_is_added_to_what_runs(run):
    async def main():
        async with uvarrow.stream(numbers()) as rows:
            await anext(rows)
            for build in (lambda: rows.map(double), lambda: rows.limit(1),
                          rows.to_reader, lambda: rows.name("late")):
                with pytest.raises(uvarrow.Error, match="started"):
                    build()

    run(main)


def test_a_cancel_while_a_function_runs(run):
    entered, opened = threading.Event(), threading.Event()

    def function(batch):
        entered.set()
        opened.wait()
        return batch

    async def main():
        rows = uvarrow.stream(numbers()).map(function)
        async with rows:
            async with anyio.create_task_group() as group:
                group.start_soon(first_of, rows)
                await anyio.to_thread.run_sync(entered.wait)
                group.cancel_scope.cancel()
        opened.set()

    run(main)


async def first_of(rows):
    await anext(rows)
