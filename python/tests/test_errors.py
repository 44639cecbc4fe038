# SPDX-License-Identifier: Apache-2.0
"""Errors: which exception arrives where, and its members."""
import copy
import ctypes
import errno
import os
import pickle

import anyio
import pyarrow as pa
import pytest

import uvarrow
from conftest import run_on
from device_stream import DeviceStream

ONE = pa.record_batch({"n": [1]})


class Mine(Exception):
    pass


class Foreign(DeviceStream):
    """Fails in a text that is no UTF-8."""

    error = b"caf\xe9"

    def _spoil(self, out):
        pa.Schema._import_from_c(out)
        return errno.EIO


@pytest.mark.parametrize("make", [lambda one: one, lambda one: [one]])
def test_a_foreign_text_that_is_no_utf_8_arrives(run, make):
    async def main():
        async with uvarrow.stream(make(Foreign(ONE.schema, [ONE]))) as rows:
            return await count_until_error(rows)

    _, error = run(main)
    assert isinstance(error, uvarrow.Error)
    assert (error.errno, "caf\ufffd" in error.strerror) == (errno.EIO, True)


@pytest.mark.parametrize("text", [b"caf\xe9", None])
def test_a_reader_of_a_foreign_stream_has_its_text(text):
    stream = Foreign(ONE.schema, [ONE])
    stream.error = text
    reader = uvarrow.DeviceReader(stream.__arrow_c_device_stream__())
    with pytest.raises(uvarrow.Error) as caught:
        reader.__arrow_c_schema__()
    assert caught.value.strerror == ("caf\ufffd" if text
                                     else os.strerror(errno.EIO))


def test_a_foreign_name_that_is_no_utf_8_is_a_name(run):
    name = ctypes.create_string_buffer(b"caf\xe9")

    class Named(DeviceStream):
        def _spoil(self, out):
            children = ctypes.c_void_p.from_address(out + 40).value
            child = ctypes.c_void_p.from_address(children).value
            ctypes.c_void_p.from_address(child + 8).value = \
                ctypes.addressof(name)
            return 0

    async def main():
        async with uvarrow.stream(Named(ONE.schema, [ONE])) as rows:
            schema = await rows.schema()
            return schema.names, repr(schema)

    assert run(main) == (["caf\ufffd"], "caf\ufffd: int64")


def failing(exception, before=2):
    for _ in range(before):
        yield ONE
    raise exception


async def count_until_error(rows):
    count = 0
    try:
        async for _ in rows:
            count += 1
    except Exception as exception:
        return count, exception
    return count, None


@pytest.mark.parametrize("before", [0, 1, 3])
def test_an_exception_of_a_generator_arrives_as_itself(run, before):
    mine = Mine("boom")

    async def main():
        async with uvarrow.stream(failing(mine, before)) as rows:
            return await count_until_error(rows)

    count, exception = run(main)
    assert count == before
    assert exception is mine
    assert any("failing" in line.name for line in frames(exception))


def frames(exception):
    import traceback
    return traceback.extract_tb(exception.__traceback__)


def test_an_exception_of_a_callable_arrives_as_itself(run):
    def source():
        raise Mine("cannot open")

    async def main():
        async with uvarrow.stream(source) as rows:
            with pytest.raises(Mine, match="cannot open"):
                await rows.schema()
            with pytest.raises((Mine, uvarrow.Error)):
                await anext(rows)

    run(main)


def test_a_reader_of_pyarrow_fails_with_its_text(run):
    reader = pa.RecordBatchReader.from_batches(ONE.schema, failing(Mine("x")))

    async def main():
        async with uvarrow.stream(reader) as rows:
            return await count_until_error(rows)

    count, exception = run(main)
    assert count == 2
    assert isinstance(exception, uvarrow.Error)
    assert isinstance(exception, OSError)
    assert exception.errno > 0
    assert "x" in exception.strerror
    assert exception.metadata == {}


def test_an_oserror_keeps_its_errno(run):
    error = FileNotFoundError(errno.ENOENT, "no such table")

    async def main():
        async with uvarrow.stream(failing(error)) as rows:
            return await count_until_error(rows)

    assert run(main) == (2, error)


def test_exceptions_of_functions_arrive_as_themselves(run):
    def function(batch):
        if batch.ordinal == 5:
            raise Mine("in a stage")
        return batch

    async def main():
        for build in (lambda s: s.map(function), lambda s: s.filter(function),
                      lambda s: s.map(function).parallel(3).rebatch(rows=2)):
            async with uvarrow.stream([ONE] * 10) as rows:
                _, exception = await count_until_error(build(rows))
                assert isinstance(exception, Mine)

    run(main)


def test_a_merged_stream_raises_what_its_part_raised(run):
    mine = Mine("in a part")

    async def main():
        rows = uvarrow.merge(uvarrow.stream([ONE] * 5),
                             uvarrow.stream([ONE] * 5),
                             uvarrow.stream(failing(mine)))
        async with rows:
            return await count_until_error(rows)

    assert run(main)[1] is mine


