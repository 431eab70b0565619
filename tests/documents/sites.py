"""Sites whose documents are compared whole: one with all there is, one below a path, a small one, an empty one."""

from collections.abc import Callable
from datetime import UTC, date, datetime
from enum import Enum
from typing import Annotated, Any, Final, Literal

from fastapi import Depends, FastAPI, File, Form, Header, Query, UploadFile
from fastapi.responses import HTMLResponse
from fastapi.security import APIKeyHeader, HTTPBearer
from pydantic import BaseModel, Field
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from awp_publish import (
    About,
    AgentJson,
    AgentPublisher,
    BearerToken,
    Discovery,
    Idempotency,
    Limits,
    OAuth,
    Paths,
    Robots,
    Security,
    SessionUser,
    SignIn,
    Site,
    Workflow,
)
from tests.guarded import KEYS


class Binding(Enum):
    PAPER = "paper"
    CLOTH = "cloth"


class Author(BaseModel):
    name: str
    born: date | None = None


class Book(BaseModel):
    """A book on a shelf."""

    isbn: str = Field(pattern=r"^\d{13}$", description="The number on its back.")
    price: float = Field(ge=0, lt=1000)
    binding: Binding = Binding.PAPER
    authors: list[Author] = Field(min_length=1, max_length=5)
    cover: bytes | None = None
    sequels: "list[Book]" = []


class Shelf(BaseModel):
    books: list[Book]
    total: int


class Lines(BaseModel):
    copies: Annotated[int, Field(gt=0, le=20)] = 1
    gift: bool = False
    note: Annotated[str, Field(max_length=200)] | None = None


