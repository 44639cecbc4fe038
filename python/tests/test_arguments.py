# SPDX-License-Identifier: Apache-2.0
"""Unsuitable objects, as every argument of the package, and as the result of
every method or function that is passed to it: an error that names the
argument, in the call, or in the stream if it is called later. The stubs list
these, so that a new argument needs a row here."""
import ast
import asyncio
import datetime
import functools
import gc
import os
import re
import sys
import warnings

import numpy as np
import pyarrow as pa
import pytest

import uvarrow
import uvarrow.adbc
from conftest import in_thread

ONE = pa.record_batch({"n": [1]})
HERE = os.path.dirname(os.path.abspath(__file__))


# ---- unsuitable objects -----------------------------------------------------

class Raises:
    """Its attributes cannot be had, not even its class."""

    def __getattribute__(self, name):
        raise RuntimeError("an attribute that raises")


class AsyncCall:
    async def __call__(self, *args):
        return True


async def coroutine_function(*args):
    return True


async def generator_function(*args):
    yield True


def used_capsule():
    capsule = pa.table(ONE).__arrow_c_stream__()
    pa.RecordBatchReader._import_from_c_capsule(capsule)
    return capsule


def used_schema():
    capsule = ONE.schema.__arrow_c_schema__()
    pa.Schema._import_from_c_capsule(capsule)
    return capsule


class NoNumber:
    """As an array of several numbers: it has the methods of one."""

    def __index__(self):
        raise TypeError("only scalar arrays can be converted")

    __float__ = __index__


BAD = {
    "none": lambda: None,
    "text": lambda: "text",
    "bytes": lambda: b"text",
    "number": lambda: 42,
    "negative": lambda: -1,
    "huge": lambda: 1 << 70,
    "not a number": lambda: float("nan"),
    "nul": lambda: "a\0b",
    "half a pair": lambda: "a\ud800",
    "no number": NoNumber,
    "list": lambda: [1],
    "dict": lambda: {"a": 1},
    "another capsule": lambda: datetime.datetime_CAPI,
    "used capsule": used_capsule,
    "used schema": used_schema,
    "object": object,
    "raises": Raises,
    "coroutine function": lambda: coroutine_function,
    "generator function": lambda: generator_function,
    "partial": lambda: functools.partial(coroutine_function, 1),
    "asynchronous call": AsyncCall,
    "asynchronous generator": lambda: generator_function(),
}
# Further results of a called function
BAD_RESULTS = {**BAD, "coroutine": coroutine_function}

NUMBERS = {"number", "negative", "huge"}
FLOATS = NUMBERS | {"not a number"}
TEXTS = {"text"}


# ---- the arguments ----------------------------------------------------------

def rows():
    return uvarrow.stream([ONE, ONE])


def batch():
    return uvarrow.from_dlpack(np.arange(3), name="n")


def pool():
    return uvarrow.adbc.Pool("sqlite", uri=":memory:")


async def on_connection(use):
    async with pool().connection(autocommit=True) as connection:
        made = use(connection)
        return await made if asyncio.iscoroutine(made) else made


def on_cursor(use):
    return on_connection(lambda connection: use(connection.cursor()))


async def items():
    yield ONE


REQUEST = {"headers": []}


class Row:
    """A call with one argument; the objects of BAD that fit it, and the
    objects of BAD_RESULTS that the passed function may give; its other methods
    are of `base`."""

    def __init__(self, call, *, fits=(), gives=(), base=object):
        self.call = call
        self.fits = set(fits)
        self.gives = set(gives)
        self.base = base


NONE = {"none"}
COUNT = {"number"}
SECONDS = {"number"}
EVERY_RESULT = set(BAD_RESULTS)
COROUTINES = {"coroutine function", "partial", "asynchronous call"}

