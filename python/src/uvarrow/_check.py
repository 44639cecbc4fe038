# SPDX-License-Identifier: Apache-2.0
"""Arguments of users, checked in the call that gets them. Each check returns the
value, and raises TypeError or ValueError with the name of the argument. An object
may be of any kind, so that it is not used unless its type allows for it.
Objects that are called or read later, in C, are checked in core/checked.c."""
import functools
import inspect
import io
import math
import operator
import os
from collections.abc import AsyncIterable, Mapping
from types import GeneratorType

from . import _core

_MOST = {32: 2 ** 31 - 1, 64: 2 ** 63 - 1}


def is_a(value, kinds):
    """As isinstance(), which asks the object itself, too."""
    return issubclass(type(value), kinds)


def refuse(value, name, expected):
    """The exception for a value of another type."""
    return TypeError(f"uvarrow: {name} must be {expected}, not "
                     f"{type(value).__name__}")


# ---- values -----------------------------------------------------------------

def count(value, name, *, bits=32, least=0):
    """A number of things."""
    if not hasattr(type(value), "__index__"):
        raise refuse(value, name, "an integer")
    try:
        value = operator.index(value)
    except TypeError as error: # an array that is not one number
        raise refuse(value, name, "an integer") from error
    if not least <= value <= _MOST[bits]:
        what = "is negative" if value < 0 else "is out of range"
        raise ValueError(f"uvarrow: {name} {what}: {value}")
    return value


def seconds(value, name, most=_MOST[32]):
    """A time of at least 0, which a float can have."""
    if not (hasattr(type(value), "__float__")
            or hasattr(type(value), "__index__")):
        raise refuse(value, name, "a number of seconds")
    try:
        value = float(value)
    except OverflowError:
        value = math.inf
    except (TypeError, ValueError) as error: # an array that is not one number
        raise refuse(value, name, "a number of seconds") from error
    if not 0 <= value <= most:
        what = "is negative" if value < 0 else "is out of range"
        raise ValueError(f"uvarrow: {name} {what}: {value}")
    return value