def full() -> Any:
    site = Site(
        "The Full [Bookshop]",
        "Find, read and order books. Gifts, too.",
        url=["https://shop.example", "https://books.example"],
        about=About(
            version="2.1",
            email="help@shop.example",
            contact="/help",
            documentation="/docs/agents",
            license="MIT",
            updated=datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC),
            hints={"prices": "Prices change at midnight UTC."},
            workflows=[
                Workflow("buy", "Buy a book", ("search_books", "order_book"), "From wish to order."),
                Workflow("look", "Look around", ("search_books",)),
            ],
            provenance={"created_by": "The shop", "source": "https://shop.example/about"},
            extensions={"x-region": "EU", "woa": {"region": "EU"}},
        ),
        oauth=OAuth(("https://login.example", "https://login.example/2"), {"login": "/login"}, "1h", "/login/refresh"),
        errors={"SOLD_OUT": "Call search_books for another edition.", "INVALID_INPUT": "Read errors."},
        plugins=[
            *("mcp", "a2a", "awp", "bridge", "prompts", "skills", "events", "search", "jobs"),
            AgentJson(entities={"shelf": Shelf, "receipt": {"number": "string", "paid": "float"}}),
            Discovery(
                robots=Robots(
                    disallow=["/account", "/basket"],
                    bots={"GPTBot": True, "CCBot": False, "OtherBot": False},
                    content_signal={"search": "yes", "ai-input": "no", "ai-train": "no", "use": "reference"},
                    content_usage="train-ai=n",
                    license="/license.xml",
                ),
                robots_proposals=True,
                security=Security(
                    ["mailto:safety@shop.example", "/safety"], datetime(2099, 1, 1, tzinfo=UTC), "/policy", ["en", "de"]
                ),
            ),
        ],
        limits=Limits(rate_limit="600/hour"),
        allow_origins=["https://friend.example"],
        secret_keys=KEYS,
        authenticate=BearerToken({"ann-secret-token": "ann"}),
    )
    app = FastAPI()

    @app.get("/", response_class=HTMLResponse)
    @site.page(title="Front [page]", guide="Look at the shelves; then search.", actions=["search_books"])
    async def front() -> str:
        """What is new."""
        return "<title>Shop</title><main><h1>Shop</h1></main>"

    @app.get("/shelves/{shelf}", response_class=HTMLResponse)
    @site.page(id="shelves", description="The books of a shelf.")
    async def shelf(shelf: Literal["new", "old & rare"]) -> str:
        return f"<title>{shelf}</title><main><h1>{shelf}</h1></main>"

    @app.get("/search", operation_id="search")
    @site.action(
        "search_books",
        tags=["books", "reading"],
        examples=[{"q": "Moby Dick", "limit": 5}, {"q": "Emma", "genre": ["novel"]}],
        rate_limit="30/minute",
        awas={
            "type": "search",
            "selector": "form[role=search]",
            "selectors": {"q": "input[name=q]"},
            "result": {"type": "list", "selector": ".books", "itemSelector": ".book"},
            "preconditions": ["The shop is open."],
        },
        extensions={"x-team": "catalogue"},
    )
    async def search(
        q: Annotated[str, Field(min_length=1, max_length=80, description="What to look for; a title.")],
        sort: Literal["relevance", "price"] = "relevance",
        limit: Annotated[int, Field(ge=1, le=50)] = 20,
        most: Annotated[float | None, Field(gt=0, multiple_of=0.5)] = None,
        since: datetime | None = None,
        genre: Annotated[list[str], Query(max_length=3)] = [],  # noqa: B006
        shop: Annotated[str | None, Header(alias="X-Shop")] = None,
    ) -> Shelf:
        """Search books by title; by nothing else. There is more to say."""
        return Shelf(books=[], total=0)

    @app.post("/books/{isbn}/orders", status_code=201, tags=["orders"])
    @site.action(
        "order_book",
        name="Order a book",
        auth_required=True,
        scopes=["orders:write", "orders:read"],
        effect="irreversible",
        confirm="Order {copies} of {isbn}?",
        idempotency=Idempotency("48h", "key"),
        requires=["search_books"],
        rate_limit="5/2 hours",
        awas={"preview_url": "/preview", "dry_run": True},
    )
    async def order(isbn: str, lines: Lines) -> dict[str, str]:
        """Order copies of a book."""
        return {"number": isbn}

    @app.put("/covers/{isbn}")
    @site.action("set_cover", audience="known", scopes=["covers"])
    async def cover(isbn: str, cover: Annotated[UploadFile, File()], alt: Annotated[str, Form()] = "") -> None:
        """Set the cover of a book."""

    @app.delete("/wishes/{wish}")
    @site.action("forget_wish", auth_required=True, expose=["woa", "mcp"], idempotency=True)
    async def forget(wish: int, key: Annotated[str, Depends(APIKeyHeader(name="X-Key"))]) -> None:
        """Forget a wish."""

    @app.get("/account")
    @site.action("account", depends_on=["search_books"])
    async def account(token: Annotated[Any, Depends(HTTPBearer())]) -> dict[str, Any]:
        """See the account."""
        return {}

    @app.post("/letters")
    @site.action("send_letter", execution="async", effect="idempotent")
    async def letter(text: Annotated[str, Form()], copies: Annotated[list[str], Form()]) -> str:
        """Send a letter. It takes a while."""
        return text

    desk = site.agent(
        "desk",
        name="The desk",
        description="Answers questions.",
        version="1.0.0",
        capabilities=["https://shop.example/capability/answers"],
        metadata={"operations": {"ask": "Answers one question."}, "authz": {"scheme": "none"}},
        tags=["help"],
    )

    @desk.operation("ask", examples=[{"question": "Where?"}])
    def ask(question: str, tags: dict[str, int] | None = None) -> Annotated[str, Field(max_length=100)]:
        """Ask a question."""
        return question

    @desk.operation("count", expose=["mcp", "a2a"], confirm=True)
    def count(books: list[Book]) -> int:
        """Count books."""
        return len(books)

    @site.agent("hidden", audience="operator")
    def hidden() -> None:
        """See what nobody else sees."""

    @site.prompt("gift", title="Find a gift")
    def gift(age: int, taste: str = "any") -> str:
        """Find a gift for somebody."""
        return f"Find a gift for {age} who likes {taste}."

    @site.skill("refunds", "# Refunds\n\nCall `desk.ask`.\n")
    def refunds() -> None:
        """How to get money back."""

    site.event("sold", payload=Lines, description="A book was sold.")
    site.event("closed", audience="known", description="The shop has closed.")
    site.set_status(degraded_actions=["order_book"])
    app.add_middleware(AgentPublisher, site=site)
    return app, site


