# SPDX-License-Identifier: Apache-2.0
"""The package passes every member of the structs of options of the C library, or
states here why not. These structs, and structs that the library fills in, have
a member `reserved`."""
import glob
import inspect
import os
import re

import pytest

import uvarrow
import uvarrow.adbc

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.abspath(__file__))))


class No(str):
    """Why a member has no keyword."""


OURS = No("the package's own function or object")
LOOP = No("a function of Python takes the GIL, so it does not run on the loop")
STREAMS = No("that of the stream")
RUNTIME = No("the package has one runtime for each event loop")
TEXT = No("ipc() encodes Arrow IPC alone")

# struct: members, with the function and its keyword
MEMBERS = {
    "adbc_pool_options": {
        "driver": (uvarrow.adbc.Pool, "driver"),
        "entrypoint": (uvarrow.adbc.Pool, "entrypoint"),
        "options": (uvarrow.adbc.Pool, "options"),
        "connection_options": (uvarrow.adbc.Pool, "connection_options"),
        "connections": (uvarrow.adbc.Pool, "connections"),
        "idle_ms": (uvarrow.adbc.Pool, "idle"),
        "stuck_connections": (uvarrow.adbc.Pool, "stuck"),
        "keeps_session": (uvarrow.adbc.Pool, "keeps_session"),
        "max_age_ms": (uvarrow.adbc.Pool, "max_age"),
        "connect_ms": (uvarrow.adbc.Pool, "connect"),
        "lock_ms": (uvarrow.adbc.Pool, "lock"),
        "wait_ms": (uvarrow.adbc.Pool, "wait"),
        "batch_bytes": (uvarrow.adbc.Pool, "batch_bytes")},
    "adbc_query": {
        "sql": (uvarrow.adbc.Pool.query, "sql"),
        "parameters": (uvarrow.adbc.Pool.query, "parameters"),
        "options": (uvarrow.adbc.Pool.query, "options"),
        "ingest_table": (uvarrow.adbc.Pool.ingest, "table"),
        "busy_ms": (uvarrow.adbc.Pool.query, "busy"),
        "batch_bytes": (uvarrow.adbc.Pool.query, "batch_bytes"),
        "window": (uvarrow.adbc.Pool.query, "window"),
        "result": (uvarrow.adbc.Pool.query, "update"),
        "values": No("the values of Python become rows of parameters"),
        "by_name": (uvarrow.adbc.Pool.query, "by_name")},
    "adbc_partitions": {
        "keep_going": (uvarrow.adbc.Pool.partition, "keep_going"),
        "retries": (uvarrow.adbc.Pool.partition, "retry"),
        "timeout": (uvarrow.adbc.Pool.partition, "timeout"),
        "open_at_once": (uvarrow.adbc.Pool.partition, "parallel"),
        "window": (uvarrow.adbc.Pool.partition, "window")},
    "adbc_session": {
        "autocommit": (uvarrow.adbc.Pool.session, "autocommit"),
        "options": (uvarrow.adbc.Pool.session, "options")},
    "window": {
        "batches": (uvarrow.stream, "window"),
        "bytes": (uvarrow.stream, "max_bytes")},
    "arrow_source": {
        "open": (uvarrow.stream, "source"),
        "open_device": (uvarrow.stream, "source"),
        "interrupt": (uvarrow.stream, "interrupt"),
        "free_ctx": OURS, "ctx": OURS,
        "device_type": (uvarrow.stream, "device_type"),
        "window": (uvarrow.stream, "window"),
        "on_loop": LOOP,
        "metadata": No("an object with __arrow_c_stream__ has none"),
        "permits": No("the pool's; a semaphore does that in Python"),
        "needed": OURS, "frees_late": OURS,
        "name": No("a source of Python has that of its kind"),
        "expect": No("an object with __arrow_c_stream__ does not say it"),
        "busy_ms": No("the queries of a pool have it")},
    "ipc_source": {
        "fd": (uvarrow.file, "path"),
        "window": (uvarrow.file, "window"),
        "need_end_mark": No("ipc_reader() needs it, a file does not"),
        "max_bytes": No("as the library has it"),
        "mmap": (uvarrow.file, "mmap"),
        "permits": No("a semaphore does that in Python"),
        "on_released": OURS, "ctx": OURS},
    "push_source": {
        "on_writable": OURS, "on_closed": OURS, "free_ctx": OURS, "ctx": OURS,
        "device_type": No("batches of to_reader() are the CPU's"),
        "window": (uvarrow.to_reader, "window")},
    "map": {
        "batch": (uvarrow.Stream.map, "function"),
        "schema": (uvarrow.Stream.map, "schema"),
        "free_ctx": OURS, "ctx": OURS, "on_loop": LOOP},
    "transform": {
        "batch": (uvarrow.Stream.transform, "function"),
        "finish": (uvarrow.Stream.transform, "finish"),
        "schema": (uvarrow.Stream.transform, "schema"),
        "free_ctx": OURS, "ctx": OURS, "on_loop": LOOP,
        "window": STREAMS},
    "async_map": {
        "begin": (uvarrow.Stream.map, "function"),
        "cancel": OURS, "free_ctx": OURS, "ctx": OURS,
        "schema": (uvarrow.Stream.map, "schema"),
        "at_once": (uvarrow.Stream.map, "concurrency"),
        "unordered": (uvarrow.Stream.map, "ordered"),
        "window": STREAMS},
    "retry": {
        "again": (uvarrow.Stream.retry, "function"),
        "free_ctx": OURS, "ctx": OURS,
        "times": (uvarrow.Stream.retry, "times"),
        "delay_ms": (uvarrow.Stream.retry, "delay"),
        "delay_max_ms": (uvarrow.Stream.retry, "delay_max"),
        "resume": (uvarrow.Stream.retry, "resume")},
    "throttle": {
        "batches_per_s": (uvarrow.Stream.throttle, "batches"),
        "bytes_per_s": (uvarrow.Stream.throttle, "bytes")},
    "tee": {
        "slow": (uvarrow.Stream.tee, "slow"),
        "window": (uvarrow.Stream.tee, "window"),
        "first": (uvarrow.Stream.tee, "first_window")},
    "adbc_objects": {
        "depth": (uvarrow.adbc.Pool.objects, "depth"),
        "catalog": (uvarrow.adbc.Pool.objects, "catalog"),
        "db_schema": (uvarrow.adbc.Pool.objects, "schema"),
        "table": (uvarrow.adbc.Pool.objects, "table"),
        "column": (uvarrow.adbc.Pool.objects, "column"),
        "table_types": (uvarrow.adbc.Pool.objects, "types"),
        "busy_ms": (uvarrow.adbc.Pool.objects, "busy"),
        "window": STREAMS},
    "ready": {
        "wait": No("a batch comes when its event is complete"),
        "device_stream": No("as above"),
        "timeout_ms": No("timeout() limits that, too"),
        "window": STREAMS},
    "trace": {
        "event": (uvarrow.Stream.trace, "function"),
        "free_ctx": OURS, "ctx": OURS},
    "rebatch": {
        "rows": (uvarrow.Stream.rebatch, "rows"),
        "bytes": (uvarrow.Stream.rebatch, "bytes"),
        "wait_ms": (uvarrow.Stream.rebatch, "wait"),
        "window": (uvarrow.Stream.rebatch, "window")},
    "timeout": {
        "open_ms": (uvarrow.Stream.timeout, "open"),
        "first_ms": (uvarrow.Stream.timeout, "first"),
        "between_ms": (uvarrow.Stream.timeout, "between"),
        "total_ms": (uvarrow.Stream.timeout, "total")},
    "parallel": {
        "workers": (uvarrow.Stream.parallel, "workers"),
        "unordered": (uvarrow.Stream.parallel, "unordered"),
        "window": (uvarrow.Stream.parallel, "window")},
    "merge": {
        "cast": (uvarrow.merge, "cast"),
        "keep_going": (uvarrow.merge, "keep_going"),
        "open_at_once": (uvarrow.merge, "open_at_once"),
        "window": (uvarrow.merge, "window")},
    "encode": {
        "format": TEXT, "csv": TEXT, "as_stored": TEXT,
        "compression": (uvarrow.ipc, "compression")},
    "runtime_options": dict.fromkeys(
        ("name", "workers", "allocator", "turn_us", "uv_version",
         "close_limit_ms", "on_quiet", "quiet_ctx", "trace"), RUNTIME) | {
        "log": No("the level of the logger"),
        "check": (uvarrow.configure, "check"),
        "memory_bytes": (uvarrow.configure, "memory_bytes"),
        "measure": (uvarrow.configure, "measure")},
    "workers_options": dict.fromkeys(
        ("name", "compute_threads", "allocator", "thread_begin", "thread_end",
         "ctx"), RUNTIME) | {
        "blocking_threads": (uvarrow.configure, "threads")},
}
# structs that the library fills in
GIVEN = {"adbc_pool_stats", "batch", "stream_info", "stage_stats",
         "runtime_stats", "outcome", "trace_event", "part"}
