"""The applications that are measured: a small shop with and without awp_publish, and what it is measured beside."""

from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, Final, Literal

import orjson
from fastapi import FastAPI
from pydantic import BaseModel, Field
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from awp_publish import AgentPublisher, Site
from awp_publish.http.exchange import AsgiApp, RawHeaders, Receive, Scope, Send

Place = Literal["nowhere", "inside", "outermost"]
"""Where awp_publish stands: not at all, in `add_middleware`, or around the application."""

DOCUMENT: Final = "/.well-known/woa.json"
BOOK: Final = "/books/emma"
ORDERS: Final = "/orders"
ORDER_INVOKE: Final = "/agents/order_books/invoke"
FUNCTION_INVOKE: Final = "/agents/price_books/invoke"

JSON: Final[RawHeaders] = ((b"content-type", b"application/json"),)
JSON_ANSWER: Final[RawHeaders] = ((b"content-type", b"application/json"), (b"content-length", b"11"))
HTML_ANSWER: Final[RawHeaders] = ((b"content-type", b"text/html; charset=utf-8"), (b"content-length", b"11"))
SMALL_BODY: Final = b'{"ok":true}'

ORDER: Final = orjson.dumps(
    {
        "customer": "Jane Bennet",
        "email": "jane@longbourn.example",
        "lines": [{"slug": "emma", "copies": 2}, {"slug": "persuasion", "copies": 1}],
        "note": "Leave it with the housekeeper.",
    }
)
"""What is posted to the route."""

INVOCATION: Final = b'{"operation":"default","input":' + ORDER + b"}"
"""The same as a WoA envelope."""


def json_headers(body: bytes) -> RawHeaders:
    """The headers of a JSON body."""
    return (*JSON, (b"content-length", b"%d" % len(body)))


# --- A shop --------------------------------------------------------------------------------------------------------


class Book(BaseModel):
    """A book on the shelf."""

    slug: str
    title: str
    author: str
    year: int
    price: float
    tags: list[str] = []


class Line(BaseModel):
    """Some copies of one book."""

    slug: Annotated[str, Field(min_length=1, description="The book's short name.")]
    copies: Annotated[int, Field(ge=1, le=99, description="How many copies.")] = 1


class Order(BaseModel):
    """What somebody wants."""

    customer: Annotated[str, Field(min_length=1, max_length=100, description="Who orders.")]
    email: Annotated[str, Field(max_length=200, description="Where the receipt goes.")]
    lines: Annotated[list[Line], Field(min_length=1, max_length=50, description="What is ordered.")]
    note: Annotated[str | None, Field(max_length=500, description="A word for the bookseller.")] = None


class Receipt(BaseModel):
    """What was ordered, and what it costs."""

    number: str
    customer: str
    lines: list[Line]
    total: float


EMMA: Final = Book(slug="emma", title="Emma", author="Jane Austen", year=1815, price=7.5, tags=["novel", "comedy"])


async def read_book(slug: str) -> Book:
    """Read what is known about a book."""
    return EMMA


async def order_books(order: Order) -> Receipt:
    """Order books; the answer is the receipt."""
    total = sum(line.copies for line in order.lines) * 7.5
    return Receipt(number="2026-0001", customer=order.customer, lines=order.lines, total=total)


def shop(place: Place, plugins: Sequence[str] = ()) -> AsgiApp:
    """A FastAPI application with a reading and a writing route."""
    app = FastAPI(title="Bookshop")
    app.get("/books/{slug}")(read_book)
    app.post(ORDERS)(order_books)
    return published(app, shop_site(plugins), place)


def enclosed() -> AsgiApp:
    """The shop with a middleware outside of us that does nothing: calls of routes come in through it a second time."""
    app: Any = shop("inside")
    app.add_middleware(_PassOn)
    return app  # type: ignore[no-any-return]