def below() -> Any:
    """A site below a path and at a port, with sessions and paths of its own, whose robots may read nothing."""
    site = Site(
        "Café",
        "Coffee.",
        url="https://xn--caf-dma.example:8443/shop/",
        about=About(
            contact="https://elsewhere.example/contact",
            updated="2026-03-31",
            leave_out=["webmcp", "sitemap"],
            workflows=[Workflow("drink", "Drink", ("sign_in", "order"))],
        ),
        paths=Paths(root="/robots", invoke="/call/{agent_id}", mcp="/tools"),
        plugins=[
            "mcp",
            "sessions",
            Discovery(
                robots=Robots(bots={"GPTBot": False}),
                security=Security(["https://elsewhere.example/safety"], date(2099, 1, 1)),
            ),
        ],
        secret_keys=KEYS,
        authenticate=SessionUser("user", cookie="sid", endpoints={"login": "/sign-in", "logout": "/sign-out"}),
        guard_routes=True,
    )

    async def answer(request: Request) -> Response:
        """Answer."""
        return JSONResponse({})

    declarations: dict[str, dict[str, Any]] = {
        "sign_in": {"path": "/sign-in", "inputs": {"type": "object", "properties": {"name": {}}}},
        "order": {
            "path": "/orders/{table}/{rest:path}",
            "auth_required": True,
            "inputs": {
                "type": "object",
                "properties": {
                    "table": {"type": "integer", "minimum": 1},
                    "rest": {"type": "string"},
                    "cup": {"enum": [f"cup-{number}" for number in range(14)]},
                    "milk": {"const": True},
                    "sugar": {"type": "number", "exclusiveMinimum": 0, "maximum": 3},
                    "notes": {"type": "array", "items": {"type": "string", "format": "date"}},
                    "guests": {"type": "array"},
                    "picture": {"type": "string", "contentEncoding": "base64", "contentMediaType": "image/png"},
                    "more": {"type": "object"},
                    "either": {"type": ["string", "null"]},
                    "nothing": {"type": "null"},
                },
                "required": ["table", "rest", "milk"],
            },
            "outputs": {"oneOf": [{"type": "string"}, {"type": "array", "items": {"type": "integer"}}]},
            "confirm": True,
            "rate_limit": "10/second",
        },
    }
    for name, options in declarations.items():
        site.declare(name, method="POST", description=f"To {name.replace('_', ' ')}.\nSecond line.", **options)
    routes = [
        Route("/sign-in", answer, methods=["POST"]),
        Route("/orders/{table:int}/{rest:path}", answer, methods=["POST"]),
    ]
    return AgentPublisher(Starlette(routes=routes), site=site), site


def small() -> Any:
    """A site with one action, whose people allow agents to act for them."""
    user = SessionUser("user", endpoints={"login": "/login"})
    site = Site(
        "Small",
        "Says hello",
        url="http://127.0.0.1:8000",
        oauth=OAuth(endpoints={"login": "/login"}),
        plugins=[SignIn(login="/login", user=user, scopes={"hello": "say hello to you"}), "a2a"],
        secret_keys=KEYS,
        authenticate=user,
    )

    @site.agent("hello", scopes=["hello"])
    def hello(whom: str = "you") -> str:
        """Say hello"""
        return whom

    return AgentPublisher(Starlette(), site=site), site


def bare() -> Any:
    site = Site("Bare", "Says nothing.", url="http://[::1]:8000")
    return AgentPublisher(Starlette(), site=site), site


SITES: Final[dict[str, Callable[[], Any]]] = {"full": full, "below": below, "small": small, "bare": bare}
