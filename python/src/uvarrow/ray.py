# SPDX-License-Identifier: Apache-2.0
"""Ray: what its tasks, actors and datasets give as a Stream, and Streams as a
datasource. Ray is imported by what is called here, and has to be installed.

    generator = actor.batches.options(
        num_returns="streaming", _generator_backpressure_num_objects=4).remote()
    async with uvarrow.ray.stream(generator) as rows:
        ...

The batches share the memory of Ray's object store.
"""
import functools
import queue
import threading

from . import _check, _stream

_WAIT_SECONDS = 0.2
_OVER = "uvarrow: Ray has been shut down"


def stream(source, *, window=4, max_bytes=_stream._BYTES):
    """Returns a Stream of what a streaming generator of Ray gives: batches, tables,
    and other sources of rows; or of the rows of a Dataset of Ray Data, or one of
    its iterators, such as `streaming_split()` gives. `window` and `max_bytes` are as
    for `uvarrow.stream()`.

    How far a task is ahead of its reader is up to Ray: without
    `_generator_backpressure_num_objects` among its options it makes all of its
    batches. When the stream is left, its task is cancelled: an asynchronous method
    of an actor ends at once, and another one with the next batch that it yields.
    This process need not wait for either."""
    if _check.method(source, "iter_batches", "source") is not None:
        return _stream.stream(functools.partial(_blocks, source), window=window,
                              max_bytes=max_bytes)
    if not (hasattr(type(source), "__next__")
            and hasattr(source, "next_ready")):
        raise _check.refuse(source, "source", "a streaming generator or a "
                            "Dataset of Ray")
    left = threading.Event()
    cancel = functools.partial(_cancel, source, left)
    return _stream.stream(functools.partial(_results, source, left),
                          window=window, max_bytes=max_bytes, interrupt=cancel,
                          close=cancel)


def _results(generator, left):
    """The results of a generator. Its `next()` returns when there is one, which is
    never if the task is stuck, as a cancel does not end a method that is not
    asynchronous."""
    import ray
    try:
        while not left.is_set():
            _check_runs(ray)
            ready, _ = ray.wait([generator], timeout=_WAIT_SECONDS,
                                fetch_local=False)
            if ready and not left.is_set():
                try:
                    result = next(generator)
                except StopIteration:
                    return
                yield ray.get(result)
    except SystemExit as error: # Ray ends its callers when it is shut down
        raise RuntimeError(_OVER) from error


def _cancel(generator, left):
    import ray
    left.set()
    if ray.is_initialized():
        ray.cancel(generator)


def _check_runs(ray):
    """Its functions would start another Ray."""
    if not ray.is_initialized():
        raise RuntimeError(_OVER)


def _blocks(dataset):
    yield from dataset.iter_batches(batch_format="pyarrow", batch_size=None,
                                    prefetch_batches=1)


# ---- the other way ----------------------------------------------------------

def datasource(functions):
    """Returns a datasource for `ray.data.read_datasource()`. Each of the functions
    returns a Stream, and is called in a task of its own, on an event loop there:
    `lambda: pool.partition(part)`, with a part that `await pool.partitions(sql)`
    gave here. Each batch is a block; `Stream.rebatch()` makes larger ones. A task
    that Ray runs again begins with the first row."""
    from ray.data.block import BlockMetadata
    from ray.data.datasource import Datasource, ReadTask
    functions = [_check.function(one, "an item of functions")
                 for one in functions]
    nothing = BlockMetadata(num_rows=None, size_bytes=None, input_files=None,
                            exec_stats=None)

    class Streams(Datasource):
        """Streams of uvarrow."""

        def estimate_inmemory_data_size(self):
            return None

        def get_read_tasks(self, parallelism, per_task_row_limit=None,
                           data_context=None):
            return [ReadTask(functools.partial(_tables, one), nothing,
                             per_task_row_limit=per_task_row_limit)
                    for one in functions]

    return Streams()


def _tables(function):
    """In a task: the batches of the Stream of a function, as tables. The thread of
    the task waits for them, and another one has the event loop."""
    import asyncio

    import pyarrow
    made, over = queue.SimpleQueue(), asyncio.Event()

    async def main():
        try:
            rows = function()
            _check_rows(rows)
            made.put((asyncio.get_running_loop(), rows.to_reader(window=4)))
        except BaseException as error:
            made.put((None, error))
            return
        await over.wait()

    thread = threading.Thread(target=lambda: asyncio.run(main()),
                              name="uvarrow-ray")
    thread.start()
    loop, reader = made.get()
    try:
        if loop is None:
            raise reader
        with pyarrow.RecordBatchReader.from_stream(reader) as batches:
            for batch in batches:
                yield pyarrow.Table.from_batches([batch])
    finally:
        if loop is not None:
            loop.call_soon_threadsafe(over.set)
        thread.join()


def _check_rows(rows):
    if not _check.is_a(rows, _stream.Stream):
        raise _check.refuse(rows, "the result of an item of functions",
                            "a Stream")