class _PassOn:
    def __init__(self, app: AsgiApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._app(scope, receive, send)


def shop_site(plugins: Sequence[str] = ()) -> Site:
    """Both routes as actions, and the function behind the writing one as an agent of its own, without the route."""
    described = "Find, read about and order public-domain books."
    site = Site("Bookshop", described, "https://books.example", plugins=plugins)
    site.action("read_book")(read_book)
    site.action("order_books", effect="write")(order_books)
    site.agent("price_books")(_price_books)
    return site


async def _price_books(order: Order) -> Receipt:
    """Say what books would cost."""
    return await order_books(order)


def published(app: Any, site: Site, place: Place) -> AsgiApp:
    """An application with awp_publish in one of its places."""
    if place == "outermost":
        return AgentPublisher(app, site)
    if place == "inside":
        app.add_middleware(AgentPublisher, site=site)
    return app  # type: ignore[no-any-return]


# --- Answers without any framework ---------------------------------------------------------------------------------


def bare(body: bytes = SMALL_BODY, headers: RawHeaders = JSON_ANSWER, status: int = 200) -> AsgiApp:
    """The least that an ASGI application can do: the same bytes for every request."""
    listed = list(headers)

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": status, "headers": listed})
        await send({"type": "http.response.body", "body": body})

    return answer


def beside(app: AsgiApp) -> AsgiApp:
    """An application with a middleware around it that does nothing: the least that any middleware costs."""

    async def pass_on(scope: Scope, receive: Receive, send: Send) -> None:
        await app(scope, receive, send)

    return pass_on


def empty_site(plugins: Sequence[str] = ()) -> Site:
    """A site with one agent and no routes."""
    site = Site("Bookshop", "Find, read about and order public-domain books.", "https://books.example", plugins=plugins)
    site.agent("price_books")(_price_books)
    return site


# --- What else could serve a document ------------------------------------------------------------------------------


def starlette_route(body: bytes, headers: RawHeaders) -> Starlette:
    """A Starlette application with one route that answers the given bytes, with as few headers as that takes."""
    named = {name.decode(): value.decode() for name, value in headers if name in _NEEDED}

    async def answer(request: Request) -> Response:
        return Response(body, headers=named)

    return Starlette(routes=[Route(DOCUMENT, answer)])


_NEEDED: Final = frozenset({b"content-type", b"content-encoding"})


def documents_inside() -> AsgiApp:
    """A Starlette application of the same kind as `starlette_route`, with awp_publish in `add_middleware`."""
    return published(starlette_route(SMALL_BODY, JSON_ANSWER), shop_site_without_routes(), "inside")


def shop_site_without_routes() -> Site:
    """The shop's actions as functions, so that the document is of the same size in an application without routes."""
    site = Site("Bookshop", "Find, read about and order public-domain books.", "https://books.example")
    site.agent("read_book")(read_book)
    site.agent("order_books", effect="write")(order_books)
    site.agent("price_books")(_price_books)
    return site


class WhiteNoiseFile:
    """WhiteNoise's StaticFile behind the thinnest ASGI adapter: it is told the three headers it asks for."""

    _NAMES: Final = {
        b"accept-encoding": "HTTP_ACCEPT_ENCODING",
        b"if-none-match": "HTTP_IF_NONE_MATCH",
        b"range": "HTTP_RANGE",
    }

    def __init__(self, file: Path, packed: Path, headers: RawHeaders) -> None:
        named = [(name.decode(), value.decode()) for name, value in headers if name in _KEPT]
        static_file = import_module("whitenoise.responders").StaticFile
        self._file = static_file(str(file), named, {"gzip": str(packed)})

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        asked = {self._NAMES[name]: value.decode() for name, value in scope["headers"] if name in self._NAMES}
        found = self._file.get_response(scope["method"], asked)
        headers = [(name.lower().encode(), value.encode()) for name, value in found.headers]
        await send({"type": "http.response.start", "status": int(found.status), "headers": headers})
        await send({"type": "http.response.body", "body": _read(found.file)})


_KEPT: Final = frozenset({b"content-type", b"cache-control", b"etag"})


def _read(file: Any) -> bytes:
    if file is None:
        return b""
    with file:
        return bytes(file.read())
