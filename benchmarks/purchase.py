"""What every journey buys, and what is counted on the way."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

TITLE: Final = "Emma"
COPIES: Final = 2
PARCEL: Final = {"name": "Ada", "address": "1 Quiet Lane, Oxford"}


@dataclass
class Meter:
    """Counts the requests and the bytes of one journey."""

    requests: int = 0
    sent: int = 0
    received: int = 0

    @property
    def tokens(self) -> int:
        """Tokens, of four bytes each."""
        return -(-(self.sent + self.received) // 4)

    @property
    def hooks(self) -> dict[str, list[Callable[..., Awaitable[None]]]]:
        """Event hooks that count, for an asynchronous client of httpx or httpx2."""

        async def count_request(request: Any) -> None:
            self.requests += 1
            self.sent += len(await request.aread())

        async def count_answer(response: Any) -> None:
            self.received += len(await response.aread())

        return {"request": [count_request], "response": [count_answer]}


@dataclass(frozen=True)
class Purchase:
    """What came of a journey: the question that a person was asked before it was done, and the order."""

    question: str
    order: Mapping[str, Any]
