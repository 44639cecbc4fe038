# SPDX-License-Identifier: Apache-2.0
"""Batches on a device, by `__arrow_c_device_array__`, as cuDF and pyarrow have
it. There is no device here: the data is on the host and declared to be of a
type, which the package does not verify. Events come from the double of CUDA
that the tests of the library have."""
import ctypes
import errno
import gc
import os
from functools import partial

import anyio
import nanoarrow.device
import pyarrow as pa
import pytest

import uvarrow
from conftest import in_thread

CPU, CUDA, EXT = 1, 2, 12
TYPE, EVENT = 88, 96 # where ArrowDeviceArray has them


class Declared:
    """A batch that is declared to be on a device, with an event."""

    def __init__(self, batch, device_type=CUDA, event=None):
        self._batch = batch
        self._type = device_type
        self._event = event

    def __arrow_c_device_array__(self, requested_schema=None, **kwargs):
        schema, array = self._batch.__arrow_c_device_array__()
        at = address(array)
        ctypes.c_int64.from_address(at + TYPE - 8).value = 0 # the device's id
        ctypes.c_int32.from_address(at + TYPE).value = self._type
        if self._event is not None:
            ctypes.c_void_p.from_address(at + EVENT).value = self._event
        return schema, array


class Both(Declared):
    """As pylibcudf's tables: the other method would copy to the host."""

    def __arrow_c_array__(self, requested_schema=None):
        raise AssertionError("the data was copied to the host")


def address(capsule):
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype = ctypes.c_void_p
    get.argtypes = ctypes.py_object, ctypes.c_char_p
    return get(capsule, b"arrow_device_array")


def numbers(count, start=0):
    return pa.record_batch({"n": range(start, start + count)})


def type_of(array):
    return ctypes.c_int32.from_address(address(array) + TYPE).value


# Every source of a stream of three such batches
def in_list():
    return [Both(numbers(4, i)) for i in range(3)]


def in_generator():
    return (Both(numbers(4, i)) for i in range(3))


def in_function():
    return in_generator


@pytest.mark.parametrize("source", [in_list, in_generator, in_function])
def test_device_batches_are_read_where_they_are(run, source):
    async def main():
        async with uvarrow.stream(source(), device_type=CUDA) as rows:
            return [batch async for batch in rows]

    batches = run(main)
    assert [batch.device for batch in batches] == [(CUDA, 0)] * 3
    assert [len(batch) for batch in batches] == [4] * 3
    with pytest.raises(ValueError, match="__arrow_c_device_array__"):
        batches[0].to_pyarrow()
    with pytest.raises(ValueError, match="__arrow_c_device_array__"):
        batches[0].__arrow_c_array__()
    schema, array = batches[0].__arrow_c_device_array__()
    assert "arrow_schema" in repr(schema) and type_of(array) == CUDA


def test_one_object_is_a_stream_of_one_batch(run):
    async def main(source, **how):
        async with uvarrow.stream(source, **how) as rows:
            return [batch async for batch in rows]

    class Plain:
        def __arrow_c_array__(self, requested_schema=None):
            return numbers(4).__arrow_c_array__()

    batches = run(main, Plain())
    assert [batch.to_pyarrow() for batch in batches] == [numbers(4)]
    for source in (Both(numbers(4)), lambda: Declared(numbers(4))):
        async_batches = partial(main, source, device_type=CUDA)
        assert [b.device for b in run(async_batches)] == [(CUDA, 0)]


def test_memory_goes_with_the_last_share(run):
    gc.collect() # objects of earlier tests
    before = pa.total_allocated_bytes()

    async def main():
        batch = pa.record_batch({"n": pa.array(range(100000))})
        async with uvarrow.stream([Both(batch)], device_type=CUDA) as rows:
            return await anext(rows)

    batch = run(main)
    pair = batch.__arrow_c_device_array__()
    assert pa.total_allocated_bytes() > before
    batch.close()
    assert pa.total_allocated_bytes() > before
    del pair
    assert pa.total_allocated_bytes() == before


# ---- between libraries ------------------------------------------------------

def test_pyarrow_takes_and_gives_device_arrays_of_the_cpu(run):
    class Alone:
        def __init__(self, batch):
            self.__arrow_c_device_array__ = batch.__arrow_c_device_array__

    async def main(how):
        table = pa.table({"n": range(10), "t": [f"x{i}" for i in range(10)]})
        batches = [Alone(b) for b in table.to_batches(max_chunksize=4)]
        async with uvarrow.stream(batches, **how) as rows:
            taken = [pa.RecordBatch._import_from_c_device_capsule(
                *batch.__arrow_c_device_array__()) async for batch in rows]
        assert all(batch.is_cpu for batch in taken)
        assert pa.Table.from_batches(taken).equals(table)

    run(main, {})
    run(main, {"device_type": CPU})


