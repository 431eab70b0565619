"""`guard_routes=True`: direct requests of routes meet the same gates as calls, and get the route's own answer.

`transcripts/gates.txt` has the gates of the shop, in the words of `tests/transcript.py`.
"""

import asyncio
from pathlib import Path
from typing import Annotated, Any

import pytest
from fastapi import FastAPI, File, Form, Header, Response, UploadFile
from fastapi.responses import HTMLResponse, RedirectResponse, StreamingResponse
from httpx import ASGITransport, AsyncClient
from pydantic import BaseModel
from starlette.applications import Starlette
from starlette.background import BackgroundTask
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.sessions import SessionMiddleware
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse
from starlette.routing import Mount, Route

from awp_publish import AgentPublisher, Site, current_caller
from tests.guarded import KEYS, invoke_agent, known_callers, make_shop, status_and_code
from tests.transcript import compare

CHANGING = [
    (r"((?<!-)ratelimit|x-ratelimit-reset|retry-after): .*", r"\1: ..."),
    (r'"(expires_at|token)":"[^"$]+"', r'"\1":"..."'),
    (r"(in|for|retry_after\":) ?\d+( seconds)?", r"\1 N\2"),
]


class Order(BaseModel):
    title: str
    copies: int = 1


class Shop:
    """A shop with gates of every kind before its routes; `runs` tells which of them ran."""

    def __init__(self, **options: Any) -> None:
        self.runs: list[str] = []
        self.site: Site = make_shop(authenticate=known_callers(), secret_keys=KEYS, guard_routes=True, **options)
        site, app, runs = self.site, FastAPI(), self.runs

        @app.get("/search")
        @site.action("search", rate_limit="2/hour", guard_routes=True)
        async def search(q: str, page: int = 1) -> list[Any]:
            """Search."""
            runs.append("search")
            return [q, page]

        @app.post("/orders/{shelf}")
        @site.action("order", idempotency="24h", confirm="Order {copies} of {title} from {shelf}.")
        async def order(shelf: int, order: Order, x_gift: Annotated[str, Header()] = "no") -> list[Any]:
            """Order."""
            runs.append("order")
            return [shelf, order.title, order.copies, x_gift, len(runs)]

        @app.post("/keyed")
        @site.action("keyed", idempotency="24h")
        async def keyed(title: Annotated[str, Form()], note: Annotated[str, Form(max_length=9)] = "") -> Response:
            """Order by form."""
            runs.append("keyed")
            if title == "none":
                raise HTTPException(409, "sold out")
            return RedirectResponse("/thanks", 303) if note else HTMLResponse(f"<p>{title} {len(runs)}</p>")

        @app.post("/covers")
        @site.action("cover", requires=["search"])
        async def cover(cover: Annotated[UploadFile, File()]) -> list[int]:
            """Add a cover."""
            runs.append("cover")
            return list(await cover.read())

        @app.post("/mine")
        @site.action("mine", auth_required=True)
        async def mine() -> str:
            """What is mine."""
            caller = current_caller()
            return caller.id if caller is not None else "nobody"

        @app.post("/open")
        @site.action("open", rate_limit="1/minute", guard_routes=False)
        async def open_() -> str:
            """Open to all."""
            return "open"

        @app.post("/other")
        async def other() -> str:
            return "no action"

        app.add_middleware(AgentPublisher, site=site)
        self.app = app


@pytest.fixture
def shop():
    return Shop()


@pytest.fixture
def client(shop, open_client):
    return open_client(shop.app)


def test_gates_hold_for_routes_as_they_do_for_doors(client, request):
    compare(Path(__file__).parent / "transcripts" / "gates.txt", client, request, *CHANGING)


def test_one_action_may_be_guarded_alone(open_client):
    site, app = make_shop(), FastAPI()

    @app.post("/first")
    @site.action("first", rate_limit="1/minute", guard_routes=True)
    async def first() -> str:
        """First."""
        return "first"

    @app.post("/second")
    @site.action("second", rate_limit="1/minute")
    async def second() -> str:
        """Second."""
        return "second"

    app.add_middleware(AgentPublisher, site=site)
    client = open_client(app)
    assert [client.post("/first").status_code for _ in range(2)] == [200, 429]
    assert [client.post("/second").status_code for _ in range(2)] == [200, 200]


