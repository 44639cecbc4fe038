from collections.abc import Iterable
from typing import Any

from . import Stream

def stream(
    client: Any,
    tasks: Iterable[Any],
    *,
    ahead: int = 4,
    window: int = 4,
    max_bytes: int = 33554432,
) -> Stream: ...