ROWS = {
    "stream.source": Row(uvarrow.stream, fits=COROUTINES | {
        "generator function", "asynchronous generator"}),
    "stream.window": Row(lambda v: uvarrow.stream([ONE], window=v),
                         fits=COUNT),
    "stream.max_bytes": Row(lambda v: uvarrow.stream([ONE], max_bytes=v),
                            fits=COUNT),
    "stream.interrupt": Row(lambda v: uvarrow.stream([ONE], interrupt=v),
                            fits=NONE, gives=EVERY_RESULT), # not called here
    "stream.close": Row(lambda v: uvarrow.stream([ONE], close=v),
                        fits=NONE, gives=EVERY_RESULT), # not called here
    "stream.own_thread": Row(lambda v: uvarrow.stream([ONE], own_thread=v)),
    "stream.device_type": Row(lambda v: uvarrow.stream([ONE], device_type=v),
                              fits=NONE | COUNT),
    "merge.first": Row(uvarrow.merge),
    "merge.others": Row(lambda v: uvarrow.merge(rows(), v)),
    "merge.keep_going": Row(
        lambda v: uvarrow.merge(rows(), rows(), keep_going=v)),
    "merge.cast": Row(lambda v: uvarrow.merge(rows(), rows(), cast=v)),
    "merge.open_at_once": Row(
        lambda v: uvarrow.merge(rows(), rows(), open_at_once=v), fits=COUNT),
    "merge.window": Row(lambda v: uvarrow.merge(rows(), rows(), window=v),
                        fits=COUNT),
    "merge.max_bytes": Row(
        lambda v: uvarrow.merge(rows(), rows(), max_bytes=v), fits=COUNT),
    "to_reader.iterable": Row(
        lambda v: uvarrow.to_reader(v, ONE.schema),
        fits={"asynchronous generator"}),
    "to_reader.schema": Row(lambda v: uvarrow.to_reader(items(), v)),
    "to_reader.window": Row(
        lambda v: uvarrow.to_reader(items(), ONE.schema, window=v),
        fits=COUNT),
    "to_reader.max_bytes": Row(
        lambda v: uvarrow.to_reader(items(), ONE.schema, max_bytes=v),
        fits=COUNT),
    "ipc.source": Row(uvarrow.ipc),
    "ipc.as_bytes": Row(lambda v: uvarrow.ipc(rows(), as_bytes=v)),
    "ipc.compression": Row(lambda v: uvarrow.ipc(rows(), compression=v),
                           fits=NONE),
    "ipc.file": Row(lambda v: uvarrow.ipc(rows(), file=v)),
    "csv.source": Row(uvarrow.csv),
    "csv.delimiter": Row(lambda v: uvarrow.csv(rows(), delimiter=v)),
    "csv.header": Row(lambda v: uvarrow.csv(rows(), header=v)),
    "csv.null": Row(lambda v: uvarrow.csv(rows(), null=v), fits=TEXTS),
    "csv.crlf": Row(lambda v: uvarrow.csv(rows(), crlf=v)),
    "csv.as_stored": Row(lambda v: uvarrow.csv(rows(), as_stored=v)),
    "csv.as_bytes": Row(lambda v: uvarrow.csv(rows(), as_bytes=v)),
    "json.source": Row(uvarrow.json),
    "json.array": Row(lambda v: uvarrow.json(rows(), array=v)),
    "json.as_stored": Row(lambda v: uvarrow.json(rows(), as_stored=v)),
    "json.as_bytes": Row(lambda v: uvarrow.json(rows(), as_bytes=v)),
    "from_dlpack.tensor": Row(uvarrow.from_dlpack,
                              base=lambda: np.arange(3)),
    "from_dlpack.name": Row(lambda v: uvarrow.from_dlpack(np.arange(3), v),
                            fits=TEXTS),
    "Batch.ipc.compression": Row(lambda v: batch().ipc(compression=v), fits=NONE),
    "Batch.column.which": Row(lambda v: batch().column(v), fits={
        "text", "number", "negative"}), # KeyError, IndexError
    "Batch.__arrow_c_array__.requested_schema": Row(
        lambda v: batch().__arrow_c_array__(v), fits=NONE),
    "Batch.__arrow_c_device_array__.requested_schema": Row(
        lambda v: batch().__arrow_c_device_array__(v), fits=NONE),
    "Batch.__arrow_c_device_array__.kwargs": Row(
        lambda v: batch().__arrow_c_device_array__(kwargs=v), fits=NONE),
    "Column.__dlpack__.stream": Row(
        lambda v: batch().column(0).__dlpack__(stream=v),
        fits=NONE | {"number", "negative"}), # BufferError
    "Column.__dlpack__.max_version": Row(
        lambda v: batch().column(0).__dlpack__(max_version=v), fits=NONE),
    "Column.__dlpack__.dl_device": Row(
        lambda v: batch().column(0).__dlpack__(dl_device=v), fits=NONE),
    "Column.__dlpack__.copy": Row(
        lambda v: batch().column(0).__dlpack__(copy=v), fits=NONE),
    "Stream.__aexit__.exc_info": Row( # not used
        lambda v: rows().__aexit__(v), fits=set(BAD)),
    "Stream.cancel.reason": Row(lambda v: rows().cancel(v),
                                fits=NONE | TEXTS),
    "Stream.aclose.seconds": Row(lambda v: rows().aclose(seconds=v),
                                 fits=NONE | SECONDS),
    "Stream.map.function": Row(lambda v: rows().map(v), fits=COROUTINES),
    "Stream.map.schema": Row(lambda v: rows().map(lambda b: b, v), fits=NONE),
    "Stream.filter.function": Row(lambda v: rows().filter(v), fits=COROUTINES,
                                  gives=FLOATS),
    "Stream.cast.schema": Row(lambda v: rows().cast(v)),
    "Stream.limit.rows": Row(lambda v: rows().limit(v), fits=COUNT),
    "Stream.rebatch.rows": Row(lambda v: rows().rebatch(rows=v), fits=COUNT),
    "Stream.rebatch.bytes": Row(lambda v: rows().rebatch(bytes=v),
                                fits=COUNT),
    "Stream.rebatch.wait": Row(lambda v: rows().rebatch(rows=1, wait=v),
                               fits=SECONDS),
    "Stream.rebatch.window": Row(
        lambda v: rows().rebatch(rows=1, window=v), fits=COUNT),
    "Stream.rebatch.max_bytes": Row(
        lambda v: rows().rebatch(rows=1, max_bytes=v), fits=COUNT),
    "Stream.timeout.open": Row(lambda v: rows().timeout(open=v),
                               fits=SECONDS),
    "Stream.timeout.first": Row(lambda v: rows().timeout(first=v),
                                fits=SECONDS),
    "Stream.timeout.between": Row(lambda v: rows().timeout(between=v),
                                  fits=SECONDS),
    "Stream.timeout.total": Row(lambda v: rows().timeout(total=v),
                                fits=SECONDS),
    "Stream.parallel.workers": Row(lambda v: rows().parallel(v), fits=COUNT),
    "Stream.parallel.unordered": Row(
        lambda v: rows().parallel(2, unordered=v)),
    "Stream.parallel.window": Row(lambda v: rows().parallel(2, window=v),
                                  fits=COUNT),
    "Stream.parallel.max_bytes": Row(
        lambda v: rows().parallel(2, max_bytes=v), fits=COUNT),
    "Stream.trace.function": Row(lambda v: rows().trace(v),
                                 gives=EVERY_RESULT), # reported: see below
    "Stream.name.text": Row(lambda v: rows().name(v), fits=TEXTS),
    "Stream.to_reader.window": Row(lambda v: rows().to_reader(window=v),
                                   fits=COUNT),
    "Stream.to_reader.max_bytes": Row(lambda v: rows().to_reader(max_bytes=v),
                                      fits=COUNT),
    "Stream.to_device_reader.window": Row(
        lambda v: rows().to_device_reader(window=v), fits=COUNT),
    "Stream.to_device_reader.max_bytes": Row(
        lambda v: rows().to_device_reader(max_bytes=v), fits=COUNT),
    "DeviceReader.__init__.capsule": Row(uvarrow.DeviceReader),
    "DeviceReader.__arrow_c_device_stream__.requested_schema": Row(
        lambda v: rows().to_device_reader().__arrow_c_device_stream__(v),
        fits=NONE),
    "DeviceReader.__arrow_c_device_stream__.kwargs": Row(
        lambda v: rows().to_device_reader().__arrow_c_device_stream__(
            kwargs=v), fits=NONE),
    "Reader.__init__.capsule": Row(uvarrow.Reader),
    "Reader.__arrow_c_stream__.requested_schema": Row(
        lambda v: rows().to_reader().__arrow_c_stream__(v), fits=NONE),
    "adbc.Pool.__init__.driver": Row(
        lambda v: uvarrow.adbc.Pool(v, uri="x"), fits=NONE | TEXTS),
    "adbc.Pool.__init__.uri": Row(
        lambda v: uvarrow.adbc.Pool("sqlite", uri=v), fits=NONE | TEXTS),
    "adbc.Pool.__init__.entrypoint": Row(
        lambda v: uvarrow.adbc.Pool("sqlite", entrypoint=v),
        fits=NONE | TEXTS),
    "adbc.Pool.__init__.options": Row(
        lambda v: uvarrow.adbc.Pool("sqlite", options=v),
        fits=NONE | {"dict"}),
    "adbc.Pool.__init__.connection_options": Row(
        lambda v: uvarrow.adbc.Pool("sqlite", connection_options=v),
        fits=NONE | {"dict"}),
    "adbc.Pool.__init__.connections": Row(
        lambda v: uvarrow.adbc.Pool("sqlite", connections=v), fits=COUNT),
    "adbc.Pool.__init__.idle": Row(
        lambda v: uvarrow.adbc.Pool("sqlite", idle=v), fits=SECONDS),
    "adbc.Pool.__init__.wait": Row(
        lambda v: uvarrow.adbc.Pool("sqlite", wait=v), fits=SECONDS),
    "adbc.Pool.__init__.max_age": Row(
        lambda v: uvarrow.adbc.Pool("sqlite", max_age=v), fits=SECONDS),
    "adbc.Pool.__init__.connect": Row(
        lambda v: uvarrow.adbc.Pool("sqlite", connect=v), fits=SECONDS),
    "adbc.Pool.__init__.lock": Row(
        lambda v: uvarrow.adbc.Pool("sqlite", lock=v), fits=NONE | SECONDS),
    "adbc.Pool.__init__.stuck": Row(
        lambda v: uvarrow.adbc.Pool("sqlite", stuck=v), fits=NONE | COUNT),
    "adbc.Pool.__init__.batch_bytes": Row(
        lambda v: uvarrow.adbc.Pool("sqlite", batch_bytes=v),
        fits=NONE | COUNT),
    "adbc.Pool.__init__.keeps_session": Row(
        lambda v: uvarrow.adbc.Pool("sqlite", keeps_session=v)),
    "adbc.Pool.query.sql": Row(lambda v: pool().query(v), fits=TEXTS),
    "adbc.Pool.query.parameters": Row(
        lambda v: pool().query("SELECT ?", v),
        fits=NONE | {"list", "dict", "asynchronous generator"}),
    "adbc.Pool.query.options": Row(
        lambda v: pool().query("SELECT 1", options=v), fits=NONE | {"dict"}),
    "adbc.Pool.query.update": Row(
        lambda v: pool().query("SELECT 1", update=v)),
    "adbc.Pool.query.by_name": Row(
        lambda v: pool().query("SELECT 1", pa.table(ONE), by_name=v)),
    "adbc.Pool.query.window": Row(
        lambda v: pool().query("SELECT 1", window=v), fits=COUNT),
    "adbc.Pool.query.max_bytes": Row(
        lambda v: pool().query("SELECT 1", max_bytes=v), fits=COUNT),
    "adbc.Pool.query.busy": Row(
        lambda v: pool().query("SELECT 1", busy=v), fits=NONE | SECONDS),
    "adbc.Pool.query.batch_bytes": Row(
        lambda v: pool().query("SELECT 1", batch_bytes=v), fits=NONE | COUNT),
    "adbc.Pool.query.parallel": Row(
        lambda v: pool().query("SELECT 1", parallel=v), fits=NONE | COUNT),
    "adbc.Pool.query.retry": Row(
        lambda v: pool().query("SELECT 1", parallel=1, retry=v), fits=COUNT),
    "adbc.Pool.query.timeout": Row(
        lambda v: pool().query("SELECT 1", parallel=1, timeout=v),
        fits=NONE | SECONDS),
    "adbc.Pool.ingest.busy": Row(
        lambda v: pool().ingest("t", pa.table(ONE), busy=v),
        fits=NONE | SECONDS),
    "adbc.Pool.execute.busy": Row(
        lambda v: pool().execute("SELECT 1", busy=v), fits=NONE | SECONDS),
    "adbc.Pool.ingest.table": Row(lambda v: pool().ingest(v, pa.table(ONE)),
                                  fits=TEXTS),
    "adbc.Pool.ingest.data": Row(lambda v: pool().ingest("t", v),
                                 fits={"asynchronous generator"},
                                 gives={"dict"}), # a row
    "adbc.Pool.ingest.mode": Row(
        lambda v: pool().ingest("t", pa.table(ONE), mode=v)),
    "adbc.Pool.ingest.options": Row(
        lambda v: pool().ingest("t", pa.table(ONE), options=v),
        fits=NONE | {"dict"}),
    "adbc.Pool.execute.sql": Row(lambda v: pool().execute(v), fits=TEXTS),
    "adbc.Pool.execute.parameters": Row(
        lambda v: pool().execute("SELECT ?", v),
        fits=NONE | {"list", "dict", "asynchronous generator"}),
    "adbc.Pool.execute.options": Row(
        lambda v: pool().execute("SELECT 1", options=v),
        fits=NONE | {"dict"}),
    "adbc.Pool.execute.update": Row(
        lambda v: pool().execute("SELECT 1", update=v)),
    "adbc.Pool.execute.by_name": Row(
        lambda v: pool().execute("SELECT 1", pa.table(ONE), by_name=v)),
    "adbc.Pool.session.autocommit": Row(
        lambda v: pool().session(autocommit=v)),
    "adbc.Pool.session.options": Row(lambda v: pool().session(options=v),
                                     fits=NONE | {"dict"}),
    "adbc.Session.__aexit__.exc_info": Row( # Python's own
        lambda v: pool().session().__aexit__(v), fits=set(BAD)),
    "adbc.Pool.__aexit__.exc_info": Row( # not used
        lambda v: pool().__aexit__(v), fits=set(BAD)),
    "adbc.Pool.__exit__.exc_info": Row( # not used
        lambda v: pool().__exit__(v), fits=set(BAD)),
}
# Stages and calls that stand for several streams, and for the event loop
ROWS.update({
    "Batch.select.mask": Row(lambda v: batch().select(v)),
    "Batch.__arrow_c_stream__.requested_schema": Row(
        lambda v: batch().__arrow_c_stream__(v), fits=NONE),
    "Stream.progress.text": Row(lambda v: rows().progress(v), fits=TEXTS),
    "Stream.progress.file": Row(lambda v: rows().progress(file=v), fits=NONE,
                                gives=EVERY_RESULT), # no terminal
    "file.path": Row(uvarrow.file, fits=TEXTS, gives={"number"}),
    "file.format": Row(lambda v: uvarrow.file("x", format=v), fits=NONE),
    "file.mmap": Row(lambda v: uvarrow.file("x", mmap=v)),
    "file.window": Row(lambda v: uvarrow.file("x", window=v), fits=COUNT),
    "file.max_bytes": Row(lambda v: uvarrow.file("x", max_bytes=v), fits=COUNT),
    "ipc_reader.reader": Row(uvarrow.ipc_reader, fits={"asynchronous generator"},
                             gives={"bytes"}),
    "ipc_reader.window": Row(lambda v: uvarrow.ipc_reader(items(), window=v),
                             fits=COUNT),
    "ipc_reader.max_bytes": Row(
        lambda v: uvarrow.ipc_reader(items(), max_bytes=v), fits=COUNT),
    "merge.schema": Row(lambda v: uvarrow.merge(rows(), rows(), schema=v),
                        fits=NONE),
    "concat.first": Row(uvarrow.concat),
    "concat.others": Row(lambda v: uvarrow.concat(rows(), v)),
    "concat.schema": Row(lambda v: uvarrow.concat(rows(), rows(), schema=v),
                         fits=NONE),
    "concat.cast": Row(lambda v: uvarrow.concat(rows(), rows(), cast=v)),
    "concat.open_at_once": Row(
        lambda v: uvarrow.concat(rows(), rows(), open_at_once=v), fits=COUNT),
    "configure.memory_bytes": Row(lambda v: uvarrow.configure(memory_bytes=v),
                                  fits=NONE | COUNT),
    "configure.measure": Row(lambda v: uvarrow.configure(measure=v), fits=NONE),
    "configure.check": Row(lambda v: uvarrow.configure(check=v), fits=NONE),
    "configure.threads": Row(lambda v: uvarrow.configure(threads=v),
                             fits=NONE | COUNT),
    "drain.seconds": Row(uvarrow.drain, fits=NONE | SECONDS),
    "Stream.map.concurrency": Row(
        lambda v: rows().map(coroutine_function, concurrency=v),
        fits=NONE | COUNT),
    "Stream.map.ordered": Row(lambda v: rows().map(lambda b: b, ordered=v)),
    "Stream.filter.concurrency": Row(
        lambda v: rows().filter(coroutine_function, concurrency=v),
        fits=NONE | COUNT),
    "Stream.filter.ordered": Row(
        lambda v: rows().filter(coroutine_function, ordered=v)),
    "Stream.transform.function": Row(lambda v: rows().transform(v)),
    "Stream.transform.schema": Row(lambda v: rows().transform(list, v),
                                   fits=NONE),
    "Stream.transform.finish": Row(
        lambda v: rows().transform(lambda b: [b], finish=v), fits=NONE),
    "Stream.throttle.batches": Row(lambda v: rows().throttle(batches=v),
                                   fits=COUNT),
    "Stream.throttle.bytes": Row(lambda v: rows().throttle(bytes=v), fits=COUNT),
    "Stream.retry.function": Row(
        lambda v: uvarrow.stream(lambda: 1 / 0).retry(v, delay=0), gives=NONE),
    "Stream.retry.times": Row(lambda v: rows().retry(print, times=v),
                              fits=NONE | COUNT),
    "Stream.retry.delay": Row(lambda v: rows().retry(print, delay=v),
                              fits=SECONDS),
    "Stream.retry.delay_max": Row(lambda v: rows().retry(print, delay_max=v),
                                  fits=SECONDS),
    "Stream.retry.resume": Row(lambda v: rows().retry(print, resume=v)),
    "Stream.tee.slow": Row(lambda v: rows().tee(slow=v)),
    "Stream.tee.window": Row(lambda v: rows().tee(window=v), fits=COUNT),
    "Stream.tee.max_bytes": Row(lambda v: rows().tee(max_bytes=v), fits=COUNT),
    "Stream.tee.first_window": Row(lambda v: rows().tee(first_window=v),
                                   fits=COUNT),
    "Stream.tee.first_bytes": Row(lambda v: rows().tee(first_bytes=v),
                                  fits=COUNT),
    "Stream.priority.number": Row(lambda v: rows().priority(v),
                                  fits={"number", "negative"}),
    "adbc._Catalog.partitions.sql": Row(
        lambda v: pool().partitions(v), fits=TEXTS),
    "adbc._Catalog.partitions.parameters": Row(
        lambda v: pool().partitions("SELECT ?", v),
        fits=NONE | {"list", "dict", "asynchronous generator"}),
    "adbc._Catalog.partitions.options": Row(
        lambda v: pool().partitions("SELECT 1", options=v),
        fits=NONE | {"dict"}),
    "adbc._Catalog.partitions.by_name": Row(
        lambda v: pool().partitions("SELECT 1", pa.table(ONE), by_name=v)),
    "adbc._Catalog.partitions.busy": Row(
        lambda v: pool().partitions("SELECT 1", busy=v),
        fits=NONE | SECONDS),
    "adbc._Catalog.partition.descriptors": Row(
        lambda v: pool().partition([b"x", v]), fits={"bytes"}),
    "adbc._Catalog.partition.parallel": Row(
        lambda v: pool().partition(b"x", parallel=v), fits=NONE | COUNT),
    "adbc._Catalog.partition.retry": Row(
        lambda v: pool().partition(b"x", retry=v), fits=COUNT),
    "adbc._Catalog.partition.timeout": Row(
        lambda v: pool().partition(b"x", timeout=v), fits=NONE | SECONDS),
    "adbc._Catalog.partition.keep_going": Row(
        lambda v: pool().partition(b"x", keep_going=v)),
    "adbc._Catalog.partition.window": Row(
        lambda v: pool().partition(b"x", window=v), fits=COUNT),
    "adbc._Catalog.partition.max_bytes": Row(
        lambda v: pool().partition(b"x", max_bytes=v), fits=COUNT),
    "adbc._Catalog.table_schema.table": Row(lambda v: pool().table_schema(v),
                                            fits=TEXTS),
    "adbc._Catalog.table_schema.catalog": Row(
        lambda v: pool().table_schema("t", catalog=v), fits=NONE | TEXTS),
    "adbc._Catalog.table_schema.schema": Row(
        lambda v: pool().table_schema("t", schema=v), fits=NONE | TEXTS),
    "adbc._Catalog.objects.depth": Row(lambda v: pool().objects(depth=v)),
})
for _name, _fits in {"catalog": NONE | TEXTS, "schema": NONE | TEXTS,
                     "table": NONE | TEXTS, "types": (),
                     "busy": NONE | SECONDS}.items():
    ROWS[f"adbc._Catalog.objects.{_name}"] = Row(
        lambda v, _name=_name: pool().objects(**{_name: v}), fits=_fits)
    ROWS[f"adbc._Catalog.tables.{_name}"] = Row(
        lambda v, _name=_name: pool().tables(**{_name: v}), fits=_fits)
