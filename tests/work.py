"""Work is counted, not timed: the functions called, and the bytes put together of a request's headers."""

import gc
import sys
from collections.abc import Awaitable, Callable, Iterable
from types import FrameType
from typing import Final, Self

GROWTH: Final = 4
"""How much larger the larger of two requests is."""

MAX_GROWTH: Final = 6
"""How much more work it may be: linear work is four times as much, quadratic work sixteen times."""

FEW: Final = 3_000
"""Calls that are as many for a request of any size."""


class Copied(bytes):
    """Bytes that note how many bytes are copied when they are put together with others."""

    copied = 0

    def __add__(self, other: bytes) -> Self:  # type: ignore[override]
        return self._note(bytes(self) + bytes(other))

    def __radd__(self, other: bytes) -> Self:
        return self._note(bytes(other) + bytes(self))

    def _note(self, both: bytes) -> Self:
        Copied.copied += len(both)
        return type(self)(both)


def counted(headers: Iterable[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    """The same headers, with values whose copies `work_of` counts."""
    return [(name, Copied(value)) for name, value in headers]


async def work_of(ask: Callable[[], Awaitable[object]]) -> int:
    """The functions that are called in this thread to answer a request, and the bytes of headers that are copied."""
    work = 0

    def count(frame: FrameType, event: str, argument: object) -> None:
        nonlocal work
        work += event in ("call", "c_call")

    before = Copied.copied
    gc.disable()
    sys.setprofile(count)
    try:
        await ask()
    finally:
        sys.setprofile(None)
        gc.enable()
    return work + Copied.copied - before


def grows_too_much(small: int, large: int) -> bool:
    """Whether GROWTH times as much is more than linear work."""
    return large > MAX_GROWTH * max(small, FEW)
