"""The shop of the transcripts: an action for each policy, and for each kind of output."""

from enum import Enum
from typing import Annotated

from fastapi import FastAPI, HTTPException, Request, Response
from pydantic import BaseModel, Field

from awp_publish import AgentPublisher, BearerToken, Principal, Site

site = Site(
    name="Shop",
    description="A shop.",
    url="https://shop.example",
    plugins=["mcp", "a2a"],
    authenticate=BearerToken({"token-of-ann": Principal("ann", frozenset({"stock"}))}),
    secret_keys=["k" * 32],
)
app = FastAPI()


class Sort(Enum):
    new = "new"
    cheap = "cheap"


class Note(BaseModel):
    book: str
    stars: int = Field(ge=1, le=5)


@app.get("/books")
@site.action("search_books", rate_limit="30/minute", examples=[{"q": "emma"}])
async def search(q: Annotated[str, Field(description="Words of the title.")], sort: Sort = Sort.new) -> list[str]:
    """Search books by title."""
    return [q, sort.value]


@app.post("/data")
@site.action("process", confirm="Order {data}.")
async def process(data: str) -> str:
    """The endpoint."""
    return f"ordered {data}"


@app.post("/notes")
@site.action("take_note", requires=["search_books"])
async def take_note(note: Note) -> Note:
    """Take a note on a book."""
    return note


@app.post("/ratings")
@site.action("rate", idempotency="24h")
async def rate(stars: Annotated[int, Field(ge=1, le=5)], title: str = "1984") -> dict[str, object]:
    """Rate a book."""
    return {"title": title, "stars": stars}


@app.post("/stock")
@site.action("restock", auth_required=True, scopes=["stock"])
async def restock(request: Request) -> str:
    """Order new copies."""
    return f"restocked by {request.headers['authorization']}"


@app.get("/prices", response_class=Response, responses={200: {"content": {"application/pdf": {}}}})
@site.action("print_prices")
async def print_prices(request: Request) -> Response:
    """Print the prices."""
    headers = (request.headers.get(name, "-") for name in ("x-shop", "x-unit"))
    return Response(f"%PDF {' '.join(headers)}", media_type="application/pdf")


@app.get("/sold-out")
@site.action("fail")
async def fail() -> str:
    """Fail as an application does."""
    raise HTTPException(409, "Sold out.")


@site.agent("stocktake", execution="async")
async def stocktake() -> str:
    """Count the books."""
    return "counted"


@app.get("/about")
async def about() -> str:
    return "about"


@app.get("/broken")
async def broken() -> str:
    raise ValueError("the shelf\nis empty")


site.page("/about")
app.add_middleware(AgentPublisher, site=site)