ROWS["adbc._Catalog.objects.column"] = Row(lambda v: pool().objects(column=v),
                                           fits=NONE | TEXTS)
# Answers of ASGI
ROWS.update({
    "asgi.response.rows": Row(lambda v: uvarrow.asgi.response(v, REQUEST)),
    "asgi.response.request": Row(lambda v: uvarrow.asgi.response(rows(), v)),
    "asgi.response.formats": Row(
        lambda v: uvarrow.asgi.response(rows(), REQUEST, formats=v)),
    "asgi.response.headers": Row(
        lambda v: uvarrow.asgi.response(rows(), REQUEST, headers=v), fits=NONE),
})
ROWS.update({f"asgi.Response.__call__.{name}": Row( # the server's own
    lambda v: None, fits=set(BAD), gives=EVERY_RESULT)
    for name in ("scope", "receive", "send")})
# Connections and cursors
ROWS.update({f"adbc.{name}.exc_info": Row(lambda v: None, fits=set(BAD))
             for name in ("Pool.__aexit__", "Connecting.__aexit__", # Python's own
                          "Connection.__aexit__", "Cursor.__aexit__",
                          "Transaction.__aexit__")})
ROWS.update({
    "adbc.Pool.aclose.seconds": Row(lambda v: pool().aclose(seconds=v),
                                    fits=NONE | SECONDS),
    "adbc.Pool.connection.autocommit": Row(
        lambda v: pool().connection(autocommit=v)),
    "adbc.Pool.connection.options": Row(
        lambda v: pool().connection(options=v), fits=NONE | {"dict"}),
    "adbc.Pool.connection.timeout": Row(
        lambda v: pool().connection(timeout=v), fits=NONE | SECONDS),
    "adbc.connect.uri": Row(uvarrow.adbc.connect, fits=NONE | TEXTS),
    "adbc.connect.autocommit": Row(
        lambda v: uvarrow.adbc.connect("sqlite:x", autocommit=v)),
    "adbc.Connection.execute.operation": Row(
        lambda v: on_connection(lambda c: c.execute(v)), fits=TEXTS),
    "adbc.Connection.execute.parameters": Row(
        lambda v: on_connection(lambda c: c.execute("SELECT ?", v)),
        fits=NONE | {"list", "dict", "asynchronous generator"}),
    "adbc.Cursor.execute.operation": Row(
        lambda v: on_cursor(lambda c: c.execute(v)), fits=TEXTS),
    "adbc.Cursor.execute.parameters": Row(
        lambda v: on_cursor(lambda c: c.execute("SELECT ?", v)),
        fits=NONE | {"list", "dict", "asynchronous generator"}),
    "adbc.Cursor.executemany.operation": Row(
        lambda v: on_cursor(lambda c: c.executemany(v, [[1]])), fits=TEXTS),
    "adbc.Cursor.executemany.seq_of_parameters": Row(
        lambda v: on_cursor(lambda c: c.executemany("SELECT ?", v)),
        fits={"asynchronous generator"}, gives={"list", "dict"}),
    "adbc.Cursor.adbc_ingest.table_name": Row(
        lambda v: on_cursor(lambda c: c.adbc_ingest(v, ONE)), fits=TEXTS),
    "adbc.Cursor.adbc_ingest.data": Row(
        lambda v: on_cursor(lambda c: c.adbc_ingest("t", v)),
        fits={"asynchronous generator"}, gives={"dict"}),
    "adbc.Cursor.adbc_ingest.mode": Row(
        lambda v: on_cursor(lambda c: c.adbc_ingest("t", ONE, v))),
    "adbc.Cursor.adbc_ingest.temporary": Row(
        lambda v: on_cursor(lambda c: c.adbc_ingest("t", ONE, temporary=v))),
    "adbc.Cursor.fetchmany.size": Row(
        lambda v: on_cursor(lambda c: c.fetchmany(v)), fits=NONE | COUNT),
    # not used
    "adbc.Cursor.callproc.procname": Row(lambda v: None, fits=set(BAD)),
    "adbc.Cursor.callproc.parameters": Row(lambda v: None, fits=set(BAD)),
    "adbc.Cursor.setinputsizes.sizes": Row(lambda v: None, fits=set(BAD)),
    "adbc.Cursor.setoutputsize.size": Row(lambda v: None, fits=set(BAD)),
    "adbc.Cursor.setoutputsize.column": Row(lambda v: None, fits=set(BAD)),
})
for _name, _fits in {"driver": NONE | TEXTS, "entrypoint": NONE | TEXTS,
                     "options": NONE | {"dict"},
                     "connection_options": NONE | {"dict"},
                     "connect": SECONDS, "lock": NONE | SECONDS,
                     "timeout": NONE | SECONDS,
                     "batch_bytes": NONE | COUNT}.items():
    ROWS[f"adbc.connect.{_name}"] = Row(
        lambda v, _name=_name: uvarrow.adbc.connect("sqlite:x", **{_name: v}),
        fits=_fits)
