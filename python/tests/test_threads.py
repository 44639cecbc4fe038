# SPDX-License-Identifier: Apache-2.0
"""The threads that read sources: how many there are, what waits for one, and a
thread for one source alone."""
import sqlite3
import threading

import anyio
import pyarrow as pa
import pytest

import uvarrow
from conftest import in_thread, run_script

ONE = pa.record_batch({"n": [1]})
FAR_MORE = 200


# ---- quiet sources ----------------------------------------------------------

@pytest.fixture
def quiet():
    """Sources that give a batch, and then wait."""
    opened = threading.Event()

    def make():
        yield ONE
        opened.wait()

    yield make
    opened.set()


async def first_of(streams):
    for one in streams:
        await anext(one)


def test_quiet_sources_do_not_stop_another_stream(run, quiet):
    async def main():
        streams = [uvarrow.stream(quiet) for _ in range(FAR_MORE)]
        await first_of(streams)
        for _ in range(3):
            assert len(await uvarrow.stream(pa.table({"n": [1]})).read_all()) == 1
        for one in streams:
            await one.aclose(seconds=0)

    run(main)


def test_quiet_asynchronous_sources_take_no_thread(run):
    async def main():
        opened = anyio.Event()

        async def quiet():
            yield ONE
            await opened.wait()

        before = uvarrow.stats().threads_blocking
        streams = [uvarrow.stream(quiet) for _ in range(FAR_MORE)]
        await first_of(streams)
        assert uvarrow.stats().threads_blocking <= before
        opened.set()
        for one in streams:
            await one.read_all()

    run(main)


LIMITED = """
    import logging
    uvarrow.configure(threads=2)
    lines = []

    class Kept(logging.Handler):
        def emit(self, record):
            lines.append(record.getMessage())
            opened.set()

    logging.getLogger("uvarrow").addHandler(Kept())

    async def main():
        async with asyncio.TaskGroup() as tasks:
            for _ in range(3):
                tasks.create_task(uvarrow.stream(stuck).read_all())
        print(uvarrow.stats().threads_blocking, lines)

    asyncio.run(main())
    """


def test_a_limit_of_threads_is_kept_and_a_wait_for_one_is_in_the_log():
    """The third source gets a thread when the others, which wait for the warning,
    have ended."""
    result = run_script(LIMITED, seconds="5")
    assert result.stderr == ""
    assert result.stdout.startswith("2 ['streams wait for a thread: ")
    assert result.stdout.count("streams wait") == 1


def test_threads_are_checked():
    for bad in (-1, "4", 1.5, 2 ** 40):
        with pytest.raises((TypeError, ValueError), match="threads"):
            uvarrow.configure(threads=bad)


# ---- a thread for one source ------------------------------------------------

def numbers():
    """Rows of a connection that may be used on one thread alone."""
    connection = sqlite3.connect(":memory:")
    try:
        rows = connection.execute(
            "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c "
            "WHERE n < 500) SELECT n FROM c")
        while part := rows.fetchmany(10):
            yield pa.record_batch({"n": [n for n, in part]})
    finally:
        connection.close()


def test_its_objects_are_used_on_one_thread(run):
    async def main():
        rows = uvarrow.merge(*(uvarrow.stream(numbers, window=1, own_thread=True)
                               for _ in range(8)))
        total = 0
        async for batch in rows:
            total += sum(batch.to_pyarrow().column(0).to_pylist())
            await anyio.lowlevel.checkpoint()
        assert total == 8 * 500 * 501 // 2

    run(main)


class Steps:
    """Notes the thread of each of its steps, and what belongs to the thread."""

    def __init__(self):
        self.threads = []
        self.local = threading.local()
        self.fails = False

    def note(self):
        self.threads.append(threading.get_ident())
        self.local.count = getattr(self.local, "count", 0) + 1

    def batches(self):
        self.note()
        try:
            for _ in range(5):
                self.note()
                yield ONE
                if self.fails:
                    raise ValueError("broke")
        finally:
            self.note()
            assert self.local.count == len(self.threads)

    def close(self):
        self.note()


def test_each_step_is_on_that_thread(run):
    async def main():
        steps, other = Steps(), Steps()
        rows = uvarrow.merge(*(
            uvarrow.stream(one.batches, window=1, own_thread=True,
                           close=one.close) for one in (steps, other)))
        assert len(await rows.read_all()) == 10
        await rows.aclose(seconds=None)
        for one in (steps, other):
            assert len(one.threads) == 8
            assert len(set(one.threads)) == 1
        assert steps.threads[0] != other.threads[0]

    run(main)