# parameters beside the members
OTHERS = {"self", "first", "others", "source", "iterable", "schema", "data",
          "uri", "mode",  # these two are options of the driver
          "as_bytes",  # a copy in Python
          "close", "own_thread",  # of sources of Python
          "file"}  # of Arrow IPC: one of the formats in C


def without_comments(text):
    """And without the mark of a member that is 0 by default in C++"""
    return re.sub(r"/\*.*?\*/|//[^\n]*|\bUVA_0\b", " ", text, flags=re.DOTALL)


def structs():
    """The members of each such struct, from the headers."""
    found = {}
    for path in glob.glob(os.path.join(ROOT, "include/uvarrow/*.h")):
        with open(path) as file:
            text = without_comments(file.read())
        for name, body in re.findall(r"struct uva_(\w+) \{(.*?)\n\};", text,
                                     re.DOTALL):
            names = [re.search(r"\(\*(\w+)\)\(|(\w+)(?:\[\w+\])?$",
                               " ".join(member.split())).group(1, 2)
                     for member in body.split(";") if member.strip()]
            names = [first or second for first, second in names]
            if "reserved" in names:
                found[name] = [name for name in names if name != "reserved"]
    return found


def module():
    """The text of the C part of the package."""
    text = ""
    for path in sorted(glob.glob(os.path.join(ROOT, "python/src/core/*.c"))):
        with open(path) as file:
            text += without_comments(file.read())
    return text


