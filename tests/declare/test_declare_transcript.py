"""What options say, and the words in which mistakes are refused: `options`."""

from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any, Final

import pytest
from fastapi import FastAPI
from pydantic import BaseModel
from starlette.applications import Starlette

from awp_publish import ApiKey, Site
from tests.declare.facts import described
from tests.function_transcripts import compare
from tests.installed import taken_out


class Order(BaseModel):
    book: str
    count: int = 1


def site_with(field: str, value: Any) -> None:
    Site(**{"name": "Shop", "description": "Sells things.", "url": "https://shop.example", field: value})


def action_with(field: str, value: Any) -> None:
    ordering().action("order", **{field: value})


def ordering() -> Site:
    keys = ApiKey({"key-of-a-partner": "partner"})
    return Site("Shop", "Sells things.", url="https://shop.example", authenticate=keys)


def declared(options: dict[str, Any]) -> list[str]:
    """Return what an action that writes says with these options, without what it says by default."""
    site, app = ordering(), FastAPI()
    if "awas" in options:  # selectors are published with the page on which they are
        options.setdefault("extensions", {"awas": {"x-page": "/orders/new"}})

    @app.post("/orders")
    @site.action("order", **options)
    async def order(order: Order) -> Order:
        """Order a book."""
        return order

    [action] = site.freeze(app).actions
    defaults = {
        each.name: each.default if each.default_factory is MISSING else each.default_factory()
        for each in fields(action)
    }
    same = ("id", "inputs", "outputs", "agent_id", "target", "rehearse", "enforces_outputs", "operation_id")
    return [
        f"{name}: {described(getattr(action, name))}"
        for name, default in defaults.items()
        if name not in same and getattr(action, name) != default
    ]


def facts(options: dict[str, Any]) -> str:
    site = Site(**{"name": "Shop", "description": "Sells things.", "url": "https://shop.example", **options})
    return str(described(site.freeze(Starlette()).site))


FUNCTIONS: Final[Mapping[str, Callable[..., Any]]] = {
    "site": site_with,
    "action": action_with,
    "declared": declared,
    "facts": facts,
}


OPTIONS = Path(__file__).parent / "options"


@pytest.mark.skipif(bool(taken_out()), reason="messages name what all plug-ins have")
@pytest.mark.parametrize("name", sorted(path.stem for path in OPTIONS.glob("*.txt")))
def test_options_say_and_refuse_what_was_reviewed(name, request):
    compare(OPTIONS / f"{name}.txt", FUNCTIONS, request)
