# SPDX-License-Identifier: Apache-2.0
"""Begins and ends: loops, streams, forks of the process. How it exits is in
test_exit.py."""
import asyncio
import gc
import os
import sys
import threading
import time
import warnings
import weakref

import pyarrow as pa
import pytest

import uvarrow
from conftest import run_on, run_script

ONE = pa.record_batch({"n": [1]})


def descriptors():
    return len(os.listdir("/proc/self/fd"))


def threads():
    return len(os.listdir("/proc/self/task"))


def resident_kib():
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE") // 1024


async def read_one():
    async with uvarrow.stream([ONE] * 3) as rows:
        return len(await anext(rows))


@pytest.mark.parametrize("kind", ["asyncio", "uvloop", "trio"])
def test_many_loops_in_a_row_leave_nothing(kind):
    for _ in range(3):
        run_on(kind, read_one)
    before = descriptors(), threads()
    for _ in range(200):
        run_on(kind, read_one)
    assert not uvarrow._host._hosts
    after = descriptors(), threads()
    assert after[0] <= before[0]
    assert after[1] <= before[1] + 1 # workers are shared, and may be one more


def test_a_loop_that_is_only_closed_leaves_nothing():
    before = descriptors()
    for _ in range(20):
        loop = asyncio.new_event_loop()
        loop.run_until_complete(read_one())
        loop.close()
        del loop
    gc.collect()
    assert not uvarrow._host._hosts
    assert descriptors() <= before


def test_ten_thousand_streams_leave_nothing():
    async def main():
        async def some(count):
            for i in range(count):
                rows = uvarrow.stream([ONE] * 2)
                if i % 4 == 0:
                    assert len(await rows.read_all()) == 2
                elif i % 4 == 1:
                    async with rows:
                        await anext(rows)
                elif i % 4 == 2:
                    rows.map(lambda batch: batch).limit(1)
                del rows # one in two is dropped without a start

        await some(500)
        gc.collect()
        before = descriptors(), resident_kib()
        await some(10000)
        gc.collect()
        return before, (descriptors(), resident_kib())

    before, after = run_on("asyncio", main)
    assert after[0] <= before[0]
    if not os.environ.get("UVA_TEST_SANITIZE"): # which keeps freed memory
        assert after[1] < before[1] + 8192


# ---- the process ------------------------------------------------------------

def test_a_forked_child_has_streams_of_its_own():
    result = run_script("""
        async def read():
            return len(await uvarrow.stream([ONE] * 5).read_all())

        async def main():
            kept = uvarrow.stream([ONE] * 100)
            first = await anext(kept)
            pid = os.fork()
            if pid == 0:
                code = 1
                try:
                    try:
                        uvarrow.stream([ONE])  # this loop's host is new
                    except RuntimeError:
                        pass
                    try:
                        kept._take()
                    except (RuntimeError, uvarrow.Error):
                        code = 2
                    assert first.to_pyarrow().num_rows == 1
                    del kept, first
                    box = []
                    thread = threading.Thread(
                        target=lambda: box.append(asyncio.run(read())))
                    thread.start()
                    thread.join()
                    code = 0 if code == 2 and box == [5] else 3
                finally:
                    os._exit(code)
            _, status = await asyncio.to_thread(os.waitpid, pid, 0)
            assert os.waitstatus_to_exitcode(status) == 0, status
            assert len(await anext(kept)) == 1
            await kept.aclose()
            print(await read())

        asyncio.run(main())
    """)
    assert (result.returncode, result.stdout) == (0, "5\n"), result.stderr


def test_a_sub_interpreter_is_refused_clearly():
    result = run_script("""
        try:
            import _interpreters as interpreters
        except ImportError:
            import _xxsubinterpreters as interpreters
        one = interpreters.create()
        try:
            failure = interpreters.run_string(
                one, f"import sys; sys.path[:] = {sys.path!r}\\nimport uvarrow")
        except Exception as error:
            failure = error
        interpreters.destroy(one)
        print(getattr(failure, "formatted", failure))

        # it works on in the main one, where PyGILState_Check() is of no use now
        async def main():
            reader = uvarrow.stream([ONE] * 5).to_reader()
            print(len(await uvarrow.stream(reader).read_all()))
        asyncio.run(main())
    """)
    assert result.returncode == 0, result.stderr
    first, last = result.stdout.splitlines()
    assert "ImportError" in first and "interpreter" in first
    assert last == "5"


@pytest.mark.parametrize("kind", ["asyncio", "uvloop"])
def test_a_loop_that_is_closed_with_a_task_that_reads_leaves_nothing(
        kind, gate, caplog):
    """As in a program without clean-up: asyncio logs the lost task."""
    import uvloop
    make = {"asyncio": asyncio.new_event_loop, "uvloop": uvloop.new_event_loop}

    async def read(source):
        async with uvarrow.stream(source) as rows:
            await anext(rows)

    def once():
        source = gate([ONE])
        loop = make[kind]()
        task = loop.create_task(read(source))
        while not source.entered.is_set():
            loop.run_until_complete(asyncio.sleep(0))
        loop.close()
        assert not uvarrow._host._hosts
        source.opened.set()
        return weakref.ref(task), weakref.ref(loop)

    gone = [once()]
    collect()
    before = descriptors()
    gone += [once() for _ in range(3)]
    collect()
    assert [ref for pair in gone for ref in pair if ref() is not None] == []
    for _ in range(1000): # a worker may be about to drop its source
        if descriptors() <= before:
            break
        time.sleep(0.01)
    assert descriptors() <= before


