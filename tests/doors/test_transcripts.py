"""What the doors of every site answer, whole: `transcripts`, in the words of `tests/transcript.py`."""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import pytest
from fastapi import FastAPI, Security
from fastapi.security import APIKeyQuery
from starlette.applications import Starlette

from awp_publish import AgentPublisher, Limits, Paths
from awp_publish.http.exchange import AsgiApp
from tests.client import TestClient
from tests.guarded import known_callers, make_shop
from tests.plugins.plain.test_door import make_shelves
from tests.transcript import compare

TRANSCRIPTS = Path(__file__).parent / "transcripts"
CHANGING = [
    (r"(ratelimit|x-ratelimit-reset|retry-after): .*", r"\1: ..."),
    (r'"(expires_at|token)":"[^"$]+"', r'"\1":"..."'),
    (r"(in|for|retry_after\":) ?\d+( seconds)?", r"\1 N\2"),
]


def make_moved(paths: Paths) -> AgentPublisher:
    """Make a shop whose doors stand elsewhere."""
    site = make_shop(paths=paths)

    @site.agent("look")
    async def look() -> str:
        """Look at books."""
        return "books"

    return AgentPublisher(Starlette(), site=site)


def make_hidden() -> AgentPublisher:
    """Make a shop with actions for those who are known, and for those who may buy."""
    site = make_shop(authenticate=known_callers(), limits=Limits(max_body_bytes=300))

    @site.agent("look")
    async def look(title: str = "") -> str:
        """Look at books."""
        return title or "books"

    @site.agent("mine", audience="known", max_body_bytes=100)
    async def mine(title: str = "") -> str:
        """Show what is mine."""
        return title or "mine"

    @site.agent("order", audience="buy", effect="delete")
    async def order(title: str = "") -> str:
        """Order a book."""
        return title or "ordered"

    return AgentPublisher(Starlette(), site=site)


def make_keyed() -> FastAPI:
    """Make an application whose route takes two keys in the query."""
    site, app = make_shop(), FastAPI()

    @app.get("/keyed")
    @site.action("keyed")
    async def keyed(
        key: Annotated[str, Security(APIKeyQuery(name="key"))],
        other: Annotated[str | None, Security(APIKeyQuery(name="other", auto_error=False))],
        q: str = "",
    ) -> list[str | None]:
        """Show what was sent."""
        return [q, key, other]

    app.add_middleware(AgentPublisher, site=site)
    return app


SITES: dict[str, Callable[[], AsgiApp]] = {
    "plain": make_shelves,
    "woa": make_shelves,
    "hidden": make_hidden,
    "moved": lambda: make_moved(Paths(root="/do", invoke="/call?v=1&agent=id-{agent_id}")),
    "keyed": make_keyed,
    "nameless": lambda: make_moved(Paths(invoke="/call")),
}


@pytest.mark.needs("agent_json", "awas")
@pytest.mark.parametrize("name", SITES)
def test_doors_answer_as_in_the_transcripts(name, request):
    with TestClient(SITES[name](), base_url="https://shop.example") as client:
        compare(TRANSCRIPTS / f"{name}.txt", client, request, *CHANGING)
