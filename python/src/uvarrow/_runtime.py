# SPDX-License-Identifier: Apache-2.0
"""The runtime of an event loop as a whole: its counters, and its end."""
from typing import NamedTuple

from . import _check, _host

_FOREVER = 2 ** 63 - 1


class RuntimeStats(NamedTuple):
    """Counters of an event loop. Threads are shared by all loops of a process;
    `threads_stuck` and `calls_stuck` are in calls that do not return. The
    longest time of one turn of the loop is `hold_max`, in seconds, and
    `hold_max_cpu` its CPU time. `memory_held` is counted with `memory_bytes` of
    configure() alone."""

    streams_open: int
    streams_held: int
    threads_compute: int
    threads_blocking: int
    threads_stuck: int
    calls_stuck: int
    peer_breaches: int
    late_calls: int
    turns: int
    memory_held: int
    memory_excess: int
    tasks_revoked: int
    hold_max: float
    hold_max_cpu: float


def stats():
    """Returns the RuntimeStats of the event loop that runs."""
    return RuntimeStats(**_host.current().stats())


async def drain(seconds=None):
    """Ends the work of the event loop: from now on its new streams fail with
    ESHUTDOWN, and streams that run go on to their end. Returns when all have
    ended. After `seconds` (None: never) the rest fails with a TimeoutError. A
    second call may shorten that time. If this is cancelled, the streams still
    end so."""
    ms = _FOREVER if seconds is None else _check.ms(seconds, "seconds")
    host = _host.current()
    while not host.drain(ms):
        await host.wait(host)


for _public in (RuntimeStats, stats, drain):
    _public.__module__ = "uvarrow"