def test_each_struct_that_the_package_fills_in_is_here():
    used = set(re.findall(r"struct uva_(\w+)", module()))
    assert used & structs().keys() == MEMBERS.keys() | GIVEN


@pytest.mark.parametrize("struct", MEMBERS)
def test_each_member_has_a_keyword_or_a_reason(struct):
    members = MEMBERS[struct]
    assert sorted(structs()[struct]) == sorted(members)
    text = module()
    for member, keyword in members.items():
        if not isinstance(keyword, No):
            function, name = keyword
            assert name in inspect.signature(function).parameters, member
            assert re.search(rf"\.{member}\b", text), member


@pytest.mark.parametrize("function", [
    uvarrow.adbc.Pool, uvarrow.adbc.Pool.query, uvarrow.adbc.Pool.ingest,
    uvarrow.adbc.Pool.session, uvarrow.stream, uvarrow.to_reader, uvarrow.merge, uvarrow.ipc,
    uvarrow.Stream.rebatch, uvarrow.Stream.timeout, uvarrow.Stream.parallel,
    uvarrow.Stream.retry, uvarrow.Stream.throttle, uvarrow.Stream.map,
    uvarrow.Stream.transform, uvarrow.configure, uvarrow.concat,
    uvarrow.adbc.Pool.objects])
def test_each_keyword_is_that_of_a_member(function):
    known = {keyword[1] for members in MEMBERS.values()
             for keyword in members.values() if not isinstance(keyword, No)}
    assert set(inspect.signature(function).parameters) <= known | OTHERS