for _name, _fits in {"options": NONE | {"dict"},
                     "timeout": NONE | SECONDS}.items():
    ROWS[f"adbc.Connection.cursor.{_name}"] = Row(
        lambda v, _name=_name: on_connection(lambda c: c.cursor(**{_name: v})),
        fits=_fits)
for _name in "catalog_name", "db_schema_name":
    ROWS[f"adbc.Cursor.adbc_ingest.{_name}"] = Row(
        lambda v, _name=_name: on_cursor(
            lambda c: c.adbc_ingest("t", ONE, **{_name: v})), fits=NONE | TEXTS)
for _name, _args in {"Connection.execute": ("SELECT 1",),
                     "Cursor.execute": ("SELECT 1",),
                     "Cursor.executemany": ("SELECT ?", [[1]]),
                     "Cursor.adbc_ingest": ("t", ONE)}.items():
    ROWS[f"adbc.{_name}.timeout"] = Row(
        lambda v, _name=_name, _args=_args: (
            on_cursor if _name[1] == "u" else on_connection)(
            lambda c: getattr(c, _name.split(".")[1])(*_args, timeout=v)),
        fits=NONE | SECONDS)
# The methods that a session shares with a pool
ROWS.update({name.replace(".Pool.", ".Session."): row
             for name, row in ROWS.items() if name.startswith((
                 "adbc.Pool.query.", "adbc.Pool.ingest.",
                 "adbc.Pool.execute."))})
