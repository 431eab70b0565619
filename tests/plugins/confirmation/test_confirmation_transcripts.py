"""What callers and people are asked, and what becomes of their answers: `transcripts`, see `tests/transcript.py`."""

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import pytest
from fastapi import FastAPI, HTTPException, Security
from fastapi.security import APIKeyHeader
from pydantic import BaseModel, Field

from awp_publish import Confirmation, Refused, Site
from awp_publish.http.exchange import AsgiApp
from awp_publish.plugins.confirmation.options import read_confirm
from awp_publish.plugins.confirmation.quoting import cut, quoted, visible
from awp_publish.problems import ConfirmationRequired
from tests.function_transcripts import compare
from tests.timed import compare_timed

Key = Annotated[str | None, Security(APIKeyHeader(name="x-key", auto_error=False))]
TRANSCRIPTS = Path(__file__).parent / "transcripts"
TEXTS: Mapping[str, Callable[..., Any]] = {
    "confirm": read_confirm,
    "quoted": quoted,
    "visible": visible,
    "cut": partial(cut, quoted),
}


class Gift(BaseModel):
    to: str
    wraps: int = 1


def declare(site: Site) -> AsgiApp:
    stock = [3]

    @site.agent("order", effect="irreversible")
    async def order(title: str, copies: int = 1) -> int:
        """Order copies of a book. They are sent at once."""
        if title == "refuse":
            raise Refused("No.", code="NO")
        if title == "raise":
            raise RuntimeError("secret")
        stock[0] -= copies
        return stock[0]

    @site.agent("cancel", confirm="Cancel {title}, {count:03d} of {{{note}}} at {price:.2f}?")
    async def cancel(
        title: str,
        count: int | str = 1,
        price: float = 0.5,
        note: str | None = None,
        pin: Annotated[str, Field(json_schema_extra={"format": "password"})] = "0",
    ) -> str:
        """Cancel."""
        return "cancelled"

    @site.agent("limited", confirm=True, rate_limit="1/minute", idempotency="1h")
    async def limited(how: str = "") -> str:
        """Send."""
        if how == "ask":
            raise ConfirmationRequired("Are you sure?")
        return "sent"

    @site.agent("send", confirm=True)
    async def send(gift: Gift, tags: list[Any] = [], more: dict[str, Any] = {}) -> str:  # noqa: B006
        """Send a gift.

        With wraps.
        """
        return "sent"

    @site.agent("left", confirm=lambda given, call: f"Only {stock[0]} left, {given} of {call.action.id}\u200b")
    async def left(copies: int = 1) -> int:
        """Take what is left."""
        stock[0] -= copies
        return stock[0]

    async def asked(given: Any) -> Any:
        how = given.get("how")
        if how == "refuse":
            raise Refused("Not now.", code="NOT_NOW")
        if how == "http":
            raise HTTPException(409, "Sold out")
        if how == "stop":
            raise StopIteration
        if how == "long":
            return "é" * 2001
        return {"number": 7, "blank": " "}.get(how, "Sure?")

    @site.agent("odd", confirm=asked)
    async def odd(how: str = "") -> str:
        """Be odd."""
        return how

    app = FastAPI()

    @app.post("/pay")
    @site.action("pay", confirm="Pay {amount}?")
    async def pay(amount: int, key: Key) -> int:
        """Pay."""
        return amount

    return app


@pytest.mark.needs("limits", "idempotency")
def test_confirmations_go_as_in_the_transcripts(request):
    compare_timed(TRANSCRIPTS / "questions.txt", declare, request, plugins=[Confirmation("1m")])


def test_texts_are_shown_as_reviewed(request):
    compare(TRANSCRIPTS / "texts.txt", TEXTS, request)
