# SPDX-License-Identifier: Apache-2.0
"""The exception of a stream that has failed."""
import errno
import re

from . import _core


# Functions of C in the texts of errors, as they are called here.
_NAMES = {"uva_stream_from_file: ": "",
          "batches_per_s or bytes_per_s": "batches or bytes",
          "uva_adbc_pool_session()": "pool.session()",
          "uva_stream_from_commit()": "session.commit()",
          "uva_stream_from_rollback()": "session.rollback()"}


# Other ones, with the struct of their options before a colon: the method of that
# name. A text of a driver has no such form.
_CALLED = re.compile(r"\buva_(?:stream_|adbc_)?(\w+)\(\)")
_BEFORE = re.compile(r"(^|: )uva_(?:stream_|adbc_)?(\w+): ")


def _named(text):
    """A text of the library with names of Python."""
    for name, own in _NAMES.items():
        text = text.replace(name, own)
    return _BEFORE.sub(r"\1\2(): ", _CALLED.sub(r"\1()", text))


class Error(OSError):
    """A stream has failed: `errno`, `strerror` and `metadata`.

    A driver's details, such as its SQLSTATE, are in `metadata`, a dict of
    strings. An exception that a function or source in Python has raised is
    raised as itself, instead of this one.
    """

    metadata: dict

    @classmethod
    def _of(cls, code, text, pairs):
        metadata = metadata_dict(pairs)
        text = _whole(_named(text), metadata)
        if "adbc.status" in metadata: # a driver's report
            from . import _dberror
            cls = _dberror.class_of(code, text, metadata)
        return cls._made(code, text, metadata)

    @classmethod
    def _made(cls, code, text, metadata):
        kind = cls._timed_out if code == errno.ETIMEDOUT else cls
        error = kind(code, text)
        error.metadata = metadata
        return error

    def __reduce__(self):
        kind = type(self).__mro__[isinstance(self, TimeoutError)]
        return kind._made, (self.errno, self.strerror, self.metadata)

    def __init__(self, *args):
        super().__init__(*args)
        self.metadata = {}


class _TimedOut(Error, TimeoutError):
    """As Error, for ETIMEDOUT: `except TimeoutError` catches it, too."""


def _whole(text, metadata):
    """The text of an error, with all of a driver's message, of which the library
    has cut the end."""
    message = metadata.get("adbc.message", "")
    before, found, _ = text.partition(message[:64] or "\0")
    return before + message if found else text


Error._timed_out = _TimedOut
_TimedOut.__name__ = _TimedOut.__qualname__ = "Error"
Error.__module__ = _TimedOut.__module__ = "uvarrow"


def metadata_dict(pairs):
    """Pairs of bytes as a dict of strings; bytes that are not UTF-8 are
    replaced."""
    return {key.decode(errors="replace"): value.decode(errors="replace")
            for key, value in pairs}


_core._set_error(Error)
