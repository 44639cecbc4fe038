from collections.abc import Callable, Iterable
from typing import Any

from . import Stream

def stream(
    source: Any, *, window: int = 4, max_bytes: int = 33554432
) -> Stream: ...
def datasource(functions: Iterable[Callable[[], Stream]]) -> Any: ...