def ms(value, name, *, bits=64):
    """Milliseconds of a time, rounded up, so that a short time is not 0."""
    most = min(_MOST[bits] // 1000, _MOST[32])
    return -int(-seconds(value, name, most) * 1000 // 1)


def flag(value, name):
    if not is_a(value, bool):
        raise refuse(value, name, "a bool")
    return value


def text(value, name):
    if not is_a(value, str):
        raise refuse(value, name, "a str")
    if "\0" in value:
        raise ValueError(f"uvarrow: {name} has a NUL character")
    try:
        value.encode()
    except UnicodeEncodeError as error: # it has half a pair of UTF-16
        raise ValueError(f"uvarrow: {name} is not Unicode text: "
                         f"{value!a}") from error
    return value


def character(value, name):
    """What stands between the fields of CSV."""
    value = text(value, name)
    if len(value) != 1 or not value.isascii() or value in '"\r\n':
        raise ValueError(f"uvarrow: {name} must be one character of ASCII, no "
                         f"quote and no line break, not {value!r}")
    return value


def field(value, name, delimiter):
    """The text of a field of CSV that is never in quotes."""
    value = text(value, name)
    if not set(value).isdisjoint(('"', "\r", "\n", delimiter)):
        raise ValueError(f"uvarrow: {name} has a delimiter, a quote or a line "
                         f"break: {value!r}")
    return value


def one_of(value, name, choices):
    if is_a(value, str) and value in choices:
        return value
    expected = " or ".join(map(repr, choices))
    if is_a(value, str):
        raise ValueError(f"uvarrow: {name} must be {expected}, not {value!r}")
    raise refuse(value, name, expected)


def pair(value, name):
    """Two integers, such as a type of devices and a number."""
    if not is_a(value, tuple) or len(value) != 2 or not all(
            hasattr(type(one), "__index__") for one in value):
        raise refuse(_core.sync(value, name), name, "a tuple of two integers")
    return value


def whole(value, name, *, bits=32):
    """An integer, which may be negative."""
    try:
        value = operator.index(value)
    except TypeError as error: # also of an array that is not one number
        raise refuse(value, name, "an integer") from error
    if not -_MOST[bits] <= value <= _MOST[bits]:
        raise ValueError(f"uvarrow: {name} is out of range: {value}")
    return value


def optional(check, value, name, *args, **kwargs):
    """The result of the check; without a value, no check."""
    return None if value is None else check(value, name, *args, **kwargs)


def options(value, name):
    """Options of a driver, as a dict of texts, or None."""
    if value is not None and not is_a(value, Mapping):
        raise refuse(value, name, "a mapping")
    return {text(key, f"a name of {name}"): _option(value[key], f"{name}[{key!r}]")
            for key in value or ()}


def _option(value, name):
    if is_a(value, bool):
        return "true" if value else "false"
    if not is_a(value, (str, int, float, os.PathLike)):
        raise refuse(value, name, "a str, a number or a path")
    return text(str(value), name)


# ---- functions --------------------------------------------------------------

def is_async(function):
    """Whether the results of a function have to be awaited."""
    return any(inspect.iscoroutinefunction(one)
               or inspect.isasyncgenfunction(one) for one in _parts(function))


def _parts(function):
    """The function inside a partial one, and the method that calls it."""
    while is_a(function, functools.partial):
        function = function.func
    return function, getattr(type(function), "__call__", None)


def function(value, name):
    """A function that is called without `await`."""
    if not callable(value):
        raise refuse(value, name, "a function")
    if is_async(value):
        raise TypeError(f"uvarrow: {name} is `async`: its result would have "
                        "to be awaited, but it is called without `await`; "
                        "pass a function that is not `async`")
    return value


def coroutine_function(value, name, concurrency):
    """Whether a function is `async`, or `concurrency` says that its results are
    awaited."""
    if not callable(value):
        raise refuse(value, name, "a function")
    if any(inspect.isasyncgenfunction(one) for one in _parts(value)):
        raise TypeError(f"uvarrow: {name} is an asynchronous generator: it must "
                        "return one result; await it there, or pass a function "
                        "that is not `async` and yields to transform()")
    return concurrency is not None or is_async(value)


# ---- objects of Arrow -------------------------------------------------------

def method(value, attribute, name):
    """A method of an object, or None. A method of a class is for its
    objects."""
    if is_a(value, type):
        return None
    try:
        return getattr(value, attribute, None)
    except Exception as error:
        raise TypeError(f"uvarrow: {name} has a {attribute} that raises "
                        f"{type(error).__name__}: {error}") from error


def schema(value, name):
    """The schema of an object, as a capsule."""
    get = method(value, "__arrow_c_schema__", name)
    if get is None:
        raise refuse(value, name, "an object with __arrow_c_schema__")
    return _core.capsule(get(), "arrow_schema",
                         f"the result of __arrow_c_schema__() of {name}")


def requested_schema(value):
    """A schema that a consumer prefers; the data is not cast to it."""
    if value is not None:
        _core.capsule(value, "arrow_schema", "requested_schema")


def no_others(kwargs):
    """The arguments that Arrow's document leaves to its later versions."""
    for name, value in kwargs.items():
        if value is not None:
            raise NotImplementedError(f"uvarrow: {name} is not known")


_STREAMS = {"__arrow_c_stream__": "arrow_array_stream",
            "__arrow_c_device_stream__": "arrow_device_array_stream"}
_ARRAYS = "__arrow_c_array__", "__arrow_c_device_array__"


def is_capsule(value):
    return type(value).__name__ == "PyCapsule"


class Array:
    """Gives the array that the method of an object has given once."""

    def __init__(self, value, name):
        name = f"the result of __arrow_c_array__() of {name}"
        result = value.__arrow_c_array__()
        if not is_a(result, tuple) or len(result) != 2:
            raise refuse(_core.sync(result, name), name,
                         "a schema and an array, as capsules")
        for capsule, kind in zip(result, ("arrow_schema", "arrow_array")):
            _core.capsule(capsule, kind, name)
        self._result = result

    def __arrow_c_array__(self, requested_schema=None):
        return self._result


def has_arrays(value, name):
    return any(method(value, one, name) is not None for one in _ARRAYS)


def stream_method(value, name, is_device=False):
    """The name of the method by which an object gives a stream, or None. If it
    has both, the method for device arrays if `is_device`."""
    for attribute in list(_STREAMS)[::-1 if is_device else 1]:
        if method(value, attribute, name) is not None:
            return attribute
    return None


def stream(value, attribute, name):
    """The result of that method: a capsule."""
    return _core.capsule(getattr(value, attribute)(), _STREAMS[attribute],
                         f"the result of {attribute}() of {name}")


def capsule(value, is_device, name):
    """A capsule with a stream that was not read."""
    return _core.capsule(value, list(_STREAMS.values())[is_device], name)


# ---- sources of streams -----------------------------------------------------

_HINTS = (
    ((str, os.PathLike), "uvarrow.file(path) reads a file"),
    (io.IOBase, "uvarrow.file(file) reads an open file"),
    ((bytes, bytearray, memoryview), "open it first, such as "
     "pyarrow.ipc.open_stream(bytes)"),
    (Mapping, "make a table of it, such as pyarrow.table(mapping)"),
    (AsyncIterable, "an asynchronous iterable is passed itself, not by a function "
     "that is not `async`"),
)


def refuse_source(value, name):
    """The exception for an object that is no source."""
    for kinds, hint in _HINTS:
        if is_a(value, kinds):
            break
    else:
        hint = ("it needs __arrow_c_stream__ or __arrow_c_array__, or to be an "
                "iterable of such objects, or a function that returns one")
    return TypeError(f"uvarrow: cannot read {name} of the type "
                     f"{type(value).__name__}: {hint}")


def is_called(value, name):
    """Whether a source is a function, which opens it."""
    return callable(value) and stream_method(value, name) is None


def is_iterable(value):
    return (getattr(type(value), "__iter__", None) is not None
            and not any(is_a(value, kinds) for kinds, _ in _HINTS))


def source(value, is_device, name="source"):
    """The source that uvarrow.stream() reads, as far as that is known
    before."""
    if is_capsule(value):
        capsule(value, is_device, name)
    elif is_called(value, name):
        function(value, name)
    elif not stream_method(value, name) and not has_arrays(value, name):
        if not is_iterable(value):
            raise refuse_source(value, name)
        for item in value[:1] if is_a(value, (list, tuple)) else ():
            _item(item, f"an item of {name}") # further ones as they are read


def _item(value, name):
    if not has_arrays(value, name) and not stream_method(value, name):
        raise refuse(value, name, "an object with __arrow_c_array__ or "
                     "__arrow_c_stream__")


def iterator(value, name):
    """The iterator of an is_iterable() object."""
    result = type(value).__iter__(value)
    if getattr(type(result), "__next__", None) is None:
        name = f"the result of __iter__() of {name}"
        raise refuse(_core.sync(result, name), name, "an iterator")
    return result


# ---- asynchronous iterables -------------------------------------------------

class Items:
    """The iterator of an asynchronous iterable, which is checked as it is
    read."""

    def __init__(self, iterable, name):
        self._name = name
        self._iterator = type(iterable).__aiter__(iterable)
        if getattr(type(self._iterator), "__anext__", None) is None:
            name = f"the result of __aiter__() of {name}"
            raise refuse(_core.sync(self._iterator, name), name,
                         "an asynchronous iterator")

    def __anext__(self):
        return self._awaitable(self._iterator.__anext__(), "__anext__")

    async def aclose(self):
        close = getattr(self._iterator, "aclose", None)
        if close is not None:
            await self._awaitable(close(), "aclose")

    def _awaitable(self, value, called):
        if not (hasattr(type(value), "__await__")
                or is_a(value, GeneratorType)):
            raise refuse(value, f"the result of {called}() of {self._name}",
                         "awaitable")
        return value


def async_iterable(value, name):
    if getattr(type(value), "__aiter__", None) is None:
        hint = ": call it" if callable(value) and is_async(value) else ""
        raise refuse(value, name, f"an asynchronous iterable{hint}")
    return value