def test_an_event_of_the_cpu_means_nothing(run):
    batch = Declared(numbers(4), CPU, event=8) # is never looked at

    async def main(source, how):
        async with uvarrow.stream(source, **how) as rows:
            rows.map(lambda _: batch)
            return (await anext(rows)).to_pyarrow()

    assert run(main, [batch], {}) == numbers(4)
    assert run(main, [batch], {"device_type": CPU}) == numbers(4)
    assert run(main, in_list(), {"device_type": CUDA}) == numbers(4)


def test_nanoarrow_sees_the_device(run):
    async def main():
        async with uvarrow.stream([Both(numbers(4), EXT)],
                                  device_type=EXT) as rows:
            return await anext(rows)

    array = nanoarrow.device.c_device_array(run(main))
    assert (array.device_type_id, array.device_id) == (EXT, 0)
    assert array.schema.format == "+s"


# ---- out --------------------------------------------------------------------

def test_a_device_stream_is_read_by_a_thread(run):
    before_maps = []

    def note(batch):
        before_maps.append(batch.device)
        return batch

    async def main():
        rows = uvarrow.stream(in_list(), device_type=CUDA).map(note)
        reader = rows.to_device_reader()
        async with uvarrow.stream(reader, device_type=CUDA) as again:
            taken = [batch async for batch in again]
        with pytest.raises(ValueError, match="has been used"):
            reader.__arrow_c_device_stream__()
        with pytest.raises(uvarrow.Error):
            rows.to_device_reader()
        return taken

    batches = run(main)
    assert [(b.device, len(b)) for b in batches] == [((CUDA, 0), 4)] * 3
    assert before_maps == [(CUDA, 0)] * 3


def test_the_schema_of_a_device_reader_leaves_it_to_be_read(run):
    async def main():
        reader = uvarrow.stream(in_list(),
                                device_type=CUDA).to_device_reader()
        with pytest.raises(OSError): # it would wait for its own loop
            reader.__arrow_c_schema__()
        schemas = []
        await in_thread(lambda: schemas.append(pa.schema(reader)))
        async with uvarrow.stream(reader, device_type=CUDA) as again:
            assert schemas == [(await again.schema()).to_pyarrow()]
            return len([batch async for batch in again])

    assert run(main) == 3


def test_a_device_reader_that_nothing_reads_is_released(run):
    gc.collect()
    before = pa.total_allocated_bytes()

    async def main():
        rows = uvarrow.stream(in_list(), device_type=CUDA)
        reader = rows.to_device_reader()
        assert "arrow_device_array_stream" in repr(
            reader.__arrow_c_device_stream__())
        del reader
        await rows.aclose(seconds=None)

    run(main)
    gc.collect()
    assert pa.total_allocated_bytes() == before


def test_a_failure_reaches_the_device_reader(run):
    async def main():
        rows = uvarrow.stream([Both(numbers(1)), Both(numbers(1), EXT)],
                              device_type=CUDA)
        async with uvarrow.stream(rows.to_device_reader(),
                                  device_type=CUDA) as again:
            async for batch in again:
                del batch

    with pytest.raises(uvarrow.Error, match="type 12, where type 2"):
        run(main)


def read_one(capsule):
    """Calls get_next of a stream once, with the GIL, and returns its code."""
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype = ctypes.c_void_p
    get.argtypes = ctypes.py_object, ctypes.c_char_p
    at = get(capsule, b"arrow_device_array_stream")
    call = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
    next_ = call(ctypes.c_void_p.from_address(at + 16).value)
    array = ctypes.create_string_buffer(128)
    code = next_(at, array)
    release = ctypes.c_void_p.from_buffer(array, 64).value
    if code == 0:
        ctypes.PYFUNCTYPE(None, ctypes.c_void_p)(release)(
            ctypes.addressof(array))
    return code


def test_a_reader_with_the_gil_lends_it_while_it_waits(run):
    async def main():
        rows = uvarrow.stream(in_list(), device_type=CUDA).map(lambda b: b)
        capsule = rows.to_device_reader().__arrow_c_device_stream__()
        assert await anyio.to_thread.run_sync(read_one, capsule) == 0
        del capsule
        await rows.aclose(seconds=None)

    run(main)


def test_reading_on_the_thread_of_the_loop_fails_instead_of_waiting(run):
    async def main():
        rows = uvarrow.stream(in_list(), device_type=CUDA)
        capsule = rows.to_device_reader().__arrow_c_device_stream__()
        assert read_one(capsule) == errno.EDEADLK
        del capsule
        await rows.aclose(seconds=None)

    run(main)


# ---- unsuitable sources -----------------------------------------------------

@pytest.mark.parametrize("source,how,types", [
    (lambda: [Declared(numbers(1))], {}, "type 2, where type 1"),
    (lambda: [Both(numbers(1)), numbers(1)], {"device_type": CUDA},
     "type 1, where type 2"),
    (lambda: [Declared(numbers(1), EXT)], {"device_type": CUDA},
     "type 12, where type 2")])
def test_a_batch_on_another_device_is_refused(run, source, how, types):
    gc.collect() # objects of earlier tests
    before = pa.total_allocated_bytes()

    async def main():
        async with uvarrow.stream(source(), **how) as rows:
            async for batch in rows:
                del batch # the traceback holds the frame

    with pytest.raises(ValueError, match=types):
        run(main)
    assert pa.total_allocated_bytes() == before


