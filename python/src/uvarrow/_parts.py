# SPDX-License-Identifier: Apache-2.0
"""A result in parts, which are read at one time, here or elsewhere: methods of
pools and sessions."""
import errno
from collections.abc import Mapping

from . import _check, _core, _host
from ._stream import _BYTES, _WINDOW, Stream, _half, _pump

PARTITIONS = 2 # what is wanted of a query, as in the C interface
_LIMITS = "open", "first", "between", "total"


async def partitions(self, sql, parameters=None, *, options=None,
                     by_name=False, busy=None):
    """Executes a query for the partitions of its result, and returns them as a
    list of bytes: `partition()` reads them, also in another process. The arguments
    are as for `query()`. Error with ENOTSUP if the driver has no partitions."""
    rows = self._stream(_check.text(sql, "sql"), parameters, options, None,
                        PARTITIONS, _check.flag(by_name, "by_name"), busy,
                        _WINDOW, _BYTES)
    return [one for batch in await rows.read_all()
            for one in _core.partitions(batch)]


def partition(self, descriptors, *, parallel=None, retry=0, timeout=None,
              keep_going=False, window=_WINDOW, max_bytes=_BYTES):
    """Returns a Stream of the rows of one partition of a result, of those that
    `partitions()` gave, or of a list of them, in the order in which batches come.

    `parallel` of them are read at one time, and no more than there are connections;
    None: as many as there are. Each is named, as "partition 3 of 12 (host)", in
    texts of errors and in statistics. One that fails is read again up to `retry`
    times, without the rows that came before: right if the database gives them in
    the same order each time. It then begins with the next location, if it is a
    partition of Flight SQL that has several.

    `timeout` is a limit of time of each, and of each time that it is read: so many
    seconds without a batch, opening included; or a dict of "open", "first",
    "between" and "total", as for `Stream.timeout()`. A host that is cut off is
    noticed by this alone. With `keep_going` the others are finished when one
    fails.

        parts = await pool.partitions("SELECT * FROM flights")
        rows = pool.partition(parts, retry=5, timeout=30)
    """
    if _check.is_a(descriptors, (bytes, bytearray, memoryview)):
        descriptors = [descriptors]
    elif not _check.is_a(descriptors, (list, tuple)):
        raise _check.refuse(descriptors, "descriptors", "bytes, or a list of bytes")
    for one in descriptors:
        if not _check.is_a(one, (bytes, bytearray, memoryview)):
            raise _check.refuse(one, "an item of descriptors", "bytes")
    wanted = how(parallel, retry, timeout, keep_going)
    return _read(self, descriptors, wanted, _check.count(window, "window"),
                 _half(max_bytes))


def how(parallel, retry, timeout, keep_going=False):
    """The arguments as the core takes them."""
    return (_check.optional(_check.count, parallel, "parallel", least=1) or 0,
            _check.count(retry, "retry"), _check.flag(keep_going, "keep_going"),
            *_limits(timeout))


def _limits(timeout):
    """The four limits in milliseconds; 0: none."""
    if timeout is None:
        return 0, 0, 0, 0
    if not _check.is_a(timeout, Mapping):
        ms = _check.ms(timeout, "timeout")
        return 0, ms, ms, 0
    for name in timeout:
        _check.one_of(name, "a name of timeout", _LIMITS)
    return tuple(_check.ms(timeout.get(name, 0), f"timeout[{name!r}]")
                 for name in _LIMITS)


def _read(pool, descriptors, wanted, window, half):
    host, made = pool._opened()
    stream = Stream()
    stream._partitions((host, made, [bytes(one) for one in descriptors], *wanted,
                        window, half), window, half)
    return stream


class _Known(Exception):
    """The partitions are known."""


def in_parts(pool, asked, wanted, window, max_bytes):
    """The Stream of a query in parts. `asked` is the Stream of its partitions.

    A stream without batches reads that one, and ends with a failure; its retry
    goes on with the stream of the partitions, all in C."""
    window, half = _check.count(window, "window"), _half(max_bytes)
    host, result, found = _host.current(), Stream(), []
    asked._timeout(*wanted[3:])
    writer = result._push(host, "partitions", window, half)

    async def ask():
        async with asked:
            async for batch in asked:
                found.extend(_core.partitions(batch))
        asked._check_end()
        raise _Known
        yield # it is a generator

    def noted(exception):
        if not _check.is_a(exception, _Known):
            return writer.note(exception)
        return errno.EAGAIN, "the partitions are known"

    def again(failure):
        return (_read(pool, found, wanted, window, half)
                if failure.error.errno == errno.EAGAIN else None)

    result._watch(lambda: host.spawn(lambda: _pump(host, writer, ask(), noted)),
                  None)
    return result.retry(again, times=1, delay=0)


def add_to(*classes):
    """Makes the functions methods of pools and sessions."""
    for one in classes:
        one.partitions, one.partition = partitions, partition