# Arguments that are checked by their parts, too
PARTS = {
    "an item of source": Row(lambda v: uvarrow.stream([v]), fits=COROUTINES | {
        "generator function", "asynchronous generator"}),
    "options": Row(lambda v: uvarrow.adbc.Pool("x", options={"a": v}),
                   fits=TEXTS | FLOATS),
    "connection_options": Row(
        lambda v: uvarrow.adbc.Pool("x", connection_options={"a": v}),
        fits=TEXTS | FLOATS),
    "a name of options": Row(
        lambda v: pool().query("SELECT 1", options={v: "a"}),
        fits=TEXTS | {"list", "dict"}), # which are no keys of a dict
    "max_version": Row(
        lambda v: batch().column(0).__dlpack__(max_version=(v, 0)),
        fits={"number", "negative"}),
    "dl_device": Row(lambda v: batch().column(0).__dlpack__(dl_device=(1, v)),
                     fits={"number", "negative"}), # BufferError
}


# ---- the stubs --------------------------------------------------------------

def stubs():
    """(the prefix of names, tree) of each stub."""
    for prefix, module in (("", "__init__.pyi"), ("adbc.", "adbc.pyi"),
                           ("asgi.", "asgi.pyi")):
        path = os.path.join(os.path.dirname(HERE), "src", "uvarrow", module)
        with open(path, encoding="utf-8") as file:
            yield prefix, ast.parse(file.read())


