# SPDX-License-Identifier: Apache-2.0
"""The exit of a process: its waits, and that no data is lost by it."""
import itertools
import textwrap
from concurrent.futures import ThreadPoolExecutor

import pytest

import uvarrow
from conftest import run_script


def test_exit_while_a_source_can_be_interrupted():
    result = run_script("""
        async def main():
            rows = uvarrow.stream(stuck(), interrupt=opened.set)
            await anext(rows)
            entered.wait()
            sys.exit(3)
        asyncio.run(main())
    """, seconds="30")
    assert (result.returncode, result.stderr) == (3, "")


@pytest.mark.parametrize("source", [
    "stuck()", "pa.RecordBatchReader.from_batches(ONE.schema, stuck())"])
def test_exit_while_a_source_is_stuck(source):
    result = run_script(f"""
        async def main():
            rows = uvarrow.stream({source})
            await anext(rows)
            entered.wait()
            print("done")
        asyncio.run(main())
    """)
    assert result.stdout == "done\n"
    assert result.returncode == uvarrow.EXIT_STUCK
    assert result.stderr.startswith("uvarrow: a source did not return within")


@pytest.mark.parametrize("text, seconds", [
    ("0", 0), ("0.5", 0.5), ("1e9", 1e9), ("-1", 5), ("nan", 5), ("inf", 5),
    ("soon", 5), ("", 5)])
def test_a_limit_that_is_no_time_is_that_by_default(monkeypatch, text, seconds):
    monkeypatch.setenv("UVARROW_EXIT_SECONDS", text)
    assert uvarrow._host._exit_seconds() == seconds


@pytest.mark.parametrize("ms", ["float('nan')", "-1.0", "0.0"])
def test_a_limit_that_is_none_ends_the_process_at_once(ms):
    result = run_script(f"""
        uvarrow._core.leave({ms})
        opened.wait() # never
    """, timeout=60)
    assert result.returncode == uvarrow.EXIT_STUCK


def test_exit_with_an_open_stream_and_loop():
    result = run_script("""
        loop = asyncio.new_event_loop()
        async def main():
            global rows
            rows = uvarrow.stream([ONE] * 100).map(lambda batch: batch)
            await anext(rows)
        loop.run_until_complete(main())
    """)
    assert (result.returncode, result.stderr) == (0, "")


def test_exit_of_another_thread_that_runs_a_loop():
    result = run_script("""
        async def main():
            async with uvarrow.stream(stuck(), interrupt=opened.set) as rows:
                async for _ in rows:
                    pass
        threading.Thread(target=asyncio.run, args=(main(),),
                         daemon=True).start()
        entered.wait()
    """, seconds="30")
    assert result.returncode == 0, result.stderr


def test_os_exit_is_safe():
    result = run_script("""
        async def main():
            rows = uvarrow.stream(stuck())
            await anext(rows)
            entered.wait()
            os._exit(4)
        asyncio.run(main())
    """)
    assert (result.returncode, result.stderr) == (4, "")


def test_an_exception_keeps_its_status():
    result = run_script("""
        async def main():
            rows = uvarrow.stream([ONE] * 10)
            await anext(rows)
            raise KeyError("mine")
        asyncio.run(main())
    """)
    assert result.returncode == 1
    assert "KeyError: 'mine'" in result.stderr


def test_control_c_ends_the_wait_for_a_stuck_source():
    result = run_script("""
        import atexit, signal, warnings
        warnings.simplefilter("ignore")
        # what a shell starts in the background ignores the key
        signal.signal(signal.SIGINT, signal.default_int_handler)
        wait_out = uvarrow._core.wait_out

        def waits(milliseconds): # as if the key were pressed during the wait
            if milliseconds:
                signal.raise_signal(signal.SIGINT)
            return wait_out(milliseconds)

        uvarrow._core.wait_out = waits

        async def main():
            rows = uvarrow.stream(stuck())
            await anext(rows)
            entered.wait()
        asyncio.run(main())
    """, seconds="1000")
    assert result.returncode == uvarrow.EXIT_STUCK, result.stderr
    assert "a source did not return" in result.stderr
    assert "Traceback" not in result.stderr


# ---- handlers without work --------------------------------------------------

# This handler is called after uvarrow's, and the file is written when the
# interpreter ends.
BEFORE = """
import atexit, sys
atexit.register(lambda: print("handled"))
log = open(sys.argv[1], "w", encoding="ascii")
log.write("buffered")
"""

RUNS = {
    "asyncio": "asyncio.run(main())",
    "uvloop": "import uvloop; uvloop.run(main())",
    "trio": "import trio; trio.run(main)",
}

IDLE = [
    "uvarrow.stream(source())",
    "uvarrow.stream(source)",
    "uvarrow.stream(source(), interrupt=opened.set)",
    "uvarrow.stream(pa.table(ONE))",
    "uvarrow.stream(source(), device_type=1)",
    "uvarrow.stream(source).map(same).filter(same).trace(print)",
    "uvarrow.merge(uvarrow.stream(source).map(same), uvarrow.stream(source()))",
    "Owner()",
    "uvarrow.stream(source()).__anext__()",
    "uvarrow.ipc(uvarrow.stream(source()))",
    "uvarrow.stream(pa.table(ONE)).to_reader()",
    "uvarrow.stream(source()).to_device_reader()",
    "uvarrow.to_reader(rows_of(), ONE.schema)",
    "POOL",
    "POOL.query('SELECT ?', pa.table(ONE))",
    "POOL.ingest('t', pa.table(ONE))",
    "[rows := uvarrow.stream(source), rows.cancel('why')]",
    "[rows := uvarrow.stream([ONE] * 500), await anext(rows)]",
]

