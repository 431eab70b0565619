"""The application under attack: every kind of input, guard, page and failure, and what is known of each run.

Nothing here limits what an attacker may send. Handlers note their runs in a `World`, so that the judge can tell what
must not have run; those that fail on purpose note that too, so that a failure which nobody meant stands out.
"""

import asyncio
from collections import Counter
from dataclasses import dataclass, field
from enum import Enum
from typing import Annotated, Final, Literal

from fastapi import Body, Cookie, Depends, FastAPI, File, Form, Header, HTTPException, Query, Request, UploadFile
from fastapi.responses import HTMLResponse, PlainTextResponse, RedirectResponse
from pydantic import BaseModel, Field

from awp_publish import (
    AgentPublisher,
    ApiKey,
    Awp,
    BearerToken,
    Limits,
    Mcp,
    Pages,
    Principal,
    Proxies,
    Refused,
    Site,
    current_caller,
    report_progress,
)

HOST: Final = b"shop.example"
TOKENS: Final = {"a-valid-token-of-ann": "ann", "a-valid-token-of-ben": "ben"}
API_KEY: Final = "a-valid-key-of-cleo"
CREDENTIALS: Final = (*(token.encode() for token in TOKENS), API_KEY.encode())
CALLERS: Final = {*TOKENS.values(), "cleo"}
SECRET: Final = "what-no-answer-may-say"
TIMEOUT: Final = 5.0


class OnPurpose(Exception):
    """What a handler raises because it was told to."""


@dataclass
class World:
    """What has happened since it was last cleared. `forbidden` are runs that no call may come to."""

    runs: Counter[str] = field(default_factory=Counter)
    failures: int = 0
    forbidden: list[str] = field(default_factory=list)

    def clear(self) -> None:
        """Begin anew."""
        self.runs.clear()
        self.failures = 0
        self.forbidden.clear()

    def run(self, action: str) -> None:
        """Note a run."""
        self.runs[action] += 1

    def run_guarded(self, action: str, *callers: str) -> None:
        """Note a run that needs a caller; `callers` are those who may."""
        self.runs[action] += 1
        caller = current_caller()
        if caller is None or caller.id not in (callers or CALLERS):
            self.forbidden.append(f"{action} ran for {caller.id if caller else 'nobody'}")

    def fail(self) -> OnPurpose:
        """Note a failure that is meant."""
        self.failures += 1
        return OnPurpose(SECRET)


class Sort(Enum):
    """An order of results."""

    title = "title"
    price = "price"


class Leaf(BaseModel):
    """A comparison."""

    kind: Literal["leaf"] = "leaf"
    field: str
    value: str | int | float | bool | None = None


class And(BaseModel):
    """All of them."""

    op: Literal["and"]
    parts: list["Filter"] = Field(max_length=50)


class Or(BaseModel):
    """One of them."""

    op: Literal["or"]
    parts: list["Filter"] = Field(max_length=50)


class Not(BaseModel):
    """Not this."""

    negated: "Filter"


Filter = And | Or | Not | Leaf


class Question(BaseModel):
    """A tree of conditions."""

    where: Filter
    limit: int = Field(10, ge=1, le=100)


class Node(BaseModel):
    """A tree."""

    name: str = Field(max_length=1000)
    children: list["Node"] = []


class Line(BaseModel):
    """One line of an order."""

    sku: str = Field(pattern="^[a-z0-9-]{1,40}$")
    copies: int = Field(1, ge=1, le=20)
    note: str | None = None


class Order(BaseModel):
    """An order."""

    lines: list[Line] = Field(max_length=100)
    email: str = ""
    tags: dict[str, str] = {}
    express: bool = False


PAGE: Final = """<!doctype html><html lang="en"><head><title>{title}</title></head><body><nav><a href="/">Home</a>
<a href="/about">About</a> <a href="/fail">Fail</a> <a href="https://evil.example/">Away</a></nav>
<main><h1>{title}</h1>{body}</main></body></html>"""
FORM: Final = """<form method="post" action="/enter"><label>Name <input name="name" required></label>
<select name="sort"><option>title<option value="price">Price</select><input type="checkbox" name="news">
<textarea name="text"></textarea><input type="file" name="file"><button name="go" value="1">Go</button></form>"""


def make_world() -> tuple[FastAPI, World]:
    """Make the application, and what will be known of it."""
    world = World()
    principals = {token: Principal(name, frozenset({"buy"})) for token, name in TOKENS.items() if name == "ann"}
    principals |= {token: Principal(name) for token, name in TOKENS.items() if name != "ann"}
    site = Site(
        name="Shop",
        description="Sells books.",
        url="https://shop.example",
        plugins=[Mcp(list_only_allowed=True), "a2a", Awp(messages_per_second=1000, sessions=100), Pages(in_query=True)],
        authenticate=[BearerToken(principals), ApiKey({API_KEY: "cleo"})],
        secret_keys=["a-key-that-nobody-else-has-0123456789"],
        proxies=Proxies(trusted=["192.0.2.0/24"]),
        allow_origins=["https://friend.example"],
        errors={"SOLD_OUT": "Order another."},
        limits=Limits(timeout=TIMEOUT),
        log_inputs=True,
    )
    app = FastAPI(docs_url=None, redoc_url=None, openapi_url=None)
    _add_parameters(app, site, world)
    _add_siblings(app, site, world)
    _add_bodies(app, site, world)
    _add_guarded(app, site, world)
    _add_jobs(app, site, world)
    _add_failures(app, site, world)
    _add_pages(app, site, world)
    app.add_middleware(AgentPublisher, site=site, check=False)
    return app, world


