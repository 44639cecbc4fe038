# SPDX-License-Identifier: Apache-2.0
"""merge() of many streams is one stage: what it holds, whose turn it is, what a
wait costs, and which stream an error names."""
import collections
import threading

import anyio
import pyarrow as pa
import pytest

import uvarrow
from conftest import in_thread

MANY = 1000


class Counted:
    """So many batches, of which it counts those that were made."""

    def __init__(self, number, *, count=1 << 60, rows=1):
        self.batch = pa.record_batch({"n": pa.array([number] * rows, pa.int64())})
        self.made = 0
        self._count = count

    def __iter__(self):
        while self.made < self._count:
            self.made += 1
            yield self.batch


def number_of(batch):
    return batch.to_pyarrow().column(0)[0].as_py()


# ---- one stage --------------------------------------------------------------

@pytest.mark.parametrize("count", [2, 10, MANY])
def test_it_is_one_stage_whatever_their_number(run, count):
    async def main():
        rows = uvarrow.merge(*(uvarrow.stream(pa.table({"n": [i]}))
                               for i in range(count)))
        assert len(await rows.read_all()) == count
        stages = rows.stats()
        assert [one.name for one in stages] == ["arrow_stream"] * count + ["merge"]
        assert {one.next for one in stages[:-1]} == {count}

    run(main)


def test_they_hold_no_more_than_their_windows(run):
    async def main():
        size = 1 << 14
        sources = [Counted(i, rows=size // 8) for i in range(64)]
        rows = uvarrow.merge(*(uvarrow.stream(one, window=4, max_bytes=4 * size)
                               for one in sources), window=4, max_bytes=4 * size)
        async with rows:
            taken = collections.Counter()
            async for batch in rows:
                taken[number_of(batch)] += 1
                if taken.total() == 64 * 20:
                    break
            held = [one.made - taken[i] for i, one in enumerate(sources)]
        # those read ahead, those that wait for the loop, those of the merge; and
        # the one that is being made
        assert max(held) <= 4 + 4 + 4 + 1

    run(main)


def test_each_has_its_share(run):
    async def main():
        # a source that has no batch when its turn comes misses that turn, so all
        # batches are there before, and the loop reads none ahead
        sources = [Counted(i, count=60) for i in range(16)]
        taken = collections.Counter()
        nothing = uvarrow.stream(pa.table({"n": pa.array([], pa.int64())}),
                                 window=1)
        async with uvarrow.merge(nothing, *map(uvarrow.stream, sources)) as rows:
            await anext(rows)
            while min(one.made for one in sources) < 60:
                await anyio.lowlevel.checkpoint()
            async for batch in rows:
                taken[number_of(batch)] += 1
                if taken.total() == 16 * 50:
                    break
        assert all(45 <= taken[i] <= 55 for i in range(16))

    run(main)


def test_a_wait_for_many_costs_as_much_as_for_few(run):
    """A waiter is kept once, not with each of the streams."""
    async def waits(count):
        gate = threading.Event()

        def one():
            gate.wait()
            yield pa.record_batch({"n": [1]})

        rows = uvarrow.merge(uvarrow.stream(one), *(
            uvarrow.stream(pa.table({"n": pa.array([], pa.int64())}))
            for _ in range(count - 1)))
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(rows.read_all)
            await anyio.lowlevel.checkpoint()
            while not rows._waiters():
                await anyio.lowlevel.checkpoint()
            kept = rows._waiters()
            gate.set()
        return kept

    async def main():
        assert await waits(2) == await waits(200) == 1

    run(main)


def test_a_batch_of_many_takes_as_many_turns_as_of_few(run):
    """Of the event loop, which are most of what a batch costs."""
    async def turns(count):
        table = pa.Table.from_batches([pa.record_batch({"n": [1]})] * 20)
        rows = uvarrow.merge(*(uvarrow.stream(table, window=4)
                               for _ in range(count)))
        before = uvarrow.stats().turns
        batches = len(await rows.read_all())
        return (uvarrow.stats().turns - before) / batches

    async def main():
        assert await turns(MANY) <= 1.3 * max(await turns(10), 0.25)

    run(main)


# ---- names ------------------------------------------------------------------

def fails(*_):
    yield pa.record_batch({"n": [1]})
    raise ValueError("broke")


@pytest.mark.parametrize("bad", range(3))
@pytest.mark.parametrize("join", [uvarrow.merge, uvarrow.concat])
def test_an_exception_has_a_note_of_the_stream_that_failed(run, join, bad):
    async def main():
        parts = [uvarrow.stream(fails if i == bad else pa.table({"n": [i]}))
                 .name(f"part {i}") for i in range(3)]
        with pytest.raises(ValueError) as caught:
            await join(*parts).name("all").read_all()
        assert str(caught.value) == "broke"
        assert caught.value.__notes__ == [f"uvarrow: in the stream 'part {bad}'"]

    run(main)


def test_an_exception_of_one_stream_has_no_note(run):
    async def main():
        with pytest.raises(ValueError) as caught:
            await uvarrow.stream(fails).name("alone").read_all()
        assert not hasattr(caught.value, "__notes__")

    run(main)


@pytest.mark.parametrize("bad", range(3))
def test_an_error_begins_with_the_name_of_the_stream_that_failed(run, bad):
    async def main():
        async with uvarrow.adbc.Pool("sqlite", uri=":memory:") as pool:
            parts = [pool.query("SELECT nope" if i == bad else "SELECT 1")
                     .name("ABC"[i]) for i in range(3)]
            with pytest.raises(uvarrow.Error, match="nope") as caught:
                await uvarrow.merge(*parts).read_all()
            assert caught.value.strerror.startswith(f"{'ABC'[bad]}: query: ")

    run(main)


def test_statistics_tell_a_stuck_stream_from_one_that_is_over(run, gate):
    async def main():
        stuck = gate([pa.record_batch({"n": [1]})])
        rows = uvarrow.merge(uvarrow.stream(pa.table({"n": [1]})).name("short"),
                             uvarrow.stream(stuck).name("stuck"))
        async with rows:
            await anext(rows)
            await stuck.wait_entered()
            while rows.stats()[0].waiting != "over":
                await anyio.lowlevel.checkpoint()
            stats = rows.stats()
            stuck.opened.set()
        assert [(one.stream, one.waiting) for one in stats[:2]] == [
            ("short", "over"), ("stuck", "")]

    run(main)


def test_a_limit_of_time_names_the_stream_that_it_waits_for(run, gate):
    async def main():
        stuck = gate([pa.record_batch({"n": [1]})])
        rows = uvarrow.merge(
            uvarrow.stream(pa.table({"n": [1]})).name("short"),
            uvarrow.stream(stuck, interrupt=stuck.interrupt).name("stuck"))
        with pytest.raises(TimeoutError, match="stuck: arrow_stream waits for"):
            await rows.timeout(between=0.05).read_all()
        await in_thread(stuck.closed.wait)

    run(main)