def test_a_call_that_comes_in_through_outer_middleware_is_guarded_once(open_client):
    shop = Shop()
    shop.app.add_middleware(SessionMiddleware, secret_key=KEYS[0])
    client = open_client(shop.app)
    assert invoke_agent(client, "search", {"q": "a"}).headers["x-ratelimit-remaining"] == "1"
    assert client.get("/search?q=a").headers["x-ratelimit-remaining"] == "0"


def test_a_degraded_action_is_refused_at_its_route(client, shop):
    shop.site.set_status(degraded_actions=["search"])
    shop.site.refresh()
    assert status_and_code(client.get("/search?q=a")) == (503, "TEMPORARILY_UNAVAILABLE")


# --- Routes of Starlette, mounts, and answers that are not simple ---


def _guarded(handler: Any, path: str, **options: Any) -> Starlette:
    site = make_shop(guard_routes=True)
    route = Route(path, site.action("act", rate_limit="9/minute", **options)(handler), methods=["GET", "POST"])
    routes = [Mount("/shop", routes=[Route("/{tail:path}/x", _nothing), route])]
    return Starlette(routes=routes, middleware=[Middleware(AgentPublisher, site=site)])


async def _nothing(request: Request) -> PlainTextResponse:
    """Nothing."""
    return PlainTextResponse("nothing")


def test_a_route_below_a_mount_is_found_and_only_that(open_client):
    async def act(request: Request) -> JSONResponse:
        """Act."""
        return JSONResponse(dict(request.path_params))

    client = open_client(_guarded(act, "/{area:path}", method="GET"))
    answer = client.get("/shop/a/b")
    assert (answer.json(), answer.headers["x-ratelimit-remaining"]) == ({"area": "a/b"}, "8")
    assert "x-ratelimit-remaining" not in client.get("/shop/a/x").headers
    assert "x-ratelimit-remaining" not in client.post("/shop/a/b").headers
    assert client.head("/shop/a/b").headers["x-ratelimit-remaining"] == "7"


def test_an_answer_in_parts_is_given_whole_and_work_after_it_is_done(open_client):
    done = asyncio.Event()

    async def act(request: Request) -> StreamingResponse:
        """Act."""

        async def after() -> None:
            done.set()

        return StreamingResponse(iter([b"a", b"b"]), media_type="text/plain", background=BackgroundTask(after))

    answer = open_client(_guarded(act, "/act", method="POST")).post("/shop/act")
    assert (answer.text, answer.headers["x-ratelimit-remaining"]) == ("ab", "8")
    assert done.is_set()


def test_a_route_that_fails_is_a_problem(open_client):
    async def act(request: Request) -> StreamingResponse:
        """Act."""
        raise RuntimeError("a bug")

    client = open_client(_guarded(act, "/act", method="POST"))
    assert status_and_code(client.post("/shop/act")) == (500, "HANDLER_FAILED")


def test_an_application_that_keeps_its_routes_to_itself_is_guarded_by_address(open_client):
    async def app(scope, receive, send):
        if scope["type"] == "http":
            await PlainTextResponse(scope["path"])(scope, receive, send)

    site = make_shop(guard_routes=True)
    schema = {"type": "object", "properties": {"name": {"type": "string"}}}
    site.declare("act", method="GET", path="/act/{name}", description="Act.", rate_limit="9/minute", inputs=schema)

    async def ask() -> list[Any]:
        transport = ASGITransport(AgentPublisher(app, site=site))
        async with AsyncClient(transport=transport, base_url="https://shop.example") as client:
            return [await client.get("/act/me"), await client.get("/other")]

    guarded, other = asyncio.run(ask())
    assert (guarded.text, guarded.headers["x-ratelimit-remaining"]) == ("/act/me", "8")
    assert "x-ratelimit-remaining" not in other.headers


def guarded_at(publisher: AgentPublisher) -> Any:
    context = publisher.context({"type": "http", "method": "GET", "path": "/", "headers": []}, "guarded_routes")
    return context.ask("guarded_routes")  # type: ignore[union-attr]


def test_a_site_that_guards_no_route_has_nothing_before_its_application(open_client):
    site = make_shop()
    publisher = AgentPublisher(Starlette(), site=site)

    @site.agent("look", rate_limit="2/minute")
    async def look() -> str:
        """Look."""
        return "books"

    publisher.open()
    assert guarded_at(publisher) is None
    made = make_shop(guard_routes=True)
    bare = AgentPublisher(Starlette(), site=made)
    bare.open()
    assert guarded_at(bare) is None
