# SPDX-License-Identifier: Apache-2.0
"""The runtime of a loop as a whole: options, counters, log, drain; and the
statistics of stages."""
import logging
import os
import sys

import anyio
import pyarrow as pa
import pytest

import uvarrow
from conftest import run_script


def numbers(rows=1000, size=10):
    table = pa.table({"n": range(rows)})
    return pa.Table.from_batches(table.to_batches(max_chunksize=size))


@pytest.fixture
def options():
    """Options that are as before after the test."""
    before = dict(uvarrow._options._chosen)
    yield uvarrow.configure
    uvarrow._options._chosen.update(before)


def test_counters(run):
    async def main():
        async with uvarrow.stream(numbers()) as rows:
            await anext(rows)
            now = uvarrow.stats()
            assert now.streams_open == 1 and now.turns > 0
            assert now.threads_blocking >= 1
            await rows.read_all()
        return uvarrow.stats()

    after = run(main)
    assert after.streams_open == 0 and after.calls_stuck == 0
    assert isinstance(after.hold_max, float)


def test_statistics_of_stages(run, options):
    options(measure=True)

    async def main():
        async with uvarrow.stream(numbers()).map(
                lambda batch: sum(range(1000)) and batch).rebatch(
                    rows=100) as rows:
            await rows.read_all()
            return rows.stats()

    source, *_, last = run(main)
    assert (source.batches, source.rows, source.next) == (100, 1000, 1)
    assert (last.batches, last.rows) == (10, 1000)
    assert source.queued_max >= 1 and source.requested >= 100
    assert source.busy > 0 and source.busy_max <= source.busy
    assert all(isinstance(one.wakeups, int) for one in (source, last))


def test_statistics_of_many_stages(run):
    """More than any array of a fixed size has."""
    async def main():
        rows = uvarrow.stream(numbers(10))
        for _ in range(40):
            rows.map(lambda batch: batch)
        await rows.read_all()
        return rows.stats()

    assert [one.name for one in run(main)].count("map") == 40


def test_a_budget_of_memory(run, options):
    options(memory_bytes=1)

    async def main():
        async with uvarrow.stream(numbers(10_000)) as rows:
            await anext(rows)
            for _ in range(10):
                await anyio.lowlevel.checkpoint()
            held = uvarrow.stats()
            await rows.read_all()
            return held

    held = run(main)
    assert held.memory_excess > 0 # one batch at a time is let in
    assert held.memory_held <= 8 * 10 * 70


def test_options_are_checked(options):
    for wrong, text in (({"memory_bytes": -1}, "memory_bytes is negative"),
                        ({"memory_bytes": "x"}, "memory_bytes must be"),
                        ({"measure": 1}, "measure must be a bool"),
                        ({"check": None, "measure": "x"}, "measure must be")):
        with pytest.raises((TypeError, ValueError), match=text):
            options(**wrong)


# ---- the log ----------------------------------------------------------------

def test_the_log_goes_to_logging(run, caplog):
    async def main():
        await uvarrow.stream(numbers()).name("numbers").read_all()

    with caplog.at_level(logging.DEBUG, "uvarrow"):
        run(main)
    steps = [one for one in caplog.records if one.stream == "numbers"]
    assert {one.levelno for one in steps} >= {logging.DEBUG}
    assert any("on_next_task" in one.getMessage() for one in steps)
    assert all(one.name == "uvarrow" and one.clause is None for one in steps)
    ordered = [one.created for one in caplog.records]
    assert ordered[-1] - ordered[0] < 60


def test_the_level_of_the_logger_counts(run, caplog):
    async def main():
        await uvarrow.stream(numbers()).read_all()

    with caplog.at_level(logging.WARNING, "uvarrow"):
        run(main)
    assert caplog.records == []


def test_a_handler_that_raises_is_reported(run, monkeypatch):
    reported = []
    monkeypatch.setattr(sys, "unraisablehook", reported.append)

    class Raises(logging.Handler):
        def emit(self, record):
            raise KeyError("handler")

    logger, handler = logging.getLogger("uvarrow"), Raises()
    level = logger.level

    async def main():
        return len(await uvarrow.stream(numbers()).read_all())

    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    try:
        assert run(main) == 100
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)
    assert {one.exc_type for one in reported} == {KeyError}


def test_uva_log_writes_to_standard_error():
    result = run_script("""
        import logging
        logging.basicConfig(level=logging.DEBUG, format="LOGGING %(message)s")
        async def main():
            async with uvarrow.stream([ONE]) as rows:
                await rows.read_all()
        asyncio.run(main())
        """, before="import os; os.environ['UVA_LOG'] = 'debug'\n")
    assert result.returncode == 0
    assert "on_next_task" in result.stderr
    assert "LOGGING python" not in result.stderr
    assert "UVA_LOG" not in os.environ


# ---- drain ------------------------------------------------------------------

def test_drain_waits_for_streams(run, gate):
    async def main():
        source = gate(numbers(30).to_batches(), before=1)
        rows = uvarrow.stream(source)
        await anext(rows)
        done = []

        async def drains():
            await uvarrow.drain()
            done.append(True)

        async with anyio.create_task_group() as group:
            group.start_soon(drains)
            await source.wait_entered()
            for _ in range(5):
                await anyio.lowlevel.checkpoint()
            assert not done
            with pytest.raises(uvarrow.Error, match="drain"):
                await uvarrow.stream(numbers()).read_all()
            source.opened.set()
            assert len(await rows.read_all()) == 2
        assert done
        await uvarrow.drain(0)

    run(main)


def test_drain_has_a_limit(run, gate):
    async def main():
        source = gate(numbers(30).to_batches(), before=1)
        async with uvarrow.stream(source, interrupt=source.interrupt) as rows:
            await anext(rows)
            await source.wait_entered()
            with anyio.move_on_after(0.01): # its wait is cancelled
                await uvarrow.drain()
            await uvarrow.drain(seconds=0.01)
            with pytest.raises(TimeoutError):
                await rows.read_all()

    run(main)


def test_drain_of_nothing(run):
    async def main():
        await uvarrow.drain(1)
        await uvarrow.drain()
        for wrong in (-1, "x"):
            with pytest.raises((TypeError, ValueError), match="seconds"):
                await uvarrow.drain(wrong)

    run(main)
