# SPDX-License-Identifier: Apache-2.0
"""Streams in greenlets: the tests of other files that need no anyio, and what gevent
has of its own."""
import contextvars
import inspect
import os
import subprocess
import sys
import textwrap
import threading

import pyarrow as pa
import pytest

import uvarrow
from conftest import run_on

gevent = pytest.importorskip("gevent")

import gevent.event # noqa: E402
import test_ipc # noqa: E402
import test_later # noqa: E402
import test_reader # noqa: E402
import test_stages # noqa: E402
import test_together # noqa: E402
import uvarrow.gevent # noqa: E402

ONE = pa.record_batch({"n": [1]})

# Tests that wait by anyio, which does not know gevent
BY_ANYIO = """
test_a_cancel_while_a_function_runs test_a_consumer_that_holds_the_gil_does_not_block_the_loop
test_the_reader_waits_for_the_iterable test_releasing_the_reader_closes_the_iterable
test_both_branches_have_all test_both_branches_raise_the_exception_itself
test_a_cancel_ends_the_delay test_a_generator_is_closed_when_the_stream_is_left
test_a_pause_holds_batches_back test_the_end_ends_a_pause
test_a_loop_that_ends_while_a_stream_is_paused
test_a_step_that_is_cancelled_loses_no_chunk test_two_tasks_do_not_share_the_chunks
test_chunks_are_not_closed_while_a_task_waits test_closing_the_stream_ends_a_waiting_step
test_map test_so_many_run_at_one_time test_the_order_is_kept_or_not
test_other_awaitables_with_concurrency test_filter
test_an_exception_is_raised_after_the_batches_before
test_tasks_are_cancelled_with_their_stream test_a_time_limit_inside_a_function
test_a_function_that_refuses_its_cancel test_a_loop_that_ends_before_the_function
test_a_dropped_stream_cancels_its_tasks test_stages_around_it
""".split()



def on_every_loop(module):
    """The tests of a module that take `run`, with names of their own."""
    return {f"{name}_of_{module.__name__[5:]}": test
            for name, test in vars(module).items()
            if name.startswith("test_") and name not in BY_ANYIO
            and "run" in inspect.signature(test).parameters}


for other in test_ipc, test_later, test_reader, test_stages, test_together:
    globals().update(on_every_loop(other))


@pytest.fixture
def run():
    """As that of conftest.py, on gevent alone"""
    return lambda function, *args: run_on("gevent", function, *args)


@pytest.fixture(autouse=True)
def the_hub_ends():
    yield
    uvarrow.gevent.close()


async def read(source=(ONE,) * 3):
    async with uvarrow.stream(source) as rows:
        return [len(batch) async for batch in rows]


# ---- run() and each() -------------------------------------------------------

def test_many_greenlets_read():
    jobs = [gevent.spawn(uvarrow.gevent.run, read()) for _ in range(20)]
    gevent.joinall(jobs, raise_error=True)
    assert [job.value for job in jobs] == [[1, 1, 1]] * 20


def test_others_run_while_a_greenlet_waits(gate):
    source = gate([ONE])
    job = gevent.spawn(uvarrow.gevent.run, read(source))
    gevent.get_hub().threadpool.apply(source.entered.wait)
    assert not job.ready()
    source.opened.set()
    assert job.get() == [1]


def test_each_yields_the_items_of_a_stream():
    assert [len(batch) for batch in uvarrow.gevent.each(uvarrow.stream([ONE] * 3))] == [
        1, 1, 1]


def test_each_closes_what_is_left(gate):
    source = gate([ONE, ONE], before=2)
    chunks = uvarrow.gevent.each(uvarrow.json(uvarrow.stream(source)))
    assert bytes(next(chunks)) == b'{"n":1}\n'
    chunks.close()
    gevent.get_hub().threadpool.apply(source.closed.wait)


def test_each_raises_what_the_source_raises():
    def source():
        yield ONE
        raise KeyError("lost")

    rows = uvarrow.gevent.each(uvarrow.stream(source))
    assert len(next(rows)) == 1
    with pytest.raises(KeyError, match="lost"):
        next(rows)


@pytest.mark.parametrize("call, value, text", [
    (uvarrow.gevent.run, 1, "awaitable must be an awaitable, not int"),
    (uvarrow.gevent.each, [1], "iterable must be an asynchronous iterable, not list")])
def test_other_arguments_are_refused(call, value, text):
    with pytest.raises(TypeError, match=text):
        call(value)


class Stubborn:
    def __await__(self):
        while True:
            try:
                yield
            except RuntimeError:
                pass


