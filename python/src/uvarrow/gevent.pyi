# SPDX-License-Identifier: Apache-2.0
from collections.abc import AsyncIterable, Awaitable, Iterator
from typing import TypeVar

__all__ = ["close", "each", "run"]

_T = TypeVar("_T")

def run(awaitable: Awaitable[_T]) -> _T: ...
def each(iterable: AsyncIterable[_T]) -> Iterator[_T]: ...
def close() -> None: ...
