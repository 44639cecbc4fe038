# SPDX-License-Identifier: Apache-2.0
"""The exceptions of PEP 249, which errors of databases are."""
import errno
import re

from ._error import Error


class Warning(Exception):
    """PEP 249's class of warnings; none is raised."""


class InterfaceError(Error):
    """The package is used as it cannot be, such as a closed cursor."""


class DatabaseError(Error):
    """An error of the database; the classes below tell more."""


class DataError(DatabaseError):
    """A value does not fit: out of range, divided by zero."""


class OperationalError(DatabaseError):
    """The database does not work as wanted: a lost connection, a lock, a limit
    of time, a cancel."""


class IntegrityError(DatabaseError):
    """A constraint forbids it: a key that is not unique, a missing value."""


class InternalError(DatabaseError):
    """The database or its driver has a fault."""


class ProgrammingError(DatabaseError):
    """The query is wrong: its syntax, a name, its number of parameters."""


class NotSupportedError(DatabaseError):
    """The database or its driver cannot do that."""


class _TimedOut(OperationalError, TimeoutError):
    """As OperationalError, for ETIMEDOUT: `except TimeoutError` catches it."""


OperationalError._timed_out = _TimedOut
_TimedOut.__name__ = _TimedOut.__qualname__ = "OperationalError"
for _public in (Warning, InterfaceError, DatabaseError, DataError,
                OperationalError, IntegrityError, InternalError,
                ProgrammingError, NotSupportedError, _TimedOut):
    _public.__module__ = "uvarrow.adbc"

# As adbc_driver_manager.dbapi has it.
_OF_STATUS = {
    "INVALID_DATA": DataError,
    "INTEGRITY": IntegrityError,
    "INTERNAL": InternalError,
    "NOT_IMPLEMENTED": NotSupportedError,
    **dict.fromkeys(("ALREADY_EXISTS", "INVALID_ARGUMENT", "INVALID_STATE",
                     "NOT_FOUND", "UNAUTHENTICATED", "UNAUTHORIZED"),
                    ProgrammingError),
    **dict.fromkeys(("IO", "CANCELLED", "TIMEOUT", "UNKNOWN"),
                    OperationalError),
}
# Where a driver's status says less than the SQLSTATE ...
_OF_SQLSTATE = {"22": DataError, "23": IntegrityError, "0A": NotSupportedError,
                "28": OperationalError, "40": OperationalError,
                "42": ProgrammingError, "53": OperationalError,
                "55": OperationalError, "57": OperationalError}
# ... or the type of DuckDB, which its text has in each case.
_OF_DUCKDB = {"Constraint": IntegrityError, "Conversion": DataError,
              "Out of Range": DataError, "Parser": ProgrammingError,
              "Binder": ProgrammingError, "Catalog": ProgrammingError,
              "Syntax": ProgrammingError,
              "Not implemented": NotSupportedError,
              "IO": OperationalError, "INTERRUPT": OperationalError,
              "TransactionContext": OperationalError,
              "Internal": InternalError}
_DUCKDB = re.compile(r": ([A-Za-z ]+) Error: ")
_OF_ERRNO = {errno.EINVAL: ProgrammingError, errno.ENOTSUP: NotSupportedError,
             errno.ENOENT: OperationalError, errno.EPROTO: InternalError}


def class_of(code, text, metadata):
    """The class of an error of a database."""
    status = metadata.get("adbc.status")
    if code == errno.ETIMEDOUT:
        return OperationalError
    if status is None:
        return _OF_ERRNO.get(code, OperationalError)
    by_state = _OF_SQLSTATE.get(metadata.get("adbc.sqlstate", "")[:2])
    if by_state is not None:
        return by_state
    duckdb = _DUCKDB.search(text)
    if duckdb is not None and duckdb[1] in _OF_DUCKDB:
        return _OF_DUCKDB[duckdb[1]]
    return _OF_STATUS.get(status, DatabaseError)


def of_database(error):
    """An Error as one of these classes."""
    if isinstance(error, (DatabaseError, InterfaceError)):
        return error
    kind = class_of(error.errno, error.strerror, error.metadata)
    return kind._made(error.errno, error.strerror, error.metadata)