@pytest.mark.parametrize("ways", [1, 2])
def test_an_object_of_another_loop_is_refused(ways):
    async def main():
        try:
            await Stubborn()
        finally:
            closed.append(True)

    class Plain:
        def __await__(self):
            yield

    closed = []
    with pytest.raises(RuntimeError, match="an object of another event loop"):
        uvarrow.gevent.run(main() if ways == 1 else Plain())
    assert len(closed) == 2 - ways


def test_a_coroutine_may_answer_that_refusal():
    class Plain:
        def __await__(self):
            yield

    async def main():
        try:
            await Plain()
        except RuntimeError:
            return "answered"

    assert uvarrow.gevent.run(main()) == "answered"


# ---- ends -------------------------------------------------------------------

def test_a_kill_ends_the_stream(gate):
    source = gate([ONE])
    job = gevent.spawn(uvarrow.gevent.run, read(source))
    gevent.get_hub().threadpool.apply(source.entered.wait)
    job.kill()
    source.opened.set()
    gevent.get_hub().threadpool.apply(source.closed.wait)


def test_a_timeout_ends_one_step_alone(gate):
    async def main():
        async with uvarrow.stream(gate([ONE])) as rows:
            with pytest.raises(gevent.Timeout), gevent.Timeout(0.001):
                await anext(rows)
            kept[0].opened.set()
            return [len(batch) async for batch in rows]

    kept = []
    make, gate = gate, lambda *args: kept.append(make(*args)) or kept[0]
    assert uvarrow.gevent.run(main()) == [1]


def test_a_hub_that_waits_for_no_stream_ends():
    rows = uvarrow.stream([ONE] * 1000)
    assert len(uvarrow.gevent.run(anext(rows))) == 1
    if "libev" in type(gevent.get_hub().loop).__module__:
        assert gevent.wait() # returns, though the runtime is open
    uvarrow.gevent.run(rows.aclose())


def test_threads_have_hubs_of_their_own():
    def work():
        results.append(uvarrow.gevent.run(read()))
        uvarrow.gevent.close()
        gevent.get_hub().destroy(destroy_loop=True)

    results = []
    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [[1, 1, 1]] * 3


def test_a_closed_hub_gets_another_runtime(gate):
    rows = uvarrow.stream(gate([ONE] * 3, before=1))
    assert len(uvarrow.gevent.run(anext(rows))) == 1
    uvarrow.gevent.close()
    uvarrow.gevent.close()
    with pytest.raises((RuntimeError, uvarrow.Error)):
        uvarrow.gevent.run(rows.read_all())
    assert uvarrow.gevent.run(read()) == [1, 1, 1]


# ---- what the host does -----------------------------------------------------

def test_a_coroutine_function_is_a_greenlet_with_the_context():
    async def look(batch):
        before = gevent.getcurrent()
        gevent.sleep(0)
        assert gevent.getcurrent() is before
        seen.append((before, mark.get()))
        mark.set("changed")
        return batch

    async def main():
        mark.set("mine")
        return len(await uvarrow.stream([ONE] * 20).map(look).read_all())

    seen, mark = [], contextvars.ContextVar("mark")
    assert uvarrow.gevent.run(main()) == 20
    assert len({greenlet for greenlet, _ in seen}) == 20
    assert {value for _, value in seen} == {"mine"}


def test_functions_are_killed_with_their_stream():
    async def stay(batch):
        try:
            entered.append(True)
            gevent.sleep(3600)
        finally:
            left.append(True)

    async def main():
        async with uvarrow.stream([ONE] * 20).map(stay, concurrency=3) as rows:
            job = gevent.spawn(uvarrow.gevent.run, rows.read_all())
            while len(entered) < 3:
                gevent.sleep(0)
        with pytest.raises(uvarrow.Error):
            job.get()

    entered, left = [], []
    uvarrow.gevent.run(main())
    while len(left) < 3:
        gevent.sleep(0)


def test_a_generator_is_ended_when_nobody_reads():
    async def batches():
        try:
            yield ONE
            entered.set()
            gevent.sleep(3600)
        finally:
            left.set()

    async def main():
        async with uvarrow.stream(batches()) as rows:
            await anext(rows)
            entered.wait()

    entered, left = gevent.event.Event(), gevent.event.Event()
    uvarrow.gevent.run(main())
    left.wait()