def is_protocol(node):
    return isinstance(node, ast.ClassDef) and any(
        isinstance(base, ast.Name) and base.id == "Protocol"
        for base in node.bases)


def functions(node):
    return [one for one in getattr(node, "body", [])
            if isinstance(one, (ast.FunctionDef, ast.AsyncFunctionDef))]


def declared():
    """Name of an argument -> its annotation."""
    found = {}
    for prefix, tree in stubs():
        owners = [("", tree)] + [
            (node.name + ".", node) for node in tree.body
            if isinstance(node, ast.ClassDef) and not is_protocol(node)]
        for owner, node in owners:
            for function in functions(node):
                args = function.args
                for arg in [*args.posonlyargs, *args.args, args.vararg,
                            *args.kwonlyargs, args.kwarg]:
                    if arg is not None and arg.arg != "self":
                        found[f"{prefix}{owner}{function.name}.{arg.arg}"] = \
                            arg.annotation
    return found


PROTOCOLS = {node.name: [one.name for one in functions(node)]
             for _, tree in stubs() for node in tree.body if is_protocol(node)}
PROTOCOLS.update(_Reads=[], _ReceivesSome=[], _Receives=[]) # test_async_sources
PROTOCOLS["_HasScope"] = [] # an attribute
PROTOCOLS["Truth"] = [] # Python itself checks the result of __bool__()
ALIASES = {node.target.id: node.value for _, tree in stubs()
           for node in tree.body
           if isinstance(node, ast.AnnAssign) and node.value is not None}