def _add_parameters(app: FastAPI, site: Site, world: World) -> None:
    @app.get("/search")
    @site.action("search_books", examples=[{"q": "whale"}])
    async def search(
        q: Annotated[str, Query(max_length=200)],
        limit: Annotated[int, Query(ge=1, le=100)] = 10,
        sort: Sort = Sort.title,
        tags: Annotated[list[str], Query(max_length=20)] = [],  # noqa: B006
        price: float | None = None,
    ) -> list[str]:
        """Search books."""
        world.run("search_books")
        return [q, *tags][:limit]

    @app.put("/labels/{label_id}")
    @site.action("put_label", idempotency="1m")
    async def put_label(
        label_id: int,
        text: Annotated[str, Body(max_length=10_000)],
        color: Annotated[str, Body()] = "red",
        x_shop: Annotated[str | None, Header()] = None,
        theme: Annotated[str | None, Cookie()] = None,
    ) -> dict[str, object]:
        """Write a label."""
        world.run("put_label")
        return {"id": label_id, "text": text, "color": color, "shop": x_shop, "theme": theme}

    @app.post("/contact")
    @site.action("contact")
    async def contact(name: Annotated[str, Form()], message: Annotated[str, Form(max_length=10_000)] = "") -> str:
        """Write to the shop."""
        world.run("contact")
        return name

    @app.post("/covers")
    @site.action("upload_cover")
    async def upload(title: Annotated[str, Form()], cover: Annotated[UploadFile, File()]) -> int:
        """Upload a cover."""
        world.run("upload_cover")
        return len(await cover.read())


def _add_siblings(app: FastAPI, site: Site, world: World) -> None:
    """Routes that a path parameter of another could name."""

    @app.get("/orders/cancel_all")
    @site.action("cancel_all_orders", auth_required=True, effect="delete", confirm=True)
    async def cancel_all() -> str:
        """Cancel all orders."""
        world.run_guarded("cancel_all_orders")
        return "cancelled"

    @app.get("/orders/export", include_in_schema=False)
    async def export() -> str:
        world.forbidden.append("GET /orders/export, which is no action, ran")
        return "all orders"

    @app.get("/orders/{order_id}")
    @site.action("show_order")
    async def show_order(order_id: str) -> str:
        """Show an order."""
        world.run("show_order")
        return order_id

    @app.post("/notes/purge", include_in_schema=False)
    async def purge() -> str:
        world.forbidden.append("POST /notes/purge, which is no action, ran")
        return "purged"

    @app.post("/notes/{note_id}")
    @site.action("write_note")
    async def write_note(note_id: str, text: Annotated[str, Body(embed=True)]) -> str:
        """Write a note."""
        world.run("write_note")
        return text

    @app.get("/files/secret/keys", include_in_schema=False)
    async def keys() -> str:
        world.forbidden.append("GET /files/secret/keys, which is no action, ran")
        return "keys"

    @app.get("/files/{path:path}")
    @site.action("read_file")
    async def read_file(path: str) -> PlainTextResponse:
        """Read a file."""
        world.run("read_file")
        return PlainTextResponse(path)


def _add_bodies(app: FastAPI, site: Site, world: World) -> None:
    @app.post("/filter")
    @site.action("filter_books", effect="read")
    async def filter_books(query: Question) -> int:
        """Find books by a tree of conditions."""
        world.run("filter_books")
        return query.limit

    @app.post("/trees")
    @site.action("plant_tree")
    async def plant(tree: Node) -> str:
        """Plant a tree."""
        world.run("plant_tree")
        return tree.name

    @app.post("/orders")
    @site.action("order_books", idempotency="1m", rate_limit="2000/minute")
    async def order(order: Order) -> Order:
        """Order books."""
        world.run("order_books")
        return order

    @app.post("/numbers")
    @site.action("sum_up")
    async def sum_up(numbers: Annotated[list[float], Body(max_length=10_000)]) -> float | None:
        """Add numbers."""
        world.run("sum_up")
        total = sum(numbers)
        return total if abs(total) < 1e300 else None

    @site.agent("echo", inputs={"type": "object"}, outputs={"type": "object"})
    async def echo(given: dict[str, object]) -> dict[str, object]:
        """Give back what came."""
        world.run("echo")
        return given

    @site.agent("strict", inputs={"type": "object", "properties": {"a": {}}, "additionalProperties": False})
    async def strict(given: dict[str, object]) -> int:
        """Count what came, where little may come."""
        world.run("strict")
        return len(given)

    @site.agent("patterned", inputs={"type": "object", "patternProperties": {"^(x|y)+$": {"type": "integer"}}})
    async def patterned(given: dict[str, object]) -> int:
        """Count what came, under names of a pattern."""
        world.run("patterned")
        return len(given)


