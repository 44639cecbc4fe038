# SPDX-License-Identifier: Apache-2.0
"""The options of the runtimes of event loops, and their log, which goes to the
logger "uvarrow"."""
import logging
import os

from . import _check, _core

_LOGGER = logging.getLogger("uvarrow")
_LOGGER.addHandler(logging.NullHandler())
_LEVELS = {1: logging.ERROR, 2: logging.WARNING, 3: logging.INFO,
           4: logging.DEBUG}
_chosen = {"memory_bytes": 0, "measure": False, "check": False, "threads": 0}


def configure(*, memory_bytes=None, measure=None, check=None, threads=None):
    """Sets options of event loops that use uvarrow for the first time from now
    on; None leaves an option as it is.

    The windows of all streams of a loop have at most `memory_bytes` bytes
    together (0: no limit); a stream that has no batch ready may always take in
    one. With `measure` the statistics have times. With `check` each step of the
    library is checked against Arrow's protocol, which costs time; breaches are
    in the log: the logger "uvarrow" of `logging`, whose level counts at that
    first use.

    At most `threads` sources that block are in a call at one time; others wait,
    and a warning is in the log if for a second none of these calls has returned.
    0: 64, and while none of these returns up to 256. Asynchronous sources need no
    thread, and the loops of a process share their threads.
    """
    if memory_bytes is not None:
        _chosen["memory_bytes"] = _check.count(memory_bytes, "memory_bytes",
                                               bits=64)
    if measure is not None:
        _chosen["measure"] = _check.flag(measure, "measure")
    if check is not None:
        _chosen["check"] = _check.flag(check, "check")
    if threads is not None:
        _chosen["threads"] = _check.count(threads, "threads")


def choose():
    """Has the next runtime made with these options. UVA_LOG in the environment
    writes the log to standard error instead."""
    level = 0
    if "UVA_LOG" not in os.environ:
        least = _LOGGER.getEffectiveLevel()
        level = max((own for own, number in _LEVELS.items() if number >= least),
                    default=0)
    _core._choose(*_chosen.values(), level)


def _log(level, message, stream, clause, at):
    """Passes a line on. Its record has `stream` and `clause`, or None."""
    number = _LEVELS[level]
    if not _LOGGER.isEnabledFor(number):
        return
    text = message if stream is None else f"{stream}: {message}"
    record = _LOGGER.makeRecord(
        _LOGGER.name, number, "uvarrow", 0, "%s", (text,), None,
        extra={"stream": stream, "clause": clause})
    if at:
        record.created, record.msecs = at, at % 1 * 1000
    _LOGGER.handle(record)


configure.__module__ = "uvarrow"
_core._set_log(_log)