def collect():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(3):
            gc.collect()


def test_loops_that_threads_close_leave_nothing():
    kept = []

    def work():
        loop = asyncio.new_event_loop()
        loop.run_until_complete(read_one())
        loop.close()
        kept.append(loop) # it is collected on another thread

    def once():
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        assert not uvarrow._host._hosts

    once()
    before = descriptors() # a closed loop has no descriptors
    for _ in range(10):
        once()
    assert descriptors() <= before
    kept.clear()


class Owner:
    """A function that makes a cycle with its stream."""

    def __init__(self, build):
        self.rows = build(self)

    def source(self):
        yield ONE

    def function(self, batch):
        return batch

    def look(self, *event):
        pass


@pytest.mark.parametrize("build", [
    lambda owner: uvarrow.stream(owner.source),
    lambda owner: uvarrow.stream([ONE] * 9, interrupt=owner.look),
    lambda owner: uvarrow.stream([ONE] * 9).map(owner.function),
    lambda owner: uvarrow.stream([ONE] * 9).filter(owner.function),
    lambda owner: uvarrow.stream([ONE] * 9).trace(owner.look),
    lambda owner: uvarrow.merge(
        uvarrow.stream([ONE] * 9),
        uvarrow.stream([ONE] * 9).map(owner.function))],
    ids=["source", "interrupt", "map", "filter", "trace", "merge"])
def test_cycles_through_a_stream_are_collected(build):
    async def main():
        gone = [weakref.ref(Owner(build)) for _ in range(20)]
        owner = Owner(build)
        await anext(owner.rows)
        gone.append(weakref.ref(owner))
        del owner
        collect()
        assert [ref for ref in gone[:20] if ref() is not None] == []
        return gone

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gone = run_on("asyncio", main)
    collect() # a worker keeps its objects until the loop has ended
    assert [ref for ref in gone if ref() is not None] == []


@pytest.mark.parametrize("build", [
    lambda owner: uvarrow.stream(lambda: owner.source()),
    lambda owner: uvarrow.stream([ONE] * 99, interrupt=lambda: owner.look()),
    lambda owner: uvarrow.stream([ONE] * 99).map(lambda b: owner.function(b)),
    lambda owner: uvarrow.stream([ONE] * 99).filter(lambda b: owner.function(b)),
    lambda owner: uvarrow.stream([ONE] * 99).trace(lambda *e: owner.look(*e)),
    lambda owner: uvarrow.merge(
        uvarrow.stream([ONE] * 99),
        uvarrow.stream([ONE] * 99).trace(lambda *e: owner.look(*e)))],
    ids=["source", "interrupt", "map", "filter", "trace", "merge"])
def test_a_stream_in_a_cycle_calls_its_functions_until_it_has_ended(build):
    """The collector empties a function that it has found to be garbage."""
    mark = object() # weak references do not show objects that the collector has kept
    before = sys.getrefcount(mark)

    async def main():
        owners = [Owner(build) for _ in range(20)]
        for owner in owners:
            owner.mark = mark
            await anext(owner.rows)
        del owner
        owners.clear()
        collect()

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        run_on("asyncio", main)
    collect()
    assert sys.getrefcount(mark) == before


def test_closing_a_stream_may_call_it_again():
    class Owner:
        def __init__(self):
            self.rows = uvarrow.stream([ONE]).map(self.function)

        def function(self, batch):
            return batch

        def __del__(self):
            self.rows.cancel()

    async def main():
        for _ in range(20):
            await Owner().rows.aclose() # the stage alone keeps the owner
        return await read_one()

    assert run_on("asyncio", main) == 1


def test_a_stream_that_cannot_be_opened_leaves_nothing():
    async def main():
        for bad in [2.5, 2 ** 40] * 20:
            with pytest.raises((TypeError, ValueError)):
                await anext(uvarrow.stream([ONE], device_type=bad))
        return await read_one()

    assert run_on("asyncio", main) == 1


def test_an_exported_stream_keeps_what_it_calls():
    """Its cycle is garbage, but for the reader of another thread."""
    async def main():
        reader = Owner(lambda owner: uvarrow.stream([ONE] * 9).map(
            lambda batch: owner.function(batch))).rows.to_reader()
        collect()
        async with uvarrow.stream(reader) as rows:
            return len([batch async for batch in rows])

    assert run_on("asyncio", main) == 9


def test_a_pool_of_many_loops_leaves_nothing(tmp_path):
    import uvarrow.adbc
    pytest.importorskip("adbc_driver_sqlite")
    pool = uvarrow.adbc.Pool("sqlite", uri=str(tmp_path / "rows.db"))

    async def main():
        return len(await pool.query("SELECT 1").read_all())

    assert run_on("asyncio", main) == 1
    gc.collect()
    before = descriptors()
    for _ in range(20):
        run_on("asyncio", main)
    gc.collect()
    assert len(pool._pools) == 0
    assert descriptors() <= before