def test_bytes_of_a_reader_arrive():
    class Bytes:
        def __init__(self, data):
            self._parts = iter([data[i:i + 100000] for i in range(0, len(data), 100000)])

        def __aiter__(self):
            return self

        async def __anext__(self):
            for part in self._parts:
                gevent.sleep(0)
                return part
            raise StopAsyncIteration

    table = pa.table({"n": range(500000)})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    data = sink.getvalue().to_pybytes()
    rows = uvarrow.ipc_reader(Bytes(data)) # of more bytes than a socket holds
    assert sum(len(batch) for batch in uvarrow.gevent.each(rows)) == 500000


def test_a_connection_of_a_database():
    pytest.importorskip("adbc_driver_sqlite")

    async def main():
        async with uvarrow.adbc.connect("sqlite::memory:") as connection:
            cursor = await connection.execute("SELECT 1 AS n UNION SELECT 2")
            return [row async for row in cursor]

    assert uvarrow.gevent.run(main()) == [(1,), (2,)]


# ---- processes --------------------------------------------------------------

def run_program(text, **environment):
    path = os.path.dirname(os.path.dirname(uvarrow.__file__))
    return subprocess.run(
        [sys.executable, "-X", "faulthandler", "-c", textwrap.dedent(text)],
        env={**os.environ, "PYTHONPATH": path, "UVARROW_EXIT_SECONDS": "0.2",
             **environment},
        capture_output=True, text=True, check=False)


PATCHED = """
    from gevent import monkey
    monkey.patch_all()
    import gevent, os, pyarrow as pa, threading, time, uvarrow, uvarrow.gevent

    ONE = pa.record_batch({"n": [1]})

    def source():
        for _ in range(5):
            time.sleep(0) # of gevent, on a worker
            yield ONE

    async def read():
        return len(await uvarrow.stream(source).read_all())
"""


@pytest.mark.parametrize("loop", ["libev-cext", "libuv"])
def test_a_program_with_patched_modules(loop):
    if loop == "libuv":
        pytest.importorskip("_cffi_backend") # that loop needs it
    result = run_program(PATCHED + """
    got = []
    threads = [threading.Thread(target=lambda: got.append(uvarrow.gevent.run(read())))
               for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print(got, uvarrow.stats().streams_open)
    """, GEVENT_LOOP=loop)
    assert (result.returncode, result.stdout) == (0, "[5, 5, 5, 5, 5] 0\n"), (
        result.stderr)


def test_a_forked_child_has_streams_of_its_own():
    result = run_program(PATCHED + """
    kept = uvarrow.stream([ONE] * 100)
    uvarrow.gevent.run(anext(kept))
    pid = os.fork()
    if pid == 0:
        try:
            got = uvarrow.gevent.run(read())
            parents, = uvarrow._host._parents
            parents._turn() # as its descriptor may be readable
            os._exit(got if not parents._watcher.active else 2)
        finally:
            os._exit(1)
    status = os.waitpid(pid, 0)[1]
    print(os.waitstatus_to_exitcode(status), len(uvarrow.gevent.run(kept.read_all())))
    """)
    assert (result.returncode, result.stdout) == (0, "5 99\n"), result.stderr


@pytest.mark.parametrize("waits, code", [("time.sleep(0)", 0), ("opened.wait()", 70)])
def test_the_process_ends_though_greenlets_read(waits, code):
    result = run_program(f"""
    import gevent, pyarrow as pa, threading, time, uvarrow, uvarrow.gevent

    entered, opened = threading.Event(), threading.Event()

    def source():
        while True:
            yield pa.record_batch({{"n": [1]}})
            entered.set()
            {waits}

    async def read():
        async for batch in uvarrow.stream(source):
            pass

    gevent.spawn(uvarrow.gevent.run, read())
    while not entered.is_set():
        gevent.sleep(0)
    print("end")
    """)
    assert (result.returncode, result.stdout) == (code, "end\n"), result.stderr


def test_a_server_of_wsgi_streams_rows():
    from gevent.pywsgi import WSGIServer

    def application(environ, start_response):
        start_response("200 OK", [("content-type", "text/csv")])
        return uvarrow.gevent.each(uvarrow.csv(uvarrow.stream([ONE] * 3),
                                               as_bytes=True))

    server = WSGIServer(("127.0.0.1", 0), application, log=None)
    server.start()
    try:
        client = gevent.socket.create_connection(server.address[:2])
        client.sendall(b"GET / HTTP/1.0\r\n\r\n")
        answer = b"".join(iter(lambda: client.recv(1 << 16), b""))
        client.close()
    finally:
        server.stop()
    assert answer.split(b"\r\n\r\n", 1)[1] == b"n\n1\n1\n1\n"