def test_an_object_without_either_method_is_refused(run):
    async def main(how):
        async with uvarrow.stream(iter([object()]), **how) as rows:
            await anext(rows)

    for how in ({}, {"device_type": CUDA}):
        with pytest.raises(TypeError, match="__arrow_c"):
            run(main, how)


class Failing:
    def __arrow_c_array__(self, requested_schema=None):
        raise AttributeError("inside")

    def __arrow_c_device_array__(self, requested_schema=None, **kwargs):
        raise AssertionError("this was not asked for")


def test_what_a_method_raises_is_not_taken_for_its_lack(run):
    async def main():
        async with uvarrow.stream([Failing()]) as rows:
            await anext(rows)

    with pytest.raises(AttributeError, match="inside"):
        run(main)


# ---- stages -----------------------------------------------------------------

def test_a_map_stays_on_the_device_or_leaves_it(run):
    async def main(function):
        async with uvarrow.stream(in_list(), device_type=CUDA) as rows:
            rows.map(function)
            return [batch async for batch in rows]

    def away(batch):
        return numbers(len(batch))

    stayed = run(main, lambda batch: batch)
    assert [batch.device for batch in stayed] == [(CUDA, 0)] * 3
    stayed = run(main, lambda batch: Both(numbers(2)))
    assert [(b.device, len(b)) for b in stayed] == [((CUDA, 0), 2)] * 3
    left = run(main, away)
    assert [b.to_pyarrow().num_rows for b in left] == [4] * 3


# ---- events -----------------------------------------------------------------

class Double:
    """The double of CUDA: an event that is pending until it is set."""

    def __init__(self, path):
        self._library = library = ctypes.CDLL(path)
        self._word = ctypes.c_void_p()
        self._stream = ctypes.c_void_p()
        self.event = ctypes.c_void_p()
        context = ctypes.c_void_p()
        self._must(library.cuInit(0))
        self._must(library.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0))
        self._must(library.cuCtxSetCurrent(context))
        self._must(library.cuMemHostAlloc(ctypes.byref(self._word),
                                          ctypes.c_size_t(4), 1))
        self._gate().value = 0
        self._must(library.cuStreamCreate(ctypes.byref(self._stream), 1))
        self._must(library.cuStreamWaitValue32_v2(
            self._stream, self._word, ctypes.c_uint32(1), 0))
        self._must(library.cuEventCreate(ctypes.byref(self.event), 2))
        self._must(library.cuEventRecord(self.event, self._stream))

    def _must(self, code):
        assert code == 0

    def _gate(self):
        return ctypes.c_uint32.from_address(self._word.value)

    def open(self):
        self._gate().value = 1

    def close(self):
        self.open()
        self._must(self._library.cuStreamSynchronize(self._stream))
        self._must(self._library.cuEventDestroy_v2(self.event))
        self._must(self._library.cuStreamDestroy_v2(self._stream))


@pytest.fixture
def double(monkeypatch):
    path = os.path.join(os.environ.get("UVA_TEST_BUILD", ""), "tests",
                        "devices", "libfakecuda.so")
    if not os.path.exists(path):
        pytest.skip("the double of CUDA is not built")
    monkeypatch.setenv("UVA_CUDA_LIBRARY", os.path.abspath(path))
    one = Double(path)
    yield one
    one.close()


def test_a_batch_comes_when_its_event_is_complete(run, double):
    async def main():
        batch = Both(numbers(4), event=ctypes.addressof(double.event))
        async with uvarrow.stream([batch], device_type=CUDA) as rows:
            with pytest.raises(TimeoutError):
                with anyio.fail_after(0.05):
                    await anext(rows)
            double.open()
            return await anext(rows)

    batch = run(main)
    assert batch.device == (CUDA, 0)
    _, array = batch.__arrow_c_device_array__()
    assert ctypes.c_void_p.from_address(address(array) + EVENT).value is None


def test_what_a_map_has_queued_is_waited_for(run, double):
    async def main():
        async with uvarrow.stream([Both(numbers(4))],
                                  device_type=CUDA) as rows:
            rows.map(lambda batch: Both(numbers(2), event=ctypes.addressof(
                double.event)))
            with pytest.raises(TimeoutError):
                with anyio.fail_after(0.05):
                    await anext(rows)
            double.open()
            assert len(await anext(rows)) == 2

    run(main)


def test_an_event_without_a_driver_is_an_error(run, monkeypatch):
    if "UVA_CUDA_LIBRARY" in os.environ:
        pytest.skip("there is a driver")

    async def main():
        event = ctypes.c_void_p(1)
        batch = Both(numbers(4), 10, ctypes.addressof(event)) # ROCM
        async with uvarrow.stream([batch], device_type=10) as rows:
            await anext(rows)

    monkeypatch.setenv("UVA_HIP_LIBRARY", "/none")
    with pytest.raises(uvarrow.Error) as caught:
        run(main)
    assert caught.value.errno == errno.ENOTSUP