def _add_guarded(app: FastAPI, site: Site, world: World) -> None:
    async def only_known() -> None:
        if current_caller() is None:
            raise HTTPException(403)

    @app.delete("/accounts/{name}", dependencies=[Depends(only_known)])
    @site.action("close_account", auth_required=True, idempotency="1m")
    async def close_account(name: str) -> str:
        """Close an account."""
        world.run_guarded("close_account")
        return name

    @site.agent("pay", scopes=["buy"], effect="irreversible", confirm="Pay {amount} to {payee}.", idempotency="1m")
    async def pay(amount: int, payee: str, memo: str = "") -> str:
        """Pay somebody."""
        world.run_guarded("pay", "ann")
        return payee

    @site.agent("erase", confirm=True)
    async def erase(names: dict[str, str]) -> int:
        """Erase what is named."""
        world.run("erase")
        return len(names)

    @site.agent("send", requires=["search_books"], auth_required=True)
    async def send(to: str) -> str:
        """Send what was found."""
        world.run_guarded("send")
        return to

    @site.agent("scarce", rate_limit="5/minute")
    async def scarce(text: str = "") -> str:
        """Say something, seldom."""
        world.run("scarce")
        return text

    desk = site.agent("desk", description="Lends books.", auth_required=True)

    @desk.operation("lend")
    async def lend(title: str) -> bool:
        """Lend a book."""
        world.run_guarded("desk_lend")
        return True

    @desk.operation("give_back")
    def give_back(title: str) -> bool:
        """Take a book back."""
        world.run_guarded("desk_give_back")
        return True


def _add_jobs(app: FastAPI, site: Site, world: World) -> None:
    @app.post("/shipments/{number}")
    @site.action("ship_order", execution="async", effect="idempotent", timeout=TIMEOUT)
    async def ship(number: str) -> str:
        """Ship an order."""
        report_progress(0.5, "packing")
        await asyncio.sleep(0)
        return number

    @site.agent("crunch", execution="async", auth_required=True, idempotency="1m", timeout=TIMEOUT)
    async def crunch(text: str) -> int:
        """Count words."""
        world.run_guarded("crunch")
        return len(text)


def _add_failures(app: FastAPI, site: Site, world: World) -> None:
    @app.post("/explosions")
    @site.action("explode")
    async def explode(how: Annotated[str, Body(embed=True)]) -> int:
        """Fail in the way that is asked for."""
        if how == "redirect":
            world.failures += 1
            raise HTTPException(303, headers={"location": "/"})
        if how == "unavailable":
            world.failures += 1
            raise HTTPException(503)
        if how == "sold_out":
            raise HTTPException(409, {"code": "SOLD_OUT"})
        raise world.fail()

    @site.agent("fall_over", outputs={"type": "integer"})
    async def fall_over(how: Literal["refuse", "raise", "lie", "stop", "deep"]) -> object:
        """Fail without a route."""
        if how == "refuse":
            raise Refused("Nothing left.", status=409, code="SOLD_OUT")
        if how == "lie":
            world.failures += 1
            return "no number"
        if how == "deep":
            world.failures += 1
            raise RecursionError(SECRET)
        raise world.fail()


def _add_pages(app: FastAPI, site: Site, world: World) -> None:
    @app.get("/", response_class=HTMLResponse, include_in_schema=False)
    @site.page(title="Home")
    async def home() -> str:
        return PAGE.format(title="Home", body="<p>Welcome.</p>" + FORM)

    @app.get("/about", response_class=HTMLResponse, include_in_schema=False)
    @site.page(title="About")
    async def about() -> str:
        return PAGE.format(title="About", body="<ul>" + "<li>Word after word.</li>" * 50 + "</ul>")

    @app.get("/odd", response_class=HTMLResponse, include_in_schema=False)
    async def odd() -> str:
        return PAGE.format(title="Odd", body="<div>" * 300 + "<table><form><p><select><option>" + "</b>" * 100)

    @app.post("/enter", response_class=HTMLResponse, include_in_schema=False)
    async def enter(request: Request) -> HTMLResponse:
        return HTMLResponse(PAGE.format(title="In", body="<p>Hello.</p>"), headers={"set-cookie": "who=1; Path=/"})

    @app.get("/fail", response_class=HTMLResponse, include_in_schema=False)
    async def fail() -> str:
        raise world.fail()

    @app.get("/moved", include_in_schema=False)
    async def moved() -> RedirectResponse:
        return RedirectResponse("/about")

    @site.prompt("recommend")
    def recommend(genre: str, count: int = 3) -> str:
        """Ask for books."""
        return f"Recommend {count} {genre} books."