class Later(functools.partial):
    """A value that is made when it is given: a coroutine that is not given is
    no fault."""


def now(value):
    return value() if isinstance(value, Later) else value


class Gives:
    """Behaves as `base`, but one method of it gives something else."""

    def __new__(cls, method, value, base=object):
        def gives(self, *args, **kwargs):
            return now(value)

        names = {method: gives}
        for name in "__dlpack__", "__dlpack_device__":
            if name != method and hasattr(base, name):
                names[name] = lambda self, *args, name=name, **kwargs: getattr(
                    base, name)(*args, **kwargs)
        if method == "__anext__":
            names["__aiter__"] = lambda self: self
        return type("Given", (), names)()


def one_item(value):
    yield now(value)


async def one_item_later(value):
    yield now(value)


def inner(name, annotation, base, wrap):
    """The places of a part, each of which is passed inside of something."""
    return [(f"{name} {place}".strip(),
             lambda value, make=make: wrap(make(value)))
            for place, make in [("", lambda value: value),
                                *places(annotation, base)]]


def places(annotation, base=object):
    """(place, function) for each that is called or read of an argument: the
    function makes an argument with a value in that place."""
    kind = getattr(annotation, "id", None)
    if kind in ALIASES:
        return places(ALIASES[kind], base)
    if kind in PROTOCOLS:
        return [(method, lambda value, method=method: Gives(method, value, base))
                for method in PROTOCOLS[kind]]
    if isinstance(annotation, ast.BinOp):
        return places(annotation.left, base) + places(annotation.right, base)
    if not isinstance(annotation, ast.Subscript):
        return []
    part = annotation.slice
    match annotation.value.id:
        case "Callable":
            return inner("()", part.elts[1], base,
                         lambda value: lambda *args: now(value))
        case "Iterable":
            return [("__iter__", lambda value: Gives("__iter__", value)),
                    *inner("item", part, base, one_item)]
        case "AsyncIterable":
            return [("__aiter__", lambda value: Gives("__aiter__", value)),
                    ("__anext__", lambda value: Gives("__anext__", value)),
                    *inner("item", part, base, one_item_later)]
    return []