KEEP = """
import uvarrow.adbc
POOL = uvarrow.adbc.Pool("sqlite", uri=":memory:")
kept = []

def source():
    yield ONE

async def rows_of():
    yield ONE

def same(batch):
    return batch

class Owner:
    def __init__(self):
        self.rows = uvarrow.stream(source).map(self.same)

    def same(self, batch):
        return batch
"""


def assert_leaves_at_once(kind, text, tmp_path, status=0):
    """The wait for a source is longer than a test may last."""
    log = tmp_path / "log"
    result = run_script(KEEP + textwrap.dedent(f"""
        async def main():
            {text}
        {RUNS[kind]}
    """), str(log), seconds="1000", before=BEFORE)
    assert result.returncode == status, result.stderr
    assert result.stdout == "handled\n"
    assert log.read_text() == "buffered"
    return result.stderr


@pytest.mark.parametrize("kind", RUNS)
def test_exit_with_what_was_never_read(kind, tmp_path):
    assert_leaves_at_once(kind, f"kept.extend([{', '.join(IDLE)}])", tmp_path)


@pytest.mark.parametrize("mistake", [
    "limit(rows=-1)", "map(same, schema='x')"])
def test_a_mistake_ends_the_process_as_any_exception(mistake, tmp_path):
    """Its traceback keeps the stream."""
    stderr = assert_leaves_at_once(
        "asyncio", f"rows = uvarrow.stream(source()); rows.{mistake}",
        tmp_path, status=1)
    assert "Error" in stderr


def test_a_source_that_was_never_read_is_freed_at_the_exit():
    result = run_script("""
        class Source:
            def __iter__(self):
                return iter([ONE])
            def __del__(self):
                os.write(1, b"freed")
        async def main():
            kept.append(uvarrow.stream(Source()))
        kept = []
        asyncio.run(main())
    """, seconds="1000")
    assert (result.returncode, result.stdout) == (0, "freed"), result.stderr


def test_exit_while_a_driver_reads_parameters_of_python():
    """It reads on as long as there are rows, on a thread that no one sees."""
    result = run_script("""
        import uvarrow.adbc
        def endless():
            while True:
                entered.set()
                os.sched_yield() # without the GIL
                yield ONE
        async def main():
            pool = uvarrow.adbc.Pool("sqlite", uri=":memory:")
            rows = pool.ingest("t", pa.RecordBatchReader.from_batches(
                ONE.schema, endless()), mode="create")
            task = asyncio.ensure_future(rows.schema())
            while not entered.is_set():
                await asyncio.sleep(0)
            task.cancel()
        asyncio.run(main())
    """, seconds="1000")
    assert (result.returncode, result.stderr) == (0, "")


# ---- loops that no one turns ------------------------------------------------

LOST = """
import gc, uvloop, warnings
warnings.simplefilter("ignore")
kept = []

async def start(then=lambda: None):
    kept.append(uvarrow.stream([ONE] * 500))
    await anext(kept[0])
    then()

def work():
    loop = make()
    loop.run_until_complete(start())
    kept.append(loop)

def in_thread(function):
    thread = threading.Thread(target=function)
    thread.start()
    thread.join()

def block():
    entered.set()
    opened.wait()

def work_and_block():
    make().run_until_complete(start(block))
"""


BUSY = """
threading.Thread(target=work_and_block, daemon=True).start()
entered.wait()
"""


@pytest.mark.parametrize("make, how", [
    ("asyncio", "in_thread(work)"),
    ("uvloop", "in_thread(work)"),
    ("asyncio", "in_thread(work); kept.pop(); gc.collect()"),
    ("asyncio", "work(); kept.pop(); gc.collect()"),
    ("asyncio", BUSY), ("uvloop", BUSY)])
def test_exit_with_a_loop_that_nothing_turns(make, how):
    """The stream that it leaves has an open source."""
    result = run_script(f"{LOST}\nmake = {make}.new_event_loop\n{how}\n",
                        seconds="1000")
    assert (result.returncode, result.stderr) == (0, "")


# ---- a source that is stuck -------------------------------------------------

STUCK = """
async def main():
    rows = uvarrow.stream(stuck())
    await anext(rows)
    entered.wait()
asyncio.run(main())
"""


def test_a_stuck_source_loses_no_handler_and_no_buffered_file(tmp_path):
    log = tmp_path / "log"
    result = run_script("print('printed', end=' ')" + STUCK, str(log),
                        before=BEFORE)
    assert result.returncode == uvarrow.EXIT_STUCK, result.stderr
    assert result.stdout == "printed handled\n"
    assert log.read_text() == "buffered"


def test_a_stuck_handler_behind_a_stuck_source_is_cut_off(tmp_path):
    result = run_script(STUCK, str(tmp_path / "log"), before=BEFORE + (
        "import threading\n"
        "atexit.register(threading.Event().wait)\n"))
    assert result.returncode == uvarrow.EXIT_STUCK, result.stderr


# ---- late returns -----------------------------------------------------------

LATE = [
    "stuck()",
    "stuck",
    "pa.RecordBatchReader.from_batches(ONE.schema, stuck())",
]


# The close of the loop has left the call, as it did not return within its
# limit: then it returns while the interpreter ends.
def test_fifty_exits_while_a_call_returns():
    scripts = [f"""
        async def main():
            rows = uvarrow.stream({source})
            await anext(rows)
            entered.wait()
        {run}
        opened.set()
    """
               for source, run in itertools.product(LATE, RUNS.values())]
    with ThreadPoolExecutor(5) as threads:
        ends = list(threads.map(
            lambda i: run_script(scripts[i % len(scripts)], seconds="1000"),
            range(50)))
    assert {(end.returncode, end.stderr) for end in ends} == {(0, "")}
