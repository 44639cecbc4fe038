from typing import Any

from . import Stream

def stream(
    frame: Any, *, window: int = 4, max_bytes: int = 33554432
) -> Stream: ...