def results():
    """(argument, place) for every function that is called later."""
    return [(name, place) for name, annotation in declared().items()
            for place, _ in places(annotation) if place]


def passed(name, place, value):
    """An argument with the value in that place."""
    return dict(places(declared()[name], ROWS[name].base()))[place](value)


def test_every_argument_of_the_stubs_has_a_row():
    assert set(declared()) == set(ROWS)
    for known in [("stream.source", "__arrow_c_stream__"),
                  ("stream.source", "() item __arrow_c_array__"),
                  ("to_reader.iterable", "__anext__"),
                  ("Stream.map.function", "() __arrow_c_array__"),
                  ("from_dlpack.tensor", "__dlpack__")]:
        assert known in results()


def test_a_time_that_is_too_long_is_named_in_seconds():
    with pytest.raises(ValueError, match=r"idle is out of range: 3000000\.0$"):
        uvarrow.adbc.Pool("sqlite", idle=3e6)
    uvarrow.adbc.Pool("sqlite", idle=2e6)


# ---- passed objects ---------------------------------------------------------

async def finish(made):
    """Runs the made object to its end."""
    if asyncio.iscoroutine(made):
        made = await made
    if isinstance(made, uvarrow.Stream):
        await made.read_all()
    elif isinstance(made, uvarrow.Reader):
        await in_thread(lambda: pa.table(made))
    return made


def is_refused(error, argument):
    """Whether it is an error of the kind that is expected. An exception that a
    reader has passed on is text."""
    text = str(error)
    kind = type(error)
    if isinstance(error, OSError):
        kind = TypeError if "TypeError:" in text else \
            ValueError if "ValueError:" in text else kind
    return (issubclass(kind, (TypeError, ValueError, NotImplementedError))
            and re.search(rf"\b{argument}\b", text) is not None)


def try_each(argument, values, fits, use):
    """Uses each value; returns the values that were not refused as they should
    be."""
    wrong = []

    async def main():
        for kind, make in values.items():
            if kind in fits:
                continue
            try:
                await use(make)
            except Exception as error:
                if not is_refused(error, argument):
                    wrong.append((kind, repr(error)))
            else:
                wrong.append((kind, "was taken"))

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        asyncio.run(main())
        gc.collect()
    return wrong + [str(one.message) for one in caught
                    if "never awaited" in str(one.message)]


async def call_only(row, make):
    made = row.call(make())
    if asyncio.iscoroutine(made):
        await made


@pytest.mark.parametrize("name", ROWS)
def test_an_argument_that_does_not_fit_is_refused_in_the_call(name):
    row = ROWS[name]
    assert try_each(name.rpartition(".")[2], BAD, row.fits,
                    lambda make: call_only(row, make)) == []


@pytest.mark.parametrize("name", PARTS)
def test_a_part_of_an_argument_that_does_not_fit_is_refused(name):
    row = PARTS[name]
    assert try_each(name, BAD, row.fits,
                    lambda make: call_only(row, make)) == []


@pytest.mark.parametrize("name,place", results())
def test_a_result_that_does_not_fit_is_refused(name, place):
    row = ROWS[name]

    async def use(make):
        await finish(row.call(passed(name, place, Later(make))))

    assert try_each(name.rpartition(".")[2], BAD_RESULTS, row.gives,
                    use) == []
