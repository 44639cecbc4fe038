# SPDX-License-Identifier: Apache-2.0
"""A transaction as a block: `async with session.transaction()`."""
import contextlib


class Transaction:
    """A part of a session, or of a connection, that is committed at its end, and
    rolled back when it is left by an exception, a cancel among them.

    Inside a transaction, such as another block, it is a savepoint: then its end
    commits nothing by itself. DuckDB has no savepoints; and PostgreSQL's driver
    cannot go back to one after a query that has failed."""

    def __init__(self, of):
        self._of = of
        self._point = None
        self._is_used = False

    async def __aenter__(self):
        if self._is_used:
            raise RuntimeError("uvarrow: a transaction is entered once")
        self._is_used = True
        of = self._of
        if of._is_inside():
            point = f"uvarrow_{of._blocks}"
            await of._tell(f"SAVEPOINT {point}")
            self._point = point
        else:
            await of._open_block()
        of._blocks += 1
        return self

    async def __aexit__(self, *exc_info):
        self._of._blocks -= 1
        kind = exc_info[0]
        if kind is None:
            await self._do(self._commits())
        elif issubclass(kind, Exception):
            with contextlib.suppress(Exception): # there is one already
                await self._do(self._rolls_back())
        else: # a cancelled task waits for nothing
            self._of._do_later(self._rolls_back())

    def _commits(self):
        return (["COMMIT"] if self._point is None
                else [f"RELEASE SAVEPOINT {self._point}"])

    def _rolls_back(self):
        return (["ROLLBACK"] if self._point is None
                else [f"ROLLBACK TO SAVEPOINT {self._point}",
                      f"RELEASE SAVEPOINT {self._point}"])

    async def _do(self, texts):
        for text in texts:
            if self._point is None:
                await self._of._end(text)
            else:
                await self._of._tell(text)


Transaction.__module__ = "uvarrow.adbc"
