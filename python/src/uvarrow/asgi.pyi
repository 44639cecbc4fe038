# SPDX-License-Identifier: Apache-2.0
from collections.abc import Awaitable, Callable, Mapping, MutableMapping, Sequence
from typing import Any, Literal, Protocol

from . import Stream

__all__ = ["FORMATS", "Response", "response"]

_Format = Literal["arrow", "csv", "json", "json-array"]
_Message = MutableMapping[str, Any]

FORMATS: dict[str, str]

class _HasScope(Protocol):
    @property
    def scope(self) -> Any: ...

class Response:
    body: bytes
    background: Any
    status_code: int
    media_type: str
    raw_headers: list[tuple[bytes, bytes]]
    async def __call__(
        self,
        scope: _Message,
        receive: Callable[[], Awaitable[_Message]],
        send: Callable[[_Message], Awaitable[None]],
    ) -> None: ...

def response(
    rows: Stream,
    request: _HasScope | Mapping[str, Any],
    *,
    formats: Sequence[_Format] = ("arrow", "csv", "json", "json-array"),
    headers: Mapping[str, str] | None = None,
) -> Response: ...
