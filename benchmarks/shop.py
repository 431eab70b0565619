"""The applications that are measured: a small shop with and without awp_publish."""

from collections.abc import Sequence
from typing import Annotated, Any, Final, Literal

import orjson
from fastapi import FastAPI
from pydantic import BaseModel, Field

from awp_publish import AgentPublisher, Site
from awp_publish.http.exchange import AsgiApp, RawHeaders, Receive, Scope, Send

Place = Literal["nowhere", "inside", "outermost"]
"""Where awp_publish stands: not at all, in `add_middleware`, or around the application."""

BOOK: Final = "/books/emma"
ORDERS: Final = "/orders"
ORDER_INVOKE: Final = "/agents/order_books/invoke"
FUNCTION_INVOKE: Final = "/agents/price_books/invoke"
JSON: Final[RawHeaders] = ((b"content-type", b"application/json"),)

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
    site.agent("price_books")(price_books)
    return site


async def price_books(order: Order) -> Receipt:
    """Say what books would cost."""
    return await order_books(order)


def published(app: Any, site: Site, place: Place) -> AsgiApp:
    """An application with awp_publish in one of its places."""
    if place == "outermost":
        return AgentPublisher(app, site)
    if place == "inside":
        app.add_middleware(AgentPublisher, site=site)
    return app  # type: ignore[no-any-return]


def empty_site(plugins: Sequence[str] = ()) -> Site:
    """A site with one agent and no routes."""
    site = Site("Bookshop", "Find, read about and order public-domain books.", "https://books.example", plugins=plugins)
    site.agent("price_books")(price_books)
    return site
