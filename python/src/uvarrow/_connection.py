# SPDX-License-Identifier: Apache-2.0
"""A connection of PEP 249, whose methods are awaited: a session of a pool, and
another one when a statement that was cancelled has taken it."""
import contextlib
import errno
import importlib
import sys
import warnings
import weakref

from . import _check, _dberror, _host
from ._cursor import _SOON, Cursor
from ._dberror import InterfaceError, OperationalError, of_database
from ._error import Error
from ._transaction import Transaction

# Drivers that bind parameters in order alone, and those of them with $1, $2
_IN_ORDER = "postgresql", "duckdb", "flightsql"
_NUMBERED = "postgresql", "duckdb"


class Connection:
    """A connection to a database, with the names of PEP 249. `connect()` makes
    one, and `pool.connection()`.

    `async with` commits at its end, rolls back after an exception, and closes.
    Without `autocommit` statements are a transaction, from the first one or the
    last `commit()` on. After a statement that was cancelled, by its task, its
    limit of time or `adbc_cancel()`, how far it came is not known: the
    transaction is rolled back, all statements fail with OperationalError until
    `rollback()`, and the next one has another connection of the database.

    It serves one task at a time, and one loop."""

    Warning = _dberror.Warning
    Error = Error
    InterfaceError = _dberror.InterfaceError
    DatabaseError = _dberror.DatabaseError
    DataError = _dberror.DataError
    OperationalError = _dberror.OperationalError
    IntegrityError = _dberror.IntegrityError
    InternalError = _dberror.InternalError
    ProgrammingError = _dberror.ProgrammingError
    NotSupportedError = _dberror.NotSupportedError

    def __init__(self, pool, is_own, autocommit, options, timeout):
        self._pool = pool
        self._is_own = is_own # closed with the connection
        self._how = {"autocommit": autocommit, "options": options}
        self._autocommit = autocommit
        self._timeout = timeout
        self._host = None
        self._session = None
        self._blocks = 0 # transaction() that are open
        self._closed = False
        self._is_lost = False # a statement was cancelled, maybe
        self._user = None # the cursor, or the connection, that is in use
        self._reader = None # the result that the database has more of
        self._reads = lambda: None # its cursor
        self._binds_names = pool._driver not in _IN_ORDER
        self._is_numbered = pool._driver in _NUMBERED
        self._takes_one_row = pool._driver == "duckdb"

    # ---- statements ---------------------------------------------------------

    def cursor(self, *, options=None, timeout=None):
        """Returns a Cursor. `options` are ADBC's options of its statements;
        `timeout` is their limit, as for `execute()`, by default the
        connection's."""
        self._check_open()
        return Cursor(self, _check.options(options, "options"),
                      self._timeout if timeout is None else
                      _check.seconds(timeout, "timeout"))

    async def execute(self, operation, parameters=None, *, timeout=None):
        """Executes a statement on a new cursor, which it returns."""
        return await self.cursor().execute(operation, parameters,
                                           timeout=timeout)

    def adbc_cancel(self):
        """Cancels the statement that is executed or read, as
        `Cursor.adbc_cancel()`."""
        if isinstance(self._user, Cursor):
            self._user.adbc_cancel()
        if self._reader is not None:
            self._reader.cancel("adbc_cancel() was called")

    # ---- transactions -------------------------------------------------------

    @property
    def autocommit(self):
        """Whether each statement is a transaction by itself."""
        return self._autocommit

    def transaction(self):
        """Returns a Transaction, `async with connection.transaction()`: committed
        at its end, and rolled back when it is left by an exception. In a
        transaction that has begun, a savepoint."""
        self._check_open()
        return Transaction(self)

    async def commit(self):
        """Commits. Has no effect with `autocommit`."""
        self._refuse_blocks()
        await self._end("COMMIT")

    async def rollback(self):
        """Rolls back. After a statement that was cancelled, and after a lost
        connection, the next one has another connection of the database."""
        self._refuse_blocks()
        await self._end("ROLLBACK")

    def _refuse_blocks(self):
        self._check_open()
        if self._blocks:
            raise InterfaceError(errno.EBUSY, "uvarrow: the connection is "
                                 "inside `async with connection.transaction()`, "
                                 "which ends it")

    # for Transaction

    def _is_inside(self):
        return self._blocks > 0 or (self._session is not None
                                    and self._session._is_inside())

    async def _open_block(self):
        with self._use(self), self._errors():
            await self._keep()
            await self._session_now()._open_block()

    async def _tell(self, sql):
        with self._use(self), self._errors():
            await self._keep()
            await self._session_now()._tell(sql)

    async def _end(self, sql):
        self._check_open()
        with self._use(self), self._errors():
            if sql == "ROLLBACK":
                await self._roll_back()
                return
            await self._keep()
            if self._session is not None and self._session._begun:
                await self._session._end("COMMIT")

    def _do_later(self, texts):
        self._leave_reader()
        if self._session is not None:
            self._session._do_later(texts)

    async def _roll_back(self):
        await self._keep(_SOON)
        session = self._session
        if session is None:
            return
        if session._begun:
            try:
                await session._end("ROLLBACK")
                return
            except TimeoutError:
                raise
            except Error:
                self._is_lost = True
        elif self._is_lost: # waits for the end of the cancelled statement
            with contextlib.suppress(Error):
                await session._tell("ROLLBACK")
        if self._is_lost:
            self._let_go()

    # ---- the session --------------------------------------------------------

    def _session_now(self):
        if self._session is None:
            session = self._pool.session(**self._how)
            session._enter()
            self._session = session
        return self._session

    def _let_go(self):
        """Gives the session back: the next statement has another one."""
        session, self._session = self._session, None
        self._is_lost = False
        if session is not None:
            session._over = True
            session._pool.close()

    @contextlib.contextmanager
    def _use(self, user):
        """Around a call: one task at a time."""
        if self._user is not None:
            raise InterfaceError(errno.EBUSY, "uvarrow: another task uses the "
                                 "connection: give each task its own")
        if self._host is not _host.current():
            raise InterfaceError(errno.EINVAL, "uvarrow: the connection belongs "
                                 "to another loop")
        self._user = user
        try:
            yield
        finally:
            self._user = None

    @contextlib.contextmanager
    def _errors(self):
        """Around calls of the session: errors are those of PEP 249."""
        try:
            yield
        except Error as error:
            self._is_lost |= isinstance(error, (OperationalError, TimeoutError)) \
                or error.errno in (errno.ECONNABORTED, errno.ECANCELED)
            if error.errno == errno.ECONNABORTED:
                raise OperationalError(errno.ECONNABORTED, (
                    "uvarrow: a statement was cancelled, and the connection is "
                    "lost with it: rollback() takes another one")) from None
            raise of_database(error) from error.__cause__
        except BaseException:
            self._is_lost = True
            raise

    def _note(self, cursor, rows):
        """The result of the last statement, of which the database has more."""
        self._reader, self._reads = rows, weakref.ref(cursor)

    async def _keep(self, seconds=None):
        """Reads the rest of that, so that another statement can be executed."""
        rows, self._reader = self._reader, None
        if rows is None or not rows.is_open:
            return
        if self._reads() is None: # no one will read it
            await rows.drop(seconds)
        else:
            await rows.keep(seconds)
        self._is_lost |= rows.was_cancelled

    def _leave_reader(self):
        rows, self._reader = self._reader, None
        if rows is not None:
            rows.cancel()
            self._is_lost |= rows.was_cancelled

    async def _call(self, function):
        """The result of a function that takes time, on a worker."""
        return await self._host.call(function)

    # ---- the end ------------------------------------------------------------

    @property
    def closed(self):
        """Whether it is closed."""
        return self._closed

    async def close(self):
        """Rolls back, and closes the connection, for which it waits for at most
        a second. A statement that another task waits for is cancelled."""
        if self._closed:
            return
        self._closed = True
        try:
            if self._user is None:
                with self._use(self), self._errors():
                    await self._roll_back()
            else:
                self.adbc_cancel()
        except Error: # there is no transaction left
            pass
        finally:
            self._leave_reader()
            self._let_go()
            if self._is_own:
                await self._pool.aclose()

    def _shut(self):
        self._closed = True
        self._leave_reader()
        self._let_go()
        if self._is_own:
            self._pool.close()

    async def _open(self):
        """Notes the loop, and loads pyarrow, which would hold the loop."""
        if self._closed:
            raise InterfaceError(errno.EBADF, "uvarrow: the connection is closed")
        self._host = _host.current()
        if "pyarrow" not in sys.modules:
            with contextlib.suppress(ImportError): # needed for rows alone
                await self._call(lambda: importlib.import_module("pyarrow"))
        return self

    async def __aenter__(self):
        return self if self._host is not None else await self._open()

    async def __aexit__(self, *exc_info):
        kind = exc_info[0]
        if self._closed:
            return
        if kind is not None and not issubclass(kind, Exception):
            self._shut() # a cancelled task waits for nothing
            return
        try:
            if kind is None:
                await self.commit()
        finally:
            await self.close()

    def __del__(self):
        if not self._closed and self._session is not None:
            self._shut()
            warnings.warn(f"unclosed {self!r}: use `async with`",
                          ResourceWarning, stacklevel=2, source=self)

    def __repr__(self):
        return f"<uvarrow.adbc.Connection at {id(self):#x}>"

    def _check_open(self):
        if self._closed:
            raise InterfaceError(errno.EBADF, "uvarrow: the connection is closed")
        if self._host is None:
            raise InterfaceError(errno.EINVAL, "uvarrow: a connection of a pool "
                                 "is used with `async with`")


class Connecting:
    """The result of `connect()`: `await` it, or use it with `async with`."""

    def __init__(self, pool, autocommit, options, timeout):
        self._connection = Connection(pool, True, autocommit, options, timeout)

    def __await__(self):
        return self._connect().__await__()

    async def _connect(self):
        connection = self._connection
        await connection._open()
        try:
            await connection._pool.execute("SELECT 1", update=False)
        except Error as error:
            if _is_no_connection(error):
                connection._shut()
                raise of_database(error) from None
        except BaseException:
            connection._shut()
            raise
        return connection

    async def __aenter__(self):
        return await self._connect()

    async def __aexit__(self, *exc_info):
        await self._connection.__aexit__(*exc_info)


def _is_no_connection(error):
    """Whether the database could not be reached; other ones may not know the
    statement."""
    return (error.metadata.get("adbc.step") == "connect"
            or error.errno in (errno.ETIMEDOUT, errno.EACCES, errno.ENOENT)
            or error.metadata.get("adbc.status") in (None, "IO"))


for _public in (Connection, Connecting, Cursor):
    _public.__module__ = "uvarrow.adbc"