def test_a_generator_that_is_left_is_closed_on_that_thread(run):
    async def main():
        steps = Steps()
        rows = uvarrow.stream(steps.batches(), window=1, own_thread=True)
        await anext(rows)
        await rows.aclose(seconds=None)
        assert len(set(steps.threads)) == 1
        assert steps.local.__dict__ == {} # of this thread

    run(main)


def test_an_exception_of_that_thread_arrives(run):
    async def main():
        steps = Steps()
        steps.fails = True
        with pytest.raises(ValueError, match="broke"):
            await uvarrow.stream(steps.batches, own_thread=True).read_all()
        with pytest.raises(ZeroDivisionError):
            await uvarrow.stream(lambda: 1 // 0, own_thread=True).read_all()

    run(main)


def test_that_thread_may_be_stuck(run, gate):
    async def main():
        stuck = gate([ONE, ONE], before=1)
        async with uvarrow.stream(stuck, own_thread=True,
                                  interrupt=stuck.interrupt) as rows:
            await anext(rows)
            await stuck.wait_entered()
        await in_thread(stuck.closed.wait)
        assert stuck.interrupts > 0

    run(main)


def test_a_reader_may_have_a_thread_of_its_own(run):
    async def main():
        table = pa.table({"n": range(100)})
        rows = uvarrow.stream(table, own_thread=True)
        assert (await rows.schema()).names == ["n"]
        assert sum(len(one) for one in await rows.read_all()) == 100
        with pytest.raises(TypeError):
            await uvarrow.stream(pa.array([1]), own_thread=True).read_all()

    run(main)


class Bound:
    """As an object of sqlite3, with a text of its own."""

    def __iter__(self):
        thread = threading.get_ident()
        for _ in range(1000):
            yield ONE
            if threading.get_ident() != thread:
                raise RuntimeError("not the thread that has opened it")


def test_an_exception_about_threads_names_the_option(run):
    class Always(Bound):
        def __iter__(self):
            yield ONE
            raise RuntimeError("not the thread that has opened it")

    async def main(**options):
        with pytest.raises(RuntimeError) as caught:
            await uvarrow.stream(Always(), **options).read_all()
        return getattr(caught.value, "__notes__", [])

    assert "own_thread=True" in run(main)[0]
    assert run(lambda: main(own_thread=True)) == []


def test_own_thread_is_for_workers_and_data_of_the_cpu(run):
    async def source():
        yield ONE

    async def main():
        with pytest.raises(TypeError, match="own_thread"):
            uvarrow.stream(ONE, own_thread=1)
        with pytest.raises(ValueError, match="own_thread"):
            uvarrow.stream(source, own_thread=True)
        with pytest.raises(ValueError, match="own_thread"):
            uvarrow.stream(lambda: None, own_thread=True, device_type=2)
        with pytest.raises(ValueError, match="close"):
            uvarrow.stream(source, close=print)
        with pytest.raises(TypeError, match="close"):
            uvarrow.stream(ONE, close=1)

    run(main)


# ---- close ------------------------------------------------------------------

@pytest.mark.parametrize("own_thread", [False, True])
def test_close_is_called_when_a_stream_is_left_between_calls(run, own_thread):
    async def main():
        closed = []
        rows = uvarrow.stream([ONE] * 100, window=1, own_thread=own_thread,
                              close=lambda: closed.append(True))
        async with rows:
            await anext(rows)
            assert closed == []
            await rows.aclose(seconds=None)
        assert closed == [True]

    run(main)


def test_close_is_called_at_the_end_and_after_a_failure(run):
    async def main():
        closed = []
        for source in ([ONE], lambda: 1 // 0):
            rows = uvarrow.stream(source, close=lambda: closed.append(True))
            try:
                await rows.read_all()
            except ZeroDivisionError:
                pass
            await rows.aclose(seconds=None)
        assert closed == [True, True]

    run(main)


def test_a_source_that_was_not_opened_is_not_closed(run):
    async def main():
        closed = []
        async with uvarrow.stream([ONE], close=lambda: closed.append(True)):
            pass
        assert closed == []

    run(main)


def test_what_close_raises_is_reported(run, monkeypatch):
    async def main():
        reported = []
        monkeypatch.setattr("sys.unraisablehook", reported.append)
        for close in (lambda: 1 // 0, lambda: wait()):
            rows = uvarrow.stream([ONE], close=close)
            await rows.read_all()
            await rows.aclose(seconds=None)
        assert [one.exc_type for one in reported] == [ZeroDivisionError, TypeError]

    async def wait():
        pass

    run(main)
