"""A shop with an action of every kind, for transcripts of the doors of plug-ins."""

from typing import Annotated, Any, Literal

from fastapi import FastAPI, File, Form, Response, UploadFile
from pydantic import BaseModel, Field

from awp_publish import AgentPublisher, Refused
from tests.guarded import KEYS, known_callers, make_shop

CHANGING = [
    (r"(ratelimit|x-ratelimit-reset|retry-after)(: |\":\").*?(?=\"|$)", r"\1\2..."),
    (r"(cannot be read: Failed to parse)[^\"]*", r"\1 ..."),
    (r'"(parseError|credentials)":"[^"]+"', r'"\1":"..."'),
    (r'"id":"[\w-]{16}"', '"id":"ID"'),
    (r'"(expires_at|expiresAt|token|timestamp|createdAt|lastUpdatedAt|serverVersion|version)":"[^"$]+"', r'"\1":"..."'),
    (r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f-]{22}|\b[0-9a-f]{32}\b", "ID"),
    (r'("awp/?_?receipt": ?")[^"$]+', r"\1..."),
]
"""What differs in the answers of doors each time."""


class Book(BaseModel):
    title: str
    copies: Annotated[int, Field(ge=1)] = 1


def make_everything(plugins: list[Any]) -> FastAPI:
    """Make the shop, whose actions are open, or guarded in one way each."""
    errors = {"SOLD_OUT": "Choose another book."}
    about = {"hints": {"prices": "Prices change at midnight."}}
    site = make_shop(plugins=plugins, authenticate=known_callers(), secret_keys=KEYS, errors=errors, about=about)
    app = FastAPI()

    @app.get("/books/{title}")
    @site.action("find_book", name="Find a book", tags=["books"], examples=[{"title": "Emma"}])
    async def find_book(title: str, sort: Literal["price", "year"] = "price") -> Book:
        """Find a book by its title."""
        return Book(title=title)

    @app.put("/books/{title}")
    @site.action("keep_book", idempotency="24h")
    async def keep_book(title: str, book: Book, response: Response) -> Book:
        """Keep a book."""
        response.headers["etag"] = '"1"'
        return book

    @app.delete("/books/{title}", status_code=204)
    @site.action("drop_book")
    async def drop_book(title: str) -> None:
        """Drop a book."""

    @app.post("/covers")
    @site.action("add_cover")
    async def add_cover(title: Annotated[str, Form()], cover: Annotated[UploadFile, File()]) -> list[Any]:
        """Add a cover."""
        return [title, cover.filename, cover.content_type, (await cover.read()).hex()]

    @app.get("/cover")
    @site.action("show_cover")
    async def show_cover() -> Response:
        """Show a cover."""
        return Response(
            b"\x89PNG\xff", media_type="image/png", headers={"content-disposition": 'inline; filename="a.png"'}
        )

    @site.agent("list_titles")
    async def list_titles(copies: int = 1) -> list[str]:
        """List titles."""
        return ["Emma"] * copies

    @site.agent("count_books")
    async def count_books() -> int:
        """Count books."""
        return 3

    @site.agent("order", confirm="Order {title}?", requires=["list_titles"], idempotency="24h")
    async def order(title: str) -> str:
        """Order a book."""
        return f"{title} is ordered"

    @site.agent("mine", auth_required=True)
    async def mine() -> str:
        """List what is mine."""
        return "mine"

    @site.agent("buy", scopes=["buy"], rate_limit="3/day")
    async def buy() -> str:
        """Buy."""
        return "bought"

    @site.agent("secret", audience="buy")
    async def secret() -> str:
        """Show a secret."""
        return "secret"

    @site.agent("sold_out")
    async def sold_out() -> str:
        """Refuse."""
        raise Refused("It is sold out.", code="SOLD_OUT", members={"left": 0})

    @site.agent("burn", effect="delete")
    async def burn() -> dict[str, Any]:
        """Burn books."""
        raise RuntimeError("a secret of the site")

    @site.prompt("recommend", title="Recommend a book")
    def recommend(genre: Annotated[str, Field(description="What kind of book.")], count: int = 3) -> str:
        """Ask for books of a kind."""
        return f"Recommend {count} books: {genre}."

    @site.prompt("greet")
    def greet():
        return [("user", "Hello."), ("assistant", "Good day.")]

    site.skill("how_to_order", "# How to order\n\nCall `order`.\n")
    app.add_middleware(AgentPublisher, site=site)
    return app
