"""The shop as its visitors reach it: over HTTP, with a cookie jar, as a person with a browser or as a program."""

import asyncio
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from html import unescape
from pathlib import Path
from typing import Any

import httpx

from benchmarks.person import ACCOUNT, carry_out, token_steps
from demo_site.app import create_app
from tests.client import TestClient

ORIGIN = "http://shop.example"
BROWSER = {"accept": "text/html,application/xhtml+xml,*/*;q=0.8"}
PROGRAM = {"accept": "application/json"}


class InProcess(httpx.BaseTransport):
    """Hand requests to an ASGI application and wait for its answer."""

    def __init__(self, app: Any, runner: asyncio.Runner) -> None:
        self._transport = httpx.ASGITransport(app=app)
        self._runner = runner

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        return self._runner.run(self._answer(request))

    async def _answer(self, request: httpx.Request) -> httpx.Response:
        response = await self._transport.handle_async_request(request)
        content = b"".join([part async for part in response.aiter_raw()])
        return httpx.Response(response.status_code, headers=response.headers, content=content)


class Shop:
    """One running shop; each visitor has cookies of their own."""

    def __init__(self, url: str | None = None, database: Path | None = None) -> None:
        self.app = create_app(url, database, packing_pause=0)
        self._runner = asyncio.Runner()

    def person(self) -> httpx.Client:
        """Let a person with a browser in."""
        return httpx.Client(transport=InProcess(self.app, self._runner), base_url=ORIGIN, headers=BROWSER)

    def program(self) -> httpx.Client:
        """Let a program in."""
        return httpx.Client(transport=InProcess(self.app, self._runner), base_url=ORIGIN, headers=PROGRAM)

    def close(self) -> None:
        self._runner.close()


@contextmanager
def open_shop(url: str | None = None, database: Path | None = None) -> Iterator[Shop]:
    shop = Shop(url, database)
    try:
        yield shop
    finally:
        shop.close()


def sign_in(visitor: httpx.Client, name: str = "reader", password: str = "lamplight") -> httpx.Response:
    return visitor.post("/sign-in", data={"name": name, "password": password})


def member(shop: Shop) -> httpx.Client:
    """Let a program in that has signed in."""
    program = shop.program()
    sign_in(program)
    return program


def get_token(client: TestClient, account: Mapping[str, str] = ACCOUNT) -> str:
    """Let the person of an account sign in with a browser of their own, and allow an agent; return its token."""
    return carry_out(
        token_steps(str(client.base_url).rstrip("/"), account), TestClient(client.app, str(client.base_url))
    )


def order(visitor: httpx.Client, slug: str = "emma") -> dict[str, Any]:
    """Sign in, buy one book as a program would, and return the order."""
    sign_in(visitor)
    visitor.post("/basket", data={"slug": slug})
    answer = visitor.post("/checkout", data={"name": "Ada", "address": "1 Quiet Lane, Oxford"}, headers=PROGRAM)
    placed: dict[str, Any] = answer.json()
    return placed


def texts(page: httpx.Response, css_class: str) -> list[str]:
    """Return the text of every element with this class, tags and needless blanks taken away."""
    found = re.findall(rf'<(\w+)[^>]*class="[^"]*\b{css_class}\b[^"]*"[^>]*>(.*?)</\1>', page.text, re.DOTALL)
    return [" ".join(unescape(re.sub(r"<[^>]+>", " ", inner)).split()) for _, inner in found]
