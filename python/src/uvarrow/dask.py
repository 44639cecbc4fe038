# SPDX-License-Identifier: Apache-2.0
"""Dask: the results of tasks as a Stream, so many of which are computed ahead, and
no more. Dask has to be installed; it is not imported here.

    async with uvarrow.dask.stream(client, [(read, path) for path in paths]) as rows:
        ...
"""
import collections
import functools

from . import _check, _stream


def stream(client, tasks, *, ahead=4, window=4, max_bytes=_stream._BYTES):
    """Returns a Stream of what tasks of a cluster give, in their order. `client` is a
    Client of `dask.distributed` that is not asynchronous; `tasks` is an iterable of
    tuples, of a function and its arguments, or of Delayed objects, such as those of
    `frame.to_delayed()`. Each gives a batch, a table, a frame, or another source of
    rows. `ahead` tasks run or are kept at one time; `window` and `max_bytes` are as
    for `uvarrow.stream()`.

    If a worker is lost, Dask computes its tasks again. When the stream is left, the
    tasks that were not begun are dropped, and results are freed; a function that
    runs goes on to its end, and this process does not wait for it."""
    for name in "submit", "compute", "cancel":
        if _check.method(client, name, "client") is None:
            raise _check.refuse(client, "client", "a Client of dask.distributed")
    if not _check.is_iterable(tasks):
        raise _check.refuse(tasks, "tasks", "an iterable of tuples, or of Delayed "
                            "objects")
    pending = collections.deque()
    cancel = functools.partial(_cancel, client, pending)
    return _stream.stream(
        functools.partial(_results, client, tasks, pending,
                          _check.count(ahead, "ahead", least=1)),
        window=window, max_bytes=max_bytes, interrupt=cancel, close=cancel)


def _results(client, tasks, pending, ahead):
    tasks = iter(tasks)
    while True:
        while len(pending) < ahead:
            task = next(tasks, None)
            if task is None:
                break
            pending.append(_future(client, task))
        if not pending:
            return
        result = pending[0].result()
        pending.popleft() # Dask frees it
        yield result


def _future(client, task):
    if not _check.is_a(task, tuple):
        return client.compute(task)
    return client.submit(*task, pure=False) # its result may differ each time


def _cancel(client, pending):
    futures = list(pending)
    if futures:
        client.cancel(futures)