def test_batches_of_another_schema_are_refused(run):
    def source():
        yield ONE
        yield pa.record_batch({"n": ["text"]})

    async def main():
        async with uvarrow.stream(source()) as rows:
            count, exception = await count_until_error(rows)
            assert (count, type(exception)) == (1, ValueError)
        async with uvarrow.stream([ONE]).map(
                lambda _: pa.record_batch({"m": [1]})) as rows:
            assert type((await count_until_error(rows))[1]) is ValueError
        async with uvarrow.stream(iter([5])) as rows:
            assert type((await count_until_error(rows))[1]) is TypeError
        async with uvarrow.stream(lambda: 5) as rows:
            assert type((await count_until_error(rows))[1]) is TypeError

    run(main)


def test_a_reader_is_read_once(run):
    async def main():
        reader = uvarrow.stream([ONE]).to_reader()
        capsule = reader.__arrow_c_stream__()
        with pytest.raises(ValueError, match="used"):
            reader.__arrow_c_stream__()
        async with uvarrow.stream(capsule) as rows:
            assert await count_until_error(rows) == (1, None)
        with pytest.raises(ValueError, match="before"):
            uvarrow.stream(capsule)

    run(main)


def test_a_time_out_is_a_timeout_error(run, gate):
    source = gate([ONE] * 3, before=1)

    async def main():
        async with uvarrow.stream(
                source, interrupt=source.interrupt).timeout(
                    between=0.01) as rows:
            with pytest.raises(TimeoutError) as info:
                while True:
                    await anext(rows)
        assert isinstance(info.value, uvarrow.Error)
        assert info.value.errno == errno.ETIMEDOUT

    run(main)


def test_nothing_is_printed(run, capfd):
    async def main():
        for source in (failing(Mine("a")), lambda: 1 / 0, [ONE, 5]):
            async with uvarrow.stream(source) as rows:
                await count_until_error(rows)
        async with uvarrow.stream([ONE]).map(lambda batch: 1 / 0) as rows:
            await count_until_error(rows)
        await anyio.lowlevel.checkpoint()

    run(main)
    assert capfd.readouterr() == ("", "")


def raises(exception):
    def function(*_):
        raise exception

    return function


@pytest.mark.parametrize("code", [errno.EAGAIN, errno.EINPROGRESS, errno.ENOENT,
                                  errno.ECANCELED, errno.ETIMEDOUT, errno.EPIPE,
                                  errno.EBUSY])
@pytest.mark.parametrize("build", [
    lambda e: uvarrow.stream(raises(e)),
    lambda e: uvarrow.stream(failing(e)),
    lambda e: uvarrow.stream([ONE] * 3).map(raises(e)),
    lambda e: uvarrow.stream([ONE] * 3).map(raises(e)).parallel(2),
    lambda e: uvarrow.stream([ONE] * 3).filter(raises(e)),
    lambda e: uvarrow.stream([ONE] * 3).filter(raises(e)).map(lambda b: b)],
    ids=["open", "generator", "map", "parallel", "filter", "filter_map"])
def test_no_errno_is_mistaken_for_one_of_the_library(build, code):
    """Some codes have a meaning for the library, when a stage returns them."""
    mine = OSError(code, "mine")

    async def main():
        async with build(mine) as rows:
            return await count_until_error(rows)

    assert run_on("asyncio", main)[1] is mine


class Unprintable(Exception):
    def __str__(self):
        raise KeyError("no text")


@pytest.mark.parametrize("mine", [
    Mine(), Mine("x" * 10000), Mine("\u00e4" * 10000),
    Mine("a" + "\u00e4" * 10000), Mine("bc" + "\U0001f389" * 300),
    Mine("\0abc"),
    Mine("\ud800"), Mine("a\nb\x1b[0m"), Mine("%s %n %d"), Unprintable()],
    ids=range(10))
def test_any_text_of_an_exception(mine):
    async def main():
        for rows in (uvarrow.stream(failing(mine)),
                     uvarrow.stream([ONE]).filter(raises(mine)).rebatch(rows=2),
                     uvarrow.merge(uvarrow.stream([ONE]),
                                   uvarrow.stream(failing(mine)))):
            async with rows:
                assert (await count_until_error(rows))[1] is mine

    run_on("asyncio", main)


@pytest.mark.parametrize("code", [errno.EIO, errno.ETIMEDOUT])
def test_errors_are_copied_and_pickled(code):
    error = uvarrow.Error._of(code, "text", [(b"key", b"value")])
    for same in (copy.copy(error), pickle.loads(pickle.dumps(error))):
        assert type(same) is type(error)
        assert (same.errno, same.strerror) == (code, "text")
        assert same.metadata == {"key": "value"}
        assert isinstance(same, TimeoutError) == (code == errno.ETIMEDOUT)
